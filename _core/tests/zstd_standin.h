/* zstd_standin.h - what stands in for libzstd where there must be none: functions of its contracts, of a format of their own.
 *
 * A frame: zstd's magic number, 2 bytes of the size that it says it holds, then blocks until the last. A block: a byte (bit 7: the last; bit
 * 6: repeated; the others: its size less 1), then that many bytes, or the one that is repeated. */
#ifndef PAGESEEK_ZSTD_STANDIN_H
#define PAGESEEK_ZSTD_STANDIN_H

#include <stdlib.h>
#include <string.h>

#include "../pageseek.h"

enum { STANDIN_HEADER = 6, STANDIN_ERROR = 120 };
#define STANDIN_FAILED ((size_t)0 - STANDIN_ERROR)

static bool
    zstd_at_once; /* a stream asks for all of the frame, and gives all of it, at its first block */

typedef struct standin {
    uint8_t *held; /* input that makes no whole header or block yet */
    size_t have, need;
    bool body;
} standin;

static void *standin_create(void) {
    return calloc(1, sizeof(standin));
}

static size_t standin_reset(void *context, int what) {
    standin *s = context;
    (void)what;
    free(s->held);
    *s = (standin){0};
    return 0;
}

static size_t standin_free(void *context) {
    standin_reset(context, 1);
    free(context);
    return 0;
}

static size_t standin_set(void *context, int what, int value) {
    (void)context, (void)what, (void)value;
    return 0;
}

static unsigned standin_is_error(size_t code) {
    return code > (size_t)0 - 2 * STANDIN_ERROR;
}

static unsigned long long standin_content_size(const void *data, size_t length) {
    const uint8_t *p = data;
    return length < STANDIN_HEADER ? 0 : p[4] + 256ull * p[5];
}

/* Bytes that a block takes, with its head. */
static size_t standin_takes(uint8_t head) {
    return head & 64 ? 2 : 2 + (size_t)(head & 63);
}

static size_t standin_frame_length(const void *data, size_t length) {
    const uint8_t *p = data;
    for (size_t at = STANDIN_HEADER; at < length; at += standin_takes(p[at]))
        if (p[at] & 128) return at + standin_takes(p[at]);
    return length % 7 ? STANDIN_FAILED
                      : length; /* some say too little: what is wanting must be noticed later */
}

/* One block to `out`; false where it has no space, or the block is cut off. */
static bool standin_block(const uint8_t *p, size_t length, uint8_t *out, size_t space,
                          size_t *made) {
    if (length == 0 || length < standin_takes(p[0])) return false;
    *made = 1 + (size_t)(p[0] & 63);
    if (*made > space) return false;
    if (p[0] & 64)
        memset(out, p[1], *made);
    else
        memcpy(out, p + 1, *made);
    return true;
}

static size_t standin_decompress(void *context, void *out, size_t space, const void *data,
                                 size_t length) {
    const uint8_t *p = data;
    size_t made, sum = 0;
    (void)context;
    for (size_t at = STANDIN_HEADER; at < length; at += standin_takes(p[at])) {
        if (!standin_block(p + at, length - at, (uint8_t *)out + sum, space - sum, &made))
            return STANDIN_FAILED;
        sum += made;
        if (p[at] & 128)
            return sum == standin_content_size(data, length) ? sum : STANDIN_FAILED;
    }
    return STANDIN_FAILED;
}

static size_t standin_stream(void *context, ps_zstd_out *out, ps_zstd_in *in) {
    standin *s = context;
    const uint8_t *from = in->src;
    size_t made;
    if (!s->need) s->need = STANDIN_HEADER;
    for (;;) {
        const size_t rest = in->size - in->pos, wanting = s->need - s->have;
        const size_t n = rest < wanting ? rest : wanting;
        s->held = realloc(s->held, s->need);
        if (!s->held) abort();
        if (n) memcpy(s->held + s->have, from + in->pos, n);
        s->have += n;
        in->pos += n;
        if (s->have < s->need) return zstd_at_once ? (size_t)1 << 20 : s->need - s->have;
        if (!s->body) {
            s->body = true;
        } else if (s->need == 1 && standin_takes(s->held[0]) > 1) {
            s->need = standin_takes(s->held[0]);
            continue;
        } else {
            if (!standin_block(s->held, s->have, (uint8_t *)out->dst + out->pos,
                               out->size - out->pos, &made))
                return STANDIN_FAILED;
            out->pos += made;
            if (s->held[0] & 128) return out->pos == out->size ? 0 : STANDIN_FAILED;
        }
        s->have = 0;
        s->need = 1;
        if (!zstd_at_once) return 1; /* a block, then who called may have enough */
    }
}

static const ps_zstd zstd_standin = {
    .create = standin_create,
    .free = standin_free,
    .reset = standin_reset,
    .set = standin_set,
    .decompress = standin_decompress,
    .stream = standin_stream,
    .content_size = standin_content_size,
    .frame_length = standin_frame_length,
    .is_error = standin_is_error,
};

#endif
