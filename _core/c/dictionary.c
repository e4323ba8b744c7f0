/* dictionary.c - dictionary pages and the codes that point into them (Encodings.md, "Dictionary Encoding"). */
#include "leaf.h"
#include "utf8.h"

enum {
    BATCH = 1024, /* codes unpacked at a time: stays in the first-level cache */
    FEW = 4       /* entries to a row: it is cheaper to convert them one by one */
};

void ps_dictionary_clear(ps_dictionary *dictionary) {
    ps_buffer_free(dictionary->slices.data, dictionary->slices.capacity);
    ps_buffer_free(dictionary->values.data, dictionary->values.capacity);
    *dictionary = (ps_dictionary){0};
}

void ps_leaf_forget_dictionary(ps_leaf *leaf) {
    if (leaf->page.encoding == &ps_dictionary_codes) ps_leaf_drop_page(leaf);
    ps_dictionary_clear(&leaf->dictionary);
}

ps_status ps_leaf_dictionary_fits(const ps_leaf *leaf, size_t length, int64_t n,
                                  ps_error *err) {
    if (leaf->spec.kind == PS_BOOL) {
        return ps_fail(err, PS_CORRUPT, PS_NOWHERE,
                       "a BOOLEAN column cannot have a dictionary");
    }
    if (n < 0 || n > INT32_MAX || length > UINT32_MAX) {
        return ps_fail(err, PS_CORRUPT, PS_NOWHERE, "dictionary page claims %lld values",
                       (long long)n);
    }
    const size_t least = leaf->spec.physical == PQ_BYTE_ARRAY ? 4 : leaf->in_width;
    if (least && (uint64_t)n > length / least) {
        return ps_fail(err, PS_TRUNCATED, length,
                       "dictionary page of %zu bytes cannot hold %lld values", length,
                       (long long)n);
    }
    return PS_OK;
}

/* Reads the page up to byte `reach`, where entry `i` ends, or up to `likely` where that is further. */
static ps_status bring(ps_dictionary *d, uint32_t i, size_t reach, size_t likely,
                       ps_error *err) {
    ps_reader *s = d->reader;
    if (reach <= s->have) return PS_OK;
    if (reach > s->size || !s->more) {
        return ps_fail(err, PS_TRUNCATED, d->at, "dictionary page ends inside value %u of %u",
                       i, d->n);
    }
    PS_TRY(s->more(s, reach < likely ? likely : reach, err));
    if (reach <= s->have) return PS_OK;
    return ps_fail(err, PS_CORRUPT, s->have, "dictionary page of %zu bytes ends", s->size);
}

/* Reads the length and the bytes of byte string `i`, the next one. */
static ps_status bring_string(ps_dictionary *d, uint32_t i, size_t likely, ps_error *err) {
    const size_t at = d->at + 4;
    PS_TRY(bring(d, i, at, likely, err));
    const size_t length = ps_load32(d->reader->data + d->at);
    return bring(d, i, length <= d->reader->size - at ? at + length : SIZE_MAX, likely, err);
}

/* Makes entries before `stop` ready where the values are byte strings. */
static ps_status strings_ready(ps_leaf *leaf, uint32_t stop, ps_error *err) {
    ps_dictionary *d = &leaf->dictionary;
    /* entries of average length end here, or a little before */
    const double part = (double)stop / d->n * 1.0625 * (double)d->reader->size + 256;
    const size_t likely = part < (double)d->reader->size ? (size_t)part : d->reader->size;
    ps_slice *slices = (ps_slice *)(void *)d->slices.data;
    const uint8_t *data = d->reader->data;
    size_t at = d->at, have = d->reader->have, length;
    for (uint32_t i = d->ready; i < stop; i++) {
        if (have - at < 4 || (length = ps_load32(data + at)) > have - at - 4) {
            d->ready = i;
            d->at = at;
            PS_TRY(bring_string(d, i, likely, err));
            have = d->reader->have;
            length = ps_load32(data + at);
        }
        at += 4;
        if (leaf->bytes) {
            slices[i] = (ps_slice){.offset = (uint32_t)at, .length = (uint32_t)length};
            if (d->checked && leaf->spec.utf8 &&
                ps_utf8_scan(data + at, length) == PS_UTF8_BAD) {
                d->checked = false; /* a fault only if a row uses it */
            }
            if (leaf->views) {
                d->has_long |= length > PS_VIEW_SHORT;
                ps_views_entry(d->values.data + 16 * (size_t)i, data + at, length);
            }
        } else if (!ps_convert_decimal(data + at, length,
                                       d->values.data + (size_t)i * leaf->out_width,
                                       leaf->out_width)) {
            return ps_fail(
                err, PS_CORRUPT, at - 4,
                "entry %u of the dictionary: a decimal of %zu bytes does not fit %zu", i,
                length, leaf->out_width);
        }
        at += length;
    }
    d->ready = stop;
    d->at = at;
    return PS_OK;
}

/* Makes entries before `stop` ready, and maybe more. */
static ps_status bring_entries(ps_leaf *leaf, uint32_t stop, ps_error *err) {
    ps_dictionary *d = &leaf->dictionary;
    const ps_reader *s = d->reader;
    if (leaf->spec.physical == PQ_BYTE_ARRAY) return strings_ready(leaf, stop, err);
    if (d->direct) {
        const size_t width = leaf->in_width;
        PS_TRY(bring(d, stop - 1, stop * width, 0, err));
        d->ready = width && s->have / width < d->n ? (uint32_t)(s->have / width) : d->n;
        return PS_OK;
    }
    PS_TRY(bring(d, d->n - 1, d->n * leaf->in_width, 0, err));
    PS_TRY(ps_convert_fixed(&leaf->spec, s->data, d->values.data, d->n, err));
    d->ready = d->n;
    return PS_OK;
}

/* Makes entries before `stop` ready to be taken. */
static ps_status make_ready(ps_leaf *leaf, uint32_t stop, ps_error *err) {
    ps_dictionary *d = &leaf->dictionary;
    const size_t before = d->ready;
    PS_TRY(bring_entries(leaf, stop, err));
    if (leaf->spec.range && leaf->out_width && d->checked && d->ready > before) {
        const uint8_t *from = d->direct ? d->reader->data : d->values.data;
        d->checked = ps_convert_beyond(&leaf->spec, from + before * leaf->out_width, NULL,
                                       (int64_t)(d->ready - before)) < 0;
    }
    return PS_OK;
}

ps_status ps_leaf_dictionary_from(ps_leaf *leaf, ps_reader *reader, int64_t n, ps_error *err) {
    ps_dictionary *d = &leaf->dictionary;
    d->loaded = false;
    if (leaf->page.encoding == &ps_dictionary_codes) ps_leaf_drop_page(leaf);
    PS_TRY(ps_leaf_dictionary_fits(leaf, reader->size, n, err));
    const bool few = leaf->out.begun && !leaf->nest && leaf->out.max_rows < n;
    d->n = (uint32_t)n;
    d->ready = 0;
    d->at = 0;
    d->reader = reader;
    d->checked = !few; /* of few rows it is cheaper to check their values */
    d->has_long = d->placed = false;
    d->direct = leaf->spec.physical != PQ_BYTE_ARRAY &&
                (leaf->copies || (few && leaf->out.max_rows < n / FEW));
    if (leaf->bytes) {
        PS_TRY(ps_output_grow(leaf, &d->slices, (size_t)n * sizeof(ps_slice), err));
        if (leaf->views) PS_TRY(ps_output_grow(leaf, &d->values, (size_t)n * 16, err));
    } else if (!d->direct) {
        PS_TRY(ps_output_grow(leaf, &d->values, (size_t)n * leaf->out_width, err));
    }
    d->loaded = true;
    return PS_OK;
}

ps_status ps_leaf_dictionary(ps_leaf *leaf, const uint8_t *data, size_t length, int64_t n,
                             ps_error *err) {
    ps_dictionary *d = &leaf->dictionary;
    d->whole = (ps_reader){.data = data, .size = length, .have = length};
    PS_TRY(ps_leaf_dictionary_from(leaf, &d->whole, n, err));
    const ps_status status = make_ready(leaf, d->n, err);
    d->loaded = status == PS_OK;
    return status;
}

ps_status ps_leaf_passes(ps_leaf *leaf, const uint8_t *passes, int64_t n, ps_error *err) {
    ps_dictionary *d = &leaf->dictionary;
    if (!leaf->spec.passes || n < 0 || n > INT32_MAX)
        return ps_fail(err, PS_INVALID, PS_NOWHERE, "%lld bytes for codes", (long long)n);
    d->loaded = d->checked = true;
    if (leaf->page.encoding == &ps_dictionary_codes) ps_leaf_drop_page(leaf);
    d->n = d->ready = (uint32_t)n;
    d->passes = passes;
    return PS_OK;
}

static ps_status open(ps_leaf *leaf, ps_error *err) {
    if (!leaf->dictionary.loaded) {
        return ps_fail(err, PS_CORRUPT, PS_NOWHERE,
                       "dictionary-encoded page in a chunk without a dictionary page");
    }
    if (leaf->page.values_length == 0) { /* a page of nulls may leave out even the bit width */
        return ps_rle_open(&leaf->page.place.codes, leaf->page.values, 0, 1, err);
    }
    return ps_rle_open(&leaf->page.place.codes, leaf->page.values + 1,
                       leaf->page.values_length - 1, leaf->page.values[0], err);
}

static ps_status skip(ps_leaf *leaf, int64_t n, ps_error *err) {
    const uint8_t *start = leaf->page.place.codes.start;
    return ps_page_error(leaf, start, ps_rle_skip(&leaf->page.place.codes, (uint64_t)n, err),
                         err);
}

/* Checks that each code is one of the dictionary, and makes its entry ready. `at`: byte of the page, for errors. */
static ps_status check_codes(ps_leaf *leaf, const uint32_t *codes, size_t n, uint64_t at,
                             ps_error *err) {
    const ps_dictionary *d = &leaf->dictionary;
    const uint32_t size = d->ready, last = size - 1;
    uint32_t seen = 0, greatest = 0;
    /* the top bit shows a code that is beyond `last`, or so great itself that the difference wraps around */
    for (size_t i = 0; i < n; i++) seen |= codes[i] | (last - codes[i]);
    if (size && size <= INT32_MAX && !(seen >> 31)) return PS_OK;
    for (size_t i = 0; i < n; i++) greatest = codes[i] > greatest ? codes[i] : greatest;
    if (n && greatest >= d->n) {
        return ps_fail(err, PS_CORRUPT, at, "dictionary index %u >= %u", (unsigned)greatest,
                       (unsigned)d->n);
    }
    if (n == 0 || greatest < d->ready) return PS_OK;
    const ps_status status = make_ready(leaf, greatest + 1, err);
    if (status != PS_OK && err)
        err->offset = PS_NOWHERE; /* the byte is in the dictionary page */
    return status;
}

/* Reads up to BATCH codes that rows hold, and checks them. */
static ps_status read_codes(ps_leaf *leaf, uint32_t *codes, size_t n, ps_error *err) {
    const uint8_t *start = leaf->page.place.codes.start;
    PS_TRY(
        ps_page_error(leaf, start, ps_rle_read(&leaf->page.place.codes, codes, n, err), err));
    return check_codes(leaf, codes, n, ps_page_byte(leaf, start), err);
}

/* Reads the codes of a block, and keeps those of chosen rows. */
static ps_status read_block(ps_leaf *leaf, uint32_t *kept, const ps_block *block,
                            ps_error *err) {
    uint32_t codes[PS_BLOCK];
    const uint8_t *start = leaf->page.place.codes.start;
    ps_status status = block->kept
                           ? ps_rle_read(&leaf->page.place.codes, codes, block->values, err)
                           : ps_rle_skip(&leaf->page.place.codes, block->values, err);
    PS_TRY(ps_page_error(leaf, start, status, err));
    ps_compact((uint8_t *)kept, PS_BLOCK, (const uint8_t *)codes, sizeof *codes, block->mask,
               block->end);
    return check_codes(leaf, kept, block->kept, ps_page_byte(leaf, start), err);
}

/* The message names the entry; no byte of the page is at fault. */
static ps_status entry_error(ps_status status, uint32_t code, ps_error *err) {
    if (!err) return status;
    const ps_error why = *err;
    return ps_fail(err, status, PS_NOWHERE, "entry %u of the dictionary: %s", (unsigned)code,
                   why.message);
}

#define GATHER(bytes)                                                                          \
    for (size_t i = 0; i < n; i++)                                                             \
        memcpy(out + i * (bytes), from + (size_t)codes[i] * (bytes), (bytes));                 \
    break;

static ps_status gather(const ps_leaf *leaf, const uint32_t *codes, uint8_t *out, size_t n,
                        ps_error *err) {
    const ps_dictionary *d = &leaf->dictionary;
    const uint8_t *from = d->direct ? d->reader->data : d->values.data;
    const size_t width = leaf->out_width;
    if (d->direct && !leaf->copies) {
        for (size_t i = 0; i < n; i++) {
            const ps_status status = ps_convert_fixed(
                &leaf->spec, from + codes[i] * leaf->in_width, out + i * width, 1, err);
            if (status != PS_OK) return entry_error(status, codes[i], err);
        }
        return PS_OK;
    }
    switch (width) {
    case 0: break;
    case 1: GATHER(1)
    case 2: GATHER(2)
    case 4: GATHER(4)
    case 8: GATHER(8)
    case 16: GATHER(16)
    default: GATHER(width)
    }
    return PS_OK;
}

static ps_status read_fixed(ps_leaf *leaf, uint8_t *out, int64_t n, ps_error *err) {
    uint32_t codes[BATCH];
    while (n) {
        size_t batch = n < BATCH ? (size_t)n : BATCH;
        PS_TRY(read_codes(leaf, codes, batch, err));
        PS_TRY(gather(leaf, codes, out, batch, err));
        out += batch * leaf->out_width, n -= (int64_t)batch;
    }
    return PS_OK;
}

/* Copies n entries to the output, which has space for them, and returns where the last one ends. Offsets of either width begin
 * with that of the first entry. The compiler makes a loop of each width. */
PS_INLINE size_t copy_entries(const ps_leaf *leaf, bool wide, int64_t dense,
                              const uint32_t *codes, size_t n) {
    const ps_dictionary *d = &leaf->dictionary;
    const ps_slice *slices = (const ps_slice *)(const void *)d->slices.data;
    const uint8_t *from = d->reader->data;
    const size_t have = d->reader->have, space = leaf->out.values.capacity;
    uint8_t *out = leaf->out.values.data;
    uint32_t *narrow = (uint32_t *)(void *)leaf->out.offsets.data + dense;
    uint64_t *broad = (uint64_t *)(void *)leaf->out.offsets.data + dense;
    size_t size = wide ? broad[0] : narrow[0];
    for (size_t i = 0; i < n; i++) {
        const ps_slice slice = slices[codes[i]];
        ps_copy_string(out + size, space - size, from + slice.offset, have - slice.offset,
                       slice.length);
        size += slice.length;
        if (wide) {
            broad[i + 1] = size;
        } else {
            narrow[i + 1] = (uint32_t)size;
        }
    }
    return size;
}

static ps_status read_views(ps_leaf *leaf, int64_t dense, int64_t n, int64_t *done,
                            ps_error *err) {
    uint32_t codes[BATCH];
    uint8_t *out = leaf->out.offsets.data + 16 * (size_t)dense;
    for (*done = 0; *done < n;) {
        const size_t batch = n - *done < BATCH ? (size_t)(n - *done) : BATCH;
        PS_TRY(read_codes(leaf, codes, batch, err));
        if (!leaf->dictionary.checked) leaf->out.unchecked = true;
        PS_TRY(ps_views_gather(leaf, codes, out, batch, err));
        out += 16 * batch, *done += (int64_t)batch;
    }
    return PS_OK;
}

static ps_status read_strings(ps_leaf *leaf, int64_t dense, int64_t n, int64_t *done,
                              ps_error *err) {
    uint32_t codes[BATCH];
    if (leaf->views) return read_views(leaf, dense, n, done, err);
    const ps_dictionary *d = &leaf->dictionary;
    const ps_slice *slices = (const ps_slice *)(const void *)d->slices.data;
    const bool wide = leaf->spec.kind != PS_BYTES;
    const int64_t limit = ps_offset_limit(leaf);
    int64_t size = ps_offset_get(leaf, dense);
    *done = 0;
    while (*done < n) {
        const ps_rle before = leaf->page.place.codes;
        const int64_t at = dense + *done;
        size_t batch = n - *done < BATCH ? (size_t)(n - *done) : BATCH;
        PS_TRY(read_codes(leaf, codes, batch, err));
        if (!d->checked) leaf->out.unchecked = true;
        int64_t sum = 0;
        for (size_t i = 0; i < batch; i++) sum += slices[codes[i]].length;
        bool full = sum > limit - size;
        if (full) { /* keep the codes that still fit */
            size_t fit = 0;
            for (sum = 0; sum + slices[codes[fit]].length <= limit - size; fit++)
                sum += slices[codes[fit]].length;
            leaf->page.place.codes = before;
            PS_TRY(ps_rle_skip(&leaf->page.place.codes, fit, err));
            batch = fit;
        }
        leaf->out.values.size = (size_t)size;
        PS_TRY(ps_output_grow_strings(leaf, at + (int64_t)batch, (size_t)(size + sum), err));
        size = (int64_t)(wide ? copy_entries(leaf, true, at, codes, batch)
                              : copy_entries(leaf, false, at, codes, batch));
        *done += (int64_t)batch;
        leaf->out.values.size = (size_t)size;
        if (full) break;
    }
    return PS_OK;
}

static ps_status block_fixed(ps_leaf *leaf, uint8_t *out, size_t space, const ps_block *block,
                             ps_error *err) {
    uint32_t codes[PS_BLOCK];
    (void)space;
    PS_TRY(read_block(leaf, codes, block, err));
    return gather(leaf, codes, out, block->kept, err);
}

static ps_status block_strings(ps_leaf *leaf, const ps_block *block, bool *fit, ps_error *err) {
    uint32_t codes[PS_BLOCK], length[PS_BLOCK];
    const uint8_t *at[PS_BLOCK];
    const ps_dictionary *d = &leaf->dictionary;
    const ps_slice *slices = (const ps_slice *)(const void *)d->slices.data;
    PS_TRY(read_block(leaf, codes, block, err));
    if (leaf->views) {
        if (!d->checked) leaf->out.unchecked = true;
        return ps_views_gather(leaf, codes,
                               leaf->out.offsets.data + 16 * (size_t)leaf->out.rows,
                               block->kept, err);
    }
    for (size_t i = 0; i < block->kept; i++) {
        const ps_slice slice = slices[codes[i]];
        at[i] = d->reader->data + slice.offset;
        length[i] = slice.length;
    }
    if (!d->checked) leaf->out.unchecked = true;
    return ps_output_add_strings(leaf, at, length, block->kept,
                                 d->reader->data + d->reader->have, fit, err);
}

/* The bits of n codes, in words; those behind the last are zero. */
static void look_up(const ps_leaf *leaf, const uint32_t *codes, size_t n, uint64_t *words) {
    const uint8_t *passes = leaf->dictionary.passes;
    for (size_t at = 0; at < n; at += 64) {
        const size_t count = n - at < 64 ? n - at : 64;
        uint8_t flags[64];
        uint64_t word = 0;
        if (count < 64) memset(flags, 0, sizeof flags);
        for (size_t i = 0; i < count; i++) flags[i] = passes[codes[at + i]] & 1;
        for (size_t i = 0; i < 8; i++)
            word |= ps_bytes_to_bits(ps_load64(flags + 8 * i)) << 8 * i;
        words[at / 64] = word;
    }
}

/* The bits of codes. A run of one code is one bit, many times. */
static ps_status read_bits(ps_leaf *leaf, uint8_t *out, size_t out_bit, int64_t n,
                           ps_error *err) {
    ps_rle *place = &leaf->page.place.codes;
    const uint8_t *start = place->start;
    uint32_t codes[BATCH];
    uint64_t words[BATCH / 64];
    while (n) {
        uint64_t repeated;
        PS_TRY(ps_page_error(leaf, start, ps_rle_peek_repeat(place, &repeated, err), err));
        if (repeated) {
            const int64_t take = repeated < (uint64_t)n ? (int64_t)repeated : n;
            PS_TRY(read_codes(leaf, codes, 1, err));
            PS_TRY(skip(leaf, take - 1, err));
            ps_bits_fill(out, out_bit, (size_t)take, leaf->dictionary.passes[*codes] & 1);
            out_bit += (size_t)take, n -= take;
            continue;
        }
        const size_t batch = n < BATCH ? (size_t)n : BATCH;
        PS_TRY(read_codes(leaf, codes, batch, err));
        look_up(leaf, codes, batch, words);
        ps_bits_copy(out, out_bit, (const uint8_t *)words, 0, batch);
        out_bit += batch, n -= (int64_t)batch;
    }
    return PS_OK;
}

static ps_status block_bits(ps_leaf *leaf, uint64_t *out, const ps_block *block,
                            ps_error *err) {
    uint32_t codes[PS_BLOCK];
    PS_TRY(read_block(leaf, codes, block, err));
    look_up(leaf, codes, block->kept, out);
    return PS_OK;
}

const ps_encoding ps_dictionary_codes = {
    .rows_per_run = 64,
    .rows_per_run_nulls = 64,
    .open = open,
    .skip = skip,
    .read = read_fixed,
    .read_bits = read_bits,
    .read_strings = read_strings,
    .block = block_fixed,
    .block_bits = block_bits,
    .block_strings = block_strings,
};
