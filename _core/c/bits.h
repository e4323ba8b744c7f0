/* bits.h - runs of bits, least significant first, at any bit offset. Internal. */
#ifndef PAGESEEK_BITS_H
#define PAGESEEK_BITS_H

#include "base.h"

/* Copies n bits. The other bits of the target stay. */
void ps_bits_copy(uint8_t *to, size_t to_bit, const uint8_t *from, size_t from_bit, size_t n);
/* Sets or clears n bits. */
void ps_bits_fill(uint8_t *to, size_t to_bit, size_t n, bool value);
/* The number of ones among n bits. */
size_t ps_bits_count(const uint8_t *bits, size_t bit, size_t n);

/* Sets the bits [from, to). */
static inline void ps_bits_set_range(uint8_t *bits, size_t from, size_t to) {
    if (from >= to) return;
    size_t first = from / 8, last = (to - 1) / 8;
    uint8_t head = (uint8_t)(0xff << (from & 7)),
            tail = (uint8_t)(0xff >> (7 - ((to - 1) & 7)));
    if (first == last) {
        bits[first] |= head & tail;
        return;
    }
    bits[first] |= head;
    memset(bits + first + 1, 0xff, last - first - 1);
    bits[last] |= tail;
}

/* Clears the bits behind n bits in their last byte, so that equal columns have equal bytes. */
static inline void ps_bits_end(uint8_t *bits, size_t n) {
    if (n % 8) bits[n / 8] &= (uint8_t)((1u << n % 8) - 1);
}

#endif
