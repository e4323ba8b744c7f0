/* thrift_writer.h - a Thrift writer that can lie, for the tests of metadata. */
#ifndef PAGESEEK_THRIFT_WRITER_H
#define PAGESEEK_THRIFT_WRITER_H

#include <stdlib.h>

#include "../c/thrift.h"

typedef struct bytes {
    uint8_t at[1 << 16];
    size_t n;
} bytes;

static inline void byte(bytes *b, int v) {
    b->at[b->n++] = (uint8_t)v;
}
static inline void varint(bytes *b, uint64_t v) {
    for (; v >= 0x80; v >>= 7) byte(b, (int)(v & 0x7f) | 0x80);
    byte(b, (int)v);
}
static inline void zigzag(bytes *b, int64_t v) {
    varint(b, ((uint64_t)v << 1) ^ (uint64_t)(v >> 63));
}
static inline void field(bytes *b, int delta, int type) {
    byte(b, delta << 4 | type);
}
static inline void long_field(bytes *b, int id, int type) {
    byte(b, type);
    zigzag(b, id);
}
static inline void integer(bytes *b, int delta, int type, int64_t v) {
    field(b, delta, type);
    zigzag(b, v);
}
static inline void string(bytes *b, const char *s) {
    varint(b, strlen(s));
    while (*s) byte(b, *s++);
}
static inline void list(bytes *b, size_t n, int type) {
    if (n < 15) {
        byte(b, (int)n << 4 | type);
    } else {
        byte(b, 0xf0 | type);
        varint(b, n);
    }
}

/* The input at the very end of a heap block, so that a sanitizer sees one byte too many. */
typedef struct copy {
    uint8_t *block;
    const uint8_t *data;
} copy;
static inline copy exact(const void *data, size_t n) {
    copy c = {malloc(n ? n : 1), NULL};
    if (!c.block) abort();
    memcpy(c.block, data, n);
    c.data = c.block;
    return c;
}

static inline void statistics(bytes *b) {
    field(b, 1, PS_T_BINARY), string(b, "max");
    field(b, 1, PS_T_BINARY), string(b, "min");
    integer(b, 1, PS_T_I64, 7);
    field(b, 2, PS_T_BINARY), string(b, "max value");
    field(b, 1, PS_T_BINARY), string(b, "");
    field(b, 1, PS_T_TRUE);
    field(b, 1, PS_T_FALSE);
    integer(b, 1, PS_T_I64, 2);
    byte(b, 0);
}

static inline void chunk(bytes *b) {
    integer(b, 2, PS_T_I64, 4);
    field(b, 1, PS_T_STRUCT);
    integer(b, 1, PS_T_I32, 2);
    field(b, 1, PS_T_LIST), list(b, 3, PS_T_I32), zigzag(b, 0), zigzag(b, 8), zigzag(b, 99);
    field(b, 1, PS_T_LIST), list(b, 1, PS_T_BINARY), string(b, "column");
    integer(b, 1, PS_T_I32, 6);
    integer(b, 1, PS_T_I64, 1000);
    integer(b, 1, PS_T_I64, INT64_MAX);
    integer(b, 1, PS_T_I64, 3000);
    integer(b, 2, PS_T_I64, 4);
    field(b, 3, PS_T_STRUCT), statistics(b);
    field(b, 1, PS_T_LIST), list(b, 2, PS_T_STRUCT);
    integer(b, 1, PS_T_I32, 0), integer(b, 1, PS_T_I32, 8), integer(b, 1, PS_T_I32, 5),
        byte(b, 0);
    integer(b, 1, PS_T_I32, 3), integer(b, 1, PS_T_I32, 0), integer(b, 1, PS_T_I32, 2),
        byte(b, 0);
    byte(b, 0);
    integer(b, 1, PS_T_I64, 5000), integer(b, 1, PS_T_I32, 50);
    byte(b, 0);
}

#endif
