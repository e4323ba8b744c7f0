/* snappy.c - raw Snappy blocks: a varint length, then elements that each begin with a tag byte.
 * The two low bits of a tag: 0 literal; 1, 2, 4 bytes of offset follow for the copies 1, 2, 3. */
#include "lz.h"

enum {
    LITERAL = 0,
    COPY1 = 1,
    COPY2 = 2,
    /* What the fast loop may touch in one turn: a tag and a literal of 64 read, 64 + 16 written. */
    IN_SLACK = 1 + 64,
    OUT_SLACK = 64 + PS_LZ_SLACK
};

typedef struct decoder {
    const uint8_t *data, *in, *in_end;
    uint8_t *out, *to, *to_end;
} decoder;

static ps_status read_preamble(decoder *d, uint32_t *size, ps_error *err) {
    uint64_t value = 0;
    for (int shift = 0; shift < 35; shift += 7) {
        if (d->in == d->in_end)
            return ps_fail(err, PS_TRUNCATED, (uint64_t)(d->in - d->data),
                           "snappy: input ends inside the length");
        value |= (uint64_t)(*d->in & 0x7f) << shift;
        if (*d->in++ < 0x80) {
            *size = (uint32_t)value;
            if (value <= UINT32_MAX) return PS_OK;
            break;
        }
    }
    return ps_fail(err, PS_CORRUPT, 0, "snappy: length beyond 32 bits");
}

/* Decodes common elements far from both ends, and stops at any other, which is for `element`. */
PS_INLINE void run(decoder *d) {
    if (d->in_end - d->in < IN_SLACK || d->to_end - d->to < OUT_SLACK) return;
    /* In locals, because a store through `to` might change *d for all that the compiler knows. */
    const uint8_t *in = d->in, *const last = d->in_end - IN_SLACK, *const out = d->out;
    uint8_t *to = d->to, *const to_last = d->to_end - OUT_SLACK;
    while (in <= last && to <= to_last) {
        size_t tag = *in;
        size_t kind = tag & 3;
        if (kind == LITERAL) {
            size_t n = (tag >> 2) + 1;
            if (PS_UNLIKELY(n > 60)) break;
            ps_lz_copy16(to, in + 1);
            if (n > 16) {
                ps_lz_copy16(to + 16, in + 17);
                ps_lz_copy16(to + 32, in + 33);
                ps_lz_copy16(to + 48, in + 49);
            }
            in += 1 + n, to += n;
        } else {
            size_t two = kind - COPY1;
            size_t n = two ? (tag >> 2) + 1 : ((tag >> 2) & 7) + 4;
            size_t offset = two ? ps_load16(in + 1) : ((tag & 0xe0) << 3) | in[1];
            if (PS_UNLIKELY(kind > COPY2)) break;
            if (PS_UNLIKELY(offset - 1 >= (size_t)(to - out))) break; /* 0 wraps around */
            ps_lz_repeat_wide(to, offset, n);
            in += 2 + two, to += n;
        }
    }
    d->in = in;
    d->to = to;
}

/* Any one element, anywhere: every error is found here. */
static ps_status element(decoder *d, bool exact, ps_error *err) {
    const uint8_t *in = d->in;
    const uint64_t at = (uint64_t)(in - d->data);
    const size_t left = (size_t)(d->in_end - in), space = (size_t)(d->to_end - d->to);
    if (left == 0)
        return ps_fail(err, PS_TRUNCATED, at, "snappy: input ends after %zu bytes of output",
                       (size_t)(d->to - d->out));

    const unsigned tag = *in, kind = tag & 3;
    uint64_t n = (tag >> 2) + 1;
    size_t extra = kind == LITERAL ? (n > 60 ? (size_t)n - 60 : 0) : (size_t)1 << (kind - 1);
    if (left - 1 < extra)
        return ps_fail(err, PS_TRUNCATED, at, "snappy: input ends inside a tag of %zu bytes",
                       1 + extra);
    uint32_t operand = 0;
    for (size_t i = 0; i < extra; i++) operand |= (uint32_t)in[1 + i] << (8 * i);
    in += 1 + extra;

    if (kind == LITERAL && extra) n = (uint64_t)operand + 1;
    if (kind == COPY1) {
        n = ((tag >> 2) & 7) + 4;
        operand |= (tag & 0xe0) << 3;
    }
    if (n > space) {
        if (exact)
            return ps_fail(err, PS_CORRUPT, at, "snappy: element of %llu bytes, space for %zu",
                           (unsigned long long)n, space);
        n = space;
    }
    if (kind == LITERAL) {
        if (n > left - 1 - extra)
            return ps_fail(err, PS_TRUNCATED, at, "snappy: literal of %llu bytes, %zu left",
                           (unsigned long long)n, left - 1 - extra);
        memcpy(d->to, in, (size_t)n);
        in += n;
    } else {
        if (operand == 0 || operand > (size_t)(d->to - d->out))
            return ps_fail(err, PS_CORRUPT, at, "snappy: copy from %lu bytes back, %zu written",
                           (unsigned long)operand, (size_t)(d->to - d->out));
        ps_lz_repeat(d->to, operand, (size_t)n);
    }
    d->in = in;
    d->to += n;
    return PS_OK;
}

ps_status ps_snappy_decode(const uint8_t *data, size_t length, uint8_t *out, size_t size,
                           bool exact, ps_error *err) {
    if (length == 0) return ps_fail(err, PS_TRUNCATED, 0, "snappy: empty input");
    decoder d = {data, data, data + length, out, out, out};
    uint32_t declared = 0;
    PS_TRY(read_preamble(&d, &declared, err));
    if (exact ? declared != size : declared < size)
        return ps_fail(err, PS_CORRUPT, 0, "snappy: block declares %lu bytes, %zu expected",
                       (unsigned long)declared, size);
    if (size > 0) d.to_end = out + size;
    while (d.to != d.to_end) {
        run(&d);
        PS_TRY(element(&d, exact, err));
    }
    if (exact && d.in != d.in_end)
        return ps_fail(err, PS_CORRUPT, (uint64_t)(d.in - data),
                       "snappy: %zu bytes after the end", (size_t)(d.in_end - d.in));
    return PS_OK;
}
