/* Tests of lists of different values. */
#include "check.h"
#include "pageseek.h"

#include <stdlib.h>

static ps_error err;

enum { HEAD = 16, COMPLETE = 1, NULLS = 2, NANS = 4, MOST = 20, GROUPS = 5 };

typedef struct made {
    uint8_t at[1 << 10];
    size_t n;
} made;

static void put32(made *m, uint32_t value) {
    memcpy(m->at + m->n, &value, 4), m->n += 4;
}

/* A list of n values of one width, or of texts of 0, 1, 2, ... bytes where that is 0. */
static void list(made *m, uint32_t groups, uint32_t n, uint32_t width, bool per_group,
                 const uint8_t *flags, uint8_t has[][(MOST + 7) / 8]) {
    m->n = 0;
    put32(m, groups), put32(m, n);
    m->at[m->n++] = width == 0, m->at[m->n++] = per_group, m->at[m->n++] = 0, m->at[m->n++] = 0;
    put32(m, width);
    memcpy(m->at + m->n, flags, groups), m->n += groups;
    for (uint32_t g = 0; per_group && g < groups; g++)
        memcpy(m->at + m->n, has[g], (n + 7) / 8), m->n += (n + 7) / 8;
    uint32_t size = n * width;
    if (!width)
        for (uint32_t i = 0; i <= n; i++) size = i * (i - 1) / 2, put32(m, i ? size : 0);
    memset(m->at + m->n, 'x', size), m->n += size;
}

static ps_status read_it(const made *m, size_t n, size_t groups) {
    ps_list found;
    uint8_t *block = malloc(n ? n : 1); /* so that a read behind its end is seen */
    memcpy(block, m->at, n);
    ps_status status = ps_list_read(block, n, groups, &found, &err);
    free(block);
    return status;
}

static uint32_t drawn;
static uint32_t draw(uint32_t n) {
    drawn = drawn * 1664525u + 1013904223u;
    return (drawn >> 8) % n;
}

/* What the verdict on a row group is, value by value. */
static void check_verdicts(const ps_list *l, uint32_t n, const uint8_t *flags,
                           uint8_t has[][(MOST + 7) / 8], bool per_group) {
    uint8_t bits[(MOST + 7) / 8], may[GROUPS], must[GROUPS], passes[MOST], exact[GROUPS];
    bool known[GROUPS];
    ps_list_exact(l, exact);
    for (uint32_t g = 0; g < GROUPS; g++) {
        bool some = flags[g] & (NULLS | NANS) || (!per_group && n);
        for (uint32_t i = 0; per_group && i < n; i++) some |= has[g][i / 8] >> i % 8 & 1;
        known[g] = flags[g] & COMPLETE && some; /* a row group of nothing at all is a lie */
        CHECK_INT(exact[g], per_group && known[g]);
    }
    for (int round = 0; round < 16; round++) {
        bool null_passes = round & 1, floats = round & 2, nan_passes = round & 4;
        for (uint32_t i = 0; i < n; i++) passes[i] = round & 8 ? draw(8) == 0 : draw(8) != 0;
        ps_list_evaluate(l, passes, null_passes, floats, nan_passes, bits, may, must);
        for (uint32_t g = 0; g < GROUPS; g++) {
            bool some = false, every = true;
            for (uint32_t i = 0; i < n; i++) {
                if (per_group && !(has[g][i / 8] >> i % 8 & 1)) continue;
                some |= passes[i] != 0, every &= passes[i] != 0;
            }
            if (flags[g] & NULLS) some |= null_passes, every &= null_passes;
            if (floats && flags[g] & NANS) some |= nan_passes, every &= nan_passes;
            if (!known[g]) some = true, every = false;
            CHECK_INT(may[g], some);
            CHECK_INT(must[g], every);
        }
    }
}

static void test_lists_of_every_form(void) {
    static made m;
    for (uint32_t n = 0; n <= MOST; n++)
        for (uint32_t width = 0; width < 5; width += 2)
            for (int per_group = 0; per_group < 2; per_group++) {
                uint8_t flags[GROUPS], has[GROUPS][(MOST + 7) / 8] = {{0}};
                for (uint32_t g = 0; g < GROUPS; g++) {
                    flags[g] = (uint8_t)draw(8);
                    for (uint32_t i = 0; i < n; i++)
                        has[g][i / 8] |= (uint8_t)(draw(2) << i % 8);
                }
                list(&m, GROUPS, n, width, per_group, flags, has);
                ps_list l;
                CHECK_INT(ps_list_read(m.at, m.n, GROUPS, &l, &err), PS_OK);
                CHECK_INT(l.n_values, n);
                int64_t offsets[MOST], lengths[MOST];
                ps_list_places(&l, 100, offsets, lengths);
                for (uint32_t i = 0; i < n; i++) {
                    CHECK_INT(lengths[i], width ? width : i);
                    CHECK_INT(offsets[i], 100 + (width ? i * width : i * (i - 1) / 2));
                }
                check_verdicts(&l, n, flags, has, per_group);
                for (size_t k = 0; k < m.n; k++) CHECK(read_it(&m, k, GROUPS) != PS_OK);
                m.at[m.n] = 0;
                CHECK_INT(read_it(&m, m.n + 1, GROUPS), PS_CORRUPT);
                CHECK_INT(read_it(&m, m.n, GROUPS - 1), PS_CORRUPT);
            }
}

/* A list with one byte changed. */
static ps_status with(const made *m, size_t at, uint8_t value) {
    static made other;
    other = *m;
    other.at[at] = value;
    return read_it(&other, other.n, 1);
}

static void test_lists_that_contradict_themselves(void) {
    static made m;
    uint8_t flags[] = {COMPLETE}, has[1][(MOST + 7) / 8] = {{7}};
    list(&m, 1, 3, 0, true, flags, has);
    CHECK_INT(read_it(&m, m.n, 1), PS_OK);
    ps_list only;
    uint8_t exact = 0;
    list(&m, 1, 3, 0, false, flags, has); /* of one row group it need not be said */
    CHECK_INT(ps_list_read(m.at, m.n, 1, &only, &err), PS_OK);
    ps_list_exact(&only, &exact);
    CHECK_INT(exact, 1);
    list(&m, 1, 3, 0, true, flags, has);
    CHECK_INT(with(&m, 0, 2), PS_CORRUPT);         /* row groups */
    CHECK_INT(with(&m, 4, 4), PS_CORRUPT);         /* values */
    CHECK_INT(with(&m, 8, 2), PS_CORRUPT);         /* layout */
    CHECK_INT(with(&m, 9, 2), PS_CORRUPT);         /* whether it has bits */
    CHECK_INT(with(&m, 10, 1), PS_CORRUPT);        /* zero */
    CHECK_INT(with(&m, 11, 1), PS_CORRUPT);        /* zero */
    CHECK_INT(with(&m, 12, 1), PS_CORRUPT);        /* a width beside ends */
    CHECK_INT(with(&m, HEAD, 8), PS_CORRUPT);      /* a flag that is not known */
    CHECK_INT(with(&m, HEAD + 1, 15), PS_CORRUPT); /* a value that is not there */
    CHECK_INT(with(&m, HEAD + 2, 1), PS_CORRUPT);  /* ends that begin later */
    CHECK_INT(with(&m, HEAD + 6, 9), PS_CORRUPT);  /* ends that go back */
    CHECK_INT(with(&m, HEAD + 14, 4), PS_CORRUPT); /* or end later */
    list(&m, 1, 3, 4, true, flags, has);
    CHECK_INT(with(&m, 12, 5), PS_CORRUPT);
    /* very many values, each of no bytes */
    list(&m, 1, 0, 4, false, flags, has);
    memset(m.at + 4, 0xff, 4), memset(m.at + 12, 0, 4);
    CHECK_INT(read_it(&m, m.n, 1), PS_CORRUPT);
    memset(m.at, 0xff, 8), m.at[9] = 1;
    CHECK_INT(read_it(&m, m.n, UINT32_MAX), PS_CORRUPT);
}

int main(void) {
    test_lists_of_every_form();
    test_lists_that_contradict_themselves();
    return check_report();
}
