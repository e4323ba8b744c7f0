# cython: language_level=3, boundscheck=False, wraparound=False, freethreading_compatible=True
"""Rows of an Arrow array, by a mask or by their numbers, into new memory."""
from pageseek._core.convert import KIND_WIDTH
from pageseek._core.memory import Block
from pageseek.base.errors import CoreError

from pageseek._core.header cimport PS_INVALID, PS_OK, ps_error, ps_status
from pageseek._core.status cimport check

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint8_t, uintptr_t
from libc.string cimport memset


cdef extern from "pageseek.h" nogil:
    ctypedef struct ps_take_indices:
        const uint8_t *mask
        size_t start
        const int64_t *places
        int64_t n, count
    ps_status ps_gather_check(const ps_take_indices *, ps_error *)
    int64_t ps_gather_bits(const ps_take_indices *, const uint8_t *, uint8_t *)
    void ps_gather_fixed(const ps_take_indices *, const uint8_t *, size_t, uint8_t *)
    ps_status ps_gather_offsets(const ps_take_indices *, const uint8_t *, size_t, size_t, uint8_t *, size_t *, ps_error *)
    void ps_gather_strings(const ps_take_indices *, const uint8_t *, size_t, const uint8_t *, size_t, uint8_t *, size_t)


cdef int need(bint holds, what) except -1:
    if not holds:
        raise CoreError(<int>PS_INVALID, None, f"{what} too short, or a number that is none")
    return 0


@cython.no_gc  # as LeafBuffers of leaf.pyx
cdef class _Held:
    """A buffer of the caller's, or a new Block."""

    cdef Py_buffer view
    cdef bint held

    def __cinit__(self, data, int flags):
        PyObject_GetBuffer(data, &self.view, flags)
        self.held = True

    def __dealloc__(self):
        if self.held:
            PyBuffer_Release(&self.view)


cdef inline const uint8_t *start_of(_Held held) noexcept:
    return <const uint8_t *>held.view.buf


cdef inline uint8_t *memory_of(_Held held) noexcept:
    return <uint8_t *>held.view.buf


def gather(int kind, int width, int64_t n, validity, values, offsets, chosen, int64_t count,
           *, int64_t start=0, bint places=False):
    """Rows of an array as (count, null_count, validity or None, offsets or None, values), in new Blocks.

    Parameters
    ----------
    kind, width : int
        KIND_* of the array, and the bytes of a value of KIND_FIXED.
    n : int
        Rows of the array, whose offset is 0.
    validity : buffer or None
        Bitmap of n bits; None where no row is null.
    values : buffer
        Values, or the data of byte strings.
    offsets : buffer or None
        n + 1 offsets of byte strings.
    chosen : buffer
        The rows: a bitmap in which bit `start` stands for the first row, or (`places`) int64 row numbers in
        any order, which may repeat.
    count : int
        Ones among the n bits of the bitmap, or how many places there are.

    Raises
    ------
    CoreError
        Buffers that are too short, a bitmap of another count, a place outside of the array, offsets that
        run backwards, byte strings beyond the offsets' width.
    """
    cdef ps_take_indices indices
    cdef ps_error error
    cdef ps_status status = PS_OK
    cdef _Held bits, data, at = None, rows, out, out_at, out_bits
    cdef const uint8_t *in_data
    cdef const uint8_t *in_at
    cdef size_t size, total = 0, step
    cdef int64_t ones = count
    cdef uint8_t *to
    cdef int each
    memset(&indices, 0, sizeof(indices))
    need(0 <= kind < <int>len(KIND_WIDTH), "a kind")
    each = KIND_WIDTH[kind]
    need(n >= 0 and 0 <= count < 1 << 59 and start >= 0 and width >= 0, "rows")
    rows = _Held(chosen, PyBUF_SIMPLE)
    if places and <uintptr_t>rows.view.buf % 8:
        rows = _Held(bytes(memoryview(chosen).cast("B")), PyBUF_SIMPLE)
    if places:
        need(rows.view.len // 8 >= count, "places")
        indices.places = <const int64_t *>start_of(rows)
    else:
        need(n <= rows.view.len * 8 - start, "mask")
        indices.mask, indices.start = start_of(rows), start
    indices.n, indices.count = n, count
    with nogil:
        status = ps_gather_check(&indices, &error)
    check(status, &error)

    new_bits = new_at = None
    if validity is not None:
        bits = _Held(validity, PyBUF_SIMPLE)
        need(bits.view.len >= n // 8 + (n % 8 != 0), "validity")
        new_bits = Block((count + 7) // 8)
        out_bits = _Held(new_bits, PyBUF_WRITABLE)
        in_data, to = start_of(bits), memory_of(out_bits)
        with nogil:
            ones = ps_gather_bits(&indices, in_data, to)
        if ones == count:
            new_bits = None

    data = _Held(values, PyBUF_SIMPLE)
    in_data, size = start_of(data), data.view.len
    if each < 0:
        step = -each
        at = _Held(offsets, PyBUF_SIMPLE)
        need(at.view.len // <Py_ssize_t>step > n, "offsets")
        new_at = Block((count + 1) * step)
        out_at = _Held(new_at, PyBUF_WRITABLE)
        in_at, to = start_of(at), memory_of(out_at)
        with nogil:
            status = ps_gather_offsets(&indices, in_at, step, size, to, &total, &error)
        check(status, &error)
        new = Block(total)
        out = _Held(new, PyBUF_WRITABLE)
        to = memory_of(out)
        with nogil:
            ps_gather_strings(&indices, in_at, step, in_data, size, to, total)
    elif kind == 0:
        need(<int64_t>size >= n // 8 + (n % 8 != 0), "values")
        new = Block((count + 7) // 8)
        out = _Held(new, PyBUF_WRITABLE)
        to = memory_of(out)
        with nogil:
            ps_gather_bits(&indices, in_data, to)
    else:
        step = each if each else width
        need(step == 0 or <int64_t>(size // step) >= n, "values")
        new = Block(count * step)
        out = _Held(new, PyBUF_WRITABLE)
        to = memory_of(out)
        with nogil:
            ps_gather_fixed(&indices, in_data, step, to)
    return count, count - ones, new_bits, new_at, new
