/* append.c - values of the page appended to the output by its encoding: a run of values, or the kept ones of a block;
 * nulls among them get places. */
#include "leaf.h"

/* n bits lie behind the last row of the output: they move to the n ones of `rows` bits. */
static void spread_bits(ps_leaf *leaf, const uint8_t *bits, size_t at, int64_t rows,
                        int64_t n) {
    uint8_t *out = leaf->out.values.data;
    const size_t base = (size_t)leaf->out.rows;
    for (int64_t i = rows - 1; i >= n; i--) {
        const bool valid = ps_bit_get(bits, at + (size_t)i);
        ps_bits_fill(out, base + (size_t)i, 1, valid && ps_bit_get(out, base + (size_t)--n));
    }
}

void ps_append_spread_offsets(ps_leaf *leaf, const uint8_t *bits, size_t at, int64_t rows,
                              int64_t n) {
    const int64_t base = leaf->out.rows;
    if (ps_filter_in_place(leaf)) {
        ps_spread((uint8_t *)ps_filter_slice(leaf, base), sizeof(ps_slice), bits, at,
                  (size_t)rows, (size_t)n);
        return;
    }
    if (leaf->views) {
        ps_spread(leaf->out.offsets.data + 16 * (size_t)base, 16, bits, at, (size_t)rows,
                  (size_t)n);
        return;
    }
    for (int64_t i = rows - 1; i >= n; i--) {
        ps_offset_set(leaf, base + i + 1, ps_offset_get(leaf, base + n));
        n -= ps_bit_get(bits, at + (size_t)i);
    }
}

/* Values of fixed width were read. Entries of a dictionary are checked once, not in every row. */
static void note_range(ps_leaf *leaf) {
    leaf->out.unranged |= leaf->page.encoding != &ps_dictionary_codes ||
                          !leaf->dictionary.checked;
}

ps_status ps_append_run(ps_leaf *leaf, const uint8_t *bits, size_t at, int64_t rows, int64_t n,
                        int64_t *got, ps_error *err) {
    *got = n;
    if (leaf->bytes) {
        PS_TRY(leaf->page.encoding->read_strings(leaf, leaf->out.rows, n, got, err));
        if (*got == n && n < rows) ps_append_spread_offsets(leaf, bits, at, rows, n);
    } else if (leaf->spec.kind == PS_BOOL) {
        uint8_t *out = leaf->out.values.data;
        PS_TRY(leaf->page.encoding->read_bits(leaf, out, (size_t)leaf->out.rows, n, err));
        if (n < rows) spread_bits(leaf, bits, at, rows, n);
    } else {
        uint8_t *out = leaf->out.values.data + (size_t)leaf->out.rows * leaf->out_width;
        PS_TRY(leaf->page.encoding->read(leaf, out, n, err));
        note_range(leaf);
        if (n < rows) ps_spread(out, leaf->out_width, bits, at, (size_t)rows, (size_t)n);
    }
    return PS_OK;
}

ps_status ps_append_block(ps_leaf *leaf, const ps_block *block, const uint64_t *validity,
                          bool *fit, ps_error *err) {
    const bool nulls = block->kept < block->chosen;
    const size_t at = (size_t)leaf->out.rows, width = leaf->out_width;
    *fit = true;
    if (leaf->bytes) {
        const ps_place before = leaf->page.place;
        PS_TRY(leaf->page.encoding->block_strings(leaf, block, fit, err));
        if (!*fit) {
            leaf->page.place = before;
        } else if (nulls) {
            ps_append_spread_offsets(leaf, (const uint8_t *)validity, 0, (int64_t)block->chosen,
                                     (int64_t)block->kept);
        }
    } else if (leaf->spec.kind == PS_BOOL) {
        uint64_t bits[PS_BLOCK_WORDS + 1] = {0}, spread[PS_BLOCK_WORDS];
        PS_TRY(leaf->page.encoding->block_bits(leaf, bits, block, err));
        if (nulls) ps_words_expand(spread, bits, validity, ps_words_for(block->chosen));
        ps_bits_copy(leaf->out.values.data, at, (const uint8_t *)(nulls ? spread : bits), 0,
                     block->chosen);
    } else {
        uint8_t *out = leaf->out.values.data + at * width;
        const size_t space = width ? leaf->out.values.capacity / width - at : block->chosen;
        PS_TRY(leaf->page.encoding->block(leaf, out, space, block, err));
        note_range(leaf);
        if (nulls)
            ps_spread(out, width, (const uint8_t *)validity, 0, block->chosen, block->kept);
    }
    return PS_OK;
}
