/* page_index.c - ColumnIndex and OffsetIndex (PageIndex.md, parquet.thrift). */
#include "metadata.h"

/* ---- ColumnIndex ------------------------------------------------------------------------- */

/* Lists come one after another, each with its own length: they are compared at the end. */
typedef struct column_index_reader {
    ps_column_index *out;
    size_t n_null_pages, n_min, n_max, n_null_counts, n_nan_counts;
} column_index_reader;

/* A list<i64> of counts, one per page. */
static ps_status read_counts(ps_thrift *t, ps_arena *arena, size_t count, const char *name,
                             int64_t **out) {
    void *values;
    PS_TRY(ps_arena_take(arena, count, sizeof **out, &values, t->err));
    *out = values;
    for (size_t i = 0; i < count; i++) {
        uint64_t at = ps_thrift_at(t);
        PS_TRY(ps_thrift_i64(t, &(*out)[i]));
        if ((*out)[i] < 0)
            return ps_fail(t->err, PS_CORRUPT, at, "%s is negative for page %zu: %lld", name, i,
                           (long long)(*out)[i]);
    }
    return PS_OK;
}

static ps_status read_bounds(ps_thrift *t, ps_arena *arena, size_t count, int64_t **offsets,
                             int64_t **lengths) {
    void *values;
    PS_TRY(ps_arena_take(arena, count, 2 * sizeof **offsets, &values, t->err));
    *offsets = values;
    *lengths = count ? *offsets + count : NULL;
    for (size_t i = 0; i < count; i++)
        PS_TRY(ps_thrift_binary(t, &(*offsets)[i], &(*lengths)[i]));
    return PS_OK;
}

static ps_status read_null_pages(ps_thrift *t, size_t count, int64_t *record) {
    column_index_reader *r = t->context;
    void *values;
    (void)record;
    PS_TRY(ps_arena_take(&r->out->arena, count, 1, &values, t->err));
    r->out->null_pages = values;
    r->n_null_pages = count;
    for (size_t i = 0; i < count; i++) PS_TRY(ps_thrift_bool(t, &r->out->null_pages[i]));
    return PS_OK;
}

static ps_status read_min_values(ps_thrift *t, size_t count, int64_t *record) {
    column_index_reader *r = t->context;
    (void)record;
    r->n_min = count;
    return read_bounds(t, &r->out->arena, count, &r->out->min_offset, &r->out->min_length);
}

static ps_status read_max_values(ps_thrift *t, size_t count, int64_t *record) {
    column_index_reader *r = t->context;
    (void)record;
    r->n_max = count;
    return read_bounds(t, &r->out->arena, count, &r->out->max_offset, &r->out->max_length);
}

static ps_status read_null_counts(ps_thrift *t, size_t count, int64_t *record) {
    column_index_reader *r = t->context;
    (void)record;
    r->n_null_counts = count;
    return read_counts(t, &r->out->arena, count, "null_counts", &r->out->null_counts);
}

static ps_status read_nan_counts(ps_thrift *t, size_t count, int64_t *record) {
    column_index_reader *r = t->context;
    (void)record;
    r->n_nan_counts = count;
    return read_counts(t, &r->out->arena, count, "nan_counts", &r->out->nan_counts);
}

static const ps_field_spec column_index_fields[] = {
    [1] = {"null_pages", PS_FIELD_LIST, .element = PS_T_TRUE, .read = read_null_pages},
    [2] = {"min_values", PS_FIELD_LIST, .element = PS_T_BINARY, .read = read_min_values},
    [3] = {"max_values", PS_FIELD_LIST, .element = PS_T_BINARY, .read = read_max_values},
    [4] = {"boundary_order", PS_FIELD_I32, .slot = 0},
    [5] = {"null_counts", PS_FIELD_LIST, .element = PS_T_I64, .read = read_null_counts},
    [8] = {"nan_counts", PS_FIELD_LIST, .element = PS_T_I64, .read = read_nan_counts},
};
static const ps_struct_spec column_index_spec = PS_STRUCT(
    "ColumnIndex", column_index_fields, PS_FIELD(1) | PS_FIELD(2) | PS_FIELD(3) | PS_FIELD(4));

static ps_status column_index_lists(const column_index_reader *r, ps_error *err) {
    size_t n = r->n_null_pages;
    const struct {
        const char *name;
        bool there;
        size_t n;
    } lists[] = {
        {"min_values", true, r->n_min},
        {"max_values", true, r->n_max},
        {"null_counts", r->n_null_counts != SIZE_MAX, r->n_null_counts},
        {"nan_counts", r->n_nan_counts != SIZE_MAX, r->n_nan_counts},
    };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        if (lists[i].there && lists[i].n != n)
            return ps_fail(err, PS_CORRUPT, 0,
                           "ColumnIndex.%s has %zu pages, null_pages has %zu", lists[i].name,
                           lists[i].n, n);
    return PS_OK;
}

ps_status ps_column_index_read(const uint8_t *data, size_t length, size_t max_arena,
                               ps_column_index *out, ps_error *err) {
    memset(out, 0, sizeof *out);
    out->arena.cap = max_arena;
    column_index_reader r = {.out = out, .n_null_counts = SIZE_MAX, .n_nan_counts = SIZE_MAX};
    ps_thrift t = ps_thrift_open(data, length, &r, err);
    ps_status status = ps_thrift_struct(&t, &column_index_spec, &out->boundary_order);
    if (status == PS_OK) status = column_index_lists(&r, err);
    if (status == PS_OK && (out->boundary_order < 0 || out->boundary_order > 2))
        status = ps_fail(err, PS_CORRUPT, 0, "ColumnIndex.boundary_order is %lld",
                         (long long)out->boundary_order);
    out->n_pages = r.n_null_pages;
    if (status != PS_OK) ps_column_index_clear(out);
    return status;
}

ps_status ps_column_index_check(const ps_column_index *index, const int64_t *first_row,
                                size_t n_pages, bool required, bool trusted, int64_t *places,
                                int64_t *counts, ps_error *err) {
    size_t n = index->n_pages;
    bool null_pages = false;
    if (n != n_pages)
        return ps_fail(err, PS_CORRUPT, PS_NOWHERE, "%zu pages, the offset index has %zu", n,
                       n_pages);
    for (size_t i = 0; i < n; i++) {
        bool null = index->null_pages[i] != 0, known = trusted && !null;
        counts[i] = (int64_t)((uint64_t)first_row[i + 1] - (uint64_t)first_row[i]);
        if (index->null_counts != NULL &&
            (index->null_counts[i] > counts[i] || (null && index->null_counts[i] != counts[i])))
            return ps_fail(err, PS_CORRUPT, PS_NOWHERE,
                           "its null counts do not fit its null pages");
        null_pages |= null && counts[i] > 0;
        places[i] = known ? index->min_offset[i] : PS_ABSENT;
        places[n + i] = known ? index->min_length[i] : PS_ABSENT;
        places[2 * n + i] = known ? index->max_offset[i] : PS_ABSENT;
        places[3 * n + i] = known ? index->max_length[i] : PS_ABSENT;
    }
    if (required && null_pages)
        return ps_fail(err, PS_CORRUPT, PS_NOWHERE,
                       "it has null pages, the column has no nulls");
    return PS_OK;
}

void ps_column_index_clear(ps_column_index *index) {
    ps_arena_clear(&index->arena);
    memset(index, 0, sizeof *index);
}

/* ---- OffsetIndex ------------------------------------------------------------------------- */

typedef struct offset_index_reader {
    ps_offset_index *out;
    size_t n_unencoded;
} offset_index_reader;

typedef struct page_location {
    int64_t offset, compressed_size, first_row;
} page_location;

static const ps_field_spec page_location_fields[] = {
    [1] = {"offset", PS_FIELD_I64, .slot = PS_SLOT(page_location, offset)},
    [2] = {"compressed_page_size", PS_FIELD_I32,
           .slot = PS_SLOT(page_location, compressed_size)},
    [3] = {"first_row_index", PS_FIELD_I64, .slot = PS_SLOT(page_location, first_row)},
};
static const ps_struct_spec page_location_spec = PS_STRUCT(
    "PageLocation", page_location_fields, PS_FIELD(1) | PS_FIELD(2) | PS_FIELD(3));

/* Reads a page as all writers write it: the three fields in their order and nothing else. Anything else, and what is
 * wrong, is for ps_thrift_struct: the result is false, and nothing was read. */
static bool read_plain_location(ps_thrift *t, page_location *page) {
    static const uint8_t header[] = {1 << 4 | PS_T_I64, 1 << 4 | PS_T_I32, 1 << 4 | PS_T_I64};
    int64_t *const field[] = {&page->offset, &page->compressed_size, &page->first_row};
    const uint8_t *p = t->p;
    if (ps_thrift_left(t) < 3 * (1 + 9) + 1) return false; /* so that bytes need no count */
    for (size_t i = 0; i < 3; i++) {
        if (*p++ != header[i]) return false;
        uint64_t v = 0;
        unsigned shift = 0;
        while (*p >= 0x80 && shift < 56) v |= (uint64_t)(*p++ & 0x7f) << shift, shift += 7;
        if (*p >= 0x80) return false;
        v |= (uint64_t)*p++ << shift;
        *field[i] = (int64_t)((v >> 1) ^ (0 - (v & 1)));
    }
    if (*p++ != PS_T_STOP || page->compressed_size < INT32_MIN ||
        page->compressed_size > INT32_MAX)
        return false;
    t->p = p;
    return true;
}

static ps_status read_page_locations(ps_thrift *t, size_t count, int64_t *record) {
    ps_offset_index *out = ((offset_index_reader *)t->context)->out;
    void *values;
    (void)record;
    PS_TRY(ps_arena_take(&out->arena, count, 3 * sizeof(int64_t), &values, t->err));
    out->n_pages = count;
    if (count == 0) return PS_OK;
    out->offset = values;
    out->compressed_size = out->offset + count;
    out->first_row = out->compressed_size + count;
    for (size_t i = 0; i < count; i++) {
        page_location page;
        if (!read_plain_location(t, &page))
            PS_TRY(ps_thrift_struct(t, &page_location_spec, (int64_t *)&page));
        out->offset[i] = page.offset;
        out->compressed_size[i] = page.compressed_size;
        out->first_row[i] = page.first_row;
    }
    return PS_OK;
}

static ps_status read_unencoded(ps_thrift *t, size_t count, int64_t *record) {
    offset_index_reader *r = t->context;
    (void)record;
    r->n_unencoded = count;
    return read_counts(t, &r->out->arena, count, "unencoded_byte_array_data_bytes",
                       &r->out->unencoded_bytes);
}

static const ps_field_spec offset_index_fields[] = {
    [1] = {"page_locations", PS_FIELD_LIST, .element = PS_T_STRUCT,
           .read = read_page_locations},
    [2] = {"unencoded_byte_array_data_bytes", PS_FIELD_LIST, .element = PS_T_I64,
           .read = read_unencoded},
};
static const ps_struct_spec offset_index_spec = PS_STRUCT("OffsetIndex", offset_index_fields,
                                                          PS_FIELD(1));

ps_status ps_offset_index_read(const uint8_t *data, size_t length, size_t max_arena,
                               ps_offset_index *out, ps_error *err) {
    memset(out, 0, sizeof *out);
    out->arena.cap = max_arena;
    offset_index_reader r = {.out = out, .n_unencoded = SIZE_MAX};
    ps_thrift t = ps_thrift_open(data, length, &r, err);
    ps_status status = ps_thrift_struct(&t, &offset_index_spec, NULL);
    if (status == PS_OK && r.n_unencoded != SIZE_MAX && r.n_unencoded != out->n_pages)
        status = ps_fail(
            err, PS_CORRUPT, 0,
            "OffsetIndex.unencoded_byte_array_data_bytes has %zu pages, page_locations has %zu",
            r.n_unencoded, out->n_pages);
    if (status != PS_OK) ps_offset_index_clear(out);
    return status;
}

ps_status ps_offset_index_check(const ps_offset_index *index, int64_t num_rows,
                                int64_t chunk_start, int64_t chunk_end, ps_error *err) {
    int64_t end = chunk_start, row = 0;
    if (num_rows < 0 || chunk_start < 0 || chunk_end < chunk_start)
        return ps_fail(err, PS_INVALID, PS_NOWHERE, "%lld rows in bytes %lld to %lld",
                       (long long)num_rows, (long long)chunk_start, (long long)chunk_end);
    if (index->n_pages == 0 && num_rows > 0)
        return ps_fail(err, PS_CORRUPT, PS_NOWHERE, "no pages for %lld rows",
                       (long long)num_rows);
    for (size_t i = 0; i < index->n_pages; i++) {
        int64_t first = index->first_row[i], at = index->offset[i],
                size = index->compressed_size[i];
        if (i == 0 && first != 0)
            return ps_fail(err, PS_CORRUPT, PS_NOWHERE, "page 0 begins at row %lld",
                           (long long)first);
        if (first < row) /* equal: the page before has no rows */
            return ps_fail(err, PS_CORRUPT, PS_NOWHERE,
                           "page %zu begins at row %lld, page %zu at %lld", i, (long long)first,
                           i - 1, (long long)row);
        if (first >= num_rows && first > 0)
            return ps_fail(err, PS_CORRUPT, PS_NOWHERE, "page %zu begins at row %lld of %lld",
                           i, (long long)first, (long long)num_rows);
        /* the size counts the page header, so no page is empty */
        if (size <= 0 || at < end || at > chunk_end || size > chunk_end - at)
            return ps_fail(
                err, PS_CORRUPT, PS_NOWHERE,
                "page %zu of %lld bytes at byte %lld does not lie between %lld and %lld", i,
                (long long)size, (long long)at, (long long)end, (long long)chunk_end);
        end = at + size;
        row = first;
    }
    return PS_OK;
}

void ps_offset_index_clear(ps_offset_index *index) {
    ps_arena_clear(&index->arena);
    memset(index, 0, sizeof *index);
}
