/* ps_leaf.h - decoding: codecs, the type of a leaf, its pages, and the decoder. Part of pageseek.h. */
#ifndef PAGESEEK_PS_LEAF_H
#define PAGESEEK_PS_LEAF_H

#include "ps_metadata.h"
#include "ps_values.h"

/* ---- codecs of the core's own ------------------------------------------------------------ */

/* CRC-32 (IEEE 802.3, polynomial 0xEDB88320 reflected), as gzip and Parquet page headers use it. `crc` is that of the
 * bytes before, 0 for none. */
uint32_t ps_crc32(uint32_t crc, const uint8_t *data, size_t length);

/* Decode a raw Snappy or LZ4 block into out[0..size). With `exact` the block yields exactly `size` bytes and all input
 * is used. Without it decoding stops as soon as `size` bytes are out (a prefix). Nothing is written at or beyond
 * out[size]. After a failure the content of `out` is unspecified. */
ps_status ps_snappy_decode(const uint8_t *data, size_t length, uint8_t *out, size_t size,
                           bool exact, ps_error *err);
ps_status ps_lz4_decode(const uint8_t *data, size_t length, uint8_t *out, size_t size,
                        bool exact, ps_error *err);

/* Where the decoding of a raw Snappy or LZ4 block stands; zeros are its front. */
typedef struct ps_lz_place {
    size_t in, out; /* bytes that were read and written */
    size_t pending,
        offset; /* bytes of an element to be written: from how far back, 0: from the input */
    size_t token_at; /* of LZ4: the token of that element, whose match follows its literals */
    bool begun, element;
} ps_lz_place;
/* Go on until `reach` bytes are out, or a few more, of the `size` that the block must yield. Reaching all of them includes
 * the checks of an exact decode. `out` has space for `size` bytes, and keeps those before. After a failure the place
 * is as before, and `out` beyond it is unspecified. */
ps_status ps_snappy_more(ps_lz_place *place, const uint8_t *data, size_t length, uint8_t *out,
                         size_t size, size_t reach, ps_error *err);
ps_status ps_lz4_more(ps_lz_place *place, const uint8_t *data, size_t length, uint8_t *out,
                      size_t size, size_t reach, ps_error *err);
/* Does this for Hadoop framing (be32 decompressed size, be32 compressed size, block, repeated), or else one raw
 * block. */
ps_status ps_lz4_hadoop_decode(const uint8_t *data, size_t length, uint8_t *out, size_t size,
                               bool exact, ps_error *err);

/* Chooses how text is checked to be UTF-8: the fastest way that this processor has, or, with `plain`, plain C. Returns
 * the name of the choice, a constant. Called once, before any thread decodes. */
const char *ps_utf8_choose(bool plain);

/* ---- libraries of this system ------------------------------------------------------------ */

/* ps_NAME_use sets a library, whose functions are copied; NULL: do without one. No thread may decode meanwhile.
 * ps_NAME_ready tells whether one is set. The state is a part of ps_shared. */

typedef struct ps_zstd_out {
    void *dst;
    size_t size, pos;
} ps_zstd_out;

typedef struct ps_zstd_in {
    const void *src;
    size_t size, pos;
} ps_zstd_in;

/* Functions of zstd 1.4 and later, whose contracts are stable: ZSTD_createDCtx and so on. */
typedef struct ps_zstd {
    void *(*create)(void);
    size_t (*free)(void *);
    size_t (*reset)(void *, int);
    size_t (*decompress)(void *, void *, size_t, const void *, size_t);
    size_t (*stream)(void *, ps_zstd_out *, ps_zstd_in *);
    unsigned long long (*content_size)(const void *, size_t);
    size_t (*frame_length)(const void *, size_t);
    unsigned (*is_error)(size_t);
    size_t (*set)(void *, int, int); /* NULL where its parameters may differ from ours */
} ps_zstd;

typedef struct ps_zstd_state ps_zstd_state;
void ps_zstd_use(const ps_zstd *library);
bool ps_zstd_ready(void);

/* z_stream, whose layout is the same in all versions 1.x: inflateInit2_ is told its size. */
typedef struct ps_zlib_stream {
    const uint8_t *next_in;
    unsigned avail_in;
    unsigned long total_in;
    uint8_t *next_out;
    unsigned avail_out;
    unsigned long total_out;
    const char *message;
    void *state;
    void *(*alloc)(void *, unsigned, unsigned);
    void (*free)(void *, void *);
    void *opaque;
    int data_type;
    unsigned long adler, reserved;
} ps_zlib_stream;

/* Functions of zlib 1.2.1 and later: inflateInit2_, inflate, inflateReset, inflateEnd. */
typedef struct ps_zlib {
    int (*init)(ps_zlib_stream *, int, const char *, int);
    int (*inflate)(ps_zlib_stream *, int);
    int (*reset)(ps_zlib_stream *);
    int (*end)(ps_zlib_stream *);
} ps_zlib;

typedef struct ps_zlib_state ps_zlib_state;
void ps_zlib_use(const ps_zlib *library);
bool ps_zlib_ready(void);

/* Functions of libbrotlidec 1.0 and later: BrotliDecoderCreateInstance, BrotliDecoderDestroyInstance,
 * BrotliDecoderDecompressStream. */
typedef struct ps_brotli {
    void *(*create)(void *, void *, void *);
    void (*destroy)(void *);
    int (*stream)(void *, size_t *, const uint8_t **, size_t *, uint8_t **, size_t *);
} ps_brotli;

typedef struct ps_brotli_state ps_brotli_state;
void ps_brotli_use(const ps_brotli *library);
bool ps_brotli_ready(void);

/* ---- unpacking --------------------------------------------------------------------------- */

typedef enum ps_codec {
    PS_CODEC_OTHER = -1, /* none that the core knows */
    PS_CODEC_NONE = 0,
    PS_CODEC_SNAPPY = 1,
    PS_CODEC_LZ4_RAW = 2,
    PS_CODEC_LZ4 = 3,
    /* with a library */
    PS_CODEC_ZSTD = 4,   /* only a single frame that states its size */
    PS_CODEC_GZIP = 5,   /* members of gzip or zlib */
    PS_CODEC_BROTLI = 6, /* only a single stream */
} ps_codec;

/* PS_OK where `length` bytes can hold `size`: to be checked before memory is taken for them. For codecs with a library it
 * is also checked that there is one, for ZSTD that they are a frame that the core decodes. */
ps_status ps_inflate_fits(ps_codec codec, const uint8_t *data, size_t length, size_t size,
                          ps_error *err);
/* Decodes all `size` bytes, or the first `reach` of them. They passed ps_inflate_fits. `out` has space for `reach`
 * bytes, with a library always for `size`. A part of a stream is decoded without its checksum. */
ps_status ps_inflate(ps_codec codec, const uint8_t *data, size_t length, uint8_t *out,
                     size_t size, size_t reach, ps_error *err);

/* Bytes of which the first `have` are in memory. `more`, unless it is NULL, brings `have` to `reach` or beyond, of `size`
 * at most; `data` does not move. */
typedef struct ps_reader {
    const uint8_t *data;
    size_t size, have;
    ps_status (*more)(struct ps_reader *reader, size_t reach, ps_error *err);
} ps_reader;

/* A reader that decodes a body from the front as far as is needed, and goes on where it stopped. LZ4 in the framing of
 * Hadoop begins again, once. */
typedef struct ps_unpack {
    ps_reader reader; /* the first member */
    ps_codec codec;
    bool begun, whole;
    size_t most; /* where it begins again: a longer reach decodes everything at once */
    uint8_t *out;
    size_t hint;
    ps_zstd_in in;
    void *context;
    ps_lz_place place;
} ps_unpack;

/* Begins to unpack `data` into `out`, which has space for `size` bytes; for PS_CODEC_NONE `out` is not used. Both, and
 * `unpack` itself, are borrowed and stay where they are until ps_unpack_end. */
void ps_unpack_begin(ps_unpack *unpack, ps_codec codec, const uint8_t *data, size_t length,
                     uint8_t *out, size_t size);
/* The first `reach` bytes, or more, are in memory afterwards. */
ps_status ps_unpack_more(ps_unpack *unpack, size_t reach, ps_error *err);
/* Gives the codec's context back. A ps_unpack of zeros may be ended, too. */
void ps_unpack_end(ps_unpack *unpack);

/* ---- the type of a leaf ------------------------------------------------------------------ */

/* The nesting levels of a leaf: the optional and repeated nodes between the row and the value, from the top down.
 * An optional leaf has no level of its own: its validity says whether a value is present. */
typedef enum ps_nesting_type {
    PS_NESTING_OPTIONAL = 0, /* a nullable node: validity */
    PS_NESTING_LIST = 1,     /* a repeated node: offsets */
} ps_nesting_type;
typedef struct ps_nesting_level {
    int32_t type;
    int16_t
        def_level; /* least definition level at which the node, or an element of it, is present */
    int16_t rep_level; /* PS_NESTING_LIST: the repetition level that begins a further element */
} ps_nesting_level;
enum { PS_MAX_LEVEL = 127 };

typedef enum ps_unit { PS_UNIT_NONE = 0, PS_UNIT_MS, PS_UNIT_US, PS_UNIT_NS } ps_unit;

typedef struct ps_leaf_spec {
    int32_t physical;    /* parquet Type */
    int32_t type_length; /* FIXED_LEN_BYTE_ARRAY: bytes of a value */
    int32_t kind;  /* ps_kind of the output; ps_convert_check knows the pairs that exist */
    int32_t width; /* PS_FIXED: bytes of a value */
    int32_t unit;  /* ps_unit of an INT96 that becomes PS_I64 */
    int32_t utf8;  /* 1: byte strings must be UTF-8 */
    /* decimals: digits that a value may have; PS_I32, PS_I64: values are not negative and below it; 0: any value */
    int64_t range;
    int32_t lsb_levels; /* 1: BIT_PACKED levels begin at the low bit, as Impala wrote them */
    int32_t max_def, max_rep;
    int32_t levels_only; /* 1: a nested leaf whose levels are decoded, and no value */
    int32_t
        passes; /* 1: a flat leaf of PS_BOOL, which ps_leaf_passes tells for each code of a dictionary */
    int32_t n_nesting_levels;               /* 0: a flat leaf, which is a column by itself */
    const ps_nesting_level *nesting_levels; /* copied by ps_leaf_new */
    size_t max_output; /* bytes that each output buffer of one read may hold */
    int64_t
        likely_rows; /* rows for which begin takes memory; pages take more. 0: for all selected */
} ps_leaf_spec;

/* PS_OK for a pair of physical type and kind that can be decoded. */
ps_status ps_convert_check(const ps_leaf_spec *spec, ps_error *err);

/* Converts n PLAIN values, as the bounds of an index are, to the kind of the spec. Value i is the byte string
 * data[offset[i]..offset[i] + size[i]). known[i] = 0 where the bytes cannot be a value; its slot is zero or empty.
 * Numbers: `values` has n * width bytes, for PS_BOOL a bitmap. Byte strings, PS_FIXED too: `offsets` has n + 1
 * numbers of 64 bits for PS_LARGE_BYTES and 32 otherwise, and `values` has space for the sum of the sizes; for
 * PS_FIXED, of those that are the width. */
ps_status ps_convert_plain(const ps_leaf_spec *spec, const uint8_t *data, size_t length,
                           const int64_t *offset, const int64_t *size, int64_t n,
                           uint8_t *values, void *offsets, uint8_t *known, ps_error *err);

/* ---- a page ------------------------------------------------------------------------------ */

/* A data page. Everything is borrowed. */
typedef struct ps_page {
    int32_t version; /* 1 or 2 */
    int32_t encoding, def_encoding, rep_encoding;
    int64_t num_values;    /* levels in the page */
    int64_t num_nulls;     /* V2, else -1 */
    int64_t num_rows;      /* V2, else -1 */
    int64_t first_row;     /* rows of the row group that begin before this page */
    int64_t index_rows;    /* rows that begin in it, by the offset index; -1: not known */
    bool whole;            /* its last row does not go on in the next page */
    const uint8_t *levels; /* V2: repetition levels, then definition levels */
    size_t rep_length, def_length; /* V2: their bytes */
    const uint8_t *body;           /* decompressed; V1: levels and values, V2: values */
    size_t length;                 /* bytes of the body that are in memory */
    bool partial; /* the body is a prefix, long enough for the rows that will be taken */
} ps_page;

/* Where the packed bytes of a data page lie: for V2 those behind the levels, for V1 all. */
typedef struct ps_packed {
    size_t at, length; /* counted from the first byte of the header */
    size_t size;       /* bytes that they hold, as the header says */
    bool plain;        /* they are not compressed: ps_page.body points to them */
} ps_packed;

/* Describes a data page whose header lies at `data` and whose body begins at data[body]. Fills `packed`, and of `page`
 * all but index_rows, first_row and whole; the body only where it is `plain`. */
ps_status ps_page_open(const ps_page_header *header, const uint8_t *data, size_t body,
                       bool always_compressed, bool levels_only, ps_page *page,
                       ps_packed *packed, ps_error *err);

/* ---- the decoder of a leaf: pages and a selection in, Arrow memory out ------------------- */

/* Decodes a leaf of one row group. One thread at a time uses it.
 *
 * It is idle or begun, and independently of that it has a page or none:
 *
 *   call                   in state   state afterwards
 *   new                               idle, no page, at row 0
 *   begin                  any        begun, output empty; an output that was not finished is freed
 *   begin -> failure       any        idle; an output that was not finished is freed
 *   filter                 begun      begun; no row was taken
 *   page                   any        has that page; refused: no page
 *   take -> PAGE           begun      begun; the page is used up, or there is none
 *   take -> DONE           begun      begun; every selected row is in the output
 *   take -> FULL           begun      begun; max_rows are in the output, or its offsets are exhausted
 *   take -> failure        begun      begun, no page; the rows before the fault are in the output
 *   end                    any        the same; a row that was taken does not go on in another page
 *   finish                 begun      idle; page and row stay, so that begin goes on with what is left
 *   finish -> failure      begun      begun or idle; the output is of no use, and begin comes next
 *   nesting_level          idle       after finish, once for each level of a nested leaf
 *   filtered               idle       after finish, once
 *   dictionary             any        a page that used the dictionary before is gone
 *   forget                 any        no page
 *   forget_dictionary      any        no dictionary, and no page that uses it
 *   forget_selection       any        idle, output freed
 *   clear                  any        idle, no page, no dictionary, no output
 *
 * A scan is: begin, (page, take) until DONE, finish. Between `begin` and a take the rows go through these steps:
 * the run cursor gives a run of selected rows; `evaluated` is the row up to which runs are known to be cheaper than
 * blocks; behind it a block of PS_BLOCK rows is tried first; the rest is read run by run. */
typedef struct ps_leaf ps_leaf;
/* Makes a decoder, which the caller frees. After a failure *out is NULL. */
ps_status ps_leaf_new(const ps_leaf_spec *spec, ps_leaf **out, ps_error *err);
/* Frees a decoder and its memory; NULL is allowed. It no longer uses what it borrowed. */
void ps_leaf_free(ps_leaf *leaf);

/* PS_OK where a dictionary page of `length` bytes can hold n values of this leaf. */
ps_status ps_leaf_dictionary_fits(const ps_leaf *leaf, size_t length, int64_t n, ps_error *err);
/* Sets the dictionary: n PLAIN values. `data` is borrowed until the next dictionary, forget_dictionary, clear or
 * free. The dictionary before is gone even where this one is refused. */
ps_status ps_leaf_dictionary(ps_leaf *leaf, const uint8_t *data, size_t length, int64_t n,
                             ps_error *err);
/* Sets it from bytes that are read when a row needs them: no entry beyond is looked at. The reader is borrowed for as
 * long as `data` would be. */
ps_status ps_leaf_dictionary_from(ps_leaf *leaf, ps_reader *reader, int64_t n, ps_error *err);

/* Sets, in place of a dictionary of n entries, a byte for each of them: 1 or 0, which rows with that code become. It is for a
 * leaf whose spec has `passes`, which takes no other dictionary, and no page but those of codes. Borrowed as
 * `data` above. */
ps_status ps_leaf_passes(ps_leaf *leaf, const uint8_t *passes, int64_t n, ps_error *err);

/* Begins an output of the selected rows from where the leaf stands, at most max_rows. The selection is borrowed until
 * finish or forget_selection. `hint`: bytes of byte strings that are expected, for a nested leaf its slots; 0: not
 * known. */
ps_status ps_leaf_begin(ps_leaf *leaf, const ps_selection *selection, int64_t max_rows,
                        size_t hint, ps_error *err);
/* A test of the values of a leaf, as of ps_compare. */
typedef struct ps_row_test {
    ps_op op;
    bool negate;
    ps_nan nan;
    ps_values literals;
    const ps_in *in; /* of PS_IN where its list is open, else NULL: then `literals` has it */
} ps_row_test;

/* Has the output keep only the rows that pass all tests, or, without `keeps`, none of them. It is for a flat leaf whose output
 * has no views and is not PS_BOOL, and comes between begin and the first row. The tests are borrowed until finish. A value
 * that is not of its type is a fault also where its row does not pass. */
ps_status ps_leaf_filter(ps_leaf *leaf, const ps_row_test *tests, size_t n, bool keeps,
                         ps_error *err);

/* Which of the selected rows pass. */
typedef struct ps_passing {
    int64_t rows, passed; /* that were tested; of these */
    uint8_t *mask;        /* a bit for each that was tested; NULL where none was */
    size_t capacity;      /* bytes, for ps_buffer_free */
} ps_passing;
/* Hands over which rows of the last output passed, once. The mask is the caller's. */
void ps_leaf_filtered(ps_leaf *leaf, ps_passing *out);

/* Bytes at the front of a body of `size` bytes in which the selected rows of the page probably lie; `size` where that is not
 * known or would spare little. Levels or byte strings of an unusual length may need more. */
size_t ps_leaf_reach(const ps_leaf *leaf, const ps_page *page, size_t size);
/* Likewise, rounded up to whole blocks of `step` bytes: how much of a body to unpack. */
size_t ps_page_reach(const ps_leaf *leaf, const ps_page *page, size_t size, size_t step);
/* Hands over the next page that holds a selected row; pages between may be left out. Its memory is borrowed until the
 * next page, forget, clear or free. */
ps_status ps_leaf_page(ps_leaf *leaf, const ps_page *page, ps_error *err);
/* Forgets the page: take then returns PS_TAKE_PAGE where a selected row is missing. */
void ps_leaf_forget(ps_leaf *leaf);
/* Forgets the selection and the output. */
void ps_leaf_forget_selection(ps_leaf *leaf);
/* Forgets everything but the spec and the row, and frees the memory of output, page and dictionary. */
void ps_leaf_clear(ps_leaf *leaf);
/* Forgets the dictionary, and a page that uses it. */
void ps_leaf_forget_dictionary(ps_leaf *leaf);

typedef enum ps_take {
    PS_TAKE_PAGE = 0, /* hand over the next page */
    PS_TAKE_DONE = 1, /* the selection is used up */
    PS_TAKE_FULL = 2, /* finish, begin and take again */
} ps_take;
/* Decodes selected rows of the page into the output. */
ps_status ps_leaf_take(ps_leaf *leaf, ps_take *state, ps_error *err);
/* Says that no page follows, so that a row which was taken is complete. Then take again. */
void ps_leaf_end(ps_leaf *leaf);
/* The row at which the leaf stands: rows before it are done. */
int64_t ps_leaf_row(const ps_leaf *leaf);
/* Rows that begin in the page. */
int64_t ps_leaf_page_rows(const ps_leaf *leaf);

/* Output that is handed over. The caller frees each buffer with ps_buffer_free and its capacity. */
typedef struct ps_column {
    int64_t rows; /* of the table */
    int64_t n;    /* values; slots of a nested leaf, which can be more or fewer than rows */
    int64_t null_count;
    uint8_t *validity; /* NULL: nothing is null */
    uint8_t *values;
    uint8_t *offsets; /* n + 1; a list's nesting level has these alone */
    size_t validity_capacity, values_capacity, offsets_capacity; /* bytes, for ps_buffer_free */
    size_t validity_size, values_size, offsets_size;             /* bytes in use */
} ps_column;
/* Frees the buffers of a column, which is empty afterwards. */
void ps_column_drop(ps_column *column);
/* Hands the output over. After a failure each buffer of `out` is the caller's or NULL. */
ps_status ps_leaf_finish(ps_leaf *leaf, ps_column *out, ps_error *err);
/* Hands over the validity or the offsets of a nesting level, counted from 0 at the top. */
ps_status ps_leaf_nesting_level(ps_leaf *leaf, int32_t level, ps_column *out, ps_error *err);

/* ---- tasks: pages of several leaves ------------------------------------------------------ */

#if defined(_WIN32)
#define PS_TASK_THREADS 0
#else
#define PS_TASK_THREADS 1
#endif

typedef enum ps_task_state {
    PS_TASK_AGAIN =
        0, /* nothing of the leaf can be used: the caller reads the pages by itself, which tells what is wrong */
    PS_TASK_DONE = 1, /* `column` is filled */
    PS_TASK_DICTIONARY =
        2, /* the dictionary page is needed: begin again with it. No row was taken, and it is no chunk */
} ps_task_state;

/* Where the bytes of a file come from. `read` fills out[0..length) with those at `offset`; false: it could not. */
typedef struct ps_source {
    bool (*read)(void *of, int64_t offset, uint8_t *out, size_t length);
    void *of;
} ps_source;

/* Bytes of a file that are read by the thread that needs them first. One thread at a time has them. */
typedef struct ps_unread {
    ps_source source;
    int64_t offset;
    uint8_t *out; /* where `length` bytes go */
    size_t length;
    bool there; /* they were read */
} ps_unread;

/* A data page with its header, which an offset index locates; or a chunk, which may have a dictionary of its own. */
typedef struct ps_task_page {
    const uint8_t *data;
    size_t length;
    int64_t first_row, rows; /* by the index; of a chunk: all of the row group */
    /* of a chunk, or with the first of pages: as for ps_leaf_passes, or NULL */
    const uint8_t *passes;
    int64_t n_passes;
    ps_unread *unread; /* of data[0..length), or NULL where these were read */
} ps_task_page;

/* The rows of a leaf that lie in some pages. Everything is borrowed. */
typedef struct ps_page_task {
    ps_leaf *leaf;
    const ps_task_page
        *pages; /* in their order; those without a selected row may be left out */
    size_t n_pages;
    const uint8_t *dictionary; /* the dictionary page, or NULL */
    size_t dictionary_length;
    ps_unread *unread_dictionary; /* as for a page */
    bool chunk;                   /* `pages` are chunks: headers tell where their pages lie */
    ps_selection selection;
    size_t hint; /* as for ps_leaf_begin */
    ps_codec codec;
    size_t step;                  /* as for ps_page_reach */
    int64_t max_page, max_values; /* bytes and levels that a page may have */
    bool nested, repeats, always_compressed, levels_only, codes_only;
    /* `pages` is the dictionary page, whose entries are taken as rows; the leaf has no levels */
    bool entries;
    const ps_row_test *tests; /* as for ps_leaf_filter */
    size_t n_tests;
    bool keeps;
    bool (*call)(void *of); /* without a leaf: what is done instead; its cost is `hint` */
    void *of;
    /* out */
    ps_task_state state;
    bool dictionary_used;    /* the dictionary, or that of the last chunk */
    size_t dictionary_pages; /* that were unpacked */
    size_t pages_read,
        pages_seen; /* pages that were unpacked; of a chunk, those up to the last selected row */
    ps_column column;   /* PS_TASK_DONE: its buffers are the caller's */
    ps_passing passing; /* likewise its mask, where there are tests */
} ps_page_task;

/* Does the tasks, each of another leaf, on `threads` threads at most (one on Windows). Afterwards the leaves have no page
 * and no dictionary. */
void ps_page_tasks(ps_page_task *tasks, size_t n, size_t threads);
/* How many threads pay for themselves, `most` at most. */
size_t ps_page_threads(const ps_page_task *tasks, size_t n, size_t most);

/* Tasks that helpers do while the caller does something else. */
typedef struct ps_page_work ps_page_work;
/* Begins tasks on `helpers` threads, or fewer where no more can be started. NULL if memory is short. The tasks are borrowed
 * until ps_page_work_end. */
ps_page_work *ps_page_work_begin(ps_page_task *tasks, size_t n, size_t helpers);
/* Waits until the tasks are done, and helps; if `abandon`, tasks that have not begun are left out. Frees the work. False in
 * a process that was forked after the beginning: it has no helpers, and what became of the tasks is not known. */
bool ps_page_work_end(ps_page_work *work, bool abandon);

#endif
