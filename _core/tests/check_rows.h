/* check_rows.h - the two counters and the one macro of a C test. */
#ifndef PAGESEEK_CHECK_ROWS_H
#define PAGESEEK_CHECK_ROWS_H

#include <stdio.h>

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

#endif
