/* views.c - byte strings as Arrow's views: 16 bytes each, which are the length and a string of up to 12 bytes; of a longer
 * one its first 4 bytes, and where it lies among the bytes of the output. */
#include "leaf.h"
#include "utf8.h"

/* Of the first and the last 8 bytes of a view, those that a short string of each length uses. */
static const uint64_t used[PS_VIEW_SHORT + 1][2] = {
    {UINT64_C(0xffffffff), 0},
    {UINT64_C(0xffffffffff), 0},
    {UINT64_C(0xffffffffffff), 0},
    {UINT64_C(0xffffffffffffff), 0},
    {UINT64_MAX, 0},
    {UINT64_MAX, UINT64_C(0xff)},
    {UINT64_MAX, UINT64_C(0xffff)},
    {UINT64_MAX, UINT64_C(0xffffff)},
    {UINT64_MAX, UINT64_C(0xffffffff)},
    {UINT64_MAX, UINT64_C(0xffffffffff)},
    {UINT64_MAX, UINT64_C(0xffffffffffff)},
    {UINT64_MAX, UINT64_C(0xffffffffffffff)},
    {UINT64_MAX, UINT64_MAX},
};

/* Appends the bytes of a long string, and makes its view. `likely`: rows of which the strings so far tell how many bytes are
 * to come, or 0. */
static ps_status put_long(ps_leaf *leaf, uint8_t *view, const uint8_t *from, size_t from_space,
                          size_t length, int64_t likely, ps_error *err) {
    ps_grow *bytes = &leaf->out.values;
    const size_t at = bytes->size;
    if (length > INT32_MAX)
        return ps_fail(err, PS_LIMIT, PS_NOWHERE, "a byte string of %zu bytes", length);
    if (length > bytes->capacity - at)
        PS_TRY(ps_output_grow_strings(leaf, likely, at + length, err));
    ps_copy_string(bytes->data + at, bytes->capacity - at, from, from_space, length);
    bytes->size = at + length;
    ps_store32(view, (uint32_t)length);
    memcpy(view + 4, from, 4);
    ps_store32(view + 8, (uint32_t)(at >> PS_VIEW_BITS));
    ps_store32(view + 12, (uint32_t)(at & (((size_t)1 << PS_VIEW_BITS) - 1)));
    return PS_OK;
}

ps_status ps_views_put(ps_leaf *leaf, uint8_t *view, const uint8_t *from, size_t from_space,
                       size_t length, ps_error *err) {
    if (length > PS_VIEW_SHORT) {
        leaf->out.unchecked = true;
        return put_long(leaf, view, from, from_space, length, 0, err);
    }
    uint8_t bytes[16] = {0};
    memcpy(bytes + 4, from, length);
    const uint64_t low = ps_load64(bytes) | length, high = ps_load64(bytes + 8);
    ps_store64(view, low);
    ps_store64(view + 8, high);
    if ((low | high) & PS_HIGH_BITS) leaf->out.unchecked = true;
    return PS_OK;
}

/* The length and the bytes of a PLAIN string lie as those of a short view do. */
ps_status ps_views_read_plain(ps_leaf *leaf, int64_t dense, int64_t n, ps_error *err) {
    const uint8_t *p = leaf->page.place.at, *const end = leaf->page.values +
                                                         leaf->page.values_length;
    uint8_t *out = leaf->out.offsets.data + 16 * (size_t)dense;
    const size_t size = leaf->out.values.size;
    uint64_t seen = 0;
    ps_status status = PS_OK;
    for (int64_t i = 0; i < n; i++, out += 16) {
        const size_t left = (size_t)(end - p);
        size_t length;
        if (left < 4 || (length = ps_load32(p)) > left - 4) {
            status = ps_page_short(leaf, i, err);
            break;
        }
        if (length > PS_VIEW_SHORT) {
            status = put_long(leaf, out, p + 4, left - 4, length, dense + i + 1, err);
            if (status != PS_OK) break;
        } else {
            uint8_t last[16] = {0};
            if (PS_UNLIKELY(left < 16)) memcpy(last, p, left);
            const uint8_t *from = left < 16 ? last : p;
            const uint64_t low = ps_load64(from) & used[length][0],
                           high = ps_load64(from + 8) & used[length][1];
            ps_store64(out, low);
            ps_store64(out + 8, high);
            seen |= low | high;
        }
        p += 4 + length;
    }
    leaf->page.place.at = p;
    if (leaf->out.values.size > size || (seen & PS_HIGH_BITS)) leaf->out.unchecked = true;
    return status;
}

/* ---- entries of a dictionary ---------------------------------------------------------------- */

void ps_views_entry(uint8_t *view, const uint8_t *from, size_t length) {
    memset(view, 0, 16);
    ps_store32(view, (uint32_t)length);
    memcpy(view + 4, from, length > PS_VIEW_SHORT ? 4 : length);
    if (length > PS_VIEW_SHORT) ps_store32(view + 8, PS_VIEW_ABSENT);
}

ps_status ps_views_gather(ps_leaf *leaf, const uint32_t *codes, uint8_t *out, size_t n,
                          ps_error *err) {
    ps_dictionary *d = &leaf->dictionary;
    uint8_t *views = d->values.data;
    if (!d->has_long) {
        for (size_t i = 0; i < n; i++) memcpy(out + 16 * i, views + 16 * (size_t)codes[i], 16);
        return PS_OK;
    }
    const ps_slice *slices = (const ps_slice *)(const void *)d->slices.data;
    const uint8_t *from = d->reader->data;
    const size_t have = d->reader->have;
    for (size_t i = 0; i < n; i++) {
        uint8_t *view = views + 16 * (size_t)codes[i];
        if (PS_UNLIKELY(ps_load32(view) > PS_VIEW_SHORT &&
                        ps_load32(view + 8) == PS_VIEW_ABSENT)) {
            const ps_slice slice = slices[codes[i]];
            PS_TRY(put_long(leaf, view, from + slice.offset, have - slice.offset, slice.length,
                            0, err));
            d->placed = true;
        }
        memcpy(out + 16 * i, view, 16);
    }
    return PS_OK;
}

void ps_views_forget_places(ps_dictionary *d) {
    for (size_t i = 0; d->placed && i < d->ready; i++) {
        uint8_t *view = d->values.data + 16 * i;
        if (ps_load32(view) > PS_VIEW_SHORT) ps_store32(view + 8, PS_VIEW_ABSENT);
    }
    d->placed = false;
}

/* ---- text ----------------------------------------------------------------------------------- */

const uint8_t *ps_views_bytes(const ps_leaf *leaf, int64_t i, size_t *length) {
    const uint8_t *view = leaf->out.offsets.data + 16 * (size_t)i;
    *length = ps_load32(view);
    if (*length <= PS_VIEW_SHORT) return view + 4;
    return leaf->out.values.data + ((size_t)ps_load32(view + 8) << PS_VIEW_BITS) +
           ps_load32(view + 12);
}

/* Long strings lie behind each other: they are text where all of their bytes are, and none begins inside a character. */
bool ps_views_valid(const ps_leaf *leaf, int64_t from, int64_t n) {
    const uint8_t *views = leaf->out.offsets.data + 16 * (size_t)from;
    uint64_t seen = 0;
    bool inside = false;
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *view = views + 16 * i;
        if (ps_load32(view) > PS_VIEW_SHORT) {
            inside |= (view[4] & 0xC0) == 0x80;
        } else {
            seen |= ps_load64(view) | ps_load64(view + 8);
        }
    }
    if (inside) return false;
    for (int64_t i = 0; (seen & PS_HIGH_BITS) && i < n; i++) {
        const uint8_t *view = views + 16 * i;
        const size_t length = ps_load32(view);
        if (length <= PS_VIEW_SHORT && ps_utf8_check(view + 4, length, NULL) != PS_OK)
            return false;
    }
    const size_t scanned = leaf->out.scanned_bytes;
    return ps_utf8_scan(leaf->out.values.data + scanned, leaf->out.values.size - scanned) !=
           PS_UTF8_BAD;
}
