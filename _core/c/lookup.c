/* lookup.c - IN over a long list in a time that does not grow with it.
 *
 * Integers that lie close together are a bitmap. Everything else is hashed: most values that are
 * not in the list end at one bit of a filter that fits a cache, and the others are looked up in
 * an open-addressing table of places in the list, where the literals themselves decide. */
#include "lookup.h"

enum {
    FEWEST = 9, /* fewer numbers are compared one by one, by vectors */
    FEWEST_BYTES = 2,
    BITS_A_LITERAL = 64,    /* of a bitmap */
    MORE_BITS = 1024,       /* a literal, of a bitmap that is still quicker than a table: */
    MOST_MORE = 1 << 24,    /* it fits a cache, and values in order use little of it */
    LEAST_BITS = 1 << 16,   /* bits of a bitmap that costs nothing */
    FILTER_A_LITERAL = 16,  /* bits: one value in 16 or more that are not in the list passes */
    LEAST_FILTER_LOG2 = 15, /* bits */
    MOST_LITERALS = 1 << 29,
    LONGEST_RUN = 512 /* steps in the table; lists that are made to collide are searched */
};

/* ---- hashes: equal values have equal ones; the high bits are used ------------------------- */

PS_INLINE uint64_t mix(uint64_t x) {
    return (x ^ x >> 32) * 0x9e3779b97f4a7c15u;
}
PS_INLINE uint64_t hash_float(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return mix(x == 0 ? 0 : bits); /* -0.0 = 0.0 */
}
PS_INLINE uint64_t hash_double(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return mix(x == 0 ? 0 : bits);
}
PS_INLINE uint64_t hash_128(ps_d128 x) {
    return mix(x.lo ^ mix((uint64_t)x.hi));
}
PS_INLINE uint64_t hash_256(ps_d256 x) {
    return mix(x.lo[0] ^ mix(x.lo[1] ^ mix(x.lo[2] ^ mix((uint64_t)x.hi))));
}
PS_INLINE uint64_t hash_bytes(ps_bytes v) {
    uint64_t a = 0, b = 0;
    if (v.size > 16) {
        return ps_xxh64(v.data, v.size);
    } else if (v.size >= 8) {
        a = ps_load64(v.data), b = ps_load64(v.data + v.size - 8);
    } else if (v.size >= 4) {
        a = ps_load32(v.data), b = ps_load32(v.data + v.size - 4);
    } else if (v.size) {
        a = (uint64_t)v.data[0] << 16 | (uint64_t)v.data[v.size / 2] << 8 | v.data[v.size - 1];
    }
    return mix(a ^ mix(b ^ mix(v.size)));
}

#define HASH(name, EXPRESSION)                                                                 \
    PS_INLINE uint64_t hash_##name(ps_t_##name x) {                                            \
        return EXPRESSION;                                                                     \
    }
HASH(i8, mix((uint64_t)x))
HASH(i16, mix((uint64_t)x))
HASH(i32, mix((uint64_t)x))
HASH(i64, mix((uint64_t)x))
HASH(u8, mix(x))
HASH(u16, mix(x))
HASH(u32, mix(x))
HASH(u64, mix(x))
HASH(f16, hash_float(x))
HASH(f32, hash_float(x))
HASH(f64, hash_double(x))
HASH(d128, hash_128(x))
HASH(d256, hash_256(x))

#define HASH_CASE(KIND, name)                                                                  \
    case KIND: return hash_##name(ps_load_##name(v->values, i));

static uint64_t hash_at(const ps_values *v, int64_t i) {
    switch (v->kind) {
        PS_NUMBER_KINDS(HASH_CASE)
    default: return hash_bytes(ps_bytes_at(v, i));
    }
}

/* ---- tests ------------------------------------------------------------------------------- */

PS_INLINE uint64_t filter_bit(const ps_in *in, uint64_t hash) {
    uint64_t at = hash >> in->filter_shift;
    return in->bits[at >> 3] >> (at & 7) & 1;
}

/* `found` is whether EQUAL holds of some literal `at` of the hash. */
#define LOOK_UP(hash, EQUAL)                                                                   \
    bool found = false;                                                                        \
    size_t slot = (size_t)((hash) >> in->table_shift), last = in->slots - 1;                   \
    for (int64_t at; !found && (at = ps_load32(in->table + 4 * slot)) != 0;                    \
         slot = (slot + 1) & last) {                                                           \
        at--;                                                                                  \
        found = (EQUAL);                                                                       \
    }

#define TABLE_BLOCK(KIND, name)                                                                \
    static uint64_t name##_by_table(const ps_in *in, const ps_values *values, int64_t first,   \
                                    int count) {                                               \
        const uint8_t *p = values->values + (size_t)first * ps_size_##name;                    \
        uint64_t word = 0;                                                                     \
        for (int i = 0; i < count; i++)                                                        \
            word |= filter_bit(in, hash_##name(ps_load_##name(p, i))) << i;                    \
        for (uint64_t rest = word; rest; rest &= rest - 1) {                                   \
            int i = ps_ctz64(rest);                                                            \
            ps_t_##name x = ps_load_##name(p, i);                                              \
            LOOK_UP(hash_##name(x),                                                            \
                    ps_equal_##name(x, ps_load_##name(in->literals.values, at)))               \
            word ^= (uint64_t)!found << i;                                                     \
        }                                                                                      \
        return word;                                                                           \
    }
PS_NUMBER_KINDS(TABLE_BLOCK)

static uint64_t bytes_by_table(const ps_in *in, const ps_values *values, int64_t first,
                               int count) {
    uint64_t word = 0;
    for (int i = 0; i < count; i++) {
        ps_bytes v = ps_bytes_at(values, first + i);
        uint64_t hash = hash_bytes(v);
        if (!filter_bit(in, hash)) continue;
        LOOK_UP(hash, ps_bytes_order(v, ps_bytes_at(&in->literals, at)) == 0)
        word |= (uint64_t)found << i;
    }
    return word;
}

#define PS_WORD_KINDS(X)                                                                       \
    X(PS_I8, i8)                                                                               \
    X(PS_I16, i16)                                                                             \
    X(PS_I32, i32) X(PS_I64, i64) X(PS_U8, u8) X(PS_U16, u16) X(PS_U32, u32) X(PS_U64, u64)

#define BITS_BLOCK(KIND, name)                                                                 \
    static uint64_t name##_by_bits(const ps_in *in, const ps_values *values, int64_t first,    \
                                   int count) {                                                \
        const uint8_t *p = values->values + (size_t)first * ps_size_##name;                    \
        uint64_t word = 0;                                                                     \
        for (int i = 0; i < count; i++) {                                                      \
            uint64_t at = (uint64_t)ps_load_##name(p, i) - in->low;                            \
            at = at < in->span ? at : in->span; /* a bit of zero */                            \
            word |= (uint64_t)(in->bits[at >> 3] >> (at & 7) & 1) << i;                        \
        }                                                                                      \
        return word;                                                                           \
    }
PS_WORD_KINDS(BITS_BLOCK)

#define TABLE_CASE(KIND, name)                                                                 \
    case KIND: return name##_by_table;
#define BITS_CASE(KIND, name)                                                                  \
    case KIND: return name##_by_bits;

ps_in_block ps_in_blocks(const ps_in *in) {
    if (in->form == PS_IN_BITS) {
        switch (in->literals.kind) {
            PS_WORD_KINDS(BITS_CASE)
        default: return NULL;
        }
    }
    if (in->form != PS_IN_TABLE) return NULL;
    switch (in->literals.kind) {
        PS_NUMBER_KINDS(TABLE_CASE)
    default: return bytes_by_table;
    }
}

/* ---- making ------------------------------------------------------------------------------ */

#define WIDEN_CASE(KIND, name)                                                                 \
    case KIND: *out = (uint64_t)ps_load_##name(v->values, i); return true;

/* An integer as 64 bits, whose differences are those of the integers. */
static bool widened(const ps_values *v, int64_t i, uint64_t *out) {
    switch (v->kind) {
        PS_WORD_KINDS(WIDEN_CASE)
    default: return false;
    }
}

static int log2_above(uint64_t n) { /* the least k of 2^k >= n */
    return n < 2 ? 0 : ps_bit_width(n - 1);
}

static size_t filter_bytes(const ps_in *in) {
    return (size_t)1 << (64 - in->filter_shift - 3);
}

ps_status ps_in_open(const ps_values *literals, ps_in *out, ps_error *err) {
    memset(out, 0, sizeof *out);
    PS_TRY(ps_literals_check(literals, PS_IN, literals->kind, err));
    out->literals = *literals;
    out->n = literals->n - (literals->n && ps_value_is_nan(literals, literals->n - 1));
    out->form = PS_IN_SORTED;
    return PS_OK;
}

size_t ps_in_table_size(ps_in *in) {
    uint64_t n = (uint64_t)in->n, first, last;
    uint64_t fewest = ps_kind_is_bytes(in->literals.kind) ? FEWEST_BYTES : FEWEST;
    if (in->literals.kind == PS_BOOL || n < fewest) return 0;
    if (widened(&in->literals, 0, &first) && widened(&in->literals, in->n - 1, &last)) {
        uint64_t span = last - first, most = LEAST_BITS; /* one less than the integers are */
        const uint64_t more = n < MOST_MORE / MORE_BITS ? n * MORE_BITS : MOST_MORE;
        if (most < more) most = more;
        if (n < UINT64_MAX / BITS_A_LITERAL && most < n * BITS_A_LITERAL)
            most = n * BITS_A_LITERAL;
        if (span < most) {
            in->low = first, in->span = span + 1;
            in->slots = 0;
            return (size_t)(in->span / 8 + 1);
        }
    }
    if (n > MOST_LITERALS) return 0;
    int filter = log2_above(n * FILTER_A_LITERAL), table = log2_above(n * 2);
    in->filter_shift = 64 - (filter < LEAST_FILTER_LOG2 ? LEAST_FILTER_LOG2 : filter);
    in->table_shift = 64 - table;
    in->slots = (size_t)1 << table;
    return filter_bytes(in) + 4 * in->slots;
}

void ps_in_build(ps_in *in, void *space) {
    uint8_t *bits = space;
    size_t size = ps_in_table_size(in);
    if (size == 0) return;
    memset(bits, 0, size);
    in->bits = bits;
    if (in->slots == 0) {
        for (int64_t i = 0; i < in->n; i++) {
            uint64_t value = 0;
            (void)widened(&in->literals, i, &value);
            ps_bit_set(bits, (size_t)(value - in->low));
        }
        in->form = PS_IN_BITS;
        return;
    }
    uint8_t *table = bits + filter_bytes(in);
    in->table = table;
    for (int64_t i = 0; i < in->n; i++) {
        uint64_t hash = hash_at(&in->literals, i);
        size_t slot = (size_t)(hash >> in->table_shift), steps = 0;
        ps_bit_set(bits, (size_t)(hash >> in->filter_shift));
        for (; ps_load32(table + 4 * slot); slot = (slot + 1) & (in->slots - 1))
            if (++steps > LONGEST_RUN) return;
        ps_store32(table + 4 * slot, (uint32_t)i + 1);
    }
    in->form = PS_IN_TABLE;
}
