/* plain.c - PLAIN values, but for booleans (Encodings.md, "Plain"). */
#include "leaf.h"

ps_status ps_page_short(const ps_leaf *leaf, int64_t n, ps_error *err) {
    return ps_fail(err, PS_TRUNCATED,
                   ps_page_byte(leaf, leaf->page.values) + leaf->page.values_length,
                   "page ends before value %lld", (long long)(leaf->page.value + n));
}

static ps_status open(ps_leaf *leaf, ps_error *err) {
    (void)leaf, (void)err; /* a missing value is an error where a row needs it */
    return PS_OK;
}

static ps_status skip(ps_leaf *leaf, int64_t n, ps_error *err) {
    if (leaf->spec.physical != PQ_BYTE_ARRAY) return PS_OK; /* addressed by leaf->page.value */
    const uint8_t *p = leaf->page.place.at, *end = leaf->page.values + leaf->page.values_length;
    for (int64_t i = 0; i < n; i++) {
        if ((size_t)(end - p) < 4) return ps_page_short(leaf, i, err);
        size_t length = ps_load32(p);
        if (length > (size_t)(end - p) - 4) return ps_page_short(leaf, i, err);
        p += 4 + length;
    }
    leaf->page.place.at = p;
    return PS_OK;
}

static ps_status read_fixed(ps_leaf *leaf, uint8_t *out, int64_t n, ps_error *err) {
    if (leaf->spec.physical == PQ_BYTE_ARRAY) { /* decimals of varying length */
        const uint8_t *p = leaf->page.place.at,
                      *end = leaf->page.values + leaf->page.values_length;
        for (int64_t i = 0; i < n; i++) {
            if ((size_t)(end - p) < 4) return ps_page_short(leaf, i, err);
            size_t length = ps_load32(p);
            if (length > (size_t)(end - p) - 4) return ps_page_short(leaf, i, err);
            if (!ps_convert_decimal(p + 4, length, out + (size_t)i * leaf->out_width,
                                    leaf->out_width)) {
                return ps_fail(err, PS_CORRUPT, ps_page_byte(leaf, p),
                               "a decimal of %zu bytes does not fit %zu", length,
                               leaf->out_width);
            }
            p += 4 + length;
        }
        leaf->page.place.at = p;
        return PS_OK;
    }
    if (leaf->in_width == 0) return PS_OK; /* FIXED_LEN_BYTE_ARRAY(0) */
    size_t space = leaf->page.values_length / leaf->in_width;
    if ((uint64_t)(leaf->page.value + n) > space) return ps_page_short(leaf, n, err);
    const uint8_t *in = leaf->page.values + (size_t)leaf->page.value * leaf->in_width;
    return ps_page_error(leaf, in, ps_convert_fixed(&leaf->spec, in, out, (size_t)n, err), err);
}

/* With offsets of either width; a compiler makes a loop of each. */
PS_INLINE ps_status copy_strings(ps_leaf *leaf, bool wide, int64_t dense, int64_t n,
                                 int64_t *done, ps_error *err) {
    const uint8_t *p = leaf->page.place.at, *const end = leaf->page.values +
                                                         leaf->page.values_length;
    const size_t limit = wide ? (size_t)INT64_MAX : (size_t)INT32_MAX;
    uint8_t *out = leaf->out.values.data;
    uint32_t *narrow = (uint32_t *)(void *)leaf->out.offsets.data + dense;
    uint64_t *broad = (uint64_t *)(void *)leaf->out.offsets.data + dense;
    size_t size = wide ? broad[0] : narrow[0], space = leaf->out.values.capacity;
    ps_status status = PS_OK;
    int64_t i = 0;
    for (; i < n; i++) {
        const size_t left = (size_t)(end - p);
        size_t length;
        if (left < 4 || (length = ps_load32(p)) > left - 4) {
            status = ps_page_short(leaf, i, err);
            break;
        }
        if (length > limit - size) break;
        if (length > space - size) {
            leaf->out.values.size = size;
            status = ps_output_grow_strings(leaf, dense + i + 1, size + length, err);
            if (status != PS_OK) break;
            out = leaf->out.values.data;
            space = leaf->out.values.capacity;
        }
        ps_copy_string(out + size, space - size, p + 4, left - 4, length);
        size += length;
        p += 4 + length;
        if (wide) {
            broad[i + 1] = size;
        } else {
            narrow[i + 1] = (uint32_t)size;
        }
    }
    leaf->page.place.at = p;
    leaf->out.values.size = size;
    leaf->out.unchecked = true;
    *done = i;
    return status;
}

static ps_status place_strings(ps_leaf *leaf, int64_t dense, int64_t n, ps_error *err) {
    const uint8_t *p = leaf->page.place.at, *const data = leaf->page.values,
                  *const end = data + leaf->page.values_length;
    ps_slice *out = ps_filter_slice(leaf, dense);
    for (int64_t i = 0; i < n; i++) {
        const size_t left = (size_t)(end - p);
        size_t length;
        if (left < 4 || (length = ps_load32(p)) > left - 4) return ps_page_short(leaf, i, err);
        out[i] = (ps_slice){(uint32_t)(p - data) + 4, (uint32_t)length};
        p += 4 + length;
    }
    leaf->page.place.at = p;
    leaf->out.unchecked = true;
    return PS_OK;
}

static ps_status read_strings(ps_leaf *leaf, int64_t dense, int64_t n, int64_t *done,
                              ps_error *err) {
    *done = n;
    if (ps_filter_in_place(leaf)) return place_strings(leaf, dense, n, err);
    if (leaf->views) return ps_views_read_plain(leaf, dense, n, err);
    return leaf->spec.kind == PS_BYTES ? copy_strings(leaf, false, dense, n, done, err)
                                       : copy_strings(leaf, true, dense, n, done, err);
}

/* ---- blocks -------------------------------------------------------------------------------- */

/* The places of all values are written and the kept ones stay. */
static ps_status walk(ps_leaf *leaf, const uint8_t **found, const ps_block *block,
                      ps_error *err) {
    const uint8_t *p = leaf->page.place.at, *end = leaf->page.values + leaf->page.values_length;
    const uint8_t *slots[PS_BLOCK + 1];
    size_t kept = 0;
    for (size_t i = 0; i < block->values; i++) {
        if ((size_t)(end - p) < 4) return ps_page_short(leaf, (int64_t)i, err);
        const size_t length = ps_load32(p);
        if (length > (size_t)(end - p) - 4) return ps_page_short(leaf, (int64_t)i, err);
        slots[kept] = p;
        kept += block->mask[i / 64] >> (i & 63) & 1;
        p += 4 + length;
    }
    memcpy(found, slots, kept * sizeof *slots);
    leaf->page.place.at = p;
    return PS_OK;
}

static ps_status block_strings(ps_leaf *leaf, const ps_block *block, bool *fit, ps_error *err) {
    const uint8_t *at[PS_BLOCK];
    uint32_t length[PS_BLOCK];
    PS_TRY(walk(leaf, at, block, err));
    leaf->out.unchecked = leaf->out.unchecked || block->kept;
    if (ps_filter_in_place(leaf)) {
        ps_slice *out = ps_filter_slice(leaf, leaf->out.rows);
        for (size_t i = 0; i < block->kept; i++)
            out[i] = (ps_slice){(uint32_t)(at[i] - leaf->page.values) + 4, ps_load32(at[i])};
        *fit = true;
        return PS_OK;
    }
    for (size_t i = 0; i < block->kept; i++) {
        length[i] = ps_load32(at[i]);
        at[i] += 4;
    }
    return ps_output_add_strings(leaf, at, length, block->kept,
                                 leaf->page.values + leaf->page.values_length, fit, err);
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

static ps_status block_fixed(ps_leaf *leaf, uint8_t *out, size_t space, const ps_block *block,
                             ps_error *err) {
    if (leaf->spec.physical == PQ_BYTE_ARRAY) return decimals(leaf, out, block, err);
    const size_t width = leaf->in_width;
    if (width == 0 || block->kept == 0) return PS_OK;
    if (block->end > leaf->page.values_length / width ||
        (size_t)leaf->page.value > leaf->page.values_length / width - block->end)
        return ps_page_short(leaf, (int64_t)block->end, err);
    const uint8_t *in = leaf->page.values + (size_t)leaf->page.value * width;
    if (leaf->copies) {
        ps_compact(out, space, in, width, block->mask, block->end);
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
