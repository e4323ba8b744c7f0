/* utf8.h - validity of strings (Unicode 15, table 3-7). Internal. */
#ifndef PAGESEEK_UTF8_H
#define PAGESEEK_UTF8_H

#include "base.h"

/* PS_CORRUPT unless data is well-formed UTF-8: nothing overlong, no surrogates, nothing beyond
 * U+10FFFF. *bad, which may be NULL, receives the first byte of the sequence at fault. */
ps_status ps_utf8_check(const uint8_t *data, size_t length, size_t *bad);

/* Checks n strings; string i is data[offsets[i] .. offsets[i + 1]). The n + 1
 * offsets are trusted: not negative, never descending, inside data. *bad, which may be NULL,
 * receives the index of a string at fault, not always the first. */
ps_status ps_utf8_check_offsets32(const uint8_t *data, const int32_t *offsets, int64_t n,
                                  int64_t *bad);

/* Whether data is well-formed, and whether it is ASCII, by the scan that ps_utf8_choose chose: many bytes at a time. */
typedef enum ps_utf8 { PS_UTF8_BAD = 0, PS_UTF8_VALID = 1, PS_UTF8_ASCII = 2 } ps_utf8;
ps_utf8 ps_utf8_scan(const uint8_t *data, size_t length);
/* Whether each of n strings is well-formed by itself. Offsets have 4 bytes each, or 8 where they are `wide`, and are trusted as
 * above. */
bool ps_utf8_strings_valid(const uint8_t *data, const void *offsets, bool wide, int64_t n);

/* The scans that this processor can run. The plain one comes first, and is the oracle of the others; the last is the fastest. */
typedef struct ps_utf8_scanner {
    const char *name;
    ps_utf8 (*scan)(const uint8_t *data, size_t length);
} ps_utf8_scanner;
size_t ps_utf8_scanners(ps_utf8_scanner out[3]);

#endif
