/* delta.c - the stream of integers that the delta encodings are made of (Encodings.md, "Delta Encoding"). */
#include "delta.h"

#include "unpack.h"

enum { CHUNK = 128 }; /* values found at a time, to be narrowed or forgotten */

static uint64_t byte_of(const ps_delta *delta) {
    return (uint64_t)(delta->p - delta->start);
}

/* ULEB128 of at most 64 bits. */
static ps_status varint(ps_delta *delta, uint64_t *out, ps_error *err) {
    uint64_t v = 0;
    for (int shift = 0;; shift += 7) {
        if (delta->p == delta->end)
            return ps_fail(err, PS_TRUNCATED, byte_of(delta),
                           "delta-encoded data is cut short");
        const uint8_t byte = *delta->p++;
        if (shift == 63 && byte > 1)
            return ps_fail(err, PS_CORRUPT, byte_of(delta) - 1,
                           "an integer of delta-encoded data is longer than 64 bits");
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) break;
    }
    *out = v;
    return PS_OK;
}

static uint64_t unzigzag(uint64_t v) {
    return (v >> 1) ^ (0 - (v & 1));
}

ps_status ps_delta_open(ps_delta *delta, const uint8_t *data, size_t length, ps_error *err) {
    *delta = (ps_delta){.start = data, .p = data, .end = data + length, .first = true};
    uint64_t block = 0, minis = 0, first = 0;
    PS_TRY(varint(delta, &block, err));
    PS_TRY(varint(delta, &minis, err));
    PS_TRY(varint(delta, &delta->left, err));
    PS_TRY(varint(delta, &first, err));
    /* the format says multiples of 32; whole bytes are enough here */
    if (minis == 0 || minis > UINT32_MAX || block / minis > UINT32_MAX || block % minis ||
        block / minis == 0 || block / minis % 8) {
        return ps_fail(err, PS_CORRUPT, 0, "delta blocks of %llu values in %llu miniblocks",
                       (unsigned long long)block, (unsigned long long)minis);
    }
    delta->minis = delta->next = (uint32_t)minis;
    delta->per_mini = delta->at = (uint32_t)(block / minis);
    delta->last = unzigzag(first);
    return PS_OK;
}

/* Goes to the next miniblock, of which at least one value is read. The last miniblock with values may lack its padding,
 * and those behind it have no body, although they have a width. */
static ps_status next_mini(ps_delta *delta, ps_error *err) {
    if (delta->next == delta->minis) {
        uint64_t min_delta = 0;
        PS_TRY(varint(delta, &min_delta, err));
        if (delta->minis > (size_t)(delta->end - delta->p))
            return ps_fail(err, PS_TRUNCATED, byte_of(delta),
                           "delta-encoded data ends in the bit widths of a block");
        delta->min_delta = unzigzag(min_delta);
        delta->widths = delta->p;
        delta->p += delta->minis;
        delta->next = 0;
    }
    const uint8_t width = delta->widths[delta->next];
    if (width > 64)
        return ps_fail(err, PS_CORRUPT, (uint64_t)(delta->widths + delta->next - delta->start),
                       "a delta of %d bits", (int)width);
    const uint64_t space = (uint64_t)(delta->end - delta->p);
    const uint64_t used = delta->left < delta->per_mini ? delta->left : delta->per_mini;
    if ((used * width + 7) / 8 > space)
        return ps_fail(err, PS_TRUNCATED, byte_of(delta),
                       "delta-encoded data ends in a miniblock of %d bits a value", (int)width);
    const uint64_t bytes = (uint64_t)(delta->per_mini / 8) * width;
    delta->next++;
    delta->width = width;
    delta->bits = delta->p;
    delta->p += bytes < space ? bytes : space;
    delta->at = 0;
    return PS_OK;
}

/* Whether n values are left; the first one, which has no delta, is taken from them. */
static ps_status begin(ps_delta *delta, uint64_t n, ps_error *err) {
    if (n > delta->left)
        return ps_fail(err, PS_TRUNCATED, byte_of(delta),
                       "%llu values are wanted where %llu delta-encoded ones are left",
                       (unsigned long long)n, (unsigned long long)delta->left);
    if (n && delta->first) {
        delta->first = false;
        delta->left--;
    }
    return PS_OK;
}

/* Deltas of more bits than the output has: only their low bits count. */
static void sums_of_wide(const ps_delta *delta, uint32_t *sum, uint32_t *out, size_t n) {
    uint64_t wide[CHUNK], last = *sum;
    for (size_t done = 0; done < n; done += CHUNK) {
        const size_t take = n - done < CHUNK ? n - done : CHUNK;
        ps_unpack_sums64(delta->bits, delta->end, delta->width, delta->at + done,
                         delta->min_delta, &last, wide, take);
        for (size_t i = 0; i < take; i++) out[done + i] = (uint32_t)wide[i];
    }
    *sum = (uint32_t)last;
}

static void sums32(const ps_delta *delta, uint32_t *sum, uint32_t *out, size_t n) {
    if (delta->width > 32) {
        sums_of_wide(delta, sum, out, n);
    } else {
        ps_unpack_sums32(delta->bits, delta->end, delta->width, delta->at,
                         (uint32_t)delta->min_delta, sum, out, n);
    }
}
static void sums64(const ps_delta *delta, uint64_t *sum, uint64_t *out, size_t n) {
    ps_unpack_sums64(delta->bits, delta->end, delta->width, delta->at, delta->min_delta, sum,
                     out, n);
}

#define READ(name, type, sums)                                                                 \
    ps_status name(ps_delta *delta, type *out, size_t n, ps_error *err) {                      \
        const bool first = delta->first && n;                                                  \
        PS_TRY(begin(delta, n, err));                                                          \
        if (first) {                                                                           \
            *out++ = (type)delta->last;                                                        \
            n--;                                                                               \
        }                                                                                      \
        type last = (type)delta->last;                                                         \
        while (n) {                                                                            \
            if (delta->at == delta->per_mini) PS_TRY(next_mini(delta, err));                   \
            const size_t rest = delta->per_mini - delta->at, take = rest < n ? rest : n;       \
            sums(delta, &last, out, take);                                                     \
            out += take, n -= take;                                                            \
            delta->at += (uint32_t)take, delta->left -= take;                                  \
        }                                                                                      \
        delta->last = last;                                                                    \
        return PS_OK;                                                                          \
    }

READ(ps_delta_read32, uint32_t, sums32)
READ(ps_delta_read64, uint64_t, sums64)

ps_status ps_delta_skip(ps_delta *delta, uint64_t n, ps_error *err) {
    uint64_t passed[CHUNK];
    const bool first = delta->first && n;
    PS_TRY(begin(delta, n, err));
    n -= first;
    while (n) {
        if (delta->at == delta->per_mini) PS_TRY(next_mini(delta, err));
        uint64_t take = delta->per_mini - delta->at;
        if (take > n) take = n;
        if (delta->width == 0) {
            delta->last += take * delta->min_delta;
        } else {
            if (take > CHUNK) take = CHUNK;
            sums64(delta, &delta->last, passed, (size_t)take);
        }
        n -= take, delta->at += (uint32_t)take, delta->left -= take;
    }
    return PS_OK;
}

ps_status ps_delta_end(const ps_delta *delta, const uint8_t **end, ps_error *err) {
    ps_delta walk = *delta;
    if (walk.first && walk.left) walk.left--;
    while (walk.left) {
        if (walk.at == walk.per_mini) PS_TRY(next_mini(&walk, err));
        const uint64_t rest = walk.per_mini - walk.at;
        walk.left -= rest < walk.left ? rest : walk.left;
        walk.at = walk.per_mini;
    }
    *end = walk.p;
    return PS_OK;
}
