/* Tests of bit unpacking and of the delta stream, against encoders that do one bit and one value after the other. */
#include "../c/delta.h"

#include <stdlib.h>

#include "../c/unpack.h"
#include "check.h"

static uint64_t dice(void) { /* splitmix64 */
    static uint64_t state = 7;
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t low_bits(uint64_t v, int width) {
    return width == 64 ? v : v & ((UINT64_C(1) << width) - 1);
}

static void put_bits(uint8_t *out, size_t bit, uint64_t v, int width) {
    for (int i = 0; i < width; i++, bit++) out[bit / 8] |= (uint8_t)((v >> i & 1) << (bit % 8));
}

/* A copy of exactly n bytes, so that a read beyond them is seen. */
static uint8_t *exact(const uint8_t *data, size_t length) {
    uint8_t *copy = malloc(length ? length : 1);
    memcpy(copy, data, length);
    return copy;
}

enum { PACKED = 100 };

static void test_unpacking_at_every_width_start_and_length(void) {
    for (int width = 0; width <= 64; width++) {
        uint64_t values[PACKED];
        uint8_t packed[PACKED * 8] = {0};
        for (size_t i = 0; i < PACKED; i++) {
            values[i] = low_bits(dice(), width);
            put_bits(packed, i * (size_t)width, values[i], width);
        }
        for (size_t at = 0; at < 20; at++) {
            for (size_t n = 0; n <= PACKED - at; n += n < 20 ? 1 : 13) {
                /* the packed bytes end with the last value, and later */
                for (size_t more = 0; more < 12; more += 4) {
                    size_t length = ((at + n) * (size_t)width + 7) / 8 + more;
                    if (length > sizeof packed) length = sizeof packed;
                    uint8_t *in = exact(packed, length);
                    uint64_t out64[PACKED + 1];
                    uint32_t out32[PACKED + 1];
                    size_t wrong = 0;
                    out64[n] = 77, out32[n] = 78;
                    const uint64_t step = dice();
                    uint64_t before = dice(), sum = before;
                    ps_unpack_sums64(in, in + length, width, at, step, &sum, out64, n);
                    for (size_t i = 0; i < n; i++)
                        wrong += out64[i] != (before += values[at + i] + step);
                    wrong += sum != before;
                    if (width <= 32) {
                        ps_unpack32(in, in + length, width, at, out32, n);
                        for (size_t i = 0; i < n; i++) wrong += out32[i] != values[at + i];
                        uint32_t few = (uint32_t)before, from = few;
                        ps_unpack_sums32(in, in + length, width, at, 7, &few, out32, n);
                        for (size_t i = 0; i < n; i++)
                            wrong += out32[i] != (from += (uint32_t)values[at + i] + 7);
                        wrong += few != from;
                    }
                    wrong += out64[n] != 77 || out32[n] != 78;
                    CHECK_INT(wrong, 0);
                    free(in);
                }
            }
        }
    }
}

static void test_unpacking_beyond_the_end_gives_zeros(void) {
    const uint8_t data[5] = {255, 255, 255, 255, 255};
    for (int width = 1; width <= 64; width++) {
        for (size_t length = 0; length <= sizeof data; length++) {
            uint8_t *in = exact(data, length);
            uint64_t out[64];
            uint32_t small[64];
            const size_t there = length * 8;
            uint64_t sum = 0;
            ps_unpack_sums64(in, in + length, width, 0, 0, &sum, out, 64);
            if (width <= 32) ps_unpack32(in, in + length, width, 0, small, 64);
            size_t wrong = 0;
            uint64_t all = 0;
            for (size_t i = 0; i < 64; i++) {
                const size_t from = i * (size_t)width;
                size_t bits = from < there ? there - from : 0;
                if (bits > (size_t)width) bits = (size_t)width;
                const uint64_t wanted = bits ? UINT64_MAX >> (64 - bits) : 0;
                wrong += out[i] != (all += wanted) || (width <= 32 && small[i] != wanted);
            }
            CHECK_INT(wrong, 0);
            sum = 0;
            ps_unpack_sums64(in, in + length, width, UINT64_C(1) << 40, 0, &sum, out, 64);
            CHECK_INT(out[0] | out[63] | sum, 0);
            free(in);
        }
    }
}

/* ---- the stream ---------------------------------------------------------------------------- */

typedef struct stream {
    uint8_t data[1 << 16];
    size_t length;
} stream;

static void put_varint(stream *s, uint64_t v) {
    for (; v > 0x7f; v >>= 7) s->data[s->length++] = (uint8_t)(v | 0x80);
    s->data[s->length++] = (uint8_t)v;
}

static uint64_t zigzag(uint64_t v) {
    return v << 1 ^ (0 - (v >> 63));
}

/* n values in miniblocks of which each has a width of its own. `junk` is for all that does not count. */
static void encode(stream *s, uint64_t *values, size_t n, size_t minis, size_t per_mini,
                   const int *widths, uint8_t junk) {
    memset(s, 0, sizeof *s);
    values[0] = dice();
    put_varint(s, minis * per_mini);
    put_varint(s, minis);
    put_varint(s, n);
    put_varint(s, zigzag(values[0]));
    for (size_t done = 1, k = 0; done < n;) {
        const uint64_t least = dice();
        put_varint(s, zigzag(least));
        uint8_t *width = s->data + s->length;
        s->length += minis;
        for (size_t m = 0; m < minis; m++) {
            width[m] = junk;
            if (done == n) continue;
            width[m] = (uint8_t)widths[k++ % 4];
            for (size_t i = 0; i < per_mini; i++) {
                const uint64_t step = low_bits(done < n ? dice() : junk * 0x01010101u,
                                               width[m]);
                put_bits(s->data + s->length, i * width[m], step, width[m]);
                if (done == n) continue;
                values[done] = values[done - 1] + least + step;
                done++;
            }
            s->length += per_mini * width[m] / 8;
        }
    }
}

static bool is_low(const uint32_t *out, const uint64_t *values, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (out[i] != (uint32_t)values[i]) return false;
    return true;
}

/* Skips and reads of all lengths give what stands there; so does a walk to the end. */
static void check_stream(const stream *s, const uint64_t *values, size_t n, size_t behind) {
    uint8_t *data = exact(s->data, s->length + behind);
    uint64_t out[600];
    uint32_t low[600];
    const uint8_t *end;
    ps_delta delta;
    for (size_t skipped = 0; skipped <= n; skipped += skipped < 40 ? 1 : 29) {
        for (size_t step = 1; step <= n; step = step * 3 + 1) {
            CHECK_INT(ps_delta_open(&delta, data, s->length + behind, NULL), PS_OK);
            CHECK_INT(ps_delta_skip(&delta, skipped, NULL), PS_OK);
            ps_delta other = delta;
            for (size_t at = skipped; at < n; at += step) {
                const size_t take = n - at < step ? n - at : step;
                CHECK_INT(ps_delta_read64(&delta, out, take, NULL), PS_OK);
                CHECK(memcmp(out, values + at, take * sizeof *out) == 0);
                CHECK_INT(ps_delta_read32(&other, low, take, NULL), PS_OK);
                CHECK(is_low(low, values + at, take));
            }
            CHECK_INT(ps_delta_end(&delta, &end, NULL), PS_OK);
            CHECK_INT(end - data, s->length);
            CHECK_INT(ps_delta_read64(&delta, out, 0, NULL), PS_OK);
            CHECK_INT(ps_delta_read64(&delta, out, 1, NULL), PS_TRUNCATED);
            CHECK_INT(ps_delta_skip(&other, 1, NULL), PS_TRUNCATED);
        }
        CHECK_INT(ps_delta_open(&delta, data, s->length + behind, NULL), PS_OK);
        CHECK_INT(ps_delta_skip(&delta, skipped, NULL), PS_OK);
        CHECK_INT(ps_delta_end(&delta, &end, NULL), PS_OK);
        CHECK_INT(end - data, s->length);
    }
    free(data);
}

static void test_streams_of_any_shape(void) {
    static stream s;
    const size_t shapes[][2] = {{1, 8}, {4, 32}, {3, 8}, {1, 32}, {2, 136}, {5, 64}};
    const size_t counts[] = {1, 2, 8, 9, 10, 33, 34, 129, 130, 300};
    uint64_t values[300];
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
            const int widths[4] = {(int)(dice() % 65), 0, (int)(dice() % 33), 64};
            encode(&s, values, counts[k], shapes[i][0], shapes[i][1], widths, 255);
            check_stream(&s, values, counts[k], k % 3 * 5);
        }
    }
}

static void test_streams_of_every_width(void) {
    static stream s;
    uint64_t values[150];
    for (int width = 0; width <= 64; width++) {
        const int widths[4] = {width, width, width, width};
        encode(&s, values, 150, 4, 32, widths, 0);
        check_stream(&s, values, 150, 0);
    }
}

/* Cut at any byte, a stream gives the values that are there or an error, and never others. */
static void test_streams_cut_at_every_byte(void) {
    static stream s;
    uint64_t values[75], out[75];
    const int widths[4] = {7, 0, 64, 13};
    encode(&s, values, 75, 3, 16, widths, 200);
    const size_t padding =
        5; /* bytes of the last miniblock: 10 of its 16 deltas of 7 bits count */
    for (size_t length = 0; length <= s.length; length++) {
        uint8_t *data = exact(s.data, length);
        ps_error err = {0};
        ps_delta delta;
        const uint8_t *end;
        ps_status opened = ps_delta_open(&delta, data, length, &err), status = opened;
        size_t good = 0;
        while (status == PS_OK && good < 75) {
            status = ps_delta_read64(&delta, out, 1, &err);
            if (status == PS_OK) CHECK(out[0] == values[good++]);
        }
        CHECK_INT(status == PS_OK, length + padding >= s.length);
        if (status != PS_OK) CHECK(err.message[0] && err.offset <= length);
        if (opened == PS_OK) {
            CHECK_INT(ps_delta_open(&delta, data, length, NULL), PS_OK);
            CHECK_INT(ps_delta_end(&delta, &end, NULL), status);
            if (status == PS_OK) CHECK_INT(end - data, length);
            CHECK_INT(ps_delta_skip(&delta, 75, NULL), status);
        }
        free(data);
    }
}

static ps_status opened(const char *data, size_t length) {
    ps_delta delta;
    ps_error err = {0};
    uint8_t *copy = exact((const uint8_t *)data, length);
    ps_status status = ps_delta_open(&delta, copy, length, &err);
    uint64_t out[2];
    if (status == PS_OK) status = ps_delta_read64(&delta, out, 2, &err);
    CHECK(status == PS_OK || err.message[0]);
    free(copy);
    return status;
}

static void test_headers_that_make_no_sense(void) {
    CHECK_INT(opened("\x08\x01\x02\x02\x02\0", 6), PS_OK);
    CHECK_INT(opened("\x08\0\x02\x02\x02\0", 6), PS_CORRUPT);     /* no miniblocks */
    CHECK_INT(opened("\0\x01\x02\x02\x02\0", 6), PS_CORRUPT);     /* of no values */
    CHECK_INT(opened("\x08\x03\x02\x02\x02\0", 6), PS_CORRUPT);   /* of 8/3 values */
    CHECK_INT(opened("\x04\x01\x02\x02\x02\0", 6), PS_CORRUPT);   /* of half a byte */
    CHECK_INT(opened("\x08\x01\x02\x02\x02\x41", 6), PS_CORRUPT); /* 65 bits */
    CHECK_INT(opened("\x08\x01\x02\x02\x02", 5), PS_TRUNCATED);
    CHECK_INT(opened("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02\x01", 11), PS_CORRUPT);
    /* 2^63 values in one miniblock; 8 in each of 2^32 - 1 */
    CHECK_INT(opened("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01\x01\x02\x02\x02\0", 15),
              PS_CORRUPT);
    CHECK_INT(opened("\xf8\xff\xff\xff\x7f\xff\xff\xff\xff\x0f\x02\x02\x02\0", 14),
              PS_TRUNCATED);
    CHECK_INT(opened("\xf8\xff\xff\xff\x0f\x01\x02\x02\x02\0", 10), PS_OK);
    CHECK_INT(
        opened("\xf8\xff\xff\xff\x0f\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x02\x02\x40",
               19),
        PS_TRUNCATED);
}

int main(void) {
    test_unpacking_at_every_width_start_and_length();
    test_unpacking_beyond_the_end_gives_zeros();
    test_streams_of_any_shape();
    test_streams_of_every_width();
    test_streams_cut_at_every_byte();
    test_headers_that_make_no_sense();
    return check_report();
}
