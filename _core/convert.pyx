# cython: language_level=3, boundscheck=False, wraparound=False, freethreading_compatible=True
"""Leaf types, and the conversion of the few values that an index holds."""
from pageseek._core.header cimport (
    PS_INVALID,
    ps_convert_check,
    ps_convert_plain,
    ps_error,
    ps_leaf_spec,
    ps_status,
)
from pageseek._core.held cimport Held
from pageseek._core.memory cimport Block, allocate
from pageseek._core.status cimport check
from pageseek.base.errors import CoreError

from libc.stdint cimport int64_t
from libc.string cimport memset

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX

cdef enum:
    PS_FIXED = 16

# bytes of a value by ps_kind: 0 = bits or given by the width, negative = byte strings with such offsets
KIND_WIDTH = (0, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 16, 32, -4, -8, 0)


cdef int fill_spec(ps_leaf_spec *spec, tuple form, size_t max_output) except -1:
    memset(spec, 0, sizeof(ps_leaf_spec))
    try:
        spec.physical, spec.type_length, spec.kind, spec.width, spec.unit, spec.utf8, spec.range = form
    except OverflowError as error:
        raise CoreError(<int>PS_INVALID, None, f"a form of {form}: {error}") from None
    spec.max_output = max_output
    return 0


def convert_bounds(tuple form, data not None, places not None, int64_t n):
    """Bounds of an index to Arrow values: `n` pairs of PLAIN values in `data`.

    `places` is int64[4, n]: offset and length of the lower bounds, then of the upper ones. Returns (lower
    values, lower offsets or None, upper values, upper offsets or None, known): known is one byte a pair,
    0 where the bytes of either cannot be a value. Values of KIND_FIXED have int32 offsets, too: those that
    are not known take no space.
    """
    cdef ps_leaf_spec spec
    cdef ps_error err
    cdef Held held = Held(data), at = Held(places)
    cdef const int64_t *place
    cdef Block known, other
    cdef int64_t i
    fill_spec(&spec, form, <size_t>-1)
    check(ps_convert_check(&spec, &err), &err)
    if n < 0 or at.size // 32 != <size_t>n or at.size % 32:
        raise ValueError("n bounds need 4 * n int64 values")
    known, other = allocate(<size_t>n), allocate(<size_t>n)
    place = at.numbers(at.size // 8)
    low, low_offsets = convert(&spec, held, place, place + n, n, known)
    high, high_offsets = convert(&spec, held, place + 2 * n, place + 3 * n, n, other)
    for i in range(n):
        known.data[i] &= other.data[i]
    return low, low_offsets, high, high_offsets, known


cdef tuple convert(ps_leaf_spec *spec, Held held, const int64_t *offset, const int64_t *size, int64_t n,
                   Block known):
    cdef ps_error err
    cdef ps_status status
    cdef size_t total = 0
    cdef void *offsets_data = NULL
    cdef int width = KIND_WIDTH[spec.kind]
    cdef Block values, offsets = None
    if width < 0 or spec.kind == PS_FIXED:
        offsets = allocate(<size_t>(n + 1) * (8 if width == -8 else 4))
        offsets_data = offsets.data
        total = bytes_of(size, n, spec.width if spec.kind == PS_FIXED else -1, held.size)
    elif width == 0:
        total = <size_t>(n + 7) // 8
    else:
        total = <size_t>n * <size_t>width
    values = allocate(total)
    with nogil:
        status = ps_convert_plain(spec, held.data, held.size, offset, size, n, values.data,
                                  offsets_data, known.data, &err)
    check(status, &err)
    return values, offsets


cdef size_t bytes_of(const int64_t *sizes, int64_t n, int64_t width, size_t length) except? <size_t>-1:
    """The sum of the positive sizes, or of those that are `width` where that is not negative. None is above `length`."""
    cdef size_t total = 0
    cdef int64_t i
    for i in range(n):
        if sizes[i] > 0 and (width < 0 or sizes[i] == width):
            if <size_t>sizes[i] > length or total > <size_t>PY_SSIZE_T_MAX - length:
                raise CoreError(<int>PS_INVALID, None, "bounds lie outside their buffer")
            total += <size_t>sizes[i]
    return total
