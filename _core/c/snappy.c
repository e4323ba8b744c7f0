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
    uint8_t *stop;          /* at or before to_end: no element begins here or later */
    size_t pending, offset; /* as of ps_lz_place */
} decoder;

/* Of a tag: the length, and from bit 8 on the high bits of the offset of a copy 1. */
#define TAG(t)                                                                                 \
    ((t & 3) == COPY1 ? (((t >> 2) & 7) + 4) | (t >> 5) << 8 : ((unsigned)(t) >> 2) + 1)
#define TAGS4(t)  TAG(t), TAG((t + 1)), TAG((t + 2)), TAG((t + 3))
#define TAGS16(t) TAGS4(t), TAGS4((t + 4)), TAGS4((t + 8)), TAGS4((t + 12))
#define TAGS64(t) TAGS16(t), TAGS16((t + 16)), TAGS16((t + 32)), TAGS16((t + 48))
static const uint16_t tags[256] = {TAGS64(0), TAGS64(64), TAGS64(128), TAGS64(192)};

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

/* Decodes common elements far from both ends, and stops at any other, which is for `element`.
 *
 * What kind of copy a tag is cannot be foreseen, and a branch that goes wrong takes longer than to decode an element. So
 * both kinds take the same way, by tables; a literal is a branch, after which a copy comes. */
PS_INLINE void run(decoder *d) {
    static const uint32_t bytes_of_offset[] = {0, 0xff, 0xffff, 0};
    if (d->in_end - d->in < IN_SLACK || d->to_end - d->to < OUT_SLACK) return;
    /* In locals, because a store through `to` might change *d for all that the compiler knows. */
    const uint8_t *in = d->in, *const last = d->in_end - IN_SLACK, *const out = d->out;
    uint8_t *to = d->to, *to_last = d->to_end - OUT_SLACK;
    if (to_last >= d->stop) to_last = d->stop - 1;
    while (in <= last && to <= to_last) {
        size_t tag = *in;
        if ((tag & 3) == LITERAL) {
            const size_t n = (tag >> 2) + 1;
            if (PS_UNLIKELY(n > 60)) break;
            ps_lz_copy16(to, in + 1);
            if (PS_UNLIKELY(n > 16)) {
                ps_lz_copy16(to + 16, in + 17);
                ps_lz_copy16(to + 32, in + 33);
                ps_lz_copy16(to + 48, in + 49);
            }
            in += 1 + n, to += n;
            if (PS_UNLIKELY(in > last || to > to_last)) break;
            tag = *in;
            if (PS_UNLIKELY((tag & 3) == LITERAL)) continue;
        }
        const size_t kind = tag & 3, n = tags[tag] & 0xff;
        if (PS_UNLIKELY(kind > COPY2)) break;
        const size_t offset = (tags[tag] & 0x700u) +
                              (ps_load32(in) >> 8 & bytes_of_offset[kind]);
        if (PS_UNLIKELY(offset - 1 >= (size_t)(to - out))) break; /* 0 wraps around */
        in += 1 + kind;
        if (PS_LIKELY(n <= offset)) {
            const uint8_t *from = to - offset;
            ps_lz_copy16(to, from);
            if (PS_UNLIKELY(n > 16)) {
                ps_lz_copy16(to + 16, from + 16);
                if (n > 32) {
                    ps_lz_copy16(to + 32, from + 32);
                    ps_lz_copy16(to + 48, from + 48);
                }
            }
        } else {
            ps_lz_repeat_wide(to, offset, n);
        }
        to += n;
    }
    d->in = in;
    d->to = to;
}

/* Writes what is pending, as far as `stop`. */
static void write_pending(decoder *d) {
    const size_t space = (size_t)(d->stop - d->to), n = d->pending < space ? d->pending : space;
    if (n == 0) return;
    if (d->offset) {
        ps_lz_repeat(d->to, d->offset, n);
    } else {
        memcpy(d->to, d->in, n);
        d->in += n;
    }
    d->to += n;
    d->pending -= n;
}

/* Any one element, anywhere: every error is found here. What lies beyond `stop` is left pending. */
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
        operand = 0;
    } else if (operand == 0 || operand > (size_t)(d->to - d->out)) {
        return ps_fail(err, PS_CORRUPT, at, "snappy: copy from %lu bytes back, %zu written",
                       (unsigned long)operand, (size_t)(d->to - d->out));
    }
    d->in = in;
    d->pending = (size_t)n;
    d->offset = operand;
    write_pending(d);
    return PS_OK;
}

/* Reads the length that the block declares, which must be `size`, or at least that. */
static ps_status begin(decoder *d, size_t size, bool exact, ps_error *err) {
    uint32_t declared = 0;
    if (d->in == d->in_end) return ps_fail(err, PS_TRUNCATED, 0, "snappy: empty input");
    PS_TRY(read_preamble(d, &declared, err));
    if (exact ? declared != size : declared < size)
        return ps_fail(err, PS_CORRUPT, 0, "snappy: block declares %lu bytes, %zu expected",
                       (unsigned long)declared, size);
    return PS_OK;
}

/* Decodes up to `stop`; where that is the end, and exact, nothing may follow. */
static ps_status go_on(decoder *d, bool exact, ps_error *err) {
    write_pending(d);
    while (d->to < d->stop) {
        run(d);
        if (d->to < d->stop) PS_TRY(element(d, exact, err));
    }
    if (exact && d->stop == d->to_end && d->in != d->in_end)
        return ps_fail(err, PS_CORRUPT, (uint64_t)(d->in - d->data),
                       "snappy: %zu bytes after the end", (size_t)(d->in_end - d->in));
    return PS_OK;
}

ps_status ps_snappy_decode(const uint8_t *data, size_t length, uint8_t *out, size_t size,
                           bool exact, ps_error *err) {
    if (length == 0) return ps_fail(err, PS_TRUNCATED, 0, "snappy: empty input");
    decoder d = {.data = data, .in = data, .in_end = data + length, .out = out, .to = out};
    PS_TRY(begin(&d, size, exact, err));
    d.to_end = d.stop = size > 0 ? out + size : out;
    return go_on(&d, exact, err);
}

ps_status ps_snappy_more(ps_lz_place *place, const uint8_t *data, size_t length, uint8_t *out,
                         size_t size, size_t reach, ps_error *err) {
    if (place->begun && reach < size && reach <= place->out) return PS_OK;
    if (length == 0) return ps_fail(err, PS_TRUNCATED, 0, "snappy: empty input");
    decoder d = {.data = data,
                 .in = data + place->in,
                 .in_end = data + length,
                 .out = out,
                 .to = out + place->out,
                 .to_end = out + size,
                 .stop = out + reach,
                 .pending = place->pending,
                 .offset = place->offset};
    if (!place->begun) PS_TRY(begin(&d, size, true, err));
    PS_TRY(go_on(&d, true, err));
    *place = (ps_lz_place){.in = (size_t)(d.in - data),
                           .out = (size_t)(d.to - out),
                           .pending = d.pending,
                           .offset = d.offset,
                           .begun = true};
    return PS_OK;
}
