/* Nested leaves: levels and a selection in; values, validity and offsets out. */
#include "check.h"
#include "nest_pages.h"

static uint32_t dice_state = 1;
static uint32_t roll(uint32_t n) {
    dice_state = dice_state * 1664525u + 1013904223u;
    return (dice_state >> 8) % n;
}

static void make_levels(leafage *a, size_t n, uint32_t longest) {
    a->n = n;
    for (size_t i = 0; i < n; i++) {
        int rep = 0;
        if (i && roll(longest)) rep = (int)roll((uint32_t)a->spec.max_rep + 1);
        while (i && a->def[i - 1] < a->least[rep]) rep--;
        a->rep[i] = (uint8_t)rep;
        const uint32_t levels = (uint32_t)(a->spec.max_def - a->least[rep]) + 1;
        a->def[i] = roll(3) ? (uint8_t)a->spec.max_def
                            : (uint8_t)(a->least[rep] + roll(levels));
    }
}

static bool valid_at(const ps_column *c, int64_t i) {
    return !c->validity || (c->validity[i / 8] >> (i % 8) & 1);
}

/* ---- the slow twin ------------------------------------------------------------------------- */

/* What the levels say of the rows whose byte is 1, checked against what the leaf gives. */
static void check_output(const leafage *a, ps_leaf *leaf, const uint8_t *chosen) {
    static uint32_t slots[ENTRIES]; /* entries */
    ps_column values, c;
    ps_error err = {0};
    int64_t rows = 0, row = -1;
    int s = 0;
    for (size_t i = 0; i < a->n; i++)
        if (a->rep[i] == 0) rows += chosen[++row];
    CHECK_INT(ps_leaf_finish(leaf, &values, &err), PS_OK);
    CHECK_INT(values.rows, rows);
    for (int32_t r = 0; r <= a->spec.n_nesting_levels; r++) {
        size_t n = 0;
        row = -1;
        for (size_t i = 0; i < a->n; i++) {
            row += a->rep[i] == 0;
            if (a->rep[i] <= s && a->def[i] >= a->least[s] && chosen[row])
                slots[n++] = (uint32_t)i;
        }
        const bool last = r == a->spec.n_nesting_levels;
        if (last && a->spec.levels_only) break;
        if (last) {
            c = values;
        } else {
            CHECK_INT(ps_leaf_nesting_level(leaf, r, &c, &err), PS_OK);
            CHECK_INT(c.rows, rows);
        }
        CHECK_INT(c.n, n);
        if (c.n != (int64_t)n) return;
        if (!last && a->nesting[r].type == L) {
            uint32_t below = 0;
            s++;
            row = -1;
            n = 0;
            for (size_t i = 0; i < a->n; i++) {
                row += a->rep[i] == 0;
                if (!chosen[row]) continue;
                if (a->rep[i] < s && a->def[i] >= a->least[s - 1])
                    CHECK_INT(ps_load32(c.offsets + 4 * n++), below);
                below += a->rep[i] <= s && a->def[i] >= a->least[s];
            }
            CHECK_INT(ps_load32(c.offsets + 4 * n), below);
        } else {
            const int level = last ? a->spec.max_def : r + 1;
            int64_t nulls = 0;
            for (size_t k = 0; k < n; k++) {
                const bool there = a->def[slots[k]] >= level;
                nulls += !there;
                CHECK_INT(valid_at(&c, (int64_t)k), there);
                if (last) CHECK_INT(ps_load32(c.values + 4 * k), there ? slots[k] : 0);
            }
            CHECK_INT(c.null_count, nulls);
        }
        if (!last) ps_column_drop(&c);
    }
    ps_column_drop(&values);
}

/* ---- nesting levels ------------------------------------------------------------------------ */

static ps_status new_leaf(const ps_leaf_spec *spec) {
    ps_leaf *leaf;
    ps_error err = {0};
    const ps_status status = ps_leaf_new(spec, &leaf, &err);
    CHECK((leaf == NULL) == (status != PS_OK));
    CHECK(status == PS_OK || err.message[0]);
    ps_leaf_free(leaf);
    return status;
}

static void test_nesting_levels_that_levels_do_not_fit(void) {
    static const int types[] = {O, L, O, L};
    static leafage a;
    make_nesting(&a, types, 4, true);
    CHECK_INT(new_leaf(&a.spec), PS_OK);
    a.spec.max_def = 4; /* nothing of its own */
    CHECK_INT(new_leaf(&a.spec), PS_OK);
    a.spec.max_def = 3;
    CHECK_INT(new_leaf(&a.spec), PS_INVALID);
    a.spec.max_def = 6;
    CHECK_INT(new_leaf(&a.spec), PS_INVALID);
    a.spec.max_def = -1;
    CHECK_INT(new_leaf(&a.spec), PS_INVALID);
    a.spec.max_def = 5;
    a.spec.max_rep = 1;
    CHECK_INT(new_leaf(&a.spec), PS_INVALID);
    a.spec.max_rep = 3;
    CHECK_INT(new_leaf(&a.spec), PS_INVALID);
    a.spec.max_rep = 2;
    a.nesting[3].rep_level = 1;
    CHECK_INT(new_leaf(&a.spec), PS_INVALID);
    a.nesting[3].rep_level = 2;
    a.nesting[1].def_level = 3, a.nesting[2].def_level = 2; /* the wrong way round */
    CHECK_INT(new_leaf(&a.spec), PS_INVALID);
    a.nesting[1].def_level = 2, a.nesting[2].def_level = 2;
    CHECK_INT(new_leaf(&a.spec), PS_INVALID);
    a.nesting[2].def_level = 3;
    CHECK_INT(new_leaf(&a.spec), PS_OK);
    a.spec.n_nesting_levels = -1;
    CHECK_INT(new_leaf(&a.spec), PS_LIMIT);
}

static void test_nesting_levels_that_are_too_deep(void) {
    ps_nesting_level nesting[2 * PS_MAX_LEVEL + 2] = {0};
    ps_leaf_spec spec = {.physical = PQ_INT32, .kind = PS_I32, .nesting_levels = nesting};
    spec.max_output = 1 << 20;
    for (int i = 0; i < 2 * PS_MAX_LEVEL + 2; i++)
        nesting[i] = (ps_nesting_level){L, (int16_t)(i + 1), (int16_t)(i + 1)};
    spec.n_nesting_levels = spec.max_def = spec.max_rep = PS_MAX_LEVEL;
    CHECK_INT(new_leaf(&spec), PS_OK);
    spec.max_def++;
    CHECK_INT(new_leaf(&spec), PS_LIMIT);
    spec.n_nesting_levels = spec.max_rep = spec.max_def;
    CHECK_INT(new_leaf(&spec), PS_LIMIT);
    spec.n_nesting_levels = 2 * PS_MAX_LEVEL + 1;
    CHECK_INT(new_leaf(&spec), PS_LIMIT);
}

static void test_levels_need_nesting_levels(void) {
    ps_leaf_spec spec = {.physical = PQ_INT32, .kind = PS_I32, .max_def = 1};
    spec.max_output = 1 << 20;
    CHECK_INT(new_leaf(&spec), PS_OK);
    spec.levels_only = 1; /* of a flat leaf there is no output but its values */
    CHECK_INT(new_leaf(&spec), PS_INVALID);
    spec.levels_only = 0;
    spec.max_def = 2;
    CHECK_INT(new_leaf(&spec), PS_INVALID);
    spec.max_def = 1, spec.max_rep = 1;
    CHECK_INT(new_leaf(&spec), PS_INVALID);
}

/* ---- pages --------------------------------------------------------------------------------- */

/* Pages that begin at `cuts`, read with a selection: PS_OK, or the first error. */
static ps_status read_pages(const leafage *a, const size_t *cuts, size_t n_cuts,
                            int32_t version, const ps_selection *selection,
                            const uint8_t *chosen, bool whole) {
    ps_leaf *leaf;
    ps_take state = PS_TAKE_PAGE;
    ps_error err = {0};
    CHECK_INT(ps_leaf_new(&a->spec, &leaf, &err), PS_OK);
    ps_status status = ps_leaf_begin(leaf, selection, INT64_MAX, 0, &err);
    CHECK_INT(status, PS_OK);
    ps_page page = {.version = 1};
    for (size_t k = 0; k <= n_cuts && status == PS_OK && state == PS_TAKE_PAGE; k++) {
        drop_page(&page);
        page = make_page(a, k ? cuts[k - 1] : 0, k < n_cuts ? cuts[k] : a->n, version);
        page.whole = whole;
        status = ps_leaf_page(leaf, &page, &err);
        if (status == PS_OK) status = ps_leaf_take(leaf, &state, &err);
    }
    if (status == PS_OK && state == PS_TAKE_PAGE) {
        ps_leaf_end(leaf);
        status = ps_leaf_take(leaf, &state, &err);
    }
    if (status == PS_OK) {
        CHECK_INT(state, PS_TAKE_DONE);
        check_output(a, leaf, chosen);
    } else {
        CHECK(err.message[0]);
    }
    ps_leaf_free(leaf);
    drop_page(&page);
    return status;
}

/* A list of three rows: {1 2 3}, {}, {4 null}. */
static void make_three(leafage *a) {
    static const int types[] = {O, L};
    make_nesting(a, types, 2, true);
    memcpy(a->rep, "\0\1\1\0\0\1", 6);
    memcpy(a->def, "\3\3\3\1\3\2", 6);
    a->n = 6;
}

static void test_rows_that_go_on_in_other_pages(void) {
    static leafage a;
    make_three(&a);
    for (size_t cuts = 0; cuts < 32; cuts++) {
        for (uint8_t rows = 0; rows < 8; rows++) {
            size_t at[5], n = 0;
            const uint8_t bits[8] = {rows};
            const uint8_t chosen[3] = {rows & 1, rows >> 1 & 1, rows >> 2 & 1};
            const ps_selection selection = {.bitmap = bits, .length = 3};
            for (size_t i = 0; i < 5; i++)
                if (cuts >> i & 1) at[n++] = i + 1;
            CHECK_INT(read_pages(&a, at, n, 1, &selection, chosen, false), PS_OK);
            CHECK_INT(read_pages(&a, at, n, 2, &selection, chosen, false), PS_OK);
        }
    }
}

static void test_only_the_end_ends_a_row(void) {
    static leafage a;
    make_three(&a);
    const ps_range range = {0, 1};
    const ps_selection selection = {.ranges = &range, .n_ranges = 1};
    const uint8_t chosen[3] = {1};
    ps_leaf *leaf;
    ps_take state;
    ps_error err = {0};
    CHECK_INT(ps_leaf_new(&a.spec, &leaf, &err), PS_OK);
    CHECK_INT(ps_leaf_begin(leaf, &selection, INT64_MAX, 0, &err), PS_OK);
    ps_page page = make_page(&a, 0, 3, 1);
    CHECK_INT(ps_leaf_page(leaf, &page, &err), PS_OK);
    CHECK_INT(ps_leaf_take(leaf, &state, &err), PS_OK);
    CHECK_INT(state, PS_TAKE_PAGE); /* the row may go on */
    CHECK_INT(ps_leaf_row(leaf), 1);
    ps_leaf_end(leaf);
    CHECK_INT(ps_leaf_take(leaf, &state, &err), PS_OK);
    CHECK_INT(state, PS_TAKE_DONE);
    check_output(&a, leaf, chosen);
    ps_leaf_free(leaf);
    drop_page(&page);
}

static void test_a_row_that_was_left_open_is_not_part_of_the_next_output(void) {
    static leafage a;
    make_three(&a);
    const ps_range range = {0, 3};
    const ps_selection selection = {.ranges = &range, .n_ranges = 1};
    const uint8_t chosen[3] = {0, 1, 1};
    ps_leaf *leaf;
    ps_take state;
    ps_error err = {0};
    CHECK_INT(ps_leaf_new(&a.spec, &leaf, &err), PS_OK);
    CHECK_INT(ps_leaf_begin(leaf, &selection, INT64_MAX, 0, &err), PS_OK);
    ps_page first = make_page(&a, 0, 2, 1), second = make_page(&a, 2, 6, 1);
    CHECK_INT(ps_leaf_page(leaf, &first, &err), PS_OK);
    CHECK_INT(ps_leaf_take(leaf, &state, &err), PS_OK);
    CHECK_INT(ps_leaf_begin(leaf, &selection, INT64_MAX, 0, &err), PS_OK);
    second.whole = true;
    CHECK_INT(ps_leaf_page(leaf, &second, &err), PS_OK);
    CHECK_INT(ps_leaf_take(leaf, &state, &err), PS_OK);
    CHECK_INT(state, PS_TAKE_DONE);
    check_output(&a, leaf, chosen);
    ps_leaf_free(leaf);
    drop_page(&first);
    drop_page(&second);
}

static ps_status hand(const leafage *a, size_t from, size_t to, int64_t index_rows) {
    ps_leaf *leaf;
    ps_error err = {0};
    const ps_range range = {0, 1};
    const ps_selection selection = {.ranges = &range, .n_ranges = 1};
    CHECK_INT(ps_leaf_new(&a->spec, &leaf, &err), PS_OK);
    CHECK_INT(ps_leaf_begin(leaf, &selection, INT64_MAX, 0, &err), PS_OK);
    ps_page page = make_page(a, from, to, 2);
    page.index_rows = index_rows;
    page.whole = true;
    page.first_row = 0;
    const ps_status status = ps_leaf_page(leaf, &page, &err);
    ps_leaf_free(leaf);
    drop_page(&page);
    return status;
}

static void test_an_offset_index_that_counts_other_rows(void) {
    static leafage a;
    make_three(&a);
    CHECK_INT(hand(&a, 0, 6, 3), PS_OK);
    CHECK_INT(hand(&a, 0, 6, -1), PS_OK);
    CHECK_INT(hand(&a, 0, 6, 2), PS_MISMATCH);
    CHECK_INT(hand(&a, 0, 6, 6), PS_MISMATCH);
    CHECK_INT(hand(&a, 1, 6, 2), PS_MISMATCH); /* begins inside a row */
    CHECK_INT(hand(&a, 1, 6, -1), PS_CORRUPT);
    CHECK_INT(hand(&a, 0, 0, 0), PS_OK);
}

static ps_status read_all(const leafage *a) {
    ps_range range = {0, 0};
    for (size_t i = 0; i < a->n; i++) range.stop += a->rep[i] == 0;
    const ps_selection selection = {.ranges = &range, .n_ranges = 1};
    uint8_t chosen[ENTRIES];
    memset(chosen, 1, sizeof chosen);
    const size_t cut = a->n / 2;
    const ps_status one = read_pages(a, NULL, 0, 1, &selection, chosen, true);
    CHECK_INT(read_pages(a, &cut, 1, 1, &selection, chosen, false), one);
    return one;
}

static void test_lists_that_go_on_without_an_element(void) {
    static const int types[] = {O, L, O, L};
    static leafage a;
    make_three(&a);
    a.rep[4] = 1; /* goes on with an empty list */
    CHECK_INT(read_all(&a), PS_CORRUPT);
    make_three(&a);
    a.def[1] = 1; /* adds nothing */
    CHECK_INT(read_all(&a), PS_CORRUPT);
    for (uint8_t rep = 1; rep <= 2; rep++) {
        for (uint8_t def = 0; def < 6; def++) {
            for (uint8_t before = 0; before < 6; before++) {
                make_nesting(&a, types, 4, true);
                a.n = 2;
                a.rep[1] = rep, a.def[0] = before, a.def[1] = def;
                const uint8_t least = rep == 1 ? 2 : 4;
                const bool fit = def >= least && before >= least;
                CHECK_INT(read_all(&a), fit ? PS_OK : PS_CORRUPT);
            }
        }
    }
}

static void test_levels_beyond_the_greatest(void) {
    static const int types[] = {O, L, O, L};
    static leafage a;
    for (int k = 0; k < 2; k++) {
        make_nesting(&a, types, 4, true);
        a.n = 4;
        memset(a.def, 5, 4);
        CHECK_INT(read_all(&a), PS_OK);
        if (k) {
            a.rep[1] = 3; /* two bits hold it */
        } else {
            a.def[3] = 7;
        }
        CHECK_INT(read_all(&a), PS_CORRUPT);
    }
}

static void test_pages_that_end_early_or_lie(void) {
    static const int types[] = {L, O, L};
    static leafage a;
    const ps_range range = {0, 1 << 20};
    const ps_selection selection = {.ranges = &range, .n_ranges = 1};
    make_nesting(&a, types, 3, true);
    make_levels(&a, 40, 4);
    for (int32_t version = 1; version <= 2; version++) {
        ps_page page = make_page(&a, 0, a.n, version);
        const uint8_t *all = version == 2 ? page.levels : page.body;
        const size_t levels = page.rep_length + page.def_length, size = levels + page.length;
        for (size_t k = 0; k < 9 * size; k++) { /* all bits, then all lengths */
            ps_leaf *leaf;
            ps_take state;
            ps_column c;
            ps_error err = {0};
            const size_t length = k < 8 * size ? size : k - 8 * size;
            uint8_t *copy = malloc(length ? length : 1);
            memcpy(copy, all, length);
            if (k < 8 * size) copy[k / 8] ^= (uint8_t)(1 << k % 8);
            ps_page p = page;
            p.whole = k % 3;
            p.body = p.levels = copy;
            p.length = length;
            if (version == 2) {
                p.rep_length = p.rep_length < length ? p.rep_length : length;
                p.def_length = levels < length ? p.def_length : length - p.rep_length;
                p.body += p.rep_length + p.def_length;
                p.length -= p.rep_length + p.def_length;
            }
            CHECK_INT(ps_leaf_new(&a.spec, &leaf, &err), PS_OK);
            CHECK_INT(ps_leaf_begin(leaf, &selection, INT64_MAX, 0, &err), PS_OK);
            ps_status status = ps_leaf_page(leaf, &p, &err);
            if (status == PS_OK) status = ps_leaf_take(leaf, &state, &err);
            CHECK(k < 8 * size || status != PS_OK);
            CHECK(status == PS_OK || err.message[0]);
            CHECK_INT(ps_leaf_finish(leaf, &c, &err), PS_OK);
            ps_column_drop(&c);
            for (int32_t r = 0; r < 3; r++) {
                CHECK_INT(ps_leaf_nesting_level(leaf, r, &c, &err), PS_OK);
                if (r != 1) {
                    for (int64_t i = 0; i < c.n; i++)
                        CHECK(ps_load32(c.offsets + 4 * i) <= ps_load32(c.offsets + 4 * i + 4));
                }
                ps_column_drop(&c);
            }
            ps_leaf_free(leaf);
            free(copy);
        }
        drop_page(&page);
    }
}

/* ---- runs and blocks ----------------------------------------------------------------------- */

/* The same rows as a bitmap, as ranges, and in parts: whole output after each. */
static void check_selection(const leafage *a, const size_t *cuts, size_t n_cuts, bool whole,
                            const uint8_t *chosen, size_t rows) {
    uint8_t bits[ENTRIES / 8 + 8] = {0};
    static ps_range ranges[ENTRIES];
    for (size_t i = 0; i < rows; i++) bits[i / 8] |= (uint8_t)(chosen[i] << i % 8);
    const ps_selection bitmap = {.bitmap = bits, .length = (int64_t)rows};
    const size_t runs = ps_selection_runs(&bitmap);
    ps_selection_to_ranges(&bitmap, ranges);
    const ps_selection by_range = {.ranges = ranges, .n_ranges = runs};
    const int32_t version = 1 + (int32_t)roll(2);
    CHECK_INT(read_pages(a, cuts, n_cuts, version, &bitmap, chosen, whole), PS_OK);
    CHECK_INT(read_pages(a, cuts, n_cuts, version, &by_range, chosen, whole), PS_OK);

    ps_leaf *leaf; /* one page, the selection in two parts, which may meet inside a block */
    ps_take state;
    ps_error err = {0};
    static uint8_t part[ENTRIES];
    const size_t middle = roll((uint32_t)rows + 1), edges[] = {0, middle, rows};
    CHECK_INT(ps_leaf_new(&a->spec, &leaf, &err), PS_OK);
    ps_page page = make_page(a, 0, a->n, version);
    for (int k = 0; k < 2; k++) {
        memset(part, 0, sizeof part);
        memset(bits, 0, sizeof bits);
        for (size_t i = edges[k]; i < edges[k + 1]; i++) {
            part[i] = chosen[i];
            bits[i / 8] |= (uint8_t)(chosen[i] << i % 8);
        }
        CHECK_INT(ps_leaf_begin(leaf, &bitmap, INT64_MAX, 0, &err), PS_OK);
        page.whole = true;
        if (!k) CHECK_INT(ps_leaf_page(leaf, &page, &err), PS_OK);
        CHECK_INT(ps_leaf_take(leaf, &state, &err), PS_OK);
        CHECK_INT(state, PS_TAKE_DONE);
        CHECK(ps_leaf_row(leaf) <= (int64_t)edges[k + 1]);
        check_output(a, leaf, part);
    }
    ps_leaf_free(leaf);
    drop_page(&page);
}

static void test_any_levels_and_rows(void) {
    static leafage a;
    static uint8_t chosen[ENTRIES];
    for (int round = 0; round < 150; round++) {
        int types[NESTING_LEVELS];
        const int n = 1 + (int)roll(NESTING_LEVELS);
        for (int i = 0; i < n; i++) types[i] = roll(2) ? L : O;
        make_nesting(&a, types, n, roll(2));
        const bool large = round % 5 == 0;
        make_levels(&a, large ? 500 + roll(ENTRIES - 500) : 1 + roll(60), 1 + roll(6));
        a.spec.levels_only = roll(5) == 0;
        size_t rows = 0, cuts[4], n_cuts = 0;
        for (size_t i = 0; i < a.n; i++) rows += a.rep[i] == 0;
        const bool whole = roll(2);
        for (size_t i = 1; i < a.n && n_cuts < 4; i++)
            if (roll((uint32_t)a.n) < 4 && (!whole || a.rep[i] == 0)) cuts[n_cuts++] = i;
        const uint32_t density = 1 + roll(8);
        for (size_t i = 0; i < rows; i++) chosen[i] = roll(9) < density;
        check_selection(&a, cuts, n_cuts, whole, chosen, rows);
    }
}

static void test_output_beyond_the_limit(void) {
    static leafage a;
    static const int types[] = {O, L, O};
    make_nesting(&a, types, 3, true);
    make_levels(&a, 3000, 5);
    const ps_range range = {0, 3000};
    const ps_selection selection = {.ranges = &range, .n_ranges = 1};
    for (size_t limit = 64; limit < 6000; limit += 500) {
        a.spec.max_output = limit;
        CHECK_INT(read_pages(&a, NULL, 0, 1, &selection, NULL, true), PS_LIMIT);
    }
}

int main(void) {
    test_nesting_levels_that_levels_do_not_fit();
    test_nesting_levels_that_are_too_deep();
    test_levels_need_nesting_levels();
    test_rows_that_go_on_in_other_pages();
    test_only_the_end_ends_a_row();
    test_a_row_that_was_left_open_is_not_part_of_the_next_output();
    test_an_offset_index_that_counts_other_rows();
    test_lists_that_go_on_without_an_element();
    test_levels_beyond_the_greatest();
    test_pages_that_end_early_or_lie();
    test_any_levels_and_rows();
    test_output_beyond_the_limit();
    return check_report();
}
