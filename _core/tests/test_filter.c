/* Tests of filter.c: every way in which few rows pass, against the rows one by one. */
#include <stdlib.h>

#include "../pageseek.h"
#include "check.h"

enum { INT32 = 1, BYTE_ARRAY = 6, PLAIN = 0, RLE = 3 };
enum { PAGE = 3, PAGES = 2, ROWS = PAGE * PAGES };
enum { LONG_PAGE = 29, LONG_ROWS = LONG_PAGE * PAGES };
enum { NONE = 3 }; /* a null */

/* The strings of the values 0, 1 and 2; numbers are the values themselves. */
static const char *const TEXTS[] = {"", "aa", "\xc3\xa9"};

typedef struct body {
    uint8_t bytes[256];
    size_t length;
} body;

static void put(body *b, const void *data, size_t n) {
    memcpy(b->bytes + b->length, data, n);
    b->length += n;
}

static void put_number(body *b, uint32_t v) {
    put(b, &v, 4);
}

/* A page of n rows: levels as one packed run, then the values. */
static body body_of(const uint8_t *rows, int n, bool texts) {
    body b = {.length = 0};
    const int groups = (n + 7) / 8;
    uint8_t levels[5] = {(uint8_t)(groups << 1 | 1)};
    for (int i = 0; i < n; i++) levels[1 + i / 8] |= (uint8_t)((rows[i] != NONE) << i % 8);
    put_number(&b, (uint32_t)groups + 1);
    put(&b, levels, (size_t)groups + 1);
    for (int i = 0; i < n; i++) {
        if (rows[i] == NONE) continue;
        if (texts) {
            put_number(&b, (uint32_t)strlen(TEXTS[rows[i]]));
            put(&b, TEXTS[rows[i]], strlen(TEXTS[rows[i]]));
        } else {
            put_number(&b, rows[i]);
        }
    }
    return b;
}

/* A condition: its tests, and for each value, a null last, whether it passes. */
typedef struct condition {
    ps_row_test tests[2];
    size_t n;
    bool passes[4];
} condition;

static const int32_t NUMBERS[] = {0, 1, 2}, ENDS[] = {0, 2};
static const int32_t TEXT_OFFSETS[] = {0, 0, 2, 4}, END_OFFSETS[] = {0, 0, 2};
static const char TEXT_BYTES[] = "aa\xc3\xa9", END_BYTES[] = "\xc3\xa9";

static ps_values one_value(bool texts, int v) {
    if (!texts)
        return (ps_values){
            .kind = PS_I32, .n = 1, .values = (const uint8_t *)&NUMBERS[v], .values_size = 4};
    return (ps_values){.kind = PS_BYTES,
                       .n = 1,
                       .values = (const uint8_t *)TEXT_BYTES,
                       .values_size = 4,
                       .offsets = &TEXT_OFFSETS[v]};
}

static ps_values both_ends(bool texts) {
    if (!texts)
        return (ps_values){
            .kind = PS_I32, .n = 2, .values = (const uint8_t *)ENDS, .values_size = 8};
    return (ps_values){.kind = PS_BYTES,
                       .n = 2,
                       .values = (const uint8_t *)END_BYTES,
                       .values_size = 2,
                       .offsets = END_OFFSETS};
}

static size_t conditions_of(bool texts, const ps_in *in, condition *out) {
    const ps_values none = {.kind = texts ? PS_BYTES : PS_I32}, one = one_value(texts, 1),
                    two = one_value(texts, 2);
    const condition made[] = {
        {{{.op = PS_EQ, .literals = one}}, 1, {false, true, false, false}},
        {{{.op = PS_EQ, .negate = true, .literals = one}}, 1, {true, false, true, false}},
        {{{.op = PS_GE, .literals = one}, {.op = PS_LT, .literals = two}},
         2,
         {false, true, false, false}},
        {{{.op = PS_IN, .literals = both_ends(texts), .in = in}},
         1,
         {true, false, true, false}},
        {{{.op = PS_IN, .literals = both_ends(texts)}, {.op = PS_NE, .literals = two}},
         2,
         {true, false, false, false}},
        {{{.op = PS_IS_NULL, .literals = none}}, 1, {false, false, false, true}},
        {{{.op = PS_IS_NULL, .negate = true, .literals = none}}, 1, {true, true, true, false}},
        {{{.op = PS_NEVER, .literals = none}}, 1, {false, false, false, false}},
    };
    memcpy(out, made, sizeof made);
    return sizeof made / sizeof *made;
}

static bool bit(const uint8_t *bits, int64_t i) {
    return bits[i / 8] >> (i % 8) & 1;
}

static void drop(ps_column *c, ps_passing *p) {
    ps_column_drop(c);
    if (p->mask) ps_buffer_free(p->mask, p->capacity);
}

static void check_row(const ps_column *c, int64_t i, bool texts, uint8_t value) {
    CHECK_INT(!c->validity || bit(c->validity, i), value != NONE);
    if (value == NONE) return;
    if (!texts) {
        int32_t v;
        memcpy(&v, c->values + 4 * i, 4);
        CHECK_INT(v, value);
        return;
    }
    int32_t ends[2];
    memcpy(ends, c->offsets + 4 * i, 8);
    CHECK_INT(ends[1] - ends[0], strlen(TEXTS[value]));
    CHECK(!memcmp(c->values + ends[0], TEXTS[value], strlen(TEXTS[value])));
}

/* Decodes the chosen rows with a condition. */
static void check(ps_leaf *leaf, bool texts, const uint8_t *rows, int n, const uint8_t *chosen,
                  const condition *wanted, bool keeps) {
    const ps_selection selection = {.bitmap = chosen, .length = PAGES * n};
    ps_column c;
    ps_passing p;
    ps_take state = PS_TAKE_PAGE;
    CHECK_INT(ps_leaf_begin(leaf, &selection, INT64_MAX, 0, NULL), PS_OK);
    CHECK_INT(ps_leaf_filter(leaf, wanted->tests, wanted->n, keeps, NULL), PS_OK);
    for (int i = 0; i < PAGES && state == PS_TAKE_PAGE; i++) {
        const body b = body_of(rows + i * n, n, texts);
        const ps_page page = {.version = 1,
                              .encoding = PLAIN,
                              .def_encoding = RLE,
                              .rep_encoding = RLE,
                              .num_values = n,
                              .num_nulls = -1,
                              .num_rows = -1,
                              .first_row = i * n,
                              .body = b.bytes,
                              .length = b.length};
        CHECK_INT(ps_leaf_page(leaf, &page, NULL), PS_OK);
        CHECK_INT(ps_leaf_take(leaf, &state, NULL), PS_OK);
    }
    CHECK_INT(state, PS_TAKE_DONE);
    CHECK_INT(ps_leaf_finish(leaf, &c, NULL), PS_OK);
    ps_leaf_filtered(leaf, &p);
    int64_t tested = 0, passed = 0, nulls = 0;
    for (int i = 0; i < PAGES * n; i++) {
        if (!bit(chosen, i)) continue;
        const bool passes = wanted->passes[rows[i]];
        CHECK_INT(bit(p.mask, tested++), passes);
        if (!passes) continue;
        if (keeps) check_row(&c, passed, texts, rows[i]);
        passed++;
        nulls += keeps && rows[i] == NONE;
    }
    CHECK_INT(p.rows, tested);
    CHECK_INT(p.passed, passed);
    CHECK_INT(c.n, keeps ? passed : 0);
    CHECK_INT(c.null_count, nulls);
    if (tested % 8) CHECK_INT(p.mask[tested / 8] >> tested % 8, 0);
    drop(&c, &p);
}

static ps_leaf *leaf_of(bool texts, int32_t kind) {
    const ps_leaf_spec spec = {.physical = texts ? BYTE_ARRAY : INT32,
                               .kind = kind,
                               .utf8 = texts,
                               .max_def = 1,
                               .max_output = 1 << 20};
    ps_leaf *leaf;
    CHECK_INT(ps_leaf_new(&spec, &leaf, NULL), PS_OK);
    return leaf;
}

static void check_all(bool texts) {
    condition conditions[8];
    const ps_values ends = both_ends(texts);
    ps_in in;
    CHECK_INT(ps_in_open(&ends, &in, NULL), PS_OK);
    const size_t n = conditions_of(texts, &in, conditions);
    for (unsigned pattern = 0; pattern < 1u << 2 * ROWS; pattern += 7) { /* 7: they are many */
        uint8_t rows[ROWS];
        for (int i = 0; i < ROWS; i++) rows[i] = pattern >> 2 * i & 3;
        for (unsigned chosen = 1; chosen < 1u << ROWS; chosen++) {
            const uint8_t bits = (uint8_t)chosen;
            ps_leaf *leaf = leaf_of(texts, texts ? PS_BYTES : PS_I32);
            const size_t k = (pattern + chosen) % n;
            check(leaf, texts, rows, PAGE, &bits, &conditions[k],
                  (pattern / n + chosen) % 3 > 0);
            ps_leaf_free(leaf);
        }
    }
}

/* Pages whose rows are no multiple of 8, with some null, few or most of which pass. */
static void check_long(bool texts) {
    condition conditions[8];
    const ps_values ends = both_ends(texts);
    uint32_t random = 1;
    ps_in in;
    CHECK_INT(ps_in_open(&ends, &in, NULL), PS_OK);
    const size_t n = conditions_of(texts, &in, conditions);
    for (unsigned round = 0; round < 4000; round++) {
        uint8_t rows[LONG_ROWS], chosen[LONG_ROWS / 8 + 1] = {0};
        const uint8_t usual = round / n % 4;
        for (int i = 0; i < LONG_ROWS; i++) {
            random = random * 1664525 + 1013904223;
            rows[i] = random >> 16 & 3 ? usual : random >> 18 & 3;
            if (round % 3 || random >> 20 & 1) chosen[i / 8] |= (uint8_t)(1 << i % 8);
        }
        chosen[0] |= 1;
        ps_leaf *leaf = leaf_of(texts, texts ? PS_BYTES : PS_I32);
        check(leaf, texts, rows, LONG_PAGE, chosen, &conditions[round % n], round % 5 > 0);
        ps_leaf_free(leaf);
    }
}

static void test_numbers_that_pass_are_kept(void) {
    check_all(false);
    check_long(false);
}

static void test_strings_that_pass_are_kept(void) {
    check_all(true);
    check_long(true);
}

static void test_an_output_that_begins_anew_has_no_tests(void) {
    const condition never = {{{.op = PS_NEVER, .literals = {.kind = PS_I32}}}, 1, {false}};
    const uint8_t rows[PAGE] = {0, 1, NONE};
    const ps_range range = {0, PAGE};
    const ps_selection selection = {.ranges = &range, .n_ranges = 1};
    const body b = body_of(rows, PAGE, false);
    const ps_page page = {.version = 1,
                          .encoding = PLAIN,
                          .def_encoding = RLE,
                          .rep_encoding = RLE,
                          .num_values = PAGE,
                          .num_nulls = -1,
                          .num_rows = -1,
                          .body = b.bytes,
                          .length = b.length};
    ps_leaf *leaf = leaf_of(false, PS_I32);
    ps_take state;
    ps_column c;
    ps_passing p;
    CHECK_INT(ps_leaf_begin(leaf, &selection, INT64_MAX, 0, NULL), PS_OK);
    CHECK_INT(ps_leaf_filter(leaf, never.tests, 1, true, NULL), PS_OK);
    CHECK_INT(ps_leaf_begin(leaf, &selection, INT64_MAX, 0, NULL), PS_OK);
    CHECK_INT(ps_leaf_page(leaf, &page, NULL), PS_OK);
    CHECK_INT(ps_leaf_take(leaf, &state, NULL), PS_OK);
    CHECK_INT(ps_leaf_finish(leaf, &c, NULL), PS_OK);
    ps_leaf_filtered(leaf, &p);
    CHECK_INT(c.n, PAGE);
    CHECK_INT(p.rows, 0);
    CHECK(!p.mask);
    drop(&c, &p);
    ps_leaf_free(leaf);
}

static void test_tests_come_first_and_to_flat_leaves_of_values(void) {
    const condition never = {{{.op = PS_NEVER, .literals = {.kind = PS_I32}}}, 1, {false}};
    const ps_range range = {0, 1};
    const ps_selection selection = {.ranges = &range, .n_ranges = 1};
    ps_leaf *leaf = leaf_of(false, PS_I32);
    CHECK_INT(ps_leaf_filter(leaf, never.tests, 1, true, NULL), PS_INVALID);
    ps_leaf_free(leaf);
    leaf = leaf_of(true, PS_VIEWS);
    CHECK_INT(ps_leaf_begin(leaf, &selection, INT64_MAX, 0, NULL), PS_OK);
    CHECK_INT(ps_leaf_filter(leaf, never.tests, 1, true, NULL), PS_UNSUPPORTED);
    ps_leaf_free(leaf);
}

/* Takes rows of a page of `n` values, a byte each, and tells how that ends. */
static ps_status take_text(const uint8_t *values, int n, unsigned chosen, bool keeps) {
    const condition none = {{{.op = PS_EQ, .literals = one_value(true, 1)}}, 1, {false}};
    const uint8_t bits = (uint8_t)chosen;
    const ps_selection selection = {.bitmap = &bits, .length = n};
    body b = {.length = 0};
    const uint8_t levels[] = {2, 0, 0, 0, (uint8_t)(n << 1), 1}; /* a run of n that are there */
    put(&b, levels, sizeof levels);
    for (int i = 0; i < n; i++) {
        put_number(&b, 1);
        put(&b, values + i, 1);
    }
    const ps_leaf_spec spec = {.physical = BYTE_ARRAY,
                               .kind = PS_BYTES,
                               .utf8 = 1,
                               .max_def = 1,
                               .max_output = 1 << 20};
    const ps_page page = {.version = 1,
                          .encoding = PLAIN,
                          .def_encoding = RLE,
                          .rep_encoding = RLE,
                          .num_values = n,
                          .num_nulls = -1,
                          .num_rows = -1,
                          .body = b.bytes,
                          .length = b.length};
    ps_leaf *leaf;
    ps_take state;
    CHECK_INT(ps_leaf_new(&spec, &leaf, NULL), PS_OK);
    CHECK_INT(ps_leaf_begin(leaf, &selection, INT64_MAX, 0, NULL), PS_OK);
    CHECK_INT(ps_leaf_filter(leaf, none.tests, 1, keeps, NULL), PS_OK);
    CHECK_INT(ps_leaf_page(leaf, &page, NULL), PS_OK);
    const ps_status status = ps_leaf_take(leaf, &state, NULL);
    ps_leaf_free(leaf);
    return status;
}

/* Any of the chosen rows may be the one; that of a row that is not chosen is none. */
static void test_a_row_of_no_text_is_a_fault_also_where_it_does_not_pass(void) {
    for (int n = 1; n <= ROWS; n++)
        for (int bad = -1; bad < n; bad++)
            for (unsigned chosen = 1; chosen < 1u << n; chosen++) {
                uint8_t values[ROWS];
                memset(values, 'x', sizeof values);
                if (bad >= 0) values[bad] = 0xff;
                const bool fault = bad >= 0 && chosen >> bad & 1;
                for (int keeps = 0; keeps < 2; keeps++)
                    CHECK_INT(take_text(values, n, chosen, keeps), fault ? PS_CORRUPT : PS_OK);
            }
}

int main(void) {
    test_numbers_that_pass_are_kept();
    test_strings_that_pass_are_kept();
    test_an_output_that_begins_anew_has_no_tests();
    test_tests_come_first_and_to_flat_leaves_of_values();
    test_a_row_of_no_text_is_a_fault_also_where_it_does_not_pass();
    return check_report();
}
