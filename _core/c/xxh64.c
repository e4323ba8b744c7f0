/* xxh64.c - XXH64 with seed 0, the hash of Bloom filters and of checksums (xxhash_spec.md, version 0.1.1). */
#include "base.h"

static const uint64_t P1 = 0x9e3779b185ebca87u, P2 = 0xc2b2ae3d27d4eb4fu,
                      P3 = 0x165667b19e3779f9u, P4 = 0x85ebca77c2b2ae63u,
                      P5 = 0x27d4eb2f165667c5u;

PS_INLINE uint64_t rotate(uint64_t v, int by) {
    return v << by | v >> (64 - by);
}

PS_INLINE uint64_t lane_round(uint64_t lane, uint64_t word) {
    return rotate(lane + word * P2, 31) * P1;
}

uint64_t ps_xxh64(const uint8_t *data, size_t length) {
    const uint8_t *p = data;
    size_t left = length;
    uint64_t h = P5;
    if (left >= 32) {
        uint64_t lane[4] = {P1 + P2, P2, 0, 0 - P1};
        for (; left >= 32; left -= 32)
            for (int i = 0; i < 4; i++, p += 8) lane[i] = lane_round(lane[i], ps_load64(p));
        h = rotate(lane[0], 1) + rotate(lane[1], 7) + rotate(lane[2], 12) + rotate(lane[3], 18);
        for (int i = 0; i < 4; i++) h = (h ^ lane_round(0, lane[i])) * P1 + P4;
    }
    h += (uint64_t)length;
    for (; left >= 8; left -= 8, p += 8)
        h = rotate(h ^ lane_round(0, ps_load64(p)), 27) * P1 + P4;
    if (left >= 4) {
        h = rotate(h ^ ps_load32(p) * P1, 23) * P2 + P3;
        left -= 4, p += 4;
    }
    for (; left; left--, p++) h = rotate(h ^ *p * P5, 11) * P1;
    h = (h ^ h >> 33) * P2;
    h = (h ^ h >> 29) * P3;
    return h ^ h >> 32;
}

void ps_xxh64_pieces(const uint8_t *data, size_t length, size_t piece, uint64_t key,
                     uint8_t *out) {
    for (size_t at = 0; at < length; at += piece, out += 8) {
        const size_t left = length - at;
        ps_store64(out, ps_xxh64(data + at, left < piece ? left : piece) ^ key);
        if (left <= piece) return;
    }
}
