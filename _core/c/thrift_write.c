/* thrift_write.c - values of the Thrift compact protocol into memory. */
#include "thrift_write.h"

void ps_writer_clear(ps_writer *w) {
    ps_buffer_free(w->data, w->capacity);
    w->data = NULL;
    w->size = w->capacity = 0;
}

static PS_COLD ps_status grow(ps_writer *w, size_t need) {
    size_t capacity = w->capacity ? w->capacity : 1024;
    if (need > w->cap) /* capacities are powers of two, and the last may be beyond the cap */
        return ps_fail(w->err, PS_LIMIT, PS_NOWHERE, "metadata of more than %zu bytes", w->cap);
    while (capacity < need) {
        if (!ps_mul_size(capacity, 2, &capacity)) return ps_fail_nomem(w->err, need);
    }
    void *data = w->data ? ps_buffer_grow(w->data, w->capacity, capacity)
                         : ps_buffer_new(capacity);
    if (!data) return ps_fail_nomem(w->err, capacity);
    w->data = data;
    w->capacity = capacity;
    return PS_OK;
}

ps_status ps_write_bytes(ps_writer *w, const void *data, size_t n) {
    size_t need;
    if (n == 0) return PS_OK;
    if (!ps_add_size(w->size, n, &need)) return ps_fail_nomem(w->err, n);
    if (PS_UNLIKELY(need > w->capacity || need > w->cap)) PS_TRY(grow(w, need));
    memcpy(w->data + w->size, data, n);
    w->size = need;
    return PS_OK;
}

ps_status ps_write_varint(ps_writer *w, uint64_t v) {
    uint8_t bytes[10];
    size_t n = 0;
    while (v >= 0x80) bytes[n++] = (uint8_t)(v | 0x80), v >>= 7;
    bytes[n++] = (uint8_t)v;
    return ps_write_bytes(w, bytes, n);
}

ps_status ps_write_i64(ps_writer *w, int64_t v) {
    return ps_write_varint(w, (uint64_t)v << 1 ^ (v < 0 ? UINT64_MAX : 0));
}

ps_status ps_write_binary(ps_writer *w, const void *data, size_t n) {
    if (n > INT32_MAX)
        return ps_fail(w->err, PS_LIMIT, PS_NOWHERE, "a byte string of %zu bytes", n);
    PS_TRY(ps_write_varint(w, n));
    return ps_write_bytes(w, data, n);
}

ps_status ps_write_field(ps_writer *w, int32_t *last, int32_t id, int type) {
    const int32_t step = id - *last;
    uint8_t header = (uint8_t)type;
    *last = id;
    if (step >= 1 && step <= 15) {
        header |= (uint8_t)(step << 4);
        return ps_write_bytes(w, &header, 1);
    }
    PS_TRY(ps_write_bytes(w, &header, 1));
    return ps_write_i64(w, id);
}

ps_status ps_write_list(ps_writer *w, int element, size_t n) {
    const uint8_t header = (uint8_t)((n < 15 ? n : 15) << 4 | (size_t)element);
    if (n > INT32_MAX)
        return ps_fail(w->err, PS_LIMIT, PS_NOWHERE, "a list of %zu elements", n);
    PS_TRY(ps_write_bytes(w, &header, 1));
    return n < 15 ? PS_OK : ps_write_varint(w, n);
}

ps_status ps_write_stop(ps_writer *w) {
    const uint8_t stop = PS_T_STOP;
    return ps_write_bytes(w, &stop, 1);
}
