"""leaf.pyx for other modules: a leaf with its buffers, and what it uses of ps_leaf.h, where the contracts stand."""
from pageseek._core.codecs cimport ps_codec
from pageseek._core.header cimport ps_busy, ps_error, ps_leaf_spec, ps_page_header, ps_selection, ps_status
from pageseek._core.pages cimport PageReader
from pageseek._core.search cimport RowTests, ps_row_test

cimport cython
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
    void ps_column_drop(ps_column *)
    ps_status ps_leaf_finish(ps_leaf *, ps_column *, ps_error *)
    ps_status ps_leaf_nesting_level(ps_leaf *, int32_t, ps_column *, ps_error *)
    ctypedef struct ps_passing:
        int64_t rows, passed
        uint8_t *mask
        size_t capacity
    int64_t ps_leaf_page_rows(const ps_leaf *)

    ctypedef struct ps_packed:
        size_t at, length, size
        bint plain
    ps_status ps_page_open(const ps_page_header *, const uint8_t *, size_t, bint, bint, ps_page *, ps_packed *, ps_error *)
    size_t ps_page_reach(const ps_leaf *, const ps_page *, size_t, size_t)
    ctypedef enum ps_task_state:
        PS_TASK_AGAIN
        PS_TASK_DONE
        PS_TASK_DICTIONARY
    ctypedef struct ps_source:
        bint (*read)(void *, int64_t, uint8_t *, size_t) noexcept nogil
        void *of
    ctypedef struct ps_unread:
        ps_source source
        int64_t offset
        uint8_t *out
        size_t length
        bint there
    ctypedef struct ps_task_page:
        const uint8_t *data
        size_t length
        int64_t first_row, rows
        const uint8_t *passes
        int64_t n_passes
        ps_unread *unread
    ctypedef struct ps_page_task:
        ps_leaf *leaf
        const ps_task_page *pages
        size_t n_pages
        const uint8_t *dictionary
        size_t dictionary_length
        ps_unread *unread_dictionary
        bint chunk
        ps_selection selection
        size_t hint
        ps_codec codec
        size_t step
        int64_t max_page, max_values
        bint nested, repeats, always_compressed, levels_only, codes_only, entries
        const ps_row_test *tests
        size_t n_tests
        bint keeps
        ps_task_state state
        bint dictionary_used
        size_t dictionary_pages, pages_read, pages_seen
        ps_column column
        ps_passing passing
    void ps_page_tasks(ps_page_task *, size_t, size_t)
    ctypedef struct ps_page_work:
        pass
    ps_page_work *ps_page_work_begin(ps_page_task *, size_t, size_t)
    bint ps_page_work_end(ps_page_work *, bint)
    enum: PS_TASK_THREADS


cdef enum:
    DICTIONARY_WANTED = 16  # besides ps_take: the dictionary page comes first


@cython.no_gc  # said here, too, for the class that inherits
cdef class LeafBuffers(PageReader):
    cdef ps_leaf *leaf
    cdef Py_buffer page_view, levels_view, dictionary_view, ranges_view
    cdef ps_page page_now
    cdef ps_packed packed  # where the bytes of page_now lie
    cdef size_t step  # bytes by which a page is decompressed in part
    cdef int n_nesting_levels
    cdef bint levels_only, always_compressed, codes_only, entries_only
    cdef readonly int64_t rows  # of the table, in what the last `finish` gave
    cdef bint has_page, has_levels, has_ranges  # which views are held
    cdef bint dictionary_held, dictionary_used  # a view is held; `read_pages` used one
    cdef readonly size_t dictionary_pages, pages_read, pages_seen  # by `read_pages`
    cdef readonly RowTests tests
    # of the rows that `read_pages` has tested: their number, how many passed, and a bitmap of these
    cdef readonly tuple passing

    cdef void drop_dictionary(self)
    cdef void release_page(self)
    cdef void let_go(self)
    cdef int hold_dictionary(self, data, int64_t n) except -1
    cdef int check_entries(self, size_t size, int64_t n) except -1
    cdef int begin_rows(self, selection, int64_t max_rows, size_t hint) except -1
    cdef int hold_rows(self, selection, ps_selection *rows) except -1
    cdef int hold_page(self, body) except -1
    cdef int open_page(self, int64_t first_row, bint whole) except -1
    cdef int unpack(self, size_t reach) except -1
    cdef int take_from(self, ps_page *page) except -1
    cdef void end_pages(self)
    cdef int take_on(self) except -1
    cdef tuple finish_column(self)
    cdef tuple made(self, ps_column *out)
    cdef void take_passing(self, ps_passing *out)
    cdef list finished_nesting_levels(self)

cdef class CoreCall:
    """What threads of the core do beside pages of one leaf."""
    cdef ps_busy busy  # a call has begun it

    cdef int enter(self) except -1
    cdef void leave(self) noexcept
    cdef int fill(self, ps_page_task *task) except -1
    cdef object taken(self, bint done)

cdef void run_page_tasks(ps_page_task *tasks, size_t n, size_t threads) noexcept nogil
cdef ps_page_work *begin_page_work(ps_page_task *tasks, size_t n, size_t helpers) noexcept nogil
cdef bint end_page_work(ps_page_work *work, bint abandon) noexcept nogil
cdef void drop_output(ps_page_task *tasks, Py_ssize_t n) noexcept
