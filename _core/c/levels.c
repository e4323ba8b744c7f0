/* levels.c - definition levels of a flat leaf become validity bits (README.md, "Nulls"; Encodings.md). */
#include "leaf.h"

static uint8_t reverse_bits(uint8_t v) {
    v = (uint8_t)((v >> 4) | (v << 4));
    v = (uint8_t)(((v & 0xcc) >> 2) | ((v & 0x33) << 2));
    return (uint8_t)(((v & 0xaa) >> 1) | ((v & 0x55) << 1));
}

/* Levels of one bit: nothing is written when a single run says that every row has a value. */
static ps_status read_validity(ps_leaf *leaf, const uint8_t *data, size_t length,
                               int32_t encoding, ps_error *err) {
    const uint64_t n = (uint64_t)leaf->page.num_values;
    ps_rle rle;
    if (encoding == PQ_RLE) {
        uint64_t repeat = 0;
        PS_TRY(ps_rle_open(&rle, data, length, 1, err));
        PS_TRY(ps_rle_peek_repeat(&rle, &repeat, err));
        if (repeat >= n && rle.value == 1) return PS_OK;
        PS_TRY(ps_leaf_room(leaf, &leaf->levels, (size_t)(n / 8 + 8), err));
        PS_TRY(ps_rle_read_bits(&rle, leaf->levels.data, 0, n, err));
    } else {
        PS_TRY(ps_leaf_room(leaf, &leaf->levels, (size_t)(n / 8 + 8), err));
        for (size_t i = 0; i < (size_t)((n + 7) / 8); i++) {
            leaf->levels.data[i] = leaf->spec.lsb_levels ? data[i] : reverse_bits(data[i]);
        }
    }
    leaf->n_values = (int64_t)ps_bits_count(leaf->levels.data, 0, (size_t)n);
    leaf->has_nulls = leaf->n_values != leaf->page.num_values;
    return PS_OK;
}

ps_status ps_leaf_levels(ps_leaf *leaf, ps_error *err) {
    const ps_page *page = &leaf->page;
    const uint8_t *body = page->body;
    size_t length = page->length;
    leaf->has_nulls = false;
    leaf->n_rows = leaf->n_values = page->num_values;
    if (page->version == 2 && page->num_rows >= 0 && page->num_rows != page->num_values) {
        return ps_fail(err, PS_CORRUPT, PS_NOWHERE,
                       "page of a flat column has %lld values in %lld rows",
                       (long long)page->num_values, (long long)page->num_rows);
    }
    if (leaf->spec.max_def && page->num_values) {
        const uint8_t *levels;
        size_t levels_length;
        int32_t encoding = page->version == 2 ? PQ_RLE : page->def_encoding;
        if (page->version == 2) {
            levels = page->levels + page->rep_length;
            levels_length = page->def_length;
        } else if (encoding == PQ_RLE) {
            if (length < 4)
                return ps_fail(err, PS_TRUNCATED, 0, "page ends before its definition levels");
            levels_length = ps_load32(body);
            if (levels_length > length - 4) {
                return ps_fail(err, PS_TRUNCATED, 0,
                               "definition levels claim %zu bytes, the page has %zu",
                               levels_length, length - 4);
            }
            levels = body + 4;
            body += 4 + levels_length, length -= 4 + levels_length;
        } else if (encoding == PQ_BIT_PACKED) {
            levels_length = (size_t)(page->num_values / 8) + (page->num_values % 8 != 0);
            if (levels_length > length) {
                return ps_fail(err, PS_TRUNCATED, 0, "page ends inside its definition levels");
            }
            levels = body;
            body += levels_length, length -= levels_length;
        } else {
            return ps_fail(err, PS_CORRUPT, PS_NOWHERE, "definition levels in encoding %d",
                           encoding);
        }
        PS_TRY(read_validity(leaf, levels, levels_length, encoding, err));
    }
    /* the levels decide: writers have counted no nulls, or all, in the header */
    if (page->version == 2 && page->num_nulls > page->num_values) {
        return ps_fail(err, PS_CORRUPT, PS_NOWHERE,
                       "page header counts %lld nulls in %lld values",
                       (long long)page->num_nulls, (long long)page->num_values);
    }
    leaf->values = body;
    leaf->values_length = length;
    return PS_OK;
}
