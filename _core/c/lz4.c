/* lz4.c - LZ4 blocks, raw and in Hadoop's framing.
 * A block is a row of sequences: token (literal count, match length - 4, a nibble each, 15 = more
 * bytes follow), literals, 16-bit offset. The last sequence ends after its literals. */
#include "lz.h"

enum {
    MIN_MATCH = 4,
    /* What the fast loop may touch in one turn, long runs apart: a token, 16 literals and an offset
     * read; 14 literals and 18 bytes of match, which are copied 16 at a time, written. */
    IN_SLACK = 1 + 16 + 2,
    MATCH_ROOM = 18,
    OUT_SLACK = 14 + MATCH_ROOM + PS_LZ_SLACK
};

typedef struct decoder {
    const uint8_t *data, *in, *in_end;
    uint8_t *out, *to, *to_end;
    uint8_t
        *stop; /* at or before to_end: no sequence begins here or later, unless it is the end */
    ps_lz_place place; /* but for `in` and `out`: the sequence that is begun */
} decoder;

static uint64_t position(const decoder *d, const uint8_t *at) {
    return (uint64_t)(at - d->data);
}

/* The bytes that follow a nibble of 15: each adds to *n, and one below 255 is the last. False when
 * they reach `last` or make more than `space`. */
PS_INLINE bool add_more(const uint8_t **in, const uint8_t *last, size_t space, size_t *n) {
    size_t more;
    do {
        if (*in >= last || *n > space) return false;
        more = *(*in)++;
        *n += more;
    } while (more == 255);
    return *n <= space;
}

/* Decodes sequences far from both ends, and stops at one that is near an end or wrong, which is for `sequence`. */
PS_INLINE void run(decoder *d) {
    if (d->in_end - d->in < IN_SLACK || d->to_end - d->to < OUT_SLACK) return;
    /* In locals, because a store through `to` might change *d for all that the compiler knows. */
    const uint8_t *in = d->in, *const last = d->in_end - IN_SLACK, *const out = d->out;
    uint8_t *to = d->to, *to_last = d->to_end - OUT_SLACK;
    if (to_last >= d->stop) to_last = d->stop - 1;
    while (in <= last && to <= to_last) {
        const uint8_t *next = in + 1;
        uint8_t *match = to;
        size_t token = *in, n = token >> 4;
        if (PS_LIKELY(n < 15)) {
            ps_lz_copy16(match, next);
        } else {
            if (!add_more(&next, last, (size_t)(to_last - to), &n)) break;
            if (n > (size_t)(last - next)) break;
            if (n <= 64)
                for (size_t i = 0; i < n; i += 16) ps_lz_copy16(match + i, next + i);
            else
                memcpy(match, next, n);
        }
        next += n;
        match += n;

        size_t offset = ps_load16(next);
        next += 2;
        if (PS_UNLIKELY(offset - 1 >= (size_t)(match - out))) break; /* 0 wraps around */
        n = (token & 15) + MIN_MATCH;
        if (n < 15 + MIN_MATCH && PS_LIKELY(offset >= 16)) {
            ps_lz_copy16(match, match - offset);
            ps_store16(match + 16, ps_load16(match - offset + 16));
        } else {
            if (n == 15 + MIN_MATCH &&
                !add_more(&next, last, (size_t)(to_last + MATCH_ROOM - match), &n))
                break;
            ps_lz_repeat_wide(match, offset, n);
        }
        in = next;
        to = match + n;
    }
    d->in = in;
    d->to = to;
}

/* add_more for any input; the sum of 64 bits cannot overflow. */
static ps_status read_more(decoder *d, uint64_t *n, ps_error *err) {
    uint8_t more;
    do {
        if (d->in == d->in_end)
            return ps_fail(err, PS_TRUNCATED, position(d, d->in),
                           "lz4: input ends inside a length");
        more = *d->in++;
        *n += more;
    } while (more == 255);
    return PS_OK;
}

/* Writes what is pending, as far as `stop`. */
static void write_pending(decoder *d) {
    ps_lz_place *p = &d->place;
    const size_t space = (size_t)(d->stop - d->to), n = p->pending < space ? p->pending : space;
    if (n == 0) return;
    if (p->offset) {
        ps_lz_repeat(d->to, p->offset, n);
    } else {
        memcpy(d->to, d->in, n);
        d->in += n;
    }
    d->to += n;
    p->pending -= n;
}

/* A token and the number of literals. What the output has no space for is an error, or with `cut` the end. */
static ps_status begin_literals(decoder *d, bool cut, ps_error *err) {
    if (d->in == d->in_end)
        return ps_fail(err, PS_TRUNCATED, position(d, d->in),
                       "lz4: input ends without a last sequence, after %zu bytes of output",
                       (size_t)(d->to - d->out));
    const uint64_t at = position(d, d->in);
    const unsigned token = *d->in++;

    uint64_t n = token >> 4;
    const size_t space = (size_t)(d->to_end - d->to);
    if (n == 15) PS_TRY(read_more(d, &n, err));
    if (n > space) {
        if (!cut)
            return ps_fail(err, PS_CORRUPT, at, "lz4: %llu literals, space for %zu",
                           (unsigned long long)n, space);
        n = space;
    }
    const size_t left = (size_t)(d->in_end - d->in);
    if (n > left)
        return ps_fail(err, PS_TRUNCATED, at, "lz4: %llu literals, %zu bytes left",
                       (unsigned long long)n, left);
    d->place = (ps_lz_place){.pending = (size_t)n, .token_at = (size_t)at, .element = true};
    return PS_OK;
}

/* The offset and the length of the match that follows the literals. */
static ps_status begin_match(decoder *d, bool cut, ps_error *err) {
    const size_t at = d->place.token_at, space = (size_t)(d->to_end - d->to);
    if (d->in_end - d->in < 2)
        return ps_fail(err, PS_TRUNCATED, position(d, d->in),
                       "lz4: input ends inside an offset");
    const size_t offset = ps_load16(d->in), written = (size_t)(d->to - d->out);
    if (offset == 0 || offset > written)
        return ps_fail(err, PS_CORRUPT, position(d, d->in),
                       "lz4: match from %zu bytes back, %zu written", offset, written);
    d->in += 2;
    uint64_t n = d->data[at] & 15;
    if (n == 15) PS_TRY(read_more(d, &n, err));
    n += MIN_MATCH;
    if (n > space) {
        if (!cut)
            return ps_fail(err, PS_CORRUPT, at, "lz4: match of %llu bytes, space for %zu",
                           (unsigned long long)n, space);
        n = space;
    }
    d->place = (ps_lz_place){.pending = (size_t)n, .offset = offset};
    return PS_OK;
}

/* Any one sequence, anywhere, or the rest of one, as far as `stop`: every error is found here. *last: the block is done. */
static ps_status sequence(decoder *d, bool cut, bool *last, ps_error *err) {
    const bool all = d->stop == d->to_end;
    if (!d->place.pending && !d->place.element) PS_TRY(begin_literals(d, cut, err));
    if (d->place.element) {
        write_pending(d);
        if (d->place.pending) return PS_OK;
        *last = all && (d->in == d->in_end || (cut && d->to == d->to_end));
        if (*last || (!all && d->to == d->stop)) return PS_OK;
        PS_TRY(begin_match(d, cut, err));
    }
    write_pending(d);
    *last = cut && d->to == d->to_end;
    return PS_OK;
}

/* Decodes to the end of the block where that is the place to stop, else up to `stop`. */
static ps_status go_on(decoder *d, bool cut, ps_error *err) {
    for (bool last = false; !last && (d->to < d->stop || d->stop == d->to_end);) {
        if (!d->place.pending && !d->place.element) run(d);
        if (d->to >= d->stop && d->stop != d->to_end) break;
        PS_TRY(sequence(d, cut, &last, err));
    }
    return PS_OK;
}

/* One block into at most `space` bytes; *size receives their number. */
static ps_status block(const uint8_t *data, size_t length, uint8_t *out, size_t space, bool cut,
                       size_t *size, ps_error *err) {
    uint8_t none[1];
    if (space == 0) out = none; /* it may be NULL, which takes no arithmetic */
    *size = 0;
    if (cut && space == 0) return PS_OK;
    if (length == 0) return ps_fail(err, PS_TRUNCATED, 0, "lz4: empty input");
    decoder d = {.data = data,
                 .in = data,
                 .in_end = data + length,
                 .out = out,
                 .to = out,
                 .to_end = out + space,
                 .stop = out + space};
    PS_TRY(go_on(&d, cut, err));
    *size = (size_t)(d.to - d.out);
    return PS_OK;
}

static ps_status wrong_size(size_t got, size_t size, size_t length, ps_error *err) {
    return ps_fail(err, PS_TRUNCATED, length, "lz4: %zu bytes of output, %zu expected", got,
                   size);
}

ps_status ps_lz4_decode(const uint8_t *data, size_t length, uint8_t *out, size_t size,
                        bool exact, ps_error *err) {
    size_t got;
    PS_TRY(block(data, length, out, size, !exact, &got, err));
    return got == size ? PS_OK : wrong_size(got, size, length, err);
}

ps_status ps_lz4_more(ps_lz_place *place, const uint8_t *data, size_t length, uint8_t *out,
                      size_t size, size_t reach, ps_error *err) {
    if (reach < size && place->out >= reach) return PS_OK;
    if (length == 0) return ps_fail(err, PS_TRUNCATED, 0, "lz4: empty input");
    decoder d = {.data = data,
                 .in = data + place->in,
                 .in_end = data + length,
                 .out = out,
                 .to = out + place->out,
                 .to_end = out + size,
                 .stop = out + reach,
                 .place = *place};
    PS_TRY(go_on(&d, false, err));
    const size_t got = (size_t)(d.to - out);
    /* before `reach` only where the block is over */
    if (got < reach) return wrong_size(got, size, length, err);
    d.place.in = (size_t)(d.in - data);
    d.place.out = got;
    *place = d.place;
    return PS_OK;
}

static uint32_t load_be32(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Frames of: be32 size, then until blocks have yielded that many bytes: be32 length, block.
 * Most writers put one block in a frame; Hadoop's BlockCompressorStream as many as it needs. */
static ps_status frames(const uint8_t *data, size_t length, uint8_t *out, size_t size,
                        bool exact, ps_error *err) {
    size_t at = 0, done = 0;
    do {
        if (length - at < 4)
            return ps_fail(err, PS_TRUNCATED, at, "lz4: input ends inside the size of a frame");
        size_t frame = load_be32(data + at);
        if (exact && frame > size - done)
            return ps_fail(err, PS_CORRUPT, at, "lz4: frame of %zu bytes, space for %zu", frame,
                           size - done);
        at += 4;
        do {
            if (frame == 0 && at == length) break; /* an empty frame needs no block */
            if (length - at < 4)
                return ps_fail(err, PS_TRUNCATED, at,
                               "lz4: input ends inside the length of a block");
            size_t compressed = load_be32(data + at), got = 0;
            at += 4;
            if (compressed > length - at)
                return ps_fail(err, PS_TRUNCATED, at - 4, "lz4: block of %zu bytes, %zu left",
                               compressed, length - at);
            size_t space = size - done;
            bool cut = frame > space;
            ps_status status = block(data + at, compressed, size ? out + done : out,
                                     cut ? space : frame, cut, &got, err);
            if (status != PS_OK) {
                if (err) err->offset += at;
                return status;
            }
            at += compressed;
            done += got;
            frame -= got;
            if (!exact && done == size) return PS_OK;
        } while (frame > 0);
    } while (exact ? at < length : done < size);
    return done == size ? PS_OK : wrong_size(done, size, length, err);
}

ps_status ps_lz4_hadoop_decode(const uint8_t *data, size_t length, uint8_t *out, size_t size,
                               bool exact, ps_error *err) {
    ps_error framed;
    ps_status status = frames(data, length, out, size, exact, &framed);
    if (status == PS_OK) return PS_OK;
    /* A raw block of more than nothing begins with literals, so with a byte above 15; a frame below
     * 256 MiB does not. That tells whose error to report. */
    bool raw = length == 0 || data[0] > 15;
    ps_status second = ps_lz4_decode(data, length, out, size, exact, raw ? err : NULL);
    if (raw || second == PS_OK) return second;
    if (err) *err = framed;
    return status;
}
