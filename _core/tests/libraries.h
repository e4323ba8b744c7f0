/* libraries.h - the libzstd, the zlib and the libbrotlidec of this system for tests in C; pages that hold nothing but literals. */
#ifndef PAGESEEK_LIBRARIES_H
#define PAGESEEK_LIBRARIES_H

#include <dlfcn.h>
#include <string.h>

#include "../pageseek.h"

/* POSIX has a function in the place of a pointer to data. */
static inline bool take_functions(const char *const *libraries, const char *const *names,
                                  size_t n, void *to) {
    void *library = NULL;
    for (; *libraries && !library; libraries++)
        library = dlopen(*libraries, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; library && i < n; i++) {
        void *found = dlsym(library, names[i]);
        if (!found) return false;
        memcpy((char *)to + i * sizeof found, &found, sizeof found);
    }
    return library != NULL;
}

/* False where this system has no such library, or not where it is looked for. */
static inline bool use_zlib(void) {
    static const char *const libraries[] = {"libz.so.1", "libz.1.dylib", NULL},
                             *const names[] = {"inflateInit2_", "inflate", "inflateReset",
                                               "inflateEnd"};
    static ps_zlib found;
    const bool has = take_functions(libraries, names, 4, &found);
    ps_zlib_use(has ? &found : NULL);
    return has;
}

static inline bool use_libzstd(void) {
    static const char *const libraries[] = {"libzstd.so.1", "libzstd.1.dylib", NULL},
                             *const names[] = {"ZSTD_createDCtx",
                                               "ZSTD_freeDCtx",
                                               "ZSTD_DCtx_reset",
                                               "ZSTD_decompressDCtx",
                                               "ZSTD_decompressStream",
                                               "ZSTD_getFrameContentSize",
                                               "ZSTD_findFrameCompressedSize",
                                               "ZSTD_isError"};
    static ps_zstd found; /* without parameters, whose meaning depends on the version */
    const bool has = take_functions(libraries, names, 8, &found);
    ps_zstd_use(has ? &found : NULL);
    return has;
}

static inline bool use_brotli(void) {
    static const char *const libraries[] = {"libbrotlidec.so.1", "libbrotlidec.1.dylib", NULL},
                             *const names[] = {"BrotliDecoderCreateInstance",
                                               "BrotliDecoderDestroyInstance",
                                               "BrotliDecoderDecompressStream"};
    static ps_brotli found;
    const bool has = take_functions(libraries, names, 3, &found);
    ps_brotli_use(has ? &found : NULL);
    return has;
}

static inline size_t put_little(uint8_t *out, uint32_t value, size_t n) {
    for (size_t i = 0; i < n; i++) out[i] = (uint8_t)(value >> 8 * i);
    return n;
}

/* A gzip member of stored blocks (RFC 1951, 3.2.4) of `step` bytes. */
static inline size_t pack_gzip(const uint8_t *plain, size_t size, size_t step, uint8_t *out) {
    size_t n = 10;
    memcpy(out, "\x1f\x8b\x08\0\0\0\0\0\0\xff", n);
    for (size_t at = 0; at == 0 || at < size; at += step) {
        const size_t length = size - at < step ? size - at : step;
        n += put_little(out + n, at + step >= size, 1);
        n += put_little(out + n, (uint32_t)(length | (length ^ 0xffff) << 16), 4);
        memcpy(out + n, plain + at, length);
        n += length;
    }
    n += put_little(out + n, ps_crc32(0, plain, size), 4);
    return n + put_little(out + n, (uint32_t)size, 4);
}

/* A Brotli stream of uncompressed meta-blocks (RFC 7932, 9.2) of `step` bytes. */
static inline size_t pack_brotli(const uint8_t *plain, size_t size, size_t step, uint8_t *out) {
    size_t n = 0;
    if (size == 0) return put_little(out, 6, 1); /* a window of 16 bits; last, and empty */
    for (size_t at = 0; at < size; at += step) {
        const size_t length = size - at < step ? size - at : step;
        const uint32_t head = (uint32_t)(length - 1) << 3 | 1 << 19;
        n += put_little(out + n, at ? head : head << 1, 3);
        memcpy(out + n, plain + at, length);
        n += length;
    }
    return n + put_little(out + n, 3, 1);
}

#endif
