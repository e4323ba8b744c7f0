/* pages.h - pages as they lie in a file: what their headers say, how they are unpacked; several read in one go. */
#ifndef PAGESEEK_PAGES_H
#define PAGESEEK_PAGES_H

#include "pageseek.h"

/* ---- the libzstd of this system ----------------------------------------------------------- */

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
    size_t (*set)(void *, int, int); /* NULL where its parameters are not known to be ours */
} ps_zstd;

/* Its functions and the contexts that are kept, of this module; another module of the core shares them. */
typedef struct ps_zstd_home ps_zstd_home;
ps_zstd_home *ps_zstd_own(void);
void ps_zstd_share(ps_zstd_home *home);
/* Set the library, while no thread decodes; NULL: do without. */
void ps_zstd_use(const ps_zstd *library);
bool ps_zstd_ready(void);

/* ---- codecs ------------------------------------------------------------------------------- */

typedef enum ps_codec {
    PS_CODEC_OTHER = -1, /* none of the core's own */
    PS_CODEC_NONE = 0,
    PS_CODEC_SNAPPY = 1,
    PS_CODEC_LZ4_RAW = 2,
    PS_CODEC_LZ4 = 3,
    PS_CODEC_ZSTD =
        4 /* with a library: one frame that says its size. All else is for others to try */
} ps_codec;

/* Whether `length` bytes can hold `size`: asked before room is made for them. Of ZSTD, whether they are such a frame. */
ps_status ps_inflate_fits(ps_codec codec, const uint8_t *data, size_t length, size_t size,
                          ps_error *err);
/* All of `size` bytes that fit, or the first `reach` of them: of ZSTD `out` has room for all. */
ps_status ps_inflate(ps_codec codec, const uint8_t *data, size_t length, uint8_t *out,
                     size_t size, size_t reach, ps_error *err);

/* The same from the front, as far as is asked for: ZSTD goes on from where it stopped, the others begin again, once. */
typedef struct ps_unpack {
    ps_supply supply; /* the first member */
    ps_codec codec;
    bool begun, whole;
    size_t most; /* of codecs that begin again: whoever asks for more is given all at once */
    uint8_t *out;
    size_t hint;
    ps_zstd_in in;
    void *context;
} ps_unpack;

/* `out` has room for `size` bytes; of PS_CODEC_NONE it is not used. Until the end all this stays where it is. */
void ps_unpack_begin(ps_unpack *unpack, ps_codec codec, const uint8_t *data, size_t length,
                     uint8_t *out, size_t size);
ps_status ps_unpack_more(ps_unpack *unpack, size_t reach, ps_error *err);
void ps_unpack_end(ps_unpack *unpack);

/* ---- the page at hand --------------------------------------------------------------------- */

/* Of a data page: what lies behind the levels of V2, or all of it. */
typedef struct ps_packed {
    size_t at, length; /* in the bytes that the header begins with */
    size_t size;       /* bytes that it declares to hold */
    bool plain;        /* it is not compressed: `page` has it as its body */
} ps_packed;

/* A data page whose header was read at `data`, and whose body begins at byte `body` of it. `page` gets all but the body, and
 * that, too, where it is `plain`. index_rows, first_row, whole: as ps_page has them. */
ps_status ps_page_open(const ps_page_header *header, const uint8_t *data, size_t body,
                       bool always_compressed, bool levels_only, ps_page *page,
                       ps_packed *packed, ps_error *err);
/* Bytes of the body to unpack for the rows that were begun with, by blocks of `step`. */
size_t ps_page_reach(const ps_leaf *leaf, const ps_page *page, size_t size, size_t step);

/* ---- pages one after the other ------------------------------------------------------------ */

#if defined(_WIN32)
#define PS_TASK_THREADS 0
#else
#define PS_TASK_THREADS 1
#endif

typedef enum ps_task_state {
    PS_TASK_ANEW = 0, /* something is wrong, or rare: nothing of the leaf can be used */
    PS_TASK_DONE = 1,
    PS_TASK_DICTIONARY = 2 /* its page is needed: begin again with it */
} ps_task_state;

/* The rows of a leaf that lie in one page, whose place an offset index knows, or which is the only one of its chunk. */
typedef struct ps_page_task {
    ps_leaf *leaf;
    const uint8_t *data, *dictionary; /* the page; what lies before the first one, or NULL */
    size_t length, dictionary_length;
    bool chunk; /* a dictionary may lie before the page, in `data` */
    ps_selection selection;
    int64_t first_row, rows; /* of the page, as the index or the footer has them */
    size_t hint;             /* as of ps_leaf_begin */
    ps_codec codec;
    size_t step;
    int64_t max_page, max_values;
    bool nested, repeats, always_compressed, levels_only, codes_only;
    /* out */
    ps_task_state state;
    bool dictionary_used;
    ps_column column; /* where it is done; its buffers are the caller's */
} ps_page_task;

/* Do them, each of another leaf, by so many threads at most, where the system is not Windows. What the leaves knew of pages and
 * dictionaries is gone afterwards. */
void ps_page_tasks(ps_page_task *tasks, size_t n, size_t threads);

#endif
