/* Footers written again, indexes written, extremes and Bloom filters built. */
#include <math.h>

#include "check.h"
#include "thrift_writer.h"

static ps_error err;

static void element(bytes *b, const char *name, int type, int children) {
    if (type >= 0) integer(b, 1, PS_T_I32, type);
    field(b, type >= 0 ? 3 : 4, PS_T_BINARY);
    string(b, name);
    if (children >= 0) integer(b, 1, PS_T_I32, children);
    byte(b, 0);
}

/* root and x, one row group of one chunk, a key, a field that nobody knows; in order, or the other way round. */
static void file(bytes *b, bool keys) {
    b->n = 0;
    integer(b, 1, PS_T_I32, 2);
    field(b, 1, PS_T_LIST), list(b, 2, PS_T_STRUCT);
    element(b, "root", -1, 1), element(b, "x", 1, -1);
    integer(b, 1, PS_T_I64, 1000);
    field(b, 1, PS_T_LIST), list(b, 1, PS_T_STRUCT);
    field(b, 1, PS_T_LIST), list(b, 1, PS_T_STRUCT), chunk(b);
    integer(b, 1, PS_T_I64, 3000);
    integer(b, 1, PS_T_I64, 1000);
    byte(b, 0);
    if (keys) {
        field(b, 1, PS_T_LIST), list(b, 2, PS_T_STRUCT);
        field(b, 1, PS_T_BINARY), string(b, "key"), field(b, 1, PS_T_BINARY),
            string(b, "value"), byte(b, 0);
        field(b, 1, PS_T_BINARY), string(b, "alone"), byte(b, 0);
    }
    field(b, keys ? 1 : 2, PS_T_BINARY), string(b, "writer");
    long_field(b, 900, PS_T_TRUE);
    byte(b, 0);
}

static ps_status edited(const bytes *b, const ps_footer_edit *edit, ps_writer *w) {
    copy c = exact(b->at, b->n);
    memset(w, 0, sizeof *w);
    w->cap = 1 << 20;
    ps_status status = ps_footer_edited(c.data, b->n, edit, w, &err);
    free(c.block);
    return status;
}

static void test_nothing_to_edit(void) {
    static bytes b;
    int64_t places[PS_CHUNK_PLACES];
    ps_footer_edit edit = {.places = places, .n_chunks = 1};
    ps_writer w;
    for (int i = 0; i < PS_CHUNK_PLACES; i++) places[i] = PS_ABSENT;
    for (int keys = 0; keys < 2; keys++) {
        file(&b, keys);
        CHECK_INT(edited(&b, &edit, &w), PS_OK);
        CHECK_INT(w.size, b.n);
        CHECK(w.size == b.n && memcmp(w.data, b.at, b.n) == 0);
        ps_writer_clear(&w);
    }
}

/* Writers name any type, or none, as that of the elements of an empty list. */
static void test_no_row_groups(void) {
    static bytes b;
    ps_footer_edit edit = {.n_chunks = 0};
    ps_writer w;
    for (int type = 0; type < 16; type++) {
        b.n = 0;
        integer(&b, 1, PS_T_I32, 2);
        field(&b, 1, PS_T_LIST), list(&b, 1, PS_T_STRUCT), element(&b, "root", -1, 0);
        integer(&b, 1, PS_T_I64, 0);
        field(&b, 1, PS_T_LIST), list(&b, 0, type);
        byte(&b, 0);
        CHECK_INT(edited(&b, &edit, &w), PS_OK);
        CHECK(w.size == b.n && memcmp(w.data, b.at, b.n) == 0);
        ps_writer_clear(&w);
    }
}

static void test_edit(void) {
    static bytes b;
    static const char text[] = "keynewvalue";
    const int64_t places[PS_CHUNK_PLACES] = {70, 71, -1, -1, 90, 91};
    const int64_t dropped[] = {0, 3}, added[] = {3, 3, 6, 5};
    ps_footer_edit edit = {.places = places,
                           .n_chunks = 1,
                           .text = (const uint8_t *)text,
                           .text_length = 11,
                           .dropped = dropped,
                           .n_dropped = 1,
                           .added = added,
                           .n_added = 1,
                           .n_orders = 1};
    ps_writer w;
    ps_footer f;
    ps_chunk c;
    size_t failed;
    for (int keys = 0; keys < 2; keys++) {
        file(&b, keys);
        CHECK_INT(edited(&b, &edit, &w), PS_OK);
        CHECK_INT(ps_footer_read(w.data, w.size, 1 << 20, &f, &err), PS_OK);
        CHECK_INT(f.n_key_values, keys ? 2 : 1);
        const int64_t *last = f.key_values + 4 * (f.n_key_values - 1);
        CHECK(!memcmp(w.data + last[0], "new", 3) && !memcmp(w.data + last[2], "value", 5));
        CHECK_INT(f.n_column_orders, 1);
        CHECK_INT(f.column_orders[0], 1);
        CHECK_INT(ps_chunks_read(w.data, w.size, f.chunk_offsets, 1, &c, &failed, &err), PS_OK);
        CHECK_INT(c.offset_index_offset, 70);
        CHECK_INT(c.offset_index_length, 71);
        CHECK_INT(c.column_index_offset, PS_ABSENT);
        CHECK_INT(c.bloom_filter_offset, 90);
        CHECK_INT(c.bloom_filter_length, 91);
        CHECK_INT(c.statistics.nan_count, 2);
        ps_footer_clear(&f);
        ps_writer_clear(&w);
    }
}

static void test_refused(void) {
    static bytes b;
    int64_t places[2 * PS_CHUNK_PLACES] = {0};
    ps_footer_edit edit = {.places = places, .n_chunks = 2};
    ps_writer w;
    file(&b, true);
    CHECK_INT(edited(&b, &edit, &w), PS_INVALID); /* there is one chunk */
    ps_writer_clear(&w);
    edit.n_chunks = 0;
    CHECK_INT(edited(&b, &edit, &w), PS_INVALID);
    ps_writer_clear(&w);
    edit.n_chunks = 1;
    places[1] = (int64_t)INT32_MAX + 1;
    CHECK_INT(edited(&b, &edit, &w), PS_INVALID);
    ps_writer_clear(&w);
    places[1] = 0;
    for (size_t n = 0; n < b.n;
         n++) { /* every prefix ends in an error, and reads nothing behind it */
        bytes *part = &b;
        size_t whole = part->n;
        part->n = n;
        CHECK(edited(part, &edit, &w) != PS_OK);
        part->n = whole;
        ps_writer_clear(&w);
    }
    w = (ps_writer){.cap = 100};
    CHECK_INT(ps_footer_edited(b.at, b.n, &edit, &w, &err), PS_LIMIT);
    ps_writer_clear(&w);
}

static void test_page_index(void) {
    const int64_t offset[] = {4, 1000, INT64_C(1) << 40}, size[] = {996, 20, INT32_MAX},
                  first[] = {0, 10, 5000}, nulls[] = {0, 7, 1}, nans[] = {1, 0, 0};
    const int64_t least[] = {0, 1, 1, 3}, most[] = {0, 2, 2, 5};
    const uint8_t empty[] = {0, 1, 0};
    ps_writer w = {.cap = 1 << 20};
    ps_offset_index o;
    ps_column_index c;
    CHECK_INT(ps_offset_index_write(3, offset, size, first, &w, &err), PS_OK);
    CHECK_INT(ps_offset_index_read(w.data, w.size, 1 << 20, &o, &err), PS_OK);
    CHECK_INT(o.n_pages, 3);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(o.offset[i], offset[i]);
        CHECK_INT(o.compressed_size[i], size[i]);
        CHECK_INT(o.first_row[i], first[i]);
    }
    ps_offset_index_clear(&o);
    ps_writer_clear(&w);
    ps_page_bounds bounds = {3,     empty, (const uint8_t *)"abcdefgh", 8, least, most, 1,
                             nulls, nans};
    CHECK_INT(ps_column_index_write(&bounds, &w, &err), PS_OK);
    CHECK_INT(ps_column_index_read(w.data, w.size, 1 << 20, &c, &err), PS_OK);
    CHECK_INT(c.n_pages, 3);
    CHECK_INT(c.boundary_order, 1);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(c.null_pages[i], empty[i]);
        CHECK_INT(c.null_counts[i], nulls[i]);
        CHECK_INT(c.nan_counts[i], nans[i]);
        CHECK_INT(c.min_length[i], least[i + 1] - least[i]);
        CHECK_INT(c.max_length[i], most[i + 1] - most[i]);
    }
    CHECK(!memcmp(w.data + c.max_offset[2], "cde", 3));
    ps_column_index_clear(&c);
    ps_writer_clear(&w);
    bounds.text_length = 2;
    CHECK_INT(ps_column_index_write(&bounds, &w, &err), PS_INVALID);
    ps_writer_clear(&w);
}

static void test_extremes(void) {
    ps_extremes e;
    const double floats[] = {NAN, -0.0, 3, NAN, -7, 3};
    ps_values v = {
        .kind = PS_F64, .n = 6, .values = (const uint8_t *)floats, .values_size = 48};
    CHECK_INT(ps_extremes_of(&v, false, &e, &err), PS_OK);
    CHECK_INT(e.nans, 2);
    CHECK_INT(e.least, 4);
    CHECK_INT(e.most, 2);
    const uint8_t valid[] = {0x2d}; /* all but -0.0 and -7 */
    v.validity = valid;
    CHECK_INT(ps_extremes_of(&v, false, &e, &err), PS_OK);
    CHECK_INT(e.nulls, 2);
    CHECK_INT(e.nans, 2);
    CHECK_INT(e.least, 2);
    v.n = 1, v.validity = NULL;
    CHECK_INT(ps_extremes_of(&v, false, &e, &err), PS_OK);
    CHECK_INT(e.least, -1);
    v.n = 0;
    CHECK_INT(ps_extremes_of(&v, false, &e, &err), PS_OK);
    CHECK_INT(e.most, -1);
    const uint32_t numbers[] = {5, 4000000000u, 0, 7};
    v = (ps_values){
        .kind = PS_U32, .n = 4, .values = (const uint8_t *)numbers, .values_size = 16};
    CHECK_INT(ps_extremes_of(&v, false, &e, &err), PS_OK);
    CHECK_INT(e.most, 1);
    v.kind = PS_I32;
    CHECK_INT(ps_extremes_of(&v, false, &e, &err), PS_OK);
    CHECK_INT(e.least, 1);
    /* -1, 255, -256, 0, 1 in as few bytes as each takes, and 1 in more */
    static const uint8_t digits[] = {0xff, 0, 0xff, 0xff, 0, 0, 1, 0, 0, 0, 1};
    const int32_t ends[] = {0, 1, 3, 5, 6, 7, 11};
    v = (ps_values){
        .kind = PS_BYTES, .n = 6, .values = digits, .values_size = 11, .offsets = ends};
    CHECK_INT(ps_extremes_of(&v, true, &e, &err), PS_OK);
    CHECK_INT(e.least, 2);
    CHECK_INT(e.most, 1);
    CHECK_INT(ps_extremes_of(&v, false, &e, &err), PS_OK);
    CHECK_INT(e.least, 3); /* as bytes, the single zero comes first */
    CHECK_INT(e.most, 2);
    v.values_size = 10;
    CHECK_INT(ps_extremes_of(&v, false, &e, &err), PS_INVALID);
}

static void test_bloom(void) {
    static uint8_t large[64 * PS_BLOOM_BLOCK], small[16 * PS_BLOOM_BLOCK];
    static int64_t numbers[200];
    ps_writer w = {.cap = 100};
    size_t head, size;
    for (int i = 0; i < 200; i++) numbers[i] = i * INT64_C(7919);
    ps_values v = {.kind = PS_I64,
                   .n = 200,
                   .values = (const uint8_t *)numbers,
                   .values_size = sizeof numbers};
    CHECK(ps_bloom_rate(large, 64) == 0);
    CHECK_INT(ps_bloom_insert(&v, large, 64, &err), PS_OK);
    CHECK_INT(ps_bloom_insert(&v, small, 16, &err), PS_OK);
    for (int i = 0; i < 200; i++) {
        uint64_t hash = ps_xxh64((const uint8_t *)&numbers[i], 8), at;
        size_t found;
        ps_bloom_places(&hash, 1, 64, &at);
        CHECK_INT(ps_bloom_check(large, sizeof large, &at, &hash, 1, &found, &err), PS_OK);
        CHECK_INT(found, 1);
    }
    double rate = ps_bloom_rate(large, 64);
    CHECK(rate > 0 && rate < 0.01);
    ps_bloom_fold(large, 64);
    ps_bloom_fold(large, 32);
    CHECK(memcmp(large, small, sizeof small) == 0);
    CHECK(ps_bloom_rate(small, 16) > rate);
    CHECK_INT(ps_bloom_insert(&v, large, 0, &err), PS_INVALID);
    v.kind = PS_BOOL;
    CHECK_INT(ps_bloom_insert(&v, large, 16, &err), PS_UNSUPPORTED);
    CHECK_INT(ps_bloom_header_write(512, &w, &err), PS_OK);
    CHECK_INT(ps_bloom_header_read(w.data, w.size, &head, &size, &err), PS_OK);
    CHECK_INT(size, 512);
    CHECK_INT(head, w.size);
    ps_writer_clear(&w);
    CHECK_INT(ps_bloom_header_write(33, &w, &err), PS_INVALID);
    ps_writer_clear(&w);
}

int main(void) {
    test_nothing_to_edit();
    test_no_row_groups();
    test_edit();
    test_refused();
    test_page_index();
    test_extremes();
    test_bloom();
    return check_report();
}
