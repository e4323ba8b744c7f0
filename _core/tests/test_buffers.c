#include "../c/buffers.c" /* defines what the system headers are to show */
#include "check.h"

#if defined(__linux__)
#include <pthread.h>
#endif

#define LONG_AGO 1e6 /* seconds: nothing has been kept for as long */

static void test_sizes(void) {
    for (size_t size = 0; size < (size_t)5 << 20; size = size * 3 + 1) {
        uint8_t *p = ps_buffer_new(size);
        CHECK(p != NULL && (uintptr_t)p % 64 == 0);
        memset(p, 0x5a, size);
        p = ps_buffer_grow(p, size, 2 * size + 100);
        CHECK(p != NULL && (size == 0 || (p[0] == 0x5a && p[size - 1] == 0x5a)));
        memset(p, 0, (2 * size + 100 + 63) / 64 * 64); /* rounded up: all of it is ours */
        ps_buffer_free(p, 2 * size + 100);
    }
    CHECK(ps_buffer_new(SIZE_MAX) == NULL);
    ps_buffer_free(NULL, 0);
    ps_buffer_free(NULL, (size_t)1 << 20);
}

#if defined(__linux__)
static void test_closed(void) {
    ps_buffer_free(ps_buffer_new((size_t)1 << 20), (size_t)1 << 20);
    CHECK_INT(ps_pool_trim(LONG_AGO), 0);
}

static void test_kept(void) {
    const size_t size = 300000, full = 327680; /* ten eighths of 2^18 */
    ps_pool_open(60, SIZE_MAX);
    uint8_t *p = ps_buffer_new(size), *q = ps_buffer_new(size);
    CHECK(p != q);
    ps_buffer_free(p, size);
    CHECK_INT(ps_pool_trim(LONG_AGO), full);
    ps_buffer_free(q, size);
    CHECK_INT(ps_pool_trim(LONG_AGO), 2 * full);
    uint8_t *again = ps_buffer_new(size -
                                   1000); /* of the same class: the last that was freed */
    CHECK(again == q);
    memset(again, 1, size - 1000);
    ps_buffer_free(again, size - 1000);
    ps_buffer_free(ps_buffer_new(1000), 1000); /* small ones pass by */
    CHECK_INT(ps_pool_trim(LONG_AGO), 2 * full);
    CHECK_INT(ps_pool_trim(0), 0);
    ps_pool_open(0, 0);
    CHECK_INT(ps_pool_trim(0), 0);
}

/* A closed pool keeps as much as it was told; larger blocks make way for what is freed last. */
static void test_rest(void) {
    const size_t mib = (size_t)1 << 20;
    ps_pool_rest(3 * mib);
    uint8_t *big = ps_buffer_new(2 * mib), *one = ps_buffer_new(mib), *half;
    ps_buffer_free(big, 2 * mib);
    ps_buffer_free(one, mib);
    CHECK_INT(ps_pool_trim(LONG_AGO), 3 * mib);
    half = ps_buffer_new(mib / 2);
    ps_buffer_free(half, mib / 2);
    CHECK_INT(ps_pool_trim(LONG_AGO), mib + mib / 2); /* without the two MiB */
    uint8_t *again = ps_buffer_new(mib);
    CHECK(again == one);
    ps_buffer_free(again, mib);
    ps_buffer_free(ps_buffer_new(4 * mib), 4 * mib); /* more than all of it: to the system */
    CHECK_INT(ps_pool_trim(LONG_AGO), mib + mib / 2);
    ps_pool_open(60, 8 * mib);
    uint8_t *four[4];
    for (int i = 0; i < 4; i++) four[i] = ps_buffer_new(mib);
    for (int i = 0; i < 4; i++) ps_buffer_free(four[i], mib);
    CHECK_INT(ps_pool_trim(LONG_AGO), 4 * mib + mib / 2);
    ps_pool_open(0, 0);
    ps_buffer_free(ps_buffer_new(mib), mib); /* closed again: the others go */
    CHECK_INT(ps_pool_trim(LONG_AGO), 2 * mib + mib / 2);
    ps_pool_rest(
        2 *
        mib); /* what is kept beyond it goes at once, large blocks first, but not from an open pool */
    CHECK(ps_pool_trim(LONG_AGO) <= 2 * mib && ps_pool_trim(LONG_AGO) > 0);
    ps_pool_open(60, 8 * mib);
    ps_pool_rest(0);
    CHECK(ps_pool_trim(LONG_AGO) > 0);
    ps_pool_open(0, 0);
    ps_pool_rest(0);
    CHECK_INT(ps_pool_trim(LONG_AGO), 0);
    ps_buffer_free(ps_buffer_new(mib), mib);
    CHECK_INT(ps_pool_trim(0), 0);
}

/* What is kept and what is in use are together at most the most that was in use. */
static void test_never_larger(void) {
    const size_t mib = (size_t)1 << 20;
    ps_pool_open(60, SIZE_MAX);
    uint8_t *four[4];
    for (int i = 0; i < 4; i++) four[i] = ps_buffer_new(mib);
    for (int i = 0; i < 4; i++) ps_buffer_free(four[i], mib);
    CHECK_INT(ps_pool_trim(LONG_AGO), 4 * mib);
    uint8_t *two = ps_buffer_new(2 * mib);
    CHECK_INT(ps_pool_trim(LONG_AGO), 2 * mib);
    uint8_t *half = ps_buffer_new(mib / 2);
    CHECK_INT(ps_pool_trim(LONG_AGO), mib);
    uint8_t *eight = ps_buffer_new(8 * mib);
    CHECK_INT(ps_pool_trim(LONG_AGO), 0);
    ps_buffer_free(two, 2 * mib);
    ps_buffer_free(half, mib / 2);
    ps_buffer_free(eight, 8 * mib);
    CHECK_INT(ps_pool_trim(LONG_AGO), 10 * mib + mib / 2);
    ps_pool_open(0, 0);
    ps_buffer_free(ps_buffer_new(mib / 2),
                   mib / 2); /* closed: one that was kept, to the system */
    CHECK_INT(ps_pool_trim(LONG_AGO), 10 * mib);
    CHECK_INT(ps_pool_trim(0), 0);
}

static void test_limit(void) {
    const size_t mib = (size_t)1 << 20;
    ps_pool_open(60, 3 * mib);
    uint8_t *four[4];
    for (int i = 0; i < 4; i++) four[i] = ps_buffer_new(mib);
    for (int i = 0; i < 4; i++) ps_buffer_free(four[i], mib);
    CHECK_INT(ps_pool_trim(LONG_AGO), 3 * mib);
    ps_buffer_free(ps_buffer_new(4 * mib), 4 * mib);
    CHECK(ps_pool_trim(LONG_AGO) <= 3 * mib);
    ps_pool_open(0, 0);
    CHECK_INT(ps_pool_trim(0), 0);
}

/* Of a pool that stays taken, as by a thread that a fork left behind, nothing is had, and nothing waited for. */
static void test_taken(void) {
    const size_t size = (size_t)1 << 20;
    ps_pool_open(60, SIZE_MAX);
    uint8_t *before = ps_buffer_new(size);
    ps_buffer_free(before, size);
    CHECK_INT(ps_pool_trim(LONG_AGO), size);
    atomic_flag *busy = (atomic_flag *)ps_pool_own(); /* its first member */
    CHECK(!atomic_flag_test_and_set(busy));
    uint8_t *p = ps_buffer_new(size);
    CHECK(p != NULL && p != before);
    if (p) memset(p, 1, size);
    ps_buffer_free(p, size);
    CHECK(ps_pool_trim(0) == SIZE_MAX);
    own.held -=
        2 * size; /* that thread had not come to count what it had just taken out and put in */
    ps_pool_forked(); /* a child begins again */
    CHECK(!atomic_flag_test_and_set(busy));
    atomic_flag_clear(busy);
    CHECK_INT(ps_pool_trim(LONG_AGO), size);
    ps_pool_open(0, 0);
    CHECK_INT(ps_pool_trim(0), 0);
}

/* A closed pool keeps what the system may take besides, until it is told otherwise. */
static void test_reclaimable(void) {
    const size_t mib = (size_t)1 << 20;
    size_t held, lent;
    ps_pool_trim(0);
    ps_pool_rest(2 * mib);
    ps_pool_reclaimable(20 * mib);
    uint8_t *large = ps_buffer_new(8 * mib), *small[3], *one = ps_buffer_new(mib);
    for (int i = 0; i < 3; i++) small[i] = ps_buffer_new(3 * mib);
    memset(large, 1, 8 * mib);
    ps_buffer_free(large, 8 * mib);
    ps_buffer_free(one, mib);
    for (int i = 0; i < 3; i++) ps_buffer_free(small[i], 3 * mib);
    ps_pool_kept(&held, &lent);
    CHECK_INT(held, mib);
    CHECK_INT(lent, 17 * mib);
    CHECK_INT(ps_pool_trim(LONG_AGO), 18 * mib);
    ps_buffer_free(ps_buffer_new(5 * mib), 5 * mib); /* it does not fit, and makes others go */
    ps_pool_kept(&held, &lent);
    CHECK(held + lent <= 18 * mib);
    uint8_t *again = ps_buffer_new(3 * mib); /* the last that was freed */
    CHECK(again == small[2]);
    memset(again, 7, 3 * mib);
    for (size_t i = 0; i < 3 * mib; i += 1000) CHECK(again[i] == 7);
    ps_pool_open(60, SIZE_MAX); /* what is freed now is not for the system */
    ps_buffer_free(again, 3 * mib);
    ps_pool_kept(&held, &lent);
    CHECK(held >= 3 * mib);
    ps_pool_open(0, 0);
    ps_pool_rest(0); /* what was kept is for the system now */
    ps_pool_kept(&held, &lent);
    CHECK_INT(held, 0);
    CHECK(lent >= 3 * mib);
    ps_pool_reclaimable(4 * mib);
    ps_pool_kept(&held, &lent);
    CHECK(lent <= 4 * mib);
    ps_pool_forked(); /* counts again */
    size_t other;
    ps_pool_kept(&held, &other);
    CHECK_INT(other, lent);
    CHECK_INT(ps_pool_trim(0), 0);
    ps_pool_reclaimable(0);
}

/* What has been kept for long enough is for the system; what does not fit there is freed. */
static void test_lend(void) {
    const size_t mib = (size_t)1 << 20;
    size_t held, lent;
    ps_pool_trim(0);
    ps_pool_rest(0);
    ps_pool_reclaimable(4 * mib);
    ps_pool_open(60, SIZE_MAX);
    uint8_t *first = ps_buffer_new(3 * mib), *second = ps_buffer_new(2 * mib);
    ps_buffer_free(first, 3 * mib);
    ps_buffer_free(second, 2 * mib);
    CHECK_INT(ps_pool_lend(LONG_AGO), 5 * mib); /* not for so long */
    ps_pool_kept(&held, &lent);
    CHECK_INT(held, 5 * mib);
    CHECK_INT(lent, 0);
    CHECK_INT(ps_pool_lend(0), 0);
    ps_pool_kept(&held, &lent);
    CHECK_INT(held, 0);
    CHECK(lent == 3 * mib || lent == 2 * mib);
    CHECK_INT(ps_pool_lend(0), 0); /* again, with nothing to do */
    ps_pool_open(0, 0);
    ps_pool_reclaimable(0);
    CHECK_INT(ps_pool_trim(0), 0);
}

static void *hammer(void *seed) {
    uint64_t state = (uint64_t)(uintptr_t)seed * 0x9e3779b97f4a7c15u + 1;
    uint8_t *held[8] = {0};
    size_t sizes[8] = {0};
    uintptr_t wrong = 0;
    for (int i = 0; i < 4000; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        const size_t k = state % 8;
        if (held[k]) {
            for (size_t at = 0; at < sizes[k]; at += 4096)
                wrong += held[k][at] != (uint8_t)(k + 1);
            ps_buffer_free(held[k], sizes[k]);
            held[k] = NULL;
        } else {
            sizes[k] = 50000 + (state >> 20) % 400000;
            held[k] = ps_buffer_new(sizes[k]);
            memset(held[k], (int)k + 1, sizes[k]);
        }
        if (i % 500 == 0) ps_pool_trim(0);
        if (i % 700 == 0) ps_pool_lend(0);
    }
    for (size_t k = 0; k < 8; k++) ps_buffer_free(held[k], sizes[k]);
    return (void *)wrong;
}

static void test_threads(bool open) {
    pthread_t threads[4];
    ps_pool_open(open ? 60 : 0, SIZE_MAX);
    ps_pool_rest(open ? 0 : (size_t)1 << 19);
    ps_pool_reclaimable(open ? 0 : (size_t)1 << 20);
    for (uintptr_t i = 0; i < 4; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, hammer, (void *)(i + 1)), 0);
    for (int i = 0; i < 4; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        CHECK(wrong == NULL);
    }
    ps_pool_open(0, 0);
    CHECK_INT(ps_pool_trim(0), 0);
    ps_pool_rest(0);
    ps_pool_reclaimable(0);
}
#endif

int main(void) {
    test_sizes();
#if defined(__linux__)
    test_closed();
    test_kept();
    test_rest();
    test_never_larger();
    test_limit();
    test_taken();
    test_reclaimable();
    test_lend();
    test_threads(true);
    test_threads(false);
#endif
    return check_report();
}
