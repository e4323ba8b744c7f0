/* plain.c - PLAIN values, and booleans in RLE (Encodings.md, "Plain"). */
#include "leaf.h"

static uint64_t page_byte(const ps_leaf *leaf, const uint8_t *p) {
    return (uint64_t)(p - leaf->page.body);
}

static ps_status short_page(const ps_leaf *leaf, int64_t n, ps_error *err) {
    return ps_fail(err, PS_TRUNCATED, page_byte(leaf, leaf->values) + leaf->values_length,
                   "page ends before value %lld", (long long)(leaf->value + n));
}

ps_status ps_plain_open(ps_leaf *leaf, ps_error *err) {
    if (leaf->page.encoding == PQ_RLE) { /* booleans, behind a length of four bytes */
        if (leaf->values_length < 4) return short_page(leaf, 1, err);
        size_t claim = ps_load32(leaf->values), room = leaf->values_length - 4;
        if (claim > room && !leaf->page.partial) return short_page(leaf, 1, err);
        return ps_rle_open(&leaf->codes, leaf->values + 4, claim < room ? claim : room, 1, err);
    }
    return PS_OK;
}

ps_status ps_plain_skip(ps_leaf *leaf, int64_t n, ps_error *err) {
    if (leaf->page.encoding == PQ_RLE) return ps_rle_skip(&leaf->codes, (uint64_t)n, err);
    if (leaf->spec.physical != PQ_BYTE_ARRAY) return PS_OK; /* addressed by leaf->value */
    const uint8_t *p = leaf->at, *end = leaf->values + leaf->values_length;
    for (int64_t i = 0; i < n; i++) {
        if ((size_t)(end - p) < 4) return short_page(leaf, i, err);
        size_t length = ps_load32(p);
        if (length > (size_t)(end - p) - 4) return short_page(leaf, i, err);
        p += 4 + length;
    }
    leaf->at = p;
    return PS_OK;
}

ps_status ps_plain_read(ps_leaf *leaf, uint8_t *out, int64_t n, ps_error *err) {
    if (leaf->spec.physical == PQ_BYTE_ARRAY) { /* decimals of varying length */
        const uint8_t *p = leaf->at, *end = leaf->values + leaf->values_length;
        for (int64_t i = 0; i < n; i++) {
            if ((size_t)(end - p) < 4) return short_page(leaf, i, err);
            size_t length = ps_load32(p);
            if (length > (size_t)(end - p) - 4) return short_page(leaf, i, err);
            if (!ps_convert_decimal(p + 4, length, out + (size_t)i * leaf->out_width,
                                    leaf->out_width)) {
                return ps_fail(err, PS_CORRUPT, page_byte(leaf, p),
                               "a decimal of %zu bytes does not fit %zu", length,
                               leaf->out_width);
            }
            p += 4 + length;
        }
        leaf->at = p;
        return PS_OK;
    }
    if (leaf->in_width == 0) return PS_OK; /* FIXED_LEN_BYTE_ARRAY(0) */
    size_t room = leaf->values_length / leaf->in_width;
    if ((uint64_t)(leaf->value + n) > room) return short_page(leaf, n, err);
    const uint8_t *in = leaf->values + (size_t)leaf->value * leaf->in_width;
    ps_status status = ps_convert_fixed(&leaf->spec, in, out, (size_t)n, err);
    if (status != PS_OK && err && err->offset != PS_NOWHERE) err->offset += page_byte(leaf, in);
    return status;
}

ps_status ps_plain_read_bits(ps_leaf *leaf, uint8_t *out, size_t out_bit, int64_t n,
                             ps_error *err) {
    if (leaf->page.encoding == PQ_RLE) {
        return ps_rle_read_bits(&leaf->codes, out, out_bit, (uint64_t)n, err);
    }
    if ((uint64_t)(leaf->value + n) / 8 + ((leaf->value + n) % 8 != 0) > leaf->values_length) {
        return short_page(leaf, n, err);
    }
    ps_bits_copy(out, out_bit, leaf->values, (size_t)leaf->value, (size_t)n);
    return PS_OK;
}

ps_status ps_plain_read_strings(ps_leaf *leaf, int64_t dense, int64_t n, int64_t *done,
                                ps_error *err) {
    const uint8_t *p = leaf->at, *end = leaf->values + leaf->values_length;
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
    leaf->at = p;
    leaf->out_values.size = (size_t)size;
    leaf->unchecked = true;
    *done = i;
    return status;
}

/* ---- blocks -------------------------------------------------------------------------------- */

/* The places of all values are written and the kept ones stay. */
static ps_status walk(ps_leaf *leaf, const uint8_t **found, const ps_block *block,
                      ps_error *err) {
    const uint8_t *p = leaf->at, *end = leaf->values + leaf->values_length;
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
    leaf->at = p;
    return PS_OK;
}

ps_status ps_plain_find_block(ps_leaf *leaf, const uint8_t **at, uint32_t *length,
                              const ps_block *block, ps_error *err) {
    PS_TRY(walk(leaf, at, block, err));
    for (size_t i = 0; i < block->kept; i++) {
        length[i] = ps_load32(at[i]);
        at[i] += 4;
    }
    leaf->unchecked = leaf->unchecked || block->kept;
    return PS_OK;
}

static ps_status decimals(ps_leaf *leaf, uint8_t *out, const ps_block *block, ps_error *err) {
    const uint8_t *found[PS_BLOCK];
    PS_TRY(walk(leaf, found, block, err));
    for (size_t i = 0; i < block->kept; i++) {
        const size_t length = ps_load32(found[i]);
        if (!ps_convert_decimal(found[i] + 4, length, out + i * leaf->out_width,
                                leaf->out_width))
            return ps_fail(err, PS_CORRUPT, page_byte(leaf, found[i]),
                           "a decimal of %zu bytes does not fit %zu", length, leaf->out_width);
    }
    return PS_OK;
}

ps_status ps_plain_read_block(ps_leaf *leaf, uint8_t *out, size_t room, const ps_block *block,
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
        ps_status status = ps_convert_fixed(&leaf->spec, in + i * width, out, 1, err);
        if (status != PS_OK) {
            if (err && err->offset != PS_NOWHERE)
                err->offset += page_byte(leaf, in + i * width);
            return status;
        }
        out += leaf->out_width;
    }
    return PS_OK;
}

ps_status ps_plain_read_block_bits(ps_leaf *leaf, uint64_t *out, const ps_block *block,
                                   ps_error *err) {
    uint64_t bits[PS_BLOCK_WORDS] = {0};
    if (leaf->page.encoding == PQ_RLE) {
        PS_TRY(ps_rle_read_bits(&leaf->codes, (uint8_t *)bits, 0, block->values, err));
    } else {
        const size_t last = (size_t)leaf->value + block->end;
        if (last / 8 + (last % 8 != 0) > leaf->values_length)
            return short_page(leaf, (int64_t)block->end, err);
        ps_words_load(bits, leaf->values, (size_t)leaf->value, block->end);
    }
    ps_words_compress(out, bits, block->mask, ps_words_for(block->values));
    return PS_OK;
}
