/* lz_blocks.h - random Snappy and LZ4 blocks for tests in C, with what they hold. */
#ifndef PAGESEEK_LZ_BLOCKS_H
#define PAGESEEK_LZ_BLOCKS_H

#include <stdlib.h>
#include <string.h>

#include "../pageseek.h"

typedef struct bytes {
    uint8_t *data;
    size_t n;
} bytes;

static uint32_t seed;
static uint32_t below(uint32_t n) {
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % n;
}

static void *exactly(const void *from, size_t n) {
    void *p = malloc(n);
    if (!p && n) abort();
    if (from && n) memcpy(p, from, n);
    return p;
}

static void push(bytes *b, const void *from, size_t n) {
    memcpy(b->data + b->n, from, n);
    b->n += n;
}
static void put(bytes *b, unsigned byte) {
    b->data[b->n++] = (uint8_t)byte;
}

static void repeat(bytes *plain, size_t offset, size_t n) {
    for (; n > 0; n--) put(plain, plain->data[plain->n - offset]);
}
static void literals(bytes *block, bytes *plain, size_t n) {
    for (; n > 0; n--) {
        put(plain, below(256));
        put(block, plain->data[plain->n - 1]);
    }
}

static size_t some_offset(size_t written, size_t most) {
    size_t limit = below(3) ? 20 : most;
    return 1 + below((uint32_t)(written < limit ? written : limit));
}

/* Elements of every kind at random, the preamble apart. */
static void write_snappy(bytes *block, bytes *plain, size_t target) {
    while (plain->n < target) {
        unsigned kind = plain->n ? below(4) : 0;
        if (kind == 0) {
            size_t n = below(4) ? 1 + below(60) : 1 + below(400), m = n - 1;
            size_t extra = n > 60 || !below(20) ? (n > 256 ? 2 : 1) + below(2) : 0;
            put(block, (unsigned)(extra ? 59 + extra : m) << 2);
            for (; extra > 0; extra--, m >>= 8) put(block, m & 0xff);
            literals(block, plain, n);
            continue;
        }
        size_t n = kind == 1 ? 4 + below(8) : 1 + below(64);
        size_t offset = some_offset(plain->n, kind == 1 ? 2047 : 65535);
        put(block, kind == 1 ? (unsigned)(1 | (n - 4) << 2 | (offset >> 8) << 5)
                             : (unsigned)(kind | (n - 1) << 2));
        for (unsigned i = 0; i < (1u << (kind - 1)); i++)
            put(block, (offset >> (8 * i)) & 0xff);
        repeat(plain, offset, n);
    }
}

static void put_more(bytes *block, size_t n) {
    for (; n >= 255; n -= 255) put(block, 255);
    put(block, (unsigned)n);
}

static void write_lz4(bytes *block, bytes *plain, size_t target) {
    for (size_t start = plain->n;;) {
        bool last = plain->n >= target;
        size_t lit = last || plain->n == start ? 1 + below(20)
                     : below(4)                ? below(18)
                                               : below(600);
        size_t n = last ? 0 : below(4) ? below(18) : below(900);
        put(block, (unsigned)((lit < 15 ? lit : 15) << 4 | (n < 15 ? n : 15)));
        if (lit >= 15) put_more(block, lit - 15);
        literals(block, plain, lit);
        if (last) return;
        size_t offset = some_offset(plain->n - start, 65535);
        put(block, offset & 0xff);
        put(block, (unsigned)(offset >> 8));
        if (n >= 15) put_more(block, n - 15);
        repeat(plain, offset, n + 4);
    }
}

#endif
