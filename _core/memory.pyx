# cython: language_level=3, boundscheck=False, wraparound=False, freethreading_compatible=True
"""Memory that the core allocates and Arrow arrays keep; it owns the state that modules of the core share."""
from pageseek._core.header cimport PS_NOMEM, ps_buffer_free, ps_buffer_new, ps_shared, ps_shared_own
from pageseek.base.errors import CoreError

from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdint cimport uint8_t


cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX


cdef extern from "pageseek.h" nogil:
    void ps_pool_rest(size_t bytes)
    void ps_pool_reclaimable(size_t bytes)
    void ps_pool_kept(size_t *held, size_t *reclaimable)
    void ps_pool_open(double seconds, size_t limit)
    size_t ps_pool_trim(double seconds)
    size_t ps_pool_lend(double seconds)
    void ps_pool_forked()


cdef class Block:
    """64-byte-aligned memory of the core, exported through the buffer protocol and freed with this object.

    `Block(size)`: `size` bytes, not initialised, for another module of the core to fill.
    """

    def __cinit__(self, size=None):
        cdef size_t wanted
        if size is not None:
            try:
                wanted = size
            except OverflowError:
                wanted = <size_t>-1
            if wanted > <size_t>PY_SSIZE_T_MAX - 63:
                raise CoreError(<int>PS_NOMEM, None, f"no memory for {size} bytes")
            self.size = wanted
            self.capacity = ((self.size + 63) & ~(<size_t>63)) or 64
            self.data = <uint8_t *>ps_buffer_new(self.capacity)
            if self.data == NULL:
                raise CoreError(<int>PS_NOMEM, None, f"no memory for {size} bytes")

    def __dealloc__(self):
        if self.data != NULL:
            ps_buffer_free(self.data, self.capacity)

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, <void *>self.data, <Py_ssize_t>self.size, 0, flags)

    def __releasebuffer__(self, Py_buffer *view):
        pass

    def __len__(self):
        return self.size


cdef Block wrap(uint8_t *data, size_t size, size_t capacity):
    if data == NULL:
        return None
    cdef Block block = Block.__new__(Block)
    block.data, block.size, block.capacity = data, size, capacity
    return block


cdef Block allocate(size_t size):
    return Block(size)


cdef ps_shared shared():
    return ps_shared_own()


def keep(double seconds, size_t limit):
    """Keep at most `limit` bytes of what is freed in the next seconds, for the next caller; 0 seconds end this."""
    ps_pool_open(seconds, limit)


def rest(size_t limit):
    """Keep at most `limit` bytes of what is freed at any time."""
    ps_pool_rest(limit)


def reclaimable(size_t limit):
    """Keep at most `limit` bytes besides, which the system takes when it is short of memory."""
    ps_pool_reclaimable(limit)


def kept():
    """Bytes that are kept, and bytes of those that are reclaimable."""
    cdef size_t held, lent
    ps_pool_kept(&held, &lent)
    return held + lent, lent


def trim(double seconds):
    """Free what has been kept for that many seconds. Returns the bytes that are still kept."""
    cdef size_t left
    with nogil:
        left = ps_pool_trim(seconds)
    return left


def lend(double seconds):
    """Make what has been kept for that many seconds reclaimable. Returns the bytes that are kept and are not."""
    cdef size_t left
    with nogil:
        left = ps_pool_lend(seconds)
    return left


def forked():
    """Call this in a child process, where no other thread is inside the pool."""
    ps_pool_forked()
