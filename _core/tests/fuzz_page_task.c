/* A page and its dictionary as they lie in a file, in any form and of any codec: an answer must be an Arrow column, and the
 * leaf as good as before.
 *
 * Input: physical type, kind, width; switches (nullable, codes only, chunk, a dictionary by itself, two of codec); rows; the selection;
 * two bytes of the dictionary's length, the dictionary, the page. */
#include "../pages.h"
#include "fuzz_pages.h"

static void read_column(ps_column *c) {
    require(c->n >= 0 && c->null_count >= 0 && c->null_count <= c->n);
    for (size_t i = 0; i < c->validity_size; i++) touched ^= c->validity[i];
    for (size_t i = 0; i < c->values_size; i++) touched ^= c->values[i];
    for (size_t i = 0; i < c->offsets_size; i++) touched ^= c->offsets[i];
    drop(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    input in = {data, data + length};
    ps_leaf *leaf;
    ps_leaf_spec spec = {.physical = byte_of(&in) % 9, .kind = byte_of(&in) % 18};
    const uint8_t width = byte_of(&in), switches = byte_of(&in), rows = byte_of(&in);
    spec.type_length = spec.width = spec.physical == 7 ? (int8_t)width : 0;
    spec.unit = width % 5;
    spec.max_def = switches & 1;
    spec.max_output = 1 << 20;
    if (ps_leaf_new(&spec, &leaf, NULL) != PS_OK) return 0;
    ps_range ranges[2];
    ps_page_task task = {.leaf = leaf,
                         .selection = ranges_of(&in, ranges, 2),
                         .codes_only = switches & 2,
                         .chunk = switches & 4,
                         .codec = (ps_codec)(switches >> 4 & 3),
                         .step = 1,
                         .rows = rows,
                         .max_page = 1 << 20,
                         .max_values = 1 << 10};
    uint8_t *dictionary = NULL;
    if (switches & 8) {
        const size_t size = byte_of(&in) + ((size_t)byte_of(&in) << 8);
        task.dictionary = dictionary = part(&in, size, &task.dictionary_length);
    }
    uint8_t *page = part(&in, (size_t)(in.end - in.p), &task.length);
    task.data = page;
    for (int i = 0; i < 2; i++) {
        ps_page_task again = task;
        ps_page_tasks(&again, 1, 1);
        if (i == 0) task.state = again.state;
        require(again.state == task.state);
        if (again.state == PS_TASK_DONE) read_column(&again.column);
    }
    ps_leaf_free(leaf);
    free(dictionary);
    free(page);
    return 0;
}
