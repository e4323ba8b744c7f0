/* filter.c - rows of the output of a flat leaf that pass tests, page by page, while the caches have them. */
#include "leaf.h"

ps_status ps_leaf_filter(ps_leaf *leaf, const ps_row_test *tests, size_t n, bool keeps,
                         ps_error *err) {
    if (!leaf->out.begun || leaf->out.rows)
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

/* The rows of the output from row `from` on. */
static ps_values values_from(const ps_leaf *leaf, int64_t from, const uint8_t *valid) {
    ps_values v = {.kind = leaf->spec.kind,
                   .width = (int32_t)leaf->out_width,
                   .n = leaf->out.rows - from,
                   .validity = valid,
                   .values = leaf->out.values.data};
    if (leaf->bytes) {
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

/* The next run of ones of n bits, from bit *at on. False where there is none. */
static bool next_run(const uint8_t *bits, size_t n, size_t *at, size_t *stop) {
    while (*at < n && !ps_bit_get(bits, *at)) *at += *at % 8 == 0 && !bits[*at / 8] ? 8 : 1;
    if (*at >= n) return false;
    *stop = *at + 1;
    while (*stop < n && ps_bit_get(bits, *stop)) ++*stop;
    return true;
}

/* Moves the rows [from + start, from + stop) to row `to`, which is not behind them. */
static void move(ps_leaf *leaf, int64_t from, size_t start, size_t stop, int64_t to) {
    const int64_t first = from + (int64_t)start, n = (int64_t)(stop - start);
    uint8_t *values = leaf->out.values.data;
    if (!leaf->bytes) {
        const size_t width = leaf->out_width;
        memmove(values + (size_t)to * width, values + (size_t)first * width, (size_t)n * width);
        return;
    }
    const int64_t begin = ps_offset_get(leaf, first), end = ps_offset_get(leaf, first + n),
                  back = begin - ps_offset_get(leaf, to);
    memmove(values + begin - back, values + begin, (size_t)(end - begin));
    for (int64_t i = 1; i <= n; i++)
        ps_offset_set(leaf, to + i, ps_offset_get(leaf, first + i) - back);
}

/* Leaves only the rows that pass of those from row `from` on. */
static void keep(ps_leaf *leaf, int64_t from, size_t n, const bitmaps *bits) {
    int64_t to = from;
    size_t stop;
    for (size_t at = 0; next_run(bits->passing, n, &at, &stop); at = stop) {
        move(leaf, from, at, stop, to);
        if (leaf->out.validity.data)
            ps_bits_copy(leaf->out.validity.data, (size_t)to, bits->valid, at, stop - at);
        to += (int64_t)(stop - at);
    }
    leaf->out.rows = to;
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
        keep(leaf, from, n, &bits);
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
