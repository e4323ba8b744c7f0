/* ps_base.h - what every part of the C core uses: status, errors, memory. Part of pageseek.h. */
#ifndef PAGESEEK_PS_BASE_H
#define PAGESEEK_PS_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- status ------------------------------------------------------------------------------ */

typedef enum ps_status {
    PS_OK = 0,
    PS_TRUNCATED = 1,   /* the input ends inside a value */
    PS_CORRUPT = 2,     /* the input contradicts the format or itself */
    PS_LIMIT = 3,       /* a size or depth is beyond what the caller allows */
    PS_UNSUPPORTED = 4, /* the input is legal, and the core does not implement it */
    PS_NOMEM = 5,       /* the system has no memory */
    PS_INVALID = 6,     /* an argument of the caller is wrong */
    PS_MISMATCH = 7,    /* a page is not what the offset index says */
} ps_status;

typedef struct ps_error {
    uint64_t offset;   /* byte in the input of the call; UINT64_MAX where no byte is at fault */
    char message[200]; /* NUL-terminated, without a full stop */
} ps_error;

/* Stands for an optional field that is absent. No field of the format can legally hold it. */
#define PS_ABSENT INT64_MIN

/* ---- memory of metadata ------------------------------------------------------------------ */

/* Blocks that are freed together. The owner sets all bytes to zero, then `cap`: the arena never holds more
 * bytes than that. */
typedef struct ps_arena {
    struct ps_arena_block *head;
    size_t used, cap;
} ps_arena;
/* Frees every block. The arena can be used again. */
void ps_arena_clear(ps_arena *arena);

/* ---- memory of values -------------------------------------------------------------------- */

/* Buffers are aligned to 64 bytes, and their size is rounded up to 64. Kernels take memory for values nowhere
 * else, so that every buffer can leave as an Arrow buffer. */

/* A buffer that is not initialised, or NULL where there is no memory. */
void *ps_buffer_new(size_t size);
/* The buffer with its first old_size bytes, in new_size bytes. NULL where there is no memory; `buffer` then
 * stays valid. */
void *ps_buffer_grow(void *buffer, size_t old_size, size_t new_size);
/* Frees a buffer, or nothing where it is NULL. `size` is the one that was requested. */
void ps_buffer_free(void *buffer, size_t size);

/* The pool keeps large buffers that are freed while it is open, and passes them to the next caller on any thread
 * (Linux). Kept buffers and those in use are together never more bytes than were in use at one time since the
 * pool was closed last. A closed pool keeps as many bytes as ps_pool_rest allows, at first none. */
typedef struct ps_pool ps_pool;
/* Bytes that the pool keeps while it is closed. The rest is freed. */
void ps_pool_rest(size_t bytes);
/* Bytes that a closed pool keeps besides, in a form that the system takes when it is short of memory (MADV_FREE). */
void ps_pool_reclaimable(size_t bytes);
/* Bytes that are kept: those that the system cannot take, and those that it can. */
void ps_pool_kept(size_t *held, size_t *reclaimable);
/* Opens the pool for some seconds, with `limit` bytes kept at most. 0 seconds close it. */
void ps_pool_open(double seconds, size_t limit);
/* Frees what has been kept for that many seconds. Returns the bytes that are still kept, or SIZE_MAX where
 * another thread is inside the pool and nothing was done. */
size_t ps_pool_trim(double seconds);
/* Makes what has been kept for that many seconds reclaimable, and frees what is beyond the limit of these. Returns the bytes
 * that are still kept and not reclaimable, or SIZE_MAX as above. */
size_t ps_pool_lend(double seconds);
/* Called in the child process after a fork: no other thread is inside the pool. */
void ps_pool_forked(void);

/* ---- shared state ------------------------------------------------------------------------ */

/* Each extension module links a copy of the core, and each copy has this state. One module owns the state that all
 * modules use: `memory`. Every other module that decodes or unpacks calls ps_shared_use once, when it is
 * imported and before it calls anything else. */
typedef struct ps_shared {
    ps_pool *pool;
    /* the functions of a library, and contexts that are kept */
    struct ps_zstd_state *zstd;
    struct ps_zlib_state *zlib;
    struct ps_brotli_state *brotli;
} ps_shared;
/* The state of this copy. What it points to lives as long as the process. */
ps_shared ps_shared_own(void);
/* From now on this copy uses that state. */
void ps_shared_use(const ps_shared *shared);

#endif
