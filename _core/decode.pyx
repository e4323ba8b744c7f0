# cython: language_level=3, boundscheck=False, wraparound=False, freethreading_compatible=True
"""The leaf decoder: bytes of pages in, memory of Arrow arrays out.

The module is long because the class LeafDecoder is: modules of `_core` cannot share the body of a class.
"""
import os

from pageseek._core.codecs cimport PS_CODEC_NONE, PS_CODEC_OTHER, codec_of, ps_codec
from pageseek._core.convert cimport fill_spec
from pageseek._core.header cimport (
    PS_CORRUPT,
    PS_INVALID,
    PS_LIMIT,
    PS_OK,
    ps_error,
    ps_leaf_spec,
    ps_page_header,
    ps_nesting_level,
    ps_range,
    ps_selection,
    ps_shared,
    ps_shared_use,
    ps_status,
)
from pageseek._core.leaf cimport (
    PS_TAKE_DONE, PS_TAKE_FULL, PS_TAKE_PAGE, PS_TASK_DICTIONARY, PS_TASK_DONE, PS_TASK_THREADS, ps_column,
    ps_leaf, ps_leaf_begin, ps_leaf_dictionary, ps_leaf_dictionary_fits, ps_leaf_end, ps_leaf_finish,
    ps_leaf_forget, ps_leaf_forget_dictionary, ps_leaf_forget_selection, ps_leaf_free, ps_leaf_new, ps_leaf_page,
    ps_leaf_page_rows, ps_leaf_row, ps_leaf_nesting_level, ps_leaf_take, ps_packed, ps_page, ps_page_open, ps_page_reach,
    ps_page_task, ps_page_tasks, ps_take,
)
from pageseek._core.memory cimport shared, wrap
from pageseek._core.pages cimport DATA, DATA_V2, DICTIONARY, PageReader
from pageseek._core.status cimport check
from pageseek._core.status import PageMismatch
from pageseek.base.errors import CoreError

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AsString, PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uintptr_t
from libc.string cimport memset


cdef extern from "pageseek.h" nogil:
    const char *ps_utf8_choose(bint)


cdef ps_shared state = shared()
ps_shared_use(&state)
# what finds faults in text: tests ask for plain C where this is set
utf8_scan = ps_utf8_choose(os.environ.get("PAGESEEK_PLAIN_C") == "1").decode()

PARALLEL = bool(PS_TASK_THREADS)  # whether `read_pages` has use for several threads
TAKE_PAGE, TAKE_DONE, TAKE_FULL = PS_TAKE_PAGE, PS_TAKE_DONE, PS_TAKE_FULL
cdef enum:
    DICTIONARY_WANTED = 16
TAKE_DICTIONARY = DICTIONARY_WANTED


@cython.final
cdef class CodecSettings:
    """What decoders of one codec have in common, in one scan of one file; parameters as those of LeafDecoder."""

    cdef size_t max_output, step
    cdef int64_t max_page
    cdef bint lsb_levels, always_compressed
    cdef ps_codec codec
    cdef readonly bint own  # the core knows the codec by itself
    cdef object decompress, prefix

    def __cinit__(self, str codec, decompress, prefix, size_t step, size_t max_output, int64_t max_page,
                  bint lsb_levels, bint always_compressed):
        self.codec, self.decompress, self.prefix, self.step = codec_of(codec), decompress, prefix, max(step, <size_t>1)
        self.max_output, self.max_page = max_output, max_page
        self.lsb_levels, self.always_compressed = lsb_levels, always_compressed
        self.own = self.codec != PS_CODEC_OTHER


@cython.no_gc  # a collector that saw its buffers would take them apart while they are in use (python issue 77894)
cdef class LeafDecoder(PageReader):
    """Decodes the selected rows of one leaf of one row group, page by page.

    Parameters
    ----------
    form : tuple of int
        (physical type, type_length, kind, width, INT96 unit, check UTF-8, range), see ps_leaf_spec.
    max_def, max_rep : int
        Greatest definition and repetition level of the leaf.
    nesting_levels : sequence of (int, int, int)
        The nesting levels of a nested leaf, from the row down, its own being null left out: (0, definition level, 0)
        for a nullable node, (1, definition level, repetition level) for a repeated one.
    levels_only : bool
        Of a nested leaf, decode the nesting_levels and no value.
    max_output : int
        Bytes that each buffer of the output of one read may hold.
    lsb_levels : bool
        BIT_PACKED levels begin at the low bit (Impala), not at the high one (Encodings.md).
    codec : str
        "uncompressed", "snappy", "lz4", "lz4_raw", "zstd" where libzstd is at hand, or any other, of which
        `decompress` is used; it is also called where libzstd fails.
    decompress : callable
        (memoryview, size) to a buffer of exactly that size, or CoreError.
    max_page : int
        Bytes that a page may have, decompressed.
    max_values : int
        Values, nulls and empty lists among them, that a page may claim: those of its chunk.
    likely_rows : int
        Memory for that many rows is allocated at once, for more as pages hold them; 0: for all selected.
    always_compressed : bool
        V2 pages are compressed even where their headers deny it.
    codes_only : bool
        Data pages must be of dictionary codes.
    prefix : callable, optional
        (memoryview, size, Block) fills the block with the first of `size` bytes, or CoreError: where it
        stops sooner than `decompress`, by whole blocks of `step` bytes.
    codec_settings : CodecSettings, optional
        Stands for the parameters that it has.

    Use: `begin(selection)`; for each page that holds a selected row `head(bytes)` and `take(first_row)`,
    which answers TAKE_PAGE (hand the next one), TAKE_DONE, TAKE_FULL, or TAKE_DICTIONARY (hand the
    dictionary page by `head` and `take_dictionary`, then this page again); `finish()` gives the buffers.
    After TAKE_FULL go on with finish, begin, `resume`. Rows count from the row group's first.
    `dictionary` and `page` take what is decompressed already. Raises CoreError.
    """

    cdef ps_leaf *leaf
    cdef Py_buffer page_view, levels_view, dictionary_view, ranges_view
    cdef ps_page page_now
    cdef ps_packed packed
    cdef size_t step
    cdef int n_nesting_levels
    cdef bint levels_only, always_compressed, codes_only
    cdef readonly int64_t rows  # of the table, that the last `finish` gave
    cdef bint has_page, has_levels, has_ranges
    cdef bint dictionary_held, dictionary_used  # it is at hand; it was, for a page read by `read_pages`

    def __cinit__(self, tuple form, int max_def, int max_rep, size_t max_output=<size_t>1 << 40, bint lsb_levels=False,
                  str codec="uncompressed", decompress=None, tuple nesting_levels=(), bint levels_only=False,
                  int64_t max_page=INT64_MAX, int64_t max_values=INT64_MAX, int64_t likely_rows=0,
                  bint always_compressed=False, bint codes_only=False, prefix=None, size_t step=1,
                  CodecSettings codec_settings=None):
        cdef ps_leaf_spec spec
        cdef ps_error err
        cdef ps_nesting_level levels[254]  # 2 * PS_MAX_LEVEL
        if codec_settings is not None:
            max_output, max_page, lsb_levels = codec_settings.max_output, codec_settings.max_page, codec_settings.lsb_levels
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
        spec.likely_rows, self.max_page, self.max_values = likely_rows, max_page, max_values
        self.always_compressed = always_compressed
        while self.rep_mask < max_rep:
            self.rep_mask = 2 * self.rep_mask + 1
        check(ps_leaf_new(&spec, &self.leaf, &err), &err)
        self.codes_only = codes_only

    def __dealloc__(self):
        self.release_page()
        self.release_head()
        ps_leaf_free(self.leaf)
        self.leaf = NULL
        self.drop_dictionary()
        if self.has_ranges:
            PyBuffer_Release(&self.ranges_view)

    cdef void drop_dictionary(self):
        if self.leaf != NULL:
            ps_leaf_forget_dictionary(self.leaf)
        if self.dictionary_held:
            PyBuffer_Release(&self.dictionary_view)
        self.dictionary_held = False

    cdef void release_page(self):
        if self.leaf != NULL:
            ps_leaf_forget(self.leaf)
        if self.has_page:
            PyBuffer_Release(&self.page_view)
        if self.has_levels:
            PyBuffer_Release(&self.levels_view)
        self.has_page = self.has_levels = self.page_now.partial = False

    cdef void release_head(self):
        if self.leaf != NULL:  # a page that is not compressed lies there
            ps_leaf_forget(self.leaf)
        self.page_now.partial = False  # the rest of it would be sought there
        PageReader.release_head(self)

    @property
    def has_dictionary(self):
        """Whether a dictionary has been handed over."""
        return self.dictionary_held or self.dictionary_used

    @property
    def row(self):
        """Rows before this one are done."""
        return ps_leaf_row(self.leaf)

    def dictionary(self, data, int64_t n):
        """The decompressed dictionary page: `n` PLAIN values. The buffer is held until the decoder is freed."""
        self.enter()
        try:
            self.hold_dictionary(data, n)
        finally:
            self.leave()

    cdef int hold_dictionary(self, data, int64_t n) except -1:
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

    def begin(self, selection, int64_t max_rows=INT64_MAX, size_t hint=0):
        """Set the rows to read: RowRanges, or their `buffers`.

        These are an int64 buffer of (start, stop) pairs, sorted and disjoint, or a tuple (bits, first row,
        length) of a bitmap, least significant bit first. They are held until the next begin.
        `hint`: bytes of strings to expect, or of a nested leaf its slots.
        """
        self.enter()
        try:
            self.begin_rows(selection, max_rows, hint)
        finally:
            self.leave()

    cdef int begin_rows(self, selection, int64_t max_rows, size_t hint) except -1:
        cdef ps_selection rows
        cdef ps_error err
        cdef ps_status status
        self.hold_rows(selection, &rows)
        with nogil:
            status = ps_leaf_begin(self.leaf, &rows, max_rows, hint, &err)
        check(status, &err)
        return 0

    cdef int hold_rows(self, selection, ps_selection *rows) except -1:
        cdef Py_buffer view
        cdef int64_t base = 0, length = 0
        memset(rows, 0, sizeof(ps_selection))
        data = selection if type(selection) is bytes else getattr(selection, "buffers", selection)
        bits = isinstance(data, tuple)
        if bits:
            data, base, length = data
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        if not view.readonly or <uintptr_t>view.buf % 8:  # what was checked may not change
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

    def page(self, body, levels, int version, int encoding, int def_encoding, int rep_encoding, int64_t num_values,
             int64_t num_nulls, int64_t num_rows, size_t rep_length, size_t def_length, int64_t first_row,
             bint partial=False, bint whole=True):
        """Hand a page and take the selected rows from it.

        `body`: V1 levels and values, V2 values; decompressed, or (`partial`) as much of it as the rows
        need. `levels`: V2, repetition then definition levels, else None.
        """
        self.enter()
        try:
            return self.take_plain(body, levels, version, encoding, def_encoding, rep_encoding, num_values, num_nulls, num_rows,
                                   rep_length, def_length, first_row, partial, whole)
        finally:
            self.leave()

    cdef int take_plain(self, body, levels, int version, int encoding, int def_encoding, int rep_encoding, int64_t num_values,
                        int64_t num_nulls, int64_t num_rows, size_t rep_length, size_t def_length, int64_t first_row,
                        bint partial, bint whole) except -1:
        cdef ps_page page
        cdef ps_error err
        cdef ps_status status
        cdef ps_take state = PS_TAKE_PAGE
        self.release_page()
        PyObject_GetBuffer(body, &self.page_view, PyBUF_SIMPLE)
        self.has_page = True
        memset(&page, 0, sizeof(page))
        if levels is not None:
            PyObject_GetBuffer(levels, &self.levels_view, PyBUF_SIMPLE)
            self.has_levels = True
            if rep_length > <size_t>self.levels_view.len or def_length != <size_t>self.levels_view.len - rep_length:
                raise ValueError("levels need rep_length + def_length bytes")
            page.levels = <const uint8_t *>self.levels_view.buf
            page.rep_length, page.def_length = rep_length, def_length
        elif version == 2:
            raise ValueError("a V2 page needs its levels")
        page.version, page.encoding, page.def_encoding, page.rep_encoding = version, encoding, def_encoding, rep_encoding
        page.num_values, page.num_nulls, page.num_rows, page.first_row = num_values, num_nulls, num_rows, first_row
        page.index_rows, page.whole = -1, whole
        page.body, page.length, page.partial = <const uint8_t *>self.page_view.buf, <size_t>self.page_view.len, partial
        with nogil:
            status = ps_leaf_page(self.leaf, &page, &err)
            if status == PS_OK:
                status = ps_leaf_take(self.leaf, &state, &err)
        check(status, &err)
        return <int>state

    @property
    def page_rows(self):
        """Rows that begin in the page taken last."""
        return ps_leaf_page_rows(self.leaf)

    def take(self, int64_t first_row, bint whole=True):
        """Decompress the page at hand, no further than needed where the codec allows, and take its selected rows.

        `first_row`: rows of the row group that begin before it. `whole`: its last row does not go on in the
        next page.
        """
        self.enter()
        try:
            return self.take_page(first_row, whole)
        finally:
            self.leave()

    cdef int take_page(self, int64_t first_row, bint whole) except -1:
        cdef ps_page_header *h = &self.header
        cdef ps_page *page = &self.page_now
        cdef ps_packed *packed = &self.packed
        cdef ps_error err
        cdef size_t reach
        self.check_head()
        if h.type != DATA and h.type != DATA_V2:
            raise CoreError(<int>PS_CORRUPT, None, f"page of type {h.type}, not a data page")
        if h.encoding == 2 or h.encoding == 8:
            if not self.dictionary_held and not self.levels_only:
                return DICTIONARY_WANTED
        elif self.codes_only:
            raise CoreError(<int>PS_CORRUPT, None, f"encoding {h.encoding}, not codes of a dictionary")
        self.check_size()
        self.check_crc()
        self.release_page()
        memset(page, 0, sizeof(ps_page))
        page.first_row, page.index_rows, page.whole = first_row, self.index_rows, whole
        check(ps_page_open(h, <const uint8_t *>self.head_view.buf, self.body, self.always_compressed, self.levels_only,
                           page, packed, &err), &err)
        if not packed.plain:
            reach = packed.size
            if self.codec > PS_CODEC_NONE or self.other_prefix is not None:
                reach = ps_page_reach(self.leaf, page, packed.size, self.step)
            if reach < packed.size:
                try:
                    self.unpack(reach)
                except CoreError:
                    reach = packed.size  # decoding all of it tells what is wrong
            if reach == packed.size:
                self.unpack(reach)
        if page.partial:
            try:
                return self.take_from(page)
            except CoreError:  # levels, or byte strings, longer than expected, or a fault
                self.unpack(self.packed.size)
        return self.take_from(page)

    cdef int unpack(self, size_t reach) except -1:
        self.release_page()
        body = self.plain(self.packed.at, self.packed.length, self.packed.size, reach)
        PyObject_GetBuffer(body, &self.page_view, PyBUF_SIMPLE)
        self.has_page = True
        self.page_now.body, self.page_now.length = <const uint8_t *>self.page_view.buf, <size_t>self.page_view.len
        self.page_now.partial = reach < self.packed.size
        return 0

    cdef int take_from(self, ps_page *page) except -1:
        cdef ps_error err
        cdef ps_status status
        cdef ps_take state = PS_TAKE_PAGE
        with nogil:
            status = ps_leaf_page(self.leaf, page, &err)
            if status == PS_OK:
                status = ps_leaf_take(self.leaf, &state, &err)
        check(status, &err)
        return <int>state

    def take_dictionary(self):
        """The page at hand is the dictionary: decompress and keep it."""
        self.enter()
        try:
            self.take_entries()
        finally:
            self.leave()

    def entries(self):
        """What `finish` gives of the values of the dictionary page at hand, for a leaf without levels."""
        self.enter()
        try:
            return self.all_entries()
        finally:
            self.leave()

    cdef tuple all_entries(self):
        cdef int64_t n = self.header.num_values
        cdef ps_error err
        body = self.entries_body()
        check(ps_leaf_dictionary_fits(self.leaf, <size_t>self.header.uncompressed_size, n, &err), &err)
        cdef bytes every = PyBytes_FromStringAndSize(NULL, 16)
        cdef int64_t *bounds = <int64_t *>PyBytes_AsString(every)
        bounds[0], bounds[1] = 0, n
        self.begin_rows(every, INT64_MAX, 0)
        if n > 0:
            self.take_plain(body, None, 1, 0, 3, 3, n, -1, -1, 0, 0, 0, False, True)
        return self.finish_column()

    cdef int take_entries(self) except -1:
        self.hold_dictionary(self.entries_body(), self.header.num_values)
        return 0

    cdef object entries_body(self):
        cdef ps_page_header *h = &self.header
        self.check_head()
        if h.type != DICTIONARY:
            raise CoreError(<int>PS_CORRUPT, None, f"page of type {h.type}, not a dictionary")
        if h.encoding != 0 and h.encoding != 2:
            raise CoreError(<int>PS_CORRUPT, None, f"encoding {h.encoding}, not PLAIN")
        self.check_size()
        self.check_crc()
        size = <size_t>h.uncompressed_size
        body = self.plain(self.body, <size_t>h.compressed_size, size, size)
        self.scratch = None  # the dictionary stays
        return body

    def read_page(self, data, int64_t first_row, int64_t rows, ranges, size_t hint=0, dictionary=None):
        """All at once for rows that lie in one page which the offset index knows: begin, head, take, finish.

        `dictionary`: the page before the first, if it is at hand, of which nothing else may be. Gives what
        `finish` does, or else the answer of `take`.
        """
        self.enter()
        try:
            return self.one_page(data, first_row, rows, ranges, hint, dictionary)
        finally:
            self.leave()

    cdef object one_page(self, data, int64_t first_row, int64_t rows, ranges, size_t hint, dictionary):
        self.begin_rows(ranges, INT64_MAX, hint)
        self.read_head(data, 0, rows)
        cdef int state = self.take_page(first_row, True)
        if state == DICTIONARY_WANTED and dictionary is not None:
            self.read_head(dictionary, 0, -1)
            if self.body + <size_t>self.header.compressed_size != <size_t>self.head_view.len:
                raise PageMismatch(<int>PS_CORRUPT, None, "more than a dictionary lies before the first page")
            self.take_entries()
            self.read_head(data, 0, rows)
            state = self.take_page(first_row, True)
        return self.finish_column() if state == PS_TAKE_DONE else state

    def release(self):
        """Let go of the pages handed over; their memory is then at once at hand for others, still in the caches."""
        self.enter()
        try:
            self.let_go()
        finally:
            self.leave()

    cdef void let_go(self):
        self.release_page()
        self.release_head()
        self.source = self.scratch = None

    def resume(self):
        """Take on from the page already handed, after finish and begin; TAKE_PAGE where it is gone."""
        self.enter()
        try:
            return self.take_on()
        finally:
            self.leave()

    cdef int take_on(self) except -1:
        cdef ps_error err
        cdef ps_status status
        cdef ps_take state = PS_TAKE_PAGE
        with nogil:
            status = ps_leaf_take(self.leaf, &state, &err)
        if status != PS_OK and self.has_head and self.has_page and self.page_now.partial:
            self.unpack(self.packed.size)  # the rows of before needed less of it
            return self.take_from(&self.page_now)
        check(status, &err)
        return <int>state

    def end(self):
        """No page follows the one taken last: TAKE_DONE if no selected row is wanting."""
        self.enter()
        try:
            ps_leaf_end(self.leaf)
            return self.take_on()
        finally:
            self.leave()

    def finish(self):
        """(rows, null_count, validity or None, offsets or None, values): the buffers of an Arrow array."""
        self.enter()
        try:
            return self.finish_column()
        finally:
            self.leave()

    cdef tuple finish_column(self):
        cdef ps_column out
        cdef ps_error err
        cdef ps_status status
        with nogil:
            status = ps_leaf_finish(self.leaf, &out, &err)
        made = self.made(&out)
        check(status, &err)
        return made

    cdef tuple made(self, ps_column *out):
        self.rows = out.rows
        validity = wrap(out.validity, out.validity_size, out.validity_capacity)
        offsets = wrap(out.offsets, out.offsets_size, out.offsets_capacity)
        values = wrap(out.values, out.values_size, out.values_capacity)
        return out.n, out.null_count, validity, offsets, values

    def nesting_levels(self):
        """After `finish`, for each nesting level (slots, null_count, validity or None, offsets or None):
        validity of a nullable node, 32-bit offsets, one more than slots, of a repeated one.
        """
        self.enter()
        try:
            return self.finished_nesting_levels()
        finally:
            self.leave()

    cdef list finished_nesting_levels(self):
        cdef ps_column out
        cdef ps_error err
        cdef int i
        cdef list made = []
        for i in range(self.n_nesting_levels):
            check(ps_leaf_nesting_level(self.leaf, <int32_t>i, &out, &err), &err)
            made.append((out.n, out.null_count, wrap(out.validity, out.validity_size, out.validity_capacity),
                         wrap(out.offsets, out.offsets_size, out.offsets_capacity)))
        return made


def read_pages(list wanted not None, size_t threads=1):
    """`read_page` and `release` of several decoders, on at most `threads` threads.

    `wanted`: a list of (decoder, arguments of `read_page`, whether its data is a chunk of one data page).

    Of each what `finish` gave, or TAKE_DICTIONARY; None of one that has to be made again, which then tells what is
    wrong, or whose codec is not the core's own. All in one go, without the interpreter's lock: decompression turns
    all else out of the processor's caches, and between pages as little as can be has to come back.
    """
    cdef tuple items = tuple(wanted)
    cdef Py_ssize_t n = len(items), i
    cdef LeafDecoder decoder
    cdef ps_page_task *tasks = <ps_page_task *>PyMem_Calloc(<size_t>n + 1, sizeof(ps_page_task))
    cdef Py_buffer *views = <Py_buffer *>PyMem_Calloc(2 * <size_t>n + 1, sizeof(Py_buffer))
    cdef ps_page_task *task
    cdef list out = [], entered = []
    if tasks == NULL or views == NULL:
        PyMem_Free(tasks)
        PyMem_Free(views)
        raise MemoryError
    try:
        for i in range(n):
            one, (data, first_row, rows, ranges, hint, dictionary), whole = items[i]
            if not isinstance(one, LeafDecoder):
                raise TypeError(f"a LeafDecoder is wanted, not {type(one).__name__}")
            decoder = one
            decoder.enter()  # not twice, either
            entered.append(decoder)
            decoder.let_go()
            decoder.drop_dictionary()
            task = &tasks[i]
            decoder.hold_rows(ranges, &task.selection)
            PyObject_GetBuffer(data, &views[2 * i], PyBUF_SIMPLE)
            task.data, task.length = <const uint8_t *>views[2 * i].buf, <size_t>views[2 * i].len
            if dictionary is not None:
                PyObject_GetBuffer(dictionary, &views[2 * i + 1], PyBUF_SIMPLE)
                task.dictionary = <const uint8_t *>views[2 * i + 1].buf
                task.dictionary_length = <size_t>views[2 * i + 1].len
            task.leaf, task.first_row, task.rows, task.hint = decoder.leaf, first_row, rows, hint
            task.codec, task.step = decoder.codec, decoder.step
            task.max_page, task.max_values = decoder.max_page, decoder.max_values
            task.nested, task.repeats = decoder.nested, decoder.rep_mask > 0
            task.always_compressed, task.levels_only = decoder.always_compressed, decoder.levels_only
            task.codes_only, task.chunk = decoder.codes_only, whole
        with nogil:
            ps_page_tasks(tasks, <size_t>n, threads)
        for i in range(n):
            decoder, task = entered[i], &tasks[i]
            decoder.dictionary_used = task.dictionary_used
            if task.state == PS_TASK_DONE:
                out.append(decoder.made(&task.column))
            elif task.state == PS_TASK_DICTIONARY:
                out.append(DICTIONARY_WANTED)
            else:
                out.append(None)
    finally:
        for i in range(2 * n):
            PyBuffer_Release(&views[i])
        PyMem_Free(tasks)
        PyMem_Free(views)
        for decoder in entered:
            decoder.leave()
    return out
