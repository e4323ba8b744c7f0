/* lz.h - the copies that Snappy and LZ4 share. Internal. */
#ifndef PAGESEEK_LZ_H
#define PAGESEEK_LZ_H

#include "base.h"

/* The wide forms below write fewer than this many bytes beyond the last one. */
#define PS_LZ_SLACK 32

/* 16 bytes, as if through a register: the two may overlap. */
PS_INLINE void ps_lz_copy16(uint8_t *to, const uint8_t *from) {
    struct {
        uint64_t half[2];
    } v;
    memcpy(&v, from, sizeof v);
    memcpy(to, &v, sizeof v);
}

/* Append n >= 1 bytes that repeat those `offset` (at least 1) bytes back. */
PS_INLINE void ps_lz_repeat_wide(uint8_t *to, size_t offset, size_t n) {
    /* A period below 8 is spread over a word in a register: reading back what was just stored
     * would stall. `step` is the largest multiple of the period that the word holds. */
    static const uint64_t spread[8] = {0,
                                       0x0101010101010101,
                                       0x0001000100010001,
                                       0x0001000001000001,
                                       0x0000000100000001,
                                       0x0000010000000001,
                                       0x0001000000000001,
                                       0x0100000000000001};
    static const uint8_t step[8] = {0, 8, 8, 6, 8, 5, 6, 7};
    const uint8_t *from = to - offset, *end = to + n;
    if (PS_LIKELY(offset >= 16)) {
        do {
            ps_lz_copy16(to, from);
            ps_lz_copy16(to + 16, from + 16);
            to += 32, from += 32;
        } while (to < end);
    } else if (offset >= 8) {
        do {
            ps_store64(to, ps_load64(from));
            to += 8, from += 8;
        } while (to < end);
    } else {
        uint64_t word = (ps_load64(from) & ((UINT64_C(1) << (8 * offset)) - 1)) *
                        spread[offset];
        do {
            ps_store64(to, word);
            to += step[offset];
        } while (to < end);
    }
}

/* Copies any n bytes, and not one more. */
static inline void ps_lz_repeat(uint8_t *to, size_t offset, size_t n) {
    if (n > PS_LZ_SLACK) {
        ps_lz_repeat_wide(to, offset, n - PS_LZ_SLACK);
        to += n - PS_LZ_SLACK;
        n = PS_LZ_SLACK;
    }
    for (const uint8_t *from = to - offset; n > 0; n--) *to++ = *from++;
}

#endif
