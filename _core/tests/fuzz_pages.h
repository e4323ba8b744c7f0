/* fuzz_pages.h - what the fuzz targets of flat and nested leaves share: input byte by byte, selections, columns. */
#ifndef PAGESEEK_FUZZ_PAGES_H
#define PAGESEEK_FUZZ_PAGES_H

#include "touch.h"

typedef struct input {
    const uint8_t *p, *end;
} input;

static inline uint8_t byte_of(input *in) {
    return in->p < in->end ? *in->p++ : 0;
}

/* A copy of exactly `n` bytes, so that a read beyond them is seen. */
static inline uint8_t *part(input *in, size_t n, size_t *got) {
    size_t space = (size_t)(in->end - in->p);
    *got = n < space ? n : space;
    uint8_t *copy = malloc(*got ? *got : 1);
    require(copy != NULL);
    memcpy(copy, in->p, *got);
    in->p += *got;
    return copy;
}

/* `n` ranges from the input, sorted and disjoint. */
static inline ps_selection ranges_of(input *in, ps_range *ranges, size_t n) {
    int64_t row = 0;
    for (size_t i = 0; i < n; i++) {
        ranges[i].start = row += byte_of(in);
        ranges[i].stop = row += byte_of(in);
    }
    return (ps_selection){.ranges = ranges, .n_ranges = n};
}

/* Make a selection of a bitmap one of the ranges given back, for the caller to free. */
static inline ps_range *as_ranges(ps_selection *selection) {
    const ps_selection bits = *selection;
    const size_t n = ps_selection_runs(&bits);
    ps_range *runs = malloc(n ? n * sizeof *runs : 1);
    require(runs != NULL);
    ps_selection_to_ranges(&bits, runs);
    *selection = (ps_selection){.ranges = runs, .n_ranges = n};
    return runs;
}

#endif
