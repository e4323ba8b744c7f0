/* Byte strings whose offsets run out: the same rows come out in more than one go. The limit of an offset is
 * lowered for the files that are compiled in here, as a test of 2 GiB would be a slow one. */
#include "../c/leaf.h"

#define ps_offset_limit(leaf) ((void)(leaf), INT64_C(400))
#include "../c/block.c"
#include "../c/delta_strings.c"
#include "../c/output.c"
#undef ps_offset_limit

#include <stdlib.h>

#include "check.h"

enum { ROWS = 3000 };

typedef struct text {
    uint8_t data[1 << 17];
    size_t length;
} text;

static void put(text *t, const void *data, size_t length) {
    memcpy(t->data + t->length, data, length);
    t->length += length;
}

static void put_varint(text *t, uint64_t v) {
    for (; v > 0x7f; v >>= 7) t->data[t->length++] = (uint8_t)(v | 0x80);
    t->data[t->length++] = (uint8_t)v;
}

/* One miniblock, 32 bits a delta above a least one of -2^31. */
static void put_delta(text *t, const uint32_t *values, size_t n) {
    put_varint(t, (n / 8 + 1) * 8);
    put_varint(t, 1);
    put_varint(t, n);
    put_varint(t, (uint64_t)values[0] << 1);
    if (n < 2) return;
    put_varint(t, UINT64_C(0xffffffff));
    t->data[t->length++] = 32;
    for (size_t i = 1; i <= (n / 8 + 1) * 8; i++) {
        const uint32_t step = i < n ? values[i] - values[i - 1] + 0x80000000u : 0;
        put(t, &step, 4);
    }
}

/* Row i: null, or some bytes, which begin like the row before. */
static bool is_null(size_t row, bool nulls) {
    return nulls && row % 7 < 2;
}
static uint32_t length_of(size_t value) {
    return (uint32_t)(value * 13 % 50);
}
static uint8_t byte_of(size_t value, uint32_t i) {
    return (uint8_t)(i < 20 ? 'a' + i : 'A' + value % 26);
}

static void make_page(text *t, int32_t encoding, bool nulls, text *levels) {
    static uint32_t shared[ROWS], own[ROWS];
    static text bytes;
    size_t n = 0;
    memset(t, 0, sizeof *t);
    memset(levels, 0, sizeof *levels);
    memset(&bytes, 0, sizeof bytes);
    for (size_t i = 0; i < ROWS; i++) n += !is_null(i, nulls);
    for (size_t i = 0; i < n; i++) {
        uint32_t same = 0;
        if (encoding == PQ_DELTA_BYTE_ARRAY && i) {
            while (same < length_of(i) && same < length_of(i - 1) &&
                   byte_of(i, same) == byte_of(i - 1, same))
                same++;
        }
        shared[i] = same, own[i] = length_of(i) - same;
        for (uint32_t k = same; k < length_of(i); k++) {
            const uint8_t byte = byte_of(i, k);
            put(&bytes, &byte, 1);
        }
    }
    if (encoding == PQ_DELTA_BYTE_ARRAY) put_delta(t, shared, n);
    put_delta(t, own, n);
    put(t, bytes.data, bytes.length);
    put_varint(levels, (ROWS / 8) << 1 | 1);
    for (size_t i = 0; i < ROWS; i++)
        levels->data[levels->length + i / 8] |= (uint8_t)(!is_null(i, nulls) << i % 8);
    levels->length += ROWS / 8;
}

/* The rows of a column follow `row`, those of the mask; the values before them are counted in *value. */
static void check_column(const ps_column *c, const uint8_t *mask, bool nulls, size_t *row,
                         size_t *value) {
    int32_t at, end;
    for (int64_t i = 0; i < c->n; i++, ++*row) {
        for (; !(mask[*row / 8] >> (*row % 8) & 1); ++*row) *value += !is_null(*row, nulls);
        const bool null = is_null(*row, nulls);
        memcpy(&at, c->offsets + 4 * i, 4);
        memcpy(&end, c->offsets + 4 * i + 4, 4);
        CHECK_INT(null, c->validity && !(c->validity[i / 8] >> (i % 8) & 1));
        CHECK_INT(end - at, null ? 0 : length_of(*value));
        for (int32_t k = 0; k < end - at; k++)
            CHECK(c->values[at + k] == byte_of(*value, (uint32_t)k));
        *value += !null;
    }
}

static void check_page(int32_t encoding, bool nulls, const uint8_t *mask, bool bitmap) {
    static text body, levels;
    make_page(&body, encoding, nulls, &levels);
    ps_selection selection = {.bitmap = mask, .length = ROWS};
    ps_range *ranges = malloc(sizeof(ps_range) * ROWS);
    if (!bitmap) {
        const size_t n = ps_selection_runs(&selection);
        ps_selection_to_ranges(&selection, ranges);
        selection = (ps_selection){.ranges = ranges, .n_ranges = n};
    }
    ps_leaf_spec spec = {.physical = PQ_BYTE_ARRAY, .kind = PS_BYTES, .max_def = 1};

    spec.max_output = 1 << 20;
    spec.likely_rows = 5;
    ps_page page = {.version = 2, .encoding = encoding, .num_values = ROWS, .num_nulls = -1};
    page.num_rows = ROWS;
    page.levels = levels.data, page.def_length = levels.length;
    uint8_t *copy = malloc(body.length);
    memcpy(copy, body.data, body.length);
    page.body = copy, page.length = body.length;

    ps_leaf *leaf;
    ps_take state = PS_TAKE_PAGE;
    ps_error err = {0};
    size_t row = 0, value = 0, goes = 0;
    int64_t rows = 0;
    CHECK_INT(ps_leaf_new(&spec, &leaf, &err), PS_OK);
    CHECK_INT(ps_leaf_begin(leaf, &selection, INT64_MAX, 0, &err), PS_OK);
    CHECK_INT(ps_leaf_page(leaf, &page, &err), PS_OK);
    while (state != PS_TAKE_DONE && goes < ROWS) {
        ps_column c;
        ps_status status = ps_leaf_take(leaf, &state, &err);
        CHECK_INT(status, PS_OK);
        if (status != PS_OK) {
            printf("%s\n", err.message);
            break;
        }
        CHECK_INT(ps_leaf_finish(leaf, &c, &err), PS_OK);
        CHECK(c.values_size <= 400 && (state == PS_TAKE_DONE || c.n > 0));
        check_column(&c, mask, nulls, &row, &value);
        rows += c.n, goes++;
        ps_column_drop(&c);
        CHECK_INT(ps_leaf_begin(leaf, &selection, INT64_MAX, 0, &err), PS_OK);
    }
    CHECK_INT(rows, ps_selection_count(&selection));
    CHECK(goes > 2);
    ps_leaf_free(leaf);
    free(copy);
    free(ranges);
}

int main(void) {
    uint8_t all[ROWS / 8 + 8], some[ROWS / 8 + 8], most[ROWS / 8 + 8];
    for (size_t i = 0; i < sizeof all; i++) {
        all[i] = 255;
        some[i] = (uint8_t)(i * 37 % 11 ? 0x24 : 0x81);
        most[i] = (uint8_t)(i % 40 < 20 ? 0xff : 0x55);
    }
    const uint8_t *const masks[] = {all, some, most};
    for (int k = 0; k < 24; k++) {
        const int32_t encoding = k & 1 ? PQ_DELTA_BYTE_ARRAY : PQ_DELTA_LENGTH_BYTE_ARRAY;
        check_page(encoding, k & 2, masks[k / 8], k & 4);
    }
    return check_report();
}
