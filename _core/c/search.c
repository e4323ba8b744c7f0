/* search.c - binary search in sorted arrays of any kind. */
#include "values.h"

/* Return how many of n values lie before the bound. BEFORE(k) must be true up to it and false
 * from there on. The loop runs log2(n) times for any data, without a branch that depends on
 * them. */
#define RETURN_BOUND(BEFORE)                                                                   \
    do {                                                                                       \
        int64_t base = 0, k;                                                                   \
        while (n > 1) {                                                                        \
            int64_t half = n >> 1;                                                             \
            k = base + half - 1;                                                               \
            base += half & -(int64_t)(BEFORE);                                                 \
            n -= half;                                                                         \
        }                                                                                      \
        k = base;                                                                              \
        return base + (n == 1 && (BEFORE));                                                    \
    } while (0)

#define SEARCH(KIND, name)                                                                     \
    static int64_t search_##name(const uint8_t *p, int64_t n, ps_t_##name v, bool upper) {     \
        if (upper) RETURN_BOUND(!ps_less_##name(v, ps_load_##name(p, k)));                     \
        RETURN_BOUND(ps_less_##name(ps_load_##name(p, k), v));                                 \
    }
PS_NUMBER_KINDS(SEARCH)

static int64_t search_bool(const uint8_t *bits, int64_t n, bool v, bool upper) {
    int limit = v + upper; /* a bit below it lies before the bound */
    RETURN_BOUND((int)ps_bit_get(bits, (size_t)k) < limit);
}

/* Offsets are checked where the search meets them: to walk them all would cost more than the
 * search. */
static int order_at(const ps_values *sorted, int64_t i, ps_bytes v, bool *bad) {
    int64_t from = 0, to = 0;
    if (sorted->kind == PS_BYTES) {
        from = ps_load_i32(sorted->offsets, i), to = ps_load_i32(sorted->offsets, i + 1);
    } else if (sorted->kind == PS_LARGE_BYTES) {
        from = ps_load_i64(sorted->offsets, i), to = ps_load_i64(sorted->offsets, i + 1);
    }
    if (from < 0 || from > to || (uint64_t)to > sorted->values_size) {
        *bad = true;
        return 0;
    }
    return ps_bytes_order(ps_bytes_at(sorted, i), v);
}

static int64_t search_bytes(const ps_values *sorted, int64_t n, ps_bytes v, bool upper,
                            bool *bad) {
    int limit = upper; /* values that order below it lie before the bound */
    RETURN_BOUND(order_at(sorted, k, v, bad) < limit);
}

#define CASE(KIND, name)                                                                       \
    case KIND: return search_##name(sorted->values, n, ps_load_##name(of->values, i), upper);

int64_t ps_value_search(const ps_values *sorted, const ps_values *of, int64_t i, bool upper) {
    int64_t n = sorted->n, at;
    bool bad = false;
    if (ps_value_is_nan(of, i)) return n;
    switch (sorted->kind) {
        PS_NUMBER_KINDS(CASE)
    case PS_BOOL:
        return search_bool(sorted->values, n, ps_bit_get(of->values, (size_t)i), upper);
    default:
        at = search_bytes(sorted, n, ps_bytes_at(of, i), upper, &bad);
        return bad ? -1 : at;
    }
}

static ps_status bound(const ps_values *sorted, const ps_values *literal, bool upper,
                       int64_t *out, ps_error *err) {
    bool has_offsets = sorted->kind == PS_BYTES || sorted->kind == PS_LARGE_BYTES;
    *out = 0;
    if (!has_offsets || sorted->n <= 0 || !sorted->offsets)
        PS_TRY(ps_values_check(sorted, "values", err));
    PS_TRY(ps_literals_check(literal, PS_EQ, sorted->kind, err));
    int64_t at = ps_value_search(sorted, literal, 0, upper);
    if (at < 0)
        return ps_fail(err, PS_INVALID, PS_NOWHERE, "values: offsets fall or leave the data");
    *out = at;
    return PS_OK;
}

ps_status ps_lower_bound(const ps_values *sorted, const ps_values *literal, int64_t *out,
                         ps_error *err) {
    return bound(sorted, literal, false, out, err);
}

ps_status ps_upper_bound(const ps_values *sorted, const ps_values *literal, int64_t *out,
                         ps_error *err) {
    return bound(sorted, literal, true, out, err);
}
