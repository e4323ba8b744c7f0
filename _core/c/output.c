/* output.c - the output of a leaf: buffers that grow, validity and byte strings put into them, checks, and the hand-over. */
#include "leaf.h"
#include "utf8.h"

/* ---- buffers ----------------------------------------------------------------------------- */

ps_status ps_grow_reserve(ps_grow *grow, size_t size, size_t limit, ps_error *err) {
    if (size <= grow->capacity && grow->data) return PS_OK;
    if (size > limit) {
        return ps_fail(
            err, PS_LIMIT, PS_NOWHERE,
            "%zu bytes of output are beyond the limit of %zu; raise it with max_output_bytes",
            size, limit);
    }
    size_t capacity = size;
    if (grow->data && capacity < grow->capacity + grow->capacity / 2) {
        capacity = grow->capacity + grow->capacity / 2; /* geometric growth */
        if (capacity > limit) capacity = limit;
    }
    capacity = (capacity + 63) & ~(size_t)63;
    if (capacity == 0) capacity = 64;
    uint8_t *data = grow->data ? ps_buffer_grow(grow->data, grow->capacity, capacity)
                               : ps_buffer_new(capacity);
    if (!data) return ps_fail_nomem(err, capacity);
    grow->data = data;
    grow->capacity = capacity;
    return PS_OK;
}

void ps_grow_drop(ps_grow *grow) {
    ps_buffer_free(grow->data, grow->capacity);
    *grow = (ps_grow){0};
}

/* A buffer that keeps more than it needs is copied: small results stay small. */
ps_status ps_grow_give(ps_grow *grow, size_t size, uint8_t **data, size_t *capacity,
                       ps_error *err) {
    if (grow->capacity > 4096 && size < grow->capacity / 2) {
        size_t fit = size ? (size + 63) & ~(size_t)63 : 64;
        uint8_t *copy = ps_buffer_new(fit);
        if (!copy) return ps_fail_nomem(err, fit);
        if (size) memcpy(copy, grow->data, size);
        ps_grow_drop(grow);
        *grow = (ps_grow){.data = copy, .capacity = fit};
    }
    *data = grow->data;
    *capacity = grow->capacity;
    *grow = (ps_grow){0};
    return PS_OK;
}

/* ---- space in the output ----------------------------------------------------------------- */

ps_status ps_output_grow(const ps_leaf *leaf, ps_grow *grow, size_t size, ps_error *err) {
    return ps_grow_reserve(grow, size, leaf->spec.max_output, err);
}

/* Most times by which byte strings grow at once, in the expectation that rows to come are like those before. */
enum { LEAP = 8 };

ps_status ps_output_grow_strings(ps_leaf *leaf, int64_t rows, size_t size, ps_error *err) {
    ps_grow *grow = &leaf->out.values;
    const size_t limit = leaf->spec.max_output;
    if (size <= grow->capacity && grow->data) return PS_OK;
    if (size <= limit && rows > 0 && rows < leaf->out.capacity) {
        const double likely = (double)size / (double)rows * (double)leaf->out.capacity * 1.03;
        size_t most = size <= limit / LEAP ? size * LEAP : limit;
        if (likely < (double)most) most = (size_t)likely;
        if (ps_grow_reserve(grow, most < size ? size : most, limit, NULL) == PS_OK)
            return PS_OK;
    }
    return ps_grow_reserve(grow, size, limit, err);
}

ps_status ps_output_reserve(ps_leaf *leaf, int64_t rows, ps_error *err) {
    size_t n = (size_t)rows, size = 0;
    if (leaf->bytes) {
        if (!ps_offsets_size(leaf, n, &size)) return ps_fail_nomem(err, SIZE_MAX);
        PS_TRY(ps_output_grow(leaf, &leaf->out.offsets, size, err));
    } else if (leaf->spec.kind == PS_BOOL) {
        PS_TRY(ps_output_grow(leaf, &leaf->out.values, n / 8 + 1, err));
    } else {
        if (!ps_mul_size(n, leaf->out_width, &size)) return ps_fail_nomem(err, SIZE_MAX);
        PS_TRY(ps_output_grow(leaf, &leaf->out.values, size, err));
    }
    if (leaf->out.validity.data)
        PS_TRY(ps_output_grow(leaf, &leaf->out.validity, n / 8 + 1, err));
    leaf->out.capacity = rows;
    return PS_OK;
}

/* ---- validity and byte strings ----------------------------------------------------------- */

ps_status ps_output_add_validity(ps_leaf *leaf, const uint8_t *bits, size_t at, int64_t rows,
                                 int64_t n, ps_error *err) {
    const size_t to = (size_t)leaf->out.rows;
    if (n < rows && !leaf->out.validity.data) {
        PS_TRY(
            ps_output_grow(leaf, &leaf->out.validity, (size_t)leaf->out.capacity / 8 + 1, err));
        ps_bits_fill(leaf->out.validity.data, 0, to, true);
    }
    if (!leaf->out.validity.data) return PS_OK;
    if (n < rows) {
        ps_bits_copy(leaf->out.validity.data, to, bits, at, (size_t)rows);
        leaf->out.null_count += rows - n;
    } else {
        ps_bits_fill(leaf->out.validity.data, to, (size_t)rows, true);
    }
    return PS_OK;
}

ps_status ps_output_add_strings(ps_leaf *leaf, const uint8_t *const *at, const uint32_t *length,
                                size_t n, const uint8_t *end, bool *fit, ps_error *err) {
    if (leaf->views) {
        uint8_t *view = leaf->out.offsets.data + 16 * (size_t)leaf->out.rows;
        *fit = true;
        for (size_t i = 0; i < n; i++, view += 16)
            PS_TRY(ps_views_put(leaf, view, at[i], (size_t)(end - at[i]), length[i], err));
        return PS_OK;
    }
    int64_t size = ps_offset_get(leaf, leaf->out.rows), sum = 0;
    for (size_t i = 0; i < n; i++) sum += length[i];
    *fit = sum <= ps_offset_limit(leaf) - size;
    if (!*fit) return PS_OK;
    leaf->out.values.size = (size_t)size;
    PS_TRY(
        ps_output_grow_strings(leaf, leaf->out.rows + (int64_t)n, (size_t)(size + sum), err));
    const size_t space = leaf->out.values.capacity;
    uint8_t *out = leaf->out.values.data;
    for (size_t i = 0; i < n; i++) {
        ps_copy_string(out + size, space - (size_t)size, at[i], (size_t)(end - at[i]),
                       length[i]);
        size += length[i];
        ps_offset_set(leaf, leaf->out.rows + (int64_t)i + 1, size);
    }
    leaf->out.values.size = (size_t)size;
    return PS_OK;
}

/* ---- checks and the hand-over ------------------------------------------------------------ */

void ps_output_check_text(ps_leaf *leaf) {
    const bool wide = leaf->spec.kind != PS_BYTES;
    const int64_t from = leaf->out.scanned, n = leaf->out.rows - from;
    if (leaf->views) {
        if (leaf->out.unchecked && leaf->spec.utf8 && !ps_views_valid(leaf, from, n))
            leaf->out.faulty = true;
        leaf->out.scanned_bytes = leaf->out.values.size;
    } else if (ps_filter_in_place(leaf)) {
        return; /* the filter checks what it tests */
    } else if (leaf->out.unchecked && leaf->spec.utf8 && leaf->bytes && n) {
        const uint8_t *offsets = leaf->out.offsets.data + (size_t)from * (wide ? 8 : 4);
        if (!ps_utf8_strings_valid(leaf->out.values.data, offsets, wide, n))
            leaf->out.faulty = true;
    }
    leaf->out.unchecked = false;
    leaf->out.scanned = leaf->out.rows;
}

static const uint8_t *string_at(const ps_leaf *leaf, int64_t i, size_t *length) {
    if (leaf->views) return ps_views_bytes(leaf, i, length);
    const int64_t start = ps_offset_get(leaf, i);
    *length = (size_t)(ps_offset_get(leaf, i + 1) - start);
    return leaf->out.values.data + start;
}

/* Names the value at fault, where a scan has found one. */
static ps_status check_utf8(const ps_leaf *leaf, ps_error *err) {
    if (!leaf->out.faulty) return PS_OK;
    int64_t bad = 0;
    if (leaf->spec.kind == PS_BYTES) {
        if (ps_utf8_check_offsets32(leaf->out.values.data,
                                    (const int32_t *)(const void *)leaf->out.offsets.data,
                                    leaf->out.rows, &bad) == PS_OK) {
            return PS_OK;
        }
    } else {
        for (; bad < leaf->out.rows; bad++) {
            size_t length;
            const uint8_t *bytes = string_at(leaf, bad, &length);
            if (ps_utf8_check(bytes, length, NULL) != PS_OK) break;
        }
        if (bad == leaf->out.rows) return PS_OK;
    }
    return ps_fail(err, PS_CORRUPT, PS_NOWHERE, "value %lld of the selected rows is not UTF-8",
                   (long long)bad);
}

/* Some writers store values that Arrow's type does not have. */
static ps_status check_range(const ps_leaf *leaf, ps_error *err) {
    if (leaf->spec.range == 0 || !leaf->out.unranged) return PS_OK;
    const int64_t bad = ps_convert_beyond(&leaf->spec, leaf->out.values.data,
                                          leaf->out.null_count ? leaf->out.validity.data : NULL,
                                          leaf->out.rows);
    if (bad < 0) return PS_OK;
    if (leaf->spec.kind == PS_I32 || leaf->spec.kind == PS_I64) {
        return ps_fail(err, PS_CORRUPT, PS_NOWHERE,
                       "value %lld of the selected rows is not a time of day; "
                       "out_of_range=\"keep\" gives it as it is",
                       (long long)bad);
    }
    return ps_fail(err, PS_CORRUPT, PS_NOWHERE,
                   "value %lld of the selected rows has more than the %lld digits of its type; "
                   "out_of_range=\"keep\" gives it as it is",
                   (long long)bad, (long long)leaf->spec.range);
}

ps_status ps_output_check(ps_leaf *leaf, ps_error *err) {
    ps_output_check_text(leaf);
    PS_TRY(check_utf8(leaf, err));
    return check_range(leaf, err);
}

void ps_column_drop(ps_column *column) {
    ps_buffer_free(column->validity, column->validity_capacity);
    ps_buffer_free(column->values, column->values_capacity);
    ps_buffer_free(column->offsets, column->offsets_capacity);
    *column = (ps_column){0};
}

ps_status ps_output_give(ps_leaf *leaf, ps_column *out, ps_error *err) {
    const size_t n = (size_t)leaf->out.rows;
    out->rows = leaf->out.rows;
    out->n = leaf->out.rows;
    out->null_count = leaf->out.null_count;
    if (leaf->out.null_count == 0) ps_grow_drop(&leaf->out.validity);
    if (leaf->bytes) {
        (void)ps_offsets_size(leaf, n, &out->offsets_size); /* there is memory for more */
        out->values_size = leaf->views ? leaf->out.values.size
                                       : (size_t)ps_offset_get(leaf, leaf->out.rows);
        PS_TRY(ps_grow_give(&leaf->out.offsets, out->offsets_size, &out->offsets,
                            &out->offsets_capacity, err));
    } else {
        out->values_size = leaf->spec.kind == PS_BOOL ? (n + 7) / 8 : n * leaf->out_width;
    }
    if (leaf->out.validity.data) {
        out->validity_size = (n + 7) / 8;
        PS_TRY(ps_grow_give(&leaf->out.validity, out->validity_size, &out->validity,
                            &out->validity_capacity, err));
    }
    PS_TRY(ps_grow_give(&leaf->out.values, out->values_size, &out->values,
                        &out->values_capacity, err));
    if (out->validity) ps_bits_end(out->validity, n);
    if (leaf->spec.kind == PS_BOOL && out->values) ps_bits_end(out->values, n);
    leaf->out.begun = false;
    return PS_OK;
}
