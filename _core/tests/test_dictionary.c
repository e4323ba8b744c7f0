/* Tests of dictionaries whose bytes are read when rows need them: the rows equal those of whole dictionaries, and no byte too
 * many is read. */
#include <stdlib.h>

#include "../pageseek.h"
#include "check.h"

enum {
    INT64 = 2,
    BYTE_ARRAY = 6,
    FIXED = 7,
    CODES = 8,
    ENTRIES = 200,
    ROWS = 256,
    SPACE = 8192
};

/* A dictionary page: where each entry ends in it. */
typedef struct entries {
    uint8_t data[SPACE];
    size_t length, end[ENTRIES];
} entries;

/* Bytes that come in steps, to memory in which nothing lies behind them. */
typedef struct drip {
    ps_reader reader;
    const uint8_t *all;
    uint8_t *space;
    size_t step;
    int asked;
    bool broken;
} drip;

static ps_status more(ps_reader *reader, size_t reach, ps_error *err) {
    drip *d = (drip *)(void *)reader;
    d->asked++;
    (void)err;
    if (d->broken) return PS_CORRUPT;
    CHECK(reach > reader->have && reach <= reader->size);
    size_t have = (reach + d->step - 1) / d->step * d->step;
    if (have > reader->size) have = reader->size;
    memcpy(d->space + reader->have, d->all + reader->have, have - reader->have);
    reader->have = have;
    return PS_OK;
}

static drip drip_of(const entries *from, size_t step, uint8_t *space) {
    memset(space, 0xee, SPACE);
    return (drip){.reader = {.data = space, .size = from->length, .more = more},
                  .all = from->data,
                  .space = space,
                  .step = step};
}

static const ps_leaf_spec SPECS[] = {
    {.physical = INT64, .kind = PS_I64, .max_output = 1 << 20},
    {.physical = BYTE_ARRAY, .kind = PS_BYTES, .utf8 = 1, .max_output = 1 << 20},
    {.physical = BYTE_ARRAY, .kind = PS_LARGE_BYTES, .max_output = 1 << 20},
    {.physical = BYTE_ARRAY, .kind = PS_D128, .range = 38, .max_output = 1 << 20},
    {.physical = FIXED, .type_length = 5, .kind = PS_D128, .range = 38, .max_output = 1 << 20},
    {.physical = FIXED, .type_length = 3, .kind = PS_FIXED, .width = 3, .max_output = 1 << 20},
    {.physical = FIXED, .type_length = 0, .kind = PS_FIXED, .width = 0, .max_output = 1 << 20},
};
enum { N_SPECS = sizeof SPECS / sizeof *SPECS };

static void fill(entries *out, const ps_leaf_spec *spec) {
    out->length = 0;
    for (int i = 0; i < ENTRIES; i++) {
        uint8_t value[40];
        size_t size = spec->physical == INT64   ? 8
                      : spec->physical == FIXED ? (size_t)spec->type_length
                      : spec->kind == PS_D128   ? 1 + (size_t)i % 9
                                                : (size_t)(i * 7 % 37);
        for (size_t k = 0; k < size; k++) value[k] = (uint8_t)('a' + (i * 5 + (int)k) % 26);
        if (spec->physical == BYTE_ARRAY) {
            const uint32_t length = (uint32_t)size;
            memcpy(out->data + out->length, &length, 4);
            out->length += 4;
        }
        memcpy(out->data + out->length, value, size);
        out->end[i] = out->length += size;
    }
}

/* Codes of a byte each, in one run of packed ones: 0, 1, 2 .. 199, 0, 1 .. */
static ps_page page_of(uint8_t *body) {
    body[0] = 8;
    body[1] = (uint8_t)((ROWS / 8) << 1 | 1);
    for (int i = 0; i < ROWS; i++) body[2 + i] = (uint8_t)(i % ENTRIES);
    return (ps_page){.version = 1,
                     .encoding = CODES,
                     .def_encoding = 3,
                     .rep_encoding = 3,
                     .num_values = ROWS,
                     .num_nulls = -1,
                     .num_rows = -1,
                     .index_rows = -1,
                     .whole = true,
                     .body = body,
                     .length = 2 + ROWS};
}

/* The rows of two runs; `from`: the dictionary in steps, NULL: whole. */
static ps_status read(const ps_leaf_spec *spec, const entries *whole, drip *from,
                      const ps_range *runs, size_t n, ps_column *out) {
    uint8_t body[2 + ROWS];
    const ps_page page = page_of(body);
    const ps_selection selection = {.ranges = runs, .n_ranges = n};
    ps_leaf *leaf = NULL;
    ps_take state = PS_TAKE_PAGE;
    *out = (ps_column){0};
    CHECK_INT(ps_leaf_new(spec, &leaf, NULL), PS_OK);
    CHECK_INT(ps_leaf_begin(leaf, &selection, INT64_MAX, 0, NULL), PS_OK);
    ps_status status = from ? ps_leaf_dictionary_from(leaf, &from->reader, ENTRIES, NULL)
                            : ps_leaf_dictionary(leaf, whole->data, whole->length, ENTRIES,
                                                 NULL);
    if (from) CHECK_INT(from->asked, 0);
    if (status == PS_OK) status = ps_leaf_page(leaf, &page, NULL);
    if (status == PS_OK) status = ps_leaf_take(leaf, &state, NULL);
    if (status == PS_OK) {
        CHECK_INT(state, PS_TAKE_DONE);
        status = ps_leaf_finish(leaf, out, NULL);
    }
    ps_leaf_free(leaf);
    return status;
}

static bool same(const ps_column *a, const ps_column *b) {
    return a->n == b->n && a->values_size == b->values_size &&
           a->offsets_size == b->offsets_size &&
           (a->values_size == 0 || memcmp(a->values, b->values, a->values_size) == 0) &&
           (a->offsets_size == 0 || memcmp(a->offsets, b->offsets, a->offsets_size) == 0);
}

static void test_every_row_by_every_step(void) {
    static const size_t STEPS[] = {1, 7, 64, SPACE};
    static entries whole;
    static uint8_t space[SPACE];
    for (int s = 0; s < N_SPECS; s++) {
        fill(&whole, &SPECS[s]);
        for (int row = 0; row < ROWS; row++) {
            for (int second = 0; second < 2; second++) {
                const int64_t at = (row * 31) % ROWS;
                ps_range runs[2] = {{row, row + 1}, {at, at + 1}};
                if (at < row) {
                    runs[0] = (ps_range){at, at + 1};
                    runs[1] = (ps_range){row, row + 1};
                }
                const size_t n = second && at != row ? 2 : 1;
                if (n == 1) runs[0] = (ps_range){row, row + 1};
                ps_column expected, found;
                CHECK_INT(read(&SPECS[s], &whole, NULL, runs, n, &expected), PS_OK);
                for (size_t k = 0; k < sizeof STEPS / sizeof *STEPS; k++) {
                    drip d = drip_of(&whole, STEPS[k], space);
                    CHECK_INT(read(&SPECS[s], &whole, &d, runs, n, &found), PS_OK);
                    CHECK(same(&expected, &found));
                    const int64_t a = runs[0].start % ENTRIES, b = runs[n - 1].start % ENTRIES;
                    const size_t end = whole.end[a > b ? a : b];
                    CHECK(d.reader.have >= end);
                    if (SPECS[s].physical != BYTE_ARRAY)
                        CHECK(d.reader.have < end + STEPS[k]);
                    else /* guessed, a little too far */
                        CHECK(d.reader.have < end + end / 8 + 400 + STEPS[k]);
                    ps_column_drop(&found);
                }
                ps_column_drop(&expected);
            }
        }
    }
}

static void test_many_rows(void) {
    static entries whole;
    static uint8_t space[SPACE];
    for (int s = 0; s < N_SPECS; s++) {
        fill(&whole, &SPECS[s]);
        for (int64_t stop = 1; stop <= ROWS; stop += 15) {
            const ps_range runs[1] = {{0, stop}};
            ps_column expected, found;
            drip d = drip_of(&whole, 1, space);
            CHECK_INT(read(&SPECS[s], &whole, NULL, runs, 1, &expected), PS_OK);
            CHECK_INT(read(&SPECS[s], &whole, &d, runs, 1, &found), PS_OK);
            CHECK(same(&expected, &found));
            ps_column_drop(&expected);
            ps_column_drop(&found);
        }
    }
}

/* What lies behind the last entry in use is not looked at; what lies before it is. */
static void test_faults(void) {
    static entries whole, cut;
    static uint8_t space[SPACE];
    const ps_range early[1] = {{3, 5}}, late[1] = {{150, 151}};
    ps_column out;
    for (int s = 0; s < N_SPECS; s++) {
        const ps_leaf_spec *spec = &SPECS[s];
        if (spec->type_length == 0 && spec->physical == FIXED) continue;
        fill(&whole, spec);
        drip d = drip_of(&whole, 1, space);
        d.broken = true;
        CHECK(read(spec, &whole, &d, early, 1, &out) != PS_OK);
        if (spec->physical == BYTE_ARRAY) { /* fewer bytes than entries need */
            cut = whole;
            cut.length = whole.end[149];
            d = drip_of(&cut, 1, space);
            CHECK_INT(read(spec, &cut, &d, late, 1, &out), PS_TRUNCATED);
            d = drip_of(&cut, 1, space);
            CHECK_INT(read(spec, &cut, &d, early, 1, &out), PS_OK);
            ps_column_drop(&out);
            cut = whole; /* a length beyond the page */
            memset(cut.data + whole.end[99], 0xff, 4);
            d = drip_of(&cut, 1, space);
            CHECK_INT(read(spec, &cut, &d, late, 1, &out), PS_TRUNCATED);
            d = drip_of(&cut, 1, space);
            CHECK_INT(read(spec, &cut, &d, early, 1, &out), PS_OK);
            ps_column_drop(&out);
        }
        if (spec->utf8) { /* of the entries in use, and of no other */
            cut = whole;
            cut.data[whole.end[10] - 1] = 0xff;
            const ps_range bad[1] = {{10, 11}}, good[1] = {{11, 12}};
            d = drip_of(&cut, 1, space);
            CHECK(read(spec, &cut, &d, bad, 1, &out) != PS_OK);
            d = drip_of(&cut, 1, space);
            CHECK_INT(read(spec, &cut, &d, good, 1, &out), PS_OK);
            ps_column_drop(&out);
        }
    }
    fill(&whole, &SPECS[0]);
    whole.length = 1000; /* the page cannot hold what it claims */
    drip d = drip_of(&whole, 1, space);
    CHECK(read(&SPECS[0], &whole, &d, early, 1, &out) != PS_OK);
}

int main(void) {
    test_every_row_by_every_step();
    test_many_rows();
    test_faults();
    return check_report();
}
