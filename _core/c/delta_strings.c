/* delta_strings.c - DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY: byte strings whose lengths, and in the
 * latter whose bytes shared with the one before, stand in delta streams in front of all their other bytes
 * (Encodings.md, "Delta-length byte array" and "Delta Strings"). */
#include "leaf.h"

/* A batch of values: bytes that each shares with the value before, bytes that follow these. */
typedef struct ps_batch {
    size_t n;
    uint32_t shared[PS_BLOCK], own[PS_BLOCK];
    uint32_t most; /* bytes of the longest value */
} ps_batch;

static bool shares(const ps_leaf *leaf) {
    return leaf->page.given.encoding == PQ_DELTA_BYTE_ARRAY;
}

static size_t bytes_left(const ps_leaf *leaf) {
    return (size_t)(leaf->page.values + leaf->page.values_length - leaf->page.place.at);
}

static ps_status open_stream(ps_leaf *leaf, ps_delta *stream, ps_error *err) {
    ps_status status = ps_delta_open(stream, leaf->page.place.at, bytes_left(leaf), err);
    if (status == PS_OK) status = ps_delta_end(stream, &leaf->page.place.at, err);
    return ps_page_error(leaf, stream->start, status, err);
}

static ps_status open(ps_leaf *leaf, ps_error *err) {
    if (leaf->page.values_length >
        INT32_MAX) /* what the format can say; lengths then fit 32 bits */
        return ps_fail(err, PS_CORRUPT, PS_NOWHERE, "a page of %zu bytes",
                       leaf->page.values_length);
    if (leaf->page.n_values == 0 && leaf->page.values_length == 0) return PS_OK;
    leaf->page.last.size = 0;
    if (shares(leaf)) PS_TRY(open_stream(leaf, &leaf->page.place.prefixes, err));
    return open_stream(leaf, &leaf->page.place.numbers, err);
}

/* The lengths of the next n <= PS_BLOCK values, proven to lie in the page and to share no more bytes than
 * there are. */
static ps_status next(ps_leaf *leaf, ps_batch *batch, size_t n, ps_error *err) {
    ps_place *place = &leaf->page.place;
    batch->n = n;
    PS_TRY(ps_page_error(leaf, place->numbers.start,
                         ps_delta_read32(&place->numbers, batch->own, n, err), err));
    uint64_t sum = 0;
    uint32_t most = 0;
    for (size_t i = 0; i < n; i++) sum += batch->own[i];
    if (sum > bytes_left(leaf)) { /* a negative length is one beyond all pages */
        return ps_fail(err, PS_TRUNCATED, ps_page_byte(leaf, place->at),
                       "the next %zu byte strings have %llu bytes, the page has %zu", n,
                       (unsigned long long)sum, bytes_left(leaf));
    }
    if (shares(leaf)) {
        PS_TRY(ps_page_error(leaf, place->prefixes.start,
                             ps_delta_read32(&place->prefixes, batch->shared, n, err), err));
        size_t before = leaf->page.last.size, at = 0;
        for (size_t i = 0; i < n; i++) {
            if (batch->shared[i] > before) {
                return ps_fail(err, PS_CORRUPT, ps_page_byte(leaf, place->at) + at,
                               "a byte string shares %u bytes with one of %zu",
                               (unsigned)batch->shared[i], before);
            }
            before = batch->shared[i] + batch->own[i];
            at += batch->own[i];
            if (before > most) most = (uint32_t)before;
        }
    }
    batch->most = most;
    return PS_OK;
}

/* ---- the value read last ------------------------------------------------------------------- */

enum { SLACK = 32 }; /* bytes behind a value that ps_copy_string may overwrite */

static ps_status last_room(ps_leaf *leaf, size_t size, ps_error *err) {
    return ps_grow_reserve(&leaf->page.last, size + SLACK, SIZE_MAX, err);
}

/* leaf->page.last, which is the value before number `from` of the batch, becomes the one before number `to`, whose
 * own bytes end at `end`. From the back, as only those bytes count that no later value replaces. */
static void pass(ps_leaf *leaf, const ps_batch *batch, size_t from, size_t to,
                 const uint8_t *end) {
    uint8_t *last = leaf->page.last.data;
    uint32_t need = UINT32_MAX;
    if (from == to) return;
    leaf->page.last.size = batch->shared[to - 1] + batch->own[to - 1];
    for (size_t i = to; i-- > from && need;) {
        const uint32_t shared = batch->shared[i];
        end -= batch->own[i];
        if (shared >= need) continue;
        const uint32_t wanted = need - shared;
        memcpy(last + shared, end, batch->own[i] < wanted ? batch->own[i] : wanted);
        need = shared;
    }
}

static ps_status skip(ps_leaf *leaf, int64_t n, ps_error *err) {
    ps_batch batch;
    while (n) {
        PS_TRY(next(leaf, &batch, n < PS_BLOCK ? (size_t)n : PS_BLOCK, err));
        for (size_t i = 0; i < batch.n; i++) leaf->page.place.at += batch.own[i];
        if (shares(leaf)) {
            PS_TRY(last_room(leaf, batch.most, err));
            pass(leaf, &batch, 0, batch.n, leaf->page.place.at);
        }
        n -= (int64_t)batch.n;
    }
    return PS_OK;
}

/* ---- byte strings -------------------------------------------------------------------------- */

/* The offsets of n byte strings after `dense` of them, of which the last ends at `size`. */
static void add_offsets(ps_leaf *leaf, int64_t dense, const uint32_t *length, size_t n,
                        int64_t size) {
    uint8_t *out = leaf->out.offsets.data;
    if (leaf->spec.kind == PS_BYTES) {
        uint32_t *offset = (uint32_t *)(void *)out + dense + 1, at = (uint32_t)size;
        for (size_t i = 0; i < n; i++) offset[i] = at += length[i];
    } else {
        int64_t *offset = (int64_t *)(void *)out + dense + 1;
        for (size_t i = 0; i < n; i++) offset[i] = size += length[i];
    }
}

/* The bytes of `fit` values, which are all or as many as do not overflow the offsets. */
static uint64_t sum_fitting(const ps_batch *batch, bool shared, uint64_t space, size_t *fit) {
    uint64_t sum = 0;
    for (size_t i = 0; i < batch->n; i++)
        sum += (uint64_t)batch->own[i] + (shared ? batch->shared[i] : 0);
    *fit = batch->n;
    if (sum <= space) return sum;
    sum = 0;
    for (*fit = 0;; ++*fit) {
        const uint64_t length = (uint64_t)batch->own[*fit] + (shared ? batch->shared[*fit] : 0);
        if (length > space - sum) return sum;
        sum += length;
    }
}

/* Reads the next batch of at most n values behind `rows` values, as many as the offsets can count, and reserves space for
 * its bytes at `size`. *full: the offsets cut it short. */
static ps_status next_fitting(ps_leaf *leaf, ps_batch *batch, int64_t rows, int64_t n,
                              int64_t size, uint64_t *sum, bool *full, ps_error *err) {
    const ps_place before = leaf->page.place;
    size_t fit;
    PS_TRY(next(leaf, batch, n < PS_BLOCK ? (size_t)n : PS_BLOCK, err));
    *sum = sum_fitting(batch, shares(leaf), (uint64_t)(ps_offset_limit(leaf) - size), &fit);
    *full = fit < batch->n;
    if (*full) {
        leaf->page.place = before;
        PS_TRY(next(leaf, batch, fit, err));
    }
    leaf->out.values.size = (size_t)size;
    return ps_output_grow_strings(leaf, rows + (int64_t)batch->n, (size_t)size + (size_t)*sum,
                                  err);
}

/* Of a batch the values of the mask, or all where it is NULL, as views from `view` on. */
static ps_status add_views(ps_leaf *leaf, const ps_batch *batch, const uint64_t *mask,
                           uint8_t *view, ps_error *err) {
    const bool shared = shares(leaf);
    size_t passed = 0;
    if (shared) PS_TRY(last_room(leaf, batch->most, err));
    for (size_t i = 0; i < batch->n; i++) {
        const uint8_t *own = leaf->page.place.at;
        size_t length = batch->own[i], space = bytes_left(leaf);
        leaf->page.place.at += length;
        if (mask && !(mask[i / 64] >> (i & 63) & 1)) continue;
        if (shared) {
            pass(leaf, batch, passed, i + 1, leaf->page.place.at);
            passed = i + 1;
            own = leaf->page.last.data, length = leaf->page.last.size;
            space = leaf->page.last.capacity;
        }
        PS_TRY(ps_views_put(leaf, view, own, space, length, err));
        view += 16;
    }
    if (shared) pass(leaf, batch, passed, batch->n, leaf->page.place.at);
    return PS_OK;
}

static ps_status read_views(ps_leaf *leaf, int64_t dense, int64_t n, int64_t *done,
                            ps_error *err) {
    ps_batch batch;
    uint8_t *view = leaf->out.offsets.data + 16 * (size_t)dense;
    for (*done = 0; *done < n; *done += (int64_t)batch.n, view += 16 * batch.n) {
        const int64_t rest = n - *done;
        PS_TRY(next(leaf, &batch, rest < PS_BLOCK ? (size_t)rest : PS_BLOCK, err));
        PS_TRY(add_views(leaf, &batch, NULL, view, err));
    }
    return PS_OK;
}

static ps_status read_lengths(ps_leaf *leaf, int64_t dense, int64_t n, int64_t *done,
                              ps_error *err) {
    ps_batch batch;
    bool full = false;
    if (leaf->views) return read_views(leaf, dense, n, done, err);
    int64_t size = ps_offset_get(leaf, dense);
    leaf->out.unchecked = true;
    for (*done = 0; *done < n && !full; *done += (int64_t)batch.n) {
        uint64_t sum;
        PS_TRY(next_fitting(leaf, &batch, dense + *done, n - *done, size, &sum, &full, err));
        memcpy(leaf->out.values.data + size, leaf->page.place.at, (size_t)sum);
        leaf->page.place.at += sum;
        add_offsets(leaf, dense + *done, batch.own, batch.n, size);
        size += (int64_t)sum;
    }
    leaf->out.values.size = (size_t)size;
    return PS_OK;
}

/* The values of a batch side by side to out, where as many bytes as they have, up to out_end, may be written
 * over; the value before the first one is leaf->page.last, and then the last one. Shared bytes are taken from the
 * oldest value that has them, as to load bytes that were just stored makes the processor wait. */
static ps_status join(ps_leaf *leaf, const ps_batch *batch, uint8_t *out,
                      const uint8_t *out_end, ps_error *err) {
    uint8_t word[SLACK];
    const uint8_t *own = leaf->page.place.at, *const own_end = leaf->page.values +
                                                               leaf->page.values_length;
    PS_TRY(last_room(leaf, batch->most, err));
    const uint8_t *before = leaf->page.last.data, *source = before;
    size_t known = 0, length = 0; /* bytes that source has in common with the value before */
    for (size_t i = 0; i < batch->n; i++) {
        const size_t shared = batch->shared[i], rest = batch->own[i];
        const size_t space = (size_t)(out_end - out);
        if (shared > known) source = before;
        known = shared;
        if (shared <= SLACK && space >= SLACK) {
            memcpy(word, source, SLACK); /* it may reach into what is about to be written */
            memcpy(out, word, SLACK);
        } else if (shared) {
            memcpy(out, source, shared);
        }
        ps_copy_string(out + shared, space - shared, own, (size_t)(own_end - own), rest);
        before = out;
        length = shared + rest;
        out += length, own += rest;
    }
    if (batch->n) {
        leaf->page.place.at = own;
        leaf->page.last.size = length;
        memcpy(leaf->page.last.data, before, length);
    }
    return PS_OK;
}

static ps_status read_strings(ps_leaf *leaf, int64_t dense, int64_t n, int64_t *done,
                              ps_error *err) {
    ps_batch batch;
    bool full = false;
    if (leaf->views) return read_views(leaf, dense, n, done, err);
    int64_t size = ps_offset_get(leaf, dense);
    leaf->out.unchecked = true;
    for (*done = 0; *done < n && !full; *done += (int64_t)batch.n) {
        uint64_t sum;
        PS_TRY(next_fitting(leaf, &batch, dense + *done, n - *done, size, &sum, &full, err));
        uint8_t *out = leaf->out.values.data;
        PS_TRY(join(leaf, &batch, out + size, out + leaf->out.values.capacity, err));
        for (size_t i = 0; i < batch.n; i++) batch.own[i] += batch.shared[i];
        add_offsets(leaf, dense + *done, batch.own, batch.n, size);
        size += (int64_t)sum;
    }
    leaf->out.values.size = (size_t)size;
    return PS_OK;
}

/* ---- values of fixed width ----------------------------------------------------------------- */

/* A byte string as FIXED_LEN_BYTE_ARRAY or decimal. */
static ps_status store(const ps_leaf *leaf, const uint8_t *data, size_t length, uint8_t *out,
                       ps_error *err) {
    const bool fixed = leaf->spec.physical == PQ_FIXED;
    if (fixed && length != leaf->in_width) {
        return ps_fail(err, PS_CORRUPT, ps_page_byte(leaf, leaf->page.place.at),
                       "a value of %zu bytes where all have %zu", length, leaf->in_width);
    }
    if (leaf->copies) {
        if (length) memcpy(out, data, length);
    } else if (leaf->spec.kind == PS_I64) {
        const ps_status status = ps_convert_fixed(&leaf->spec, data, out, 1, err);
        if (status != PS_OK && err) err->offset = ps_page_byte(leaf, leaf->page.place.at);
        return status;
    } else if (!ps_convert_decimal(data, length, out, leaf->out_width)) {
        return ps_fail(err, PS_CORRUPT, ps_page_byte(leaf, leaf->page.place.at),
                       "a decimal of %zu bytes does not fit %zu", length, leaf->out_width);
    }
    return PS_OK;
}

/* Of the next n <= PS_BLOCK values those of the mask, or all where it is NULL. */
static ps_status store_batch(ps_leaf *leaf, uint8_t *out, size_t n, const uint64_t *mask,
                             ps_error *err) {
    ps_batch batch;
    const bool shared = shares(leaf);
    size_t passed = 0;
    PS_TRY(next(leaf, &batch, n, err));
    if (shared) PS_TRY(last_room(leaf, batch.most, err));
    for (size_t i = 0; i < n; i++) {
        const uint8_t *own = leaf->page.place.at, *data = own;
        size_t length = batch.own[i];
        const bool kept = !mask || (mask[i / 64] >> (i & 63) & 1);
        if (kept && shared) {
            pass(leaf, &batch, passed, i + 1, own + length);
            passed = i + 1;
            data = leaf->page.last.data, length = leaf->page.last.size;
        }
        if (kept) {
            PS_TRY(store(leaf, data, length, out, err));
            out += leaf->out_width;
        }
        leaf->page.place.at += batch.own[i];
    }
    if (shared) pass(leaf, &batch, passed, n, leaf->page.place.at);
    return PS_OK;
}

/* n <= PS_BLOCK values of which all must have the same width, side by side. */
static ps_status join_fixed(ps_leaf *leaf, uint8_t *out, size_t n, ps_error *err) {
    ps_batch batch;
    const size_t width = leaf->in_width;
    PS_TRY(next(leaf, &batch, n, err));
    for (size_t i = 0, at = 0; i < n; at += batch.own[i++]) {
        const size_t length = (size_t)batch.shared[i] + batch.own[i];
        if (length == width) continue;
        return ps_fail(err, PS_CORRUPT, ps_page_byte(leaf, leaf->page.place.at) + at,
                       "a value of %zu bytes where all have %zu", length, width);
    }
    return join(leaf, &batch, out, out + n * width, err);
}

static ps_status read_fixed(ps_leaf *leaf, uint8_t *out, int64_t n, ps_error *err) {
    uint8_t raw[PS_BLOCK * 16];
    const size_t width = leaf->in_width;
    const bool fixed = leaf->spec.physical == PQ_FIXED,
               converted = fixed && !leaf->copies && width <= 16;
    while (n) {
        const size_t batch = n < PS_BLOCK ? (size_t)n : PS_BLOCK;
        if (converted) {
            PS_TRY(join_fixed(leaf, raw, batch, err));
            const ps_status status = ps_convert_fixed(&leaf->spec, raw, out, batch, err);
            if (status != PS_OK) { /* never a decimal: 16 bytes fit */
                if (err) err->offset = PS_NOWHERE;
                return status;
            }
        } else if (fixed && leaf->copies) {
            PS_TRY(join_fixed(leaf, out, batch, err));
        } else {
            PS_TRY(store_batch(leaf, out, batch, NULL, err));
        }
        out += batch * leaf->out_width, n -= (int64_t)batch;
    }
    return PS_OK;
}

static ps_status block_fixed(ps_leaf *leaf, uint8_t *out, size_t space, const ps_block *block,
                             ps_error *err) {
    (void)space;
    return store_batch(leaf, out, block->values, block->mask, err);
}

/* ---- blocks of byte strings ---------------------------------------------------------------- */

static ps_status block_lengths(ps_leaf *leaf, const ps_block *block, bool *fit, ps_error *err) {
    ps_batch batch;
    const uint8_t *at[PS_BLOCK + 1];
    uint32_t length[PS_BLOCK + 1];
    PS_TRY(next(leaf, &batch, block->values, err));
    size_t kept = 0;
    for (size_t i = 0; i < batch.n; i++) {
        at[kept] = leaf->page.place.at, length[kept] = batch.own[i];
        kept += block->mask[i / 64] >> (i & 63) & 1;
        leaf->page.place.at += batch.own[i];
    }
    leaf->out.unchecked = leaf->out.unchecked || kept;
    return ps_output_add_strings(leaf, at, length, kept,
                                 leaf->page.values + leaf->page.values_length, fit, err);
}

static ps_status block_strings(ps_leaf *leaf, const ps_block *block, bool *fit, ps_error *err) {
    ps_batch batch;
    PS_TRY(next(leaf, &batch, block->values, err));
    if (leaf->views) {
        *fit = true;
        return add_views(leaf, &batch, block->mask,
                         leaf->out.offsets.data + 16 * (size_t)leaf->out.rows, err);
    }
    int64_t size = ps_offset_get(leaf, leaf->out.rows), dense = leaf->out.rows;
    uint64_t sum = 0;
    for (size_t word = 0; word < ps_words_for(block->end); word++) {
        for (uint64_t bits = block->mask[word]; bits; bits &= bits - 1) {
            const size_t i = word * 64 + (size_t)ps_ctz64(bits);
            sum += (uint64_t)batch.shared[i] + batch.own[i];
        }
    }
    *fit = sum <= (uint64_t)(ps_offset_limit(leaf) - size);
    if (!*fit) return PS_OK;
    leaf->out.values.size = (size_t)size;
    PS_TRY(ps_output_grow_strings(leaf, leaf->out.rows + (int64_t)block->kept,
                                  (size_t)size + (size_t)sum, err));
    PS_TRY(last_room(leaf, batch.most, err));
    const size_t space = leaf->out.values.capacity;
    uint8_t *out = leaf->out.values.data;
    size_t passed = 0;
    for (size_t i = 0; i < batch.n; i++) {
        leaf->page.place.at += batch.own[i];
        if (!(block->mask[i / 64] >> (i & 63) & 1)) continue;
        pass(leaf, &batch, passed, i + 1, leaf->page.place.at);
        passed = i + 1;
        ps_copy_string(out + size, space - (size_t)size, leaf->page.last.data,
                       leaf->page.last.capacity, leaf->page.last.size);
        size += (int64_t)leaf->page.last.size;
        ps_offset_set(leaf, ++dense, size);
    }
    pass(leaf, &batch, passed, batch.n, leaf->page.place.at);
    leaf->out.values.size = (size_t)size;
    leaf->out.unchecked = leaf->out.unchecked || block->kept;
    return PS_OK;
}

const ps_encoding ps_delta_lengths = {
    .rows_per_run = 512,
    .rows_per_run_nulls = 512,
    .open = open,
    .skip = skip,
    .read = read_fixed,
    .read_strings = read_lengths,
    .block = block_fixed,
    .block_strings = block_lengths,
};

const ps_encoding ps_delta_strings = {
    .rows_per_run = 512,
    .rows_per_run_nulls = 512,
    .open = open,
    .skip = skip,
    .read = read_fixed,
    .read_strings = read_strings,
    .block = block_fixed,
    .block_strings = block_strings,
};
