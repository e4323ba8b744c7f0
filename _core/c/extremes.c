/* extremes.c - least and greatest value of a page, in the order of its logical type (LogicalTypes.md, ColumnOrder). */
#include "values.h"

/* Of numbers without nulls it finds the bounds first, in a loop without branches, then their indices. It counts NaN,
 * which is never less than anything. */
#define NUMBERS(KIND, name)                                                                    \
    static void numbers_##name(const ps_values *v, ps_extremes *out) {                         \
        int64_t at = 0, nans = 0;                                                              \
        ps_t_##name least, most;                                                               \
        while (at < v->n &&                                                                    \
               !ps_equal_##name(ps_load_##name(v->values, at), ps_load_##name(v->values, at))) \
            at++;                                                                              \
        nans = at;                                                                             \
        if (at < v->n) {                                                                       \
            least = most = ps_load_##name(v->values, at);                                      \
            for (int64_t i = at + 1; i < v->n; i++) {                                          \
                ps_t_##name x = ps_load_##name(v->values, i);                                  \
                least = ps_less_##name(x, least) ? x : least;                                  \
                most = ps_less_##name(most, x) ? x : most;                                     \
                nans += !ps_equal_##name(x, x);                                                \
            }                                                                                  \
            while (!ps_equal_##name(ps_load_##name(v->values, at), least)) at++;               \
            out->least = at;                                                                   \
            for (at = 0; !ps_equal_##name(ps_load_##name(v->values, at), most);) at++;         \
            out->most = at;                                                                    \
        }                                                                                      \
        out->nans = nans;                                                                      \
    }
PS_NUMBER_KINDS(NUMBERS)

/* Two's complement, the high byte first, of any length (LogicalTypes.md, DECIMAL). */
static int decimal_order(ps_bytes a, ps_bytes b) {
    const uint8_t sign_a = a.size && a.data[0] & 0x80 ? 0xff : 0;
    const uint8_t sign_b = b.size && b.data[0] & 0x80 ? 0xff : 0;
    if (sign_a != sign_b) return sign_a ? -1 : 1;
    while (a.size > b.size && a.data[0] == sign_a) a.data++, a.size--;
    while (b.size > a.size && b.data[0] == sign_b) b.data++, b.size--;
    if (a.size != b.size) return ((a.size > b.size) ^ (sign_a != 0)) ? 1 : -1;
    return a.size ? memcmp(a.data, b.data, a.size) : 0;
}

static int order_of(const ps_values *v, bool decimal, int64_t i, int64_t j) {
    if (decimal) return decimal_order(ps_bytes_at(v, i), ps_bytes_at(v, j));
    return ps_value_order(v, i, v, j);
}

static void any(const ps_values *v, bool decimal, ps_extremes *out) {
    for (int64_t i = 0; i < v->n; i++) {
        if (v->validity && !ps_bit_get(v->validity, (size_t)i)) {
            out->nulls++;
        } else if (ps_kind_is_float(v->kind) && ps_value_is_nan(v, i)) {
            out->nans++;
        } else if (out->least < 0) {
            out->least = out->most = i;
        } else if (order_of(v, decimal, i, out->least) < 0) {
            out->least = i;
        } else if (order_of(v, decimal, out->most, i) < 0) {
            out->most = i;
        }
    }
}

ps_status ps_extremes_of(const ps_values *values, bool decimal, ps_extremes *out,
                         ps_error *err) {
    *out = (ps_extremes){.least = -1, .most = -1};
    PS_TRY(ps_values_check(values, "values", err));
    if (decimal && !ps_kind_is_bytes(values->kind))
        return ps_fail(err, PS_INVALID, PS_NOWHERE, "decimals of kind %d", (int)values->kind);
    if (values->validity || ps_kind_is_bytes(values->kind) || values->kind == PS_BOOL) {
        any(values, decimal, out);
        return PS_OK;
    }
#define CASE(KIND, name)                                                                       \
    case KIND: numbers_##name(values, out); break;
    switch (values->kind) {
        PS_NUMBER_KINDS(CASE)
    default: break;
    }
#undef CASE
    return PS_OK;
}
