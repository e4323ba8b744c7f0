/* Threads that decode at the same time, with helpers of their own, while reads fail, bytes change and work is given up: for the
 * thread sanitizer. What is decoded must be right; what cannot be must say so. */
#include <pthread.h>
#include <stdlib.h>

#include "../pageseek.h"
#include "check.h"
#include "libraries.h"

enum { INT32 = 1, THREADS = 4, ROUNDS = 40, LEAVES = 9, ROWS = 60000, STEP = 1 << 14 };
enum { PLAIN = 0, RLE = 3, DATA = 0 };
#define SPACE ((size_t)1 << 19)

/* The pages of all leaves, one behind the other: shared, and never written once threads run. */
typedef struct leaf_page {
    ps_codec codec;
    size_t at, length;
} leaf_page;

static uint8_t *file;
static size_t file_size;
static leaf_page leaves[LEAVES];

static int32_t value_of(int leaf, int row) {
    return leaf * 1000003 + row * 7;
}

/* ---- writing -------------------------------------------------------------------------------- */

static size_t pack_snappy(const uint8_t *plain, size_t size, uint8_t *out) {
    size_t n = 0;
    for (size_t rest = size; rest || !n; rest >>= 7)
        out[n++] = (uint8_t)((rest & 127) | (rest > 127 ? 128 : 0));
    for (size_t at = 0; at < size; at += STEP) { /* literals, whose length takes two bytes */
        const size_t length = size - at < STEP ? size - at : STEP;
        out[n++] = 61 << 2;
        n += put_little(out + n, (uint32_t)(length - 1), 2);
        memcpy(out + n, plain + at, length);
        n += length;
    }
    return n;
}

/* A frame of raw blocks (RFC 8878, 3.1.1). */
static size_t pack_zstd(const uint8_t *plain, size_t size, uint8_t *out) {
    size_t n = put_little(out, 0xfd2fb528, 4);
    out[n++] = 0xa0; /* a single segment, whose size has four bytes */
    n += put_little(out + n, (uint32_t)size, 4);
    for (size_t at = 0; at < size; at += STEP) {
        const size_t length = size - at < STEP ? size - at : STEP;
        n += put_little(out + n, (uint32_t)(length << 3 | (at + length == size)), 3);
        memcpy(out + n, plain + at, length);
        n += length;
    }
    return n;
}

static void field(uint8_t *out, size_t *n, int64_t value) {
    uint64_t rest = (uint64_t)value << 1;
    out[(*n)++] = 0x15;
    for (; rest > 127; rest >>= 7) out[(*n)++] = (uint8_t)(rest | 128);
    out[(*n)++] = (uint8_t)rest;
}

static void write_page(int leaf, ps_codec codec) {
    const size_t size = (size_t)ROWS * 4;
    uint8_t *plain = malloc(size), *body = malloc(SPACE);
    for (int row = 0; row < ROWS; row++)
        put_little(plain + (size_t)row * 4, (uint32_t)value_of(leaf, row), 4);
    size_t length = size, n = file_size;
    switch (codec) {
    case PS_CODEC_SNAPPY: length = pack_snappy(plain, size, body); break;
    case PS_CODEC_ZSTD: length = pack_zstd(plain, size, body); break;
    case PS_CODEC_GZIP: length = pack_gzip(plain, size, STEP, body); break;
    case PS_CODEC_BROTLI: length = pack_brotli(plain, size, STEP, body); break;
    default: memcpy(body, plain, size);
    }
    field(file, &n, DATA);
    field(file, &n, (int64_t)size);
    field(file, &n, (int64_t)length);
    file[n++] = 0x2c; /* data_page_header */
    field(file, &n, ROWS);
    field(file, &n, PLAIN);
    field(file, &n, RLE);
    field(file, &n, RLE);
    file[n++] = 0;
    file[n++] = 0;
    memcpy(file + n, body, length);
    n += length;
    leaves[leaf] = (leaf_page){.codec = codec, .at = file_size, .length = n - file_size};
    file_size = n;
    free(plain);
    free(body);
}

/* ---- reading -------------------------------------------------------------------------------- */

static uint32_t below(uint32_t *seed, uint32_t n) {
    *seed = *seed * 1664525 + 1013904223;
    return (*seed >> 8) % n;
}

static bool holds(const ps_column *c, int leaf, const ps_range *rows) {
    if (c->n != rows->stop - rows->start) return false;
    for (int64_t i = 0; i < c->n; i++) {
        int32_t found;
        memcpy(&found, c->values + 4 * i, 4);
        if (found != value_of(leaf, (int)(rows->start + i))) return false;
    }
    return true;
}

static const ps_leaf_spec SPEC = {.physical = INT32, .kind = PS_I32, .max_output = 1 << 24};

/* Each thread counts for itself. */
typedef struct counts {
    uint32_t seed;
    int wrong, right, refused;
} counts;

static ps_range some_rows(counts *c) {
    const int64_t start = below(&c->seed, ROWS);
    return (ps_range){start, start + 1 + below(&c->seed, ROWS - (uint32_t)start)};
}

/* A file whose reads fail at some time, or end early. */
typedef struct source {
    uint32_t fails; /* the read that fails, from 1 */
    uint32_t reads;
    size_t size;
} source;

static bool read_source(void *of, int64_t offset, uint8_t *out, size_t length) {
    source *s = of;
    if (++s->reads == s->fails || (size_t)offset + length > s->size) return false;
    memcpy(out, file + offset, length);
    return true;
}

typedef struct job {
    source sources[LEAVES]; /* of pages that the threads read */
    ps_unread unread[LEAVES];
    uint8_t *memory;
    ps_task_page pages[LEAVES];
    ps_page_task tasks[LEAVES];
    uint8_t *altered; /* the bytes of one page, whose header has another size */
    int fault;        /* that page's number, or -1 */
    ps_range rows;
} job;

static void open_job(job *j, counts *c, bool with_fault) {
    *j = (job){.fault = -1, .rows = some_rows(c)};
    for (int i = 0; i < LEAVES; i++) {
        j->pages[i] = (ps_task_page){
            .data = file + leaves[i].at, .length = leaves[i].length, .rows = ROWS};
        j->tasks[i] = (ps_page_task){.pages = &j->pages[i],
                                     .n_pages = 1,
                                     .selection = {.ranges = &j->rows, .n_ranges = 1},
                                     .codec = leaves[i].codec,
                                     .step = 1,
                                     .max_page = 1 << 24,
                                     .max_values = 1 << 24};
        if (ps_leaf_new(&SPEC, &j->tasks[i].leaf, NULL) != PS_OK) abort();
    }
    if (with_fault) j->fault = (int)below(&c->seed, LEAVES);
    if (below(&c->seed, 2)) { /* the threads read the pages */
        j->memory = malloc(file_size);
        if (!j->memory) abort();
        for (int i = 0; i < LEAVES; i++) {
            j->sources[i].size = file_size;
            if (i == j->fault && i % 2) j->sources[i].fails = 1;
            if (i == j->fault && i % 2 == 0) j->sources[i].size = leaves[i].at + 9;
            j->unread[i] = (ps_unread){.source = {read_source, &j->sources[i]},
                                       .offset = (int64_t)leaves[i].at,
                                       .out = j->memory + leaves[i].at,
                                       .length = leaves[i].length};
            j->pages[i].data = j->unread[i].out;
            j->pages[i].unread = &j->unread[i];
        }
        return;
    }
    if (!with_fault) return;
    const leaf_page *page = &leaves[j->fault];
    j->altered = malloc(page->length);
    memcpy(j->altered, file + page->at, page->length);
    j->altered[3] ^= 0x40;
    j->pages[j->fault].data = j->altered;
}

static void close_job(job *j, counts *c, bool all) {
    for (int i = 0; i < LEAVES; i++) {
        ps_page_task *t = &j->tasks[i];
        if (t->state == PS_TASK_DONE && t->column.n) {
            /* few rows of a page with a fault may be right */
            if (!holds(&t->column, i, &j->rows))
                c->wrong++;
            else
                c->right++;
            ps_column_drop(&t->column);
        } else if (all && i != j->fault) {
            c->wrong++;
        } else {
            c->refused++;
        }
        ps_leaf_free(t->leaf);
    }
    free(j->altered);
    free(j->memory);
}

/* Pages by one call, of which one may have a fault. */
static void call(counts *c) {
    job j;
    open_job(&j, c, below(&c->seed, 2));
    ps_page_tasks(j.tasks, LEAVES, 1 + below(&c->seed, 4));
    close_job(&j, c, true);
}

/* Pages that helpers read meanwhile. Given up, those that no helper has begun stay unread. */
static void meanwhile(counts *c, bool abandon) {
    job j;
    open_job(&j, c, false);
    for (int i = 0; i < LEAVES; i++) j.tasks[i].state = PS_TASK_AGAIN;
    ps_page_work *work = ps_page_work_begin(j.tasks, LEAVES, below(&c->seed, 4));
    if (!work) abort();
    for (uint32_t i = below(&c->seed, 3); i; i--) call(c);
    if (!ps_page_work_end(work, abandon)) c->wrong++;
    close_job(&j, c, !abandon);
}

/* Few rows by a test: the first leaf is read, then the others, by several threads. */
static void look_up(counts *c, int fault) {
    static const int64_t first_row[2] = {0, ROWS};
    ps_point_leaf wanted[LEAVES];
    int64_t offsets[LEAVES], sizes[LEAVES];
    ps_column columns[LEAVES];
    for (int i = 0; i < LEAVES; i++) {
        offsets[i] = (int64_t)leaves[i].at;
        sizes[i] = (int64_t)leaves[i].length;
        wanted[i] = (ps_point_leaf){.spec = SPEC,
                                    .codec = leaves[i].codec,
                                    .step = 1,
                                    .max_page = 1 << 24,
                                    .output = true,
                                    .n_pages = 1,
                                    .first_row = first_row,
                                    .offset = &offsets[i],
                                    .size = &sizes[i]};
    }
    const int64_t row = below(&c->seed, ROWS);
    const ps_range one = {row, row + 1};
    const int32_t key = value_of(0, (int)row);
    const ps_range all = {0, ROWS};
    const ps_point_test test = {
        .leaf = 0,
        .op = PS_EQ,
        .literals = {
            .kind = PS_I32, .n = 1, .values = (const uint8_t *)&key, .values_size = 4}};
    source bytes = {.size = file_size};
    if (fault == 1) bytes.fails = 1 + below(&c->seed, 2);
    if (fault == 2) bytes.size = below(&c->seed, (uint32_t)file_size);
    const ps_source from = {read_source, &bytes};
    ps_point point = {.leaves = wanted,
                      .n_leaves = LEAVES,
                      .tests = &test,
                      .n_tests = 1,
                      .ranges = &all,
                      .n_ranges = 1,
                      .limit = INT64_MAX,
                      .most = 1 << 24,
                      .threads = 1 + below(&c->seed, 4),
                      .source = &from,
                      .columns = columns};
    if (!ps_point_read(&point)) {
        if (fault)
            c->refused++;
        else
            c->wrong++;
        return;
    }
    bool right = !fault && point.rows == 1;
    for (int i = 0; i < LEAVES; i++) {
        right = right && holds(&columns[i], i, &one);
        ps_column_drop(&columns[i]);
    }
    if (right)
        c->right++;
    else
        c->wrong++;
}

static void *run(void *given) {
    counts *c = given;
    for (int i = 0; i < ROUNDS; i++) {
        call(c);
        meanwhile(c, i % 2);
        look_up(c, i % 3);
    }
    return NULL;
}

int main(void) {
    static const ps_codec CODECS[] = {PS_CODEC_NONE, PS_CODEC_SNAPPY, PS_CODEC_ZSTD,
                                      PS_CODEC_GZIP, PS_CODEC_BROTLI};
    const bool has[] = {true, true, use_libzstd(), use_zlib(), use_brotli()};
    pthread_t threads[THREADS];
    counts found[THREADS];
    file = malloc(LEAVES * SPACE);
    if (!file) abort();
    for (int i = 0; i < LEAVES; i++) {
        const int codec = i % 5;
        write_page(i, has[codec] ? CODECS[codec] : PS_CODEC_NONE);
    }
    for (int i = 0; i < THREADS; i++) {
        found[i] = (counts){.seed = 77u + (uint32_t)i};
        if (pthread_create(&threads[i], NULL, run, &found[i])) abort();
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        CHECK_INT(found[i].wrong, 0);
        CHECK(found[i].right > ROUNDS);
        CHECK(found[i].refused > ROUNDS / 4);
    }
    free(file);
    return check_report();
}
