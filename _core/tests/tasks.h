/* tasks.h - tasks of eight int32 rows a page, of which three are selected. */
#ifndef PAGESEEK_TASKS_H
#define PAGESEEK_TASKS_H

#include "../pageseek.h"
#include "check.h"
#include "task_pages.h"

enum { INT32 = 1, ROWS = 8 };

static const ps_range TWO[2] = {{1, 3}, {5, 6}};

static ps_task_page page_of(const bytes *data, int first_row) {
    return (ps_task_page){data->data, data->length, first_row, ROWS, NULL, 0, NULL};
}

static ps_page_task task_of(ps_leaf *leaf, const ps_task_page *pages, size_t n,
                            const bytes *dictionary) {
    return (ps_page_task){.leaf = leaf,
                          .pages = pages,
                          .n_pages = n,
                          .dictionary = dictionary ? dictionary->data : NULL,
                          .dictionary_length = dictionary ? dictionary->length : 0,
                          .selection = {.ranges = TWO, .n_ranges = 2},
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

#endif
