/* Tests of Bloom filters: headers, hashes, blocks, filters built. */
#include "check.h"
#include "thrift_writer.h"

static ps_error err;

/* ---- XXH64 ------------------------------------------------------------------------------- */

static uint64_t hash_of(const char *text) {
    copy c = exact(text, strlen(text));
    uint64_t h = ps_xxh64(c.data, strlen(text));
    free(c.block);
    return h;
}

static void test_hash(void) {
    CHECK(hash_of("") == 0xef46db3751d8e999u);
    CHECK(hash_of("a") == 0xd24ec4f1a98c6e5bu);
    CHECK(hash_of("abc") == 0x44bc2cf5ad770999u);
    CHECK(hash_of("Nobody inspects the spammish repetition") == 0xfbcea83c8a378bf1u);
    uint8_t data[100];
    uint64_t seen[101];
    for (size_t n = 0; n <= 100; n++) { /* every tail, each at the end of its block */
        if (n) data[n - 1] = (uint8_t)(n * 37);
        copy c = exact(data, n);
        seen[n] = ps_xxh64(c.data, n);
        for (size_t k = 0; k < n; k++) CHECK(seen[k] != seen[n]);
        free(c.block);
    }
}

static void test_pieces(void) {
    uint8_t data[100];
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i * 37);
    const size_t pieces[] = {1, 32, 33, 50, 100, 101, SIZE_MAX};
    for (size_t k = 0; k < sizeof pieces / sizeof pieces[0]; k++) {
        const size_t piece = pieces[k], n = piece < 100 ? (100 + piece - 1) / piece : 1;
        copy c = exact(data, sizeof data);
        uint8_t *out = malloc(8 * n); /* so that one too many is seen */
        ps_xxh64_pieces(c.data, sizeof data, piece, 0x1234, out);
        for (size_t i = 0; i < n; i++) {
            const size_t left = 100 - i * piece, size = left < piece ? left : piece;
            CHECK(ps_load64(out + 8 * i) == (ps_xxh64(data + i * piece, size) ^ 0x1234));
        }
        free(out), free(c.block);
    }
    ps_xxh64_pieces(data, 0, 32, 1, NULL);
}

/* ---- header ------------------------------------------------------------------------------ */

static void member(bytes *b, int id) {
    field(b, 1, PS_T_STRUCT), field(b, id, PS_T_STRUCT), byte(b, 0), byte(b, 0);
}

static void header(bytes *b, int64_t size, int algorithm, int hash, int compression) {
    b->n = 0;
    integer(b, 1, PS_T_I32, size);
    member(b, algorithm), member(b, hash), member(b, compression);
    byte(b, 0);
}

static size_t got_length, got_size;

static ps_status read_header(const bytes *b, size_t n) {
    copy c = exact(b->at, n);
    ps_status status = ps_bloom_header_read(c.data, n, &got_length, &got_size, &err);
    free(c.block);
    return status;
}

static void test_header(void) {
    static bytes b;
    const int64_t good[] = {32, 96, 1 << 20, 0x7fffffe0};
    const int64_t bad[] = {0, -32, 1, 31, 33, 0x7fffffff, -0x7fffffff};
    for (size_t i = 0; i < 4; i++) {
        header(&b, good[i], 1, 1, 1);
        CHECK_INT(read_header(&b, b.n), PS_OK);
        CHECK_INT(got_length, b.n);
        CHECK_INT(got_size, good[i]);
        for (size_t n = 0; n < b.n; n++) CHECK_INT(read_header(&b, n), PS_TRUNCATED);
    }
    for (size_t i = 0; i < 7; i++) {
        header(&b, bad[i], 1, 1, 1);
        CHECK_INT(read_header(&b, b.n), PS_CORRUPT);
    }
    header(&b, 32, 2, 1, 1);
    CHECK_INT(read_header(&b, b.n), PS_UNSUPPORTED);
    header(&b, 32, 1, 3, 1);
    CHECK_INT(read_header(&b, b.n), PS_UNSUPPORTED);
    header(&b, 32, 1, 1, 2);
    CHECK_INT(read_header(&b, b.n), PS_UNSUPPORTED);
    b.n = 0; /* no compression */
    integer(&b, 1, PS_T_I32, 32), member(&b, 1), member(&b, 1), byte(&b, 0);
    CHECK_INT(read_header(&b, b.n), PS_CORRUPT);
    b.n = 0; /* a size of another type */
    integer(&b, 1, PS_T_I64, 32), member(&b, 1), member(&b, 1), member(&b, 1), byte(&b, 0);
    CHECK_INT(read_header(&b, b.n), PS_CORRUPT);
}

/* ---- hashes of values -------------------------------------------------------------------- */

static size_t n_hashes;
static uint64_t found[16];

static ps_status hashes(int physical, int length, int kind, int64_t n, const void *values,
                        size_t size, const void *offsets) {
    ps_leaf_spec spec = {0};
    spec.physical = physical, spec.type_length = length, spec.kind = kind;
    spec.width = kind == PS_FIXED ? length : 0, spec.unit = PS_UNIT_NS;
    copy c = exact(values, size);
    ps_values v = {kind, spec.width, n, NULL, c.data, size, offsets};
    ps_status status = ps_bloom_hashes(&spec, &v, found, &n_hashes, &err);
    free(c.block);
    return status;
}

enum { INT32 = 1, INT64, INT96, FLOAT, DOUBLE, BYTE_ARRAY, FIXED };

static void test_numbers(void) {
    const int8_t minus = -1;
    const uint8_t top = 255;
    const uint16_t wide = 65535;
    const int32_t minus32 = -1;
    const uint32_t large = 255;
    const int64_t eight = 255;
    CHECK_INT(hashes(INT32, 0, PS_I8, 1, &minus, 1, NULL), PS_OK);
    CHECK(n_hashes == 1 && found[0] == ps_xxh64((const uint8_t *)&minus32, 4));
    CHECK_INT(hashes(INT32, 0, PS_U8, 1, &top, 1, NULL), PS_OK);
    CHECK(n_hashes == 1 && found[0] == ps_xxh64((const uint8_t *)&large, 4));
    CHECK_INT(hashes(INT32, 0, PS_U16, 1, &wide, 2, NULL), PS_OK);
    CHECK(n_hashes == 1 && found[0] == ps_xxh64((const uint8_t *)"\xff\xff\0\0", 4));
    CHECK_INT(hashes(INT32, 0, PS_U32, 1, &minus32, 4, NULL), PS_OK);
    CHECK(n_hashes == 1 && found[0] == ps_xxh64((const uint8_t *)&minus32, 4));
    CHECK_INT(hashes(INT64, 0, PS_I64, 1, &eight, 8, NULL), PS_OK);
    CHECK(n_hashes == 1 && found[0] == ps_xxh64((const uint8_t *)&eight, 8));
}

static void test_decimals(void) {
    uint8_t two[32] = {0}; /* 300 and -300 */
    memcpy(two, "\x2c\x01", 2), memset(two + 16, 0xff, 16), memcpy(two + 16, "\xd4\xfe", 2);
    CHECK_INT(hashes(INT32, 0, PS_D128, 2, two, 32, NULL), PS_OK);
    CHECK(n_hashes == 2 && found[0] == ps_xxh64((const uint8_t *)"\x2c\x01\0\0", 4));
    CHECK(found[1] == ps_xxh64((const uint8_t *)"\xd4\xfe\xff\xff", 4));
    CHECK_INT(hashes(INT64, 0, PS_D256, 1, two, 32, NULL), PS_OK);
    CHECK_INT(n_hashes, 0); /* far beyond 64 bits */
    CHECK_INT(hashes(FIXED, 3, PS_D128, 2, two, 32, NULL), PS_OK);
    CHECK(n_hashes == 2 && found[0] == ps_xxh64((const uint8_t *)"\0\x01\x2c", 3));
    CHECK(found[1] == ps_xxh64((const uint8_t *)"\xff\xfe\xd4", 3));
    CHECK_INT(hashes(FIXED, 1, PS_D128, 2, two, 32, NULL), PS_OK);
    CHECK_INT(n_hashes, 0);
    CHECK_INT(hashes(FIXED, 18, PS_D128, 2, two, 32, NULL), PS_OK);
    CHECK(n_hashes == 2 &&
          found[1] == ps_xxh64((const uint8_t *)"\xff\xff\xff\xff\xff\xff\xff\xff"
                                                "\xff\xff\xff\xff\xff\xff\xff\xff"
                                                "\xfe\xd4",
                               18));
    uint8_t edge[16] = {0x80}; /* 128 does not fit one signed byte */
    CHECK_INT(hashes(FIXED, 1, PS_D128, 1, edge, 16, NULL), PS_OK);
    CHECK_INT(n_hashes, 0);
    CHECK_INT(hashes(BYTE_ARRAY, 0, PS_D128, 1, two, 16, NULL), PS_UNSUPPORTED);
}

static void test_floats(void) {
    const float numbers[3] = {1.5f, 0.0f, -0.0f};
    const double zero = -0.0;
    const uint32_t nan = 0x7fc00001;
    const uint16_t halves[2] = {0x8000, 0x3c00}, half_nan = 0xfe00;
    CHECK_INT(hashes(FLOAT, 0, PS_F32, 3, numbers, 12, NULL), PS_OK);
    CHECK(n_hashes == 5 && found[0] == ps_xxh64((const uint8_t *)numbers, 4));
    CHECK(found[1] == found[3] && found[2] == found[4] && found[1] != found[2]);
    CHECK_INT(hashes(DOUBLE, 0, PS_F64, 1, &zero, 8, NULL), PS_OK);
    CHECK_INT(n_hashes, 2);
    CHECK_INT(hashes(FLOAT, 0, PS_F32, 1, &nan, 4, NULL), PS_UNSUPPORTED);
    CHECK_INT(hashes(FIXED, 2, PS_F16, 2, halves, 4, NULL), PS_OK);
    CHECK(n_hashes == 3 && found[2] == ps_xxh64((const uint8_t *)"\0\x3c", 2));
    CHECK_INT(hashes(FIXED, 2, PS_F16, 1, &half_nan, 2, NULL), PS_UNSUPPORTED);
}

static void test_strings(void) {
    const int32_t ends[] = {0, 0, 3};
    const int64_t wide[] = {0, 0, 3};
    CHECK_INT(hashes(BYTE_ARRAY, 0, PS_BYTES, 2, "abc", 3, ends), PS_OK);
    CHECK(n_hashes == 2 && found[0] == hash_of("") && found[1] == hash_of("abc"));
    CHECK_INT(hashes(BYTE_ARRAY, 0, PS_LARGE_BYTES, 2, "abc", 3, wide), PS_OK);
    CHECK(n_hashes == 2 && found[1] == hash_of("abc"));
    CHECK_INT(hashes(FIXED, 3, PS_FIXED, 1, "abc", 3, NULL), PS_OK);
    CHECK(n_hashes == 1 && found[0] == hash_of("abc"));
    CHECK_INT(hashes(BYTE_ARRAY, 0, PS_BYTES, 2, "ab", 2, ends), PS_INVALID);
    CHECK_INT(hashes(0, 0, PS_BOOL, 1, "\1", 1, NULL), PS_UNSUPPORTED);
    CHECK_INT(hashes(INT96, 0, PS_I64, 1, "12345678", 8, NULL), PS_UNSUPPORTED);
    CHECK_INT(hashes(FIXED, 12, PS_I64, 1, "12345678", 8, NULL), PS_UNSUPPORTED);
    CHECK_INT(hashes(INT64, 0, PS_D128, 1, "12345678", 8, NULL), PS_INVALID); /* too short */
}

/* ---- blocks ------------------------------------------------------------------------------ */

/* The format's own words, bit by bit. */
static void insert(uint8_t *bitset, uint64_t n_blocks, uint64_t hash) {
    static const uint32_t salt[8] = {0x47b6137bu, 0x44974d91u, 0x8824ad5bu, 0xa2b7289du,
                                     0x705495c7u, 0x2df1424bu, 0x9efc4947u, 0x5c6bfb31u};
    uint64_t block = ((hash >> 32) * n_blocks) >> 32;
    for (int i = 0; i < 8; i++) {
        uint32_t bit = (uint32_t)((uint32_t)hash * salt[i]) >> 27;
        bitset[32 * block + 4 * (uint64_t)i + bit / 8] |= (uint8_t)(1u << bit % 8);
    }
}

static void test_blocks(void) {
    enum { BLOCKS = 37, N = 200 };
    uint8_t *bitset = calloc(BLOCKS, PS_BLOOM_BLOCK);
    uint64_t keys[N], at[N], others[N];
    size_t there = 0;
    if (!bitset) abort();
    for (uint64_t i = 0; i < N; i++) {
        uint64_t other = i + 1000;
        keys[i] = ps_xxh64((const uint8_t *)&i, 8);
        others[i] = ps_xxh64((const uint8_t *)&other, 8);
        insert(bitset, BLOCKS, keys[i]);
    }
    ps_bloom_places(keys, N, BLOCKS, at);
    CHECK_INT(ps_bloom_check(bitset, BLOCKS * 32, at, keys, N, &there, &err), PS_OK);
    CHECK_INT(there, N);
    ps_bloom_places(others, N, BLOCKS, at);
    CHECK_INT(ps_bloom_check(bitset, BLOCKS * 32, at, others, N, &there, &err), PS_OK);
    CHECK(there < N / 4);
    for (size_t i = 0; i < N; i++) CHECK(at[i] % 32 == 0 && at[i] < BLOCKS * 32);
    const uint64_t ends[] = {0, UINT64_MAX};
    uint64_t place[2];
    ps_bloom_places(ends, 2, (UINT64_C(1) << 31) - 1, place);
    CHECK(place[0] == 0 && place[1] == ((UINT64_C(1) << 31) - 2) * 32);
    at[0] = BLOCKS * 32 - 31;
    CHECK_INT(ps_bloom_check(bitset, BLOCKS * 32, at, others, 1, &there, &err), PS_INVALID);
    at[0] = UINT64_MAX;
    CHECK_INT(ps_bloom_check(bitset, BLOCKS * 32, at, others, 1, &there, &err), PS_INVALID);
    CHECK_INT(ps_bloom_check(bitset, 31, at, others, 1, &there, &err), PS_INVALID);
    free(bitset);
}

int main(void) {
    test_hash();
    test_pieces();
    test_header();
    test_numbers();
    test_decimals();
    test_floats();
    test_strings();
    test_blocks();
    return check_report();
}
