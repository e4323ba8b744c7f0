"""What decode.pyx uses of pageseek.h; the contracts stand there."""
from pageseek._core.codecs cimport ps_codec
from pageseek._core.header cimport ps_error, ps_leaf_spec, ps_page_header, ps_selection, ps_status

from libc.stdint cimport int32_t, int64_t, uint8_t


cdef extern from "pageseek.h" nogil:
    ctypedef enum ps_take:
        PS_TAKE_PAGE
        PS_TAKE_DONE
        PS_TAKE_FULL
    ctypedef struct ps_page:
        int32_t version, encoding, def_encoding, rep_encoding
        int64_t num_values, num_nulls, num_rows, first_row, index_rows
        bint whole
        const uint8_t *levels
        size_t rep_length, def_length
        const uint8_t *body
        size_t length
        bint partial
    ctypedef struct ps_column:
        int64_t rows, n, null_count
        uint8_t *validity
        uint8_t *values
        uint8_t *offsets
        size_t validity_capacity, values_capacity, offsets_capacity
        size_t validity_size, values_size, offsets_size
    ctypedef struct ps_leaf:
        pass
    ps_status ps_leaf_new(const ps_leaf_spec *, ps_leaf **, ps_error *)
    void ps_leaf_free(ps_leaf *)
    ps_status ps_leaf_dictionary(ps_leaf *, const uint8_t *, size_t, int64_t, ps_error *)
    ps_status ps_leaf_dictionary_fits(const ps_leaf *, size_t, int64_t, ps_error *)
    ps_status ps_leaf_begin(ps_leaf *, const ps_selection *, int64_t, size_t, ps_error *)
    ps_status ps_leaf_page(ps_leaf *, const ps_page *, ps_error *)
    ps_status ps_leaf_take(ps_leaf *, ps_take *, ps_error *)
    void ps_leaf_forget(ps_leaf *)
    void ps_leaf_forget_selection(ps_leaf *)
    void ps_leaf_forget_dictionary(ps_leaf *)
    void ps_leaf_end(ps_leaf *)
    int64_t ps_leaf_row(const ps_leaf *)
    ps_status ps_leaf_finish(ps_leaf *, ps_column *, ps_error *)
    ps_status ps_leaf_nesting_level(ps_leaf *, int32_t, ps_column *, ps_error *)
    int64_t ps_leaf_page_rows(const ps_leaf *)


cdef extern from "pageseek.h" nogil:
    ctypedef struct ps_packed:
        size_t at, length, size
        bint plain
    ps_status ps_page_open(const ps_page_header *, const uint8_t *, size_t, bint, bint, ps_page *, ps_packed *, ps_error *)
    size_t ps_page_reach(const ps_leaf *, const ps_page *, size_t, size_t)
    ctypedef enum ps_task_state:
        PS_TASK_AGAIN
        PS_TASK_DONE
        PS_TASK_DICTIONARY
    ctypedef struct ps_page_task:
        ps_leaf *leaf
        const uint8_t *data
        const uint8_t *dictionary
        size_t length, dictionary_length
        bint chunk
        ps_selection selection
        int64_t first_row, rows
        size_t hint
        ps_codec codec
        size_t step
        int64_t max_page, max_values
        bint nested, repeats, always_compressed, levels_only, codes_only
        ps_task_state state
        bint dictionary_used
        ps_column column
    void ps_page_tasks(ps_page_task *, size_t, size_t)
    enum: PS_TASK_THREADS
