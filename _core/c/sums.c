/* sums.c - the checksum of an attached ColumnIndex or OffsetIndex (docs/format.md, BinaryProtocolExtensions.md). */
#include "base.h"

const uint8_t ps_sum_field[PS_SUM_FIELD] = {
    0x08, 0xfe, 0xff, 0x03, /* field 32767, binary */
    0x18,                   /* of 24 bytes: this UUID, and the sum */
    0x48, 0x60, 0x30, 0x5d, 0x61, 0xb6, 0x4c, 0x5e,
    0xae, 0x94, 0x64, 0xb9, 0xc8, 0x66, 0x41, 0x64,
};

ps_sum ps_sum_check(const uint8_t *data, size_t length, uint64_t chunk_start) {
    if (length < PS_SUM_END || memcmp(data + length - PS_SUM_END, ps_sum_field, PS_SUM_FIELD))
        return PS_SUM_NONE;
    const size_t at = length - 9;
    const uint64_t found = ps_xxh64(data, at) ^ chunk_start;
    return ps_load64(data + at) == found && data[length - 1] == 0 ? PS_SUM_FITS
                                                                  : PS_SUM_DIFFERS;
}
