# cython: language_level=3, freethreading_compatible=True, auto_pickle=False, autotestdict=False
"""Comparison of values with literals, binary search, and verdicts on zones.

Values come as raw buffers in Arrow's layout: `kind` is one of KIND_*, `width` the bytes of a
KIND_FIXED value (otherwise ignored), `n` the number of values, `offsets` the n + 1 offsets of byte
strings: int32 for KIND_BYTES, int64 for KIND_LARGE_BYTES. Bitmaps start at bit 0, least significant
bit first. Literals are a tuple (n, values, offsets or None) of the same kind. What is KIND_FIXED,
values, literals and bounds may have the offsets of KIND_BYTES, and then any length.
"""

from pageseek.base.errors import CoreError

from pageseek._core.header cimport PS_INVALID, ps_error, ps_status
from pageseek._core.status cimport check

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AsString, PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t, uintptr_t
from libc.string cimport memcpy, memset

cdef extern from "pageseek.h" nogil:
    ctypedef enum ps_kind:
        PS_BOOL, PS_I8, PS_I16, PS_I32, PS_I64, PS_U8, PS_U16, PS_U32, PS_U64
        PS_F16, PS_F32, PS_F64, PS_D128, PS_D256, PS_BYTES, PS_LARGE_BYTES, PS_FIXED, PS_SLICES
    int PS_MAY_TRUE, PS_MAY_FALSE, PS_MAY_NULL
    ctypedef struct ps_zones:
        size_t n
        ps_values lower, upper
        const uint8_t *known
        const uint8_t *all_null
        const int64_t *null_counts
        const int64_t *nan_counts
        const int64_t *counts
        int32_t order
        const int64_t *nearest
    bint ps_zones_nearest(const ps_zones *, int64_t *)
    ps_status ps_literals_sort(const ps_values *, int64_t *, size_t *, ps_error *)
    ps_status ps_compare(const ps_values *, ps_op, bint, const ps_values *, ps_nan, uint8_t *,
                         int64_t *, ps_error *)
    ps_status ps_in_open(const ps_values *, ps_in *, ps_error *)
    size_t ps_in_table_size(ps_in *)
    void ps_in_build(ps_in *, void *)
    ps_status ps_compare_in(const ps_values *, bint, const ps_in *, ps_nan, uint8_t *, int64_t *,
                            ps_error *)
    void ps_codes_mask(const int32_t *, const uint8_t *, int64_t, const uint8_t *, uint32_t, uint8_t *, int64_t *)
    ps_status ps_lower_bound(const ps_values *, const ps_values *, int64_t *, ps_error *)
    ps_status ps_upper_bound(const ps_values *, const ps_values *, int64_t *, ps_error *)
    ps_status ps_zones_order(ps_zones *, uint8_t *, int32_t, int32_t *, ps_error *)
    size_t ps_zones_out_of_bounds(const ps_zones *, const ps_zones *, size_t)
    ps_status ps_zones_probe(const ps_zones *, ps_op, const ps_values *, ps_nan, uint8_t *,
                             ps_error *)
    ps_status ps_zones_probe_in(const ps_zones *, const ps_in *, ps_nan, uint8_t *, ps_error *)

KIND_BOOL, KIND_I8, KIND_I16, KIND_I32, KIND_I64 = PS_BOOL, PS_I8, PS_I16, PS_I32, PS_I64
KIND_U8, KIND_U16, KIND_U32, KIND_U64 = PS_U8, PS_U16, PS_U32, PS_U64
KIND_F16, KIND_F32, KIND_F64, KIND_D128, KIND_D256 = PS_F16, PS_F32, PS_F64, PS_D128, PS_D256
KIND_BYTES, KIND_LARGE_BYTES, KIND_FIXED = PS_BYTES, PS_LARGE_BYTES, PS_FIXED
OP_EQ, OP_NE, OP_LT, OP_LE, OP_GT, OP_GE = PS_EQ, PS_NE, PS_LT, PS_LE, PS_GT, PS_GE
OP_IN, OP_PREFIX, OP_IS_NULL, OP_IS_NAN = PS_IN, PS_PREFIX, PS_IS_NULL, PS_IS_NAN
OP_ALWAYS, OP_NEVER = PS_ALWAYS, PS_NEVER
NAN_IEEE, NAN_SPARK = PS_NAN_IEEE, PS_NAN_SPARK
MAY_TRUE, MAY_FALSE, MAY_NULL = PS_MAY_TRUE, PS_MAY_FALSE, PS_MAY_NULL


@cython.no_gc  # as LeafBuffers of leaf.pyx
cdef class _Buffer:
    """The bytes of a buffer, held; no bytes for None."""

    cdef Py_buffer view
    cdef bint held

    def __cinit__(self, owner, size_t needed, str what, size_t align=1):
        if owner is None:
            return
        PyObject_GetBuffer(owner, &self.view, PyBUF_SIMPLE)
        self.held = True
        if align > 1 and <uintptr_t> self.view.buf % align:  # the processor may not read it there
            self.copy()
        if <size_t> self.view.len < needed:
            raise CoreError(<int> PS_INVALID, None,
                            f"{what}: {self.view.len} bytes where {needed} are needed")

    def __dealloc__(self):
        if self.held:
            PyBuffer_Release(&self.view)

    cdef int copy(self) except -1:
        copied = PyBytes_FromStringAndSize(<const char *> self.view.buf, self.view.len)
        PyBuffer_Release(&self.view)
        self.held = False
        PyObject_GetBuffer(copied, &self.view, PyBUF_SIMPLE)
        self.held = True
        return 0

    cdef int keep(self) except -1:
        """Copy bytes that others may change."""
        if self.held and not self.view.readonly:
            self.copy()
        return 0

    cdef const uint8_t *data(self) noexcept:
        return <const uint8_t *> self.view.buf if self.held else NULL


cdef size_t item_bytes(int64_t n, size_t size, str what) except? 0:
    """n * size for an n of the caller. As a number of C it stays the same; an object may be another number each time."""
    if not 0 <= n <= 1 << 56:
        raise CoreError(<int> PS_INVALID, None, f"{what}: a count of {n}")
    return <size_t> n * size


cdef class _Values:
    """ps_values with the buffers that it points into."""

    cdef ps_values c
    cdef _Buffer validity, values, offsets

    def __cinit__(self, int32_t kind, int32_t width, int64_t n, validity, values, offsets, str what not None):
        cdef size_t rows = item_bytes(n, 1, what)
        cdef size_t unit = 8 if kind == PS_LARGE_BYTES or kind == PS_SLICES else 4 if kind == PS_BYTES else 0
        self.validity = _Buffer(validity, (rows + 7) // 8, what + ", validity")
        self.values = _Buffer(values, 0, what)
        self.offsets = _Buffer(offsets, (rows + 1) * unit if rows else 0, what + ", offsets")
        self.c.kind, self.c.width, self.c.n = kind, width, rows
        self.c.validity, self.c.values = self.validity.data(), self.values.data()
        self.c.values_size = self.values.view.len
        self.c.offsets = self.offsets.data()

    cdef int keep(self) except -1:
        """Copy buffers that others may change, as they are checked only once."""
        self.values.keep()
        self.offsets.keep()
        self.c.values, self.c.offsets = self.values.data(), self.offsets.data()
        return 0


cdef int32_t values_kind(int32_t kind, offsets):
    """The kind of the layout: values of KIND_FIXED with offsets are KIND_BYTES."""
    return PS_BYTES if kind == PS_FIXED and offsets is not None else kind


cdef _Values literals_of(int32_t kind, int32_t width, ps_op op, literals):
    if literals is None:
        return _Values(kind, width, 0, None, b"", None, "literals")
    n, values, offsets = literals
    if kind == PS_FIXED and offsets is not None:
        kind = PS_BYTES
    elif kind == PS_FIXED and op == PS_PREFIX:
        width = min(memoryview(values).nbytes, <object> INT32_MAX)
    return _Values(kind, width, n, None, values, offsets, "literals")


@cython.final
cdef class Lookup:
    """The literals of OP_IN, checked once, for many calls of `compare`.

    Parameters
    ----------
    kind, width
        Of the values, as for `compare`.
    literals : tuple of (n, values, offsets or None)
        Sorted and distinct.
    table : bool
        Whether to make a table in place of the search; it takes about 20 ns a literal.

    Raises
    ------
    CoreError
        Buffers shorter than n says, or literals out of order.
    """

    cdef ps_in c
    cdef _Values literals
    cdef bytes table

    def __cinit__(self, int32_t kind, int32_t width, literals, bint table):
        self.literals = literals_of(kind, width, PS_IN, literals)
        self.literals.keep()
        cdef ps_error error
        cdef ps_status status
        with nogil:
            status = ps_in_open(&self.literals.c, &self.c, &error)
        check(status, &error)
        cdef size_t size = ps_in_table_size(&self.c) if table else 0
        if not size:
            return
        self.table = PyBytes_FromStringAndSize(NULL, size)
        cdef void *into = PyBytes_AsString(self.table)
        with nogil:
            ps_in_build(&self.c, into)


@cython.final
cdef class RowTests:
    """Tests of the values of one leaf, which a LeafDecoder makes as soon as it has decoded some: rows have to pass them all.

    Parameters
    ----------
    kind, width
        Of the values, as for `compare`.
    tests : sequence of (int, bool, literals or Lookup or None, int)
        For each test its op, whether it is negated, its literals, as for `compare`, and the NaN rule.
    keeps : bool
        Whether the values that pass come out; otherwise none does.

    Raises
    ------
    CoreError
        Buffers shorter than n says, literals that do not fit the kind or the op, or no test.
    """

    def __cinit__(self, int32_t kind, int32_t width, tests not None, bint keeps):
        cdef Lookup ready
        cdef _Values literals
        cdef ps_row_test *one
        cdef ps_values none
        cdef ps_error error
        cdef ps_status status
        cdef int64_t count
        cdef tuple asked = tuple(tests)
        cdef size_t n = len(asked)
        memset(&none, 0, sizeof(none))
        none.kind, none.width = kind, width
        self.held, self.keeps, self.kind = [], keeps, kind
        self.tests = <ps_row_test *> PyMem_Calloc(n + 1, sizeof(ps_row_test))
        if self.tests == NULL:
            raise MemoryError
        for op, negate, given, nan in asked:
            one = &self.tests[self.n]
            one.op, one.negate, one.nan = op, negate, nan
            if one.op == PS_IN and isinstance(given, Lookup):
                ready = given
                one.in_list = &ready.c
                self.held.append(ready)
            else:
                literals = literals_of(kind, width, one.op, given)
                literals.keep()
                one.literals = literals.c
                self.held.append(literals)
            if one.in_list != NULL:
                status = ps_compare_in(&none, one.negate, one.in_list, one.nan, NULL, &count, &error)
            else:
                status = ps_compare(&none, one.op, one.negate, &one.literals, one.nan, NULL, &count, &error)
            check(status, &error)
            self.n += 1
        if not self.n:
            raise CoreError(<int> PS_INVALID, None, "no test")

    def __dealloc__(self):
        PyMem_Free(self.tests)


def compare(int32_t kind, int32_t width, int64_t n, validity, values, offsets, ps_op op, bint negate,
            literals=None, ps_nan nan=PS_NAN_IEEE):
    """Bitmap of the values for which `value op literal` is TRUE, or FALSE when `negate` is set.

    Nulls are in neither, except for OP_IS_NULL. OP_IN wants its literals sorted and distinct
    (`sort_literals`), or a Lookup of them; ops without a literal ignore `literals`.

    Returns
    -------
    tuple of (bytes, int)
        Mask of (n + 7) // 8 bytes, tail bits zero, and the number of ones.

    Raises
    ------
    CoreError
        Buffers shorter than n says, or literals that do not fit the kind or the op.
    """
    cdef _Values v = _Values(values_kind(kind, offsets), width, n, validity, values, offsets, "values")
    cdef bytes mask = PyBytes_FromStringAndSize(NULL, (v.c.n + 7) // 8)
    cdef uint8_t *out = <uint8_t *> PyBytes_AsString(mask)
    cdef int64_t count = 0
    cdef ps_error error
    cdef ps_status status
    cdef Lookup ready
    cdef _Values l
    if op == PS_IN and isinstance(literals, Lookup):
        ready = literals
        with nogil:
            status = ps_compare_in(&v.c, negate, &ready.c, nan, out, &count, &error)
    else:
        l = literals_of(kind, width, op, literals)
        with nogil:
            status = ps_compare(&v.c, op, negate, &l.c, nan, out, &count, &error)
    check(status, &error)
    return mask, count


def codes_mask(codes not None, validity, int64_t n, passes not None):
    """Bitmap of the rows whose dictionary entry passes, for n codes of int32.

    `passes`: a byte for each entry, 1 where it passes, and a last 0, which stands for codes that are no entry.
    Nulls do not pass; `validity` may be None.

    Returns
    -------
    tuple of (bytes, int)
        Mask of (n + 7) // 8 bytes, tail bits zero, and the number of ones.

    Raises
    ------
    CoreError
        Buffers shorter than n says, or no last 0 in `passes`.
    """
    cdef size_t rows = item_bytes(n, 1, "codes")
    cdef _Buffer c = _Buffer(codes, item_bytes(n, 4, "codes"), "codes", 4)
    cdef _Buffer v = _Buffer(validity, (rows + 7) // 8, "validity")
    cdef _Buffer p = _Buffer(passes, 1, "passes")
    cdef size_t entries = p.view.len - 1
    if p.data()[entries] or entries >= 0x7fffffff:
        raise CoreError(<int> PS_INVALID, None, "passes: a last byte of 0 is needed")
    cdef bytes mask = PyBytes_FromStringAndSize(NULL, (rows + 7) // 8)
    cdef uint8_t *out = <uint8_t *> PyBytes_AsString(mask)
    cdef const int32_t *from_codes = <const int32_t *> c.data()
    cdef const uint8_t *valid = v.data()
    cdef const uint8_t *table = p.data()
    cdef int64_t count = 0
    with nogil:
        ps_codes_mask(from_codes, valid, rows, table, <uint32_t> entries, out, &count)
    return mask, count


def sort_literals(int32_t kind, int32_t width, int64_t n, values, offsets=None):
    """Order of the distinct literals: int64 indices as bytes, ascending in value, NaN last.

    Raises
    ------
    CoreError
        Buffers shorter than n says.
    """
    cdef _Values v = _Values(kind, width, n, None, values, offsets, "literals")
    cdef bytes order = PyBytes_FromStringAndSize(NULL, v.c.n * sizeof(int64_t))
    cdef int64_t *out = <int64_t *> PyBytes_AsString(order)
    cdef size_t kept = 0
    cdef ps_error error
    cdef ps_status status
    with nogil:
        status = ps_literals_sort(&v.c, out, &kept, &error)
    check(status, &error)
    return order[: kept * sizeof(int64_t)]


cdef int64_t bound(int32_t kind, int32_t width, int64_t n, values, offsets, literal, bint upper) except -1:
    cdef _Values v = _Values(kind, width, n, None, values, offsets, "values")
    cdef _Values l = literals_of(kind, width, PS_EQ, literal)
    cdef int64_t at = 0
    cdef ps_error error
    cdef ps_status status
    with nogil:
        if upper:
            status = ps_upper_bound(&v.c, &l.c, &at, &error)
        else:
            status = ps_lower_bound(&v.c, &l.c, &at, &error)
    check(status, &error)
    return at


def lower_bound(int32_t kind, int32_t width, int64_t n, values, offsets, literal):
    """First index whose value is >= the literal, else n; values ascend, without nulls or NaN."""
    return bound(kind, width, n, values, offsets, literal, False)


def upper_bound(int32_t kind, int32_t width, int64_t n, values, offsets, literal):
    """First index whose value is > the literal, else n; values ascend, without nulls or NaN."""
    return bound(kind, width, n, values, offsets, literal, True)


@cython.final
def locate(int64_t start, int64_t stop, first_row, offset, compressed_size):
    """The data pages that hold the rows [start, stop), which are not empty (parquet.thrift, OffsetIndex).

    `first_row`, `offset` and `compressed_size` are int64 buffers; the first has one entry more, the rows of
    the row group. Gives a list of (page, offset, compressed size, first row, rows).
    """
    cdef _Buffer rows = _Buffer(first_row, 0, "first_row", 8)
    cdef _Buffer at = _Buffer(offset, 0, "offset", 8)
    cdef _Buffer sizes = _Buffer(compressed_size, 0, "compressed_size", 8)
    cdef const int64_t *first = <const int64_t *> rows.data()
    cdef const int64_t *offsets = <const int64_t *> at.data()
    cdef const int64_t *lengths = <const int64_t *> sizes.data()
    cdef int64_t n = at.view.len // 8, low = 0, high = n, middle
    cdef list found = []
    if at.view.len % 8 or sizes.view.len != at.view.len or rows.view.len != at.view.len + 8:
        raise ValueError("n offsets and sizes need n + 1 rows")
    while low < high:  # the first page that begins after `start`
        middle = low + (high - low) // 2
        if first[middle] <= start:
            low = middle + 1
        else:
            high = middle
    while 0 < low <= n and first[low - 1] < stop:
        if first[low] > first[low - 1]:
            found.append((low - 1, offsets[low - 1], lengths[low - 1], first[low - 1],
                          <uint64_t> first[low] - <uint64_t> first[low - 1]))
        low += 1
    return found


cdef class Zones:
    """The bounds and counts of n zones: pages of a chunk, or row groups of a file.

    Parameters
    ----------
    kind, width, n, lower_values, lower_offsets, upper_values, upper_offsets
        The bounds, n of each: no value but null and NaN lies outside. They need not be exact. Those of
        KIND_FIXED values are KIND_BYTES where they have offsets.
    known : buffer of n bytes
        1 where both bounds may be trusted. Contradictory bounds are ignored all the same.
    all_null : buffer of n bytes, optional
        1 for a zone of nothing but nulls.
    null_counts, nan_counts, counts : buffers of n int64, optional
        Nulls, NaN and rows of each zone; negative means unknown.
    claimed_order : int
        0, 1 ascending, 2 descending: what the file says of the bounds. Used if it is true.

    Raises
    ------
    CoreError
        Buffers shorter than n says.
    """

    cdef ps_zones c
    cdef int32_t kind, width  # of the values
    cdef _Values lower, upper
    cdef list held
    cdef readonly bytes known  # 1 where the bounds are there and do not contradict each other

    def __cinit__(self, int32_t kind, int32_t width, int64_t n, lower_values, lower_offsets, upper_values,
                  upper_offsets, known not None, all_null=None, null_counts=None, nan_counts=None,
                  counts=None, int32_t claimed_order=0):
        self.kind, self.width = kind, width
        kind = values_kind(kind, lower_offsets)
        self.lower = _Values(kind, width, n, None, lower_values, lower_offsets, "lower bounds")
        self.upper = _Values(kind, width, n, None, upper_values, upper_offsets, "upper bounds")
        cdef _Buffer flags = _Buffer(known, item_bytes(n, 1, "zones"), "known")
        cdef _Buffer nulls = _Buffer(all_null, item_bytes(n, 1, "zones"), "all_null")
        cdef _Buffer null_figures = _Buffer(null_counts, item_bytes(n, 8, "zones"), "null_counts", 8)
        cdef _Buffer nan_figures = _Buffer(nan_counts, item_bytes(n, 8, "zones"), "nan_counts", 8)
        cdef _Buffer figures = _Buffer(counts, item_bytes(n, 8, "zones"), "counts", 8)
        self.held = [nulls, null_figures, nan_figures, figures]
        # cleared where bounds contradict each other, so in bytes that nobody else can have: a
        # single byte copied by Python would be the interpreter's only one of its value
        self.known = PyBytes_FromStringAndSize(NULL, n)
        cdef uint8_t *own = <uint8_t *> PyBytes_AsString(self.known)
        if n:
            memcpy(own, flags.data(), <size_t> n)
        self.c.n, self.c.lower, self.c.upper, self.c.known = <size_t> n, self.lower.c, self.upper.c, own
        self.c.all_null = nulls.data()
        self.c.null_counts = <const int64_t *> null_figures.data()
        self.c.nan_counts = <const int64_t *> nan_figures.data()
        self.c.counts = <const int64_t *> figures.data()
        cdef int32_t order = 0
        cdef ps_error error
        cdef ps_status status
        with nogil:
            status = ps_zones_order(&self.c, own, claimed_order, &order, &error)
        check(status, &error)
        self.c.order = order
        cdef int64_t *table
        if order:  # which alone is searched
            table = <int64_t *> PyMem_Malloc(<size_t> (n + 1) * sizeof(int64_t))
            if table == NULL:
                raise MemoryError
            if ps_zones_nearest(&self.c, table):
                self.c.nearest = table
            else:
                PyMem_Free(table)

    def __dealloc__(self):
        PyMem_Free(<void *> self.c.nearest)

    @property
    def order(self):
        """int: the claimed order if the known zones keep it, else 0."""
        return self.c.order

    def __len__(self):
        return self.c.n

    def out_of_bounds(self, Zones whole not None, size_t i):
        """The first zone whose bounds lie wholly outside those of zone i of `whole`, of which it ought to be a part.

        Returns
        -------
        int or None
            None also where the bounds of either are not known.
        """
        cdef size_t found
        with nogil:
            found = ps_zones_out_of_bounds(&self.c, &whole.c, i)
        return None if found == <size_t> -1 else found

    def probe(self, ps_op op, literals=None, ps_nan nan=PS_NAN_IEEE):
        """Outcomes that rows of each zone may have for `value op literal`; for OP_IN a Lookup may be given.

        Returns
        -------
        bytes
            n bytes, each a union of MAY_TRUE, MAY_FALSE and MAY_NULL: what is absent is disproved.

        Raises
        ------
        CoreError
            Literals that do not fit the kind or the op.
        """
        cdef bytes verdict = PyBytes_FromStringAndSize(NULL, self.c.n)
        cdef uint8_t *out = <uint8_t *> PyBytes_AsString(verdict)
        cdef ps_error error
        cdef ps_status status
        cdef Lookup ready
        cdef _Values l
        if op == PS_IN and isinstance(literals, Lookup):
            ready = literals
            with nogil:
                status = ps_zones_probe_in(&self.c, &ready.c, nan, out, &error)
        else:
            l = literals_of(self.kind, self.width, op, literals)
            with nogil:
                status = ps_zones_probe(&self.c, op, &l.c, nan, out, &error)
        check(status, &error)
        return verdict
