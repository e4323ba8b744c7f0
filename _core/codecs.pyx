# cython: language_level=3, boundscheck=False, wraparound=False, freethreading_compatible=True
"""Checksums, and the codecs that the core decodes itself."""
from pageseek._core.header cimport PS_INVALID, PS_OK, ps_crc32, ps_error, ps_shared, ps_shared_use, ps_status
from pageseek._core.memory cimport Block, allocate, shared
from pageseek._core.status cimport check
from pageseek.base.errors import CoreError

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint8_t, uint32_t, uintptr_t


cdef extern from "pageseek.h" nogil:
    ctypedef struct ps_zstd:
        pass
    void ps_zstd_use(const ps_zstd *)
    bint ps_zstd_ready()
    ctypedef struct ps_zlib:
        pass
    void ps_zlib_use(const ps_zlib *)
    bint ps_zlib_ready()
    ctypedef struct ps_brotli:
        pass
    void ps_brotli_use(const ps_brotli *)
    bint ps_brotli_ready()


cdef ps_shared state = shared()
ps_shared_use(&state)


def crc32(data, uint32_t crc=0):
    """CRC-32 of a buffer, as in the crc field of a page header; `crc` continues an earlier one."""
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        with nogil:
            crc = ps_crc32(crc, <const uint8_t *>view.buf, <size_t>view.len)
    finally:
        PyBuffer_Release(&view)
    return crc


cdef dict CODECS = {"uncompressed": <int>PS_CODEC_NONE, "snappy": <int>PS_CODEC_SNAPPY,
                    "lz4_raw": <int>PS_CODEC_LZ4_RAW, "lz4": <int>PS_CODEC_LZ4}


cdef int take_addresses(uintptr_t *addresses, tuple functions, Py_ssize_t wanted, str library, bint last_may_lack) except -1:
    if len(functions) != wanted or not all(functions[:wanted - 1] if last_may_lack else functions):
        raise CoreError(<int>PS_INVALID, None, f"{len(functions)} functions of {library}, {wanted} are used")
    for i, address in enumerate(functions):
        addresses[i] = address
    return 0


def use_zstd(tuple functions):
    """Take the functions of libzstd at these addresses, in the order of ps_zstd (ps_leaf.h); the last may be 0. None: do without
    libzstd.

    Not while anything is decoded.
    """
    cdef uintptr_t addresses[9]
    if functions is None:
        ps_zstd_use(NULL)
        return
    take_addresses(addresses, functions, <Py_ssize_t>sizeof(ps_zstd) // sizeof(uintptr_t), "libzstd", True)
    ps_zstd_use(<const ps_zstd *>addresses)


def use_zlib(tuple functions):
    """As use_zstd: the functions of zlib, in the order of ps_zlib."""
    cdef uintptr_t addresses[4]
    if functions is None:
        ps_zlib_use(NULL)
        return
    take_addresses(addresses, functions, <Py_ssize_t>sizeof(ps_zlib) // sizeof(uintptr_t), "zlib", False)
    ps_zlib_use(<const ps_zlib *>addresses)


def use_brotli(tuple functions):
    """As use_zstd: the functions of libbrotlidec, in the order of ps_brotli."""
    cdef uintptr_t addresses[3]
    if functions is None:
        ps_brotli_use(NULL)
        return
    take_addresses(addresses, functions, <Py_ssize_t>sizeof(ps_brotli) // sizeof(uintptr_t), "libbrotlidec", False)
    ps_brotli_use(<const ps_brotli *>addresses)


cdef ps_codec codec_of(str name) except? PS_CODEC_OTHER:
    if name == "zstd" and ps_zstd_ready():
        return PS_CODEC_ZSTD
    if name == "gzip" and ps_zlib_ready():
        return PS_CODEC_GZIP
    if name == "brotli" and ps_brotli_ready():
        return PS_CODEC_BROTLI
    return <ps_codec><int>CODECS.get(name, <int>PS_CODEC_OTHER)


@cython.final
cdef class CodecSettings:
    """Settings that the leaves of one codec share in a scan of one file. Its parameters are those of LeafDecoder."""

    def __cinit__(self, str codec, decompress, prefix, size_t step, size_t max_output, int64_t max_page,
                  bint lsb_levels, bint always_compressed):
        self.codec, self.decompress, self.prefix, self.step = codec_of(codec), decompress, prefix, max(step, <size_t>1)
        self.max_output, self.max_page = max_output, max_page
        self.lsb_levels, self.always_compressed = lsb_levels, always_compressed
        self.own = self.codec != PS_CODEC_OTHER


cdef bint fits(ps_codec codec, const uint8_t *data, size_t length, size_t size):
    return ps_inflate_fits(codec, data, length, size, NULL) == PS_OK


cdef int inflate(ps_codec codec, const uint8_t *data, size_t length, uint8_t *out, size_t size, size_t reach) except -1:
    cdef ps_error err
    cdef ps_status status
    with nogil:
        status = ps_inflate(codec, data, length, out, size, reach, &err)
    check(status, &err)
    return 0


def decompress(str codec, data, size_t size, bint exact=True):
    """Decode a block of codec "snappy", "lz4_raw" or "lz4" (Hadoop framing, else raw) into a new Block.

    `exact`: the block must yield `size` bytes and no more; else its first `size` bytes are decoded and
    the rest is left. Raises CoreError where the block does not hold them.
    """
    cdef Py_buffer view
    cdef ps_error err
    cdef ps_codec own = <ps_codec><int>CODECS[codec]
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        packed = <const uint8_t *>view.buf
        check(ps_inflate_fits(own, packed, <size_t>view.len, size, &err), &err)
        block = allocate(size)
        inflate(own, packed, <size_t>view.len, (<Block>block).data, size if exact else size + 1, size)
    finally:
        PyBuffer_Release(&view)
    return block
