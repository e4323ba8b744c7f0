/* utf8.h - validity of strings (Unicode 15, table 3-7). Internal. */
#ifndef PAGESEEK_UTF8_H
#define PAGESEEK_UTF8_H

#include "base.h"

/* PS_CORRUPT unless data is well-formed UTF-8: nothing overlong, no surrogates, nothing beyond
 * U+10FFFF. *bad, which may be NULL, receives the first byte of the sequence at fault. */
ps_status ps_utf8_check(const uint8_t *data, size_t length, size_t *bad);

/* The same for n strings, of which string i is data[offsets[i] .. offsets[i + 1]). The n + 1
 * offsets are trusted: not negative, never descending, inside data. *bad, which may be NULL, receives
 * the index of a string at fault, not always the first. */
ps_status ps_utf8_check_offsets32(const uint8_t *data, const int32_t *offsets, int64_t n,
                                  int64_t *bad);

#endif
