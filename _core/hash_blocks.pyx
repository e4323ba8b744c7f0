# cython: language_level=3, boundscheck=False, wraparound=False, freethreading_compatible=True
"""Blocks of a lookup index: the rows of hashes (docs/format.md, kind lookup)."""
from pageseek._core.header cimport PS_INVALID, PS_OK, ps_error, ps_status
from pageseek._core.held cimport Held
from pageseek._core.status cimport check
from pageseek.base.errors import CoreError

from cpython.bytes cimport PyBytes_AsString, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

cdef extern from "pageseek.h" nogil:
    enum: PS_HASH_SLOTS
    ctypedef struct ps_hash_block:
        const uint8_t *data
        size_t size
        uint32_t n_entries, checksum
        const uint64_t *hashes
        size_t n_hashes
    size_t ps_hash_block_size(uint32_t, int)
    ps_status ps_hash_block_find(const ps_hash_block *, int, uint8_t *, size_t *, ps_error *)
    ps_status ps_hash_block_rows(const ps_hash_block *, int, int64_t, const uint8_t *, int64_t *, size_t *,
                                 ps_error *)

SLOTS = PS_HASH_SLOTS


def find(blocks, hashes, int row_bits, int64_t num_rows):
    """The rows that may have a value with one of some hashes.

    Parameters
    ----------
    blocks : sequence of (buffer, int, int, int)
        The bytes of each block, its entries, the low half of the XXH64 of its bytes, and how many of the hashes are looked up in
        it: the next ones.
    hashes : buffer of uint64[n]
    row_bits : int
        Bits of a row, 1 to 56.
    num_rows : int
        Of the file.

    Returns
    -------
    bytes
        int64 each: for each block the rows in the order of its entries.

    Raises
    ------
    CoreError
        A block whose size, checksum or slots are wrong, or that names a row that the file has not: CORRUPT. Other counts of
        hashes: INVALID.
    """
    cdef Held keys = Held(hashes), data
    blocks = tuple(blocks)  # nobody else changes it
    cdef size_t n = <size_t>len(blocks), i = 0, first = 0, bits = 0, n_found = 0, n_hashes = keys.size // 8
    cdef const uint64_t *wanted = <const uint64_t *>keys.numbers(n_hashes)
    cdef ps_hash_block *block
    cdef uint8_t *found = NULL
    cdef int64_t *out
    cdef ps_error err
    cdef ps_status status = PS_OK
    if num_rows < 0:
        raise CoreError(<int>PS_INVALID, None, f"{num_rows} rows")
    held = []
    block = <ps_hash_block *>calloc(n + 1, sizeof(ps_hash_block))
    if block == NULL:
        raise MemoryError
    try:
        for part, entries, checksum, count in blocks:
            data = Held(part)
            held.append(data)
            block[i].data, block[i].size = data.data, data.size
            block[i].n_entries, block[i].checksum, block[i].n_hashes = entries, checksum, count
            if block[i].n_hashes > n_hashes - first:
                raise CoreError(<int>PS_INVALID, None, f"{n_hashes} hashes for {n} blocks")
            block[i].hashes = wanted + first
            first += block[i].n_hashes
            bits += (block[i].n_entries + 7) // 8
            i += 1
        if first != n_hashes:
            raise CoreError(<int>PS_INVALID, None, f"{n_hashes} hashes for {n} blocks")
        found = <uint8_t *>calloc(bits + 1, 1)
        if found == NULL:
            raise MemoryError
        with nogil:
            bits = 0
            for i in range(n):
                status = ps_hash_block_find(block + i, row_bits, found + bits, &n_found, &err)
                if status != PS_OK:
                    break
                bits += (block[i].n_entries + 7) // 8
        check(status, &err)
        made = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>(8 * n_found))
        out = <int64_t *>PyBytes_AsString(made)
        with nogil:
            bits, n_found = 0, 0
            for i in range(n):
                status = ps_hash_block_rows(block + i, row_bits, num_rows, found + bits, out, &n_found, &err)
                if status != PS_OK:
                    break
                bits += (block[i].n_entries + 7) // 8
        check(status, &err)
        return made
    finally:
        free(found)
        free(block)


cdef size_t FIELDS = 8  # of a place


def find_in_each(data, places, hashes):
    """The rows of several files that may have a value with one of some hashes, by blocks of these files.

    Parameters
    ----------
    places : buffer of int64[n, 8]
        Of each block where in `data` it begins, and its bytes; its entries, the low half of the XXH64 of its bytes, the bits
        of a row, and the rows of its file; the first of the hashes that are looked up in it, and how many these are.
    hashes : buffer of uint64[m]

    Returns
    -------
    tuple of (bytes, bytes)
        int64 each: how many rows each block has, -1 where it is wrong; and these rows.

    Raises
    ------
    CoreError
        Places outside of `data`, or of the hashes: INVALID.
    """
    cdef Held held = Held(data), at = Held(places), keys = Held(hashes)
    cdef size_t n = at.size // (8 * FIELDS), i, bits = 0, n_found = 0, n_rows = 0, before, n_hashes = keys.size // 8
    cdef const int64_t *place = at.numbers(FIELDS * n)
    cdef const uint64_t *wanted = <const uint64_t *>keys.numbers(n_hashes)
    cdef const int64_t *one
    cdef ps_hash_block *block = NULL
    cdef uint8_t *found = NULL
    cdef int64_t *counts
    cdef int64_t *rows
    cdef ps_error err
    told = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>(8 * n))
    counts = <int64_t *>PyBytes_AsString(told)
    block = <ps_hash_block *>calloc(n + 1, sizeof(ps_hash_block))
    if block == NULL:
        raise MemoryError
    try:
        for i in range(n):
            one = place + FIELDS * i
            if one[0] < 0 or one[1] < 0 or <size_t>one[0] > held.size \
                    or <size_t>one[1] > held.size - <size_t>one[0]:
                raise CoreError(<int>PS_INVALID, None, f"block {i} lies outside")
            if one[6] < 0 or one[7] < 0 or <size_t>one[6] > n_hashes or <size_t>one[7] > n_hashes - <size_t>one[6]:
                raise CoreError(<int>PS_INVALID, None, f"{one[7]} hashes from {one[6]} on, of {n_hashes}")
            counts[i] = -1
            if one[5] < 0 or not 1 <= one[4] <= 56 or not 0 <= one[2] <= min(one[1], <int64_t>0xffffffff) \
                    or ps_hash_block_size(<uint32_t>one[2], <int>one[4]) != <size_t>one[1]:
                continue
            block[i].data, block[i].size = held.data + one[0], <size_t>one[1]
            block[i].n_entries, block[i].checksum = <uint32_t>one[2], <uint32_t>one[3]
            block[i].hashes, block[i].n_hashes = wanted + one[6], <size_t>one[7]
            bits += (block[i].n_entries + 7) // 8
            counts[i] = 0
        found = <uint8_t *>calloc(bits + 1, 1)
        if found == NULL:
            raise MemoryError
        with nogil:
            bits = 0
            for i in range(n):
                if counts[i] == 0:
                    before = n_found
                    if ps_hash_block_find(block + i, <int>place[FIELDS * i + 4], found + bits, &n_found,
                                          &err) != PS_OK:
                        counts[i], n_found = -1, before
                    else:
                        counts[i] = <int64_t>(n_found - before)
                    bits += (block[i].n_entries + 7) // 8
        made = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>(8 * n_found))
        rows = <int64_t *>PyBytes_AsString(made)
        with nogil:
            bits = 0
            for i in range(n):
                if counts[i] > 0:
                    one, before = place + FIELDS * i, n_rows
                    if ps_hash_block_rows(block + i, <int>one[4], one[5], found + bits, rows, &n_rows,
                                          &err) != PS_OK:
                        counts[i], n_rows = -1, before
                bits += (block[i].n_entries + 7) // 8
        return told, made[:8 * n_rows]
    finally:
        free(found)
        free(block)
