/* Any bytes as a ColumnIndex and as an OffsetIndex. */
#include "touch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    ps_error err;
    ps_column_index c;
    if (ps_column_index_read(data, length, 1 << 24, &c, &err) == PS_OK) {
        for (size_t i = 0; i < c.n_pages; i++) {
            require(c.null_pages[i] <= 1);
            touch(data, length, c.min_offset[i], c.min_length[i]);
            touch(data, length, c.max_offset[i], c.max_length[i]);
            require(!c.null_counts || c.null_counts[i] >= 0);
            require(!c.nan_counts || c.nan_counts[i] >= 0);
        }
        ps_column_index_clear(&c);
    } else {
        touch_error(&err);
    }
    ps_offset_index o;
    if (ps_offset_index_read(data, length, 1 << 24, &o, &err) != PS_OK) {
        touch_error(&err);
        return 0;
    }
    if (ps_offset_index_check(&o, INT64_MAX, 0, INT64_MAX, &err) == PS_OK)
        for (size_t i = 1; i < o.n_pages; i++)
            require(o.offset[i] >= o.offset[i - 1] + o.compressed_size[i - 1] &&
                    o.first_row[i] >= o.first_row[i - 1]);
    else
        touch_error(&err);
    ps_offset_index_clear(&o);
    return 0;
}
