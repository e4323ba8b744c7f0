#include "check.h"
#include "thrift_writer.h"

static ps_error err;

static ps_status footer(const bytes *b, size_t n, ps_footer *out) {
    copy c = exact(b->at, n);
    ps_status status = ps_footer_read(c.data, n, 1 << 20, out, &err);
    free(c.block);
    return status;
}

static void element(bytes *b, const char *name, int type, int children) {
    if (type >= 0) integer(b, 1, PS_T_I32, type);
    field(b, type >= 0 ? 3 : 4, PS_T_BINARY);
    string(b, name);
    if (children >= 0) integer(b, 1, PS_T_I32, children);
    byte(b, 0);
}

static void row_groups(bytes *b, size_t groups, size_t chunks) {
    list(b, groups, PS_T_STRUCT);
    for (size_t g = 0; g < groups; g++) {
        field(b, 1, PS_T_LIST), list(b, chunks, PS_T_STRUCT);
        for (size_t i = 0; i < chunks; i++) chunk(b);
        integer(b, 1, PS_T_I64, 3000);
        integer(b, 1, PS_T_I64, 1000);
        byte(b, 0);
    }
}

static void file(bytes *b) { /* root, x, group of y and of an empty group, 20 row groups */
    b->n = 0;
    integer(b, 1, PS_T_I32, 2);
    field(b, 1, PS_T_LIST), list(b, 5, PS_T_STRUCT);
    element(b, "root", -1, 2), element(b, "x", 1, -1), element(b, "g", -1, 2);
    element(b, "y", 6, -1), element(b, "none", -1, 0);
    integer(b, 1, PS_T_I64, 20000);
    field(b, 1, PS_T_LIST), row_groups(b, 20, 2);
    field(b, 1, PS_T_LIST), list(b, 2, PS_T_STRUCT);
    field(b, 1, PS_T_BINARY), string(b, "key"), field(b, 1, PS_T_BINARY), string(b, "value"),
        byte(b, 0);
    field(b, 1, PS_T_BINARY), string(b, "alone"), byte(b, 0);
    field(b, 1, PS_T_BINARY), string(b, "writer");
    field(b, 1, PS_T_LIST), list(b, 3, PS_T_STRUCT);
    field(b, 1, PS_T_STRUCT), byte(b, 0), byte(b, 0);
    field(b, 9, PS_T_STRUCT), byte(b, 0), byte(b, 0);
    byte(b, 0);
    byte(b, 0);
}

/* ---- footer ------------------------------------------------------------------------------ */

static void test_footer_fields(void) {
    static bytes b;
    ps_footer f;
    file(&b);
    CHECK_INT(footer(&b, b.n, &f), PS_OK);
    CHECK_INT(f.version, 2);
    CHECK_INT(f.num_rows, 20000);
    CHECK_INT(f.encryption, PS_ABSENT);
    CHECK(memcmp(b.at + f.created_by_offset, "writer", (size_t)f.created_by_length) == 0);
    CHECK_INT(f.n_schema, 5);
    CHECK_INT(f.n_leaves, 2);
    CHECK_INT(f.schema[1].type, 1);
    CHECK_INT(f.schema[2].type, PS_ABSENT);
    CHECK_INT(f.schema[1].logical, PS_ABSENT);
    CHECK_INT(f.n_row_groups, 20);
    CHECK_INT(f.row_groups[19].num_rows, 1000);
    CHECK_INT(f.row_groups[19].ordinal, PS_ABSENT);
    CHECK_INT(f.n_key_values, 2);
    CHECK_INT(f.key_values[3], 5);
    CHECK_INT(f.key_values[6], PS_ABSENT);
    CHECK_INT(f.n_column_orders, 3);
    CHECK_INT(f.column_orders[0], 1);
    CHECK_INT(f.column_orders[1], 0); /* unknown member */
    CHECK_INT(f.column_orders[2], 0); /* no member */
    ps_chunk c[40];
    size_t failed;
    CHECK_INT(ps_chunks_read(b.at, b.n, f.chunk_offsets, 40, c, &failed, &err), PS_OK);
    CHECK_INT(c[0].end, f.chunk_offsets[1]);
    CHECK_INT(c[39].file_offset, 4);
    CHECK_INT(c[39].has_metadata, 1);
    CHECK_INT(c[39].crypto, PS_ABSENT);
    CHECK_INT(c[39].total_uncompressed_size, INT64_MAX);
    CHECK_INT(c[39].encodings, 1 | 1 << 8 | INT64_C(1) << 62);
    CHECK_INT(c[39].dictionary_data_pages, 5);
    CHECK_INT(c[39].other_data_pages, 2);
    CHECK_INT(c[39].dictionary_page_offset, PS_ABSENT);
    CHECK_INT(c[39].offset_index_offset, 5000);
    CHECK_INT(c[39].offset_index_length, 50);
    CHECK_INT(c[39].statistics.present, 1);
    CHECK_INT(c[39].statistics.null_count, 7);
    CHECK_INT(c[39].statistics.distinct_count, PS_ABSENT);
    CHECK_INT(c[39].statistics.max_value_length, 9);
    CHECK_INT(c[39].statistics.min_value_length, 0);
    CHECK_INT(c[39].statistics.is_max_exact, 1);
    CHECK_INT(c[39].statistics.is_min_exact, 0);
    CHECK_INT(c[39].statistics.nan_count, 2);
    uint64_t outside = b.n + 1;
    CHECK_INT(ps_chunks_read(b.at, b.n, &outside, 1, c, &failed, NULL), PS_INVALID);
    ps_footer_clear(&f);
}

static void test_footer_truncated_at_every_byte(void) {
    static bytes b;
    ps_footer f;
    file(&b);
    for (size_t n = 0; n < b.n; n++) {
        CHECK_INT(footer(&b, n, &f), PS_TRUNCATED);
        CHECK(f.schema == NULL && err.offset <= n);
    }
}

static void test_footer_limits_memory(void) {
    static bytes b;
    ps_footer f;
    file(&b);
    for (size_t cap = 0; cap < 2200; cap += 100)
        CHECK_INT(ps_footer_read(b.at, b.n, cap, &f, &err), PS_LIMIT);
    CHECK_INT(ps_footer_read(b.at, b.n, 1 << 14, &f, NULL), PS_OK);
    CHECK(f.arena.used <= 1 << 14);
    ps_footer_clear(&f);
}

static ps_status schema_only(void (*elements)(bytes *), ps_footer *f) {
    static bytes b;
    b.n = 0;
    integer(&b, 1, PS_T_I32, 2);
    field(&b, 1, PS_T_LIST), elements(&b);
    integer(&b, 1, PS_T_I64, 0);
    field(&b, 1, PS_T_LIST), byte(&b, 0); /* an empty list with element type 0 */
    byte(&b, 0);
    return footer(&b, b.n, f);
}

static void too_few(bytes *b) {
    list(b, 2, PS_T_STRUCT), element(b, "r", -1, 2), element(b, "x", 1, -1);
}
static void too_many(bytes *b) {
    list(b, 3, PS_T_STRUCT), element(b, "r", -1, 1), element(b, "x", 1, -1),
        element(b, "y", 1, -1);
}
static void huge_group(bytes *b) {
    list(b, 1, PS_T_STRUCT), element(b, "r", -1, INT32_MAX);
}
static void no_root(bytes *b) {
    list(b, 0, PS_T_STRUCT);
}
static void root_only(bytes *b) {
    list(b, 1, PS_T_STRUCT), element(b, "r", -1, 0);
}
static void not_structs(bytes *b) {
    list(b, 1, PS_T_I32), zigzag(b, 1);
}
static void nameless(bytes *b) {
    list(b, 1, PS_T_STRUCT), byte(b, 0);
}
static void tower(bytes *b, int depth) {
    list(b, (size_t)depth + 1, PS_T_STRUCT);
    for (int i = 0; i < depth; i++) element(b, "g", -1, 1);
    element(b, "x", 1, -1);
}
static void deepest(bytes *b) {
    tower(b, 128);
}
static void too_deep(bytes *b) {
    tower(b, 129);
}

static void test_schema_must_be_a_tree(void) {
    ps_footer f;
    CHECK_INT(schema_only(too_few, &f), PS_CORRUPT);
    CHECK_INT(schema_only(too_many, &f), PS_CORRUPT);
    CHECK_INT(schema_only(huge_group, &f), PS_CORRUPT);
    CHECK_INT(schema_only(no_root, &f), PS_CORRUPT);
    CHECK_INT(schema_only(not_structs, &f), PS_CORRUPT);
    CHECK(strcmp(err.message, "FileMetaData.schema is of another type") == 0);
    CHECK_INT(schema_only(nameless, &f), PS_CORRUPT);
    CHECK(strcmp(err.message, "SchemaElement.name is missing") == 0);
    CHECK_INT(schema_only(too_deep, &f), PS_LIMIT);
    CHECK_INT(schema_only(deepest, &f), PS_OK);
    ps_footer_clear(&f);
    CHECK_INT(schema_only(root_only, &f), PS_OK);
    CHECK_INT(f.n_leaves, 0);
    ps_footer_clear(&f);
}

static void logical(bytes *b, int member) {
    list(b, 1, PS_T_STRUCT);
    field(b, 4, PS_T_BINARY), string(b, "r");
    field(b, 6, PS_T_STRUCT), long_field(b, member, PS_T_STRUCT);
}
static void timestamp(bytes *b) {
    logical(b, 8);
    field(b, 1, PS_T_TRUE), field(b, 1, PS_T_STRUCT), field(b, 3, PS_T_STRUCT);
    byte(b, 0), byte(b, 0), byte(b, 0), byte(b, 0), byte(b, 0);
}
static void int8(bytes *b) {
    logical(b, 10);
    field(b, 1, PS_T_BYTE), byte(b, 8), field(b, 1, PS_T_FALSE);
    byte(b, 0), byte(b, 0), byte(b, 0);
}
static void unheard_of(bytes *b) {
    logical(b, 77), integer(b, 1, PS_T_I32, 5), byte(b, 0), byte(b, 0), byte(b, 0);
}
static void two_members(bytes *b) {
    logical(b, 16);
    field(b, 1, PS_T_BYTE), byte(b, 1), byte(b, 0);
    field(b, 1, PS_T_STRUCT), byte(b, 0);
    byte(b, 0), byte(b, 0);
}
static void no_scale(bytes *b) {
    logical(b, 5), byte(b, 0), byte(b, 0), byte(b, 0);
}

static void test_logical_types(void) {
    ps_footer f;
    CHECK_INT(schema_only(timestamp, &f), PS_OK);
    CHECK_INT(f.schema[0].logical, 8);
    CHECK_INT(f.schema[0].logical_a, 1);
    CHECK_INT(f.schema[0].logical_b, 3);
    ps_footer_clear(&f);
    CHECK_INT(schema_only(int8, &f), PS_OK);
    CHECK_INT(f.schema[0].logical, 10);
    CHECK_INT(f.schema[0].logical_a, 8);
    CHECK_INT(f.schema[0].logical_b, 0);
    ps_footer_clear(&f);
    CHECK_INT(schema_only(unheard_of, &f), PS_OK);
    CHECK_INT(f.schema[0].logical, 0);
    ps_footer_clear(&f);
    CHECK_INT(schema_only(two_members, &f), PS_OK);
    CHECK_INT(f.schema[0].logical, 0);
    CHECK_INT(f.schema[0].logical_a, PS_ABSENT);
    ps_footer_clear(&f);
    CHECK_INT(schema_only(no_scale, &f), PS_CORRUPT);
    CHECK(strcmp(err.message, "DecimalType.scale is missing") == 0);
}

static void test_row_groups_before_schema_and_wrong_chunk_count(void) {
    static bytes b;
    for (size_t chunks = 0; chunks < 3; chunks++) {
        ps_footer f;
        b.n = 0;
        long_field(&b, 4, PS_T_LIST), row_groups(&b, 3, chunks);
        long_field(&b, 1, PS_T_I32), zigzag(&b, 1);
        field(&b, 1, PS_T_LIST), list(&b, 2, PS_T_STRUCT);
        element(&b, "r", -1, 1), element(&b, "x", 1, -1);
        integer(&b, 1, PS_T_I64, 3000);
        byte(&b, 0);
        CHECK_INT(footer(&b, b.n, &f), chunks == 1 ? PS_OK : PS_CORRUPT);
        if (chunks == 1) {
            CHECK_INT(f.n_row_groups, 3);
            ps_footer_clear(&f);
        }
    }
}

/* Such files exist: a table without columns still has rows. There are no chunk offsets then, and C allows
 * no arithmetic with their NULL, not even to add 0; only clang's sanitizer sees it. */
static void test_row_groups_of_a_schema_without_leaves(void) {
    static bytes b;
    for (size_t chunks = 0; chunks < 2; chunks++) {
        ps_footer f;
        b.n = 0;
        integer(&b, 1, PS_T_I32, 2);
        field(&b, 1, PS_T_LIST), root_only(&b);
        integer(&b, 1, PS_T_I64, 3000);
        field(&b, 1, PS_T_LIST), row_groups(&b, 3, chunks);
        byte(&b, 0);
        CHECK_INT(footer(&b, b.n, &f), chunks == 0 ? PS_OK : PS_CORRUPT);
        if (chunks == 0) {
            CHECK_INT(f.n_leaves, 0);
            CHECK_INT(f.n_row_groups, 3);
            CHECK_INT(f.row_groups[2].num_rows, 1000);
            ps_footer_clear(&f);
        }
    }
}

static void test_known_field_rules(void) {
    static bytes b;
    ps_footer f;
    file(&b);
    b.n--; /* before the last stop */
    size_t n = b.n;
    long_field(&b, 3, PS_T_I64), zigzag(&b, 1), byte(&b, 0);
    CHECK_INT(footer(&b, b.n, &f), PS_CORRUPT);
    CHECK(strcmp(err.message, "FileMetaData.num_rows is there twice") == 0);
    CHECK_INT(err.offset, n);
    b.n = n; /* an optional field of another type is skipped, and so are ids not in the table */
    integer(&b, 1, PS_T_I64, 1), integer(&b, 1, PS_T_I64, 1);
    long_field(&b, -5, PS_T_TRUE), long_field(&b, 0, PS_T_DOUBLE);
    for (int i = 0; i < 8; i++) byte(&b, 0xff);
    byte(&b, 0);
    CHECK_INT(footer(&b, b.n, &f), PS_OK);
    CHECK_INT(f.encryption, PS_ABSENT);
    ps_footer_clear(&f);
    b.n = 0;
    integer(&b, 1, PS_T_I64, 2), byte(&b, 0);
    CHECK_INT(footer(&b, b.n, &f), PS_CORRUPT);
    CHECK(strcmp(err.message, "FileMetaData.version is of another type") == 0);
    b.n = 0;
    integer(&b, 1, PS_T_I32, INT64_C(1) << 40), byte(&b, 0);
    CHECK_INT(footer(&b, b.n, &f), PS_CORRUPT);
    b.n = 0;
    integer(&b, 3, PS_T_I64, -1), byte(&b, 0);
    CHECK_INT(footer(&b, b.n, &f), PS_CORRUPT);
    CHECK(strcmp(err.message, "FileMetaData.num_rows is negative: -1") == 0);
}

/* ---- page index -------------------------------------------------------------------------- */

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

/* ---- page headers ------------------------------------------------------------------------ */

static void data_page(bytes *b, int type, int header, int64_t size, int64_t values) {
    b->n = 0;
    integer(b, 1, PS_T_I32, type), integer(b, 1, PS_T_I32, size), integer(b, 1, PS_T_I32, 90);
    integer(b, 1, PS_T_I32, -7);
    if (header) {
        field(b, header - 4, PS_T_STRUCT);
        integer(b, 1, PS_T_I32, values);
        if (header == 8) integer(b, 1, PS_T_I32, -1), integer(b, 1, PS_T_I32, 3);
        integer(b, 1, PS_T_I32, 8);
        if (header != 7) integer(b, 1, PS_T_I32, 3), integer(b, 1, PS_T_I32, 4);
        if (header == 5) field(b, 1, PS_T_STRUCT), statistics(b);
        byte(b, 0);
    }
    byte(b, 0);
}

static ps_status page_header(const bytes *b, size_t n, ps_page_header *h) {
    copy c = exact(b->at, n);
    ps_status status = ps_page_header_read(c.data, n, h, &err);
    free(c.block);
    return status;
}

static void test_page_header(void) {
    static bytes b;
    ps_page_header h;
    data_page(&b, 0, 5, 100, 50);
    CHECK_INT(page_header(&b, b.n, &h), PS_OK);
    CHECK_INT(h.header_length, b.n);
    CHECK_INT(h.uncompressed_size, 100);
    CHECK_INT(h.compressed_size, 90);
    CHECK_INT(h.crc, -7);
    CHECK_INT(h.num_values, 50);
    CHECK_INT(h.encoding, 8);
    CHECK_INT(h.def_encoding, 3);
    CHECK_INT(h.rep_encoding, 4);
    CHECK_INT(h.num_nulls, PS_ABSENT);
    CHECK_INT(h.statistics.null_count, 7);
    for (size_t n = 0; n < b.n; n++) CHECK_INT(page_header(&b, n, &h), PS_TRUNCATED);
    data_page(&b, 3, 8, 100, 50);
    CHECK_INT(page_header(&b, b.n, &h), PS_OK);
    CHECK_INT(h.num_nulls, PS_ABSENT); /* written as -1 */
    CHECK_INT(h.num_rows, 3);
    CHECK_INT(h.def_length, 3);
    CHECK_INT(h.rep_length, 4);
    CHECK_INT(h.is_compressed, 1);
    CHECK_INT(h.statistics.present, 0);
    data_page(&b, 2, 7, 100, 50);
    CHECK_INT(page_header(&b, b.n, &h), PS_OK);
    CHECK_INT(h.is_sorted, PS_ABSENT);
    data_page(&b, 1, 0, 100, 50); /* an index page, a page of the future */
    CHECK_INT(page_header(&b, b.n, &h), PS_OK);
    data_page(&b, 9, 0, 100, 50);
    CHECK_INT(page_header(&b, b.n, &h), PS_OK);
    CHECK_INT(h.type, 9);
    for (int type = 0; type < 4; type++) {
        if (type == 1) continue;
        data_page(&b, type, 0, 100, 50);
        CHECK_INT(page_header(&b, b.n, &h), PS_CORRUPT);
        data_page(&b, type, type == 2 ? 5 : 7, 100, 50);
        CHECK_INT(page_header(&b, b.n, &h), PS_CORRUPT);
    }
    data_page(&b, 0, 5, -1, 50);
    CHECK_INT(page_header(&b, b.n, &h), PS_CORRUPT);
    data_page(&b, 0, 5, 100, -50);
    CHECK_INT(page_header(&b, b.n, &h), PS_CORRUPT);
    data_page(&b, 0, 5, 100, 50);
    b.n--;
    field(&b, 2, PS_T_STRUCT), integer(&b, 1, PS_T_I32, 1), integer(&b, 1, PS_T_I32, 1),
        byte(&b, 0), byte(&b, 0);
    CHECK_INT(page_header(&b, b.n, &h), PS_CORRUPT); /* headers of two types */
}

/* ---- base -------------------------------------------------------------------------------- */

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

static void test_buffers(void) {
    for (size_t size = 0; size < (size_t)5 << 20; size = size * 3 + 1) {
        uint8_t *p = ps_buffer_new(size);
        CHECK(p != NULL && (uintptr_t)p % 64 == 0);
        memset(p, 0x5a, size);
        p = ps_buffer_grow(p, size, 2 * size + 100);
        CHECK(p != NULL && (size == 0 || (p[0] == 0x5a && p[size - 1] == 0x5a)));
        memset(p, 0, (2 * size + 100 + 63) / 64 * 64); /* rounded up: all of it is ours */
        ps_buffer_free(p, 2 * size + 100);
    }
    CHECK(ps_buffer_new(SIZE_MAX) == NULL);
    ps_buffer_free(NULL, 0);
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
    test_footer_fields();
    test_footer_truncated_at_every_byte();
    test_footer_limits_memory();
    test_schema_must_be_a_tree();
    test_logical_types();
    test_row_groups_before_schema_and_wrong_chunk_count();
    test_row_groups_of_a_schema_without_leaves();
    test_known_field_rules();
    test_column_index();
    test_column_index_against_pages();
    test_bounds_of_chunks();
    test_offset_index_check();
    test_page_header();
    test_arena();
    test_buffers();
    test_errors_and_bits();
    return check_report();
}
