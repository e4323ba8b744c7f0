/* nest.h - the state of a nested leaf, shared by nest (nesting levels and the walk), nest_page (levels of a page),
 * nest_slots (runs of rows) and nest_block (scattered rows). Internal.
 *
 * A list cuts the nesting levels into segments. Segment s lies below s lists, and its slots are the entries with a
 * repetition level of at most s and a definition level that says that list s has an element there. Every nullable
 * level of a segment has one validity bit a slot, and the list below it one offset a slot.
 *
 * Calls go one way: nest calls the others, nest_block calls nest_slots, and all call nest_page. nest_page owns what the
 * struct says of the page, but for `entry` and `open`, which the walk moves. The walk counts rows and slots. */
#ifndef PAGESEEK_NEST_H
#define PAGESEEK_NEST_H

#include "leaf.h"

typedef struct ps_nest_level { /* a nesting level and its output */
    int32_t type;
    uint8_t def_level;  /* least definition level at which it is there */
    int64_t null_count; /* PS_NESTING_OPTIONAL */
    ps_grow out;        /* bits, or 32-bit offsets */
    bool given;         /* handed over, until it is begun again */
} ps_nest_level;

typedef struct ps_segment {
    uint8_t level;       /* least definition level of its slots */
    int32_t first, stop; /* its nullable nesting levels */
    int64_t slots;       /* in the output */
} ps_segment;

/* Whether the last row that began goes on in the next page, and whether it is selected. */
typedef enum ps_open { PS_OPEN_NOT = 0, PS_OPEN_SKIPPED, PS_OPEN_TAKEN } ps_open;

struct ps_nest {
    int32_t n_nesting_levels, lists; /* segments: one more than lists */
    ps_nest_level *levels;
    ps_segment *segments;

    /* the page */
    ps_grow rep, def; /* a byte an entry; rep is empty where nothing is repeated */
    ps_grow starts;   /* uint32_t: entries at which rows begin, and the end */
    bool has_starts;
    int64_t entries, entry; /* in the page, those that are done */
    int64_t lead;           /* that belong to a row of a page before */
    ps_open open;
    uint8_t last_def; /* of the entry before the page */

    int64_t rows, max_rows; /* output */
};

/* The top bit of each of 8 bytes that is at least `least`. Bytes and `least` are below 128, so that no sum carries into
 * its neighbour. */
PS_INLINE uint64_t ps_levels_found(const uint8_t *bytes, uint8_t least) {
    const uint64_t ones = UINT64_C(0x0101010101010101);
    return ((ps_load64(bytes) | PS_HIGH_BITS) - least * ones) & PS_HIGH_BITS;
}
/* These top bits as the 8 bits of a byte, the first byte lowest; and their number. */
PS_INLINE uint64_t ps_found_bits(uint64_t found) {
    return ps_bytes_to_bits(found >> 7);
}
PS_INLINE size_t ps_found_count(uint64_t found) {
    return ps_bytes_sum(found >> 7);
}
/* Adds to `count` how many of n bytes pass a test of `byte`. Sums are bytes, which a compiler adds many at a time. */
#define PS_COUNT_BYTES(count, bytes, n, test)                                                  \
    for (size_t left = (n), at = 0, take; left; at += take, left -= take) {                    \
        const uint8_t *const part = (bytes) + at;                                              \
        uint8_t sum = 0;                                                                       \
        take = left < 255 ? left : 255;                                                        \
        for (size_t k = 0; k < take; k++) {                                                    \
            const uint8_t byte = part[k];                                                      \
            sum = (uint8_t)(sum + (test));                                                     \
        }                                                                                      \
        (count) += sum;                                                                        \
    }

/* ---- nest_page.c ------------------------------------------------------------------------- */

/* How many of n definition levels are at least `level`. */
int64_t ps_nest_count_level(const uint8_t *def, size_t n, uint8_t level);
/* The entry at which a row of the page begins; the end of the page for the row after its last. */
ps_status ps_nest_entry_of(ps_leaf *leaf, int64_t row, int64_t *entry, ps_error *err);

/* ---- nest_slots.c ------------------------------------------------------------------------ */

/* Entries up to `to` go into the output. */
ps_status ps_nest_take_entries(ps_leaf *leaf, int64_t to, ps_error *err);
/* Reserves space for `slots` further slots of a segment; for `total` values in all. */
ps_status ps_nest_reserve(ps_leaf *leaf, int32_t s, int64_t slots, ps_error *err);
ps_status ps_nest_reserve_values(ps_leaf *leaf, size_t total, ps_error *err);

/* ---- nest_block.c ------------------------------------------------------------------------ */

/* Takes rows from `start`, where the leaf stands and which is chosen, to the last chosen one before `stop`, as far as their
 * entries are one block. *rows is 0, and nothing is done, where reading run by run up to rows.evaluated is cheaper. */
ps_status ps_nest_take_block(ps_leaf *leaf, int64_t start, int64_t stop, int64_t *rows,
                             ps_error *err);

#endif
