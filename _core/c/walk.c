/* walk.c - structs skipped quickly. Nearly all of a footer is skipped, in short fields, and most column chunks have
 * the layout of others. */
#include "thrift.h"

/* ---- any struct -------------------------------------------------------------------------- */

/* The walk looks at the bounds once per field, finds the end of an integer in one word, and knows
 * only what writers emit. NULL says that it cannot go on, and nothing about the input: the caller
 * begins again with the careful version. Where the walk succeeds, the two agree.
 *
 * Reads stay inside [p, end): at the head of every field WALK_BYTES bytes are left, and until the
 * next look a field takes at most two headers, 14 integers of 8 bytes, and a word. */
#define WALK_BYTES 128
#define WALK_DEPTH 4 /* ColumnChunk, ColumnMetaData, encoding_stats, PageEncodingStats */

/* The end of the integer that p[0] belongs to, if 8 bytes hold it. */
PS_INLINE const uint8_t *walk_varint(const uint8_t *p) {
    uint64_t last = ~ps_load64(p) & PS_HIGH_BITS;
    return PS_LIKELY(last) ? p + (ps_ctz64(last) >> 3) + 1 : NULL;
}

PS_INLINE const uint8_t *walk_binary(const uint8_t *p, const uint8_t *end) {
    ptrdiff_t n = p[0], width = 1;
    if (n >= 0x80) {
        if (p[1] >= 0x80) return NULL;
        n = (n & 0x7f) | (ptrdiff_t)p[1] << 7;
        width = 2;
    }
    return PS_LIKELY(n <= end - p - width) ? p + width + n : NULL;
}

/* The walk notes its way down in a layout: `fixed` bytes (headers) that lead every other struct
 * the same way if they are equal, integers, whose bytes need only end at the same place, and the
 * runs between byte strings, which may have any length. */
enum { NOTE_FIXED = 0xff, NOTE_VARINT = 0x80, NOT_AN_INTEGER = 0xff };
#define STEP 8 /* bytes compared at once; this many without a mask lie behind each run */

static void note(ps_layout *l, const uint8_t *p, const uint8_t *end, int mask) {
    size_t first = l->n, n = (size_t)(end - p);
    if (first + n > PS_LAYOUT_BYTES - STEP) l->failed = true;
    if (l->failed) return;
    memcpy(l->byte + first, p, n);
    memset(l->mask + first, mask, n);
    memset(l->start + first, mask == NOTE_FIXED ? NOT_AN_INTEGER : (int)first, n);
    l->n += n;
}

static void note_run(ps_layout *l) {
    if (l->n > PS_LAYOUT_BYTES - STEP || l->n_runs == PS_LAYOUT_RUNS) l->failed = true;
    if (l->failed) return;
    l->stop[l->n_runs++] = (uint8_t)l->n;
    memset(l->byte + l->n, 0, STEP);
    memset(l->mask + l->n, 0, STEP);
    l->n += STEP;
}

PS_INLINE const uint8_t *note_varint(ps_layout *l, const uint8_t *p) {
    const uint8_t *next = walk_varint(p);
    if (l && next) note(l, p, next, NOTE_VARINT);
    return next;
}

PS_INLINE const uint8_t *note_binary(ps_layout *l, const uint8_t *p, const uint8_t *end) {
    if (l) note_run(l);
    return walk_binary(p, end);
}

/* l: NULL = nothing to be noted. */
static const uint8_t *walk_struct(const uint8_t *p, const uint8_t *end, int depth,
                                  ps_layout *l) {
    for (;;) {
        if (PS_UNLIKELY(end - p < WALK_BYTES)) return NULL;
        unsigned header = *p++, n, element;
        if (l) note(l, p - 1, p, NOTE_FIXED);
        if (header == PS_T_STOP) return p;
        if (PS_UNLIKELY(header < 16)) return NULL;
        switch (header & 15) {
        case PS_T_TRUE:
        case PS_T_FALSE: continue;
        case PS_T_I16:
        case PS_T_I32:
        case PS_T_I64: p = note_varint(l, p); break;
        case PS_T_BINARY: p = note_binary(l, p, end); break;
        case PS_T_STRUCT: p = depth ? walk_struct(p, end, depth - 1, l) : NULL; break;
        case PS_T_LIST:
            element = *p & 15;
            n = *p++ >> 4;
            if (l) note(l, p - 1, p, NOTE_FIXED);
            if (n == 15) return NULL;
            if (element == PS_T_I32 || element == PS_T_I64)
                while (p && n--) p = note_varint(l, p);
            else if (element == PS_T_BINARY)
                while (p && n--) p = end - p < WALK_BYTES ? NULL : note_binary(l, p, end);
            else if (element == PS_T_STRUCT && depth)
                while (p && n--) p = walk_struct(p, end, depth - 1, l);
            else
                return NULL;
            break;
        default: return NULL;
        }
        if (PS_UNLIKELY(!p)) return NULL;
    }
}

bool ps_thrift_walk(ps_thrift *t) {
    const uint8_t *p = walk_struct(t->p, t->end, WALK_DEPTH - 1, NULL);
    if (PS_LIKELY(p != NULL)) t->p = p;
    return p != NULL;
}

/* ---- structs with a common layout -------------------------------------------------------- */

#define MISFITS 64 /* which cost about as much as learning a layout */

/* walk_struct is bound by latency: where a field begins is known once the one before it has been
 * read. Here the layout says in advance where they all are, up to the next byte string, and whole
 * words are compared with it. An integer of another length is the common exception: it is walked
 * by itself, and the comparison goes on behind it.
 *
 * By induction p is where walk_struct would be: all that it looks at are headers, which are equal,
 * the ends of integers, which are equal or looked for, and lengths of byte strings, which are read
 * here as there. Reads stay inside [p, end): at every step 2 * STEP bytes are left. */
static const uint8_t *walk_layout(ps_layout *l, const uint8_t *p, const uint8_t *end) {
    size_t at = 0;
    for (size_t run = 0;; run++) {
        size_t stop = l->stop[run];
        while (at < stop) {
            if (PS_UNLIKELY(end - p < 2 * STEP)) return NULL;
            uint64_t differ = (ps_load64(p) ^ ps_load64(l->byte + at)) &
                              ps_load64(l->mask + at);
            if (PS_LIKELY(!differ)) {
                p += STEP;
                at += STEP;
                continue;
            }
            size_t where = at + ((size_t)ps_ctz64(differ) >> 3), start = l->start[where];
            if (start == NOT_AN_INTEGER) return NULL;
            l->misfits++;
            /* the integer may have begun a step ago */
            p = walk_varint(p + ((ptrdiff_t)start - (ptrdiff_t)at));
            if (PS_UNLIKELY(!p)) return NULL;
            at = (size_t)(walk_varint(l->byte + where) - l->byte);
        }
        p -= at - stop;
        if (run + 1 == l->n_runs) return p;
        if (PS_UNLIKELY(end - p < 2)) return NULL;
        p = walk_binary(p, end);
        if (PS_UNLIKELY(!p)) return NULL;
        at = stop + STEP;
    }
}

static const uint8_t *learn(const ps_thrift *t, ps_layout *l) {
    l->n = l->n_runs = l->misfits = 0;
    l->failed = false;
    const uint8_t *p = walk_struct(t->p, t->end, WALK_DEPTH - 1, l);
    if (p)
        note_run(l);
    else
        l->failed = true;
    return p;
}

static const uint8_t *walk_unlike(const ps_thrift *t, ps_layouts *known, uint8_t *layout) {
    const uint8_t *p;
    for (size_t i = 0; i < known->n; i++) {
        if (i == *layout || !(p = walk_layout(&known->at[i], t->p, t->end))) continue;
        *layout = (uint8_t)i;
        return p;
    }
    if (known->n == PS_LAYOUTS) return walk_struct(t->p, t->end, WALK_DEPTH - 1, NULL);
    p = learn(t, &known->at[known->n]);
    if (!known->at[known->n].failed) *layout = (uint8_t)known->n++;
    return p;
}

/* Integers grow in the course of a file (offsets above all): a layout that fits badly is learned
 * again, from a struct that it fits as far as it must. */
static PS_COLD void refresh(const ps_thrift *t, ps_layouts *known, ps_layout *l) {
    ps_layout *fresh = &known->at[known->n];
    l->misfits = 0;
    learn(t, fresh);
    if (!fresh->failed) *l = *fresh;
}

bool ps_thrift_walk_similar(ps_thrift *t, ps_layouts *known, uint8_t *layout) {
    const uint8_t *p = NULL;
    if (PS_LIKELY(*layout < known->n)) {
        ps_layout *l = &known->at[*layout];
        p = walk_layout(l, t->p, t->end);
        if (PS_UNLIKELY(p && l->misfits > MISFITS)) refresh(t, known, l);
    }
    if (PS_UNLIKELY(!p)) p = walk_unlike(t, known, layout);
    if (PS_LIKELY(p != NULL)) t->p = p;
    return p != NULL;
}
