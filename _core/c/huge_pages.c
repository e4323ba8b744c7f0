/* huge_pages.c - asks for huge pages where they come faster than small ones.
 *
 * A fresh huge page is usually zeroed in a tenth of a millisecond, a fraction of what its 512 small pages take. In a virtual machine
 * that reports free memory to its host (free page reporting), the host has taken large free blocks away, and gives them back page by
 * page: a huge page then takes 3 to 7 ms, and small pages, which are not reported, a fifth of that. Hence one page of each buffer
 * is measured as it is made. */
#if defined(__linux__)
#define _GNU_SOURCE /* madvise, clock_gettime under -std=c11 */
#endif

#include "huge_pages.h"

#if defined(__linux__)
#include <stdbool.h>
#include <sys/mman.h>
#include <time.h>

#define SLOW_NS     ((uint64_t)1000000) /* about what 512 small pages take */
#define FAULT_NS    ((uint64_t)10000)   /* a page that takes less was there before */
#define PAUSE_LEAST ((int64_t)128 << 20)
#define PAUSE_MOST  ((int64_t)4 << 30)

/* Of this thread: others that have the processor meanwhile do not count. */
static uint64_t cpu_ns(void) {
    struct timespec t;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t)) return 0;
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Whether a buffer of so many bytes asks for huge pages. */
static bool wants(ps_huge_pages *state, size_t size) {
    if (atomic_load(&state->small) <= 0) return true;
    atomic_fetch_sub(&state->small, (int64_t)size);
    return false;
}

/* Learns how long a huge page took. False: it was slow. */
static bool learn(ps_huge_pages *state, uint64_t ns) {
    if (ns < FAULT_NS) return true;
    if (ns < SLOW_NS) {
        atomic_store(&state->pause, 0);
        return true;
    }
    int64_t pause = atomic_load(&state->pause);
    if (pause < PAUSE_LEAST) pause = PAUSE_LEAST;
    atomic_store(&state->small, pause);
    atomic_store(&state->pause, pause < PAUSE_MOST ? 2 * pause : PAUSE_MOST);
    return false;
}

void ps_huge_ask(ps_huge_pages *state, void *buffer, size_t size) {
#if defined(MADV_HUGEPAGE) && defined(MADV_NOHUGEPAGE)
    /* Advice only, for the whole huge pages inside: what lies around them may belong to other blocks. To ask
     * for their alignment would make the allocator map and unmap every block again. */
    const size_t lead = (PS_HUGE_PAGE - (uintptr_t)buffer % PS_HUGE_PAGE) % PS_HUGE_PAGE;
    const size_t whole = (size - lead) & ~(PS_HUGE_PAGE - 1);
    uint8_t *first = (uint8_t *)buffer + lead;
    if (wants(state, size)) {
        if (madvise(first, whole, MADV_HUGEPAGE)) return;
        const uint64_t began = cpu_ns();
        /* one in the middle: the allocator may have had the first ones before, and the last ones may stay unused */
        *(volatile uint8_t *)(first + whole / PS_HUGE_PAGE / 2 * PS_HUGE_PAGE) = 0;
        if (learn(state, cpu_ns() - began)) return;
    }
    (void)madvise(first, whole, MADV_NOHUGEPAGE); /* a system may use them unasked */
#else
    (void)state, (void)buffer, (void)size, (void)wants, (void)learn, (void)cpu_ns;
#endif
}
#else
typedef int ps_no_huge_pages; /* a file of C is not empty */
#endif
