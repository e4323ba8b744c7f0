# cython: language_level=3, boundscheck=False, wraparound=False, freethreading_compatible=True, auto_pickle=False
"""A leaf in C, and the buffers that it borrows.

Every extension module links a copy of the core. A leaf keeps pointers into the tables of one copy, so only this
module calls the functions of ps_leaf.h that take a leaf.
"""
import os

from pageseek._core.codecs cimport PS_CODEC_NONE, CodecSettings, codec_of
from pageseek._core.convert cimport fill_spec
from pageseek._core.header cimport (
    PS_INVALID, PS_LIMIT, PS_OK, ps_buffer_free, ps_busy_enter, ps_busy_leave, ps_error, ps_leaf_spec, ps_nesting_level,
    ps_range, ps_selection, ps_shared, ps_shared_use, ps_status,
)
from pageseek._core.memory cimport shared, wrap
from pageseek._core.pages cimport PageReader
from pageseek._core.status cimport check
from pageseek.base.errors import CoreError

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uintptr_t
from libc.string cimport memset


cdef extern from "pageseek.h" nogil:
    const char *ps_utf8_choose(bint)
    int PS_BOOL


cdef ps_shared state = shared()
ps_shared_use(&state)
# the name of the way in which text is checked; tests set the variable to choose plain C
utf8_scan = ps_utf8_choose(os.environ.get("PAGESEEK_PLAIN_C") == "1").decode()


@cython.no_gc  # the garbage collector would clear the buffers while they are in use (python issue 77894)
cdef class LeafBuffers(PageReader):
    """The base of LeafDecoder, whose parameters it takes: a leaf in C, and the page, dictionary and selection it borrows.

    Each buffer is held until another takes its place or the leaf forgets it. One thread at a time uses the object.
    """

    def __cinit__(self, tuple form, int max_def, int max_rep, size_t max_output=<size_t>1 << 40, bint lsb_levels=False,
                  str codec="uncompressed", decompress=None, tuple nesting_levels=(), bint levels_only=False,
                  int64_t max_page=INT64_MAX, int64_t max_values=INT64_MAX, int64_t likely_rows=0,
                  bint always_compressed=False, bint codes_only=False, prefix=None, size_t step=1,
                  CodecSettings codec_settings=None, bint passes=False, bint entries_only=False,
                  RowTests tests=None):
        cdef ps_leaf_spec spec
        cdef ps_error err
        cdef ps_nesting_level levels[254]  # 2 * PS_MAX_LEVEL
        if codec_settings is not None:
            max_output = min(max_output, codec_settings.max_output)
            max_page, lsb_levels = codec_settings.max_page, codec_settings.lsb_levels
            always_compressed = codec_settings.always_compressed
            self.codec, self.step = codec_settings.codec, codec_settings.step
            self.other_codec, self.other_prefix = codec_settings.decompress, codec_settings.prefix
        else:
            self.codec, self.step = codec_of(codec), max(step, <size_t>1)
            self.other_codec, self.other_prefix = decompress, prefix
        fill_spec(&spec, form, max_output)
        spec.max_def, spec.max_rep, spec.lsb_levels, spec.levels_only = max_def, max_rep, lsb_levels, levels_only
        if len(nesting_levels) > 254:
            raise CoreError(<int>PS_LIMIT, None, f"{len(nesting_levels)} nesting levels")
        for i, level in enumerate(nesting_levels):
            levels[i].type, levels[i].def_level, levels[i].rep_level = level
        spec.n_nesting_levels, spec.nesting_levels = <int32_t>len(nesting_levels), levels
        self.n_nesting_levels, self.nested, self.levels_only = spec.n_nesting_levels, spec.n_nesting_levels > 0, levels_only
        spec.passes = passes
        spec.likely_rows, self.max_page, self.max_values = likely_rows, max_page, max_values
        self.always_compressed = always_compressed
        while self.rep_mask < max_rep:
            self.rep_mask = 2 * self.rep_mask + 1
        check(ps_leaf_new(&spec, &self.leaf, &err), &err)
        self.codes_only, self.entries_only, self.tests = codes_only, entries_only, tests
        if tests is not None and (tests.kind != spec.kind or self.nested or passes or spec.kind == PS_BOOL):
            raise CoreError(<int>PS_INVALID, None, f"tests of kind {tests.kind} for a leaf of kind {spec.kind}")

    def __dealloc__(self):
        self.release_page()
        self.release_head()
        ps_leaf_free(self.leaf)
        self.leaf = NULL
        self.drop_dictionary()
        if self.has_ranges:
            PyBuffer_Release(&self.ranges_view)

    @property
    def has_dictionary(self):
        """Whether a dictionary has been handed over."""
        return self.dictionary_held or self.dictionary_used

    @property
    def row(self):
        """Rows before this one are done."""
        return ps_leaf_row(self.leaf)

    @property
    def page_rows(self):
        """Rows that begin in the page taken last."""
        return ps_leaf_page_rows(self.leaf)

    cdef void drop_dictionary(self):
        """Have no dictionary, nor a page that uses it."""
        if self.leaf != NULL:
            ps_leaf_forget_dictionary(self.leaf)
        if self.dictionary_held:
            PyBuffer_Release(&self.dictionary_view)
        self.dictionary_held = False

    cdef void release_page(self):
        """Have no page."""
        if self.leaf != NULL:
            ps_leaf_forget(self.leaf)
        if self.has_page:
            PyBuffer_Release(&self.page_view)
        if self.has_levels:
            PyBuffer_Release(&self.levels_view)
        self.has_page = self.has_levels = self.page_now.partial = False

    cdef void release_head(self):
        """Have no header, nor a page whose bytes lie behind it."""
        if self.leaf != NULL:
            ps_leaf_forget(self.leaf)
        self.page_now.partial = False  # the rest of it lay there, too
        PageReader.release_head(self)

    cdef void let_go(self):
        """Hold no buffer of a page, and no memory that it was decompressed into."""
        self.release_page()
        self.release_head()
        self.source = self.scratch = None

    cdef int hold_dictionary(self, data, int64_t n) except -1:
        """Make `n` PLAIN values the dictionary, in place of the one before."""
        cdef Py_buffer view
        cdef ps_error err
        cdef ps_status status
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        with nogil:
            status = ps_leaf_dictionary(self.leaf, <const uint8_t *>view.buf, <size_t>view.len, n, &err)
        if self.dictionary_held:
            PyBuffer_Release(&self.dictionary_view)
        self.dictionary_view, self.dictionary_held = view, status == PS_OK
        if status != PS_OK:
            PyBuffer_Release(&view)
        check(status, &err)
        return 0

    cdef int check_entries(self, size_t size, int64_t n) except -1:
        """CoreError where a dictionary page of `size` bytes cannot hold n values."""
        cdef ps_error err
        check(ps_leaf_dictionary_fits(self.leaf, size, n, &err), &err)
        return 0

    cdef int begin_rows(self, selection, int64_t max_rows, size_t hint) except -1:
        """Begin an output of the selected rows; the selection is held until the next one."""
        cdef ps_selection rows
        cdef ps_error err
        cdef ps_status status
        self.hold_rows(selection, &rows)
        with nogil:
            status = ps_leaf_begin(self.leaf, &rows, max_rows, hint, &err)
        check(status, &err)
        return 0

    cdef int hold_rows(self, selection, ps_selection *rows) except -1:
        """Hold a selection, and describe it in `rows`. Its bytes are copied where they could change or are not aligned."""
        cdef Py_buffer view
        cdef int64_t base = 0, length = 0
        memset(rows, 0, sizeof(ps_selection))
        data = selection if type(selection) is bytes else getattr(selection, "buffers", selection)
        bits = isinstance(data, tuple)
        if bits:
            data, base, length = data
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        if not view.readonly or <uintptr_t>view.buf % 8:  # what is checked must not change
            PyBuffer_Release(&view)
            PyObject_GetBuffer(bytes(memoryview(data).cast("B")), &view, PyBUF_SIMPLE)
        if bits:
            if length < 0 or view.len < length // 8 + (length % 8 != 0):
                have = view.len
                PyBuffer_Release(&view)
                raise CoreError(<int>PS_INVALID, None, f"{have} bytes for a bitmap of {length} bits")
            rows.bitmap, rows.base, rows.length = <const uint8_t *>view.buf, base, length
        else:
            rows.ranges, rows.n_ranges = <const ps_range *>view.buf, <size_t>view.len // 16
        ps_leaf_forget_selection(self.leaf)
        if self.has_ranges:
            PyBuffer_Release(&self.ranges_view)
        self.ranges_view, self.has_ranges = view, True
        return 0

    cdef int hold_page(self, body) except -1:
        """Hold the bytes of a page, decompressed, in place of those before."""
        self.release_page()
        PyObject_GetBuffer(body, &self.page_view, PyBUF_SIMPLE)
        self.has_page = True
        return 0

    cdef int open_page(self, int64_t first_row, bint whole) except -1:
        """Make page_now of the header that was read, and decompress as much of the page as its rows likely need."""
        cdef ps_page *page = &self.page_now
        cdef ps_packed *packed = &self.packed
        cdef ps_error err
        cdef size_t reach
        self.release_page()
        memset(page, 0, sizeof(ps_page))
        page.first_row, page.index_rows, page.whole = first_row, self.index_rows, whole
        check(ps_page_open(&self.header, <const uint8_t *>self.head_view.buf, self.body, self.always_compressed,
                           self.levels_only, page, packed, &err), &err)
        if packed.plain:
            return 0
        reach = packed.size
        if self.codec > PS_CODEC_NONE or self.other_prefix is not None:
            reach = ps_page_reach(self.leaf, page, packed.size, self.step)
        if reach < packed.size:
            try:
                return self.unpack(reach)
            except CoreError:  # decoding all of it tells what is wrong
                pass
        return self.unpack(packed.size)

    cdef int unpack(self, size_t reach) except -1:
        """Hold the first `reach` bytes of page_now, decompressed."""
        self.hold_page(self.plain(self.packed.at, self.packed.length, self.packed.size, reach))
        self.page_now.body, self.page_now.length = <const uint8_t *>self.page_view.buf, <size_t>self.page_view.len
        self.page_now.partial = reach < self.packed.size
        return 0

    cdef int take_from(self, ps_page *page) except -1:
        """Make `page` the page of the leaf, and take its selected rows."""
        cdef ps_error err
        cdef ps_status status
        cdef ps_take state = PS_TAKE_PAGE
        with nogil:
            status = ps_leaf_page(self.leaf, page, &err)
            if status == PS_OK:
                status = ps_leaf_take(self.leaf, &state, &err)
        check(status, &err)
        return <int>state

    cdef void end_pages(self):
        """No page follows."""
        ps_leaf_end(self.leaf)

    cdef int take_on(self) except -1:
        """Take further rows of the page that the leaf has."""
        cdef ps_error err
        cdef ps_status status
        cdef ps_take state = PS_TAKE_PAGE
        with nogil:
            status = ps_leaf_take(self.leaf, &state, &err)
        if status != PS_OK and self.has_head and self.has_page and self.page_now.partial:
            self.unpack(self.packed.size)  # the rows taken before needed less of it
            return self.take_from(&self.page_now)
        check(status, &err)
        return <int>state

    cdef tuple finish_column(self):
        """End the output, and wrap its buffers."""
        cdef ps_column out
        cdef ps_error err
        cdef ps_status status
        with nogil:
            status = ps_leaf_finish(self.leaf, &out, &err)
        made = self.made(&out)
        check(status, &err)
        return made

    cdef tuple made(self, ps_column *out):
        """The buffers of a column, which Block objects free from now on."""
        cdef int64_t n = out.n, null_count = out.null_count
        self.rows = out.rows
        validity, offsets, values = blocks_of(out)
        return n, null_count, validity, offsets, values

    cdef void take_passing(self, ps_passing *out):
        """Take which rows passed; their bitmap is a Block."""
        cdef size_t size = <size_t>(out.rows + 7) // 8
        mask, out.mask = wrap(out.mask, size, out.capacity) if out.mask != NULL else b"", NULL
        self.passing = out.rows, out.passed, mask

    cdef list finished_nesting_levels(self):
        """The buffers of each nesting level, after the output has ended."""
        cdef ps_column out
        cdef ps_error err
        cdef ps_status status
        cdef int64_t n, null_count
        cdef int i
        cdef list made = []
        for i in range(self.n_nesting_levels):
            status = ps_leaf_nesting_level(self.leaf, <int32_t>i, &out, &err)
            n, null_count = out.n, out.null_count
            validity, offsets, _ = blocks_of(&out)
            check(status, &err)
            made.append((n, null_count, validity, offsets))
        return made


cdef tuple blocks_of(ps_column *column):
    """The validity, offsets and values of a column, which is empty afterwards: Block objects free them from now on."""
    try:
        validity, column.validity = wrap(column.validity, column.validity_size, column.validity_capacity), NULL
        offsets, column.offsets = wrap(column.offsets, column.offsets_size, column.offsets_capacity), NULL
        values, column.values = wrap(column.values, column.values_size, column.values_capacity), NULL
    finally:
        ps_column_drop(column)  # what no Block has, if memory ends
    return validity, offsets, values


@cython.no_gc  # as LeafBuffers: threads of the core use it until the work has ended
cdef class CoreCall:
    """What threads of the core do beside pages of one leaf: an item of `read_pages`."""

    cdef int enter(self) except -1:
        """Lock the object until `leave`: it is the work of one call."""
        if not ps_busy_enter(&self.busy):
            raise CoreError(<int>PS_INVALID, None, "the work was begun by another call, or occurs twice")
        return 0

    cdef void leave(self) noexcept:
        ps_busy_leave(&self.busy)

    cdef int fill(self, ps_page_task *task) except -1:
        """Describe the work."""
        raise NotImplementedError

    cdef object taken(self, bint done):
        """The result, once."""
        raise NotImplementedError


cdef void run_page_tasks(ps_page_task *tasks, size_t n, size_t threads) noexcept nogil:
    ps_page_tasks(tasks, n, threads)


cdef ps_page_work *begin_page_work(ps_page_task *tasks, size_t n, size_t helpers) noexcept nogil:
    return ps_page_work_begin(tasks, n, helpers)


cdef void drop_output(ps_page_task *tasks, Py_ssize_t n) noexcept:
    """Free the output of tasks that nobody has taken."""
    cdef Py_ssize_t i
    for i in range(n):
        if tasks[i].state == PS_TASK_DONE:
            ps_column_drop(&tasks[i].column)
            ps_buffer_free(tasks[i].passing.mask, tasks[i].passing.capacity)
            tasks[i].state = PS_TASK_AGAIN


cdef bint end_page_work(ps_page_work *work, bint abandon) noexcept nogil:
    return ps_page_work_end(work, abandon)
