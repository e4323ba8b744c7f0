/* lists.c - lists of different values, the bodies of indexes of kind "distinct" (docs/format.md). */
#include "base.h"

enum { HEAD = 16, COMPLETE = 1, NULLS = 2, NANS = 4 };

ps_status ps_list_read(const uint8_t *data, size_t length, size_t n_groups, ps_list *out,
                       ps_error *err) {
    if (length < HEAD) return ps_fail(err, PS_CORRUPT, 0, "it is too short");
    uint64_t groups = ps_load32(data), n = ps_load32(data + 4);
    uint8_t layout = data[8], per_group = data[9];
    if (groups != n_groups || layout > 1 || per_group > 1 || ps_load16(data + 10))
        return ps_fail(err, PS_CORRUPT, 0, "its head makes no sense");
    uint64_t row = (n + 7) / 8, width = ps_load32(data + 12);
    /* each is below 2^64: three counts of 32 bits, the product of two of them divided by 8 */
    uint64_t bits = per_group ? groups * row : 0, ends = layout ? 4 * (n + 1) : 0;
    if (groups + bits + ends > length - HEAD)
        return ps_fail(err, PS_CORRUPT, 0, "it is too short");
    *out = (ps_list){.n_groups = n_groups, .n_values = (size_t)n, .width = (size_t)width};
    out->flags = data + HEAD;
    out->has = per_group ? out->flags + groups : NULL;
    out->ends = layout ? out->flags + groups + bits : NULL;
    out->values = out->flags + groups + bits + ends;
    out->values_size = length - HEAD - (size_t)(groups + bits + ends);
    /* values of no bytes would be as many as a damaged head says */
    bool fits = layout ? width == 0 : n * width == out->values_size && (width || !n);
    uint32_t last = 0;
    for (uint64_t i = 0; layout && fits && i <= n; i++) {
        uint32_t end = ps_load32(out->ends + 4 * i);
        fits = i ? end >= last : end == 0;
        last = end;
    }
    fits = fits && (!layout || last == out->values_size);
    for (uint64_t g = 0; fits && g < groups; g++)
        fits = out->flags[g] <= (COMPLETE | NULLS | NANS);
    if (!fits)
        return ps_fail(err, PS_CORRUPT, (uint64_t)(out->values - data),
                       "its values do not fill it");
    for (uint64_t g = 0; out->has && n % 8 && g < groups; g++)
        if (out->has[g * row + row - 1] >> n % 8)
            return ps_fail(err, PS_CORRUPT, HEAD + groups + g * row,
                           "it speaks of values that it has not");
    return PS_OK;
}

void ps_list_places(const ps_list *list, int64_t base, int64_t *offsets, int64_t *lengths) {
    for (size_t i = 0; i < list->n_values; i++) {
        size_t start = i * list->width, length = list->width;
        if (list->ends) {
            start = ps_load32(list->ends + 4 * i);
            length = ps_load32(list->ends + 4 * i + 4) - start;
        }
        offsets[i] = base + (int64_t)start;
        lengths[i] = (int64_t)length;
    }
}

/* Whether all values of a row group are known. One that has neither value nor null nor NaN contradicts itself, or
 * has no rows. */
static bool is_known(const ps_list *list, size_t g) {
    size_t row = (list->n_values + 7) / 8;
    uint8_t flags = list->flags[g], some = flags & (NULLS | NANS);
    for (size_t i = 0; list->has && i < row; i++) some |= list->has[g * row + i];
    return flags & COMPLETE && (some || (!list->has && list->n_values));
}

void ps_list_exact(const ps_list *list, uint8_t *exact) {
    for (size_t g = 0; g < list->n_groups; g++)
        exact[g] = is_known(list, g) && (list->has || list->n_groups == 1);
}

/* Of the values of a row group: whether any passes, and whether all do. */
static void of_values(const uint8_t *has, const uint8_t *bits, size_t row, bool *any,
                      bool *all) {
    uint8_t some = 0, not_all = 0;
    for (size_t i = 0; i < row; i++) {
        some |= has[i] & bits[i];
        not_all |= has[i] & (uint8_t)~bits[i];
    }
    *any = some != 0, *all = not_all == 0;
}

void ps_list_evaluate(const ps_list *list, const uint8_t *passes, bool null_passes, bool floats,
                      bool nan_passes, uint8_t *bits, uint8_t *may, uint8_t *must) {
    size_t n = list->n_values, row = (n + 7) / 8;
    bool any = false, all = true;
    if (list->has) memset(bits, 0, row);
    for (size_t i = 0; i < n; i++) {
        bool pass = passes[i] != 0;
        any |= pass, all &= pass;
        if (list->has) bits[i / 8] |= (uint8_t)(pass << i % 8);
    }
    for (size_t g = 0; g < list->n_groups; g++) {
        uint8_t flags = list->flags[g];
        bool nulls = flags & NULLS, nans = floats && flags & NANS, some = any, every = all;
        if (list->has) of_values(list->has + g * row, bits, row, &some, &every);
        bool known = is_known(list, g);
        may[g] = !known || some || (nulls && null_passes) || (nans && nan_passes);
        must[g] = known && every && (!nulls || null_passes) && (!nans || nan_passes);
    }
}
