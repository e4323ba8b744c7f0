/* leaf.c - the decoder of a leaf: its states, and the walk over the pages of a flat leaf by a selection. */
#include "leaf.h"

#include <stdlib.h>

ps_status ps_leaf_new(const ps_leaf_spec *spec, ps_leaf **out, ps_error *err) {
    *out = NULL;
    if (!spec->passes) {
        PS_TRY(ps_convert_check(spec, err));
    } else if (spec->kind != PS_BOOL || spec->n_nesting_levels || spec->range || spec->utf8 ||
               spec->physical <= PQ_BOOLEAN || spec->physical > PQ_FIXED ||
               spec->type_length < 0) {
        return ps_fail(err, PS_INVALID, PS_NOWHERE,
                       "codes of a flat leaf alone become PS_BOOL");
    }
    if (spec->n_nesting_levels == 0 && (spec->max_rep || spec->max_def > 1)) {
        return ps_fail(err, PS_INVALID, PS_NOWHERE, "levels %d and %d need nesting levels",
                       (int)spec->max_def, (int)spec->max_rep);
    }
    if (spec->n_nesting_levels == 0 && spec->levels_only)
        return ps_fail(err, PS_INVALID, PS_NOWHERE, "a flat leaf has no levels to read alone");
    if (spec->n_nesting_levels && spec->kind == PS_VIEWS)
        return ps_fail(err, PS_INVALID, PS_NOWHERE, "a nested leaf has no views");
    ps_leaf *leaf = calloc(1, sizeof *leaf);
    if (!leaf) return ps_fail_nomem(err, sizeof *leaf);
    leaf->spec = *spec;
    leaf->spec.nesting_levels = NULL;
    if (spec->n_nesting_levels) {
        const ps_status status = ps_nest_new(spec, &leaf->nest, err);
        if (status != PS_OK) {
            free(leaf);
            return status;
        }
    }
    leaf->in_width = ps_plain_width(spec);
    leaf->out_width = ps_kind_width(spec);
    leaf->views = spec->kind == PS_VIEWS;
    leaf->bytes = leaf->views || ps_kind_has_offsets(spec->kind);
    leaf->copies = !spec->passes && ps_convert_is_copy(spec);
    *out = leaf;
    return PS_OK;
}

static void drop_output(ps_leaf *leaf) {
    ps_grow_drop(&leaf->out.validity);
    ps_grow_drop(&leaf->out.values);
    ps_grow_drop(&leaf->out.offsets);
    if (leaf->nest) ps_nest_drop_output(leaf->nest);
    ps_filter_drop(&leaf->filter);
    leaf->out.begun = false;
}

void ps_leaf_clear(ps_leaf *leaf) {
    ps_leaf_forget(leaf);
    drop_output(leaf);
    ps_grow_drop(&leaf->flat.validity);
    ps_grow_drop(&leaf->page.last);
    ps_dictionary_clear(&leaf->dictionary);
    if (leaf->nest) ps_nest_clear(leaf->nest);
}

void ps_leaf_free(ps_leaf *leaf) {
    if (!leaf) return;
    ps_leaf_clear(leaf);
    ps_nest_free(leaf->nest);
    free(leaf);
}

int64_t ps_leaf_row(const ps_leaf *leaf) {
    return leaf->rows.next;
}

/* Reserves space for all PLAIN byte strings that are left in the page, whose length tells theirs. */
static ps_status reserve_strings(ps_leaf *leaf, int64_t rows, ps_error *err) {
    const size_t left = (size_t)(leaf->page.n_values - leaf->page.value),
                 bytes = (size_t)(leaf->page.values + leaf->page.values_length -
                                  leaf->page.place.at);
    const size_t have = leaf->views ? leaf->out.values.size
                                    : (size_t)ps_offset_get(leaf, leaf->out.rows);
    if (left > bytes / 4) return PS_OK; /* too short: reading finds the value at fault */
    if (leaf->views && bytes / (4 + PS_VIEW_SHORT) <= left)
        return PS_OK; /* most lie in views */
    const size_t size = have + (bytes - 4 * left);
    if (size > (uint64_t)ps_offset_limit(leaf) || size > leaf->spec.max_output) return PS_OK;
    return ps_output_grow_strings(leaf, leaf->out.rows + rows, size, err);
}

/* Reserves space for the rows of the page from `start` on, unless the page is too short to hold them. */
static ps_status reserve_page(ps_leaf *leaf, int64_t start, int64_t end, ps_error *err) {
    int64_t rows = end - start;
    if (rows > leaf->out.max_rows - leaf->out.rows) rows = leaf->out.max_rows - leaf->out.rows;
    if (rows > leaf->out.capacity - leaf->out.rows) {
        const size_t least = leaf->page.given.encoding != PQ_PLAIN  ? 0
                             : leaf->spec.physical == PQ_BYTE_ARRAY ? 4
                                                                    : leaf->in_width;
        if (least && leaf->rows.run.stop >= end &&
            (uint64_t)leaf->page.n_values > leaf->page.values_length / least) {
            return ps_fail(err, PS_TRUNCATED,
                           ps_page_byte(leaf, leaf->page.values) + leaf->page.values_length,
                           "page ends before value %lld", (long long)leaf->page.n_values);
        }
        PS_TRY(ps_output_reserve(leaf, leaf->out.rows + rows, err));
    }
    if (ps_filter_in_place(leaf)) return ps_filter_reserve(leaf, leaf->out.rows + rows, err);
    if (leaf->bytes && leaf->page.given.encoding == PQ_PLAIN && leaf->rows.run.stop >= end &&
        rows == end - start)
        return reserve_strings(leaf, rows, err);
    return PS_OK;
}

ps_status ps_leaf_begin(ps_leaf *leaf, const ps_selection *selection, int64_t max_rows,
                        size_t hint, ps_error *err) {
    drop_output(leaf);
    leaf->rows.selection = (ps_selection){
        0}; /* the one before may be gone when this call fails */
    PS_TRY(ps_selection_check(selection, err));
    leaf->rows.selection = *selection;
    leaf->rows.runs = (ps_run_cursor){.row = leaf->rows.next};
    leaf->rows.run = (ps_range){0};
    leaf->rows.evaluated = 0;
    leaf->out.rows = leaf->out.null_count = 0;
    leaf->out.unchecked = leaf->out.faulty = leaf->out.unranged = false;
    leaf->out.scanned = 0;
    leaf->out.scanned_bytes = leaf->out.values.size = 0;
    ps_views_forget_places(&leaf->dictionary);
    const int64_t rows = ps_selection_count_from(selection, leaf->rows.next, max_rows);
    leaf->out.max_rows = rows;
    const int64_t likely = leaf->spec.likely_rows,
                  expected = likely && likely < rows ? likely : rows;
    if (leaf->nest) { /* rows do not tell how many slots there will be */
        PS_TRY(ps_nest_begin(leaf, rows, expected, hint, err));
        hint = 0;
    }
    PS_TRY(ps_output_reserve(leaf, leaf->nest ? 0 : expected, err));
    if (leaf->bytes) {
        if (!leaf->views)
            memset(leaf->out.offsets.data, 0, leaf->spec.kind == PS_BYTES ? 4 : 8);
        if (hint > leaf->spec.max_output) hint = leaf->spec.max_output;
        if (ps_output_grow(leaf, &leaf->out.values, hint, NULL) != PS_OK)
            PS_TRY(ps_output_grow(leaf, &leaf->out.values, 0, err)); /* it was only a hint */
    }
    leaf->out.begun = true;
    return PS_OK;
}

/* Levels come first in the body of a page of version 1. */
static size_t levels_reach(const ps_leaf *leaf, const ps_page *page, size_t size) {
    const int32_t most[] = {leaf->spec.max_rep, leaf->spec.max_def};
    size_t reach = 64;
    if (page->version != 1 || page->num_values < 0) return size;
    for (int i = 0; i < 2; i++) {
        const size_t width = (size_t)ps_bit_width((uint64_t)most[i]);
        size_t part; /* twice what bit-packed levels take */
        if (!ps_mul_size((size_t)page->num_values, width, &part)) return size;
        reach += part / 4;
    }
    return reach < size - size / 4 ? reach : size;
}

size_t ps_leaf_reach(const ps_leaf *leaf, const ps_page *page, size_t size) {
    const ps_selection *selection = &leaf->rows.selection;
    if (leaf->spec.levels_only) return levels_reach(leaf, page, size);
    const bool strings = leaf->spec.physical == PQ_BYTE_ARRAY;
    if (page->encoding != PQ_PLAIN || leaf->nest || (leaf->in_width == 0 && !strings))
        return size;
    if (page->num_values < 0 || page->first_row < 0 ||
        page->num_values > INT64_MAX - page->first_row)
        return size; /* ps_leaf_page will say so */
    const int64_t end = page->first_row + page->num_values;
    const int64_t stop = ps_selection_end(selection, page->first_row, end);
    if (stop <= page->first_row || stop >= end) return size;
    size_t reach;
    const size_t rows = (size_t)(stop - page->first_row);
    if (strings) { /* as far as byte strings of the usual length reach, and a few further */
        const double usual = (double)size / (double)page->num_values;
        const double part = ((double)rows * 1.0625 + 8) * usual + 64;
        reach = part < (double)size ? (size_t)part : size;
    } else if (!ps_mul_size(rows, leaf->in_width, &reach)) {
        return size;
    }
    if (page->version == 1 && leaf->spec.max_def) {
        reach += 64 + (size_t)page->num_values / 4; /* twice what bit-packed levels take */
    }
    return reach < size - size / 4 ? reach : size;
}

/* Which encodings a physical type may have (Encodings.md, "Supported Encodings"). */
static ps_status find_encoding(ps_leaf *leaf, ps_error *err) {
    static const ps_encoding *const tables[] = {
        [PQ_PLAIN] = &ps_plain,
        [PQ_PLAIN_DICTIONARY] = &ps_dictionary_codes,
        [PQ_RLE] = &ps_rle_booleans,
        [PQ_DELTA_BINARY_PACKED] = &ps_delta_numbers,
        [PQ_DELTA_LENGTH_BYTE_ARRAY] = &ps_delta_lengths,
        [PQ_DELTA_BYTE_ARRAY] = &ps_delta_strings,
        [PQ_RLE_DICTIONARY] = &ps_dictionary_codes,
        [PQ_BYTE_STREAM_SPLIT] = &ps_stream_split,
    };
    enum { NUMBERS = 1 << PQ_INT32 | 1 << PQ_INT64, FLOATS = 1 << PQ_FLOAT | 1 << PQ_DOUBLE };
    const int32_t encoding = leaf->page.given.encoding, physical = leaf->spec.physical;
    unsigned types = ~0u; /* a set of physical types */
    switch (encoding) {
    case PQ_PLAIN: break;
    case PQ_RLE: types = 1u << PQ_BOOLEAN; break;
    case PQ_BIT_PACKED: types = 0; break;
    case PQ_PLAIN_DICTIONARY:
    case PQ_RLE_DICTIONARY: types &= ~(1u << PQ_BOOLEAN); break;
    case PQ_DELTA_BINARY_PACKED: types = NUMBERS; break;
    case PQ_DELTA_LENGTH_BYTE_ARRAY: types = 1u << PQ_BYTE_ARRAY; break;
    case PQ_DELTA_BYTE_ARRAY: types = 1u << PQ_BYTE_ARRAY | 1u << PQ_FIXED; break;
    case PQ_BYTE_STREAM_SPLIT: types = NUMBERS | FLOATS | 1u << PQ_FIXED; break;
    case PQ_ALP:
        return ps_fail(err, PS_UNSUPPORTED, PS_NOWHERE,
                       "encoding %d, ALP, is not supported yet", encoding);
    default:
        return ps_fail(err, PS_UNSUPPORTED, PS_NOWHERE, "encoding %d is unknown", encoding);
    }
    if (!(types >> physical & 1)) {
        return ps_fail(err, PS_CORRUPT, PS_NOWHERE,
                       "encoding %d is not one for values of physical type %d", encoding,
                       physical);
    }
    if (leaf->spec.passes && tables[encoding] != &ps_dictionary_codes) {
        return ps_fail(err, PS_UNSUPPORTED, PS_NOWHERE, "encoding %d has no codes", encoding);
    }
    leaf->page.encoding = physical == PQ_BOOLEAN && encoding == PQ_PLAIN ? &ps_plain_booleans
                                                                         : tables[encoding];
    return PS_OK;
}

/* Bytes of strings that are checked together, while the caches have them. */
enum { SCAN = 256 << 10 };

ps_status ps_leaf_page(ps_leaf *leaf, const ps_page *page, ps_error *err) {
    leaf->page.present = false;
    if (page->num_values < 0 || page->first_row < 0 ||
        page->num_values > INT64_MAX - page->first_row) {
        return ps_fail(err, PS_CORRUPT, PS_NOWHERE, "page of %lld values at row %lld",
                       (long long)page->num_values, (long long)page->first_row);
    }
    leaf->page.given = *page;
    leaf->page.n_rows = leaf->page.row = leaf->page.value = 0; /* none of the page before */
    leaf->rows.evaluated = 0;
    if (!leaf->spec.levels_only) PS_TRY(find_encoding(leaf, err));
    PS_TRY(leaf->nest ? ps_nest_page(leaf, err) : ps_leaf_levels(leaf, err));
    if (page->first_row + leaf->page.n_rows < leaf->rows.next) {
        return ps_fail(err, PS_INVALID, PS_NOWHERE,
                       "page ends at row %lld, the decoder stands at row %lld",
                       (long long)(page->first_row + leaf->page.n_rows),
                       (long long)leaf->rows.next);
    }
    leaf->page.place = (ps_place){.at = leaf->page.values};
    const size_t length = leaf->page.values_length;
    leaf->page.scan_rows = SCAN;
    if ((uint64_t)leaf->page.n_values < length)
        leaf->page.scan_rows = (int64_t)((double)leaf->page.n_values / (double)length * SCAN) +
                               1;
    if (page->num_values && !leaf->spec.levels_only)
        PS_TRY(leaf->page.encoding->open(leaf, err));
    leaf->page.present = true;
    return PS_OK;
}

static int64_t count_values(const ps_leaf *leaf, int64_t rows) {
    if (!leaf->flat.has_nulls) return rows;
    return (int64_t)ps_bits_count(leaf->flat.validity.data, (size_t)leaf->page.row,
                                  (size_t)rows);
}

static ps_status skip_rows(ps_leaf *leaf, int64_t rows, ps_error *err) {
    int64_t n = count_values(leaf, rows);
    if (n) PS_TRY(leaf->page.encoding->skip(leaf, n, err));
    leaf->page.row += rows;
    leaf->page.value += n;
    return PS_OK;
}

/* Rows in front of which exactly n values stand, as many as there are. */
static int64_t rows_of_values(const ps_leaf *leaf, int64_t n) {
    int64_t rows = 0;
    while (n || !ps_bit_get(leaf->flat.validity.data, (size_t)(leaf->page.row + rows))) {
        n -= ps_bit_get(leaf->flat.validity.data, (size_t)(leaf->page.row + rows++));
    }
    return rows;
}

/* *done < rows when the offsets of byte strings are exhausted. */
static ps_status read_rows(ps_leaf *leaf, int64_t rows, int64_t *done, ps_error *err) {
    int64_t n = count_values(leaf, rows), got;
    const size_t at = (size_t)leaf->page.row;
    PS_TRY(ps_append_run(leaf, leaf->flat.validity.data, at, rows, n, &got, err));
    if (got < n) {
        n = got;
        rows = leaf->flat.has_nulls ? rows_of_values(leaf, n) : n;
        if (n < rows) ps_append_spread_offsets(leaf, leaf->flat.validity.data, at, rows, n);
    }
    *done = rows;
    PS_TRY(ps_output_add_validity(leaf, leaf->flat.validity.data, (size_t)leaf->page.row, rows,
                                  n, err));
    leaf->page.row += rows;
    leaf->page.value += n;
    leaf->out.rows += rows;
    return PS_OK;
}

void ps_leaf_forget(ps_leaf *leaf) {
    ps_leaf_drop_page(leaf);
}

void ps_leaf_forget_selection(ps_leaf *leaf) {
    drop_output(leaf);
    leaf->rows.selection = (ps_selection){0};
    leaf->rows.run = (ps_range){0};
}

static ps_status take_runs(ps_leaf *leaf, ps_take *state, ps_error *err) {
    for (;;) {
        if (leaf->rows.run.start == leaf->rows.run.stop &&
            !ps_selection_next(&leaf->rows.selection, &leaf->rows.runs, INT64_MAX,
                               &leaf->rows.run)) {
            *state = PS_TAKE_DONE;
            return PS_OK;
        }
        if (leaf->out.rows == leaf->out.max_rows) {
            *state = PS_TAKE_FULL;
            return PS_OK;
        }
        const int64_t start = leaf->rows.run.start,
                      end = leaf->page.given.first_row + leaf->page.n_rows;
        if (!leaf->page.present || start >= end) {
            *state = PS_TAKE_PAGE;
            return PS_OK;
        }
        const int64_t here = leaf->page.given.first_row + leaf->page.row;
        if (start < here) {
            return ps_fail(err, PS_INVALID, PS_NOWHERE,
                           "row %lld is selected, but the page handed begins at row %lld",
                           (long long)start, (long long)here);
        }
        PS_TRY(reserve_page(leaf, start, end, err));
        if (start > here) PS_TRY(skip_rows(leaf, start - here, err));
        if (start >= leaf->rows.evaluated) {
            int64_t rows;
            PS_TRY(ps_block_take(leaf, start, end, &rows, err));
            if (rows) {
                ps_leaf_block_done(leaf, start + rows);
                continue;
            }
        }
        int64_t want = (leaf->rows.run.stop < end ? leaf->rows.run.stop : end) - start,
                done = 0;
        if (want > leaf->out.max_rows - leaf->out.rows)
            want = leaf->out.max_rows - leaf->out.rows;
        if (leaf->spec.utf8 && want > leaf->page.scan_rows) want = leaf->page.scan_rows;
        PS_TRY(read_rows(leaf, want, &done, err));
        if (leaf->out.rows - leaf->out.scanned >= leaf->page.scan_rows)
            ps_output_check_text(leaf);
        leaf->rows.run.start = leaf->rows.next = start + done;
        if (done < want) {
            if (leaf->out.rows == 0) {
                return ps_fail(
                    err, PS_LIMIT, PS_NOWHERE,
                    "a byte string does not fit 32-bit offsets; use string_type=\"large\"");
            }
            *state = PS_TAKE_FULL;
            return PS_OK;
        }
    }
}

ps_status ps_leaf_take(ps_leaf *leaf, ps_take *state, ps_error *err) {
    if (!leaf->out.begun) return ps_fail(err, PS_INVALID, PS_NOWHERE, "take before begin");
    ps_status status = leaf->nest ? ps_nest_take(leaf, state, err)
                                  : take_runs(leaf, state, err);
    if (status == PS_OK) {
        ps_output_check_text(leaf);
        if (leaf->filter.n) status = ps_filter_rows(leaf, err);
    }
    if (status != PS_OK) {
        ps_leaf_forget(leaf); /* it stands somewhere inside the page */
    }
    return status;
}

ps_status ps_leaf_finish(ps_leaf *leaf, ps_column *out, ps_error *err) {
    *out = (ps_column){0};
    if (!leaf->out.begun) return ps_fail(err, PS_INVALID, PS_NOWHERE, "finish before begin");
    PS_TRY(ps_output_check(leaf, err)); /* with what a take left that failed */
    const ps_status status = ps_output_give(leaf, out, err);
    if (status != PS_OK) drop_output(leaf); /* some of it is gone: it cannot be tried again */
    if (status == PS_OK && leaf->nest) out->rows = ps_nest_rows(leaf->nest);
    return status;
}

ps_status ps_leaf_nesting_level(ps_leaf *leaf, int32_t level, ps_column *out, ps_error *err) {
    *out = (ps_column){0};
    if (!leaf->nest || leaf->out.begun || level < 0 || level >= leaf->spec.n_nesting_levels)
        return ps_fail(err, PS_INVALID, PS_NOWHERE, "there is no output of nesting level %d",
                       (int)level);
    return ps_nest_output(leaf->nest, level, out, err);
}

void ps_leaf_end(ps_leaf *leaf) {
    if (leaf->nest) ps_nest_end(leaf->nest);
}

int64_t ps_leaf_page_rows(const ps_leaf *leaf) {
    return leaf->page.n_rows;
}
