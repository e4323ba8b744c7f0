/* Nested leaves whose offsets run out. The limits of an offset are lowered for the files that are compiled in
 * here, as a test of 2 GiB would be a slow one. */
#include "../c/leaf.h"

#define ps_offset_limit(leaf) ((void)(leaf), INT64_C(400))
#define ps_element_limit()    ((size_t)700)
#include "../c/block.c"
#include "../c/nest.c"
#include "../c/nest_block.c"
#include "../c/nest_slots.c"
#include "../c/output.c"
#include "../c/plain.c"
#undef ps_offset_limit
#undef ps_element_limit

#include "check.h"
#include "nest_pages.h"

static void test_strings_beyond_their_offsets(void) {
    enum { ROWS = 1000 };
    static leafage a;
    static const int types[] = {L};
    uint8_t bits[ROWS / 8 + 8];
    for (int k = 0; k < 4; k++) {
        make_nesting(&a, types, 1, true);
        a.spec.physical = PQ_BYTE_ARRAY, a.spec.kind = PS_BYTES;
        a.n = ROWS;
        for (size_t i = 0; i < ROWS; i++) a.def[i] = i % 3 ? 2 : 1;
        ps_page page = make_page(&a, 0, a.n, 2); /* of which the values are replaced */
        uint8_t *body = calloc(ROWS, 5), *p = body;
        for (size_t i = 0; i < ROWS; i++) {
            if (i % 3 == 0) continue;
            *p = 1; /* byte strings of one byte */
            p += 4;
            *p++ = 'x';
        }
        page.body = body, page.length = (size_t)(p - body), page.whole = true;
        memset(bits, k & 1 ? 0x55 : 0xff, sizeof bits);
        const int64_t rows = k & 2 ? ROWS : 300;
        const ps_selection selection = {.bitmap = bits, .length = rows};
        ps_leaf *leaf;
        ps_take state;
        ps_error err = {0};
        CHECK_INT(ps_leaf_new(&a.spec, &leaf, &err), PS_OK);
        CHECK_INT(ps_leaf_begin(leaf, &selection, INT64_MAX, 0, &err), PS_OK);
        CHECK_INT(ps_leaf_page(leaf, &page, &err), PS_OK);
        const bool more = rows == ROWS && !(k & 1); /* 667 bytes; with half of the rows 333 */
        CHECK_INT(ps_leaf_take(leaf, &state, &err), more ? PS_LIMIT : PS_OK);
        if (more) CHECK(strstr(err.message, "32-bit") != NULL);
        ps_leaf_free(leaf);
        drop_page(&page);
        free(body);
    }
}

/* Lists of lists of 7 elements each; the innermost have most of them. */
static ps_status read_elements(size_t rows, bool scattered) {
    static leafage a;
    static const int types[] = {L, L};
    uint8_t bits[ENTRIES / 8 + 8];
    make_nesting(&a, types, 2, true);
    a.n = 14 * rows;
    for (size_t i = 0; i < a.n; i++) {
        a.rep[i] = (uint8_t)(i % 14 == 0 ? 0 : i % 7 == 0 ? 1 : 2);
        a.def[i] = 3;
    }
    memset(bits, scattered ? 0x55 : 0xff, sizeof bits);
    const ps_selection selection = {.bitmap = bits, .length = (int64_t)rows};
    ps_leaf *leaf;
    ps_take state;
    ps_error err = {0};
    CHECK_INT(ps_leaf_new(&a.spec, &leaf, &err), PS_OK);
    CHECK_INT(ps_leaf_begin(leaf, &selection, INT64_MAX, 0, &err), PS_OK);
    ps_page page = make_page(&a, 0, a.n, 1);
    page.whole = true;
    CHECK_INT(ps_leaf_page(leaf, &page, &err), PS_OK);
    const ps_status status = ps_leaf_take(leaf, &state, &err);
    if (status != PS_OK) CHECK(strstr(err.message, "32-bit") != NULL);
    ps_leaf_free(leaf);
    drop_page(&page);
    return status;
}

static void test_elements_beyond_their_offsets(void) {
    CHECK_INT(read_elements(50, false), PS_OK); /* 700 elements */
    CHECK_INT(read_elements(51, false), PS_LIMIT);
    CHECK_INT(read_elements(100, true), PS_OK);
    CHECK_INT(read_elements(102, true), PS_LIMIT);
}

int main(void) {
    test_strings_beyond_their_offsets();
    test_elements_beyond_their_offsets();
    return check_report();
}
