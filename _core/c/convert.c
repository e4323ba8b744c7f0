/* convert.c - physical values of the file into Arrow values (LogicalTypes.md). */
#include "convert.h"

size_t ps_plain_width(const ps_leaf_spec *spec) {
    switch (spec->physical) {
    case PQ_INT32:
    case PQ_FLOAT: return 4;
    case PQ_INT64:
    case PQ_DOUBLE: return 8;
    case PQ_INT96: return 12;
    case PQ_FIXED: return (size_t)spec->type_length;
    default: return 0;
    }
}

size_t ps_kind_width(const ps_leaf_spec *spec) {
    switch (spec->kind) {
    case PS_I8:
    case PS_U8: return 1;
    case PS_I16:
    case PS_U16:
    case PS_F16: return 2;
    case PS_I32:
    case PS_U32:
    case PS_F32: return 4;
    case PS_I64:
    case PS_U64:
    case PS_F64: return 8;
    case PS_D128: return 16;
    case PS_D256: return 32;
    case PS_FIXED: return (size_t)spec->width;
    default: return 0;
    }
}

bool ps_kind_has_offsets(int32_t kind) {
    return kind == PS_BYTES || kind == PS_LARGE_BYTES;
}

ps_status ps_convert_check(const ps_leaf_spec *spec, ps_error *err) {
    const int32_t k = spec->kind;
    const int64_t most = k == PS_D128 ? 38 : k == PS_D256 ? 76 : INT64_MAX;
    bool decimal = k == PS_D128 || k == PS_D256, ok = false;
    if (spec->range < 0 || spec->range > most)
        return ps_fail(err, PS_INVALID, PS_NOWHERE, "a range of %lld", (long long)spec->range);
    switch (spec->physical) {
    case PQ_BOOLEAN: ok = k == PS_BOOL; break;
    case PQ_INT32:
        ok = k == PS_I8 || k == PS_I16 || k == PS_I32 || k == PS_I64 || k == PS_U8 ||
             k == PS_U16 || k == PS_U32 || decimal;
        break;
    case PQ_INT64: ok = k == PS_I64 || k == PS_U64 || decimal; break;
    case PQ_INT96:
        ok = k == PS_I64 && spec->unit >= PS_UNIT_MS && spec->unit <= PS_UNIT_NS;
        break;
    case PQ_FLOAT: ok = k == PS_F32; break;
    case PQ_DOUBLE: ok = k == PS_F64; break;
    case PQ_BYTE_ARRAY: ok = ps_kind_has_offsets(k) || k == PS_VIEWS || decimal; break;
    case PQ_FIXED:
        if (spec->type_length < 0 || spec->type_length > (1 << 27)) {
            return ps_fail(err, PS_LIMIT, PS_NOWHERE, "type_length %d is out of range",
                           spec->type_length);
        }
        ok = (k == PS_FIXED && spec->width == spec->type_length) ||
             (k == PS_F16 && spec->type_length == 2) ||
             (k == PS_I64 && spec->type_length == 12) || (decimal && spec->type_length > 0);
        break;
    default: break;
    }
    if (ok) return PS_OK;
    return ps_fail(err, PS_UNSUPPORTED, PS_NOWHERE,
                   "physical type %d cannot become a value of kind %d", spec->physical, k);
}

bool ps_convert_decimal(const uint8_t *in, size_t length, uint8_t *out, size_t width) {
    uint8_t sign = length && (in[0] & 0x80) ? 0xff : 0;
    while (length > width) { /* leading bytes may only repeat the sign */
        if (*in != sign || ((in[1] ^ sign) & 0x80)) return false;
        in++, length--;
    }
    for (size_t i = 0; i < length; i++) out[i] = in[length - 1 - i];
    memset(out + length, sign, width - length);
    return true;
}

#define NARROW(type)                                                                           \
    for (size_t i = 0; i < n; i++) {                                                           \
        type v = (type)ps_load32(in + 4 * i);                                                  \
        memcpy(out + i * sizeof v, &v, sizeof v);                                              \
    }                                                                                          \
    return PS_OK;

/* A decimal of 16 or 32 bytes from its 16 least bytes. */
PS_INLINE void store_decimal(uint8_t *out, size_t width, uint64_t low, int64_t high) {
    ps_store64(out, low);
    ps_store64(out + 8, (uint64_t)high);
    if (width == 32) {
        ps_store64(out + 16, (uint64_t)(high >> 63));
        ps_store64(out + 24, (uint64_t)(high >> 63));
    }
}

/* Decimals from integers of 4 or 8 bytes. The widths are constants where this is called. */
PS_INLINE void widen(const uint8_t *in, size_t in_width, uint8_t *out, size_t out_width,
                     size_t n) {
    for (size_t i = 0; i < n; i++) {
        const uint8_t *p = in + i * in_width;
        const int64_t v = in_width == 4 ? (int32_t)ps_load32(p) : (int64_t)ps_load64(p);
        store_decimal(out + i * out_width, out_width, (uint64_t)v, v >> 63);
    }
}

/* Eight bytes, the greatest first. */
PS_INLINE uint64_t load_big(const uint8_t *p) {
    uint64_t v = ps_load64(p);
    v = (v & UINT64_C(0x00ff00ff00ff00ff)) << 8 | (v >> 8 & UINT64_C(0x00ff00ff00ff00ff));
    v = (v & UINT64_C(0x0000ffff0000ffff)) << 16 | (v >> 16 & UINT64_C(0x0000ffff0000ffff));
    return v << 32 | v >> 32;
}

/* The decimals of `from` bytes that whole words can be loaded of, from the first one on; how many these are. `to` is a constant where
 * this is called. */
PS_INLINE size_t turn_decimals(const uint8_t *in, size_t from, uint8_t *out, size_t to,
                               size_t n) {
    if (from < 1 || from > 16 || n * from < 8) return 0;
    if (from <= 8) { /* the bytes behind a value are those of others */
        const size_t whole = (n * from - 8) / from + 1;
        for (size_t i = 0; i < whole; i++) {
            const int64_t v = (int64_t)load_big(in + i * from) >> (64 - 8 * from);
            store_decimal(out + i * to, to, (uint64_t)v, v >> 63);
        }
        return whole;
    }
    for (size_t i = 0; i < n; i++) {
        const uint8_t *p = in + i * from;
        store_decimal(out + i * to, to, load_big(p + from - 8),
                      (int64_t)load_big(p) >> (128 - 8 * from));
    }
    return n;
}

#define NANOS_OF_DAY UINT64_C(86400000000000)

/* INT96: nanoseconds of the day (8 bytes), Julian day (4 bytes); day 2,440,588 is 1970-01-01. */
static ps_status int96(const ps_leaf_spec *spec, const uint8_t *in, uint8_t *out, size_t n,
                       ps_error *err) {
    const int64_t per_day = spec->unit == PS_UNIT_NS   ? INT64_C(86400000000000)
                            : spec->unit == PS_UNIT_US ? INT64_C(86400000000)
                                                       : INT64_C(86400000);
    const int64_t divide = INT64_C(86400000000000) / per_day;
    const int64_t furthest = INT64_MAX / per_day;
    for (size_t i = 0; i < n; i++) {
        int64_t nanos = (int64_t)ps_load64(in + 12 * i);
        int64_t day = (int64_t)ps_load32(in + 12 * i + 8) - 2440588;
        int64_t v = 0;
        if (PS_UNLIKELY((uint64_t)nanos >=
                        NANOS_OF_DAY)) { /* more than a day, or less than none */
            const int64_t rest = nanos % (int64_t)NANOS_OF_DAY;
            day += nanos / (int64_t)NANOS_OF_DAY - (rest < 0);
            nanos = rest < 0 ? rest + (int64_t)NANOS_OF_DAY : rest;
        }
        const int64_t part = nanos / divide;
        /* before 1970 count from the day's end, so that its first part may reach the least value */
        bool fits = day <= furthest && day >= -furthest - 1 &&
                    (day < 0 ? ps_add_i64((day + 1) * per_day, part - per_day, &v)
                             : ps_add_i64(day * per_day, part, &v));
        if (!fits) {
            return ps_fail(
                err, PS_LIMIT, 12 * (uint64_t)i,
                "an INT96 timestamp of day %lld does not fit 64 bits of %s", (long long)day,
                spec->unit == PS_UNIT_NS ? "nanoseconds; use int96_unit=\"us\"" : "its unit");
        }
        ps_store64(out + 8 * i, (uint64_t)v);
    }
    return PS_OK;
}

/* TIMESTAMP on FIXED_LEN_BYTE_ARRAY(12): a signed count of its unit, the low byte first. */
static ps_status timestamp96(const uint8_t *in, uint8_t *out, size_t n, ps_error *err) {
    for (size_t i = 0; i < n; i++, in += 12) {
        const int64_t v = (int64_t)ps_load64(in);
        if ((int32_t)ps_load32(in + 8) != (v < 0 ? -1 : 0)) {
            return ps_fail(err, PS_LIMIT, 12 * (uint64_t)i,
                           "a timestamp of 12 bytes does not fit 64 bits of its unit");
        }
        ps_store64(out + 8 * i, (uint64_t)v);
    }
    return PS_OK;
}

/* The least positive integer with more than `digits` decimal digits, in n words. */
static void power_of_ten(uint64_t *word, size_t n_words, int64_t digits) {
    memset(word, 0, 8 * n_words);
    for (word[0] = 1; digits > 0; digits--) {
        uint64_t carry = 0;
        for (size_t w = 0; w < n_words;
             w++) { /* by halves: a product has no more than 64 bits */
            const uint64_t low = (word[w] & UINT32_MAX) * 10 + carry;
            const uint64_t high = (word[w] >> 32) * 10 + (low >> 32);
            word[w] = high << 32 | (low & UINT32_MAX);
            carry = high >> 32;
        }
    }
}

/* Whether the size of a little-endian two's complement is below `limit`, which is positive. */
static bool decimal_below(const uint8_t *value, const uint64_t *limit, size_t n_words) {
    const uint64_t sign = -(ps_load64(value + 8 * (n_words - 1)) >> 63);
    uint64_t carry = sign & 1;
    bool below = false; /* of the words so far, the low ones first */
    for (size_t w = 0; w < n_words; w++) {
        const uint64_t flipped = ps_load64(value + 8 * w) ^ sign, size = flipped + carry;
        carry = size < flipped;
        below = (size < limit[w]) | ((size == limit[w]) & below);
    }
    return below;
}

/* Whether a decimal of 128 bits lies between -most and most, both of 63 bits. */
static bool decimal_within(const uint8_t *value, uint64_t most) {
    const uint64_t low = ps_load64(value), high = ps_load64(value + 8);
    return (low + most <= 2 * most) & (high == -(low >> 63));
}

int64_t ps_convert_beyond(const ps_leaf_spec *spec, const uint8_t *values,
                          const uint8_t *validity, int64_t n) {
    const uint64_t range = (uint64_t)spec->range;
    int64_t i = 0;
    if (range == 0) return -1;
/* Hardly ever is one there: the first search looks at nulls, too, and a second one finds which value it is. */
#define FIRST_BEYOND(within)                                                                   \
    {                                                                                          \
        bool all = true;                                                                       \
        for (int64_t j = 0; j < n; j++) {                                                      \
            const size_t at = (size_t)j;                                                       \
            all &= (within);                                                                   \
        }                                                                                      \
        for (; !all && i < n; i++) {                                                           \
            const size_t at = (size_t)i;                                                       \
            if ((!validity || ps_bit_get(validity, at)) && !(within)) return i;                \
        }                                                                                      \
        return -1;                                                                             \
    }
    switch (spec->kind) {
    case PS_I32: FIRST_BEYOND(ps_load32(values + 4 * at) < range)
    case PS_I64: FIRST_BEYOND(ps_load64(values + 8 * at) < range)
    case PS_D128:
    case PS_D256: {
        const size_t words = spec->kind == PS_D128 ? 2 : 4;
        uint64_t limit[4];
        power_of_ten(limit, words, spec->range);
        if (words == 2 && spec->range <= 18) {
            const uint64_t most = limit[0] - 1;
            FIRST_BEYOND(decimal_within(values + 16 * at, most))
        }
        FIRST_BEYOND(decimal_below(values + 8 * words * at, limit, words))
    }
    default: return -1;
    }
#undef FIRST_BEYOND
}

bool ps_convert_is_copy(const ps_leaf_spec *spec) {
    if (spec->kind == PS_D128 || spec->kind == PS_D256) return false;
    switch (spec->physical) {
    case PQ_INT32: return spec->kind == PS_I32 || spec->kind == PS_U32;
    case PQ_INT64:
    case PQ_FLOAT:
    case PQ_DOUBLE: return true;
    case PQ_FIXED: return spec->kind != PS_I64;
    default: return false;
    }
}

ps_status ps_convert_fixed(const ps_leaf_spec *spec, const uint8_t *in, uint8_t *out, size_t n,
                           ps_error *err) {
    const size_t from = ps_plain_width(spec), to = ps_kind_width(spec);
    if (spec->physical == PQ_INT32) {
        switch (spec->kind) {
        case PS_I8:
        case PS_U8: NARROW(uint8_t)
        case PS_I16:
        case PS_U16: NARROW(uint16_t)
        case PS_I64:
            for (size_t i = 0; i < n; i++) {
                ps_store64(out + 8 * i, (uint64_t)(int64_t)(int32_t)ps_load32(in + 4 * i));
            }
            return PS_OK;
        default: break;
        }
    }
    if (spec->physical == PQ_INT96) return int96(spec, in, out, n, err);
    if (spec->physical == PQ_FIXED && spec->kind == PS_I64) {
        return timestamp96(in, out, n, err);
    }
    if (spec->kind == PS_D128 || spec->kind == PS_D256) {
        if (spec->physical != PQ_FIXED) {
            if (from == 4 && to == 16)
                widen(in, 4, out, 16, n);
            else if (from == 4)
                widen(in, 4, out, 32, n);
            else if (to == 16)
                widen(in, 8, out, 16, n);
            else
                widen(in, 8, out, 32, n);
            return PS_OK;
        }
        const size_t turned = to == 16 ? turn_decimals(in, from, out, 16, n)
                                       : turn_decimals(in, from, out, 32, n);
        for (size_t i = turned; i < n; i++) {
            if (!ps_convert_decimal(in + i * from, from, out + i * to, to)) {
                return ps_fail(err, PS_CORRUPT, (uint64_t)(i * from),
                               "a decimal of %zu bytes does not fit %zu", from, to);
            }
        }
        return PS_OK;
    }
    if (n) memcpy(out, in, n * from);
    return PS_OK;
}

/* Values beyond the kind are cut to its width, so a bound beyond it bounds nothing. Of INT96 the days are
 * compared, signed, then the nanoseconds: as times are where these stay within their day. */
static bool in_kind(const ps_leaf_spec *spec, const uint8_t *p) {
    if (spec->physical == PQ_INT96)
        return ps_load64(p) < NANOS_OF_DAY && ps_load32(p + 8) <= INT32_MAX;
    if (spec->physical != PQ_INT32) return true;
    const int32_t v = (int32_t)ps_load32(p);
    switch (spec->kind) {
    case PS_I8: return v >= INT8_MIN && v <= INT8_MAX;
    case PS_U8: return v >= 0 && v <= (int32_t)UINT8_MAX;
    case PS_I16: return v >= INT16_MIN && v <= INT16_MAX;
    case PS_U16: return v >= 0 && v <= (int32_t)UINT16_MAX;
    default: return true;
    }
}

ps_status ps_convert_plain(const ps_leaf_spec *spec, const uint8_t *data, size_t length,
                           const int64_t *offset, const int64_t *size, int64_t n,
                           uint8_t *values, void *offsets, uint8_t *known, ps_error *err) {
    PS_TRY(ps_convert_check(spec, err));
    if (spec->kind == PS_VIEWS)
        return ps_fail(err, PS_INVALID, PS_NOWHERE, "single values have no views");
    const size_t from = ps_plain_width(spec), to = ps_kind_width(spec);
    /* a width is what the schema claims: values take space only where they exist */
    const bool fixed = spec->kind == PS_FIXED, wide = spec->kind == PS_LARGE_BYTES,
               bytes = ps_kind_has_offsets(spec->kind) || fixed,
               decimal = spec->kind == PS_D128 || spec->kind == PS_D256;
    int64_t end = 0;
    if (spec->kind == PS_BOOL) memset(values, 0, (size_t)(n + 7) / 8);
    if (bytes) memset(offsets, 0, wide ? 8 : 4);
    for (int64_t i = 0; i < n; i++) {
        size_t have = 0;
        const uint8_t *p = data;
        known[i] = 0;
        if (offset[i] != PS_ABSENT) {
            if (offset[i] < 0 || size[i] < 0 || (uint64_t)offset[i] > length ||
                (uint64_t)size[i] > length - (uint64_t)offset[i]) {
                return ps_fail(err, PS_INVALID, PS_NOWHERE,
                               "bound %lld lies outside its buffer", (long long)i);
            }
            p += offset[i], have = (size_t)size[i];
            if (bytes) {
                known[i] = !fixed || have == from;
                if (known[i] && have) memcpy(values + end, p, have);
                end += known[i] ? (int64_t)have : 0;
            } else if (spec->kind == PS_BOOL) {
                known[i] = have == 1 && *p <= 1;
                if (known[i] && *p) ps_bit_set(values, (size_t)i);
            } else if (spec->physical == PQ_BYTE_ARRAY) {
                known[i] = decimal && ps_convert_decimal(p, have, values + (size_t)i * to, to);
            } else {
                known[i] = have == from && in_kind(spec, p) &&
                           ps_convert_fixed(spec, p, values + (size_t)i * to, 1, NULL) == PS_OK;
            }
        }
        if (bytes) {
            if (!wide && end > INT32_MAX) {
                return ps_fail(err, PS_LIMIT, PS_NOWHERE, "bounds hold more than 2 GiB");
            }
            if (wide) {
                ((int64_t *)offsets)[i + 1] = end;
            } else {
                ((int32_t *)offsets)[i + 1] = (int32_t)end;
            }
        } else if (!known[i] && to) {
            memset(values + (size_t)i * to, 0, to);
        }
    }
    if (ps_convert_beyond(spec, values, NULL, n) >= 0) { /* hardly ever: then one by one */
        for (int64_t i = 0; i < n; i++)
            if (ps_convert_beyond(spec, values + (size_t)i * to, NULL, 1) == 0) known[i] = 0;
    }
    return PS_OK;
}
