/* page_header.c - PageHeader (parquet.thrift). */
#include "metadata.h"

/* The three headers that carry numbers share slots, so a page may have one of them only. */
typedef struct page_record {
    ps_page_header page;
    int64_t data, dictionary, data_v2; /* 1 when there */
} page_record;

#define SLOT(member) PS_SLOT(page_record, page.member)
#define STATISTICS                                                                             \
    {"statistics", PS_FIELD_STRUCT, .slot = SLOT(statistics.present),                          \
     .base = SLOT(statistics), .nested = &ps_statistics_spec}

static const ps_field_spec data_fields[] = {
    [1] = {"num_values", PS_FIELD_COUNT32, .slot = SLOT(num_values)},
    [2] = {"encoding", PS_FIELD_I32, .slot = SLOT(encoding)},
    [3] = {"definition_level_encoding", PS_FIELD_I32, .slot = SLOT(def_encoding)},
    [4] = {"repetition_level_encoding", PS_FIELD_I32, .slot = SLOT(rep_encoding)},
    [5] = STATISTICS,
};
static const ps_struct_spec data_spec = PS_STRUCT(
    "DataPageHeader", data_fields, PS_FIELD(1) | PS_FIELD(2) | PS_FIELD(3) | PS_FIELD(4));

static const ps_field_spec dictionary_fields[] = {
    [1] = {"num_values", PS_FIELD_COUNT32, .slot = SLOT(num_values)},
    [2] = {"encoding", PS_FIELD_I32, .slot = SLOT(encoding)},
    [3] = {"is_sorted", PS_FIELD_BOOL, .slot = SLOT(is_sorted)},
};
static const ps_struct_spec dictionary_spec = PS_STRUCT(
    "DictionaryPageHeader", dictionary_fields, PS_FIELD(1) | PS_FIELD(2));

/* num_nulls is not a COUNT: writers exist that put -1 for unknown, and no decoder needs it. */
static const ps_field_spec data_v2_fields[] = {
    [1] = {"num_values", PS_FIELD_COUNT32, .slot = SLOT(num_values)},
    [2] = {"num_nulls", PS_FIELD_I32, .slot = SLOT(num_nulls)},
    [3] = {"num_rows", PS_FIELD_COUNT32, .slot = SLOT(num_rows)},
    [4] = {"encoding", PS_FIELD_I32, .slot = SLOT(encoding)},
    [5] = {"definition_levels_byte_length", PS_FIELD_COUNT32, .slot = SLOT(def_length)},
    [6] = {"repetition_levels_byte_length", PS_FIELD_COUNT32, .slot = SLOT(rep_length)},
    [7] = {"is_compressed", PS_FIELD_BOOL, .slot = SLOT(is_compressed)},
    [8] = STATISTICS,
};
static const ps_struct_spec data_v2_spec = PS_STRUCT(
    "DataPageHeaderV2", data_v2_fields,
    PS_FIELD(1) | PS_FIELD(2) | PS_FIELD(3) | PS_FIELD(4) | PS_FIELD(5) | PS_FIELD(6));

static const ps_field_spec page_fields[] = {
    [1] = {"type", PS_FIELD_I32, .slot = SLOT(type)},
    [2] = {"uncompressed_page_size", PS_FIELD_COUNT32, .slot = SLOT(uncompressed_size)},
    [3] = {"compressed_page_size", PS_FIELD_COUNT32, .slot = SLOT(compressed_size)},
    [4] = {"crc", PS_FIELD_I32, .slot = SLOT(crc)},
    [5] = {"data_page_header", PS_FIELD_STRUCT, .slot = PS_SLOT(page_record, data),
           .nested = &data_spec},
    [7] = {"dictionary_page_header", PS_FIELD_STRUCT, .slot = PS_SLOT(page_record, dictionary),
           .nested = &dictionary_spec},
    [8] = {"data_page_header_v2", PS_FIELD_STRUCT, .slot = PS_SLOT(page_record, data_v2),
           .nested = &data_v2_spec},
};
static const ps_struct_spec page_spec = PS_STRUCT("PageHeader", page_fields,
                                                  PS_FIELD(1) | PS_FIELD(2) | PS_FIELD(3));

ps_status ps_page_header_read(const uint8_t *data, size_t length, ps_page_header *out,
                              ps_error *err) {
    page_record r;
    ps_record_clear(&r, sizeof r);
    r.page.statistics.present = r.data = r.dictionary = r.data_v2 = 0;
    ps_thrift t = ps_thrift_open(data, length, NULL, err);
    PS_TRY(ps_thrift_struct(&t, &page_spec, (int64_t *)&r));
    r.page.header_length = (int64_t)ps_thrift_at(&t);
    if (r.data + r.dictionary + r.data_v2 > 1)
        return ps_fail(err, PS_CORRUPT, 0, "a page with the headers of several types");
    if ((r.page.type == 0 && !r.data) || (r.page.type == 2 && !r.dictionary) ||
        (r.page.type == 3 && !r.data_v2))
        return ps_fail(err, PS_CORRUPT, 0, "a page of type %d without the header of its type",
                       (int)r.page.type);
    if (r.data_v2) {
        if (r.page.num_nulls < 0) r.page.num_nulls = PS_ABSENT;
        if (r.page.is_compressed == PS_ABSENT) r.page.is_compressed = 1; /* the default */
    }
    *out = r.page;
    return PS_OK;
}
