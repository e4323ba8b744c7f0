/* point.c - a few rows of one row group: tested leaves first, then the others for the rows that passed. */
#include <stdlib.h>

#include "convert.h"

/* The rows that are left, and what is decoded for them. */
typedef struct point_state {
    ps_point *p;
    const ps_range *ranges; /* the caller's, or `own` */
    ps_range *own;
    size_t n_ranges;
    int64_t rows;
    bool *have; /* by leaf: whether its column is decoded */
} point_state;

static ps_selection selection_of(const point_state *s) {
    return (ps_selection){.ranges = s->ranges, .n_ranges = s->n_ranges};
}

/* ---- pages ------------------------------------------------------------------------------- */

/* The last page that does not begin behind a row. */
static size_t page_at(const ps_point_leaf *leaf, int64_t row) {
    size_t low = 0, high = leaf->n_pages;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (leaf->first_row[middle] <= row)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The pages that hold rows of the ranges, in order, into `out`, or only their number where that is NULL. */
static size_t pages_of(const ps_point_leaf *leaf, const ps_range *ranges, size_t n,
                       size_t *out) {
    size_t found = 0, next = 0; /* pages before `next` are listed */
    for (size_t i = 0; i < n; i++) {
        size_t page = page_at(leaf, ranges[i].start);
        if (page < next) page = next;
        for (; page < leaf->n_pages && leaf->first_row[page] < ranges[i].stop; page++) {
            if (leaf->first_row[page + 1] <= leaf->first_row[page] ||
                leaf->first_row[page + 1] <= ranges[i].start)
                continue; /* it has no rows, or only rows before */
            if (out) out[found] = page;
            found++;
            next = page + 1;
        }
    }
    return found;
}

/* Pieces of the file that are read one behind the other into one memory. Neighbours become one read. */
typedef struct reading {
    const ps_source *source;
    size_t *requests;
    uint8_t *memory;
    size_t filled,
        begun; /* bytes of the memory: those that have a place, and those of them that were read */
    int64_t offset; /* of the first byte that was not read yet */
} reading;

static bool flush(reading *r) {
    const size_t length = r->filled - r->begun;
    if (length) ++*r->requests;
    if (length && !r->source->read(r->source->of, r->offset, r->memory + r->begun, length))
        return false;
    r->begun = r->filled;
    return true;
}

static bool want(reading *r, int64_t offset, size_t length, const uint8_t **at) {
    if (r->filled == r->begun || r->offset + (int64_t)(r->filled - r->begun) != offset) {
        if (!flush(r)) return false;
        r->offset = offset;
    }
    *at = r->memory + r->filled;
    r->filled += length;
    return true;
}

static bool add(size_t *sum, int64_t offset, int64_t length, size_t most) {
    if (offset < 0 || length < 0 || length > INT64_MAX - offset) return false;
    if ((uint64_t)length > most || *sum > most - (size_t)length) return false;
    *sum += (size_t)length;
    return true;
}

/* ---- a wave: leaves whose pages are read and decoded together ------------------------------ */

typedef struct wave {
    size_t n, n_pages;
    size_t *leaves; /* numbers */
    ps_page_task *tasks;
    size_t *page_numbers;
    ps_task_page *pages;
    uint8_t *bytes;
    size_t n_bytes;
} wave;

static void fill_task(const ps_point_leaf *leaf, ps_page_task *t) {
    t->codec = leaf->codec;
    t->step = leaf->step;
    t->max_page = leaf->max_page;
    t->max_values = INT64_MAX;
    t->always_compressed = leaf->always_compressed;
}

/* Counts the pages and bytes. False: more than the caller allows. */
static bool measure(const point_state *s, wave *w) {
    w->n_pages = 0;
    for (size_t i = 0; i < w->n; i++)
        w->n_pages += pages_of(&s->p->leaves[w->leaves[i]], s->ranges, s->n_ranges, NULL);
    w->page_numbers = malloc((w->n_pages + 1) * sizeof *w->page_numbers);
    w->pages = calloc(w->n_pages + 1, sizeof *w->pages);
    w->tasks = calloc(w->n + 1, sizeof *w->tasks);
    if (!w->page_numbers || !w->pages || !w->tasks) return false;
    size_t at = 0;
    for (size_t i = 0; i < w->n; i++) {
        const ps_point_leaf *leaf = &s->p->leaves[w->leaves[i]];
        ps_page_task *t = &w->tasks[i];
        t->n_pages = pages_of(leaf, s->ranges, s->n_ranges, w->page_numbers + at);
        t->pages = w->pages + at;
        const size_t before = w->n_bytes;
        if (leaf->coded && !add(&w->n_bytes, leaf->dictionary_at,
                                (int64_t)leaf->dictionary_length, s->p->most))
            return false;
        for (size_t k = at; k < at + t->n_pages; k++) {
            const size_t page = w->page_numbers[k];
            if (!add(&w->n_bytes, leaf->offset[page], leaf->size[page], s->p->most))
                return false;
        }
        at += t->n_pages;
        if (s->p->counts) s->p->counts[w->leaves[i]].bytes += w->n_bytes - before;
    }
    return true;
}

static bool fetch(const point_state *s, wave *w) {
    w->bytes = ps_buffer_new(w->n_bytes ? w->n_bytes : 1);
    if (!w->bytes) return false;
    reading r = {.source = s->p->source, .requests = &s->p->requests, .memory = w->bytes};
    size_t at = 0;
    for (size_t i = 0; i < w->n; i++) {
        const ps_point_leaf *leaf = &s->p->leaves[w->leaves[i]];
        ps_page_task *t = &w->tasks[i];
        if (leaf->coded) {
            t->dictionary_length = leaf->dictionary_length;
            if (!want(&r, leaf->dictionary_at, leaf->dictionary_length, &t->dictionary))
                return false;
        }
        for (const size_t stop = at + t->n_pages; at < stop; at++) {
            const size_t page = w->page_numbers[at];
            ps_task_page *to = &w->pages[at];
            to->length = (size_t)leaf->size[page];
            to->first_row = leaf->first_row[page];
            to->rows = leaf->first_row[page + 1] - leaf->first_row[page];
            if (!want(&r, leaf->offset[page], to->length, &to->data)) return false;
        }
    }
    return flush(&r);
}

/* Decodes the pages of a task again, with the dictionary that they turned out to need. */
static bool with_dictionary(const point_state *s, size_t number, ps_page_task *t) {
    const ps_point_leaf *leaf = &s->p->leaves[number];
    size_t length = 0;
    if (!leaf->dictionary_length ||
        !add(&length, leaf->dictionary_at, (int64_t)leaf->dictionary_length, s->p->most))
        return false;
    uint8_t *data = ps_buffer_new(length);
    if (!data) return false;
    s->p->requests++;
    if (s->p->counts) s->p->counts[number].bytes += length;
    const bool read = s->p->source->read(s->p->source->of, leaf->dictionary_at, data, length);
    if (read) {
        t->dictionary = data;
        t->dictionary_length = length;
        ps_page_tasks(t, 1, 1);
    }
    ps_buffer_free(data, length);
    return read && t->state == PS_TASK_DONE;
}

static bool decode(point_state *s, wave *w) {
    for (size_t i = 0; i < w->n; i++) {
        const ps_point_leaf *leaf = &s->p->leaves[w->leaves[i]];
        fill_task(leaf, &w->tasks[i]);
        w->tasks[i].selection = selection_of(s);
        if (ps_leaf_new(&leaf->spec, &w->tasks[i].leaf, NULL) != PS_OK) return false;
    }
    ps_page_tasks(w->tasks, w->n, ps_page_threads(w->tasks, w->n, s->p->threads));
    bool done = true;
    for (size_t i = 0; i < w->n; i++) {
        ps_page_task *t = &w->tasks[i];
        if (done && t->state == PS_TASK_DICTIONARY) done = with_dictionary(s, w->leaves[i], t);
        if (s->p->counts && t->state == PS_TASK_DONE) {
            s->p->counts[w->leaves[i]].pages += t->pages_read;
            s->p->counts[w->leaves[i]].dictionaries += t->dictionary_used;
        }
        if (t->state == PS_TASK_DONE) {
            s->p->columns[w->leaves[i]] = t->column;
            s->have[w->leaves[i]] = true;
            done = done && t->column.n == s->rows;
        } else {
            done = false;
        }
    }
    return done;
}

/* Reads and decodes the rows that are left of some leaves. */
static bool read_leaves(point_state *s, size_t *leaves, size_t n) {
    wave w = {.leaves = leaves, .n = n};
    const bool done = measure(s, &w) && fetch(s, &w) && decode(s, &w);
    for (size_t i = 0; w.tasks && i < n; i++) ps_leaf_free(w.tasks[i].leaf);
    if (w.bytes) ps_buffer_free(w.bytes, w.n_bytes ? w.n_bytes : 1);
    free(w.page_numbers);
    free(w.pages);
    free(w.tasks);
    return done;
}

/* ---- rows --------------------------------------------------------------------------------- */

static uint8_t *take_buffer(size_t size, size_t *capacity) {
    *capacity = (size + 63) & ~(size_t)63;
    if (!*capacity) *capacity = 64;
    return ps_buffer_new(*capacity);
}

/* Cuts a column down to the `count` rows of a mask. */
static bool cut(ps_column *c, const ps_leaf_spec *spec, const uint8_t *mask, int64_t count) {
    const ps_take_indices rows = {.mask = mask, .n = c->n, .count = count};
    const size_t n = (size_t)count, bits = (n + 7) / 8;
    const size_t width = ps_kind_width(spec);
    ps_column out = {.rows = count, .n = count};
    bool done = true;
    if (c->validity) {
        out.validity = take_buffer(bits, &out.validity_capacity);
        out.validity_size = bits;
        if (out.validity)
            out.null_count = count - ps_gather_bits(&rows, c->validity, out.validity);
        done = out.validity != NULL;
    }
    if (done && ps_kind_has_offsets(spec->kind)) {
        const size_t each = spec->kind == PS_BYTES ? 4 : 8;
        size_t total = 0;
        out.offsets_size = (n + 1) * each;
        out.offsets = take_buffer(out.offsets_size, &out.offsets_capacity);
        done = out.offsets && ps_gather_offsets(&rows, c->offsets, each, c->values_size,
                                                out.offsets, &total, NULL) == PS_OK;
        if (done) {
            out.values_size = total;
            out.values = take_buffer(total, &out.values_capacity);
            done = out.values != NULL;
        }
        if (done)
            ps_gather_strings(&rows, c->offsets, each, c->values, c->values_size, out.values,
                              total);
    } else if (done) {
        out.values_size = spec->kind == PS_BOOL ? bits : n * width;
        out.values = take_buffer(out.values_size, &out.values_capacity);
        done = out.values != NULL;
        if (done && spec->kind == PS_BOOL)
            ps_gather_bits(&rows, c->values, out.values);
        else if (done)
            ps_gather_fixed(&rows, c->values, width, out.values);
    }
    if (!done) {
        ps_column_drop(&out);
        return false;
    }
    ps_column_drop(c);
    *c = out;
    return true;
}

/* Whether a leaf is still needed once the tests before `next` are done. */
static bool is_needed(const ps_point *p, size_t leaf, size_t next) {
    if (p->leaves[leaf].output) return true;
    for (size_t i = next; i < p->n_tests; i++)
        if (p->tests[i].leaf == leaf) return true;
    return false;
}

/* Keeps the `count` rows of a mask. `next`: the test that comes next. */
static bool keep(point_state *s, const uint8_t *mask, int64_t count, size_t next) {
    const ps_selection rows = selection_of(s);
    const size_t n = ps_selection_refine(&rows, mask, NULL);
    ps_range *left = malloc((n + 1) * sizeof *left);
    if (!left) return false;
    ps_selection_refine(&rows, mask, left);
    free(s->own);
    s->ranges = s->own = left;
    s->n_ranges = n;
    s->rows = count;
    for (size_t i = 0; i < s->p->n_leaves; i++) {
        if (!s->have[i]) continue;
        if (!is_needed(s->p, i, next)) {
            ps_column_drop(&s->p->columns[i]);
            s->have[i] = false;
        } else if (!cut(&s->p->columns[i], &s->p->leaves[i].spec, mask, count)) {
            return false;
        }
    }
    return true;
}

static bool evaluate(point_state *s, size_t number, uint8_t *mask) {
    const ps_point_test *test = &s->p->tests[number];
    const ps_leaf_spec *spec = &s->p->leaves[test->leaf].spec;
    const ps_column *c = &s->p->columns[test->leaf];
    const ps_values values = {.kind = spec->kind,
                              .width = spec->width,
                              .n = c->n,
                              .validity = c->validity,
                              .values = c->values,
                              .values_size = c->values_size,
                              .offsets = c->offsets};
    int64_t count = 0;
    if (spec->kind == PS_VIEWS) return false; /* no output is compared */
    if (ps_compare(&values, test->op, test->negate, &test->literals, test->nan, mask, &count,
                   NULL) != PS_OK)
        return false;
    if (count == s->rows && is_needed(s->p, test->leaf, number + 1)) return true;
    return count ? keep(s, mask, count, number + 1) : (s->rows = 0, true);
}

static bool run_tests(point_state *s) {
    for (size_t i = 0; i < s->p->n_tests && s->rows; i++) {
        size_t leaf = s->p->tests[i].leaf;
        if (!s->have[leaf] && !read_leaves(s, &leaf, 1)) return false;
        uint8_t *mask = malloc((size_t)(s->rows + 7) / 8 + 1);
        const bool done = mask && evaluate(s, i, mask);
        free(mask);
        if (!done) return false;
    }
    return true;
}

/* Keeps the first rows where there are more than the limit. */
static bool apply_limit(point_state *s) {
    const int64_t limit = s->p->limit;
    if (s->rows <= limit) return true;
    if (limit <= 0) {
        s->rows = 0;
        return true;
    }
    const size_t size = (size_t)(s->rows + 7) / 8;
    uint8_t *mask = calloc(1, size + 1);
    if (!mask) return false;
    memset(mask, 0xff, (size_t)limit / 8);
    if (limit % 8) mask[limit / 8] = (uint8_t)((1u << limit % 8) - 1);
    const bool done = keep(s, mask, limit, s->p->n_tests);
    free(mask);
    return done;
}

static bool read_output(point_state *s) {
    size_t *missing = malloc((s->p->n_leaves + 1) * sizeof *missing), n = 0;
    if (!missing) return false;
    for (size_t i = 0; i < s->p->n_leaves; i++)
        if (s->p->leaves[i].output && !s->have[i]) missing[n++] = i;
    const bool done = !n || read_leaves(s, missing, n);
    free(missing);
    return done;
}

bool ps_point_read(ps_point *p) {
    const ps_selection asked = {.ranges = p->ranges, .n_ranges = p->n_ranges};
    point_state s = {.p = p, .ranges = p->ranges, .n_ranges = p->n_ranges};
    memset(p->columns, 0, p->n_leaves * sizeof *p->columns);
    s.rows = ps_selection_count(&asked);
    s.have = calloc(p->n_leaves + 1, sizeof *s.have);
    bool done = s.have && run_tests(&s) && apply_limit(&s) && (!s.rows || read_output(&s));
    for (size_t i = 0; s.have && i < p->n_leaves; i++)
        if (!done || !s.rows || !p->leaves[i].output) ps_column_drop(&p->columns[i]);
    p->rows = done ? s.rows : 0;
    free(s.own);
    free(s.have);
    return done;
}
