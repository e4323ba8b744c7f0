/* Any nesting levels, pages and selection from the input: what comes out must be lists and values that can be read to
 * their last byte, each list within the slots of the next segment.
 *
 * Input: 6 bytes of form, switches and nesting levels, the selection, then records of one byte of kind, one of flags, and
 * of a page the count and three lengths in two bytes each, and the bytes of these lengths. */
#include "fuzz_pages.h"

static size_t word_of(input *in) {
    const size_t low = byte_of(in);
    return low | (size_t)byte_of(in) << 8;
}

static void read_validity(const ps_column *c) {
    int64_t nulls = 0;
    require(c->n >= 0 && c->null_count >= 0 && c->null_count <= c->n);
    require((c->validity != NULL) == (c->null_count > 0));
    if (!c->validity) return;
    require(c->validity_size == ((size_t)c->n + 7) / 8);
    for (int64_t i = 0; i < c->n; i++) nulls += !(c->validity[i / 8] >> (i % 8) & 1);
    require(nulls == c->null_count);
}

/* The last of n + 1 offsets: they begin at 0 and do not run backwards. */
static int64_t read_offsets(const ps_column *c, size_t width) {
    int64_t last = 0;
    require(c->offsets && c->offsets_size == ((size_t)c->n + 1) * width);
    for (int64_t i = 0; i <= c->n; i++) {
        int64_t at = 0;
        memcpy(&at, c->offsets + (size_t)i * width, width);
        require(at >= last && (i || at == 0));
        last = at;
    }
    return last;
}

/* `whole`: no take has failed, after which values may be wanting. */
static void finish(ps_leaf *leaf, const ps_leaf_spec *spec, bool whole) {
    ps_column values, c;
    ps_error err;
    if (ps_leaf_finish(leaf, &values, &err) != PS_OK) {
        touch_error(&err);
        return;
    }
    read_validity(&values);
    for (size_t i = 0; i < values.values_size; i++) touched ^= values.values[i];
    if (values.offsets)
        require(read_offsets(&values, spec->kind == PS_BYTES ? 4 : 8) <=
                (int64_t)values.values_size);
    int64_t slots = values.rows;
    for (int32_t i = 0; i < spec->n_nesting_levels; i++) {
        require(ps_leaf_nesting_level(leaf, i, &c, &err) == PS_OK);
        require(c.rows == values.rows && (c.n == slots || !whole));
        if (spec->nesting_levels[i].type == PS_NESTING_LIST) {
            slots = read_offsets(&c, 4);
        } else {
            read_validity(&c);
        }
        ps_column_drop(&c);
    }
    require(values.n == (spec->levels_only ? 0 : slots) || !whole);
    ps_column_drop(&values);
}

/* The leaf has a list for each bit of `lists`. */
static void make_nesting(ps_leaf_spec *spec, ps_nesting_level *nesting, uint8_t lists,
                         uint8_t n) {
    spec->n_nesting_levels = n;
    spec->nesting_levels = nesting;
    for (int i = 0; i < n; i++) {
        const bool list = lists >> i & 1;
        spec->max_rep += list;
        nesting[i] = (ps_nesting_level){list, (int16_t)(i + 1), (int16_t)spec->max_rep};
    }
    spec->max_def += n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    static const struct {
        int8_t physical, kind, width;
    } forms[] = {{0, PS_BOOL, 0},  {1, PS_I32, 0},   {2, PS_I64, 0},    {5, PS_F64, 0},
                 {6, PS_BYTES, 0}, {7, PS_FIXED, 3}, {7, PS_FIXED, 16}, {6, PS_LARGE_BYTES, 0}};
    input in = {data, data + length};
    ps_error err;
    ps_leaf *leaf;
    ps_nesting_level nesting[8];
    const uint8_t form = byte_of(&in) % 8, switches = byte_of(&in), most = byte_of(&in);
    const uint8_t lists = byte_of(&in), steps = byte_of(&in), shape = byte_of(&in);
    ps_leaf_spec spec = {.physical = forms[form].physical, .kind = forms[form].kind};
    spec.type_length = spec.width = forms[form].width;
    spec.utf8 = switches & 1;
    spec.max_def = switches >> 1 & 1;
    spec.levels_only = switches >> 2 & 1;
    spec.lsb_levels = switches >> 3 & 1;
    spec.range = switches >> 5;
    spec.max_output = switches & 16 ? 1 << 10 : 1 << 20;
    make_nesting(&spec, nesting, lists, 1 + steps % 8);
    if (steps >= 250) nesting[0].def_level = (int16_t)(steps - 250);
    const int64_t max_rows = most ? most : INT64_MAX;

    ps_range ranges[6];
    ps_selection selection = ranges_of(&in, ranges, shape % 6);
    uint8_t *bitmap = NULL;
    ps_range *runs = NULL;
    if (shape >=
        64) { /* scattered rows: a bitmap, or the same as ranges; a few bytes again and again */
        size_t n;
        const size_t size = 1 + byte_of(&in) % 16, base = byte_of(&in) % 8;
        uint8_t *some = part(&in, size, &n);
        bitmap = malloc(512);
        require(bitmap != NULL);
        for (size_t i = 0; i < 512; i++) bitmap[i] = n ? some[i % n] : 0;
        free(some);
        selection = (ps_selection){.bitmap = bitmap, .base = (int64_t)base, .length = 4096};
        if (shape >= 160) runs = as_ranges(&selection);
    }
    ps_status status = ps_leaf_new(&spec, &leaf, &err);
    if (status != PS_OK) {
        touch_error(&err);
        free(bitmap);
        free(runs);
        return 0;
    }
    uint8_t *dictionary = NULL, *body = NULL, *levels = NULL;
    status = ps_leaf_begin(leaf, &selection, max_rows, most, &err);
    int64_t first = 0;
    ps_take state = PS_TAKE_PAGE;
    while (status == PS_OK && in.p < in.end) {
        const uint8_t what = byte_of(&in), flags = byte_of(&in);
        if (what % 16 == 1) { /* the output so far, and on */
            finish(leaf, &spec, true);
            status = ps_leaf_begin(leaf, &selection, max_rows, 0, &err);
            continue;
        }
        const size_t count = word_of(&in);
        size_t n;
        if (what % 16 == 0) {
            uint8_t *made = part(&in, word_of(&in), &n);
            status = ps_leaf_dictionary(leaf, made, n, (int64_t)count, &err);
            free(dictionary);
            dictionary = made;
            continue;
        }
        ps_page page = {.version = what & 2 ? 1 : 2, .encoding = what >> 4, .num_nulls = -1};
        page.def_encoding = flags & 1 ? 4 : 3;
        page.rep_encoding = flags & 2 ? 4 : 3;
        page.num_values = flags & 4 ? (int64_t)((uint64_t)count << (count & 47))
                                    : (int64_t)count;
        page.index_rows = flags & 8 ? (int64_t)(count >> (flags >> 6)) : -1;
        page.num_rows = flags & 16 ? page.num_values : -1;
        page.whole = flags & 32;
        page.first_row = first;
        free(levels);
        free(body);
        levels = body = NULL;
        if (page.version == 2) {
            const size_t rep = word_of(&in), def = word_of(&in);
            levels = part(&in, rep + def, &n);
            page.levels = levels;
            page.rep_length = rep < n ? rep : n;
            page.def_length = n - page.rep_length;
        }
        body = part(&in, word_of(&in), &page.length);
        page.body = body;
        const size_t reach = ps_leaf_reach(leaf, &page, page.length);
        require(reach == page.length || (spec.levels_only && reach < page.length));
        page.partial = reach < page.length;
        page.length = reach; /* levels come first */
        status = ps_leaf_page(leaf, &page, &err);
        if (status == PS_OK) status = ps_leaf_take(leaf, &state, &err);
        while (status == PS_OK && state == PS_TAKE_FULL) {
            finish(leaf, &spec, true);
            status = ps_leaf_begin(leaf, &selection, max_rows, 0, &err);
            if (status == PS_OK) status = ps_leaf_take(leaf, &state, &err);
        }
        require(ps_leaf_row(leaf) >= 0 && ps_leaf_page_rows(leaf) >= 0);
        if (status == PS_OK && state == PS_TAKE_DONE) break;
        if (__builtin_add_overflow(first, ps_leaf_page_rows(leaf), &first)) break;
    }
    if (status == PS_OK && state == PS_TAKE_PAGE) {
        ps_leaf_end(leaf);
        status = ps_leaf_take(leaf, &state, &err);
    }
    if (status != PS_OK) touch_error(&err);
    finish(leaf, &spec, status == PS_OK);
    ps_leaf_free(leaf);
    free(dictionary);
    free(body);
    free(levels);
    free(bitmap);
    free(runs);
    return 0;
}
