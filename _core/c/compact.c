/* compact.c - keeps the values and bits that a mask chooses. Most loops have no branch on a single row, as a mask of
 * random rows would make the processor predict every other branch wrongly. */
#include "compact.h"

void ps_words_load(uint64_t *out, const uint8_t *bits, size_t at, size_t n) {
    const uint8_t *p = bits + at / 8;
    const unsigned shift = at & 7;
    /* a word with the byte after it, as long as both lie among the n bits */
    for (; n >= 64 + 8; n -= 64, p += 8)
        *out++ = ps_load64(p) >> shift | ((uint64_t)p[8] << 1) << (63 - shift);
    while (n) {
        const size_t count = n < 64 ? n : 64, bytes = (shift + count + 7) / 8;
        uint64_t word = 0;
        memcpy(&word, p, bytes < 8 ? bytes : 8);
        word >>= shift;
        if (bytes > 8) word |= (uint64_t)p[8] << (64 - shift);
        *out++ = count < 64 ? word & ((UINT64_C(1) << count) - 1) : word;
        n -= count, p += 8;
    }
}

size_t ps_words_count(const uint64_t *words, size_t n_words) {
    size_t ones = 0;
    for (size_t i = 0; i < n_words; i++) ones += (size_t)ps_popcount64(words[i]);
    return ones;
}

size_t ps_words_runs(const uint64_t *words, size_t n_words) {
    size_t runs = 0;
    uint64_t last = 0;
    for (size_t i = 0; i < n_words; i++) { /* ones whose lower neighbour is a zero */
        runs += (size_t)ps_popcount64(words[i] & ~(words[i] << 1 | last));
        last = words[i] >> 63;
    }
    return runs;
}

size_t ps_words_end(const uint64_t *words, size_t n_words) {
    while (n_words && !words[n_words - 1]) n_words--;
    return n_words ? n_words * 64 - (size_t)ps_clz64(words[n_words - 1]) : 0;
}

/* Hacker's Delight, 7-4 and 7-5: move bits by powers of two, as far as zeros of the mask lie below. */
PS_INLINE uint64_t zeros_below(uint64_t mk) {
    for (int i = 1; i < 64; i *= 2) mk ^= mk << i;
    return mk;
}

static uint64_t compress(uint64_t x, uint64_t mask) {
    uint64_t mk = ~mask << 1;
    x &= mask;
    for (int i = 1; i < 64; i *= 2) {
        const uint64_t mp = zeros_below(mk), mv = mp & mask, t = x & mv;
        mask = (mask ^ mv) | mv >> i;
        x = (x ^ t) | t >> i;
        mk &= ~mp;
    }
    return x;
}

/* Few ones on either side are moved one by one. */
enum { FEW_KEPT = 6, FEW_SET = 3 };

static uint64_t compress_word(uint64_t x, uint64_t mask, unsigned ones) {
    uint64_t out = 0;
    if (ones == 64) return x;
    if (ones <= FEW_KEPT) {
        for (unsigned k = 0; mask; k++, mask &= mask - 1) out |= (x >> ps_ctz64(mask) & 1) << k;
        return out;
    }
    x &= mask;
    if (ps_popcount64(x) > FEW_SET) return compress(x, mask);
    for (; x; x &= x - 1) out |= UINT64_C(1) << ps_popcount64(mask & ((x & (0 - x)) - 1));
    return out;
}

uint64_t ps_word_expand(uint64_t bits, uint64_t mask) {
    uint64_t mk = ~mask << 1, m = mask, moves[6];
    for (int i = 0; i < 6; i++) {
        const uint64_t mp = zeros_below(mk);
        moves[i] = mp & m;
        m = (m ^ moves[i]) | moves[i] >> (1 << i);
        mk &= ~mp;
    }
    for (int i = 5; i >= 0; i--) bits = (bits & ~moves[i]) | (bits << (1 << i) & moves[i]);
    return bits & mask;
}

size_t ps_words_compress(uint64_t *out, const uint64_t *in, const uint64_t *mask,
                         size_t n_words) {
    size_t n = 0;
    out[0] = 0;
    for (size_t i = 0; i < n_words; i++) {
        const unsigned ones = mask[i] ? (unsigned)ps_popcount64(mask[i]) : 0;
        const uint64_t kept = compress_word(in[i], mask[i], ones);
        out[n / 64] |= kept << (n & 63);
        out[n / 64 + 1] = (kept >> 1) >> (63 - (n & 63));
        n += ones;
    }
    return n;
}

void ps_words_expand(uint64_t *out, const uint64_t *in, const uint64_t *mask, size_t n_words) {
    for (size_t i = 0, n = 0; i < n_words; i++) {
        const uint64_t bits = in[n / 64] >> (n & 63) | (in[n / 64 + 1] << 1) << (63 - (n & 63));
        out[i] = mask[i] == UINT64_MAX ? bits : ps_word_expand(bits, mask[i]);
        n += (size_t)ps_popcount64(mask[i]);
    }
}

/* Copies eight values a step, with one branch. Beyond the last value it writes the one that the top bit stands for,
 * which later values overwrite. */
#define PICK(bytes)                                                                            \
    memcpy(to, from + (size_t)ps_ctz64(word | top) * (bytes), (bytes));                        \
    to += (bytes), word &= word - 1;

#define COMPACT(bytes)                                                                         \
    for (; n >= 64 && space >= 64; n -= 64, mask++, from += 64 * (bytes)) {                    \
        uint64_t word = *mask;                                                                 \
        if (!word) continue;                                                                   \
        const size_t ones = (size_t)ps_popcount64(word);                                       \
        uint8_t *to = out;                                                                     \
        if (ones == 64) {                                                                      \
            memcpy(to, from, 64 * (bytes));                                                    \
        } else {                                                                               \
            for (size_t done = 0; done < ones; done += 8) {                                    \
                PICK(bytes)                                                                    \
                PICK(bytes)                                                                    \
                PICK(bytes)                                                                    \
                PICK(bytes)                                                                    \
                PICK(bytes)                                                                    \
                PICK(bytes)                                                                    \
                PICK(bytes)                                                                    \
                PICK(bytes)                                                                    \
            }                                                                                  \
        }                                                                                      \
        out += ones * (bytes), space -= ones;                                                  \
    }                                                                                          \
    break;

size_t ps_compact(uint8_t *out, size_t space, const uint8_t *in, size_t width,
                  const uint64_t *mask, size_t n) {
    const uint64_t top = UINT64_C(1) << 63;
    const uint8_t *from = in, *const first = out;
    switch (width) {
    case 0: return ps_words_count(mask, ps_words_for(n));
    case 1: COMPACT(1)
    case 2: COMPACT(2)
    case 4: COMPACT(4)
    case 8: COMPACT(8)
    case 16: COMPACT(16)
    default: break;
    }
    for (; n; mask++) { /* the last words, and other widths: no byte more than is kept */
        const size_t count = n < 64 ? n : 64;
        for (uint64_t word = *mask; word; word &= word - 1) {
            memcpy(out, from + (size_t)ps_ctz64(word) * width, width);
            out += width;
        }
        n -= count, from += count * width;
    }
    return (size_t)(out - first) / width;
}

/* From the back: the value that belongs to row i stands at n - 1 <= i, and is read whether i has one or not. */
#define SPREAD(type)                                                                           \
    for (size_t i = rows; i-- > n;) {                                                          \
        const type has = (type)ps_bit_get(bits, at + i);                                       \
        type value;                                                                            \
        n -= (size_t)has;                                                                      \
        memcpy(&value, out + n * sizeof value, sizeof value);                                  \
        value &= (type)(0 - has);                                                              \
        memcpy(out + i * sizeof value, &value, sizeof value);                                  \
    }                                                                                          \
    break;

void ps_spread(uint8_t *out, size_t width, const uint8_t *bits, size_t at, size_t rows,
               size_t n) {
    switch (width) {
    case 0: break;
    case 1: SPREAD(uint8_t)
    case 2: SPREAD(uint16_t)
    case 4: SPREAD(uint32_t)
    case 8: SPREAD(uint64_t)
    case 16:
        for (size_t i = rows; i-- > n;) {
            const uint64_t has = ps_bit_get(bits, at + i);
            uint64_t value[2];
            n -= (size_t)has;
            memcpy(value, out + n * sizeof value, sizeof value);
            value[0] &= 0 - has, value[1] &= 0 - has;
            memcpy(out + i * sizeof value, value, sizeof value);
        }
        break;
    default:
        for (size_t i = rows; i-- > n;) {
            if (ps_bit_get(bits, at + i)) {
                n--;
                memmove(out + i * width, out + n * width, width);
            } else {
                memset(out + i * width, 0, width);
            }
        }
    }
}
