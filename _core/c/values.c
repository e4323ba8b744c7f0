/* values.c - checks of value arrays, and the order of any two values. */
#include "values.h"

#define SIZE(KIND, name)                                                                       \
    case KIND: size = ps_size_##name; break;

ps_status ps_values_check(const ps_values *v, const char *what, ps_error *err) {
    size_t size = 0, need;
    if (v->n < 0) return ps_fail(err, PS_INVALID, PS_NOWHERE, "%s: negative count", what);
    switch (v->kind) {
        PS_NUMBER_KINDS(SIZE)
    case PS_BOOL: break;
    case PS_FIXED:
        if (v->width < 0)
            return ps_fail(err, PS_INVALID, PS_NOWHERE, "%s: negative width", what);
        size = (size_t)v->width;
        break;
    case PS_BYTES:
    case PS_LARGE_BYTES: {
        if (v->n == 0) return PS_OK;
        bool wide = v->kind == PS_LARGE_BYTES, falls = false;
        if (!v->offsets) return ps_fail(err, PS_INVALID, PS_NOWHERE, "%s: no offsets", what);
        if (wide) {
            for (int64_t i = 0; i < v->n; i++)
                falls |= ps_load_i64(v->offsets, i) > ps_load_i64(v->offsets, i + 1);
        } else {
            for (int64_t i = 0; i < v->n; i++)
                falls |= ps_load_i32(v->offsets, i) > ps_load_i32(v->offsets, i + 1);
        }
        int64_t first = wide ? ps_load_i64(v->offsets, 0) : ps_load_i32(v->offsets, 0);
        int64_t last = wide ? ps_load_i64(v->offsets, v->n) : ps_load_i32(v->offsets, v->n);
        if (falls || first < 0 || (uint64_t)last > v->values_size)
            return ps_fail(err, PS_INVALID, PS_NOWHERE, "%s: offsets fall or leave the data",
                           what);
        return PS_OK;
    }
    default:
        return ps_fail(err, PS_INVALID, PS_NOWHERE, "%s: unknown kind %d", what, (int)v->kind);
    }
    if (v->kind == PS_BOOL) {
        need = (size_t)v->n / 8 + (v->n % 8 != 0);
    } else if ((uint64_t)v->n > SIZE_MAX || !ps_mul_size((size_t)v->n, size, &need)) {
        need = SIZE_MAX;
    }
    if (need > v->values_size)
        return ps_fail(err, PS_INVALID, PS_NOWHERE, "%s: %lld values need more than %zu bytes",
                       what, (long long)v->n, v->values_size);
    return PS_OK;
}

#define ORDER(KIND, name)                                                                      \
    case KIND: {                                                                               \
        ps_t_##name x = ps_load_##name(a->values, i), y = ps_load_##name(b->values, j);        \
        return ps_less_##name(y, x) - ps_less_##name(x, y);                                    \
    }
#define ORDER_NAN(KIND, name)                                                                  \
    case KIND: {                                                                               \
        ps_t_##name x = ps_load_##name(a->values, i), y = ps_load_##name(b->values, j);        \
        if (x != x || y != y) return (x != x) - (y != y);                                      \
        return (y < x) - (x < y);                                                              \
    }

int ps_value_order(const ps_values *a, int64_t i, const ps_values *b, int64_t j) {
    switch (a->kind) {
        PS_INTEGER_KINDS(ORDER)
        PS_FLOAT_KINDS(ORDER_NAN)
    case PS_BOOL: return ps_bit_get(a->values, (size_t)i) - ps_bit_get(b->values, (size_t)j);
    default: return ps_bytes_order(ps_bytes_at(a, i), ps_bytes_at(b, j));
    }
}

#define IS_NAN(KIND, name)                                                                     \
    case KIND: {                                                                               \
        ps_t_##name x = ps_load_##name(v->values, i);                                          \
        return x != x;                                                                         \
    }

bool ps_value_is_nan(const ps_values *v, int64_t i) {
    switch (v->kind) {
        PS_FLOAT_KINDS(IS_NAN)
    default: return false;
    }
}

ps_status ps_literals_kind(const ps_values *literals, int32_t kind, ps_error *err) {
    if (literals->kind == kind || (ps_kind_is_bytes(kind) && ps_kind_is_bytes(literals->kind)))
        return PS_OK;
    return ps_fail(err, PS_INVALID, PS_NOWHERE, "literals of kind %d for values of kind %d",
                   (int)literals->kind, (int)kind);
}

ps_status ps_literals_check(const ps_values *literals, ps_op op, int32_t kind, ps_error *err) {
    switch (op) {
    case PS_IS_NULL:
    case PS_IS_NAN:
    case PS_ALWAYS:
    case PS_NEVER: return PS_OK;
    case PS_EQ:
    case PS_NE:
    case PS_LT:
    case PS_LE:
    case PS_GT:
    case PS_GE:
    case PS_IN: break;
    case PS_PREFIX:
        if (ps_kind_is_bytes(kind)) break;
        return ps_fail(err, PS_INVALID, PS_NOWHERE, "a prefix needs byte strings");
    default: return ps_fail(err, PS_INVALID, PS_NOWHERE, "unknown operator %d", (int)op);
    }
    if (!literals) return ps_fail(err, PS_INVALID, PS_NOWHERE, "no literal");
    PS_TRY(ps_values_check(literals, "literals", err));
    PS_TRY(ps_literals_kind(literals, kind, err));
    if (op != PS_IN && (op != PS_PREFIX || literals->n < 1) && literals->n != 1)
        return ps_fail(err, PS_INVALID, PS_NOWHERE, "one literal wanted, %lld given",
                       (long long)literals->n);
    for (int64_t i = 0; i < literals->n; i++) {
        if (literals->validity && !ps_bit_get(literals->validity, (size_t)i))
            return ps_fail(err, PS_INVALID, PS_NOWHERE, "literal %lld is null", (long long)i);
        if (i && ps_value_order(literals, i - 1, literals, i) >= 0)
            return ps_fail(err, PS_INVALID, PS_NOWHERE, "literals are not sorted and distinct");
        if (i && op == PS_PREFIX &&
            ps_prefix_order(ps_bytes_at(literals, i), ps_bytes_at(literals, i - 1)) == 0)
            return ps_fail(err, PS_INVALID, PS_NOWHERE, "literal %lld starts with another",
                           (long long)i);
    }
    return PS_OK;
}
