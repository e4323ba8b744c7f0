"""pages.pyx for other modules: the reader of a page."""
from pageseek._core.codecs cimport ps_codec
from pageseek._core.header cimport ps_busy, ps_page_header
from pageseek._core.memory cimport Block

cimport cython
from libc.stdint cimport int64_t

cdef enum:  # parquet.thrift, PageType
    DATA = 0
    DICTIONARY = 2
    DATA_V2 = 3


@cython.no_gc  # said here, too, for the classes that inherit
cdef class PageReader:
    cdef ps_busy busy  # a call is inside
    cdef Py_buffer head_view  # what `head` was handed
    cdef ps_page_header header
    cdef size_t body  # its byte after the header
    cdef object source, other_codec, other_prefix
    cdef bint nested
    cdef int rep_mask  # the bits of a repetition level
    cdef int64_t index_rows  # rows of the page by the offset index, where the leaf is nested; else -1
    cdef int64_t max_page, max_values
    cdef ps_codec codec  # PS_CODEC_OTHER: other_codec; from PS_CODEC_ZSTD on: that, too, where the library fails
    cdef Block scratch
    cdef bint has_head
    cdef bint has_header  # of a page that lies in the buffer of `head`

    cdef int enter(self) except -1
    cdef void leave(self) noexcept
    cdef void release_head(self)
    cdef bint first_begins_row(self) noexcept
    cdef int read_head(self, data, size_t at, int64_t index_rows) except -1
    cdef object part(self, size_t at, size_t length)
    cdef int check_head(self) except -1
    cdef int check_size(self) except -1
    cdef int check_crc(self) except -1
    cdef Block scratch_of(self, size_t size)
    cdef object plain(self, size_t at, size_t length, size_t size, size_t reach)
