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

/* Reserves space for a number of slots, unless it is beyond the limit: then pages reserve it. */
static ps_status reserve(ps_leaf *leaf, ps_grow *grow, size_t slots, size_t width,
                         ps_error *err) {
    size_t size;
    if (!ps_mul_size(slots, width, &size) || size > leaf->spec.max_output) return PS_OK;
    return ps_output_grow(leaf, grow, size, err);
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
        PS_TRY(ps_grow_reserve(&r->out, ((size_t)out->n + 1) * 4, SIZE_MAX, err));
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

/* All rows that begin in the page are done; `open` tells whether the last one was taken. */
static void end_of_page(ps_leaf *leaf, ps_open open) {
    leaf->nest->open = leaf->page.given.whole ? PS_OPEN_NOT : open;
}

/* Takes or skips the entries that belong to the last row of the page before. */
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
