/* Tests of pages whose codes are tested by what passes of a dictionary. */
#include <stdlib.h>

#include "tasks.h"

/* Codes of `width` bits as runs of one code and packed groups in turn; a length in front where they are levels. */
static void put_codes(bytes *out, const uint32_t *codes, size_t n, int width, bool levels) {
    static bytes runs;
    runs.length = 0;
    for (size_t at = 0; at < n;) {
        size_t same = 1;
        while (at + same < n && same < 63 && codes[at + same] == codes[at]) same++;
        if (same >= 8 || n - at < 8) {
            put(&runs, &(uint8_t){(uint8_t)(same << 1)}, 1);
            put(&runs, codes + at, (size_t)(width + 7) / 8);
            at += same;
            continue;
        }
        uint8_t group[32] = {0};
        for (int i = 0; i < 8; i++)
            for (int b = 0; b < width; b++)
                if (codes[at + (size_t)i] >> b & 1)
                    group[(i * width + b) / 8] |= (uint8_t)(1u << (i * width + b) % 8);
        put(&runs, &(uint8_t){3}, 1);
        put(&runs, group, (size_t)width);
        at += 8;
    }
    if (levels)
        put(out, &(uint32_t){(uint32_t)runs.length}, 4);
    else
        put(out, &(uint8_t){(uint8_t)width}, 1);
    put(out, runs.data, runs.length);
}

/* Of a leaf with `passes`: what rows become, in two chunks of 1,500 rows, of which every `step`-th or all are selected. Then in
 * their two data pages, which have the first dictionary. */
static void test_codes_become_what_passes(void) {
    enum { N = 1500, MOST = 300 };
    static const int widths[] = {0, 1, 3, 9};
    static bytes chunks[2];
    static ps_range ranges[2 * N];
    static uint32_t codes[2 * N], valid[2 * N], values[N];
    uint8_t passes[2][MOST];
    size_t data_at[2];
    uint32_t random = 1;
    for (int form = 0; form < 4 * 2 * 3; form++) {
        const int width = widths[form % 4], nulls = form / 4 % 2, step = 7 * (form / 8);
        const uint32_t entries = width == 9 ? MOST : 1u << width;
        for (int c = 0; c < 2; c++) {
            static bytes body;
            size_t n = 0;
            body.length = chunks[c].length = 0;
            for (int i = 0; i < MOST; i++)
                passes[c][i] = (uint8_t)((random = random * 1664525 + 1013904223) >> 31);
            for (int i = c * N; i < (c + 1) * N; i++) {
                random = random * 1664525 + 1013904223;
                codes[i] = i % 200 < 70 && i % N ? codes[i - 1] : (random >> 8) % entries;
                valid[i] = !nulls || (random >> 4) % 5 > 0;
                if (valid[i]) values[n++] = codes[i];
            }
            if (nulls) put_codes(&body, valid + c * N, N, 1, true);
            put_codes(&body, values, n, width, false);
            page(&chunks[c], DICTIONARY, PLAIN, 0, "", 0);
            data_at[c] = chunks[c].length;
            page(&chunks[c], DATA, CODES, N, body.data, body.length);
        }
        size_t n_ranges = 0, n = 0;
        uint32_t greatest = 0; /* of selected rows */
        for (int64_t i = 0; i < 2 * N; i += step ? step : 1)
            if (valid[i] && codes[i] > greatest) greatest = codes[i];
        if (!step) ranges[n_ranges++] = (ps_range){0, 2 * N};
        for (int64_t i = 0; step && i < 2 * N; i += step)
            ranges[n_ranges++] = (ps_range){i, i + 1};
        const ps_leaf_spec spec = {.physical = INT32,
                                   .kind = PS_BOOL,
                                   .passes = 1,
                                   .max_def = nulls,
                                   .max_output = 1 << 20};
        for (int kind = 0; kind < 6; kind++) {
            const int fault = kind % 3;
            const bool pages = kind >= 3;
            ps_leaf *leaf = NULL;
            CHECK_INT(ps_leaf_new(&spec, &leaf, NULL), PS_OK);
            ps_task_page places[2];
            uint8_t *memory[2];
            for (int c = 0; c < 2; c++) {
                /* of its length, so that a read beyond is seen */
                const uint32_t known = fault == 1 ? greatest : entries;
                uint8_t *copy = malloc(known ? known : 1);
                CHECK(copy != NULL);
                if (!copy) return;
                memcpy(copy, passes[c], known);
                memory[c] = copy;
                places[c] = (ps_task_page){chunks[c].data,
                                           chunks[c].length,
                                           c * N,
                                           N,
                                           fault == 2 ? NULL : copy,
                                           known,
                                           NULL};
                if (!pages) continue;
                places[c].data += data_at[c];
                places[c].length -= data_at[c];
                if (c) places[c].passes = NULL;
            }
            ps_page_task t = task_of(leaf, places, 2, NULL);
            t.chunk = !pages;
            t.selection = (ps_selection){.ranges = ranges, .n_ranges = n_ranges};
            ps_page_tasks(&t, 1, 1);
            if (pages && fault == 2) {
                CHECK_INT(t.state, PS_TASK_DICTIONARY);
            } else {
                CHECK_INT(t.state, fault ? PS_TASK_AGAIN : PS_TASK_DONE);
            }
            n = 0;
            for (int64_t r = 0; t.state == PS_TASK_DONE && r < 2 * N; r++) {
                if (step && r % step) continue;
                const bool is_valid = !t.column.validity ||
                                      (t.column.validity[n / 8] >> n % 8 & 1);
                CHECK_INT(is_valid, valid[r]);
                if (is_valid)
                    CHECK_INT(t.column.values[n / 8] >> n % 8 & 1,
                              passes[pages ? 0 : r / N][codes[r]]);
                n++;
            }
            if (t.state == PS_TASK_DONE) {
                CHECK_INT(t.column.n, n);
                ps_column_drop(&t.column);
            }
            ps_leaf_free(leaf);
            for (int c = 0; c < 2; c++) free(memory[c]);
        }
    }
}

static void test_only_codes_have_what_passes(void) {
    int32_t values[ROWS] = {0};
    bytes plain = {.length = 0};
    page(&plain, DATA, PLAIN, ROWS, values, sizeof values);
    ps_leaf_spec spec = {
        .physical = INT32, .kind = PS_BOOL, .passes = 1, .max_output = 1 << 20};
    ps_leaf *leaf = NULL;
    CHECK_INT(ps_leaf_new(&spec, &leaf, NULL), PS_OK);
    ps_task_page place = page_of(&plain, 0);
    place.passes = (const uint8_t *)"\1";
    place.n_passes = 1;
    ps_page_task t = task_of(leaf, &place, 1, NULL);
    t.chunk = true;
    ps_page_tasks(&t, 1, 1);
    CHECK_INT(t.state, PS_TASK_AGAIN);
    CHECK_INT(ps_leaf_dictionary(leaf, (const uint8_t *)values, sizeof values, ROWS, NULL),
              PS_CORRUPT);
    CHECK_INT(ps_leaf_passes(leaf, NULL, -1, NULL), PS_INVALID);
    ps_leaf_free(leaf);
    leaf = leaf_of(); /* of values */
    CHECK_INT(ps_leaf_passes(leaf, place.passes, 1, NULL), PS_INVALID);
    ps_leaf_free(leaf);
    spec.kind = PS_I32;
    CHECK_INT(ps_leaf_new(&spec, &leaf, NULL), PS_INVALID);
    spec.kind = PS_BOOL;
    for (int physical = -1; physical < 99; physical += physical == 0 ? 8 : 1) {
        spec.physical = physical;
        CHECK_INT(ps_leaf_new(&spec, &leaf, NULL), PS_INVALID);
    }
    spec.physical = INT32;
    spec.max_def = 2;
    CHECK_INT(ps_leaf_new(&spec, &leaf, NULL), PS_INVALID);
}

/* Of two dictionaries in front of the codes the last one counts, and the caller knows the first. */
static void test_a_second_dictionary_is_not_the_callers(void) {
    const ps_leaf_spec spec = {
        .physical = INT32, .kind = PS_BOOL, .passes = 1, .max_output = 1 << 20};
    static uint32_t codes[ROWS];
    static bytes body;
    put_codes(&body, codes, ROWS, 1, false);
    for (int more = 0; more < 2; more++) {
        static bytes chunk;
        chunk.length = 0;
        for (int i = 0; i <= more; i++) page(&chunk, DICTIONARY, PLAIN, 0, "", 0);
        page(&chunk, DATA, CODES, ROWS, body.data, body.length);
        ps_leaf *leaf = NULL;
        CHECK_INT(ps_leaf_new(&spec, &leaf, NULL), PS_OK);
        const ps_task_page place = {chunk.data, chunk.length, 0, ROWS, (const uint8_t *)"\3\2",
                                    2,          NULL};
        ps_page_task t = task_of(leaf, &place, 1, NULL);
        t.chunk = true;
        ps_page_tasks(&t, 1, 1);
        CHECK_INT(t.state, more ? PS_TASK_AGAIN : PS_TASK_DONE);
        if (t.state == PS_TASK_DONE) {
            CHECK_INT(t.column.values[0],
                      (1 << t.column.n) - 1); /* of a byte, one bit counts */
            ps_column_drop(&t.column);
        }
        ps_leaf_free(leaf);
    }
}

int main(void) {
    test_codes_become_what_passes();
    test_only_codes_have_what_passes();
    test_a_second_dictionary_is_not_the_callers();
    return check_report();
}
