/* footer.c - FileMetaData (parquet.thrift): schema, row groups, and where each column chunk begins. */
#include "metadata.h"

#define SCHEMA_DEPTH 128 /* groups inside each other; readers above recurse over the tree */

typedef struct footer_reader {
    ps_footer *out;
    const uint8_t *row_groups; /* the list's elements, if they come before the schema */
    size_t n_row_groups;
    bool has_schema;
    uint8_t *leaf_layouts; /* of each leaf's chunk, in the row group before */
    ps_layouts layouts;
} footer_reader;

static ps_footer *footer_of(const ps_thrift *t) {
    return ((footer_reader *)t->context)->out;
}

/* ---- SchemaElement ----------------------------------------------------------------------- */

#define SLOT(member) PS_SLOT(ps_schema_element, member)

static const ps_field_spec decimal_fields[] = {
    [1] = {"scale", PS_FIELD_I32, .slot = SLOT(logical_a)},
    [2] = {"precision", PS_FIELD_I32, .slot = SLOT(logical_b)},
};
static const ps_struct_spec decimal_spec = PS_STRUCT("DecimalType", decimal_fields,
                                                     PS_FIELD(1) | PS_FIELD(2));

static const ps_field_spec unit_fields[] = {
    [1] = {"MILLIS", .kind = PS_FIELD_STRUCT},
    [2] = {"MICROS", .kind = PS_FIELD_STRUCT},
    [3] = {"NANOS", .kind = PS_FIELD_STRUCT},
};
static const ps_struct_spec unit_spec = PS_STRUCT("TimeUnit", unit_fields, 0);

static const ps_field_spec time_fields[] = {
    /* TimeType and TimestampType */
    [1] = {"isAdjustedToUTC", PS_FIELD_BOOL, .slot = SLOT(logical_a)},
    [2] = {"unit", PS_FIELD_UNION, .slot = SLOT(logical_b), .nested = &unit_spec},
};
static const ps_struct_spec time_spec = PS_STRUCT("TimeType", time_fields,
                                                  PS_FIELD(1) | PS_FIELD(2));
static const ps_struct_spec timestamp_spec = PS_STRUCT("TimestampType", time_fields,
                                                       PS_FIELD(1) | PS_FIELD(2));

static const ps_field_spec int_fields[] = {
    [1] = {"bitWidth", PS_FIELD_I8, .slot = SLOT(logical_a)},
    [2] = {"isSigned", PS_FIELD_BOOL, .slot = SLOT(logical_b)},
};
static const ps_struct_spec int_spec = PS_STRUCT("IntType", int_fields,
                                                 PS_FIELD(1) | PS_FIELD(2));

static const ps_field_spec variant_fields[] = {
    [1] = {"specification_version", PS_FIELD_I8, .slot = SLOT(logical_a)},
};
static const ps_struct_spec variant_spec = PS_STRUCT("VariantType", variant_fields, 0);

static const ps_field_spec geo_fields[] = {
    /* GeometryType has the first only */
    [1] = {"crs", PS_FIELD_BINARY, .slot = SLOT(logical_a)},
    [2] = {"algorithm", PS_FIELD_I32, .slot = SLOT(logical_c)},
};
static const ps_struct_spec geometry_spec = {"GeometryType", geo_fields, 2, 0};
static const ps_struct_spec geography_spec = PS_STRUCT("GeographyType", geo_fields, 0);

static const ps_field_spec logical_fields[] = {
    [1] = {"STRING", .kind = PS_FIELD_STRUCT},
    [2] = {"MAP", .kind = PS_FIELD_STRUCT},
    [3] = {"LIST", .kind = PS_FIELD_STRUCT},
    [4] = {"ENUM", .kind = PS_FIELD_STRUCT},
    [5] = {"DECIMAL", PS_FIELD_STRUCT, .nested = &decimal_spec},
    [6] = {"DATE", .kind = PS_FIELD_STRUCT},
    [7] = {"TIME", PS_FIELD_STRUCT, .nested = &time_spec},
    [8] = {"TIMESTAMP", PS_FIELD_STRUCT, .nested = &timestamp_spec},
    [10] = {"INTEGER", PS_FIELD_STRUCT, .nested = &int_spec},
    [11] = {"UNKNOWN", .kind = PS_FIELD_STRUCT},
    [12] = {"JSON", .kind = PS_FIELD_STRUCT},
    [13] = {"BSON", .kind = PS_FIELD_STRUCT},
    [14] = {"UUID", .kind = PS_FIELD_STRUCT},
    [15] = {"FLOAT16", .kind = PS_FIELD_STRUCT},
    [16] = {"VARIANT", PS_FIELD_STRUCT, .nested = &variant_spec},
    [17] = {"GEOMETRY", PS_FIELD_STRUCT, .nested = &geometry_spec},
    [18] = {"GEOGRAPHY", PS_FIELD_STRUCT, .nested = &geography_spec},
    [19] = {"FILE", .kind = PS_FIELD_STRUCT},
};
static const ps_struct_spec logical_spec = PS_STRUCT("LogicalType", logical_fields, 0);

static const ps_field_spec schema_fields[] = {
    [1] = {"type", PS_FIELD_I32, .slot = SLOT(type)},
    [2] = {"type_length", PS_FIELD_I32, .slot = SLOT(type_length)},
    [3] = {"repetition_type", PS_FIELD_I32, .slot = SLOT(repetition)},
    [4] = {"name", PS_FIELD_BINARY, .slot = SLOT(name_offset)},
    [5] = {"num_children", PS_FIELD_COUNT32, .slot = SLOT(num_children)},
    [6] = {"converted_type", PS_FIELD_I32, .slot = SLOT(converted_type)},
    [7] = {"scale", PS_FIELD_I32, .slot = SLOT(scale)},
    [8] = {"precision", PS_FIELD_I32, .slot = SLOT(precision)},
    [9] = {"field_id", PS_FIELD_I32, .slot = SLOT(field_id)},
    [10] = {"logicalType", PS_FIELD_UNION, .slot = SLOT(logical), .nested = &logical_spec},
};
static const ps_struct_spec schema_spec = PS_STRUCT("SchemaElement", schema_fields,
                                                    PS_FIELD(4));

#undef SLOT

/* The list is a tree in depth-first order (parquet.thrift, FileMetaData.schema): every element
 * belongs to it, none is missing. Counts leaves; a group keeps no type. */
static ps_status check_tree(ps_footer *out, uint64_t at, ps_error *err) {
    int64_t open[SCHEMA_DEPTH]; /* children still to come, of each group around us */
    size_t depth = 0;
    for (size_t i = 0; i < out->n_schema; i++) {
        ps_schema_element *e = &out->schema[i];
        int64_t children = e->num_children == PS_ABSENT ? 0 : e->num_children;
        if (e->repetition != PS_ABSENT && (e->repetition < 0 || e->repetition > 2))
            return ps_fail(err, PS_CORRUPT, (uint64_t)e->name_offset,
                           "SchemaElement.repetition_type is %lld in schema element %zu",
                           (long long)e->repetition, i);
        if (i > 0) {
            while (depth > 0 && open[depth - 1] == 0) depth--;
            if (depth == 0)
                return ps_fail(err, PS_CORRUPT, (uint64_t)e->name_offset,
                               "schema element %zu of %zu belongs to no group", i,
                               out->n_schema);
            open[depth - 1]--;
        }
        if (children > 0 || i == 0) {
            if (depth == SCHEMA_DEPTH)
                return ps_fail(err, PS_LIMIT, (uint64_t)e->name_offset,
                               "a schema deeper than %d groups", SCHEMA_DEPTH);
            open[depth++] = children;
            e->type = PS_ABSENT;
        } else if (e->type != PS_ABSENT) {
            out->n_leaves++;
        }
    }
    while (depth > 0 && open[depth - 1] == 0) depth--;
    if (depth > 0)
        return ps_fail(err, PS_CORRUPT, at, "the schema ends %lld elements early",
                       (long long)open[depth - 1]);
    return PS_OK;
}

static ps_status read_schema(ps_thrift *t, size_t count, int64_t *record) {
    footer_reader *r = t->context;
    void *elements;
    (void)record;
    if (count == 0)
        return ps_fail(t->err, PS_CORRUPT, ps_thrift_at(t), "FileMetaData.schema has no root");
    PS_TRY(ps_arena_take(&r->out->arena, count, sizeof(ps_schema_element), &elements, t->err));
    r->out->schema = elements;
    r->out->n_schema = count;
    ps_record_clear(elements, count * sizeof(ps_schema_element));
    for (size_t i = 0; i < count; i++) {
        ps_schema_element *e = &r->out->schema[i];
        PS_TRY(ps_thrift_struct(t, &schema_spec, (int64_t *)e));
        if (e->logical == 0) e->logical_a = e->logical_b = e->logical_c = PS_ABSENT;
    }
    r->has_schema = true;
    return check_tree(r->out, ps_thrift_at(t), t->err);
}

/* ---- RowGroup ---------------------------------------------------------------------------- */

static ps_status read_columns(ps_thrift *t, size_t count, int64_t *record) {
    footer_reader *r = t->context;
    ps_footer *out = r->out;
    size_t group = (size_t)((ps_row_group *)(void *)record - out->row_groups);
    if (count != out->n_leaves)
        return ps_fail(t->err, PS_CORRUPT, ps_thrift_at(t),
                       "row group %zu has %zu column chunks, the schema %zu leaves", group,
                       count, out->n_leaves);
    if (count == 0) return PS_OK; /* no leaves: there are no offsets to point to */
    uint64_t *offsets = out->chunk_offsets + group * count;
    for (size_t i = 0; i < count; i++) {
        if (group == 0 && i > 0) r->leaf_layouts[i] = r->leaf_layouts[i - 1];
        offsets[i] = ps_thrift_at(t);
        PS_TRY(ps_thrift_skip_similar(t, &r->layouts, &r->leaf_layouts[i]));
    }
    return PS_OK;
}

static const ps_field_spec row_group_fields[] = {
    [1] = {"columns", PS_FIELD_LIST, .element = PS_T_STRUCT, .read = read_columns},
    [2] = {"total_byte_size", PS_FIELD_I64, .slot = PS_SLOT(ps_row_group, total_byte_size)},
    [3] = {"num_rows", PS_FIELD_COUNT64, .slot = PS_SLOT(ps_row_group, num_rows)},
    [4] = {"sorting_columns", PS_FIELD_WHERE, .slot = PS_SLOT(ps_row_group, sorting_offset)},
    [5] = {"file_offset", PS_FIELD_I64, .slot = PS_SLOT(ps_row_group, file_offset)},
    [6] = {"total_compressed_size", PS_FIELD_I64,
           .slot = PS_SLOT(ps_row_group, total_compressed_size)},
    [7] = {"ordinal", PS_FIELD_I16, .slot = PS_SLOT(ps_row_group, ordinal)},
};
static const ps_struct_spec row_group_spec = PS_STRUCT("RowGroup", row_group_fields,
                                                       PS_FIELD(1) | PS_FIELD(2) | PS_FIELD(3));

static ps_status read_row_group_list(ps_thrift *t, size_t count) {
    footer_reader *r = t->context;
    ps_footer *out = r->out;
    void *groups, *offsets, *layouts;
    if (out->n_leaves && count > ps_thrift_left(t) / out->n_leaves)
        return ps_fail(t->err, PS_TRUNCATED, ps_thrift_at(t),
                       "%zu row groups of %zu column chunks in %zu bytes", count, out->n_leaves,
                       ps_thrift_left(t));
    PS_TRY(ps_arena_take(&out->arena, count, sizeof(ps_row_group), &groups, t->err));
    PS_TRY(
        ps_arena_take(&out->arena, count * out->n_leaves, sizeof(uint64_t), &offsets, t->err));
    PS_TRY(ps_arena_take(&out->arena, count ? out->n_leaves : 0, 1, &layouts, t->err));
    r->leaf_layouts = layouts;
    out->row_groups = groups;
    out->chunk_offsets = offsets;
    out->n_row_groups = count;
    ps_record_clear(groups, count * sizeof(ps_row_group));
    for (size_t i = 0; i < count; i++) {
        ps_row_group *g = &out->row_groups[i];
        g->offset = (int64_t)ps_thrift_at(t);
        PS_TRY(ps_thrift_struct(t, &row_group_spec, (int64_t *)g));
        g->length = (int64_t)ps_thrift_at(t) - g->offset;
    }
    return PS_OK;
}

/* Every writer puts the schema first, but Thrift does not require it. */
static ps_status read_row_groups(ps_thrift *t, size_t count, int64_t *record) {
    footer_reader *r = t->context;
    (void)record;
    if (r->has_schema) return read_row_group_list(t, count);
    r->row_groups = t->p;
    r->n_row_groups = count;
    while (count--) PS_TRY(ps_thrift_skip(t, PS_T_STRUCT));
    return PS_OK;
}

/* ---- the rest of FileMetaData ------------------------------------------------------------ */

static const ps_field_spec key_value_fields[] = {
    [1] = {"key", PS_FIELD_BINARY, .slot = 0},
    [2] = {"value", PS_FIELD_BINARY, .slot = 2},
};
static const ps_struct_spec key_value_spec = PS_STRUCT("KeyValue", key_value_fields,
                                                       PS_FIELD(1));

static ps_status read_key_values(ps_thrift *t, size_t count, int64_t *record) {
    ps_footer *out = footer_of(t);
    void *pairs;
    (void)record;
    PS_TRY(ps_arena_take(&out->arena, count, 4 * sizeof(int64_t), &pairs, t->err));
    out->key_values = pairs;
    out->n_key_values = count;
    ps_record_clear(pairs, count * 4 * sizeof(int64_t));
    for (size_t i = 0; i < count; i++)
        PS_TRY(ps_thrift_struct(t, &key_value_spec, out->key_values + 4 * i));
    return PS_OK;
}

static const ps_field_spec order_fields[] = {
    [1] = {"TYPE_ORDER", .kind = PS_FIELD_STRUCT},
    [2] = {"IEEE_754_TOTAL_ORDER", .kind = PS_FIELD_STRUCT},
    [3] = {"INT96_TIMESTAMP_ORDER", .kind = PS_FIELD_STRUCT},
};
static const ps_struct_spec order_spec = PS_STRUCT("ColumnOrder", order_fields, 0);

static ps_status read_column_orders(ps_thrift *t, size_t count, int64_t *record) {
    ps_footer *out = footer_of(t);
    void *orders;
    (void)record;
    PS_TRY(ps_arena_take(&out->arena, count, sizeof(int64_t), &orders, t->err));
    out->column_orders = orders;
    out->n_column_orders = count;
    for (size_t i = 0; i < count; i++)
        PS_TRY(ps_thrift_union(t, &order_spec, &out->column_orders[i], NULL));
    return PS_OK;
}

static const ps_field_spec algorithm_fields[] = {
    [1] = {"AES_GCM_V1", .kind = PS_FIELD_STRUCT},
    [2] = {"AES_GCM_CTR_V1", .kind = PS_FIELD_STRUCT},
};
static const ps_struct_spec algorithm_spec = PS_STRUCT("EncryptionAlgorithm", algorithm_fields,
                                                       0);

typedef struct file_record {
    int64_t version, num_rows, created_by_offset, created_by_length, encryption;
} file_record;

static const ps_field_spec file_fields[] = {
    [1] = {"version", PS_FIELD_I32, .slot = PS_SLOT(file_record, version)},
    [2] = {"schema", PS_FIELD_LIST, .element = PS_T_STRUCT, .read = read_schema},
    [3] = {"num_rows", PS_FIELD_COUNT64, .slot = PS_SLOT(file_record, num_rows)},
    [4] = {"row_groups", PS_FIELD_LIST, .element = PS_T_STRUCT, .read = read_row_groups},
    [5] = {"key_value_metadata", PS_FIELD_LIST, .element = PS_T_STRUCT,
           .read = read_key_values},
    [6] = {"created_by", PS_FIELD_BINARY, .slot = PS_SLOT(file_record, created_by_offset)},
    [7] = {"column_orders", PS_FIELD_LIST, .element = PS_T_STRUCT, .read = read_column_orders},
    [8] = {"encryption_algorithm", PS_FIELD_UNION, .slot = PS_SLOT(file_record, encryption),
           .nested = &algorithm_spec},
};
static const ps_struct_spec file_spec = PS_STRUCT(
    "FileMetaData", file_fields, PS_FIELD(1) | PS_FIELD(2) | PS_FIELD(3) | PS_FIELD(4));

ps_status ps_footer_read(const uint8_t *data, size_t length, size_t max_arena, ps_footer *out,
                         ps_error *err) {
    memset(out, 0, sizeof *out);
    out->arena.cap = max_arena;
    file_record file;
    footer_reader r;
    r.out = out;
    r.row_groups = NULL;
    r.has_schema = false;
    r.layouts.n = 0; /* the layouts behind it are large and need not be cleared */
    ps_thrift t = ps_thrift_open(data, length, &r, err);
    ps_record_clear(&file, sizeof file);
    ps_status status = ps_thrift_struct(&t, &file_spec, (int64_t *)&file);
    if (status == PS_OK && r.row_groups) {
        t.p = r.row_groups;
        status = read_row_group_list(&t, r.n_row_groups);
    }
    if (status != PS_OK) {
        ps_footer_clear(out);
        return status;
    }
    out->version = file.version;
    out->num_rows = file.num_rows;
    out->created_by_offset = file.created_by_offset;
    out->created_by_length = file.created_by_length;
    out->encryption = file.encryption;
    return PS_OK;
}

void ps_footer_clear(ps_footer *footer) {
    ps_arena_clear(&footer->arena);
    memset(footer, 0, sizeof *footer);
}
