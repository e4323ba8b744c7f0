/* delta.h - the stream of integers of DELTA_BINARY_PACKED (Encodings.md, "Delta Encoding"). Internal.
 *
 * Blocks may have any number of miniblocks of any multiple of eight values. Sums wrap around. Errors are at
 * the byte counted from the start of the stream. A stream of zero bytes, which is what {0} is, has no values. */
#ifndef PAGESEEK_DELTA_H
#define PAGESEEK_DELTA_H

#include "base.h"

typedef struct ps_delta {
    const uint8_t *start, *p, *end;
    uint64_t left;            /* values not read yet */
    uint64_t last;            /* the value read last; before the first read, the first value */
    bool first;               /* nothing was read yet */
    uint32_t minis, per_mini; /* miniblocks of a block, values of a miniblock */
    uint64_t min_delta;
    const uint8_t *widths; /* bits of a delta, for each miniblock of the block */
    uint32_t next;         /* miniblock of the block that comes next; minis: a new block */
    uint32_t at;           /* deltas of this miniblock that are done */
    int width;             /* bits of a delta in it */
    const uint8_t *bits;   /* its first byte */
} ps_delta;

ps_status ps_delta_open(ps_delta *delta, const uint8_t *data, size_t length, ps_error *err);
/* The next n values modulo 2^32 or 2^64; PS_TRUNCATED when there are fewer. */
ps_status ps_delta_read32(ps_delta *delta, uint32_t *out, size_t n, ps_error *err);
ps_status ps_delta_read64(ps_delta *delta, uint64_t *out, size_t n, ps_error *err);
/* Skips n values: of them only what the values behind them need is decoded. */
ps_status ps_delta_skip(ps_delta *delta, uint64_t n, ps_error *err);
/* Where the stream ends: walks over the miniblocks that are left without reading them. */
ps_status ps_delta_end(const ps_delta *delta, const uint8_t **end, ps_error *err);

#endif
