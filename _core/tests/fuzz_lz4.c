/* Bytes 0, 1: output size; byte 2: bit 0 exact, bit 1 Hadoop framing, the others where an exact decode of a raw block stops on its
 * way; the rest is the block. */
#include "fuzz_blocks.h"

#include "../c/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    if (length < 3) return 0;
    const size_t size = ps_load16(data);
    const bool exact = data[2] & 1, hadoop = data[2] & 2;
    uint8_t *out = malloc(size ? size : 1);
    require(out != NULL);
    const ps_status status = (hadoop ? ps_lz4_hadoop_decode : ps_lz4_decode)(
        data + 3, length - 3, out, size, exact, NULL);
    if (exact && !hadoop)
        require_same_in_parts(ps_lz4_more, data + 3, length - 3, size,
                              size * (data[2] >> 2) / 64, status, out);
    free(out);
    return 0;
}
