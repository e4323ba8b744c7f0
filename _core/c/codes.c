/* codes.c - tests of dictionary-coded values: the dictionary is evaluated once, the rows look it up. */
#include "base.h"

enum { BLOCK = 64 };

void ps_codes_mask(const int32_t *codes, const uint8_t *validity, int64_t n,
                   const uint8_t *passes, uint32_t entries, uint8_t *mask, int64_t *count) {
    *count = 0;
    for (int64_t at = 0; at < n; at += BLOCK) {
        const int64_t left = n - at;
        const size_t rows = left < BLOCK ? (size_t)left : BLOCK, size = (rows + 7) / 8;
        uint64_t bits = 0, valid = UINT64_MAX;
        for (size_t i = 0; i < rows; i++) {
            const uint32_t code = (uint32_t)codes[at + (int64_t)i];
            bits |= (uint64_t)(passes[code < entries ? code : entries] & 1) << i;
        }
        if (validity) memcpy(&valid, validity + at / 8, size);
        bits &= valid;
        memcpy(mask + at / 8, &bits, size);
        *count += ps_popcount64(bits);
    }
}
