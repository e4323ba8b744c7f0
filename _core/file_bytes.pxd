"""file_bytes.pyx for other modules: bytes of a file that may not have been read yet."""
from pageseek._core.leaf cimport ps_unread
from pageseek._core.memory cimport Block

cimport cython


@cython.no_gc
cdef class FileBytes:
    cdef Block block
    cdef object store, keeps_open
    cdef int fd
    cdef ps_unread unread

    cdef void set(self, store, int fd, keeps_open)
    cdef FileBytes part(self, size_t start, size_t stop)
    cdef int load(self) except -1
