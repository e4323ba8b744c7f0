/* Tests of the blocks of a lookup index: every entry is found by its hash, and what is no block is refused. */
#include "check.h"
#include "touch.h"

enum { MOST = 3000, SPACE = PS_HASH_SLOTS / 8 + MOST / 8 + MOST + MOST * 7 + 8 };

typedef struct entry {
    uint64_t hash;
    int64_t row;
} entry;

static ps_error err;

static int by_slot_and_mark(const void *a, const void *b) {
    const uint64_t x = ((const entry *)a)->hash % (PS_HASH_SLOTS * 256);
    const uint64_t y = ((const entry *)b)->hash % (PS_HASH_SLOTS * 256);
    return x < y ? -1 : x > y;
}

static void bits_put(uint8_t *to, size_t at, uint64_t value, int bits) {
    for (int i = 0; i < bits; i++)
        if (value >> i & 1) to[(at + (size_t)i) / 8] |= (uint8_t)(1u << (at + (size_t)i) % 8);
}

/* A block of these entries, which are put in order, in memory of its own. */
static uint8_t *block_of(entry *entries, uint32_t n, int row_bits, size_t *size) {
    qsort(entries, n, sizeof *entries, by_slot_and_mark);
    *size = ps_hash_block_size(n, row_bits);
    uint8_t *made = calloc(*size + 1, 1), *marks = made + (n + PS_HASH_SLOTS + 7) / 8;
    size_t at = 0, slot = 0;
    for (uint32_t i = 0; i < n; i++) {
        for (; slot < entries[i].hash / 256 % PS_HASH_SLOTS; slot++) at++;
        bits_put(made, at++, 1, 1);
        marks[i] = (uint8_t)entries[i].hash;
        bits_put(marks + n, (size_t)i * (size_t)row_bits, (uint64_t)entries[i].row, row_bits);
    }
    uint8_t *exact = malloc(*size ? *size : 1); /* so that a byte too many is seen */
    memcpy(exact, made, *size);
    free(made);
    return exact;
}

static ps_status ask(const ps_hash_block *block, int row_bits, int64_t num_rows, int64_t *rows,
                     size_t *n) {
    uint8_t *found = calloc((block->n_entries + 7) / 8 + 1, 1);
    size_t n_found = 0, n_rows = 0;
    ps_status status = ps_hash_block_find(block, row_bits, found, &n_found, &err);
    if (status == PS_OK) {
        status = ps_hash_block_rows(block, row_bits, num_rows, found, rows, &n_rows, &err);
        if (status == PS_OK) CHECK(n_rows == n_found);
    }
    free(found);
    *n = n_rows;
    return status;
}

static uint64_t random_state = 88172645463325252u;

static uint64_t random_number(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}

static ps_hash_block block_with(const uint8_t *data, size_t size, uint32_t n,
                                const uint64_t *hashes, size_t n_hashes) {
    return (ps_hash_block){.data = data,
                           .size = size,
                           .n_entries = n,
                           .checksum = (uint32_t)ps_xxh64(data, size),
                           .hashes = hashes,
                           .n_hashes = n_hashes};
}

static void test_entries(void) {
    static entry entries[MOST];
    static int64_t rows[MOST];
    const uint32_t counts[] = {0, 1, 2, 63, 64, 65, 2048, MOST};
    const int widths[] = {1, 7, 8, 20, 33, 56};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
            const uint32_t n = counts[c];
            const int64_t num_rows = (int64_t)1 << widths[w];
            for (uint32_t i = 0; i < n; i++) {
                entries[i].hash = i % 3 == 1 ? entries[i - 1].hash : random_number();
                entries[i].row = (int64_t)(random_number() % (uint64_t)num_rows);
            }
            size_t size, n_rows;
            uint8_t *data = block_of(entries, n, widths[w], &size);
            for (uint32_t i = 0; i < n; i += 1 + n / 50) {
                const uint64_t two[2] = {entries[i].hash, entries[i].hash};
                const ps_hash_block block = block_with(data, size, n, two, 2);
                CHECK(ask(&block, widths[w], num_rows, rows, &n_rows) == PS_OK);
                size_t equal = 0, at = 0; /* the same entries, in their order, each once */
                for (uint32_t k = 0; k < n; k++)
                    if (entries[k].hash % (PS_HASH_SLOTS * 256) ==
                        two[0] % (PS_HASH_SLOTS * 256)) {
                        equal += at < n_rows && rows[at] == entries[k].row;
                        at++;
                    }
                CHECK(at == n_rows && equal == n_rows && n_rows > 0);
            }
            uint64_t every[MOST];
            for (uint32_t i = 0; i < n; i++) every[i] = entries[i].hash;
            ps_hash_block block = block_with(data, size, n, every, n);
            CHECK(ask(&block, widths[w], num_rows, rows, &n_rows) == PS_OK && n_rows == n);
            block.n_hashes = 0;
            CHECK(ask(&block, widths[w], num_rows, rows, &n_rows) == PS_OK && n_rows == 0);
            free(data);
        }
    }
}

static void test_wrong_blocks(void) {
    entry entries[20];
    uint64_t hashes[20];
    int64_t rows[20];
    size_t size, n_rows;
    for (int i = 0; i < 20; i++) entries[i] = (entry){random_number(), i};
    uint8_t *data = block_of(entries, 20, 5, &size);
    for (int i = 0; i < 20; i++) hashes[i] = entries[i].hash;
    ps_hash_block block = block_with(data, size, 20, hashes, 20);
    CHECK(ask(&block, 5, 20, rows, &n_rows) == PS_OK && n_rows == 20);
    CHECK(ask(&block, 5, 19, rows, &n_rows) == PS_CORRUPT); /* a row that is not there */
    CHECK(strstr(err.message, "row 19 of 19") != NULL);
    CHECK(ask(&block, 0, 20, rows, &n_rows) == PS_INVALID);
    CHECK(ask(&block, 57, 20, rows, &n_rows) == PS_INVALID);
    CHECK(ask(&block, 6, 20, rows, &n_rows) == PS_CORRUPT); /* another size */
    block.checksum ^= 1;
    CHECK(ask(&block, 5, 20, rows, &n_rows) == PS_CORRUPT);
    CHECK(strstr(err.message, "checksum") != NULL);
    /* a one too many, and one too few: another slot is the last, or none is */
    for (int i = 0; i < 2; i++) {
        const size_t bit = 20 + PS_HASH_SLOTS - 1 - (size_t)i * 3;
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        block = block_with(data, size, 20, hashes, 20);
        CHECK(ask(&block, 5, 20, rows, &n_rows) == PS_CORRUPT);
        CHECK(strstr(err.message, "slots") != NULL);
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    memset(data, 0, (20 + PS_HASH_SLOTS + 7) / 8);
    block = block_with(data, size, 20, hashes, 20);
    CHECK(ask(&block, 5, 20, rows, &n_rows) == PS_CORRUPT);
    memset(data, 255, (20 + PS_HASH_SLOTS + 7) / 8);
    block = block_with(data, size, 20, hashes, 20);
    CHECK(ask(&block, 5, 20, rows, &n_rows) == PS_CORRUPT);
    free(data);
}

/* A one behind the last slot makes up for one that is missing: the counts fit, the places do not. */
static void test_a_one_behind_the_last_slot(void) {
    entry entries[1] = {{5 << 8 | 7, 0}};
    const uint64_t hash = entries[0].hash;
    int64_t rows[1];
    size_t size, n_rows;
    uint8_t *data = block_of(entries, 1, 1, &size);
    data[0] = 0;
    data[PS_HASH_SLOTS / 8] = 1;
    const ps_hash_block block = block_with(data, size, 1, &hash, 1);
    CHECK(ask(&block, 1, 1, rows, &n_rows) == PS_CORRUPT);
    free(data);
}

int main(void) {
    test_entries();
    test_wrong_blocks();
    test_a_one_behind_the_last_slot();
    return check_report();
}
