/* Tests of footers and column chunks, one and many. */
#include "check.h"
#include "similar_footers.h"
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

enum { FOOTERS = 3, SPACE = 20 * FOOTERS };
static uint64_t second[] = {1};
static int64_t groups[FOOTERS], stored[2 * KEYS * FOOTERS], rows[SPACE];
static ps_chunk chunks[SPACE];

/* The same footer three times, in a block of its own; the status of the middle one, cut to n bytes. */
static int64_t read_thrice(const bytes *b, size_t n, const ps_similar_footer *like, size_t most,
                           size_t *done) {
    static uint8_t three[FOOTERS << 16];
    uint64_t at[2 * FOOTERS] = {0, b->n, b->n, n, b->n + n, b->n};
    memcpy(three, b->at, b->n);
    memcpy(three + b->n, b->at, n);
    memcpy(three + b->n + n, b->at, b->n);
    copy c = exact(three, 2 * b->n + n);
    CHECK_INT(ps_footers_read(c.data, 2 * b->n + n, at, FOOTERS, like, second, 1, 1 << 20, most,
                              done, groups, stored, rows, chunks, &err),
              PS_OK);
    free(c.block);
    return groups[1];
}

static void test_similar_footers(void) {
    static bytes b, other;
    ps_footer f;
    ps_chunk one;
    size_t done, failed;
    file(&b);
    CHECK_INT(footer(&b, b.n, &f), PS_OK);
    ps_similar_footer like = similar(b.at, &f);
    CHECK_INT(read_thrice(&b, b.n, &like, SPACE, &done), 20);
    CHECK_INT(done, FOOTERS);
    CHECK_INT(groups[0] + groups[2], 40);
    CHECK_INT(rows[59], 1000);
    CHECK_INT(ps_chunks_read(b.at, b.n, &f.chunk_offsets[39], 1, &one, &failed, &err), PS_OK);
    CHECK_INT(chunks[19].end, one.end);
    CHECK_INT(chunks[59].end, one.end + 2 * (int64_t)b.n);
    CHECK_INT(chunks[59].statistics.max_value_offset,
              one.statistics.max_value_offset + 2 * (int64_t)b.n);
    CHECK_INT(chunks[59].statistics.max_value_length, one.statistics.max_value_length);
    CHECK_INT(chunks[59].statistics.min_offset,
              one.statistics.min_offset == PS_ABSENT
                  ? PS_ABSENT
                  : one.statistics.min_offset + 2 * (int64_t)b.n);

    /* space for two of them, and for less than one */
    CHECK_INT(read_thrice(&b, b.n, &like, SPACE - 1, &done), 20);
    CHECK_INT(done, 2);
    CHECK_INT(read_thrice(&b, b.n, &like, 19, &done), -1);
    CHECK_INT(done, FOOTERS);

    /* what is cut short is left out, and nothing behind it shifts */
    for (size_t n = 0; n < b.n; n++) {
        CHECK_INT(read_thrice(&b, n, &like, SPACE, &done), -1);
        CHECK_INT(groups[0] + groups[2], 40);
        CHECK_INT(chunks[39].end, one.end + (int64_t)(b.n + n));
    }

    /* what differs in anything that counts */
    ps_similar_footer unlike = like;
    unlike.created_by_length--;
    CHECK_INT(read_thrice(&b, b.n, &unlike, SPACE, &done), -1);
    unlike.created_by = NULL;
    CHECK_INT(read_thrice(&b, b.n, &unlike, SPACE, &done), -1);
    unlike = like, unlike.orders_size -= sizeof(int64_t);
    CHECK_INT(read_thrice(&b, b.n, &unlike, SPACE, &done), -1);
    unlike = like, unlike.schema_size -= sizeof(ps_schema_element);
    CHECK_INT(read_thrice(&b, b.n, &unlike, SPACE, &done), -1);
    other = b;
    other.at[like.names_length - 1] ^= 1; /* a name */
    CHECK_INT(read_thrice(&other, b.n, &like, SPACE, &done), -1);

    /* an offset that leads nowhere, and a leaf that is none */
    uint64_t at[] = {0, b.n + 1}, third[] = {2};
    CHECK_INT(ps_footers_read(b.at, b.n, at, 1, &like, second, 1, 1 << 20, SPACE, &done, groups,
                              stored, rows, chunks, &err),
              PS_INVALID);
    at[1]--;
    CHECK_INT(ps_footers_read(b.at, b.n, at, 1, &like, third, 1, 1 << 20, SPACE, &done, groups,
                              stored, rows, chunks, NULL),
              PS_OK);
    CHECK_INT(groups[0], -1);
    ps_footer_clear(&f);
}

static void stored_schema(bytes *b, const char *value, int64_t num_rows) {
    b->n = 0;
    integer(b, 1, PS_T_I32, 2);
    field(b, 1, PS_T_LIST), list(b, 2, PS_T_STRUCT);
    element(b, "r", -1, 1), element(b, "x", 1, -1);
    integer(b, 1, PS_T_I64, num_rows);
    field(b, 1, PS_T_LIST), row_groups(b, 3, 1);
    field(b, 1, PS_T_LIST), list(b, 1, PS_T_STRUCT);
    field(b, 1, PS_T_BINARY), string(b, "ARROW:schema");
    if (value) field(b, 1, PS_T_BINARY), string(b, value);
    byte(b, 0), byte(b, 0);
}

static void test_footers_with_a_stored_schema(void) {
    static bytes b;
    ps_footer f;
    size_t done;
    uint64_t none[] = {0};
    stored_schema(&b, "abc", 3000);
    CHECK_INT(footer(&b, b.n, &f), PS_OK);
    ps_similar_footer like = similar(b.at, &f);
    const char *values[] = {"abc", "", NULL};
    for (size_t i = 0; i < 3; i++) {
        static bytes two;
        stored_schema(&b, values[i], 3000);
        memcpy(two.at, b.at, b.n), memcpy(two.at + b.n, b.at, b.n);
        uint64_t at[] = {0, b.n, b.n, b.n};
        CHECK_INT(ps_footers_read(two.at, 2 * b.n, at, 2, &like, none, 1, 1 << 20, SPACE, &done,
                                  groups, stored, rows, chunks, &err),
                  PS_OK);
        CHECK_INT(groups[0] + groups[1], 6);
        const int64_t *first = stored, *second_one = stored + 2 * KEYS;
        if (values[i]) {
            CHECK_INT(second_one[1], strlen(values[i]));
            CHECK_INT(second_one[0] - first[0], b.n);
            CHECK(memcmp(two.at + second_one[0], values[i], strlen(values[i])) == 0);
        } else {
            CHECK(second_one[0] == PS_ABSENT && second_one[1] == PS_ABSENT);
        }
        CHECK(second_one[2] == PS_ABSENT && second_one[3] == PS_ABSENT);
    }
    /* other rows than the row groups have */
    stored_schema(&b, "abc", 2999);
    uint64_t at[] = {0, b.n};
    CHECK_INT(ps_footers_read(b.at, b.n, at, 1, &like, none, 1, 1 << 20, SPACE, &done, groups,
                              stored, rows, chunks, &err),
              PS_OK);
    CHECK_INT(groups[0], -1);
    ps_footer_clear(&f);
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
    test_similar_footers();
    test_footers_with_a_stored_schema();
    return check_report();
}
