/* nest_slots.c - entries of a nested leaf become slots: validity, offsets and values, for whole runs of rows or
 * for the chosen ones of a block (README.md, "Nested Encoding"). */
#include "nest.h"

/* ---- output ------------------------------------------------------------------------------- */

enum { BLOCK = PS_BLOCK };

/* Whether each of n bytes is at least `least`, as bits appended at `at`; how many are. Bytes and `least` are
 * below 128, so that no sum carries into its neighbour. */
static size_t add_bits(uint8_t *out, size_t at, const uint8_t *bytes, size_t n, uint8_t least) {
    uint8_t bits[BLOCK / 8 + 1];
    const uint64_t high = UINT64_C(0x8080808080808080), ones = UINT64_C(0x0101010101010101);
    size_t count = 0, i = 0;
    for (; i + 8 <= n; i += 8) {
        const uint64_t found = ((ps_load64(bytes + i) | high) - least * ones) & high;
        bits[i / 8] = (uint8_t)(((found >> 7) * UINT64_C(0x0102040810204080)) >> 56);
        count += (size_t)(((found >> 7) * ones) >> 56);
    }
    if (i < n) {
        unsigned rest = 0;
        for (size_t k = 0; i + k < n; k++) rest |= (unsigned)(bytes[i + k] >= least) << k;
        bits[i / 8] = (uint8_t)rest;
        for (; rest; rest &= rest - 1) count++;
    }
    ps_bits_copy(out, at, bits, 0, n);
    return count;
}

/* Which of n entries, or of those that are chosen, are slots of a segment, as bytes of 0 and 1; how many. */
static size_t find_slots(const ps_nest *nest, int32_t s, size_t from, size_t n,
                         const uint8_t *chosen, uint8_t *is) {
    const uint8_t *def = nest->def.data + from;
    const uint8_t level = nest->segments[s].level;
    size_t count = 0;
    if (s == nest->lists) {
        for (size_t i = 0; i < n; i++) is[i] = def[i] >= level;
    } else {
        const uint8_t *rep = nest->rep.data + from;
        for (size_t i = 0; i < n; i++)
            is[i] = (uint8_t)((rep[i] <= (uint8_t)s) & (def[i] >= level));
    }
    for (size_t i = 0; chosen && i < n; i++) is[i] &= chosen[i];
    for (size_t i = 0; i < n;) {
        uint8_t sum = 0;
        for (const size_t stop = n - i < 255 ? n : i + 255; i < stop; i++)
            sum = (uint8_t)(sum + is[i]);
        count += sum;
    }
    return count;
}

/* The bytes whose mark is 1, moved together. */
static void keep(uint8_t *out, const uint8_t *bytes, const uint8_t *is, size_t n) {
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        out[k] = bytes[i];
        k += is[i];
    }
}

static ps_status room_for(ps_leaf *leaf, int32_t s, int64_t slots, ps_error *err) {
    ps_nest *nest = leaf->nest;
    ps_segment *segment = &nest->segments[s];
    const size_t n = (size_t)(segment->slots + slots);
    for (int32_t r = segment->first; r < segment->stop; r++)
        PS_TRY(ps_leaf_room(leaf, &nest->rungs[r].out, n / 8 + 1, err));
    if (s && n > ps_element_limit())
        return ps_fail(err, PS_LIMIT, PS_NOWHERE,
                       "%zu elements of a list are more than 32-bit offsets count; "
                       "read fewer rows at once",
                       n);
    if (s < nest->lists) {
        size_t size;
        if (!ps_mul_size(n + 1, 4, &size)) return ps_fail_nomem(err, SIZE_MAX);
        PS_TRY(ps_leaf_room(leaf, &nest->rungs[segment->stop].out, size, err));
    }
    return PS_OK;
}

static int64_t count_slots(const ps_nest *nest, int32_t s, int64_t from, int64_t to) {
    uint8_t is[BLOCK];
    int64_t slots = 0;
    if (s == nest->lists)
        return ps_nest_count_level(nest->def.data + from, (size_t)(to - from),
                                   nest->segments[s].level);
    for (int64_t at = from; at < to; at += BLOCK)
        slots += (int64_t)find_slots(nest, s, (size_t)at,
                                     (size_t)(to - at < BLOCK ? to - at : BLOCK), NULL, is);
    return slots;
}

/* Validity of the slots of a segment, and the offsets of the list below it, for one block of entries. */
static void add_slots(ps_nest *nest, int32_t s, size_t from, size_t n, const uint8_t *chosen,
                      int64_t *below) {
    uint8_t is[BLOCK], elements[BLOCK], moved[BLOCK];
    ps_segment *segment = &nest->segments[s];
    const uint8_t *def = nest->def.data + from;
    const size_t slots = find_slots(nest, s, from, n, chosen, is), at = (size_t)segment->slots;
    if (segment->first < segment->stop && slots < n) {
        keep(moved, def, is, n);
        def = moved;
    }
    for (int32_t r = segment->first; r < segment->stop; r++) {
        ps_step *rung = &nest->rungs[r];
        rung->null_count += (int64_t)(slots -
                                      add_bits(rung->out.data, at, def, slots, rung->level));
    }
    if (s < nest->lists) {
        find_slots(nest, s + 1, from, n, chosen, elements);
        uint8_t *out = nest->rungs[segment->stop].out.data + 4 * at;
        uint32_t count = (uint32_t)*below;
        for (size_t i = 0; i < n; i++) { /* one word behind the last slot is there */
            ps_store32(out, count);
            out += 4 * (size_t)is[i];
            count += elements[i];
        }
        *below = (int64_t)count;
    }
    segment->slots += (int64_t)slots;
}

static ps_status room_for_values(ps_leaf *leaf, size_t total, ps_error *err) {
    size_t size;
    if (leaf->bytes) {
        if (!ps_mul_size(total + 1, leaf->spec.kind == PS_BYTES ? 4 : 8, &size))
            return ps_fail_nomem(err, SIZE_MAX);
        return ps_leaf_room(leaf, &leaf->out_offsets, size, err);
    }
    if (leaf->spec.kind == PS_BOOL)
        return ps_leaf_room(leaf, &leaf->out_values, total / 8 + 1, err);
    if (!ps_mul_size(total, leaf->out_width, &size)) return ps_fail_nomem(err, SIZE_MAX);
    return ps_leaf_room(leaf, &leaf->out_values, size, err);
}

/* The values of entries, of which `slots` are slots of the leaf. */
static ps_status add_values(ps_leaf *leaf, int64_t from, int64_t to, int64_t slots,
                            ps_error *err) {
    const ps_nest *nest = leaf->nest;
    uint8_t is[BLOCK], moved[BLOCK];
    const uint8_t level = (uint8_t)leaf->spec.max_def;
    const size_t at = (size_t)leaf->out_rows, total = at + (size_t)slots;
    size_t place = at;
    int64_t n = 0, got;
    PS_TRY(ps_leaf_room(leaf, &leaf->out_validity, total / 8 + 1, err));
    for (int64_t start = from; start < to; start += BLOCK) {
        const size_t rest = (size_t)(to - start), here = rest < BLOCK ? rest : BLOCK;
        const uint8_t *def = nest->def.data + start;
        const size_t found = find_slots(nest, nest->lists, (size_t)start, here, NULL, is);
        if (found < here) {
            keep(moved, def, is, here);
            def = moved;
        }
        n += (int64_t)add_bits(leaf->out_validity.data, place, def, found, level);
        place += found;
    }
    PS_TRY(room_for_values(leaf, total, err));
    PS_TRY(ps_leaf_values(leaf, leaf->out_validity.data, at, slots, n, &got, err));
    if (got < n)
        return ps_fail(err, PS_LIMIT, PS_NOWHERE,
                       "byte strings do not fit 32-bit offsets; use string_type=\"large\"");
    leaf->null_count += slots - n;
    leaf->value += n;
    leaf->out_rows += slots;
    return PS_OK;
}

ps_status ps_nest_take_entries(ps_leaf *leaf, int64_t to, ps_error *err) {
    ps_nest *nest = leaf->nest;
    const int64_t from = nest->entry;
    int64_t slots = 0;
    if (from == to) return PS_OK;
    for (int32_t s = 0; s <= nest->lists; s++) {
        slots = count_slots(nest, s, from, to);
        PS_TRY(room_for(leaf, s, slots, err));
    }
    for (int32_t s = 0; s <= nest->lists; s++) {
        ps_segment *segment = &nest->segments[s];
        if (s == nest->lists && segment->first == segment->stop) {
            segment->slots += slots;
            break;
        }
        int64_t below = s < nest->lists ? segment[1].slots : 0;
        for (int64_t at = from; at < to; at += BLOCK)
            add_slots(nest, s, (size_t)at, (size_t)(to - at < BLOCK ? to - at : BLOCK), NULL,
                      &below);
    }
    if (!leaf->spec.levels_only) PS_TRY(add_values(leaf, from, to, slots, err));
    nest->entry = to;
    return PS_OK;
}

/* ---- blocks of scattered rows ------------------------------------------------------------- */

enum {
    ENTRIES_PER_RUN = 16
}; /* a run costs about as much as so many entries of a block, by measurement */

static ps_status block_values(ps_leaf *leaf, const uint8_t *def, const uint8_t *chosen,
                              size_t n, ps_error *err) {
    uint8_t valid[BLOCK], is[BLOCK], moved[BLOCK] = {0};
    uint64_t mask[PS_BLOCK_WORDS];
    const ps_nest *nest = leaf->nest;
    const uint8_t level = (uint8_t)leaf->spec.max_def;
    const size_t at = (size_t)leaf->out_rows, from = (size_t)nest->entry;
    const size_t slots = find_slots(nest, nest->lists, from, n, chosen, is);
    ps_block block = {.rows = n, .chosen = slots, .mask = mask};
    for (size_t i = 0; i < n; i++) valid[i] = def[i] >= level;
    PS_TRY(ps_leaf_room(leaf, &leaf->out_validity, (at + slots) / 8 + 1, err));
    PS_TRY(room_for_values(leaf, at + slots, err));
    keep(moved, def, is, n);
    block.kept = add_bits(leaf->out_validity.data, at, moved, slots, level);
    for (size_t i = 0; i < n; i++) block.values += valid[i];
    keep(moved, chosen, valid, n);
    memset(mask, 0, sizeof mask);
    add_bits((uint8_t *)mask, 0, moved, block.values, 1);
    block.end = ps_words_end(mask, ps_words_for(block.values));

    const uint8_t *bits = leaf->out_validity.data;
    if (leaf->bytes) {
        bool fit = true;
        PS_TRY(leaf->encoding->block_strings(leaf, &block, &fit, err));
        if (!fit)
            return ps_fail(err, PS_LIMIT, PS_NOWHERE,
                           "byte strings do not fit 32-bit offsets; use string_type=\"large\"");
        if (block.kept < slots)
            ps_leaf_spread_offsets(leaf, bits, at, (int64_t)slots, (int64_t)block.kept);
    } else if (leaf->spec.kind == PS_BOOL) {
        uint64_t words[PS_BLOCK_WORDS + 1] = {0};
        PS_TRY(leaf->encoding->block_bits(leaf, words, &block, err));
        ps_bits_copy(leaf->out_values.data, at, (const uint8_t *)words, 0, block.kept);
        ps_leaf_spread_bits(leaf, bits, at, (int64_t)slots, (int64_t)block.kept);
    } else {
        uint8_t *out = leaf->out_values.data + at * leaf->out_width;
        PS_TRY(leaf->encoding->block(leaf, out, slots, &block, err));
        if (block.kept < slots) ps_spread(out, leaf->out_width, bits, at, slots, block.kept);
    }
    leaf->null_count += (int64_t)(slots - block.kept);
    leaf->value += (int64_t)block.values;
    leaf->out_rows += (int64_t)slots;
    return PS_OK;
}

ps_status ps_nest_take_block(ps_leaf *leaf, int64_t start, int64_t stop, int64_t *rows,
                             ps_error *err) {
    uint64_t mask[PS_BLOCK_WORDS];
    uint8_t chosen[BLOCK];
    ps_nest *nest = leaf->nest;
    int64_t end, from = nest->entry;
    *rows = 0;
    if (stop - start > BLOCK) stop = start + BLOCK;
    if (leaf->run.stop >= stop) {
        leaf->judged = stop;
        return PS_OK;
    }
    for (;;) { /* a row has an entry at least */
        PS_TRY(ps_nest_entry_of(leaf, stop - leaf->page.first_row, &end, err));
        if (end - from <= BLOCK) break;
        stop = start + (stop - start) / 2;
    }
    leaf->judged = stop > start ? stop : start + 1;
    size_t n = (size_t)(end - from), n_rows = (size_t)(stop - start);
    const size_t n_words = ps_words_for(n_rows);
    if (n_rows < 2 * ENTRIES_PER_RUN) return PS_OK;
    size_t index = leaf->cursor.index;
    ps_selection_words(&leaf->selection, &index, start, stop - start, mask);
    if (leaf->run.stop > start) { /* of ranges that touch, the cursor knows the last */
        const int64_t run = leaf->run.stop < stop ? leaf->run.stop - start : stop - start;
        ps_bits_fill((uint8_t *)mask, 0, (size_t)run, true);
    }
    const size_t count = ps_words_count(mask, n_words);
    if (ps_words_runs(mask, n_words) * ENTRIES_PER_RUN < n ||
        (int64_t)count > nest->max_rows - nest->rows)
        return PS_OK;
    n_rows = ps_words_end(mask, n_words); /* those behind may be wanted by the next selection */
    PS_TRY(ps_nest_entry_of(leaf, start + (int64_t)n_rows - leaf->page.first_row, &end, err));
    n = (size_t)(end - from);
    if (nest->lists) {
        const uint8_t *rep = nest->rep.data + from;
        size_t row = SIZE_MAX;
        for (size_t i = 0; i < n; i++) {
            row += rep[i] == 0;
            chosen[i] = mask[row / 64] >> (row % 64) & 1;
        }
    } else {
        for (size_t i = 0; i < n; i++) chosen[i] = mask[i / 64] >> (i % 64) & 1;
    }
    /* near the limit, runs count what they need */
    for (int32_t s = 1; s <= nest->lists; s++)
        if ((size_t)nest->segments[s].slots + n > ps_element_limit()) return PS_OK;
    for (int32_t s = 0; s <= nest->lists; s++) PS_TRY(room_for(leaf, s, (int64_t)n, err));
    for (int32_t s = 0; s <= nest->lists; s++) {
        int64_t below = s < nest->lists ? nest->segments[s + 1].slots : 0;
        add_slots(nest, s, (size_t)from, n, chosen, &below);
    }
    if (!leaf->spec.levels_only)
        PS_TRY(block_values(leaf, nest->def.data + from, chosen, n, err));
    nest->entry = end;
    nest->rows += (int64_t)count;
    leaf->row += (int64_t)n_rows;
    *rows = (int64_t)n_rows;
    return PS_OK;
}
