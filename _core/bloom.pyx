# cython: language_level=3, boundscheck=False, wraparound=False, freethreading_compatible=True
"""Split-block Bloom filters: headers, hashes of literals, blocks (BloomFilter.md)."""
from pageseek._core.convert import KIND_WIDTH
from pageseek.base.errors import CoreError

from pageseek._core.convert cimport fill_spec
from pageseek._core.header cimport PS_INVALID, PS_OK, ps_error, ps_leaf_spec, ps_status
from pageseek._core.held cimport Held
from pageseek._core.search cimport ps_values
from pageseek._core.status cimport check as checked

from cpython.bytes cimport PyBytes_AsString, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcmp, memset

cdef extern from "pageseek.h" nogil:
    int PS_BLOOM_BLOCK
    uint64_t ps_xxh64(const uint8_t *, size_t)
    void ps_xxh64_pieces(const uint8_t *, size_t, size_t, uint64_t, uint8_t *)
    ps_status ps_bloom_header_read(const uint8_t *, size_t, size_t *, size_t *, ps_error *)
    ps_status ps_bloom_hashable(const ps_leaf_spec *, ps_error *)
    ps_status ps_bloom_hashes(const ps_leaf_spec *, const ps_values *, uint64_t *, size_t *, ps_error *)
    void ps_bloom_places(const uint64_t *, size_t, uint64_t, uint64_t *)
    ps_status ps_bloom_check(const uint8_t *, size_t, const uint64_t *, const uint64_t *, size_t, size_t *, ps_error *)

BLOCK = PS_BLOOM_BLOCK


def header(data):
    """Read the BloomFilterHeader that `data` begins with.

    Returns
    -------
    tuple of (int, int)
        Bytes of the header, and of the bitset behind it: a multiple of BLOCK.

    Raises
    ------
    CoreError
        TRUNCATED: come again with more bytes. UNSUPPORTED: another algorithm, hash or compression. CORRUPT: not
        of whole blocks, or no header.
    """
    cdef Held held = Held(data)
    cdef size_t length = 0, size = 0
    cdef ps_error err
    cdef ps_status status
    with nogil:
        status = ps_bloom_header_read(held.data, held.size, &length, &size, &err)
    checked(status, &err)
    return length, size


def hashable(tuple form):
    """Whether equal values of a form (ps_leaf_spec) have equal PLAIN bytes, and so one hash."""
    cdef ps_leaf_spec spec
    cdef ps_error err
    fill_spec(&spec, form, 0)
    return ps_bloom_hashable(&spec, &err) == PS_OK


def hashes(tuple form, literals):
    """XXH64 of the bytes that literals (n, values, offsets or None) of a form have in a file.

    Returns
    -------
    bytes
        A uint64 for each literal, two for a zero of floats, none for a number that the physical type cannot hold.

    Raises
    ------
    CoreError
        NaN, or a form that is not `hashable`: UNSUPPORTED. Buffers that are too short: INVALID.
    """
    cdef ps_leaf_spec spec
    cdef ps_values v
    cdef ps_error err
    cdef ps_status status
    cdef size_t kept = 0
    cdef Held values, offsets
    cdef uint64_t *out
    fill_spec(&spec, form, 0)
    n, data, ends = literals
    values = Held(data)
    memset(&v, 0, sizeof(v))
    v.kind, v.width, v.n = spec.kind, spec.width, n
    if not 0 <= v.n <= 1 << 56:
        raise CoreError(<int>PS_INVALID, None, f"a count of {v.n}")
    if not 0 <= v.kind < <int>len(KIND_WIDTH):
        raise CoreError(<int>PS_INVALID, None, f"a kind of {v.kind}")
    v.values, v.values_size = values.data, values.size
    if ends is not None:
        offsets = Held(ends)
        if KIND_WIDTH[v.kind] >= 0:
            v.kind = 14  # PS_BYTES: literals of a fixed width that have offsets
        if offsets.size // <size_t>-<int>KIND_WIDTH[v.kind] <= <size_t>v.n:
            raise CoreError(<int>PS_INVALID, None, "offsets too short")
        v.offsets = offsets.data
    made = PyBytes_FromStringAndSize(NULL, v.n * 16)
    out = <uint64_t *>PyBytes_AsString(made)
    with nogil:
        status = ps_bloom_hashes(&spec, &v, out, &kept, &err)
    checked(status, &err)
    return made[:kept * 8]


def places(hashes, int64_t num_bytes):
    """The byte at which the block of each hash (uint64) begins in a bitset of that size: uint64 each, as bytes."""
    cdef Held held = Held(hashes)
    cdef size_t n = held.size // 8
    cdef uint64_t n_blocks = <uint64_t>num_bytes // PS_BLOOM_BLOCK
    cdef uint64_t *out
    cdef const uint64_t *keys = <const uint64_t *>held.numbers(n)
    if num_bytes < PS_BLOOM_BLOCK or n_blocks >= <uint64_t>1 << 31:
        raise CoreError(<int>PS_INVALID, None, f"a bitset of {num_bytes} bytes")
    made = PyBytes_FromStringAndSize(NULL, n * 8)
    out = <uint64_t *>PyBytes_AsString(made)
    with nogil:
        ps_bloom_places(keys, n, n_blocks, out)
    return made


def blocks(hashes, int64_t num_bytes):
    """The blocks that hashes (uint64) select in a bitset of that size.

    Returns
    -------
    tuple of (list of int, bytes)
        The byte at which each block begins, in order, each once. For each hash, uint64, where its block begins if these
        blocks lie one behind the other.
    """
    made = places(hashes, num_bytes)
    cdef size_t i, n = len(made) // 8
    cdef uint64_t *at = <uint64_t *>PyBytes_AsString(made)
    begins = sorted({at[i] for i in range(n)})
    cdef dict place = {begin: i * PS_BLOOM_BLOCK for i, begin in enumerate(begins)}
    for i in range(n):
        at[i] = place[at[i]]
    return begins, made


def check(data, at, hashes):
    """How many of the hashes may have been inserted: `at`, uint64 each, says where in `data` their blocks begin.

    Raises
    ------
    CoreError
        A block that does not lie in `data`: INVALID.
    """
    cdef Held held = Held(data), begins = Held(at), keys = Held(hashes)
    cdef size_t n = keys.size // 8, found = 0
    cdef const uint64_t *starts
    cdef const uint64_t *wanted
    cdef ps_error err
    cdef ps_status status
    if begins.size // 8 != n:
        raise CoreError(<int>PS_INVALID, None, "a place for each hash")
    starts, wanted = <const uint64_t *>begins.numbers(n), <const uint64_t *>keys.numbers(n)
    with nogil:
        status = ps_bloom_check(held.data, held.size, starts, wanted, n, &found, &err)
    checked(status, &err)
    return found


def xxh64(data):
    """XXH64 with seed 0 of some bytes."""
    cdef Held held = Held(data)
    cdef uint64_t found
    with nogil:
        found = ps_xxh64(held.data, held.size)
    return found


def sound(data, filters, keys):
    """Whether bitsets are those that were attached, by the checksums that follow each (docs/format.md).

    Parameters
    ----------
    filters : buffer of int64[n, 3]
        Where in `data` each bitset begins, its bytes, and the bytes of a piece that has a checksum.
    keys : buffer of uint64[n]
        The key of each, as `pieces` takes it.

    Returns
    -------
    bytes
        1 for each that is sound, and 0 for each other.

    Raises
    ------
    CoreError
        Places outside of `data`, or pieces of no bytes: INVALID.
    """
    cdef Held held = Held(data), at = Held(filters), of_keys = Held(keys)
    cdef size_t n = at.size // 24, i, start, size, piece, longest = 0, sums
    cdef const int64_t *place = at.numbers(3 * n)
    cdef const uint64_t *key = <const uint64_t *>of_keys.numbers(n)
    for i in range(n):
        if place[3 * i] < 0 or place[3 * i + 1] < 0 or place[3 * i + 2] < 8 \
                or <size_t>place[3 * i] > held.size \
                or <size_t>place[3 * i + 1] > held.size - <size_t>place[3 * i]:
            raise CoreError(<int>PS_INVALID, None, f"filter {i} lies outside")
        size, piece = <size_t>place[3 * i + 1], <size_t>place[3 * i + 2]
        sums = (size // piece + (size % piece != 0)) * 8
        if sums > held.size - <size_t>place[3 * i] - size:
            raise CoreError(<int>PS_INVALID, None, f"the checksums of filter {i} lie outside")
        longest = max(longest, sums)
    room = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>longest)
    made = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>n)
    cdef uint8_t *found = <uint8_t *>PyBytes_AsString(room)
    cdef uint8_t *out = <uint8_t *>PyBytes_AsString(made)
    with nogil:
        for i in range(n):
            start, size, piece = <size_t>place[3 * i], <size_t>place[3 * i + 1], <size_t>place[3 * i + 2]
            sums = (size // piece + (size % piece != 0)) * 8
            ps_xxh64_pieces(held.data + start, size, piece, key[i], found)
            out[i] = sums == 0 or memcmp(held.data + start + size, found, sums) == 0
    return made


def pieces(data, size_t piece, uint64_t key):
    """XXH64 of each piece of that many bytes, the last one maybe shorter, XOR the key.

    Returns
    -------
    bytes
        uint64 each, little endian.

    Raises
    ------
    CoreError
        Pieces of no bytes: INVALID.
    """
    cdef Held held = Held(data)
    cdef uint8_t *out
    if piece == 0:
        raise CoreError(<int>PS_INVALID, None, "pieces of no bytes")
    made = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>((held.size // piece + (held.size % piece != 0)) * 8))
    out = <uint8_t *>PyBytes_AsString(made)
    with nogil:
        ps_xxh64_pieces(held.data, held.size, piece, key, out)
    return made
