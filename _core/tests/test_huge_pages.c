#include "../c/huge_pages.c" /* defines what the system headers are to show */

#include <stdlib.h>
#include <string.h>

#include "check.h"

#if defined(__linux__)
#define MIB   ((int64_t)1 << 20)
#define BLOCK ((size_t)16 << 20)

/* How many bytes of blocks do without huge pages until one asks for them. */
static int64_t paused(ps_huge_pages *state) {
    int64_t bytes = 0;
    while (!wants(state, BLOCK)) bytes += (int64_t)BLOCK;
    return bytes;
}

static void test_fast_ones_are_wanted(void) {
    ps_huge_pages state = {0};
    for (int i = 0; i < 100; i++) {
        CHECK(wants(&state, BLOCK));
        CHECK(learn(&state, SLOW_NS - 1));
    }
}

static void test_slow_ones_are_avoided_for_longer_and_longer(void) {
    ps_huge_pages state = {0};
    for (int64_t pause = PAUSE_LEAST; pause <= PAUSE_MOST; pause *= 2) {
        CHECK(wants(&state, BLOCK));
        CHECK(!learn(&state, SLOW_NS));
        CHECK_INT(paused(&state), pause);
    }
    CHECK(!learn(&state, UINT64_MAX));
    CHECK_INT(paused(&state), PAUSE_MOST); /* and no longer */
    CHECK(learn(&state, FAULT_NS));        /* a fast one ends that */
    CHECK(!learn(&state, SLOW_NS));
    CHECK_INT(paused(&state), PAUSE_LEAST);
}

/* A page that was there before tells nothing of fresh ones. */
static void test_a_page_that_was_there(void) {
    ps_huge_pages state = {0};
    CHECK(!learn(&state, SLOW_NS));
    CHECK_INT(paused(&state), PAUSE_LEAST);
    CHECK(learn(&state, FAULT_NS - 1));
    CHECK(!learn(&state, SLOW_NS));
    CHECK_INT(paused(&state), 2 * PAUSE_LEAST);
}

/* At every alignment, wherever the huge pages inside lie. */
static void test_only_the_buffer_is_touched(void) {
    const size_t size = PS_HUGE_FROM + 4096, around = 4096;
    for (int small = 0; small < 2; small++) {
        ps_huge_pages state = {.small = small ? PAUSE_MOST : 0};
        for (size_t at = 0; at < PS_HUGE_PAGE; at += PS_HUGE_PAGE / 8 - 64) {
            uint8_t *memory = malloc(size + 2 * around + PS_HUGE_PAGE);
            CHECK(memory != NULL);
            uint8_t *buffer = memory + around + at;
            memset(buffer - around, 0x5a, around);
            memset(buffer + size, 0x5a, around);
            ps_huge_ask(&state, buffer, size);
            memset(buffer, 1, size);
            for (size_t i = 0; i < around; i++)
                CHECK(buffer[size + i] == 0x5a && (buffer - around)[i] == 0x5a);
            free(memory);
        }
        CHECK(!small || state.small < PAUSE_MOST);
    }
}
#endif

int main(void) {
#if defined(__linux__)
    test_fast_ones_are_wanted();
    test_slow_ones_are_avoided_for_longer_and_longer();
    test_a_page_that_was_there();
    test_only_the_buffer_is_touched();
#endif
    return check_report();
}
