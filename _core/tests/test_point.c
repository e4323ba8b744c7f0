/* Tests of few rows by tests on leaves: pages of different rows, nulls, dictionaries, limits, reads, and false claims. */
#include <stdlib.h>

#include "../pageseek.h"
#include "check.h"
#include "task_pages.h"

enum { INT32 = 1, BYTE_ARRAY = 6, ROWS = 40, MOST_PAGES = ROWS + 1 };

/* A file in memory. `reads` counts, and `fails` is the read that fails, from 1. */
typedef struct file {
    bytes held;
    size_t reads, fails, bytes;
} file;

static bool read_file(void *of, int64_t offset, uint8_t *out, size_t length) {
    file *f = of;
    f->reads++;
    f->bytes += length;
    if (f->reads == f->fails || offset < 0 || (size_t)offset > f->held.length ||
        length > f->held.length - (size_t)offset)
        return false;
    memcpy(out, f->held.data + offset, length);
    return true;
}

/* A leaf and where its pages are. */
typedef struct leaf_pages {
    ps_point_leaf leaf;
    int64_t first_row[MOST_PAGES + 1], offset[MOST_PAGES], size[MOST_PAGES];
} leaf_pages;

static void open_leaf(leaf_pages *p, int physical, int kind) {
    memset(p, 0, sizeof *p);
    p->leaf.spec = (ps_leaf_spec){.physical = physical, .kind = kind, .max_output = 1 << 20};
    p->leaf.codec = PS_CODEC_NONE;
    p->leaf.step = 1;
    p->leaf.max_page = 1 << 20;
    p->leaf.first_row = p->first_row;
    p->leaf.offset = p->offset;
    p->leaf.size = p->size;
}

static void begin_page(leaf_pages *p, const file *f) {
    p->offset[p->leaf.n_pages] = (int64_t)f->held.length;
}

static void end_page(leaf_pages *p, const file *f, int rows) {
    const size_t i = p->leaf.n_pages++;
    p->size[i] = (int64_t)f->held.length - p->offset[i];
    p->first_row[i + 1] = p->first_row[i] + rows;
}

/* Numbers row * factor, so many rows a page. */
static void numbers(leaf_pages *p, file *f, int factor, int rows) {
    open_leaf(p, INT32, PS_I32);
    for (int row = 0; row < ROWS; row += rows) {
        int32_t values[ROWS];
        const int n = row + rows > ROWS ? ROWS - row : rows;
        for (int i = 0; i < n; i++) values[i] = (row + i) * factor;
        begin_page(p, f);
        page(&f->held, DATA, PLAIN, n, values, (size_t)n * 4);
        end_page(p, f, n);
    }
}

/* Texts: as many letters as the row modulo 4. */
static void texts(leaf_pages *p, file *f, int rows) {
    open_leaf(p, BYTE_ARRAY, PS_BYTES);
    for (int row = 0; row < ROWS; row += rows) {
        uint8_t values[8 * ROWS];
        size_t at = 0;
        const int n = row + rows > ROWS ? ROWS - row : rows;
        for (int i = row; i < row + n; i++) {
            const uint32_t size = (uint32_t)(i % 4);
            memcpy(values + at, &size, 4);
            memset(values + at + 4, 'a' + i % 26, size);
            at += 4 + size;
        }
        begin_page(p, f);
        page(&f->held, DATA, PLAIN, n, values, at);
        end_page(p, f, n);
    }
}

/* Codes 0 to 7, three bits each, of numbers from 70 on; five pages of eight rows. */
static void coded(leaf_pages *p, file *f, bool with_pages) {
    static const uint8_t eight[5] = {3, 3, 0x88, 0xc6, 0xfa};
    int32_t entries[8];
    open_leaf(p, INT32, PS_I32);
    for (int i = 0; i < 8; i++) entries[i] = 70 + i;
    p->leaf.dictionary_at = (int64_t)f->held.length;
    page(&f->held, DICTIONARY, PLAIN, 8, entries, sizeof entries);
    p->leaf.dictionary_length = f->held.length - (size_t)p->leaf.dictionary_at;
    p->leaf.coded = with_pages;
    for (int row = 0; row < ROWS; row += 8) {
        begin_page(p, f);
        page(&f->held, DATA, CODES, 8, eight, sizeof eight);
        end_page(p, f, 8);
    }
}

typedef struct query {
    file f;
    leaf_pages pages[4];
    ps_point_leaf leaves[4];
    ps_column columns[4];
    ps_range range;
    ps_source source;
    ps_point point;
} query;

static query *open_query(void) {
    query *q = calloc(1, sizeof *q);
    put(&q->f.held, "PAR1", 4);
    numbers(&q->pages[0], &q->f, 1, 7);
    numbers(&q->pages[1], &q->f, 10, 3);
    texts(&q->pages[2], &q->f, 11);
    coded(&q->pages[3], &q->f, true);
    for (int i = 0; i < 4; i++) {
        q->leaves[i] = q->pages[i].leaf;
        q->leaves[i].output = true;
    }
    q->range = (ps_range){0, ROWS};
    q->source = (ps_source){read_file, &q->f};
    q->point = (ps_point){.leaves = q->leaves,
                          .n_leaves = 4,
                          .ranges = &q->range,
                          .n_ranges = 1,
                          .limit = INT64_MAX,
                          .most = 1 << 20,
                          .source = &q->source,
                          .columns = q->columns};
    return q;
}

static ps_point_test number_test(size_t leaf, ps_op op, const int32_t *value) {
    return (ps_point_test){
        .leaf = leaf,
        .op = op,
        .literals = {
            .kind = PS_I32, .n = 1, .values = (const uint8_t *)value, .values_size = 4}};
}

static void close_query(query *q) {
    for (int i = 0; i < 4; i++) ps_column_drop(&q->columns[i]);
    free(q);
}

static bool is_empty(const query *q) {
    for (int i = 0; i < 4; i++)
        if (q->columns[i].validity || q->columns[i].values || q->columns[i].offsets)
            return false;
    return true;
}

/* The columns have the rows first, first + step and so on. */
static void check_rows(query *q, int first, int step, int n) {
    CHECK_INT(q->point.rows, n);
    if (q->point.rows != n) return;
    for (int i = 0; i < n; i++) {
        const int row = first + i * step;
        int32_t number, tenfold, code, start, stop;
        memcpy(&number, q->columns[0].values + 4 * i, 4);
        memcpy(&tenfold, q->columns[1].values + 4 * i, 4);
        memcpy(&start, q->columns[2].offsets + 4 * i, 4);
        memcpy(&stop, q->columns[2].offsets + 4 * i + 4, 4);
        memcpy(&code, q->columns[3].values + 4 * i, 4);
        CHECK_INT(number, row);
        CHECK_INT(tenfold, 10 * row);
        CHECK_INT(stop - start, row % 4);
        for (int32_t k = start; k < stop; k++)
            CHECK_INT(q->columns[2].values[k], 'a' + row % 26);
        CHECK_INT(code, 70 + row % 8);
    }
}

static void test_one_row(void) {
    for (int32_t row = -1; row <= ROWS; row++) {
        query *q = open_query();
        const ps_point_test test = number_test(0, PS_EQ, &row);
        q->point.tests = &test, q->point.n_tests = 1;
        CHECK(ps_point_read(&q->point));
        check_rows(q, row, 1, row >= 0 && row < ROWS);
        if (!q->point.rows) CHECK(is_empty(q));
        close_query(q);
    }
}

static void test_ranges_limits_and_leaves_without_output(void) {
    for (int tested = 0; tested < 2; tested++) {
        for (int32_t low = 0; low < ROWS; low += 3) {
            for (int64_t limit = 0; limit < 12; limit++) {
                query *q = open_query();
                const int32_t high = low + 9, one = 10 * low;
                const ps_point_test tests[] = {number_test(1, PS_GE, &one),
                                               number_test(0, PS_LT, &high)};
                q->point.tests = tests, q->point.n_tests = 2, q->point.limit = limit;
                q->leaves[tested].output = false;
                CHECK(ps_point_read(&q->point));
                const int64_t rows = ROWS - low < 9 ? ROWS - low : 9;
                CHECK_INT(q->point.rows, rows < limit ? rows : limit);
                CHECK(!q->columns[tested].values);
                CHECK_INT(q->columns[!tested].n, q->point.rows);
                close_query(q);
            }
        }
    }
}

static void test_rows_in_question(void) {
    for (int start = 0; start < ROWS; start++) {
        query *q = open_query();
        const ps_range some[2] = {{start, start + 1}, {start + 1, ROWS}};
        q->point.ranges = some, q->point.n_ranges = start + 1 < ROWS ? 2 : 1;
        CHECK(ps_point_read(&q->point)); /* without a test */
        check_rows(q, start, 1, ROWS - start);
        close_query(q);
    }
}

static void test_pages_are_read_once_and_neighbours_together(void) {
    query *q = open_query();
    const int32_t row = 13; /* the last of the second page of leaf 0 */
    const ps_point_test test = number_test(0, PS_EQ, &row);
    q->range = (ps_range){7, 21}; /* two pages */
    q->point.tests = &test, q->point.n_tests = 1;
    CHECK(ps_point_read(&q->point));
    check_rows(q, 13, 1, 1);
    /* pages of leaf 0 by one read; then one for leaves 1 and 2 each, and two of leaf 3, whose page is not the first */
    CHECK_INT(q->f.reads, 5);
    close_query(q);
}

static void test_a_dictionary_that_is_asked_for(void) {
    query *q = open_query();
    const int32_t row = 9;
    const ps_point_test test = number_test(0, PS_EQ, &row);
    q->leaves[3].coded = false;
    q->point.tests = &test, q->point.n_tests = 1;
    CHECK(ps_point_read(&q->point));
    check_rows(q, 9, 1, 1);
    close_query(q);
    q = open_query();
    q->leaves[3].coded = false;
    q->leaves[3].dictionary_length = 0; /* and is not there */
    q->point.tests = &test, q->point.n_tests = 1;
    CHECK(!ps_point_read(&q->point));
    CHECK(is_empty(q));
    close_query(q);
}

static void test_what_was_read_is_counted(void) {
    for (int coded_pages = 0; coded_pages < 2; coded_pages++) {
        query *q = open_query();
        ps_point_count counts[4] = {{0}};
        const ps_range some[] = {{5, 8}, {20, 21}};
        q->leaves[3].coded = coded_pages;
        q->point.ranges = some, q->point.n_ranges = 2, q->point.counts = counts;
        CHECK(ps_point_read(&q->point));
        CHECK_INT(q->point.rows, 4);
        CHECK_INT(q->point.requests, q->f.reads);
        const size_t pages[] = {3, 3, 2, 2}; /* of 7, 3, 11 and 8 rows */
        size_t sum = 0;
        for (int i = 0; i < 4; i++) {
            CHECK_INT(counts[i].pages, pages[i]);
            CHECK_INT(counts[i].dictionaries, i == 3);
            sum += counts[i].bytes;
        }
        CHECK_INT(sum, q->f.bytes);
        close_query(q);
    }
}

static bool read_point(void *of) {
    return ps_point_read(of);
}

static void test_points_are_tasks(void) {
    enum { QUERIES = 24 };
    query *all[QUERIES];
    ps_page_task tasks[QUERIES];
    memset(tasks, 0, sizeof tasks);
    for (int i = 0; i < QUERIES; i++) {
        all[i] = open_query();
        all[i]->range = (ps_range){i, i + 3};
        all[i]->f.fails = i % 5 == 4; /* the first read */
        tasks[i] = (ps_page_task){
            .call = read_point, .of = &all[i]->point, .hint = (size_t)(i % 7) * 1000};
    }
    ps_page_tasks(tasks, QUERIES, 3);
    for (int i = 0; i < QUERIES; i++) {
        CHECK_INT(tasks[i].state, i % 5 == 4 ? PS_TASK_AGAIN : PS_TASK_DONE);
        if (i % 5 == 4)
            CHECK(is_empty(all[i]));
        else
            check_rows(all[i], i, 1, 3);
        close_query(all[i]);
    }
}

static void test_views_are_output_only(void) {
    const int32_t row = 20;
    for (size_t tested = 0; tested < 4; tested++) { /* 3: none */
        query *q = open_query();
        const ps_point_test test = number_test(tested, PS_GE, &row);
        q->leaves[2].spec.kind = PS_VIEWS;
        q->point.limit = 5;
        q->point.tests = &test, q->point.n_tests = tested < 3;
        CHECK(ps_point_read(&q->point) == (tested != 2));
        if (tested == 2)
            CHECK(is_empty(q));
        else
            CHECK_INT(q->columns[2].offsets_size, 5 * 16); /* views */
        close_query(q);
    }
}

static void test_every_read_may_fail(void) {
    for (size_t fails = 1; fails < 12; fails++) {
        for (int later = 0; later < 2; later++) {
            query *q = open_query();
            const int32_t row = 20;
            const ps_point_test test = number_test(0, PS_GE, &row);
            q->leaves[3].coded = !later;
            q->f.fails = fails;
            q->point.tests = &test, q->point.n_tests = 1;
            const bool done = ps_point_read(&q->point);
            CHECK(done == (q->f.reads < fails));
            if (!done) CHECK(is_empty(q));
            close_query(q);
        }
    }
}

static void test_false_claims(void) {
    for (int claim = 0; claim < 8; claim++) {
        query *q = open_query();
        const int32_t row = 20;
        ps_point_test test = number_test(0, PS_GE, &row);
        q->point.tests = &test, q->point.n_tests = 1;
        switch (claim) {
        case 0: q->pages[2].offset[3] = -5; break;
        case 1: q->pages[2].size[3] = INT64_MAX; break;
        case 2: q->pages[2].size[3] = -1; break;
        case 3: q->pages[2].offset[3] = INT64_MAX; break;
        case 4: q->pages[2].first_row[3] = 30; break; /* the page has other rows */
        case 5: q->point.most = 10; break;
        case 6: test.literals.values_size = 3; break;
        default: q->leaves[3].dictionary_at = 1 << 30;
        }
        for (int i = 0; i < 4; i++) {
            q->leaves[i].first_row = q->pages[i].first_row;
            q->leaves[i].offset = q->pages[i].offset;
            q->leaves[i].size = q->pages[i].size;
        }
        CHECK(!ps_point_read(&q->point));
        CHECK(is_empty(q));
        close_query(q);
    }
}

int main(void) {
    test_one_row();
    test_ranges_limits_and_leaves_without_output();
    test_rows_in_question();
    test_pages_are_read_once_and_neighbours_together();
    test_a_dictionary_that_is_asked_for();
    test_what_was_read_is_counted();
    test_points_are_tasks();
    test_views_are_output_only();
    test_every_read_may_fail();
    test_false_claims();
    return check_report();
}
