/* compact.h - keep what a mask chooses, of values and of bits, and the way back. Internal.
 *
 * A mask is an array of words: bit i % 64 of word i / 64 stands for row i. Bits behind the last row are
 * zero, unless a contract says that they do not matter. */
#ifndef PAGESEEK_COMPACT_H
#define PAGESEEK_COMPACT_H

#include "base.h"

PS_INLINE size_t ps_words_for(size_t n) {
    return n / 64 + (n % 64 != 0);
}

/* n bits that begin at bit `at`; no byte that holds none of them is read. */
void ps_words_load(uint64_t *out, const uint8_t *bits, size_t at, size_t n);
size_t ps_words_count(const uint64_t *words, size_t n_words);
/* Runs of ones. */
size_t ps_words_runs(const uint64_t *words, size_t n_words);
/* Bits up to the last one that is set: 0 when there is none. */
size_t ps_words_end(const uint64_t *words, size_t n_words);

/* The bits of `in` under the ones of mask, moved together; their number. out, which is not in, has
 * n_words + 1 words; bits behind the result are zero in those that it reaches. */
size_t ps_words_compress(uint64_t *out, const uint64_t *in, const uint64_t *mask,
                         size_t n_words);
/* The way back: bit k of `in` goes to the k-th one of mask, all other bits are zero. `in` has
 * n_words + 1 words that can be read. */
void ps_words_expand(uint64_t *out, const uint64_t *in, const uint64_t *mask, size_t n_words);
/* One word of the latter. */
uint64_t ps_word_expand(uint64_t bits, uint64_t mask);

/* The values of `width` bytes, n of them, whose bit of mask is set, to out, which is not in. out has space
 * for `space` values, all of which may be overwritten; at least as many as there are ones. Their number. */
size_t ps_compact(uint8_t *out, size_t space, const uint8_t *in, size_t width,
                  const uint64_t *mask, size_t n);

/* The other way, in place: the first n values of out go to the n ones among `rows` bits from bit `at`; the
 * places between are zero. */
void ps_spread(uint8_t *out, size_t width, const uint8_t *bits, size_t at, size_t rows,
               size_t n);

#endif
