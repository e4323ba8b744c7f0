/* fuzz_blocks.h - what the fuzz targets of Snappy and LZ4 do with a block: an exact decode equals one that stops on its way. */
#ifndef PAGESEEK_FUZZ_BLOCKS_H
#define PAGESEEK_FUZZ_BLOCKS_H

#include "touch.h"

typedef ps_status more_fn(ps_lz_place *, const uint8_t *, size_t, uint8_t *, size_t, size_t,
                          ps_error *);

/* `status` and `wanted`: the outcome of one pass. The decode stops at `reach`, and once more half way from there. */
static inline void require_same_in_parts(more_fn *more, const uint8_t *data, size_t length,
                                         size_t size, size_t reach, ps_status status,
                                         const uint8_t *wanted) {
    uint8_t *out = malloc(size ? size : 1);
    require(out != NULL);
    ps_lz_place place = {0};
    ps_status found = more(&place, data, length, out, size, reach, NULL);
    if (found == PS_OK)
        found = more(&place, data, length, out, size, reach + (size - reach) / 2, NULL);
    if (found == PS_OK) found = more(&place, data, length, out, size, size, NULL);
    require((found == PS_OK) == (status == PS_OK));
    if (status == PS_OK && size) require(memcmp(out, wanted, size) == 0);
    free(out);
}

#endif
