/* base.h - what every file of the core uses: errors, the arena, unaligned loads, bits. Internal. */
#ifndef PAGESEEK_BASE_H
#define PAGESEEK_BASE_H

#include <string.h>

#include "../pageseek.h"

#if defined(__GNUC__) || defined(__clang__)
#define PS_PRINTF(text, first) __attribute__((format(printf, text, first)))
#define PS_LIKELY(x)           __builtin_expect(!!(x), 1)
#define PS_UNLIKELY(x)         __builtin_expect(!!(x), 0)
#define PS_COLD                __attribute__((cold, noinline))
#define PS_INLINE              static inline __attribute__((always_inline))
#elif defined(_MSC_VER)
#include <intrin.h>
#define PS_PRINTF(text, first)
#define PS_LIKELY(x)   (x)
#define PS_UNLIKELY(x) (x)
#define PS_COLD        __declspec(noinline)
#define PS_INLINE      static __forceinline
#else
#define PS_PRINTF(text, first)
#define PS_LIKELY(x)   (x)
#define PS_UNLIKELY(x) (x)
#define PS_COLD
#define PS_INLINE static inline
#endif

#if (defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__) ||                  \
    defined(__BIG_ENDIAN__)
#error "the core reads and writes values in place: little-endian machines only"
#endif

/* ---- errors ------------------------------------------------------------------------------ */

#define PS_NOWHERE UINT64_MAX /* ps_error.offset: no byte of the input is at fault */

/* Fill err, which may be NULL, and return status: `return ps_fail(err, PS_CORRUPT, at, "...")`.
 * A message too long for err is cut. */
ps_status ps_fail(ps_error *err, ps_status status, uint64_t offset, const char *format, ...)
    PS_PRINTF(4, 5);
/* Fails with PS_NOMEM and the message for it. */
ps_status ps_fail_nomem(ps_error *err, size_t size);

#define PS_TRY(expression)                                                                     \
    do {                                                                                       \
        ps_status ps_try_status = (expression);                                                \
        if (PS_UNLIKELY(ps_try_status != PS_OK)) return ps_try_status;                         \
    } while (0)

/* ---- memory ------------------------------------------------------------------------------ */

/* count * size bytes, zeroed, aligned for any record; *out = NULL when count is 0.
 * PS_LIMIT beyond arena->cap, PS_NOMEM when the system has none. */
ps_status ps_arena_take(ps_arena *arena, size_t count, size_t size, void **out, ps_error *err);

/* ---- loads: any alignment, little endian ------------------------------------------------- */

PS_INLINE uint16_t ps_load16(const void *p) {
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return v;
}
PS_INLINE uint32_t ps_load32(const void *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}
PS_INLINE uint64_t ps_load64(const void *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}
PS_INLINE void ps_store16(void *p, uint16_t v) {
    memcpy(p, &v, sizeof v);
}
PS_INLINE void ps_store32(void *p, uint32_t v) {
    memcpy(p, &v, sizeof v);
}
PS_INLINE void ps_store64(void *p, uint64_t v) {
    memcpy(p, &v, sizeof v);
}

/* ---- bits -------------------------------------------------------------------------------- */

/* Number of ones. Where the processor may lack an instruction for it, the compiler's own would be a call. */
PS_INLINE int ps_popcount64(uint64_t v) {
#if defined(__POPCNT__) || defined(__aarch64__)
    return __builtin_popcountll(v);
#else
    v -= (v >> 1) & 0x5555555555555555u;
    v = (v & 0x3333333333333333u) + ((v >> 2) & 0x3333333333333333u);
    v = (v + (v >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return (int)((v * 0x0101010101010101u) >> 56);
#endif
}

/* Trailing and leading zeros of v, which is not 0. */
PS_INLINE int ps_ctz64(uint64_t v) {
#if defined(__GNUC__) || defined(__clang__)
    return __builtin_ctzll(v);
#elif defined(_MSC_VER) && defined(_WIN64)
    unsigned long i;
    _BitScanForward64(&i, v);
    return (int)i;
#else
    return ps_popcount64((v & (0 - v)) - 1);
#endif
}
PS_INLINE int ps_clz64(uint64_t v) {
#if defined(__GNUC__) || defined(__clang__)
    return __builtin_clzll(v);
#elif defined(_MSC_VER) && defined(_WIN64)
    unsigned long i;
    _BitScanReverse64(&i, v);
    return 63 - (int)i;
#else
    int n = 0;
    while (!(v >> 63)) v <<= 1, n++;
    return n;
#endif
}

/* Bits needed to hold v: 0 for 0, 64 for UINT64_MAX. */
PS_INLINE int ps_bit_width(uint64_t v) {
    return v ? 64 - ps_clz64(v) : 0;
}

PS_INLINE bool ps_bit_get(const uint8_t *bits, size_t i) {
    return (bits[i >> 3] >> (i & 7)) & 1;
}
PS_INLINE void ps_bit_set(uint8_t *bits, size_t i) {
    bits[i >> 3] |= (uint8_t)(1u << (i & 7));
}

/* The top bits of 8 bytes in a word. */
#define PS_HIGH_BITS UINT64_C(0x8080808080808080)
/* Bit i of the result is byte i of a word, whose bytes are 0 or 1: the product moves them into the top byte. */
PS_INLINE uint64_t ps_bytes_to_bits(uint64_t bytes) {
    return (bytes * UINT64_C(0x0102040810204080)) >> 56;
}
/* The sum of the 8 bytes of a word, which is below 256. */
PS_INLINE size_t ps_bytes_sum(uint64_t bytes) {
    return (size_t)((bytes * UINT64_C(0x0101010101010101)) >> 56);
}

/* Copies a string of n bytes. Most strings are short, so that whole blocks are copied: the next string overwrites what is
 * too much. to_space and from_space are the bytes that may be written and read. */
PS_INLINE void ps_copy_string(uint8_t *to, size_t to_space, const uint8_t *from,
                              size_t from_space, size_t n) {
    if (n <= 32 && to_space >= 32 && from_space >= 32) {
        memcpy(to, from, 32);
    } else if (n <= 128 && to_space >= 128 && from_space >= 128) { /* a call costs more */
        for (size_t i = 0; i < n; i += 32) memcpy(to + i, from + i, 32);
    } else if (n) {
        memcpy(to, from, n);
    }
}

/* a * b, a + b; false when the result does not fit. */
PS_INLINE bool ps_mul_size(size_t a, size_t b, size_t *out) {
#if defined(__GNUC__) || defined(__clang__)
    return !__builtin_mul_overflow(a, b, out);
#else
    *out = a * b;
    return b == 0 || a <= SIZE_MAX / b;
#endif
}
PS_INLINE bool ps_add_size(size_t a, size_t b, size_t *out) {
    *out = a + b;
    return *out >= a;
}
PS_INLINE bool ps_add_i64(int64_t a, int64_t b, int64_t *out) {
    if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b) return false;
    *out = a + b;
    return true;
}

#endif
