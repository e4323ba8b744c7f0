/* check.h - the test framework of the C core: CHECK, and `return check_report()` in main. */
#ifndef PAGESEEK_CHECK_H
#define PAGESEEK_CHECK_H

#include <stdio.h>
#include <string.h>

static int checks_passed, checks_failed;

#define CHECK(condition)                                                                       \
    do {                                                                                       \
        if (condition) {                                                                       \
            checks_passed++;                                                                   \
        } else {                                                                               \
            checks_failed++;                                                                   \
            printf("%s:%d: %s: %s\n", __FILE__, __LINE__, __func__, #condition);               \
        }                                                                                      \
    } while (0)

#define CHECK_INT(found, wanted)                                                               \
    do {                                                                                       \
        long long check_found = (long long)(found), check_wanted = (long long)(wanted);        \
        if (check_found == check_wanted) {                                                     \
            checks_passed++;                                                                   \
        } else {                                                                               \
            checks_failed++;                                                                   \
            printf("%s:%d: %s: %s is %lld, not %lld\n", __FILE__, __LINE__, __func__, #found,  \
                   check_found, check_wanted);                                                 \
        }                                                                                      \
    } while (0)

static int check_report(void) {
    printf("%d passed, %d failed\n", checks_passed, checks_failed);
    fflush(stdout);
    return checks_failed != 0;
}

#endif
