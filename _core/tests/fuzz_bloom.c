/* Any bytes as a Bloom filter; a header that was read must not depend on the bytes behind it, and no hash leads
 * out of the bitset. */
#include "touch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    ps_error err;
    size_t head = 0, size = 0, again = 0, same = 0, found = 0;
    if (ps_bloom_header_read(data, length, &head, &size, &err) != PS_OK) {
        touch_error(&err);
        return 0;
    }
    require(head > 0 && head <= length && size > 0 && size % PS_BLOOM_BLOCK == 0);
    require(ps_bloom_header_read(data, head, &again, &same, &err) == PS_OK);
    require(again == head && same == size);
    require(ps_bloom_header_read(data, head - 1, &again, &same, &err) == PS_TRUNCATED);
    uint64_t hash = ps_xxh64(data, length), at;
    ps_bloom_places(&hash, 1, size / PS_BLOOM_BLOCK, &at);
    require(at % PS_BLOOM_BLOCK == 0 && at < size);
    if (size > length - head) return 0;
    require(ps_bloom_check(data + head, size, &at, &hash, 1, &found, &err) == PS_OK);
    require(found <= 1);
    return 0;
}
