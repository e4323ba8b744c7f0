/* busy.h - whether a call is inside an object that only one may use at a time: a flag that threads race for without a
 * lock, for builds of Python with the interpreter's lock and without. Zero-initialised it is free. */
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

/* False where somebody else is inside; else the caller is, until ps_busy_leave. */
static inline bool ps_busy_enter(ps_busy *busy) {
    return PS_BUSY_SWAP(busy, 1) == 0;
}
static inline void ps_busy_leave(ps_busy *busy) {
    PS_BUSY_SWAP(busy, 0);
}

#endif
