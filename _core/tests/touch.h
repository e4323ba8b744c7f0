/* touch.h - what a fuzz target does with returned ranges: all must lie in the input. */
#ifndef PAGESEEK_TOUCH_H
#define PAGESEEK_TOUCH_H

#include <stdlib.h>
#include <string.h>

#include "../pageseek.h"

static volatile uint8_t touched;

static inline void require(bool condition) {
    if (!condition) abort();
}

static inline void touch(const uint8_t *data, size_t length, int64_t offset, int64_t size) {
    if (offset == PS_ABSENT) {
        require(size == PS_ABSENT);
        return;
    }
    require(offset >= 0 && size >= 0 && (uint64_t)offset <= length &&
            (uint64_t)size <= length - (uint64_t)offset);
    for (int64_t i = 0; i < size; i++) touched ^= data[offset + i];
}

static inline void touch_statistics(const uint8_t *data, size_t length,
                                    const ps_statistics *s) {
    touch(data, length, s->max_offset, s->max_length);
    touch(data, length, s->min_offset, s->min_length);
    touch(data, length, s->max_value_offset, s->max_value_length);
    touch(data, length, s->min_value_offset, s->min_value_length);
}

static inline void touch_error(const ps_error *err) {
    require(memchr(err->message, '\0', sizeof err->message) != NULL && err->message[0] != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

#endif
