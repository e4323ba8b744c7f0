/* embedded.h - indexes that lie inside files beside what Parquet knows (docs/format.md). Part of pageseek.h. */
#ifndef PAGESEEK_EMBEDDED_H
#define PAGESEEK_EMBEDDED_H

#include "pageseek.h"

/* ---- where they lie ---------------------------------------------------------------------------- */

enum { PS_ENTRY_PARTS = 6, PS_ENTRY_DIGITS = 18 };

/* How the entry of one index reads in a directory as it is written: with numbers between its parts, which are the head of
 * the directory (a number and a comma follow it), what is before the offset, the length, the checksum and the
 * fingerprint, and what is behind that. */
typedef struct ps_entry_form {
    const uint8_t *parts[PS_ENTRY_PARTS];
    size_t lengths[PS_ENTRY_PARTS];
    size_t longest; /* bytes of a directory that is looked at */
} ps_entry_form;

/* A file of which directory and last bytes are at hand. */
typedef struct ps_entry_file {
    int64_t value, value_length; /* the directory, in `values`; PS_ABSENT: it has no value */
    int64_t tail, tail_length;   /* its last bytes, in `tails` */
    int64_t size, footer_start;  /* in the file */
    int64_t first_group, num_groups; /* whose figures its fingerprint is of */
} ps_entry_file;

typedef enum ps_entry_state {
    PS_ENTRY_NONE = 0,     /* it would lie where nothing can lie */
    PS_ENTRY_SOUND = 1,    /* its bytes are those that were attached to these column chunks */
    PS_ENTRY_FAR = 2,      /* its bytes are not at hand */
    PS_ENTRY_DOUBTFUL = 3, /* they are others */
    PS_ENTRY_UNREAD = 4    /* the directory is not of this form, or has no such entry */
} ps_entry_state;

/* What was found; offset, length and checksums are those of the entry. */
typedef struct ps_entry {
    int64_t state, offset, length;
    uint64_t checksum, chunks;
} ps_entry;

/* The last entry of a form in the directory of each of n files. `figures`: figure_size bytes for each row group.
 * PS_INVALID where a file is said to lie outside of what is given. */
ps_status ps_entries_find(const uint8_t *values, size_t values_size, const uint8_t *tails,
                          size_t tails_size, const uint8_t *figures, size_t figures_size,
                          size_t figure_size, const ps_entry_form *form,
                          const ps_entry_file *files, size_t n, ps_entry *out, ps_error *err);

/* ---- lists of different values (docs/format.md) ---------------------------------------------- */

/* A list, its parts where they lie. `has` and `ends` are NULL where it has none. */
typedef struct ps_list {
    size_t n_groups, n_values, width, values_size;
    const uint8_t *flags, *has, *ends, *values;
} ps_list;
/* The payload of an index of kind "distinct", of a file of so many row groups; else PS_CORRUPT. */
ps_status ps_list_read(const uint8_t *data, size_t length, size_t n_groups, ps_list *out,
                       ps_error *err);
/* Where each value lies, from `base` on as list->values is 0, and its bytes. */
void ps_list_places(const ps_list *list, int64_t base, int64_t *offsets, int64_t *lengths);
/* Of each row group: whether all its values are known, and no others: what is said of it is then exact. */
void ps_list_exact(const ps_list *list, uint8_t *exact);
/* Of each row group: whether some row may pass a test, and whether all do. passes[i]: the i-th value does. Only of
 * `floats` there is NaN. `bits`: room for n_values bits. */
void ps_list_judge(const ps_list *list, const uint8_t *passes, bool null_passes, bool floats,
                   bool nan_passes, uint8_t *bits, uint8_t *may, uint8_t *must);

#endif
