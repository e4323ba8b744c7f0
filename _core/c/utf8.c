/* utf8.c - validity of strings: one sequence after the other, and by tables for as many bytes as a vector has. */
#include "utf8.h"

static bool continues(uint8_t byte) {
    return (byte & 0xc0) == 0x80;
}

/* Length of the sequence at p, which has `left` >= 1 bytes; 0 when it is none. */
static size_t sequence(const uint8_t *p, size_t left) {
    const uint8_t lead = p[0];
    if (lead < 0x80) return 1;
    if (lead < 0xc2 || lead > 0xf4) return 0;
    const size_t n = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (left < n) return 0;
    /* Only four leads narrow the range of the byte after them. */
    const uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    const uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (p[1] < low || p[1] > high) return 0;
    if (n > 2 && !continues(p[2])) return 0;
    if (n > 3 && !continues(p[3])) return 0;
    return n;
}

ps_status ps_utf8_check(const uint8_t *data, size_t length, size_t *bad) {
    size_t i = 0;
    while (i < length) {
        while (length - i >= 32 && !((ps_load64(data + i) | ps_load64(data + i + 8) |
                                      ps_load64(data + i + 16) | ps_load64(data + i + 24)) &
                                     PS_HIGH_BITS))
            i += 32;
        while (length - i >= 8 && !(ps_load64(data + i) & PS_HIGH_BITS)) i += 8;
        while (i < length && data[i] < 0x80) i++;
        while (i < length && data[i] >= 0x80) {
            const size_t n = sequence(data + i, length - i);
            if (n == 0) {
                if (bad) *bad = i;
                return PS_CORRUPT;
            }
            i += n;
        }
    }
    return PS_OK;
}

ps_status ps_utf8_check_offsets32(const uint8_t *data, const int32_t *offsets, int64_t n,
                                  int64_t *bad) {
    if (n <= 0 || offsets[n] == offsets[0]) return PS_OK;
    size_t at;
    if (ps_utf8_check(data + offsets[0], (size_t)(offsets[n] - offsets[0]), &at) != PS_OK) {
        int64_t low = 0, high = n - 1; /* the last string that begins at or before the byte */
        while (low < high) {
            int64_t middle = high - (high - low) / 2;
            if ((size_t)(offsets[middle] - offsets[0]) <= at)
                low = middle;
            else
                high = middle - 1;
        }
        if (bad) *bad = low;
        return PS_CORRUPT;
    }
    for (int64_t i = 0; i < n; i++) {
        if (offsets[i] < offsets[n] && continues(data[offsets[i]])) {
            if (bad) *bad = i;
            return PS_CORRUPT;
        }
    }
    return PS_OK;
}

/* ---- many bytes at a time ---------------------------------------------------------------- */

static ps_utf8 plain_scan(const uint8_t *data, size_t length) {
    size_t i = 0;
    while (length - i >= 8 && !(ps_load64(data + i) & PS_HIGH_BITS)) i += 8;
    while (i < length && data[i] < 0x80) i++;
    if (i == length) return PS_UTF8_ASCII;
    return ps_utf8_check(data + i, length - i, NULL) == PS_OK ? PS_UTF8_VALID : PS_UTF8_BAD;
}

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define HAS_LANES 1
#include <immintrin.h>

/* What can be wrong with a byte and the one before it. The tables below say what is possible given the high half of the byte
 * before, its low half, and the high half of the byte: what all three allow is so. */
enum {
    CUT = 0x01,   /* a lead, and then no continuation */
    STRAY = 0x02, /* ASCII, and then a continuation */
    TWO = 0x04,   /* C0 or C1: two bytes for what one can say */
    THREE = 0x08, /* E0 and a continuation below A0: three for what two can say */
    HALF = 0x10,  /* ED and a continuation from A0: a surrogate */
    FOUR = 0x20, /* F0 and a continuation below 90: four for what three can say; F5 and above */
    ABOVE = 0x40, /* F4 and a continuation from 90: beyond U+10FFFF; F5 and above */
    MORE = 0x80,  /* two continuations, which is right where a lead claims the second one */
    ANY = CUT | STRAY | MORE,
    BEYOND = ANY | FOUR | ABOVE
};
/* clang-format off */
static const uint8_t by_high[16] = {
    STRAY, STRAY, STRAY, STRAY, STRAY, STRAY, STRAY, STRAY, MORE, MORE, MORE, MORE,
    CUT | TWO, CUT, CUT | THREE | HALF, CUT | FOUR | ABOVE};
static const uint8_t by_low[16] = {
    ANY | TWO | THREE | FOUR, ANY | TWO, ANY, ANY, ANY | ABOVE, BEYOND, BEYOND, BEYOND,
    BEYOND, BEYOND, BEYOND, BEYOND, BEYOND, BEYOND | HALF, BEYOND, BEYOND};
static const uint8_t by_next[16] = {
    CUT, CUT, CUT, CUT, CUT, CUT, CUT, CUT,
    STRAY | TWO | THREE | FOUR | MORE, STRAY | TWO | THREE | ABOVE | MORE,
    STRAY | TWO | HALF | ABOVE | MORE, STRAY | TWO | HALF | ABOVE | MORE,
    CUT, CUT, CUT, CUT};
/* clang-format on */

#define LANES                16
#define TARGET               __attribute__((target("ssse3")))
#define VEC                  __m128i
#define NAME(name)           name##_ssse3
#define LOAD(p)              _mm_loadu_si128((const __m128i *)(const void *)(p))
#define SPLAT(byte)          _mm_set1_epi8((char)(byte))
#define TABLE(table)         LOAD(table)
#define LOOKUP(table, i)     _mm_shuffle_epi8((table), (i))
#define AND(a, b)            _mm_and_si128((a), (b))
#define OR(a, b)             _mm_or_si128((a), (b))
#define XOR(a, b)            _mm_xor_si128((a), (b))
#define NIBBLE(v)            AND(_mm_srli_epi16((v), 4), SPLAT(0x0f))
#define DROP(a, b)           _mm_subs_epu8((a), (b))
#define BEFORE(now, last, n) _mm_alignr_epi8((now), (last), 16 - (n))
#define NEGATIVE(v)          _mm_movemask_epi8(v)
#define ZERO(v)              (_mm_movemask_epi8(_mm_cmpeq_epi8((v), SPLAT(0))) == 0xffff)
#include "utf8_lanes.h"

#define LANES       32
#define TARGET      __attribute__((target("avx2")))
#define VEC         __m256i
#define NAME(name)  name##_avx2
#define LOAD(p)     _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define SPLAT(byte) _mm256_set1_epi8((char)(byte))
#define TABLE(table)                                                                           \
    _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(table)))
#define LOOKUP(table, i) _mm256_shuffle_epi8((table), (i))
#define AND(a, b)        _mm256_and_si256((a), (b))
#define OR(a, b)         _mm256_or_si256((a), (b))
#define XOR(a, b)        _mm256_xor_si256((a), (b))
#define NIBBLE(v)        AND(_mm256_srli_epi16((v), 4), SPLAT(0x0f))
#define DROP(a, b)       _mm256_subs_epu8((a), (b))
/* both halves of a vector shift by themselves */
#define BEFORE(now, last, n)                                                                   \
    _mm256_alignr_epi8((now), _mm256_permute2x128_si256((last), (now), 0x21), 16 - (n))
#define NEGATIVE(v) _mm256_movemask_epi8(v)
#define ZERO(v)     _mm256_testz_si256((v), (v))
#include "utf8_lanes.h"
#endif

size_t ps_utf8_scanners(ps_utf8_scanner out[3]) {
    size_t n = 0;
    out[n++] = (ps_utf8_scanner){"plain", plain_scan};
#if defined(HAS_LANES)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("ssse3")) out[n++] = (ps_utf8_scanner){"ssse3", scan_ssse3};
    if (__builtin_cpu_supports("avx2")) out[n++] = (ps_utf8_scanner){"avx2", scan_avx2};
#endif
    return n;
}

/* Set at the import of the module that this copy belongs to, before any thread scans. */
static ps_utf8_scanner chosen = {"plain", plain_scan};

const char *ps_utf8_choose(bool plain) {
    ps_utf8_scanner found[3];
    const size_t n = ps_utf8_scanners(found);
    chosen = found[plain ? 0 : n - 1];
    return chosen.name;
}

enum { SHORT = 32 }; /* bytes for which one sequence after the other is as fast */

ps_utf8 ps_utf8_scan(const uint8_t *data, size_t length) {
    return length < SHORT ? plain_scan(data, length) : chosen.scan(data, length);
}

/* Of well-formed text, whether no string begins within a sequence; then none ends within one either. Strings at its end are
 * not empty. */
#define BEGIN_WHOLE(name, type)                                                                \
    static bool name(const uint8_t *data, const type *offsets, int64_t n) {                    \
        bool within = false;                                                                   \
        for (int64_t i = 0; i < n; i++) within |= continues(data[offsets[i]]);                 \
        return !within;                                                                        \
    }
BEGIN_WHOLE(begin_whole32, int32_t)
BEGIN_WHOLE(begin_whole64, int64_t)

bool ps_utf8_strings_valid(const uint8_t *data, const void *offsets, bool wide, int64_t n) {
    const int32_t *narrow = offsets;
    const int64_t *broad = offsets;
    if (n <= 0) return true;
    const int64_t start = wide ? broad[0] : narrow[0], stop = wide ? broad[n] : narrow[n];
    if (start == stop) return true;
    const ps_utf8 found = ps_utf8_scan(data + start, (size_t)(stop - start));
    if (found != PS_UTF8_VALID) return found == PS_UTF8_ASCII;
    while ((wide ? broad[n - 1] : narrow[n - 1]) == stop) n--;
    return wide ? begin_whole64(data, broad, n) : begin_whole32(data, narrow, n);
}
