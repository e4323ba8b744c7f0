"""The bytes that are written behind a file as its indexes are done, and the new footer."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pageseek._core import build as core
from pageseek._core.bloom import xxh64
from pageseek.base.errors import CoreError, UnsupportedError, from_core
from pageseek.base.report import format_size
from pageseek.format.checksums import PIECE, with_sum
from pageseek.format.chunks import chunk_range
from pageseek.format.embedded import (
    BLOOM,
    KEY,
    LONGEST,
    PAGE_INDEX,
    Directory,
    Pointer,
    fingerprint,
    fingerprint_of_all,
    framed,
    merged,
    types_of,
)
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.format.types import ABSENT
from pageseek.index.build import BuiltIndexes, IndexSpec
from pageseek.index.local_target import Target
from pageseek.index.page_index_builder import PageIndex
from pageseek.prune.kind import Builder, NotBuiltError
from pageseek.prune.registry import kind_named

GONE = -1
OFFSET_PLACE, COLUMN_PLACE, BLOOM_PLACE = 0, 2, 4  # among those of a chunk (ps_footer_edit)
LISTED = 256 << 20  # bytes that the builders of embedded indexes hold together


@dataclass(slots=True)
class Attached:
    """What was done to a file. `added`: by kind and column, the chunks that have an index now and had none; less than zero of
    those that had one and have none now. `skipped`: why others have none.
    """

    path: str
    bytes_before: int
    bytes_after: int
    added: dict[tuple[str, str], int] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        more = self.bytes_after - self.bytes_before
        lines = [
            f"{self.path}: {format_size(self.bytes_before)} and {format_size(abs(more))} {'more' if more >= 0 else 'less'}"
        ]
        width = max([len(column) for _, column in self.added], default=0)
        lines += [
            f"  {kind:<10}  {column:<{width}}  {abs(n):,} chunk{'s' * (abs(n) != 1)}{' taken out' * (n < 0)}"
            for (kind, column), n in self.added.items()
        ]
        lines += [f"  not: {why}" for why in self.skipped]
        return "\n".join(lines)


class AppendedIndexes:
    """The bytes behind the old ones, as chunk after chunk is done."""

    def __init__(
        self,
        file: FileMetadata,
        target: Target,
        before: Directory | None,
        order_given: bool,
        replace: bool,
    ) -> None:
        self._file, self._target, self._before = file, target, before
        self._replace = replace
        n = file.num_row_groups * file.num_leaves
        self._places = array("q", [ABSENT]) * (n * core.PLACES)
        self._order_given = order_given
        self._page_indexes: list[tuple[int, int, PageIndex]] = []
        self._given_up: dict[tuple[str, int], str] = {}  # by kind and leaf: why
        self._sizes: dict[tuple[str, int], int] = {}  # bytes that builders hold
        self._builders: dict[tuple[str, int], Builder] = {}
        self._keys: dict[bytes, int] = {}  # other keys of the footer: where their payloads lie
        self._regions: list[Pointer] = []
        self._filters = 0  # bytes of them
        self.result = Attached(target.path, file.store.size, 0)

    def expect(self, specs: Sequence[IndexSpec]) -> None:
        """The columns whose chunks are to come."""
        for spec in specs:
            for name, builder in spec.builders.items():
                self._builders[name, spec.leaf.index] = builder

    def take(self, made: BuiltIndexes) -> None:
        group, leaf = made.row_group, made.leaf
        if made.bloom is not None:
            at = self._target.write(made.bloom)
            self._place(group, leaf.index, BLOOM_PLACE, at, len(made.bloom))
            self._target.write(made.bloom_sums)
            self._filters += self._target.size - at
            self._count(BLOOM, leaf)
        for name, part in made.parts.items():
            self._add(name, group, leaf, part)
        if made.page_index is not None:
            self._keep_offsets(group, leaf, made.page_index)
            self._page_indexes.append((group, leaf.index, made.page_index))
            for why in made.page_index.why_not:
                part = "column index" if made.page_index.offsets is not None else "page index"
                self.result.skipped.append(f"{part} of {leaf.name!r}, row group {group}: {why}")
            if made.page_index.offsets is not None or made.page_index.column is not None:
                self._count(PAGE_INDEX, leaf)

    def _add(self, name: str, group: int, leaf: Leaf, part: Any) -> None:
        """Hand what was made of a chunk to the builder of its column; all of them have a limit together."""
        key = name, leaf.index
        if key in self._given_up:
            return
        if isinstance(part, NotBuiltError):
            self._give_up(key, str(part))
            return
        builder = self._builders[key]
        builder.add(group, part)
        self._sizes[key] = getattr(builder, "nbytes", 0)
        if sum(self._sizes.values()) > LISTED:
            why = (
                f"the values of all columns take more than {format_size(LISTED)} together; "
                "list those of fewer columns at a time"
            )
            self._give_up(key, why)

    def _give_up(self, key: tuple[str, int], why: str) -> None:
        self._given_up[key] = why
        self._sizes.pop(key, None)
        self._builders.pop(key, None)

    def _keep_offsets(self, group: int, leaf: Leaf, made: PageIndex) -> None:
        """An offset index that the writer left stays, if it is that of the pages."""
        if self._replace or self._file.chunk(group, leaf).offset_index_offset == ABSENT:
            return
        known, new = self._file.offset_index(group, leaf), made.offsets
        made.offsets = None
        if new is None or made.column is None:
            made.column = None
        elif (
            known is None
            or core.offset_index(known.offset, known.compressed_size, known.first_row[:-1].copy())
            != new
        ):
            made.column = None
            made.why_not.append(
                "the offset index that it has does not fit its pages; say replace=True"
            )

    def _count(self, kind: str, leaf: Leaf) -> None:
        key = kind, leaf.name
        self.result.added[key] = self.result.added.get(key, 0) + 1

    def _place(self, group: int, leaf: int, which: int, offset: int, length: int) -> None:
        at = (group * self._file.num_leaves + leaf) * core.PLACES + which
        self._places[at], self._places[at + 1] = offset, length

    def finish(self, specs: Sequence[IndexSpec]) -> None:
        """What is known only when all chunks are: the page index; lists of values, which come with the footer where few
        bytes are read to pass a file over; the footer.
        """
        if self._filters:  # they lie one behind the other
            start = self._target.size - self._filters
            self._regions.append(Pointer(BLOOM, 1, start, self._filters, sums=PIECE))
        self._write_page_indexes()
        for spec in specs:
            for name in spec.builders:
                self._write_payload(name, spec.leaf)
        file, before = self._file, self._before
        kept = () if before is None else before.pointers
        new = {(one.kind, one.leaf) for one in self._regions if one.leaf is not None}
        alone = {one.kind for one in self._regions if _footer_key(one.kind) is not None}

        def goes(one: Pointer) -> bool:
            """Whether another one stands for it now."""
            return (one.kind, one.leaf) in new or one.kind in alone

        found = Directory(
            file.footer_start if before is None else before.base,
            tuple(
                merged(
                    [
                        *(one.freed() if goes(one) else one for one in kept),
                        *self._regions,
                    ]
                )
            ),
            self._order_given or (before is not None and before.orders),
            fingerprint_of_all(file),
        )
        told = found.to_value()
        if len(told) > LONGEST:
            raise UnsupportedError(
                f"{file.name}: to say where {len(found.pointers):,} indexes lie takes {len(told):,} bytes of the footer, more than "
                f"the {LONGEST:,} that are read; list the values of fewer columns"
            )
        dropped, added = [KEY], [(KEY, told)] if found.pointers else []
        for key, at in self._keys.items():
            dropped.append(key)
            added.append((key, b"%d" % at))
        self._write_footer(dropped, added, file.num_leaves if self._order_given else 0)

    def _write_payload(self, name: str, leaf: Leaf) -> None:
        """The index of a column, of a kind that is embedded."""
        kind, builder = kind_named(name), self._builders.pop((name, leaf.index), None)
        self._sizes.pop((name, leaf.index), None)
        why = self._given_up.get((name, leaf.index))
        if builder is not None:
            try:
                payload = builder.finish()
            except NotBuiltError as error:
                why = str(error)
            except UnsupportedError as error:
                raise UnsupportedError(f"{self._file.name}: {error}") from None
        if why is not None:
            title = getattr(kind, "title", f"index of kind {name!r}")
            self.result.skipped.append(f"{title} of {leaf.name!r}: {why}")
            return
        chunks, key = fingerprint(self._file, leaf), _footer_key(name)
        body = payload if key is not None else framed(payload, chunks)
        at = self._target.write(body)
        if key is not None:
            self._keys[key] = at
        version = getattr(kind, "version", 1)
        self._regions.append(
            Pointer(name, version, at, len(body), leaf.path, *types_of(leaf), xxh64(body), chunks)
        )
        self.result.added[name, leaf.name] = getattr(builder, "chunks", self._file.num_row_groups)

    def _write_page_indexes(self) -> None:
        """All ColumnIndexes, then all OffsetIndexes, as writers lay them; each with its checksum."""
        start = self._target.size
        for group, leaf, made in self._page_indexes:
            if made.column is not None:
                self._write_page_index(group, leaf, COLUMN_PLACE, made.column)
            elif made.offsets is not None:  # an old one may not fit the new offset index
                self._place(group, leaf, COLUMN_PLACE, GONE, GONE)
        for group, leaf, made in self._page_indexes:
            if made.offsets is not None:
                self._write_page_index(group, leaf, OFFSET_PLACE, made.offsets)
        if self._target.size > start:
            self._regions.append(
                Pointer(PAGE_INDEX, 1, start, self._target.size - start, sums=True)
            )

    def _write_page_index(self, group: int, leaf: int, which: int, made: bytes) -> None:
        chunk = self._file.chunk(group, self._file.leaves[leaf])
        made = with_sum(made, chunk_range(chunk)[0])
        self._place(group, leaf, which, self._target.write(made), len(made))

    def _write_footer(
        self, dropped: list[bytes], added: list[tuple[bytes, bytes]], orders: int
    ) -> None:
        file = self._file
        footer = new_footer(file, self._places, dropped, added, orders)
        self._target.write(footer)
        self._target.write(len(footer).to_bytes(4, "little") + b"PAR1")
        self.result.bytes_after = self._target.size


def _footer_key(name: str) -> bytes | None:
    """The key of the footer that a kind in a form of others has; None of those that the directory alone lists."""
    found: bytes | None = getattr(kind_named(name), "footer_key", None)
    return found


def new_footer(
    file: FileMetadata,
    places: Any,
    dropped: list[bytes],
    added: list[tuple[bytes, bytes]],
    orders: int = 0,
) -> bytes:
    """The footer of a file with other places of indexes and other key-value pairs (`core.footer_edited`)."""
    try:
        return bytes(core.footer_edited(file.footer, places, dropped, added, orders))
    except CoreError as error:
        raise from_core(error, f"{file.name}: footer", file.footer_start) from error
