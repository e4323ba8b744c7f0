/* huge_pages.h - which buffers ask the system for huge pages. Internal. */
#ifndef PAGESEEK_HUGE_PAGES_H
#define PAGESEEK_HUGE_PAGES_H

#include <stddef.h>
#include <stdint.h>

#if defined(__linux__)
#include <stdatomic.h>

/* From here page faults cost more than to fill a buffer does. */
#define PS_HUGE_FROM ((size_t)4 << 20)
#define PS_HUGE_PAGE ((size_t)2 << 20)

/* What is known of the huge pages of this system. Zeros: nothing. Any threads may use it. */
typedef struct ps_huge_pages {
    _Atomic int64_t small; /* bytes of buffers that do without huge pages from now on */
    _Atomic int64_t pause; /* bytes that do so after the next slow one; 0: the least */
} ps_huge_pages;

/* Asks for huge pages for a new buffer of at least PS_HUGE_FROM bytes, unless the last ones came slowly. Writes one byte of it. */
void ps_huge_ask(ps_huge_pages *state, void *buffer, size_t size);
#endif

#endif
