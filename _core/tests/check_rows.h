/* check_rows.h - what the tests of rows share: CHECK and its counters, random numbers, buffers of exactly their size. */
#ifndef PAGESEEK_CHECK_ROWS_H
#define PAGESEEK_CHECK_ROWS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int passed, failed;

#define CHECK(condition)                                                                       \
    do {                                                                                       \
        if (condition) {                                                                       \
            passed++;                                                                          \
        } else {                                                                               \
            failed++;                                                                          \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                    \
        }                                                                                      \
    } while (0)

/* The last line of every test program, and its exit code. */
static inline int report(void) {
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}

static uint64_t seed = 0x9e3779b97f4a7c15u;

static inline uint32_t rnd(uint32_t below) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((seed >> 33) % below);
}

/* At least one byte, so that NULL means absent. */
static inline void *exactly(size_t size) {
    void *block = malloc(size ? size : 1);
    if (!block) abort();
    memset(block, 0xa5, size);
    return block;
}

static inline bool bit(const uint8_t *bits, int64_t i) {
    return bits[i / 8] >> (i % 8) & 1;
}

#endif
