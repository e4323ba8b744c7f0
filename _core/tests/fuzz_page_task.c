/* Pages and their dictionary as they lie in a file, in any form and of any codec: an answer must be an Arrow column, the same
 * however far bytes are unpacked, the outcome the same of every leaf that is new, and rows that are tested while they are decoded those that
 * pass afterwards.
 *
 * Input: physical type, kind, width; switches (nullable, codes only, chunk, a dictionary by itself, two of codec, a library, UTF-8); rows; the
 * selection (six ranges where the width has bit 5, else two); two bytes of the dictionary's length, the dictionary; where the width has bit 6, a
 * byte that says how many pages of how many bytes come first; the page. The library is zstd, or where the width has bit 7 zlib or libbrotlidec. */
#include "../pageseek.h"
#include "fuzz_pages.h"
#include "libraries.h"
#include "zstd_standin.h"

static void read_column(const ps_column *c) {
    require(c->n >= 0 && c->null_count >= 0 && c->null_count <= c->n);
    for (size_t i = 0; i < c->validity_size; i++) touched ^= c->validity[i];
    for (size_t i = 0; i < c->values_size; i++) touched ^= c->values[i];
    for (size_t i = 0; i < c->offsets_size; i++) touched ^= c->offsets[i];
}

static bool same(const void *a, size_t a_size, const void *b, size_t b_size) {
    return a_size == b_size && (a_size == 0 || memcmp(a, b, a_size) == 0);
}

static bool same_bits(const uint8_t *a, const uint8_t *b,
                      int64_t n) { /* behind them is anything */
    for (int64_t i = 0; i < n; i++)
        if ((a[i / 8] ^ b[i / 8]) >> (i & 7) & 1) return false;
    return true;
}

static void require_same(const ps_leaf_spec *spec, const ps_column *a, const ps_column *b) {
    require(a->n == b->n && a->null_count == b->null_count);
    require(!a->validity == !b->validity);
    if (a->validity) require(same_bits(a->validity, b->validity, a->n));
    require(same(a->offsets, a->offsets_size, b->offsets, b->offsets_size));
    if (a->null_count) return; /* what lies under a null is anything */
    if (spec->kind == PS_BOOL)
        require(same_bits(a->values, b->values, a->n));
    else
        require(same(a->values, a->values_size, b->values, b->values_size));
}

/* Of a leaf that is new; then of the same leaf again, which may say anything, and must not break. */
static ps_task_state run(const ps_leaf_spec *spec, ps_page_task task, ps_column *out) {
    *out = (ps_column){0};
    if (ps_leaf_new(spec, &task.leaf, NULL) != PS_OK) return PS_TASK_AGAIN;
    ps_page_task again = task;
    ps_page_tasks(&again, 1, 1);
    *out = again.column;
    const ps_task_state state = again.state;
    again = task;
    ps_page_tasks(&again, 1, 1);
    if (state != PS_TASK_AGAIN) require(again.state == state);
    if (again.state == PS_TASK_DONE) {
        read_column(&again.column);
        ps_column_drop(&again.column);
    }
    ps_leaf_free(task.leaf);
    return state;
}

static ps_values values_of(const ps_leaf_spec *spec, const ps_column *c, int64_t n) {
    return (ps_values){.kind = spec->kind,
                       .width = spec->width,
                       .n = n,
                       .validity = c->null_count ? c->validity : NULL,
                       .values = c->values,
                       .values_size = c->values_size,
                       .offsets = c->offsets};
}

/* Whether row i of one column is row k of the other. */
static bool same_row(const ps_leaf_spec *spec, const ps_column *a, int64_t i,
                     const ps_column *b, int64_t k) {
    const bool null = a->null_count && !(a->validity[i / 8] >> (i & 7) & 1);
    if (null != (b->null_count && !(b->validity[k / 8] >> (k & 7) & 1))) return false;
    if (null) return true;
    if (!a->offsets) {
        const size_t width = a->values_size / (size_t)a->n;
        return !memcmp(a->values + (size_t)i * width, b->values + (size_t)k * width, width);
    }
    int64_t from[2], to[2];
    for (int at = 0; at < 2; at++) {
        int32_t narrow[2];
        memcpy(narrow, a->offsets + 4 * (i + at), 4);
        memcpy(narrow + 1, b->offsets + 4 * (k + at), 4);
        from[at] = narrow[0], to[at] = narrow[1];
        if (spec->kind != PS_LARGE_BYTES) continue;
        memcpy(&from[at], a->offsets + 8 * (i + at), 8);
        memcpy(&to[at], b->offsets + 8 * (k + at), 8);
    }
    return from[1] - from[0] == to[1] - to[0] &&
           (from[1] == from[0] ||
            !memcmp(a->values + from[0], b->values + to[0], (size_t)(from[1] - from[0])));
}

/* The rows that equal the first one, or those that do not, tested as they are decoded and afterwards. */
static void check_tests(const ps_leaf_spec *spec, ps_page_task task, const ps_column *all,
                        bool negate) {
    if (spec->kind == PS_BOOL || spec->kind == PS_VIEWS || !all->n) return;
    const bool null = all->null_count && !(all->validity[0] & 1);
    ps_row_test test = {.op = null ? PS_IS_NULL : PS_EQ, .negate = negate};
    test.literals = values_of(spec, all, null ? 0 : 1);
    test.literals.validity = NULL;
    const ps_values values = values_of(spec, all, all->n);
    uint8_t *mask = malloc((size_t)(all->n + 7) / 8);
    int64_t count, kept = 0;
    if (!mask) return;
    const ps_status known = ps_compare(&values, test.op, negate, &test.literals, PS_NAN_IEEE,
                                       mask, &count, NULL);
    task.tests = &test;
    task.n_tests = 1;
    task.keeps = true;
    require(ps_leaf_new(spec, &task.leaf, NULL) == PS_OK);
    ps_page_tasks(&task, 1, 1);
    require(task.state == (known == PS_OK ? PS_TASK_DONE : PS_TASK_AGAIN));
    if (task.state == PS_TASK_DONE) {
        require(task.passing.rows == all->n && task.passing.passed == count);
        require(task.column.n == count && same_bits(task.passing.mask, mask, all->n));
        for (int64_t i = 0; i < all->n; i++)
            if (mask[i / 8] >> (i & 7) & 1)
                require(same_row(spec, all, i, &task.column, kept++));
        ps_column_drop(&task.column);
        ps_buffer_free(task.passing.mask, task.passing.capacity);
    }
    ps_leaf_free(task.leaf);
    free(mask);
}

static ps_codec codec_of(uint8_t width, uint8_t switches) {
    if (!(switches & 64)) return (ps_codec)(switches >> 4 & 3);
    if (!(width & 128)) return PS_CODEC_ZSTD;
    return switches & 16 ? PS_CODEC_BROTLI : PS_CODEC_GZIP;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    input in = {data, data + length};
    ps_leaf_spec spec = {.physical = byte_of(&in) % 9};
    const uint8_t kind = byte_of(&in);
    spec.kind = kind % 18;
    spec.passes = kind >= 13 * 18;
    if (spec.passes) spec.kind = PS_BOOL;
    const uint8_t width = byte_of(&in), switches = byte_of(&in), rows = byte_of(&in);
    spec.type_length = spec.width = spec.physical == 7 ? (int8_t)width : 0;
    spec.unit = width % 5;
    spec.max_def = switches & 1;
    spec.max_output = 1 << 20;
    spec.utf8 = spec.passes ? 0 : switches >> 7;
    ps_range ranges[6];
    ps_page_task task = {.selection = ranges_of(&in, ranges, width & 32 ? 6 : 2),
                         .codes_only = switches & 2,
                         .chunk = switches & 4,
                         .codec = codec_of(width, switches),
                         .step = 1,
                         .max_page = 1 << 20,
                         .max_values = 1 << 10};
    uint8_t *dictionary = NULL;
    if (switches & 8) {
        const size_t size = byte_of(&in) + ((size_t)byte_of(&in) << 8);
        task.dictionary = dictionary = part(&in, size, &task.dictionary_length);
    }
    enum { MOST_PAGES = 4 };
    ps_task_page pages[MOST_PAGES] = {{0}};
    uint8_t *memory[MOST_PAGES], *passes[MOST_PAGES] = {NULL};
    size_t n_passes;
    const uint8_t cut = width & 64 ? byte_of(&in) : 0;
    int64_t first = 0;
    for (size_t i = 0; i <= (cut & 3u);
         i++) { /* each in memory of its own, so that a read beyond is seen */
        size_t size = (size_t)(in.end - in.p);
        if (i < (cut & 3u) && size > cut / 2) size = cut / 2;
        memory[i] = part(&in, size, &pages[i].length);
        pages[i].data = memory[i];
        pages[i].first_row = first;
        pages[i].rows = rows;
        if (spec.passes) { /* as many entries as bytes, some of which pass */
            passes[i] = part(&(input){data, data + length}, rows / 2, &n_passes);
            pages[i].passes = passes[i];
            pages[i].n_passes = (int64_t)n_passes;
        }
        first += rows;
    }
    task.pages = pages;
    task.n_pages = task.chunk ? 1 : (cut & 3u) + 1;
    ps_zstd_use(&zstd_standin);
    if (task.codec > PS_CODEC_ZSTD && !ps_zlib_ready()) { /* once */
        use_zlib();
        use_brotli();
    }
    ps_column parts, again, whole;
    zstd_at_once = false;
    const ps_task_state state = run(&spec, task, &parts);
    require(run(&spec, task, &again) == state);
    if (state == PS_TASK_DONE) check_tests(&spec, task, &parts, rows & 1);
    zstd_at_once = true;
    task.step = (size_t)1 << 32;
    const ps_task_state all = run(&spec, task, &whole);
    if (state == PS_TASK_DONE) {
        read_column(&parts);
        require_same(&spec, &parts, &again);
        if (all == PS_TASK_DONE) require_same(&spec, &parts, &whole);
        ps_column_drop(&parts);
        ps_column_drop(&again);
    }
    if (all == PS_TASK_DONE) ps_column_drop(&whole);
    ps_zstd_use(NULL);
    free(dictionary);
    for (size_t i = 0; i <= (cut & 3u); i++) {
        free(memory[i]);
        free(passes[i]);
    }
    return 0;
}
