/* footer_edit.c - FileMetaData (parquet.thrift) written again with other places of indexes and other key-value
 * pairs. Everything else is copied byte for byte, unknown fields too. */
#include "metadata.h"
#include "thrift_write.h"

enum {
    CHUNK_EDITS = 5,
    GONE = -1 /* a place that the new footer does not have */
};

typedef struct editor {
    ps_thrift t;
    ps_writer *w;
    const ps_footer_edit *edit;
    size_t chunk; /* the next one, row group by row group */
} editor;

/* One field that is not copied as it is. */
typedef struct change {
    int32_t id;
    int type;      /* PS_T_I32, PS_T_I64: of `value`; else `write` makes the field */
    int64_t value; /* PS_ABSENT: as it was */
    ps_status (*write)(editor *e, const struct change *of, int32_t *last);
    const uint8_t *old; /* its value in the old footer; NULL: there is none */
    int old_type;
} change;

static ps_status copy(editor *e, const uint8_t *from, const uint8_t *to) {
    return ps_write_bytes(e->w, from, (size_t)(to - from));
}

static ps_status write_change(editor *e, const change *of, int32_t *last) {
    if (of->write) return of->write(e, of, last);
    if (of->value == GONE) return PS_OK;
    if (of->value == PS_ABSENT) {
        if (!of->old) return PS_OK;
        PS_TRY(ps_write_field(e->w, last, of->id, of->old_type));
        e->t.p = of->old;
        PS_TRY(ps_thrift_skip(&e->t, of->old_type));
        return copy(e, of->old, e->t.p);
    }
    PS_TRY(ps_write_field(e->w, last, of->id, of->type));
    return ps_write_i64(e->w, of->value);
}

/* Writes the struct at the cursor with changes, which are in the order of their ids. The cursor ends up behind it. */
static ps_status edit_struct(editor *e, change *changes, size_t n) {
    const uint8_t *const start = e->t.p;
    int32_t id = 0, last = 0;
    int type;
    for (size_t i = 0; i < n; i++) changes[i].old = NULL;
    for (;;) { /* where the old values lie: fields may come in any order */
        PS_TRY(ps_thrift_field(&e->t, &type, &id));
        if (type == PS_T_STOP) break;
        for (size_t i = 0; i < n; i++) {
            if (changes[i].id != id) continue;
            if (changes[i].old)
                return ps_fail(e->t.err, PS_CORRUPT, ps_thrift_at(&e->t),
                               "field %d comes twice", (int)id);
            changes[i].old = e->t.p;
            changes[i].old_type = type;
        }
        PS_TRY(ps_thrift_skip(&e->t, type));
    }
    const uint8_t *const end = e->t.p;
    size_t next = 0;
    e->t.p = start;
    id = 0;
    for (;;) {
        PS_TRY(ps_thrift_field(&e->t, &type, &id));
        const uint8_t *const value = e->t.p;
        if (type == PS_T_STOP) break;
        PS_TRY(ps_thrift_skip(&e->t, type));
        const uint8_t *const after = e->t.p;
        bool changed = false;
        for (size_t i = 0; i < n; i++) changed |= changes[i].id == id;
        while (next < n && changes[next].id <= id)
            PS_TRY(write_change(e, &changes[next++], &last));
        if (!changed) {
            PS_TRY(ps_write_field(e->w, &last, id, type));
            PS_TRY(copy(e, value, after));
        }
        e->t.p = after;
    }
    while (next < n) PS_TRY(write_change(e, &changes[next++], &last));
    e->t.p = end;
    return ps_write_stop(e->w);
}

/* The elements of a list of structs at of->old, each by `one`. */
static ps_status edit_list(editor *e, const change *of, int32_t *last,
                           ps_status (*one)(editor *e)) {
    int element;
    size_t count;
    if (!of->old || of->old_type != PS_T_LIST)
        return ps_fail(e->t.err, PS_CORRUPT, PS_NOWHERE, "field %d is no list", (int)of->id);
    e->t.p = of->old;
    PS_TRY(ps_thrift_list(&e->t, &element, &count));
    if (count && element != PS_T_STRUCT)
        return ps_fail(e->t.err, PS_CORRUPT, ps_thrift_at(&e->t), "a list without structs");
    PS_TRY(ps_write_field(e->w, last, of->id, PS_T_LIST));
    PS_TRY(ps_write_list(e->w, element, count)); /* of an empty one it may be any */
    while (count--) PS_TRY(one(e));
    return PS_OK;
}

/* ---- column chunks ----------------------------------------------------------------------- */

static ps_status write_metadata(editor *e, const change *of, int32_t *last) {
    const int64_t *place = e->edit->places + e->chunk * PS_CHUNK_PLACES;
    change changes[] = {
        {.id = 14, .type = PS_T_I64, .value = place[4]}, /* bloom_filter_offset */
        {.id = 15, .type = PS_T_I32, .value = place[5]}, /* bloom_filter_length */
    };
    if (!of->old || of->old_type != PS_T_STRUCT)
        return ps_fail(e->t.err, PS_UNSUPPORTED, PS_NOWHERE,
                       "column chunk %zu has no metadata in the clear", e->chunk);
    e->t.p = of->old;
    PS_TRY(ps_write_field(e->w, last, of->id, PS_T_STRUCT));
    return edit_struct(e, changes, 2);
}

static ps_status edit_chunk(editor *e) {
    if (e->chunk >= e->edit->n_chunks)
        return ps_fail(e->t.err, PS_INVALID, PS_NOWHERE, "places for %zu column chunks only",
                       e->edit->n_chunks);
    const int64_t *place = e->edit->places + e->chunk * PS_CHUNK_PLACES;
    change changes[CHUNK_EDITS] = {
        {.id = 3, .write = write_metadata},
        {.id = 4, .type = PS_T_I64, .value = place[0]}, /* offset_index_offset */
        {.id = 5, .type = PS_T_I32, .value = place[1]},
        {.id = 6, .type = PS_T_I64, .value = place[2]}, /* column_index_offset */
        {.id = 7, .type = PS_T_I32, .value = place[3]},
    };
    PS_TRY(edit_struct(e, changes, CHUNK_EDITS));
    e->chunk++;
    return PS_OK;
}

static ps_status write_chunks(editor *e, const change *of, int32_t *last) {
    return edit_list(e, of, last, edit_chunk);
}

static ps_status edit_row_group(editor *e) {
    change changes[] = {{.id = 1, .write = write_chunks}};
    return edit_struct(e, changes, 1);
}

static ps_status write_row_groups(editor *e, const change *of, int32_t *last) {
    return edit_list(e, of, last, edit_row_group);
}

/* ---- the file ---------------------------------------------------------------------------- */

static bool is_dropped(const ps_footer_edit *edit, const uint8_t *key, int64_t length) {
    for (size_t i = 0; i < edit->n_dropped; i++) {
        const int64_t *d = edit->dropped + 2 * i;
        if (d[1] == length && !memcmp(edit->text + d[0], key, (size_t)length)) return true;
    }
    return false;
}

/* Reads the key of the KeyValue at the cursor, which ends up behind it. */
static ps_status key_of(ps_thrift *t, int64_t *offset, int64_t *length) {
    int type;
    int32_t id = 0;
    *length = -1;
    for (;;) {
        PS_TRY(ps_thrift_field(t, &type, &id));
        if (type == PS_T_STOP) return PS_OK;
        if (id == 1 && type == PS_T_BINARY) {
            PS_TRY(ps_thrift_binary(t, offset, length));
        } else {
            PS_TRY(ps_thrift_skip(t, type));
        }
    }
}

/* Writes the old pairs that stay, then the new ones; no list where there are none. */
static ps_status write_key_values(editor *e, const change *of, int32_t *last) {
    const ps_footer_edit *edit = e->edit;
    const uint8_t *first = NULL;
    size_t count = 0, left = 0;
    int64_t offset = 0, length;
    if (of->old && of->old_type == PS_T_LIST) {
        int element;
        e->t.p = of->old;
        PS_TRY(ps_thrift_list(&e->t, &element, &count));
        if (count && element != PS_T_STRUCT)
            return ps_fail(e->t.err, PS_CORRUPT, ps_thrift_at(&e->t), "a list without structs");
        first = e->t.p;
        for (size_t i = 0; i < count; i++) {
            PS_TRY(key_of(&e->t, &offset, &length));
            left += length < 0 || !is_dropped(edit, e->t.data + offset, length);
        }
    }
    if (left + edit->n_added == 0 && edit->n_dropped) return PS_OK;
    if (!of->old && edit->n_added == 0) return PS_OK;
    PS_TRY(ps_write_field(e->w, last, of->id, PS_T_LIST));
    PS_TRY(ps_write_list(e->w, PS_T_STRUCT, left + edit->n_added));
    e->t.p = first;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *start = e->t.p;
        PS_TRY(key_of(&e->t, &offset, &length));
        if (length < 0 || !is_dropped(edit, e->t.data + offset, length))
            PS_TRY(copy(e, start, e->t.p));
    }
    for (size_t i = 0; i < edit->n_added; i++) {
        const int64_t *pair = edit->added + 4 * i;
        int32_t id = 0;
        PS_TRY(ps_write_field(e->w, &id, 1, PS_T_BINARY));
        PS_TRY(ps_write_binary(e->w, edit->text + pair[0], (size_t)pair[1]));
        PS_TRY(ps_write_field(e->w, &id, 2, PS_T_BINARY));
        PS_TRY(ps_write_binary(e->w, edit->text + pair[2], (size_t)pair[3]));
        PS_TRY(ps_write_stop(e->w));
    }
    return PS_OK;
}

/* TYPE_ORDER for every leaf, where the file says nothing of orders. */
static ps_status write_column_orders(editor *e, const change *of, int32_t *last) {
    if (e->edit->n_orders < 0) return PS_OK;
    if (of->old) {
        PS_TRY(ps_write_field(e->w, last, of->id, of->old_type));
        e->t.p = of->old;
        PS_TRY(ps_thrift_skip(&e->t, of->old_type));
        return copy(e, of->old, e->t.p);
    }
    if (!e->edit->n_orders) return PS_OK;
    PS_TRY(ps_write_field(e->w, last, of->id, PS_T_LIST));
    PS_TRY(ps_write_list(e->w, PS_T_STRUCT, (size_t)e->edit->n_orders));
    for (int64_t i = 0; i < e->edit->n_orders; i++) {
        int32_t id = 0;
        PS_TRY(ps_write_field(e->w, &id, 1, PS_T_STRUCT)); /* TYPE_ORDER, without a field */
        PS_TRY(ps_write_stop(e->w));
        PS_TRY(ps_write_stop(e->w));
    }
    return PS_OK;
}

static bool lies_in(int64_t offset, int64_t length, size_t size) {
    return offset >= 0 && length >= 0 && (uint64_t)offset <= size &&
           (uint64_t)length <= size - (uint64_t)offset;
}

static ps_status check_edit(const ps_footer_edit *edit, ps_error *err) {
    bool fits = true;
    for (size_t i = 0; i < edit->n_dropped; i++)
        fits &= lies_in(edit->dropped[2 * i], edit->dropped[2 * i + 1], edit->text_length);
    for (size_t i = 0; i < 2 * edit->n_added; i++)
        fits &= lies_in(edit->added[2 * i], edit->added[2 * i + 1], edit->text_length);
    if (!fits)
        return ps_fail(err, PS_INVALID, PS_NOWHERE, "a key or value outside of its text");
    for (size_t i = 0; i < edit->n_chunks * PS_CHUNK_PLACES; i++) {
        const int64_t v = edit->places[i];
        const bool length = i % 2;
        if (v != PS_ABSENT && (v < GONE || (length && v > INT32_MAX)))
            return ps_fail(err, PS_INVALID, PS_NOWHERE, "a place of %lld", (long long)v);
    }
    return PS_OK;
}

ps_status ps_footer_edited(const uint8_t *data, size_t length, const ps_footer_edit *edit,
                           ps_writer *out, ps_error *err) {
    editor e = {.t = ps_thrift_open(data, length, NULL, err), .w = out, .edit = edit};
    change changes[] = {
        {.id = 4, .write = write_row_groups},
        {.id = 5, .write = write_key_values},
        {.id = 7, .write = write_column_orders},
    };
    out->err = err;
    PS_TRY(check_edit(edit, err));
    PS_TRY(edit_struct(&e, changes, 3));
    if (e.chunk != edit->n_chunks)
        return ps_fail(err, PS_INVALID, PS_NOWHERE, "places for %zu column chunks, not %zu",
                       edit->n_chunks, e.chunk);
    return PS_OK;
}
