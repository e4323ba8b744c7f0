/* selection.c - sets of rows: runs, algebra, refinement. */
#include <stdlib.h>

#include "bits.h"
#include "compact.h"

/* ---- bits -------------------------------------------------------------------------------- */

/* The `count` <= 64 bits from bit `at`; no byte outside of them is read. */
static uint64_t bits_get(const uint8_t *bits, size_t at, int count) {
    uint64_t word = 0;
    unsigned shift = at & 7;
    const uint8_t *p = bits + at / 8;
    if (count == 64) { /* a load of a fixed size */
        word = ps_load64(p) >> shift;
        return shift ? word | (uint64_t)p[8] << (64 - shift) : word;
    }
    size_t bytes = (shift + (unsigned)count + 7) / 8;
    memcpy(&word, p, bytes < 8 ? bytes : 8);
    word >>= shift;
    if (bytes > 8) word |= (uint64_t)p[8] << (64 - shift); /* then shift > 0 */
    return count < 64 ? word & (((uint64_t)1 << count) - 1) : word;
}

/* First bit at or after `at` that is `value`, or `end`. */
static size_t bits_find(const uint8_t *bits, size_t at, size_t end, bool value) {
    uint64_t flip = value ? 0 : UINT64_MAX;
    while (at < end && at / 8 + 8 <= end / 8) {
        uint64_t word = (ps_load64(bits + at / 8) ^ flip) >> (at & 7);
        if (word) return at + (size_t)ps_ctz64(word);
        at = (at / 8 + 8) * 8;
    }
    while (at < end) {
        int count = end - at < 64 ? (int)(end - at) : 64;
        uint64_t word = bits_get(bits, at, count) ^ flip;
        if (count < 64) word &= ((uint64_t)1 << count) - 1;
        if (word) return at + (size_t)ps_ctz64(word);
        at += (size_t)count;
    }
    return end;
}

void ps_bitmap_combine(uint8_t *into, const uint8_t *other, size_t size, ps_set_op op) {
    switch (op) {
    case PS_SET_AND:
        for (size_t i = 0; i < size; i++) into[i] &= other[i];
        return;
    case PS_SET_OR:
        for (size_t i = 0; i < size; i++) into[i] |= other[i];
        return;
    case PS_SET_SUB:
        for (size_t i = 0; i < size; i++) into[i] &= (uint8_t)~other[i];
        return;
    case PS_SET_XOR:
        for (size_t i = 0; i < size; i++) into[i] ^= other[i];
        return;
    }
}

/* ---- one selection ----------------------------------------------------------------------- */

ps_status ps_selection_check(const ps_selection *selection, ps_error *err) {
    if (selection->bitmap) {
        if (selection->base < 0 || selection->length < 0 ||
            selection->base > INT64_MAX - selection->length)
            return ps_fail(err, PS_INVALID, PS_NOWHERE,
                           "bitmap begins or ends at a row that is none");
        return PS_OK;
    }
    int64_t done = 0;
    for (size_t i = 0; i < selection->n_ranges; i++) {
        ps_range r = selection->ranges[i];
        if (r.start < done || r.stop <= r.start)
            return ps_fail(
                err, PS_INVALID, PS_NOWHERE,
                "range %zu, rows %lld to %lld, is negative, empty or not after row %lld", i,
                (long long)r.start, (long long)r.stop, (long long)done);
        done = r.stop;
    }
    return PS_OK;
}

int64_t ps_selection_count(const ps_selection *selection) {
    if (selection->bitmap)
        return (int64_t)ps_bits_count(selection->bitmap, 0, (size_t)selection->length);
    int64_t rows = 0;
    for (size_t i = 0; i < selection->n_ranges; i++)
        rows += selection->ranges[i].stop - selection->ranges[i].start;
    return rows;
}

/* First range from `i` on that ends after `row`: doubling steps, so that a near one costs
 * little. */
static size_t seek(const ps_range *ranges, size_t n, size_t i, int64_t row) {
    size_t step = 1;
    if (i >= n || ranges[i].stop > row) return i;
    while (step < n - i && ranges[i + step].stop <= row) i += step, step *= 2;
    size_t end = step < n - i ? i + step : n; /* ranges[i] is done, ranges[end] is not */
    while (end - i > 1) {
        size_t middle = i + (end - i) / 2;
        if (ranges[middle].stop <= row) {
            i = middle;
        } else {
            end = middle;
        }
    }
    return end;
}

int64_t ps_selection_count_from(const ps_selection *selection, int64_t row, int64_t most) {
    int64_t rows = 0;
    if (selection->bitmap) {
        const int64_t length = selection->length;
        int64_t at = row > selection->base ? row - selection->base : 0;
        for (; at < length && rows < most; at += 64)
            rows += ps_popcount64(bits_get(selection->bitmap, (size_t)at,
                                           length - at < 64 ? (int)(length - at) : 64));
    } else {
        const size_t n = selection->n_ranges;
        for (size_t i = seek(selection->ranges, n, 0, row); i < n && rows < most; i++) {
            const ps_range r = selection->ranges[i];
            rows += r.stop - (r.start > row ? r.start : row);
        }
    }
    rows = rows < most ? rows : most;
    return rows > 0 ? rows : 0;
}

bool ps_selection_next(const ps_selection *selection, ps_run_cursor *cursor, int64_t limit,
                       ps_range *run) {
    int64_t start, stop;
    if (cursor->row >= limit) return false;
    if (selection->bitmap) {
        int64_t base = selection->base, end = limit > base ? limit - base : 0;
        if (end > selection->length) end = selection->length;
        int64_t from = cursor->row > base ? cursor->row - base : 0;
        if (from >= end) goto none;
        size_t at = bits_find(selection->bitmap, (size_t)from, (size_t)end, true);
        if (at == (size_t)end) goto none;
        cursor->index = bits_find(selection->bitmap, at, (size_t)end, false);
        start = base + (int64_t)at, stop = base + (int64_t)cursor->index;
    } else {
        size_t i = seek(selection->ranges, selection->n_ranges, cursor->index, cursor->row);
        cursor->index = i;
        if (i == selection->n_ranges || selection->ranges[i].start >= limit) goto none;
        start = selection->ranges[i].start, stop = selection->ranges[i].stop;
        if (start < cursor->row) start = cursor->row;
        while (stop < limit && i + 1 < selection->n_ranges &&
               selection->ranges[i + 1].start == stop)
            stop = selection->ranges[++i].stop; /* ranges may touch */
        if (stop > limit) stop = limit;
        cursor->index = i;
    }
    *run = (ps_range){start, stop};
    cursor->row = stop;
    return true;
none:
    cursor->row = limit;
    return false;
}

int64_t ps_selection_end(const ps_selection *selection, int64_t start, int64_t stop) {
    if (!selection->bitmap) {
        size_t low = 0, high = selection->n_ranges; /* ranges that begin before stop */
        while (low < high) {
            const size_t middle = low + (high - low) / 2;
            if (selection->ranges[middle].start < stop) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        const int64_t end = low ? selection->ranges[low - 1].stop : start;
        return end <= start ? start : end < stop ? end : stop;
    }
    int64_t from = start > selection->base ? start - selection->base : 0;
    int64_t to = stop > selection->base ? stop - selection->base : 0;
    if (to > selection->length) to = selection->length;
    while (to > from) { /* backwards, up to 64 at a time */
        const int count = to - from < 64 ? (int)(to - from) : 64;
        const uint64_t word = bits_get(selection->bitmap, (size_t)(to - count), count);
        if (word) return selection->base + (to - count + 64 - ps_clz64(word));
        to -= count;
    }
    return start;
}

int64_t ps_selection_nth(const ps_selection *selection, int64_t k) {
    if (k < 0) return -1;
    if (!selection->bitmap) {
        for (size_t i = 0; i < selection->n_ranges; i++) {
            ps_range r = selection->ranges[i];
            if (k < r.stop - r.start) return r.start + k;
            k -= r.stop - r.start;
        }
        return -1;
    }
    for (int64_t at = 0; at < selection->length; at += 64) {
        int count = selection->length - at < 64 ? (int)(selection->length - at) : 64;
        uint64_t word = bits_get(selection->bitmap, (size_t)at, count);
        int ones = ps_popcount64(word);
        if (k >= ones) {
            k -= ones;
            continue;
        }
        while (k--) word &= word - 1;
        return selection->base + at + ps_ctz64(word);
    }
    return -1;
}

/* ---- runs -------------------------------------------------------------------------------- */

/* Runs that begin in a word are its ones whose lower neighbour is a zero. */
static size_t bits_runs(const uint8_t *bits, size_t n) {
    size_t runs = 0;
    uint64_t last = 0;
    for (size_t at = 0; at < n; at += 64) {
        uint64_t word = bits_get(bits, at, n - at < 64 ? (int)(n - at) : 64);
        runs += (size_t)ps_popcount64(word & ~(word << 1 | last));
        last = word >> 63;
    }
    return runs;
}

size_t ps_selection_runs(const ps_selection *selection) {
    if (selection->bitmap) return bits_runs(selection->bitmap, (size_t)selection->length);
    size_t runs = selection->n_ranges > 0;
    for (size_t i = 1; i < selection->n_ranges; i++)
        runs += selection->ranges[i - 1].stop != selection->ranges[i].start;
    return runs;
}

void ps_selection_to_ranges(const ps_selection *selection, ps_range *out) {
    ps_run_cursor cursor = {0};
    while (ps_selection_next(selection, &cursor, INT64_MAX, out)) out++;
}

void ps_selection_to_bitmap(const ps_selection *selection, int64_t base, int64_t length,
                            uint8_t *bitmap) {
    memset(bitmap, 0, (size_t)length / 8 + (length % 8 != 0));
    if (!selection->bitmap) {
        const size_t n = selection->n_ranges;
        for (size_t i = seek(selection->ranges, n, 0, base); i < n; i++) {
            const ps_range r = selection->ranges[i];
            const int64_t stop = base + length;
            if (r.start >= stop) return;
            const size_t from = r.start > base ? (size_t)(r.start - base) : 0;
            const size_t to = (size_t)((r.stop < stop ? r.stop : stop) - base);
            ps_bits_set_range(bitmap, from, to);
        }
        return;
    }
    int64_t from = selection->base > base ? selection->base : base;
    int64_t to = selection->base + selection->length;
    if (to > base + length) to = base + length;
    if (from >= to) return;
    /* whole bytes of the target after the first few bits */
    size_t put = (size_t)(from - base), get = (size_t)(from - selection->base);
    for (size_t left = (size_t)(to - from); left;) {
        int count = put & 7 ? 8 - (int)(put & 7) : 64;
        if ((size_t)count > left) count = (int)left;
        uint64_t word = bits_get(selection->bitmap, get, count);
        if (put & 7) {
            bitmap[put / 8] |= (uint8_t)(word << (put & 7));
        } else {
            memcpy(bitmap + put / 8, &word, (size_t)(count + 7) / 8);
        }
        put += (size_t)count, get += (size_t)count, left -= (size_t)count;
    }
}

/* ---- algebra of ranges ------------------------------------------------------------------- */

/* No branch on the data: each step writes the overlap and keeps it if there is one. Where one
 * set begins late, as a slice does, the other is searched for that place. */
size_t ps_ranges_and(const ps_range *a, size_t na, const ps_range *b, size_t nb,
                     ps_range *out) {
    if (na == 0 || nb == 0) return 0;
    size_t i = seek(a, na, 0, b[0].start), j = seek(b, nb, 0, a[0].start), n = 0;
    while (i < na && j < nb) {
        ps_range x = a[i], y = b[j];
        int64_t start = x.start > y.start ? x.start : y.start;
        int64_t stop = x.stop < y.stop ? x.stop : y.stop;
        out[n] = (ps_range){start, stop};
        n += start < stop;
        i += x.stop <= y.stop;
        j += y.stop <= x.stop;
    }
    return n;
}

/* Likewise: a range is written until one comes that does not join it. */
size_t ps_ranges_or(const ps_range *a, size_t na, const ps_range *b, size_t nb, ps_range *out) {
    size_t i = 0, j = 0, n = 0;
    if (na + nb == 0) return 0;
    bool from_a = nb == 0 || (na && a[0].start <= b[0].start);
    ps_range open = from_a ? a[i++] : b[j++];
    while (i < na || j < nb) {
        from_a = j == nb || (i < na && a[i].start <= b[j].start);
        const ps_range *next = from_a ? a + i : b + j;
        int64_t start = next->start, stop = next->stop;
        bool joins = start <= open.stop;
        i += from_a, j += !from_a;
        out[n] = open; /* never beyond what has been read: out may be a */
        n += !joins;
        open.start = joins ? open.start : start;
        open.stop = stop > open.stop ? stop : open.stop;
    }
    out[n++] = open;
    return n;
}

size_t ps_ranges_not(const ps_range *a, size_t na, int64_t start, int64_t stop, ps_range *out) {
    size_t n = 0;
    for (size_t i = seek(a, na, 0, start); i < na && a[i].start < stop; i++) {
        if (a[i].start > start) out[n++] = (ps_range){start, a[i].start};
        start = a[i].stop;
    }
    if (start < stop) out[n++] = (ps_range){start, stop};
    return n;
}

static int by_start(const void *a, const void *b) {
    int64_t x = ((const ps_range *)a)->start, y = ((const ps_range *)b)->start;
    return (x > y) - (x < y);
}

ps_status ps_ranges_normalise(ps_range *ranges, size_t n, size_t *kept, ps_error *err) {
    size_t k = 0;
    bool sorted = true;
    *kept = 0;
    for (size_t i = 0; i < n; i++) {
        ps_range r = ranges[i];
        if (r.start < 0 || r.stop < r.start)
            return ps_fail(err, PS_INVALID, PS_NOWHERE,
                           "range %zu, rows %lld to %lld, is negative or runs backwards", i,
                           (long long)r.start, (long long)r.stop);
        if (r.start == r.stop) continue;
        sorted = sorted && (k == 0 || ranges[k - 1].start <= r.start);
        ranges[k++] = r;
    }
    if (!sorted) qsort(ranges, k, sizeof *ranges, by_start);
    *kept = ps_ranges_or(ranges, k, NULL, 0, ranges);
    return PS_OK;
}

ps_status ps_ranges_from_rows(const int64_t *rows, size_t n, ps_range *out, size_t *kept,
                              ps_error *err) {
    *kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (rows[i] < 0 || rows[i] == INT64_MAX)
            return ps_fail(err, PS_INVALID, PS_NOWHERE, "row %lld is no row",
                           (long long)rows[i]);
        out[i] = (ps_range){rows[i], rows[i] + 1};
    }
    return ps_ranges_normalise(out, n, kept, err);
}

/* ---- masks and zones --------------------------------------------------------------------- */

/* Add to n ranges at out, NULL when they are only counted; *end is where the last one ends. */
static size_t append(ps_range *out, size_t n, int64_t *end, int64_t start, int64_t stop) {
    bool joins = n && *end == start;
    if (out && joins) out[n - 1].stop = stop;
    if (out && !joins) out[n] = (ps_range){start, stop};
    *end = stop;
    return n + !joins;
}

size_t ps_selection_refine(const ps_selection *selection, const uint8_t *mask, ps_range *out) {
    ps_run_cursor cursor = {0};
    ps_range run;
    size_t n = 0, bit = 0; /* bit: of the first row of the run */
    int64_t end = 0;
    while (ps_selection_next(selection, &cursor, INT64_MAX, &run)) {
        size_t stop = bit + (size_t)(run.stop - run.start);
        for (size_t at = bit; (at = bits_find(mask, at, stop, true)) < stop;) {
            size_t until = bits_find(mask, at, stop, false);
            n = append(out, n, &end, run.start + (int64_t)(at - bit),
                       run.start + (int64_t)(until - bit));
            at = until;
        }
        bit = stop;
    }
    return n;
}

/* `count` <= 57 bits to zeros at bit `at` of `size` bytes. */
static void bits_put(uint8_t *bits, size_t size, size_t at, uint64_t word, size_t count) {
    if (at / 8 + 8 <= size) {
        ps_store64(bits + at / 8, ps_load64(bits + at / 8) | word << (at & 7));
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (word >> i & 1) ps_bit_set(bits, at + i);
}

void ps_selection_refine_bits(const ps_selection *selection, const uint8_t *mask, int64_t base,
                              int64_t length, uint8_t *bitmap) {
    const size_t size = (size_t)length / 8 + (length % 8 != 0);
    size_t bit = 0; /* of mask */
    if (selection->bitmap) {
        for (size_t at = 0; at < (size_t)length; at += 64) {
            const size_t left = (size_t)length - at;
            uint64_t word = bits_get(selection->bitmap, at, left < 64 ? (int)left : 64);
            const int ones = ps_popcount64(word);
            if (ones) word = ps_word_expand(bits_get(mask, bit, ones), word);
            memcpy(bitmap + at / 8, &word, left < 64 ? (left + 7) / 8 : 8);
            bit += (size_t)ones;
        }
        return;
    }
    memset(bitmap, 0, size);
    for (size_t i = 0; i < selection->n_ranges; i++) {
        const size_t at = (size_t)(selection->ranges[i].start - base);
        const size_t n = (size_t)(selection->ranges[i].stop - selection->ranges[i].start);
        if (n <= 57) {
            bits_put(bitmap, size, at, bits_get(mask, bit, (int)n), n);
        } else {
            ps_bits_copy(bitmap, at, mask, bit, n);
        }
        bit += n;
    }
}

void ps_selection_words(const ps_selection *selection, size_t *index, int64_t base,
                        int64_t length, uint64_t *words) {
    memset(words, 0, ps_words_for((size_t)length) * sizeof *words);
    if (selection->bitmap) {
        const int64_t lead = base - selection->base; /* of the bitmap, before the first word */
        const int64_t skip = lead < 0 ? -lead : 0;   /* of the words, before the bitmap */
        int64_t n = selection->length - (lead > 0 ? lead : 0);
        if (n > length - skip) n = length - skip;
        if (n <= 0) return;
        if (skip == 0) {
            ps_words_load(words, selection->bitmap, (size_t)lead, (size_t)n);
        } else {
            ps_bits_copy((uint8_t *)words, (size_t)skip, selection->bitmap, 0, (size_t)n);
        }
        return;
    }
    const size_t n_ranges = selection->n_ranges;
    *index = seek(selection->ranges, n_ranges, *index, base);
    for (size_t i = *index; i < n_ranges && selection->ranges[i].start < base + length; i++) {
        const ps_range r = selection->ranges[i];
        const size_t from = r.start > base ? (size_t)(r.start - base) : 0;
        const size_t to = r.stop - base < length ? (size_t)(r.stop - base) : (size_t)length;
        if (from / 64 == (to - 1) / 64) { /* most runs are short */
            words[from / 64] |= UINT64_MAX >> (64 - (to - from)) << (from & 63);
        } else {
            ps_bits_set_range((uint8_t *)words, from, to);
        }
    }
}

size_t ps_zones_to_ranges(const uint8_t *verdict, uint8_t bit, const int64_t *first, size_t n,
                          ps_range *out) {
    size_t k = 0;
    int64_t end = 0;
    for (size_t i = 0; i < n; i++)
        if ((verdict[i] & bit) && first[i] < first[i + 1])
            k = append(out, k, &end, first[i], first[i + 1]);
    return k;
}

void ps_pages_touched(const ps_selection *selection, const int64_t *first, size_t n,
                      uint8_t *mask) {
    ps_run_cursor cursor = {0};
    ps_range run;
    for (size_t i = 0; i < n; i++) {
        cursor.row = first[i];
        mask[i] = ps_selection_next(selection, &cursor, first[i + 1], &run);
    }
}
