/* buffers.c - memory for output, and the pool of large blocks that were freed and are kept for a while. */
#if defined(__linux__)
#define _GNU_SOURCE /* madvise, posix_memalign, clock_gettime under -std=c11 */
#elif !defined(_WIN32)
#define _POSIX_C_SOURCE 200112L
#endif

#include <stdlib.h>

#include "huge_pages.h"
#include "shared.h"

#if defined(__linux__)
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#elif defined(_WIN32)
#include <malloc.h>
#endif

#define BUFFER_ALIGN ((size_t)64)

#if defined(__linux__)
static ps_huge_pages *huge_pages(void);
#endif

static void *system_new(size_t size) {
    void *buffer = NULL;
#if defined(_WIN32)
    buffer = _aligned_malloc(size, BUFFER_ALIGN);
#else
    if (posix_memalign(&buffer, BUFFER_ALIGN, size)) return NULL;
#if defined(__linux__)
    if (size >= PS_HUGE_FROM) ps_huge_ask(huge_pages(), buffer, size);
#endif
#endif
    return buffer;
}

static void system_free(void *buffer) {
#if defined(_WIN32)
    _aligned_free(buffer);
#else
    free(buffer);
#endif
}

/* ---- the pool ---------------------------------------------------------------------------- */

#if defined(__linux__)
/* The allocators of Linux give each thread memory of its own, and what a thread frees goes back to the system
 * sooner than what the first thread does: two threads that decode fault in page after page that one thread
 * would have found warm. Large blocks are therefore passed on from thread to thread. */
#define POOL_FROM ((size_t)64 << 10)
#define POOL_UPTO ((size_t)1 << 30)
/* sizes in each doubling: a block is at most an eighth larger than was requested */
#define POOL_STEPS 8
#define POOL_SIZES (14 * POOL_STEPS + 1)
#define POOL_SPINS 2000

typedef struct kept {
    struct kept *next; /* older ones */
    uint64_t since;    /* ns */
    size_t size;
    bool
        reclaimable; /* the system takes the pages behind the first one when it is short of memory */
} kept;

struct ps_pool {
    atomic_flag busy;
    uint64_t open_until; /* ns */
    size_t limit, rest;  /* bytes that may be kept until then, and later */
    size_t reclaimable;  /* bytes that may be kept besides, for the system to take */
    size_t out, held;    /* bytes in use, and kept */
    size_t lent;         /* kept, and reclaimable */
    size_t most;         /* that these have been together */
    ps_huge_pages huge;
    kept *sizes[POOL_SIZES];
};

static ps_pool own = {.busy = ATOMIC_FLAG_INIT};
static ps_pool *shared = &own;

static ps_huge_pages *huge_pages(void) {
    return &shared->huge;
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* False where the lock stays taken, as by a thread that a fork left behind. The caller then does without the pool. */
static int enter(ps_pool *pool) {
    for (int i = 0; atomic_flag_test_and_set_explicit(&pool->busy, memory_order_acquire); i++) {
        if (i == POOL_SPINS) return 0;
        if (i > 50) sched_yield();
    }
    return 1;
}

static void leave(ps_pool *pool) {
    atomic_flag_clear_explicit(&pool->busy, memory_order_release);
}

/* The place of a size among those of the pool, and the size made full. */
static size_t size_class(size_t *size) {
    const int doubling = 63 - ps_clz64(*size);
    const size_t step = ((size_t)1 << doubling) / POOL_STEPS;
    const size_t steps = (*size + step - 1) / step; /* POOL_STEPS .. 2 * POOL_STEPS */
    *size = steps * step;
    return (size_t)(doubling - 16) * POOL_STEPS + (steps - POOL_STEPS);
}

static int pooled(size_t size) {
    return size >= POOL_FROM && size <= POOL_UPTO;
}

static void free_all(kept *list) {
    for (kept *next; list; list = next) {
        next = list->next;
        system_free(list);
    }
}

static size_t *count_of(ps_pool *pool, const kept *block) {
    return block->reclaimable ? &pool->lent : &pool->held;
}

static void put(ps_pool *pool, kept *block) {
    size_t size = block->size;
    kept **list = &pool->sizes[size_class(&size)];
    block->next = *list;
    *list = block;
    *count_of(pool, block) += block->size;
}

/* Takes blocks out, large ones first, until no more than `most` bytes of those that are reclaimable, or are not, are kept. */
static kept *let_go(ps_pool *pool, bool reclaimable, size_t most) {
    const size_t *bytes = reclaimable ? &pool->lent : &pool->held;
    kept *gone = NULL;
    for (size_t i = POOL_SIZES; *bytes > most && i--;) {
        kept **link = &pool->sizes[i];
        while (*link && *bytes > most) {
            kept *block = *link;
            if (block->reclaimable != reclaimable) {
                link = &block->next;
                continue;
            }
            *link = block->next;
            *count_of(pool, block) -= block->size;
            block->next = gone;
            gone = block;
        }
    }
    return gone;
}

/* Takes blocks out that were freed before a moment; those that are reclaimable only if `reclaimable`. */
static kept *take_old(ps_pool *pool, uint64_t before, bool reclaimable) {
    kept *gone = NULL;
    for (size_t i = 0; i < POOL_SIZES; i++) {
        for (kept **link = &pool->sizes[i]; *link;) {
            kept *block = *link;
            if (block->since > before || (block->reclaimable && !reclaimable)) {
                link = &block->next;
                continue;
            }
            *link = block->next;
            *count_of(pool, block) -= block->size;
            block->next = gone;
            gone = block;
        }
    }
    return gone;
}

/* Tells the system that it may take the pages of a block, but for the first one, which has our own words. */
static bool lend(kept *block) {
#if defined(MADV_FREE)
    const long small = sysconf(_SC_PAGESIZE);
    const size_t page = block->size >= PS_HUGE_FROM ? PS_HUGE_PAGE
                                                    : (size_t)(small > 0 ? small : 4096);
    const uintptr_t from = (uintptr_t)block + sizeof *block,
                    end = (uintptr_t)block + block->size;
    const uintptr_t first = (from + page - 1) / page * page, last = end / page * page;
    if (last > first && madvise((void *)first, last - first, MADV_FREE) == 0)
        block->reclaimable = true;
#endif
    return block->reclaimable;
}

/* Keeps blocks that were taken out as reclaimable ones, as far as they may be, and frees the others. */
static void lend_or_free(ps_pool *pool, kept *list) {
    for (kept *next; list; list = next) {
        next = list->next;
        bool fits = false;
        if (enter(pool)) {
            fits = pool->lent + list->size <= pool->reclaimable;
            leave(pool);
        }
        if (fits && lend(list) && enter(pool)) {
            put(pool, list);
            leave(pool);
        } else {
            system_free(list);
        }
    }
}

/* Frees blocks of other sizes where they would make the process larger than it has been, except for those that are
 * always kept. */
static kept *make_room(ps_pool *pool, size_t size) {
    const size_t used = pool->out + size, space = pool->most > used ? pool->most - used : 0;
    const size_t most = space > pool->rest ? space : pool->rest;
    kept *gone = let_go(pool, true, most > pool->held ? most - pool->held : 0), *last = gone;
    kept *more = let_go(pool, false, most);
    while (last && last->next) last = last->next;
    if (last) {
        last->next = more;
    } else {
        gone = more;
    }
    const size_t all = used + pool->held + pool->lent;
    if (all > pool->most) pool->most = all;
    return gone;
}

static void *pool_new(size_t size) {
    ps_pool *pool = shared;
    const size_t i = size_class(&size);
    if (!enter(pool)) return system_new(size);
    kept *found = pool->sizes[i], *gone = NULL;
    if (found) {
        pool->sizes[i] = found->next;
        *count_of(pool, found) -= size;
    } else {
        gone = make_room(pool, size);
    }
    pool->out += size;
    leave(pool);
    free_all(gone);
    if (found) return found;
    void *buffer = system_new(size);
    if (!buffer &&
        enter(pool)) { /* all that is kept may make room, where addresses are limited */
        kept *all = take_old(pool, UINT64_MAX, true);
        leave(pool);
        free_all(all);
        buffer = system_new(size);
    }
    if (!buffer && enter(pool)) {
        pool->out -= size;
        leave(pool);
    }
    return buffer;
}

static void pool_free(void *buffer, size_t size) {
    ps_pool *pool = shared;
    kept *block = buffer, *gone = NULL;
    (void)size_class(&size);
    *block = (kept){.since = now_ns(), .size = size};
    if (!enter(pool)) {
        system_free(buffer);
        return;
    }
    const size_t limit = block->since < pool->open_until ? pool->limit : pool->rest;
    pool->out = pool->out > size ? pool->out - size : 0;
    if (size <= limit) {
        gone = let_go(pool, false, limit - size);
        put(pool, block);
    } else {
        gone = block;
    }
    leave(pool);
    lend_or_free(pool, gone);
}

ps_pool *ps_pool_own(void) {
    return &own;
}

void ps_pool_share(ps_pool *pool) {
    shared = pool;
}

void ps_pool_rest(size_t bytes) {
    const uint64_t now = now_ns();
    if (!enter(shared)) return;
    shared->rest = bytes;
    kept *gone = now < shared->open_until ? NULL : let_go(shared, false, bytes);
    leave(shared);
    lend_or_free(shared, gone);
}

void ps_pool_reclaimable(size_t bytes) {
    if (!enter(shared)) return;
    shared->reclaimable = bytes;
    kept *gone = let_go(shared, true, bytes);
    leave(shared);
    free_all(gone);
}

void ps_pool_kept(size_t *held, size_t *reclaimable) {
    *held = *reclaimable = 0;
    if (!enter(shared)) return;
    *held = shared->held, *reclaimable = shared->lent;
    leave(shared);
}

void ps_pool_open(double seconds, size_t limit) {
    const uint64_t until = now_ns() + (uint64_t)(seconds * 1e9);
    if (!enter(shared)) return;
    shared->limit = limit;
    shared->open_until = until;
    leave(shared);
}

size_t ps_pool_trim(double seconds) {
    ps_pool *pool = shared;
    const uint64_t now = now_ns(), age = (uint64_t)(seconds * 1e9);
    if (!enter(pool)) return SIZE_MAX;
    kept *gone = take_old(pool, now > age ? now - age : 0, true);
    const size_t held = pool->held + pool->lent;
    if (now >= pool->open_until) pool->most = pool->out + held;
    leave(pool);
    free_all(gone);
    return held;
}

size_t ps_pool_lend(double seconds) {
    ps_pool *pool = shared;
    const uint64_t now = now_ns(), age = (uint64_t)(seconds * 1e9);
    if (!enter(pool)) return SIZE_MAX;
    kept *old = take_old(pool, now > age ? now - age : 0, false);
    const size_t held = pool->held;
    leave(pool);
    lend_or_free(pool, old);
    if (now >= pool->open_until && enter(pool)) {
        pool->most = pool->out + pool->held + pool->lent;
        leave(pool);
    }
    return held;
}

/* A thread that the fork left behind may have been inside, so the kept blocks are counted again. */
void ps_pool_forked(void) {
    ps_pool *pool = shared;
    pool->held = pool->lent = 0;
    for (size_t i = 0; i < POOL_SIZES; i++)
        for (const kept *block = pool->sizes[i]; block; block = block->next)
            *count_of(pool, block) += block->size;
    leave(pool);
}
#else
static int pooled(size_t size) {
    (void)size;
    return 0;
}
static void *pool_new(size_t size) {
    return system_new(size);
}
static void pool_free(void *buffer, size_t size) {
    (void)size;
    system_free(buffer);
}
ps_pool *ps_pool_own(void) {
    return NULL;
}
void ps_pool_share(ps_pool *pool) {
    (void)pool;
}
void ps_pool_rest(size_t bytes) {
    (void)bytes;
}
void ps_pool_reclaimable(size_t bytes) {
    (void)bytes;
}
void ps_pool_kept(size_t *held, size_t *reclaimable) {
    *held = *reclaimable = 0;
}
void ps_pool_open(double seconds, size_t limit) {
    (void)seconds, (void)limit;
}
size_t ps_pool_trim(double seconds) {
    (void)seconds;
    return 0;
}
size_t ps_pool_lend(double seconds) {
    (void)seconds;
    return 0;
}
void ps_pool_forked(void) {}
#endif

/* ---- output buffers ---------------------------------------------------------------------- */

static size_t buffer_size(size_t size) {
    if (size > SIZE_MAX / 2) return 0;
    return size ? (size + BUFFER_ALIGN - 1) & ~(BUFFER_ALIGN - 1) : BUFFER_ALIGN;
}

void *ps_buffer_new(size_t size) {
    const size_t rounded = buffer_size(size);
    if (!rounded) return NULL;
    return pooled(rounded) ? pool_new(rounded) : system_new(rounded);
}

void *ps_buffer_grow(void *buffer, size_t old_size, size_t new_size) {
    size_t had = buffer_size(old_size), needs = buffer_size(new_size);
    if (buffer && needs == had) return buffer;
    void *grown = ps_buffer_new(new_size); /* NULL leaves the old buffer with its owner */
    if (grown && buffer) {
        memcpy(grown, buffer, old_size < new_size ? old_size : new_size);
        ps_buffer_free(buffer, old_size);
    }
    return grown;
}

void ps_buffer_free(void *buffer, size_t size) {
    if (!buffer) return;
    if (pooled(buffer_size(size))) {
        pool_free(buffer, buffer_size(size));
    } else {
        system_free(buffer);
    }
}
