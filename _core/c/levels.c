/* levels.c - the levels of a page, in front of its values (README.md, "Nested Encoding" and "Nulls";
 * Encodings.md). Definition levels of a flat leaf become validity bits. */
#include "leaf.h"

#include "unpack.h"

static uint8_t reverse_bits(uint8_t v) {
    v = (uint8_t)((v >> 4) | (v << 4));
    v = (uint8_t)(((v & 0xcc) >> 2) | ((v & 0x33) << 2));
    return (uint8_t)(((v & 0xaa) >> 1) | ((v & 0x55) << 1));
}

/* Reads levels of one bit. Nothing is written where a single run says that every row has a value. */
static ps_status read_validity(ps_leaf *leaf, const uint8_t *data, size_t length,
                               int32_t encoding, ps_error *err) {
    const uint64_t n = (uint64_t)leaf->page.given.num_values;
    ps_rle rle;
    if (encoding == PQ_RLE) {
        uint64_t repeat = 0;
        PS_TRY(ps_rle_open(&rle, data, length, 1, err));
        PS_TRY(ps_rle_peek_repeat(&rle, &repeat, err));
        if (repeat >= n && rle.value == 1) return PS_OK;
        PS_TRY(ps_output_grow(leaf, &leaf->flat.validity, (size_t)(n / 8 + 8), err));
        PS_TRY(ps_rle_read_bits(&rle, leaf->flat.validity.data, 0, n, err));
    } else {
        PS_TRY(ps_output_grow(leaf, &leaf->flat.validity, (size_t)(n / 8 + 8), err));
        for (size_t i = 0; i < (size_t)((n + 7) / 8); i++) {
            leaf->flat.validity.data[i] = leaf->spec.lsb_levels ? data[i]
                                                                : reverse_bits(data[i]);
        }
    }
    leaf->page.n_values = (int64_t)ps_bits_count(leaf->flat.validity.data, 0, (size_t)n);
    leaf->flat.has_nulls = leaf->page.n_values != leaf->page.given.num_values;
    return PS_OK;
}

/* Splits levels of up to `max` off the front of the body. */
static ps_status split_v1(const ps_leaf *leaf, const char *kind, int32_t encoding, int max,
                          const uint8_t **body, size_t *length, ps_level_part *part,
                          ps_error *err) {
    const uint64_t at = ps_page_byte(leaf, *body);
    part->encoding = encoding;
    if (encoding == PQ_RLE) {
        if (*length < 4)
            return ps_fail(err, PS_TRUNCATED, at, "page ends before its %s levels", kind);
        part->length = ps_load32(*body);
        if (part->length > *length - 4) {
            return ps_fail(err, PS_TRUNCATED, at, "%s levels claim %zu bytes, the page has %zu",
                           kind, part->length, *length - 4);
        }
        *body += 4, *length -= 4;
    } else if (encoding == PQ_BIT_PACKED) {
        const uint64_t bits = (uint64_t)leaf->page.given.num_values *
                              (uint64_t)ps_bit_width((uint64_t)max);
        if (bits / 8 + (bits % 8 != 0) > *length)
            return ps_fail(err, PS_TRUNCATED, at, "page ends inside its %s levels", kind);
        part->length = (size_t)(bits / 8 + (bits % 8 != 0));
    } else {
        return ps_fail(err, PS_CORRUPT, PS_NOWHERE, "%s levels in encoding %d", kind,
                       (int)encoding);
    }
    part->data = *body;
    *body += part->length, *length -= part->length;
    return PS_OK;
}

ps_status ps_levels_split(ps_leaf *leaf, ps_level_part *rep, ps_level_part *def,
                          ps_error *err) {
    const ps_page *page = &leaf->page.given;
    const int32_t max_rep = leaf->spec.max_rep, max_def = leaf->spec.max_def;
    leaf->page.values = page->body;
    leaf->page.values_length = page->length;
    *rep = *def = (ps_level_part){0};
    if (page->version == 2) {
        *rep = (ps_level_part){page->levels, page->rep_length, PQ_RLE};
        *def = (ps_level_part){page->levels + page->rep_length, page->def_length, PQ_RLE};
    } else if (page->num_values) {
        if (max_rep)
            PS_TRY(split_v1(leaf, "repetition", page->rep_encoding, max_rep, &leaf->page.values,
                            &leaf->page.values_length, rep, err));
        if (max_def)
            PS_TRY(split_v1(leaf, "definition", page->def_encoding, max_def, &leaf->page.values,
                            &leaf->page.values_length, def, err));
    }
    /* the levels decide: writers have counted no nulls, or all, in the header */
    if (page->version == 2 && page->num_nulls > page->num_values) {
        return ps_fail(err, PS_CORRUPT, PS_NOWHERE,
                       "page header counts %lld nulls in %lld values",
                       (long long)page->num_nulls, (long long)page->num_values);
    }
    return PS_OK;
}

ps_status ps_leaf_levels(ps_leaf *leaf, ps_error *err) {
    const ps_page *page = &leaf->page.given;
    ps_level_part rep, def;
    leaf->flat.has_nulls = false;
    leaf->page.n_rows = leaf->page.n_values = page->num_values;
    if (page->version == 2 && page->num_rows >= 0 && page->num_rows != page->num_values) {
        return ps_fail(err, PS_CORRUPT, PS_NOWHERE,
                       "page of a flat column has %lld values in %lld rows",
                       (long long)page->num_values, (long long)page->num_rows);
    }
    PS_TRY(ps_levels_split(leaf, &rep, &def, err));
    if (leaf->spec.max_def && page->num_values)
        PS_TRY(read_validity(leaf, def.data, def.length, def.encoding, err));
    return PS_OK;
}

/* Reads levels of the deprecated encoding BIT_PACKED, which has no runs and begins at the high bit of each byte. */
static void read_packed(const ps_leaf *leaf, const uint8_t *data, int width, uint8_t *out,
                        size_t n) {
    for (size_t i = 0; i < n; i++) {
        unsigned v = 0;
        for (int k = 0; k < width; k++) {
            const uint64_t at = (uint64_t)i * (unsigned)width + (unsigned)k;
            const unsigned byte = data[at / 8];
            v = leaf->spec.lsb_levels ? v | (byte >> (at & 7) & 1) << k
                                      : v << 1 | (byte >> (7 - (at & 7)) & 1);
        }
        out[i] = (uint8_t)v;
    }
}

ps_status ps_levels_read(const ps_leaf *leaf, const ps_level_part *part, int max, uint8_t *out,
                         size_t n, ps_error *err) {
    enum { CHUNK = 1024 };
    uint32_t unpacked[CHUNK];
    const int width = ps_bit_width((uint64_t)max);
    const uint64_t at = leaf->page.given.version == 2 ? 0 : ps_page_byte(leaf, part->data);
    if (part->encoding == PQ_BIT_PACKED) {
        read_packed(leaf, part->data, width, out, n);
    } else {
        ps_rle rle;
        PS_TRY(ps_rle_open(&rle, part->data, part->length, width, err));
        for (size_t done = 0; done < n;) {
            uint64_t repeat;
            size_t take = n - done;
            ps_status status = ps_rle_peek_repeat(&rle, &repeat, err);
            if (status == PS_OK && repeat) {
                if (repeat < take) take = (size_t)repeat;
                memset(out + done, rle.width ? (int)(uint8_t)rle.value : 0, take);
                status = ps_rle_skip(&rle, take, err);
            } else if (status == PS_OK) {
                if (take > CHUNK) take = CHUNK;
                if (take > rle.left) take = (size_t)rle.left;
                status = ps_rle_read(&rle, unpacked, take, err);
                for (size_t i = 0; i < take; i++) out[done + i] = (uint8_t)unpacked[i];
            }
            if (status != PS_OK) {
                if (err && err->offset != PS_NOWHERE) err->offset += at;
                return status;
            }
            done += take;
        }
    }
    uint8_t greatest = 0;
    for (size_t i = 0; i < n; i++) greatest = out[i] > greatest ? out[i] : greatest;
    if (greatest > max)
        return ps_fail(err, PS_CORRUPT, at, "level %u is beyond %d", (unsigned)greatest, max);
    return PS_OK;
}
