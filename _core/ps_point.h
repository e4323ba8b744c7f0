/* ps_point.h - a few rows of one row group by tests on its leaves, in one call. Part of pageseek.h. */
#ifndef PAGESEEK_PS_POINT_H
#define PAGESEEK_PS_POINT_H

#include "ps_leaf.h"

/* A flat leaf of a row group, whose pages an offset index locates. Everything is borrowed. */
typedef struct ps_point_leaf {
    ps_leaf_spec spec;
    ps_codec codec;
    size_t step;      /* as for ps_page_reach */
    int64_t max_page; /* bytes that a page may have */
    bool always_compressed;
    bool output; /* its rows are wanted */
    bool coded;  /* all pages need the dictionary, which is then read with them */
    size_t n_pages;
    const int64_t *first_row; /* n_pages + 1, ascending; the last is the number of rows */
    const int64_t *offset, *size;
    int64_t dictionary_at; /* the bytes in front of the first page */
    size_t dictionary_length;
} ps_point_leaf;

/* A test that rows must pass, as for ps_compare. */
typedef struct ps_point_test {
    size_t leaf; /* number of the leaf */
    ps_op op;
    bool negate;
    ps_nan nan;
    ps_values literals;
} ps_point_test;

/* What was read of a leaf. */
typedef struct ps_point_count {
    size_t pages, dictionaries, bytes;
} ps_point_count;

typedef struct ps_point {
    const ps_point_leaf *leaves;
    size_t n_leaves;
    const ps_point_test *tests; /* in the order in which they are evaluated */
    size_t n_tests;
    const ps_range
        *ranges; /* the rows in question: they hold as a selection (ps_selection_check) */
    size_t n_ranges;
    int64_t limit;  /* rows at most */
    size_t most;    /* bytes that one wave may read: pages that do not depend on each other */
    size_t threads; /* at most; a leaf of a wave is one thread's */
    const ps_source *source;
    /* out */
    int64_t rows; /* that pass */
    ps_column *
        columns; /* n_leaves; where there are rows, those of leaves with `output` are the caller's */
    ps_point_count *counts; /* n_leaves, which are added to; or NULL */
    size_t requests;        /* reads of the source; more are added */
} ps_point;

/* Reads and decodes the pages of tested leaves that hold rows in question, evaluates the tests one after the other, each on
 * the rows that are left, and then reads and decodes the pages of the other leaves. False: no column is filled. Something
 * needs more than this function can do, or a page has a fault: a caller who reads page by page learns which. */
bool ps_point_read(ps_point *point);

#endif
