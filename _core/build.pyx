# cython: language_level=3, boundscheck=False, wraparound=False, freethreading_compatible=True
"""Functions that build indexes: extremes of values, Bloom filters, and metadata (parquet.thrift)."""
from pageseek._core.convert import KIND_WIDTH
from pageseek.base.errors import CoreError

from pageseek._core.header cimport (
    PS_INVALID,
    PS_NOMEM,
    ps_buffer_free,
    ps_buffer_new,
    ps_busy,
    ps_busy_enter,
    ps_busy_leave,
    ps_error,
    ps_status,
)
from pageseek._core.held cimport Held
from pageseek._core.search cimport ps_values
from pageseek._core.status cimport check

cimport cython
from cpython.bytes cimport PyBytes_AsString, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memset

cdef extern from "pageseek.h" nogil:
    int PS_BLOOM_BLOCK, PS_CHUNK_PLACES
    ctypedef struct ps_writer:
        uint8_t *data
        size_t size, cap
    void ps_writer_clear(ps_writer *)
    ctypedef struct ps_footer_edit:
        const int64_t *places
        size_t n_chunks
        const uint8_t *text
        size_t text_length
        const int64_t *dropped
        size_t n_dropped
        const int64_t *added
        size_t n_added
        int64_t n_orders
    ctypedef struct ps_page_bounds:
        size_t n
        const uint8_t *null_pages
        const uint8_t *text
        size_t text_length
        const int64_t *least
        const int64_t *most
        int64_t boundary_order
        const int64_t *null_counts
        const int64_t *nan_counts
    ctypedef struct ps_extremes:
        int64_t nulls, nans, least, most
    ps_status ps_footer_edited(const uint8_t *, size_t, const ps_footer_edit *, ps_writer *, ps_error *)
    ps_status ps_offset_index_write(size_t, const int64_t *, const int64_t *, const int64_t *, ps_writer *, ps_error *)
    ps_status ps_column_index_write(const ps_page_bounds *, ps_writer *, ps_error *)
    ps_status ps_bloom_header_write(size_t, ps_writer *, ps_error *)
    ps_status ps_extremes_of(const ps_values *, bint, ps_extremes *, ps_error *)
    ps_status ps_bloom_plain_hashes(const ps_values *, uint64_t *, size_t *, ps_error *)
    ps_status ps_bloom_insert(const ps_values *, uint8_t *, size_t, ps_error *)
    double ps_bloom_rate(const uint8_t *, size_t)
    void ps_bloom_fold(uint8_t *, size_t)

BLOCK = PS_BLOOM_BLOCK
PLACES = PS_CHUNK_PLACES


@cython.no_gc
cdef class _Values:
    """Values of a kind, in buffers of the caller."""

    cdef ps_values v
    cdef Held validity, values, offsets

    def __cinit__(self, int kind, int width, values):
        n, validity, offsets, data = values
        memset(&self.v, 0, sizeof(self.v))
        self.validity, self.values, self.offsets = Held(validity), Held(data), Held(offsets)
        self.v.kind, self.v.width, self.v.n = kind, width, n
        if not 0 <= self.v.n <= 1 << 56:
            raise CoreError(<int>PS_INVALID, None, f"a count of {self.v.n}")
        self.v.values, self.v.values_size = self.values.data, self.values.size
        if self.validity.there:
            if <int64_t>self.validity.size < self.v.n // 8 + (self.v.n % 8 != 0):
                raise CoreError(<int>PS_INVALID, None, "validity too short")
            self.v.validity = self.validity.data
        if 0 <= kind < <int>len(KIND_WIDTH) and KIND_WIDTH[kind] < 0 and self.v.n:
            if self.offsets.size // <size_t>-<int>KIND_WIDTH[kind] <= <size_t>self.v.n:
                raise CoreError(<int>PS_INVALID, None, "offsets too short")
        self.v.offsets = self.offsets.data


cdef bytes _finished(ps_writer *w, ps_status status, ps_error *err):
    try:
        check(status, err)
        return PyBytes_FromStringAndSize(<const char *>w.data, <Py_ssize_t>w.size)
    finally:
        ps_writer_clear(w)


cdef tuple _text(pieces):
    """Byte strings one behind the other, and (offset, length) of each as int64."""
    import array
    places, at = array.array("q"), 0
    for piece in pieces:
        places.append(at)
        places.append(len(piece))
        at += len(piece)
    return b"".join(pieces), places


cdef list _plain(pieces):
    """Byte strings of type `bytes`, as a subclass may report another length."""
    return [piece if type(piece) is bytes else bytes(memoryview(piece)) for piece in pieces]


def footer_edited(data, places, list dropped not None, list added not None, int64_t orders=0, *, size_t max_size=1 << 30):
    """FileMetaData with other places of indexes and other key-value pairs; all else is kept, to the byte.

    Parameters
    ----------
    places : buffer of int64[row groups, leaves, PLACES]
        Of each chunk the offset and length of OffsetIndex, ColumnIndex and Bloom filter; ABSENT: as it was,
        -1: none from now on.
    dropped : list of bytes
        Keys of which all pairs go.
    added : list of (bytes, bytes)
        Pairs that come, behind those that stay.
    orders : int
        Leaves that get TYPE_ORDER, where the footer has no column_orders; -1: column_orders go.

    Raises
    ------
    CoreError
        A footer that is damaged: CORRUPT, TRUNCATED. Chunks with encrypted metadata: UNSUPPORTED. Places that
        are not those of that many chunks: INVALID.
    """
    cdef Held held = Held(data), at = Held(places)
    cdef ps_footer_edit edit
    cdef ps_writer w
    cdef ps_error err
    cdef ps_status status
    cdef Held text, gone, new
    memset(&edit, 0, sizeof(edit))
    memset(&w, 0, sizeof(w))
    w.cap = max_size
    if at.size % (8 * <size_t>PS_CHUNK_PLACES):
        raise CoreError(<int>PS_INVALID, None, f"{at.size} bytes of places")
    keys, pairs = _plain(dropped), _plain([part for key, value in added for part in (key, value)])
    joined, found = _text(keys + pairs)
    text = Held(joined)
    gone, new = Held(found[:2 * len(keys)]), Held(found[2 * len(keys):])
    edit.places, edit.n_chunks = at.numbers(at.size // 8), at.size // (8 * <size_t>PS_CHUNK_PLACES)
    edit.text, edit.text_length = text.data, text.size
    edit.dropped, edit.n_dropped = gone.numbers(gone.size // 8), gone.size // 16
    edit.added, edit.n_added = new.numbers(new.size // 8), new.size // 32
    edit.n_orders = orders
    with nogil:
        status = ps_footer_edited(held.data, held.size, &edit, &w, &err)
    return _finished(&w, status, &err)


def offset_index(offset, size, first_row):
    """An OffsetIndex (PageIndex.md): int64 each, one a page; `size` counts the page header."""
    cdef Held at = Held(offset), sizes = Held(size), rows = Held(first_row)
    cdef size_t n = at.size // 8
    cdef ps_writer w
    cdef ps_error err
    cdef const int64_t *offsets = at.numbers(n)
    cdef const int64_t *lengths = sizes.numbers(n)
    cdef const int64_t *firsts = rows.numbers(n)
    memset(&w, 0, sizeof(w))
    w.cap = <size_t>1 << 31
    status = ps_offset_index_write(n, offsets, lengths, firsts, &w, &err)
    return _finished(&w, status, &err)


def column_index(null_pages, list least not None, list most not None, int64_t boundary_order, null_counts=None, nan_counts=None):
    """A ColumnIndex (PageIndex.md).

    `null_pages`: a byte each, 0 or 1. `least`, `most`: bytes of PLAIN values, empty for null pages. Counts: int64
    each, or None. `boundary_order`: 0 unordered, 1 ascending, 2 descending.
    """
    import array
    cdef Held nulls = Held(null_pages), of_nulls = Held(null_counts), of_nans = Held(nan_counts)
    cdef size_t n = nulls.size
    cdef ps_page_bounds bounds
    cdef ps_writer w
    cdef ps_error err
    cdef Held text, lows, highs
    lower, upper = _plain(least), _plain(most)
    if <size_t>len(lower) != n or <size_t>len(upper) != n:
        raise CoreError(<int>PS_INVALID, None, f"{len(lower)} and {len(upper)} bounds for {n} pages")
    ends, at = array.array("q", [0]), 0
    for piece in lower + upper:
        at += len(piece)
        ends.append(at)
    text = Held(b"".join(lower + upper))
    lows, highs = Held(ends[:n + 1]), Held(ends[n:])
    memset(&w, 0, sizeof(w))
    w.cap = <size_t>1 << 31
    bounds.n, bounds.null_pages, bounds.text, bounds.text_length = n, nulls.data, text.data, text.size
    bounds.least, bounds.most = <const int64_t *>lows.data, <const int64_t *>highs.data
    bounds.boundary_order = boundary_order
    bounds.null_counts, bounds.nan_counts = of_nulls.int64s(n), of_nans.int64s(n)
    status = ps_column_index_write(&bounds, &w, &err)
    return _finished(&w, status, &err)


def extremes(int kind, int width, values, bint decimal=False):
    """Least and greatest of values (n, validity or None, offsets or None, data) of a kind (ps_kind).

    Returns
    -------
    tuple of int
        Nulls, NaN, and the places of the least and of the greatest, -1 where there is none but those.
    """
    cdef _Values held = _Values(kind, width, values)
    cdef ps_extremes found
    cdef ps_error err
    cdef ps_status status
    with nogil:
        status = ps_extremes_of(&held.v, decimal, &found, &err)
    check(status, &err)
    return found.nulls, found.nans, found.least, found.most


def hashes(int kind, int width, values):
    """XXH64 of values (n, validity or None, offsets or None, data) whose bytes are those of the file: uint64 each, but of
    nulls, as bytes.
    """
    cdef _Values held = _Values(kind, width, values)
    cdef ps_error err
    cdef ps_status status
    cdef size_t n = 0
    made = PyBytes_FromStringAndSize(NULL, held.v.n * 8)
    cdef uint64_t *out = <uint64_t *>PyBytes_AsString(made)
    with nogil:
        status = ps_bloom_plain_hashes(&held.v, out, &n, &err)
    check(status, &err)
    return made[:n * 8]


@cython.no_gc
cdef class BloomFilter:
    """A split-block Bloom filter that is filled (BloomFilter.md): `blocks` of 32 bytes, none of them shared by threads."""

    cdef ps_busy busy  # a call is inside
    cdef uint8_t *data
    cdef size_t n, made
    cdef readonly size_t inserted  # values, equal ones counted each time

    def __cinit__(self, size_t blocks):
        if not 0 < blocks < <size_t>1 << 26:
            raise CoreError(<int>PS_INVALID, None, f"a filter of {blocks} blocks")
        self.data = <uint8_t *>ps_buffer_new(blocks * PS_BLOOM_BLOCK)
        if self.data == NULL:
            raise CoreError(<int>PS_NOMEM, None, f"no memory for a filter of {blocks * PS_BLOOM_BLOCK} bytes")
        self.n = self.made = blocks
        memset(self.data, 0, blocks * PS_BLOOM_BLOCK)

    def __dealloc__(self):
        if self.data != NULL:
            ps_buffer_free(self.data, self.made * PS_BLOOM_BLOCK)

    @property
    def blocks(self):
        """The number of blocks."""
        return self.n

    def insert(self, int kind, int width, values):
        """Insert values (n, validity or None, offsets or None, data) whose bytes are those of the file."""
        cdef _Values held = _Values(kind, width, values)
        cdef ps_error err
        cdef ps_status status
        self._enter()
        with nogil:
            status = ps_bloom_insert(&held.v, self.data, self.n, &err)
        ps_busy_leave(&self.busy)
        check(status, &err)
        self.inserted += <size_t>held.v.n

    cdef int _enter(self) except -1:
        if not ps_busy_enter(&self.busy):
            raise CoreError(<int>PS_INVALID, None, "the filter is in use by another thread")
        return 0

    def rate(self):
        """The chance that a value which was not inserted is found all the same."""
        cdef double found
        self._enter()
        with nogil:
            found = ps_bloom_rate(self.data, self.n)
        ps_busy_leave(&self.busy)
        return found

    def shrink(self, double most):
        """Halve it as long as its rate stays at most this large."""
        self._enter()
        try:
            self._shrink(most)
        finally:
            ps_busy_leave(&self.busy)

    cdef int _shrink(self, double most) except -1:
        cdef double rate = 0
        cdef uint8_t *other = NULL
        while self.n % 2 == 0:
            other = <uint8_t *>ps_buffer_new(self.n * PS_BLOOM_BLOCK)
            if other == NULL:
                raise CoreError(<int>PS_NOMEM, None, f"no memory for a filter of {self.n * PS_BLOOM_BLOCK} bytes")
            with nogil:
                _copy(other, self.data, self.n * PS_BLOOM_BLOCK)
                ps_bloom_fold(other, self.n)
                rate = ps_bloom_rate(other, self.n // 2)
            if rate > most:
                ps_buffer_free(other, self.n * PS_BLOOM_BLOCK)
                return 0
            ps_buffer_free(self.data, self.made * PS_BLOOM_BLOCK)
            self.data, self.made = other, self.n
            self.n //= 2
        return 0

    def to_bytes(self):
        """Its header and its bits, as they stand in a file."""
        cdef ps_writer w
        cdef ps_error err
        memset(&w, 0, sizeof(w))
        w.cap = 1024
        self._enter()
        try:
            return self._written(&w, &err)
        finally:
            ps_busy_leave(&self.busy)

    cdef bytes _written(self, ps_writer *w, ps_error *err):
        head = _finished(w, ps_bloom_header_write(self.n * PS_BLOOM_BLOCK, w, err), err)
        return head + PyBytes_FromStringAndSize(<const char *>self.data, <Py_ssize_t>(self.n * PS_BLOOM_BLOCK))


cdef void _copy(uint8_t *to, const uint8_t *source, size_t n) noexcept nogil:
    from_to(to, source, n)


cdef extern from "<string.h>" nogil:
    void *from_to "memcpy"(void *to, const void *source, size_t n)
