/* Snappy and LZ4 blocks that are decoded in parts: wherever one stops, the bytes and the outcome are those of one pass. */
#include "check.h"
#include "lz_blocks.h"

enum { SPACE = 1 << 20, SEEDS = 24 };

typedef ps_status more_fn(ps_lz_place *, const uint8_t *, size_t, uint8_t *, size_t, size_t,
                          ps_error *);
typedef ps_status all_fn(const uint8_t *, size_t, uint8_t *, size_t, bool, ps_error *);

typedef struct codec {
    more_fn *more;
    all_fn *all;
    void (*write)(bytes *, bytes *, size_t);
    bool preamble;
} codec;

static const codec CODECS[] = {
    {ps_snappy_more, ps_snappy_decode, write_snappy, true},
    {ps_lz4_more, ps_lz4_decode, write_lz4, false},
};

static void make(const codec *c, size_t target, bytes *block, bytes *plain) {
    bytes body = {exactly(NULL, SPACE), 0};
    block->n = plain->n = 0;
    c->write(&body, plain, target);
    for (size_t n = plain->n; c->preamble; n >>= 7) {
        put(block, n < 128 ? (unsigned)n : 128 | (n & 127));
        if (n < 128) break;
    }
    push(block, body.data, body.n);
    free(body.data);
}

/* Decodes up to each of `n` places; true where all are reached. Input and output have exactly their size. */
static bool in_parts(const codec *c, const uint8_t *data, size_t length, size_t size,
                     const size_t *reaches, size_t n, uint8_t *out) {
    ps_lz_place place = {0};
    for (size_t i = 0; i < n; i++) {
        const ps_lz_place before = place;
        if (c->more(&place, data, length, out, size, reaches[i], NULL) != PS_OK) {
            CHECK(place.in == before.in && place.out == before.out);
            return false;
        }
        CHECK(place.out >= reaches[i] && place.out <= size && place.in <= length);
        CHECK(place.out >= before.out);
    }
    return true;
}

static void test_every_pair_of_places(void) {
    bytes block = {exactly(NULL, SPACE), 0}, plain = {exactly(NULL, SPACE), 0};
    for (size_t k = 0; k < 2; k++)
        for (uint32_t i = 0; i < SEEDS; i++) {
            seed = 7000 * i + 1;
            make(&CODECS[k], i % 3 ? 1 + below(60) : 150 + below(100), &block, &plain);
            uint8_t *in = exactly(block.data, block.n), *out = exactly(NULL, plain.n);
            const size_t step = plain.n > 100 ? 3 : 1;
            int wrong = 0;
            for (size_t a = 0; a <= plain.n; a += step)
                for (size_t b = a; b <= plain.n; b += step) {
                    const size_t reaches[] = {a, b, a, plain.n, plain.n};
                    memset(out, 0xee, plain.n);
                    wrong += !in_parts(&CODECS[k], in, block.n, plain.n, reaches, 4, out) ||
                             memcmp(out, plain.data, plain.n) != 0;
                }
            CHECK_INT(wrong, 0);
            free(in);
            free(out);
        }
    free(block.data);
    free(plain.data);
}

static void test_large_blocks_in_steps(void) {
    bytes block = {exactly(NULL, SPACE), 0}, plain = {exactly(NULL, SPACE), 0};
    for (size_t k = 0; k < 2; k++)
        for (uint32_t i = 0; i < SEEDS; i++) {
            seed = 900 * i + 5;
            make(&CODECS[k], 30000 + below(40000), &block, &plain);
            uint8_t *in = exactly(block.data, block.n), *out = exactly(NULL, plain.n);
            ps_lz_place place = {0};
            bool right = true;
            for (size_t reach = 0; right && reach < plain.n;) {
                const uint32_t far = below(3) ? 40 : 5000;
                reach += 1 + below(far);
                if (reach > plain.n) reach = plain.n;
                right = CODECS[k].more(&place, in, block.n, out, plain.n, reach, NULL) ==
                            PS_OK &&
                        place.out >= reach && memcmp(out, plain.data, place.out) == 0;
            }
            CHECK(right);
            free(in);
            free(out);
        }
    free(block.data);
    free(plain.data);
}

/* What one pass refuses is refused in parts, and the other way round. */
static void test_damage(void) {
    bytes block = {exactly(NULL, SPACE), 0}, plain = {exactly(NULL, SPACE), 0};
    int differ = 0, refused = 0;
    for (size_t k = 0; k < 2; k++)
        for (uint32_t i = 0; i < 4 * SEEDS; i++) {
            seed = 31 * i + 3;
            make(&CODECS[k], 20 + below(300), &block, &plain);
            for (size_t cut = 0; cut < block.n + 40; cut++) {
                size_t length = cut < block.n ? cut : block.n, size = plain.n;
                uint8_t *in = exactly(block.data, length), *out = exactly(NULL, size + 1);
                uint8_t *other = exactly(NULL, size + 1);
                if (cut >= block.n && length) in[below((uint32_t)length)] ^= 1 << below(8);
                if (cut % 13 == 5) size += cut % 2 ? 1 : (size_t)-1;
                const size_t reaches[] = {below((uint32_t)size), size};
                const bool all = CODECS[k].all(in, length, out, size, true, NULL) == PS_OK;
                const bool parts = in_parts(&CODECS[k], in, length, size, reaches, 2, other);
                differ += all != parts || (all && memcmp(out, other, size) != 0);
                refused += !all;
                free(in);
                free(out);
                free(other);
            }
        }
    CHECK_INT(differ, 0);
    CHECK(refused > 1000);
    free(block.data);
    free(plain.data);
}

/* A literal, or a match, that is as long as the page is written no further than is wanted. */
static void test_long_elements_stop(void) {
    enum { N = 5000 };
    static const uint8_t zeros[] = {0x1f, 0,   1,   0,   255, 255,  255, 255, 255,
                                    255,  255, 255, 255, 255, 255,  255, 255, 255,
                                    255,  255, 255, 255, 200, 0x10, 7};
    static const size_t size = 1 + 4 + 15 + 18 * 255 + 200 + 1;
    uint8_t out[N];
    ps_lz_place place = {0};
    for (size_t reach = 1; reach < size; reach += 7) {
        CHECK_INT(ps_lz4_more(&place, zeros, sizeof zeros, out, size, reach, NULL), PS_OK);
        CHECK_INT(place.out, reach);
    }
    CHECK_INT(ps_lz4_more(&place, zeros, sizeof zeros, out, size, size, NULL), PS_OK);
    CHECK(out[0] == 0 && out[size - 2] == 0 && out[size - 1] == 7);

    uint8_t literal[N + 5] = {(N & 127) | 128, N >> 7, 61 << 2, (N - 1) & 255, (N - 1) >> 8};
    for (int i = 0; i < N; i++) literal[5 + i] = (uint8_t)(i * i);
    place = (ps_lz_place){0};
    for (size_t reach = 1; reach <= N; reach += 7) {
        CHECK_INT(ps_snappy_more(&place, literal, sizeof literal, out, N, reach, NULL), PS_OK);
        CHECK_INT(place.out, reach);
        CHECK(memcmp(out, literal + 5, reach) == 0);
    }
}

int main(void) {
    test_every_pair_of_places();
    test_large_blocks_in_steps();
    test_damage();
    test_long_elements_stop();
    return check_report();
}
