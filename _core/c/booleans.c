/* booleans.c - BOOLEAN values, PLAIN and RLE (Encodings.md, "Plain" and "Run Length Encoding"). */
#include "leaf.h"

/* ---- PLAIN: a bit for each, addressed by leaf->page.value --------------------------------------- */

static ps_status plain_open(ps_leaf *leaf, ps_error *err) {
    (void)leaf, (void)err;
    return PS_OK;
}

static ps_status plain_skip(ps_leaf *leaf, int64_t n, ps_error *err) {
    (void)leaf, (void)n, (void)err;
    return PS_OK;
}

static ps_status plain_enough(const ps_leaf *leaf, size_t n, ps_error *err) {
    const size_t last = (size_t)leaf->page.value + n;
    if (last / 8 + (last % 8 != 0) > leaf->page.values_length)
        return ps_page_short(leaf, (int64_t)n, err);
    return PS_OK;
}

static ps_status plain_read(ps_leaf *leaf, uint8_t *out, size_t out_bit, int64_t n,
                            ps_error *err) {
    PS_TRY(plain_enough(leaf, (size_t)n, err));
    ps_bits_copy(out, out_bit, leaf->page.values, (size_t)leaf->page.value, (size_t)n);
    return PS_OK;
}

static ps_status plain_block(ps_leaf *leaf, uint64_t *out, const ps_block *block,
                             ps_error *err) {
    uint64_t bits[PS_BLOCK_WORDS] = {0};
    if (block->kept == 0) return PS_OK;
    PS_TRY(plain_enough(leaf, block->end, err));
    ps_words_load(bits, leaf->page.values, (size_t)leaf->page.value, block->end);
    ps_words_compress(out, bits, block->mask, ps_words_for(block->values));
    return PS_OK;
}

const ps_encoding ps_plain_booleans = {
    .rows_per_run = 256,
    .rows_per_run_nulls = 192,
    .open = plain_open,
    .skip = plain_skip,
    .read_bits = plain_read,
    .block_bits = plain_block,
};

/* ---- RLE: behind a length of four bytes ---------------------------------------------------- */

static ps_status rle_open(ps_leaf *leaf, ps_error *err) {
    if (leaf->page.values_length == 0 && leaf->page.n_values == 0)
        return ps_rle_open(&leaf->page.place.codes, leaf->page.values, 0, 1, err);
    if (leaf->page.values_length < 4) return ps_page_short(leaf, 1, err);
    const size_t claim = ps_load32(leaf->page.values), space = leaf->page.values_length - 4;
    if (claim > space && !leaf->page.given.partial) return ps_page_short(leaf, 1, err);
    return ps_rle_open(&leaf->page.place.codes, leaf->page.values + 4,
                       claim < space ? claim : space, 1, err);
}

static ps_status rle_skip(ps_leaf *leaf, int64_t n, ps_error *err) {
    ps_rle *codes = &leaf->page.place.codes;
    return ps_page_error(leaf, codes->start, ps_rle_skip(codes, (uint64_t)n, err), err);
}

static ps_status rle_read(ps_leaf *leaf, uint8_t *out, size_t out_bit, int64_t n,
                          ps_error *err) {
    ps_rle *codes = &leaf->page.place.codes;
    return ps_page_error(leaf, codes->start,
                         ps_rle_read_bits(codes, out, out_bit, (uint64_t)n, err), err);
}

static ps_status rle_block(ps_leaf *leaf, uint64_t *out, const ps_block *block, ps_error *err) {
    uint64_t bits[PS_BLOCK_WORDS] = {0};
    if (block->kept == 0) return rle_skip(leaf, (int64_t)block->values, err);
    PS_TRY(rle_read(leaf, (uint8_t *)bits, 0, (int64_t)block->values, err));
    ps_words_compress(out, bits, block->mask, ps_words_for(block->values));
    return PS_OK;
}

const ps_encoding ps_rle_booleans = {
    .rows_per_run = 256,
    .rows_per_run_nulls = 192,
    .open = rle_open,
    .skip = rle_skip,
    .read_bits = rle_read,
    .block_bits = rle_block,
};
