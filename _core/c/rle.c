#include "rle.h"

#include "bits.h"

ps_status ps_rle_open(ps_rle *rle, const uint8_t *data, size_t length, int width,
                      ps_error *err) {
    if (width < 0 || width > 32) {
        return ps_fail(err, PS_CORRUPT, 0, "bit width %d of a run-length run is beyond 32",
                       width);
    }
    *rle = (ps_rle){.start = data, .p = data, .end = data + length, .width = width};
    return PS_OK;
}

static ps_status next_run(ps_rle *rle, ps_error *err) {
    do {
        uint64_t header = 0, at = (uint64_t)(rle->p - rle->start);
        for (int shift = 0;; shift += 7) {
            if (rle->p == rle->end) {
                return ps_fail(err, PS_TRUNCATED, at,
                               "run-length data ends before the last value");
            }
            if (shift > 28)
                return ps_fail(err, PS_CORRUPT, at, "run header is longer than 32 bits");
            uint8_t byte = *rle->p++;
            header |= (uint64_t)(byte & 0x7f) << shift;
            if (!(byte & 0x80)) break;
        }
        size_t room = (size_t)(rle->end - rle->p);
        rle->packed = header & 1;
        rle->left = header >> 1;
        if (rle->packed) {
            uint64_t bytes = rle->left * (uint64_t)rle->width;
            rle->left *= 8;
            if (bytes > room) { /* writers may cut the padding of the last group */
                bytes = room;
                rle->left = (uint64_t)room * 8 / (uint64_t)rle->width;
            }
            rle->bits = rle->p;
            rle->bit = 0;
            rle->p += bytes;
        } else {
            size_t bytes = (size_t)(rle->width + 7) / 8;
            if (bytes > room) {
                return ps_fail(err, PS_TRUNCATED, at,
                               "run-length data ends inside a repeated value");
            }
            rle->value = 0;
            memcpy(&rle->value, rle->p, bytes);
            rle->p += bytes;
        }
    } while (rle->left == 0);
    return PS_OK;
}

/* Groups of eight values begin on a byte, so that with a constant width every load and shift is one. */
PS_INLINE void unpack_groups(const uint8_t *in, uint32_t *out, size_t groups, const int width) {
    const uint64_t mask = (UINT64_C(1) << width) - 1;
    for (size_t g = 0; g < groups; g++, in += width, out += 8) {
        for (int k = 0; k < 8; k++) {
            out[k] = (uint32_t)((ps_load64(in + (k * width >> 3)) >> (k * width & 7)) & mask);
        }
    }
}

#define UNPACK_CASE(w)                                                                         \
    case w: unpack_groups(in, out, groups, w); break;
/* clang-format off */
static void unpack_switch(const uint8_t *in, uint32_t *out, size_t groups, int width) {
    switch (width) {
        UNPACK_CASE(1)
        UNPACK_CASE(2) UNPACK_CASE(3) UNPACK_CASE(4) UNPACK_CASE(5) UNPACK_CASE(6)
            UNPACK_CASE(7) UNPACK_CASE(8) UNPACK_CASE(9) UNPACK_CASE(10) UNPACK_CASE(11)
                UNPACK_CASE(12) UNPACK_CASE(13) UNPACK_CASE(14) UNPACK_CASE(15) UNPACK_CASE(16)
                    UNPACK_CASE(17) UNPACK_CASE(18) UNPACK_CASE(19) UNPACK_CASE(20)
                        UNPACK_CASE(21) UNPACK_CASE(22) UNPACK_CASE(23) UNPACK_CASE(24)
                            UNPACK_CASE(25) UNPACK_CASE(26) UNPACK_CASE(27) UNPACK_CASE(28)
                                UNPACK_CASE(29) UNPACK_CASE(30) UNPACK_CASE(31)
                                    UNPACK_CASE(32) default : break;
    }
}
/* clang-format on */

/* One value near the end of the data: only the bytes that are there. */
static uint32_t unpack_one(const uint8_t *in, const uint8_t *end, uint64_t bit, int width) {
    const uint8_t *p = in + (bit >> 3);
    uint64_t v = 0;
    size_t room = (size_t)(end - p);
    memcpy(&v, p, room < 8 ? room : 8);
    return (uint32_t)((v >> (bit & 7)) & ((UINT64_C(1) << width) - 1));
}

static void unpack(const ps_rle *rle, uint32_t *out, size_t n) {
    const uint8_t *in = rle->bits, *end = rle->end;
    const int width = rle->width;
    uint64_t bit = rle->bit;
    for (; n && (bit & 7); n--, bit += (uint64_t)width)
        *out++ = unpack_one(in, end, bit, width);
    const uint8_t *p = in + (bit >> 3);
    size_t room = (size_t)(end - p), groups = n / 8;
    /* the last load of a group reads up to 8 bytes from byte 7 * width / 8 of it */
    size_t safe = room < 8 ? 0 : (room - 8) / (size_t)width;
    if (groups > safe) groups = safe;
    if (groups) {
        unpack_switch(p, out, groups, width);
        out += groups * 8, n -= groups * 8, bit += (uint64_t)groups * 8 * (uint64_t)width;
    }
    for (; n; n--, bit += (uint64_t)width) *out++ = unpack_one(in, end, bit, width);
}

ps_status ps_rle_read(ps_rle *rle, uint32_t *out, size_t n, ps_error *err) {
    if (rle->width == 0) {
        memset(out, 0, n * sizeof *out);
        return PS_OK;
    }
    while (n) {
        if (rle->left == 0) PS_TRY(next_run(rle, err));
        size_t take = rle->left < n ? (size_t)rle->left : n;
        if (rle->packed) {
            unpack(rle, out, take);
            rle->bit += (uint64_t)take * (uint64_t)rle->width;
        } else {
            for (size_t i = 0; i < take; i++) out[i] = rle->value;
        }
        out += take, n -= take, rle->left -= take;
    }
    return PS_OK;
}

ps_status ps_rle_skip(ps_rle *rle, uint64_t n, ps_error *err) {
    if (rle->width == 0) return PS_OK;
    while (n) {
        if (rle->left == 0) PS_TRY(next_run(rle, err));
        uint64_t take = rle->left < n ? rle->left : n;
        if (rle->packed) rle->bit += take * (uint64_t)rle->width;
        n -= take, rle->left -= take;
    }
    return PS_OK;
}

ps_status ps_rle_read_bits(ps_rle *rle, uint8_t *out, size_t out_bit, uint64_t n,
                           ps_error *err) {
    while (n) {
        if (rle->left == 0) PS_TRY(next_run(rle, err));
        size_t take = (size_t)(rle->left < n ? rle->left : n);
        if (rle->packed) {
            ps_bits_copy(out, out_bit, rle->bits, (size_t)rle->bit, take);
            rle->bit += take;
        } else {
            if (rle->value > 1) {
                return ps_fail(err, PS_CORRUPT, (uint64_t)(rle->p - rle->start),
                               "level or boolean %u is beyond 1", (unsigned)rle->value);
            }
            ps_bits_fill(out, out_bit, take, rle->value);
        }
        out_bit += take, n -= take, rle->left -= take;
    }
    return PS_OK;
}

ps_status ps_rle_peek_repeat(ps_rle *rle, uint64_t *count, ps_error *err) {
    if (rle->width == 0) {
        *count = UINT64_MAX;
        return PS_OK;
    }
    if (rle->left == 0) PS_TRY(next_run(rle, err));
    *count = rle->packed ? 0 : rle->left;
    return PS_OK;
}
