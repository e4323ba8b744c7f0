/* index_write.c - ColumnIndex, OffsetIndex (PageIndex.md) and the header of a Bloom filter (BloomFilter.md). */
#include "thrift_write.h"

static ps_status write_counts(ps_writer *w, int32_t *last, int32_t id, const int64_t *counts,
                              size_t n) {
    if (!counts) return PS_OK;
    PS_TRY(ps_write_field(w, last, id, PS_T_LIST));
    PS_TRY(ps_write_list(w, PS_T_I64, n));
    for (size_t i = 0; i < n; i++) PS_TRY(ps_write_i64(w, counts[i]));
    return PS_OK;
}

ps_status ps_offset_index_write(size_t n, const int64_t *offset, const int64_t *size,
                                const int64_t *first_row, ps_writer *out, ps_error *err) {
    int32_t last = 0;
    out->err = err;
    PS_TRY(ps_write_field(out, &last, 1, PS_T_LIST));
    PS_TRY(ps_write_list(out, PS_T_STRUCT, n));
    for (size_t i = 0; i < n; i++) {
        int32_t id = 0;
        if (offset[i] < 0 || size[i] < 0 || size[i] > INT32_MAX || first_row[i] < 0)
            return ps_fail(err, PS_INVALID, PS_NOWHERE, "page %zu has no such place", i);
        PS_TRY(ps_write_field(out, &id, 1, PS_T_I64));
        PS_TRY(ps_write_i64(out, offset[i]));
        PS_TRY(ps_write_field(out, &id, 2, PS_T_I32));
        PS_TRY(ps_write_i64(out, size[i]));
        PS_TRY(ps_write_field(out, &id, 3, PS_T_I64));
        PS_TRY(ps_write_i64(out, first_row[i]));
        PS_TRY(ps_write_stop(out));
    }
    return ps_write_stop(out);
}

static ps_status write_bounds(ps_writer *w, int32_t *last, int32_t id, const ps_page_bounds *in,
                              const int64_t *ends) {
    PS_TRY(ps_write_field(w, last, id, PS_T_LIST));
    PS_TRY(ps_write_list(w, PS_T_BINARY, in->n));
    for (size_t i = 0; i < in->n; i++) {
        const int64_t from = ends[i], to = ends[i + 1];
        if (from < 0 || to < from || (uint64_t)to > in->text_length)
            return ps_fail(w->err, PS_INVALID, PS_NOWHERE, "the bound of page %zu lies nowhere",
                           i);
        PS_TRY(ps_write_binary(w, in->text + from, (size_t)(to - from)));
    }
    return PS_OK;
}

ps_status ps_column_index_write(const ps_page_bounds *in, ps_writer *out, ps_error *err) {
    int32_t last = 0;
    out->err = err;
    PS_TRY(ps_write_field(out, &last, 1, PS_T_LIST));
    PS_TRY(ps_write_list(out, PS_T_TRUE, in->n));
    for (size_t i = 0; i < in->n; i++) {
        const uint8_t byte = in->null_pages[i] ? PS_T_TRUE : PS_T_FALSE;
        PS_TRY(ps_write_bytes(out, &byte, 1));
    }
    PS_TRY(write_bounds(out, &last, 2, in, in->least));
    PS_TRY(write_bounds(out, &last, 3, in, in->most));
    PS_TRY(ps_write_field(out, &last, 4, PS_T_I32));
    PS_TRY(ps_write_i64(out, in->boundary_order));
    PS_TRY(write_counts(out, &last, 5, in->null_counts, in->n));
    PS_TRY(write_counts(out, &last, 8, in->nan_counts, in->n));
    return ps_write_stop(out);
}

/* A union whose member has no fields. */
static ps_status write_choice(ps_writer *w, int32_t *last, int32_t id) {
    int32_t member = 0;
    PS_TRY(ps_write_field(w, last, id, PS_T_STRUCT));
    PS_TRY(ps_write_field(w, &member, 1, PS_T_STRUCT));
    PS_TRY(ps_write_stop(w));
    return ps_write_stop(w);
}

ps_status ps_bloom_header_write(size_t num_bytes, ps_writer *out, ps_error *err) {
    int32_t last = 0;
    out->err = err;
    if (num_bytes == 0 || num_bytes % PS_BLOOM_BLOCK || num_bytes > INT32_MAX)
        return ps_fail(err, PS_INVALID, PS_NOWHERE, "a Bloom filter of %zu bytes", num_bytes);
    PS_TRY(ps_write_field(out, &last, 1, PS_T_I32));
    PS_TRY(ps_write_i64(out, (int64_t)num_bytes));
    PS_TRY(write_choice(out, &last, 2)); /* BLOCK */
    PS_TRY(write_choice(out, &last, 3)); /* XXHASH */
    PS_TRY(write_choice(out, &last, 4)); /* UNCOMPRESSED */
    return ps_write_stop(out);
}
