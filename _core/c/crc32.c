/* crc32.c - CRC-32 of pages, on the path of every byte read: by tables, or where the processor
 * multiplies polynomials, by folding. */
#include "base.h"
#include "crc32_tables.inc"

static uint32_t by_tables(uint32_t crc, const uint8_t *p, size_t n) {
    for (; n >= 8; p += 8, n -= 8) {
        uint64_t w = ps_load64(p) ^ crc;
        crc = slices[7][w & 0xff] ^ slices[6][(w >> 8) & 0xff] ^ slices[5][(w >> 16) & 0xff] ^
              slices[4][(w >> 24) & 0xff] ^ slices[3][(w >> 32) & 0xff] ^
              slices[2][(w >> 40) & 0xff] ^ slices[1][(w >> 48) & 0xff] ^ slices[0][w >> 56];
    }
    for (; n > 0; n--) crc = (crc >> 8) ^ slices[0][(crc ^ *p++) & 0xff];
    return crc;
}

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__)) && !defined(_MSC_VER)
#include <immintrin.h>

#define FOLDING __attribute__((target("pclmul")))

enum { LANES = 4, STRIDE = 16 * LANES };

FOLDING PS_INLINE __m128i load(const uint8_t *p) {
    return _mm_loadu_si128((const __m128i *)p);
}

/* block, moved ahead as far as the multipliers say, onto next */
FOLDING PS_INLINE __m128i fold(__m128i block, __m128i multipliers, __m128i next) {
    __m128i low = _mm_clmulepi64_si128(block, multipliers, 0x00);
    __m128i high = _mm_clmulepi64_si128(block, multipliers, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

/* Folds all whole blocks of 16, at least LANES of them, into one of the same remainder. */
FOLDING static uint32_t by_folding(uint32_t crc, const uint8_t *p, size_t n) {
    const __m128i far = _mm_set_epi64x(FOLD_512), near = _mm_set_epi64x(FOLD_128);
    __m128i lane[LANES];
    for (int i = 0; i < LANES; i++) lane[i] = load(p + 16 * i);
    lane[0] = _mm_xor_si128(lane[0], _mm_cvtsi32_si128((int)crc));
    for (p += STRIDE, n -= STRIDE; n >= STRIDE; p += STRIDE, n -= STRIDE)
        for (int i = 0; i < LANES; i++) lane[i] = fold(lane[i], far, load(p + 16 * i));
    for (int i = 1; i < LANES; i++) lane[i] = fold(lane[i - 1], near, lane[i]);
    __m128i block = lane[LANES - 1];
    for (; n >= 16; p += 16, n -= 16) block = fold(block, near, load(p));
    uint8_t rest[16];
    _mm_storeu_si128((__m128i *)rest, block);
    return by_tables(by_tables(0, rest, sizeof rest), p, n);
}

static bool can_fold(size_t n) {
    return n >= STRIDE && __builtin_cpu_supports("pclmul");
}
#else
#define by_folding by_tables
static bool can_fold(size_t n) {
    return (void)n, false;
}
#endif

uint32_t ps_crc32(uint32_t crc, const uint8_t *data, size_t length) {
    crc = ~crc;
    return ~(can_fold(length) ? by_folding(crc, data, length) : by_tables(crc, data, length));
}
