/* Bytes 0, 1: output size; bit 0 of byte 2: exact; the rest is the block. */
#include <stdlib.h>

#include "../c/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    if (length < 3) return 0;
    const size_t size = ps_load16(data);
    uint8_t *out = malloc(size);
    if (out || size == 0) ps_snappy_decode(data + 3, length - 3, out, size, data[2] & 1, NULL);
    free(out);
    return 0;
}
