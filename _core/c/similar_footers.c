/* similar_footers.c - footers of many files that have the same columns and the same writer, read together. */
#include "metadata.h"

static bool same(const void *one, size_t length, const void *other, size_t other_length) {
    return length == other_length && (length == 0 || memcmp(one, other, length) == 0);
}

/* A byte string of the footer, which may not be there, as no string. */
static bool same_string(const uint8_t *footer, int64_t offset, int64_t length,
                        const uint8_t *other, size_t other_length) {
    if (offset == PS_ABSENT || !other) return offset == PS_ABSENT && !other;
    return same(footer + offset, (size_t)length, other, other_length);
}

/* Where the value of the first pair lies that has this key. */
static void find_stored(const uint8_t *footer, const ps_footer *f, const char *key,
                        int64_t base, int64_t place[2]) {
    size_t length = strlen(key);
    place[0] = place[1] = PS_ABSENT;
    for (size_t i = 0; i < f->n_key_values; i++) {
        const int64_t *pair = f->key_values + 4 * i;
        if (!same(footer + pair[0], (size_t)pair[1], key, length)) continue;
        place[0] = pair[2], place[1] = pair[3];
        if (place[0] != PS_ABSENT) place[0] += base;
        return;
    }
}

/* Whether a footer with these names is like the model in the rest, too. */
static bool is_similar(const uint8_t *footer, const ps_footer *f,
                       const ps_similar_footer *like) {
    int64_t rows = 0;
    for (size_t i = 0; i < f->n_row_groups; i++) {
        int64_t more = f->row_groups[i].num_rows;
        if (more < 0 || more > INT64_MAX - rows) return false;
        rows += more;
    }
    return rows == f->num_rows && f->encryption == PS_ABSENT &&
           same(f->schema, f->n_schema * sizeof *f->schema, like->schema, like->schema_size) &&
           same(f->column_orders, f->n_column_orders * sizeof *f->column_orders, like->orders,
                like->orders_size) &&
           same_string(footer, f->created_by_offset, f->created_by_length, like->created_by,
                       like->created_by_length);
}

static void shift(int64_t *offset, int64_t by) {
    if (*offset != PS_ABSENT) *offset += by;
}

static bool read_chunks(const uint8_t *footer, size_t length, const ps_footer *f,
                        const uint64_t *leaves, size_t n_leaves, int64_t base, ps_chunk *out) {
    size_t failed;
    for (size_t g = 0; g < f->n_row_groups; g++)
        for (size_t k = 0; k < n_leaves; k++, out++) {
            if (leaves[k] >= f->n_leaves) return false;
            const uint64_t *at = f->chunk_offsets + g * f->n_leaves + leaves[k];
            if (ps_chunks_read(footer, length, at, 1, out, &failed, NULL) != PS_OK)
                return false;
            shift(&out->end, base);
            shift(&out->file_path_offset, base);
            shift(&out->key_values_offset, base);
            shift(&out->statistics.max_offset, base);
            shift(&out->statistics.min_offset, base);
            shift(&out->statistics.max_value_offset, base);
            shift(&out->statistics.min_value_offset, base);
        }
    return true;
}

ps_status ps_footers_read(const uint8_t *data, size_t length, const uint64_t *at, size_t n,
                          const ps_similar_footer *like, const uint64_t *leaves,
                          size_t n_leaves, size_t max_arena, size_t most, size_t *done,
                          int64_t *groups, int64_t *stored, int64_t *rows, ps_chunk *chunks,
                          ps_error *err) {
    size_t used = 0;
    for (*done = 0; *done < n; ++*done) {
        uint64_t start = at[2 * *done], size = at[2 * *done + 1];
        int64_t *found = groups + *done;
        ps_footer f;
        *found = -1;
        if (start > length || size > length - start)
            return ps_fail(err, PS_INVALID, PS_NOWHERE, "footer %zu lies outside the input",
                           *done);
        const uint8_t *footer = data + start;
        if (size < like->names_length ||
            !same(footer, like->names_length, like->names, like->names_length))
            continue;
        if (ps_footer_read(footer, (size_t)size, max_arena, &f, NULL) != PS_OK) continue;
        bool similar = f.n_row_groups <= most && is_similar(footer, &f, like);
        if (similar && f.n_row_groups > most - used) { /* the next call begins with it */
            ps_footer_clear(&f);
            return PS_OK;
        }
        if (similar && read_chunks(footer, (size_t)size, &f, leaves, n_leaves, (int64_t)start,
                                   chunks + used * n_leaves)) {
            for (size_t g = 0; g < f.n_row_groups; g++)
                rows[used + g] = f.row_groups[g].num_rows;
            used += f.n_row_groups;
            for (size_t k = 0; k < like->n_keys; k++)
                find_stored(footer, &f, like->keys[k], (int64_t)start,
                            stored + 2 * (*done * like->n_keys + k));
            *found = (int64_t)f.n_row_groups;
        }
        ps_footer_clear(&f);
    }
    return PS_OK;
}
