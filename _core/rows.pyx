# cython: language_level=3, freethreading_compatible=True, auto_pickle=False, autotestdict=False
"""Sets of row numbers; the kernels of `search` and `gather` are re-exported here."""

from array import array
from operator import index

import numpy as np
from pageseek._core import gather as gathering
from pageseek._core import search
from pageseek.base.errors import CoreError

from pageseek._core.header cimport PS_INVALID, ps_error, ps_range, ps_selection, ps_status
from pageseek._core.status cimport check

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AsString, PyBytes_FromStringAndSize
from libc.stdint cimport INT64_MAX, int64_t, uint8_t

cdef extern from "pageseek.h" nogil:
    ctypedef struct ps_run_cursor:
        size_t index
        int64_t row
    ctypedef enum ps_set_op:
        PS_SET_AND, PS_SET_OR, PS_SET_SUB, PS_SET_XOR
    ps_status ps_selection_check(const ps_selection *, ps_error *)
    int64_t ps_selection_count(const ps_selection *)
    bint ps_selection_next(const ps_selection *, ps_run_cursor *, int64_t, ps_range *)
    int64_t ps_selection_nth(const ps_selection *, int64_t)
    size_t ps_selection_runs(const ps_selection *)
    void ps_selection_to_ranges(const ps_selection *, ps_range *)
    void ps_selection_to_bitmap(const ps_selection *, int64_t, int64_t, uint8_t *)
    size_t ps_selection_refine(const ps_selection *, const uint8_t *, ps_range *)
    void ps_selection_refine_bits(const ps_selection *, const uint8_t *, int64_t, int64_t, uint8_t *)
    size_t ps_ranges_and(const ps_range *, size_t, const ps_range *, size_t, ps_range *)
    size_t ps_ranges_or(const ps_range *, size_t, const ps_range *, size_t, ps_range *)
    size_t ps_ranges_not(const ps_range *, size_t, int64_t, int64_t, ps_range *)
    ps_status ps_ranges_normalise(ps_range *, size_t, size_t *, ps_error *)
    ps_status ps_ranges_from_rows(const int64_t *, size_t, ps_range *, size_t *, ps_error *)
    void ps_bitmap_combine(uint8_t *, const uint8_t *, size_t, ps_set_op)
    size_t ps_zones_to_ranges(const uint8_t *, uint8_t, const int64_t *, size_t, ps_range *)
    void ps_pages_touched(const ps_selection *, const int64_t *, size_t, uint8_t *)


gather = gathering.gather
globals().update({name: item for name, item in vars(search).items() if name[0] != "_"})


cdef int need(bint holds, str message) except -1:
    if not holds:
        raise CoreError(<int> PS_INVALID, None, message)
    return 0


cdef int64_t bitmap_bytes(int64_t rows) noexcept:
    """Bytes of a bitmap of `rows` bits, for any number of rows."""
    return rows // 8 + (rows % 8 != 0)


cdef bytes buffer_bytes(given):
    """The bytes of a buffer. TypeError: a number, of which `bytes` would make zeros."""
    return given if type(given) is bytes else bytes(memoryview(given))


cdef bytes blank(int64_t size):
    return PyBytes_FromStringAndSize(NULL, size)


cdef ps_range *pairs_of(bytes data) noexcept:
    return <ps_range *> PyBytes_AsString(data)


# Bits of a bitmap that take the memory of a range. Fewer runs than this are ranges in any case.
cdef enum:
    BITS_PER_RANGE = 128
    FEW = 8


cdef class RowRanges  # its methods and these functions call each other


cdef RowRanges as_pairs(bytes space, size_t n):
    """The first n pairs of space, which are sorted, disjoint and do not touch."""
    cdef RowRanges result = RowRanges.__new__(RowRanges)
    cdef size_t size = n * sizeof(ps_range)
    result.data = space if <size_t> len(space) == size else space[:size]
    cdef const ps_range *ranges = pairs_of(result.data)
    if n:
        result.base, result.length = ranges[0].start, ranges[n - 1].stop - ranges[0].start
    cdef ps_selection c = result.view()
    with nogil:
        result.count = ps_selection_count(&c)
    return result


cdef RowRanges as_bits(bytes data, int64_t base, int64_t length):
    """A bitmap whose tail bits are zero."""
    cdef RowRanges result = RowRanges.__new__(RowRanges)
    result.data, result.dense, result.base, result.length = data, True, base, length
    cdef ps_selection c = result.view()
    with nogil:
        result.count = ps_selection_count(&c)
    return result


cdef RowRanges of_pairs(bytes space, size_t n):
    """The result of as_pairs, in the form that takes less memory."""
    cdef RowRanges result = as_pairs(space, n)
    if n > FEW and <int64_t> n > result.length // BITS_PER_RANGE:
        result = as_bits(window(result.view(), result.base, result.base + result.length),
                         result.base, result.length)
    return result


cdef RowRanges of_bits(bytes data, int64_t base, int64_t length):
    """The result of as_bits, in the form that takes less memory."""
    cdef RowRanges result = as_bits(data, base, length)
    cdef ps_selection c = result.view()
    cdef size_t runs
    with nogil:
        runs = ps_selection_runs(&c)
    if runs <= FEW or <int64_t> runs <= length // BITS_PER_RANGE:
        result = as_pairs(result.ranges, runs)
    return result


cdef RowRanges normalised(bytes space, size_t n):
    """Any n pairs in space, which is overwritten."""
    cdef ps_range *ranges = pairs_of(space)
    cdef size_t kept = 0
    cdef ps_error error
    cdef ps_status status
    with nogil:
        status = ps_ranges_normalise(ranges, n, &kept, &error)
    check(status, &error)
    return of_pairs(space, kept)


cdef bytes window(ps_selection c, int64_t start, int64_t stop):
    """Bitmap over [start, stop), which is not empty."""
    cdef bytes bits = blank((stop - start - 1) // 8 + 1)
    cdef uint8_t *out = <uint8_t *> PyBytes_AsString(bits)
    with nogil:
        ps_selection_to_bitmap(&c, start, stop - start, out)
    return bits


cdef RowRanges combine(RowRanges a, RowRanges b, ps_set_op op):
    cdef int64_t start = a.base, stop = a.base + a.length, size
    if op == PS_SET_AND:
        start, stop = max(start, b.base), min(stop, b.base + b.length)
    elif op != PS_SET_SUB and b.length:
        start = min(start, b.base) if a.length else b.base
        stop = max(stop, b.base + b.length)
    if start >= stop:
        return of_pairs(b"", 0)
    size = (stop - start - 1) // 8 + 1
    cdef bytes x, y, space
    cdef uint8_t *into
    cdef const uint8_t *other
    cdef const ps_range *ra
    cdef const ps_range *rb
    cdef ps_range *out
    cdef size_t na, nb
    # one bitmap makes another, unless rows far apart would make it much larger than both
    if (a.dense or b.dense) and size // 4 <= len(a.data) + len(b.data):
        x, y = window(a.view(), start, stop), window(b.view(), start, stop)
        into, other = <uint8_t *> PyBytes_AsString(x), <const uint8_t *> PyBytes_AsString(y)
        with nogil:
            ps_bitmap_combine(into, other, size, op)
        return of_bits(x, start, stop - start)
    if op == PS_SET_XOR:
        return combine(combine(a, b, PS_SET_OR), combine(a, b, PS_SET_AND), PS_SET_SUB)
    if op == PS_SET_SUB:
        return combine(a, b.complement(start, stop), PS_SET_AND)
    x, y = a.ranges, b.ranges
    na, nb = len(x) // sizeof(ps_range), len(y) // sizeof(ps_range)
    space = blank((na + nb) * sizeof(ps_range))
    ra, rb, out = pairs_of(x), pairs_of(y), pairs_of(space)
    with nogil:
        if op == PS_SET_AND:
            na = ps_ranges_and(ra, na, rb, nb, out)
        else:
            na = ps_ranges_or(ra, na, rb, nb, out)
    return of_pairs(space, na)


cdef flat(pairs):
    try:
        return array("q", [row for start, stop in pairs for row in (start, stop)])
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError("ranges of rows are pairs of integers of 64 bits, such as [(0, 10), (20, 30)]") from error


@cython.final
cdef class RowRanges:
    """Immutable set of row numbers, kept as ranges or, where that takes less memory, as a bitmap.

    Parameters
    ----------
    pairs : iterable of (int, int), or int64 buffer of shape (n, 2)
        Half-open ranges of rows, in any order; they may touch, overlap or be empty.

    Raises
    ------
    CoreError
        A negative row, or a range that stops before it starts.
    TypeError
        Something else than pairs of integers of 64 bits.
    """

    cdef bytes data                # int64 pairs, or the bitmap of [base, base + length)
    cdef bint dense
    cdef int64_t base, length, count  # ranges: length is the span from first to last row

    def __cinit__(self, pairs=None):
        if pairs is None:
            self.data = b""
            return
        try:
            view = memoryview(pairs)
        except TypeError:
            space = flat(pairs).tobytes()
        else:
            rows = np.asarray(view)
            need(rows.dtype.kind in "iu" and rows.ndim == 2 and rows.shape[1] == 2,
                 f"pairs of shape {rows.shape} and type {rows.dtype}")
            space = rows.astype(np.int64).tobytes()
        cdef RowRanges other = normalised(space, len(space) // sizeof(ps_range))
        self.data, self.dense, self.base, self.length, self.count = (
            other.data, other.dense, other.base, other.length, other.count)

    cdef ps_selection view(self) noexcept:
        cdef ps_selection c
        cdef char *data = PyBytes_AsString(self.data)
        c.ranges, c.n_ranges = <const ps_range *> data, len(self.data) // sizeof(ps_range)
        c.bitmap = <const uint8_t *> data if self.dense else NULL
        c.base, c.length = self.base, self.length
        return c

    @staticmethod
    def all(stop):
        """Rows 0 to stop."""
        cdef bytes space = blank(sizeof(ps_range))
        cdef ps_range *only = pairs_of(space)
        only.start, only.stop = 0, stop
        return normalised(space, 1)

    @staticmethod
    def empty():
        """No row."""
        return RowRanges()

    @staticmethod
    def from_ranges(data):
        """From int64 pairs as bytes: the inverse of `ranges`; any pairs will do."""
        return RowRanges(np.frombuffer(data, np.int64).reshape(-1, 2))

    @staticmethod
    def from_bitmap(data, int64_t base, int64_t length):
        """Row base + i for each set bit i < length, least significant bit first; data is copied."""
        cdef ps_selection c
        cdef ps_error error
        cdef Py_buffer view
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            c.bitmap, c.base, c.length = <const uint8_t *> view.buf, base, length
            check(ps_selection_check(&c, &error), &error)
            need(view.len >= bitmap_bytes(length), f"{view.len} bytes for a bitmap of {length} bits")
            return of_bits(window(c, base, base + length), base, length) if length else RowRanges()
        finally:
            PyBuffer_Release(&view)

    @staticmethod
    def from_rows(rows):
        """From row numbers in any order: integers, or an integer array of shape (n,)."""
        numbers = np.asarray(rows)
        need(numbers.ndim == 1 and (numbers.dtype.kind in "iu" or not numbers.size),
             f"rows of shape {numbers.shape} and type {numbers.dtype}")
        numbers = np.ascontiguousarray(numbers, np.int64)
        cdef size_t n = numbers.size, kept = 0
        cdef bytes space = blank(n * sizeof(ps_range))
        cdef ps_range *out = pairs_of(space)
        cdef ps_error error
        cdef ps_status status
        cdef Py_buffer view
        PyObject_GetBuffer(numbers, &view, PyBUF_SIMPLE)
        with nogil:
            status = ps_ranges_from_rows(<const int64_t *> view.buf, n, out, &kept, &error)
        PyBuffer_Release(&view)
        check(status, &error)
        return of_pairs(space, kept)

    @property
    def num_rows(self):
        """int: how many rows are in the set."""
        return self.count

    @property
    def num_ranges(self):
        """int: how many maximal runs of rows."""
        cdef ps_selection c = self.view()
        return ps_selection_runs(&c)

    @property
    def bounds(self):
        """tuple of (int, int): first row and last row + 1; (0, 0) of the empty set."""
        cdef ps_selection c = self.view()
        if not self.count:
            return 0, 0
        return ps_selection_nth(&c, 0), ps_selection_nth(&c, self.count - 1) + 1

    @property
    def ranges(self):
        """bytes: maximal runs as int64 pairs (start, stop), ascending."""
        if not self.dense:
            return self.data
        cdef ps_selection c = self.view()
        cdef bytes space = blank(ps_selection_runs(&c) * sizeof(ps_range))
        cdef ps_range *out = pairs_of(space)
        with nogil:
            ps_selection_to_ranges(&c, out)
        return space

    @property
    def bitmap(self):
        """tuple of (bytes, int, int) or None: bits, first row, length, if that is the form."""
        return (self.data, self.base, self.length) if self.dense else None

    @property
    def buffers(self):
        """bytes, or tuple of (bytes, int, int): `ranges` or `bitmap`, by its form, for LeafDecoder.begin.
        """
        return (self.data, self.base, self.length) if self.dense else self.data

    def to_numpy(self):
        """int64 array of shape (num_ranges, 2), read-only."""
        return np.frombuffer(self.ranges, np.int64).reshape(-1, 2)

    def rows(self):
        """int64 array of shape (num_rows,): every row number, ascending."""
        if self.dense:
            bits = np.unpackbits(np.frombuffer(self.data, np.uint8), bitorder="little")
            return np.flatnonzero(bits) + self.base
        pairs = self.to_numpy()
        sizes = pairs[:, 1] - pairs[:, 0]
        return np.repeat(pairs[:, 0] - np.cumsum(sizes) + sizes, sizes) + np.arange(self.count)

    def __and__(RowRanges self, RowRanges other not None):
        return combine(self, other, PS_SET_AND)

    def __or__(RowRanges self, RowRanges other not None):
        return combine(self, other, PS_SET_OR)

    def __sub__(RowRanges self, RowRanges other not None):
        return combine(self, other, PS_SET_SUB)

    def __xor__(RowRanges self, RowRanges other not None):
        return combine(self, other, PS_SET_XOR)

    def complement(self, int64_t start, int64_t stop):
        """Rows of [start, stop) that are not in the set."""
        need(0 <= start <= stop, f"rows {start} to {stop}")
        if self.dense and stop - start <= 2 * self.length:
            return combine(RowRanges(((start, stop),)), self, PS_SET_SUB)
        cdef bytes x = self.ranges
        cdef size_t n = len(x) // sizeof(ps_range)
        cdef bytes space = blank((n + 1) * sizeof(ps_range))
        cdef const ps_range *ranges = pairs_of(x)
        cdef ps_range *out = pairs_of(space)
        with nogil:
            n = ps_ranges_not(ranges, n, start, stop, out)
        return of_pairs(space, n)

    def slice(self, int64_t start, int64_t stop):
        """Rows of the set in [start, stop)."""
        if self.dense:
            start, stop = max(start, self.base), min(stop, self.base + self.length)
            if start >= stop:
                return RowRanges()
            return of_bits(window(self.view(), start, stop), start, stop - start)
        return combine(self, RowRanges(((max(start, 0), max(start, stop, 0)),)), PS_SET_AND)

    def shift(self, int64_t delta):
        """The set with delta added to every row."""
        first, stop = self.bounds
        need(not self.count or 0 <= first + delta and stop + delta <= INT64_MAX,
             f"rows {first} to {stop} moved by {delta}")
        if not self.count:
            return self
        if self.dense:
            return of_bits(window(self.view(), first, stop), first + delta, stop - first)
        return of_pairs((self.to_numpy() + delta).tobytes(), len(self.data) // sizeof(ps_range))

    def refine(self, mask):
        """The k-th row of the set for each set bit k of mask, which has num_rows bits or more."""
        cdef ps_selection c = self.view()
        cdef ps_selection chosen
        cdef Py_buffer view
        cdef bytes space
        cdef char *out
        cdef const uint8_t *bits
        cdef size_t n
        cdef bint dense
        PyObject_GetBuffer(mask, &view, PyBUF_SIMPLE)
        try:
            need(view.len >= bitmap_bytes(self.count),
                 f"mask of {view.len} bytes for {self.count} rows")
            bits = <const uint8_t *> view.buf
            chosen.ranges, chosen.n_ranges = NULL, 0  # an empty buffer has no address, so that `bitmap` is NULL
            chosen.bitmap, chosen.base, chosen.length = bits, 0, self.count
            with nogil:
                n = ps_selection_runs(&chosen)
                dense = self.dense or (n > FEW and <int64_t> n > self.length // BITS_PER_RANGE)
                if not dense and c.n_ranges > 1:  # of one range, the runs of the mask are the result
                    n = ps_selection_refine(&c, bits, NULL)
            space = blank(bitmap_bytes(self.length) if dense else <int64_t> (n * sizeof(ps_range)))
            out = PyBytes_AsString(space)
            with nogil:
                if dense:
                    ps_selection_refine_bits(&c, bits, self.base, self.length, <uint8_t *> out)
                else:
                    ps_selection_refine(&c, bits, <ps_range *> out)
        finally:
            PyBuffer_Release(&view)
        return of_bits(space, self.base, self.length) if dense else of_pairs(space, n)

    cdef int64_t place(self, int64_t k) noexcept:
        """Row before which k rows of the set lie."""
        cdef ps_selection c = self.view()
        return 0 if k <= 0 else INT64_MAX if k >= self.count else ps_selection_nth(&c, k)

    def head(self, int64_t n):
        """The first n rows of the set, or all."""
        return self.slice(0, self.place(n))

    def skip(self, int64_t n):
        """All but the first n rows of the set."""
        return self.slice(self.place(n), INT64_MAX)

    def split(self, n):
        """List of n sets, in order, whose sizes differ by at most one. n is 1 to 1,048,576."""
        need(0 < n <= 1 << 20, f"a split into {n}")
        if not self.count:
            return [self] * n
        pairs = self.to_numpy()
        ends = np.cumsum(pairs[:, 1] - pairs[:, 0])
        counts = np.array([self.count * i // n for i in range(1, n)], np.int64)
        at = np.searchsorted(ends, counts, "right")
        cuts = [0, *(pairs[at, 1] - ends[at] + counts).tolist(), INT64_MAX]
        return [self.slice(start, stop) for start, stop in zip(cuts, cuts[1:])]

    def __iter__(self):  # of ranges: hence no __len__, from which list() would take its size
        flat = memoryview(self.ranges).cast("q")
        return zip(flat[::2], flat[1::2])

    def meets(self, int64_t start, int64_t stop):
        """Whether any row of [start, stop) is in the set."""
        cdef ps_run_cursor cursor
        cdef ps_range run
        cdef ps_selection c = self.view()
        cursor.index, cursor.row = 0, start
        return ps_selection_next(&c, &cursor, stop, &run)

    def __contains__(self, row):
        row = index(row)
        cdef ps_run_cursor cursor
        cdef ps_range run
        cdef ps_selection c = self.view()
        if not 0 <= row < INT64_MAX:
            return False
        cursor.index, cursor.row = 0, row
        return ps_selection_next(&c, &cursor, <int64_t> row + 1, &run)

    def __bool__(self):
        return self.count > 0

    def __eq__(self, other):
        if not isinstance(other, RowRanges):
            return NotImplemented
        cdef RowRanges o = other
        if self.dense and o.dense and self.base == o.base and self.length == o.length:
            return self.data == o.data
        return self.count == o.count and self.ranges == o.ranges

    def __hash__(self):
        return hash(self.ranges)

    def __repr__(self):
        shown = ", ".join(f"{start}:{stop}" for (start, stop), _ in zip(self, range(4)))
        more = ", ..." if self.num_ranges > 4 else ""
        return f"<RowRanges of {self.count} rows: {shown or 'empty'}{more}>"

    def __reduce__(self):
        if self.dense:
            return RowRanges.from_bitmap, (self.data, self.base, self.length)
        return RowRanges.from_ranges, (self.data,)


def zones_to_ranges(verdict, uint8_t bit, first_rows):
    """Rows of the zones whose verdict has `bit`.

    Parameters
    ----------
    verdict : buffer of n bytes
    bit : int
        One or more of MAY_*.
    first_rows : buffer of n + 1 int64
        Zone i is rows first_rows[i] to first_rows[i + 1].

    Raises
    ------
    CoreError
        Buffers that do not match, or negative rows.
    """
    cdef bytes flags = buffer_bytes(verdict), first = buffer_bytes(first_rows)
    cdef size_t n = len(flags)
    need(<size_t> len(first) == (n + 1) * sizeof(int64_t),
         f"first rows of {n} zones in {len(first)} bytes")
    cdef bytes space = blank(n * sizeof(ps_range))
    cdef ps_range *out = pairs_of(space)
    cdef const uint8_t *zones = <const uint8_t *> PyBytes_AsString(flags)
    cdef const int64_t *rows = <const int64_t *> PyBytes_AsString(first)
    with nogil:
        n = ps_zones_to_ranges(zones, bit, rows, n, out)
    return normalised(space, n)


def pages_touched(RowRanges rows not None, first_rows):
    """One byte for each of n pages: 1 where rows first_rows[i] to first_rows[i + 1] meet the set.

    first_rows is a buffer of n + 1 int64.
    """
    cdef bytes first = buffer_bytes(first_rows)
    cdef size_t n = len(first) // sizeof(int64_t)
    need(n > 0 and <size_t> len(first) == n * sizeof(int64_t), f"first rows in {len(first)} bytes")
    cdef bytes mask = blank(n - 1)
    cdef uint8_t *out = <uint8_t *> PyBytes_AsString(mask)
    cdef const int64_t *at = <const int64_t *> PyBytes_AsString(first)
    cdef ps_selection c = rows.view()
    with nogil:
        ps_pages_touched(&c, at, n - 1, out)
    return mask
