/* hash_blocks.c - blocks of a lookup index: the entries of hashes, and their rows (docs/format.md, kind lookup).
 *
 * A block has a bit for each entry and for each slot: for each slot as many ones as it has entries, then a zero. Behind
 * them lie the mark of each entry, a byte, and its row, of row_bits bits. */
#include "base.h"

enum {
    SLOTS = PS_HASH_SLOTS,
    MARK_BITS = 8,
    MOST_ROW_BITS = 56,
    FEW = 8 /* hashes: the slots of more are found together */
};

static size_t end_bytes(size_t n) {
    return (n + SLOTS + 7) / 8;
}

size_t ps_hash_block_size(uint32_t n_entries, int row_bits) {
    const size_t n = n_entries;
    return end_bytes(n) + n + (n * (size_t)row_bits + 7) / 8;
}

/* Bits from `at` on, at most 64 of them, with a one for each slot that ends there. */
static uint64_t ends_at(const ps_hash_block *block, size_t at) {
    const size_t n = block->n_entries, left = n + SLOTS - at, size = end_bytes(n) - at / 8;
    uint64_t word = 0;
    memcpy(&word, block->data + at / 8, size < 8 ? size : 8);
    return left < 64 ? ~word & (((uint64_t)1 << left) - 1) : ~word;
}

/* As many slots as there are end, and the last one behind all entries. */
static bool has_all_slots(const ps_hash_block *block) {
    const size_t bits = block->n_entries + (size_t)SLOTS;
    size_t slots = 0;
    for (size_t at = 0; at < bits; at += 64) slots += (size_t)ps_popcount64(ends_at(block, at));
    return slots == SLOTS && !ps_bit_get(block->data, bits - 1);
}

/* The first entry of each slot, and behind the last slot the number of entries. */
static void slot_starts(const ps_hash_block *block, uint32_t *starts) {
    const size_t bits = block->n_entries + (size_t)SLOTS;
    size_t slot = 0;
    starts[0] = 0;
    for (size_t at = 0; at < bits; at += 64)
        for (uint64_t word = ends_at(block, at); word; word &= word - 1) {
            slot++;
            starts[slot] = (uint32_t)(at + (size_t)ps_ctz64(word) - (slot - 1));
        }
}

/* The entries before the end of a slot. */
static uint32_t stop_of(const ps_hash_block *block, size_t slot) {
    const size_t bits = block->n_entries + (size_t)SLOTS;
    size_t before = 0;
    for (size_t at = 0; at < bits; at += 64) {
        uint64_t word = ends_at(block, at);
        const size_t n = (size_t)ps_popcount64(word);
        if (before + n > slot) {
            for (; before < slot; before++) word &= word - 1;
            return (uint32_t)(at + (size_t)ps_ctz64(word) - slot);
        }
        before += n;
    }
    return block->n_entries;
}

ps_status ps_hash_block_find(const ps_hash_block *block, int row_bits, uint8_t *found,
                             size_t *n_found, ps_error *err) {
    if (row_bits < 1 || row_bits > MOST_ROW_BITS)
        return ps_fail(err, PS_INVALID, PS_NOWHERE, "rows of %d bits", row_bits);
    if (block->size != ps_hash_block_size(block->n_entries, row_bits))
        return ps_fail(err, PS_CORRUPT, 0, "%zu bytes of a block of %u entries", block->size,
                       (unsigned)block->n_entries);
    if ((uint32_t)ps_xxh64(block->data, block->size) != block->checksum)
        return ps_fail(err, PS_CORRUPT, 0, "the checksum of a block differs");
    if (!has_all_slots(block))
        return ps_fail(err, PS_CORRUPT, 0, "a block of %u entries whose slots end otherwise",
                       (unsigned)block->n_entries);
    uint32_t starts[SLOTS + 1];
    const bool few = block->n_hashes <= FEW;
    if (!few) slot_starts(block, starts);
    const uint8_t *marks = block->data + end_bytes(block->n_entries);
    for (size_t i = 0; i < block->n_hashes; i++) {
        const uint64_t hash = block->hashes[i];
        const size_t slot = (size_t)(hash >> MARK_BITS) % SLOTS;
        uint32_t at = 0, stop;
        if (few) {
            if (slot) at = stop_of(block, slot - 1);
            stop = stop_of(block, slot);
        } else {
            at = starts[slot], stop = starts[slot + 1];
        }
        for (; at < stop; at++) {
            if (marks[at] != (uint8_t)hash || ps_bit_get(found, at)) continue;
            ps_bit_set(found, at);
            ++*n_found;
        }
    }
    return PS_OK;
}

ps_status ps_hash_block_rows(const ps_hash_block *block, int row_bits, int64_t num_rows,
                             const uint8_t *found, int64_t *rows, size_t *n_rows,
                             ps_error *err) {
    const size_t n = block->n_entries;
    const uint8_t *packed = block->data + end_bytes(n) + n, *end = block->data + block->size;
    const uint64_t mask = ((uint64_t)1 << row_bits) - 1;
    for (size_t first = 0; first < n; first += 8) {
        for (unsigned byte = found[first / 8]; byte; byte &= byte - 1) {
            const size_t bit = (first + (size_t)ps_ctz64(byte)) * (size_t)row_bits;
            const uint8_t *from = packed + bit / 8;
            uint64_t word = 0;
            memcpy(&word, from, end - from < 8 ? (size_t)(end - from) : 8);
            const uint64_t row = word >> (bit % 8) & mask;
            if (row >= (uint64_t)num_rows)
                return ps_fail(err, PS_CORRUPT, 0, "it names row %llu of %lld",
                               (unsigned long long)row, (long long)num_rows);
            rows[(*n_rows)++] = (int64_t)row;
        }
    }
    return PS_OK;
}
