/* Any bytes as a footer: read it, read all its chunks, touch every range that came out. */
#include "touch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    ps_footer f;
    ps_error err;
    if (ps_footer_read(data, length, 1 << 24, &f, &err) != PS_OK) {
        touch_error(&err);
        return 0;
    }
    touch(data, length, f.created_by_offset, f.created_by_length);
    for (size_t i = 0; i < f.n_schema; i++)
        touch(data, length, f.schema[i].name_offset, f.schema[i].name_length);
    for (size_t i = 0; i < 2 * f.n_key_values; i++)
        touch(data, length, f.key_values[2 * i], f.key_values[2 * i + 1]);
    for (size_t i = 0; i < f.n_column_orders; i++) require(f.column_orders[i] >= 0);
    for (size_t i = 0; i < f.n_row_groups; i++)
        touch(data, length, f.row_groups[i].offset, f.row_groups[i].length);
    for (size_t i = 0; i < f.n_row_groups * f.n_leaves; i++) {
        ps_chunk c;
        size_t failed = 1;
        if (ps_chunks_read(data, length, &f.chunk_offsets[i], 1, &c, &failed, &err) != PS_OK) {
            require(failed == 0);
            touch_error(&err);
            continue;
        }
        /* the walk of the row group and the decoder agree on where a chunk ends */
        if ((i + 1) % f.n_leaves) require((uint64_t)c.end == f.chunk_offsets[i + 1]);
        touch(data, length, c.file_path_offset, c.file_path_length);
        touch_statistics(data, length, &c.statistics);
    }
    ps_footer_clear(&f);
    return 0;
}
