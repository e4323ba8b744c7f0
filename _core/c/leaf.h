/* leaf.h - the state of a leaf decoder, and the functions by which its files call each other. Internal.
 *
 * Calls go down this list only:
 *
 *   leaf        the functions of ps_leaf.h; the walk over the pages of a flat leaf by a selection
 *   nest        this walk for a nested leaf (nest.h has its own list)
 *   block       scattered rows of a flat leaf
 *   append      values of the page into the output, by its encoding
 *   dictionary, plain, booleans, delta_numbers, delta_strings, stream_split: encodings, behind the table ps_encoding
 *   levels      the levels of a page
 *   views       byte strings as views
 *   filter      rows of the output that pass tests
 *   output      buffers of the output, checks, hand-over
 *
 * Each part of the state has an owner. Only the owner changes it, with these exceptions:
 *
 *   part        owner       exceptions
 *   dictionary  dictionary
 *   page        leaf        levels and nest_page find the section of values and the numbers of rows and values; an
 *                           encoding moves `place` and `last`; runs and blocks move `row` and `value`; a new dictionary
 *                           drops a page that used the old one
 *   rows        leaf        nest does the same for a nested leaf; a block sets `evaluated`
 *   out         output      leaf begins it and counts rows and nulls, as blocks and nest do; encodings fill its buffers;
 *                           filter takes rows out of it
 *   flat        levels
 *   filter      filter      encodings fill its slices
 *   nest        nest        nest.h says which of its files */
#ifndef PAGESEEK_LEAF_H
#define PAGESEEK_LEAF_H

#include "bits.h"
#include "compact.h"
#include "convert.h"
#include "delta.h"
#include "rle.h"

enum { /* parquet.thrift Encoding */
       PQ_PLAIN = 0,
       PQ_PLAIN_DICTIONARY = 2,
       PQ_RLE = 3,
       PQ_BIT_PACKED = 4,
       PQ_DELTA_BINARY_PACKED = 5,
       PQ_DELTA_LENGTH_BYTE_ARRAY = 6,
       PQ_DELTA_BYTE_ARRAY = 7,
       PQ_RLE_DICTIONARY = 8,
       PQ_BYTE_STREAM_SPLIT = 9,
       PQ_ALP = 10
};

typedef struct ps_grow { /* an output buffer */
    uint8_t *data;
    size_t size, capacity;
} ps_grow;

typedef struct ps_dictionary {
    bool loaded;
    bool
        checked; /* its strings are UTF-8, or need not be; its numbers are in the range of their type */
    bool direct; /* entries of fixed width are taken, and converted, from where they lie */
    uint32_t n, ready; /* entries; those that can be taken */
    ps_reader *reader; /* borrowed, or `whole` */
    ps_reader whole;
    size_t at;      /* byte strings: where the next entry lies */
    ps_grow slices; /* byte strings: ps_slice[n] */
    ps_grow
        values; /* views of byte strings; else, unless direct: n converted values; none of PS_BOOL */
    const uint8_t *passes; /* PS_BOOL: a byte for each entry */
    bool has_long;         /* views: one of the ready entries is longer than PS_VIEW_SHORT */
    bool placed;           /* views: of such an entry, some bytes are in the output */
} ps_dictionary;

/* How far the values of a page are read, besides page.value: a copy of it is a way back. */
typedef struct ps_place {
    const uint8_t *at; /* byte strings: the next one, or its bytes that are not shared */
    ps_rle codes;      /* dictionary codes, or RLE booleans */
    ps_delta numbers;  /* DELTA_BINARY_PACKED values; lengths of byte strings */
    ps_delta prefixes; /* DELTA_BYTE_ARRAY: bytes shared with the string before */
} ps_place;

typedef struct ps_encoding ps_encoding;
typedef struct ps_nest ps_nest;

/* The page, and how far it is read. Of a nested leaf, its rows are those that begin in it. */
typedef struct ps_leaf_page_state {
    bool present;
    ps_page given;
    const ps_encoding *encoding;
    int64_t n_rows, row;     /* rows in the page, rows of it that are done */
    int64_t n_values, value; /* values (not nulls) in the page, those that are done */
    const uint8_t *values;   /* the section of values, in given.body */
    size_t values_length;
    ps_place place;
    ps_grow last;      /* DELTA_BYTE_ARRAY: the value that was read or skipped last */
    int64_t scan_rows; /* rows whose text is checked together */
} ps_leaf_page_state;

/* What the levels of a page say, where the leaf is flat. */
typedef struct ps_flat {
    bool has_nulls;
    ps_grow validity; /* a bit for each row of the page, where has_nulls */
} ps_flat;

/* The selection, and where the leaf stands in it. */
typedef struct ps_leaf_rows {
    ps_selection selection; /* borrowed */
    ps_run_cursor runs;
    ps_range run;      /* what is left of the run before the cursor; empty: look for the next */
    int64_t next;      /* rows of the row group before this one are done */
    int64_t evaluated; /* up to this row runs are read one by one, without trying a block */
} ps_leaf_rows;

/* Tests that rows of the output have to pass. */
typedef struct ps_filter {
    const ps_row_test *tests; /* borrowed */
    size_t n;                 /* none: every row stays */
    bool keeps;
    int64_t rows, passed; /* that were tested; of these */
    ps_grow mask;
    ps_grow scratch, taken; /* of the rows at hand: bitmaps, and values that pass */
    ps_grow slices; /* of the rows at hand, where strings are tested in the page: ps_slice[] */
} ps_filter;

/* The output, from begin to finish. Of a nested leaf, `rows` counts its slots. */
typedef struct ps_leaf_output {
    bool begun;
    bool unchecked;       /* bytes behind the rows `scanned` may not be UTF-8 */
    bool faulty;          /* bytes before them are not UTF-8 */
    bool unranged;        /* numbers may be out of the range of their type */
    int64_t scanned;      /* rows whose text was checked */
    size_t scanned_bytes; /* views: bytes of long strings that were checked with them */
    int64_t rows, max_rows, null_count;
    int64_t capacity;        /* rows that fit; it grows with the pages that come */
    ps_grow validity;        /* empty until a null is seen */
    ps_grow values, offsets; /* views lie where offsets do */
} ps_leaf_output;

struct ps_leaf {
    ps_leaf_spec spec;
    size_t in_width;  /* bytes of a PLAIN value; 0: bits or byte strings */
    size_t out_width; /* bytes of an output value; 0: bits or byte strings */
    bool bytes;       /* the output has offsets, or views */
    bool views;
    bool copies; /* a PLAIN value and an output value are the same bytes */
    ps_dictionary dictionary;
    ps_leaf_page_state page;
    ps_leaf_rows rows;
    ps_leaf_output out;
    ps_filter filter;
    ps_flat flat;  /* one of these two is used */
    ps_nest *nest; /* NULL: flat */
};

/* ---- output.c ---------------------------------------------------------------------------- */

/* At least `size` bytes in the buffer, and what it holds kept; PS_LIMIT beyond `limit`. Growth is geometric. */
ps_status ps_grow_reserve(ps_grow *grow, size_t size, size_t limit, ps_error *err);
/* Frees the buffer. */
void ps_grow_drop(ps_grow *grow);
/* Gives the buffer away, its first `size` bytes copied into a smaller one where it is less than half full. */
ps_status ps_grow_give(ps_grow *grow, size_t size, uint8_t **data, size_t *capacity,
                       ps_error *err);

/* ps_grow_reserve with the limit of the leaf, max_output. */
ps_status ps_output_grow(const ps_leaf *leaf, ps_grow *grow, size_t size, ps_error *err);
/* Space for `size` bytes of byte strings, those of the first `rows` rows of the output: and for rows to come, as if they
 * were like these, but never more than a small multiple of `size`: a few long strings do not stand for all. */
ps_status ps_output_grow_strings(ps_leaf *leaf, int64_t rows, size_t size, ps_error *err);
/* Space for `rows` rows in all. A claim of a file takes no memory before pages stand for it. */
ps_status ps_output_reserve(ps_leaf *leaf, int64_t rows, ps_error *err);

/* Appends the validity of `rows` rows, n of them valid: bits from bit `at`, which are read only where n < rows. */
ps_status ps_output_add_validity(ps_leaf *leaf, const uint8_t *bits, size_t at, int64_t rows,
                                 int64_t n, ps_error *err);
/* Appends n byte strings, which lie before `end`. *fit is false, and nothing is done, where offsets would overflow. */
ps_status ps_output_add_strings(ps_leaf *leaf, const uint8_t *const *at, const uint32_t *length,
                                size_t n, const uint8_t *end, bool *fit, ps_error *err);
/* Checks the text of rows that were not checked yet. A fault is recorded, and named by ps_output_check. */
void ps_output_check_text(ps_leaf *leaf);
/* PS_CORRUPT where a value is not UTF-8 though it must be, or is out of the range of its type. */
ps_status ps_output_check(ps_leaf *leaf, ps_error *err);
/* Hands the output over. After a failure some of it is gone. */
ps_status ps_output_give(ps_leaf *leaf, ps_column *out, ps_error *err);

/* ---- filter.c ---------------------------------------------------------------------------- */

/* Forgets the tests, and frees the mask. */
void ps_filter_drop(ps_filter *filter);
/* Space for the slices of `rows` rows. */
ps_status ps_filter_reserve(ps_leaf *leaf, int64_t rows, ps_error *err);
/* Tests the rows of the output that were not tested yet, and leaves those that pass. */
ps_status ps_filter_rows(ps_leaf *leaf, ps_error *err);

/* ---- views.c ----------------------------------------------------------------------------- */

enum {
    PS_VIEW_SHORT = 12, /* bytes of the longest string that lies in its view */
    PS_VIEW_BITS = 30 /* a data buffer begins every 2^30 bytes, as places in it have 31 bits */
};
#define PS_VIEW_ABSENT                                                                         \
    UINT32_MAX /* in place of the data buffer: the bytes are not in the output */

/* Makes a view of one string that is read from `from`, where from_space bytes lie. */
ps_status ps_views_put(ps_leaf *leaf, uint8_t *view, const uint8_t *from, size_t from_space,
                       size_t length, ps_error *err);
/* Reads n PLAIN strings behind `dense` ones. */
ps_status ps_views_read_plain(ps_leaf *leaf, int64_t dense, int64_t n, ps_error *err);
/* Makes the view of an entry of a dictionary, whose bytes come into the output when it is first gathered. */
void ps_views_entry(uint8_t *view, const uint8_t *from, size_t length);
/* Takes the views of n entries that are ready. */
ps_status ps_views_gather(ps_leaf *leaf, const uint32_t *codes, uint8_t *out, size_t n,
                          ps_error *err);
/* An output begins, and no entry has bytes in it. */
void ps_views_forget_places(ps_dictionary *dictionary);
/* The bytes of row i of the output. */
const uint8_t *ps_views_bytes(const ps_leaf *leaf, int64_t i, size_t *length);
/* Whether n rows, and all bytes of long strings that were not checked, are UTF-8. */
bool ps_views_valid(const ps_leaf *leaf, int64_t from, int64_t n);

/* ---- levels.c ---------------------------------------------------------------------------- */

/* The bytes of the levels of a page. */
typedef struct ps_level_part {
    const uint8_t *data;
    size_t length;
    int32_t encoding;
} ps_level_part;
/* Splits the body of the page into levels and values. */
ps_status ps_levels_split(ps_leaf *leaf, ps_level_part *rep, ps_level_part *def, ps_error *err);
/* Reads the levels of a flat leaf. */
ps_status ps_leaf_levels(ps_leaf *leaf, ps_error *err);
/* Reads n levels of at most `max`, a byte each. */
ps_status ps_levels_read(const ps_leaf *leaf, const ps_level_part *part, int max, uint8_t *out,
                         size_t n, ps_error *err);

/* ---- nest.c, nest_page.c: the steps of a nested leaf ------------------------------------- */

ps_status ps_nest_new(const ps_leaf_spec *spec, ps_nest **out, ps_error *err);
void ps_nest_free(ps_nest *nest);
void ps_nest_drop_output(ps_nest *nest);
void ps_nest_clear(ps_nest *nest);
/* `expected` rows, and `slots` slots below a list, are likely. */
ps_status ps_nest_begin(ps_leaf *leaf, int64_t max_rows, int64_t expected, size_t slots,
                        ps_error *err);
ps_status ps_nest_page(ps_leaf *leaf, ps_error *err);
ps_status ps_nest_take(ps_leaf *leaf, ps_take *state, ps_error *err);
void ps_nest_end(ps_nest *nest);
/* Rows in the output. */
int64_t ps_nest_rows(const ps_nest *nest);
ps_status ps_nest_output(ps_nest *nest, int32_t level, ps_column *out, ps_error *err);

/* ---- block.c: a page in blocks of rows, where few runs are long -------------------------- */

enum { PS_BLOCK = 1024, PS_BLOCK_WORDS = PS_BLOCK / 64 }; /* rows of a block */

typedef struct ps_block {
    size_t rows, chosen;  /* rows up to the last chosen one; chosen ones */
    size_t values, kept;  /* values of these rows that are not null; those of chosen rows */
    const uint64_t *mask; /* a bit for each of the values: its row is chosen */
    size_t end;           /* values up to the last kept one */
} ps_block;

/* Takes a block of rows from `start`, where the leaf stands and which is chosen, to `stop` at most. *rows is 0, and
 * nothing is done, where reading run by run up to rows.evaluated is cheaper. */
ps_status ps_block_take(ps_leaf *leaf, int64_t start, int64_t stop, int64_t *rows,
                        ps_error *err);

/* ---- encodings --------------------------------------------------------------------------- */

/* The operations of an encoding on the page. Each call moves leaf->page.place behind its n values, or those of the
 * block; the caller moves leaf->page.value. An operation is NULL where no output of such values needs it. */
struct ps_encoding {
    /* rows of a block that cost as much as a run, by measurement; and where there are nulls */
    uint32_t rows_per_run, rows_per_run_nulls;
    ps_status (*open)(ps_leaf *leaf, ps_error *err);
    ps_status (*skip)(ps_leaf *leaf, int64_t n, ps_error *err);

    /* n values: of fixed width; bits, to out_bit of the bitmap; byte strings, after the `dense` ones that the
     * offsets hold already, *done < n where offsets would overflow */
    ps_status (*read)(ps_leaf *leaf, uint8_t *out, int64_t n, ps_error *err);
    ps_status (*read_bits)(ps_leaf *leaf, uint8_t *out, size_t out_bit, int64_t n,
                           ps_error *err);
    ps_status (*read_strings)(ps_leaf *leaf, int64_t dense, int64_t n, int64_t *done,
                              ps_error *err);

    /* the kept values of a block: of fixed width, to out with space for `space`; bits, from bit 0 of out, which
     * has PS_BLOCK_WORDS + 1 words; byte strings, after the last row of the output, *fit as in
     * ps_output_add_strings: where it is false the caller goes back to where leaf->page.place was */
    ps_status (*block)(ps_leaf *leaf, uint8_t *out, size_t space, const ps_block *block,
                       ps_error *err);
    ps_status (*block_bits)(ps_leaf *leaf, uint64_t *out, const ps_block *block, ps_error *err);
    ps_status (*block_strings)(ps_leaf *leaf, const ps_block *block, bool *fit, ps_error *err);
};
extern const ps_encoding ps_plain, ps_plain_booleans, ps_rle_booleans, ps_dictionary_codes,
    ps_delta_numbers, ps_delta_lengths, ps_delta_strings, ps_stream_split;

/* dictionary.c: frees what a dictionary holds. */
void ps_dictionary_clear(ps_dictionary *dictionary);

/* ---- append.c ---------------------------------------------------------------------------- */

/* Appends the next n values of the page at the n ones of `rows` bits from bit `at`. *got < n where the offsets of byte
 * strings are exhausted: *got values are in the output, and not yet spread. The caller counts rows and values. */
ps_status ps_append_run(ps_leaf *leaf, const uint8_t *bits, size_t at, int64_t rows, int64_t n,
                        int64_t *got, ps_error *err);
/* Appends the kept values of a block at the ones of `validity`, which is read only where a chosen row is null. It has a bit
 * for each chosen row and a further word. *fit is false, and nothing is done, where offsets would overflow. The
 * caller counts rows and values. */
ps_status ps_append_block(ps_leaf *leaf, const ps_block *block, const uint64_t *validity,
                          bool *fit, ps_error *err);
/* n byte strings lie behind the last row of the output: their offsets move to the n ones of `rows` bits. */
void ps_append_spread_offsets(ps_leaf *leaf, const uint8_t *bits, size_t at, int64_t rows,
                              int64_t n);

/* ---- small helpers ----------------------------------------------------------------------- */

/* The selected rows before `next`, and none behind it, were taken by a block, which may end inside a run. */
PS_INLINE void ps_leaf_block_done(ps_leaf *leaf, int64_t next) {
    leaf->rows.next = next;
    if (leaf->rows.run.stop > next) {
        leaf->rows.run.start = next;
    } else {
        leaf->rows.run = (ps_range){0};
        leaf->rows.runs.row = next;
    }
}

/* From now on the leaf has no page. */
PS_INLINE void ps_leaf_drop_page(ps_leaf *leaf) {
    leaf->page.present = false;
}

/* The byte of the page at p, which lies in its body. */
PS_INLINE uint64_t ps_page_byte(const ps_leaf *leaf, const uint8_t *p) {
    return (uint64_t)(p - leaf->page.given.body);
}
/* An error of a part of the page becomes one of the page. */
PS_INLINE ps_status ps_page_error(const ps_leaf *leaf, const uint8_t *part, ps_status status,
                                  ps_error *err) {
    if (status != PS_OK && err && err->offset != PS_NOWHERE)
        err->offset += ps_page_byte(leaf, part);
    return status;
}

/* Whether strings of the page are tested where they lie: nobody takes them, so that a row of the output is its slice. */
PS_INLINE bool ps_filter_in_place(const ps_leaf *leaf) {
    return leaf->filter.n && !leaf->filter.keeps && leaf->bytes &&
           leaf->page.encoding == &ps_plain;
}
PS_INLINE ps_slice *ps_filter_slice(const ps_leaf *leaf, int64_t row) {
    return (ps_slice *)(void *)leaf->filter.slices.data + row;
}

/* Fails, as the page ends before the n-th of the values to come. */
ps_status ps_page_short(const ps_leaf *leaf, int64_t n, ps_error *err);

/* Offsets of either width. */
PS_INLINE int64_t ps_offset_get(const ps_leaf *leaf, int64_t i) {
    const uint8_t *p = leaf->out.offsets.data;
    return leaf->spec.kind == PS_BYTES ? (int32_t)ps_load32(p + 4 * i)
                                       : (int64_t)ps_load64(p + 8 * i);
}
PS_INLINE void ps_offset_set(ps_leaf *leaf, int64_t i, int64_t v) {
    uint8_t *p = leaf->out.offsets.data;
    if (leaf->spec.kind == PS_BYTES) {
        ps_store32(p + 4 * i, (uint32_t)v);
    } else {
        ps_store64(p + 8 * i, (uint64_t)v);
    }
}
/* Bytes of the offsets or views of n byte strings; false where that is beyond all memory. */
PS_INLINE bool ps_offsets_size(const ps_leaf *leaf, size_t n, size_t *size) {
    if (leaf->views) return ps_mul_size(n, 16, size);
    return n < SIZE_MAX && ps_mul_size(n + 1, leaf->spec.kind == PS_BYTES ? 4 : 8, size);
}
PS_INLINE int64_t ps_offset_limit(const ps_leaf *leaf) {
    return leaf->spec.kind == PS_BYTES ? INT32_MAX : INT64_MAX;
}
/* Elements that the offsets of lists count. */
PS_INLINE size_t ps_element_limit(void) {
    return INT32_MAX;
}

#endif
