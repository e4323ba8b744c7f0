/* Any form, dictionary, pages and selection from the input: every answer must be an Arrow column that can be
 * read to its last byte.
 *
 * Input: 5 bytes of form and switches, the selection, then records of one byte of kind, two of length, and that many bytes. */
#include "fuzz_pages.h"
#include "utf8.h"

/* Each view is short and padded with zeros, or begins like the bytes that it points to. */
static void read_views(const ps_leaf_spec *spec, const ps_column *c) {
    static const uint8_t zeros[16];
    require(c->offsets_size == (size_t)c->n * 16);
    for (int64_t i = 0; i < c->n; i++) {
        const uint8_t *view = c->offsets + 16 * i, *bytes = view + 4;
        const size_t length = ps_load32(view);
        if (length <= 12) {
            require(memcmp(bytes + length, zeros, 12 - length) == 0);
        } else {
            const size_t at = ((size_t)ps_load32(view + 8) << 30) + ps_load32(view + 12);
            require(at <= c->values_size && length <= c->values_size - at);
            bytes = c->values + at;
            require(memcmp(view + 4, bytes, 4) == 0);
        }
        if (spec->utf8) require(ps_utf8_check(bytes, length, NULL) == PS_OK);
    }
}

static void read_column(const ps_leaf_spec *spec, ps_column *c) {
    require(c->n >= 0 && c->null_count >= 0 && c->null_count <= c->n);
    require((c->validity != NULL) || c->null_count == 0);
    for (size_t i = 0; i < c->validity_size; i++) touched ^= c->validity[i];
    for (size_t i = 0; i < c->values_size; i++) touched ^= c->values[i];
    if (c->validity) {
        int64_t nulls = 0;
        for (int64_t i = 0; i < c->n; i++) nulls += !(c->validity[i / 8] >> (i % 8) & 1);
        require(nulls == c->null_count);
    }
    if (spec->kind == PS_VIEWS) {
        read_views(spec, c);
    } else if (c->offsets) {
        size_t width = spec->kind == PS_BYTES ? 4 : 8;
        int64_t last = 0;
        require(c->offsets_size == ((size_t)c->n + 1) * width);
        for (int64_t i = 0; i <= c->n; i++) {
            int64_t at = 0;
            memcpy(&at, c->offsets + (size_t)i * width, width);
            require(at >= last && (uint64_t)at <= c->values_size && (i || at == 0));
            last = at;
        }
    }
    ps_column_drop(c);
}

static void finish(ps_leaf *leaf, const ps_leaf_spec *spec) {
    ps_column c;
    ps_error err;
    if (ps_leaf_finish(leaf, &c, &err) == PS_OK) {
        read_column(spec, &c);
    } else {
        touch_error(&err);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    input in = {data, data + length};
    ps_error err;
    ps_leaf *leaf;
    ps_leaf_spec spec = {.physical = byte_of(&in) % 9, .kind = byte_of(&in) % 18};
    uint8_t width = byte_of(&in), switches = byte_of(&in), shape = byte_of(&in),
            n_ranges = shape % 6;
    spec.type_length = spec.physical == 7 ? (int8_t)width : 0;
    spec.width = spec.type_length;
    spec.unit = width % 5;
    spec.utf8 = switches & 1;
    spec.max_def = switches >> 1 & 1;
    spec.max_output = 1 << 20;
    spec.likely_rows = width & 1;
    spec.range = width % 79; /* digits, or a short day */
    int64_t max_rows = switches & 4 ? 1 + switches / 8 : INT64_MAX;

    ps_range ranges[6];
    ps_selection selection = ranges_of(&in, ranges, n_ranges);
    uint8_t *bitmap = NULL;
    ps_range *runs = NULL;
    if (shape >= 128) { /* scattered rows: a bitmap, or the same as ranges */
        size_t n, size = byte_of(&in);
        int64_t base = byte_of(&in);
        bitmap = part(&in, size, &n);
        selection = (ps_selection){
            .bitmap = bitmap, .base = base, .length = (int64_t)(8 * n) - (n ? shape % 8 : 0)};
        if (shape >= 192) runs = as_ranges(&selection);
    }
    if (ps_leaf_new(&spec, &leaf, &err) != PS_OK) {
        touch_error(&err);
        free(bitmap);
        free(runs);
        return 0;
    }
    uint8_t *dictionary = NULL, *body = NULL, *levels = NULL;
    ps_status status = ps_leaf_begin(leaf, &selection, max_rows, width, &err);
    int64_t first = 0;
    while (status == PS_OK && in.p < in.end) {
        uint8_t what = byte_of(&in), count = byte_of(&in);
        size_t size = byte_of(&in), n;
        if (what % 8 == 0) { /* a dictionary */
            uint8_t *made = part(&in, size, &n);
            status = ps_leaf_dictionary(leaf, made, n, count, &err);
            free(dictionary);
            dictionary = made;
            continue;
        }
        ps_page page = {
            .version = what & 1 ? 1 : 2, .encoding = what >> 3 & 15, .num_nulls = -1};
        page.def_encoding = what & 2 ? 3 : 4;
        page.rep_encoding = 3;
        page.num_values = what & 128 ? (int64_t)((uint64_t)count << (what & 63)) : count;
        page.num_rows = what & 4 ? -1 : page.num_values;
        page.partial = switches & 128;
        page.first_row = first;
        free(levels);
        free(body);
        levels = body = NULL;
        if (page.version == 2) {
            levels = part(&in, byte_of(&in), &n);
            page.levels = levels;
            page.rep_length = 0;
            page.def_length = n;
        }
        body = part(&in, size, &page.length);
        page.body = body;
        require(ps_leaf_reach(leaf, &page, page.length) <= page.length);
        status = ps_leaf_page(leaf, &page, &err);
        ps_take state = PS_TAKE_PAGE;
        if (status == PS_OK) status = ps_leaf_take(leaf, &state, &err);
        while (status == PS_OK && state == PS_TAKE_FULL) {
            finish(leaf, &spec);
            status = ps_leaf_begin(leaf, &selection, max_rows, 0, &err);
            if (status == PS_OK) status = ps_leaf_take(leaf, &state, &err);
        }
        require(ps_leaf_row(leaf) >= 0);
        if (status == PS_OK && state == PS_TAKE_DONE) break;
        if (__builtin_add_overflow(first, page.num_values, &first)) break;
    }
    if (status != PS_OK) touch_error(&err);
    finish(leaf, &spec);
    ps_leaf_free(leaf);
    free(dictionary);
    free(body);
    free(levels);
    free(bitmap);
    free(runs);
    return 0;
}
