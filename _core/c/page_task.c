/* page_task.c - pages of several leaves, each opened, unpacked and decoded by one thread.
 *
 * A thread unpacks every page into one scratch memory, which stays in the processor's caches. */
#if !defined(_WIN32)
#define _POSIX_C_SOURCE 200112L /* pthread_sigmask under -std=c11 */
#endif

#include <stdlib.h>

#include "../pageseek.h"
#include "base.h"

#if !defined(_WIN32)
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>
#endif

/* a capacity of scratch memory is the least, doubled some times, or larger than the most */
#define SCRATCH_LEAST ((size_t)64 << 10)
#define SCRATCH_MOST  ((size_t)4 << 20)
#define MOST_HELPERS  ((size_t)7) /* a page is the least that a thread is given */
#define READ_AT_ONCE  ((size_t)256 << 10)
#define HELPER_COST   (128 << 10) /* of tasks that are worth the start of another thread */

enum { DATA = 0, DICTIONARY = 2, DATA_V2 = 3 }; /* parquet.thrift, PageType */
enum { PLAIN = 0, PLAIN_DICTIONARY = 2, RLE = 3, RLE_DICTIONARY = 8 }; /* Encoding */

ps_status ps_page_open(const ps_page_header *h, const uint8_t *data, size_t body,
                       bool always_compressed, bool levels_only, ps_page *page,
                       ps_packed *packed, ps_error *err) {
    size_t levels = 0, length = (size_t)h->compressed_size, size = (size_t)h->uncompressed_size;
    page->version = h->type == DATA ? 1 : 2;
    page->encoding = (int32_t)h->encoding;
    page->num_values = h->num_values;
    if (h->type == DATA) {
        page->def_encoding = (int32_t)h->def_encoding;
        page->rep_encoding = (int32_t)h->rep_encoding;
        page->num_nulls = page->num_rows = -1;
    } else {
        levels = (size_t)(h->rep_length + h->def_length);
        if (levels > length || levels > size)
            return ps_fail(err, PS_CORRUPT, PS_NOWHERE, "levels of %zu bytes in a page of %zu",
                           levels, length);
        page->def_encoding = page->rep_encoding = RLE;
        page->num_nulls = h->num_nulls == INT64_MIN ? -1 : h->num_nulls;
        page->num_rows = h->num_rows;
        page->levels = data + body;
        page->rep_length = (size_t)h->rep_length;
        page->def_length = (size_t)h->def_length;
        length -= levels;
        size -= levels;
    }
    const bool stored = h->type != DATA && ((h->is_compressed == 0 && !always_compressed) ||
                                            (length == 0 && size == 0));
    if (stored && length != size)
        return ps_fail(err, PS_CORRUPT, PS_NOWHERE, "%zu bytes of values, %zu declared", length,
                       size);
    *packed = (ps_packed){.at = body + levels, .length = length, .size = size};
    packed->plain = stored || (levels_only && h->type != DATA);
    if (packed->plain) {
        page->body = data + packed->at;
        page->length = stored ? length : 0;
    }
    return PS_OK;
}

size_t ps_page_reach(const ps_leaf *leaf, const ps_page *page, size_t size, size_t step) {
    const size_t reach = ps_leaf_reach(leaf, page, size), last = size - size % step;
    return reach > last ? size : (reach + step - 1) / step * step; /* blocks are whole */
}

/* ---- tasks -------------------------------------------------------------------------------- */

typedef struct memory_block {
    uint8_t *data;
    size_t capacity;
} memory_block;

/* A block and what is unpacked into it. */
typedef struct unpacking {
    memory_block block;
    ps_unpack from;
} unpacking;

typedef struct scratch_memory {
    unpacking page, dictionary;
} scratch_memory;

/* Few different capacities exist, so that the pool likely has a block of one. */
static bool make(memory_block *block, size_t size) {
    if (size <= block->capacity) return true;
    if (block->data) ps_buffer_free(block->data, block->capacity);
    block->capacity = SCRATCH_LEAST;
    while (block->capacity < size && block->capacity < SCRATCH_MOST) block->capacity *= 2;
    if (block->capacity < size) block->capacity = (size + 63) & ~(size_t)63;
    block->data = ps_buffer_new(block->capacity);
    if (!block->data) block->capacity = 0;
    return block->data != NULL;
}

static bool is_sound(const ps_page_task *t, const ps_page_header *h, const uint8_t *body) {
    if (h->uncompressed_size > t->max_page) return false;
    return h->crc == INT64_MIN ||
           ps_crc32(0, body, (size_t)h->compressed_size) == (uint32_t)h->crc;
}

/* Begins to unpack the bytes of a page. */
static bool unpack(const ps_page_task *t, const ps_packed *packed, const uint8_t *data,
                   unpacking *into) {
    const uint8_t *from = data + packed->at;
    if (t->codec == PS_CODEC_NONE) {
        if (packed->length != packed->size) return false;
    } else if (ps_inflate_fits(t->codec, from, packed->length, packed->size, NULL) != PS_OK ||
               !make(&into->block, packed->size ? packed->size : 1)) {
        return false;
    }
    ps_unpack_begin(&into->from, t->codec, from, packed->length, into->block.data,
                    packed->size);
    return true;
}

static bool is_there(const ps_unread *unread) {
    return !unread || unread->there;
}

/* Reads bytes that are not there. False where the file has not so many: the caller reads them again, and says so. */
static bool fetch(ps_unread *unread) {
    if (!is_there(unread))
        unread->there = unread->source.read(unread->source.of, unread->offset, unread->out,
                                            unread->length);
    return is_there(unread);
}

/* Reads page i, and with it those behind it whose bytes follow in the file and in memory: a call of the system for each would take
 * long where they are small. */
static bool fetch_page(const ps_page_task *t, size_t i) {
    const ps_task_page *p = &t->pages[i];
    ps_unread *first = p->unread;
    if (is_there(first)) return true;
    size_t n = 1, length = first->length;
    for (const ps_unread *u;
         i + n < t->n_pages && (u = p[n].unread) && !u->there &&
         u->out == first->out + length && u->offset == first->offset + (int64_t)length;
         n++) {
        if (length + u->length > READ_AT_ONCE) break;
        length += u->length;
    }
    if (!first->source.read(first->source.of, first->offset, first->out, length))
        return n > 1 && fetch(first); /* the file may end behind it */
    for (size_t k = 0; k < n; k++) p[k].unread->there = true;
    return true;
}

static bool take_dictionary(const ps_page_task *t, unpacking *into) {
    ps_page_header h;
    if (!fetch(t->unread_dictionary) ||
        ps_page_header_read(t->dictionary, t->dictionary_length, &h, NULL) != PS_OK)
        return false;
    const size_t body = (size_t)h.header_length;
    if (h.type != DICTIONARY || body + (size_t)h.compressed_size != t->dictionary_length ||
        (h.encoding != PLAIN && h.encoding != PLAIN_DICTIONARY) ||
        !is_sound(t, &h, t->dictionary + body))
        return false;
    const ps_packed packed = {
        .at = body, .length = (size_t)h.compressed_size, .size = (size_t)h.uncompressed_size};
    if (!unpack(t, &packed, t->dictionary, into)) return false;
    /* where a second row would unpack it again, only a small part is tried first */
    const bool several = ps_selection_count_from(&t->selection, 0, 2) > 1;
    into->from.most = several ? packed.size / 4 : packed.size - packed.size / 4;
    return ps_leaf_dictionary_from(t->leaf, &into->from.reader, h.num_values, NULL) == PS_OK;
}

/* False where it fails, and where the output is full, which takes several. */
static bool take(ps_leaf *leaf, const ps_page *page, ps_take *state) {
    return ps_leaf_page(leaf, page, NULL) == PS_OK &&
           ps_leaf_take(leaf, state, NULL) == PS_OK && *state != PS_TAKE_FULL;
}

/* Takes the rows from a part of the page that is likely long enough, and from the whole page where it is not. */
static bool take_unpacked(ps_leaf *leaf, ps_page *page, ps_unpack *from, size_t reach,
                          ps_take *state) {
    for (;; reach = from->reader.size) {
        if (ps_unpack_more(from, reach, NULL) != PS_OK) return false;
        page->body = from->reader.data;
        page->length = from->reader.have;
        page->partial = page->length < from->reader.size;
        if (take(leaf, page, state)) return true;
        if (!page->partial) return false;
    }
}

static bool is_data(const ps_page_header *h) {
    return h->type == DATA || h->type == DATA_V2;
}

static bool is_of_codes(const ps_page_header *h) {
    return h->encoding == PLAIN_DICTIONARY || h->encoding == RLE_DICTIONARY;
}

/* The dictionary, once a page needs it. */
static ps_task_state want_dictionary(ps_page_task *t, unpacking *into) {
    if (t->dictionary_used) return PS_TASK_DONE;
    if (!t->dictionary) return PS_TASK_DICTIONARY;
    t->dictionary_used = true;
    t->dictionary_pages++;
    return take_dictionary(t, into) ? PS_TASK_DONE : PS_TASK_AGAIN;
}

/* Takes the selected rows of a data page whose header was read and whose body begins at data[body]. *state tells as from
 * ps_leaf_take whether more are selected. */
static ps_task_state take_page(ps_page_task *t, const ps_page_header *h, const uint8_t *data,
                               size_t body, int64_t first_row, int64_t rows,
                               scratch_memory *scratch, ps_take *state) {
    ps_page page = {.first_row = first_row, .index_rows = t->nested ? rows : -1, .whole = true};
    ps_packed packed;
    if (is_of_codes(h)) {
        if (!t->levels_only) {
            const ps_task_state found = want_dictionary(t, &scratch->dictionary);
            if (found != PS_TASK_DONE) return found;
        }
    } else if (t->codes_only) {
        return PS_TASK_AGAIN;
    }
    if (!is_sound(t, h, data + body) ||
        ps_page_open(h, data, body, t->always_compressed, t->levels_only, &page, &packed,
                     NULL) != PS_OK)
        return PS_TASK_AGAIN;
    t->pages_read++;
    if (packed.plain) return take(t->leaf, &page, state) ? PS_TASK_DONE : PS_TASK_AGAIN;
    ps_unpack_end(&scratch->page.from); /* of the page before */
    if (!unpack(t, &packed, data, &scratch->page)) return PS_TASK_AGAIN;
    return take_unpacked(t->leaf, &page, &scratch->page.from,
                         ps_page_reach(t->leaf, &page, packed.size, t->step), state)
               ? PS_TASK_DONE
               : PS_TASK_AGAIN;
}

/* Whether one of the pages needs the dictionary. No row may have been taken when the caller is asked for it. */
static bool lacks_dictionary(const ps_page_task *t) {
    if (t->dictionary || t->levels_only) return false;
    for (size_t i = 0; i < t->n_pages; i++) {
        ps_page_header h;
        if (fetch_page(t, i) &&
            ps_page_header_read(t->pages[i].data, t->pages[i].length, &h, NULL) == PS_OK &&
            is_data(&h) && is_of_codes(&h))
            return true;
    }
    return false;
}

/* What entries of the dictionary pass takes its place. */
static bool take_passes(ps_page_task *t, const ps_task_page *page) {
    t->dictionary_used = true;
    t->dictionary_pages++; /* which the caller read */
    return ps_leaf_passes(t->leaf, page->passes, page->n_passes, NULL) == PS_OK;
}

/* Makes the header of a dictionary page that of a data page with its values. */
static bool to_values(ps_page_header *h) {
    if (h->type != DICTIONARY || (h->encoding != PLAIN && h->encoding != PLAIN_DICTIONARY))
        return false;
    h->type = DATA;
    h->encoding = PLAIN;
    h->def_encoding = h->rep_encoding = RLE;
    return true;
}

/* Pages that an index locates. */
static ps_task_state take_pages(ps_page_task *t, scratch_memory *scratch, ps_take *state) {
    if (t->n_pages && t->pages[0].passes) {
        if (!take_passes(t, &t->pages[0])) return PS_TASK_AGAIN;
    } else if (t->n_pages > 1 && lacks_dictionary(t)) {
        return PS_TASK_DICTIONARY;
    }
    for (size_t i = 0; i < t->n_pages && *state == PS_TAKE_PAGE; i++) {
        const ps_task_page *p = &t->pages[i];
        ps_page_header h;
        if (!fetch_page(t, i) || ps_page_header_read(p->data, p->length, &h, NULL) != PS_OK)
            return PS_TASK_AGAIN;
        const size_t body = (size_t)h.header_length;
        if (t->entries && !to_values(&h)) return PS_TASK_AGAIN;
        if (!is_data(&h) || body + (size_t)h.compressed_size != p->length ||
            h.num_values > t->max_values ||
            (!t->repeats && h.num_values != p->rows)) /* levels and output are made for them */
            return PS_TASK_AGAIN;
        const ps_task_state done = take_page(t, &h, p->data, body, p->first_row, p->rows,
                                             scratch, state);
        if (done != PS_TASK_DONE) return done;
    }
    return PS_TASK_DONE;
}

/* The pages of a chunk, header by header. In one of a leaf that repeats, only the first data page can be placed. */
static ps_task_state take_chunk(ps_page_task *t, const ps_task_page *chunk,
                                scratch_memory *scratch, ps_take *state) {
    const int64_t first = chunk->first_row;
    int64_t done_rows = 0;
    size_t at = 0;
    if (first < 0 || chunk->rows < 0 || chunk->rows > INT64_MAX - first) return PS_TASK_AGAIN;
    if (chunk->passes && !take_passes(t, chunk)) return PS_TASK_AGAIN;
    while (*state == PS_TAKE_PAGE && done_rows < chunk->rows && at < chunk->length) {
        const uint8_t *data = chunk->data + at;
        ps_page_header h;
        if (ps_page_header_read(data, chunk->length - at, &h, NULL) != PS_OK)
            return PS_TASK_AGAIN;
        const size_t body = (size_t)h.header_length, rest = chunk->length - at - body;
        if ((size_t)h.compressed_size > rest) return PS_TASK_AGAIN;
        at += body + (size_t)h.compressed_size;
        if (h.type == DICTIONARY) {
            if (chunk->passes && data != chunk->data)
                return PS_TASK_AGAIN; /* not the caller's */
            t->dictionary = data;
            t->dictionary_length = body + (size_t)h.compressed_size;
            continue;
        }
        if (!is_data(&h)) continue;
        if (h.num_values > t->max_values) return PS_TASK_AGAIN;
        if (t->repeats ? at != chunk->length : h.num_values > chunk->rows - done_rows)
            return PS_TASK_AGAIN;
        const int64_t row = first + done_rows, rows = t->repeats ? chunk->rows : h.num_values;
        t->pages_seen++;
        if (ps_selection_end(&t->selection, row, row + rows) > row) {
            /* no dictionary in front of it: the caller has none either */
            if (take_page(t, &h, data, body, row, rows, scratch, state) != PS_TASK_DONE)
                return PS_TASK_AGAIN;
        }
        done_rows += rows;
    }
    return PS_TASK_DONE;
}

/* Chunks of several row groups, whose dictionaries follow each other. */
static ps_task_state take_chunks(ps_page_task *t, scratch_memory *scratch, ps_take *state) {
    ps_task_state done = PS_TASK_DONE;
    for (size_t i = 0; i < t->n_pages && *state == PS_TAKE_PAGE && done == PS_TASK_DONE; i++) {
        if (i) {
            ps_leaf_forget_dictionary(t->leaf);
            ps_unpack_end(&scratch->dictionary.from);
            t->dictionary = NULL;
            t->dictionary_used = false;
        }
        if (!fetch_page(t, i)) return PS_TASK_AGAIN;
        done = take_chunk(t, &t->pages[i], scratch, state);
    }
    return done;
}

static ps_task_state begin(ps_page_task *t, scratch_memory *scratch) {
    ps_take state = PS_TAKE_PAGE;
    if (t->codec == PS_CODEC_OTHER ||
        ps_leaf_begin(t->leaf, &t->selection, INT64_MAX, t->hint, NULL) != PS_OK)
        return PS_TASK_AGAIN;
    if (t->n_tests && ps_leaf_filter(t->leaf, t->tests, t->n_tests, t->keeps, NULL) != PS_OK)
        return PS_TASK_AGAIN;
    const ps_task_state done = t->chunk ? take_chunks(t, scratch, &state)
                                        : take_pages(t, scratch, &state);
    return done == PS_TASK_DONE && state != PS_TAKE_DONE ? PS_TASK_AGAIN : done;
}

static void run(ps_page_task *t, scratch_memory *scratch) {
    if (t->call) {
        t->state = t->call(t->of) ? PS_TASK_DONE : PS_TASK_AGAIN;
        return;
    }
    t->dictionary_used = false;
    t->pages_read = t->pages_seen = t->dictionary_pages = 0;
    t->passing = (ps_passing){0};
    t->state = begin(t, scratch);
    ps_unpack_end(&scratch->page.from);
    ps_unpack_end(&scratch->dictionary.from);
    if (t->state == PS_TASK_DONE && ps_leaf_finish(t->leaf, &t->column, NULL) != PS_OK) {
        ps_column_drop(&t->column);
        t->state = PS_TASK_AGAIN;
    }
    if (t->state == PS_TASK_DONE && t->n_tests) ps_leaf_filtered(t->leaf, &t->passing);
    ps_leaf_forget(t->leaf);
    ps_leaf_forget_dictionary(t->leaf); /* its memory goes with the scratch memory */
    if (t->state != PS_TASK_DONE) ps_leaf_clear(t->leaf); /* other tasks may take long */
}

/* What the page costs from which data[0..length) begins: about the bytes that are unpacked, where one that is read takes as long as
 * six that are written. Of bytes that are not there yet only their number counts. */
static double cost_of_page(const ps_page_task *t, const uint8_t *data, size_t length,
                           const ps_unread *unread) {
    const bool quick = t->codec == PS_CODEC_NONE || t->codec == PS_CODEC_SNAPPY ||
                       t->codec == PS_CODEC_LZ4 || t->codec == PS_CODEC_LZ4_RAW;
    ps_page_header h;
    double cost = (double)length;
    if (is_there(unread) && ps_page_header_read(data, length, &h, NULL) == PS_OK &&
        h.compressed_size > 0)
        cost += cost / (double)h.compressed_size * (double)h.uncompressed_size / 6;
    return quick ? cost / 2 : cost;
}

/* Of a page the part up to the last row counts; a chunk is taken to be like its first page. */
static double cost_of(const ps_page_task *t) {
    double cost = 0;
    if (t->call) return (double)t->hint;
    if (t->dictionary)
        cost = cost_of_page(t, t->dictionary, t->dictionary_length, t->unread_dictionary);
    for (size_t i = 0; i < t->n_pages; i++) {
        const ps_task_page *p = &t->pages[i];
        double part = 1;
        if (!t->chunk && p->first_row >= 0 && p->rows > 0 &&
            p->rows <= INT64_MAX - p->first_row) {
            const int64_t stop = p->first_row + p->rows;
            const int64_t end = ps_selection_end(&t->selection, p->first_row, stop);
            part = (double)(end - p->first_row) / (double)p->rows;
        }
        cost += part * cost_of_page(t, p->data, p->length, p->unread);
    }
    return cost;
}

size_t ps_page_threads(const ps_page_task *tasks, size_t n, size_t most) {
    double all = 0, largest = 0;
    if (most < 2 || n < 2) return 1;
    for (size_t i = 0; i < n; i++) {
        const double cost = cost_of(&tasks[i]);
        all += cost;
        if (cost > largest) largest = cost;
    }
    const double helpers = (all - largest) / HELPER_COST;
    return helpers < (double)(most - 1) ? (size_t)helpers + 1 : most;
}

typedef struct turn {
    double cost;
    size_t task;
} turn;

#if !defined(_WIN32)
static int dearest_first(const void *a, const void *b) {
    const turn *x = a, *y = b;
    if (x->cost != y->cost) return x->cost < y->cost ? 1 : -1;
    return x->task < y->task ? -1 : x->task > y->task;
}

/* The tasks in the order of their cost: the last ones are short, so that threads end at about the same time. NULL where memory is short. */
static turn *turns_of(const ps_page_task *tasks, size_t n) {
    turn *turns = malloc((n + 1) * sizeof *turns);
    if (!turns) return NULL;
    for (size_t i = 0; i < n; i++) turns[i] = (turn){.cost = cost_of(&tasks[i]), .task = i};
    qsort(turns, n, sizeof *turns, dearest_first);
    return turns;
}
#endif

struct ps_page_work {
    ps_page_task *tasks;
    size_t n;
    turn *turns; /* NULL: as they come */
#if !defined(_WIN32)
    _Atomic size_t next;
    pthread_t helpers[MOST_HELPERS];
    size_t helping;
    pid_t process;
#else
    size_t next;
#endif
};

static void *work(void *given) {
    ps_page_work *share = given;
    scratch_memory scratch = {0};
    for (size_t i; (i = share->next++) < share->n;)
        run(&share->tasks[share->turns ? share->turns[i].task : i], &scratch);
    const memory_block left[] = {scratch.page.block, scratch.dictionary.block};
    for (int i = 0; i < 2; i++)
        if (left[i].data) ps_buffer_free(left[i].data, left[i].capacity);
    return NULL;
}

static void begin_work(ps_page_work *w, size_t helpers) {
#if !defined(_WIN32)
    sigset_t all, before; /* signals are for the threads that were there */
    if (helpers > MOST_HELPERS) helpers = MOST_HELPERS;
    if (!helpers) return;
    w->turns = turns_of(w->tasks, w->n);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (w->helping < helpers && pthread_create(&w->helpers[w->helping], NULL, work, w) == 0)
        w->helping++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
#else
    (void)w;
    (void)helpers;
#endif
}

static void end_work(ps_page_work *w) {
    work(w); /* where no helper could be started, this thread does all tasks */
#if !defined(_WIN32)
    while (w->helping) pthread_join(w->helpers[--w->helping], NULL);
#endif
    free(w->turns);
}

void ps_page_tasks(ps_page_task *tasks, size_t n, size_t threads) {
    ps_page_work w = {.tasks = tasks, .n = n};
    const size_t wanted = threads < n ? threads : n;
    begin_work(&w, wanted ? wanted - 1 : 0);
    end_work(&w);
}

ps_page_work *ps_page_work_begin(ps_page_task *tasks, size_t n, size_t helpers) {
    ps_page_work *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    w->tasks = tasks;
    w->n = n;
#if !defined(_WIN32)
    w->process = getpid();
#endif
    begin_work(w, helpers < n ? helpers : n);
    return w;
}

bool ps_page_work_end(ps_page_work *w, bool abandon) {
#if !defined(_WIN32)
    if (w->process != getpid()) { /* helpers are not forked, and cannot be joined */
        free(w->turns);
        free(w);
        return false;
    }
#endif
    if (abandon) w->next = w->n;
    end_work(w);
    free(w);
    return true;
}
