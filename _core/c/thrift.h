/* thrift.h - a bounds-checked cursor over the Thrift compact protocol, and a decoder driven by
 * tables. Internal to the files that read metadata.
 *
 * A struct of the format is described by a ps_struct_spec and decoded into a record of int64_t
 * that the caller has filled with PS_ABSENT. What holds for every struct:
 *   - a field that is not in the table is skipped, of any type;
 *   - a field of the table with another wire type is skipped when it is optional (it stays absent)
 *     and PS_CORRUPT when it is required; so is a required field that is missing;
 *   - a field that comes twice is PS_CORRUPT: lists that belong together could then disagree;
 *   - PS_TRUNCATED always means that more input could cure it: a value, or the elements that a
 *     list claims, reach beyond the end.
 * https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md */
#ifndef PAGESEEK_THRIFT_H
#define PAGESEEK_THRIFT_H

#include "base.h"

typedef struct ps_thrift {
    const uint8_t *data, *p, *end; /* the whole input, where we are, its end */
    ps_error *err;                 /* may be NULL */
    void *context;                 /* for the list readers of a table */
} ps_thrift;

enum { /* wire types; list elements of either bool type are one byte each */
       PS_T_STOP,
       PS_T_TRUE,
       PS_T_FALSE,
       PS_T_BYTE,
       PS_T_I16,
       PS_T_I32,
       PS_T_I64,
       PS_T_DOUBLE,
       PS_T_BINARY,
       PS_T_LIST,
       PS_T_SET,
       PS_T_MAP,
       PS_T_STRUCT,
       PS_T_UUID
};

#define PS_THRIFT_DEPTH 64 /* containers inside each other in what is skipped */

/* ---- the cursor -------------------------------------------------------------------------- */

PS_INLINE uint64_t ps_thrift_at(const ps_thrift *t) {
    return (uint64_t)(t->p - t->data);
}
PS_INLINE size_t ps_thrift_left(const ps_thrift *t) {
    return (size_t)(t->end - t->p);
}

ps_status ps_thrift_varint(ps_thrift *t, uint64_t *out);
ps_status ps_thrift_i64(ps_thrift *t, int64_t *out);
/* An integer of wire type PS_T_BYTE, I16, I32 or I64; PS_CORRUPT outside the type's range. */
ps_status ps_thrift_int(ps_thrift *t, int type, int64_t *out);
ps_status ps_thrift_binary(ps_thrift *t, int64_t *offset, int64_t *length);
/* *type = PS_T_STOP at the end of the struct; *id is that of the field before, 0 at the start. */
ps_status ps_thrift_field(ps_thrift *t, int *type, int32_t *id);
/* *count is at most the bytes left. */
ps_status ps_thrift_list(ps_thrift *t, int *element, size_t *count);
/* A bool element, written as 1 and 2 or as 1 and 0. */
ps_status ps_thrift_bool(ps_thrift *t, uint8_t *out);
/* A field's value. A bool field has no bytes. */
ps_status ps_thrift_skip(ps_thrift *t, int type);
/* Skips without the short cut for structs: the oracle of its tests. */
ps_status ps_thrift_skip_carefully(ps_thrift *t, int type);

/* ---- structs with a common layout (walk.c) ----------------------------------------------- */

#define PS_LAYOUTS      16
#define PS_LAYOUT_BYTES 256
#define PS_LAYOUT_RUNS  32

/* A layout that structs of a list share: the bytes that decide where each next byte lies. */
typedef struct ps_layout {
    uint8_t byte[PS_LAYOUT_BYTES], mask[PS_LAYOUT_BYTES]; /* equal bits: the same way on */
    uint8_t start[PS_LAYOUT_BYTES]; /* where the integer begins that a byte belongs to */
    uint8_t stop[PS_LAYOUT_RUNS];   /* a byte string follows, except on the last run */
    size_t n, n_runs, misfits;      /* misfits: integers that were of another length */
    bool failed;
} ps_layout;

typedef struct ps_layouts {
    size_t n;                     /* start with 0; the rest need not be initialised */
    ps_layout at[PS_LAYOUTS + 1]; /* the one behind those known is learned next */
} ps_layouts;

/* ps_thrift_skip of a struct, with the same result for any input, but quick when its layout is
 * among those known; if not it is added, if there is space. *layout is a guess, any number will do:
 * best that of a struct which probably has the same one. It is set to the layout that fits, if one does. */
ps_status ps_thrift_skip_similar(ps_thrift *t, ps_layouts *known, uint8_t *layout);

/* The skips try these first. False means that the walk cannot go on, and says nothing of the input. */
bool ps_thrift_walk(ps_thrift *t);
bool ps_thrift_walk_similar(ps_thrift *t, ps_layouts *known, uint8_t *layout);

/* ---- tables ------------------------------------------------------------------------------ */

typedef enum ps_field_kind {
    PS_FIELD_UNKNOWN = 0,
    PS_FIELD_BOOL, /* 0 or 1 */
    PS_FIELD_I8,
    PS_FIELD_I16,
    PS_FIELD_I32,
    PS_FIELD_I64,
    PS_FIELD_COUNT32,
    PS_FIELD_COUNT64, /* an i32 or i64 that is PS_CORRUPT when negative */
    PS_FIELD_BINARY,  /* offset into the slot, length into the next */
    PS_FIELD_STRUCT,  /* 1 into the slot; its fields by `nested`, slots counted from `base` */
    PS_FIELD_UNION,   /* id of the member into the slot; 0 = unknown, none, or several */
    PS_FIELD_LIST,    /* `read`, if elements are of wire type `element`, or if there are none */
    PS_FIELD_WHERE    /* byte of the list into the slot; not decoded */
} ps_field_kind;

#define PS_NO_SLOT              UINT8_MAX
#define PS_SLOT(record, member) ((uint8_t)(offsetof(record, member) / sizeof(int64_t)))
#define PS_FIELD(id)            (UINT32_C(1) << (id))

struct ps_struct_spec;
typedef struct ps_field_spec {
    const char *name;
    uint8_t kind, slot, base, element;
    const struct ps_struct_spec *nested; /* of a union member: NULL = nothing to decode */
    ps_status (*read)(ps_thrift *t, size_t count, int64_t *record);
} ps_field_spec;

typedef struct ps_struct_spec {
    const char *name;
    const ps_field_spec *fields; /* indexed by field id */
    int32_t n_fields;            /* at most 32 */
    uint32_t required;           /* PS_FIELD(id) | ... */
} ps_struct_spec;

#define PS_STRUCT(name, fields, required)                                                      \
    {name, fields, (int32_t)(sizeof(fields) / sizeof((fields)[0])), required}

ps_status ps_thrift_struct(ps_thrift *t, const ps_struct_spec *spec, int64_t *record);
ps_status ps_thrift_union(ps_thrift *t, const ps_struct_spec *spec, int64_t *member,
                          int64_t *record);

/* A record of int64_t with every field absent. */
PS_INLINE void ps_record_clear(void *record, size_t size) {
    int64_t *slots = record;
    for (size_t i = 0; i < size / sizeof *slots; i++) slots[i] = PS_ABSENT;
}

#endif
