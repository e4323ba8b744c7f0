/* nest.c - rows of a nested leaf: levels become validity and offsets, one buffer for each rung of the ladder
 * (README.md, "Nested Encoding"; the record shredding of Dremel).
 *
 * A list cuts the ladder into segments. Segment s lies below s lists, and its slots are the entries with a
 * repetition level of at most s and a definition level that says that list s has an element there. All that
 * is nullable in a segment has one validity bit a slot; the list below it one offset a slot. */
#include <stdlib.h>

#include "leaf.h"

typedef struct ps_step { /* a rung and its output */
    int32_t type;
    uint8_t level;      /* least definition level at which it is there */
    int64_t null_count; /* PS_RUNG_OPTIONAL */
    ps_grow out;        /* bits, or 32-bit offsets */
} ps_step;

typedef struct ps_segment {
    uint8_t level;       /* least definition level of its slots */
    int32_t first, stop; /* its nullable rungs */
    int64_t slots;       /* in the output */
} ps_segment;

/* Whether the last row that began goes on in the next page, and whether it is selected. */
typedef enum ps_open { PS_OPEN_NOT = 0, PS_OPEN_SKIPPED, PS_OPEN_TAKEN } ps_open;

struct ps_nest {
    int32_t n_rungs, lists; /* segments: one more than lists */
    ps_step *rungs;
    ps_segment *segments;

    /* the page */
    ps_grow rep, def; /* a byte an entry; rep is empty where nothing is repeated */
    ps_grow starts;   /* uint32_t: entries at which rows begin, and the end */
    bool has_starts;
    int64_t entries, entry; /* in the page, those that are done */
    int64_t lead;           /* that belong to a row of a page before */
    ps_open open;
    uint8_t last_def; /* of the entry before the page */

    int64_t rows, max_rows; /* output */
};

/* ---- the ladder --------------------------------------------------------------------------- */

ps_status ps_nest_new(const ps_leaf_spec *spec, ps_nest **out, ps_error *err) {
    int32_t lists = 0;
    int def = 0;
    *out = NULL;
    if (spec->n_rungs < 0 || spec->n_rungs > 2 * PS_MAX_LEVEL || spec->max_def > PS_MAX_LEVEL)
        return ps_fail(err, PS_LIMIT, PS_NOWHERE, "a leaf of %d levels is nested too deeply",
                       (int)spec->max_def);
    for (int32_t i = 0; i < spec->n_rungs; i++) {
        const ps_rung *rung = &spec->rungs[i];
        const bool list = rung->type == PS_RUNG_LIST;
        lists += list;
        if (rung->def_level != ++def || (list && rung->rep_level != lists))
            return ps_fail(err, PS_INVALID, PS_NOWHERE, "rung %d has levels %d and %d", (int)i,
                           (int)rung->def_level, (int)rung->rep_level);
    }
    if (lists != spec->max_rep || spec->max_def < def || spec->max_def > def + 1)
        return ps_fail(err, PS_INVALID, PS_NOWHERE,
                       "levels %d and %d do not fit a ladder of %d rungs", (int)spec->max_def,
                       (int)spec->max_rep, (int)spec->n_rungs);
    ps_nest *nest = calloc(1, sizeof *nest);
    if (!nest) return ps_fail_nomem(err, sizeof *nest);
    nest->n_rungs = spec->n_rungs;
    nest->lists = lists;
    nest->rungs = calloc((size_t)spec->n_rungs, sizeof *nest->rungs);
    nest->segments = calloc((size_t)lists + 1, sizeof *nest->segments);
    if (!nest->rungs || !nest->segments) {
        ps_nest_free(nest);
        return ps_fail_nomem(err, (size_t)spec->n_rungs * sizeof *nest->rungs);
    }
    ps_segment *segment = nest->segments;
    for (int32_t i = 0; i < spec->n_rungs; i++) {
        nest->rungs[i].type = spec->rungs[i].type;
        nest->rungs[i].level = (uint8_t)spec->rungs[i].def_level;
        segment->stop = i;
        if (spec->rungs[i].type == PS_RUNG_LIST) {
            segment++;
            segment->first = i + 1;
            segment->level = nest->rungs[i].level;
        }
    }
    segment->stop = spec->n_rungs;
    *out = nest;
    return PS_OK;
}

void ps_nest_drop_output(ps_nest *nest) {
    for (int32_t i = 0; nest->rungs && i < nest->n_rungs; i++) {
        ps_grow_drop(&nest->rungs[i].out);
        nest->rungs[i].null_count = 0;
    }
    for (int32_t s = 0; nest->segments && s <= nest->lists; s++) nest->segments[s].slots = 0;
    nest->rows = 0;
}

void ps_nest_free(ps_nest *nest) {
    if (!nest) return;
    ps_nest_drop_output(nest);
    ps_grow_drop(&nest->rep);
    ps_grow_drop(&nest->def);
    ps_grow_drop(&nest->starts);
    free(nest->rungs);
    free(nest->segments);
    free(nest);
}

/* Room for so many slots of a segment, unless that is too much to ask for in advance. */
static ps_status reserve(ps_leaf *leaf, ps_grow *grow, size_t slots, size_t width,
                         ps_error *err) {
    size_t size;
    if (!ps_mul_size(slots, width, &size) || size > leaf->spec.max_output) return PS_OK;
    return ps_leaf_room(leaf, grow, size, err);
}

ps_status ps_nest_begin(ps_leaf *leaf, int64_t max_rows, int64_t expected, size_t slots,
                        ps_error *err) {
    ps_nest *nest = leaf->nest;
    nest->max_rows = max_rows;
    if (nest->open == PS_OPEN_TAKEN) nest->open = PS_OPEN_SKIPPED; /* its output is gone */
    if (slots >= SIZE_MAX / 64) return PS_OK;
    for (int32_t s = 0, r = 0; s <= nest->lists; s++) {
        const size_t n = s ? slots : (size_t)expected;
        for (; r < nest->segments[s].stop; r++)
            PS_TRY(reserve(leaf, &nest->rungs[r].out, n / 8 + 1, 1, err));
        if (s < nest->lists) PS_TRY(reserve(leaf, &nest->rungs[r++].out, n + 1, 4, err));
    }
    if (!leaf->nest->lists) slots = (size_t)expected;
    if (leaf->spec.levels_only) return PS_OK;
    PS_TRY(reserve(leaf, &leaf->out_validity, slots / 8 + 1, 1, err));
    if (leaf->bytes) {
        const size_t width = leaf->spec.kind == PS_BYTES ? 4 : 8;
        return reserve(leaf, &leaf->out_offsets, slots + 1, width, err);
    }
    if (leaf->spec.kind == PS_BOOL)
        return reserve(leaf, &leaf->out_values, slots / 8 + 1, 1, err);
    return reserve(leaf, &leaf->out_values, slots, leaf->out_width, err);
}

void ps_nest_end(ps_nest *nest) {
    nest->open = PS_OPEN_NOT;
}

int64_t ps_nest_rows(const ps_nest *nest) {
    return nest->rows;
}

/* ---- a page ------------------------------------------------------------------------------- */

/* An entry that goes on with a list adds an element to it, and the entry before it had one. */
static bool levels_fit(const ps_nest *nest) {
    const uint8_t *rep = nest->rep.data, *def = nest->def.data;
    const size_t n = (size_t)nest->entries;
    unsigned bad = 0;
    if (nest->lists == 1) {
        const uint8_t least = nest->segments[1].level;
        uint8_t found = rep[0] & ((def[0] < least) | (nest->last_def < least));
        for (size_t i = 1; i < n; i++)
            found |= (uint8_t)(rep[i] & ((def[i] < least) | (def[i - 1] < least)));
        return !found;
    }
    uint8_t last = nest->last_def;
    for (size_t i = 0; i < n; i++) {
        const uint8_t least = nest->segments[rep[i]].level; /* 0 where a row begins */
        bad |= (unsigned)(def[i] < least) | (unsigned)(last < least);
        last = def[i];
    }
    return !bad;
}

static int64_t count_starts(const uint8_t *rep, size_t n) {
    size_t starts = 0;
    while (n) { /* sums in bytes, which a compiler makes many at a time */
        const size_t take = n < 255 ? n : 255;
        uint8_t sum = 0;
        for (size_t i = 0; i < take; i++) sum = (uint8_t)(sum + (rep[i] == 0));
        starts += sum, rep += take, n -= take;
    }
    return (int64_t)starts;
}

static int64_t count_level(const uint8_t *def, size_t n, uint8_t level) {
    size_t found = 0;
    while (n) {
        const size_t take = n < 255 ? n : 255;
        uint8_t sum = 0;
        for (size_t i = 0; i < take; i++) sum = (uint8_t)(sum + (def[i] >= level));
        found += sum, def += take, n -= take;
    }
    return (int64_t)found;
}

ps_status ps_nest_page(ps_leaf *leaf, ps_error *err) {
    ps_nest *nest = leaf->nest;
    const ps_page *page = &leaf->page;
    ps_level_part rep, def;
    const size_t n = (size_t)page->num_values;
    PS_TRY(ps_levels_split(leaf, &rep, &def, err));
    nest->entries = page->num_values;
    nest->entry = nest->lead = 0;
    nest->has_starts = false;
    leaf->n_rows = page->num_values;
    PS_TRY(ps_leaf_room(leaf, &nest->def, n, err));
    if (n) PS_TRY(ps_levels_read(leaf, &def, leaf->spec.max_def, nest->def.data, n, err));
    if (nest->lists) {
        PS_TRY(ps_leaf_room(leaf, &nest->rep, n, err));
        if (n) PS_TRY(ps_levels_read(leaf, &rep, leaf->spec.max_rep, nest->rep.data, n, err));
        leaf->n_rows = count_starts(nest->rep.data, n);
        while ((size_t)nest->lead < n && nest->rep.data[nest->lead]) nest->lead++;
        if (nest->lead && nest->open == PS_OPEN_NOT) {
            return ps_fail(err, page->index_rows >= 0 ? PS_MISMATCH : PS_CORRUPT, PS_NOWHERE,
                           "begins inside a row");
        }
        if (n && !levels_fit(nest))
            return ps_fail(err, PS_CORRUPT, PS_NOWHERE,
                           "a repetition level goes on with a list that has no element there");
    }
    if (page->index_rows >= 0 && page->index_rows != leaf->n_rows)
        return ps_fail(err, PS_MISMATCH, PS_NOWHERE, "has %lld rows, not %lld",
                       (long long)leaf->n_rows, (long long)page->index_rows);
    /* the number of rows in the header does not count: DuckDB has written that of the values there */
    leaf->n_values = count_level(nest->def.data, n, (uint8_t)leaf->spec.max_def);
    if (n) nest->last_def = nest->def.data[n - 1];
    return PS_OK;
}

/* The entry at which a row of the page begins; the end of the page for the row after its last. */
static ps_status entry_of(ps_leaf *leaf, int64_t row, int64_t *entry, ps_error *err) {
    ps_nest *nest = leaf->nest;
    *entry = row;
    if (!nest->lists) return PS_OK;
    *entry = nest->lead;
    if (row == 0) return PS_OK;
    *entry = nest->entries;
    if (row == leaf->n_rows) return PS_OK;
    if (!nest->has_starts) {
        size_t size;
        if (nest->entries > UINT32_MAX || !ps_mul_size((size_t)leaf->n_rows + 1, 4, &size))
            return ps_fail_nomem(err, SIZE_MAX);
        PS_TRY(ps_leaf_room(leaf, &nest->starts, size, err));
        uint32_t *starts = (uint32_t *)(void *)nest->starts.data;
        const uint8_t *rep = nest->rep.data;
        size_t k = 0;
        for (size_t i = 0; i < (size_t)nest->entries; i++) {
            starts[k] = (uint32_t)i;
            k += rep[i] == 0;
        }
        nest->has_starts = true;
    }
    *entry = ps_load32(nest->starts.data + 4 * (size_t)row);
    return PS_OK;
}

static ps_status skip_entries(ps_leaf *leaf, int64_t to, ps_error *err) {
    ps_nest *nest = leaf->nest;
    const int64_t n = count_level(nest->def.data + nest->entry, (size_t)(to - nest->entry),
                                  (uint8_t)leaf->spec.max_def);
    if (n && !leaf->spec.levels_only) PS_TRY(leaf->encoding->skip(leaf, n, err));
    leaf->value += n;
    nest->entry = to;
    return PS_OK;
}

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
        return count_level(nest->def.data + from, (size_t)(to - from), nest->segments[s].level);
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

static ps_status take_entries(ps_leaf *leaf, int64_t to, ps_error *err) {
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
    uint8_t valid[BLOCK], is[BLOCK], moved[BLOCK];
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

/* Rows from `start`, where the leaf stands and which is chosen, to the last chosen one before `stop`, as far as
 * their entries are one block. *rows is 0, and nothing is done, where going from run to run is better: up to
 * leaf->judged. */
static ps_status take_block(ps_leaf *leaf, int64_t start, int64_t stop, int64_t *rows,
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
        PS_TRY(entry_of(leaf, stop - leaf->page.first_row, &end, err));
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
    PS_TRY(entry_of(leaf, start + (int64_t)n_rows - leaf->page.first_row, &end, err));
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

ps_status ps_nest_rung(ps_nest *nest, int32_t rung, ps_column *out, ps_error *err) {
    ps_step *r = &nest->rungs[rung];
    const ps_segment *segment = nest->segments;
    while (rung > segment->stop || (rung == segment->stop && r->type != PS_RUNG_LIST))
        segment++;
    out->rows = nest->rows;
    out->n = segment->slots;
    if (r->type == PS_RUNG_LIST) {
        PS_TRY(ps_grow_room(&r->out, ((size_t)out->n + 1) * 4, SIZE_MAX, err));
        ps_store32(r->out.data + 4 * (size_t)out->n, (uint32_t)segment[1].slots);
        out->offsets_size = ((size_t)out->n + 1) * 4;
        return ps_grow_give(&r->out, out->offsets_size, &out->offsets, &out->offsets_capacity,
                            err);
    }
    out->null_count = r->null_count;
    if (!r->null_count) return PS_OK;
    out->validity_size = ((size_t)out->n + 7) / 8;
    return ps_grow_give(&r->out, out->validity_size, &out->validity, &out->validity_capacity,
                        err);
}

/* ---- the walk ----------------------------------------------------------------------------- */

/* All rows that begin in the page are done, the last of them so. */
static void end_of_page(ps_leaf *leaf, ps_open open) {
    leaf->nest->open = leaf->page.whole ? PS_OPEN_NOT : open;
}

/* What the page before left open. */
static ps_status take_lead(ps_leaf *leaf, ps_error *err) {
    ps_nest *nest = leaf->nest;
    if (nest->open == PS_OPEN_TAKEN) {
        PS_TRY(take_entries(leaf, nest->lead, err));
    } else {
        PS_TRY(skip_entries(leaf, nest->lead, err));
    }
    if (leaf->n_rows || leaf->page.whole) nest->open = PS_OPEN_NOT;
    return PS_OK;
}

ps_status ps_nest_take(ps_leaf *leaf, ps_take *state, ps_error *err) {
    ps_nest *nest = leaf->nest;
    if (leaf->has_page && leaf->row == 0 && nest->entry == 0 && nest->open != PS_OPEN_NOT)
        PS_TRY(take_lead(leaf, err));
    for (;;) {
        int64_t entry;
        if (nest->open == PS_OPEN_TAKEN) { /* the next page may have more of it */
            *state = PS_TAKE_PAGE;
            return PS_OK;
        }
        if (leaf->run.start == leaf->run.stop &&
            !ps_selection_next(&leaf->selection, &leaf->cursor, INT64_MAX, &leaf->run)) {
            *state = PS_TAKE_DONE;
            return PS_OK;
        }
        if (nest->rows == nest->max_rows) {
            *state = PS_TAKE_FULL;
            return PS_OK;
        }
        const int64_t start = leaf->run.start, end = leaf->page.first_row + leaf->n_rows;
        if (!leaf->has_page || start >= end) {
            if (leaf->has_page && leaf->row < leaf->n_rows) {
                leaf->row = leaf->n_rows;
                nest->entry = nest->entries;
                end_of_page(leaf, PS_OPEN_SKIPPED);
            }
            *state = PS_TAKE_PAGE;
            return PS_OK;
        }
        const int64_t here = leaf->page.first_row + leaf->row;
        if (start < here) {
            return ps_fail(err, PS_INVALID, PS_NOWHERE,
                           "row %lld is selected, but the page handed begins at row %lld",
                           (long long)start, (long long)here);
        }
        if (start > here) {
            PS_TRY(entry_of(leaf, start - leaf->page.first_row, &entry, err));
            PS_TRY(skip_entries(leaf, entry, err));
            leaf->row += start - here;
        }
        if (start >= leaf->judged) {
            int64_t rows;
            PS_TRY(take_block(leaf, start, end, &rows, err));
            if (rows) {
                leaf->next_row = start + rows;
                if (leaf->run.stop > leaf->next_row) {
                    leaf->run.start = leaf->next_row;
                } else {
                    leaf->run = (ps_range){0};
                    leaf->cursor.row = leaf->next_row;
                }
                if (leaf->row == leaf->n_rows) end_of_page(leaf, PS_OPEN_TAKEN);
                continue;
            }
        }
        int64_t want = (leaf->run.stop < end ? leaf->run.stop : end) - start;
        if (want > nest->max_rows - nest->rows) want = nest->max_rows - nest->rows;
        PS_TRY(entry_of(leaf, leaf->row + want, &entry, err));
        PS_TRY(take_entries(leaf, entry, err));
        leaf->row += want;
        nest->rows += want;
        leaf->run.start = leaf->next_row = start + want;
        if (leaf->row == leaf->n_rows) end_of_page(leaf, PS_OPEN_TAKEN);
    }
}
