/* Compaction against loops over single rows: every density, at every alignment, with no byte to spare. */
#include <stdlib.h>

#include "../c/compact.c"
#include "check.h"

enum { MOST = 700, MOST_WORDS = MOST / 64 + 1 };

static uint64_t state = 0x9e3779b97f4a7c15u;
static uint64_t next(void) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

/* Of eight bits about `eighths` are ones; 9: runs of random lengths. */
static bool draw(int eighths, bool last) {
    return eighths == 9 ? (next() % 20 ? last : !last) : (int)(next() % 8) < eighths;
}

static void *exactly(size_t size) {
    void *p = malloc(size ? size : 1);
    if (!p) abort();
    return p;
}

static bool get(const uint64_t *words, size_t i) {
    return words[i / 64] >> (i % 64) & 1;
}

static void fill(uint64_t *words, size_t n, int eighths) {
    bool last = false;
    memset(words, 0, ps_words_for(n) * sizeof *words);
    for (size_t i = 0; i < n; i++) {
        last = draw(eighths, last);
        if (last) words[i / 64] |= UINT64_C(1) << (i % 64);
    }
}

static void test_words(size_t n, int of_mask, int of_bits) {
    const size_t n_words = ps_words_for(n);
    uint64_t *mask = exactly(n_words * 8), *bits = exactly(n_words * 8);
    uint64_t *kept = exactly((n_words + 1) * 8), *back = exactly(n_words * 8);
    fill(mask, n, of_mask);
    fill(bits, n, of_bits);
    size_t ones = 0, runs = 0, end = 0, wrong = 0;
    kept[0] = UINT64_MAX; /* is overwritten */
    const size_t found = ps_words_compress(kept, bits, mask, n_words);
    for (size_t i = 0; i < n; i++) {
        if (!get(mask, i)) continue;
        runs += i == 0 || !get(mask, i - 1);
        end = i + 1;
        wrong += get(kept, ones++) != get(bits, i);
    }
    CHECK_INT(found, ones);
    CHECK_INT(ps_words_count(mask, n_words), ones);
    CHECK_INT(ps_words_runs(mask, n_words), runs);
    CHECK_INT(ps_words_end(mask, n_words), end);
    for (size_t i = ones; i < (ones / 64 + 1) * 64; i++) wrong += get(kept, i);
    for (size_t i = ones / 64 + 1; i <= n_words; i++) kept[i] = next(); /* matters to nobody */
    ps_words_expand(back, kept, mask, n_words);
    for (size_t i = 0; i < n; i++) wrong += get(back, i) != (get(mask, i) && get(bits, i));
    CHECK_INT(wrong, 0);
    free(mask), free(bits), free(kept), free(back);
}

static void test_load(size_t n) {
    for (size_t at = 0; at < 9; at++) {
        const size_t size = (at + n + 7) / 8;
        uint8_t *bytes = exactly(size);
        uint64_t *words = exactly(ps_words_for(n) * 8);
        size_t wrong = 0;
        for (size_t i = 0; i < size; i++) bytes[i] = (uint8_t)next();
        ps_words_load(words, bytes, at, n);
        for (size_t i = 0; i < ps_words_for(n) * 64; i++)
            wrong += get(words, i) != (i < n && ps_bit_get(bytes, at + i));
        CHECK_INT(wrong, 0);
        free(bytes), free(words);
    }
}

static void test_values(size_t n, size_t width, int eighths) {
    uint64_t *mask = exactly(ps_words_for(n) * 8);
    uint8_t *in = exactly(n * width);
    fill(mask, n, eighths);
    for (size_t i = 0; i < n * width; i++) in[i] = (uint8_t)next();
    const size_t ones = ps_words_count(mask, ps_words_for(n));
    for (size_t more = 0; more <= 100; more += 50) { /* space beyond what is kept */
        uint8_t *out = exactly((ones + more) * width);
        size_t k = 0, wrong = 0;
        CHECK_INT(ps_compact(out, ones + more, in, width, mask, n), ones);
        for (size_t i = 0; i < n; i++)
            if (get(mask, i)) wrong += memcmp(out + k++ * width, in + i * width, width) != 0;
        CHECK_INT(wrong, 0);
        free(out);
    }
    for (size_t at = 0; at < 4; at++) { /* and back, among bits that begin anywhere */
        uint8_t *bits = exactly((at + n + 7) / 8), *out = exactly(n * width);
        size_t k = 0, wrong = 0;
        memset(bits, 0xff, (at + n + 7) / 8);
        for (size_t i = 0; i < n; i++)
            if (!get(mask, i)) bits[(at + i) / 8] &= (uint8_t)~(1 << ((at + i) % 8));
        memset(out, 0xaa, n * width);
        if (ones) memcpy(out, in, ones * width);
        ps_spread(out, width, bits, at, n, ones);
        for (size_t i = 0; i < n; i++) {
            if (get(mask, i)) {
                wrong += memcmp(out + i * width, in + k++ * width, width) != 0;
            } else {
                for (size_t j = 0; j < width; j++) wrong += out[i * width + j] != 0;
            }
        }
        CHECK_INT(wrong, 0);
        free(bits), free(out);
    }
    free(mask), free(in);
}

int main(void) {
    static const size_t sizes[] = {0, 1, 2, 7, 63, 64, 65, 127, 128, 129, 320, 511, MOST};
    static const size_t widths[] = {0, 1, 2, 3, 4, 8, 12, 16, 32};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        test_load(sizes[i]);
        for (int eighths = 0; eighths <= 9; eighths++) {
            for (int bits = 0; bits <= 9; bits++) test_words(sizes[i], eighths, bits);
            for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
                test_values(sizes[i], widths[w], eighths);
        }
    }
    return check_report();
}
