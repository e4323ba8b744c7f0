# cython: language_level=3, freethreading_compatible=True, autotestdict=False, auto_pickle=False
"""Parquet metadata out of bytes: footer, column chunks, page index, page headers.

Every function takes any contiguous buffer, runs the C core once without the GIL, and returns
flat buffers: records of int64 in the order of the ``*_FIELDS`` tuples, arrays of int64 or uint64
in native byte order, byte strings as (offset, length) into the input. ``ABSENT`` stands for an
optional field that is not there. Nothing is checked that needs the rest of the file: sizes and
offsets of a chunk are those that the footer claims, and may be wrong. For any input the outcome is
a result or a CoreError: TRUNCATED, CORRUPT, LIMIT (`max_arena` bytes, or nesting) or NOMEM.
"""
from pageseek.base.errors import CoreError

from pageseek._core.header cimport PS_INVALID, PS_OK, ps_error, ps_status

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AsString, PyBytes_FromStringAndSize
from libc.stdint cimport INT64_MIN, UINT64_MAX, int64_t, uint8_t, uint64_t, uintptr_t
from libc.string cimport memcpy

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX

ctypedef const void *Data

cdef extern from "pageseek.h" nogil:
    ctypedef struct ps_schema_element:
        pass
    ctypedef struct ps_row_group:
        pass
    ctypedef struct ps_chunk:
        pass
    ctypedef struct ps_statistics:
        int64_t max_offset, min_offset, max_value_offset, min_value_offset
    ctypedef struct ps_page_header:
        ps_statistics statistics
    ctypedef struct ps_footer:
        int64_t version, num_rows, created_by_offset, created_by_length, encryption
        size_t n_schema, n_leaves, n_row_groups, n_key_values, n_column_orders
        Data schema, row_groups, chunk_offsets, key_values, column_orders
    ctypedef struct ps_column_index:
        size_t n_pages
        int64_t boundary_order
        Data null_pages, min_offset, min_length, max_offset, max_length, nan_counts
        int64_t *null_counts
    ctypedef struct ps_offset_index:
        size_t n_pages
        Data offset, compressed_size, first_row, unencoded_bytes

    ps_status ps_footer_read(const uint8_t *, size_t, size_t, ps_footer *, ps_error *)
    void ps_footer_clear(ps_footer *)
    ps_status ps_chunks_read(const uint8_t *, size_t, const uint64_t *, size_t, ps_chunk *,
                             size_t *, ps_error *)
    ctypedef struct ps_similar_footer:
        const uint8_t *names
        const uint8_t *created_by
        Data schema, orders
        size_t names_length, created_by_length, schema_size, orders_size
        const char *const *keys
        size_t n_keys
    ps_status ps_footers_read(const uint8_t *, size_t, const uint64_t *, size_t, const ps_similar_footer *,
                              const uint64_t *, size_t, size_t, size_t, size_t *, int64_t *,
                              int64_t *, int64_t *, ps_chunk *, ps_error *)
    bint ps_chunks_bounds(const ps_chunk *, size_t, bint, bint, int64_t *, int64_t *, int64_t *)
    ps_status ps_column_index_check(const ps_column_index *, const int64_t *, size_t, bint, bint,
                                    int64_t *, int64_t *, ps_error *)
    ps_status ps_column_index_read(const uint8_t *, size_t, size_t, ps_column_index *, ps_error *)
    void ps_column_index_clear(ps_column_index *)
    ps_status ps_offset_index_read(const uint8_t *, size_t, size_t, ps_offset_index *, ps_error *)
    ps_status ps_offset_index_check(const ps_offset_index *, int64_t, int64_t, int64_t, ps_error *)
    void ps_offset_index_clear(ps_offset_index *)
    int PS_SUM_FIELD, PS_SUM_NONE, PS_SUM_FITS, PS_SUM_DIFFERS
    const uint8_t *ps_sum_field
    int ps_sum_check(const uint8_t *, size_t, uint64_t)
    ps_status ps_page_header_read(const uint8_t *, size_t, ps_page_header *, ps_error *)

ABSENT = INT64_MIN
SUM_FIELD = PyBytes_FromStringAndSize(<const char *>ps_sum_field, PS_SUM_FIELD)
SUM_NONE, SUM_FITS, SUM_DIFFERS = PS_SUM_NONE, PS_SUM_FITS, PS_SUM_DIFFERS
TRUNCATED, CORRUPT, LIMIT, UNSUPPORTED, NOMEM, INVALID = range(1, 7)

SCHEMA_FIELDS = tuple("""
    type type_length repetition name_offset name_length num_children converted_type scale precision
    field_id logical logical_a logical_b logical_c
""".split())
ROW_GROUP_FIELDS = tuple("""
    offset length num_rows total_byte_size total_compressed_size file_offset ordinal sorting_offset
""".split())
_STATISTICS_FIELDS = tuple("statistics_" + name for name in """
    present max_offset max_length min_offset min_length null_count distinct_count max_value_offset
    max_value_length min_value_offset min_value_length is_max_exact is_min_exact nan_count
""".split())
CHUNK_FIELDS = tuple("""
    end file_path_offset file_path_length file_offset has_metadata crypto offset_index_offset
    offset_index_length column_index_offset column_index_length type codec num_values
    total_uncompressed_size total_compressed_size data_page_offset index_page_offset
    dictionary_page_offset bloom_filter_offset bloom_filter_length encodings encoding_stats
    dictionary_data_pages other_data_pages key_values_offset
""".split()) + _STATISTICS_FIELDS
PAGE_HEADER_FIELDS = tuple("""
    header_length type uncompressed_size compressed_size crc num_values encoding def_encoding
    rep_encoding num_nulls num_rows def_length rep_length is_compressed is_sorted
""".split()) + _STATISTICS_FIELDS

# A struct that grows without its tuple must not load.
if ([sizeof(ps_schema_element), sizeof(ps_row_group), sizeof(ps_chunk), sizeof(ps_page_header)]
        != [8 * len(names) for names in
            (SCHEMA_FIELDS, ROW_GROUP_FIELDS, CHUNK_FIELDS, PAGE_HEADER_FIELDS)]):
    raise ImportError("pageseek._core.metadata disagrees with pageseek.h")


@cython.no_gc  # as LeafBuffers of leaf.pyx
cdef class _Call:
    """A buffer, held as long as the object lives, and the status of the call that reads it."""
    cdef Py_buffer view
    cdef const uint8_t *data
    cdef size_t size
    cdef ps_error err
    cdef ps_status status
    cdef int64_t none[1]  # stands for the integers of a buffer without bytes

    def __cinit__(self, buffer):
        PyObject_GetBuffer(buffer, &self.view, PyBUF_SIMPLE)
        self.data = <const uint8_t *>self.view.buf
        self.size = <size_t>self.view.len

    def __dealloc__(self):
        PyBuffer_Release(&self.view)

    cdef const void *int64s(self) except NULL:
        """Its integers, in aligned memory."""
        if <uintptr_t>self.data % 8:
            copied = PyBytes_FromStringAndSize(<const char *>self.data, <Py_ssize_t>self.size)
            PyBuffer_Release(&self.view)
            PyObject_GetBuffer(copied, &self.view, PyBUF_SIMPLE)
            self.data = <const uint8_t *>self.view.buf
        return self.data if self.data != NULL else <const void *>self.none

    cdef object error(self, str where="", uint64_t base=0):
        message = self.err.message.decode("utf-8", "replace")
        offset = None if self.err.offset == UINT64_MAX else base + self.err.offset
        return CoreError(<int>self.status, offset, where + message)

    cdef int check(self, str where="", uint64_t base=0) except -1:
        if self.status != PS_OK:
            raise self.error(where, base)
        return 0


cdef inline object pack(const void *data, size_t size):
    return None if data == NULL and size else PyBytes_FromStringAndSize(<const char *>data, size)


cdef inline object empty(size_t size):
    if size > <size_t>PY_SSIZE_T_MAX:
        raise MemoryError
    return PyBytes_FromStringAndSize(NULL, <Py_ssize_t>size)


cdef inline int64_t *int64s(object made) except NULL:
    return <int64_t *>PyBytes_AsString(made)


cdef inline void shift(int64_t *offset, size_t by) noexcept:
    if offset[0] != INT64_MIN:
        offset[0] += <int64_t>by


def footer(data, *, size_t max_arena=1 << 30):
    """Read FileMetaData in one pass (parquet.thrift); bytes behind it, a signature, are ignored.

    Returns
    -------
    tuple
        ``(version, num_rows, created_by, encryption, schema, n_leaves, row_groups,
        chunk_offsets, key_values, column_orders)``. created_by is (offset, length) or None,
        encryption the field id of EncryptionAlgorithm (0 = unknown) or None. schema holds records
        of SCHEMA_FIELDS, row_groups of ROW_GROUP_FIELDS, chunk_offsets uint64[n_row_groups,
        n_leaves] where each ColumnChunk begins, key_values int64[n, 4] offset and length of key
        and value, column_orders int64[n] field ids of ColumnOrder (0 = unknown).

    Raises
    ------
    CoreError
        A schema that is no tree, a row group without one chunk per leaf: CORRUPT.
    """
    cdef _Call call = _Call(data)
    cdef ps_footer f
    with nogil:
        call.status = ps_footer_read(call.data, call.size, max_arena, &f, &call.err)
    call.check()
    try:
        created_by = (f.created_by_offset, f.created_by_length)
        return (f.version, f.num_rows, None if created_by[0] == INT64_MIN else created_by,
                None if f.encryption == INT64_MIN else f.encryption,
                pack(f.schema, f.n_schema * sizeof(ps_schema_element)), f.n_leaves,
                pack(f.row_groups, f.n_row_groups * sizeof(ps_row_group)),
                pack(f.chunk_offsets, f.n_row_groups * f.n_leaves * 8),
                pack(f.key_values, f.n_key_values * 32),
                pack(f.column_orders, f.n_column_orders * 8))
    finally:
        ps_footer_clear(&f)


def footers(data, at, like, leaves, size_t most, keys=(b"ARROW:schema",), *, size_t max_arena=1 << 30):
    """Read footers of files that have the same columns and the same writer.

    Parameters
    ----------
    at : buffer of uint64[n, 2]
        Where each footer begins in `data`, and its bytes.
    like : tuple
        ``(names, schema, orders, created_by)`` of one of them: its bytes up to the end of the last
        name, schema and column_orders as `footer` gives them, and the writer, or None.
    leaves : buffer of uint64
        Whose chunks are read.
    most : int
        Row groups that the output has space for.
    keys : sequence of bytes
        Keys of the key-value pairs whose values are located.

    Returns
    -------
    tuple
        ``(groups, stored, rows, chunks)``: int64 for each footer that was looked at, the first of
        the n: the number of its row groups, or -1 where it has to be read by itself; int64[2] for
        each of the others and each key where in `data` the value of the first pair lies that has it, and its
        length, or ABSENT; int64 rows of each row group; records of CHUNK_FIELDS, for each row group
        those of the leaves, whose byte strings lie in `data`.
    """
    cdef _Call call = _Call(data), places = _Call(at), wanted = _Call(leaves)
    cdef _Call names = _Call(like[0]), schema = _Call(like[1]), orders = _Call(like[2])
    cdef _Call created_by = _Call(b"" if like[3] is None else like[3])
    cdef size_t n = places.size // 16, n_leaves = wanted.size // 8, done = 0, used = 0, i
    cdef ps_similar_footer model
    cdef int64_t *found
    cdef int64_t *at_stored
    cdef int64_t *counts
    cdef ps_chunk *out
    cdef const char *named[8]
    cdef tuple held = tuple(keys)
    cdef size_t n_keys = len(held)
    cdef const uint64_t *begins = <const uint64_t *>places.int64s()
    cdef const uint64_t *which = <const uint64_t *>wanted.int64s()
    if n_keys > 8:
        raise CoreError(<int>PS_INVALID, None, "footers: more than 8 keys")
    if places.size % 16 or wanted.size % 8 or most > <size_t>-1 // sizeof(ps_chunk) // (n_leaves + 1):
        raise CoreError(<int>PS_INVALID, None, "footers: places, leaves or space make no sense")
    model.names, model.names_length = names.data, names.size
    model.schema, model.schema_size = schema.int64s(), schema.size
    model.orders, model.orders_size = orders.int64s(), orders.size
    model.created_by, model.created_by_length = created_by.data, created_by.size
    if like[3] is None:
        model.created_by = NULL
    for i in range(n_keys):
        named[i] = PyBytes_AsString(held[i])
    model.keys, model.n_keys = named, n_keys
    groups, stored, rows = empty(n * 8), empty(n * n_keys * 16), empty(most * 8)
    chunks = empty(most * n_leaves * sizeof(ps_chunk))
    found, at_stored, counts = int64s(groups), int64s(stored), int64s(rows)
    out = <ps_chunk *>PyBytes_AsString(chunks)
    with nogil:
        call.status = ps_footers_read(call.data, call.size, begins, n, &model, which, n_leaves, max_arena,
                                      most, &done, found, at_stored, counts, out, &call.err)
        for i in range(done):
            used += <size_t>found[i] if found[i] > 0 else 0
    call.check()
    return (memoryview(groups)[:done * 8], memoryview(stored)[:done * n_keys * 16], memoryview(rows)[:used * 8],
            memoryview(chunks)[:used * n_leaves * sizeof(ps_chunk)])


def chunks(data, at):
    """Read the ColumnChunk structs that begin at the bytes `at`, uint64[n] (parquet.thrift).

    Returns n records of CHUNK_FIELDS. The message of a CoreError begins with the index of the
    chunk; an offset outside of `data` is INVALID.
    """
    cdef _Call call = _Call(data), starts = _Call(at)
    cdef size_t n = starts.size // 8, failed = 0
    if starts.size % 8:
        raise CoreError(<int>PS_INVALID, None, "offsets of chunks are not of 8 bytes each")
    result = empty(n * sizeof(ps_chunk))
    cdef ps_chunk *out = <ps_chunk *>PyBytes_AsString(result)
    cdef const uint64_t *begins = <const uint64_t *>starts.int64s()
    with nogil:
        call.status = ps_chunks_read(call.data, call.size, begins, n, out,
                                     &failed, &call.err)
    call.check(f"chunk {failed}: ")
    return result


def chunk_bounds(chunks, bint ordered, bint deprecated):
    """What the statistics of n records of CHUNK_FIELDS say (parquet.thrift, Statistics).

    `ordered`: min_value and max_value may be used; `deprecated`: min and max may, where those are
    not there.

    Returns
    -------
    tuple or None
        ``(places, null_counts, nan_counts)``: int64[4, n] offset and length of min, then of max,
        ABSENT where a chunk has not both; int64[n] counts, -1 where there is none. None where no
        chunk has statistics.
    """
    cdef _Call call = _Call(chunks)
    cdef size_t n = call.size // sizeof(ps_chunk)
    cdef bint found
    if call.size % sizeof(ps_chunk):
        raise CoreError(<int>PS_INVALID, None, f"{call.size} bytes are no records of chunks")
    places, nulls, nans = empty(n * 32), empty(n * 8), empty(n * 8)
    cdef const ps_chunk *records = <const ps_chunk *>call.int64s()
    cdef int64_t *at = int64s(places)
    cdef int64_t *null_counts = int64s(nulls)
    cdef int64_t *nan_counts = int64s(nans)
    with nogil:
        found = ps_chunks_bounds(records, n, ordered, deprecated, at,
                                 null_counts, nan_counts)
    return (places, nulls, nans) if found else None


def column_index(data, *, size_t max_arena=1 << 30):
    """Read a ColumnIndex (PageIndex.md).

    Returns
    -------
    tuple
        ``(n_pages, boundary_order, null_pages, min_offset, min_length, max_offset, max_length,
        null_counts, nan_counts)``: boundary_order 0 unordered, 1 ascending, 2 descending, as
        claimed; null_pages n bytes 0 or 1; the others int64[n], the counts None where the index has
        none. The bounds of a null page mean nothing.

    Raises
    ------
    CoreError
        Lists of different lengths, a negative count, an unknown boundary order: CORRUPT.
    """
    cdef _Call call = _Call(data)
    cdef ps_column_index c
    with nogil:
        call.status = ps_column_index_read(call.data, call.size, max_arena, &c, &call.err)
    call.check()
    cdef size_t size = c.n_pages * 8
    try:
        return (c.n_pages, c.boundary_order, pack(c.null_pages, c.n_pages),
                pack(c.min_offset, size), pack(c.min_length, size),
                pack(c.max_offset, size), pack(c.max_length, size),
                pack(c.null_counts, size), pack(c.nan_counts, size))
    finally:
        ps_column_index_clear(&c)


def page_bounds(data, first_row, bint required, bint trusted, bint repeated=False, *,
                size_t max_arena=1 << 30):
    """Read a ColumnIndex and check that it fits its OffsetIndex (PageIndex.md).

    Parameters
    ----------
    first_row : buffer of int64[n + 1]
        Where the pages begin, and the rows of the row group.
    required : bool
        The column has no nulls.
    trusted : bool
        Bounds may be compared by the type's order.
    repeated : bool
        The column lies in a list: its nulls are counted among values, not rows.

    Returns
    -------
    tuple
        ``(boundary_order, null_pages, places, null_counts, nan_counts, counts)`` of the n pages:
        places int64[4, n] offset and length of min, then of max, in `data`, ABSENT for null pages
        and where not trusted; counts the rows of each; the rest as `column_index` gives it.

    Raises
    ------
    CoreError
        As `column_index`, or another number of pages, or counts that do not fit: CORRUPT.
    """
    cdef _Call call = _Call(data), rows = _Call(first_row)
    cdef ps_column_index c
    cdef size_t n = rows.size // 8 - 1
    cdef int64_t *at
    cdef int64_t *figures
    cdef int64_t *nulls
    cdef const int64_t *starts
    if rows.size < 8 or rows.size % 8:
        raise CoreError(<int>PS_INVALID, None, "n pages need n + 1 rows of 8 bytes")
    places, counts = empty(n * 32), empty(n * 8)
    at, figures, starts = int64s(places), int64s(counts), <const int64_t *>rows.int64s()
    with nogil:
        call.status = ps_column_index_read(call.data, call.size, max_arena, &c, &call.err)
        if call.status == PS_OK:
            nulls = c.null_counts
            if repeated:
                c.null_counts = NULL
            call.status = ps_column_index_check(&c, starts, n, required,
                                                trusted, at, figures, &call.err)
            c.null_counts = nulls
            if call.status != PS_OK:
                ps_column_index_clear(&c)
    call.check()
    try:
        return (c.boundary_order, pack(c.null_pages, n), places, pack(c.null_counts, n * 8),
                pack(c.nan_counts, n * 8), counts)
    finally:
        ps_column_index_clear(&c)


def offset_index(data, int64_t num_rows, int64_t chunk_start, int64_t chunk_end, *,
                 size_t max_arena=1 << 30):
    """Read an OffsetIndex and check that it can be true (PageIndex.md).

    Parameters
    ----------
    num_rows : int
        Rows of the row group.
    chunk_start, chunk_end : int
        Bytes of the file that the column chunk takes, half-open.

    Returns
    -------
    tuple
        ``(n_pages, offset, compressed_size, first_row, unencoded)``: int64[n] each, unencoded
        None where the index has none. compressed_size counts the page header.

    Raises
    ------
    CoreError
        Rows that do not ascend from 0 below num_rows, pages that overlap or leave the chunk:
        CORRUPT, with the page named.
    """
    cdef _Call call = _Call(data)
    cdef ps_offset_index o
    with nogil:
        call.status = ps_offset_index_read(call.data, call.size, max_arena, &o, &call.err)
        if call.status == PS_OK:
            call.status = ps_offset_index_check(&o, num_rows, chunk_start, chunk_end, &call.err)
            if call.status != PS_OK:
                ps_offset_index_clear(&o)
    call.check()
    cdef size_t size = o.n_pages * 8
    try:
        return (o.n_pages, pack(o.offset, size), pack(o.compressed_size, size),
                pack(o.first_row, size), pack(o.unencoded_bytes, size))
    finally:
        ps_offset_index_clear(&o)


def offset_indexes(found, int64_t num_rows, *, size_t max_arena=1 << 30):
    """Read the OffsetIndex of several chunks of one row group, and check them as `offset_index` does.

    Parameters
    ----------
    found : sequence of (data, chunk_start, chunk_end)

    Returns
    -------
    list
        ``(n_pages, offset, compressed_size, first_row)`` for each, where first_row is int64[n + 1]
        and ends with `num_rows`; or the CoreError that says why it cannot be trusted.
    """
    cdef _Call call
    cdef ps_offset_index o
    cdef int64_t start, stop
    cdef size_t n
    cdef int64_t *rows
    cdef list out = []
    for data, first, last in found:
        call, start, stop = _Call(data), first, last
        with nogil:
            call.status = ps_offset_index_read(call.data, call.size, max_arena, &o, &call.err)
            if call.status == PS_OK:
                call.status = ps_offset_index_check(&o, num_rows, start, stop, &call.err)
                if call.status != PS_OK:
                    ps_offset_index_clear(&o)
        if call.status != PS_OK:
            out.append(call.error())
            continue
        try:
            n = o.n_pages
            first_row = empty(n * 8 + 8)
            rows = int64s(first_row)
            if n:
                memcpy(rows, o.first_row, n * 8)
            rows[n] = num_rows
            out.append((n, pack(o.offset, n * 8), pack(o.compressed_size, n * 8), first_row))
        finally:
            ps_offset_index_clear(&o)
    return out


def sums(found):
    """Whether ColumnIndexes and OffsetIndexes end with their checksum (docs/format.md).

    Parameters
    ----------
    found : sequence of (data, chunk_start, chunk_end)
        As for `offset_indexes`; the last is not used.

    Returns
    -------
    bytes
        SUM_NONE, SUM_FITS or SUM_DIFFERS for each.
    """
    cdef _Call call
    cdef int64_t start
    cdef int state
    cdef bytearray out = bytearray()
    for data, first, _ in found:
        call, start = _Call(data), first
        with nogil:
            state = ps_sum_check(call.data, call.size, <uint64_t>start)
        out.append(state)
    return bytes(out)


def page_header(data, size_t at=0):
    """Read the PageHeader that begins at byte `at` (parquet.thrift).

    Returns
    -------
    bytes
        One record of PAGE_HEADER_FIELDS; statistics lie in `data`, header_length counts from `at`.

    Raises
    ------
    CoreError
        TRUNCATED: try with more bytes. Negative sizes, no header of the page's own type:
        CORRUPT. `at` outside of `data`: INVALID.
    """
    cdef _Call call = _Call(data)
    cdef ps_page_header h
    if at > call.size:
        raise CoreError(<int>PS_INVALID, None, f"a page header at byte {at} of {call.size}")
    with nogil:
        call.status = ps_page_header_read(call.data + at, call.size - at, &h, &call.err)
    call.check("", at)
    shift(&h.statistics.max_offset, at)
    shift(&h.statistics.min_offset, at)
    shift(&h.statistics.max_value_offset, at)
    shift(&h.statistics.min_value_offset, at)
    return pack(&h, sizeof(h))
