/* What a footer has in common with others that are like it. */
#ifndef PS_TESTS_ALIKE_H
#define PS_TESTS_ALIKE_H
#include "pageseek.h"

enum { KEYS = 2 };

static ps_similar_footer similar(const uint8_t *data, const ps_footer *f) {
    static const char *const keys[KEYS] = {"ARROW:schema", "other"};
    const ps_schema_element *last = &f->schema[f->n_schema - 1];
    ps_similar_footer like = {.names = data,
                              .names_length = (size_t)(last->name_offset + last->name_length),
                              .schema = f->schema,
                              .schema_size = f->n_schema * sizeof *f->schema,
                              .orders = f->column_orders,
                              .orders_size = f->n_column_orders * sizeof *f->column_orders,
                              .keys = keys,
                              .n_keys = KEYS};
    if (f->created_by_offset != PS_ABSENT) {
        like.created_by = data + f->created_by_offset;
        like.created_by_length = (size_t)f->created_by_length;
    }
    return like;
}
#endif
