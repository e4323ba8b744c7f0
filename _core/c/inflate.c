/* inflate.c - one interface for all codecs that the core knows. */
#include "base.h"
#include "brotli.h"
#include "gzip.h"
#include "zstd.h"

ps_status ps_inflate_fits(ps_codec codec, const uint8_t *data, size_t length, size_t size,
                          ps_error *err) {
    bool fits;
    switch (codec) {
    case PS_CODEC_ZSTD: fits = ps_zstd_fits(data, length, size); break;
    case PS_CODEC_GZIP: fits = ps_gzip_fits(length, size); break;
    case PS_CODEC_BROTLI: fits = ps_brotli_fits(length, size); break;
    default: /* a block expands at most 255-fold (LZ4) or about 22-fold (Snappy) */
        fits = length >= size / 256 || length * 256 + 64 >= size;
    }
    if (fits) return PS_OK;
    return ps_fail(err, PS_CORRUPT, PS_NOWHERE, "%zu compressed bytes cannot hold %zu", length,
                   size);
}

static ps_status not_held(size_t size, ps_error *err) {
    return ps_fail(err, PS_CORRUPT, PS_NOWHERE, "the page does not hold %zu bytes", size);
}

ps_status ps_inflate(ps_codec codec, const uint8_t *data, size_t length, uint8_t *out,
                     size_t size, size_t reach, ps_error *err) {
    const bool exact = reach == size;
    switch (codec) {
    case PS_CODEC_SNAPPY: return ps_snappy_decode(data, length, out, reach, exact, err);
    case PS_CODEC_LZ4_RAW: return ps_lz4_decode(data, length, out, reach, exact, err);
    case PS_CODEC_LZ4: return ps_lz4_hadoop_decode(data, length, out, reach, exact, err);
    case PS_CODEC_ZSTD:
        if (exact) return ps_zstd_decode(data, length, out, size) ? PS_OK : not_held(size, err);
        break;
    case PS_CODEC_GZIP:
    case PS_CODEC_BROTLI: break;
    default: return not_held(size, err);
    }
    ps_unpack part;
    ps_unpack_begin(&part, codec, data, length, out, size);
    const ps_status status = ps_unpack_more(&part, reach, err);
    ps_unpack_end(&part);
    return status;
}

static ps_status more(ps_reader *reader, size_t reach, ps_error *err) {
    return ps_unpack_more((ps_unpack *)(void *)reader, reach, err);
}

void ps_unpack_begin(ps_unpack *unpack, ps_codec codec, const uint8_t *data, size_t length,
                     uint8_t *out, size_t size) {
    const bool plain = codec == PS_CODEC_NONE;
    *unpack = (ps_unpack){
        .reader = {.data = plain ? data : out,
                   .size = size,
                   .have = plain ? (length < size ? length : size) : 0,
                   .more = more},
        .codec = codec,
        .whole = plain,
        .most = size,
        .out = out,
        .in = {.src = data, .size = length},
    };
}

/* Goes on where the library stopped. */
static bool stream(ps_unpack *u, size_t reach) {
    const size_t size = u->reader.size;
    switch (u->codec) {
    case PS_CODEC_GZIP:
        if (!u->context) u->context = ps_gzip_begin();
        return u->context &&
               ps_gzip_more(u->context, &u->in, u->out, &u->reader.have, reach, size);
    case PS_CODEC_BROTLI:
        if (!u->context) u->context = ps_brotli_begin();
        return u->context &&
               ps_brotli_more(u->context, &u->in, u->out, &u->reader.have, reach, size);
    default: break;
    }
    ps_zstd_out out = {.dst = u->out, .size = size, .pos = u->reader.have};
    if (!u->context) u->context = ps_zstd_begin();
    const bool done = u->context && ps_zstd_more(u->context, &u->in, &out, &u->hint, reach);
    u->reader.have = out.pos;
    return done;
}

/* Brings `have` to `reach`, or a little beyond. */
static ps_status go_on(ps_unpack *u, size_t reach, ps_error *err) {
    const uint8_t *data = u->in.src;
    const size_t length = u->in.size, size = u->reader.size;
    const bool at_once = u->codec == PS_CODEC_LZ4 ||
                         (u->codec == PS_CODEC_ZSTD && !u->begun && reach == size);
    if (at_once) {
        PS_TRY(ps_inflate(u->codec, data, length, u->out, size, reach, err));
        u->reader.have = reach;
    } else if (u->codec >= PS_CODEC_ZSTD) {
        if (!stream(u, reach)) return not_held(size, err);
    } else {
        PS_TRY((u->codec == PS_CODEC_SNAPPY ? ps_snappy_more : ps_lz4_more)(
            &u->place, data, length, u->out, size, reach, err));
        u->reader.have = u->place.out;
    }
    return PS_OK;
}

ps_status ps_unpack_more(ps_unpack *unpack, size_t reach, ps_error *err) {
    ps_reader *s = &unpack->reader;
    if (unpack->whole || (unpack->begun && reach <= s->have && reach < s->size)) return PS_OK;
    const bool again = unpack->codec == PS_CODEC_LZ4;
    if (reach > s->size || (again && (unpack->begun || reach > unpack->most))) reach = s->size;
    PS_TRY(go_on(unpack, reach, err));
    unpack->begun = true;
    unpack->whole = reach == s->size;
    return PS_OK;
}

void ps_unpack_end(ps_unpack *unpack) {
    switch (unpack->codec) {
    case PS_CODEC_GZIP: ps_gzip_end(unpack->context); break;
    case PS_CODEC_BROTLI: ps_brotli_end(unpack->context); break;
    default: ps_zstd_end(unpack->context, unpack->reader.size);
    }
    unpack->context = NULL;
}
