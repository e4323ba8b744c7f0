/* delta_numbers.c - DELTA_BINARY_PACKED values (Encodings.md, "Delta Encoding"). */
#include "leaf.h"

/* A stream without a byte is one without a value: a page of nulls may leave out all of it. */
static ps_status open(ps_leaf *leaf, ps_error *err) {
    if (leaf->page.n_values == 0 && leaf->page.values_length == 0) return PS_OK;
    return ps_page_error(leaf, leaf->page.values,
                         ps_delta_open(&leaf->page.place.numbers, leaf->page.values,
                                       leaf->page.values_length, err),
                         err);
}

static ps_status skip(ps_leaf *leaf, int64_t n, ps_error *err) {
    return ps_page_error(leaf, leaf->page.values,
                         ps_delta_skip(&leaf->page.place.numbers, (uint64_t)n, err), err);
}

/* n values as PLAIN has them, to out, which is aligned for them. */
static ps_status read_plain(ps_leaf *leaf, void *out, size_t n, ps_error *err) {
    ps_delta *numbers = &leaf->page.place.numbers;
    return ps_page_error(leaf, leaf->page.values,
                         leaf->in_width == 4 ? ps_delta_read32(numbers, out, n, err)
                                             : ps_delta_read64(numbers, out, n, err),
                         err);
}

static ps_status read_fixed(ps_leaf *leaf, uint8_t *out, int64_t n, ps_error *err) {
    uint64_t raw[PS_BLOCK];
    if (leaf->copies) return read_plain(leaf, out, (size_t)n, err);
    while (n) {
        const size_t batch = n < PS_BLOCK ? (size_t)n : PS_BLOCK;
        PS_TRY(read_plain(leaf, raw, batch, err));
        PS_TRY(ps_convert_fixed(&leaf->spec, (const uint8_t *)raw, out, batch, NULL));
        out += batch * leaf->out_width, n -= (int64_t)batch;
    }
    return PS_OK;
}

static ps_status block_fixed(ps_leaf *leaf, uint8_t *out, size_t space, const ps_block *block,
                             ps_error *err) {
    uint64_t raw[PS_BLOCK], kept[PS_BLOCK];
    const uint8_t *in = (const uint8_t *)raw;
    PS_TRY(read_plain(leaf, raw, block->end, err));
    PS_TRY(skip(leaf, (int64_t)(block->values - block->end), err));
    if (leaf->copies) {
        ps_compact(out, space, in, leaf->in_width, block->mask, block->end);
        return PS_OK;
    }
    ps_compact((uint8_t *)kept, PS_BLOCK, in, leaf->in_width, block->mask, block->end);
    return ps_convert_fixed(&leaf->spec, (const uint8_t *)kept, out, block->kept, NULL);
}

const ps_encoding ps_delta_numbers = {
    .rows_per_run = 512,
    .rows_per_run_nulls = 512,
    .open = open,
    .skip = skip,
    .read = read_fixed,
    .block = block_fixed,
};
