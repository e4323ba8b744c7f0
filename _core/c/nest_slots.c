/* nest_slots.c - runs of entries of a nested leaf become slots: validity, offsets and values (README.md, "Nested
 * Encoding"). */
#include "nest.h"

/* ---- output ------------------------------------------------------------------------------- */

enum { BLOCK = PS_BLOCK };

/* Whether each of n levels is at least `least`, as bits appended at `at`; how many are. */
static size_t add_bits(uint8_t *out, size_t at, const uint8_t *levels, size_t n,
                       uint8_t least) {
    uint8_t bits[BLOCK / 8 + 1];
    size_t count = 0, i = 0;
    for (; i + 8 <= n; i += 8) {
        const uint64_t found = ps_levels_found(levels + i, least);
        bits[i / 8] = (uint8_t)ps_found_bits(found);
        count += ps_found_count(found);
    }
    if (i < n) {
        unsigned rest = 0;
        for (size_t k = 0; i + k < n; k++) rest |= (unsigned)(levels[i + k] >= least) << k;
        bits[i / 8] = (uint8_t)rest;
        count += (size_t)ps_popcount64(rest);
    }
    ps_bits_copy(out, at, bits, 0, n);
    return count;
}

/* Which of n entries are slots of a segment, as bytes of 0 and 1; how many. */
static size_t find_slots(const ps_nest *nest, int32_t s, size_t from, size_t n, uint8_t *is) {
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
    PS_COUNT_BYTES(count, is, n, byte)
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

ps_status ps_nest_reserve(ps_leaf *leaf, int32_t s, int64_t slots, ps_error *err) {
    ps_nest *nest = leaf->nest;
    ps_segment *segment = &nest->segments[s];
    const size_t n = (size_t)(segment->slots + slots);
    for (int32_t r = segment->first; r < segment->stop; r++)
        PS_TRY(ps_output_grow(leaf, &nest->levels[r].out, n / 8 + 1, err));
    if (s && n > ps_element_limit())
        return ps_fail(err, PS_LIMIT, PS_NOWHERE,
                       "%zu elements of a list are more than 32-bit offsets count; "
                       "read fewer rows at once",
                       n);
    if (s < nest->lists) {
        size_t size;
        if (!ps_mul_size(n + 1, 4, &size)) return ps_fail_nomem(err, SIZE_MAX);
        PS_TRY(ps_output_grow(leaf, &nest->levels[segment->stop].out, size, err));
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
                                     (size_t)(to - at < BLOCK ? to - at : BLOCK), is);
    return slots;
}

/* Validity of the slots of a segment, and the offsets of the list below it, for one block of entries. */
static void add_slots(ps_nest *nest, int32_t s, size_t from, size_t n, int64_t *below) {
    uint8_t is[BLOCK], elements[BLOCK], moved[BLOCK];
    ps_segment *segment = &nest->segments[s];
    const uint8_t *def = nest->def.data + from;
    const size_t slots = find_slots(nest, s, from, n, is), at = (size_t)segment->slots;
    if (segment->first < segment->stop && slots < n) {
        keep(moved, def, is, n);
        def = moved;
    }
    for (int32_t r = segment->first; r < segment->stop; r++) {
        ps_nest_level *level = &nest->levels[r];
        level->null_count += (int64_t)(slots - add_bits(level->out.data, at, def, slots,
                                                        level->def_level));
    }
    if (s < nest->lists) {
        find_slots(nest, s + 1, from, n, elements);
        uint8_t *out = nest->levels[segment->stop].out.data + 4 * at;
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

ps_status ps_nest_reserve_values(ps_leaf *leaf, size_t total, ps_error *err) {
    size_t size;
    if (leaf->bytes) {
        if (!ps_mul_size(total + 1, leaf->spec.kind == PS_BYTES ? 4 : 8, &size))
            return ps_fail_nomem(err, SIZE_MAX);
        return ps_output_grow(leaf, &leaf->out.offsets, size, err);
    }
    if (leaf->spec.kind == PS_BOOL)
        return ps_output_grow(leaf, &leaf->out.values, total / 8 + 1, err);
    if (!ps_mul_size(total, leaf->out_width, &size)) return ps_fail_nomem(err, SIZE_MAX);
    return ps_output_grow(leaf, &leaf->out.values, size, err);
}

/* The values of entries, of which `slots` are slots of the leaf. */
static ps_status add_values(ps_leaf *leaf, int64_t from, int64_t to, int64_t slots,
                            ps_error *err) {
    const ps_nest *nest = leaf->nest;
    uint8_t is[BLOCK], moved[BLOCK];
    const uint8_t level = (uint8_t)leaf->spec.max_def;
    const size_t at = (size_t)leaf->out.rows, total = at + (size_t)slots;
    size_t place = at;
    int64_t n = 0, got;
    PS_TRY(ps_output_grow(leaf, &leaf->out.validity, total / 8 + 1, err));
    for (int64_t start = from; start < to; start += BLOCK) {
        const size_t rest = (size_t)(to - start), here = rest < BLOCK ? rest : BLOCK;
        const uint8_t *def = nest->def.data + start;
        const size_t found = find_slots(nest, nest->lists, (size_t)start, here, is);
        if (found < here) {
            keep(moved, def, is, here);
            def = moved;
        }
        n += (int64_t)add_bits(leaf->out.validity.data, place, def, found, level);
        place += found;
    }
    PS_TRY(ps_nest_reserve_values(leaf, total, err));
    PS_TRY(ps_append_run(leaf, leaf->out.validity.data, at, slots, n, &got, err));
    if (got < n)
        return ps_fail(err, PS_LIMIT, PS_NOWHERE,
                       "byte strings do not fit 32-bit offsets; use string_type=\"large\"");
    leaf->out.null_count += slots - n;
    leaf->page.value += n;
    leaf->out.rows += slots;
    return PS_OK;
}

ps_status ps_nest_take_entries(ps_leaf *leaf, int64_t to, ps_error *err) {
    ps_nest *nest = leaf->nest;
    const int64_t from = nest->entry;
    int64_t slots = 0;
    if (from == to) return PS_OK;
    for (int32_t s = 0; s <= nest->lists; s++) {
        slots = count_slots(nest, s, from, to);
        PS_TRY(ps_nest_reserve(leaf, s, slots, err));
    }
    for (int32_t s = 0; s <= nest->lists; s++) {
        ps_segment *segment = &nest->segments[s];
        if (s == nest->lists && segment->first == segment->stop) {
            segment->slots += slots;
            break;
        }
        int64_t below = s < nest->lists ? segment[1].slots : 0;
        for (int64_t at = from; at < to; at += BLOCK)
            add_slots(nest, s, (size_t)at, (size_t)(to - at < BLOCK ? to - at : BLOCK), &below);
    }
    if (!leaf->spec.levels_only) PS_TRY(add_values(leaf, from, to, slots, err));
    nest->entry = to;
    return PS_OK;
}
