/* zstd.h - decoding of ZSTD frames, for inflate.c. Internal. */
#ifndef PAGESEEK_ZSTD_H
#define PAGESEEK_ZSTD_H

#include "../pageseek.h"

/* Whether these bytes are one frame that says it holds `size` bytes, and no more. */
bool ps_zstd_fits(const uint8_t *data, size_t length, size_t size);
/* The bytes of a frame that fits; false where it is broken, or memory is wanting. */
bool ps_zstd_decode(const uint8_t *data, size_t length, uint8_t *out, size_t size);

/* Decodes a frame block by block, no further than `reach`. `in` begins with the whole frame, `out` with space for all that it
 * holds. They, `hint` (0 at first) and the context belong together until the end. ps_zstd_begin returns NULL where
 * there is no memory. */
void *ps_zstd_begin(void);
bool ps_zstd_more(void *context, ps_zstd_in *in, ps_zstd_out *out, size_t *hint, size_t reach);
void ps_zstd_end(void *context, size_t size);

#endif
