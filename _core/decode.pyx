# cython: language_level=3, boundscheck=False, wraparound=False, freethreading_compatible=True
"""The leaf decoder: bytes of pages in, memory of Arrow arrays out."""
from pageseek._core.header cimport PS_CORRUPT, ps_page_header
from pageseek._core.leaf cimport (
    DICTIONARY_WANTED, PS_TAKE_DONE, PS_TAKE_FULL, PS_TAKE_PAGE, LeafBuffers, ps_page,
)
from pageseek._core.pages cimport DATA, DATA_V2, DICTIONARY
from pageseek._core.status import PageMismatch
from pageseek.base.errors import CoreError

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AsString, PyBytes_FromStringAndSize
from libc.stdint cimport INT64_MAX, int64_t, uint8_t
from libc.string cimport memset

TAKE_PAGE, TAKE_DONE, TAKE_FULL, TAKE_DICTIONARY = PS_TAKE_PAGE, PS_TAKE_DONE, PS_TAKE_FULL, DICTIONARY_WANTED


@cython.no_gc  # as LeafBuffers of leaf.pyx
cdef class LeafDecoder(LeafBuffers):
    """Decodes the selected rows of one leaf of one row group, page by page.

    Parameters
    ----------
    form : tuple of int
        (physical type, type_length, kind, width, INT96 unit, check UTF-8, range), see ps_leaf_spec.
    max_def, max_rep : int
        Greatest definition and repetition level of the leaf.
    nesting_levels : sequence of (int, int, int)
        The nesting levels of a nested leaf, from the row down, without that of its own nulls: (0, definition level, 0)
        for a nullable node, (1, definition level, repetition level) for a repeated one.
    levels_only : bool
        Decode the levels of a nested leaf and no value.
    max_output : int
        Bytes that each buffer of the output of one read may hold.
    lsb_levels : bool
        BIT_PACKED levels begin at the low bit (Impala), not at the high one (Encodings.md).
    codec : str
        "uncompressed", "snappy", "lz4", "lz4_raw", "zstd", "gzip", "brotli", or another name. `decompress` decodes a codec
        of another name, and those three where their library is absent or fails.
    decompress : callable
        Takes (memoryview, size), and returns a buffer of exactly that size or raises CoreError.
    max_page : int
        Bytes that a page may have, decompressed.
    max_values : int
        Values that a page may claim, which are those of its chunk; nulls and empty lists count.
    likely_rows : int
        Rows for which memory is allocated at once; pages allocate more. 0: all selected rows.
    always_compressed : bool
        V2 pages are compressed even where their headers deny it.
    codes_only : bool
        Data pages must be of dictionary codes.
    prefix : callable, optional
        Takes (memoryview, size, Block), and fills the block with the first of `size` bytes or raises CoreError. It
        decodes whole steps of `step` bytes, and takes less time than `decompress`.
    codec_settings : CodecSettings, optional
        Replaces the parameters that it has; of two limits of the output, the smaller one holds.
    passes : bool
        The kind is K_BOOL, whatever the physical type: for `read_pages`, which is told which entries of dictionaries
        are true.
    entries_only : bool
        For `read_pages`, whose page is the dictionary page: its entries are the rows.
    tests : RowTests, optional
        For `read_pages`, which gives only the rows that pass; the leaf is flat, and its kind not K_BOOL and no views.

    Call `begin(selection)`, then `head(bytes)` and `take(first_row)` for each page that holds a selected row, then
    `finish()`, which returns the buffers. `take` returns TAKE_PAGE (the next page comes), TAKE_DONE, TAKE_FULL
    (call finish, begin and `resume`), or TAKE_DICTIONARY (call `head` and `take_dictionary` with the dictionary page,
    then `head` and `take` again). Rows count from the first of the row group. `dictionary` and `page` take
    decompressed bytes. Each method raises CoreError.
    """

    def dictionary(self, data, int64_t n):
        """Set the dictionary, `n` PLAIN values, decompressed. The buffer is held until the next one or the end."""
        self.enter()
        try:
            self.hold_dictionary(data, n)
        finally:
            self.leave()

    def begin(self, selection, int64_t max_rows=INT64_MAX, size_t hint=0):
        """Set the rows to read: RowRanges, or their `buffers`.

        These are an int64 buffer of (start, stop) pairs, sorted and disjoint, or a tuple (bits, first row,
        length) of a bitmap, least significant bit first. They are held until the next begin.
        `hint`: expected bytes of strings; for a nested leaf, its slots.
        """
        self.enter()
        try:
            self.begin_rows(selection, max_rows, hint)
        finally:
            self.leave()

    def page(self, body, levels, int version, int encoding, int def_encoding, int rep_encoding, int64_t num_values,
             int64_t num_nulls, int64_t num_rows, size_t rep_length, size_t def_length, int64_t first_row,
             bint partial=False, bint whole=True):
        """Take the selected rows of a page.

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
        self.hold_page(body)
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
        return self.take_from(&page)

    def take(self, int64_t first_row, bint whole=True):
        """Take the selected rows of the page whose header was read. The codec decompresses as little of it as it can.

        `first_row`: rows of the row group that begin before it. `whole`: its last row does not go on in the next
        page.
        """
        self.enter()
        try:
            return self.take_page(first_row, whole)
        finally:
            self.leave()

    cdef int take_page(self, int64_t first_row, bint whole) except -1:
        cdef ps_page_header *h = &self.header
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
        self.open_page(first_row, whole)
        if self.page_now.partial:
            try:
                return self.take_from(&self.page_now)
            except CoreError:  # levels, or byte strings, longer than expected, or a fault
                self.unpack(self.packed.size)
        return self.take_from(&self.page_now)

    def take_dictionary(self):
        """Decompress and keep the dictionary page whose header was read."""
        self.enter()
        try:
            self.take_entries()
        finally:
            self.leave()

    def entries(self):
        """The values of the dictionary page whose header was read, as `finish` returns them; for a leaf without levels."""
        self.enter()
        try:
            return self.all_entries()
        finally:
            self.leave()

    cdef tuple all_entries(self):
        cdef int64_t n = self.header.num_values
        body = self.entries_body()
        self.check_entries(<size_t>self.header.uncompressed_size, n)
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
        """Call begin, head, take and finish for rows of one page, which the offset index locates.

        `dictionary`: the bytes before the first page, which must be the dictionary page alone; None: not read yet.
        Returns the result of `finish`, or that of `take` if it is not TAKE_DONE.
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
        """Release the buffers of pages. Others may use their memory while it is still in the processor's caches."""
        self.enter()
        try:
            self.let_go()
        finally:
            self.leave()

    def resume(self):
        """Go on with the page taken last, after finish and begin; TAKE_PAGE where it was released."""
        self.enter()
        try:
            return self.take_on()
        finally:
            self.leave()

    def end(self):
        """Say that no page follows. TAKE_DONE: no selected row is missing."""
        self.enter()
        try:
            self.end_pages()
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

    def nesting_levels(self):
        """After `finish`, for each nesting level (slots, null_count, validity or None, offsets or None):
        validity of a nullable node, 32-bit offsets, one more than slots, of a repeated one.
        """
        self.enter()
        try:
            return self.finished_nesting_levels()
        finally:
            self.leave()
