/* bloom.h - the bits of a block of a split-block Bloom filter. Internal. */
#ifndef PAGESEEK_BLOOM_H
#define PAGESEEK_BLOOM_H

#include "base.h"

/* The bit that a key has in the i-th of the eight words of its block. */
PS_INLINE uint32_t ps_bloom_bit(uint32_t key, int i) {
    static const uint32_t salt[8] = {0x47b6137bu, 0x44974d91u, 0x8824ad5bu, 0xa2b7289du,
                                     0x705495c7u, 0x2df1424bu, 0x9efc4947u, 0x5c6bfb31u};
    return UINT32_C(1) << (key * salt[i] >> 27);
}

#endif
