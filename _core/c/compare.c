/* compare.c - values against literals, 64 at a time, into a bitmap. */
#include "lookup.h"

/* What 64 comparisons read. */
typedef struct scan {
    const ps_values *values, *literals;
    int64_t n_literals; /* without a trailing NaN */
    int accept;         /* byte strings: bit c + 1 where an order of c (-1, 0, 1) is TRUE */
    const ps_in *in;    /* a list with a table */
    ps_in_block look_up;
} scan;

/* Word of results for the `count` <= 64 values from `first`; bits from count on are arbitrary.
 * Blocks of numbers take the address of 64 values instead. */
typedef uint64_t (*span_block)(const scan *s, int64_t first, int count);
typedef uint64_t (*number_block)(const scan *s, const uint8_t *p);

/* Bit i = byte i of 64 bytes that are 0 or 1. */
PS_INLINE uint64_t pack(const uint8_t flags[64]) {
    uint64_t word = 0;
    for (int i = 0; i < 8; i++) word |= ps_bytes_to_bits(ps_load64(flags + 8 * i)) << 8 * i;
    return word;
}

/* Loops of a fixed length over bytes: what the compiler makes vectors of. */
#define BLOCK(name, suffix, TEST)                                                              \
    static uint64_t name##_##suffix(const scan *s, const uint8_t *p) {                         \
        uint8_t flags[64];                                                                     \
        ps_t_##name v = ps_load_##name(s->literals->values, 0);                                \
        for (int i = 0; i < 64; i++) {                                                         \
            ps_t_##name x = ps_load_##name(p, i);                                              \
            flags[i] = (uint8_t)(TEST);                                                        \
        }                                                                                      \
        return pack(flags);                                                                    \
    }

enum { FEW_LITERALS = 8 };

#define IN_BLOCKS(name)                                                                        \
    static uint64_t name##_in_few(const scan *s, const uint8_t *p) {                           \
        uint8_t flags[64] = {0};                                                               \
        for (int64_t j = 0; j < s->n_literals; j++) {                                          \
            ps_t_##name v = ps_load_##name(s->literals->values, j);                            \
            for (int i = 0; i < 64; i++)                                                       \
                flags[i] |= (uint8_t)ps_equal_##name(ps_load_##name(p, i), v);                 \
        }                                                                                      \
        return pack(flags);                                                                    \
    }                                                                                          \
    static uint64_t name##_in_many(const scan *s, const uint8_t *p) {                          \
        uint8_t flags[64];                                                                     \
        const uint8_t *sorted = s->literals->values;                                           \
        for (int i = 0; i < 64; i++) {                                                         \
            ps_t_##name x = ps_load_##name(p, i);                                              \
            int64_t base = 0;                                                                  \
            for (int64_t n = s->n_literals; n > 1;) { /* the last one that is <= x */          \
                int64_t half = n >> 1;                                                         \
                base += half &                                                                 \
                        -(int64_t)!ps_less_##name(x, ps_load_##name(sorted, base + half));     \
                n -= half;                                                                     \
            }                                                                                  \
            flags[i] = (uint8_t)ps_equal_##name(x, ps_load_##name(sorted, base));              \
        }                                                                                      \
        return pack(flags);                                                                    \
    }

#define INTEGER_BLOCKS(KIND, name)                                                             \
    BLOCK(name, eq, ps_equal_##name(x, v))                                                     \
    BLOCK(name, lt, ps_less_##name(x, v))                                                      \
    BLOCK(name, le, !ps_less_##name(v, x))                                                     \
    IN_BLOCKS(name)
#define FLOAT_BLOCKS(KIND, name)                                                               \
    BLOCK(name, eq, x == v)                                                                    \
    BLOCK(name, lt, x < v)                                                                     \
    BLOCK(name, le, x <= v)                                                                    \
    BLOCK(name, gt, x > v)                                                                     \
    BLOCK(name, ge, x >= v)                                                                    \
    IN_BLOCKS(name)                                                                            \
    static uint64_t name##_nan(const scan *s, const uint8_t *p) {                              \
        uint8_t flags[64];                                                                     \
        (void)s;                                                                               \
        for (int i = 0; i < 64; i++) {                                                         \
            ps_t_##name x = ps_load_##name(p, i);                                              \
            flags[i] = x != x;                                                                 \
        }                                                                                      \
        return pack(flags);                                                                    \
    }
PS_INTEGER_KINDS(INTEGER_BLOCKS)
PS_FLOAT_KINDS(FLOAT_BLOCKS)

typedef struct number_kernels {
    size_t size;
    /* gt and ge only where they are not the opposite of le and lt, that is with NaN */
    number_block eq, lt, le, gt, ge, nan, in_few, in_many;
} number_kernels;

#define INTEGER_ROW(KIND, name)                                                                \
    [KIND] = {ps_size_##name, name##_eq, name##_lt,     name##_le,     NULL,                   \
              NULL,           NULL,      name##_in_few, name##_in_many},
#define FLOAT_ROW(KIND, name)                                                                  \
    [KIND] = {ps_size_##name, name##_eq,  name##_lt,     name##_le,     name##_gt,             \
              name##_ge,      name##_nan, name##_in_few, name##_in_many},
static const number_kernels NUMBERS[PS_D256 + 1] = {PS_INTEGER_KINDS(INTEGER_ROW)
                                                        PS_FLOAT_KINDS(FLOAT_ROW)};

/* ---- byte strings and booleans ----------------------------------------------------------- */

static uint64_t bytes_order(const scan *s, int64_t first, int count) {
    uint64_t word = 0;
    ps_bytes v = ps_bytes_at(s->literals, 0);
    for (int i = 0; i < count; i++) {
        int order = ps_bytes_order(ps_bytes_at(s->values, first + i), v);
        int sign = (order > 0) - (order < 0);
        word |= (uint64_t)(s->accept >> (sign + 1) & 1) << i;
    }
    return word;
}

/* Candidates by length alone first: most values end there. */
#define BYTES_BLOCKS(name, LENGTH)                                                             \
    static uint64_t name##_sized(const scan *s, int64_t first, int count, bool prefix) {       \
        uint8_t flags[64] = {0};                                                               \
        ps_bytes v = ps_bytes_at(s->literals, 0);                                              \
        if (prefix) {                                                                          \
            for (int i = 0; i < count; i++) flags[i] = (LENGTH) >= v.size;                     \
        } else {                                                                               \
            for (int i = 0; i < count; i++) flags[i] = (LENGTH) == v.size;                     \
        }                                                                                      \
        return pack(flags);                                                                    \
    }
BYTES_BLOCKS(narrow, (size_t)(ps_load_i32(s->values->offsets, first + i + 1) -
                              ps_load_i32(s->values->offsets, first + i)))
BYTES_BLOCKS(wide, (size_t)(ps_load_i64(s->values->offsets, first + i + 1) -
                            ps_load_i64(s->values->offsets, first + i)))
BYTES_BLOCKS(slice, ps_load_slice(s->values->offsets, first + i).length)

static uint64_t bytes_match(const scan *s, int64_t first, int count, bool prefix) {
    ps_bytes v = ps_bytes_at(s->literals, 0);
    uint64_t word, candidates;
    if (s->values->kind == PS_BYTES) {
        candidates = narrow_sized(s, first, count, prefix);
    } else if (s->values->kind == PS_LARGE_BYTES) {
        candidates = wide_sized(s, first, count, prefix);
    } else if (s->values->kind == PS_SLICES) {
        candidates = slice_sized(s, first, count, prefix);
    } else {
        size_t width = (size_t)s->values->width;
        candidates = (prefix ? width >= v.size : width == v.size) ? UINT64_MAX : 0;
        if (count < 64) candidates &= ((uint64_t)1 << count) - 1;
    }
    word = candidates;
    if (v.size == 0) return word;
    for (; candidates; candidates &= candidates - 1) {
        int i = ps_ctz64(candidates);
        const uint8_t *data = ps_bytes_at(s->values, first + i).data;
        if (data[0] != v.data[0] || memcmp(data, v.data, v.size) != 0) word ^= (uint64_t)1 << i;
    }
    return word;
}
static uint64_t bytes_eq(const scan *s, int64_t first, int count) {
    return bytes_match(s, first, count, false);
}
static uint64_t bytes_prefix(const scan *s, int64_t first, int count) {
    return bytes_match(s, first, count, true);
}

static uint64_t bytes_prefixes(const scan *s, int64_t first, int count) {
    uint64_t word = 0;
    for (int i = 0; i < count; i++)
        word |= (uint64_t)(ps_prefix_of(s->literals, ps_bytes_at(s->values, first + i)) >= 0)
                << i;
    return word;
}

static uint64_t bytes_in(const scan *s, int64_t first, int count) {
    uint64_t word = 0;
    for (int i = 0; i < count; i++) {
        int64_t at = ps_value_search(s->literals, s->values, first + i, false);
        bool found = at < s->n_literals &&
                     ps_value_order(s->literals, at, s->values, first + i) == 0;
        word |= (uint64_t)found << i;
    }
    return word;
}

static uint64_t in_table(const scan *s, int64_t first, int count) {
    return s->look_up(s->in, s->values, first, count);
}

/* The up to 64 bits of a bitmap from bit `first`, a multiple of 64. */
PS_INLINE uint64_t bits_at(const uint8_t *bits, int64_t first, int count) {
    uint64_t word = 0;
    memcpy(&word, bits + first / 8, (size_t)(count + 7) / 8);
    return word;
}

/* `accept`: bit 0 where false matches, bit 1 where true does. */
static uint64_t bool_any(const scan *s, int64_t first, int count) {
    uint64_t word = bits_at(s->values->values, first, count);
    return (s->accept & 2 ? word : 0) | (s->accept & 1 ? ~word : 0);
}

/* ---- planning ---------------------------------------------------------------------------- */

typedef struct plan {
    scan scan;
    size_t size;         /* of a number */
    number_block number; /* their bits are joined; without any, all are 0 before `invert` */
    span_block span;
    number_block extra;
    bool invert;
} plan;

static bool bool_test(ps_op op, bool x, const ps_values *literals) {
    if (op == PS_IN) {
        for (int64_t j = 0; j < literals->n; j++)
            if (ps_bit_get(literals->values, (size_t)j) == x) return true;
        return false;
    }
    bool v = ps_bit_get(literals->values, 0);
    switch (op) {
    case PS_EQ: return x == v;
    case PS_NE: return x != v;
    case PS_LT: return x < v;
    case PS_LE: return x <= v;
    case PS_GT: return x > v;
    default: return x >= v;
    }
}

static void plan_number(plan *p, ps_op op, ps_nan nan, int32_t kind) {
    const number_kernels *k = &NUMBERS[kind];
    const ps_values *literals = p->scan.literals;
    bool is_float = ps_kind_is_float(kind);
    p->size = k->size;
    if (op == PS_IN) {
        /* sorted: NaN, once, at the end */
        bool last_nan = literals->n && ps_value_is_nan(literals, literals->n - 1);
        p->scan.n_literals = literals->n - last_nan;
        if (p->scan.n_literals)
            p->number = p->scan.n_literals <= FEW_LITERALS ? k->in_few : k->in_many;
        if (last_nan && nan == PS_NAN_SPARK) p->extra = k->nan;
        return;
    }
    if (nan == PS_NAN_SPARK && ps_value_is_nan(literals, 0)) {
        /* nothing is above NaN, and all but NaN is below */
        if (op != PS_LE && op != PS_GT) p->number = k->nan;
        p->invert = op == PS_NE || op == PS_LT || op == PS_LE;
        return;
    }
    bool opposite = !is_float || nan == PS_NAN_SPARK; /* x > v is not x <= v */
    switch (op) {
    case PS_EQ: p->number = k->eq; break;
    case PS_NE: p->number = k->eq, p->invert = true; break;
    case PS_LT: p->number = k->lt; break;
    case PS_LE: p->number = k->le; break;
    case PS_GT: p->number = opposite ? k->le : k->gt, p->invert = opposite; break;
    default: p->number = opposite ? k->lt : k->ge, p->invert = opposite; break;
    }
}

static void plan_bytes(plan *p, ps_op op) {
    static const uint8_t ACCEPT[] = {[PS_LT] = 1, [PS_LE] = 3, [PS_GT] = 4, [PS_GE] = 6};
    switch (op) {
    case PS_EQ: p->span = bytes_eq; break;
    case PS_NE: p->span = bytes_eq, p->invert = true; break;
    case PS_PREFIX: p->span = p->scan.n_literals == 1 ? bytes_prefix : bytes_prefixes; break;
    case PS_IN:
        if (p->scan.n_literals) p->span = p->scan.n_literals == 1 ? bytes_eq : bytes_in;
        break;
    default: p->span = bytes_order, p->scan.accept = ACCEPT[op]; break;
    }
}

static uint64_t number_word(const plan *p, int64_t first, int count) {
    uint64_t padded[64 * sizeof(ps_d256) / sizeof(uint64_t)];
    const uint8_t *at = p->scan.values->values + (size_t)first * p->size;
    if (count < 64) {
        memset(padded, 0, sizeof padded);
        memcpy(padded, at, (size_t)count * p->size);
        at = (const uint8_t *)padded;
    }
    uint64_t word = p->number ? p->number(&p->scan, at) : 0;
    return p->extra ? word | p->extra(&p->scan, at) : word;
}

/* The plan on all values. `valid_only`: nulls are in neither answer. */
static int64_t run(const plan *p, bool negate, bool valid_only, uint8_t *mask) {
    const ps_values *values = p->scan.values;
    const uint8_t *validity = values->validity;
    uint64_t flip = p->invert != negate ? UINT64_MAX : 0;
    int64_t ones = 0;
    for (int64_t first = 0; first < values->n; first += 64) {
        int n = values->n - first < 64 ? (int)(values->n - first) : 64;
        uint64_t word = 0, valid = validity ? bits_at(validity, first, n) : UINT64_MAX;
        if (!valid_only) word = ~valid;
        if (p->span) word |= p->span(&p->scan, first, n);
        if (p->number || p->extra) word |= number_word(p, first, n);
        word ^= flip;
        if (valid_only) word &= valid;
        if (n < 64) word &= ((uint64_t)1 << n) - 1;
        memcpy(mask + first / 8, &word, (size_t)(n + 7) / 8);
        ones += ps_popcount64(word);
    }
    return ones;
}

/* For every op that has literals, which are checked. */
static void plan_test(plan *p, ps_op op, ps_nan nan) {
    const ps_values *values = p->scan.values, *literals = p->scan.literals;
    p->scan.n_literals = literals->n;
    if (values->kind == PS_BOOL) {
        p->span = bool_any;
        p->scan.accept = bool_test(op, false, literals) | bool_test(op, true, literals) << 1;
    } else if (ps_kind_is_bytes(values->kind)) {
        plan_bytes(p, op);
    } else {
        plan_number(p, op, nan, values->kind);
    }
}

/* Slices are for comparisons alone. */
static ps_status check_values(const ps_values *v, ps_error *err) {
    uint64_t stop = 0;
    if (v->kind != PS_SLICES) return ps_values_check(v, "values", err);
    if (v->n < 0 || (v->n && !v->offsets))
        return ps_fail(err, PS_INVALID, PS_NOWHERE, "values: no slices");
    for (int64_t i = 0; i < v->n; i++) {
        const ps_slice slice = ps_load_slice(v->offsets, i);
        const uint64_t end = (uint64_t)slice.offset + slice.length;
        stop = end > stop ? end : stop;
    }
    if (stop > v->values_size)
        return ps_fail(err, PS_INVALID, PS_NOWHERE, "values: a slice leaves the data");
    return PS_OK;
}

ps_status ps_compare(const ps_values *values, ps_op op, bool negate, const ps_values *literals,
                     ps_nan nan, uint8_t *mask, int64_t *count, ps_error *err) {
    *count = 0;
    PS_TRY(check_values(values, err));
    PS_TRY(ps_literals_check(literals, op, values->kind, err));

    plan p = {.scan = {.values = values, .literals = literals}};
    switch (op) {
    case PS_IS_NULL: break;
    case PS_IS_NAN:
        if (ps_kind_is_float(values->kind))
            p.number = NUMBERS[values->kind].nan, p.size = NUMBERS[values->kind].size;
        break;
    case PS_ALWAYS: p.invert = true; break;
    case PS_NEVER: break;
    default: plan_test(&p, op, nan);
    }
    *count = run(&p, negate, op != PS_IS_NULL, mask);
    return PS_OK;
}

ps_status ps_compare_in(const ps_values *values, bool negate, const ps_in *in, ps_nan nan,
                        uint8_t *mask, int64_t *count, ps_error *err) {
    *count = 0;
    PS_TRY(check_values(values, err));
    if (values->kind != in->literals.kind &&
        !(ps_kind_is_bytes(values->kind) && ps_kind_is_bytes(in->literals.kind)))
        return ps_fail(err, PS_INVALID, PS_NOWHERE, "a list of kind %d for values of kind %d",
                       (int)in->literals.kind, (int)values->kind);
    plan p = {.scan = {.values = values, .literals = &in->literals, .in = in}};
    plan_test(&p, PS_IN, nan);
    p.scan.look_up = ps_in_blocks(in);
    if (p.scan.look_up) p.span = in_table, p.number = NULL; /* NaN stays apart */
    *count = run(&p, negate, true, mask);
    return PS_OK;
}

/* ---- literals ---------------------------------------------------------------------------- */

/* By value, then by place, so that the first of equals stays. */
static bool after(const ps_values *v, int64_t i, int64_t j) {
    int order = ps_value_order(v, i, v, j);
    return order > 0 || (order == 0 && i > j);
}

static void sift(const ps_values *v, int64_t *heap, size_t root, size_t n) {
    for (size_t child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && after(v, heap[child + 1], heap[child])) child++;
        if (!after(v, heap[child], heap[root])) return;
        int64_t swapped = heap[root];
        heap[root] = heap[child], heap[child] = swapped;
    }
}

ps_status ps_literals_sort(const ps_values *literals, int64_t *order, size_t *kept,
                           ps_error *err) {
    *kept = 0;
    PS_TRY(ps_values_check(literals, "literals", err));
    size_t n = (size_t)literals->n;
    bool sorted = true;
    for (size_t i = 0; i < n; i++) {
        if (literals->validity && !ps_bit_get(literals->validity, i))
            return ps_fail(err, PS_INVALID, PS_NOWHERE, "literal %zu is null", i);
        order[i] = (int64_t)i;
        sorted = sorted && (i == 0 || !after(literals, (int64_t)i - 1, (int64_t)i));
    }
    if (!sorted) { /* a heap needs no memory of its own, and no input makes it slow */
        for (size_t root = n / 2; root-- > 0;) sift(literals, order, root, n);
        for (size_t end = n; end-- > 1;) {
            int64_t top = order[0];
            order[0] = order[end], order[end] = top;
            sift(literals, order, 0, end);
        }
    }
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        if (k == 0 || ps_value_order(literals, order[k - 1], literals, order[i]) != 0)
            order[k++] = order[i];
    *kept = k;
    return PS_OK;
}
