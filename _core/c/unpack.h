/* unpack.h - bit-packed values, least significant bit first, as runs and deltas have them (Encodings.md).
 * Internal. */
#ifndef PAGESEEK_UNPACK_H
#define PAGESEEK_UNPACK_H

#include "base.h"

/* Of the values of `width` bits, 0 to 32, that are packed from `in` on, those from number `at` on, n of them.
 * Bits at and beyond `end` count as zero, and nothing is read there. */
void ps_unpack32(const uint8_t *in, const uint8_t *end, int width, uint64_t at, uint32_t *out,
                 size_t n);
/* Does this, but each value has `step` and the one before it added, the first of them *sum, which becomes the last.
 * Widths: 0 to 32, 0 to 64. */
void ps_unpack_sums32(const uint8_t *in, const uint8_t *end, int width, uint64_t at,
                      uint32_t step, uint32_t *sum, uint32_t *out, size_t n);
void ps_unpack_sums64(const uint8_t *in, const uint8_t *end, int width, uint64_t at,
                      uint64_t step, uint64_t *sum, uint64_t *out, size_t n);

#endif
