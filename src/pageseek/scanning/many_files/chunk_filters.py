"""Bloom filters of column chunks (BloomFilter.md) of many similar files, read together and probed together.

Only small ones are, which cost less to read whole than their files to open. A file whose filter cannot be trusted is opened by itself,
and its pruner says what is wrong.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Any

import numpy as np

from pageseek._core import bloom as core
from pageseek._core import lists
from pageseek.base.errors import CoreError
from pageseek.base.late_modules import npt
from pageseek.format.checksums import (
    MAX_PIECE_BYTES,
    PIECE_BYTES,
    SUM,
    filter_key,
    of_pieces,
    piece_of,
    sums_size,
)
from pageseek.format.chunks import Sound, sound_chunks
from pageseek.format.embedded import BLOOM, KEY, InvalidIndexError, Pointer, directory_of
from pageseek.format.file_bloom_form import block_of, blocks_at, words_of
from pageseek.format.types import ABSENT
from pageseek.predicate.bound import BoundLeaf
from pageseek.prune.bloom_filter import filter_hashes
from pageseek.scanning.many_files.batched_lists import ColumnLists, ListAnswer, ListReader
from pageseek.scanning.many_files.footer_table import AT, Flags, FooterTable
from pageseek.scanning.many_files.schema_group import SchemaGroup

# bytes of a file, from its first filter on, that are read to probe one of its filters
LONGEST_END = 128 << 10
MOST_VALUES = 16  # of an IN: a filter may well find one of more by mistake
HEADER_BYTES = 64
MOST_HEADERS = 16  # different ones that are looked at together
ENDS = 96 << 20  # bytes of the ends of all files, of which the bitsets are kept
# an entry as `attach` writes it
_ENTRY = re.compile(
    rb'\{"kind":"bloom","version":1,"offset":(\d{1,18}),"length":(\d{1,18}),"sums":(\d{1,9})\}'
)
_MOST = (1 << 63) - 1
Int64s = npt.NDArray[np.int64]


class ChunkFilters(ColumnLists):
    """The filters that can be used, probed together."""

    only_denies = True

    def __init__(self, reader: ListReader) -> None:
        table, chunks = reader.table, reader.chunks
        self.unusable = np.zeros(len(table.members), np.bool_)
        self._num_groups = len(table.counts)
        self._parts: list[_Bitsets] = []
        has = chunks[:, AT["bloom_filter_offset"]] != ABSENT
        files = np.flatnonzero(table.of_files(has))
        if not len(files):
            return
        if reader.schema_group.writer.omits_from_filters:
            self.unusable[files] = True
            return
        leaf, stops = reader.leaf, np.repeat(table.sizes, table.n)
        sound = sound_chunks(chunks, leaf.element.type, leaf.max_rep > 0, table.rows, stops)
        least = np.where(has, chunks[:, AT["bloom_filter_offset"]], _MOST)
        first = np.minimum.reduceat(least, table.first)[files]
        lengths = table.sizes[files] - first
        ends = reader.batch.spans(table.members[files])
        near = (lengths > 0) & (lengths <= ends[:, 1])
        if near.any():  # they were read with the footers
            self._take(reader, files[near], reader.batch.tails, ends[near], sound)
        files, lengths, first = files[~near], lengths[~near], first[~near]
        # behind the last filter lie its checksums, then other indexes
        stop = np.minimum(_stops(table, chunks, has)[files], table.sizes[files])
        behind = table.sizes[files] - np.maximum(stop, first)
        lengths = lengths - behind
        short = (lengths > 0) & (lengths <= LONGEST_END)
        short &= np.cumsum(lengths * short) <= ENDS
        self.unusable[files[~short]] = True
        files, lengths, behind = files[short], lengths[short], behind[short]
        if len(files):
            data, read = reader.read_ends(files, lengths, behind)
            read[:, 2] -= behind  # where the bytes end
            self._take(reader, files, data, read, sound)

    def _take(
        self, reader: ListReader, files: Int64s, data: memoryview, ends: Int64s, sound: Sound
    ) -> None:
        """Take the filters of some files out of their bytes. `ends`: where these lie in the data, how many, where they end in the
        file, and where its footer begins.
        """
        made = _Bitsets.of(reader, files, data, ends, sound)
        self.unusable[made.unusable] = True
        if len(made.groups):
            reader.table.hold(made.own_memory() // 4)
            self._parts.append(made)

    @classmethod
    def present(cls, table: FooterTable, schema_group: SchemaGroup, test: BoundLeaf) -> Flags:
        """The files that have a filter of the column of a test."""
        chunks = table.chunks[:, schema_group.column[test.leaf.index]]
        return table.of_files(chunks[:, AT["bloom_filter_offset"]] != ABSENT) > 0

    @staticmethod
    def takes(test: BoundLeaf) -> bool:
        """Whether rows need one of a few values that have hashes."""
        hashes = filter_hashes(test)
        return hashes is not None and 0 < len(hashes) // 8 <= MOST_VALUES

    @staticmethod
    def leaves_out(test: BoundLeaf) -> bool:
        """A pruner looks up longer lists, too."""
        return filter_hashes(test) is not None

    def evaluate(self, test: BoundLeaf) -> ListAnswer | None:
        """The row groups that have none of the values."""
        hashes = np.frombuffer(filter_hashes(test) or b"", np.uint64)
        if not self._parts:
            return None
        may = np.ones(self._num_groups, np.bool_)
        for part in self._parts:
            may[part.groups] = part.may_have(hashes)
        return ListAnswer(may.tobytes(), bytes(len(may)), None)


def _stops(table: FooterTable, chunks: Int64s, has: Flags) -> Int64s:
    """For each file where its filters and their checksums end at the latest; very large where a length is not known."""
    offsets, lengths = (chunks[:, AT[f"bloom_filter_{of}"]] for of in ("offset", "length"))
    known = (lengths >= 0) & (lengths < LONGEST_END) & (offsets < _MOST - 2 * LONGEST_END)
    stops = offsets + lengths + _sums(np.where(known, lengths, 0), PIECE_BYTES)
    stops = np.where(has, np.where(known, stops, _MOST), 0)
    return np.asarray(np.maximum.reduceat(stops, table.first))


class _Bitsets:
    """Bitsets that lie in one buffer.

    Attributes
    ----------
    groups : int64 array
        The row group of each, by its number in the table.
    unusable : list of int
        Files of which one cannot be trusted.
    """

    def __init__(
        self,
        data: memoryview,
        groups: Int64s,
        starts: Int64s,
        blocks: Int64s,
        unusable: list[int],
    ) -> None:
        """`starts`, `blocks`: where in the data each begins, and its blocks."""
        self._data, self.groups, self.unusable = np.frombuffer(data, np.uint8), groups, unusable
        self._starts, self._blocks = starts, blocks

    @classmethod
    def of(
        cls,
        reader: ListReader,
        files: Int64s,
        data: memoryview,
        ends: Int64s,
        sound: Sound,
    ) -> _Bitsets:
        """Those of some files. `data`, `ends`: as of `ChunkFilters._take`. `sound`: the chunks of the column."""
        table = reader.table
        attached = table.names([BLOOM])
        plain, found = _plain(reader, files, data, ends, sound, attached)
        unusable, made = [], [found]
        for at, k in enumerate(files.tolist()):
            if plain[at]:
                continue
            first, n = table.first.item(k), table.n.item(k)
            begin, read, size, end = ends[at].tolist()
            try:
                if not read:
                    raise InvalidIndexError("the file was replaced")
                own = _of_file(
                    data[begin : begin + read],
                    size - read,
                    end,
                    _entries(table.value(k, KEY), end) if attached[k] else (),
                    reader.chunks[first : first + n],
                    sound.start[first:],
                    sound.start[first:] + sound.size[first:],
                )
                made.append(np.array(own, np.int64).reshape(-1, 3) + np.array([first, begin, 0]))
            except (CoreError, InvalidIndexError):
                unusable.append(k)
        groups, starts, blocks = np.concatenate(made).T
        return cls(data, groups, starts, blocks, unusable)

    def own_memory(self) -> int:
        """Copy the bitsets out of a buffer that has much else. Returns the bytes that are held."""
        sizes = core.BLOCK * self._blocks
        if 2 * int(sizes.sum()) < self._data.nbytes:
            bits = lists.cut(self._data, np.stack([self._starts, sizes], axis=1))
            self._data, self._starts = np.frombuffer(bits, np.uint8), np.cumsum(sizes) - sizes
        return self._data.nbytes

    def may_have(self, hashes: npt.NDArray[np.uint64]) -> Flags:
        """Whether some of the row groups may have one of the values."""
        blocks = block_of(hashes, self._blocks.astype(np.uint64)[:, None])
        at = self._starts[:, None] + core.BLOCK * blocks
        words = blocks_at(self._data, at).view("<u4")
        wanted = words_of(hashes)
        found: Flags = ((words & wanted) == wanted).all(axis=2).any(axis=1)
        return found


def _plain(
    reader: ListReader,
    files: Int64s,
    data: memoryview,
    ends: Int64s,
    sound: Sound,
    attached: Flags,
) -> tuple[Flags, Int64s]:
    """Files as `attach` writes them: with one row group, whose filter is sound by its checksums, and lies where the one entry of
    filters says. The result equals that of `_of_file` for each of them.

    Returns
    -------
    (bool array, int64 array of shape (n, 3))
        Which of the files are such; and for these the number of the row group, where its bitset begins in the data, and its
        blocks.
    """
    table = reader.table
    group, at, read, size, end = table.first[files], *ends.T
    offset, length = (reader.chunks[group, AT[f"bloom_filter_{of}"]] for of in ("offset", "length"))
    plain = attached[files] & (table.n[files] == 1) & (read > 0) & (length >= HEADER_BYTES)
    plain &= (offset >= 4) & (length <= end - offset)
    start, stop = sound.start[group], sound.start[group] + sound.size[group]
    plain &= (offset >= stop) | (start >= offset + length)
    begin = at + offset - (size - read)  # in the data
    plain &= (begin >= at) & (length <= at + read - begin)
    some = np.flatnonzero(plain)
    raw = np.frombuffer(data, np.uint8)
    headers = raw[begin[some, None] + np.arange(HEADER_BYTES)]
    header, bits, of_header = _headers(headers).T
    entry_at, entry_length, piece = _listed(*table.directories(files[some])).T
    i = some
    right = (header > 0) & (header + bits == length[i])
    right &= (entry_at <= offset[i]) & (offset[i] < entry_at + entry_length)
    right &= entry_length <= end[i] - entry_at
    right &= (piece > 0) & (piece % core.BLOCK == 0) & (piece <= MAX_PIECE_BYTES)
    sums = _sums(bits, np.maximum(piece, 1))
    right &= offset[i] + length[i] + sums <= entry_at + entry_length
    right &= begin[i] + length[i] + sums <= at[i] + read[i]
    i, header, bits, of_header, piece = (one[right] for one in (i, header, bits, of_header, piece))
    places = np.stack([begin[i] + header, bits, piece], axis=1)
    keys = of_header.view(np.uint64) ^ start[i].view(np.uint64)
    own = np.frombuffer(core.sound(data, places, keys), np.bool_)
    plain[:] = False
    plain[i[own]] = True
    made = np.stack([group[i], places[:, 0], bits // core.BLOCK], axis=1)[own]
    return plain, made


def _sums(bits: Int64s, piece: int | Int64s) -> Int64s:
    """`sums_size` of several bitsets."""
    return np.asarray(-(-bits // piece) * SUM)


def _headers(data: npt.NDArray[np.uint8]) -> Int64s:
    """The bytes of each header, those of the bitset behind it, and the hash of the header; zeros where none is known. `data`:
    HEADER_BYTES of each.
    """
    made, left = np.zeros((len(data), 3), np.int64), np.arange(len(data))
    for _ in range(MOST_HEADERS):  # as a rule all are the same
        if not len(left):
            break
        first = data[left[0]].tobytes()
        try:
            length, size = core.header(first)
        except CoreError:
            left = left[1:]
            continue
        same = (data[left, :length] == data[left[0], :length]).all(axis=1)
        hashed = filter_key(first[:length], 0)
        made[left[same]] = length, size, hashed - (hashed > _MOST) * (1 << 64)
        left = left[~same]
    return made


def _listed(text: bytes, stops: Int64s) -> Int64s:
    """Where the first entry of filters in each directory says that they lie, their bytes, and those of a piece; zeros without
    one. `text`, `stops`: as `FooterTable.directories` has them.
    """
    made, of = np.zeros((len(stops), 3), np.int64), 0
    ends, at = stops.tolist(), -1
    for entry in _ENTRY.finditer(text):
        of = bisect_right(ends, entry.start(), of)
        if of > at and entry.end() <= ends[of]:
            made[of] = int(entry[1]), int(entry[2]), int(entry[3])
            at = of
    return made


def _entries(value: memoryview | None, end: int) -> tuple[Pointer, ...]:
    """The entries of attached filters. InvalidIndexError: the directory is damaged."""
    return () if value is None else directory_of(value, end, BLOOM).pointers


def _of_file(
    tail: memoryview,
    begin: int,
    end: int,
    entries: tuple[Pointer, ...],
    chunks: Int64s,
    starts: Any,
    stops: Any,
) -> list[tuple[int, int, int]]:
    """For each row group of a file with a filter: its number, where the bitset begins in the tail, and its blocks.

    Parameters
    ----------
    begin, end
        Where in the file the tail begins, and the footer.
    starts, stops
        Where the pages of each chunk begin and end.

    Raises
    ------
    InvalidIndexError, CoreError
        One cannot be trusted.
    """
    made = []
    places = chunks[:, [AT["bloom_filter_offset"], AT["bloom_filter_length"]]].tolist()
    for group, (offset, length) in enumerate(places):
        if offset == ABSENT:
            continue
        start, stop = int(starts[group]), int(stops[group])
        if length == ABSENT or not 4 <= offset <= offset + length <= end:
            raise InvalidIndexError("it has no place, or no length")
        if offset < stop and start < offset + length:
            raise InvalidIndexError("pages lie there")
        data = tail[offset - begin : offset - begin + length]
        header, size = core.header(data[:HEADER_BYTES])
        if header + size != length:
            raise InvalidIndexError("its length is another by its header")
        bits = data[header:]
        entry = next((one for one in entries if one.sums and one.holds(offset)), None)
        if entry is not None:
            piece, behind = piece_of(entry, offset, length, size), offset - begin + length
            sums = tail[behind : behind + sums_size(size, piece)]
            if of_pieces(bits, filter_key(data[:header], start), piece) != sums:
                raise InvalidIndexError("its checksums differ")
        elif not np.frombuffer(bits, np.uint8).any():
            raise InvalidIndexError("it is empty")
        made.append((group, offset - begin + header, size // int(core.BLOCK)))
    return made
