/* rle.c - the RLE / bit-packing hybrid (Encodings.md). */
#include "rle.h"

#include "bits.h"
#include "unpack.h"

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
        size_t space = (size_t)(rle->end - rle->p);
        rle->packed = header & 1;
        rle->left = header >> 1;
        if (rle->packed) {
            uint64_t bytes = rle->left * (uint64_t)rle->width;
            rle->left *= 8;
            if (bytes > space) { /* writers may cut the padding of the last group */
                bytes = space;
                rle->left = (uint64_t)space * 8 / (uint64_t)rle->width;
            }
            rle->bits = rle->p;
            rle->at = 0;
            rle->p += bytes;
        } else {
            size_t bytes = (size_t)(rle->width + 7) / 8;
            if (bytes > space) {
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

ps_status ps_rle_read(ps_rle *rle, uint32_t *out, size_t n, ps_error *err) {
    if (rle->width == 0) {
        memset(out, 0, n * sizeof *out);
        return PS_OK;
    }
    while (n) {
        if (rle->left == 0) PS_TRY(next_run(rle, err));
        size_t take = rle->left < n ? (size_t)rle->left : n;
        if (rle->packed) {
            ps_unpack32(rle->bits, rle->end, rle->width, rle->at, out, take);
            rle->at += take;
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
        if (rle->packed) rle->at += take;
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
            ps_bits_copy(out, out_bit, rle->bits, (size_t)rle->at, take);
            rle->at += take;
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
