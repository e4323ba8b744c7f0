/* entries.c - places of indexes, out of the directories of many files (docs/format.md). No JSON is parsed, as attach
 * always writes it in one form. */
#include "base.h"

enum { HEAD = 16, HEX = 16, FOREMOST = 4 };

static const uint8_t MAGIC[8] = "PSX1";

typedef struct text {
    const uint8_t *at, *end;
} text;

static bool skip(text *t, const uint8_t *part, size_t length) {
    if ((size_t)(t->end - t->at) < length || memcmp(t->at, part, length)) return false;
    t->at += length;
    return true;
}

static bool decimal(text *t, int64_t *out) {
    const uint8_t *start = t->at;
    *out = 0;
    while (t->at < t->end && t->at - start < PS_ENTRY_DIGITS && *t->at >= '0' && *t->at <= '9')
        *out = 10 * *out + (*t->at++ - '0');
    return t->at > start;
}

static bool hexadecimal(text *t, uint64_t *out) {
    if (t->end - t->at < HEX) return false;
    *out = 0;
    for (int i = 0; i < HEX; i++) {
        uint8_t c = *t->at++;
        bool digit = c >= '0' && c <= '9', letter = c >= 'a' && c <= 'f';
        if (!digit && !letter) return false;
        *out = *out << 4 | (uint64_t)(digit ? c - '0' : c - 'a' + 10);
    }
    return true;
}

static bool has_head(text t, const ps_entry_form *form) {
    int64_t base;
    return skip(&t, form->parts[0], form->lengths[0]) && decimal(&t, &base) &&
           skip(&t, (const uint8_t *)",", 1);
}

/* The entry that begins here. */
static bool read_entry(text t, const ps_entry_form *form, ps_entry *out) {
    const uint8_t *const *parts = form->parts;
    const size_t *n = form->lengths;
    return skip(&t, parts[1], n[1]) && decimal(&t, &out->offset) && skip(&t, parts[2], n[2]) &&
           decimal(&t, &out->length) && skip(&t, parts[3], n[3]) &&
           hexadecimal(&t, &out->checksum) && skip(&t, parts[4], n[4]) &&
           hexadecimal(&t, &out->chunks) && skip(&t, parts[5], n[5]);
}

static bool last_entry(text t, const ps_entry_form *form, ps_entry *out) {
    bool found = false;
    ps_entry one = {0};
    while (t.at < t.end) {
        t.at = memchr(t.at, form->parts[1][0], (size_t)(t.end - t.at));
        if (!t.at) break;
        if (read_entry(t, form, &one)) *out = one, found = true;
        t.at++;
    }
    return found;
}

static bool is_sound(const uint8_t *body, size_t length, uint64_t figures,
                     const ps_entry *entry) {
    return length >= HEAD && ps_xxh64(body, length) == entry->checksum &&
           !memcmp(body, MAGIC, sizeof MAGIC) && ps_load64(body + sizeof MAGIC) == figures &&
           entry->chunks == figures;
}

static bool lies_in(int64_t at, int64_t length, size_t size) {
    return at >= 0 && length >= 0 && (uint64_t)at <= size &&
           (uint64_t)length <= size - (uint64_t)at;
}

ps_status ps_entries_find(const uint8_t *values, size_t values_size, const uint8_t *tails,
                          size_t tails_size, const uint8_t *figures, size_t figures_size,
                          size_t figure_size, const ps_entry_form *form,
                          const ps_entry_file *files, size_t n, ps_entry *out, ps_error *err) {
    size_t groups = figure_size ? figures_size / figure_size : 0;
    if (!form->lengths[1]) return ps_fail(err, PS_INVALID, PS_NOWHERE, "an entry of no form");
    for (size_t i = 0; i < n; i++) {
        const ps_entry_file *f = files + i;
        bool absent = f->value == PS_ABSENT;
        if ((!absent && !lies_in(f->value, f->value_length, values_size)) ||
            !lies_in(f->tail, f->tail_length, tails_size) || f->tail_length > f->size ||
            f->footer_start < 0 || f->footer_start > f->size ||
            !lies_in(f->first_group, f->num_groups, groups))
            return ps_fail(err, PS_INVALID, PS_NOWHERE, "file %zu lies outside", i);
        ps_entry *e = out + i;
        *e = (ps_entry){.state = PS_ENTRY_UNREAD};
        if (absent || (uint64_t)f->value_length > form->longest) continue;
        text t = {values + f->value, values + f->value + f->value_length};
        if (!has_head(t, form) || !last_entry(t, form, e)) continue;
        int64_t kept_from = f->size - f->tail_length;
        e->state = PS_ENTRY_NONE;
        if (e->offset < FOREMOST || e->length <= 0 || e->length > f->footer_start - e->offset)
            continue;
        e->state = PS_ENTRY_FAR;
        if (e->offset < kept_from) continue;
        uint64_t sum = ps_xxh64(figures + (size_t)f->first_group * figure_size,
                                (size_t)f->num_groups * figure_size);
        const uint8_t *body = tails + f->tail + (e->offset - kept_from);
        e->state = is_sound(body, (size_t)e->length, sum, e) ? PS_ENTRY_SOUND
                                                             : PS_ENTRY_DOUBTFUL;
    }
    return PS_OK;
}
