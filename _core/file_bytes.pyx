# cython: language_level=3, boundscheck=False, wraparound=False, freethreading_compatible=True
"""Bytes of a local file that the thread reads which needs them first.

They belong to the storage layer: kernels do no IO. A thread of the core that decodes a page reads it before, so that the
pages of a file are read by all threads that decode.
"""
from pageseek._core.leaf cimport ps_source
from pageseek._core.memory cimport allocate

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo, PyBuffer_Release, PyBUF_SIMPLE, PyObject_GetBuffer
from libc.stdint cimport int64_t
from libc.string cimport memcpy

cdef extern from "files.h" nogil:
    int PS_FILES

cdef extern from * nogil:
    """
    static inline ps_source open_file(int *fd) {
        return (ps_source){ps_file_read, fd};
    }
    """
    ps_source open_file(int *fd)

AVAILABLE = bool(PS_FILES)


@cython.no_gc  # as LeafBuffers of leaf.pyx; a store does not refer to its bytes
cdef class FileBytes:
    """The bytes at (offset, length) of a store that is an open file, in place of a memoryview of them.

    They are read when their buffer is asked for, unless `page_tasks` has read them before. Slices share their memory.

    Parameters
    ----------
    store : LocalStore
        Its `read` raises the error where the bytes cannot be read.
    fd : int
        Its descriptor.
    keeps_open : object
        Closes the descriptor when nobody has it any more.
    offset, length : int
        The place in the file.
    """

    def __init__(self, store, int fd, keeps_open, int64_t offset, size_t length):
        if self.block is not None:
            raise ValueError("its place is given once")
        self.block = allocate(length)
        self.set(store, fd, keeps_open)
        self.unread.offset, self.unread.length = offset, length
        self.unread.out = self.block.data

    cdef void set(self, store, int fd, keeps_open):
        self.store, self.fd, self.keeps_open = store, fd, keeps_open
        self.unread.source = open_file(&self.fd)

    @property
    def nbytes(self):
        return self.unread.length

    def __len__(self):
        return self.unread.length

    def __getitem__(self, some):
        if not isinstance(some, slice):
            raise TypeError("slices are given, not single bytes")
        start, stop, step = some.indices(self.unread.length)
        if step != 1:
            raise ValueError("slices have a step of 1")
        return self.part(start, max(start, stop))

    cdef FileBytes part(self, size_t start, size_t stop):
        cdef FileBytes made = FileBytes.__new__(FileBytes)
        made.block = self.block
        made.set(self.store, self.fd, self.keeps_open)
        made.unread.offset, made.unread.length = self.unread.offset + <int64_t>start, stop - start
        made.unread.out, made.unread.there = self.unread.out + start, self.unread.there
        return made

    cdef int load(self) except -1:
        cdef bint there
        cdef Py_buffer view
        if self.unread.there:
            return 0
        if self.block is None:
            raise ValueError("it has no place in a file")
        with nogil:
            there = self.unread.source.read(
                self.unread.source.of, self.unread.offset, self.unread.out, self.unread.length
            )
        if not there:
            (data,) = self.store.read([(self.unread.offset, self.unread.length)])  # which raises the error
            PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
            if <size_t>view.len == self.unread.length:
                memcpy(self.unread.out, view.buf, self.unread.length)
                there = True
            PyBuffer_Release(&view)
            if not there:
                raise OSError(f"{self.store.name}: other bytes than were asked for at {self.unread.offset}")
        self.unread.there = True
        return 0

    def __getbuffer__(self, Py_buffer *view, int flags):
        self.load()
        PyBuffer_FillInfo(view, self, <void *>self.unread.out, <Py_ssize_t>self.unread.length, 1, flags)

    def __releasebuffer__(self, Py_buffer *view):
        pass
