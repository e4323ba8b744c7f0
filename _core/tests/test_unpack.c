/* Tests of pages that are unpacked from the front: the bytes equal those of the whole, and a codec goes on where it stopped. */
#include <stdlib.h>

#include "../pageseek.h"
#include "check.h"
#include "libraries.h"
#include "zstd_standin.h"

enum { SIZE = 300, SPACE = 512 };

static ps_codec CODECS[7] = {PS_CODEC_NONE, PS_CODEC_SNAPPY, PS_CODEC_LZ4_RAW, PS_CODEC_LZ4,
                             PS_CODEC_ZSTD};
static int N_CODECS = 5;

static void fill(uint8_t *plain) {
    for (int i = 0; i < SIZE; i++) plain[i] = (uint8_t)(i * 7 + i / 31);
}

/* Nothing but literals, in pieces where the codec has them. */
static size_t pack(ps_codec codec, const uint8_t *plain, uint8_t *out) {
    size_t n = 0;
    if (codec == PS_CODEC_GZIP) return pack_gzip(plain, SIZE, 20, out);
    if (codec == PS_CODEC_BROTLI) return pack_brotli(plain, SIZE, 20, out);
    if (codec == PS_CODEC_SNAPPY) {
        out[n++] = (SIZE & 127) | 128;
        out[n++] = SIZE >> 7;
    } else if (codec == PS_CODEC_LZ4_RAW || codec == PS_CODEC_LZ4) {
        out[n++] = 15 << 4;
        size_t more = SIZE - 15;
        for (; more >= 255; more -= 255) out[n++] = 255;
        out[n++] = (uint8_t)more;
    } else if (codec == PS_CODEC_ZSTD) {
        memcpy(out, "\x28\xb5\x2f\xfd", 4);
        out[4] = SIZE & 255;
        out[5] = SIZE >> 8;
        n = 6;
    }
    for (size_t at = 0; at < SIZE; at += 20) {
        if (codec == PS_CODEC_SNAPPY) out[n++] = 19 << 2;
        if (codec == PS_CODEC_ZSTD) out[n++] = 19 | (at + 20 == SIZE ? 128 : 0);
        memcpy(out + n, plain + at, 20);
        n += 20;
    }
    return n;
}

static void test_whatever_is_asked_for(void) {
    uint8_t plain[SIZE], packed[SPACE];
    fill(plain);
    for (int c = 0; c < N_CODECS; c++) {
        const size_t length = pack(CODECS[c], plain, packed);
        CHECK_INT(ps_inflate_fits(CODECS[c], packed, length, SIZE, NULL) == PS_OK ||
                      CODECS[c] == PS_CODEC_NONE,
                  1);
        for (size_t step = 1; step <= SIZE; step += 13) {
            uint8_t *out = malloc(SIZE);
            ps_unpack u;
            ps_unpack_begin(&u, CODECS[c], packed, length, out, SIZE);
            size_t changes = 0;
            for (size_t reach = step;; reach = reach + step < SIZE ? reach + step : SIZE) {
                const size_t before = u.reader.have;
                CHECK_INT(ps_unpack_more(&u, reach, NULL), PS_OK);
                CHECK(u.reader.have >= reach && u.reader.have <= SIZE);
                CHECK(memcmp(u.reader.data, plain, u.reader.have) == 0);
                changes += u.reader.have != before;
                if (reach == SIZE) break;
            }
            if (CODECS[c] == PS_CODEC_ZSTD) {
                CHECK(changes <= SIZE / 20);
            } else if (CODECS[c] == PS_CODEC_NONE) {
                CHECK_INT(changes, 0);
            } else if (CODECS[c] == PS_CODEC_LZ4) {
                CHECK(changes <= 2);
            } else {
                CHECK(changes > 2 || step > SIZE / 3);
            }
            ps_unpack_end(&u);
            free(out);
        }
    }
}

/* Where it begins again, what is beyond `most` is not worth a part. */
static void test_much_of_it_is_all_of_it(void) {
    uint8_t plain[SIZE], packed[SPACE], out[SIZE];
    fill(plain);
    for (int c = 1; c < N_CODECS; c++) {
        const size_t length = pack(CODECS[c], plain, packed);
        const bool zstd = CODECS[c] == PS_CODEC_ZSTD;
        if (CODECS[c] == PS_CODEC_SNAPPY) continue; /* a literal more may be decoded */
        for (size_t reach = 1; reach < SIZE; reach++) {
            ps_unpack u;
            ps_unpack_begin(&u, CODECS[c], packed, length, out, SIZE);
            u.most = SIZE / 4;
            CHECK_INT(ps_unpack_more(&u, reach, NULL), PS_OK);
            if (zstd) {
                CHECK_INT(u.reader.have, (reach + 19) / 20 * 20);
            } else if (CODECS[c] == PS_CODEC_LZ4) {
                CHECK_INT(u.reader.have, reach <= SIZE / 4 ? reach : SIZE);
            } else {
                CHECK_INT(u.reader.have, reach);
            }
            ps_unpack_end(&u);
        }
    }
}

/* What is broken behind is not met in front; what was broken once does not come right. */
static void test_broken(void) {
    uint8_t plain[SIZE], packed[SPACE], out[SIZE];
    fill(plain);
    const size_t length = pack(PS_CODEC_ZSTD, plain, packed);
    packed[6 + 21 * 10] = 63 | 128; /* a last block, and it is short of bytes, or of space */
    ps_unpack u;
    ps_unpack_begin(&u, PS_CODEC_ZSTD, packed, length, out, SIZE);
    CHECK_INT(ps_unpack_more(&u, 150, NULL), PS_OK);
    CHECK_INT(u.reader.have, 160);
    CHECK_INT(ps_unpack_more(&u, 200, NULL), PS_OK);
    CHECK(ps_unpack_more(&u, 201, NULL) != PS_OK);
    CHECK(ps_unpack_more(&u, SIZE, NULL) != PS_OK);
    CHECK(memcmp(out, plain, 200) == 0);
    ps_unpack_end(&u);
    const size_t cut = 6 + 21 * 5 + 3;
    ps_unpack_begin(&u, PS_CODEC_ZSTD, packed, cut, out, SIZE);
    CHECK_INT(ps_unpack_more(&u, 100, NULL), PS_OK);
    CHECK(ps_unpack_more(&u, 101, NULL) != PS_OK);
    CHECK(ps_unpack_more(&u, 101, NULL) != PS_OK);
    ps_unpack_end(&u);
}

/* Unpacks a copy of exactly `length` bytes in two parts. False where it fails; else the bytes are those of `plain`. */
static bool unpacks(ps_codec codec, const uint8_t *packed, size_t length, size_t size,
                    size_t reach, const uint8_t *plain) {
    if (ps_inflate_fits(codec, packed, length, size, NULL) != PS_OK) return false;
    uint8_t *in = malloc(length ? length : 1), *out = malloc(size ? size : 1);
    if (length) memcpy(in, packed, length);
    ps_unpack u;
    ps_unpack_begin(&u, codec, in, length, out, size);
    const bool done = ps_unpack_more(&u, reach, NULL) == PS_OK &&
                      ps_unpack_more(&u, size, NULL) == PS_OK;
    if (done) CHECK(size == 0 || memcmp(out, plain, size) == 0);
    ps_unpack_end(&u);
    free(in);
    free(out);
    return done;
}

/* Codecs with a library: all of the page means all of the input, whatever was read of it before. */
static void test_streams_end_where_the_page_ends(void) {
    uint8_t plain[SIZE], packed[2 * SPACE];
    fill(plain);
    for (int c = 5; c < N_CODECS; c++) {
        const ps_codec codec = CODECS[c];
        const size_t length = pack(codec, plain, packed);
        for (size_t reach = 0; reach <= SIZE; reach += 25) {
            CHECK(unpacks(codec, packed, length, SIZE, reach, plain));
            CHECK(!unpacks(codec, packed, length + 1, SIZE, reach, plain));
            CHECK(!unpacks(codec, packed, length, SIZE + 1, reach, plain));
            CHECK(!unpacks(codec, packed, length, SIZE - 1, reach < SIZE ? reach : 0, plain));
            for (size_t cut = 0; cut < length; cut++)
                CHECK(!unpacks(codec, packed, cut, SIZE, reach, plain));
        }
        for (size_t at = 0; at < length; at++)
            for (int bit = 0; bit < 8; bit++) {
                packed[at] ^= (uint8_t)(1 << bit);
                if (codec == PS_CODEC_GZIP) { /* its checksum finds what is wrong */
                    (void)unpacks(codec, packed, length, SIZE, 100, plain);
                } else {
                    uint8_t out[SIZE];
                    (void)ps_inflate(codec, packed, length, out, SIZE, SIZE, NULL);
                }
                packed[at] ^= (uint8_t)(1 << bit);
            }
    }
}

static void test_members_follow_one_another(void) {
    uint8_t plain[SIZE], packed[3 * SPACE];
    fill(plain);
    if (!ps_zlib_ready()) return;
    for (size_t a = 0; a <= SIZE; a += 50)
        for (size_t b = a; b <= SIZE; b += 50) {
            size_t n = pack_gzip(plain, a, 64, packed);
            n += pack_gzip(plain + a, b - a, 64, packed + n);
            n += pack_gzip(plain + b, SIZE - b, 64, packed + n);
            for (size_t reach = 0; reach <= SIZE; reach += 10)
                CHECK(unpacks(PS_CODEC_GZIP, packed, n, SIZE, reach, plain));
            CHECK(!unpacks(PS_CODEC_GZIP, packed, n, SIZE - 1, 0, plain));
            CHECK(!unpacks(PS_CODEC_GZIP, packed, n - 1, SIZE, 0, plain));
        }
}

static void test_pages_of_no_bytes(void) {
    uint8_t packed[32], out[1];
    if (ps_zlib_ready()) {
        CHECK(unpacks(PS_CODEC_GZIP, packed, 0, 0, 0, out));
        CHECK(unpacks(PS_CODEC_GZIP, packed, pack_gzip(out, 0, 1, packed), 0, 0, out));
        CHECK(!unpacks(PS_CODEC_GZIP, packed, 0, 1, 0, out));
    }
    if (ps_brotli_ready()) {
        CHECK(unpacks(PS_CODEC_BROTLI, packed, pack_brotli(out, 0, 1, packed), 0, 0, out));
        CHECK(!unpacks(PS_CODEC_BROTLI, packed, 0, 0, 0, out));
    }
}

static void test_without_a_library_nothing_fits(void) {
    uint8_t plain[SIZE], packed[SPACE];
    fill(plain);
    ps_zstd_use(NULL);
    ps_zlib_use(NULL);
    ps_brotli_use(NULL);
    for (ps_codec codec = PS_CODEC_ZSTD; codec <= PS_CODEC_BROTLI; codec++) {
        const size_t length = pack(codec, plain, packed);
        CHECK(ps_inflate_fits(codec, packed, length, SIZE, NULL) == PS_CORRUPT);
    }
}

int main(void) {
    ps_zstd_use(&zstd_standin);
    if (use_zlib()) CODECS[N_CODECS++] = PS_CODEC_GZIP;
    if (use_brotli()) CODECS[N_CODECS++] = PS_CODEC_BROTLI;
    test_whatever_is_asked_for();
    test_much_of_it_is_all_of_it();
    test_broken();
    test_streams_end_where_the_page_ends();
    test_members_follow_one_another();
    test_pages_of_no_bytes();
    test_without_a_library_nothing_fits();
    return check_report();
}
