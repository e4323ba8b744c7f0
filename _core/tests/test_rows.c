/* test_rows.c - comparison, search and zones against slow loops. Every buffer is a
 * heap block of exactly the size that the contract names, so that a sanitizer sees the first
 * byte read or written beyond it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../pageseek.h"
#include "base.h"
#include "check_rows.h"

/* ---- comparison -------------------------------------------------------------------------- */

/* Small whole numbers stand for the values of each kind; NAN_VALUE for NaN. */
enum { NAN_VALUE = 7 };
static const int KINDS[] = {
    PS_BOOL, PS_I8,  PS_I16, PS_I32,  PS_I64,  PS_U8,    PS_U16,         PS_U32,   PS_U64,
    PS_F16,  PS_F32, PS_F64, PS_D128, PS_D256, PS_BYTES, PS_LARGE_BYTES, PS_FIXED,
};
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
            size_t outside = SIZE_MAX;
            for (size_t i = n; i--;)
                if (known[i] && (rank(kind, hi[i]) < rank(kind, all_lo) ||
                                 rank(kind, lo[i]) > rank(kind, all_hi)))
                    outside = i;
            CHECK(ps_zones_out_of_bounds(&z, &whole, 0) == outside);
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
    test_compare();
    test_search();
    test_zones();
    test_refusals();
    return report();
}
