/* gzip.h - decoding of gzip and zlib members by zlib, for inflate.c. Internal. */
#ifndef PAGESEEK_GZIP_H
#define PAGESEEK_GZIP_H

#include "../pageseek.h"

/* Whether there is a library, and `length` bytes may hold `size`. */
bool ps_gzip_fits(size_t length, size_t size);

/* Decodes members from the front until `reach` bytes are out, of `size`: all of them means that the input ends there, too,
 * and that checksums are right. `in` and `*have` are zero at first, but for what `in` points to; they and the context
 * belong together until the end. ps_gzip_begin returns NULL where there is no memory. */
void *ps_gzip_begin(void);
bool ps_gzip_more(void *context, ps_zstd_in *in, uint8_t *out, size_t *have, size_t reach,
                  size_t size);
void ps_gzip_end(void *context);

#endif
