/* base.c - errors and the arena. */
#include "base.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

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
        size_t space = block ? ARENA_BLOCK : ARENA_FIRST;
        if (bytes > space) space = bytes;
        /* calloc: large blocks come zeroed from the system, untouched until they are written */
        block = calloc(1, ARENA_HEADER + space);
        if (!block) return ps_fail_nomem(err, ARENA_HEADER + space);
        block->size = space;
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
