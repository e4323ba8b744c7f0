/* Any bytes as a PageHeader; a header that was read must not depend on the bytes behind it. */
#include "touch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    ps_error err;
    ps_page_header h, again;
    if (ps_page_header_read(data, length, &h, &err) != PS_OK) {
        touch_error(&err);
        return 0;
    }
    require(h.header_length > 0 && (uint64_t)h.header_length <= length);
    require(h.uncompressed_size >= 0 && h.compressed_size >= 0);
    touch_statistics(data, length, &h.statistics);
    require(ps_page_header_read(data, (size_t)h.header_length, &again, &err) == PS_OK);
    require(memcmp(&h, &again, sizeof h) == 0);
    require(ps_page_header_read(data, (size_t)h.header_length - 1, &again, &err) ==
            PS_TRUNCATED);
    return 0;
}
