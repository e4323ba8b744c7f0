/* ps_metadata.h - metadata that is read: footers, page indexes, page headers, Bloom filters, and indexes of pageseek's
 * own. Part of pageseek.h.
 *
 * Records are structs of int64_t only, so that they cross to Python as one flat int64 buffer. A byte string is
 * an offset and a length in the input; the input is borrowed, and the caller keeps it as long as the record is
 * used. An optional field may be PS_ABSENT. Field numbers and enumerations are those of parquet.thrift. */
#ifndef PAGESEEK_PS_METADATA_H
#define PAGESEEK_PS_METADATA_H

#include "ps_base.h"

struct ps_leaf_spec; /* ps_leaf.h */
struct ps_values;    /* ps_values.h */

/* ---- the footer -------------------------------------------------------------------------- */

typedef struct ps_schema_element {
    int64_t type;        /* parquet Type, absent for a group */
    int64_t type_length; /* FIXED_LEN_BYTE_ARRAY: bytes of a value */
    int64_t repetition;  /* 0 required, 1 optional, 2 repeated; absent for the root */
    int64_t name_offset, name_length;
    int64_t num_children;
    int64_t converted_type, scale, precision, field_id;
    int64_t logical; /* field id of the LogicalType union; 0: an unknown member; absent: none */
    /* DECIMAL: scale, precision | TIME, TIMESTAMP: is_utc, unit (1 ms, 2 us, 3 ns; 0 unknown) |
     * INTEGER: bit width, is_signed | VARIANT: version | GEOMETRY, GEOGRAPHY: crs offset, crs length, algorithm */
    int64_t logical_a, logical_b, logical_c;
} ps_schema_element;

typedef struct ps_row_group {
    int64_t offset; /* byte of the RowGroup struct in the footer */
    int64_t length; /* its bytes */
    int64_t num_rows, total_byte_size, total_compressed_size, file_offset, ordinal;
    int64_t sorting_offset; /* byte of the sorting_columns list, or absent */
} ps_row_group;

typedef struct ps_footer {
    ps_arena arena; /* owns the arrays below */
    int64_t version, num_rows;
    int64_t created_by_offset, created_by_length;
    int64_t encryption; /* field id of EncryptionAlgorithm; absent: plaintext */
    size_t n_schema;
    ps_schema_element *schema;
    size_t n_leaves; /* schema elements without children */
    size_t n_row_groups;
    ps_row_group *row_groups;
    uint64_t *chunk_offsets; /* [n_row_groups][n_leaves]: byte of each ColumnChunk struct */
    size_t n_key_values;
    int64_t *
        key_values; /* 4 each: key offset and length, value offset and length (absent: no value) */
    size_t n_column_orders;
    int64_t *column_orders; /* field id of the ColumnOrder union; 0: an unknown member */
} ps_footer;

/* Reads the FileMetaData struct at data[0..length) in one pass. Schema and row groups are decoded; column chunks
 * are only walked, and their bytes recorded. A row group whose number of chunks is not n_leaves is PS_CORRUPT.
 * Depth and counts are limited by what `length` bytes can hold, memory by max_arena bytes (PS_LIMIT). After a
 * failure `out` is empty. */
ps_status ps_footer_read(const uint8_t *data, size_t length, size_t max_arena, ps_footer *out,
                         ps_error *err);
/* Frees what ps_footer_read made. */
void ps_footer_clear(ps_footer *footer);

/* The statistics of a chunk or of a page header. */
typedef struct ps_statistics {
    int64_t present;
    int64_t max_offset, max_length; /* deprecated: fields 1 and 2 */
    int64_t min_offset, min_length;
    int64_t null_count, distinct_count;
    int64_t max_value_offset, max_value_length, min_value_offset, min_value_length;
    int64_t is_max_exact, is_min_exact, nan_count;
} ps_statistics;

typedef struct ps_chunk {
    int64_t end; /* byte after the ColumnChunk struct */
    int64_t file_path_offset, file_path_length, file_offset;
    int64_t has_metadata; /* 0: the metadata is encrypted or missing */
    int64_t crypto;       /* field id of ColumnCryptoMetaData; absent: plaintext */
    int64_t offset_index_offset, offset_index_length, column_index_offset, column_index_length;
    int64_t type, codec, num_values, total_uncompressed_size, total_compressed_size;
    int64_t data_page_offset, index_page_offset, dictionary_page_offset;
    int64_t bloom_filter_offset, bloom_filter_length;
    int64_t encodings;      /* bit e set: encoding e is listed (e < 62; bit 62: another) */
    int64_t encoding_stats; /* 1: encoding_stats is present */
    int64_t
        dictionary_data_pages; /* data pages that it counts: those that are dictionary-encoded */
    int64_t other_data_pages;  /* and those that are not */
    int64_t key_values_offset; /* byte of the chunk's key_value_metadata list, or absent */
    ps_statistics statistics;
} ps_chunk;

/* Reads n chunks, whose structs begin at data[at[i]]. `out` has space for n. After a failure *failed is the index
 * of the chunk at fault. */
ps_status ps_chunks_read(const uint8_t *data, size_t length, const uint64_t *at, size_t n,
                         ps_chunk *out, size_t *failed, ps_error *err);
/* Collects the bounds and counts of n chunks. `places` has 4 n numbers: n offsets and n lengths of lower bounds, then of
 * upper bounds; all four are absent where a chunk lacks one bound. `ordered`: min_value and max_value may be
 * used. `deprecated`: min and max may be used where those are missing. null_counts and nan_counts have n
 * numbers each, -1 where the chunk has none. Returns false where no chunk has statistics. */
bool ps_chunks_bounds(const ps_chunk *chunks, size_t n, bool ordered, bool deprecated,
                      int64_t *places, int64_t *null_counts, int64_t *nan_counts);

/* The parts that are equal in all footers which ps_footers_read reads together. Everything is borrowed. */
typedef struct ps_similar_footer {
    const uint8_t
        *names; /* the bytes of a footer up to the end of the last name of the schema */
    const uint8_t *created_by; /* NULL: the footers have none */
    const void *schema;        /* the records of the schema */
    const void *orders;        /* ColumnOrders, as in ps_footer */
    size_t names_length, created_by_length, schema_size, orders_size;
    const char *const
        *keys; /* of the key-value pairs whose values are stored; NUL-terminated */
    size_t n_keys;
} ps_similar_footer;
/* Reads n footers as ps_footer_read and ps_chunks_read do; footer i has at[2 i + 1] bytes at data[at[2 i]].
 *
 *   groups[i]        the number of row groups of footer i. -1: the caller reads this footer by itself, because it is
 *                    damaged or encrypted, counts other rows than its row groups have, has more than `most` row
 *                    groups, or differs from `like`
 *   stored[i][k][2]  place in `data` and length of the value of the first pair with keys[k], or absent
 *   rows[g], chunks[g][k]  of row group g, counted through all footers, and of its chunk of leaves[k]; byte strings
 *                    are places in `data`. Both arrays have space for `most` row groups
 *
 * It stops before the first footer whose row groups do not fit behind those before. *done is the number of
 * footers that it read. max_arena limits the memory in bytes that one footer takes meanwhile. */
ps_status ps_footers_read(const uint8_t *data, size_t length, const uint64_t *at, size_t n,
                          const ps_similar_footer *like, const uint64_t *leaves,
                          size_t n_leaves, size_t max_arena, size_t most, size_t *done,
                          int64_t *groups, int64_t *stored, int64_t *rows, ps_chunk *chunks,
                          ps_error *err);

/* ---- the page index (PageIndex.md) ------------------------------------------------------- */

typedef struct ps_column_index {
    ps_arena arena; /* owns the arrays below, of n_pages each */
    size_t n_pages;
    int64_t boundary_order; /* 0 unordered, 1 ascending, 2 descending */
    uint8_t *null_pages;    /* 0 or 1 */
    int64_t *min_offset, *min_length, *max_offset, *max_length;
    int64_t *null_counts, *nan_counts; /* NULL: absent */
} ps_column_index;
/* Reads a ColumnIndex. Lists of different lengths, an unknown boundary order and a negative count are
 * PS_CORRUPT. After a failure `out` is empty. */
ps_status ps_column_index_read(const uint8_t *data, size_t length, size_t max_arena,
                               ps_column_index *out, ps_error *err);
/* Checks that null pages and counts fit pages which begin at first_row[0..n_pages) and end before row
 * first_row[n_pages]; PS_CORRUPT where they do not. `required`: the column has no nulls. `places` receives what
 * ps_chunks_bounds writes: absent for null pages, and for all pages unless the order is `trusted`. `counts`
 * receives the rows of each page. */
ps_status ps_column_index_check(const ps_column_index *index, const int64_t *first_row,
                                size_t n_pages, bool required, bool trusted, int64_t *places,
                                int64_t *counts, ps_error *err);
/* Frees what ps_column_index_read made. */
void ps_column_index_clear(ps_column_index *index);

typedef struct ps_offset_index {
    ps_arena arena; /* owns the arrays below, of n_pages each */
    size_t n_pages;
    int64_t *offset, *compressed_size, *first_row;
    int64_t *unencoded_bytes; /* NULL: absent */
} ps_offset_index;
/* Reads an OffsetIndex. Only its structure is checked; ps_offset_index_check checks the locations. */
ps_status ps_offset_index_read(const uint8_t *data, size_t length, size_t max_arena,
                               ps_offset_index *out, ps_error *err);
/* Checks the locations. first_row begins at 0, never falls, stands still only after an empty page, and stays below
 * num_rows. Pages do not overlap and lie in order inside [chunk_start, chunk_end). PS_CORRUPT names the page
 * that breaks a rule. */
ps_status ps_offset_index_check(const ps_offset_index *index, int64_t num_rows,
                                int64_t chunk_start, int64_t chunk_end, ps_error *err);
/* Frees what ps_offset_index_read made. */
void ps_offset_index_clear(ps_offset_index *index);

/* A ColumnIndex or OffsetIndex that pageseek attached ends with a checksum (docs/format.md): a field, the XXH64 of all
 * bytes before the field XOR the first byte of the chunk, and the stop of the struct. */
enum { PS_SUM_FIELD = 21, PS_SUM_END = PS_SUM_FIELD + 8 + 1 };
extern const uint8_t ps_sum_field[PS_SUM_FIELD];
typedef enum ps_sum { PS_SUM_NONE, PS_SUM_FITS, PS_SUM_DIFFERS } ps_sum;
/* Compares the checksum of an index, of a chunk that begins at byte chunk_start of the file. */
ps_sum ps_sum_check(const uint8_t *data, size_t length, uint64_t chunk_start);

/* ---- page headers ------------------------------------------------------------------------ */

typedef struct ps_page_header {
    int64_t header_length; /* bytes of the struct itself */
    int64_t type;          /* 0 data, 1 index, 2 dictionary, 3 data V2, others unknown: skip */
    int64_t uncompressed_size, compressed_size, crc;
    int64_t num_values, encoding;       /* data, V2 and dictionary pages */
    int64_t def_encoding, rep_encoding; /* V1 */
    int64_t num_nulls, num_rows, def_length, rep_length, is_compressed; /* V2 */
    int64_t is_sorted;                                                  /* dictionary */
    ps_statistics statistics;
} ps_page_header;
/* Reads the header at data[0]. PS_TRUNCATED: it goes on behind `length` bytes, and the caller may try with more.
 * A negative size or count, and a data or dictionary page without its own header, are PS_CORRUPT. */
ps_status ps_page_header_read(const uint8_t *data, size_t length, ps_page_header *out,
                              ps_error *err);

/* ---- Bloom filters (BloomFilter.md) ------------------------------------------------------ */

enum {
    PS_BLOOM_BLOCK = 32,   /* bytes of a block */
    PS_BLOOM_WIDTH = 4096, /* bytes of a FIXED_LEN_BYTE_ARRAY that is hashed at most */
};

/* XXH64 with seed 0. */
uint64_t ps_xxh64(const uint8_t *data, size_t length);
/* Hashes each piece of `piece` bytes (not 0) by itself; the last one may be shorter. `out` receives 8 bytes for each:
 * the hash XOR `key`, little endian. */
void ps_xxh64_pieces(const uint8_t *data, size_t length, size_t piece, uint64_t key,
                     uint8_t *out);

/* Reads a BloomFilterHeader. The bitset of *num_bytes, a positive multiple of a block, follows it. PS_TRUNCATED:
 * the caller may try with more bytes. PS_UNSUPPORTED: an algorithm, hash or compression that the format does
 * not have today. */
ps_status ps_bloom_header_read(const uint8_t *data, size_t length, size_t *header_length,
                               size_t *num_bytes, ps_error *err);

/* PS_UNSUPPORTED where equal values of the kind may have different PLAIN bytes; zeros of floats do not count. */
ps_status ps_bloom_hashable(const struct ps_leaf_spec *spec, ps_error *err);
/* Hashes the PLAIN bytes that the values have in a file: one hash for a value, two for a zero of floats, none where
 * the physical type cannot hold the value. `hashes` has space for 2 n, *n receives their number. NaN is
 * PS_UNSUPPORTED. */
ps_status ps_bloom_hashes(const struct ps_leaf_spec *spec, const struct ps_values *values,
                          uint64_t *hashes, size_t *n, ps_error *err);
/* at[i] = the byte at which the block of hashes[i] begins, in a bitset of n_blocks blocks (below 2^31). */
void ps_bloom_places(const uint64_t *hashes, size_t n, uint64_t n_blocks, uint64_t *at);
/* *found = how many of the hashes have all their bits set in the block that begins at data[at[i]]. */
ps_status ps_bloom_check(const uint8_t *data, size_t length, const uint64_t *at,
                         const uint64_t *hashes, size_t n, size_t *found, ps_error *err);

/* ---- directories of indexes of pageseek's own (docs/format.md) --------------------------- */

enum { PS_ENTRY_PARTS = 6, PS_ENTRY_DIGITS = 18 };

/* How a directory spells the entry of one index. The entry is a sequence of fixed parts with numbers between them:
 * the head of the directory (a number and a comma follow), what precedes the offset, the length, the checksum
 * and the fingerprint, and what ends the entry. Borrowed. */
typedef struct ps_entry_form {
    const uint8_t *parts[PS_ENTRY_PARTS];
    size_t lengths[PS_ENTRY_PARTS];
    size_t longest; /* directories with more bytes are not read */
} ps_entry_form;

/* A file whose directory and last bytes are in memory. */
typedef struct ps_entry_file {
    int64_t value,
        value_length; /* place of the directory in `values`; PS_ABSENT: it has no value */
    int64_t tail, tail_length;       /* place of its last bytes in `tails` */
    int64_t size, footer_start;      /* in the file */
    int64_t first_group, num_groups; /* the row groups that its fingerprint covers */
} ps_entry_file;

typedef enum ps_entry_state {
    PS_ENTRY_NONE = 0,     /* the entry names a place where no index can lie */
    PS_ENTRY_SOUND = 1,    /* the bytes are those that were attached to these column chunks */
    PS_ENTRY_FAR = 2,      /* the bytes are not in memory */
    PS_ENTRY_DOUBTFUL = 3, /* the bytes or the column chunks are others */
    PS_ENTRY_UNREAD = 4,   /* the directory is not of this form, or has no such entry */
} ps_entry_state;

/* What an entry says: place and length of the index in the file, checksums of it and of the chunks. */
typedef struct ps_entry {
    int64_t state, offset, length;
    uint64_t checksum, chunks;
} ps_entry;

/* Finds the last entry of a form in the directory of each of n files. `figures`: figure_size bytes for each row group,
 * which the fingerprint covers. `out` has space for n. PS_INVALID: a place of `files` is out of bounds. */
ps_status ps_entries_find(const uint8_t *values, size_t values_size, const uint8_t *tails,
                          size_t tails_size, const uint8_t *figures, size_t figures_size,
                          size_t figure_size, const ps_entry_form *form,
                          const ps_entry_file *files, size_t n, ps_entry *out, ps_error *err);

/* ---- lists of different values (docs/format.md) ------------------------------------------ */

/* The parts of a list, in the input. `has` and `ends` are NULL where the list has none. */
typedef struct ps_list {
    size_t n_groups, n_values, width, values_size;
    const uint8_t *flags, *has, *ends, *values;
} ps_list;
/* Reads the payload of an index of kind "distinct", of a file of n_groups row groups. A payload that does not fit is
 * PS_CORRUPT. `out` borrows `data`. */
ps_status ps_list_read(const uint8_t *data, size_t length, size_t n_groups, ps_list *out,
                       ps_error *err);
/* Offset and length of each value; list->values lies at offset `base`. */
void ps_list_places(const ps_list *list, int64_t base, int64_t *offsets, int64_t *lengths);
/* exact[g] = 1 where the list holds all values of row group g and no others. */
void ps_list_exact(const ps_list *list, uint8_t *exact);
/* Evaluates a test for each row group: may[g] = 1 where some row may pass, must[g] = 1 where all rows do. passes[i] = 1
 * where value i passes. Only `floats` can hold NaN. `bits` is scratch memory of n_values bits. */
void ps_list_evaluate(const ps_list *list, const uint8_t *passes, bool null_passes, bool floats,
                      bool nan_passes, uint8_t *bits, uint8_t *may, uint8_t *must);

/* ---- blocks of a lookup index (docs/format.md) ------------------------------------------- */

enum { PS_HASH_SLOTS = 2048 }; /* of a block */
/* A block, and the hashes that are looked up in it. */
typedef struct ps_hash_block {
    const uint8_t *data;
    size_t size;
    uint32_t n_entries, checksum; /* of the bytes: the low half of their XXH64 */
    const uint64_t *hashes;
    size_t n_hashes;
} ps_hash_block;
/* The bytes of a block. */
size_t ps_hash_block_size(uint32_t n_entries, int row_bits);
/* Sets bit i of `found` where entry i may be of a value with one of the hashes, and adds the number of these bits to
 * *n_found. `found` has n_entries bits, at first all zero. A row has 1 to 56 bits. PS_CORRUPT: it is no such block. */
ps_status ps_hash_block_find(const ps_hash_block *block, int row_bits, uint8_t *found,
                             size_t *n_found, ps_error *err);
/* Puts the rows of the entries that ps_hash_block_find has found at rows[*n_rows], in the order of the entries, and adds
 * their number. PS_CORRUPT: one is not below num_rows. */
ps_status ps_hash_block_rows(const ps_hash_block *block, int row_bits, int64_t num_rows,
                             const uint8_t *found, int64_t *rows, size_t *n_rows,
                             ps_error *err);

#endif
