"""held.pyx for other modules: a buffer that is held."""
from libc.stdint cimport int64_t, uint8_t


cdef class Held:
    cdef Py_buffer view
    cdef const uint8_t *data
    cdef size_t size
    cdef bint there
    cdef const int64_t *int64s(self, size_t n) except? NULL
    cdef const int64_t *numbers(self, size_t n) except? NULL
