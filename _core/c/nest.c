/* nest.c - rows of a nested leaf: its nesting levels, its pages, and the walk over them by a selection (README.md,
 * "Nested Encoding"; the record shredding of Dremel). */
#include "nest.h"

#include <stdlib.h>

/* ---- nesting levels ----------------------------------------------------------------------- */

ps_status ps_nest_new(const ps_leaf_spec *spec, ps_nest **out, ps_error *err) {
    int32_t lists = 0;
    int def = 0;
    *out = NULL;
    if (spec->n_nesting_levels < 0 || spec->n_nesting_levels > 2 * PS_MAX_LEVEL ||
        spec->max_def > PS_MAX_LEVEL)
        return ps_fail(err, PS_LIMIT, PS_NOWHERE, "a leaf of %d levels is nested too deeply",
                       (int)spec->max_def);
    for (int32_t i = 0; i < spec->n_nesting_levels; i++) {
        const ps_nesting_level *level = &spec->nesting_levels[i];
        const bool list = level->type == PS_NESTING_LIST;
        lists += list;
        if (level->def_level != ++def || (list && level->rep_level != lists))
            return ps_fail(err, PS_INVALID, PS_NOWHERE, "nesting level %d has levels %d and %d",
                           (int)i, (int)level->def_level, (int)level->rep_level);
    }
    if (lists != spec->max_rep || spec->max_def < def || spec->max_def > def + 1)
        return ps_fail(err, PS_INVALID, PS_NOWHERE,
                       "levels %d and %d do not fit %d nesting levels", (int)spec->max_def,
                       (int)spec->max_rep, (int)spec->n_nesting_levels);
    ps_nest *nest = calloc(1, sizeof *nest);
    if (!nest) return ps_fail_nomem(err, sizeof *nest);
    nest->n_nesting_levels = spec->n_nesting_levels;
    nest->lists = lists;
    nest->levels = calloc((size_t)spec->n_nesting_levels, sizeof *nest->levels);
    nest->segments = calloc((size_t)lists + 1, sizeof *nest->segments);
    if (!nest->levels || !nest->segments) {
        ps_nest_free(nest);
        return ps_fail_nomem(err, (size_t)spec->n_nesting_levels * sizeof *nest->levels);
    }
    ps_segment *segment = nest->segments;
    for (int32_t i = 0; i < spec->n_nesting_levels; i++) {
        nest->levels[i].type = spec->nesting_levels[i].type;
        nest->levels[i].def_level = (uint8_t)spec->nesting_levels[i].def_level;
        segment->stop = i;
        if (spec->nesting_levels[i].type == PS_NESTING_LIST) {
            segment++;
            segment->first = i + 1;
            segment->level = nest->levels[i].def_level;
        }
    }
    segment->stop = spec->n_nesting_levels;
    *out = nest;
    return PS_OK;
}

void ps_nest_drop_output(ps_nest *nest) {
    for (int32_t i = 0; nest->levels && i < nest->n_nesting_levels; i++) {
        ps_grow_drop(&nest->levels[i].out);
        nest->levels[i].null_count = 0;
        nest->levels[i].given = false;
    }
    for (int32_t s = 0; nest->segments && s <= nest->lists; s++) nest->segments[s].slots = 0;
    nest->rows = 0;
}

void ps_nest_clear(ps_nest *nest) {
    ps_nest_drop_output(nest);
    ps_grow_drop(&nest->rep);
    ps_grow_drop(&nest->def);
    ps_grow_drop(&nest->starts);
}

void ps_nest_free(ps_nest *nest) {
    if (!nest) return;
    ps_nest_clear(nest);
    free(nest->levels);
    free(nest->segments);
    free(nest);
}

/* Room for so many slots of a segment, unless that is too much to ask for in advance. */
static ps_status reserve(ps_leaf *leaf, ps_grow *grow, size_t slots, size_t width,
                         ps_error *err) {
    size_t size;
    if (!ps_mul_size(slots, width, &size) || size > leaf->spec.max_output) return PS_OK;
    return ps_leaf_room(leaf, grow, size, err);
}

ps_status ps_nest_begin(ps_leaf *leaf, int64_t max_rows, int64_t expected, size_t slots,
                        ps_error *err) {
    ps_nest *nest = leaf->nest;
    nest->max_rows = max_rows;
    if (nest->open == PS_OPEN_TAKEN) nest->open = PS_OPEN_SKIPPED; /* its output is gone */
    if (slots >= SIZE_MAX / 64) return PS_OK;
    for (int32_t s = 0, r = 0; s <= nest->lists; s++) {
        const size_t n = s ? slots : (size_t)expected;
        for (; r < nest->segments[s].stop; r++)
            PS_TRY(reserve(leaf, &nest->levels[r].out, n / 8 + 1, 1, err));
        if (s < nest->lists) PS_TRY(reserve(leaf, &nest->levels[r++].out, n + 1, 4, err));
    }
    if (!leaf->nest->lists) slots = (size_t)expected;
    if (leaf->spec.levels_only) return PS_OK;
    PS_TRY(reserve(leaf, &leaf->out.validity, slots / 8 + 1, 1, err));
    if (leaf->bytes) {
        const size_t width = leaf->spec.kind == PS_BYTES ? 4 : 8;
        return reserve(leaf, &leaf->out.offsets, slots + 1, width, err);
    }
    if (leaf->spec.kind == PS_BOOL)
        return reserve(leaf, &leaf->out.values, slots / 8 + 1, 1, err);
    return reserve(leaf, &leaf->out.values, slots, leaf->out_width, err);
}

void ps_nest_end(ps_nest *nest) {
    nest->open = PS_OPEN_NOT;
}

int64_t ps_nest_rows(const ps_nest *nest) {
    return nest->rows;
}

/* ---- a page ------------------------------------------------------------------------------- */

/* An entry that goes on with a list adds an element to it, and the entry before it had one. */
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
    while (n) { /* sums in bytes, which a compiler makes many at a time */
        const size_t take = n < 255 ? n : 255;
        uint8_t sum = 0;
        for (size_t i = 0; i < take; i++) sum = (uint8_t)(sum + (rep[i] == 0));
        starts += sum, rep += take, n -= take;
    }
    return (int64_t)starts;
}

int64_t ps_nest_count_level(const uint8_t *def, size_t n, uint8_t level) {
    size_t found = 0;
    while (n) {
        const size_t take = n < 255 ? n : 255;
        uint8_t sum = 0;
        for (size_t i = 0; i < take; i++) sum = (uint8_t)(sum + (def[i] >= level));
        found += sum, def += take, n -= take;
    }
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
    PS_TRY(ps_leaf_room(leaf, &nest->def, n, err));
    if (n) PS_TRY(ps_levels_read(leaf, &def, leaf->spec.max_def, nest->def.data, n, err));
    if (nest->lists) {
        PS_TRY(ps_leaf_room(leaf, &nest->rep, n, err));
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
        PS_TRY(ps_leaf_room(leaf, &nest->starts, size, err));
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

static ps_status skip_entries(ps_leaf *leaf, int64_t to, ps_error *err) {
    ps_nest *nest = leaf->nest;
    const int64_t n = ps_nest_count_level(
        nest->def.data + nest->entry, (size_t)(to - nest->entry), (uint8_t)leaf->spec.max_def);
    if (n && !leaf->spec.levels_only) PS_TRY(leaf->page.encoding->skip(leaf, n, err));
    leaf->page.value += n;
    nest->entry = to;
    return PS_OK;
}

ps_status ps_nest_output(ps_nest *nest, int32_t level, ps_column *out, ps_error *err) {
    ps_nest_level *r = &nest->levels[level];
    const ps_segment *segment = nest->segments;
    if (r->given)
        return ps_fail(err, PS_INVALID, PS_NOWHERE,
                       "the output of nesting level %d was given away", (int)level);
    r->given = true;
    while (level > segment->stop || (level == segment->stop && r->type != PS_NESTING_LIST))
        segment++;
    out->rows = nest->rows;
    out->n = segment->slots;
    if (r->type == PS_NESTING_LIST) {
        PS_TRY(ps_grow_room(&r->out, ((size_t)out->n + 1) * 4, SIZE_MAX, err));
        ps_store32(r->out.data + 4 * (size_t)out->n, (uint32_t)segment[1].slots);
        out->offsets_size = ((size_t)out->n + 1) * 4;
        return ps_grow_give(&r->out, out->offsets_size, &out->offsets, &out->offsets_capacity,
                            err);
    }
    out->null_count = r->null_count;
    if (!r->null_count) return PS_OK;
    out->validity_size = ((size_t)out->n + 7) / 8;
    PS_TRY(ps_grow_give(&r->out, out->validity_size, &out->validity, &out->validity_capacity,
                        err));
    ps_bits_end(out->validity, (size_t)out->n);
    return PS_OK;
}

/* ---- the walk ----------------------------------------------------------------------------- */

/* All rows that begin in the page are done, the last of them so. */
static void end_of_page(ps_leaf *leaf, ps_open open) {
    leaf->nest->open = leaf->page.given.whole ? PS_OPEN_NOT : open;
}

/* What the page before left open. */
static ps_status take_lead(ps_leaf *leaf, ps_error *err) {
    ps_nest *nest = leaf->nest;
    if (nest->open == PS_OPEN_TAKEN) {
        PS_TRY(ps_nest_take_entries(leaf, nest->lead, err));
    } else {
        PS_TRY(skip_entries(leaf, nest->lead, err));
    }
    if (leaf->page.n_rows || leaf->page.given.whole) nest->open = PS_OPEN_NOT;
    return PS_OK;
}

ps_status ps_nest_take(ps_leaf *leaf, ps_take *state, ps_error *err) {
    ps_nest *nest = leaf->nest;
    if (leaf->page.present && leaf->page.row == 0 && nest->entry == 0 &&
        nest->open != PS_OPEN_NOT)
        PS_TRY(take_lead(leaf, err));
    for (;;) {
        int64_t entry;
        if (nest->open == PS_OPEN_TAKEN) { /* the next page may have more of it */
            *state = PS_TAKE_PAGE;
            return PS_OK;
        }
        if (leaf->rows.run.start == leaf->rows.run.stop &&
            !ps_selection_next(&leaf->rows.selection, &leaf->rows.runs, INT64_MAX,
                               &leaf->rows.run)) {
            *state = PS_TAKE_DONE;
            return PS_OK;
        }
        if (nest->rows == nest->max_rows) {
            *state = PS_TAKE_FULL;
            return PS_OK;
        }
        const int64_t start = leaf->rows.run.start,
                      end = leaf->page.given.first_row + leaf->page.n_rows;
        if (!leaf->page.present || start >= end) {
            if (leaf->page.present && leaf->page.row < leaf->page.n_rows) {
                leaf->page.row = leaf->page.n_rows;
                nest->entry = nest->entries;
                end_of_page(leaf, PS_OPEN_SKIPPED);
            }
            *state = PS_TAKE_PAGE;
            return PS_OK;
        }
        const int64_t here = leaf->page.given.first_row + leaf->page.row;
        if (start < here) {
            return ps_fail(err, PS_INVALID, PS_NOWHERE,
                           "row %lld is selected, but the page handed begins at row %lld",
                           (long long)start, (long long)here);
        }
        if (start > here) {
            PS_TRY(ps_nest_entry_of(leaf, start - leaf->page.given.first_row, &entry, err));
            PS_TRY(skip_entries(leaf, entry, err));
            leaf->page.row += start - here;
        }
        if (start >= leaf->rows.evaluated) {
            int64_t rows;
            PS_TRY(ps_nest_take_block(leaf, start, end, &rows, err));
            if (rows) {
                ps_leaf_block_done(leaf, start + rows);
                if (leaf->page.row == leaf->page.n_rows) end_of_page(leaf, PS_OPEN_TAKEN);
                continue;
            }
        }
        int64_t want = (leaf->rows.run.stop < end ? leaf->rows.run.stop : end) - start;
        if (want > nest->max_rows - nest->rows) want = nest->max_rows - nest->rows;
        PS_TRY(ps_nest_entry_of(leaf, leaf->page.row + want, &entry, err));
        PS_TRY(ps_nest_take_entries(leaf, entry, err));
        leaf->page.row += want;
        nest->rows += want;
        leaf->rows.run.start = leaf->rows.next = start + want;
        if (leaf->page.row == leaf->page.n_rows) end_of_page(leaf, PS_OPEN_TAKEN);
    }
}
