/* Tests of pages read by several threads: with their dictionaries, from chunks, and with false claims. */
#include <stdlib.h>

#include "tasks.h"

enum { LEAVES = 40 };

static void check_rows(ps_page_task *t, int first) {
    CHECK_INT(t->state, PS_TASK_DONE);
    if (t->state != PS_TASK_DONE) return;
    const int wanted[3] = {first + 1, first + 2, first + 5};
    CHECK_INT(t->column.n, 3);
    CHECK(memcmp(t->column.values, wanted, sizeof wanted) == 0);
    ps_column_drop(&t->column);
}

/* Codes 0 to 7, three bits each. */
static const uint8_t EIGHT[5] = {3, 3, 0x88, 0xc6, 0xfa};

static void test_many_leaves_by_several_threads(void) {
    for (size_t threads = 0; threads < 12; threads += 3) {
        static bytes pages[LEAVES], dictionaries[LEAVES];
        ps_page_task tasks[LEAVES];
        ps_task_page places[LEAVES];
        for (int i = 0; i < LEAVES; i++) {
            int32_t values[ROWS];
            for (int k = 0; k < ROWS; k++) values[k] = 100 * i + k;
            pages[i].length = dictionaries[i].length = 0;
            if (i % 2) {
                page(&pages[i], DATA, PLAIN, ROWS, values, sizeof values);
            } else {
                page(&dictionaries[i], DICTIONARY, PLAIN, ROWS, values, sizeof values);
                page(&pages[i], DATA, CODES, ROWS, EIGHT, sizeof EIGHT);
            }
            places[i] = page_of(&pages[i], 0);
            tasks[i] = task_of(leaf_of(), &places[i], 1, i % 2 ? NULL : &dictionaries[i]);
            if (i % 4 == 0) { /* both in one: a chunk */
                put(&dictionaries[i], pages[i].data, pages[i].length);
                places[i] = page_of(&dictionaries[i], 0);
                tasks[i].dictionary = NULL;
                tasks[i].chunk = true;
            }
        }
        ps_page_tasks(tasks, LEAVES, threads);
        for (int i = 0; i < LEAVES; i++) {
            check_rows(&tasks[i], 100 * i);
            CHECK_INT(tasks[i].dictionary_used, i % 2 == 0);
            ps_leaf_free(tasks[i].leaf);
        }
    }
}

/* Tasks that helpers begin; `abandon` leaves some out. */
static void test_work_that_goes_on_meanwhile(void) {
    for (size_t helpers = 0; helpers < 4; helpers++)
        for (int abandon = 0; abandon < 2; abandon++) {
            static bytes pages[LEAVES];
            ps_page_task tasks[LEAVES];
            ps_task_page places[LEAVES];
            for (int i = 0; i < LEAVES; i++) {
                int32_t values[ROWS];
                for (int k = 0; k < ROWS; k++) values[k] = 100 * i + k;
                pages[i].length = 0;
                page(&pages[i], DATA, PLAIN, ROWS, values, sizeof values);
                places[i] = page_of(&pages[i], 0);
                tasks[i] = task_of(leaf_of(), &places[i], 1, NULL);
            }
            ps_page_work *work = ps_page_work_begin(tasks, LEAVES, helpers);
            CHECK(work != NULL);
            CHECK(ps_page_work_end(work, abandon));
            for (int i = 0; i < LEAVES; i++) {
                if (!abandon)
                    check_rows(&tasks[i], 100 * i);
                else if (tasks[i].state == PS_TASK_DONE)
                    ps_column_drop(&tasks[i].column);
                ps_leaf_free(tasks[i].leaf);
            }
        }
}

static void test_what_is_not_as_it_should_be_gives_nothing(void) {
    int32_t values[ROWS] = {0};
    bytes plain = {.length = 0}, codes = {.length = 0}, dictionary = {.length = 0};
    page(&plain, DATA, PLAIN, ROWS, values, sizeof values);
    page(&codes, DATA, CODES, ROWS, EIGHT, sizeof EIGHT);
    page(&dictionary, DICTIONARY, PLAIN, ROWS, values, sizeof values);
    ps_leaf *leaf = leaf_of();
    const ps_task_page well = page_of(&plain, 0), of_codes = page_of(&codes, 0),
                       of_entries = page_of(&dictionary, 0);
    ps_task_page fewer = well, shorter = well;
    fewer.rows--;
    shorter.length--;
    ps_page_task good = task_of(leaf, &well, 1, NULL), bad[11];
    for (int i = 0; i < 11; i++) bad[i] = good;
    bad[0].pages = &fewer;
    bad[1].max_values = ROWS - 1;
    bad[2].max_page = (int64_t)sizeof values - 1;
    bad[3].pages = &shorter;
    bad[4].codes_only = true;
    bad[5].codec = PS_CODEC_OTHER;
    bad[6].codec = PS_CODEC_SNAPPY;
    bad[7] = task_of(leaf, &of_entries, 1, NULL); /* in the place of a page */
    bad[8] = task_of(leaf, &of_codes, 1, &plain); /* in the place of a dictionary */
    bad[9] = task_of(leaf, &of_entries, 1, NULL); /* a chunk without a page */
    bad[9].chunk = true;
    bad[10].n_pages = 0; /* no page has the selected rows */
    for (int i = 0; i < 11; i++) {
        ps_page_tasks(&bad[i], 1, 1);
        CHECK_INT(bad[i].state, PS_TASK_AGAIN);
        ps_page_task again = good; /* the leaf is as good as new */
        ps_page_tasks(&again, 1, 1);
        CHECK_INT(again.state, PS_TASK_DONE);
        if (again.state == PS_TASK_DONE) ps_column_drop(&again.column);
    }
    ps_page_task wanting = task_of(leaf, &of_codes, 1, NULL);
    ps_page_tasks(&wanting, 1, 1);
    CHECK_INT(wanting.state, PS_TASK_DICTIONARY);
    ps_leaf_free(leaf);
}

/* Three pages, of which each selection needs some: by their places, and as a chunk with a dictionary in front. */
static void test_several_pages(void) {
    enum { PAGES = 3 };
    static const ps_range selections[][3] = {
        {{0, 24}, {0, 0}, {0, 0}},    {{3, 4}, {21, 23}, {0, 0}}, {{8, 9}, {0, 0}, {0, 0}},
        {{7, 9}, {15, 17}, {23, 24}}, {{0, 1}, {0, 0}, {0, 0}},   {{16, 24}, {0, 0}, {0, 0}}};
    int32_t entries[ROWS];
    for (int k = 0; k < ROWS; k++) entries[k] = 50 - k;
    bytes dictionary = {.length = 0}, chunk = {.length = 0}, pages[PAGES];
    page(&dictionary, DICTIONARY, PLAIN, ROWS, entries, sizeof entries);
    put(&chunk, dictionary.data, dictionary.length);
    int32_t all[PAGES * ROWS];
    for (int i = 0; i < PAGES; i++) {
        int32_t values[ROWS];
        for (int k = 0; k < ROWS; k++) values[k] = all[i * ROWS + k] = 10 * i + k;
        pages[i].length = 0;
        if (i == 1) { /* of codes */
            memcpy(all + i * ROWS, entries, sizeof entries);
            page(&pages[i], DATA, CODES, ROWS, EIGHT, sizeof EIGHT);
        } else {
            page(&pages[i], DATA, PLAIN, ROWS, values, sizeof values);
        }
        put(&chunk, pages[i].data, pages[i].length);
    }
    for (size_t s = 0; s < sizeof selections / sizeof *selections; s++) {
        int32_t wanted[PAGES * ROWS];
        size_t n = 0, n_ranges = 0, needed = 0, last = 0;
        ps_task_page places[PAGES];
        for (; n_ranges < 3 && selections[s][n_ranges].stop; n_ranges++)
            for (int64_t r = selections[s][n_ranges].start; r < selections[s][n_ranges].stop;
                 r++)
                wanted[n++] = all[r];
        const ps_selection selection = {.ranges = selections[s], .n_ranges = n_ranges};
        for (int i = 0; i < PAGES; i++)
            if (ps_selection_end(&selection, i * ROWS, (i + 1) * ROWS) > i * ROWS) {
                places[needed++] = page_of(&pages[i], i * ROWS);
                last = (size_t)i + 1;
            }
        const ps_task_page whole = {chunk.data, chunk.length, 0, PAGES * ROWS, NULL, 0, NULL};
        for (int by_chunk = 0; by_chunk < 2; by_chunk++) {
            ps_leaf *leaf = leaf_of();
            ps_page_task t = by_chunk ? task_of(leaf, &whole, 1, NULL)
                                      : task_of(leaf, places, needed, &dictionary);
            t.chunk = by_chunk;
            t.selection = selection;
            if (!by_chunk && ps_selection_end(&selection, ROWS, 2 * ROWS) > ROWS) {
                t.dictionary = NULL; /* which is asked for before a row is taken */
                ps_page_tasks(&t, 1, 1);
                CHECK_INT(t.state, PS_TASK_DICTIONARY);
                t.dictionary = dictionary.data;
            }
            ps_page_tasks(&t, 1, 1);
            CHECK_INT(t.state, PS_TASK_DONE);
            CHECK_INT(t.pages_read, needed);
            if (by_chunk) CHECK_INT(t.pages_seen, last);
            if (t.state == PS_TASK_DONE) {
                CHECK_INT(t.column.n, n);
                CHECK(memcmp(t.column.values, wanted, n * sizeof *wanted) == 0);
                ps_column_drop(&t.column);
            }
            if (!by_chunk && needed > 1) { /* a page too few */
                t.n_pages--;
                ps_page_tasks(&t, 1, 1);
                CHECK_INT(t.state, PS_TASK_AGAIN);
            }
            ps_leaf_free(leaf);
        }
    }
}

/* Chunks of several row groups: the dictionary of each is its own, and rows between them are not selected. */
static void test_several_chunks(void) {
    enum { CHUNKS = 4 };
    static const int64_t firsts[CHUNKS] = {0, ROWS, 3 * ROWS, 4 * ROWS};
    bytes chunks[CHUNKS] = {{.length = 0}};
    int32_t all[5 * ROWS] = {0};
    for (int i = 0; i < CHUNKS; i++) {
        int32_t values[ROWS];
        for (int k = 0; k < ROWS; k++) values[k] = 100 * i - k;
        memcpy(all + firsts[i], values, sizeof values);
        if (i == 1) {
            page(&chunks[i], DATA, PLAIN, ROWS, values, sizeof values);
        } else {
            page(&chunks[i], DICTIONARY, PLAIN, ROWS, values, sizeof values);
            page(&chunks[i], DATA, CODES, ROWS, EIGHT, sizeof EIGHT);
        }
    }
    static const ps_range selections[][2] = {{{0, 2 * ROWS}, {3 * ROWS, 5 * ROWS}},
                                             {{3, 4}, {3 * ROWS + 1, 4 * ROWS + 1}}};
    for (size_t s = 0; s < 2; s++) {
        const ps_selection selection = {.ranges = selections[s], .n_ranges = 2};
        int32_t wanted[5 * ROWS];
        size_t n = 0;
        for (int r = 0; r < 2; r++)
            for (int64_t row = selections[s][r].start; row < selections[s][r].stop; row++)
                wanted[n++] = all[row];
        for (int lost = -1; lost < CHUNKS; lost++) { /* a chunk whose dictionary is not there */
            ps_task_page places[CHUNKS];
            size_t needed = 0;
            bool fails = false;
            for (int i = 0; i < CHUNKS; i++) {
                if (ps_selection_end(&selection, firsts[i], firsts[i] + ROWS) <= firsts[i])
                    continue;
                places[needed] = page_of(&chunks[i], (int)firsts[i]);
                if (i == lost && i != 1) {
                    bytes header = {.length = 0};
                    page(&header, DATA, CODES, ROWS, EIGHT, sizeof EIGHT);
                    places[needed].data += chunks[i].length - header.length;
                    places[needed].length = header.length;
                    fails = true;
                }
                needed++;
            }
            ps_leaf *leaf = leaf_of();
            ps_page_task t = task_of(leaf, places, needed, NULL);
            t.chunk = true;
            t.selection = selection;
            ps_page_tasks(&t, 1, 1);
            CHECK_INT(t.state, fails ? PS_TASK_AGAIN : PS_TASK_DONE);
            if (t.state == PS_TASK_DONE) {
                CHECK_INT(t.pages_read, needed);
                CHECK_INT(t.dictionary_pages, needed - (s == 0));
                CHECK_INT(t.column.n, n);
                CHECK(memcmp(t.column.values, wanted, n * sizeof *wanted) == 0);
                ps_column_drop(&t.column);
            }
            ps_leaf_free(leaf);
        }
    }
}

static void test_every_cut_and_every_byte_altered(void) {
    int32_t values[ROWS] = {7, 6, 5, 4, 3, 2, 1, 0};
    bytes chunk = {.length = 0};
    page(&chunk, DICTIONARY, PLAIN, ROWS, values, sizeof values);
    page(&chunk, DATA, CODES, ROWS, EIGHT, sizeof EIGHT);
    int done = 0;
    for (size_t i = 0; i < 9 * chunk.length; i++) {
        size_t length = i < chunk.length ? i : chunk.length;
        uint8_t *copy = malloc(length ? length
                                      : 1); /* of its length, so that a read beyond is seen */
        CHECK(copy != NULL);
        if (!copy) return;
        memcpy(copy, chunk.data, length);
        if (i >= chunk.length) copy[i / 8 % length] ^= (uint8_t)(1u << i % 8);
        ps_leaf *leaf = leaf_of();
        const ps_task_page place = {copy, length, 0, ROWS, NULL, 0, NULL};
        ps_page_task t = task_of(leaf, &place, 1, NULL);
        t.chunk = true;
        ps_page_tasks(&t, 1, 1);
        CHECK(i >= chunk.length || t.state != PS_TASK_DONE);
        if (t.state == PS_TASK_DONE) {
            done++;
            CHECK_INT(t.column.n, 3);
            ps_column_drop(&t.column);
        }
        ps_leaf_free(leaf);
        free(copy);
    }
    CHECK(done > 0); /* values may be others */
}

/* The rows of a task may be the entries of a dictionary page, and nothing else then. */
static void test_entries_become_rows(void) {
    const int32_t values[ROWS] = {10, 11, 12, 13, 14, 15, 16, 17};
    enum { GOOD, CODED, OTHER_TYPE, OTHER_NUMBER, SHORT, CASES };
    for (int i = 0; i < CASES; i++) {
        static bytes data;
        data.length = 0;
        page(&data, i == OTHER_TYPE ? DATA : DICTIONARY, i == CODED ? CODES : PLAIN, ROWS,
             values, sizeof values - (i == SHORT ? 9 : 0));
        ps_task_page place = page_of(&data, 0);
        if (i == OTHER_NUMBER) place.rows--;
        ps_page_task t = task_of(leaf_of(), &place, 1, NULL);
        t.entries = true;
        ps_page_tasks(&t, 1, 1);
        if (i == GOOD)
            check_rows(&t, 10);
        else
            CHECK_INT(t.state, PS_TASK_AGAIN);
        CHECK(!t.dictionary_used);
        ps_leaf_free(t.leaf);
    }
}

/* What other threads can take from the dearest task decides; pages count up to their last row, and quick codecs half. */
static void test_threads_that_pay(void) {
    enum { PAGES = 4, SIZE = 1 << 20 };
    static bytes data;
    data.length = 0;
    field(&data, DATA);
    field(&data, SIZE);
    field(&data, SIZE);
    put(&data, "\x2c", 1);
    field(&data, ROWS);
    for (int i = 0; i < 3; i++) field(&data, i ? RLE : PLAIN);
    put(&data, "\0\0", 2);
    ps_task_page places[PAGES];
    ps_page_task tasks[PAGES];
    ps_leaf *leaf = leaf_of();
    for (int i = 0; i < PAGES; i++) {
        places[i] = (ps_task_page){data.data, SIZE >> 2 * i, 0, ROWS, NULL, 0, NULL};
        tasks[i] = task_of(leaf, &places[i], 1, NULL);
        tasks[i].codec = PS_CODEC_ZSTD;
    }
    CHECK_INT(ps_page_threads(tasks, 0, 8), 1);
    CHECK_INT(ps_page_threads(tasks, 1, 8), 1);
    CHECK_INT(ps_page_threads(tasks, 2, 1), 1);
    CHECK_INT(ps_page_threads(tasks, 2, 2), 2);
    CHECK_INT(ps_page_threads(tasks, 2, 8),
              2); /* 6 of 8 rows, 7/6 of a byte: 1.75 units of 2^17 */
    CHECK_INT(ps_page_threads(tasks + 2, 2, 8), 1);
    places[1].length = SIZE;
    CHECK_INT(ps_page_threads(tasks, 4, 8), 8);
    CHECK_INT(ps_page_threads(tasks, 2, 8), 8);
    tasks[0].codec = tasks[1].codec = PS_CODEC_SNAPPY;
    CHECK_INT(ps_page_threads(tasks, 2, 8), 4);
    ps_leaf_free(leaf);
}

/* A file of which some bytes can be read. */
typedef struct source {
    const bytes *of;
    size_t size;
    int reads;
} source;

static bool read_source(void *given, int64_t offset, uint8_t *out, size_t length) {
    source *s = given;
    s->reads++;
    if ((size_t)offset + length > s->size) return false;
    memcpy(out, s->of->data + offset, length);
    return true;
}

/* Two pages of codes and their dictionary, as three parts of a file that are read when they are needed. `cut`: bytes that the file
 * lacks. */
static void test_pages_that_are_read_when_they_are_needed(void) {
    int32_t values[ROWS];
    for (int k = 0; k < ROWS; k++) values[k] = 500 + k;
    static bytes data;
    size_t at[4] = {0};
    data.length = 0;
    page(&data, DICTIONARY, PLAIN, ROWS, values, sizeof values);
    at[1] = data.length;
    for (int i = 0; i < 2; i++) {
        page(&data, DATA, CODES, ROWS, EIGHT, sizeof EIGHT);
        at[i + 2] = data.length;
    }
    for (int kind = 0; kind < 4; kind++) {     /* pages, known dictionary, chunk, one page */
        for (size_t cut = 0; cut < 2; cut++) { /* the last part */
            for (int early = 0; early < 2; early++) { /* parts that were read before */
                source file = {&data, data.length - cut, 0};
                uint8_t *memory = calloc(1, data.length);
                ps_unread parts[3];
                for (int i = 0; i < 3; i++) {
                    parts[i] = (ps_unread){.source = {read_source, &file},
                                           .offset = (int64_t)at[i],
                                           .out = memory + at[i],
                                           .length = at[i + 1] - at[i]};
                    if (early && i < 2) {
                        memcpy(parts[i].out, data.data + at[i], parts[i].length);
                        parts[i].there = true;
                    }
                }
                ps_task_page places[2] = {
                    {parts[1].out, parts[1].length, 0, ROWS, NULL, 0, &parts[1]},
                    {parts[2].out, parts[2].length, ROWS, ROWS, NULL, 0, &parts[2]}};
                ps_unread chunk = {
                    .source = {read_source, &file}, .out = memory, .length = data.length};
                ps_page_task t = task_of(leaf_of(), places, 2, NULL);
                const ps_range rows[2] = {{1, 3}, {ROWS + 5, ROWS + 6}};
                t.selection = (ps_selection){.ranges = rows, .n_ranges = 2};
                if (kind == 1 || kind == 3) {
                    t.dictionary = parts[0].out;
                    t.dictionary_length = parts[0].length;
                    t.unread_dictionary = &parts[0];
                }
                if (kind == 2) {
                    places[0] = (ps_task_page){memory, data.length, 0,     2 * ROWS,
                                               NULL,   0,           &chunk};
                    t.chunk = true;
                    t.n_pages = 1;
                }
                if (kind == 3) {
                    t.n_pages = 1;
                    t.selection.n_ranges = 1;
                }
                ps_page_tasks(&t, 1, 1);
                if (kind == 0) {
                    CHECK_INT(t.state, PS_TASK_DICTIONARY);
                } else if (cut && kind != 3) {
                    CHECK_INT(t.state, PS_TASK_AGAIN);
                    CHECK(kind == 2 ? !chunk.there : parts[1].there && !parts[2].there);
                } else {
                    CHECK_INT(t.state, PS_TASK_DONE);
                    CHECK_INT(t.column.n, kind == 3 ? 2 : 3);
                    const int wanted[3] = {501, 502, 505};
                    CHECK(memcmp(t.column.values, wanted, kind == 3 ? 8 : 12) == 0);
                    /* nothing is read twice, and pages that follow each other by one call */
                    CHECK_INT(file.reads, kind == 2 ? 1 : early ? kind != 3 : 2);
                    CHECK(kind == 2 ? chunk.there : parts[0].there && parts[1].there);
                    ps_column_drop(&t.column);
                }
                ps_leaf_free(t.leaf);
                free(memory);
            }
        }
    }
}

int main(void) {
    test_pages_that_are_read_when_they_are_needed();
    test_entries_become_rows();
    test_threads_that_pay();
    test_many_leaves_by_several_threads();
    test_work_that_goes_on_meanwhile();
    test_what_is_not_as_it_should_be_gives_nothing();
    test_several_pages();
    test_several_chunks();
    test_every_cut_and_every_byte_altered();
    return check_report();
}
