# cython: language_level=3, freethreading_compatible=True
"""A status of the core as an exception."""
from pageseek._core.header cimport PS_MISMATCH, PS_OK, ps_error, ps_status
from pageseek.base.errors import CoreError

from libc.stdint cimport UINT64_MAX


class HeaderError(CoreError):
    """There is no page header where one should be."""


class PageMismatch(CoreError):
    """The page is not the one that the offset index tells of."""


cdef int check(ps_status status, ps_error *err) except -1:
    if status == PS_OK:
        return 0
    kind = PageMismatch if status == PS_MISMATCH else CoreError
    raise kind(<int>status, None if err.offset == UINT64_MAX else err.offset, err.message.decode("utf-8", "replace"))
