/* Any bytes as the directory and the last bytes of a file: what is found lies in the file, and what is called sound is. */
#include "touch.h"

enum { FIGURE = 8, HEADER = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    static const char *const parts[PS_ENTRY_PARTS] = {"{", "{\"", "\"", "\"", "\"", "\""};
    if (length < HEADER) return 0;
    ps_entry_form form = {.longest = 1 << 12};
    for (int i = 0; i < PS_ENTRY_PARTS; i++) {
        form.parts[i] = (const uint8_t *)parts[i];
        form.lengths[i] = strlen(parts[i]);
    }
    const uint8_t *values = data + HEADER;
    size_t space = length - HEADER, n = (data[0] | (size_t)data[1] << 8) % (space + 1);
    const uint8_t *tails = values + n;
    size_t tail = space - n, before = data[2], groups = data[3] % 4;
    int64_t size = (int64_t)(tail + before);
    static const uint8_t figures[4 * FIGURE] = {7, 6, 5};
    ps_entry_file file = {.value = data[4] == 255 ? PS_ABSENT : 0,
                          .value_length = (int64_t)n,
                          .tail_length = (int64_t)tail,
                          .size = size,
                          .footer_start = size - (int64_t)(data[5] % (tail + 1)),
                          .num_groups = (int64_t)groups};
    ps_entry out;
    ps_error err;
    ps_status status = ps_entries_find(values, n, tails, tail, figures, sizeof figures, FIGURE,
                                       &form, &file, 1, &out, &err);
    require(status == PS_OK);
    require(out.state >= PS_ENTRY_NONE && out.state <= PS_ENTRY_UNREAD);
    if (out.state == PS_ENTRY_SOUND || out.state == PS_ENTRY_DOUBTFUL) {
        int64_t at = out.offset - (size - (int64_t)tail);
        touch(tails, tail, at, out.length);
        if (out.state == PS_ENTRY_SOUND)
            require(ps_xxh64(tails + at, (size_t)out.length) == out.checksum &&
                    out.chunks == ps_xxh64(figures, groups * FIGURE));
    }
    return 0;
}
