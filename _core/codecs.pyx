# cython: language_level=3, boundscheck=False, wraparound=False, freethreading_compatible=True
"""Checksums, and the codecs of the core's own."""
from pageseek._core.header cimport (
    PS_CORRUPT,
    ps_crc32,
    ps_error,
    ps_lz4_decode,
    ps_lz4_hadoop_decode,
    ps_snappy_decode,
    ps_status,
)
from pageseek._core.memory cimport Block, allocate
from pageseek._core.status cimport check
from pageseek.errors import CoreError

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport uint8_t, uint32_t


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


cdef int OWN_SNAPPY = 1, OWN_LZ4_RAW = 2, OWN_LZ4 = 3
cdef dict OWN = {"snappy": OWN_SNAPPY, "lz4_raw": OWN_LZ4_RAW, "lz4": OWN_LZ4}


cdef int codec_of(str name) except -2:
    return 0 if name == "uncompressed" else OWN.get(name, -1)


cdef int inflate(int codec, const uint8_t *data, size_t length, uint8_t *out, size_t size, bint exact) except -1:
    cdef ps_error err
    cdef ps_status status
    with nogil:
        if codec == OWN_SNAPPY:
            status = ps_snappy_decode(data, length, out, size, exact, &err)
        elif codec == OWN_LZ4_RAW:
            status = ps_lz4_decode(data, length, out, size, exact, &err)
        else:
            status = ps_lz4_hadoop_decode(data, length, out, size, exact, &err)
    check(status, &err)
    return 0


cdef int can_hold(size_t length, size_t size) except -1:
    # a block expands at most 255-fold (LZ4) or about 22-fold (Snappy): refuse before allocating
    if length * 256 + 64 < size:
        raise CoreError(<int>PS_CORRUPT, None, f"{length} compressed bytes cannot hold {size}")
    return 0


def decompress(str codec, data, size_t size, bint exact=True):
    """Decode a block of codec "snappy", "lz4_raw" or "lz4" (Hadoop framing, else raw) into a new Block.

    `exact`: the block must yield `size` bytes and no more; else its first `size` bytes are decoded and
    the rest is left. Raises CoreError where the block does not hold them.
    """
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        can_hold(<size_t>view.len, size)
        block = allocate(size)
        inflate(OWN[codec], <const uint8_t *>view.buf, <size_t>view.len, (<Block>block).data, size, exact)
    finally:
        PyBuffer_Release(&view)
    return block
