/* inflate.c - the codecs that the core knows, one way in for all. */
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
    case PS_CODEC_ZSTD:
        if (ps_zstd_decode(data, length, out, size, reach)) return PS_OK;
        break;
    default: break;
    }
    return ps_fail(err, PS_CORRUPT, PS_NOWHERE, "the page does not hold %zu bytes", size);
}
