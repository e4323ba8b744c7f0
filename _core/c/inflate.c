/* inflate.c - one interface for all codecs that the core knows. */
#include "base.h"
#include "zstd.h"

ps_status ps_inflate_fits(ps_codec codec, const uint8_t *data, size_t length, size_t size,
                          ps_error *err) {
    if (codec == PS_CODEC_ZSTD) {
        if (ps_zstd_fits(data, length, size)) return PS_OK;
    } else if (length >= size / 256 || length * 256 + 64 >= size) {
        /* a block expands at most 255-fold (LZ4) or about 22-fold (Snappy) */
        return PS_OK;
    }
    return ps_fail(err, PS_CORRUPT, PS_NOWHERE, "%zu compressed bytes cannot hold %zu", length,
                   size);
}

ps_status ps_inflate(ps_codec codec, const uint8_t *data, size_t length, uint8_t *out,
                     size_t size, size_t reach, ps_error *err) {
    const bool exact = reach == size;
    switch (codec) {
    case PS_CODEC_SNAPPY: return ps_snappy_decode(data, length, out, reach, exact, err);
    case PS_CODEC_LZ4_RAW: return ps_lz4_decode(data, length, out, reach, exact, err);
    case PS_CODEC_LZ4: return ps_lz4_hadoop_decode(data, length, out, reach, exact, err);
    case PS_CODEC_ZSTD: {
        if (exact && ps_zstd_decode(data, length, out, size)) return PS_OK;
        if (exact) break;
        ps_unpack part;
        ps_unpack_begin(&part, codec, data, length, out, size);
        const ps_status status = ps_unpack_more(&part, reach, err);
        ps_unpack_end(&part);
        return status;
    }
    default: break;
    }
    return ps_fail(err, PS_CORRUPT, PS_NOWHERE, "the page does not hold %zu bytes", size);
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

ps_status ps_unpack_more(ps_unpack *unpack, size_t reach, ps_error *err) {
    ps_reader *s = &unpack->reader;
    const bool zstd = unpack->codec == PS_CODEC_ZSTD;
    if (unpack->whole || (unpack->begun && reach <= s->have && reach < s->size)) return PS_OK;
    if (reach > s->size || (!zstd && (unpack->begun || reach > unpack->most))) reach = s->size;
    if (!zstd || (!unpack->begun && reach == s->size)) {
        PS_TRY(ps_inflate(unpack->codec, unpack->in.src, unpack->in.size, unpack->out, s->size,
                          reach, err));
        s->have = reach;
    } else {
        ps_zstd_out out = {.dst = unpack->out, .size = s->size, .pos = s->have};
        if (!unpack->context) unpack->context = ps_zstd_begin();
        if (!unpack->context ||
            !ps_zstd_more(unpack->context, &unpack->in, &out, &unpack->hint, reach))
            return ps_fail(err, PS_CORRUPT, PS_NOWHERE, "the page does not hold %zu bytes",
                           s->size);
        s->have = out.pos;
    }
    unpack->begun = true;
    unpack->whole = reach == s->size;
    return PS_OK;
}

void ps_unpack_end(ps_unpack *unpack) {
    ps_zstd_end(unpack->context, unpack->reader.size);
    unpack->context = NULL;
}
