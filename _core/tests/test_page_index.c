/* Tests of ColumnIndex and OffsetIndex. */
#include "check.h"
#include "thrift_writer.h"

static ps_error err;

static void column_index(bytes *b, size_t n, size_t maxima, size_t counts, int64_t null_count,
                         int order) {
    b->n = 0;
    field(b, 1, PS_T_LIST), list(b, n, PS_T_FALSE);
    for (size_t i = 0; i < n; i++)
        byte(b, (int)(i % 3)); /* false, true, false in either encoding */
    field(b, 1, PS_T_LIST), list(b, n, PS_T_BINARY);
    for (size_t i = 0; i < n; i++) string(b, "a");
    field(b, 1, PS_T_LIST), list(b, maxima, PS_T_BINARY);
    for (size_t i = 0; i < maxima; i++) string(b, "zz");
    integer(b, 1, PS_T_I32, order);
    field(b, 1, PS_T_LIST), list(b, counts, PS_T_I64);
    for (size_t i = 0; i < counts; i++) zigzag(b, null_count);
    field(b, 1, PS_T_LIST), list(b, 1, PS_T_I64), zigzag(b, 3); /* a histogram: skipped */
    byte(b, 0);
}

static void test_column_index(void) {
    static bytes b;
    ps_column_index c;
    column_index(&b, 40, 40, 40, 5, 1);
    CHECK_INT(ps_column_index_read(b.at, b.n, 1 << 16, &c, &err), PS_OK);
    CHECK_INT(c.n_pages, 40);
    CHECK_INT(c.boundary_order, 1);
    CHECK_INT(c.null_pages[0] + c.null_pages[1] * 10 + c.null_pages[2] * 100, 10);
    CHECK_INT(c.max_length[39], 2);
    CHECK(memcmp(b.at + c.max_offset[39], "zz", 2) == 0);
    CHECK_INT(c.null_counts[39], 5);
    CHECK(c.nan_counts == NULL);
    ps_column_index_clear(&c);
    for (size_t n = 0; n < b.n; n++) {
        copy x = exact(b.at, n);
        CHECK_INT(ps_column_index_read(x.data, n, 1 << 16, &c, &err), PS_TRUNCATED);
        free(x.block);
    }
    CHECK_INT(ps_column_index_read(b.at, b.n, 100, &c, &err), PS_LIMIT);
    column_index(&b, 3, 2, 3, 5, 1);
    CHECK_INT(ps_column_index_read(b.at, b.n, 1 << 16, &c, &err), PS_CORRUPT);
    CHECK(strcmp(err.message, "ColumnIndex.max_values has 2 pages, null_pages has 3") == 0);
    column_index(&b, 3, 3, 0, 5, 1);
    CHECK_INT(ps_column_index_read(b.at, b.n, 1 << 16, &c, &err), PS_CORRUPT);
    column_index(&b, 3, 3, 3, -5, 1);
    CHECK_INT(ps_column_index_read(b.at, b.n, 1 << 16, &c, &err), PS_CORRUPT);
    column_index(&b, 3, 3, 3, 5, 3);
    CHECK_INT(ps_column_index_read(b.at, b.n, 1 << 16, &c, &err), PS_CORRUPT);
    column_index(&b, 0, 0, 0, 5, 0);
    CHECK_INT(ps_column_index_read(b.at, b.n, 1 << 16, &c, &err), PS_OK);
    CHECK_INT(c.n_pages, 0);
    ps_column_index_clear(&c);
}

static void test_column_index_against_pages(void) {
    static bytes b;
    ps_column_index c;
    int64_t places[12], counts[3];
    const int64_t good[] = {0, 9, 14, 20}, bad[] = {0, 9, 15, 20}, few[] = {0, 9, 14, 18};
    const int64_t wild[] = {INT64_MAX, INT64_MIN, INT64_MAX, 0};
    column_index(&b, 3, 3, 3, 5, 1); /* the second page is null */
    CHECK_INT(ps_column_index_read(b.at, b.n, 1 << 16, &c, &err), PS_OK);
    CHECK_INT(ps_column_index_check(&c, good, 3, false, true, places, counts, &err), PS_OK);
    CHECK_INT(counts[0] * 100 + counts[1] * 10 + counts[2], 956);
    CHECK_INT(places[0], c.min_offset[0]);
    CHECK_INT(places[5], c.min_length[2]);
    CHECK_INT(places[8], c.max_offset[2]);
    CHECK_INT(places[9], c.max_length[0]);
    for (size_t i = 0; i < 4; i++) CHECK(places[3 * i + 1] == PS_ABSENT);
    CHECK_INT(ps_column_index_check(&c, good, 3, false, false, places, counts, &err), PS_OK);
    for (size_t i = 0; i < 12; i++) CHECK(places[i] == PS_ABSENT);
    CHECK_INT(ps_column_index_check(&c, good, 3, true, true, places, counts, &err), PS_CORRUPT);
    CHECK_INT(ps_column_index_check(&c, good, 2, false, true, places, counts, &err),
              PS_CORRUPT);
    CHECK(strcmp(err.message, "3 pages, the offset index has 2") == 0);
    CHECK_INT(ps_column_index_check(&c, bad, 3, false, true, places, counts, &err), PS_CORRUPT);
    CHECK_INT(ps_column_index_check(&c, few, 3, false, true, places, counts, &err), PS_CORRUPT);
    CHECK_INT(ps_column_index_check(&c, wild, 3, false, true, places, counts, &err),
              PS_CORRUPT);
    ps_column_index_clear(&c);
}

static void test_bounds_of_chunks(void) {
    ps_chunk c[3];
    int64_t places[12], nulls[3], nans[3];
    int64_t *fields = (int64_t *)c;
    for (size_t i = 0; i < 3 * sizeof c[0] / sizeof *fields; i++) fields[i] = PS_ABSENT;
    for (size_t i = 0; i < 3; i++) c[i].statistics.present = 0;
    CHECK(!ps_chunks_bounds(c, 3, true, true, places, nulls, nans));
    CHECK(nulls[2] == -1 && nans[0] == -1 && places[11] == PS_ABSENT);
    for (size_t i = 0; i < 3; i++) {
        ps_statistics *s = &c[i].statistics;
        s->present = 1, s->null_count = (int64_t)i;
        s->min_value_offset = 10, s->min_value_length = 1, s->max_value_offset = 20;
        s->max_value_length = 2, s->min_offset = 30, s->min_length = 3, s->max_offset = 40;
        s->max_length = 4;
    }
    c[1].statistics.max_value_offset = PS_ABSENT; /* one side proves nothing */
    c[2].crypto = 1;
    CHECK(ps_chunks_bounds(c, 3, true, true, places, nulls, nans));
    CHECK_INT(places[0] + places[3] + places[6] + places[9], 33);
    CHECK_INT(places[1] + places[4] + places[7] + places[10], 77);
    CHECK(places[2] == PS_ABSENT && places[11] == PS_ABSENT);
    CHECK_INT(nulls[2], 2);
    CHECK(ps_chunks_bounds(c, 3, true, false, places, nulls, nans));
    CHECK(places[0] == 10 && places[1] == PS_ABSENT);
    CHECK(ps_chunks_bounds(c, 3, false, false, places, nulls, nans));
    CHECK(places[0] == PS_ABSENT);
}

static ps_status check_pages(const int64_t (*pages)[3], size_t n, int64_t rows, int64_t start,
                             int64_t end) {
    static bytes b;
    ps_offset_index o;
    b.n = 0;
    field(&b, 1, PS_T_LIST), list(&b, n, PS_T_STRUCT);
    for (size_t i = 0; i < n; i++) {
        integer(&b, 1, PS_T_I64, pages[i][0]), integer(&b, 1, PS_T_I32, pages[i][1]);
        integer(&b, 1, PS_T_I64, pages[i][2]), byte(&b, 0);
    }
    byte(&b, 0);
    CHECK_INT(ps_offset_index_read(b.at, b.n, 1 << 16, &o, &err), PS_OK);
    CHECK_INT(o.n_pages, n);
    if (n) CHECK_INT(o.compressed_size[n - 1], pages[n - 1][1]);
    ps_status status = ps_offset_index_check(&o, rows, start, end, &err);
    ps_offset_index_clear(&o);
    return status;
}

static void test_offset_index_check(void) {
    const int64_t good[][3] = {{4, 10, 0}, {20, 10, 5}, {30, 10, 5}, {40, 10, 9}};
    CHECK_INT(check_pages(good, 4, 10, 4, 50), PS_OK);
    CHECK_INT(check_pages(good, 4, 9, 4, 50), PS_CORRUPT);
    CHECK_INT(check_pages(good, 4, 10, 5, 50), PS_CORRUPT);
    CHECK_INT(check_pages(good, 4, 10, 4, 49), PS_CORRUPT);
    CHECK_INT(check_pages(good, 0, 10, 4, 50), PS_CORRUPT);
    CHECK_INT(check_pages(good, 0, 0, 4, 50), PS_OK);
    CHECK_INT(check_pages(good, 1, 0, 4, 50), PS_OK);
    CHECK_INT(check_pages(good + 1, 3, 10, 4, 50), PS_CORRUPT);
    CHECK_INT(check_pages(good, 4, -1, 4, 50), PS_INVALID);
    const int64_t bad[][2][3] = {
        {{4, 10, 0}, {13, 10, 5}},        {{4, 10, 0}, {14, 0, 5}},
        {{4, 10, 0}, {14, -1, 5}},        {{4, 10, 0}, {14, 10, -1}},
        {{4, 10, 1}, {14, 10, 2}},        {{4, INT32_MAX, 0}, {14, 10, 2}},
        {{INT64_MAX, 10, 0}, {14, 1, 2}}, {{INT64_MIN, 10, 0}, {14, 1, 2}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_INT(check_pages(bad[i], 2, 10, 4, 50), PS_CORRUPT);
}

static void test_sums(void) {
    static bytes b;
    column_index(&b, 40, 40, 40, 5, 1);
    CHECK_INT(ps_sum_check(b.at, b.n, 77), PS_SUM_NONE);
    b.n--; /* its stop */
    for (size_t i = 0; i < PS_SUM_FIELD; i++) byte(&b, ps_sum_field[i]);
    const uint64_t sum = ps_xxh64(b.at, b.n) ^ 77;
    for (int i = 0; i < 8; i++) byte(&b, (int)(sum >> 8 * i & 0xff));
    byte(&b, 0);
    CHECK_INT(ps_sum_check(b.at, b.n, 77), PS_SUM_FITS);
    CHECK_INT(ps_sum_check(b.at, b.n, 78), PS_SUM_DIFFERS);
    ps_column_index c; /* a field like any that is not known */
    CHECK_INT(ps_column_index_read(b.at, b.n, 1 << 16, &c, &err), PS_OK);
    CHECK_INT(c.n_pages, 40);
    ps_column_index_clear(&c);
    for (size_t i = 0; i < 8 * b.n; i++) { /* every bit */
        b.at[i / 8] ^= (uint8_t)(1 << i % 8);
        const bool field = i / 8 >= b.n - PS_SUM_END && i / 8 < b.n - 9;
        CHECK_INT(ps_sum_check(b.at, b.n, 77), field ? PS_SUM_NONE : PS_SUM_DIFFERS);
        b.at[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    for (size_t n = 0; n < b.n; n++) { /* cut */
        copy x = exact(b.at, n);
        CHECK(ps_sum_check(x.data, n, 77) != PS_SUM_FITS);
        free(x.block);
    }
}

int main(void) {
    test_column_index();
    test_sums();
    test_column_index_against_pages();
    test_bounds_of_chunks();
    test_offset_index_check();
    return check_report();
}
