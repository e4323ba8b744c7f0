/* bits.c - runs of bits at any bit offset: copied, filled, counted. */
#include "bits.h"

/* 1 to 57 bits that begin at any bit; reads only the bytes that hold them, some of them twice. */
PS_INLINE uint64_t bits_peek(const uint8_t *bits, size_t bit, size_t n) {
    const uint8_t *p = bits + (bit >> 3);
    const size_t last = ((bit & 7) + n - 1) >> 3, middle = (last + 1) >> 1;
    uint64_t v;
    if (last >= 3) {
        v = ps_load32(p) | (uint64_t)ps_load32(p + last - 3) << 8 * (last - 3);
    } else {
        v = p[0] | (uint64_t)p[middle] << 8 * middle | (uint64_t)p[last] << 8 * last;
    }
    v >>= bit & 7;
    return n < 64 ? v & ((UINT64_C(1) << n) - 1) : v;
}

/* Put the low n bits of v into a byte, from one of its bits on. */
PS_INLINE void put(uint8_t *to, size_t bit, size_t n, uint64_t v) {
    const unsigned mask = ((1u << n) - 1) << bit;
    *to = (uint8_t)((*to & ~mask) | ((unsigned)v << bit & mask));
}

void ps_bits_copy(uint8_t *to, size_t to_bit, const uint8_t *from, size_t from_bit, size_t n) {
    if (n && (to_bit & 7)) { /* up to a byte of the target */
        const size_t space = 8 - (to_bit & 7), head = n < space ? n : space;
        put(to + (to_bit >> 3), to_bit & 7, head, bits_peek(from, from_bit, head));
        to_bit += head, from_bit += head, n -= head;
    }
    uint8_t *out = to + (to_bit >> 3);
    if ((from_bit & 7) == 0) {
        memcpy(out, from + (from_bit >> 3), n >> 3);
        out += n >> 3, from_bit += n & ~(size_t)7, n &= 7;
    }
    for (; n >= 48; n -= 48, from_bit += 48, out += 6) {
        uint64_t v = bits_peek(from, from_bit, 48);
        memcpy(out, &v, 6);
    }
    for (; n >= 8; n -= 8, from_bit += 8) *out++ = (uint8_t)bits_peek(from, from_bit, 8);
    if (n) put(out, 0, n, bits_peek(from, from_bit, n));
}

void ps_bits_fill(uint8_t *to, size_t to_bit, size_t n, bool value) {
    const unsigned every = value ? 0xff : 0;
    if (n && (to_bit & 7)) {
        const size_t space = 8 - (to_bit & 7), head = n < space ? n : space;
        put(to + (to_bit >> 3), to_bit & 7, head, every);
        to_bit += head, n -= head;
    }
    uint8_t *out = to + (to_bit >> 3);
    memset(out, (int)every, n >> 3);
    if (n & 7) put(out + (n >> 3), 0, n & 7, every);
}

size_t ps_bits_count(const uint8_t *bits, size_t bit, size_t n) {
    size_t ones = 0;
    for (; n && (bit & 7); bit++, n--) ones += ps_bit_get(bits, bit);
    const uint8_t *p = bits + (bit >> 3);
    for (; n >= 16 * 64; n -= 16 * 64, p += 16 * 8) { /* sums in bytes: 128 at most */
        uint64_t sums = 0;
        for (int i = 0; i < 16; i++) {
            uint64_t v = ps_load64(p + 8 * i);
            v -= (v >> 1) & 0x5555555555555555u;
            v = (v & 0x3333333333333333u) + ((v >> 2) & 0x3333333333333333u);
            sums += (v + (v >> 4)) & 0x0f0f0f0f0f0f0f0fu;
        }
        sums = (sums & 0x00ff00ff00ff00ffu) + (sums >> 8 & 0x00ff00ff00ff00ffu);
        ones += (size_t)((sums * 0x0001000100010001u) >> 48);
    }
    for (; n >= 64; n -= 64, p += 8) ones += (size_t)ps_popcount64(ps_load64(p));
    for (; n >= 8; n -= 8, p++) ones += (size_t)ps_popcount64(*p);
    if (n) ones += (size_t)ps_popcount64(*p & ((1u << n) - 1));
    return ones;
}
