/* Tests of pages that are unpacked from the front: the bytes equal those of the whole, and no codec begins again twice. */
#include <stdlib.h>

#include "../pageseek.h"
#include "check.h"
#include "zstd_standin.h"

enum { SIZE = 300, SPACE = 512 };

static const ps_codec CODECS[] = {PS_CODEC_NONE, PS_CODEC_SNAPPY, PS_CODEC_LZ4_RAW,
                                  PS_CODEC_ZSTD};
enum { N_CODECS = sizeof CODECS / sizeof *CODECS };

static void fill(uint8_t *plain) {
    for (int i = 0; i < SIZE; i++) plain[i] = (uint8_t)(i * 7 + i / 31);
}

/* Nothing but literals, in pieces where the codec has them. */
static size_t pack(ps_codec codec, const uint8_t *plain, uint8_t *out) {
    size_t n = 0;
    if (codec == PS_CODEC_SNAPPY) {
        out[n++] = (SIZE & 127) | 128;
        out[n++] = SIZE >> 7;
    } else if (codec == PS_CODEC_LZ4_RAW) {
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
            } else {
                CHECK(changes <= 2);
            }
            ps_unpack_end(&u);
            free(out);
        }
    }
}

/* Of those that begin again, what is beyond `most` is not worth a part. */
static void test_much_of_it_is_all_of_it(void) {
    uint8_t plain[SIZE], packed[SPACE], out[SIZE];
    fill(plain);
    for (int c = 1; c < N_CODECS; c++) {
        const size_t length = pack(CODECS[c], plain, packed);
        const bool zstd = CODECS[c] == PS_CODEC_ZSTD;
        for (size_t reach = 1; reach < SIZE; reach++) {
            ps_unpack u;
            ps_unpack_begin(&u, CODECS[c], packed, length, out, SIZE);
            u.most = SIZE / 4;
            CHECK_INT(ps_unpack_more(&u, reach, NULL), PS_OK);
            if (zstd) {
                CHECK_INT(u.reader.have, (reach + 19) / 20 * 20);
            } else {
                CHECK_INT(u.reader.have, reach <= SIZE / 4 ? reach : SIZE);
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

int main(void) {
    ps_zstd_use(&zstd_standin);
    test_whatever_is_asked_for();
    test_much_of_it_is_all_of_it();
    test_broken();
    ps_zstd_use(NULL);
    return check_report();
}
