"""codecs.pyx for other modules: codecs, and decompression into memory of the caller."""
from pageseek._core.header cimport ps_error, ps_status

cimport cython
from libc.stdint cimport int64_t, uint8_t


cdef extern from "pageseek.h" nogil:
    ctypedef enum ps_codec:
        PS_CODEC_OTHER
        PS_CODEC_NONE
        PS_CODEC_SNAPPY
        PS_CODEC_LZ4_RAW
        PS_CODEC_LZ4
        PS_CODEC_ZSTD
        PS_CODEC_GZIP
        PS_CODEC_BROTLI
    ps_status ps_inflate_fits(ps_codec, const uint8_t *, size_t, size_t, ps_error *)
    ps_status ps_inflate(ps_codec, const uint8_t *, size_t, uint8_t *, size_t, size_t, ps_error *)

cdef ps_codec codec_of(str name) except? PS_CODEC_OTHER
cdef bint fits(ps_codec codec, const uint8_t *data, size_t length, size_t size)
cdef int inflate(ps_codec codec, const uint8_t *data, size_t length, uint8_t *out, size_t size, size_t reach) except -1


@cython.final
cdef class CodecSettings:
    cdef size_t max_output, step
    cdef int64_t max_page
    cdef bint lsb_levels, always_compressed
    cdef ps_codec codec
    cdef readonly bint own  # the core knows the codec by itself
    cdef object decompress, prefix
