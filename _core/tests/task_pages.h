/* task_pages.h - bytes of pages with their headers, for tests of tasks. Values are as they are, without a codec. */
#ifndef PAGESEEK_TASK_PAGES_H
#define PAGESEEK_TASK_PAGES_H

#include <stdint.h>
#include <string.h>

enum { PLAIN = 0, RLE = 3, CODES = 8, DATA = 0, DICTIONARY = 2 };

typedef struct bytes {
    uint8_t data[16384];
    size_t length;
} bytes;

static void put(bytes *out, const void *data, size_t length) {
    memcpy(out->data + out->length, data, length);
    out->length += length;
}

/* A field of a Thrift struct, next to the one before: its number and an i32. */
static void field(bytes *out, int64_t value) {
    uint64_t rest = (uint64_t)(value << 1);
    put(out, "\x15", 1);
    for (; rest > 127; rest >>= 7) put(out, &(uint8_t){(uint8_t)(rest | 128)}, 1);
    put(out, &(uint8_t){(uint8_t)rest}, 1);
}

static void page(bytes *out, int type, int encoding, int n, const void *body, size_t length) {
    field(out, type);
    field(out, (int64_t)length);
    field(out, (int64_t)length);
    put(out, type == DATA ? "\x2c" : "\x4c", 1); /* data_page_header, dictionary_page_header */
    field(out, n);
    field(out, encoding);
    if (type == DATA) {
        field(out, RLE);
        field(out, RLE);
    }
    put(out, "\0\0", 2);
    put(out, body, length);
}

#endif
