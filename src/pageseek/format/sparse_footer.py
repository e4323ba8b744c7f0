"""A large footer of which only parts are read: what precedes and follows the row groups, and the column chunks that are asked for.

A `footer` index says where they are (docs/format.md). What is read has to be what the index says; else the rest is read, too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pageseek._core import metadata as core
from pageseek._core.bloom import xxh64
from pageseek.base.errors import CoreError, CorruptFileError, InvalidIndexError, from_core
from pageseek.base.late_modules import npt
from pageseek.base.log import not_trusted
from pageseek.base.records import NamedTuple
from pageseek.base.report import Report
from pageseek.format.footer_form import (
    ENTRY_BYTES,
    NO_STRUCTS,
    FooterEnd,
    end_bytes,
    find_entry,
    groups_of,
    key_values,
    parse_end,
    path_text,
    shifted,
)
from pageseek.format.schema import Leaf
from pageseek.io.fetch import Fetcher
from pageseek.storage import RemoteStore, Store

# bytes of a footer from which parts are read, here and in remote stores
LARGE, LARGE_FAR = 512 << 10, 4 << 20
TAIL_SHARE = 64  # of a large footer one part in so many is read first
# of one in a remote store as many of its first bytes are read with the end of the index
SCHEMA_SHARE = 48
FEW_GROUPS = 64  # row groups of which the end of the index is read at once
PART = 64  # if a call asks for more than one chunk in this many, the rest of the footer is read
SHARE = 8  # and if one in this many was loaded
# so few chunks are requested by themselves, unless so few bytes lie between them
FEW_REQUESTS, NEAR = 32, 16 << 10
PAGE = 4096
NAMED_IN = b"pageseek.indexes"  # the key of the pair that names the index (embedded.py)


def is_large(store: Store, footer_bytes: int) -> bool:
    """Whether a footer is worth the further reads."""
    return footer_bytes >= (LARGE_FAR if isinstance(store, RemoteStore) else LARGE)


Parsed = tuple[int, int, tuple[int, int] | None, int | None, bytes, int, bytes, bytes, bytes, bytes]


class Opened(NamedTuple):
    """A footer of which parts were read. `parsed`: as `core.footer` gives it, without places of chunks and of `pairs`."""

    sparse: SparseFooter
    parsed: Parsed
    pairs: dict[bytes, bytes | None]


class SparseFooter:
    """The parts of a footer that were read, at their places.

    Attributes
    ----------
    data : memoryview
        The footer; bytes that were not read are zero.
    at : uint64 array of shape (row groups, leaves)
        Where the chunks that were loaded begin.
    is_whole : bool
        Whether all was read.
    nbytes : int
        About the memory that it takes.
    why : str
        Why all had to be read; empty as long as the index fits.
    """

    def __init__(self, store: Store, head: FooterEnd, entries: int, max_bytes: int) -> None:
        """`entries`: where in the file the entries of the index begin. `max_bytes`: that the metadata may take."""
        import mmap  # late: for large footers

        self._store, self._head, self._entries, self._max_bytes = store, head, entries, max_bytes
        self._start = store.size - 8 - head.footer_bytes
        self.data = memoryview(mmap.mmap(-1, head.footer_bytes))
        # maps have zeros, and take no memory until they are written
        places = mmap.mmap(-1, 8 * head.num_groups * head.num_leaves)
        self.at = np.frombuffer(places, np.uint64).reshape(head.num_groups, head.num_leaves)
        # of leaves: starts and hashes, then starts of the next one
        self._ends: dict[int, npt.NDArray[np.uint32]] = {}
        self._loaded: set[tuple[int, int]] = set()
        self.nbytes, self.is_whole, self.why = PAGE, False, ""

    def put(self, at: int, part: memoryview) -> None:
        """Keep bytes of the footer."""
        self.data[at : at + part.nbytes] = part
        self.nbytes += (part.nbytes + PAGE - 1) // PAGE * PAGE

    def load(self, row_groups: Sequence[int], leaves: Sequence[Leaf], report: Report) -> None:
        """Read the chunks of some leaves in some row groups, with `at`.

        Raises
        ------
        CorruptFileError
            The footer contradicts what was believed of it when the file was opened.
        """
        if self.is_whole:
            return
        wanted = [
            (group, leaf)
            for leaf in leaves
            for group in row_groups
            if (group, leaf.index) not in self._loaded
        ]
        if not wanted:
            return
        if max(PART * len(wanted), SHARE * len(self._loaded)) > self.at.size:
            self.complete(report)
            return
        try:
            self._load(wanted, report)
        except InvalidIndexError as error:
            self.why = f"its footer index is ignored: {error}"
            self.complete(report)

    def _load(self, wanted: Sequence[tuple[int, Leaf]], report: Report) -> None:
        fetcher, head = Fetcher(self._store, report), self._head
        row = head.num_groups * ENTRY_BYTES
        unknown = list({leaf.index: None for _, leaf in wanted if leaf.index not in self._ends})
        # the starts of the next leaf are the ends of this one
        places = [(self._entries + index * row, 2 * row) for index in unknown]
        for index, part in zip(unknown, fetcher.read(places, "metadata"), strict=True):
            self._ends[index] = np.frombuffer(part, "<u4").reshape(2, head.num_groups, 2)
            self.nbytes += part.nbytes
        spans = []
        for group, leaf in wanted:
            (start, _), (end, _) = self._ends[leaf.index][:, group].tolist()
            if not head.before < start < end <= head.after:
                raise InvalidIndexError(
                    f"row group {group} has no column chunk at byte {start} of the footer"
                )
            spans.append((start, end - start))
        if len(spans) <= FEW_REQUESTS:  # sent side by side they take less than what lies between
            fetcher.gap = min(fetcher.gap, NEAR)
        parts = fetcher.read([(self._start + start, length) for start, length in spans], "metadata")
        names: dict[int, bytes] = {}
        for (group, leaf), (start, _), part in zip(wanted, spans, parts, strict=True):
            name = names.get(leaf.index) or names.setdefault(leaf.index, path_text(leaf))
            if xxh64(part) & 0xFFFFFFFF != self._ends[leaf.index][0, group, 1] or name not in bytes(
                part
            ):
                raise InvalidIndexError(
                    f"byte {start} of the footer does not begin the chunk of {leaf.name!r} in row group {group}"
                )
        for (group, leaf), (start, _), part in zip(wanted, spans, parts, strict=True):
            self.put(start, part)
            self.at[group, leaf.index] = start
            self.nbytes += PAGE
            self._loaded.add((group, leaf.index))

    def complete(self, report: Report) -> None:
        """Read the rest of the footer. CorruptFileError: as of `load`, or the footer is damaged."""
        if self.is_whole:
            return
        head = self._head
        place = self._start, head.footer_bytes
        (self.data[:],) = Fetcher(self._store, report).read([place], "metadata")
        where = f"{self._store.name}: footer"
        try:
            found = core.footer(self.data, max_arena=self._max_bytes)
        except CoreError as error:
            raise from_core(error, where, self._start) from error
        if bytes(found[6]) != head.groups or found[5] != head.num_leaves:
            raise CorruptFileError(
                f"{where}: its index has other row groups than the footer itself; take it out by pageseek.index.detach(kinds=['footer'])"
            )
        self.at[:] = np.frombuffer(found[7], np.uint64).reshape(self.at.shape)
        self.nbytes, self.is_whole = self.at.nbytes + self.data.nbytes, True


def open_sparse(
    store: Store, tail: memoryview, footer_bytes: int, max_bytes: int, report: Report
) -> Opened | None:
    """The footer by the index that the last bytes of the file name; None without one that fits, which the report notes.

    `max_bytes`: that the metadata may take.
    """
    start = store.size - 8 - footer_bytes
    place = find_entry(tail)
    if place is None:
        return None
    try:
        offset, length = place
        if not 4 <= offset < start or offset + length != start:
            raise InvalidIndexError("it does not lie before the footer: the footer was rewritten")
        return _opened(store, tail, offset, length, footer_bytes, max_bytes, report)
    except InvalidIndexError as error:
        not_trusted(f"{store.name}: its footer index is ignored: {error}", report)
        return None


def _opened(
    store: Store,
    tail: memoryview,
    offset: int,
    length: int,
    footer_bytes: int,
    max_bytes: int,
    report: Report,
) -> Opened:
    """As `open_sparse`, by the place of the index. InvalidIndexError: it does not fit."""
    start, fetcher = offset + length, Fetcher(store, report, tail)
    fetcher.gap = min(fetcher.gap, NEAR)  # between the parts lies what is not to be read
    # the end of the index and the beginning of the footer lie side by side
    ends = min(end_bytes(FEW_GROUPS), length)
    begins = footer_bytes // SCHEMA_SHARE if isinstance(store, RemoteStore) else 0
    (data,) = fetcher.read([(start - ends, ends + begins)], "metadata")
    if (size := end_bytes(groups_of(data[:ends]))) > ends:
        if size > min(length, max_bytes):
            raise InvalidIndexError(f"its end has {size} bytes, of {length}")
        (told,) = fetcher.read([(start - size, size)], "metadata")
    else:
        told = data[:ends]
    end = parse_end(told, length, footer_bytes)
    behind = max(end.after, footer_bytes - (tail.nbytes - 8))  # what the tail has of the footer
    missing = [(min(begins, end.before), end.before), (end.after, behind)]
    places = [(start + at, stop - at) for at, stop in missing]
    first, last = fetcher.read(places, "metadata")
    last_bytes = tail[tail.nbytes - 8 - (footer_bytes - behind) : tail.nbytes - 8]
    schema = b"".join((data[ends:][: end.before], first))
    if xxh64(schema) != end.schema_hash:
        raise InvalidIndexError("it is of another schema")
    short = b"".join((schema, NO_STRUCTS, last, last_bytes))  # the footer without row groups
    try:
        found = core.footer(short, max_arena=max_bytes)
    except CoreError as error:
        raise InvalidIndexError(f"the footer is not as it says: {error.message}") from error
    version, num_rows, created_by, encryption, elements, leaves, _, _, pairs, orders = found
    table = np.frombuffer(end.groups, np.int64).reshape(end.num_groups, -1)
    counts = table[:, core.ROW_GROUP_FIELDS.index("num_rows")].tolist()
    if leaves != end.num_leaves or sum(counts) != num_rows or min(counts) < 0:
        raise InvalidIndexError("the footer has other leaves or rows than it says")
    known = key_values(memoryview(short), pairs)
    if NAMED_IN not in known:
        raise InvalidIndexError("the footer does not name it where it says that pairs stand")
    sparse = SparseFooter(store, end, offset, max_bytes)
    sparse.put(0, memoryview(schema))
    if created_by is not None:
        at, length = created_by
        created_by = shifted(created_by, end.before, end.after - end.before - len(NO_STRUCTS))
        assert created_by is not None
        sparse.put(created_by[0], memoryview(short)[at : at + length])
    said = version, num_rows, created_by, encryption, elements, leaves
    return Opened(sparse, (*said, end.groups, b"", b"", orders), known)
