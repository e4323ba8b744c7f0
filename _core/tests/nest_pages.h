/* nest_pages.h - nesting levels, levels of any kind, and pages of them. */
#ifndef PAGESEEK_NEST_PAGES_H
#define PAGESEEK_NEST_PAGES_H

#include <stdlib.h>

#include "../c/leaf.h"

enum { ENTRIES = 6000, NESTING_LEVELS = 8, O = PS_NESTING_OPTIONAL, L = PS_NESTING_LIST };

typedef struct leafage { /* nesting levels, and the entries of a column */
    ps_leaf_spec spec;
    ps_nesting_level nesting[NESTING_LEVELS];
    uint8_t least[NESTING_LEVELS + 1]; /* definition level of the slots of each segment */
    uint8_t rep[ENTRIES], def[ENTRIES];
    size_t n;
} leafage;

static void make_nesting(leafage *a, const int *types, int n, bool optional) {
    memset(a, 0, sizeof *a);
    a->spec = (ps_leaf_spec){.physical = PQ_INT32, .kind = PS_I32, .n_nesting_levels = n};
    a->spec.max_output = 1 << 20;
    a->spec.nesting_levels = a->nesting;
    for (int i = 0; i < n; i++) {
        if (types[i] == L) a->least[++a->spec.max_rep] = (uint8_t)(i + 1);
        a->nesting[i] = (ps_nesting_level){types[i], (int16_t)(i + 1),
                                           (int16_t)a->spec.max_rep};
    }
    a->spec.max_def = n + optional;
}

/* Levels as packed runs of eight, behind their length where `prefix` says so. */
static size_t put_levels(uint8_t *out, const uint8_t *levels, size_t n, int max, bool prefix) {
    const int width = ps_bit_width((uint64_t)max);
    const size_t groups = (n + 7) / 8, size = groups * (size_t)width + 2;
    uint8_t *p = out + (prefix ? 4 : 0);
    if (prefix) ps_store32(out, (uint32_t)size);
    *p++ = (uint8_t)((groups << 1 | 1) & 0x7f) | 0x80;
    *p++ = (uint8_t)((groups << 1 | 1) >> 7);
    memset(p, 0, size - 2);
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < width; k++) {
            const size_t at = i * (size_t)width + (size_t)k;
            p[at / 8] |= (uint8_t)((levels[i] >> k & 1) << at % 8);
        }
    return size + (prefix ? 4 : 0);
}

/* Entries [from, to) as a page of exactly its size; value i is i. */
static ps_page make_page(const leafage *a, size_t from, size_t to, int32_t version) {
    static uint8_t levels[2 * ENTRIES + 16];
    ps_page page = {.version = version, .encoding = PQ_PLAIN, .num_nulls = -1, .num_rows = -1};
    page.def_encoding = page.rep_encoding = PQ_RLE;
    page.num_values = (int64_t)(to - from);
    page.index_rows = -1;
    size_t values = 0;
    for (size_t i = 0; i < from; i++) page.first_row += a->rep[i] == 0;
    for (size_t i = from; i < to; i++) values += a->def[i] == a->spec.max_def;
    size_t rep = 0, def;
    const bool prefix = version == 1;
    if (a->spec.max_rep)
        rep = put_levels(levels, a->rep + from, to - from, a->spec.max_rep, prefix);
    def = put_levels(levels + rep, a->def + from, to - from, a->spec.max_def, prefix);
    uint8_t *body = malloc(rep + def + 4 * values + 1);
    memcpy(body, levels, rep + def);
    uint8_t *p = body + rep + def;
    for (size_t i = from; i < to; i++)
        if (a->def[i] == a->spec.max_def) {
            ps_store32(p, (uint32_t)i);
            p += 4;
        }
    page.body = body, page.length = rep + def + 4 * values;
    if (version == 2) {
        page.levels = body;
        page.rep_length = rep, page.def_length = def;
        page.body += rep + def, page.length -= rep + def;
    }
    return page;
}

static void drop_page(ps_page *page) {
    free((void *)(uintptr_t)(page->version == 2 ? page->levels : page->body));
}

#endif
