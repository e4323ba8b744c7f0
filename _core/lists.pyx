# cython: language_level=3, boundscheck=False, wraparound=False, freethreading_compatible=True
"""Places of the indexes of many files, and lists of different values (docs/format.md)."""
from pageseek._core.header cimport PS_INVALID, PS_OK, ps_error, ps_status
from pageseek._core.held cimport Held
from pageseek._core.status cimport check
from pageseek.base.errors import CoreError

from cpython.bytes cimport PyBytes_AsString, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX

cdef extern from "pageseek.h" nogil:
    enum: PS_ENTRY_PARTS
    ctypedef struct ps_entry_form:
        const uint8_t *parts[6]
        size_t lengths[6]
        size_t longest
    ctypedef struct ps_entry_file:
        int64_t value, value_length, tail, tail_length, size, footer_start, first_group, num_groups
    ctypedef struct ps_entry:
        int64_t state, offset, length
    ctypedef enum:
        PS_ENTRY_NONE, PS_ENTRY_SOUND, PS_ENTRY_FAR, PS_ENTRY_DOUBTFUL, PS_ENTRY_UNREAD
    ps_status ps_entries_find(const uint8_t *, size_t, const uint8_t *, size_t, const uint8_t *, size_t, size_t,
                              const ps_entry_form *, const ps_entry_file *, size_t, ps_entry *, ps_error *)
    ctypedef struct ps_list:
        size_t n_groups, n_values, width, values_size
        const uint8_t *flags
        const uint8_t *has
        const uint8_t *ends
        const uint8_t *values
    ps_status ps_list_read(const uint8_t *, size_t, size_t, ps_list *, ps_error *)
    void ps_list_places(const ps_list *, int64_t, int64_t *, int64_t *)
    void ps_list_exact(const ps_list *, uint8_t *)
    void ps_list_evaluate(const ps_list *, const uint8_t *, bint, bint, bint, uint8_t *, uint8_t *, uint8_t *)

cdef size_t FIELDS = 3
ENTRY_FIELDS = "state", "offset", "length", "checksum", "chunks"
NONE, SOUND, FAR, DOUBTFUL, UNREAD = PS_ENTRY_NONE, PS_ENTRY_SOUND, PS_ENTRY_FAR, PS_ENTRY_DOUBTFUL, PS_ENTRY_UNREAD
if sizeof(ps_entry) != 8 * len(ENTRY_FIELDS):
    raise ImportError("pageseek._core.lists disagrees with embedded.h")


def cut(data, places):
    """Parts of a buffer, one behind the other.

    Parameters
    ----------
    places : buffer of int64[n, 2]
        Where each begins, and its bytes.
    """
    cdef Held given = Held(data), at = Held(places)
    cdef size_t n = at.size // 16, i, whole = 0
    cdef const int64_t *place = at.numbers(2 * n)
    for i in range(n):
        if place[2 * i] < 0 or place[2 * i + 1] < 0 or <size_t>place[2 * i] > given.size \
                or <size_t>place[2 * i + 1] > given.size - <size_t>place[2 * i]:
            raise CoreError(<int>PS_INVALID, None, f"{place[2 * i + 1]} bytes at {place[2 * i]} of {given.size}")
        if <size_t>place[2 * i + 1] > <size_t>PY_SSIZE_T_MAX - whole:  # parts may overlap
            raise MemoryError
        whole += <size_t>place[2 * i + 1]
    made = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>whole)
    cdef char *to = PyBytes_AsString(made)
    for i in range(n):
        if place[2 * i + 1]:
            memcpy(to, given.data + place[2 * i], <size_t>place[2 * i + 1])
        to += place[2 * i + 1]
    return made


def find(values, tails, figures, size_t figure_size, parts, size_t longest, files):
    """The entry of one index in the directory of each of several files, and whether its bytes are sound.

    Parameters
    ----------
    values, tails : buffer
        In which the directories lie, and the last bytes of the files.
    figures : buffer
        `figure_size` bytes for each row group, of which fingerprints are.
    parts : sequence of bytes
        What stands between the numbers of an entry.
    longest : int
        Bytes of a directory that is looked at.
    files : buffer of int64[n, 8]
        Where the directory lies in `values`, or ABSENT, and its length; where the last bytes lie in `tails`, and
        how many; the size of the file, and where in it the footer begins; the first of its row groups, and how many.

    Returns
    -------
    bytes
        int64[n, ENTRY_FIELDS]
    """
    cdef Held v = Held(values), t = Held(tails), f = Held(figures), at = Held(files)
    cdef list held = [Held(part) for part in parts]
    cdef size_t n = at.size // sizeof(ps_entry_file), i
    cdef ps_entry_form form
    cdef ps_error err
    cdef ps_status status
    if len(held) != PS_ENTRY_PARTS or at.size % sizeof(ps_entry_file):
        raise CoreError(<int>PS_INVALID, None, f"{len(held)} parts, {at.size} bytes of files")
    for i in range(PS_ENTRY_PARTS):
        form.parts[i], form.lengths[i] = (<Held>held[i]).data, (<Held>held[i]).size
    form.longest = longest
    made = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>(n * sizeof(ps_entry)))
    cdef ps_entry *out = <ps_entry *>PyBytes_AsString(made)
    at.numbers(8 * n)
    with nogil:
        status = ps_entries_find(v.data, v.size, t.data, t.size, f.data, f.size, figure_size, &form,
                                 <const ps_entry_file *>at.data, n, out, &err)
    check(status, &err)
    return made


cdef class Lists:
    """The lists that lie in `data`, which is held.

    Parameters
    ----------
    places : buffer of int64[n, 3]
        Where each begins, its bytes, and the row groups of the file that it is of.

    Attributes
    ----------
    counts : memoryview of int64[n]
        The values of each; -1 of one that makes no sense.
    """

    cdef Held data
    cdef bytes places
    cdef readonly object counts
    cdef bytes counted  # what `counts` shows
    cdef const int64_t *at
    cdef const int64_t *known
    cdef size_t n, n_values, n_groups, most

    def __cinit__(self, data, places):
        self.data, self.places = Held(data), bytes(memoryview(places))
        self.n = len(self.places) // 8 // FIELDS
        if len(self.places) != <Py_ssize_t>(self.n * FIELDS * 8):
            raise CoreError(<int>PS_INVALID, None, f"{len(self.places)} bytes of places")
        self.at = <const int64_t *>PyBytes_AsString(self.places)
        cdef bytes made = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>self.n * 8)
        cdef int64_t *counts = <int64_t *>PyBytes_AsString(made)
        cdef size_t i
        cdef ps_list one
        for i in range(self.n):
            self._check_place(i)
        with nogil:
            for i in range(self.n):
                counts[i] = -1
                if self._read(i, &one, NULL) == PS_OK:
                    counts[i] = <int64_t>one.n_values
                    self.n_values += one.n_values
                    self.most = one.n_values if one.n_values > self.most else self.most
        self.counts, self.counted, self.known = memoryview(made).cast("q"), made, counts

    cdef int _check_place(self, size_t i) except -1:
        cdef const int64_t *at = self.at + FIELDS * i
        if at[0] < 0 or at[1] < 0 or at[2] < 0 or <size_t>at[0] > self.data.size \
                or <size_t>at[1] > self.data.size - <size_t>at[0]:
            raise CoreError(<int>PS_INVALID, None, f"a list of {at[1]} bytes at {at[0]}, of {at[2]} row groups")
        if <size_t>at[2] > <size_t>PY_SSIZE_T_MAX - self.n_groups:
            raise MemoryError
        self.n_groups += <size_t>at[2]
        return 0

    cdef ps_status _read(self, size_t i, ps_list *out, ps_error *err) noexcept nogil:
        cdef const int64_t *at = self.at + FIELDS * i
        return ps_list_read(self.data.data + at[0], <size_t>at[1], <size_t>at[2], out, err)

    cdef bint _read_again(self, size_t i, ps_list *out) noexcept nogil:
        """Whether a list is sound, and as long as the memory that was made for it."""
        return self.known[i] >= 0 and self._read(i, out, NULL) == PS_OK and out.n_values == <size_t>self.known[i]

    def check(self, size_t i):
        """Raise the CoreError that says why the i-th list is damaged, if it is."""
        cdef ps_list one
        cdef ps_error err
        if i >= self.n:
            raise IndexError(i)
        check(self._read(i, &one, &err), &err)

    def values(self):
        """Offset in `data` and length of each value of the sound lists: int64[2, n_values]."""
        made = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>self.n_values * 16)
        cdef int64_t *offsets = <int64_t *>PyBytes_AsString(made)
        cdef int64_t *lengths = offsets + self.n_values
        cdef size_t i, at = 0
        cdef ps_list one
        with nogil:
            for i in range(self.n):
                if self._read_again(i, &one):
                    ps_list_places(&one, one.values - self.data.data, offsets + at, lengths + at)
                at += <size_t>self.known[i] if self.known[i] > 0 else 0
        return made

    def exact(self):
        """One byte for each row group of the first file, of the second, and so on: whether all its values are known, and no
        others.
        """
        made = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>self.n_groups)
        cdef uint8_t *out = <uint8_t *>PyBytes_AsString(made)
        cdef size_t i, k
        cdef ps_list one
        with nogil:
            for i in range(self.n):
                for k in range(<size_t>self.at[FIELDS * i + 2]):
                    out[k] = 0
                if self._read_again(i, &one):
                    ps_list_exact(&one, out)
                out += self.at[FIELDS * i + 2]
        return made

    def evaluate(self, passes, bint null_passes, bint floats, bint nan_passes):
        """Evaluate a test by the lists, for the row groups of the first file, of the second, and so on.

        Parameters
        ----------
        passes : buffer of uint8[n_values]
            Whether each value does, in the order of `values`.
        floats : bool
            Whether there can be NaN.

        Returns
        -------
        tuple of (bytes, bytes)
            0 or 1 for each row group: some row may pass; every row does.
        """
        cdef Held held = Held(passes)
        if held.size < self.n_values:
            raise CoreError(<int>PS_INVALID, None, f"{held.size} verdicts on {self.n_values} values")
        may = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>self.n_groups)
        must = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>self.n_groups)
        space = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>(self.most + 7) // 8)
        cdef uint8_t *some = <uint8_t *>PyBytes_AsString(may)
        cdef uint8_t *every = <uint8_t *>PyBytes_AsString(must)
        cdef uint8_t *bits = <uint8_t *>PyBytes_AsString(space)
        cdef const uint8_t *verdicts = held.data
        cdef size_t i, k, groups
        cdef ps_list one
        with nogil:
            for i in range(self.n):
                groups = <size_t>self.at[FIELDS * i + 2]
                if self._read_again(i, &one):
                    ps_list_evaluate(&one, verdicts, null_passes, floats, nan_passes, bits, some, every)
                    verdicts += one.n_values
                else:
                    verdicts += self.known[i] if self.known[i] > 0 else 0
                    for k in range(groups):
                        some[k], every[k] = 1, 0
                some += groups
                every += groups
        return may, must
