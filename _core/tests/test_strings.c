/* Byte strings of a leaf: the space they get, what is found to be no text, and where. */
#include <stdlib.h>

#include "check.h"
#include "leaf.h"
#include "utf8.h"

enum { BYTE_ARRAY = 6, PLAIN = 0, RLE = 3 };

static ps_leaf *leaf_of(int32_t kind, const ps_selection *rows, size_t hint) {
    ps_leaf_spec spec = {
        .physical = BYTE_ARRAY, .kind = kind, .utf8 = 1, .max_output = (size_t)1 << 30};
    ps_leaf *leaf = NULL;
    CHECK_INT(ps_leaf_new(&spec, &leaf, NULL), PS_OK);
    CHECK_INT(ps_leaf_begin(leaf, rows, INT64_MAX, hint, NULL), PS_OK);
    return leaf;
}

/* A page of n strings of `length` bytes each, of which `text` is a part; in memory of exactly its size. */
static ps_page page_of(const uint8_t *text, size_t length, int64_t n, int64_t first_row) {
    uint8_t *body = malloc((size_t)n * (4 + length) + !n), *p = body;
    for (int64_t i = 0; i < n; i++, p += 4 + length) {
        ps_store32(p, (uint32_t)length);
        if (length) memcpy(p + 4, text, length);
    }
    return (ps_page){.version = 1,
                     .encoding = PLAIN,
                     .def_encoding = RLE,
                     .rep_encoding = RLE,
                     .num_values = n,
                     .num_nulls = -1,
                     .num_rows = -1,
                     .index_rows = -1,
                     .first_row = first_row,
                     .body = body,
                     .length = (size_t)n * (4 + length)};
}

static ps_take take(ps_leaf *leaf, const ps_page *page) {
    ps_take state = PS_TAKE_FULL;
    CHECK_INT(ps_leaf_page(leaf, page, NULL), PS_OK);
    CHECK_INT(ps_leaf_take(leaf, &state, NULL), PS_OK);
    return state;
}

/* Pages that are like each other make the output grow once, and only a little too much. */
static void room_for_rows_like_those_before(void) {
    enum { PAGES = 7, ROWS = 1000, LENGTH = 40 };
    uint8_t text[LENGTH];
    memset(text, 'a', sizeof text);
    const ps_range all = {0, PAGES * ROWS};
    const ps_selection rows = {.ranges = &all, .n_ranges = 1};
    ps_leaf *leaf = leaf_of(PS_BYTES, &rows, 0);
    size_t grown = 0, capacity = leaf->out.values.capacity;
    for (int64_t i = 0; i < PAGES; i++) {
        ps_page page = page_of(text, LENGTH, ROWS, i * ROWS);
        take(leaf, &page);
        grown += leaf->out.values.capacity != capacity;
        capacity = leaf->out.values.capacity;
        free((void *)(uintptr_t)page.body);
    }
    CHECK_INT(grown, 1);
    CHECK(capacity <= (size_t)PAGES * ROWS * LENGTH * 21 / 20);
    ps_column c;
    CHECK_INT(ps_leaf_finish(leaf, &c, NULL), PS_OK);
    CHECK_INT(c.values_size, PAGES * ROWS * LENGTH);
    ps_column_drop(&c);
    ps_leaf_free(leaf);
}

/* One long string does not reserve space for a million: what is there bounds what is expected, and what is given away is small. */
static void few_long_strings_do_not_stand_for_all(void) {
    enum { ROWS = 1000000, LONG = 100000 };
    uint8_t *text = malloc(LONG);
    memset(text, 'a', LONG);
    const ps_range all = {0, ROWS};
    const ps_selection rows = {.ranges = &all, .n_ranges = 1};
    ps_leaf *leaf = leaf_of(PS_BYTES, &rows, 0);
    ps_page first = page_of(text, LONG, 1, 0), rest = page_of(text, 0, ROWS - 1, 1);
    CHECK_INT(take(leaf, &first), PS_TAKE_PAGE);
    CHECK(leaf->out.values.capacity <= 8 * LONG + 64);
    CHECK_INT(take(leaf, &rest), PS_TAKE_DONE);
    CHECK(leaf->out.values.capacity <= 8 * LONG + 64);
    ps_column c;
    CHECK_INT(ps_leaf_finish(leaf, &c, NULL), PS_OK);
    CHECK_INT(c.values_size, LONG);
    CHECK(c.values_capacity <= LONG + 64);
    ps_column_drop(&c);
    ps_leaf_free(leaf);
    free(text), free((void *)(uintptr_t)first.body), free((void *)(uintptr_t)rest.body);
}

/* A page that says it has more strings than fit its bytes reserves no space for them. */
static void a_page_that_lies_makes_no_room(void) {
    const ps_range all = {0, 100};
    const ps_selection rows = {.ranges = &all, .n_ranges = 1};
    ps_leaf *leaf = leaf_of(PS_BYTES, &rows, 0);
    ps_page page = page_of((const uint8_t *)"ab", 2, 10, 0);
    page.num_values = 100;
    ps_take state;
    CHECK_INT(ps_leaf_page(leaf, &page, NULL), PS_OK);
    CHECK_INT(ps_leaf_take(leaf, &state, NULL), PS_TRUNCATED);
    CHECK(leaf->out.values.capacity <= 64);
    ps_leaf_free(leaf);
    free((void *)(uintptr_t)page.body);
}

/* The value that finish names, -1 where there is none. */
static long long fault(ps_leaf *leaf) {
    ps_column c;
    ps_error err = {0};
    const ps_status status = ps_leaf_finish(leaf, &c, &err);
    if (status == PS_OK) {
        ps_column_drop(&c);
        return -1;
    }
    long long value = -2;
    CHECK_INT(status, PS_CORRUPT);
    CHECK_INT(sscanf(err.message, "value %lld of the selected rows is not UTF-8", &value), 1);
    return value;
}

/* The fault is in one string of a page that is looked at in many parts: it is found, and named, wherever it is. */
static void a_fault_is_named_wherever_it_is(size_t length) {
    enum { ROWS = 30000 };
    static const size_t places[] = {0, 1, 4095, 4096, 4097, 8191, 12345, 29998, 29999};
    static const char *const faults[] = {"\xff", "\xc3", "\xa9", "\xe2\x82", "\xed\xa0\x80"};
    const int32_t kinds[] = {PS_BYTES, PS_LARGE_BYTES, PS_VIEWS};
    uint8_t text[50];
    const ps_range all = {0, ROWS};
    const ps_selection rows = {.ranges = &all, .n_ranges = 1};
    for (size_t i = 0; i < sizeof text; i += 2) memcpy(text + i, "\xc3\xa9", 2);
    ps_page page = page_of(text, length, ROWS, 0);
    uint8_t *body = (uint8_t *)(uintptr_t)page.body;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        ps_leaf *good = leaf_of(kinds[k], &rows, 0);
        take(good, &page);
        CHECK_INT(fault(good), -1);
        ps_leaf_free(good);
        for (size_t f = 0; f < sizeof faults / sizeof *faults; f++) {
            for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
                uint8_t *string = body + places[i] * (4 + length) + 4;
                /* at the end, where the next string could make it whole; the others go on with ASCII */
                const size_t at = length - strlen(faults[f]);
                memset(string + at - 1, 'a', length - at + 1);
                memcpy(string + at, faults[f], strlen(faults[f]));
                ps_leaf *leaf = leaf_of(kinds[k], &rows, 0);
                take(leaf, &page);
                CHECK_INT(fault(leaf), (long long)places[i]);
                ps_leaf_free(leaf);
                memcpy(string, text, length);
            }
        }
    }
    free(body);
}

/* Two strings that are text only together, in one page or at the end of one and the beginning of the next. */
static void a_character_cut_in_two_is_no_text(void) {
    const ps_range all = {0, 2};
    const ps_selection rows = {.ranges = &all, .n_ranges = 1};
    static const uint8_t both[] = {1, 0, 0, 0, 0xc3, 1, 0, 0, 0, 0xa9};
    for (int i = 0; i < 4; i++) {
        const int pages = 1 + i % 2;
        ps_leaf *leaf = leaf_of(i < 2 ? PS_BYTES : PS_VIEWS, &rows, 0);
        ps_page page = page_of(NULL, 0, 0, 0);
        free((void *)(uintptr_t)page.body);
        for (int p = 0; p < pages; p++) {
            page.body = both + 5 * p, page.length = 10 / (size_t)pages;
            page.num_values = 2 / pages, page.first_row = p;
            take(leaf, &page);
        }
        CHECK_INT(fault(leaf), i < 2); /* with offsets, what is wrong shows at its beginning */
        ps_leaf_free(leaf);
    }
}

/* Likewise of long strings, which lie behind each other as if they were one. */
static void a_character_cut_in_two_is_no_text_of_long_views(void) {
    const ps_range all = {0, 2};
    const ps_selection rows = {.ranges = &all, .n_ranges = 1};
    uint8_t first[20], second[20];
    memset(first, 'a', 20), memset(second, 'a', 20);
    first[19] = 0xc3, second[0] = 0xa9;
    ps_leaf *leaf = leaf_of(PS_VIEWS, &rows, 0);
    ps_page one = page_of(first, 20, 1, 0), two = page_of(second, 20, 1, 1);
    take(leaf, &one), take(leaf, &two);
    CHECK_INT(fault(leaf), 0);
    ps_leaf_free(leaf);
    uint8_t both[48];
    memcpy(both, one.body, 24), memcpy(both + 24, two.body, 24);
    free((void *)(uintptr_t)one.body), free((void *)(uintptr_t)two.body);
    leaf = leaf_of(PS_VIEWS, &rows, 0);
    one.body = both, one.length = 48, one.num_values = 2;
    take(leaf, &one);
    CHECK_INT(fault(leaf), 0);
    ps_leaf_free(leaf);
}

/* Entries of a dictionary come into an output when a row has them, once, and again into the next output. */
static void an_entry_is_copied_once_for_each_output(void) {
    static const uint8_t entries[] =
        "\x0d\0\0\0thirteen byte\x03\0\0\0abc\x0e\0\0\0fourteen bytes";
    static const uint8_t codes[] = {2, 8 << 1, 0, 4 << 1,
                                    1, 4 << 1, 2}; /* runs of 8, 4 and 4 */
    const ps_range some[] = {{4, 10}}, all[] = {{10, 16}};
    const ps_selection rows = {.ranges = some, .n_ranges = 1},
                       rest = {.ranges = all, .n_ranges = 1};
    ps_leaf *leaf = leaf_of(PS_VIEWS, &rows, 0);
    CHECK_INT(ps_leaf_dictionary(leaf, entries, sizeof entries - 1, 3, NULL), PS_OK);
    ps_page page = page_of(NULL, 0, 0, 0);
    free((void *)(uintptr_t)page.body);
    page.encoding = 8, page.num_values = 16, page.body = codes, page.length = sizeof codes;
    CHECK_INT(take(leaf, &page), PS_TAKE_DONE);
    ps_column c;
    CHECK_INT(ps_leaf_finish(leaf, &c, NULL), PS_OK);
    CHECK_INT(c.offsets_size, 6 * 16);
    CHECK_INT(c.values_size, 13);
    CHECK(memcmp(c.values, "thirteen byte", 13) == 0);
    for (size_t i = 0; i < 4; i++)
        CHECK(memcmp(c.offsets + 16 * i, "\x0d\0\0\0thir\0\0\0\0\0\0\0\0", 16) == 0);
    for (size_t i = 4; i < 6; i++)
        CHECK(memcmp(c.offsets + 16 * i, "\x03\0\0\0abc\0\0\0\0\0\0\0\0\0", 16) == 0);
    ps_column_drop(&c);
    CHECK_INT(ps_leaf_begin(leaf, &rest, INT64_MAX, 0, NULL), PS_OK);
    ps_take state;
    CHECK_INT(ps_leaf_take(leaf, &state, NULL), PS_OK);
    CHECK_INT(state, PS_TAKE_DONE);
    CHECK_INT(ps_leaf_finish(leaf, &c, NULL), PS_OK);
    CHECK_INT(c.values_size, 14);
    CHECK(memcmp(c.values, "fourteen bytes", 14) == 0);
    CHECK(memcmp(c.offsets + 16 * 5, "\x0e\0\0\0four\0\0\0\0\0\0\0\0", 16) == 0);
    ps_column_drop(&c);
    ps_leaf_free(leaf);
}

int main(void) {
    for (int plain = 0; plain < 2; plain++) {
        printf("scan: %s\n", ps_utf8_choose(plain));
        a_fault_is_named_wherever_it_is(50);
        a_fault_is_named_wherever_it_is(12); /* a view holds it */
        a_character_cut_in_two_is_no_text();
        a_character_cut_in_two_is_no_text_of_long_views();
    }
    room_for_rows_like_those_before();
    few_long_strings_do_not_stand_for_all();
    a_page_that_lies_makes_no_room();
    an_entry_is_copied_once_for_each_output();
    return check_report();
}
