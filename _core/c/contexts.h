/* contexts.h - contexts of a library that are kept for the next thread that decodes. Internal. */
#ifndef PAGESEEK_CONTEXTS_H
#define PAGESEEK_CONTEXTS_H

#include "base.h"

#if !defined(_WIN32)
#include <stdatomic.h>
typedef _Atomic(void *) ps_context_slot;
#else
typedef void *ps_context_slot; /* no library is used there, so it stays empty */
#endif

enum { PS_CONTEXTS = 64 };

/* One thread at a time uses a context: it takes the context and leaves NULL in its place. */
typedef struct ps_contexts {
    ps_context_slot kept[PS_CONTEXTS];
} ps_contexts;

/* A context that was kept, which is the caller's from now on; NULL where there is none. */
void *ps_contexts_take(ps_contexts *contexts);
/* Keeps a context. False where there is no space: the caller frees it. */
bool ps_contexts_keep(ps_contexts *contexts, void *context);

#endif
