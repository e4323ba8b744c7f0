/* chunk.c - ColumnChunk and ColumnMetaData, one chunk at a time (parquet.thrift). */
#include "metadata.h"

static const ps_field_spec statistics_fields[] = {
    [1] = {"max", PS_FIELD_BINARY, .slot = PS_SLOT(ps_statistics, max_offset)},
    [2] = {"min", PS_FIELD_BINARY, .slot = PS_SLOT(ps_statistics, min_offset)},
    [3] = {"null_count", PS_FIELD_I64, .slot = PS_SLOT(ps_statistics, null_count)},
    [4] = {"distinct_count", PS_FIELD_I64, .slot = PS_SLOT(ps_statistics, distinct_count)},
    [5] = {"max_value", PS_FIELD_BINARY, .slot = PS_SLOT(ps_statistics, max_value_offset)},
    [6] = {"min_value", PS_FIELD_BINARY, .slot = PS_SLOT(ps_statistics, min_value_offset)},
    [7] = {"is_max_value_exact", PS_FIELD_BOOL, .slot = PS_SLOT(ps_statistics, is_max_exact)},
    [8] = {"is_min_value_exact", PS_FIELD_BOOL, .slot = PS_SLOT(ps_statistics, is_min_exact)},
    [9] = {"nan_count", PS_FIELD_I64, .slot = PS_SLOT(ps_statistics, nan_count)},
};
const ps_struct_spec ps_statistics_spec = PS_STRUCT("Statistics", statistics_fields, 0);

/* ---- lists of ColumnMetaData ------------------------------------------------------------- */

static ps_status read_encodings(ps_thrift *t, size_t count, int64_t *record) {
    int64_t set = 0, encoding;
    while (count--) {
        PS_TRY(ps_thrift_int(t, PS_T_I32, &encoding));
        set |= INT64_C(1) << (encoding < 0 || encoding > 61 ? 62 : encoding);
    }
    record[PS_SLOT(ps_chunk, encodings)] = set;
    return PS_OK;
}

typedef struct encoding_stats {
    int64_t page_type, encoding, count;
} encoding_stats;

static const ps_field_spec encoding_stats_fields[] = {
    [1] = {"page_type", PS_FIELD_I32, .slot = PS_SLOT(encoding_stats, page_type)},
    [2] = {"encoding", PS_FIELD_I32, .slot = PS_SLOT(encoding_stats, encoding)},
    [3] = {"count", PS_FIELD_I32, .slot = PS_SLOT(encoding_stats, count)},
};
static const ps_struct_spec encoding_stats_spec = PS_STRUCT(
    "PageEncodingStats", encoding_stats_fields, PS_FIELD(1) | PS_FIELD(2) | PS_FIELD(3));

/* Counts data pages with and without dictionary encoding, which pruning by dictionary needs. A negative count makes
 * the list worthless but not the chunk, so it then counts as missing. */
static ps_status read_encoding_stats(ps_thrift *t, size_t count, int64_t *record) {
    int64_t pages[2] = {0, 0};
    bool plausible = true;
    while (count--) {
        encoding_stats s;
        PS_TRY(ps_thrift_struct(t, &encoding_stats_spec, (int64_t *)&s));
        plausible &= s.count >= 0;
        bool is_data = s.page_type == 0 || s.page_type == 3;
        /* PLAIN_DICTIONARY, RLE_DICTIONARY */
        bool by_dictionary = s.encoding == 2 || s.encoding == 8;
        if (is_data) pages[by_dictionary] += s.count;
    }
    if (!plausible) return PS_OK;
    record[PS_SLOT(ps_chunk, encoding_stats)] = 1;
    record[PS_SLOT(ps_chunk, dictionary_data_pages)] = pages[1];
    record[PS_SLOT(ps_chunk, other_data_pages)] = pages[0];
    return PS_OK;
}

/* ---- ColumnMetaData, ColumnChunk --------------------------------------------------------- */

static const ps_field_spec column_metadata_fields[] = {
    [1] = {"type", PS_FIELD_I32, .slot = PS_SLOT(ps_chunk, type)},
    [2] = {"encodings", PS_FIELD_LIST, .element = PS_T_I32, .read = read_encodings},
    [3] = {"path_in_schema", PS_FIELD_WHERE, .slot = PS_NO_SLOT},
    [4] = {"codec", PS_FIELD_I32, .slot = PS_SLOT(ps_chunk, codec)},
    [5] = {"num_values", PS_FIELD_I64, .slot = PS_SLOT(ps_chunk, num_values)},
    [6] = {"total_uncompressed_size", PS_FIELD_I64,
           .slot = PS_SLOT(ps_chunk, total_uncompressed_size)},
    [7] = {"total_compressed_size", PS_FIELD_I64,
           .slot = PS_SLOT(ps_chunk, total_compressed_size)},
    [8] = {"key_value_metadata", PS_FIELD_WHERE, .slot = PS_SLOT(ps_chunk, key_values_offset)},
    [9] = {"data_page_offset", PS_FIELD_I64, .slot = PS_SLOT(ps_chunk, data_page_offset)},
    [10] = {"index_page_offset", PS_FIELD_I64, .slot = PS_SLOT(ps_chunk, index_page_offset)},
    [11] = {"dictionary_page_offset", PS_FIELD_I64,
            .slot = PS_SLOT(ps_chunk, dictionary_page_offset)},
    [12] = {"statistics", PS_FIELD_STRUCT, .slot = PS_SLOT(ps_chunk, statistics.present),
            .base = PS_SLOT(ps_chunk, statistics), .nested = &ps_statistics_spec},
    [13] = {"encoding_stats", PS_FIELD_LIST, .element = PS_T_STRUCT,
            .read = read_encoding_stats},
    [14] = {"bloom_filter_offset", PS_FIELD_I64,
            .slot = PS_SLOT(ps_chunk, bloom_filter_offset)},
    [15] = {"bloom_filter_length", PS_FIELD_I32,
            .slot = PS_SLOT(ps_chunk, bloom_filter_length)},
};
static const ps_struct_spec column_metadata_spec = PS_STRUCT(
    "ColumnMetaData", column_metadata_fields,
    PS_FIELD(1) | PS_FIELD(2) | PS_FIELD(3) | PS_FIELD(4) | PS_FIELD(5) | PS_FIELD(6) |
        PS_FIELD(7) | PS_FIELD(9));

static const ps_field_spec crypto_fields[] = {
    [1] = {"ENCRYPTION_WITH_FOOTER_KEY", .kind = PS_FIELD_STRUCT},
    [2] = {"ENCRYPTION_WITH_COLUMN_KEY", .kind = PS_FIELD_STRUCT},
};
static const ps_struct_spec crypto_spec = PS_STRUCT("ColumnCryptoMetaData", crypto_fields, 0);

/* file_offset is required, deprecated, and has a default in parquet.thrift: absent is 0. */
static const ps_field_spec chunk_fields[] = {
    [1] = {"file_path", PS_FIELD_BINARY, .slot = PS_SLOT(ps_chunk, file_path_offset)},
    [2] = {"file_offset", PS_FIELD_I64, .slot = PS_SLOT(ps_chunk, file_offset)},
    [3] = {"meta_data", PS_FIELD_STRUCT, .slot = PS_SLOT(ps_chunk, has_metadata),
           .nested = &column_metadata_spec},
    [4] = {"offset_index_offset", PS_FIELD_I64, .slot = PS_SLOT(ps_chunk, offset_index_offset)},
    [5] = {"offset_index_length", PS_FIELD_I32, .slot = PS_SLOT(ps_chunk, offset_index_length)},
    [6] = {"column_index_offset", PS_FIELD_I64, .slot = PS_SLOT(ps_chunk, column_index_offset)},
    [7] = {"column_index_length", PS_FIELD_I32, .slot = PS_SLOT(ps_chunk, column_index_length)},
    [8] = {"crypto_metadata", PS_FIELD_UNION, .slot = PS_SLOT(ps_chunk, crypto),
           .nested = &crypto_spec},
};
static const ps_struct_spec chunk_spec = PS_STRUCT("ColumnChunk", chunk_fields, 0);

static ps_status read_chunk(ps_thrift *t, ps_chunk *out) {
    ps_record_clear(out, sizeof *out);
    out->has_metadata = 0;
    out->file_offset = 0;
    out->encoding_stats = 0;
    out->statistics.present = 0;
    PS_TRY(ps_thrift_struct(t, &chunk_spec, (int64_t *)out));
    out->end = (int64_t)ps_thrift_at(t);
    return PS_OK;
}

ps_status ps_chunks_read(const uint8_t *data, size_t length, const uint64_t *at, size_t n,
                         ps_chunk *out, size_t *failed, ps_error *err) {
    ps_thrift t = ps_thrift_open(data, length, NULL, err);
    for (size_t i = 0; i < n; i++) {
        uint64_t start = ps_load64((const uint8_t *)at + i * sizeof *at);
        *failed = i;
        if (start > length)
            return ps_fail(err, PS_INVALID, PS_NOWHERE, "a chunk at byte %llu of %zu",
                           (unsigned long long)start, length);
        t.p = data + start;
        PS_TRY(read_chunk(&t, &out[i]));
    }
    return PS_OK;
}

/* ---- bounds ------------------------------------------------------------------------------ */

bool ps_chunks_bounds(const ps_chunk *chunks, size_t n, bool ordered, bool deprecated,
                      int64_t *places, int64_t *null_counts, int64_t *nan_counts) {
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        const ps_statistics *s = &chunks[i].statistics;
        int64_t place[4] = {PS_ABSENT, PS_ABSENT, PS_ABSENT, PS_ABSENT};
        bool usable = s->present == 1 && chunks[i].crypto == PS_ABSENT;
        any |= s->present == 1;
        if (usable && ordered && s->min_value_offset != PS_ABSENT &&
            s->max_value_offset != PS_ABSENT) {
            place[0] = s->min_value_offset, place[1] = s->min_value_length;
            place[2] = s->max_value_offset, place[3] = s->max_value_length;
        } else if (usable && deprecated && s->min_offset != PS_ABSENT &&
                   s->max_offset != PS_ABSENT) {
            place[0] = s->min_offset, place[1] = s->min_length;
            place[2] = s->max_offset, place[3] = s->max_length;
        }
        for (size_t k = 0; k < 4; k++) places[k * n + i] = place[k];
        null_counts[i] = s->null_count < 0 ? -1 : s->null_count;
        nan_counts[i] = s->nan_count < 0 ? -1 : s->nan_count;
    }
    return any;
}
