/* bloom_build.c - split-block Bloom filters filled and cut to size (BloomFilter.md). */
#include "bloom.h"
#include "values.h"

#define AHEAD 16 /* values that are hashed before their blocks are touched */

static void insert(uint8_t *filter, uint64_t n_blocks, const uint64_t *hashes, size_t n) {
    for (size_t k = 0; k < n; k++) {
        uint8_t *block = filter + ((hashes[k] >> 32) * n_blocks >> 32) * PS_BLOOM_BLOCK;
        for (int i = 0; i < 8; i++)
            ps_store32(block + 4 * i,
                       ps_load32(block + 4 * i) | ps_bloom_bit((uint32_t)hashes[k], i));
    }
}

/* Bytes of a value; 0 for those that differ in length or have a width of their own. */
static ps_status width_of(const ps_values *values, size_t *width, ps_error *err) {
    switch (values->kind) {
    case PS_F16: *width = 2; return PS_OK;
    case PS_I32:
    case PS_U32:
    case PS_F32: *width = 4; return PS_OK;
    case PS_I64:
    case PS_U64:
    case PS_F64: *width = 8; return PS_OK;
    case PS_BYTES:
    case PS_LARGE_BYTES:
    case PS_FIXED: *width = 0; return PS_OK;
    default:
        return ps_fail(err, PS_UNSUPPORTED, PS_NOWHERE, "values of kind %d in a Bloom filter",
                       (int)values->kind);
    }
}

static uint64_t hash_of(const ps_values *values, size_t width, int64_t i) {
    ps_bytes b = {values->values + (size_t)i * width, width};
    if (!width) b = ps_bytes_at(values, i);
    return ps_xxh64(b.data, b.size);
}

/* Zeros of both signs are equal and differ in their bytes. A lookup of one must find the other. */
static bool is_zero(const ps_values *values, size_t width, int64_t i) {
    if (values->kind != PS_F16 && values->kind != PS_F32 && values->kind != PS_F64)
        return false;
    const uint8_t *value = values->values + (size_t)i * width;
    uint8_t bits = (uint8_t)(value[width - 1] << 1);
    for (size_t k = 0; k + 1 < width; k++) bits |= value[k];
    return bits == 0;
}

static uint64_t hash_of_other_zero(const ps_values *values, size_t width, int64_t i) {
    uint8_t value[8] = {0};
    value[width - 1] = (uint8_t)(values->values[(size_t)i * width + width - 1] ^ 0x80);
    return ps_xxh64(value, width);
}

static bool is_there(const ps_values *values, int64_t i) {
    return !values->validity || ps_bit_get(values->validity, (size_t)i);
}

ps_status ps_bloom_plain_hashes(const ps_values *values, uint64_t *hashes, size_t *n,
                                ps_error *err) {
    size_t width = 0;
    *n = 0;
    PS_TRY(width_of(values, &width, err));
    PS_TRY(ps_values_check(values, "values", err));
    for (int64_t i = 0; i < values->n; i++)
        if (is_there(values, i)) hashes[(*n)++] = hash_of(values, width, i);
    return PS_OK;
}

ps_status ps_bloom_insert(const ps_values *values, uint8_t *filter, size_t n_blocks,
                          ps_error *err) {
    uint64_t hashes[AHEAD + 1];
    size_t n = 0, width = 0;
    if (n_blocks == 0 || n_blocks >= (size_t)1 << 31)
        return ps_fail(err, PS_INVALID, PS_NOWHERE, "a filter of %zu blocks", n_blocks);
    PS_TRY(width_of(values, &width, err));
    PS_TRY(ps_values_check(values, "values", err));
    for (int64_t i = 0; i < values->n; i++) {
        if (!is_there(values, i)) continue;
        hashes[n++] = hash_of(values, width, i);
        if (is_zero(values, width, i)) hashes[n++] = hash_of_other_zero(values, width, i);
        if (n >= AHEAD) insert(filter, n_blocks, hashes, n), n = 0;
    }
    insert(filter, n_blocks, hashes, n);
    return PS_OK;
}

double ps_bloom_rate(const uint8_t *filter, size_t n_blocks) {
    double sum = 0;
    for (size_t b = 0; b < n_blocks; b++) {
        double chance = 1;
        for (int i = 0; i < 8; i++)
            chance *= ps_popcount64(ps_load32(filter + b * PS_BLOOM_BLOCK + 4 * i)) / 32.0;
        sum += chance;
    }
    return n_blocks ? sum / (double)n_blocks : 0;
}

void ps_bloom_fold(uint8_t *filter, size_t n_blocks) {
    for (size_t b = 0; b < n_blocks / 2; b++) {
        const uint8_t *first = filter + 2 * b * PS_BLOOM_BLOCK,
                      *second = first + PS_BLOOM_BLOCK;
        for (int i = 0; i < PS_BLOOM_BLOCK; i += 8)
            ps_store64(filter + b * PS_BLOOM_BLOCK + i,
                       ps_load64(first + i) | ps_load64(second + i));
    }
}
