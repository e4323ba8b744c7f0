# cython: language_level=3, boundscheck=False, wraparound=False, freethreading_compatible=True
"""A few rows of one row group of a local file by tests on its leaves: read, decoded, filtered and made a batch by one call."""
import os

from pageseek._core.codecs cimport PS_CODEC_OTHER, CodecSettings, ps_codec
from pageseek._core.convert cimport fill_spec
from pageseek._core.header cimport (
    PS_INVALID, PS_OK, ps_convert_check, ps_error, ps_leaf_spec, ps_range, ps_selection, ps_shared,
    ps_shared_use,
)
from pageseek._core.leaf cimport CoreCall, ps_column, ps_column_drop, ps_page_task
from pageseek._core.memory cimport shared
from pageseek._core.search cimport PS_PREFIX, ps_nan, ps_op, ps_values
from pageseek._core.status cimport check
from pageseek.base.errors import CoreError

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uintptr_t
from libc.string cimport memset


cdef extern from "pageseek.h" nogil:
    const char *ps_utf8_choose(bint)
    ps_error *NO_ERROR "NULL"
    int PS_BYTES, PS_LARGE_BYTES, PS_FIXED
    int ps_selection_check(const ps_selection *, ps_error *)
    ctypedef struct ps_source:
        pass
    ctypedef struct ps_point_leaf:
        ps_leaf_spec spec
        ps_codec codec
        size_t step
        int64_t max_page
        bint always_compressed, output, coded
        size_t n_pages
        const int64_t *first_row
        const int64_t *offset
        const int64_t *size
        int64_t dictionary_at
        size_t dictionary_length
    ctypedef struct ps_point_test:
        size_t leaf
        ps_op op
        bint negate
        ps_nan nan
        ps_values literals
    ctypedef struct ps_point_count:
        size_t pages, dictionaries, bytes
    ctypedef struct ps_point:
        const ps_point_leaf *leaves
        size_t n_leaves
        const ps_point_test *tests
        size_t n_tests
        const ps_range *ranges
        size_t n_ranges
        int64_t limit
        size_t most, threads
        const ps_source *source
        int64_t rows
        ps_column *columns
        ps_point_count *counts
        size_t requests
    bint ps_point_read(ps_point *)

cdef extern from "files.h" nogil:
    int PS_FILES

cdef extern from * nogil:
    """
    static inline ps_source file_source(int *fd) {
        return (ps_source){ps_file_read, fd};
    }
    static bool read_point(void *of) { return ps_point_read((ps_point *)of); }
    static inline void call_point(ps_page_task *task, ps_point *point, size_t cost) {
        task->call = read_point;
        task->of = point;
        task->hint = cost;
    }
    """
    ps_source file_source(int *fd)
    void call_point(ps_page_task *, ps_point *, size_t)

cdef extern from "arrow_batch.h" nogil:
    cdef struct ArrowArray:
        void (*release)(ArrowArray *) noexcept
    bint ps_batch_make(ArrowArray *, ps_column *, const ps_point_leaf *, const size_t *, size_t, int64_t)


cdef ps_shared state = shared()
ps_shared_use(&state)
ps_utf8_choose(os.environ.get("PAGESEEK_PLAIN_C") == "1")

AVAILABLE = bool(PS_FILES)  # whether this system has the calls that `PointReader` makes


@cython.final
cdef class Batch:
    """Rows that a PointReader has found: a record batch of Arrow's C data interface at `address`, until someone takes it."""

    cdef ArrowArray array
    cdef readonly int64_t num_rows

    @property
    def address(self):
        return <uintptr_t>&self.array

    def __dealloc__(self):
        if self.array.release != NULL:
            self.array.release(&self.array)


cdef enum:
    MOST_TESTS = 16
    MOST_VIEWS = 3  # of a leaf

MAX_TESTS = <int>MOST_TESTS  # of one call


@cython.final
@cython.no_gc  # as LeafBuffers of leaf.pyx
cdef class PointReader:
    """Flat leaves of one row group whose pages an offset index locates. Threads may share it.

    Parameters
    ----------
    leaves : list of tuple
        For each leaf: (form as of LeafDecoder, greatest definition level, likely rows, CodecSettings, first row of each page
        and the number of rows, offset of each page, size of each page, offset of the dictionary page, its size, whether all
        pages need it). The three are int64 buffers that nobody can change, such as bytes; they are held.
    output : list of int
        The leaves that are wanted, in the order of the batch. The others are tested only.

    Raises
    ------
    CoreError
        A leaf that cannot be decoded, or buffers that do not fit each other.
    """

    cdef ps_point_leaf *leaves
    cdef Py_buffer *views
    cdef size_t *order
    cdef size_t n, n_views, n_output

    def __cinit__(self, list leaves not None, list output not None):
        cdef size_t n = len(leaves), n_output = len(output), i, at
        cdef ps_point_leaf *leaf
        cdef CodecSettings codec
        cdef ps_error err
        self.leaves = <ps_point_leaf *>PyMem_Calloc(n + 1, sizeof(ps_point_leaf))
        self.views = <Py_buffer *>PyMem_Calloc(MOST_VIEWS * n + 1, sizeof(Py_buffer))
        self.order = <size_t *>PyMem_Calloc(n_output + 1, sizeof(size_t))
        if self.leaves == NULL or self.views == NULL or self.order == NULL:
            raise MemoryError
        for i in range(n):
            form, max_def, likely, settings, starts, offsets, sizes, dictionary_at, dictionary_length, coded = leaves[i]
            leaf, codec = &self.leaves[i], settings
            fill_spec(&leaf.spec, form, codec.max_output)
            leaf.spec.max_def, leaf.spec.likely_rows, leaf.spec.lsb_levels = max_def, likely, codec.lsb_levels
            check(ps_convert_check(&leaf.spec, &err), &err)
            leaf.codec, leaf.step, leaf.max_page = codec.codec, codec.step, codec.max_page
            leaf.always_compressed = codec.always_compressed
            leaf.first_row, at = self.numbers(starts), self.n_views - 1
            leaf.offset, leaf.size = self.numbers(offsets), self.numbers(sizes)
            leaf.n_pages = <size_t>self.views[at + 1].len // 8
            leaf.dictionary_at, leaf.dictionary_length, leaf.coded = dictionary_at, dictionary_length, coded
            if (codec.codec == PS_CODEC_OTHER or not leaf.n_pages or self.views[at].len != self.views[at + 1].len + 8
                    or self.views[at + 2].len != self.views[at + 1].len or not ascends(leaf)):
                raise CoreError(<int>PS_INVALID, None, "pages that cannot be read by their index")
        self.n = n
        for i in range(n_output):
            at = output[i]
            if at >= n or self.leaves[at].output:
                raise CoreError(<int>PS_INVALID, None, "a leaf comes out once")
            self.leaves[at].output, self.order[i] = True, at
        self.n_output = n_output

    cdef const int64_t *numbers(self, data) except NULL:
        """The numbers of a buffer, which is held."""
        cdef Py_buffer *view = &self.views[self.n_views]
        PyObject_GetBuffer(data, view, PyBUF_SIMPLE)
        self.n_views += 1
        if not view.readonly or <uintptr_t>view.buf % 8 or view.len % 8 or view.buf == NULL:
            raise CoreError(<int>PS_INVALID, None, "no int64 numbers that stay as they are")
        return <const int64_t *>view.buf

    def __dealloc__(self):
        cdef size_t i
        for i in range(self.n_views):
            PyBuffer_Release(&self.views[i])
        PyMem_Free(self.leaves)
        PyMem_Free(self.views)
        PyMem_Free(self.order)

    def read(self, int fd, ranges not None, list tests not None, int64_t limit, size_t most, size_t threads=1):
        """The rows that pass all tests, as a Batch. None: something needs another way, which tells what is wrong if it fails.

        Parameters
        ----------
        fd : int
            The descriptor of the file.
        ranges : buffer
            The rows in question: int64 pairs, as of `RowRanges.ranges`, in a buffer that nobody can change.
        tests : list of (int, int, bool, int, tuple)
            For each test its leaf, op, whether it is negated, NaN rule, and literals (n, values, offsets or None); MAX_TESTS at
            most.
        limit : int
            Rows at most.
        most : int
            Bytes that may be read of tested leaves, and of the others.
        threads : int
            The greatest number of threads. Few bytes are read by one.
        """
        cdef ps_point_test wanted[MOST_TESTS]
        cdef Py_buffer views[2 * MOST_TESTS + 1]
        cdef size_t n = len(tests), n_views = 0, i
        cdef ps_point point
        cdef ps_source source
        cdef ps_column *columns = NULL
        cdef Batch batch = Batch.__new__(Batch)
        cdef bint done = False
        cdef int opened = fd
        if n > MOST_TESTS:
            raise CoreError(<int>PS_INVALID, None, f"{n} tests, {MAX_TESTS} at most")
        memset(wanted, 0, sizeof(wanted))
        memset(&point, 0, sizeof(point))
        try:
            PyObject_GetBuffer(ranges, &views[0], PyBUF_SIMPLE)
            n_views = 1
            check_ranges(&views[0])
            for i in range(n):
                n_views = self.take_test(tests[i], &wanted[i], views, n_views)
            columns = <ps_column *>PyMem_Calloc(self.n + 1, sizeof(ps_column))
            if columns == NULL:
                raise MemoryError
            source = file_source(&opened)
            point.leaves, point.n_leaves, point.tests, point.n_tests = self.leaves, self.n, wanted, n
            point.ranges, point.n_ranges = <const ps_range *>views[0].buf, <size_t>views[0].len // 16
            point.limit, point.most = limit, most
            point.threads = threads
            point.source, point.columns = &source, columns
            with nogil:
                done = ps_point_read(&point)
                if done and point.rows > 0:
                    done = ps_batch_make(&batch.array, columns, self.leaves, self.order, self.n_output, point.rows)
            batch.num_rows = point.rows
        finally:
            for i in range(n_views):
                PyBuffer_Release(&views[i])
            if columns != NULL:
                for i in range(self.n):  # what no batch has taken
                    ps_column_drop(&columns[i])
                PyMem_Free(columns)
        return batch if done else None

    cdef size_t take_test(self, tuple given, ps_point_test *test, Py_buffer *views, size_t n_views) except 0:
        """Fill a test. Its buffers are held in `views`, whose new number is returned."""
        leaf, op, negate, nan, (n, values, offsets) = given
        cdef int64_t count = n
        cdef ps_leaf_spec *spec
        cdef size_t unit
        test.leaf = leaf
        if test.leaf >= self.n or count < 0:
            raise CoreError(<int>PS_INVALID, None, "a test of no leaf")
        spec = &self.leaves[test.leaf].spec
        test.op, test.negate, test.nan = <ps_op>op, negate, <ps_nan>nan
        test.literals.kind, test.literals.width, test.literals.n = spec.kind, spec.width, count
        PyObject_GetBuffer(values, &views[n_views], PyBUF_SIMPLE)
        test.literals.values, test.literals.values_size = <const uint8_t *>views[n_views].buf, <size_t>views[n_views].len
        n_views += 1
        if offsets is not None:
            PyObject_GetBuffer(offsets, &views[n_views], PyBUF_SIMPLE)
            n_views += 1
            if spec.kind == PS_FIXED:  # literals of any length
                test.literals.kind = PS_BYTES
            unit = 8 if spec.kind == PS_LARGE_BYTES else 4
            if <size_t>views[n_views - 1].len // unit <= <size_t>count:
                raise CoreError(<int>PS_INVALID, None, "literals without their offsets")
            test.literals.offsets = views[n_views - 1].buf
        elif count and (spec.kind == PS_BYTES or spec.kind == PS_LARGE_BYTES):
            raise CoreError(<int>PS_INVALID, None, "literals without their offsets")
        elif test.op == PS_PREFIX:
            raise CoreError(<int>PS_INVALID, None, "a prefix of values that have none")
        return n_views


@cython.final
@cython.no_gc  # as CoreCall
cdef class PointTask(CoreCall):
    """The rows of some ranges of one row group, all leaves of a PointReader, as the work of one thread: an item of `read_pages`.

    Its result is a Batch. None: something needs another way, which tells what is wrong if it fails.

    Parameters
    ----------
    reader : PointReader
        The leaves.
    fd : int
        The descriptor of the file.
    keeps_open : object
        Closes the descriptor when nobody has it any more.
    ranges : buffer
        The rows, as for `PointReader.read`.
    most : int
        Bytes that may be read.
    cost : int
        About the bytes that will be.

    Attributes
    ----------
    counts : list of (int, int, int)
        Of each leaf: the data pages, dictionary pages and bytes that were read.
    requests : int
        The reads of the file.
    """

    cdef PointReader reader
    cdef object keeps_open
    cdef int fd
    cdef size_t cost
    cdef ps_point point
    cdef ps_source source
    cdef Py_buffer view
    cdef bint holds

    def __cinit__(self, PointReader reader not None, int fd, keeps_open, ranges not None, size_t most, size_t cost):
        self.reader, self.fd, self.keeps_open, self.cost = reader, fd, keeps_open, cost
        PyObject_GetBuffer(ranges, &self.view, PyBUF_SIMPLE)
        self.holds = True
        check_ranges(&self.view)
        self.source = file_source(&self.fd)
        self.point.leaves, self.point.n_leaves = reader.leaves, reader.n
        self.point.ranges = <const ps_range *>self.view.buf
        self.point.n_ranges = <size_t>self.view.len // 16
        self.point.limit, self.point.most, self.point.threads = INT64_MAX, most, 1
        self.point.source = &self.source
        self.point.columns = <ps_column *>PyMem_Calloc(reader.n + 1, sizeof(ps_column))
        self.point.counts = <ps_point_count *>PyMem_Calloc(reader.n + 1, sizeof(ps_point_count))
        if self.point.columns == NULL or self.point.counts == NULL:
            raise MemoryError

    cdef int fill(self, ps_page_task *task) except -1:
        self.drop()
        memset(self.point.counts, 0, self.reader.n * sizeof(ps_point_count))
        self.point.requests = 0
        call_point(task, &self.point, self.cost)
        return 0

    cdef object taken(self, bint done):
        cdef Batch batch
        if not done:
            return None
        batch = Batch.__new__(Batch)
        batch.num_rows = self.point.rows
        if self.point.rows > 0 and not ps_batch_make(
            &batch.array, self.point.columns, self.reader.leaves, self.reader.order, self.reader.n_output, self.point.rows
        ):
            raise MemoryError
        return batch

    cdef void drop(self) noexcept:
        cdef size_t i
        if self.point.columns != NULL:
            for i in range(self.reader.n):  # what no batch has taken
                ps_column_drop(&self.point.columns[i])

    @property
    def counts(self):
        cdef size_t i
        self.enter()  # else threads of the core count
        try:
            return [
                (self.point.counts[i].pages, self.point.counts[i].dictionaries, self.point.counts[i].bytes)
                for i in range(self.reader.n)
            ]
        finally:
            self.leave()

    @property
    def requests(self):
        return self.point.requests

    def __dealloc__(self):
        self.drop()
        if self.holds:
            PyBuffer_Release(&self.view)
        PyMem_Free(self.point.columns)
        PyMem_Free(self.point.counts)


cdef int check_ranges(const Py_buffer *view) except -1:
    """Raise CoreError unless a buffer has ranges of rows that nobody can change."""
    cdef ps_selection rows
    memset(&rows, 0, sizeof(rows))
    if not view.readonly or <uintptr_t>view.buf % 8 or view.len % 16:
        raise CoreError(<int>PS_INVALID, None, "no pairs of int64")
    rows.ranges, rows.n_ranges = <const ps_range *>view.buf, <size_t>view.len // 16
    if ps_selection_check(&rows, NO_ERROR) != PS_OK:
        raise CoreError(<int>PS_INVALID, None, "rows out of order")
    return 0


cdef bint ascends(const ps_point_leaf *leaf) noexcept:
    """Whether pages begin at row 0 and none before the one in front of it."""
    cdef size_t i
    if leaf.first_row[0] != 0:
        return False
    for i in range(leaf.n_pages):
        if leaf.first_row[i + 1] < leaf.first_row[i]:
            return False
    return True
