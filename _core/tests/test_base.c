/* Tests of base.c: errors, the arena. */
#include "check.h"
#include "thrift_writer.h"

static ps_error err;

static void test_arena(void) {
    ps_arena a = {.cap = 100000};
    void *p, *q;
    CHECK_INT(ps_arena_take(&a, 10, 8, &p, &err), PS_OK);
    CHECK_INT(ps_arena_take(&a, 90000, 1, &q, &err), PS_OK);
    CHECK(((uintptr_t)p | (uintptr_t)q) % 16 == 0);
    for (int i = 0; i < 90000; i += 1000) CHECK_INT(((uint8_t *)q)[i], 0);
    memset(p, 1, 80), memset(q, 1, 90000);
    CHECK_INT(ps_arena_take(&a, 10000, 1, &q, &err), PS_LIMIT);
    CHECK(q == NULL);
    CHECK_INT(ps_arena_take(&a, SIZE_MAX / 2, 3, &q, NULL), PS_LIMIT);
    CHECK_INT(ps_arena_take(&a, SIZE_MAX, 1, &q, NULL), PS_LIMIT);
    CHECK_INT(ps_arena_take(&a, 0, 8, &q, NULL), PS_OK);
    ps_arena_clear(&a);
    CHECK_INT(a.used, 0);
}

static void test_errors_and_bits(void) {
    ps_error e;
    char text[400];
    memset(text, 'x', sizeof text);
    text[399] = '\0';
    CHECK_INT(ps_fail(&e, PS_CORRUPT, 7, "%s", text), PS_CORRUPT);
    CHECK_INT(strlen(e.message), sizeof e.message - 1);
    CHECK_INT(e.offset, 7);
    CHECK_INT(ps_fail(NULL, PS_LIMIT, 7, "nobody reads this"), PS_LIMIT);
    for (int i = 0; i < 64; i++) {
        uint64_t v = UINT64_C(1) << i;
        CHECK(ps_ctz64(v) == i && ps_clz64(v) == 63 - i && ps_bit_width(v) == i + 1);
        CHECK(ps_popcount64(v - 1) == i);
    }
    int64_t sum;
    CHECK(!ps_add_i64(INT64_MAX, 1, &sum) && !ps_add_i64(INT64_MIN, -1, &sum));
    CHECK(ps_add_i64(INT64_MAX, INT64_MIN, &sum) && sum == -1);
}

int main(void) {
    test_arena();
    test_errors_and_bits();
    return check_report();
}
