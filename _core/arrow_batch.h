/* arrow_batch.h - decoded columns as one record batch of Arrow's C data interface.
 *
 * It belongs to points.pyx. The layout and the rules of release are those of the specification (Arrow, "The Arrow C data
 * interface"). */
#ifndef PAGESEEK_ARROW_BATCH_H
#define PAGESEEK_ARROW_BATCH_H

#include <stdlib.h>
#include <string.h>

#include "pageseek.h"

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE
struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};
#endif

/* Bytes after which a further data buffer of views begins. */
#define PS_VIEW_DATA ((size_t)1 << 30)

/* What a column owns. Whoever imports a batch may move a column out of it, so each is freed by itself. */
typedef struct ps_batch_column {
    ps_column column;
    int64_t *sizes;        /* of views: the bytes of each data buffer; behind `buffers` */
    const void *buffers[]; /* as the layout has them */
} ps_batch_column;

/* What a batch owns. */
typedef struct ps_batch {
    const void *buffers[1]; /* no row of a batch is null */
    struct ArrowArray **children;
    struct ArrowArray *columns;
} ps_batch;

static inline void ps_batch_column_release(struct ArrowArray *array) {
    ps_batch_column *own = array->private_data;
    ps_column_drop(&own->column);
    free(own);
    array->release = NULL;
}

static inline void ps_batch_release(struct ArrowArray *array) {
    ps_batch *own = array->private_data;
    for (int64_t i = 0; i < array->n_children; i++)
        if (own->columns[i].release) own->columns[i].release(&own->columns[i]);
    free(own->columns);
    free(own->children);
    free(own);
    array->release = NULL;
}

/* A column with its buffers; NULL if memory is short. */
static inline ps_batch_column *ps_batch_column_new(const ps_column *c, bool views,
                                                   int64_t *n_buffers) {
    const size_t data = views ? (c->values_size + PS_VIEW_DATA - 1) / PS_VIEW_DATA : 1;
    const size_t most = 3 + data; /* validity, offsets or views, sizes */
    ps_batch_column *of = malloc(sizeof *of + most * sizeof *of->buffers +
                                 data * sizeof *of->sizes);
    if (!of) return NULL;
    size_t k = 0;
    of->column = *c;
    of->sizes = (int64_t *)(of->buffers + most);
    of->buffers[k++] = c->validity;
    if (c->offsets) of->buffers[k++] = c->offsets;
    if (!views) of->buffers[k++] = c->values;
    for (size_t i = 0; views && i < data; i++) {
        const size_t at = i * PS_VIEW_DATA, left = c->values_size - at;
        of->buffers[k++] = c->values + at;
        of->sizes[i] =
            (int64_t)left; /* a string may go on behind the beginning of the next one */
    }
    if (views) of->buffers[k++] = of->sizes;
    *n_buffers = (int64_t)k;
    return of;
}

/* Makes a batch of n columns, each of `rows` values, and takes their buffers; those it has taken are zero in `columns`. False
 * if memory is short: `out` has no release function then. `leaves`: of the columns. */
static inline bool ps_batch_make(struct ArrowArray *out, ps_column *columns,
                                 const ps_point_leaf *leaves, const size_t *order, size_t n,
                                 int64_t rows) {
    memset(out, 0, sizeof *out);
    ps_batch *own = calloc(1, sizeof *own);
    if (!own) return false;
    own->columns = calloc(n + 1, sizeof *own->columns);
    own->children = calloc(n + 1, sizeof *own->children);
    out->private_data = own;
    out->release = ps_batch_release;
    out->length = rows;
    out->n_buffers = 1;
    out->buffers = own->buffers;
    if (!own->columns || !own->children) {
        ps_batch_release(out);
        return false;
    }
    out->children = own->children;
    for (size_t i = 0; i < n; i++) {
        struct ArrowArray *array = &own->columns[i];
        ps_batch_column *of = ps_batch_column_new(
            &columns[order[i]], leaves[order[i]].spec.kind == PS_VIEWS, &array->n_buffers);
        if (!of) {
            ps_batch_release(out);
            return false;
        }
        memset(&columns[order[i]], 0, sizeof *columns);
        array->length = of->column.n;
        array->null_count = of->column.null_count;
        array->buffers = of->buffers;
        array->release = ps_batch_column_release;
        array->private_data = of;
        own->children[i] = array;
        out->n_children = (int64_t)i + 1;
    }
    return true;
}

#endif
