/* zstd.h - what inflate.c asks of zstd.c. */
#ifndef PAGESEEK_ZSTD_H
#define PAGESEEK_ZSTD_H

#include "../pageseek.h"

/* Whether these bytes are one frame that says it holds `size` bytes, and no more. */
bool ps_zstd_fits(const uint8_t *data, size_t length, size_t size);
/* The bytes of a frame that fits; false where it is broken, or memory is wanting. */
bool ps_zstd_decode(const uint8_t *data, size_t length, uint8_t *out, size_t size);

/* The same block by block, and no further than is asked for. `in` and `out` begin with the whole frame and with room for all
 * that it holds; they, `hint` (0 at first) and the context (NULL: no memory) belong together until the end. */
void *ps_zstd_begin(void);
bool ps_zstd_more(void *context, ps_zstd_in *in, ps_zstd_out *out, size_t *hint, size_t reach);
void ps_zstd_end(void *context, size_t size);

#endif
