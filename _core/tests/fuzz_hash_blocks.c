/* Any bytes as a block of a lookup index, with the right checksum: rows that are found are rows of the file. */
#include "touch.h"

enum { HEADER = 12, MOST_HASHES = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    if (length < HEADER) return 0;
    const uint32_t n = data[0] | (uint32_t)data[1] << 8;
    const int row_bits = data[2] % 60;
    const int64_t num_rows = 1 + ((int64_t)data[3] << data[4] % 48);
    const uint8_t *body = data + HEADER;
    size_t size = length - HEADER, n_found = 0, n_rows = 0;
    uint64_t seed, hashes[MOST_HASHES];
    memcpy(&seed, data + 4, sizeof seed);
    for (int i = 0; i < MOST_HASHES; i++) hashes[i] = seed * (uint64_t)(2 * i + 1);
    /* most inputs would have another size: the bytes are cut, or followed by zeros */
    const size_t whole = row_bits ? ps_hash_block_size(n, row_bits) : size;
    uint8_t *block = calloc(whole + 1, 1), *found = calloc(n / 8 + 1, 1);
    memcpy(block, body, size < whole ? size : whole);
    if (data[11] != 255)
        size = whole;
    else if (size > whole)
        size = whole;
    const ps_hash_block asked = {.data = block,
                                 .size = size,
                                 .n_entries = n,
                                 .checksum = (uint32_t)ps_xxh64(block, size),
                                 .hashes = hashes,
                                 .n_hashes = data[10] % (MOST_HASHES + 1)};
    ps_error err;
    if (ps_hash_block_find(&asked, row_bits, found, &n_found, &err) == PS_OK) {
        int64_t *rows = malloc(8 * n_found + 8);
        require(n_found <= n);
        if (ps_hash_block_rows(&asked, row_bits, num_rows, found, rows, &n_rows, &err) ==
            PS_OK) {
            require(n_rows == n_found);
            for (size_t i = 0; i < n_rows; i++) require(rows[i] >= 0 && rows[i] < num_rows);
        } else {
            touch_error(&err);
        }
        free(rows);
    } else {
        touch_error(&err);
    }
    free(block);
    free(found);
    return 0;
}
