/* Snappy, LZ4, CRC-32 and UTF-8. Build with -fsanitize=address,undefined: every input and output
 * lies in an allocation of exactly its size, so that one byte too far is found.
 *   cc -std=c11 -g -fsanitize=address,undefined test_codec.c ../c/{base,snappy,lz4,crc32,utf8}.c */
#include <stdio.h>
#include <stdlib.h>

#include "../c/utf8.h"
#include "lz_blocks.h"

static int passed, failed;

#define CHECK(condition)                                                                       \
    do {                                                                                       \
        if (condition)                                                                         \
            passed++;                                                                          \
        else                                                                                   \
            failed++, printf("%s:%d: %s: %s\n", __FILE__, __LINE__, __func__, #condition);     \
    } while (0)

typedef ps_status decode_fn(const uint8_t *, size_t, uint8_t *, size_t, bool, ps_error *);

/* Decode a copy; when `want` is given, the output must be its first `size` bytes. */
static ps_status decode(decode_fn *fn, const void *data, size_t length, size_t size, bool exact,
                        const uint8_t *want, ps_error *err) {
    uint8_t *in = exactly(data, length), *out = exactly(NULL, size);
    ps_status status = fn(in, length, out, size, exact, err);
    if (status == PS_OK && want && size && memcmp(out, want, size) != 0) status = (ps_status)-1;
    free(in);
    free(out);
    return status;
}

#define DECODE(fn, text, size, exact)                                                          \
    decode(fn, text, sizeof(text) - 1, size, exact, NULL, NULL)

static void random_blocks(decode_fn *fn, void (*write)(bytes *, bytes *, size_t),
                          bool preamble) {
    int wrong = 0, wrong_prefix = 0, wrong_size = 0, cut_accepted = 0;
    bytes block = {exactly(NULL, 1 << 20), 0}, body = {exactly(NULL, 1 << 20), 0};
    bytes plain = {exactly(NULL, 1 << 20), 0};
    for (seed = 1; seed < 4000000000u; seed += 17000000) {
        uint32_t keep = seed;
        block.n = body.n = plain.n = 0;
        write(&body, &plain, 1 + below(below(8) ? 1000 : 70000));
        for (size_t n = plain.n; preamble; n >>= 7) {
            put(&block, n < 128 ? (unsigned)n : 128 | (n & 127));
            if (n < 128) break;
        }
        push(&block, body.data, body.n);
        wrong += decode(fn, block.data, block.n, plain.n, true, plain.data, NULL) != PS_OK;
        wrong_size += decode(fn, block.data, block.n, plain.n - 1, true, NULL, NULL) == PS_OK;
        wrong_size += decode(fn, block.data, block.n, plain.n + 1, true, NULL, NULL) == PS_OK;
        wrong_size += decode(fn, block.data, block.n, plain.n + 1, false, NULL, NULL) == PS_OK;
        size_t step = plain.n < 2000 ? 1 : 997;
        for (size_t n = 0; n <= plain.n; n += step)
            wrong_prefix += decode(fn, block.data, block.n, n, false, plain.data, NULL) !=
                            PS_OK;
        step = block.n < 2000 ? 1 : 997;
        for (size_t n = 0; n < block.n; n += step)
            cut_accepted += decode(fn, block.data, n, plain.n, true, NULL, NULL) == PS_OK;
        for (int i = 0; i < 20; i++) { /* damage: whatever comes out, no byte too far */
            uint8_t *at = block.data + below((uint32_t)block.n), was = *at;
            *at = (uint8_t)below(256);
            decode(fn, block.data, block.n, plain.n, i & 1, NULL, NULL);
            *at = was;
        }
        seed = keep;
    }
    CHECK(wrong == 0);
    CHECK(wrong_prefix == 0);
    CHECK(wrong_size == 0);
    CHECK(cut_accepted == 0);
    free(block.data);
    free(body.data);
    free(plain.data);
}

/* ---- Snappy ------------------------------------------------------------------------------ */

static void snappy_nothing(void) {
    CHECK(ps_snappy_decode(NULL, 0, NULL, 0, true, NULL) == PS_TRUNCATED);
    CHECK(DECODE(ps_snappy_decode, "\0", 0, true) == PS_OK);
    CHECK(ps_snappy_decode((const uint8_t *)"", 1, NULL, 0, true, NULL) == PS_OK);
    CHECK(DECODE(ps_snappy_decode, "\0\0a", 0, true) == PS_CORRUPT);
}

static void snappy_preamble_lies(void) {
    CHECK(DECODE(ps_snappy_decode,
                 "\x05\x10"
                 "hello",
                 5, true) == PS_OK);
    CHECK(DECODE(ps_snappy_decode,
                 "\x06\x10"
                 "hello",
                 5, true) == PS_CORRUPT);
    CHECK(DECODE(ps_snappy_decode,
                 "\x06\x10"
                 "hello",
                 5, false) == PS_OK);
    CHECK(DECODE(ps_snappy_decode,
                 "\x04\x10"
                 "hello",
                 5, false) == PS_CORRUPT);
    CHECK(DECODE(ps_snappy_decode,
                 "\x04\x10"
                 "hello",
                 4, true) == PS_CORRUPT);
    CHECK(DECODE(ps_snappy_decode, "\xff\xff\xff\xff\x1f", 5, false) == PS_CORRUPT);
    CHECK(DECODE(ps_snappy_decode, "\x80\x80\x80\x80\x80\x01", 5, false) == PS_CORRUPT);
    CHECK(DECODE(ps_snappy_decode, "\x85\x80", 5, true) == PS_TRUNCATED);
}

static void snappy_zero_offset(void) {
    CHECK(DECODE(ps_snappy_decode, "\x05\0a\x01\0", 5, true) == PS_CORRUPT);
    CHECK(DECODE(ps_snappy_decode, "\x05\0a\x0e\0\0", 5, true) == PS_CORRUPT);
    CHECK(DECODE(ps_snappy_decode, "\x05\0a\x0f\0\0\0\0", 5, true) == PS_CORRUPT);
}

static void snappy_copy_before_the_start(void) {
    ps_error err;
    CHECK(DECODE(ps_snappy_decode, "\x05\0a\x01\x01", 5, true) == PS_OK);
    CHECK(DECODE(ps_snappy_decode, "\x05\0a\x01\x02", 5, true) == PS_CORRUPT);
    CHECK(DECODE(ps_snappy_decode, "\x04\x01\x01", 4, true) == PS_CORRUPT);
    CHECK(DECODE(ps_snappy_decode, "\x05\0a\x0f\x01\0\0\xff", 5, true) == PS_CORRUPT);
    CHECK(decode(ps_snappy_decode, "\x05\0a\x01\x02", 5, 5, true, NULL, &err) == PS_CORRUPT);
    CHECK(err.offset == 3 && strstr(err.message, "2 bytes back"));
}

static void snappy_truncated_literal_length(void) {
    CHECK(DECODE(ps_snappy_decode, "\x64\xf0", 100, true) == PS_TRUNCATED);
    CHECK(DECODE(ps_snappy_decode, "\x64\xfc\x63\0\0", 100, true) == PS_TRUNCATED);
    CHECK(DECODE(ps_snappy_decode,
                 "\x64\xf0\x63"
                 "abc",
                 100, true) == PS_TRUNCATED);
    CHECK(DECODE(ps_snappy_decode,
                 "\x64\xfc\xff\xff\xff\xff"
                 "a",
                 100, false) == PS_TRUNCATED);
}

static void snappy_output_overrun(void) {
    CHECK(DECODE(ps_snappy_decode,
                 "\x03\x10"
                 "hello",
                 3, true) == PS_CORRUPT);
    CHECK(DECODE(ps_snappy_decode, "\x04\0a\x01\x01", 4, true) == PS_CORRUPT);
    CHECK(DECODE(ps_snappy_decode,
                 "\x03\xfc\xff\xff\xff\xff"
                 "abc",
                 3, true) == PS_CORRUPT);
    CHECK(DECODE(ps_snappy_decode,
                 "\x03\x08"
                 "abc\x01\x01",
                 3, true) == PS_CORRUPT);
}

/* ---- LZ4 --------------------------------------------------------------------------------- */

static void lz4_nothing(void) {
    CHECK(ps_lz4_decode(NULL, 0, NULL, 0, true, NULL) == PS_TRUNCATED);
    CHECK(ps_lz4_decode(NULL, 0, NULL, 0, false, NULL) == PS_OK);
    CHECK(ps_lz4_decode((const uint8_t *)"", 1, NULL, 0, true, NULL) == PS_OK);
    CHECK(DECODE(ps_lz4_decode, "\0\0", 0, true) == PS_TRUNCATED);
}

static void lz4_bad_offset(void) {
    CHECK(DECODE(ps_lz4_decode,
                 "\x10"
                 "a\x01\0\0",
                 5, true) == PS_OK);
    CHECK(DECODE(ps_lz4_decode,
                 "\x10"
                 "a\0\0\0",
                 5, true) == PS_CORRUPT);
    CHECK(DECODE(ps_lz4_decode,
                 "\x10"
                 "a\x02\0\0",
                 5, true) == PS_CORRUPT);
    CHECK(DECODE(ps_lz4_decode, "\0\x01\0\0", 4, true) == PS_CORRUPT);
}

static void lz4_truncated_length(void) {
    CHECK(DECODE(ps_lz4_decode, "\xf0", 99, true) == PS_TRUNCATED);
    CHECK(DECODE(ps_lz4_decode, "\xf0\xff\xff", 99, false) == PS_TRUNCATED);
    CHECK(DECODE(ps_lz4_decode,
                 "\x1f"
                 "a\x01\0\xff",
                 99, true) == PS_TRUNCATED);
    CHECK(DECODE(ps_lz4_decode,
                 "\x1f"
                 "a\x01",
                 99, true) == PS_TRUNCATED);
    CHECK(DECODE(ps_lz4_decode,
                 "\x50"
                 "hell",
                 5, true) == PS_TRUNCATED);
}

static void lz4_ends_in_a_match(void) {
    CHECK(DECODE(ps_lz4_decode,
                 "\x10"
                 "a\x01\0",
                 5, true) == PS_TRUNCATED);
    CHECK(DECODE(ps_lz4_decode,
                 "\x10"
                 "a\x01\0",
                 5, false) == PS_OK);
}

static void lz4_output_overrun(void) {
    CHECK(DECODE(ps_lz4_decode,
                 "\x50"
                 "hello",
                 4, true) == PS_CORRUPT);
    CHECK(DECODE(ps_lz4_decode,
                 "\x50"
                 "hello",
                 4, false) == PS_OK);
    CHECK(DECODE(ps_lz4_decode,
                 "\x50"
                 "hello",
                 6, true) == PS_TRUNCATED);
    CHECK(DECODE(ps_lz4_decode,
                 "\x10"
                 "a\x01\0\0",
                 4, true) == PS_CORRUPT);
    CHECK(DECODE(ps_lz4_decode,
                 "\x1f"
                 "a\x01\0\xff\xff\xff\0\0",
                 9, true) == PS_CORRUPT);
}

#define AB                                                                                     \
    "\0\0\0\x02\0\0\0\x03\x20"                                                                 \
    "ab"

static void hadoop_frames(void) {
    decode_fn *fn = ps_lz4_hadoop_decode;
    const uint8_t *want = (const uint8_t *)"ababab";
    CHECK(decode(fn, AB AB AB, 33, 6, true, want, NULL) == PS_OK);
    const char *two_blocks = "\0\0\0\x04\0\0\0\x03\x20"
                             "ab\0\0\0\x03\x20"
                             "ab" AB;
    CHECK(decode(fn, two_blocks, 29, 6, true, want, NULL) == PS_OK);
    CHECK(decode(fn, AB AB AB "\0\0\0\0", 37, 6, true, want, NULL) == PS_OK);
    CHECK(decode(fn,
                 "\x60"
                 "ababab",
                 7, 6, true, want, NULL) == PS_OK);
    for (size_t n = 0; n <= 6; n++) {
        CHECK(decode(fn, AB AB AB, 33, n, false, want, NULL) == PS_OK);
        CHECK(decode(fn,
                     "\x60"
                     "ababab",
                     7, n, false, want, NULL) == PS_OK);
        CHECK(n == 6 || decode(fn, AB AB AB, 33, n, true, want, NULL) != PS_OK);
    }
    for (size_t n = 0; n < 33; n++)
        CHECK(decode(fn, AB AB AB, n, 6, true, NULL, NULL) != PS_OK);
    CHECK(decode(fn, AB AB AB, 33, 7, false, NULL, NULL) != PS_OK);
}

static void hadoop_empty(void) {
    CHECK(ps_lz4_hadoop_decode(NULL, 0, NULL, 0, true, NULL) == PS_TRUNCATED);
    CHECK(ps_lz4_hadoop_decode((const uint8_t *)"\0\0\0", 4, NULL, 0, true, NULL) == PS_OK);
    CHECK(DECODE(ps_lz4_hadoop_decode, "\0\0\0\0\0\0\0\x01\0", 0, true) == PS_OK);
    CHECK(DECODE(ps_lz4_hadoop_decode, "\0", 0, true) == PS_OK);
}

static void hadoop_lies(void) {
    decode_fn *fn = ps_lz4_hadoop_decode;
    const char *bad_offset = AB "\0\0\0\x05\0\0\0\x05\x10"
                                "a\0\0\0";
    ps_error err;
    CHECK(DECODE(fn,
                 "\0\0\0\x03\0\0\0\x03\x20"
                 "ab",
                 3, true) == PS_TRUNCATED);
    CHECK(DECODE(fn,
                 "\0\0\0\x01\0\0\0\x03\x20"
                 "ab",
                 1, true) == PS_CORRUPT);
    CHECK(DECODE(fn,
                 "\0\0\0\x02\xff\xff\xff\xff\x20"
                 "ab",
                 2, true) == PS_TRUNCATED);
    CHECK(DECODE(fn, AB "x", 2, true) == PS_TRUNCATED);
    CHECK(decode(fn, bad_offset, 24, 7, true, NULL, &err) == PS_CORRUPT);
    CHECK(err.offset == 21); /* the offset of the match, counted from the start of the input */
}

/* ---- CRC-32 ------------------------------------------------------------------------------ */

static uint32_t crc32_by_bits(uint32_t crc, const uint8_t *data, size_t n) {
    crc = ~crc;
    for (; n > 0; n--) {
        crc ^= *data++;
        for (int i = 0; i < 8; i++) crc = (crc >> 1) ^ (0xEDB88320u & (0 - (crc & 1)));
    }
    return ~crc;
}

static void crc_against_bits(void) {
    int wrong = 0;
    CHECK(ps_crc32(0, (const uint8_t *)"123456789", 9) == 0xCBF43926);
    CHECK(ps_crc32(7, NULL, 0) == 7);
    for (size_t n = 1; n < 600; n++) {
        uint8_t *data = exactly(NULL, n);
        for (size_t i = 0; i < n; i++) data[i] = (uint8_t)below(256);
        uint32_t want = crc32_by_bits(42, data, n), parts = 42;
        size_t half = below((uint32_t)n + 1);
        wrong += ps_crc32(42, data, n) != want;
        parts = ps_crc32(parts, data, half);
        wrong += ps_crc32(parts, data + half, n - half) != want;
        free(data);
    }
    CHECK(wrong == 0);
}

/* ---- UTF-8 ------------------------------------------------------------------------------- */

static size_t first_bad(const char *text, size_t n) {
    size_t bad = SIZE_MAX;
    uint8_t *data = exactly(text, n);
    ps_status status = ps_utf8_check(data, n, &bad);
    free(data);
    return status == PS_OK ? SIZE_MAX : bad;
}
#define BAD(text) first_bad(text, sizeof(text) - 1)

static void utf8_limits(void) {
    CHECK(BAD("") == SIZE_MAX);
    CHECK(BAD("\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf") == SIZE_MAX);
    CHECK(BAD("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf") == SIZE_MAX);
    CHECK(BAD("\xed\x9f\xbf\xee\x80\x80") == SIZE_MAX);
    CHECK(BAD("\xc0\x80") == 0 && BAD("\xc1\xbf") == 0);
    CHECK(BAD("\xe0\x9f\xbf") == 0 && BAD("\xf0\x8f\xbf\xbf") == 0);
    CHECK(BAD("a\xed\xa0\x80") == 1 && BAD("a\xed\xbf\xbf") == 1);
    CHECK(BAD("\xf4\x90\x80\x80") == 0 && BAD("\xf5\x80\x80\x80") == 0 && BAD("\xff") == 0);
    CHECK(BAD("ab\x80") == 2 &&
          BAD("\xc2"
              "a") == 0 &&
          BAD("\xe2\x82"
              "a") == 0);
    CHECK(BAD("a\xc2") == 1 && BAD("a\xe2\x82") == 1 && BAD("a\xf0\x90\x80") == 1);
}

static void utf8_at_every_place(void) {
    char text[100];
    for (size_t i = 0; i + 1 < sizeof text; i++) {
        memset(text, 'a', sizeof text);
        memcpy(text + i, "\xc3\xa9", 2);
        CHECK(first_bad(text, sizeof text) == SIZE_MAX);
        CHECK(first_bad(text, i + 1) == i);
        text[i + 1] = 'a';
        CHECK(first_bad(text, sizeof text) == i);
    }
}

static void utf8_strings(void) {
    const uint8_t *text = (const uint8_t *)"ab\xc3\xa9"
                                           "cd";
    int64_t bad = -1;
    CHECK(ps_utf8_check_offsets32(text, (int32_t[]){0, 2, 4, 4, 6}, 4, &bad) == PS_OK);
    CHECK(ps_utf8_check_offsets32(text, (int32_t[]){4, 6, 6}, 2, &bad) == PS_OK);
    CHECK(ps_utf8_check_offsets32(NULL, (int32_t[]){0, 0}, 1, &bad) == PS_OK);
    CHECK(ps_utf8_check_offsets32(text, (int32_t[]){0, 0, 3, 6}, 3, &bad) == PS_CORRUPT);
    CHECK(bad == 2);
    CHECK(ps_utf8_check_offsets32(text, (int32_t[]){0, 1, 3}, 2, &bad) == PS_CORRUPT);
    CHECK(bad == 1);
    CHECK(ps_utf8_check_offsets32(text, (int32_t[]){3, 6}, 1, NULL) == PS_CORRUPT);
}

int main(void) {
    snappy_nothing();
    snappy_preamble_lies();
    snappy_zero_offset();
    snappy_copy_before_the_start();
    snappy_truncated_literal_length();
    snappy_output_overrun();
    random_blocks(ps_snappy_decode, write_snappy, true);
    lz4_nothing();
    lz4_bad_offset();
    lz4_truncated_length();
    lz4_ends_in_a_match();
    lz4_output_overrun();
    random_blocks(ps_lz4_decode, write_lz4, false);
    random_blocks(ps_lz4_hadoop_decode, write_lz4, false);
    hadoop_frames();
    hadoop_empty();
    hadoop_lies();
    crc_against_bits();
    utf8_limits();
    utf8_at_every_place();
    utf8_strings();
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
