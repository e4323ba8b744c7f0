/* gather.c - chosen rows of the buffers of an Arrow array (Columnar.rst, "Physical memory layout"). */
#include "bits.h"
#include "compact.h"

enum { BLOCK = 1024, WORDS = BLOCK / 64 };

ps_status ps_gather_check(const ps_take_indices *indices, ps_error *err) {
    if (indices->mask) {
        const size_t ones = ps_bits_count(indices->mask, indices->start, (size_t)indices->n);
        if (ones == (size_t)indices->count) return PS_OK;
        return ps_fail(err, PS_INVALID, PS_NOWHERE, "a mask of %zu rows for %lld", ones,
                       (long long)indices->count);
    }
    for (int64_t i = 0; i < indices->count; i++) {
        if (indices->places[i] < 0 || indices->places[i] >= indices->n)
            return ps_fail(err, PS_INVALID, PS_NOWHERE, "row %lld of an array of %lld",
                           (long long)indices->places[i], (long long)indices->n);
    }
    return PS_OK;
}

/* Loads the mask of rows [at, at + BLOCK), and returns the number of these rows. */
static size_t mask_block(const ps_take_indices *indices, int64_t at, uint64_t *mask) {
    const int64_t left = indices->n - at;
    const size_t n = left < BLOCK ? (size_t)left : BLOCK;
    ps_words_load(mask, indices->mask, indices->start + (size_t)at, n);
    return n;
}

int64_t ps_gather_bits(const ps_take_indices *indices, const uint8_t *bits, uint8_t *out) {
    const size_t size = (size_t)indices->count / 8 + (indices->count % 8 != 0);
    if (size) out[size - 1] = 0;
    if (!indices->mask) {
        memset(out, 0, size);
        for (int64_t i = 0; i < indices->count; i++)
            if (ps_bit_get(bits, (size_t)indices->places[i])) ps_bit_set(out, (size_t)i);
    } else {
        uint64_t mask[WORDS], in[WORDS], kept[WORDS + 1];
        size_t k = 0;
        for (int64_t at = 0; at < indices->n; at += BLOCK) {
            const size_t n = mask_block(indices, at, mask), n_words = ps_words_for(n);
            ps_words_load(in, bits, (size_t)at, n);
            const size_t ones = ps_words_compress(kept, in, mask, n_words);
            ps_bits_copy(out, k, (const uint8_t *)kept, 0, ones);
            k += ones;
        }
    }
    return (int64_t)ps_bits_count(out, 0, (size_t)indices->count);
}

#define TAKE(bytes)                                                                            \
    for (int64_t i = 0; i < indices->count; i++)                                               \
        memcpy(out + (size_t)i * (bytes), values + (size_t)indices->places[i] * (bytes),       \
               (bytes));                                                                       \
    break;

void ps_gather_fixed(const ps_take_indices *indices, const uint8_t *values, size_t width,
                     uint8_t *out) {
    if (width == 0) return;
    if (!indices->mask) {
        switch (width) {
        case 4: TAKE(4)
        case 8: TAKE(8)
        default: TAKE(width)
        }
        return;
    }
    uint64_t mask[WORDS];
    size_t space = (size_t)indices->count;
    for (int64_t at = 0; at < indices->n && space; at += BLOCK) {
        const size_t n = mask_block(indices, at, mask);
        const size_t ones = ps_compact(out, space, values + (size_t)at * width, width, mask, n);
        out += ones * width, space -= ones;
    }
}

/* Rows in order, up to BLOCK of them; *at: the row of the mask, or the place, to go on from. */
static size_t next_rows(const ps_take_indices *indices, int64_t *at, int64_t *rows) {
    size_t k = 0;
    if (!indices->mask) {
        while (k < BLOCK && *at < indices->count) rows[k++] = indices->places[(*at)++];
        return k;
    }
    uint64_t mask[WORDS];
    while (k == 0 && *at < indices->n) {
        const size_t n_words = ps_words_for(mask_block(indices, *at, mask));
        for (size_t w = 0; w < n_words; w++)
            for (uint64_t word = mask[w]; word; word &= word - 1)
                rows[k++] = *at + (int64_t)(64 * w) + ps_ctz64(word);
        *at += BLOCK;
    }
    return k;
}

static int64_t offset_at(const uint8_t *offsets, size_t width, int64_t i) {
    return width == 4 ? (int32_t)ps_load32(offsets + 4 * i)
                      : (int64_t)ps_load64(offsets + 8 * i);
}

ps_status ps_gather_offsets(const ps_take_indices *indices, const uint8_t *offsets,
                            size_t width, size_t size, uint8_t *out, size_t *total,
                            ps_error *err) {
    const size_t limit = width == 4 ? INT32_MAX : INT64_MAX;
    int64_t rows[BLOCK], at = 0;
    *total = 0;
    memset(out, 0, width);
    for (size_t n; (n = next_rows(indices, &at, rows));) {
        for (size_t i = 0; i < n; i++) {
            const int64_t start = offset_at(offsets, width, rows[i]),
                          stop = offset_at(offsets, width, rows[i] + 1);
            if (start < 0 || stop < start || (uint64_t)stop > size)
                return ps_fail(err, PS_CORRUPT, PS_NOWHERE,
                               "offsets %lld to %lld of row %lld, of %zu bytes",
                               (long long)start, (long long)stop, (long long)rows[i], size);
            if ((size_t)(stop - start) > limit - *total)
                return ps_fail(err, PS_LIMIT, PS_NOWHERE,
                               "byte strings do not fit %d-bit offsets", width == 4 ? 32 : 64);
            *total += (size_t)(stop - start);
            out += width;
            if (width == 4) {
                ps_store32(out, (uint32_t)*total);
            } else {
                ps_store64(out, *total);
            }
        }
    }
    return PS_OK;
}

void ps_gather_strings(const ps_take_indices *indices, const uint8_t *offsets, size_t width,
                       const uint8_t *data, size_t size, uint8_t *out, size_t total) {
    int64_t rows[BLOCK], at = 0;
    for (size_t n; (n = next_rows(indices, &at, rows));) {
        for (size_t i = 0; i < n; i++) {
            const size_t start = (size_t)offset_at(offsets, width, rows[i]),
                         length = (size_t)offset_at(offsets, width, rows[i] + 1) - start;
            ps_copy_string(out, total, data + start, size - start, length);
            out += length, total -= length;
        }
    }
}
