/* compact.h - values and bits that a mask chooses, moved together, and the way back. Internal.
 *
 * A mask is an array of words: bit i % 64 of word i / 64 stands for row i. Bits behind the last row are
 * zero, unless a contract says that they do not matter. */
#ifndef PAGESEEK_COMPACT_H
#define PAGESEEK_COMPACT_H

#include "base.h"

PS_INLINE size_t ps_words_for(size_t n) {
    return n / 64 + (n % 64 != 0);
}

/* Loads n bits from bit `at` on. No byte that holds none of them is read. */
void ps_words_load(uint64_t *out, const uint8_t *bits, size_t at, size_t n);
/* The number of ones. */
size_t ps_words_count(const uint64_t *words, size_t n_words);
/* The number of runs of ones. */
size_t ps_words_runs(const uint64_t *words, size_t n_words);
/* The number of bits up to the last one that is set; 0 where none is. */
size_t ps_words_end(const uint64_t *words, size_t n_words);

/* Moves the bits of `in` under the ones of mask together, and returns their number. `out` is not `in` and has
 * n_words + 1 words. Bits behind the result are zero in the words that it reaches. */
size_t ps_words_compress(uint64_t *out, const uint64_t *in, const uint64_t *mask,
                         size_t n_words);
/* The way back: moves bit k of `in` to the k-th one of mask. All other bits become zero. `in` has n_words + 1 words
 * that can be read. */
void ps_words_expand(uint64_t *out, const uint64_t *in, const uint64_t *mask, size_t n_words);
/* Does this for one word. */
uint64_t ps_word_expand(uint64_t bits, uint64_t mask);

/* Copies those of n values of `width` bytes whose bit of mask is set, and returns their number. `out` is not `in`. It
 * has space for `space` values, at least the number of ones, and all of it may be overwritten. */
size_t ps_compact(uint8_t *out, size_t space, const uint8_t *in, size_t width,
                  const uint64_t *mask, size_t n);

/* The way back, in place: moves the first n values of out to the n ones among `rows` bits from bit `at`. The places
 * between become zero. */
void ps_spread(uint8_t *out, size_t width, const uint8_t *bits, size_t at, size_t rows,
               size_t n);

#endif
