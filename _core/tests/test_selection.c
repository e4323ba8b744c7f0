/* test_selection.c - selections and the algebra of ranges against slow loops. Every buffer is a heap block of exactly
 * the size that the contract names, so that a sanitizer sees the first byte read or written beyond it. */
#include <stdlib.h>
#include <string.h>

#include "../pageseek.h"
#include "check_rows.h"

/* ---- selections -------------------------------------------------------------------------- */

enum { SPAN = 300 };

/* The set as one byte a row, beside both of its forms. */
typedef struct set {
    uint8_t rows[SPAN];
    ps_range *ranges;
    uint8_t *bitmap;
    size_t n;
    int64_t base, length, count;
} set;

static set set_random(void) {
    set s = {.base = rnd(70)};
    uint32_t density = rnd(4), run = 1 + rnd(40);
    s.length = SPAN - s.base - rnd(70);
    for (int64_t i = s.base, on = 0; i < s.base + s.length; i++) {
        if (rnd(run) == 0) on = rnd(4) < density;
        s.rows[i] = (uint8_t)on;
    }
    s.bitmap = exactly((size_t)(s.length + 7) / 8);
    memset(s.bitmap, 0, (size_t)(s.length + 7) / 8);
    for (int64_t i = 0; i < s.length; i++)
        if (s.rows[s.base + i]) s.bitmap[i / 8] |= (uint8_t)(1 << (i % 8));
    for (int pass = 0; pass < 2; pass++) {
        s.n = 0, s.count = 0;
        for (int64_t i = 0; i < SPAN; i++) {
            s.count += s.rows[i];
            if (!s.rows[i]) continue;
            /* ranges may touch: cut some */
            bool joins = i && s.rows[i - 1] && i % 16 != 15;
            if (pass && joins) s.ranges[s.n - 1].stop++;
            if (pass && !joins) s.ranges[s.n] = (ps_range){i, i + 1};
            s.n += !joins;
        }
        if (!pass) s.ranges = exactly(s.n * sizeof(ps_range));
    }
    return s;
}

static void set_free(set *s) {
    free(s->ranges);
    free(s->bitmap);
}

static ps_selection form(const set *s, bool dense) {
    ps_selection c = {.ranges = s->ranges, .n_ranges = s->n};
    if (dense) c = (ps_selection){.bitmap = s->bitmap, .base = s->base, .length = s->length};
    return c;
}

static bool ranges_are(const ps_range *ranges, size_t n, const uint8_t rows[SPAN]) {
    int64_t row = 0;
    for (size_t i = 0; i < n; i++) {
        if (ranges[i].start < row || ranges[i].stop <= ranges[i].start || ranges[i].stop > SPAN)
            return false;
        for (; row < ranges[i].start; row++)
            if (rows[row]) return false;
        for (; row < ranges[i].stop; row++)
            if (!rows[row]) return false;
    }
    for (; row < SPAN; row++)
        if (rows[row]) return false;
    return true;
}

static void one_selection(const set *s, bool dense) {
    ps_selection c = form(s, dense);
    CHECK(ps_selection_check(&c, NULL) == PS_OK);
    CHECK(ps_selection_count(&c) == s->count);
    size_t runs = ps_selection_runs(&c), seen = 0;
    ps_range *out = exactly(runs * sizeof *out);
    ps_selection_to_ranges(&c, out);
    CHECK(ranges_are(out, runs, s->rows));
    for (size_t i = 1; i < runs; i++) seen += out[i - 1].stop == out[i].start;
    CHECK(seen == 0);

    int64_t k = 0;
    for (int64_t row = 0; row < SPAN; row++)
        if (s->rows[row]) CHECK(ps_selection_nth(&c, k++) == row);
    CHECK(ps_selection_nth(&c, k) == -1);
    CHECK(ps_selection_nth(&c, -1) == -1);

    /* the same runs, however the way is cut, also after a seek */
    for (int64_t row = rnd(SPAN); row < SPAN; row += 50) {
        ps_run_cursor cursor = {0, row};
        uint8_t rows[SPAN] = {0}, expected[SPAN] = {0};
        memcpy(expected + row, s->rows + row, (size_t)(SPAN - row));
        for (int64_t limit = row; limit < SPAN;) {
            limit += 1 + rnd(40);
            for (ps_range run; ps_selection_next(&c, &cursor, limit, &run);) {
                CHECK(run.start < run.stop && run.stop <= limit);
                memset(rows + run.start, 1, (size_t)(run.stop - run.start));
            }
        }
        CHECK(memcmp(rows, expected, SPAN) == 0);
    }

    int64_t base = rnd(SPAN), length = rnd((uint32_t)(SPAN - base) + 1);
    uint8_t *bitmap = exactly((size_t)(length + 7) / 8);
    ps_selection_to_bitmap(&c, base, length, bitmap);
    bool same = true;
    for (int64_t i = 0; i < length; i++) same = same && bit(bitmap, i) == s->rows[base + i];
    for (int64_t i = length; i < (length + 7) / 8 * 8; i++) same = same && !bit(bitmap, i);
    CHECK(same);

    uint8_t *mask = exactly((size_t)(s->count + 7) / 8), kept[SPAN] = {0};
    for (int64_t i = 0; i < (s->count + 7) / 8; i++)
        mask[i] = (uint8_t)(rnd(256) | (rnd(2) ? 255 : 0));
    for (int64_t row = 0, i = 0; row < SPAN; row++)
        if (s->rows[row]) kept[row] = bit(mask, i++);
    size_t n = ps_selection_refine(&c, mask, NULL);
    ps_range *refined = exactly(n * sizeof *refined);
    CHECK(ps_selection_refine(&c, mask, refined) == n);
    CHECK(ranges_are(refined, n, kept));

    int64_t lowest = s->base, span = s->length;
    if (!dense && s->n) { /* a bitmap that holds the ranges exactly */
        lowest = s->ranges[0].start;
        span = s->ranges[s->n - 1].stop - lowest;
    }
    uint8_t *bits = exactly((size_t)(span + 7) / 8);
    ps_selection_refine_bits(&c, mask, lowest, span, bits);
    same = true;
    for (int64_t i = 0; i < (span + 7) / 8 * 8; i++)
        same = same && bit(bits, i) == (i < span && kept[lowest + i]);
    CHECK(same);
    free(bits);

    uint64_t words[SPAN / 64 + 1];
    size_t index = 0;
    for (int64_t at = 0; at < SPAN;
         at += length) { /* windows in order, each from the last index */
        length = 1 + rnd((uint32_t)(SPAN - at));
        ps_selection_words(&c, &index, at, length, words);
        same = true;
        for (int64_t i = 0; i < (length + 63) / 64 * 64; i++)
            same = same && (words[i / 64] >> (i % 64) & 1) == (i < length && s->rows[at + i]);
        CHECK(same);
        int64_t left = 0;
        for (int64_t row = at; row < SPAN; row++) left += s->rows[row];
        const int64_t most = rnd(SPAN);
        CHECK(ps_selection_count_from(&c, at, INT64_MAX) == left);
        CHECK(ps_selection_count_from(&c, at, most) == (left < most ? left : most));
        CHECK(ps_selection_count_from(&c, at, -1) == 0);
        int64_t end = at + length;
        while (end > at && !s->rows[end - 1]) end--;
        CHECK(ps_selection_end(&c, at, at + length) == end);
    }

    int64_t first[8] = {0};
    for (int i = 1; i < 8; i++) first[i] = first[i - 1] + rnd(SPAN / 7);
    uint8_t touched[7];
    ps_pages_touched(&c, first, 7, touched);
    for (int i = 0; i < 7; i++) {
        bool any = false;
        for (int64_t row = first[i]; row < first[i + 1]; row++) any = any || s->rows[row];
        CHECK(touched[i] == any);
    }
    free(out), free(bitmap), free(mask), free(refined);
}

static void two_selections(const set *a, const set *b) {
    uint8_t both[SPAN], any[SPAN], none[SPAN] = {0}, only[SPAN], differ[SPAN];
    int64_t start = rnd(SPAN), stop = start + rnd((uint32_t)(SPAN - start) + 1);
    for (int i = 0; i < SPAN; i++) {
        both[i] = a->rows[i] & b->rows[i], any[i] = a->rows[i] | b->rows[i];
        only[i] = a->rows[i] & !b->rows[i], differ[i] = a->rows[i] ^ b->rows[i];
        if (i >= start && i < stop) none[i] = !a->rows[i];
    }
    ps_range *out = exactly((a->n + b->n) * sizeof *out);
    CHECK(ranges_are(out, ps_ranges_and(a->ranges, a->n, b->ranges, b->n, out), both));
    CHECK(ranges_are(out, ps_ranges_or(a->ranges, a->n, b->ranges, b->n, out), any));
    free(out);
    out = exactly((a->n + 1) * sizeof *out);
    CHECK(ranges_are(out, ps_ranges_not(a->ranges, a->n, start, stop, out), none));
    free(out);

    const uint8_t *expected[] = {both, any, only, differ};
    size_t size = (SPAN + 7) / 8;
    uint8_t *x = exactly(size), *y = exactly(size);
    ps_selection ca = form(a, true), cb = form(b, false);
    for (int op = PS_SET_AND; op <= PS_SET_XOR; op++) {
        bool same = true;
        ps_selection_to_bitmap(&ca, 0, SPAN, x);
        ps_selection_to_bitmap(&cb, 0, SPAN, y);
        ps_bitmap_combine(x, y, size, (ps_set_op)op);
        for (int i = 0; i < SPAN; i++) same = same && bit(x, i) == expected[op][i];
        CHECK(same);
    }
    free(x), free(y);
}

static void test_selections(void) {
    for (int round = 0; round < 400; round++) {
        set a = set_random(), b = set_random();
        one_selection(&a, false);
        one_selection(&a, true);
        two_selections(&a, &b);
        set_free(&a), set_free(&b);
    }
    ps_error err;
    const ps_range bad[][2] = {
        {{-1, 3}, {4, 5}}, {{1, 3}, {2, 5}}, {{1, 3}, {3, 3}}, {{4, 5}, {1, 2}}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ps_selection s = {.ranges = bad[i], .n_ranges = 2};
        CHECK(ps_selection_check(&s, &err) == PS_INVALID && strstr(err.message, "range"));
    }
    ps_selection s = {.bitmap = (const uint8_t *)"", .base = INT64_MAX, .length = 1};
    CHECK(ps_selection_check(&s, NULL) == PS_INVALID);
}

static void test_normalise(void) {
    for (int round = 0; round < 300; round++) {
        size_t n = rnd(12), kept;
        uint8_t rows[SPAN] = {0};
        ps_range *ranges = exactly(n * sizeof *ranges);
        int64_t *numbers = exactly(n * sizeof *numbers);
        for (size_t i = 0; i < n; i++) {
            ranges[i].start = rnd(SPAN - 20), ranges[i].stop = ranges[i].start + rnd(20);
            memset(rows + ranges[i].start, 1, (size_t)(ranges[i].stop - ranges[i].start));
        }
        CHECK(ps_ranges_normalise(ranges, n, &kept, NULL) == PS_OK);
        CHECK(ranges_are(ranges, kept, rows));
        memset(rows, 0, SPAN);
        for (size_t i = 0; i < n; i++) numbers[i] = rnd(30), rows[numbers[i]] = 1;
        CHECK(ps_ranges_from_rows(numbers, n, ranges, &kept, NULL) == PS_OK);
        CHECK(ranges_are(ranges, kept, rows));
        free(ranges), free(numbers);
    }
    ps_range r = {3, 2}, out;
    size_t kept;
    int64_t row = INT64_MAX;
    CHECK(ps_ranges_normalise(&r, 1, &kept, NULL) == PS_INVALID && kept == 0);
    CHECK(ps_ranges_from_rows(&row, 1, &out, &kept, NULL) == PS_INVALID);
    const int64_t first[] = {0, 4, 4, 9, 12};
    ps_range zones[4];
    CHECK(ps_zones_to_ranges((const uint8_t *)"\1\1\3\2", 1, first, 4, zones) == 1);
    CHECK(zones[0].start == 0 && zones[0].stop == 9);
}

/* Rows below 0 are none, and rows beyond are as far as numbers go. */
static void test_rows_that_are_none(void) {
    const ps_selection bits = {.bitmap = (const uint8_t *)"\377", .base = 9, .length = 8};
    const int64_t first[] = {INT64_MIN, INT64_MIN + 1, -1, 0, 9, 10, INT64_MAX};
    uint8_t mask[6];
    ps_range run;
    ps_run_cursor cursor = {.row = INT64_MIN};
    CHECK(!ps_selection_next(&bits, &cursor, INT64_MIN + 1, &run));
    ps_pages_touched(&bits, first, 6, mask);
    CHECK(memcmp(mask, "\0\0\0\0\1\1", 6) == 0);

    /* every row of a set, and every limit, at and beside both ends of the numbers */
    const int64_t ends[] = {INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX};
    const ps_range range = {INT64_MAX - 8, INT64_MAX};
    const ps_selection last[] = {
        {.bitmap = (const uint8_t *)"\377", .base = INT64_MAX - 8, .length = 8},
        {.ranges = &range, .n_ranges = 1}};
    for (size_t i = 0; i < 2; i++) {
        uint64_t word;
        size_t index = 0;
        CHECK(ps_selection_check(&last[i], NULL) == PS_OK);
        ps_selection_words(&last[i], &index, INT64_MAX - 16, 16, &word);
        CHECK(word == 0xff00);
        ps_selection_to_bitmap(&last[i], INT64_MAX - 16, 16, (uint8_t *)&word);
        CHECK((word & 0xffff) == 0xff00);
        for (size_t a = 0; a < 7; a++) {
            const int64_t rows = ends[a] == INT64_MAX ? 0 : ends[a] == INT64_MAX - 1 ? 1 : 8;
            CHECK(ps_selection_count_from(&last[i], ends[a], INT64_MAX) == rows);
            for (size_t b = 0; b < 7; b++) {
                const bool met = ends[a] < ends[b] && ends[b] > INT64_MAX - 8;
                cursor = (ps_run_cursor){.row = ends[a]};
                CHECK(ps_selection_next(&last[i], &cursor, ends[b], &run) == met);
                if (ends[a] > ends[b]) continue;
                CHECK(ps_selection_end(&last[i], ends[a], ends[b]) ==
                      (met ? ends[b] : ends[a]));
            }
        }
    }
}

int main(void) {
    test_selections();
    test_normalise();
    test_rows_that_are_none();
    return report();
}
