/* Tests of pages read by several threads: with their dictionaries, from chunks, and with false claims. */
#include <stdlib.h>

#include "../pageseek.h"
#include "check.h"

enum {
    INT32 = 1,
    PLAIN = 0,
    RLE = 3,
    CODES = 8,
    DATA = 0,
    DICTIONARY = 2,
    LEAVES = 40,
    ROWS = 8
};

typedef struct bytes {
    uint8_t data[512];
    size_t length;
} bytes;

static void put(bytes *out, const void *data, size_t length) {
    memcpy(out->data + out->length, data, length);
    out->length += length;
}

/* A field of a Thrift struct, next to the one before: its number and an i32. */
static void field(bytes *out, int64_t value) {
    uint64_t rest = (uint64_t)(value << 1);
    put(out, "\x15", 1);
    for (; rest > 127; rest >>= 7) put(out, &(uint8_t){(uint8_t)(rest | 128)}, 1);
    put(out, &(uint8_t){(uint8_t)rest}, 1);
}

static void page(bytes *out, int type, int encoding, int n, const void *body, size_t length) {
    field(out, type);
    field(out, (int64_t)length);
    field(out, (int64_t)length);
    put(out, type == DATA ? "\x2c" : "\x4c", 1); /* data_page_header, dictionary_page_header */
    field(out, n);
    field(out, encoding);
    if (type == DATA) {
        field(out, RLE);
        field(out, RLE);
    }
    put(out, "\0\0", 2);
    put(out, body, length);
}

static const ps_range TWO[2] = {{1, 3}, {5, 6}};

static ps_page_task task_of(ps_leaf *leaf, const bytes *data, const bytes *dictionary) {
    return (ps_page_task){.leaf = leaf,
                          .data = data->data,
                          .length = data->length,
                          .dictionary = dictionary ? dictionary->data : NULL,
                          .dictionary_length = dictionary ? dictionary->length : 0,
                          .selection = {.ranges = TWO, .n_ranges = 2},
                          .rows = ROWS,
                          .codec = PS_CODEC_NONE,
                          .step = 1,
                          .max_page = 1 << 20,
                          .max_values = 1 << 20};
}

static ps_leaf *leaf_of(void) {
    const ps_leaf_spec spec = {.physical = INT32, .kind = PS_I32, .max_output = 1 << 20};
    ps_leaf *leaf = NULL;
    CHECK_INT(ps_leaf_new(&spec, &leaf, NULL), PS_OK);
    return leaf;
}

static void drop(ps_column *c) {
    if (c->validity) ps_buffer_free(c->validity, c->validity_capacity);
    if (c->values) ps_buffer_free(c->values, c->values_capacity);
    if (c->offsets) ps_buffer_free(c->offsets, c->offsets_capacity);
}

static void check_rows(ps_page_task *t, int first) {
    CHECK_INT(t->state, PS_TASK_DONE);
    if (t->state != PS_TASK_DONE) return;
    const int wanted[3] = {first + 1, first + 2, first + 5};
    CHECK_INT(t->column.n, 3);
    CHECK(memcmp(t->column.values, wanted, sizeof wanted) == 0);
    drop(&t->column);
}

/* Codes 0 to 7, three bits each. */
static const uint8_t EIGHT[5] = {3, 3, 0x88, 0xc6, 0xfa};

static void test_many_leaves_by_several_threads(void) {
    for (size_t threads = 0; threads < 12; threads += 3) {
        static bytes pages[LEAVES], dictionaries[LEAVES];
        ps_page_task tasks[LEAVES];
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
            tasks[i] = task_of(leaf_of(), &pages[i], i % 2 ? NULL : &dictionaries[i]);
            if (i % 4 == 0) { /* both in one: a chunk */
                put(&dictionaries[i], pages[i].data, pages[i].length);
                tasks[i] = task_of(tasks[i].leaf, &dictionaries[i], NULL);
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

static void test_what_is_not_as_it_should_be_gives_nothing(void) {
    int32_t values[ROWS] = {0};
    bytes plain = {.length = 0}, codes = {.length = 0}, dictionary = {.length = 0};
    page(&plain, DATA, PLAIN, ROWS, values, sizeof values);
    page(&codes, DATA, CODES, ROWS, EIGHT, sizeof EIGHT);
    page(&dictionary, DICTIONARY, PLAIN, ROWS, values, sizeof values);
    ps_leaf *leaf = leaf_of();
    ps_page_task good = task_of(leaf, &plain, NULL), bad[10];
    for (int i = 0; i < 10; i++) bad[i] = good;
    bad[0].rows = ROWS - 1;
    bad[1].max_values = ROWS - 1;
    bad[2].max_page = (int64_t)sizeof values - 1;
    bad[3].length--;
    bad[4].codes_only = true;
    bad[5].codec = PS_CODEC_OTHER;
    bad[6].codec = PS_CODEC_SNAPPY;
    bad[7] = task_of(leaf, &dictionary, NULL); /* in the place of a page */
    bad[8] = task_of(leaf, &codes, &plain);    /* in the place of a dictionary */
    bad[9] = task_of(leaf, &dictionary, NULL); /* a chunk without a page */
    bad[9].chunk = true;
    for (int i = 0; i < 10; i++) {
        ps_page_tasks(&bad[i], 1, 1);
        CHECK_INT(bad[i].state, PS_TASK_AGAIN);
        ps_page_task again = good; /* the leaf is as good as new */
        ps_page_tasks(&again, 1, 1);
        CHECK_INT(again.state, PS_TASK_DONE);
        if (again.state == PS_TASK_DONE) drop(&again.column);
    }
    ps_page_task wanting = task_of(leaf, &codes, NULL);
    ps_page_tasks(&wanting, 1, 1);
    CHECK_INT(wanting.state, PS_TASK_DICTIONARY);
    ps_leaf_free(leaf);
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
        ps_page_task t = task_of(leaf, &chunk, NULL);
        t.chunk = true;
        t.data = copy;
        t.length = length;
        ps_page_tasks(&t, 1, 1);
        CHECK(i >= chunk.length || t.state != PS_TASK_DONE);
        if (t.state == PS_TASK_DONE) {
            done++;
            CHECK_INT(t.column.n, 3);
            drop(&t.column);
        }
        ps_leaf_free(leaf);
        free(copy);
    }
    CHECK(done > 0); /* values may be others */
}

int main(void) {
    test_many_leaves_by_several_threads();
    test_what_is_not_as_it_should_be_gives_nothing();
    test_every_cut_and_every_byte_altered();
    return check_report();
}
