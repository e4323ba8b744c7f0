/* values.h - one value of a kind: where it lies, how it is loaded, the order of the kind.
 * Internal. Loads take any alignment. */
#ifndef PAGESEEK_VALUES_H
#define PAGESEEK_VALUES_H

#include "base.h"

typedef struct ps_d128 {
    uint64_t lo;
    int64_t hi;
} ps_d128;

typedef struct ps_d256 {
    uint64_t lo[3];
    int64_t hi;
} ps_d256;

typedef struct ps_bytes {
    const uint8_t *data;
    size_t size;
} ps_bytes;

/* Every kind whose values are loaded by index: templates are stamped with X(KIND, name). */
/* clang-format off */
#define PS_INTEGER_KINDS(X)                                     \
    X(PS_I8, i8) X(PS_I16, i16) X(PS_I32, i32) X(PS_I64, i64)   \
    X(PS_U8, u8) X(PS_U16, u16) X(PS_U32, u32) X(PS_U64, u64)   \
    X(PS_D128, d128) X(PS_D256, d256)
/* clang-format on */
#define PS_FLOAT_KINDS(X)  X(PS_F16, f16) X(PS_F32, f32) X(PS_F64, f64)
#define PS_NUMBER_KINDS(X) PS_INTEGER_KINDS(X) PS_FLOAT_KINDS(X)

#define PS_NUMBER(name, type)                                                                  \
    typedef type ps_t_##name;                                                                  \
    enum { ps_size_##name = sizeof(type) };                                                    \
    PS_INLINE type ps_load_##name(const uint8_t *p, int64_t i) {                               \
        type v;                                                                                \
        memcpy(&v, p + (size_t)i * sizeof v, sizeof v);                                        \
        return v;                                                                              \
    }
#define PS_SCALAR(name, type)                                                                  \
    PS_NUMBER(name, type)                                                                      \
    PS_INLINE bool ps_less_##name(type a, type b) {                                            \
        return a < b;                                                                          \
    }                                                                                          \
    PS_INLINE bool ps_equal_##name(type a, type b) {                                           \
        return a == b;                                                                         \
    }

PS_SCALAR(i8, int8_t)
PS_SCALAR(i16, int16_t)
PS_SCALAR(i32, int32_t)
PS_SCALAR(i64, int64_t)
PS_SCALAR(u8, uint8_t)
PS_SCALAR(u16, uint16_t)
PS_SCALAR(u32, uint32_t)
PS_SCALAR(u64, uint64_t)
PS_SCALAR(f32, float)
PS_SCALAR(f64, double)
PS_NUMBER(d128, ps_d128)
PS_NUMBER(d256, ps_d256)
#undef PS_NUMBER
#undef PS_SCALAR

PS_INLINE bool ps_less_d128(ps_d128 a, ps_d128 b) {
    return (a.hi < b.hi) | ((a.hi == b.hi) & (a.lo < b.lo));
}
PS_INLINE bool ps_equal_d128(ps_d128 a, ps_d128 b) {
    return ((a.lo ^ b.lo) | (uint64_t)(a.hi ^ b.hi)) == 0;
}
PS_INLINE bool ps_less_d256(ps_d256 a, ps_d256 b) {
    bool less = a.lo[0] < b.lo[0];
    less = (a.lo[1] < b.lo[1]) | ((a.lo[1] == b.lo[1]) & less);
    less = (a.lo[2] < b.lo[2]) | ((a.lo[2] == b.lo[2]) & less);
    return (a.hi < b.hi) | ((a.hi == b.hi) & less);
}
PS_INLINE bool ps_equal_d256(ps_d256 a, ps_d256 b) {
    return ((a.lo[0] ^ b.lo[0]) | (a.lo[1] ^ b.lo[1]) | (a.lo[2] ^ b.lo[2]) |
            (uint64_t)(a.hi ^ b.hi)) == 0;
}

/* A half is worked with as the float of equal value. No step sees a denormal float, so that the
 * result is the same where a process has switched denormals off. */
typedef float ps_t_f16;
enum { ps_size_f16 = 2 };
PS_INLINE float ps_load_f16(const uint8_t *p, int64_t i) {
    uint32_t half = ps_load16(p + (size_t)i * 2), exponent = half & 0x7c00u;
    uint32_t bits = (half & 0x7fffu) << 13;
    uint32_t rebias = exponent == 0x7c00u ? 224u << 23 : 112u << 23;
    uint32_t normal = bits + rebias, small = bits + (113u << 23);
    float scaled;
    memcpy(&scaled, &small, sizeof scaled);
    scaled -= 0x1p-14f;
    memcpy(&small, &scaled, sizeof small);
    normal = (exponent ? normal : small) | (half & 0x8000u) << 16;
    memcpy(&scaled, &normal, sizeof scaled);
    return scaled;
}
PS_INLINE bool ps_less_f16(float a, float b) {
    return a < b;
}
PS_INLINE bool ps_equal_f16(float a, float b) {
    return a == b;
}

PS_INLINE bool ps_kind_is_float(int32_t kind) {
    return kind >= PS_F16 && kind <= PS_F64;
}
PS_INLINE bool ps_kind_is_bytes(int32_t kind) {
    return (kind >= PS_BYTES && kind <= PS_FIXED) || kind == PS_SLICES;
}

PS_INLINE ps_slice ps_load_slice(const uint8_t *slices, int64_t i) {
    ps_slice slice;
    memcpy(&slice, slices + (size_t)i * sizeof slice, sizeof slice);
    return slice;
}
/* The i-th value of a kind of byte strings. */
PS_INLINE ps_bytes ps_bytes_at(const ps_values *v, int64_t i) {
    if (v->kind == PS_FIXED)
        return (ps_bytes){v->values + (size_t)i * (size_t)v->width, (size_t)v->width};
    if (v->kind == PS_SLICES) {
        const ps_slice slice = ps_load_slice(v->offsets, i);
        return (ps_bytes){v->values + slice.offset, slice.length};
    }
    int64_t from, to;
    if (v->kind == PS_BYTES) {
        from = ps_load_i32(v->offsets, i), to = ps_load_i32(v->offsets, i + 1);
    } else {
        from = ps_load_i64(v->offsets, i), to = ps_load_i64(v->offsets, i + 1);
    }
    return (ps_bytes){v->values + from, (size_t)(to - from)};
}
PS_INLINE int ps_bytes_order(ps_bytes a, ps_bytes b) {
    size_t shared = a.size < b.size ? a.size : b.size;
    int order = shared ? memcmp(a.data, b.data, shared) : 0;
    return order ? order : (a.size > b.size) - (a.size < b.size);
}
/* The order of a's first b.size bytes and b: 0 where a starts with b. */
PS_INLINE int ps_prefix_order(ps_bytes a, ps_bytes b) {
    return ps_bytes_order((ps_bytes){a.data, a.size < b.size ? a.size : b.size}, b);
}
/* How many of the sorted byte strings are <= v. */
PS_INLINE int64_t ps_bytes_upto(const ps_values *sorted, ps_bytes v) {
    int64_t low = 0, high = sorted->n;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (ps_bytes_order(ps_bytes_at(sorted, middle), v) <= 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}
/* The literal of PS_PREFIX, of several, that v starts with; -1 for none. Strings with a common prefix are
 * neighbours in the order, and no literal lies between two that start with another: it can only be
 * the last that is <= v. */
PS_INLINE int64_t ps_prefix_of(const ps_values *prefixes, ps_bytes v) {
    int64_t at = ps_bytes_upto(prefixes, v) - 1;
    return at >= 0 && ps_prefix_order(v, ps_bytes_at(prefixes, at)) == 0 ? at : -1;
}

/* Negative, 0, positive in the total order of the kind: -0.0 = 0.0, NaN = NaN above all
 * numbers. The kinds are the same, or both are byte strings. */
int ps_value_order(const ps_values *a, int64_t i, const ps_values *b, int64_t j);
bool ps_value_is_nan(const ps_values *v, int64_t i);
/* First index of `sorted` whose value is >= (or > when `upper`) the i-th value of `of`; -1
 * where the offsets that the search met are wrong. Above everything for NaN. */
int64_t ps_value_search(const ps_values *sorted, const ps_values *of, int64_t i, bool upper);

/* The buffers hold what n and kind say. `what` begins the message. */
ps_status ps_values_check(const ps_values *v, const char *what, ps_error *err);
/* Literals fit the op and the kind they are compared with; for PS_IN they are sorted and
 * distinct. Ops without literals accept NULL. */
ps_status ps_literals_check(const ps_values *literals, ps_op op, int32_t kind, ps_error *err);
ps_status ps_literals_kind(const ps_values *literals, int32_t kind, ps_error *err);

#endif
