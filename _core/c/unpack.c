/* unpack.c - bit-packed values, least significant bit first (Encodings.md). */
#include "unpack.h"

/* Eight values begin on a byte, so that with a constant width every load and shift is one. PUT gives what is
 * stored for a value v. */
#define GROUPS(name, type, PUT)                                                                \
    PS_INLINE void name(const uint8_t *in, type *out, size_t groups, const int width,          \
                        const type step, type *sum) {                                          \
        const uint64_t mask = UINT64_MAX >> (64 - width);                                      \
        type last = *sum;                                                                      \
        for (size_t g = 0; g < groups; g++, in += width, out += 8) {                           \
            for (int k = 0; k < 8; k++) {                                                      \
                const int byte = k * width >> 3, shift = k * width & 7;                        \
                uint64_t v = ps_load64(in + byte) >> shift;                                    \
                if (shift + width > 64) v |= (uint64_t)in[byte + 8] << (64 - shift);           \
                out[k] = PUT((type)(v & mask));                                                \
            }                                                                                  \
        }                                                                                      \
        (void)step;                                                                            \
        *sum = last;                                                                           \
    }
#define SAME(v)   (v)
#define ADD_UP(v) (last += (v) + step)

GROUPS(groups32, uint32_t, SAME)
GROUPS(groups64, uint64_t, SAME)
GROUPS(sums32, uint32_t, ADD_UP)
GROUPS(sums64, uint64_t, ADD_UP)

#define CASE(unpack, w)                                                                        \
    case w: unpack(in, out, groups, w, step, sum); break;
#define CASES_OF_8(unpack, w)                                                                  \
    CASE(unpack, w + 1)                                                                        \
    CASE(unpack, w + 2)                                                                        \
    CASE(unpack, w + 3)                                                                        \
    CASE(unpack, w + 4)                                                                        \
    CASE(unpack, w + 5)                                                                        \
    CASE(unpack, w + 6)                                                                        \
    CASE(unpack, w + 7)                                                                        \
    CASE(unpack, w + 8)
#define CASES_OF_32(unpack, w)                                                                 \
    CASES_OF_8(unpack, w)                                                                      \
    CASES_OF_8(unpack, w + 8)                                                                  \
    CASES_OF_8(unpack, w + 16)                                                                 \
    CASES_OF_8(unpack, w + 24)

#define SWITCH(name, type, cases)                                                              \
    static void name(const uint8_t *in, type *out, size_t groups, int width, type step,        \
                     type *sum) {                                                              \
        switch (width) { cases default : break; }                                              \
    }
SWITCH(switch_groups32, uint32_t, CASES_OF_32(groups32, 0))
SWITCH(switch_groups64, uint64_t, CASES_OF_32(groups64, 0) CASES_OF_32(groups64, 32))
SWITCH(switch_sums32, uint32_t, CASES_OF_32(sums32, 0))
SWITCH(switch_sums64, uint64_t, CASES_OF_32(sums64, 0) CASES_OF_32(sums64, 32))

/* A group may be read to its 8th value's 9th byte: so far beyond its own bytes at most. */
enum { OVERREAD = 9, GROUP_BYTES = 64 };

/* Unpacks a part of a group, or one that lies near `end`, out of a copy with space behind it. Returns its bytes. */
static size_t copy_group(uint8_t *bytes, const uint8_t *p, const uint8_t *end, int width) {
    const size_t space = (size_t)(end - p),
                 size = space < (size_t)width ? space : (size_t)width;
    memset(bytes, 0, GROUP_BYTES + OVERREAD);
    memcpy(bytes, p, size);
    return size;
}

#define UNPACK(name, type, unpack_groups, switch_name)                                         \
    static void name##_from(const uint8_t *in, const uint8_t *end, int width, uint64_t at,     \
                            type step, type *sum, type *out, size_t n) {                       \
        uint8_t bytes[GROUP_BYTES + OVERREAD];                                                 \
        type group[8], zero = 0;                                                               \
        const uint64_t skip = at / 8 * (uint64_t)width, space = (uint64_t)(end - in);          \
        const uint8_t *p = in + (skip < space ? skip : space);                                 \
        for (size_t from = at % 8; n; from = 0) {                                              \
            const size_t left = (size_t)(end - p);                                             \
            size_t groups = left < OVERREAD ? 0 : (left - OVERREAD) / (size_t)width;           \
            if (groups > n / 8) groups = n / 8;                                                \
            if (groups && from == 0) {                                                         \
                switch_name(p, out, groups, width, step, sum);                                 \
                out += groups * 8, n -= groups * 8, p += groups * (size_t)width;               \
                continue;                                                                      \
            }                                                                                  \
            p += copy_group(bytes, p, end, width);                                             \
            unpack_groups(bytes, group, 1, width, 0, &zero);                                   \
            const size_t take = n < 8 - from ? n : 8 - from;                                   \
            finish_##name(out, group + from, take, step, sum);                                 \
            out += take, n -= take;                                                            \
        }                                                                                      \
    }

#define FINISH(name, type, PUT)                                                                \
    static void finish_##name(type *out, const type *values, size_t n, type step, type *sum) { \
        type last = *sum;                                                                      \
        for (size_t i = 0; i < n; i++) out[i] = PUT(values[i]);                                \
        (void)step;                                                                            \
        *sum = last;                                                                           \
    }
FINISH(values32, uint32_t, SAME)
FINISH(add32, uint32_t, ADD_UP)
FINISH(add64, uint64_t, ADD_UP)
UNPACK(values32, uint32_t, switch_groups32, switch_groups32)
UNPACK(add32, uint32_t, switch_groups32, switch_sums32)
UNPACK(add64, uint64_t, switch_groups64, switch_sums64)

void ps_unpack32(const uint8_t *in, const uint8_t *end, int width, uint64_t at, uint32_t *out,
                 size_t n) {
    uint32_t none = 0;
    if (width == 0) {
        memset(out, 0, n * sizeof *out);
    } else {
        values32_from(in, end, width, at, 0, &none, out, n);
    }
}

#define SUMS(name, type, from)                                                                 \
    void name(const uint8_t *in, const uint8_t *end, int width, uint64_t at, type step,        \
              type *sum, type *out, size_t n) {                                                \
        if (width) {                                                                           \
            from(in, end, width, at, step, sum, out, n);                                       \
            return;                                                                            \
        }                                                                                      \
        type last = *sum;                                                                      \
        for (size_t i = 0; i < n; i++) out[i] = last += step;                                  \
        *sum = last;                                                                           \
    }
SUMS(ps_unpack_sums32, uint32_t, add32_from)
SUMS(ps_unpack_sums64, uint64_t, add64_from)
