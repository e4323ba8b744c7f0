/* busy.h - a flag that lets one call at a time into an object.
 *
 * Threads take it without a lock, in builds of Python with the interpreter's lock and without. Zero means free. */
#ifndef PAGESEEK_BUSY_H
#define PAGESEEK_BUSY_H

#include <stdbool.h>

#if defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>
typedef volatile long ps_busy;
#define PS_BUSY_SWAP(busy, to) _InterlockedExchange((busy), (to))
#else
typedef int ps_busy;
#define PS_BUSY_SWAP(busy, to) __atomic_exchange_n((busy), (to), __ATOMIC_ACQ_REL)
#endif

/* True: the caller is inside until ps_busy_leave. False: another call is. */
static inline bool ps_busy_enter(ps_busy *busy) {
    return PS_BUSY_SWAP(busy, 1) == 0;
}
static inline void ps_busy_leave(ps_busy *busy) {
    PS_BUSY_SWAP(busy, 0);
}

#endif
