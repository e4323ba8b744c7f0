#if defined(__linux__)
#define _GNU_SOURCE /* madvise, posix_memalign under -std=c11 */
#elif !defined(_WIN32)
#define _POSIX_C_SOURCE 200112L
#endif

#include "base.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(__linux__)
#include <sys/mman.h>
#elif defined(_WIN32)
#include <malloc.h>
#endif

/* ---- errors ------------------------------------------------------------------------------ */

PS_COLD ps_status ps_fail(ps_error *err, ps_status status, uint64_t offset, const char *format,
                          ...) {
    if (err) {
        va_list args;
        err->offset = offset;
        va_start(args, format);
        if (vsnprintf(err->message, sizeof err->message, format, args) < 0)
            err->message[0] = '\0';
        va_end(args);
    }
    return status;
}

PS_COLD ps_status ps_fail_nomem(ps_error *err, size_t size) {
    return ps_fail(err, PS_NOMEM, PS_NOWHERE, "no memory for %zu bytes", size);
}

/* ---- arena ------------------------------------------------------------------------------- */

struct ps_arena_block {
    struct ps_arena_block *next;
    size_t used, size; /* bytes behind the header */
};

#define ARENA_ALIGN  ((size_t)16)
#define ARENA_FIRST  ((size_t)2048) /* what is taken is zeroed, and an index needs no more */
#define ARENA_BLOCK  ((size_t)16384)
#define ARENA_HEADER ((sizeof(struct ps_arena_block) + ARENA_ALIGN - 1) & ~(ARENA_ALIGN - 1))

ps_status ps_arena_take(ps_arena *arena, size_t count, size_t size, void **out, ps_error *err) {
    size_t bytes;
    *out = NULL;
    if (count == 0 || size == 0) return PS_OK;
    if (!ps_mul_size(count, size, &bytes) || bytes > SIZE_MAX / 2 ||
        bytes + ARENA_ALIGN > arena->cap - arena->used)
        return ps_fail(err, PS_LIMIT, PS_NOWHERE,
                       "metadata needs more than the limit of %zu bytes; raise it with "
                       "max_metadata_bytes",
                       arena->cap);
    bytes = (bytes + ARENA_ALIGN - 1) & ~(ARENA_ALIGN - 1);
    struct ps_arena_block *block = arena->head;
    if (!block || bytes > block->size - block->used) {
        size_t room = block ? ARENA_BLOCK : ARENA_FIRST;
        if (bytes > room) room = bytes;
        /* calloc: large blocks come zeroed from the system, untouched until they are written */
        block = calloc(1, ARENA_HEADER + room);
        if (!block) return ps_fail_nomem(err, ARENA_HEADER + room);
        block->size = room;
        block->next = arena->head;
        arena->head = block;
    }
    *out = (uint8_t *)block + ARENA_HEADER + block->used;
    block->used += bytes;
    arena->used += bytes;
    return PS_OK;
}

void ps_arena_clear(ps_arena *arena) {
    for (struct ps_arena_block *block = arena->head, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    arena->head = NULL;
    arena->used = 0;
}

/* ---- output buffers ---------------------------------------------------------------------- */

#define BUFFER_ALIGN ((size_t)64)
#define HUGE_PAGE    ((size_t)2 << 20)
/* from here page faults cost more than filling the buffer does */
#define HUGE_FROM ((size_t)4 << 20)

static size_t buffer_size(size_t size) {
    if (size > SIZE_MAX / 2) return 0;
    return size ? (size + BUFFER_ALIGN - 1) & ~(BUFFER_ALIGN - 1) : BUFFER_ALIGN;
}

void *ps_buffer_new(size_t size) {
    size_t rounded = buffer_size(size);
    void *buffer = NULL;
    if (!rounded) return NULL;
#if defined(_WIN32)
    buffer = _aligned_malloc(rounded, BUFFER_ALIGN);
#else
    if (posix_memalign(&buffer, BUFFER_ALIGN, rounded)) return NULL;
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    /* Advice only, for the whole huge pages inside: what lies around them may belong to other blocks. To ask
     * for their alignment would make the allocator map and unmap every block anew. */
    if (rounded >= HUGE_FROM) {
        const size_t lead = (HUGE_PAGE - (uintptr_t)buffer % HUGE_PAGE) % HUGE_PAGE;
        (void)madvise((uint8_t *)buffer + lead, (rounded - lead) & ~(HUGE_PAGE - 1),
                      MADV_HUGEPAGE);
    }
#endif
#endif
    return buffer;
}

void *ps_buffer_grow(void *buffer, size_t old_size, size_t new_size) {
    size_t had = buffer_size(old_size), needs = buffer_size(new_size);
    if (buffer && needs && needs <= had) return buffer;
    void *grown = ps_buffer_new(new_size); /* NULL leaves the old buffer with its owner */
    if (grown && buffer) {
        memcpy(grown, buffer, old_size);
        ps_buffer_free(buffer, old_size);
    }
    return grown;
}

void ps_buffer_free(void *buffer, size_t size) {
    (void)size;
#if defined(_WIN32)
    _aligned_free(buffer);
#else
    free(buffer);
#endif
}
