/* ps_writing.h - metadata written and indexes built. Part of pageseek.h. */
#ifndef PAGESEEK_PS_WRITING_H
#define PAGESEEK_PS_WRITING_H

#include "ps_values.h"

/* ---- metadata ---------------------------------------------------------------------------- */

/* Bytes that are written. The caller sets all to zero, then `cap`, the most bytes that it may hold (PS_LIMIT), and
 * clears it, also after a failure. `data` is memory of ps_buffer_new, and belongs to the writer. */
typedef struct ps_writer {
    uint8_t *data;
    size_t size, capacity, cap;
    ps_error *err; /* internal */
} ps_writer;
/* Frees the bytes. The writer can be used again. */
void ps_writer_clear(ps_writer *writer);

enum { PS_CHUNK_PLACES = 6 };

/* The changes to make in a footer. Everything is borrowed. */
typedef struct ps_footer_edit {
    /* PS_CHUNK_PLACES for each column chunk, row group by row group: offset and length of the offset index, of the
     * column index, of the Bloom filter. PS_ABSENT keeps a place, -1 removes it */
    const int64_t *places;
    size_t n_chunks;
    const uint8_t *text; /* keys and values below are offset and length in it */
    size_t text_length;
    const int64_t *dropped; /* keys whose pairs are removed: offset and length */
    size_t n_dropped;
    const int64_t
        *added; /* pairs that are added: offset and length of the key, then of the value */
    size_t n_added;
    /* leaves that get TYPE_ORDER where the footer has no column_orders; 0: none; -1: column_orders are removed */
    int64_t n_orders;
} ps_footer_edit;
/* Writes the FileMetaData at data[0..length) with the changes made. Everything else is copied as it is, unknown fields
 * too. Bytes behind the struct are left out. PS_UNSUPPORTED: a chunk with encrypted metadata. */
ps_status ps_footer_edited(const uint8_t *data, size_t length, const ps_footer_edit *edit,
                           ps_writer *out, ps_error *err);

/* Writes an OffsetIndex of n pages. */
ps_status ps_offset_index_write(size_t n, const int64_t *offset, const int64_t *size,
                                const int64_t *first_row, ps_writer *out, ps_error *err);

/* Bounds of n pages. Page i has its bounds at text[least[i]..least[i + 1]) and text[most[i]..most[i + 1]); a null page has
 * no bytes. Borrowed. */
typedef struct ps_page_bounds {
    size_t n;
    const uint8_t *null_pages, *text;
    size_t text_length;
    const int64_t *least, *most; /* n + 1 each */
    int64_t boundary_order;
    const int64_t *null_counts, *nan_counts; /* n each, or NULL */
} ps_page_bounds;
/* Writes a ColumnIndex. */
ps_status ps_column_index_write(const ps_page_bounds *bounds, ps_writer *out, ps_error *err);
/* Writes a BloomFilterHeader of a bitset of num_bytes. */
ps_status ps_bloom_header_write(size_t num_bytes, ps_writer *out, ps_error *err);

/* ---- indexes ----------------------------------------------------------------------------- */

typedef struct ps_extremes {
    int64_t nulls, nans; /* how many */
    int64_t least, most; /* indices of the values; -1 where all are null or NaN */
} ps_extremes;
/* The extremes in the order of the kind. `decimal`: byte strings are two's complement integers, the high byte first. */
ps_status ps_extremes_of(const ps_values *values, bool decimal, ps_extremes *out,
                         ps_error *err);

/* Hashes each value that is not null. The bytes of the values are those of the file, PLAIN. `hashes` has space for one
 * for each value; *n receives their number. */
ps_status ps_bloom_plain_hashes(const ps_values *values, uint64_t *hashes, size_t *n,
                                ps_error *err);
/* Inserts each value that is not null, with the bytes of the file. The filter has n_blocks blocks, 1 to 2^31 - 1. */
ps_status ps_bloom_insert(const ps_values *values, uint8_t *filter, size_t n_blocks,
                          ps_error *err);
/* The probability that a value which was not inserted is found. */
double ps_bloom_rate(const uint8_t *filter, size_t n_blocks);
/* Halves a filter of an even number of blocks in place. The result is the filter that half as many blocks would have
 * given. */
void ps_bloom_fold(uint8_t *filter, size_t n_blocks);

#endif
