/* ps_values.h - values and selections: comparison, search, zones, sets of rows, rows of an Arrow array. Part of
 * pageseek.h. */
#ifndef PAGESEEK_PS_VALUES_H
#define PAGESEEK_PS_VALUES_H

#include "ps_base.h"

/* ---- values: one representation for rows, dictionaries and bounds ------------------------ */

/* Arrow layouts, little endian. */
typedef enum ps_kind {
    PS_BOOL = 0, /* bitmap, least significant bit first */
    PS_I8,
    PS_I16,
    PS_I32,
    PS_I64,
    PS_U8,
    PS_U16,
    PS_U32,
    PS_U64,
    PS_F16,
    PS_F32,
    PS_F64,
    PS_D128,        /* two's complement integers of 16 bytes */
    PS_D256,        /* and of 32 */
    PS_BYTES,       /* int32 offsets (n + 1) and data; unsigned bytewise order */
    PS_LARGE_BYTES, /* int64 offsets (n + 1) and data */
    PS_FIXED,       /* `width` bytes each; unsigned bytewise order */
    PS_VIEWS, /* a leaf's output only: Arrow's views of byte strings in place of offsets, and the bytes of long ones */
    PS_SLICES, /* values that are compared only: a ps_slice of the data for each byte string */
} ps_kind;

/* A byte string, which lies in some data. */
typedef struct ps_slice {
    uint32_t offset, length;
} ps_slice;

/* n values of a kind. All buffers are borrowed, and may have any alignment. */
typedef struct ps_values {
    int32_t kind;  /* ps_kind */
    int32_t width; /* PS_FIXED: bytes of a value */
    int64_t n;
    const uint8_t *validity; /* bitmap of n bits, 1 = valid; NULL = all valid */
    const uint8_t *values;   /* values, or the data of byte strings */
    size_t values_size;      /* bytes readable at `values` */
    const void *offsets;     /* PS_BYTES, PS_LARGE_BYTES; PS_SLICES: the slices */
} ps_values;

typedef enum ps_op {
    PS_EQ,
    PS_NE,
    PS_LT,
    PS_LE,
    PS_GT,
    PS_GE,
    PS_IN,     /* literals sorted and distinct, as ps_literals_sort makes them */
    PS_PREFIX, /* byte strings that start with one of the literals. Several literals are sorted, and none starts
                * with another */
    PS_IS_NULL,
    PS_IS_NAN,
    PS_ALWAYS, /* TRUE for every value, NULL for null: what x < 300 is for an int8 column */
    PS_NEVER,  /* FALSE for every value, NULL for null */
} ps_op;

typedef enum ps_nan {
    PS_NAN_IEEE = 0,  /* every comparison with NaN is FALSE except != */
    PS_NAN_SPARK = 1, /* NaN = NaN, and NaN is above all numbers; in both -0.0 = 0.0 */
} ps_nan;

/* Sorts literals in the order of their kind and drops duplicates. NaN sorts last; one zero and one NaN remain.
 * `order` has space for all and receives the indices of those that remain, *kept their number. */
ps_status ps_literals_sort(const ps_values *literals, int64_t *order, size_t *kept,
                           ps_error *err);

/* mask bit i = 1 where `values[i] op literals` is TRUE, or, with `negate`, where it is FALSE. A null gives 0 in
 * both cases, except for PS_IS_NULL, which is never NULL itself. `mask` has (n + 7) / 8 bytes, and its tail bits
 * become zero. *count receives the number of ones. */
ps_status ps_compare(const ps_values *values, ps_op op, bool negate, const ps_values *literals,
                     ps_nan nan, uint8_t *mask, int64_t *count, ps_error *err);

/* A list of IN for repeated use. Its literals are checked once. With a table, which lies in memory of the caller,
 * the time of a test does not grow with the list. */
typedef struct ps_in {
    ps_values literals; /* as for PS_IN; borrowed, as the table is, for the life of this */
    int64_t n;          /* literals without a NaN at the end */
    int32_t form;       /* internal, as are the fields below */
    int32_t filter_shift, table_shift;
    uint64_t low, span;
    size_t slots;
    const uint8_t *bits, *table;
} ps_in;
/* Opens a list without a table. PS_INVALID: the literals are not sorted and distinct. */
ps_status ps_in_open(const ps_values *literals, ps_in *out, ps_error *err);
/* Bytes that a table takes: at most 24 for each literal, or a few kilobytes. 0: a table would not help. */
size_t ps_in_table_size(ps_in *in);
/* Makes the table in `memory` of that size and any alignment. A list whose hashes collide stays without one. */
void ps_in_build(ps_in *in, void *memory);
/* Does what ps_compare does for PS_IN. It only reads `in`, so that threads may share it. */
ps_status ps_compare_in(const ps_values *values, bool negate, const ps_in *in, ps_nan nan,
                        uint8_t *mask, int64_t *count, ps_error *err);

/* Tests n dictionary codes. passes[c] is 1 where the entry of code c passes. It has entries + 1 bytes; the last one
 * is 0 and stands for every code that is no entry. A null gives 0; `validity` may be NULL, and begins at bit 0
 * otherwise. `mask` and *count are as for ps_compare. */
void ps_codes_mask(const int32_t *codes, const uint8_t *validity, int64_t n,
                   const uint8_t *passes, uint32_t entries, uint8_t *mask, int64_t *count);

/* ---- search ------------------------------------------------------------------------------ */

/* *out = the first index whose value is >= (lower) or > (upper) the literal. `sorted` ascends, without nulls and
 * NaN. The inner loop has no branch. */
ps_status ps_lower_bound(const ps_values *sorted, const ps_values *literal, int64_t *out,
                         ps_error *err);
ps_status ps_upper_bound(const ps_values *sorted, const ps_values *literal, int64_t *out,
                         ps_error *err);

/* Zones: row groups of a file or pages of a chunk, with what is known of each. Everything is borrowed. */
#define PS_MAY_TRUE  1
#define PS_MAY_FALSE 2
#define PS_MAY_NULL  4
typedef struct ps_zones {
    size_t n;
    ps_values lower, upper;     /* n values each; only those with known[i] are read */
    const uint8_t *known;       /* n bytes: 1 = both bounds may be trusted */
    const uint8_t *all_null;    /* n bytes or NULL: 1 = a null page */
    const int64_t *null_counts; /* n or NULL; negative = unknown */
    const int64_t *nan_counts;  /* n or NULL; negative = unknown; floats only */
    const int64_t *counts;      /* n or NULL: rows in the zone; negative = unknown */
    int32_t order; /* what ps_zones_order verified: 0 none, 1 ascending, 2 descending */
    const int64_t *nearest; /* n as ps_zones_nearest writes them; NULL: searched each time */
} ps_zones;

/* Verifies the claimed order over the known zones. *order = claimed where it holds and every zone that is not known
 * is all_null, else 0. A zone with NaN as a bound or lower > upper loses its `known`, which is the array that
 * `zones` borrows. */
ps_status ps_zones_order(ps_zones *zones, uint8_t *known, int32_t claimed, int32_t *order,
                         ps_error *err);

/* nearest[i] = the last zone up to i whose bounds count, or -1: a search among many zones without bounds then need
 * not walk over them. Returns false, and writes nothing, where every zone has bounds: no table is needed. */
bool ps_zones_nearest(const ps_zones *zones, int64_t *nearest);

/* The first zone that lies wholly out of the bounds of zone i of `whole`, of which all zones should be parts; SIZE_MAX
 * where there is none. Truncated bounds only reach further. Both arguments have passed ps_zones_order. */
size_t ps_zones_out_of_bounds(const ps_zones *zones, const ps_zones *whole, size_t i);

/* verdict[i] = the set of PS_MAY_* that some row of zone i may have for the predicate. A bit that is not set is
 * proof that no row has it. Ordered zones are searched, others are tested one by one. */
ps_status ps_zones_probe(const ps_zones *zones, ps_op op, const ps_values *literals, ps_nan nan,
                         uint8_t *verdict, ps_error *err);
/* Does this for IN with an open list, whose literals are not checked again. */
ps_status ps_zones_probe_in(const ps_zones *zones, const ps_in *in, ps_nan nan,
                            uint8_t *verdict, ps_error *err);

/* ---- selections of rows ------------------------------------------------------------------ */

typedef struct ps_range {
    int64_t start, stop; /* half-open */
} ps_range;

/* A set of rows: sorted disjoint ranges, which may touch; or, where `bitmap` is not NULL, row base + i for each set bit
 * i < length. Borrowed. ps_selection_check holds for a selection before any other function sees it: then no
 * sum of its rows overflows. */
typedef struct ps_selection {
    const ps_range *ranges;
    size_t n_ranges;
    const uint8_t *bitmap;
    int64_t base, length;
} ps_selection;

/* PS_INVALID unless ranges are sorted, disjoint, not empty and not negative, or the bitmap lies in [0, INT64_MAX). */
ps_status ps_selection_check(const ps_selection *selection, ps_error *err);
/* Number of selected rows. */
int64_t ps_selection_count(const ps_selection *selection);
/* Number of selected rows at or after `row`, but at most `most`, and at least 0. */
int64_t ps_selection_count_from(const ps_selection *selection, int64_t row, int64_t most);

/* A place in the runs of a selection. To begin at a row, set index to 0 and row to it. */
typedef struct ps_run_cursor {
    size_t index; /* range, or bit */
    int64_t row;  /* rows before this one are done */
} ps_run_cursor;
/* The next maximal run of selected rows at or after cursor->row, cut at `limit`. False where none begins below
 * `limit`; the cursor then stands there. Any limit is allowed. */
bool ps_selection_next(const ps_selection *selection, ps_run_cursor *cursor, int64_t limit,
                       ps_range *run);

/* Algebra of ranges. Returns the number of ranges in `out`, which has space for na + nb (and, or), or na + 1 (not, within
 * [start, stop)). */
size_t ps_ranges_and(const ps_range *a, size_t na, const ps_range *b, size_t nb, ps_range *out);
size_t ps_ranges_or(const ps_range *a, size_t na, const ps_range *b, size_t nb, ps_range *out);
size_t ps_ranges_not(const ps_range *a, size_t na, int64_t start, int64_t stop, ps_range *out);
/* Turns ranges in any order into sorted ones that neither overlap nor touch, in place. Empty ones are dropped.
 * PS_INVALID: a negative row, or stop < start. */
ps_status ps_ranges_normalise(ps_range *ranges, size_t n, size_t *kept, ps_error *err);
/* Makes such ranges from n row numbers in any order. `out` has space for n. */
ps_status ps_ranges_from_rows(const int64_t *rows, size_t n, ps_range *out, size_t *kept,
                              ps_error *err);
/* into = into op other. Both are bitmaps of `size` bytes with one base. */
typedef enum ps_set_op { PS_SET_AND, PS_SET_OR, PS_SET_SUB, PS_SET_XOR } ps_set_op;
void ps_bitmap_combine(uint8_t *into, const uint8_t *other, size_t size, ps_set_op op);
/* The row after the last selected one of [start, stop), or start where there is none. */
int64_t ps_selection_end(const ps_selection *selection, int64_t start, int64_t stop);
/* The k-th selected row, counted from 0; -1 where there is none. */
int64_t ps_selection_nth(const ps_selection *selection, int64_t k);
/* Number of maximal runs. */
size_t ps_selection_runs(const ps_selection *selection);
/* The maximal runs. `out` has space for ps_selection_runs of them. */
void ps_selection_to_ranges(const ps_selection *selection, ps_range *out);
/* bit i of bitmap = row base + i is selected, for i < length. bitmap has (length + 7) / 8 bytes, all overwritten;
 * base + length is at most INT64_MAX. */
void ps_selection_to_bitmap(const ps_selection *selection, int64_t base, int64_t length,
                            uint8_t *bitmap);
/* Keeps the k-th selected row where bit k of mask is set. `mask` has ps_selection_count bits. Returns the number of
 * ranges; `out` has space for them, or is NULL, and then they are only counted. */
size_t ps_selection_refine(const ps_selection *selection, const uint8_t *mask, ps_range *out);
/* Does this with a bitmap of [base, base + length) as its result, which no selected row lies outside of. For a
 * selection that is a bitmap, base and length are its own. bitmap has (length + 7) / 8 bytes, all overwritten. */
void ps_selection_refine_bits(const ps_selection *selection, const uint8_t *mask, int64_t base,
                              int64_t length, uint8_t *bitmap);
/* The rows [base, base + length) as (length + 63) / 64 words; bits behind the last row are zero. *index is the range at
 * which the search begins, and moves to the first range that does not end before base. */
void ps_selection_words(const ps_selection *selection, size_t *index, int64_t base,
                        int64_t length, uint64_t *words);
/* Rows of zones whose verdict has `bit`. Zone i is rows first[i] to first[i + 1]; first has n + 1 numbers, and `out` has
 * space for n ranges. Returns their number. */
size_t ps_zones_to_ranges(const uint8_t *verdict, uint8_t bit, const int64_t *first, size_t n,
                          ps_range *out);
/* mask[i] = 1 where some row of first[i] to first[i + 1] is selected. The numbers may be any. */
void ps_pages_touched(const ps_selection *selection, const int64_t *first, size_t n,
                      uint8_t *mask);

/* ---- rows of an Arrow array -------------------------------------------------------------- */

/* The rows to take of an array of n: those with a set bit in `mask`, in which bit `start` stands for the first row;
 * or, where `mask` is NULL, the rows at `places`, in that order. Borrowed. ps_gather_check holds before any other
 * function sees it. */
typedef struct ps_take_indices {
    const uint8_t *mask;
    size_t start;
    const int64_t *places;
    int64_t n, count; /* rows of the array; rows to take */
} ps_take_indices;

/* PS_INVALID unless `count` of the n bits are set, or every place is a row of the array. */
ps_status ps_gather_check(const ps_take_indices *indices, ps_error *err);
/* Takes bits (validity or booleans) to bit 0 of `out` and on. `out` has (count + 7) / 8 bytes, and its tail bits become
 * zero. Returns the number of ones. */
int64_t ps_gather_bits(const ps_take_indices *indices, const uint8_t *bits, uint8_t *out);
/* Takes values of `width` bytes. `out` has count * width bytes. */
void ps_gather_fixed(const ps_take_indices *indices, const uint8_t *values, size_t width,
                     uint8_t *out);
/* Takes the n + 1 offsets of byte strings, `width` (4 or 8) bytes each, into count + 1 offsets, of which the first is 0
 * and the last *total. PS_CORRUPT: those of a taken row run backwards or leave [0, size]. PS_LIMIT: the total does
 * not fit the width. */
ps_status ps_gather_offsets(const ps_take_indices *indices, const uint8_t *offsets,
                            size_t width, size_t size, uint8_t *out, size_t *total,
                            ps_error *err);
/* Takes the bytes that these offsets point to, `total` of `size`, after ps_gather_offsets has returned PS_OK. */
void ps_gather_strings(const ps_take_indices *indices, const uint8_t *offsets, size_t width,
                       const uint8_t *data, size_t size, uint8_t *out, size_t total);

#endif
