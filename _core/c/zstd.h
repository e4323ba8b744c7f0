/* zstd.h - what inflate.c asks of zstd.c. */
#ifndef PAGESEEK_ZSTD_H
#define PAGESEEK_ZSTD_H

#include "../pages.h"

/* Whether these bytes are one frame that says it holds `size` bytes, and no more. */
bool ps_zstd_fits(const uint8_t *data, size_t length, size_t size);
/* The first `reach` of the `size` bytes of a frame that fits; false where it is broken, or memory is wanting. */
bool ps_zstd_decode(const uint8_t *data, size_t length, uint8_t *out, size_t size,
                    size_t reach);

#endif
