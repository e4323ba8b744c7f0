/* test_rows.c - selections, comparison, search and zones against slow loops. Every buffer is a
 * heap block of exactly the size that the contract names, so that a sanitizer sees the first
 * byte read or written beyond it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../pageseek.h"
#include "base.h"
#include "check_rows.h"

static uint64_t seed = 0x9e3779b97f4a7c15u;

static uint32_t rnd(uint32_t below) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((seed >> 33) % below);
}

/* At least one byte, so that NULL means absent. */
static void *exactly(size_t size) {
    void *block = malloc(size ? size : 1);
    if (!block) abort();
    memset(block, 0xa5, size);
    return block;
}

static bool bit(const uint8_t *bits, int64_t i) {
    return bits[i / 8] >> (i % 8) & 1;
}

/* ---- selections -------------------------------------------------------------------------- */

enum { SPAN = 300 };

/* The set as one byte a row, beside both of its forms. */
typedef struct set {
    uint8_t rows[SPAN];
    ps_range *ranges;
    uint8_t *bitmap;
    size_t n;
    int64_t base, length, count;
} set;

static set set_random(void) {
    set s = {.base = rnd(70)};
    uint32_t density = rnd(4), run = 1 + rnd(40);
    s.length = SPAN - s.base - rnd(70);
    for (int64_t i = s.base, on = 0; i < s.base + s.length; i++) {
        if (rnd(run) == 0) on = rnd(4) < density;
        s.rows[i] = (uint8_t)on;
    }
    s.bitmap = exactly((size_t)(s.length + 7) / 8);
    memset(s.bitmap, 0, (size_t)(s.length + 7) / 8);
    for (int64_t i = 0; i < s.length; i++)
        if (s.rows[s.base + i]) s.bitmap[i / 8] |= (uint8_t)(1 << (i % 8));
    for (int pass = 0; pass < 2; pass++) {
        s.n = 0, s.count = 0;
        for (int64_t i = 0; i < SPAN; i++) {
            s.count += s.rows[i];
            if (!s.rows[i]) continue;
            /* ranges may touch: cut some */
            bool joins = i && s.rows[i - 1] && i % 16 != 15;
            if (pass && joins) s.ranges[s.n - 1].stop++;
            if (pass && !joins) s.ranges[s.n] = (ps_range){i, i + 1};
            s.n += !joins;
        }
        if (!pass) s.ranges = exactly(s.n * sizeof(ps_range));
    }
    return s;
}

static void set_free(set *s) {
    free(s->ranges);
    free(s->bitmap);
}

static ps_selection form(const set *s, bool dense) {
    ps_selection c = {.ranges = s->ranges, .n_ranges = s->n};
    if (dense) c = (ps_selection){.bitmap = s->bitmap, .base = s->base, .length = s->length};
    return c;
}

static bool ranges_are(const ps_range *ranges, size_t n, const uint8_t rows[SPAN]) {
    int64_t row = 0;
    for (size_t i = 0; i < n; i++) {
        if (ranges[i].start < row || ranges[i].stop <= ranges[i].start || ranges[i].stop > SPAN)
            return false;
        for (; row < ranges[i].start; row++)
            if (rows[row]) return false;
        for (; row < ranges[i].stop; row++)
            if (!rows[row]) return false;
    }
    for (; row < SPAN; row++)
        if (rows[row]) return false;
    return true;
}

static void one_selection(const set *s, bool dense) {
    ps_selection c = form(s, dense);
    CHECK(ps_selection_check(&c, NULL) == PS_OK);
    CHECK(ps_selection_count(&c) == s->count);
    size_t runs = ps_selection_runs(&c), seen = 0;
    ps_range *out = exactly(runs * sizeof *out);
    ps_selection_to_ranges(&c, out);
    CHECK(ranges_are(out, runs, s->rows));
    for (size_t i = 1; i < runs; i++) seen += out[i - 1].stop == out[i].start;
    CHECK(seen == 0);

    int64_t k = 0;
    for (int64_t row = 0; row < SPAN; row++)
        if (s->rows[row]) CHECK(ps_selection_nth(&c, k++) == row);
    CHECK(ps_selection_nth(&c, k) == -1);
    CHECK(ps_selection_nth(&c, -1) == -1);

    /* the same runs, however the way is cut, also after a seek */
    for (int64_t row = rnd(SPAN); row < SPAN; row += 50) {
        ps_run_cursor cursor = {0, row};
        uint8_t rows[SPAN] = {0}, expected[SPAN] = {0};
        memcpy(expected + row, s->rows + row, (size_t)(SPAN - row));
        for (int64_t limit = row; limit < SPAN;) {
            limit += 1 + rnd(40);
            for (ps_range run; ps_selection_next(&c, &cursor, limit, &run);) {
                CHECK(run.start < run.stop && run.stop <= limit);
                memset(rows + run.start, 1, (size_t)(run.stop - run.start));
            }
        }
        CHECK(memcmp(rows, expected, SPAN) == 0);
    }

    int64_t base = rnd(SPAN), length = rnd((uint32_t)(SPAN - base) + 1);
    uint8_t *bitmap = exactly((size_t)(length + 7) / 8);
    ps_selection_to_bitmap(&c, base, length, bitmap);
    bool same = true;
    for (int64_t i = 0; i < length; i++) same = same && bit(bitmap, i) == s->rows[base + i];
    for (int64_t i = length; i < (length + 7) / 8 * 8; i++) same = same && !bit(bitmap, i);
    CHECK(same);

    uint8_t *mask = exactly((size_t)(s->count + 7) / 8), kept[SPAN] = {0};
    for (int64_t i = 0; i < (s->count + 7) / 8; i++)
        mask[i] = (uint8_t)(rnd(256) | (rnd(2) ? 255 : 0));
    for (int64_t row = 0, i = 0; row < SPAN; row++)
        if (s->rows[row]) kept[row] = bit(mask, i++);
    size_t n = ps_selection_refine(&c, mask, NULL);
    ps_range *refined = exactly(n * sizeof *refined);
    CHECK(ps_selection_refine(&c, mask, refined) == n);
    CHECK(ranges_are(refined, n, kept));

    int64_t lowest = s->base, span = s->length;
    if (!dense && s->n) { /* a bitmap that holds the ranges exactly */
        lowest = s->ranges[0].start;
        span = s->ranges[s->n - 1].stop - lowest;
    }
    uint8_t *bits = exactly((size_t)(span + 7) / 8);
    ps_selection_refine_bits(&c, mask, lowest, span, bits);
    same = true;
    for (int64_t i = 0; i < (span + 7) / 8 * 8; i++)
        same = same && bit(bits, i) == (i < span && kept[lowest + i]);
    CHECK(same);
    free(bits);

    uint64_t words[SPAN / 64 + 1];
    size_t index = 0;
    for (int64_t at = 0; at < SPAN;
         at += length) { /* windows in order, each from the last index */
        length = 1 + rnd((uint32_t)(SPAN - at));
        ps_selection_words(&c, &index, at, length, words);
        same = true;
        for (int64_t i = 0; i < (length + 63) / 64 * 64; i++)
            same = same && (words[i / 64] >> (i % 64) & 1) == (i < length && s->rows[at + i]);
        CHECK(same);
        int64_t left = 0;
        for (int64_t row = at; row < SPAN; row++) left += s->rows[row];
        const int64_t most = rnd(SPAN);
        CHECK(ps_selection_count_from(&c, at, INT64_MAX) == left);
        CHECK(ps_selection_count_from(&c, at, most) == (left < most ? left : most));
        CHECK(ps_selection_count_from(&c, at, -1) == 0);
        int64_t end = at + length;
        while (end > at && !s->rows[end - 1]) end--;
        CHECK(ps_selection_end(&c, at, at + length) == end);
    }

    int64_t first[8] = {0};
    for (int i = 1; i < 8; i++) first[i] = first[i - 1] + rnd(SPAN / 7);
    uint8_t touched[7];
    ps_pages_touched(&c, first, 7, touched);
    for (int i = 0; i < 7; i++) {
        bool any = false;
        for (int64_t row = first[i]; row < first[i + 1]; row++) any = any || s->rows[row];
        CHECK(touched[i] == any);
    }
    free(out), free(bitmap), free(mask), free(refined);
}

static void two_selections(const set *a, const set *b) {
    uint8_t both[SPAN], any[SPAN], none[SPAN] = {0}, only[SPAN], differ[SPAN];
    int64_t start = rnd(SPAN), stop = start + rnd((uint32_t)(SPAN - start) + 1);
    for (int i = 0; i < SPAN; i++) {
        both[i] = a->rows[i] & b->rows[i], any[i] = a->rows[i] | b->rows[i];
        only[i] = a->rows[i] & !b->rows[i], differ[i] = a->rows[i] ^ b->rows[i];
        if (i >= start && i < stop) none[i] = !a->rows[i];
    }
    ps_range *out = exactly((a->n + b->n) * sizeof *out);
    CHECK(ranges_are(out, ps_ranges_and(a->ranges, a->n, b->ranges, b->n, out), both));
    CHECK(ranges_are(out, ps_ranges_or(a->ranges, a->n, b->ranges, b->n, out), any));
    free(out);
    out = exactly((a->n + 1) * sizeof *out);
    CHECK(ranges_are(out, ps_ranges_not(a->ranges, a->n, start, stop, out), none));
    free(out);

    const uint8_t *expected[] = {both, any, only, differ};
    size_t size = (SPAN + 7) / 8;
    uint8_t *x = exactly(size), *y = exactly(size);
    ps_selection ca = form(a, true), cb = form(b, false);
    for (int op = PS_SET_AND; op <= PS_SET_XOR; op++) {
        bool same = true;
        ps_selection_to_bitmap(&ca, 0, SPAN, x);
        ps_selection_to_bitmap(&cb, 0, SPAN, y);
        ps_bitmap_combine(x, y, size, (ps_set_op)op);
        for (int i = 0; i < SPAN; i++) same = same && bit(x, i) == expected[op][i];
        CHECK(same);
    }
    free(x), free(y);
}

static void test_selections(void) {
    for (int round = 0; round < 400; round++) {
        set a = set_random(), b = set_random();
        one_selection(&a, false);
        one_selection(&a, true);
        two_selections(&a, &b);
        set_free(&a), set_free(&b);
    }
    ps_error err;
    const ps_range bad[][2] = {
        {{-1, 3}, {4, 5}}, {{1, 3}, {2, 5}}, {{1, 3}, {3, 3}}, {{4, 5}, {1, 2}}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ps_selection s = {.ranges = bad[i], .n_ranges = 2};
        CHECK(ps_selection_check(&s, &err) == PS_INVALID && strstr(err.message, "range"));
    }
    ps_selection s = {.bitmap = (const uint8_t *)"", .base = INT64_MAX, .length = 1};
    CHECK(ps_selection_check(&s, NULL) == PS_INVALID);
}

static void test_normalise(void) {
    for (int round = 0; round < 300; round++) {
        size_t n = rnd(12), kept;
        uint8_t rows[SPAN] = {0};
        ps_range *ranges = exactly(n * sizeof *ranges);
        int64_t *numbers = exactly(n * sizeof *numbers);
        for (size_t i = 0; i < n; i++) {
            ranges[i].start = rnd(SPAN - 20), ranges[i].stop = ranges[i].start + rnd(20);
            memset(rows + ranges[i].start, 1, (size_t)(ranges[i].stop - ranges[i].start));
        }
        CHECK(ps_ranges_normalise(ranges, n, &kept, NULL) == PS_OK);
        CHECK(ranges_are(ranges, kept, rows));
        memset(rows, 0, SPAN);
        for (size_t i = 0; i < n; i++) numbers[i] = rnd(30), rows[numbers[i]] = 1;
        CHECK(ps_ranges_from_rows(numbers, n, ranges, &kept, NULL) == PS_OK);
        CHECK(ranges_are(ranges, kept, rows));
        free(ranges), free(numbers);
    }
    ps_range r = {3, 2}, out;
    size_t kept;
    int64_t row = INT64_MAX;
    CHECK(ps_ranges_normalise(&r, 1, &kept, NULL) == PS_INVALID && kept == 0);
    CHECK(ps_ranges_from_rows(&row, 1, &out, &kept, NULL) == PS_INVALID);
    const int64_t first[] = {0, 4, 4, 9, 12};
    ps_range zones[4];
    CHECK(ps_zones_to_ranges((const uint8_t *)"\1\1\3\2", 1, first, 4, zones) == 1);
    CHECK(zones[0].start == 0 && zones[0].stop == 9);
}

/* ---- comparison -------------------------------------------------------------------------- */

/* Small whole numbers stand for the values of each kind; NAN_VALUE for NaN. */
enum { NAN_VALUE = 7 };
static const int KINDS[] = {PS_BOOL, PS_I8,   PS_I16,   PS_I32,         PS_I64,  PS_U8,
                            PS_U16,  PS_U32,  PS_U64,   PS_F16,         PS_F32,  PS_F64,
                            PS_D128, PS_D256, PS_BYTES, PS_LARGE_BYTES, PS_FIXED};
enum { N_KINDS = sizeof KINDS / sizeof *KINDS };

static bool is_float(int kind) {
    return kind >= PS_F16 && kind <= PS_F64;
}
static bool is_signed(int kind) {
    return (kind >= PS_I8 && kind <= PS_I64) || (kind >= PS_F16 && kind <= PS_D256);
}
static size_t size_of(int kind) {
    static const uint8_t sizes[] = {0, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 16, 32, 0, 0, 3};
    return sizes[kind];
}
static int pick(int kind) {
    if (kind == PS_BOOL) return (int)rnd(2);
    int v = (int)rnd(6);
    if (is_float(kind) && rnd(8) == 0) return NAN_VALUE;
    return is_signed(kind) ? v - 3 : v;
}

/* n values, in blocks of the exact size. Byte strings: v bytes 'a', then 'b'. */
static ps_values make(int kind, const int *v, int64_t n) {
    static const uint16_t halves[] = {0xc200, 0xc000, 0xbc00, 0x8000, 0x3c00, 0x4000, 0x4200};
    ps_values out = {.kind = kind, .width = 3, .n = n};
    size_t size = size_of(kind), total = size * (size_t)n;
    if (kind == PS_BOOL) total = (size_t)(n + 7) / 8;
    if (size == 0 && kind != PS_BOOL)
        for (int64_t i = 0; i < n; i++) total += (size_t)v[i] + 1;
    uint8_t *data = exactly(total), *end = data;
    if (kind == PS_BOOL) memset(data, 0, total);
    int32_t *narrow = kind == PS_BYTES ? exactly((size_t)(n + 1) * 4) : NULL;
    int64_t *wide = kind == PS_LARGE_BYTES ? exactly((size_t)(n + 1) * 8) : NULL;
    if (narrow) narrow[0] = 0;
    if (wide) wide[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t whole = v[i];
        float f = v[i] == NAN_VALUE ? NAN : (float)v[i];
        double d = f;
        uint16_t half = v[i] == NAN_VALUE       ? 0x7e00
                        : v[i] < -3 || v[i] > 3 ? 0x4400
                                                : halves[v[i] + 3];
        switch (kind) {
        case PS_BOOL: data[i / 8] |= (uint8_t)(v[i] << (i % 8)); break;
        case PS_F16: memcpy(end, &half, 2); break;
        case PS_F32: memcpy(end, &f, 4); break;
        case PS_F64: memcpy(end, &d, 8); break;
        case PS_D128:
        case PS_D256: /* odd numbers in the highest word, with zeros below it */
            memset(end, v[i] < 0 && v[i] % 2 == 0 ? 0xff : 0, size);
            memcpy(end + (v[i] % 2 ? size - 8 : 0), &whole, 8);
            break;
        case PS_BYTES:
        case PS_LARGE_BYTES:
            memset(end, 'a', (size_t)v[i]);
            end[v[i]] = 'b';
            end += v[i] + 1;
            if (narrow) narrow[i + 1] = (int32_t)(end - data);
            if (wide) wide[i + 1] = end - data;
            break;
        case PS_FIXED: end[0] = 0x7f, end[1] = (uint8_t)(0x7e + v[i]), end[2] = 0; break;
        default: memcpy(end, &whole, size); break;
        }
        end += size;
    }
    out.values = data, out.values_size = total;
    out.offsets = narrow ? (void *)narrow : wide;
    return out;
}
static void drop(ps_values *v) {
    free((void *)v->values);
    free((void *)v->offsets);
    free((void *)v->validity);
}

/* Place of the number in its kind's order. */
static double rank(int kind, int v) {
    if (kind == PS_BYTES || kind == PS_LARGE_BYTES) return -v; /* ab < b */
    if ((kind == PS_D128 || kind == PS_D256) && v % 2) return v * 100.0;
    if (kind == PS_F16 && (v > 3 || v < -3) && v != NAN_VALUE) return 4;
    return v;
}

static bool test_one(int kind, int v, ps_op op, const int *literals, int64_t n, ps_nan nan) {
    bool v_nan = is_float(kind) && v == NAN_VALUE,
         l_nan = n && is_float(kind) && literals[0] == NAN_VALUE;
    if (op == PS_IN) {
        for (int64_t i = 0; i < n; i++)
            if (test_one(kind, v, PS_EQ, literals + i, 1, nan)) return true;
        return false;
    }
    if (op == PS_IS_NAN) return v_nan;
    if (op == PS_ALWAYS || op == PS_NEVER) return op == PS_ALWAYS;
    if ((v_nan || l_nan) && nan == PS_NAN_IEEE) return op == PS_NE;
    double x = v_nan ? 1e9 : rank(kind, v), y = l_nan ? 1e9 : rank(kind, literals[0]);
    switch (op) {
    case PS_EQ: return x == y;
    case PS_NE: return x != y;
    case PS_LT: return x < y;
    case PS_LE: return x <= y;
    case PS_GT: return x > y;
    case PS_GE: return x >= y;
    default: return x == y; /* prefix, of whole values */
    }
}

static ps_values sorted_literals(int kind, int *numbers, int64_t n) {
    int64_t order[16];
    size_t kept;
    int chosen[16];
    ps_values all = make(kind, numbers, n);
    CHECK(ps_literals_sort(&all, order, &kept, NULL) == PS_OK);
    for (size_t i = 0; i < kept; i++) chosen[i] = numbers[order[i]];
    memcpy(numbers, chosen, kept * sizeof *chosen);
    drop(&all);
    return make(kind, numbers, (int64_t)kept);
}

static void test_compare(void) {
    for (int k = 0; k < N_KINDS; k++) {
        int kind = KINDS[k];
        bool has_prefix = kind >= PS_BYTES;
        for (int round = 0; round < 150; round++) {
            int numbers[200], literals[16];
            int64_t n = rnd(200), count;
            for (int64_t i = 0; i < n; i++) numbers[i] = pick(kind);
            ps_values values = make(kind, numbers, n);
            uint8_t *mask = exactly((size_t)(n + 7) / 8), *validity = NULL;
            if (rnd(2)) {
                validity = exactly((size_t)(n + 7) / 8);
                for (int64_t i = 0; i < (n + 7) / 8; i++) validity[i] = (uint8_t)rnd(256);
                values.validity = validity;
            }
            for (int op = PS_EQ; op <= PS_NEVER; op++) {
                if (op == PS_PREFIX && !has_prefix) continue;
                int64_t wanted = op == PS_IN ? rnd(16) : 1;
                for (int64_t i = 0; i < wanted; i++) literals[i] = pick(kind);
                ps_values list = sorted_literals(kind, literals, wanted);
                ps_nan nan = rnd(2) ? PS_NAN_SPARK : PS_NAN_IEEE;
                for (int negate = 0; negate < 2; negate++) {
                    CHECK(ps_compare(&values, (ps_op)op, negate, &list, nan, mask, &count,
                                     NULL) == PS_OK);
                    bool same = true;
                    int64_t ones = 0;
                    for (int64_t i = 0; i < n; i++) {
                        bool null = validity && !bit(validity, i);
                        bool hit = op == PS_IS_NULL
                                       ? null != negate
                                       : !null && test_one(kind, numbers[i], (ps_op)op,
                                                           literals, list.n, nan) != negate;
                        same = same && bit(mask, i) == hit;
                        ones += hit;
                    }
                    for (int64_t i = n; i < (n + 7) / 8 * 8; i++) same = same && !bit(mask, i);
                    CHECK(same && ones == count);
                }
                drop(&list);
            }
            free(mask);
            drop(&values);
        }
    }
}

/* ---- search and zones -------------------------------------------------------------------- */

static void test_search(void) {
    for (int k = 0; k < N_KINDS; k++) {
        int kind = KINDS[k];
        for (int round = 0; round < 200; round++) {
            int numbers[40], literal;
            int64_t n = rnd(40), below = 0, upto = 0, lower, upper;
            do literal = pick(kind);
            while (is_float(kind) && literal == NAN_VALUE);
            for (int64_t i = 0; i < n; i++) {
                do numbers[i] = pick(kind);
                while (is_float(kind) && numbers[i] == NAN_VALUE);
                for (int64_t j = i; j && rank(kind, numbers[j - 1]) > rank(kind, numbers[j]);
                     j--) {
                    int swapped = numbers[j];
                    numbers[j] = numbers[j - 1], numbers[j - 1] = swapped;
                }
            }
            for (int64_t i = 0; i < n; i++) {
                below += rank(kind, numbers[i]) < rank(kind, literal);
                upto += rank(kind, numbers[i]) <= rank(kind, literal);
            }
            ps_values sorted = make(kind, numbers, n), wanted = make(kind, &literal, 1);
            CHECK(ps_lower_bound(&sorted, &wanted, &lower, NULL) == PS_OK && lower == below);
            CHECK(ps_upper_bound(&sorted, &wanted, &upper, NULL) == PS_OK && upper == upto);
            drop(&sorted), drop(&wanted);
        }
    }
}

/* What single rows may do, from the bounds alone; no NaN here. */
static uint8_t zone_by_hand(int kind, int lo, int hi, ps_op op, const int *literals,
                            int64_t n) {
    double low = rank(kind, lo), high = rank(kind, hi), v = n ? rank(kind, literals[0]) : 0;
    bool may = false, may_not = true;
    switch (op) {
    case PS_LT: may = low < v, may_not = high >= v; break;
    case PS_LE: may = low <= v, may_not = high > v; break;
    case PS_GT: may = high > v, may_not = low <= v; break;
    case PS_GE: may = high >= v, may_not = low < v; break;
    default:
        for (int64_t i = 0; i < n; i++) {
            v = rank(kind, literals[i]);
            may = may || (low <= v && v <= high);
        }
        may_not = !(may && low == high);
        if (op == PS_NE)
            return (uint8_t)((may_not ? PS_MAY_TRUE : 0) | (may ? PS_MAY_FALSE : 0));
    }
    return (uint8_t)((may ? PS_MAY_TRUE : 0) | (may_not ? PS_MAY_FALSE : 0));
}

static void test_zones(void) {
    enum { N = 60 };
    for (int k = 0; k < N_KINDS; k++) {
        int kind = KINDS[k];
        for (int round = 0; round < 120; round++) {
            size_t n = rnd(N);
            int lo[N], hi[N], literals[16];
            uint8_t *known = exactly(n), *all_null = exactly(n), *verdict = exactly(n),
                    *walked = exactly(n);
            int64_t *none = exactly(n * sizeof *none);
            int32_t claimed = 1 + (int32_t)rnd(2), order;
            double bottom = -1e9, top = -1e9;
            for (size_t i = 0; i < n; i++) {
                do lo[i] = pick(kind), hi[i] = pick(kind);
                while (lo[i] == NAN_VALUE || hi[i] == NAN_VALUE ||
                       rank(kind, hi[i]) < rank(kind, lo[i]));
                known[i] = rank(kind, lo[i]) >= bottom && rank(kind, hi[i]) >= top;
                all_null[i] = !known[i], none[i] = known[i] ? 0 : -1;
                if (known[i]) bottom = rank(kind, lo[i]), top = rank(kind, hi[i]);
            }
            for (size_t i = 0; claimed == 2 && i < n / 2; i++) {
                size_t j = n - 1 - i;
                int l = lo[i], h = hi[i];
                uint8_t known_i = known[i];
                lo[i] = lo[j], hi[i] = hi[j], known[i] = known[j];
                lo[j] = l, hi[j] = h, known[j] = known_i;
                all_null[i] = !known[i], all_null[j] = !known[j];
                none[i] = known[i] ? 0 : -1, none[j] = known[j] ? 0 : -1;
            }
            ps_zones z = {.n = n,
                          .lower = make(kind, lo, (int64_t)n),
                          .upper = make(kind, hi, (int64_t)n),
                          .known = known,
                          .all_null = all_null,
                          .null_counts = none,
                          .nan_counts = none};
            CHECK(ps_zones_order(&z, known, claimed, &order, NULL) == PS_OK &&
                  order == claimed);
            int64_t *nearest = exactly(n * sizeof *nearest), last = -1;
            const bool gaps = ps_zones_nearest(&z, nearest);
            CHECK(gaps == (n && memchr(known, 0, n) != NULL));
            for (size_t i = 0; gaps && i < n; i++) {
                if (known[i]) last = (int64_t)i;
                CHECK(nearest[i] == last);
            }
            int all_lo, all_hi;
            do all_lo = pick(kind), all_hi = pick(kind);
            while (all_lo == NAN_VALUE || all_hi == NAN_VALUE ||
                   rank(kind, all_hi) < rank(kind, all_lo));
            const ps_zones whole = {.n = 1,
                                    .lower = make(kind, &all_lo, 1),
                                    .upper = make(kind, &all_hi, 1),
                                    .known = (const uint8_t *)"\1"};
            size_t astray = SIZE_MAX;
            for (size_t i = n; i--;)
                if (known[i] && (rank(kind, hi[i]) < rank(kind, all_lo) ||
                                 rank(kind, lo[i]) > rank(kind, all_hi)))
                    astray = i;
            CHECK(ps_zones_out_of_bounds(&z, &whole, 0) == astray);
            CHECK(ps_zones_out_of_bounds(&z, &whole, 1) == SIZE_MAX);
            drop((ps_values *)&whole.lower), drop((ps_values *)&whole.upper);
            for (int op = PS_EQ; op <= PS_IN; op++) {
                int64_t wanted = op == PS_IN ? rnd(6) : 1;
                for (int64_t i = 0; i < wanted; i++) do
                        literals[i] = pick(kind);
                    while (literals[i] == NAN_VALUE);
                ps_values list = sorted_literals(kind, literals, wanted);
                z.order = order;
                CHECK(ps_zones_probe(&z, (ps_op)op, &list, PS_NAN_IEEE, verdict, NULL) ==
                      PS_OK);
                z.order = 0;
                CHECK(ps_zones_probe(&z, (ps_op)op, &list, PS_NAN_IEEE, walked, NULL) == PS_OK);
                CHECK(memcmp(verdict, walked, n) == 0);
                z.order = order, z.nearest = gaps ? nearest : NULL;
                CHECK(ps_zones_probe(&z, (ps_op)op, &list, PS_NAN_IEEE, walked, NULL) == PS_OK);
                CHECK(memcmp(verdict, walked, n) == 0);
                z.nearest = NULL;
                bool same = true;
                for (size_t i = 0; i < n; i++)
                    same = same &&
                           verdict[i] == (known[i] ? zone_by_hand(kind, lo[i], hi[i], (ps_op)op,
                                                                  literals, list.n)
                                                   : PS_MAY_NULL);
                CHECK(same);
                drop(&list);
            }
            drop(&z.lower), drop(&z.upper);
            free(known), free(all_null), free(verdict), free(walked), free(none), free(nearest);
        }
    }
}

/* Rows below 0 are none, and rows beyond are as far as numbers go. */
static void test_rows_that_are_none(void) {
    const ps_selection bits = {.bitmap = (const uint8_t *)"\377", .base = 9, .length = 8};
    const int64_t first[] = {INT64_MIN, INT64_MIN + 1, -1, 0, 9, 10, INT64_MAX};
    uint8_t mask[6];
    ps_range run;
    ps_run_cursor cursor = {.row = INT64_MIN};
    CHECK(!ps_selection_next(&bits, &cursor, INT64_MIN + 1, &run));
    ps_pages_touched(&bits, first, 6, mask);
    CHECK(memcmp(mask, "\0\0\0\0\1\1", 6) == 0);

    /* every row of a set, and every limit, at and beside both ends of the numbers */
    const int64_t ends[] = {INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX};
    const ps_range range = {INT64_MAX - 8, INT64_MAX};
    const ps_selection last[] = {
        {.bitmap = (const uint8_t *)"\377", .base = INT64_MAX - 8, .length = 8},
        {.ranges = &range, .n_ranges = 1}};
    for (size_t i = 0; i < 2; i++) {
        uint64_t word;
        size_t index = 0;
        CHECK(ps_selection_check(&last[i], NULL) == PS_OK);
        ps_selection_words(&last[i], &index, INT64_MAX - 16, 16, &word);
        CHECK(word == 0xff00);
        ps_selection_to_bitmap(&last[i], INT64_MAX - 16, 16, (uint8_t *)&word);
        CHECK((word & 0xffff) == 0xff00);
        for (size_t a = 0; a < 7; a++) {
            const int64_t rows = ends[a] == INT64_MAX ? 0 : ends[a] == INT64_MAX - 1 ? 1 : 8;
            CHECK(ps_selection_count_from(&last[i], ends[a], INT64_MAX) == rows);
            for (size_t b = 0; b < 7; b++) {
                const bool met = ends[a] < ends[b] && ends[b] > INT64_MAX - 8;
                cursor = (ps_run_cursor){.row = ends[a]};
                CHECK(ps_selection_next(&last[i], &cursor, ends[b], &run) == met);
                if (ends[a] > ends[b]) continue;
                CHECK(ps_selection_end(&last[i], ends[a], ends[b]) ==
                      (met ? ends[b] : ends[a]));
            }
        }
    }
}

static void test_refusals(void) {
    const int32_t falls[] = {0, 2, 1}, leaves[] = {0, 1, 4}, negative[] = {-1, 0, 1};
    const int32_t *offsets[] = {falls, leaves, negative};
    uint8_t mask[1];
    int64_t count, at;
    ps_error err;
    for (int i = 0; i < 3; i++) {
        ps_values v = {PS_BYTES, 0, 2, NULL, (const uint8_t *)"abc", 3, offsets[i]};
        CHECK(ps_compare(&v, PS_IS_NAN, false, NULL, PS_NAN_IEEE, mask, &count, &err) ==
              PS_INVALID);
        CHECK(strstr(err.message, "offsets"));
    }
    ps_values v = {PS_I64, 0, INT64_MAX / 4, NULL, (const uint8_t *)"abc", 3, NULL};
    CHECK(ps_lower_bound(&v, &v, &at, NULL) == PS_INVALID);
    v.n = -1;
    CHECK(ps_lower_bound(&v, &v, &at, NULL) == PS_INVALID);
    uint8_t valid = 0;
    ps_values null = {PS_I8, 0, 1, &valid, (const uint8_t *)"a", 1, NULL}, one = null;
    one.validity = NULL;
    CHECK(ps_compare(&one, PS_EQ, false, &null, PS_NAN_IEEE, mask, &count, &err) == PS_INVALID);
    CHECK(strstr(err.message, "null"));
    CHECK(ps_compare(&one, PS_EQ, false, NULL, PS_NAN_IEEE, mask, &count, &err) == PS_INVALID);
}

/* Buffers of exactly their size, so that a read or write beyond them is seen. */
static void test_codes(void) {
    enum { ENTRIES = 5 };
    const uint8_t passes[ENTRIES + 1] = {1, 0, 0, 1, 1, 0};
    for (int64_t n = 0; n < 200; n++) {
        const size_t size = (size_t)(n + 7) / 8;
        int32_t *codes = malloc((size_t)n * sizeof *codes + !n);
        uint8_t *validity = calloc(size + !n, 1), *mask = malloc(size + !n);
        for (int64_t i = 0; i < n; i++) {
            codes[i] = (int32_t)((uint32_t)(i * 2654435761u) >> 24) % 9 -
                       1; /* -1 and 5 to 7 too */
            validity[i / 8] |= (uint8_t)((i % 3 != 1) << i % 8);
        }
        for (int nulls = 0; nulls < 2; nulls++) {
            int64_t count = -1, ones = 0;
            ps_codes_mask(codes, nulls ? validity : NULL, n, passes, ENTRIES, mask, &count);
            for (int64_t i = 0; i < n; i++) {
                const bool known = codes[i] >= 0 && codes[i] < ENTRIES;
                const bool pass = known && passes[codes[i]] && !(nulls && i % 3 == 1);
                CHECK(ps_bit_get(mask, (size_t)i) == pass);
                ones += pass;
            }
            CHECK(count == ones);
            if (n % 8) CHECK(!(mask[size - 1] >> n % 8));
        }
        free(codes), free(validity), free(mask);
    }
}

int main(void) {
    test_codes();
    test_selections();
    test_normalise();
    test_compare();
    test_search();
    test_zones();
    test_rows_that_are_none();
    test_refusals();
    return report();
}
