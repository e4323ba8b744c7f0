#include "utf8.h"

#define HIGH_BITS UINT64_C(0x8080808080808080)

static bool continues(uint8_t byte) {
    return (byte & 0xc0) == 0x80;
}

/* Length of the sequence at p, which has `left` >= 1 bytes; 0 when it is none. */
static size_t sequence(const uint8_t *p, size_t left) {
    const uint8_t lead = p[0];
    if (lead < 0x80) return 1;
    if (lead < 0xc2 || lead > 0xf4) return 0;
    const size_t n = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (left < n) return 0;
    /* Only four leads narrow the range of the byte after them. */
    const uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    const uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (p[1] < low || p[1] > high) return 0;
    if (n > 2 && !continues(p[2])) return 0;
    if (n > 3 && !continues(p[3])) return 0;
    return n;
}

ps_status ps_utf8_check(const uint8_t *data, size_t length, size_t *bad) {
    size_t i = 0;
    while (i < length) {
        while (length - i >= 32 && !((ps_load64(data + i) | ps_load64(data + i + 8) |
                                      ps_load64(data + i + 16) | ps_load64(data + i + 24)) &
                                     HIGH_BITS))
            i += 32;
        while (length - i >= 8 && !(ps_load64(data + i) & HIGH_BITS)) i += 8;
        while (i < length && data[i] < 0x80) i++;
        while (i < length && data[i] >= 0x80) {
            const size_t n = sequence(data + i, length - i);
            if (n == 0) {
                if (bad) *bad = i;
                return PS_CORRUPT;
            }
            i += n;
        }
    }
    return PS_OK;
}

ps_status ps_utf8_check_offsets32(const uint8_t *data, const int32_t *offsets, int64_t n,
                                  int64_t *bad) {
    if (n <= 0 || offsets[n] == offsets[0]) return PS_OK;
    size_t at;
    if (ps_utf8_check(data + offsets[0], (size_t)(offsets[n] - offsets[0]), &at) != PS_OK) {
        int64_t low = 0, high = n - 1; /* the last string that begins at or before the byte */
        while (low < high) {
            int64_t middle = high - (high - low) / 2;
            if ((size_t)(offsets[middle] - offsets[0]) <= at)
                low = middle;
            else
                high = middle - 1;
        }
        if (bad) *bad = low;
        return PS_CORRUPT;
    }
    for (int64_t i = 0; i < n; i++) {
        if (offsets[i] < offsets[n] && continues(data[offsets[i]])) {
            if (bad) *bad = i;
            return PS_CORRUPT;
        }
    }
    return PS_OK;
}
