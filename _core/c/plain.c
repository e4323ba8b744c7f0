/* plain.c - PLAIN values, but for booleans (Encodings.md, "Plain"). */
#include "leaf.h"

static ps_status short_page(const ps_leaf *leaf, int64_t n, ps_error *err) {
    return ps_fail(err, PS_TRUNCATED, ps_page_byte(leaf, leaf->values) + leaf->values_length,
                   "page ends before value %lld", (long long)(leaf->value + n));
}

static ps_status open(ps_leaf *leaf, ps_error *err) {
    (void)leaf, (void)err; /* what is not there is missed where it is wanted */
    return PS_OK;
}

static ps_status skip(ps_leaf *leaf, int64_t n, ps_error *err) {
    if (leaf->spec.physical != PQ_BYTE_ARRAY) return PS_OK; /* addressed by leaf->value */
    const uint8_t *p = leaf->place.at, *end = leaf->values + leaf->values_length;
    for (int64_t i = 0; i < n; i++) {
        if ((size_t)(end - p) < 4) return short_page(leaf, i, err);
        size_t length = ps_load32(p);
        if (length > (size_t)(end - p) - 4) return short_page(leaf, i, err);
        p += 4 + length;
    }
    leaf->place.at = p;
    return PS_OK;
}

static ps_status read_fixed(ps_leaf *leaf, uint8_t *out, int64_t n, ps_error *err) {
    if (leaf->spec.physical == PQ_BYTE_ARRAY) { /* decimals of varying length */
        const uint8_t *p = leaf->place.at, *end = leaf->values + leaf->values_length;
        for (int64_t i = 0; i < n; i++) {
            if ((size_t)(end - p) < 4) return short_page(leaf, i, err);
            size_t length = ps_load32(p);
            if (length > (size_t)(end - p) - 4) return short_page(leaf, i, err);
            if (!ps_convert_decimal(p + 4, length, out + (size_t)i * leaf->out_width,
                                    leaf->out_width)) {
                return ps_fail(err, PS_CORRUPT, ps_page_byte(leaf, p),
                               "a decimal of %zu bytes does not fit %zu", length,
                               leaf->out_width);
            }
            p += 4 + length;
        }
        leaf->place.at = p;
        return PS_OK;
    }
    if (leaf->in_width == 0) return PS_OK; /* FIXED_LEN_BYTE_ARRAY(0) */
    size_t room = leaf->values_length / leaf->in_width;
    if ((uint64_t)(leaf->value + n) > room) return short_page(leaf, n, err);
    const uint8_t *in = leaf->values + (size_t)leaf->value * leaf->in_width;
    return ps_page_error(leaf, in, ps_convert_fixed(&leaf->spec, in, out, (size_t)n, err), err);
}

static ps_status read_strings(ps_leaf *leaf, int64_t dense, int64_t n, int64_t *done,
                              ps_error *err) {
    const uint8_t *p = leaf->place.at, *end = leaf->values + leaf->values_length;
    const int64_t limit = ps_offset_limit(leaf);
    int64_t size = ps_offset_get(leaf, dense), i = 0;
    ps_status status = PS_OK;
    while (i < n) {
        if ((size_t)(end - p) < 4) {
            status = short_page(leaf, i, err);
            break;
        }
        size_t length = ps_load32(p);
        if (length > (size_t)(end - p) - 4) {
            status = short_page(leaf, i, err);
            break;
        }
        if ((int64_t)length > limit - size) break;
        if ((size_t)size + length > leaf->out_values.capacity) {
            leaf->out_values.size = (size_t)size;
            status = ps_leaf_room(leaf, &leaf->out_values, (size_t)size + length, err);
            if (status != PS_OK) break;
        }
        memcpy(leaf->out_values.data + size, p + 4, length);
        size += (int64_t)length;
        p += 4 + length;
        ps_offset_set(leaf, dense + ++i, size);
    }
    leaf->place.at = p;
    leaf->out_values.size = (size_t)size;
    leaf->unchecked = true;
    *done = i;
    return status;
}

/* ---- blocks -------------------------------------------------------------------------------- */

/* The places of all values are written and the kept ones stay. */
static ps_status walk(ps_leaf *leaf, const uint8_t **found, const ps_block *block,
                      ps_error *err) {
    const uint8_t *p = leaf->place.at, *end = leaf->values + leaf->values_length;
    const uint8_t *slots[PS_BLOCK + 1];
    size_t kept = 0;
    for (size_t i = 0; i < block->values; i++) {
        if ((size_t)(end - p) < 4) return short_page(leaf, (int64_t)i, err);
        const size_t length = ps_load32(p);
        if (length > (size_t)(end - p) - 4) return short_page(leaf, (int64_t)i, err);
        slots[kept] = p;
        kept += block->mask[i / 64] >> (i & 63) & 1;
        p += 4 + length;
    }
    memcpy(found, slots, kept * sizeof *slots);
    leaf->place.at = p;
    return PS_OK;
}

static ps_status block_strings(ps_leaf *leaf, const ps_block *block, bool *fit, ps_error *err) {
    const uint8_t *at[PS_BLOCK];
    uint32_t length[PS_BLOCK];
    PS_TRY(walk(leaf, at, block, err));
    for (size_t i = 0; i < block->kept; i++) {
        length[i] = ps_load32(at[i]);
        at[i] += 4;
    }
    leaf->unchecked = leaf->unchecked || block->kept;
    return ps_block_strings(leaf, at, length, block->kept, leaf->values + leaf->values_length,
                            fit, err);
}

static ps_status decimals(ps_leaf *leaf, uint8_t *out, const ps_block *block, ps_error *err) {
    const uint8_t *found[PS_BLOCK];
    PS_TRY(walk(leaf, found, block, err));
    for (size_t i = 0; i < block->kept; i++) {
        const size_t length = ps_load32(found[i]);
        if (!ps_convert_decimal(found[i] + 4, length, out + i * leaf->out_width,
                                leaf->out_width))
            return ps_fail(err, PS_CORRUPT, ps_page_byte(leaf, found[i]),
                           "a decimal of %zu bytes does not fit %zu", length, leaf->out_width);
    }
    return PS_OK;
}

static ps_status block_fixed(ps_leaf *leaf, uint8_t *out, size_t room, const ps_block *block,
                             ps_error *err) {
    if (leaf->spec.physical == PQ_BYTE_ARRAY) return decimals(leaf, out, block, err);
    const size_t width = leaf->in_width;
    if (width == 0 || block->kept == 0) return PS_OK;
    if (block->end > leaf->values_length / width ||
        (size_t)leaf->value > leaf->values_length / width - block->end)
        return short_page(leaf, (int64_t)block->end, err);
    const uint8_t *in = leaf->values + (size_t)leaf->value * width;
    if (leaf->copies) {
        ps_compact(out, room, in, width, block->mask, block->end);
        return PS_OK;
    }
    if (width <= 16) {
        uint8_t raw[PS_BLOCK * 16];
        ps_compact(raw, PS_BLOCK, in, width, block->mask, block->end);
        if (ps_convert_fixed(&leaf->spec, raw, out, block->kept, NULL) == PS_OK) return PS_OK;
    }
    /* one by one: values that are wide, or among which is one that does not convert */
    for (size_t i = 0; i < block->end; i++) {
        if (!(block->mask[i / 64] >> (i & 63) & 1)) continue;
        PS_TRY(ps_page_error(leaf, in + i * width,
                             ps_convert_fixed(&leaf->spec, in + i * width, out, 1, err), err));
        out += leaf->out_width;
    }
    return PS_OK;
}

const ps_encoding ps_plain = {
    .rows_per_run = 256,
    .rows_per_run_nulls = 192,
    .open = open,
    .skip = skip,
    .read = read_fixed,
    .read_strings = read_strings,
    .block = block_fixed,
    .block_strings = block_strings,
};
