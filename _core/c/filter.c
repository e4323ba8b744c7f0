/* filter.c - rows of the output of a flat leaf that pass tests, page by page, while the caches have them. */
#include "leaf.h"
#include "utf8.h"
#include "values.h"

ps_status ps_leaf_filter(ps_leaf *leaf, const ps_row_test *tests, size_t n, bool keeps,
                         ps_error *err) {
    if (!leaf->out.begun || leaf->out.rows || leaf->filter.rows)
        return ps_fail(err, PS_INVALID, PS_NOWHERE, "tests come before the first row");
    if (leaf->nest || leaf->views || leaf->spec.kind == PS_BOOL)
        return ps_fail(err, PS_UNSUPPORTED, PS_NOWHERE, "rows of such a leaf are not tested");
    leaf->filter.tests = tests;
    leaf->filter.n = n;
    leaf->filter.keeps = keeps;
    return PS_OK;
}

void ps_filter_drop(ps_filter *filter) {
    ps_grow_drop(&filter->mask);
    ps_grow_drop(&filter->scratch);
    ps_grow_drop(&filter->taken);
    ps_grow_drop(&filter->slices);
    *filter = (ps_filter){0};
}

/* Bitmaps of the rows at hand, each from bit 0: they are valid; they pass the tests so far; they pass one. */
typedef struct bitmaps {
    uint8_t *valid, *passing, *one;
} bitmaps;

static ps_status make_bitmaps(ps_filter *filter, int64_t n, bitmaps *out, ps_error *err) {
    const size_t size = (size_t)n / 8 + 8;
    PS_TRY(ps_grow_reserve(&filter->scratch, 3 * size, SIZE_MAX, err));
    uint8_t *data = filter->scratch.data;
    *out = (bitmaps){data, data + size, data + 2 * size};
    return PS_OK;
}

ps_status ps_filter_reserve(ps_leaf *leaf, int64_t rows, ps_error *err) {
    size_t size;
    if (!ps_mul_size((size_t)rows, sizeof(ps_slice), &size))
        return ps_fail_nomem(err, SIZE_MAX);
    return ps_output_grow(leaf, &leaf->filter.slices, size, err);
}

/* Whether strings in the page are UTF-8. Where they are most of what lies there, all of it is looked at first: the lengths of
 * short strings are ASCII as well. */
static bool is_text(const ps_values *values, int64_t of) {
    int64_t i = 0, n = values->n;
    while (n && !ps_load_slice(values->offsets, n - 1).offset) n--; /* nulls have no place */
    while (i < n && !ps_load_slice(values->offsets, i).offset) i++;
    if (i == n) return true;
    const size_t start = ps_load_slice(values->offsets, i).offset;
    const ps_bytes last = ps_bytes_at(values, n - 1);
    const size_t span = (size_t)(last.data - values->values) + last.size - start;
    if (values->n > of / 2 && ps_utf8_scan(values->values + start, span) == PS_UTF8_ASCII)
        return true;
    for (; i < n; i++) {
        const ps_bytes text = ps_bytes_at(values, i);
        if (ps_utf8_scan(text.data, text.size) == PS_UTF8_BAD) return false;
    }
    return true;
}

/* The rows of the output from row `from` on. */
static ps_values values_from(const ps_leaf *leaf, int64_t from, const uint8_t *valid) {
    ps_values v = {.kind = leaf->spec.kind,
                   .width = (int32_t)leaf->out_width,
                   .n = leaf->out.rows - from,
                   .validity = valid,
                   .values = leaf->out.values.data};
    if (ps_filter_in_place(leaf)) {
        v.kind = PS_SLICES;
        v.values = leaf->page.values;
        v.values_size = leaf->page.values_length;
        v.offsets = leaf->filter.slices.data;
    } else if (leaf->bytes) {
        v.values_size = (size_t)ps_offset_get(leaf, leaf->out.rows);
        v.offsets = leaf->out.offsets.data + (size_t)from * (v.kind == PS_BYTES ? 4 : 8);
    } else {
        v.values += (size_t)from * leaf->out_width;
        v.values_size = (size_t)v.n * leaf->out_width;
    }
    return v;
}

static ps_status evaluate(const ps_filter *filter, const ps_values *values, const bitmaps *bits,
                          int64_t *count, ps_error *err) {
    const size_t n = (size_t)values->n;
    *count = values->n;
    for (size_t i = 0; i < filter->n && *count; i++) {
        const ps_row_test *test = &filter->tests[i];
        uint8_t *mask = i ? bits->one : bits->passing;
        if (test->in) {
            PS_TRY(ps_compare_in(values, test->negate, test->in, test->nan, mask, count, err));
        } else {
            PS_TRY(ps_compare(values, test->op, test->negate, &test->literals, test->nan, mask,
                              count, err));
        }
        if (!i) continue;
        ps_bitmap_combine(bits->passing, mask, (n + 7) / 8, PS_SET_AND);
        *count = (int64_t)ps_bits_count(bits->passing, 0, n);
    }
    return PS_OK;
}

/* Adds the rows to those that were tested. */
static ps_status note(ps_filter *filter, const uint8_t *passing, int64_t n, int64_t count,
                      ps_error *err) {
    const size_t before = (size_t)filter->rows;
    PS_TRY(ps_grow_reserve(&filter->mask, (before + (size_t)n) / 8 + 1, SIZE_MAX, err));
    ps_bits_copy(filter->mask.data, before, passing, 0, (size_t)n);
    filter->rows += n;
    filter->passed += count;
    return PS_OK;
}

/* `size` bytes of memory behind the bitmaps, which may move. */
static ps_status make_space(ps_filter *filter, size_t size, uint8_t **out, ps_error *err) {
    PS_TRY(ps_grow_reserve(&filter->taken, size ? size : 1, SIZE_MAX, err));
    *out = filter->taken.data;
    return PS_OK;
}

/* Moves the chosen strings behind those before row `from`. */
static ps_status keep_strings(ps_leaf *leaf, int64_t from, const ps_values *values,
                              const ps_take_indices *chosen, ps_error *err) {
    const size_t width = values->kind == PS_BYTES ? 4 : 8, count = (size_t)chosen->count;
    const int64_t base = ps_offset_get(leaf, from);
    const uint8_t *offsets = values->offsets;
    uint8_t *space;
    size_t total;
    PS_TRY(make_space(&leaf->filter, (count + 1) * width, &space, err));
    PS_TRY(ps_gather_offsets(chosen, offsets, width, values->values_size, space, &total, err));
    PS_TRY(make_space(&leaf->filter, (count + 1) * width + total, &space, err));
    uint8_t *bytes = space + (count + 1) * width;
    ps_gather_strings(chosen, offsets, width, values->values, values->values_size, bytes,
                      total);
    if (total) memcpy(leaf->out.values.data + base, bytes, total);
    for (size_t i = 1; i <= count; i++) {
        const int64_t end = width == 4 ? (int64_t)ps_load32(space + 4 * i)
                                       : (int64_t)ps_load64(space + 8 * i);
        ps_offset_set(leaf, from + (int64_t)i, base + end);
    }
    return PS_OK;
}

/* Leaves only the `count` rows that pass of those from row `from` on. */
static ps_status keep(ps_leaf *leaf, int64_t from, const ps_values *values, const bitmaps *bits,
                      int64_t count, ps_error *err) {
    const ps_take_indices chosen = {.mask = bits->passing, .n = values->n, .count = count};
    const size_t width = leaf->out_width;
    uint8_t *space;
    if (leaf->bytes) {
        PS_TRY(keep_strings(leaf, from, values, &chosen, err));
    } else {
        PS_TRY(make_space(&leaf->filter, (size_t)count * width, &space, err));
        ps_gather_fixed(&chosen, values->values, width, space);
        if (width)
            memcpy(leaf->out.values.data + (size_t)from * width, space, (size_t)count * width);
    }
    if (values->validity) {
        ps_gather_bits(&chosen, bits->valid, bits->one);
        ps_bits_copy(leaf->out.validity.data, (size_t)from, bits->one, 0, (size_t)count);
    }
    leaf->out.rows = from + count;
    return PS_OK;
}

ps_status ps_filter_rows(ps_leaf *leaf, ps_error *err) {
    ps_filter *filter = &leaf->filter;
    const int64_t from = filter->keeps ? filter->passed : 0, rows = leaf->out.rows - from;
    const size_t n = (size_t)rows;
    int64_t count = 0;
    bitmaps bits;
    if (rows <= 0) return PS_OK;
    PS_TRY(make_bitmaps(filter, rows, &bits, err));
    const uint8_t *validity = leaf->out.validity.data;
    if (validity) ps_bits_copy(bits.valid, 0, validity, (size_t)from, n);
    const ps_values values = values_from(leaf, from, validity ? bits.valid : NULL);
    if (leaf->out.unchecked && ps_filter_in_place(leaf)) {
        leaf->out.faulty = leaf->spec.utf8 && !is_text(&values, leaf->page.n_values);
        leaf->out.unchecked = false;
    }
    if (leaf->out.faulty ||
        (leaf->out.unranged &&
         ps_convert_beyond(&leaf->spec, values.values, values.validity, rows) >= 0))
        return ps_fail(err, PS_CORRUPT, PS_NOWHERE,
                       "a value that is tested is not of its type");
    PS_TRY(evaluate(filter, &values, &bits, &count, err));
    PS_TRY(note(filter, bits.passing, rows, count, err));
    if (validity) leaf->out.null_count -= rows - (int64_t)ps_bits_count(bits.valid, 0, n);
    if (!filter->keeps || !count) {
        leaf->out.rows = from;
    } else if (count < rows) {
        PS_TRY(keep(leaf, from, &values, &bits, count, err));
    }
    if (validity)
        leaf->out.null_count += leaf->out.rows - from -
                                (int64_t)ps_bits_count(validity, (size_t)from,
                                                       (size_t)(leaf->out.rows - from));
    leaf->out.scanned = leaf->out.rows;
    leaf->out.unranged = false;
    if (leaf->bytes) leaf->out.values.size = (size_t)ps_offset_get(leaf, leaf->out.rows);
    return PS_OK;
}

void ps_leaf_filtered(ps_leaf *leaf, ps_passing *out) {
    ps_filter *filter = &leaf->filter;
    *out = (ps_passing){.rows = filter->rows, .passed = filter->passed};
    if (filter->mask.data) ps_bits_end(filter->mask.data, (size_t)filter->rows);
    out->mask = filter->mask.data;
    out->capacity = filter->mask.capacity;
    filter->mask = (ps_grow){0};
}
