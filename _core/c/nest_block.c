/* nest_block.c - scattered rows of a nested leaf: a block of entries is evaluated as bits, and those of the chosen rows are
 * moved together (README.md, "Nested Encoding"). */
#include "nest.h"

enum {
    WORDS = PS_BLOCK_WORDS,
    ENTRIES_PER_RUN = 48, /* entries of a block that cost as much as a run, by measurement */
};

typedef struct entries { /* of a block */
    size_t n, n_words;
    const uint8_t *rep, *def;
    uint64_t chosen[WORDS]; /* whose row is selected */
} entries;

/* Whether each of n levels is at least `least`, as bits. */
static void find_levels(uint64_t *out, const uint8_t *levels, size_t n, uint8_t least) {
    for (; n >= 64; n -= 64, levels += 64) {
        uint64_t word = 0;
        for (unsigned k = 0; k < 8; k++)
            word |= ps_found_bits(ps_levels_found(levels + 8 * k, least)) << 8 * k;
        *out++ = word;
    }
    if (n) {
        *out = 0;
        for (size_t i = 0; i < n; i++) *out |= (uint64_t)(levels[i] >= least) << i;
    }
}

/* Which entries are slots of a segment and chosen; how many. */
static size_t chosen_slots(const ps_nest *nest, const entries *e, int32_t s, uint64_t *out) {
    find_levels(out, e->def, e->n, nest->segments[s].level);
    if (s < nest->lists) {
        uint64_t deeper[WORDS];
        find_levels(deeper, e->rep, e->n, (uint8_t)(s + 1));
        for (size_t w = 0; w < e->n_words; w++) out[w] &= ~deeper[w];
    }
    for (size_t w = 0; w < e->n_words; w++) out[w] &= e->chosen[w];
    return ps_words_count(out, e->n_words);
}

/* Entries whose row is one of the mask: a row is the entry that begins it and those that go on with it. */
static void choose(const ps_nest *nest, entries *e, const uint64_t *rows) {
    if (!nest->lists) {
        memcpy(e->chosen, rows, e->n_words * sizeof *rows);
        return;
    }
    uint64_t further[WORDS], starts[WORDS];
    find_levels(further, e->rep, e->n, 1);
    for (size_t w = 0; w < e->n_words; w++) starts[w] = ~further[w];
    ps_words_expand(e->chosen, rows, starts, e->n_words);
    uint64_t before = 0; /* whether the last entry of the word before is chosen */
    for (size_t w = 0; w < e->n_words; w++) {
        /* a carry runs through the entries that go on with a chosen one */
        const uint64_t first = (e->chosen[w] << 1 | before) & further[w];
        e->chosen[w] |= further[w] & ~(further[w] + first);
        before = e->chosen[w] >> 63;
    }
}

/* The bits of n `slots` for which a level is at least `least` follow those of the output; how many are set. */
static size_t add_levels(const entries *e, const uint64_t *slots, size_t n, uint8_t least,
                         ps_grow *out, size_t at, uint64_t *bits) {
    uint64_t found[WORDS];
    find_levels(found, e->def, e->n, least);
    ps_words_compress(bits, found, slots, e->n_words);
    ps_bits_copy(out->data, at, (const uint8_t *)bits, 0, n);
    return ps_words_count(bits, ps_words_for(n));
}

/* Validity of the slots of a segment, and the offsets of the list below it, whose chosen elements are known. */
static void add_chosen_slots(ps_nest *nest, const entries *e, int32_t s, const uint64_t *slots,
                             size_t n, const uint64_t *elements) {
    ps_segment *segment = &nest->segments[s];
    const size_t at = (size_t)segment->slots;
    for (int32_t r = segment->first; r < segment->stop; r++) {
        uint64_t bits[WORDS + 1];
        ps_nest_level *level = &nest->levels[r];
        level->null_count += (int64_t)(n - add_levels(e, slots, n, level->def_level,
                                                      &level->out, at, bits));
    }
    segment->slots += (int64_t)n;
    if (s == nest->lists) return;
    uint8_t *out = nest->levels[segment->stop].out.data + 4 * at;
    size_t count = (size_t)segment[1].slots;
    for (size_t w = 0; w < e->n_words; w++) {
        for (uint64_t left = slots[w]; left; left &= left - 1, out += 4) {
            const uint64_t below = elements[w] & ((left & (0 - left)) - 1);
            ps_store32(out, (uint32_t)(count + ps_words_count(&below, 1)));
        }
        count += ps_words_count(&elements[w], 1);
    }
}

/* The values of n slots of the leaf. */
static ps_status add_chosen_values(ps_leaf *leaf, const entries *e, const uint64_t *slots,
                                   size_t n, ps_error *err) {
    uint64_t valid[WORDS], mask[WORDS + 1], validity[WORDS + 2] = {0};
    const size_t at = (size_t)leaf->out.rows;
    const uint8_t level = (uint8_t)leaf->spec.max_def;
    ps_block block = {.rows = e->n, .chosen = n, .mask = mask};
    PS_TRY(ps_output_grow(leaf, &leaf->out.validity, (at + n) / 8 + 1, err));
    PS_TRY(ps_nest_reserve_values(leaf, at + n, err));
    find_levels(valid, e->def, e->n, level);
    block.values = ps_words_compress(mask, e->chosen, valid, e->n_words);
    block.kept = add_levels(e, slots, n, level, &leaf->out.validity, at, validity);
    block.end = ps_words_end(mask, ps_words_for(block.values));

    bool fit;
    PS_TRY(ps_append_block(leaf, &block, validity, &fit, err));
    if (!fit)
        return ps_fail(err, PS_LIMIT, PS_NOWHERE,
                       "byte strings do not fit 32-bit offsets; use string_type=\"large\"");
    leaf->out.null_count += (int64_t)(n - block.kept);
    leaf->page.value += (int64_t)block.values;
    leaf->out.rows += (int64_t)n;
    return PS_OK;
}

/* All chosen entries of a block go into the output. */
static ps_status take_chosen(ps_leaf *leaf, const entries *e, ps_error *err) {
    ps_nest *nest = leaf->nest;
    uint64_t here[WORDS], below[WORDS] = {0};
    size_t n = chosen_slots(nest, e, 0, here);
    for (int32_t s = 0;; s++) {
        size_t elements = 0;
        PS_TRY(ps_nest_reserve(leaf, s, (int64_t)n, err));
        if (s < nest->lists) elements = chosen_slots(nest, e, s + 1, below);
        add_chosen_slots(nest, e, s, here, n, below);
        if (s == nest->lists) break;
        memcpy(here, below, e->n_words * sizeof *here);
        n = elements;
    }
    return leaf->spec.levels_only ? PS_OK : add_chosen_values(leaf, e, here, n, err);
}

ps_status ps_nest_take_block(ps_leaf *leaf, int64_t start, int64_t stop, int64_t *rows,
                             ps_error *err) {
    uint64_t mask[WORDS + 1] = {0};
    entries e;
    ps_nest *nest = leaf->nest;
    int64_t end, from = nest->entry;
    *rows = 0;
    if (stop - start > PS_BLOCK) stop = start + PS_BLOCK;
    if (leaf->rows.run.stop >= stop) {
        leaf->rows.evaluated = stop;
        return PS_OK;
    }
    for (;;) { /* a row has an entry at least */
        PS_TRY(ps_nest_entry_of(leaf, stop - leaf->page.given.first_row, &end, err));
        if (end - from <= PS_BLOCK) break;
        stop = start + (stop - start) / 2;
    }
    leaf->rows.evaluated = stop > start ? stop : start + 1;
    size_t n_rows = (size_t)(stop - start);
    const size_t n_words = ps_words_for(n_rows);
    if (end - from < 2 * ENTRIES_PER_RUN) return PS_OK;
    size_t index = leaf->rows.runs.index;
    ps_selection_words(&leaf->rows.selection, &index, start, stop - start, mask);
    if (leaf->rows.run.stop > start) { /* of ranges that touch, the cursor knows the last */
        const int64_t run = leaf->rows.run.stop < stop ? leaf->rows.run.stop - start
                                                       : stop - start;
        ps_bits_fill((uint8_t *)mask, 0, (size_t)run, true);
    }
    const size_t count = ps_words_count(mask, n_words);
    if (ps_words_runs(mask, n_words) * ENTRIES_PER_RUN < (size_t)(end - from) ||
        (int64_t)count > nest->max_rows - nest->rows)
        return PS_OK;
    n_rows = ps_words_end(mask, n_words); /* the next selection may have rows behind them */
    PS_TRY(ps_nest_entry_of(leaf, start + (int64_t)n_rows - leaf->page.given.first_row, &end,
                            err));
    e.n = (size_t)(end - from);
    e.n_words = ps_words_for(e.n);
    e.def = nest->def.data + from;
    e.rep = nest->lists ? nest->rep.data + from : NULL;
    /* near the limit, runs count what they need */
    for (int32_t s = 1; s <= nest->lists; s++)
        if ((size_t)nest->segments[s].slots + e.n > ps_element_limit()) return PS_OK;
    choose(nest, &e, mask);
    PS_TRY(take_chosen(leaf, &e, err));
    nest->entry = end;
    nest->rows += (int64_t)count;
    leaf->page.row += (int64_t)n_rows;
    *rows = (int64_t)n_rows;
    return PS_OK;
}
