"""memory.pyx for other modules: blocks of memory, and the shared state."""
from pageseek._core.header cimport ps_shared

from libc.stdint cimport uint8_t


cdef class Block:
    cdef uint8_t *data
    cdef size_t size, capacity


cdef Block wrap(uint8_t *data, size_t size, size_t capacity)
cdef Block allocate(size_t size)
cdef ps_shared shared()
