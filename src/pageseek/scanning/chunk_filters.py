"""Bloom filters of column chunks (BloomFilter.md) of many similar files, read together and probed together.

Only small ones are, which cost less to read whole than their files to open. A file whose filter cannot be trusted is opened by itself,
and its pruner says what is wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pageseek._core import bloom as core
from pageseek._core import lists
from pageseek.base.errors import CoreError
from pageseek.format.checksums import filter_key, of_pieces, piece_of, sums_size
from pageseek.format.chunks import sound_chunks
from pageseek.format.embedded import BLOOM, KEY, InvalidIndexError, Pointer, directory_of
from pageseek.format.file_bloom_form import WORDS, block_of, words_of
from pageseek.format.types import ABSENT
from pageseek.predicate.bound import BoundLeaf
from pageseek.prune.bloom_filter import filter_hashes
from pageseek.scanning.batched_lists import ColumnLists, ListAnswer, ListReader
from pageseek.scanning.footer_table import AT, Flags, FooterTable, entries_of
from pageseek.scanning.schema_group import SchemaGroup

# bytes of a file, from its first filter on, that are read to probe one of its filters
LONGEST_END = 128 << 10
MOST_VALUES = 16  # of an IN: a filter may well find one of more by mistake
HEADER_BYTES = 64
ENDS = 96 << 20  # bytes of the ends of all files, of which the bitsets are kept
_ENTRIES = entries_of([BLOOM])
Int64s = npt.NDArray[np.int64]


class ChunkFilters(ColumnLists):
    """The filters that can be used, probed together."""

    def __init__(self, reader: ListReader) -> None:
        table, chunks = reader.table, reader.chunks
        self.unusable = np.zeros(len(table.members), np.bool_)
        self._num_groups = len(table.counts)
        self._groups, self._starts, self._blocks = (np.zeros(0, np.int64) for _ in range(3))
        has = chunks[:, AT["bloom_filter_offset"]] != ABSENT
        files = np.flatnonzero(table.of_files(has))
        if not len(files):
            return
        least = np.where(has, chunks[:, AT["bloom_filter_offset"]], np.iinfo(np.int64).max)
        lengths = table.sizes[files] - np.minimum.reduceat(least, table.first)[files]
        short = (lengths > 0) & (lengths <= LONGEST_END)
        short &= np.cumsum(lengths * short) <= ENDS
        if reader.schema_group.writer.omits_from_filters:
            short[:] = False
        self.unusable[files[~short]] = True
        files, lengths = files[short], lengths[short]
        if not len(files):
            return
        tails, ends = reader.read_ends(files, lengths)
        stops = np.repeat(table.sizes, table.n)
        leaf = reader.leaf
        sound = sound_chunks(chunks, leaf.element.type, leaf.max_rep > 0, table.rows, stops)
        attached = table.names(_ENTRIES)
        found: list[tuple[int, int, int]] = []  # row group, first byte of the bitset, its blocks
        for k, (at, read, size, end) in zip(files.tolist(), ends.tolist(), strict=True):
            first = table.first.item(k)
            try:
                if not read:
                    raise InvalidIndexError("the file was replaced")
                made = _of_file(
                    tails[at : at + read],
                    size - read,
                    end,
                    _entries(table.value(k, KEY), end) if attached[k] else (),
                    chunks[first : first + table.n.item(k)],
                    sound.start[first:],
                    sound.start[first:] + sound.size[first:],
                )
                found += [(first + group, at + start, blocks) for group, start, blocks in made]
            except (CoreError, InvalidIndexError):
                self.unusable[k] = True
        if found:
            self._groups, begins, self._blocks = np.array(found, np.int64).T
            sizes = core.BLOCK * self._blocks
            bits = lists.cut(tails, np.stack([begins, sizes], axis=1))
            self._data, self._starts = np.frombuffer(bits, np.uint8), np.cumsum(sizes) - sizes
            table.hold(len(bits) // 4)

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

    def evaluate(self, test: BoundLeaf) -> ListAnswer | None:
        """The row groups that have none of the values."""
        hashes = np.frombuffer(filter_hashes(test) or b"", np.uint64)
        if not len(self._groups):
            return None
        blocks = block_of(hashes, self._blocks.astype(np.uint64)[:, None])
        at = self._starts[:, None] + core.BLOCK * blocks
        words = self._data[at[:, :, None] + np.arange(4 * WORDS)].view("<u4")
        wanted = words_of(hashes)
        may = np.ones(self._num_groups, np.bool_)
        may[self._groups] = ((words & wanted) == wanted).all(axis=2).any(axis=1)
        return ListAnswer(may.tobytes(), bytes(len(may)), None)


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
