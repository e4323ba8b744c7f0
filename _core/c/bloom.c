/* bloom.c - split-block Bloom filters: their header, the hashes of values, blocks and their bits
 * (BloomFilter.md). */
#include "bloom.h"
#include "convert.h"
#include "metadata.h"
#include "values.h"

/* ---- header ------------------------------------------------------------------------------ */

static const ps_field_spec algorithm_fields[] = {[1] = {"BLOCK", .kind = PS_FIELD_STRUCT}};
static const ps_struct_spec algorithm_spec = PS_STRUCT("BloomFilterAlgorithm", algorithm_fields,
                                                       0);
static const ps_field_spec hash_fields[] = {[1] = {"XXHASH", .kind = PS_FIELD_STRUCT}};
static const ps_struct_spec hash_spec = PS_STRUCT("BloomFilterHash", hash_fields, 0);
static const ps_field_spec compression_fields[] = {
    [1] = {"UNCOMPRESSED", .kind = PS_FIELD_STRUCT}};
static const ps_struct_spec compression_spec = PS_STRUCT("BloomFilterCompression",
                                                         compression_fields, 0);

typedef struct bloom_record {
    int64_t num_bytes, algorithm, hash, compression;
} bloom_record;

static const ps_field_spec header_fields[] = {
    [1] = {"numBytes", PS_FIELD_I32, .slot = PS_SLOT(bloom_record, num_bytes)},
    [2] = {"algorithm", PS_FIELD_UNION, .slot = PS_SLOT(bloom_record, algorithm),
           .nested = &algorithm_spec},
    [3] = {"hash", PS_FIELD_UNION, .slot = PS_SLOT(bloom_record, hash), .nested = &hash_spec},
    [4] = {"compression", PS_FIELD_UNION, .slot = PS_SLOT(bloom_record, compression),
           .nested = &compression_spec},
};
static const ps_struct_spec header_spec = PS_STRUCT(
    "BloomFilterHeader", header_fields, PS_FIELD(1) | PS_FIELD(2) | PS_FIELD(3) | PS_FIELD(4));

ps_status ps_bloom_header_read(const uint8_t *data, size_t length, size_t *header_length,
                               size_t *num_bytes, ps_error *err) {
    bloom_record r;
    ps_record_clear(&r, sizeof r);
    ps_thrift t = ps_thrift_open(data, length, NULL, err);
    PS_TRY(ps_thrift_struct(&t, &header_spec, (int64_t *)&r));
    if (r.algorithm != 1 || r.hash != 1 || r.compression != 1)
        return ps_fail(err, PS_UNSUPPORTED, 0,
                       "a Bloom filter of another algorithm, hash or compression");
    if (r.num_bytes <= 0 || r.num_bytes % PS_BLOOM_BLOCK)
        return ps_fail(err, PS_CORRUPT, 0, "a Bloom filter of %lld bytes, not of whole blocks",
                       (long long)r.num_bytes);
    *header_length = (size_t)ps_thrift_at(&t);
    *num_bytes = (size_t)r.num_bytes;
    return PS_OK;
}

/* ---- hashes ------------------------------------------------------------------------------ */

/* The two's complement integer of `width` bytes at p, the low one first, in `size` of them: false where it
 * does not fit. */
static bool resize(const uint8_t *p, size_t width, uint8_t *out, size_t size) {
    const uint8_t sign = p[width - 1] & 0x80 ? 0xff : 0;
    const size_t shared = width < size ? width : size;
    for (size_t i = size; i < width; i++)
        if (p[i] != sign) return false;
    memcpy(out, p, shared);
    memset(out + shared, sign, size - shared);
    return ((out[size - 1] ^ sign) & 0x80) == 0;
}

static bool is_decimal(int32_t kind) {
    return kind == PS_D128 || kind == PS_D256;
}

/* Hashes of an integer or decimal; none where the physical type cannot hold it. */
static size_t hash_integer(const ps_leaf_spec *spec, const ps_values *v, int64_t i,
                           uint64_t *out) {
    uint8_t plain[8];
    const size_t size = ps_plain_width(spec), width = ps_kind_width(spec);
    const uint8_t *p = v->values + (size_t)i * width;
    if (spec->kind == PS_U8 || spec->kind == PS_U16) {
        memset(plain, 0, sizeof plain);
        memcpy(plain, p, width);
    } else if (!resize(p, width, plain, size)) {
        return 0;
    }
    *out = ps_xxh64(plain, size);
    return 1;
}

/* A decimal of type_length bytes, the high one first. */
static size_t hash_decimal(const ps_leaf_spec *spec, const ps_values *v, int64_t i,
                           uint8_t *space, uint64_t *out) {
    const size_t size = (size_t)spec->type_length, width = ps_kind_width(spec);
    if (!resize(v->values + (size_t)i * width, width, space, size)) return 0;
    for (size_t a = 0, b = size - 1; a < b; a++, b--) {
        uint8_t byte = space[a];
        space[a] = space[b], space[b] = byte;
    }
    *out = ps_xxh64(space, size);
    return 1;
}

/* The file may have either zero where a filter asks for the other. */
static size_t hash_float(size_t size, const ps_values *v, int64_t i, uint64_t *out) {
    uint8_t plain[8];
    memcpy(plain, v->values + (size_t)i * size, size);
    out[0] = ps_xxh64(plain, size);
    plain[size - 1] &= 0x7f;
    for (size_t k = 0; k < size; k++)
        if (plain[k]) return 1;
    out[0] = ps_xxh64(plain, size);
    plain[size - 1] = 0x80;
    out[1] = ps_xxh64(plain, size);
    return 2;
}

ps_status ps_bloom_hashable(const ps_leaf_spec *spec, ps_error *err) {
    PS_TRY(ps_convert_check(spec, err));
    bool ok = false;
    switch (spec->physical) {
    case PQ_INT32:
    case PQ_INT64:
    case PQ_FLOAT:
    case PQ_DOUBLE: ok = true; break;
    case PQ_BYTE_ARRAY: ok = !is_decimal(spec->kind); break; /* one number, many lengths */
    case PQ_FIXED: ok = spec->kind != PS_I64 && spec->type_length <= PS_BLOOM_WIDTH; break;
    default: break;
    }
    if (ok) return PS_OK;
    return ps_fail(err, PS_UNSUPPORTED, PS_NOWHERE,
                   "values of kind %d have no hash of their own in physical type %d",
                   (int)spec->kind, (int)spec->physical);
}

ps_status ps_bloom_hashes(const ps_leaf_spec *spec, const ps_values *values, uint64_t *hashes,
                          size_t *n, ps_error *err) {
    uint8_t space[PS_BLOOM_WIDTH];
    *n = 0;
    PS_TRY(ps_bloom_hashable(spec, err));
    PS_TRY(ps_values_check(values, "values", err));
    bool strings = values->kind == PS_BYTES || values->kind == PS_LARGE_BYTES;
    bool fixed = spec->kind == PS_FIXED && (values->kind == PS_FIXED || strings);
    if (values->kind != spec->kind && !fixed)
        return ps_fail(err, PS_INVALID, PS_NOWHERE, "values of kind %d for a leaf of kind %d",
                       (int)values->kind, (int)spec->kind);
    for (int64_t i = 0; i < values->n; i++) {
        if (ps_kind_is_float(spec->kind)) {
            if (ps_value_is_nan(values, i))
                return ps_fail(err, PS_UNSUPPORTED, PS_NOWHERE, "NaN has many hashes");
            *n += hash_float(ps_kind_width(spec), values, i, hashes + *n);
        } else if (strings || fixed) {
            ps_bytes b = ps_bytes_at(values, i);
            if (spec->kind != PS_FIXED || b.size == (size_t)spec->width)
                hashes[(*n)++] = ps_xxh64(b.data, b.size);
        } else if (spec->physical == PQ_FIXED) {
            *n += hash_decimal(spec, values, i, space, hashes + *n);
        } else {
            *n += hash_integer(spec, values, i, hashes + *n);
        }
    }
    return PS_OK;
}

/* ---- blocks ------------------------------------------------------------------------------ */

void ps_bloom_places(const uint64_t *hashes, size_t n, uint64_t n_blocks, uint64_t *at) {
    for (size_t i = 0; i < n; i++)
        at[i] = ((hashes[i] >> 32) * n_blocks >> 32) * PS_BLOOM_BLOCK;
}

static bool block_has(const uint8_t *block, uint32_t key) {
    uint32_t missing = 0;
    for (int i = 0; i < 8; i++) missing |= ~ps_load32(block + 4 * i) & ps_bloom_bit(key, i);
    return missing == 0;
}

ps_status ps_bloom_check(const uint8_t *data, size_t length, const uint64_t *at,
                         const uint64_t *hashes, size_t n, size_t *found, ps_error *err) {
    *found = 0;
    for (size_t i = 0; i < n; i++) {
        if (length < PS_BLOOM_BLOCK || at[i] > length - PS_BLOOM_BLOCK)
            return ps_fail(err, PS_INVALID, PS_NOWHERE, "a block at byte %llu of %zu",
                           (unsigned long long)at[i], length);
        *found += block_has(data + at[i], (uint32_t)hashes[i]);
    }
    return PS_OK;
}
