/* convert.h - from the file's physical values to Arrow's. Internal. */
#ifndef PAGESEEK_CONVERT_H
#define PAGESEEK_CONVERT_H

#include "base.h"

enum { /* parquet.thrift Type */
       PQ_BOOLEAN = 0,
       PQ_INT32 = 1,
       PQ_INT64 = 2,
       PQ_INT96 = 3,
       PQ_FLOAT = 4,
       PQ_DOUBLE = 5,
       PQ_BYTE_ARRAY = 6,
       PQ_FIXED = 7
};

/* Bytes of a PLAIN value; 0 for BOOLEAN and BYTE_ARRAY. */
size_t ps_plain_width(const ps_leaf_spec *spec);
/* Bytes of an output value; 0 for PS_BOOL and byte strings. */
size_t ps_kind_width(const ps_leaf_spec *spec);
/* Whether the kind is one of byte strings with offsets. */
bool ps_kind_has_offsets(int32_t kind);

/* Whether ps_convert_fixed only copies bytes, and so cannot fail. */
bool ps_convert_is_copy(const ps_leaf_spec *spec);
/* Converts n PLAIN values of fixed width at `in` to the kind of the spec at `out`. */
ps_status ps_convert_fixed(const ps_leaf_spec *spec, const uint8_t *in, uint8_t *out, size_t n,
                           ps_error *err);
/* Converts a big-endian two's complement of any length (LogicalTypes.md, DECIMAL) to 16 or 32 bytes, little endian.
 * Returns false where it does not fit. */
bool ps_convert_decimal(const uint8_t *in, size_t length, uint8_t *out, size_t width);
/* The index of the first of n output values that is valid (NULL: all are) and beyond the range of the spec; -1: none. */
int64_t ps_convert_beyond(const ps_leaf_spec *spec, const uint8_t *values,
                          const uint8_t *validity, int64_t n);

#endif
