# cython: language_level=3, boundscheck=False, wraparound=False, freethreading_compatible=True
"""Versions and last bytes of many local files, by one call.

It belongs to the storage layer: kernels do no IO.
"""
from pageseek._core.header cimport PS_INVALID
from pageseek._core.held cimport Held
from pageseek.base.errors import CoreError

cimport cython
from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AsString, PyBytes_FromStringAndSize
from cpython.exc cimport PyErr_CheckSignals
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport strncmp, strrchr

from os import fsencode

cdef extern from "files.h" nogil:
    enum: PS_FILES
    ctypedef struct ps_file_seen:
        int64_t node, size, time_ns, read
    int ps_folder_open(const char *)
    void ps_folder_close(int)
    void ps_file_stat(int, const char *, ps_file_seen *)
    void ps_file_read_end(int, const char *, uint8_t *, size_t, int64_t, ps_file_seen *)
    int64_t ps_files_clock()

AVAILABLE = bool(PS_FILES)
FIELDS = "node", "size", "time_ns", "read"
if sizeof(ps_file_seen) != 8 * len(FIELDS):
    raise ImportError("pageseek._core.files disagrees with files.h")

# Nanoseconds between two checks for signals: one file of a slow mount may take milliseconds.
cdef int64_t PAUSE = 20 * 1000 * 1000
# The folder of the files is opened where they have one in common, and are at least this many.
cdef Py_ssize_t MANY = 16


@cython.no_gc  # as LeafBuffers of leaf.pyx
cdef class Names:
    """The names of local files as the system takes them. ValueError: a name that no file can have."""

    cdef list held
    cdef const char **at
    cdef readonly Py_ssize_t n
    cdef bytes folder  # up to the last slash, where all names share it; else empty

    def __cinit__(self, paths):
        self.held = [fsencode(path) for path in paths]
        self.n = len(self.held)
        self.at = <const char **>PyMem_Malloc(<size_t>(self.n or 1) * sizeof(char *))
        if self.at == NULL:
            raise MemoryError
        cdef Py_ssize_t i
        for i in range(self.n):
            if b"\0" in <bytes>self.held[i]:
                raise ValueError(f"{self.held[i]!r}: a name with a null byte")
            self.at[i] = PyBytes_AsString(self.held[i])
        self.folder = self._folder()

    cdef bytes _folder(self):
        cdef Py_ssize_t i
        cdef const char *last = strrchr(self.at[0], c'/') if self.n >= MANY else NULL
        if last == NULL:
            return b""
        cdef size_t length = <size_t>(last - self.at[0]) + 1
        for i in range(self.n):
            last = strrchr(self.at[i], c'/')
            if last == NULL or <size_t>(last - self.at[i]) + 1 != length or last[1] == 0 \
                    or strncmp(self.at[i], self.at[0], length) != 0:
                return b""
        return self.held[0][:length]

    cdef int open_folder(self, Py_ssize_t files):
        """A descriptor of the common folder, or -1. It is good for one call, as the name may become another folder's."""
        if not self.folder or files < MANY:
            return -1
        cdef const char *name = PyBytes_AsString(self.folder)
        cdef int made
        with nogil:
            made = ps_folder_open(name)
        return made

    def __dealloc__(self):
        PyMem_Free(<void *>self.at)


cdef Py_ssize_t _checked(Names names, Py_ssize_t start, Py_ssize_t stop) except -1:
    """How many files lie from `start` to `stop`."""
    if not 0 <= start <= stop <= names.n:
        raise CoreError(<int>PS_INVALID, None, f"files {start} to {stop} of {names.n}")
    return stop - start


def seen(Names names not None, Py_ssize_t start, Py_ssize_t stop):
    """The versions of some of the files.

    Returns
    -------
    bytes
        int64[stop - start, FIELDS] with 0 bytes read; the size is negative where no regular file has the name.
    """
    cdef Py_ssize_t i = 0, n = _checked(names, start, stop)
    made = PyBytes_FromStringAndSize(NULL, n * <Py_ssize_t>sizeof(ps_file_seen))
    cdef ps_file_seen *out = <ps_file_seen *>PyBytes_AsString(made)
    cdef int64_t until
    cdef int folder = names.open_folder(n)
    cdef Py_ssize_t skip = 0 if folder < 0 else len(names.folder)
    try:
        while i < n:
            with nogil:
                until = ps_files_clock() + PAUSE
                while i < n:
                    ps_file_stat(folder, names.at[start + i] + skip, &out[i])
                    i += 1
                    if ps_files_clock() > until:
                        break
            PyErr_CheckSignals()
    finally:
        ps_folder_close(folder)
    return made


def read_ends(Names names not None, Py_ssize_t start, Py_ssize_t stop, places, into, behind=None):
    """Read the last bytes of some of the files.

    Parameters
    ----------
    places : buffer of int64[stop - start, 2]
        Where in `into` the bytes of each file go, and how many fit there.
    into : writable buffer
    behind : buffer of int64[stop - start], optional
        How many bytes of each file lie behind those that are read; 0 without it.

    Returns
    -------
    bytes
        int64[stop - start, FIELDS]; 0 bytes are read of anything but a readable regular file.
    """
    cdef Held given = Held(places)
    cdef Py_ssize_t i = 0, n = _checked(names, start, stop)
    cdef const int64_t *at = given.numbers(2 * <size_t>n)
    cdef Held given_behind = Held(behind)
    cdef const int64_t *rest = given_behind.int64s(<size_t>n)
    cdef Py_buffer view
    cdef int64_t until
    cdef int folder = -1
    cdef Py_ssize_t skip
    made = PyBytes_FromStringAndSize(NULL, n * <Py_ssize_t>sizeof(ps_file_seen))
    cdef ps_file_seen *out = <ps_file_seen *>PyBytes_AsString(made)
    PyObject_GetBuffer(into, &view, PyBUF_WRITABLE)
    try:
        for i in range(n):
            if at[2 * i] < 0 or at[2 * i + 1] < 0 or at[2 * i] > view.len \
                    or at[2 * i + 1] > view.len - at[2 * i]:
                raise CoreError(<int>PS_INVALID, None, f"{at[2 * i + 1]} bytes at {at[2 * i]} of {view.len}")
            if rest != NULL and rest[i] < 0:
                raise CoreError(<int>PS_INVALID, None, f"{rest[i]} bytes behind")
        folder = names.open_folder(n)
        skip = 0 if folder < 0 else len(names.folder)
        i = 0
        while i < n:
            with nogil:
                until = ps_files_clock() + PAUSE
                while i < n:
                    ps_file_read_end(folder, names.at[start + i] + skip, <uint8_t *>view.buf + at[2 * i],
                                     <size_t>at[2 * i + 1], 0 if rest == NULL else rest[i], &out[i])
                    i += 1
                    if ps_files_clock() > until:
                        break
            PyErr_CheckSignals()
    finally:
        ps_folder_close(folder)
        PyBuffer_Release(&view)
    return made
