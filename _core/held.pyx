# cython: language_level=3, boundscheck=False, wraparound=False, freethreading_compatible=True
"""Buffers of the caller, held while the core reads them."""
from pageseek._core.header cimport PS_INVALID
from pageseek.base.errors import CoreError

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uintptr_t


@cython.no_gc  # as LeafBuffers of leaf.pyx
cdef class Held:
    """The bytes of a buffer, or no bytes for None. Other modules of the core make it for the time of a call."""

    def __cinit__(self, data):
        if data is None:
            return
        PyObject_GetBuffer(data, &self.view, PyBUF_SIMPLE)
        self.data, self.size, self.there = <const uint8_t *>self.view.buf, <size_t>self.view.len, True

    def __dealloc__(self):
        if self.there:
            PyBuffer_Release(&self.view)

    cdef const int64_t *int64s(self, size_t n) except? NULL:
        """The n integers of the buffer; NULL for None."""
        return self.numbers(n) if self.there else NULL

    cdef const int64_t *numbers(self, size_t n) except? NULL:
        """The n integers of the buffer, in aligned memory. CoreError: it has fewer."""
        if self.size // 8 < n:
            raise CoreError(<int>PS_INVALID, None, f"{self.size} bytes for {n} integers")
        if <uintptr_t>self.data % 8:
            copied = PyBytes_FromStringAndSize(<const char *>self.data, <Py_ssize_t>self.size)
            PyBuffer_Release(&self.view)
            self.there = False
            PyObject_GetBuffer(copied, &self.view, PyBUF_SIMPLE)
            self.data, self.there = <const uint8_t *>self.view.buf, True
        return <const int64_t *>self.data
