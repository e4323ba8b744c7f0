/* nest_page.c - the levels of a page of a nested leaf, and the rows and values that they imply (README.md, "Nested
 * Encoding"). */
#include "nest.h"

/* Whether levels agree: an entry that goes on with a list adds an element to it, and the entry before had one, too. */
static bool levels_fit(const ps_nest *nest) {
    const uint8_t *rep = nest->rep.data, *def = nest->def.data;
    const size_t n = (size_t)nest->entries;
    unsigned bad = 0;
    if (nest->lists == 1) {
        const uint8_t least = nest->segments[1].level;
        uint8_t found = rep[0] & ((def[0] < least) | (nest->last_def < least));
        for (size_t i = 1; i < n; i++)
            found |= (uint8_t)(rep[i] & ((def[i] < least) | (def[i - 1] < least)));
        return !found;
    }
    uint8_t last = nest->last_def;
    for (size_t i = 0; i < n; i++) {
        const uint8_t least = nest->segments[rep[i]].level; /* 0 where a row begins */
        bad |= (unsigned)(def[i] < least) | (unsigned)(last < least);
        last = def[i];
    }
    return !bad;
}

static int64_t count_starts(const uint8_t *rep, size_t n) {
    size_t starts = 0;
    PS_COUNT_BYTES(starts, rep, n, byte == 0)
    return (int64_t)starts;
}

int64_t ps_nest_count_level(const uint8_t *def, size_t n, uint8_t level) {
    size_t found = 0;
    PS_COUNT_BYTES(found, def, n, byte >= level)
    return (int64_t)found;
}

ps_status ps_nest_page(ps_leaf *leaf, ps_error *err) {
    ps_nest *nest = leaf->nest;
    const ps_page *page = &leaf->page.given;
    ps_level_part rep, def;
    const size_t n = (size_t)page->num_values;
    PS_TRY(ps_levels_split(leaf, &rep, &def, err));
    nest->entries = page->num_values;
    nest->entry = nest->lead = 0;
    nest->has_starts = false;
    leaf->page.n_rows = page->num_values;
    PS_TRY(ps_output_grow(leaf, &nest->def, n, err));
    if (n) PS_TRY(ps_levels_read(leaf, &def, leaf->spec.max_def, nest->def.data, n, err));
    if (nest->lists) {
        PS_TRY(ps_output_grow(leaf, &nest->rep, n, err));
        if (n) PS_TRY(ps_levels_read(leaf, &rep, leaf->spec.max_rep, nest->rep.data, n, err));
        leaf->page.n_rows = count_starts(nest->rep.data, n);
        while ((size_t)nest->lead < n && nest->rep.data[nest->lead]) nest->lead++;
        if (nest->lead && nest->open == PS_OPEN_NOT) {
            return ps_fail(err, page->index_rows >= 0 ? PS_MISMATCH : PS_CORRUPT, PS_NOWHERE,
                           "begins inside a row");
        }
        if (n && !levels_fit(nest))
            return ps_fail(err, PS_CORRUPT, PS_NOWHERE,
                           "a repetition level goes on with a list that has no element there");
    }
    if (page->index_rows >= 0 && page->index_rows != leaf->page.n_rows)
        return ps_fail(err, PS_MISMATCH, PS_NOWHERE, "has %lld rows, not %lld",
                       (long long)leaf->page.n_rows, (long long)page->index_rows);
    /* the number of rows in the header does not count: DuckDB has written that of the values there */
    leaf->page.n_values = ps_nest_count_level(nest->def.data, n, (uint8_t)leaf->spec.max_def);
    if (n) nest->last_def = nest->def.data[n - 1];
    return PS_OK;
}

ps_status ps_nest_entry_of(ps_leaf *leaf, int64_t row, int64_t *entry, ps_error *err) {
    ps_nest *nest = leaf->nest;
    *entry = row;
    if (!nest->lists) return PS_OK;
    *entry = nest->lead;
    if (row == 0) return PS_OK;
    *entry = nest->entries;
    if (row == leaf->page.n_rows) return PS_OK;
    if (!nest->has_starts) {
        size_t size;
        if (nest->entries > UINT32_MAX || !ps_mul_size((size_t)leaf->page.n_rows + 1, 4, &size))
            return ps_fail_nomem(err, SIZE_MAX);
        PS_TRY(ps_output_grow(leaf, &nest->starts, size, err));
        uint32_t *starts = (uint32_t *)(void *)nest->starts.data;
        const uint8_t *rep = nest->rep.data;
        size_t k = 0;
        for (size_t i = 0; i < (size_t)nest->entries; i++) {
            starts[k] = (uint32_t)i;
            k += rep[i] == 0;
        }
        nest->has_starts = true;
    }
    *entry = ps_load32(nest->starts.data + 4 * (size_t)row);
    return PS_OK;
}
