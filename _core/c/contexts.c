/* contexts.c - contexts of a library that are kept for the next thread that decodes. */
#include "contexts.h"

#if !defined(_WIN32)
void *ps_contexts_take(ps_contexts *contexts) {
    for (int i = 0; i < PS_CONTEXTS; i++) {
        if (!atomic_load_explicit(&contexts->kept[i], memory_order_relaxed)) continue;
        void *context = atomic_exchange_explicit(&contexts->kept[i], NULL,
                                                 memory_order_acquire);
        if (context) return context;
    }
    return NULL;
}

bool ps_contexts_keep(ps_contexts *contexts, void *context) {
    for (int i = 0; i < PS_CONTEXTS; i++) {
        void *none = NULL;
        if (atomic_compare_exchange_strong_explicit(&contexts->kept[i], &none, context,
                                                    memory_order_release, memory_order_relaxed))
            return true;
    }
    return false;
}
#else
void *ps_contexts_take(ps_contexts *contexts) {
    (void)contexts;
    return NULL;
}

bool ps_contexts_keep(ps_contexts *contexts, void *context) {
    (void)contexts, (void)context;
    return false;
}
#endif
