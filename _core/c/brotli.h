/* brotli.h - decoding of a Brotli stream by libbrotlidec, for inflate.c. Internal. */
#ifndef PAGESEEK_BROTLI_H
#define PAGESEEK_BROTLI_H

#include "../pageseek.h"

/* Whether there is a library, and `length` bytes may hold `size`. */
bool ps_brotli_fits(size_t length, size_t size);

/* Decodes a stream from the front until `reach` bytes are out, of `size`: all of them means that the stream ends there, and
 * the input with it. `in` and `*have` are zero at first, but for what `in` points to; they and the context belong
 * together until the end. ps_brotli_begin returns NULL where there is no memory. */
void *ps_brotli_begin(void);
bool ps_brotli_more(void *context, ps_zstd_in *in, uint8_t *out, size_t *have, size_t reach,
                    size_t size);
void ps_brotli_end(void *context);

#endif
