/* nest.h - the state of a nested leaf, shared by nest (nesting levels and the walk), nest_page (levels of a page),
 * nest_slots (runs of rows) and nest_block (scattered rows). Internal.
 *
 * A list cuts the nesting levels into segments. Segment s lies below s lists, and its slots are the entries with a
 * repetition level of at most s and a definition level that says that list s has an element there. All that
 * is nullable in a segment has one validity bit a slot; the list below it one offset a slot. */
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

/* How many of n definition levels are at least `level`. */
int64_t ps_nest_count_level(const uint8_t *def, size_t n, uint8_t level);
/* The entry at which a row of the page begins; the end of the page for the row after its last. */
ps_status ps_nest_entry_of(ps_leaf *leaf, int64_t row, int64_t *entry, ps_error *err);

/* nest_slots.c: entries up to `to` go into the output. */
ps_status ps_nest_take_entries(ps_leaf *leaf, int64_t to, ps_error *err);
/* Room for so many further slots of a segment; for as many values in all. */
ps_status ps_nest_room(ps_leaf *leaf, int32_t s, int64_t slots, ps_error *err);
ps_status ps_nest_room_values(ps_leaf *leaf, size_t total, ps_error *err);

/* nest_block.c: rows from `start`, where the leaf stands and which is chosen, to the last chosen one before `stop`, as far as
 * their entries are one block. *rows is 0, and nothing is done, where going from run to run is better: up to
 * leaf->rows.evaluated. */
ps_status ps_nest_take_block(ps_leaf *leaf, int64_t start, int64_t stop, int64_t *rows,
                             ps_error *err);

#endif
