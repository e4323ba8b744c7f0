/* rle.h - the RLE / bit-packing hybrid (Encodings.md, "Run Length Encoding / Bit-Packing Hybrid").
 * Internal. */
#ifndef PAGESEEK_RLE_H
#define PAGESEEK_RLE_H

#include "base.h"

typedef struct ps_rle {
    const uint8_t *start, *p, *end;
    int width;           /* bits of a value, 0 to 32; 0: every value is 0 and no byte is read */
    bool packed;         /* the current run */
    uint64_t left;       /* values left in it */
    uint32_t value;      /* repeated run */
    const uint8_t *bits; /* packed run: its first byte */
    uint64_t at;         /* packed run: values of it that are done */
} ps_rle;

ps_status ps_rle_open(ps_rle *rle, const uint8_t *data, size_t length, int width,
                      ps_error *err);
/* Exactly n values, or an error at the byte (counted from `data`) where they end. */
ps_status ps_rle_read(ps_rle *rle, uint32_t *out, size_t n, ps_error *err);
ps_status ps_rle_skip(ps_rle *rle, uint64_t n, ps_error *err);
/* Of width 1: n values as bits, appended at out_bit. */
ps_status ps_rle_read_bits(ps_rle *rle, uint8_t *out, size_t out_bit, uint64_t n,
                           ps_error *err);
/* Values that the current run repeats from here on; 0 when the run is bit-packed. */
ps_status ps_rle_peek_repeat(ps_rle *rle, uint64_t *count, ps_error *err);

#endif
