/* test_lookup.c - IN by a table against IN by search, for every kind; several prefixes. Every buffer is a heap block of
 * exactly the size that the contract names. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../pageseek.h"
#include "check_rows.h"

static void drop(ps_values *v) {
    free((void *)v->values);
    free((void *)v->offsets);
}

static size_t size_of(int kind) {
    static const uint8_t sizes[] = {0, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 16, 32, 0, 0, 3};
    return sizes[kind];
}

/* A number of the kind from any 64 bits, sparse or dense; the same number twice where they are. */
static void number_of(int kind, uint64_t v, uint8_t *out) {
    size_t size = size_of(kind);
    if (kind == PS_F32) {
        float f = (float)(int64_t)v / 4;
        if (v % 11 == 0) f = v % 2 ? NAN : -0.0f;
        memcpy(out, &f, 4);
    } else if (kind == PS_F64) {
        double d = (double)(int64_t)v / 4;
        if (v % 11 == 0) d = v % 2 ? NAN : v % 3 ? -0.0 : 0.0;
        memcpy(out, &d, 8);
    } else {
        memset(out, v & 1 ? 0 : 0xff, size);
        memcpy(out, &v, size < 8 ? size : 8);
        if (size > 8 && v % 3 == 0) out[size - 1] = (uint8_t)(v >> 3);
    }
}

static ps_values many_of(int kind, const uint64_t *v, int64_t n) {
    ps_values out = {.kind = kind, .width = 3, .n = n};
    size_t size = size_of(kind), total = 0;
    if (kind == PS_BYTES || kind == PS_LARGE_BYTES) {
        for (int64_t i = 0; i < n; i++) total += v[i] % 40;
        uint8_t *data = exactly(total), *end = data;
        int32_t *narrow = kind == PS_BYTES ? exactly((size_t)(n + 1) * 4) : NULL;
        int64_t *wide = kind == PS_BYTES ? NULL : exactly((size_t)(n + 1) * 8);
        for (int64_t i = 0; i <= n; i++) {
            if (narrow) narrow[i] = (int32_t)(end - data);
            if (wide) wide[i] = end - data;
            /* many share their length and all but one byte */
            if (i < n && v[i] % 40) {
                memset(end, 'a', (size_t)(v[i] % 40));
                end[v[i] / 40 % (v[i] % 40)] = (uint8_t)(v[i] / 1600);
                end += v[i] % 40;
            }
        }
        out.offsets = narrow ? (void *)narrow : (void *)wide;
        out.values = data, out.values_size = total;
        return out;
    }
    uint8_t *data = exactly(size * (size_t)n);
    for (int64_t i = 0; i < n; i++) number_of(kind, v[i], data + size * (size_t)i);
    out.values = data, out.values_size = size * (size_t)n;
    return out;
}

static uint64_t any64(uint32_t way) {
    uint64_t v = (uint64_t)rnd(1u << 31) << 33 ^ (uint64_t)rnd(1u << 31) << 11 ^ rnd(1u << 31);
    switch (way) {
    case 0: return v;                                     /* far apart */
    case 1: return v % 3000;                              /* close together */
    case 2: return v % 3000 << 44;                        /* differ in high bits alone */
    case 3: return v % 500 - 250;                         /* about zero */
    default: return v % 2 ? v % 64 : UINT64_MAX - v % 64; /* both ends */
    }
}

/* As sort_literals of Python: the same values, sorted and distinct. */
static ps_values sorted_many(int kind, uint64_t *v, int64_t n) {
    int64_t *order = exactly((size_t)n * sizeof *order);
    uint64_t *chosen = exactly((size_t)n * sizeof *chosen);
    size_t kept;
    ps_values all = many_of(kind, v, n);
    CHECK(ps_literals_sort(&all, order, &kept, NULL) == PS_OK);
    for (size_t i = 0; i < kept; i++) chosen[i] = v[order[i]];
    drop(&all);
    all = many_of(kind, chosen, (int64_t)kept);
    free(order);
    free(chosen);
    return all;
}

/* The search in the sorted list, whose own test compares with every literal, is the truth. */
static void test_in_tables(void) {
    static const int64_t SIZES[] = {0, 1, 8, 9, 10, 63, 300, 3000};
    int bitmaps = 0, tables = 0;
    for (int kind = PS_I8; kind <= PS_FIXED; kind++) {
        for (int round = 0; round < 5 * 8; round++) {
            uint32_t way = (uint32_t)round % 5;
            int64_t size = SIZES[round / 5], n = rnd(400), by_search, by_table;
            uint64_t *v = exactly((size_t)(size + n) * sizeof *v);
            for (int64_t i = 0; i < size; i++) v[i] = any64(way);
            ps_values list = sorted_many(kind, v, size);
            uint64_t *w = v + size;
            for (int64_t i = 0; i < n; i++)
                w[i] = rnd(2) && size ? v[rnd((uint32_t)size)] : any64(way);
            ps_values values = many_of(kind, w, n);
            size_t bytes = (size_t)(n + 7) / 8;
            uint8_t *one = exactly(bytes), *two = exactly(bytes), *validity = exactly(bytes);
            for (size_t i = 0; i < bytes; i++) validity[i] = (uint8_t)rnd(256);
            if (rnd(2)) values.validity = validity;
            ps_in in;
            CHECK(ps_in_open(&list, &in, NULL) == PS_OK);
            size_t space = ps_in_table_size(&in);
            CHECK(space <= 24 * (size_t)list.n || space <= 16384);
            CHECK((space == 0) == (in.n < (kind < PS_BYTES ? 9 : 2)));
            uint8_t *table = exactly(space);
            for (int built = 0; built < 2; built++) {
                if (built) ps_in_build(&in, table);
                for (int way_of_nan = 0; way_of_nan < 4; way_of_nan++) {
                    bool negate = way_of_nan & 1;
                    ps_nan nan = way_of_nan & 2 ? PS_NAN_SPARK : PS_NAN_IEEE;
                    memset(one, 0xa5, bytes), memset(two, 0x5a, bytes);
                    CHECK(ps_compare(&values, PS_IN, negate, &list, nan, one, &by_search,
                                     NULL) == PS_OK);
                    CHECK(ps_compare_in(&values, negate, &in, nan, two, &by_table, NULL) ==
                          PS_OK);
                    CHECK(by_search == by_table && memcmp(one, two, bytes) == 0);
                }
            }
            bitmaps += in.form == 1, tables += in.form == 2;
            free(table), free(one), free(two), free(validity), free(v);
            values.validity = NULL;
            drop(&values), drop(&list);
        }
    }
    CHECK(bitmaps > 40 && tables > 100);
}

/* Integers far apart are bits as long as the bitmap is small for their number, or small at all: about each limit. */
static void test_in_spans(void) {
    static const struct {
        int64_t n;
        uint64_t most; /* bits */
    } limits[] = {
        {9, 1 << 16}, {64, 1 << 16}, {100, 100 << 10}, {20000, 1 << 24}, {300000, 64 * 300000}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        const int64_t n = limits[i].n;
        for (int beyond = 0; beyond < 2; beyond++) {
            const uint64_t span = limits[i].most - 1 + (uint64_t)beyond, low = (uint64_t)-5000;
            uint64_t *v = exactly((size_t)n * sizeof *v), *w = exactly((size_t)n * sizeof *w);
            for (int64_t k = 0; k < n; k++) v[k] = low + span / (uint64_t)n * (uint64_t)k;
            v[n - 1] = low + span;
            for (int64_t k = 0; k < n; k++) {
                w[k] = v[k] + (uint64_t)rnd(3) - 1;
                if (k % 5 == 0) w[k] = (uint64_t)rnd(1u << 31) << 20;
            }
            w[0] = low - 1, w[1] = low + span + 1, w[2] = low, w[3] = low + span;
            w[4] = (uint64_t)INT64_MIN, w[5] = INT64_MAX;
            ps_values list = {
                .kind = PS_I64, .n = n, .values = (uint8_t *)v, .values_size = 8 * (size_t)n};
            ps_values values = {
                .kind = PS_I64, .n = n, .values = (uint8_t *)w, .values_size = 8 * (size_t)n};
            ps_in in;
            CHECK(ps_in_open(&list, &in, NULL) == PS_OK);
            uint8_t *space = exactly(ps_in_table_size(&in));
            ps_in_build(&in, space);
            CHECK((in.form == 1) == !beyond);
            const size_t bytes = (size_t)(n + 7) / 8;
            uint8_t *one = exactly(bytes), *two = exactly(bytes);
            int64_t by_search, by_table;
            CHECK(ps_compare(&values, PS_IN, false, &list, PS_NAN_IEEE, one, &by_search,
                             NULL) == PS_OK);
            CHECK(ps_compare_in(&values, false, &in, PS_NAN_IEEE, two, &by_table, NULL) ==
                  PS_OK);
            CHECK(by_table == by_search);
            CHECK(memcmp(one, two, bytes) == 0 && by_search >= 2);
            free(space), free(one), free(two), free(v), free(w);
        }
    }
}

/* Lists that fill one end of the table are searched; the answer is the same. */
static void test_in_collisions(void) {
    enum { N = 5000 };
    uint64_t inverse = 1, factor = 0x9e3779b97f4a7c15u;
    for (int i = 0; i < 6; i++) inverse *= 2 - factor * inverse;
    uint64_t *v = exactly(2 * N * sizeof *v);
    for (uint64_t i = 0; i < 2 * N; i++) {
        v[i] = (i << 20) * inverse; /* whose hashes share their high bits */
        v[i] ^= v[i] >> 32;
    }
    ps_values values = many_of(PS_I64, v, 2 * N), list = sorted_many(PS_I64, v, N);
    memcpy((void *)values.values, v, 2 * N * sizeof *v);
    int64_t *order = exactly(N * sizeof *order), count;
    size_t kept;
    ps_values plain = values;
    plain.n = N;
    CHECK(ps_literals_sort(&plain, order, &kept, NULL) == PS_OK && kept == N);
    for (size_t i = 0; i < N; i++) memcpy((uint8_t *)list.values + 8 * i, v + order[i], 8);
    ps_in in;
    CHECK(ps_in_open(&list, &in, NULL) == PS_OK);
    void *space = exactly(ps_in_table_size(&in));
    ps_in_build(&in, space);
    CHECK(in.form == 0);
    uint8_t *mask = exactly(2 * N / 8);
    CHECK(ps_compare_in(&values, false, &in, PS_NAN_IEEE, mask, &count, NULL) == PS_OK);
    CHECK(count == N);
    ps_values other = {.kind = PS_I32};
    CHECK(ps_compare_in(&other, false, &in, PS_NAN_IEEE, mask, &count, NULL) == PS_INVALID);
    free(space), free(mask), free(order), free(v);
    drop(&values), drop(&list);
}

/* ---- several prefixes --------------------------------------------------------------------- */

enum { LONGEST = 5, MOST = 60 };

/* Strings of the letters a and b, which share prefixes. */
static ps_values words(uint8_t (*text)[LONGEST + 1], int64_t n) {
    ps_values out = {.kind = PS_BYTES, .n = n};
    int32_t *offsets = exactly((size_t)(n + 1) * 4);
    size_t total = 0;
    for (int64_t i = 0; i < n; i++) total += text[i][LONGEST];
    uint8_t *data = exactly(total);
    offsets[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        memcpy(data + offsets[i], text[i], text[i][LONGEST]);
        offsets[i + 1] = offsets[i] + text[i][LONGEST];
    }
    out.values = data, out.values_size = total, out.offsets = offsets;
    return out;
}

static void any_word(uint8_t *text, uint32_t least) {
    text[LONGEST] = (uint8_t)(least + rnd(LONGEST + 1 - least));
    for (int i = 0; i < LONGEST; i++) text[i] = (uint8_t)('a' + rnd(2));
}

static bool starts(const uint8_t *text, const uint8_t *prefix) {
    return text[LONGEST] >= prefix[LONGEST] && memcmp(text, prefix, prefix[LONGEST]) == 0;
}

static int words_order(const uint8_t *a, const uint8_t *b) {
    size_t shared = a[LONGEST] < b[LONGEST] ? a[LONGEST] : b[LONGEST];
    int order = memcmp(a, b, shared);
    return order ? order : a[LONGEST] - b[LONGEST];
}

static void test_prefixes(void) {
    int never = 0, always = 0;
    for (int round = 0; round < 3000; round++) {
        uint8_t list[MOST][LONGEST + 1], text[100][LONGEST + 1], low[2][LONGEST + 1];
        int64_t n = 0, count;
        for (int64_t tries = 1 + rnd(12); tries-- > 0;) { /* sorted, none starts with another */
            uint8_t word[LONGEST + 1];
            any_word(word, 2);
            int64_t at = 0;
            bool fits = true;
            for (int64_t i = 0; i < n; i++) {
                fits = fits && !starts(word, list[i]) && !starts(list[i], word);
                at += words_order(list[i], word) < 0;
            }
            if (!fits) continue;
            memmove(list[at + 1], list[at], (size_t)(n - at) * sizeof *list);
            memcpy(list[at], word, sizeof word);
            n++;
        }
        for (int i = 0; i < 100; i++) any_word(text[i], 0);
        ps_values literals = words(list, n), values = words(text, 100);
        uint8_t *mask = exactly(13), verdict;
        CHECK(ps_compare(&values, PS_PREFIX, false, &literals, PS_NAN_IEEE, mask, &count,
                         NULL) == PS_OK);
        bool same = true;
        for (int i = 0; i < 100; i++) {
            bool wanted = false;
            for (int64_t k = 0; k < n; k++) wanted = wanted || starts(text[i], list[k]);
            same = same && wanted == (mask[i / 8] >> (i % 8) & 1);
            count -= wanted;
        }
        CHECK(same && count == 0);

        /* one zone: all strings of the letters, up to a length, that lie between its bounds */
        int first = words_order(text[0], text[1]) > 0;
        memcpy(low[0], text[first], sizeof low[0]), memcpy(low[1], text[!first], sizeof low[1]);
        ps_values lower = words(low, 1), upper = words(low + 1, 1);
        uint8_t known = 1, told = 0;
        int64_t nulls = 0;
        ps_zones zone = {
            .n = 1, .lower = lower, .upper = upper, .known = &known, .null_counts = &nulls};
        CHECK(ps_zones_probe(&zone, PS_PREFIX, &literals, PS_NAN_IEEE, &verdict, NULL) ==
              PS_OK);
        for (int size = 0; size <= LONGEST; size++)
            for (int letters = 0; letters < 1 << size; letters++) {
                uint8_t word[LONGEST + 1] = {0};
                bool passes = false;
                word[LONGEST] = (uint8_t)size;
                for (int i = 0; i < size; i++) word[i] = (uint8_t)('a' + (letters >> i & 1));
                if (words_order(word, low[0]) < 0 || words_order(word, low[1]) > 0) continue;
                for (int64_t k = 0; k < n; k++) passes = passes || starts(word, list[k]);
                told |= passes ? PS_MAY_TRUE : PS_MAY_FALSE;
            }
        CHECK((verdict & told) == told);
        /* no literal is longer than the words, so what may be TRUE is TRUE for one of them */
        CHECK(!(verdict & PS_MAY_TRUE) || told & PS_MAY_TRUE);
        never += verdict == PS_MAY_FALSE, always += verdict == PS_MAY_TRUE;
        free(mask);
        drop(&literals), drop(&values), drop(&lower), drop(&upper);
    }
    CHECK(never > 300 && always > 30);
    uint8_t nested[2][LONGEST + 1] = {"ab", "abb"}, *mask = exactly(1);
    nested[0][LONGEST] = 2, nested[1][LONGEST] = 3;
    int64_t count;
    ps_values pair = words(nested, 2);
    CHECK(ps_compare(&pair, PS_PREFIX, false, &pair, PS_NAN_IEEE, mask, &count, NULL) ==
          PS_INVALID);
    pair.n = 0;
    CHECK(ps_compare(&pair, PS_PREFIX, false, &pair, PS_NAN_IEEE, mask, &count, NULL) ==
          PS_INVALID);
    pair.n = 2;
    drop(&pair);
    free(mask);
}

int main(void) {
    test_prefixes();
    test_in_tables();
    test_in_spans();
    test_in_collisions();
    return report();
}
