/* lookup.h - membership in a long list of literals, by a table that is made once. Internal. */
#ifndef PAGESEEK_LOOKUP_H
#define PAGESEEK_LOOKUP_H

#include "values.h"

enum {
    PS_IN_SORTED = 0, /* no table: the list is searched */
    PS_IN_BITS,       /* a bit for every integer from the least literal to the greatest */
    PS_IN_TABLE       /* a filter of bits by hash, and a table of places in the list */
};

/* Word of results for the `count` <= 64 values from `first`, bits from count on zero. Values are
 * of the list's kind, or both are byte strings. NaN is in no list. */
typedef uint64_t (*ps_in_block)(const ps_in *in, const ps_values *values, int64_t first,
                                int count);

/* NULL where the list has no table. */
ps_in_block ps_in_blocks(const ps_in *in);

#endif
