/* pageseek.h - the whole C core as the Cython modules see it.
 *
 * Contracts that hold for every function here:
 *   - no IO, no global state, no Python; safe to call from many threads on different objects;
 *   - a fallible function returns ps_status and takes `ps_error *err` last; err may be NULL;
 *     on failure err holds one sentence and the byte at fault, counted from the start of the input;
 *   - input bytes are hostile: read only inside [data, data + length), never trusted for a size;
 *   - sizes are size_t, rows and file offsets int64_t; integers are read with memcpy, little endian.
 */
#ifndef PAGESEEK_H
#define PAGESEEK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- base ------------------------------------------------------------------------------- */

typedef enum ps_status {
    PS_OK = 0,
    PS_TRUNCATED = 1,   /* input ends inside a value */
    PS_CORRUPT = 2,     /* input contradicts the format or itself */
    PS_LIMIT = 3,       /* a size or depth beyond what the caller allows */
    PS_UNSUPPORTED = 4, /* legal, and not implemented */
    PS_NOMEM = 5,
    PS_INVALID = 6, /* the caller's own argument is wrong */
    PS_MISMATCH = 7 /* a page is not what the offset index says */
} ps_status;

typedef struct ps_error {
    uint64_t offset;   /* byte in the input of the call; UINT64_MAX where no byte is at fault */
    char message[200]; /* NUL-terminated, no trailing full stop */
} ps_error;

/* An optional field that is not there. No field of the format can legally hold it. */
#define PS_ABSENT INT64_MIN

/* Arena for metadata: freed at once, never beyond `cap` bytes. Zero-initialise and set cap. */
typedef struct ps_arena {
    struct ps_arena_block *head;
    size_t used, cap;
} ps_arena;
void ps_arena_clear(ps_arena *arena);

/* Output memory: 64-byte aligned, size rounded up to 64; NULL when there is none.
 * The only heap the kernels use for values; it leaves as Arrow buffers. */
void *ps_buffer_new(size_t size);
void *ps_buffer_grow(void *buffer, size_t old_size, size_t new_size);
void ps_buffer_free(void *buffer, size_t size); /* `size` as it was asked */

/* Large buffers that are freed while the pool is open are kept, and handed to whichever thread asks next (Linux).
 * Together with those in use they are never more than were in use at a time since it was last closed. A closed
 * pool keeps a few as well: as many bytes as it was told, none unless it was.
 * Each module has a copy of this library: one owns the pool, the others share it. */
typedef struct ps_pool ps_pool;
ps_pool *ps_pool_own(void);
void ps_pool_share(ps_pool *pool);
void ps_pool_rest(size_t bytes); /* kept while closed; more than that is freed */
void ps_pool_open(double seconds,
                  size_t limit); /* from now, for so many bytes; 0 seconds close it */
size_t ps_pool_trim(
    double seconds);       /* frees what is kept for longer; bytes left, SIZE_MAX: not now */
void ps_pool_forked(void); /* in a child process: nobody else is inside */

/* ---- metadata: Thrift compact protocol --------------------------------------------------- */
/* Records are structs of int64_t only, so that they cross to Python as one flat int64 buffer.
 * Byte strings are (offset, length) into the input. Anything optional may be PS_ABSENT. */

typedef struct ps_schema_element {
    int64_t type;        /* parquet Type, absent for a group */
    int64_t type_length; /* FIXED_LEN_BYTE_ARRAY width */
    int64_t repetition;  /* 0 required, 1 optional, 2 repeated; absent for the root */
    int64_t name_offset, name_length;
    int64_t num_children;
    int64_t converted_type, scale, precision, field_id;
    int64_t
        logical; /* field id of the LogicalType union, 0 = a member unknown to us, absent = none */
    /* DECIMAL scale, precision | TIME, TIMESTAMP is_utc, unit (1 ms, 2 us, 3 ns; 0 unknown) |
     * INTEGER bit width, is_signed | VARIANT version | GEOMETRY, GEOGRAPHY crs offset, crs length, algorithm */
    int64_t logical_a, logical_b, logical_c;
} ps_schema_element;

typedef struct ps_row_group {
    int64_t offset; /* byte of the RowGroup struct in the footer */
    int64_t length; /* its bytes */
    int64_t num_rows, total_byte_size, total_compressed_size, file_offset, ordinal;
    int64_t sorting_offset; /* byte of the sorting_columns list, or absent */
} ps_row_group;

typedef struct ps_footer {
    ps_arena arena;
    int64_t version, num_rows;
    int64_t created_by_offset, created_by_length;
    int64_t encryption; /* field id of EncryptionAlgorithm, absent = plaintext */
    size_t n_schema;
    ps_schema_element *schema;
    size_t n_leaves; /* schema elements without children */
    size_t n_row_groups;
    ps_row_group *row_groups;
    uint64_t *chunk_offsets; /* [n_row_groups][n_leaves]: byte of each ColumnChunk struct */
    size_t n_key_values;
    int64_t
        *key_values; /* 4 each: key offset, length, value offset, length (absent = no value) */
    size_t n_column_orders;
    int64_t *column_orders; /* field id of the ColumnOrder union; 0 = a member unknown to us */
} ps_footer;

/* One pass over a FileMetaData struct at data[0..length): schema and row groups are decoded, column
 * chunks are only walked, and their bytes recorded. A row group whose chunk count is not n_leaves is
 * PS_CORRUPT. Depth, counts and arena are limited by what `length` bytes can hold and by max_arena. */
ps_status ps_footer_read(const uint8_t *data, size_t length, size_t max_arena, ps_footer *out,
                         ps_error *err);
void ps_footer_clear(ps_footer *footer);

/* The statistics of a chunk or of a page header. Byte strings: (offset, length) into the input. */
typedef struct ps_statistics {
    int64_t present;
    int64_t max_offset, max_length, min_offset,
        min_length; /* deprecated pair, fields 1 and 2 */
    int64_t null_count, distinct_count;
    int64_t max_value_offset, max_value_length, min_value_offset, min_value_length;
    int64_t is_max_exact, is_min_exact, nan_count;
} ps_statistics;

typedef struct ps_chunk {
    int64_t end; /* byte after the ColumnChunk struct */
    int64_t file_path_offset, file_path_length, file_offset;
    int64_t has_metadata; /* 0: only encrypted metadata, or none */
    int64_t crypto;       /* field id of ColumnCryptoMetaData, absent = plaintext */
    int64_t offset_index_offset, offset_index_length, column_index_offset, column_index_length;
    int64_t type, codec, num_values, total_uncompressed_size, total_compressed_size;
    int64_t data_page_offset, index_page_offset, dictionary_page_offset;
    int64_t bloom_filter_offset, bloom_filter_length;
    int64_t encodings;      /* bit e set: encoding e is listed (e < 62; bit 62: another) */
    int64_t encoding_stats; /* 1 when encoding_stats is there */
    int64_t dictionary_data_pages,
        other_data_pages;      /* its data page counts, dictionary-encoded and not */
    int64_t key_values_offset; /* byte of the chunk's key_value_metadata list, or absent */
    ps_statistics statistics;
} ps_chunk;

/* n chunks whose structs begin at `at[i]`. *failed is the index of the bad one. */
ps_status ps_chunks_read(const uint8_t *data, size_t length, const uint64_t *at, size_t n,
                         ps_chunk *out, size_t *failed, ps_error *err);
/* What statistics say of n chunks. `places`: n each of offset and length of min, then of max, absent in all
 * four where a chunk has not both bounds. `ordered`: min_value and max_value may be used, `deprecated`: min
 * and max may, where those are not there. Counts that are not there are -1. False: no chunk has statistics. */
bool ps_chunks_bounds(const ps_chunk *chunks, size_t n, bool ordered, bool deprecated,
                      int64_t *places, int64_t *null_counts, int64_t *nan_counts);

/* What footers share that ps_footers_read reads together: the bytes up to the end of the last name of the
 * schema, its records, ColumnOrders as ps_footer has them, and created_by, which is NULL where they have none.
 * `keys`: of the key-value pairs whose values are wanted. */
typedef struct ps_alike {
    const uint8_t *names, *created_by;
    const void *schema, *orders;
    size_t names_length, created_by_length, schema_size, orders_size;
    const char *const *keys;
    size_t n_keys;
} ps_alike;
/* Reads n footers, the i-th of at[2 i + 1] bytes at data[at[2 i]], as ps_footer_read and ps_chunks_read do.
 * groups[i]: the number of its row groups, or -1 where it has to be read by itself: it is damaged, encrypted,
 * counts other rows than its row groups have, has more than `most` of these, or is not `like` the others. If not,
 * stored[i][k][0] and [1] are place in `data` and length of the value of the first pair with keys[k], or absent.
 * rows[g], and the chunks[g][k] of the `leaves`, are those of row group g through all footers; byte strings of
 * chunks are places in `data`. It stops before a footer for whose row groups there is no room behind those
 * before: rows and chunks are for `most`. *done is how many it has looked at. */
ps_status ps_footers_read(const uint8_t *data, size_t length, const uint64_t *at, size_t n,
                          const ps_alike *like, const uint64_t *leaves, size_t n_leaves,
                          size_t max_arena, size_t most, size_t *done, int64_t *groups,
                          int64_t *stored, int64_t *rows, ps_chunk *chunks, ps_error *err);

typedef struct ps_column_index {
    ps_arena arena;
    size_t n_pages;
    int64_t boundary_order; /* 0 unordered, 1 ascending, 2 descending */
    uint8_t *null_pages;    /* n_pages bytes, 0 or 1 */
    int64_t *min_offset, *min_length, *max_offset, *max_length; /* n_pages each */
    int64_t *null_counts, *nan_counts; /* n_pages, or NULL when absent */
} ps_column_index;
/* Lists of different lengths, an unknown boundary order or a negative count are PS_CORRUPT. */
ps_status ps_column_index_read(const uint8_t *data, size_t length, size_t max_arena,
                               ps_column_index *out, ps_error *err);
/* Do its null pages and counts fit pages that begin at first_row[0..n_pages), before row first_row[n_pages]?
 * `required`: the column has no nulls. PS_CORRUPT if not. `places` as of ps_chunks_bounds, absent for null
 * pages, and for all where the order is not `trusted`; `counts`: the rows of each page. */
ps_status ps_column_index_check(const ps_column_index *index, const int64_t *first_row,
                                size_t n_pages, bool required, bool trusted, int64_t *places,
                                int64_t *counts, ps_error *err);
void ps_column_index_clear(ps_column_index *index);

typedef struct ps_offset_index {
    ps_arena arena;
    size_t n_pages;
    int64_t *offset, *compressed_size, *first_row; /* n_pages each */
    int64_t *unencoded_bytes;                      /* n_pages, or NULL when absent */
} ps_offset_index;
/* The checksum with which an attached ColumnIndex or OffsetIndex ends (docs/format.md): a field, XXH64 of all bytes before
 * it XOR the first byte of the chunk, the stop. */
enum { PS_SUM_FIELD = 21, PS_SUM_END = PS_SUM_FIELD + 8 + 1 };
extern const uint8_t ps_sum_field[PS_SUM_FIELD];
typedef enum ps_sum { PS_SUM_NONE, PS_SUM_FITS, PS_SUM_DIFFERS } ps_sum;
ps_sum ps_sum_check(const uint8_t *data, size_t length, uint64_t chunk_start);

/* Structure only: whether the locations make sense is ps_offset_index_check's question. */
ps_status ps_offset_index_read(const uint8_t *data, size_t length, size_t max_arena,
                               ps_offset_index *out, ps_error *err);
/* first_row[0] = 0, strictly increasing or equal only for empty pages, < num_rows; offsets increasing,
 * not overlapping, inside [chunk_start, chunk_end). PS_CORRUPT with the page named otherwise. */
ps_status ps_offset_index_check(const ps_offset_index *index, int64_t num_rows,
                                int64_t chunk_start, int64_t chunk_end, ps_error *err);
void ps_offset_index_clear(ps_offset_index *index);

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
/* PS_TRUNCATED when `length` ends inside the header: the caller may come again with more bytes.
 * Negative sizes and counts, and a data or dictionary page without its own header, are PS_CORRUPT. */
ps_status ps_page_header_read(const uint8_t *data, size_t length, ps_page_header *out,
                              ps_error *err);

/* ---- values: one representation for rows, dictionaries and bounds -------------------------- */

typedef enum ps_kind {              /* Arrow layouts, little endian */
                       PS_BOOL = 0, /* bitmap, least significant bit first */
                       PS_I8,
                       PS_I16,
                       PS_I32,
                       PS_I64,
                       PS_U8,
                       PS_U16,
                       PS_U32,
                       PS_U64,
                       PS_F16,
                       PS_F32,
                       PS_F64,
                       PS_D128,
                       PS_D256,  /* two's complement integers of 16 and 32 bytes */
                       PS_BYTES, /* int32 offsets (n + 1) and data; unsigned bytewise order */
                       PS_LARGE_BYTES, /* int64 offsets */
                       PS_FIXED        /* `width` bytes each, unsigned bytewise order */
} ps_kind;

typedef struct ps_values {
    int32_t kind;  /* ps_kind */
    int32_t width; /* PS_FIXED: bytes of a value */
    int64_t n;
    const uint8_t *validity; /* bitmap of n bits, 1 = valid; NULL = all valid */
    const uint8_t *values;   /* values, or the data of byte strings */
    size_t values_size;      /* bytes readable at values */
    const void *offsets;     /* PS_BYTES, PS_LARGE_BYTES */
} ps_values;

typedef enum ps_op {
    PS_EQ,
    PS_NE,
    PS_LT,
    PS_LE,
    PS_GT,
    PS_GE,
    PS_IN,     /* literals sorted and distinct by ps_literals_sort */
    PS_PREFIX, /* byte strings that start with the literal, or with one of several: sorted, and none
                * of them starts with another */
    PS_IS_NULL,
    PS_IS_NAN,
    PS_ALWAYS, /* TRUE for every value, NULL for null: what x < 300 is for an int8 column */
    PS_NEVER   /* FALSE for every value, NULL for null */
} ps_op;

typedef enum ps_nan {
    PS_NAN_IEEE = 0, /* every comparison with NaN is FALSE but != */
    PS_NAN_SPARK = 1 /* NaN = NaN, NaN above all numbers; both: -0.0 = 0.0 */
} ps_nan;

/* Sort and drop duplicates in the order of the kind (floats: NaN last, one zero, one NaN).
 * `order` receives the indices of the n literals that remain, *kept their number. */
ps_status ps_literals_sort(const ps_values *literals, int64_t *order, size_t *kept,
                           ps_error *err);

/* mask bit i = 1 where `values[i] op literals` is TRUE, or where it is FALSE when negate is set;
 * a null value gives 0 either way, except for PS_IS_NULL, which is never NULL itself.
 * mask has (n + 7) / 8 bytes, tail bits zero. *count receives the number of ones. */
ps_status ps_compare(const ps_values *values, ps_op op, bool negate, const ps_values *literals,
                     ps_nan nan, uint8_t *mask, int64_t *count, ps_error *err);

/* A list of IN that is asked many times. Its literals are checked once; with a table, made in memory
 * of the caller's, the time of a test does not grow with the list. */
typedef struct ps_in {
    ps_values literals; /* as for PS_IN; they and the table outlive this */
    int64_t n;          /* without a trailing NaN */
    int32_t form;       /* internal, as what follows */
    int32_t filter_shift, table_shift;
    uint64_t low, span;
    size_t slots;
    const uint8_t *bits, *table;
} ps_in;
/* A list without a table. PS_INVALID where the literals are not sorted and distinct. */
ps_status ps_in_open(const ps_values *literals, ps_in *out, ps_error *err);
/* Bytes of a table, at most 24 a literal (or some kilobytes); 0 where none would help. */
size_t ps_in_room(ps_in *in);
/* Make the table in as many bytes, of any alignment. A list whose hashes collide stays without. */
void ps_in_build(ps_in *in, void *room);
/* ps_compare for PS_IN. Reads `in` only, so that threads may share it. */
ps_status ps_compare_in(const ps_values *values, bool negate, const ps_in *in, ps_nan nan,
                        uint8_t *mask, int64_t *count, ps_error *err);

/* The same of dictionary-coded values: passes[c] is 1 where the entry of code c passes; it has
 * entries + 1 bytes, the last of them 0, which stands for every code that is no entry. A null (validity
 * may be NULL, else begins at bit 0) gives 0. */
void ps_codes_mask(const int32_t *codes, const uint8_t *validity, int64_t n,
                   const uint8_t *passes, uint32_t entries, uint8_t *mask, int64_t *count);

/* ---- search ------------------------------------------------------------------------------ */

/* First index whose value is >= (lower) or > (upper) the literal, in an ascending array without nulls
 * or NaN. Branch-free inner loop. */
ps_status ps_lower_bound(const ps_values *sorted, const ps_values *literal, int64_t *out,
                         ps_error *err);
ps_status ps_upper_bound(const ps_values *sorted, const ps_values *literal, int64_t *out,
                         ps_error *err);

/* Zones: row groups of a file or pages of a chunk, with what is known of each. */
#define PS_MAY_TRUE  1
#define PS_MAY_FALSE 2
#define PS_MAY_NULL  4
typedef struct ps_zones {
    size_t n;
    ps_values lower, upper;     /* n values each; read only where known[i] */
    const uint8_t *known;       /* n bytes: 1 = both bounds may be trusted */
    const uint8_t *all_null;    /* n bytes or NULL: 1 = a null page */
    const int64_t *null_counts; /* n or NULL; negative = unknown */
    const int64_t *nan_counts;  /* n or NULL; negative = unknown; floats only */
    const int64_t *counts;      /* n or NULL; rows in the zone; negative = unknown */
    int32_t order;              /* what ps_zones_order verified: 0, 1 ascending, 2 descending */
    const int64_t *nearest; /* n, as ps_zones_nearest has it, or NULL: it is sought each time */
} ps_zones;

/* Is the claimed order true? Checked over the known zones; *order = claimed if so and if every zone
 * that is not known is all_null, else 0. NaN bounds or lower > upper clear `known` of that zone. */
ps_status ps_zones_order(ps_zones *zones, uint8_t *known, int32_t claimed, int32_t *order,
                         ps_error *err);

/* Of each zone the last one up to it whose bounds count, or -1: so that a search among many zones without bounds need
 * not walk over them. False, and nothing written, where every zone has bounds: then it needs no such table. */
bool ps_zones_nearest(const ps_zones *zones, int64_t *nearest);

/* The first zone that lies wholly outside of zone i of others, which all of them are said to be parts of; SIZE_MAX
 * where none does. Shortened bounds only reach further. Both have gone through ps_zones_order. */
size_t ps_zones_astray(const ps_zones *zones, const ps_zones *whole, size_t i);

/* verdict[i] = the set of PS_MAY_* that some row of zone i may have for the predicate: a proof by
 * omission. Ordered zones are searched, others are tested one by one. */
ps_status ps_zones_probe(const ps_zones *zones, ps_op op, const ps_values *literals, ps_nan nan,
                         uint8_t *verdict, ps_error *err);
/* Likewise for IN, by a list that is open: its literals are not checked again. */
ps_status ps_zones_probe_in(const ps_zones *zones, const ps_in *in, ps_nan nan,
                            uint8_t *verdict, ps_error *err);

/* ---- selection --------------------------------------------------------------------------- */

typedef struct ps_range {
    int64_t start, stop; /* half-open */
} ps_range;

/* Rows chosen: sorted disjoint ranges, or (bitmap != NULL) bit i for row base + i, i < length. */
typedef struct ps_selection {
    const ps_range *ranges;
    size_t n_ranges;
    const uint8_t *bitmap;
    int64_t base, length;
} ps_selection;

ps_status ps_selection_check(const ps_selection *selection,
                             ps_error *err); /* sorted, disjoint, not empty, not negative */
int64_t ps_selection_count(const ps_selection *selection);
/* Selected rows at or after `row`, as far as they are not more than `most`: at least 0. */
int64_t ps_selection_count_from(const ps_selection *selection, int64_t row, int64_t most);

/* Runs of selected rows in order. Zero-initialise, or seek first. */
typedef struct ps_run_cursor {
    size_t index; /* range, or bit */
    int64_t row;  /* rows before this one are done */
} ps_run_cursor;
/* The next maximal run at or after cursor->row, cut at `limit`; false when none begins below limit. */
bool ps_selection_next(const ps_selection *selection, ps_run_cursor *cursor, int64_t limit,
                       ps_range *run);

/* Algebra. Ranges in, ranges out: `out` has room for a->n_ranges + b->n_ranges (and, or) or
 * n_ranges + 1 (not, within [start, stop)). Bitmaps are turned into ranges by ps_selection_next
 * or handled by the bitmap forms below. */
size_t ps_ranges_and(const ps_range *a, size_t na, const ps_range *b, size_t nb, ps_range *out);
size_t ps_ranges_or(const ps_range *a, size_t na, const ps_range *b, size_t nb, ps_range *out);
size_t ps_ranges_not(const ps_range *a, size_t na, int64_t start, int64_t stop, ps_range *out);
/* Any ranges, in any order, into sorted ones that neither overlap nor touch, in place; empty ones are dropped,
 * negative rows and stop < start are PS_INVALID. From row numbers: `out` has room for n. */
ps_status ps_ranges_normalise(ps_range *ranges, size_t n, size_t *kept, ps_error *err);
ps_status ps_ranges_from_rows(const int64_t *rows, size_t n, ps_range *out, size_t *kept,
                              ps_error *err);
/* Bitmaps of the same base: into = into op other, `size` bytes. */
typedef enum ps_set_op { PS_SET_AND, PS_SET_OR, PS_SET_SUB, PS_SET_XOR } ps_set_op;
void ps_bitmap_combine(uint8_t *into, const uint8_t *other, size_t size, ps_set_op op);
/* The row after the last selected one of [start, stop), or start when there is none. */
int64_t ps_selection_end(const ps_selection *selection, int64_t start, int64_t stop);
/* The k-th selected row, counted from 0; -1 when there is none. */
int64_t ps_selection_nth(const ps_selection *selection, int64_t k);
/* Number of runs a selection has, and the runs themselves (room for that many). */
size_t ps_selection_runs(const ps_selection *selection);
void ps_selection_to_ranges(const ps_selection *selection, ps_range *out);
/* bit i of bitmap (length bits, (length + 7) / 8 bytes, overwritten) = row base + i is selected */
void ps_selection_to_bitmap(const ps_selection *selection, int64_t base, int64_t length,
                            uint8_t *bitmap);
/* Keep the k-th selected row where bit k of mask is set; the result as ranges (two-call: out NULL
 * counts the ranges). mask has ps_selection_count bits. */
size_t ps_selection_refine(const ps_selection *selection, const uint8_t *mask, ps_range *out);
/* The same as a bitmap of [base, base + length), which no selected row lies outside of; for a selection
 * that is a bitmap, its own base and length. bitmap has (length + 7) / 8 bytes, overwritten. */
void ps_selection_refine_bits(const ps_selection *selection, const uint8_t *mask, int64_t base,
                              int64_t length, uint8_t *bitmap);
/* The rows [base, base + length) as (length + 63) / 64 words, bits behind the last row zero. *index: the
 * range from which on to look for them, moved to the first that does not end before base. */
void ps_selection_words(const ps_selection *selection, size_t *index, int64_t base,
                        int64_t length, uint64_t *words);
/* Rows of zones whose verdict has `bit`; zone i is rows first[i] .. first[i + 1] (first has n + 1). */
size_t ps_zones_to_ranges(const uint8_t *verdict, uint8_t bit, const int64_t *first, size_t n,
                          ps_range *out);
/* Pages touched: mask[i] = 1 where rows first[i] .. first[i + 1] meet the selection. */
void ps_pages_touched(const ps_selection *selection, const int64_t *first, size_t n,
                      uint8_t *mask);

/* ---- rows of an Arrow array ---------------------------------------------------------------- */

/* Rows to keep of an array of n: those whose bit is set in mask, bit `start` for the first row; or, where
 * mask is NULL, the rows at `places`, in that order. Only what ps_gather_check accepts. */
typedef struct ps_picks {
    const uint8_t *mask;
    size_t start;
    const int64_t *places;
    int64_t n, count; /* rows of the array; rows to keep */
} ps_picks;

/* PS_INVALID unless `count` of the n bits are set, or every place is a row of the array. */
ps_status ps_gather_check(const ps_picks *picks, ps_error *err);
/* Bits, to bit 0 of out on: validity, or booleans. out has (count + 7) / 8 bytes, tail bits become zero.
 * The number of ones. */
int64_t ps_gather_bits(const ps_picks *picks, const uint8_t *bits, uint8_t *out);
/* Values of `width` bytes; out has count * width bytes. */
void ps_gather_fixed(const ps_picks *picks, const uint8_t *values, size_t width, uint8_t *out);
/* Offsets of byte strings, 4 or 8 bytes each, n + 1 to count + 1 of them; the first is 0, the last *total.
 * PS_CORRUPT where those of a kept row run backwards or leave [0, size]; PS_LIMIT where the total does not
 * fit the width. */
ps_status ps_gather_offsets(const ps_picks *picks, const uint8_t *offsets, size_t width,
                            size_t size, uint8_t *out, size_t *total, ps_error *err);
/* The bytes that these offsets point to: `total` of `size`. Only after ps_gather_offsets. */
void ps_gather_strings(const ps_picks *picks, const uint8_t *offsets, size_t width,
                       const uint8_t *data, size_t size, uint8_t *out, size_t total);

/* ---- codecs ------------------------------------------------------------------------------ */

/* CRC-32 (IEEE 802.3, polynomial 0xEDB88320 reflected), as gzip and Parquet page headers use it. */
uint32_t ps_crc32(uint32_t crc, const uint8_t *data, size_t length);

/* How text is found to be UTF-8: the fastest way that this processor has, or plain C. The name of what was chosen. Once, before
 * any thread decodes. */
const char *ps_utf8_choose(bool plain);

/* Decode a raw Snappy or LZ4 block into out[0..size). With `exact` the block must yield exactly `size`
 * bytes and use all its input; without, decoding stops as soon as `size` bytes are out (a prefix).
 * Bytes beyond out[size) are never written; on failure the content of out is unspecified but was written
 * only by this call. */
ps_status ps_snappy_decode(const uint8_t *data, size_t length, uint8_t *out, size_t size,
                           bool exact, ps_error *err);
ps_status ps_lz4_decode(const uint8_t *data, size_t length, uint8_t *out, size_t size,
                        bool exact, ps_error *err);
/* Hadoop framing (be32 decompressed size, be32 compressed size, block, repeated), else one raw block. */
ps_status ps_lz4_hadoop_decode(const uint8_t *data, size_t length, uint8_t *out, size_t size,
                               bool exact, ps_error *err);

/* ---- decoding: pages and a selection in, Arrow memory out ------------------------------------ */

/* The ladder of a nested leaf: what lies between the row and the value, from the top down. The leaf's own
 * being null makes no rung: its validity says that a value is there at all. */
typedef enum ps_rung_type {
    PS_RUNG_OPTIONAL = 0, /* a nullable node: validity */
    PS_RUNG_LIST = 1      /* a repeated node: offsets */
} ps_rung_type;
typedef struct ps_rung {
    int32_t type;
    int16_t
        def_level; /* least definition level at which the node, or an element of it, is there */
    int16_t rep_level; /* PS_RUNG_LIST: the level that begins a further element */
} ps_rung;
enum { PS_MAX_LEVEL = 127 };

typedef enum ps_unit { PS_UNIT_NONE = 0, PS_UNIT_MS, PS_UNIT_US, PS_UNIT_NS } ps_unit;

typedef struct ps_leaf_spec {
    int32_t physical;    /* parquet Type */
    int32_t type_length; /* FIXED_LEN_BYTE_ARRAY width */
    int32_t kind;  /* ps_kind that comes out; see ps_convert_check for the pairs that exist */
    int32_t width; /* PS_FIXED: bytes of a value */
    int32_t unit;  /* ps_unit of an INT96 that becomes PS_I64 */
    int32_t utf8;  /* 1: byte strings must be UTF-8 */
    /* decimals: digits that a value may have; PS_I32, PS_I64: values are below it, and not negative; 0: any */
    int64_t range;
    int32_t lsb_levels; /* 1: BIT_PACKED levels begin at the low bit, as Impala wrote them */
    int32_t max_def, max_rep;
    int32_t levels_only;  /* 1: of a nested leaf the rungs alone, no value is decoded */
    int32_t n_rungs;      /* 0: flat, the leaf is a column by itself */
    const ps_rung *rungs; /* copied */
    size_t max_output;    /* bytes that each buffer of the output of one read may hold */
    int64_t
        likely_rows; /* begin makes room for so many rows, pages for more; 0: for all selected */
} ps_leaf_spec;

/* Which (physical, kind) pairs can be decoded. */
ps_status ps_convert_check(const ps_leaf_spec *spec, ps_error *err);

/* n PLAIN values, each a byte string (offset, length) into data, as bounds of an index are, to the
 * spec's kind. known[i] = 0 where the bytes cannot be such a value; its slot is zero or empty.
 * Numbers: values has n * width bytes (PS_BOOL: a bitmap). Byte strings, PS_FIXED among them: offsets n + 1,
 * of 64 bits for PS_LARGE_BYTES and else of 32, and values has room for the sum of the lengths; of PS_FIXED
 * for those that are the width. */
ps_status ps_convert_plain(const ps_leaf_spec *spec, const uint8_t *data, size_t length,
                           const int64_t *offset, const int64_t *size, int64_t n,
                           uint8_t *values, void *offsets, uint8_t *known, ps_error *err);

typedef struct ps_page {
    int32_t version; /* 1 or 2 */
    int32_t encoding, def_encoding, rep_encoding;
    int64_t num_values;    /* levels in the page */
    int64_t num_nulls;     /* V2, else -1 */
    int64_t num_rows;      /* V2, else -1 */
    int64_t first_row;     /* rows of the row group that begin before this page */
    int64_t index_rows;    /* rows that begin in it, as the offset index says; -1: not known */
    bool whole;            /* its last row does not go on in the next page */
    const uint8_t *levels; /* V2: repetition then definition levels */
    size_t rep_length, def_length; /* V2 */
    const uint8_t *body;           /* decompressed; V1: levels and values, V2: values */
    size_t length;                 /* bytes of body that are there */
    bool partial; /* body is a prefix, enough for the rows that will be taken */
} ps_page;

/* A leaf of one row group. Not shared between threads. */
typedef struct ps_leaf ps_leaf;
ps_status ps_leaf_new(const ps_leaf_spec *spec, ps_leaf **out, ps_error *err);
void ps_leaf_free(ps_leaf *leaf);

/* Bytes of which the first `have` are there: `more`, where it is not NULL, brings it to `reach` or beyond, of `size` at most. */
typedef struct ps_supply {
    const uint8_t *data;
    size_t size, have;
    ps_status (*more)(struct ps_supply *supply, size_t reach, ps_error *err);
} ps_supply;

/* A dictionary page: n PLAIN values. The bytes stay borrowed until the next dictionary or free; the one
 * before is gone even where this one is refused, and with it a page that points into it. */
ps_status ps_leaf_dictionary_fits(const ps_leaf *leaf, size_t length, int64_t n, ps_error *err);
ps_status ps_leaf_dictionary(ps_leaf *leaf, const uint8_t *data, size_t length, int64_t n,
                             ps_error *err);
/* The same of bytes that are asked for when a row is found to need them: no entry beyond is looked at. The supply, too, is
 * borrowed until then. */
ps_status ps_leaf_dictionary_from(ps_leaf *leaf, ps_supply *supply, int64_t n, ps_error *err);

/* What the next take calls fill: the selected rows from where the leaf stands, at most max_rows.
 * The selection stays borrowed until finish. hint: expected bytes of byte-string data, or of a nested leaf its
 * expected slots; or 0. */
ps_status ps_leaf_begin(ps_leaf *leaf, const ps_selection *selection, int64_t max_rows,
                        size_t hint, ps_error *err);
/* Bytes at the front of the page's body (of `size`) that its selected rows lie in, short of levels of an
 * unusual length, and of byte strings that are longer than those behind them; `size` where that is not known or
 * would spare little. */
size_t ps_leaf_reach(const ps_leaf *leaf, const ps_page *page, size_t size);
/* The next page that holds a selected row (pages between may be left out). Borrowed until the next. */
ps_status ps_leaf_page(ps_leaf *leaf, const ps_page *page, ps_error *err);
/* The page is gone: it is asked for again if more of it is wanted. An error in take does this too. */
void ps_leaf_forget(ps_leaf *leaf);
/* The rows of before are wanted no longer, and what told them may go: begin comes next. */
void ps_leaf_forget_selection(ps_leaf *leaf);
/* Give up pages, dictionary and output, and the memory made for them: it is to begin again, or to be freed. */
void ps_leaf_clear(ps_leaf *leaf);
/* The dictionary is gone, and a page that points into it. */
void ps_leaf_forget_dictionary(ps_leaf *leaf);

typedef enum ps_take {
    PS_TAKE_PAGE = 0, /* the page is used up: hand the next one */
    PS_TAKE_DONE = 1, /* the selection is used up */
    PS_TAKE_FULL =
        2 /* max_rows reached, or offsets of the kind exhausted: finish, begin, take again */
} ps_take;
ps_status ps_leaf_take(ps_leaf *leaf, ps_take *state, ps_error *err);
/* No page follows: a row that was taken does not go on. Then take again. */
void ps_leaf_end(ps_leaf *leaf);
int64_t ps_leaf_row(const ps_leaf *leaf); /* rows before this one are done */

/* The output of begin .. take, handed over: buffers belong to the caller (ps_buffer_free with the
 * capacity). validity is NULL when nothing is null. */
typedef struct ps_column {
    int64_t rows; /* of the table; of a nested leaf n counts its slots */
    int64_t n,
        null_count; /* of a list's rung: its offsets, one more than n, are all there is */
    uint8_t *validity, *values, *offsets;
    size_t validity_capacity, values_capacity, offsets_capacity; /* for ps_buffer_free */
    size_t validity_size, values_size, offsets_size;             /* bytes that mean something */
} ps_column;
ps_status ps_leaf_finish(ps_leaf *leaf, ps_column *out, ps_error *err);
/* After finish: what belongs to a rung of a nested leaf, which is handed over once. */
ps_status ps_leaf_rung(ps_leaf *leaf, int32_t rung, ps_column *out, ps_error *err);
/* Rows that begin in the page at hand. */
int64_t ps_leaf_page_rows(const ps_leaf *leaf);

/* ---- Bloom filters ----------------------------------------------------------------------- */

enum {
    PS_BLOOM_BLOCK = 32,  /* bytes */
    PS_BLOOM_WIDTH = 4096 /* bytes of a FIXED_LEN_BYTE_ARRAY that is hashed */
};

/* XXH64 with seed 0. */
uint64_t ps_xxh64(const uint8_t *data, size_t length);
/* The same of each piece of so many bytes (not 0), the last one maybe shorter, XOR the key: 8 bytes of `out` each, little
 * endian. */
void ps_xxh64_pieces(const uint8_t *data, size_t length, size_t piece, uint64_t key,
                     uint8_t *out);

/* A BloomFilterHeader; the bitset of *num_bytes, a positive multiple of a block, follows it. PS_TRUNCATED: come
 * again with more bytes. PS_UNSUPPORTED: another algorithm, hash or compression than the format has today. */
ps_status ps_bloom_header_read(const uint8_t *data, size_t length, size_t *header_length,
                               size_t *num_bytes, ps_error *err);

/* PS_UNSUPPORTED where equal values of the kind may have different PLAIN bytes, but for zeros of floats. */
ps_status ps_bloom_hashable(const ps_leaf_spec *spec, ps_error *err);
/* Hashes of the PLAIN bytes that the values have in a file: one each, both for the zeros of floats, none where the
 * physical type cannot hold it. `hashes` has room for 2 * n. NaN is PS_UNSUPPORTED. */
ps_status ps_bloom_hashes(const ps_leaf_spec *spec, const ps_values *values, uint64_t *hashes,
                          size_t *n, ps_error *err);
/* Where the block of each hash begins in the bitset of n_blocks (below 2^31) blocks. */
void ps_bloom_places(const uint64_t *hashes, size_t n, uint64_t n_blocks, uint64_t *at);
/* How many of the hashes have all their bits in the block that begins at at[i] in the data. */
ps_status ps_bloom_check(const uint8_t *data, size_t length, const uint64_t *at,
                         const uint64_t *hashes, size_t n, size_t *found, ps_error *err);

/* ---- writing metadata -------------------------------------------------------------------- */

/* What is written, in memory of ps_buffer_new. Zero-initialise and set cap; clear it also after a failure. */
typedef struct ps_writer {
    uint8_t *data;
    size_t size, room, cap;
    ps_error *err; /* internal */
} ps_writer;
void ps_writer_clear(ps_writer *writer);

enum { PS_CHUNK_PLACES = 6 };

/* What a footer is to have otherwise. */
typedef struct ps_footer_edit {
    /* of each column chunk, row group by row group: offset_index_offset, its length, column_index_offset, its length,
     * bloom_filter_offset, its length. PS_ABSENT: as it was; -1: none from now on */
    const int64_t *places;
    size_t n_chunks;
    const uint8_t *text; /* what keys and values lie in */
    size_t text_length;
    const int64_t *dropped; /* keys that go, every pair of them: offset and length */
    size_t n_dropped;
    const int64_t *added; /* pairs that come: offset and length of key, of value */
    size_t n_added;
    /* leaves that are given TYPE_ORDER where the footer has no column_orders; 0: none; -1: column_orders go */
    int64_t n_orders;
} ps_footer_edit;
/* FileMetaData at data[0..length) with the edit made; all else is copied as it is, fields unknown to us too, and
 * bytes behind the struct are left out. PS_UNSUPPORTED: a chunk whose metadata is encrypted. */
ps_status ps_footer_edited(const uint8_t *data, size_t length, const ps_footer_edit *edit,
                           ps_writer *out, ps_error *err);

ps_status ps_offset_index_write(size_t n, const int64_t *offset, const int64_t *size,
                                const int64_t *first_row, ps_writer *out, ps_error *err);

/* Page i has its bounds at text[least[i]..least[i + 1]) and text[most[i]..most[i + 1]), of no bytes for a null page. */
typedef struct ps_page_bounds {
    size_t n;
    const uint8_t *null_pages, *text;
    size_t text_length;
    const int64_t *least, *most; /* n + 1 each */
    int64_t boundary_order;
    const int64_t *null_counts, *nan_counts; /* n each, or NULL */
} ps_page_bounds;
ps_status ps_column_index_write(const ps_page_bounds *bounds, ps_writer *out, ps_error *err);
ps_status ps_bloom_header_write(size_t num_bytes, ps_writer *out, ps_error *err);

/* ---- building indexes -------------------------------------------------------------------- */

typedef struct ps_extremes {
    int64_t nulls, nans;
    int64_t least, most; /* places of the values; -1 where all are null or NaN */
} ps_extremes;
/* In the order of the kind. `decimal`: of byte strings that are two's complement, the high byte first. */
ps_status ps_extremes_of(const ps_values *values, bool decimal, ps_extremes *out,
                         ps_error *err);

/* One hash for each value but nulls, whose bytes are those of the file, PLAIN: `hashes` has room for all. */
ps_status ps_bloom_plain_hashes(const ps_values *values, uint64_t *hashes, size_t *n,
                                ps_error *err);
/* Insert values whose bytes are those of the file, PLAIN, but nulls. The filter has n_blocks, 1 to 2^31 - 1. */
ps_status ps_bloom_insert(const ps_values *values, uint8_t *filter, size_t n_blocks,
                          ps_error *err);
/* The chance that a value which was not inserted is found all the same. */
double ps_bloom_rate(const uint8_t *filter, size_t n_blocks);
/* Halve a filter, whose blocks are an even number, in place: it is then the one that half as many would have given. */
void ps_bloom_fold(uint8_t *filter, size_t n_blocks);

#include "embedded.h" /* indexes of pageseek's own */

#endif
