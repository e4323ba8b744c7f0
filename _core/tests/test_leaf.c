/* Tests of the leaf decoder: pages and a selection in, Arrow memory out. */
#include <stdlib.h>

#include "../pageseek.h"
#include "check.h"

enum { BOOLEAN = 0, INT32 = 1, BYTE_ARRAY = 6, PLAIN = 0, RLE = 3, CODES = 8 };

static ps_leaf_spec spec_of(int32_t physical, int32_t kind, bool optional) {
    ps_leaf_spec spec = {.physical = physical, .kind = kind, .max_def = optional};
    spec.max_output = 1 << 20;
    return spec;
}

static ps_page page_of(const void *body, size_t length, int64_t n, int32_t encoding) {
    return (ps_page){.version = 1,
                     .encoding = encoding,
                     .def_encoding = RLE,
                     .rep_encoding = RLE,
                     .num_values = n,
                     .num_nulls = -1,
                     .num_rows = -1,
                     .body = body,
                     .length = length};
}

static int32_t int_at(const ps_column *c, int64_t i) {
    int32_t v;
    memcpy(&v, c->values + 4 * i, 4);
    return v;
}

static bool valid_at(const ps_column *c, int64_t i) {
    return !c->validity || (c->validity[i / 8] >> (i % 8) & 1);
}

static void test_plain_rows_are_taken_by_place(void) {
    const int32_t values[6] = {10, 11, 12, 13, 14, 15};
    const ps_range ranges[2] = {{1, 3}, {5, 6}};
    ps_selection selection = {.ranges = ranges, .n_ranges = 2};
    ps_leaf_spec spec = spec_of(INT32, PS_I32, false);
    ps_leaf *leaf;
    ps_take state;
    ps_column c;
    CHECK_INT(ps_leaf_new(&spec, &leaf, NULL), PS_OK);
    CHECK_INT(ps_leaf_begin(leaf, &selection, INT64_MAX, 0, NULL), PS_OK);
    ps_page page = page_of(values, sizeof values, 6, PLAIN);
    CHECK_INT(ps_leaf_page(leaf, &page, NULL), PS_OK);
    CHECK_INT(ps_leaf_take(leaf, &state, NULL), PS_OK);
    CHECK_INT(state, PS_TAKE_DONE);
    CHECK_INT(ps_leaf_finish(leaf, &c, NULL), PS_OK);
    CHECK_INT(c.n, 3);
    CHECK_INT(c.null_count, 0);
    CHECK(c.validity == NULL);
    CHECK_INT(int_at(&c, 0), 11);
    CHECK_INT(int_at(&c, 1), 12);
    CHECK_INT(int_at(&c, 2), 15);
    CHECK_INT((size_t)c.values % 64, 0);
    ps_column_drop(&c);
    ps_leaf_free(leaf);
}

/* Rows: null 20 null null 21 22; levels as one packed run of eight. */
static const uint8_t NULLS[] = {2, 0, 0, 0, 3, 0x32, 20, 0, 0, 0, 21, 0, 0, 0, 22, 0, 0, 0};

static void test_nulls_before_a_row_are_skipped_as_rows(void) {
    for (int64_t row = 0; row < 6; row++) {
        const int32_t wanted[6] = {0, 20, 0, 0, 21, 22};
        const ps_range range = {row, row + 1};
        ps_selection selection = {.ranges = &range, .n_ranges = 1};
        ps_leaf_spec spec = spec_of(INT32, PS_I32, true);
        ps_leaf *leaf;
        ps_take state;
        ps_column c;
        CHECK_INT(ps_leaf_new(&spec, &leaf, NULL), PS_OK);
        CHECK_INT(ps_leaf_begin(leaf, &selection, INT64_MAX, 0, NULL), PS_OK);
        ps_page page = page_of(NULLS, sizeof NULLS, 6, PLAIN);
        CHECK_INT(ps_leaf_page(leaf, &page, NULL), PS_OK);
        CHECK_INT(ps_leaf_take(leaf, &state, NULL), PS_OK);
        CHECK_INT(ps_leaf_finish(leaf, &c, NULL), PS_OK);
        CHECK_INT(c.n, 1);
        CHECK_INT(valid_at(&c, 0), wanted[row] != 0);
        CHECK_INT(int_at(&c, 0), wanted[row]);
        ps_column_drop(&c);
        ps_leaf_free(leaf);
    }
}

static void test_output_comes_in_batches(void) {
    const ps_range range = {0, 6};
    ps_selection selection = {.ranges = &range, .n_ranges = 1};
    ps_leaf_spec spec = spec_of(INT32, PS_I32, true);
    ps_leaf *leaf;
    ps_take state = PS_TAKE_FULL;
    CHECK_INT(ps_leaf_new(&spec, &leaf, NULL), PS_OK);
    CHECK_INT(ps_leaf_begin(leaf, &selection, 4, 0, NULL), PS_OK);
    ps_page page = page_of(NULLS, sizeof NULLS, 6, PLAIN);
    CHECK_INT(ps_leaf_page(leaf, &page, NULL), PS_OK);
    CHECK_INT(ps_leaf_take(leaf, &state, NULL), PS_OK);
    CHECK_INT(state, PS_TAKE_FULL);
    CHECK_INT(ps_leaf_row(leaf), 4);
    ps_column c;
    CHECK_INT(ps_leaf_finish(leaf, &c, NULL), PS_OK);
    CHECK_INT(c.n, 4);
    CHECK_INT(c.null_count, 3);
    ps_column_drop(&c);
    CHECK_INT(ps_leaf_begin(leaf, &selection, 4, 0, NULL), PS_OK);
    CHECK_INT(ps_leaf_take(leaf, &state, NULL), PS_OK);
    CHECK_INT(state, PS_TAKE_DONE);
    CHECK_INT(ps_leaf_finish(leaf, &c, NULL), PS_OK);
    CHECK_INT(c.n, 2);
    CHECK(c.validity == NULL);
    CHECK_INT(int_at(&c, 1), 22);
    ps_column_drop(&c);
    ps_leaf_free(leaf);
}

static void test_dictionary_strings(void) {
    const uint8_t entries[] = {1, 0, 0, 0, 'a', 0, 0, 0, 0, 2, 0, 0, 0, 0xc3, 0xa9};
    const uint8_t codes[] = {2, 4, 2, 2, 0, 2, 1}; /* width 2: runs of two 2s, one 0, one 1 */
    const ps_range range = {0, 4};
    ps_selection selection = {.ranges = &range, .n_ranges = 1};
    ps_leaf_spec spec = spec_of(BYTE_ARRAY, PS_BYTES, false);
    spec.utf8 = 1;
    ps_leaf *leaf;
    ps_take state;
    ps_column c;
    CHECK_INT(ps_leaf_new(&spec, &leaf, NULL), PS_OK);
    CHECK_INT(ps_leaf_dictionary(leaf, entries, sizeof entries, 3, NULL), PS_OK);
    CHECK_INT(ps_leaf_begin(leaf, &selection, INT64_MAX, 0, NULL), PS_OK);
    ps_page page = page_of(codes, sizeof codes, 4, CODES);
    CHECK_INT(ps_leaf_page(leaf, &page, NULL), PS_OK);
    CHECK_INT(ps_leaf_take(leaf, &state, NULL), PS_OK);
    CHECK_INT(ps_leaf_finish(leaf, &c, NULL), PS_OK);
    CHECK_INT(c.n, 4);
    CHECK_INT(c.values_size, 5);
    CHECK(memcmp(c.values,
                 "\xc3\xa9\xc3\xa9"
                 "a",
                 5) == 0);
    ps_column_drop(&c);
    ps_leaf_free(leaf);
}

static void fails(ps_page page, ps_leaf_spec spec, ps_status wanted) {
    uint8_t *body = malloc(page.length ? page.length : 1);
    memcpy(body, page.body, page.length);
    page.body = body;
    const uint8_t entries[8] = {1, 0, 0, 0, 2};
    const ps_range range = {0, page.num_values};
    ps_selection selection = {.ranges = &range, .n_ranges = 1};
    ps_error err = {0};
    ps_leaf *leaf;
    ps_take state;
    CHECK_INT(ps_leaf_new(&spec, &leaf, &err), PS_OK);
    if (page.encoding == CODES) CHECK_INT(ps_leaf_dictionary(leaf, entries, 8, 2, &err), PS_OK);
    CHECK_INT(ps_leaf_begin(leaf, &selection, INT64_MAX, 0, &err), PS_OK);
    ps_status status = ps_leaf_page(leaf, &page, &err);
    if (status == PS_OK) status = ps_leaf_take(leaf, &state, &err);
    CHECK_INT(status, wanted);
    CHECK(err.message[0] != '\0');
    ps_leaf_free(leaf);
    free(body);
}

static void test_pages_that_end_early(void) {
    const ps_leaf_spec optional = spec_of(INT32, PS_I32, true),
                       flag = spec_of(BOOLEAN, PS_BOOL, false);
    for (size_t length = 0; length < sizeof NULLS; length++) {
        fails(page_of(NULLS, length, 6, PLAIN), optional, PS_TRUNCATED);
    }
    fails(page_of("\xff", 1, 9, PLAIN), flag, PS_TRUNCATED);
    fails(page_of("\2\0\0\0\x12\1", 6, 10, RLE), flag, PS_TRUNCATED);
}

static void test_pages_that_contradict_the_format(void) {
    const ps_leaf_spec spec = spec_of(INT32, PS_I32, false);
    fails(page_of("\2\2\3", 3, 1, CODES), spec, PS_CORRUPT);   /* index 3 of 2 */
    fails(page_of("\x21\2\0", 3, 1, CODES), spec, PS_CORRUPT); /* 33 bits */
    fails(page_of("", 0, 1, RLE), spec, PS_CORRUPT);
    fails(page_of("", 0, 1, 10), spec, PS_UNSUPPORTED); /* ALP */
    fails(page_of("", 0, 1, 6), spec, PS_CORRUPT);      /* not for INT32 */
}

static void test_a_null_error_is_allowed(void) {
    ps_leaf_spec spec = spec_of(INT32, PS_F64, false);
    ps_leaf *leaf;
    CHECK_INT(ps_leaf_new(&spec, &leaf, NULL), PS_UNSUPPORTED);
    CHECK(leaf == NULL);
    ps_leaf_free(NULL);
    spec.kind = PS_I32;
    CHECK_INT(ps_leaf_new(&spec, &leaf, NULL), PS_OK);
    ps_take state;
    ps_column c;
    CHECK_INT(ps_leaf_take(leaf, &state, NULL), PS_INVALID);
    CHECK_INT(ps_leaf_finish(leaf, &c, NULL), PS_INVALID);
    ps_leaf_free(leaf);
}

static void test_output_beyond_the_limit(void) {
    const ps_range range = {0, INT64_MAX};
    ps_selection selection = {.ranges = &range, .n_ranges = 1};
    for (int32_t kind = PS_BOOL; kind <= PS_LARGE_BYTES; kind++) {
        int32_t physical = kind == PS_BOOL ? BOOLEAN : kind == PS_I32 ? INT32 : BYTE_ARRAY;
        ps_leaf_spec spec = spec_of(physical, kind, true);
        ps_leaf *leaf;
        if (ps_leaf_new(&spec, &leaf, NULL) != PS_OK) continue;
        ps_status status = ps_leaf_begin(leaf, &selection, INT64_MAX, 0, NULL);
        CHECK(status == PS_LIMIT || status == PS_NOMEM);
        ps_leaf_free(leaf);
    }
}

/* What a page that was refused says of rows is not added to what the page before it held. */
static void test_a_page_that_is_refused_ends_nowhere(void) {
    const int32_t values[6] = {10, 11, 12, 13, 14, 15};
    const ps_range all = {0, INT64_MAX};
    const ps_selection selection = {.ranges = &all, .n_ranges = 1};
    const ps_nesting_level level = {.type = PS_NESTING_OPTIONAL, .def_level = 1};
    for (int nested = 0; nested < 2; nested++) {
        ps_leaf_spec spec = spec_of(INT32, PS_I32, false);
        const uint8_t levels[] = {2, 0, 0, 0, 12, 1};
        uint8_t body[sizeof levels + sizeof values];
        ps_leaf *leaf;
        ps_take state = PS_TAKE_DONE;
        if (nested) spec.max_def = 1, spec.n_nesting_levels = 1, spec.nesting_levels = &level;
        spec.likely_rows = 6;
        memcpy(body, levels, sizeof levels);
        memcpy(body + sizeof levels, values, sizeof values);
        ps_page page = nested ? page_of(body, sizeof body, 6, PLAIN)
                              : page_of(values, sizeof values, 6, PLAIN);
        page.index_rows = -1, page.whole = true;
        CHECK_INT(ps_leaf_new(&spec, &leaf, NULL), PS_OK);
        CHECK_INT(ps_leaf_begin(leaf, &selection, INT64_MAX, 0, NULL), PS_OK);
        CHECK_INT(ps_leaf_page(leaf, &page, NULL), PS_OK);
        CHECK_INT(ps_leaf_take(leaf, &state, NULL), PS_OK);
        CHECK_INT(state, PS_TAKE_PAGE);
        page.first_row = INT64_MAX, page.num_values = 0, page.encoding = 99;
        CHECK_INT(ps_leaf_page(leaf, &page, NULL), PS_UNSUPPORTED);
        CHECK_INT(ps_leaf_take(leaf, &state, NULL), PS_OK);
        CHECK_INT(state, PS_TAKE_PAGE);
        CHECK_INT(ps_leaf_row(leaf), 6);
        ps_leaf_free(leaf);
    }
}

int main(void) {
    test_a_page_that_is_refused_ends_nowhere();
    test_plain_rows_are_taken_by_place();
    test_nulls_before_a_row_are_skipped_as_rows();
    test_output_comes_in_batches();
    test_dictionary_strings();
    test_pages_that_end_early();
    test_pages_that_contradict_the_format();
    test_a_null_error_is_allowed();
    test_output_beyond_the_limit();
    return check_report();
}
