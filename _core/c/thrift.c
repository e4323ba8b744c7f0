/* thrift.c - the Thrift compact protocol: values, structs by tables, and skipped fields. */
#include "thrift.h"

/* ---- failures ---------------------------------------------------------------------------- */

static PS_COLD ps_status truncated(const ps_thrift *t, const char *inside) {
    return ps_fail(t->err, PS_TRUNCATED, (uint64_t)(t->end - t->data),
                   "the input ends inside %s", inside);
}

static PS_COLD ps_status corrupt(const ps_thrift *t, const uint8_t *at, const char *what) {
    return ps_fail(t->err, PS_CORRUPT, (uint64_t)(at - t->data), "%s", what);
}

/* ---- values ------------------------------------------------------------------------------ */

ps_status ps_thrift_varint(ps_thrift *t, uint64_t *out) {
    const uint8_t *p = t->p;
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (PS_UNLIKELY(p == t->end)) return truncated(t, "an integer");
        uint64_t byte = *p++;
        if (PS_UNLIKELY(shift == 63 && byte > 1)) break;
        v |= (byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = v;
            t->p = p;
            return PS_OK;
        }
    }
    return corrupt(t, t->p, "an integer of more than 64 bits");
}

ps_status ps_thrift_i64(ps_thrift *t, int64_t *out) {
    uint64_t v = 0;
    PS_TRY(ps_thrift_varint(t, &v));
    *out = (int64_t)((v >> 1) ^ (0 - (v & 1)));
    return PS_OK;
}

ps_status ps_thrift_int(ps_thrift *t, int type, int64_t *out) {
    const uint8_t *at = t->p;
    if (type == PS_T_BYTE) {
        if (at == t->end) return truncated(t, "an integer");
        *out = *t->p++;
        if (*out > INT8_MAX) *out -= 256;
        return PS_OK;
    }
    PS_TRY(ps_thrift_i64(t, out));
    if (type == PS_T_I32 && PS_UNLIKELY(*out < INT32_MIN || *out > INT32_MAX))
        return corrupt(t, at, "a 32-bit integer that needs more bits");
    if (type == PS_T_I16 && PS_UNLIKELY(*out < INT16_MIN || *out > INT16_MAX))
        return corrupt(t, at, "a 16-bit integer that needs more bits");
    return PS_OK;
}

ps_status ps_thrift_binary(ps_thrift *t, int64_t *offset, int64_t *length) {
    const uint8_t *at = t->p;
    uint64_t n = 0;
    PS_TRY(ps_thrift_varint(t, &n));
    if (PS_UNLIKELY(n > INT32_MAX))
        return corrupt(t, at, "a byte string of more than 2^31 - 1 bytes");
    if (PS_UNLIKELY(n > ps_thrift_left(t))) return truncated(t, "a byte string");
    *offset = (int64_t)ps_thrift_at(t);
    *length = (int64_t)n;
    t->p += n;
    return PS_OK;
}

ps_status ps_thrift_field(ps_thrift *t, int *type, int32_t *id) {
    const uint8_t *at = t->p;
    if (PS_UNLIKELY(at == t->end)) return truncated(t, "a struct");
    int header = *t->p++;
    *type = header & 15;
    if (PS_LIKELY(header >> 4)) {
        if (PS_UNLIKELY(*type == PS_T_STOP)) return corrupt(t, at, "a field without a type");
        *id += header >> 4;
        if (PS_UNLIKELY(*id > INT16_MAX))
            return corrupt(t, at, "a field id of more than 16 bits");
    } else if (*type != PS_T_STOP) {
        int64_t long_id;
        PS_TRY(ps_thrift_int(t, PS_T_I16, &long_id));
        *id = (int32_t)long_id;
    }
    return PS_OK;
}

ps_status ps_thrift_list(ps_thrift *t, int *element, size_t *count) {
    const uint8_t *at = t->p;
    if (PS_UNLIKELY(at == t->end)) return truncated(t, "a list");
    uint64_t n = *at >> 4;
    *element = *at & 15;
    t->p++;
    if (n == 15) PS_TRY(ps_thrift_varint(t, &n));
    if (PS_UNLIKELY(n > INT32_MAX))
        return corrupt(t, at, "a list of more than 2^31 - 1 elements");
    /* every element has a byte at least, an empty struct its stop */
    if (PS_UNLIKELY(n > ps_thrift_left(t))) return truncated(t, "a list");
    if (PS_UNLIKELY(n > 0 && (*element == PS_T_STOP || *element > PS_T_UUID)))
        return corrupt(t, at, "a list with elements of no known type");
    *count = (size_t)n;
    return PS_OK;
}

ps_status ps_thrift_bool(ps_thrift *t, uint8_t *out) {
    if (PS_UNLIKELY(t->p == t->end)) return truncated(t, "a list");
    if (PS_UNLIKELY(*t->p > 2))
        return corrupt(t, t->p, "a bool that is neither true nor false");
    *out = *t->p++ == 1;
    return PS_OK;
}

/* ---- skipping ---------------------------------------------------------------------------- */

/* A value as it stands in a list, where a bool has a byte. */
static ps_status skip_element(ps_thrift *t, int type, int depth) {
    uint64_t n = 0;
    int64_t where, length;
    size_t count, size = 1;
    int key, value;
    if (type >= PS_T_LIST && type <= PS_T_STRUCT && depth >= PS_THRIFT_DEPTH)
        return ps_fail(t->err, PS_LIMIT, ps_thrift_at(t), "values nested deeper than %d",
                       PS_THRIFT_DEPTH);
    switch (type) {
    case PS_T_I16:
    case PS_T_I32:
    case PS_T_I64: return ps_thrift_varint(t, &n);
    case PS_T_BINARY: return ps_thrift_binary(t, &where, &length);
    case PS_T_TRUE:
    case PS_T_FALSE:
    case PS_T_BYTE: break;
    case PS_T_DOUBLE: size = 8; break;
    case PS_T_UUID: size = 16; break;
    case PS_T_LIST:
    case PS_T_SET:
        PS_TRY(ps_thrift_list(t, &value, &count));
        while (count--) PS_TRY(skip_element(t, value, depth + 1));
        return PS_OK;
    case PS_T_MAP:
        PS_TRY(ps_thrift_varint(t, &n));
        if (n == 0) return PS_OK;
        if (n > INT32_MAX) return corrupt(t, t->p, "a map of more than 2^31 - 1 entries");
        if (n > ps_thrift_left(t) / 2) return truncated(t, "a map");
        key = *t->p >> 4;
        value = *t->p++ & 15;
        for (; n; n--) {
            PS_TRY(skip_element(t, key, depth + 1));
            PS_TRY(skip_element(t, value, depth + 1));
        }
        return PS_OK;
    case PS_T_STRUCT:
        for (;;) {
            int32_t id = 0; /* not summed up: ids mean nothing here */
            PS_TRY(ps_thrift_field(t, &type, &id));
            if (type == PS_T_STOP) return PS_OK;
            if (type != PS_T_TRUE && type != PS_T_FALSE)
                PS_TRY(skip_element(t, type, depth + 1));
        }
    default: return corrupt(t, t->p, "a value of no known type");
    }
    if (size > ps_thrift_left(t)) return truncated(t, "a value");
    t->p += size;
    return PS_OK;
}

ps_status ps_thrift_skip_carefully(ps_thrift *t, int type) {
    return type == PS_T_TRUE || type == PS_T_FALSE ? PS_OK : skip_element(t, type, 0);
}

ps_status ps_thrift_skip(ps_thrift *t, int type) {
    if (type == PS_T_STRUCT && PS_LIKELY(ps_thrift_walk(t))) return PS_OK;
    return ps_thrift_skip_carefully(t, type);
}

ps_status ps_thrift_skip_similar(ps_thrift *t, ps_layouts *known, uint8_t *layout) {
    if (PS_LIKELY(ps_thrift_walk_similar(t, known, layout))) return PS_OK;
    return ps_thrift_skip_carefully(t, PS_T_STRUCT);
}

/* ---- tables ------------------------------------------------------------------------------ */

static const uint8_t wire_type[] = {
    [PS_FIELD_BOOL] = PS_T_TRUE,     [PS_FIELD_I8] = PS_T_BYTE,
    [PS_FIELD_I16] = PS_T_I16,       [PS_FIELD_I32] = PS_T_I32,
    [PS_FIELD_I64] = PS_T_I64,       [PS_FIELD_COUNT32] = PS_T_I32,
    [PS_FIELD_COUNT64] = PS_T_I64,   [PS_FIELD_BINARY] = PS_T_BINARY,
    [PS_FIELD_STRUCT] = PS_T_STRUCT, [PS_FIELD_UNION] = PS_T_STRUCT,
    [PS_FIELD_LIST] = PS_T_LIST,     [PS_FIELD_WHERE] = PS_T_LIST,
};

static const ps_field_spec *field_known(const ps_struct_spec *spec, int32_t id) {
    if (id <= 0 || id >= spec->n_fields) return NULL;
    return spec->fields[id].kind == PS_FIELD_UNKNOWN ? NULL : &spec->fields[id];
}

static bool same_type(int wanted, int found) {
    if (wanted == PS_T_FALSE) wanted = PS_T_TRUE;
    return wanted == (found == PS_T_FALSE ? PS_T_TRUE : found);
}

static ps_status read_field(ps_thrift *t, const ps_struct_spec *spec,
                            const ps_field_spec *field, int type, int64_t *record) {
    int64_t unused[2];
    int64_t *slot = field->slot == PS_NO_SLOT ? unused : record + field->slot;
    uint64_t at = ps_thrift_at(t);
    switch (field->kind) {
    case PS_FIELD_BOOL: *slot = type == PS_T_TRUE; return PS_OK;
    case PS_FIELD_BINARY: return ps_thrift_binary(t, slot, slot + 1);
    case PS_FIELD_STRUCT:
        *slot = 1;
        return ps_thrift_struct(t, field->nested, record + field->base);
    case PS_FIELD_UNION: return ps_thrift_union(t, field->nested, slot, record + field->base);
    case PS_FIELD_WHERE: *slot = (int64_t)at; return ps_thrift_skip(t, type);
    case PS_FIELD_COUNT32:
    case PS_FIELD_COUNT64:
        PS_TRY(ps_thrift_int(t, type, slot));
        if (PS_LIKELY(*slot >= 0)) return PS_OK;
        return ps_fail(t->err, PS_CORRUPT, at, "%s.%s is negative: %lld", spec->name,
                       field->name, (long long)*slot);
    default: return ps_thrift_int(t, type, slot);
    }
}

ps_status ps_thrift_struct(ps_thrift *t, const ps_struct_spec *spec, int64_t *record) {
    uint32_t seen = 0;
    int32_t id = 0;
    for (;;) {
        int type, element = 0;
        size_t count = 0;
        const uint8_t *at = t->p;
        PS_TRY(ps_thrift_field(t, &type, &id));
        if (type == PS_T_STOP) break;
        const ps_field_spec *field = field_known(spec, id);
        if (!field) {
            PS_TRY(ps_thrift_skip(t, type));
            continue;
        }
        const uint8_t *value = t->p;
        bool fits = same_type(wire_type[field->kind], type);
        if (fits && field->kind == PS_FIELD_LIST) {
            PS_TRY(ps_thrift_list(t, &element, &count));
            fits = count == 0 || same_type(field->element, element);
        }
        if (PS_UNLIKELY(!fits)) {
            if (spec->required & PS_FIELD(id))
                return ps_fail(t->err, PS_CORRUPT, (uint64_t)(at - t->data),
                               "%s.%s is of another type", spec->name, field->name);
            t->p = value;
            PS_TRY(ps_thrift_skip(t, type));
            continue;
        }
        if (PS_UNLIKELY(seen & PS_FIELD(id)))
            return ps_fail(t->err, PS_CORRUPT, (uint64_t)(at - t->data), "%s.%s is there twice",
                           spec->name, field->name);
        seen |= PS_FIELD(id);
        if (field->kind == PS_FIELD_LIST)
            PS_TRY(field->read(t, count, record));
        else
            PS_TRY(read_field(t, spec, field, type, record));
    }
    uint32_t missing = spec->required & ~seen;
    if (PS_UNLIKELY(missing))
        return ps_fail(t->err, PS_CORRUPT, ps_thrift_at(t), "%s.%s is missing", spec->name,
                       spec->fields[ps_ctz64(missing)].name);
    return PS_OK;
}

ps_status ps_thrift_union(ps_thrift *t, const ps_struct_spec *spec, int64_t *member,
                          int64_t *record) {
    int32_t id = 0;
    size_t members = 0;
    *member = 0;
    for (;;) {
        int type;
        PS_TRY(ps_thrift_field(t, &type, &id));
        if (type == PS_T_STOP) break;
        const ps_field_spec *field = field_known(spec, id);
        members++;
        *member = 0;
        if (field && type == PS_T_STRUCT) *member = id;
        if (*member && field->nested && members == 1)
            PS_TRY(ps_thrift_struct(t, field->nested, record));
        else
            PS_TRY(ps_thrift_skip(t, type));
    }
    if (members != 1) *member = 0;
    return PS_OK;
}
