# cython: language_level=3, boundscheck=False, wraparound=False, freethreading_compatible=True
"""The current page: its header, its checksum, its bytes as they are or decompressed."""
from pageseek._core.codecs cimport (
    PS_CODEC_NONE,
    PS_CODEC_OTHER,
    PS_CODEC_ZSTD,
    fits,
    inflate,
    ps_inflate_fits,
)
from pageseek._core.header cimport (
    PS_CORRUPT,
    PS_INVALID,
    PS_LIMIT,
    PS_OK,
    ps_busy_enter,
    ps_busy_leave,
    ps_crc32,
    ps_error,
    ps_page_header,
    ps_page_header_read,
    ps_status,
)
from pageseek._core.memory cimport Block, allocate
from pageseek._core.status cimport check
from pageseek._core.status import HeaderError, PageMismatch
from pageseek.base.errors import CoreError

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.object cimport PyObject_GetItem
from libc.stdint cimport INT64_MAX, INT64_MIN, UINT64_MAX, int64_t, uint8_t, uint32_t

DATA_PAGE, INDEX_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 = range(4)  # parquet.thrift, PageType


@cython.no_gc  # as LeafBuffers of leaf.pyx
cdef class PageReader:
    """Reads headers of pages, and decompresses their bytes by the codec of the chunk. A base of LeafDecoder."""

    def __cinit__(self):
        self.max_page = self.max_values = INT64_MAX

    def __dealloc__(self):
        PageReader.release_head(self)

    cdef int enter(self) except -1:
        """Lock the object until `leave`. A call from another thread, or from a codec of the caller, is an error then."""
        if not ps_busy_enter(&self.busy):
            raise CoreError(<int>PS_INVALID, None, "the decoder is in use by another thread, or by a call that goes on")
        return 0

    cdef void leave(self) noexcept:
        ps_busy_leave(&self.busy)

    cdef void release_head(self):
        if self.has_head:
            PyBuffer_Release(&self.head_view)
        self.has_head = self.has_header = False

    def head(self, data, size_t at=0, int64_t index_rows=-1):
        """Read the page header at byte `at` of a buffer, and return its type. Its page is the one to take next.

        `index_rows`: the buffer is one data page of that number of rows, by the offset index. Raises HeaderError
        where there is no header, and PageMismatch where the page is another one.
        """
        self.enter()
        try:
            self.read_head(data, at, index_rows)
            return self.header.type
        finally:
            self.leave()

    cdef int read_head(self, data, size_t at, int64_t index_rows) except -1:
        cdef ps_error err
        cdef ps_status status
        cdef ps_page_header *h = &self.header
        cdef size_t length
        self.release_head()
        PyObject_GetBuffer(data, &self.head_view, PyBUF_SIMPLE)
        self.has_head, self.source = True, data
        length = <size_t>self.head_view.len
        if at > length:
            raise HeaderError(<int>PS_CORRUPT, None, f"byte {at} lies outside of {length}")
        status = ps_page_header_read(<const uint8_t *>self.head_view.buf + at, length - at, h, &err)
        if status != PS_OK:
            byte = None if err.offset == UINT64_MAX else at + err.offset
            raise HeaderError(<int>status, byte, err.message.decode("utf-8", "replace"))
        self.body = at + <size_t>h.header_length
        if index_rows >= 0:
            if h.type != DATA and h.type != DATA_V2:
                raise PageMismatch(<int>PS_CORRUPT, None, f"is of type {h.type}, not a data page")
            if self.body + <size_t>h.compressed_size != length:
                raise PageMismatch(<int>PS_CORRUPT, None,
                                   f"has {self.body + <size_t>h.compressed_size} bytes, not {length}")
            if self.rep_mask == 0 and h.num_values != index_rows:  # nested or not, a row has one place
                raise PageMismatch(<int>PS_CORRUPT, None, f"has {h.num_values} rows, not {index_rows}")
        elif <size_t>h.compressed_size > length - self.body:
            raise CoreError(<int>PS_CORRUPT, None, f"{h.compressed_size} bytes reach beyond their place")
        if h.num_values > self.max_values and (h.type == DATA or h.type == DATA_V2):
            raise (PageMismatch if index_rows >= 0 else CoreError)(
                <int>PS_CORRUPT, None, f"claims {h.num_values} values, the footer gives its whole chunk {self.max_values}; "
                "read without this column, or have the file written again")
        self.has_header = True
        self.index_rows = index_rows if self.nested else -1
        return 0

    @property
    def num_values(self):
        """int: values of the page whose header was read."""
        return self.header.num_values

    @property
    def num_rows(self):
        """int: rows of the page whose header was read, if it is of version 2; else -1."""
        return self.header.num_rows if self.header.type == DATA_V2 else -1

    @property
    def begins_row(self):
        """Whether the page whose header was read is of version 2 and its first repetition level is 0, or it is empty."""
        self.enter()
        try:
            return self.first_begins_row()
        finally:
            self.leave()

    cdef bint first_begins_row(self) noexcept:
        cdef const uint8_t *levels
        cdef int64_t i = 0, length = self.header.rep_length
        if not self.has_header or self.header.type != DATA_V2:
            return False
        levels = <const uint8_t *>self.head_view.buf + self.body
        if self.header.num_values == 0:
            return True
        if length < 2 or length > self.header.compressed_size or levels[0] < 2:  # a run of none tells nothing
            return False
        while i < length and levels[i] & 128:
            i += 1
        # the first level of a run, and of packed levels, lies in the low bits of the next byte
        return i + 1 < length and levels[i + 1] & self.rep_mask == 0

    @property
    def stop(self):
        """The byte after the page whose header was read, in the buffer of `head`."""
        return self.body + <size_t>self.header.compressed_size

    cdef int check_head(self) except -1:
        if not self.has_header:
            raise CoreError(<int>PS_INVALID, None, "take before head")
        return 0

    cdef int check_size(self) except -1:
        if self.header.uncompressed_size > self.max_page:
            raise CoreError(<int>PS_LIMIT, None,
                            f"the page declares {self.header.uncompressed_size} bytes, beyond the limit of "
                            f"{self.max_page}; raise it with max_page_bytes")
        return 0

    cdef int check_crc(self) except -1:
        cdef const uint8_t *body = <const uint8_t *>self.head_view.buf + self.body
        cdef size_t length = <size_t>self.header.compressed_size
        cdef uint32_t crc
        if self.header.crc != INT64_MIN:
            with nogil:
                crc = ps_crc32(0, body, length)
            if crc != <uint32_t>self.header.crc:
                raise CoreError(<int>PS_CORRUPT, None, "the checksum of the page does not match its bytes")
        return 0

    cdef object part(self, size_t at, size_t length):
        # for view[at:stop] Cython would try a number first, raise a TypeError and drop it
        view = memoryview(self.source)
        if view.format != "B" or view.ndim != 1:
            view = view.cast("B")
        return PyObject_GetItem(view, slice(at, at + length))

    cdef object plain(self, size_t at, size_t length, size_t size, size_t reach):
        """The first `reach` of `size` bytes, which `length` compressed bytes at byte `at` hold."""
        cdef Block block
        cdef ps_error err
        cdef const uint8_t *packed = <const uint8_t *>self.head_view.buf + at
        if self.codec >= PS_CODEC_ZSTD and fits(self.codec, packed, length, size):
            block = self.scratch_of(size)
            try:
                inflate(self.codec, packed, length, block.data, size, reach)
                block.size = reach
                return block
            except CoreError:  # the other codec tells what is wrong
                pass
        if self.codec == PS_CODEC_OTHER or self.codec >= PS_CODEC_ZSTD:
            if reach == size:
                return self.other_codec(self.part(at, length), size)
            if self.other_prefix is None:
                raise CoreError(<int>PS_CORRUPT, None, "not to be read in part")
            block = allocate(reach)  # not kept: the codec may have let another hold it
            self.other_prefix(self.part(at, length), size, block)
            return block
        if self.codec == PS_CODEC_NONE:
            if length != size:
                raise CoreError(<int>PS_CORRUPT, None, f"the page declares {size} bytes and has {length}")
            return self.part(at, length)
        check(ps_inflate_fits(self.codec, packed, length, size, &err), &err)
        block = self.scratch_of(reach)
        inflate(self.codec, packed, length, block.data, size, reach)
        return block

    cdef Block scratch_of(self, size_t size):
        cdef Block block = self.scratch
        if block is None or block.capacity < size:
            block = self.scratch = None
            block = self.scratch = allocate(size)
        block.size = size
        return block
