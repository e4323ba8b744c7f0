"""Indexes that were attached, listed and taken out again."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from pageseek._core import build as core
from pageseek.base.report import Report, format_size
from pageseek.format.chunks import chunk_range
from pageseek.format.embedded import (
    BLOOM,
    FREE,
    KEY,
    PAGE_INDEX,
    Directory,
    Pointer,
    merged,
    uncovered,
)
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.types import ABSENT
from pageseek.index.appended import (
    BLOOM_PLACE,
    COLUMN_PLACE,
    GONE,
    OFFSET_PLACE,
    Attached,
    new_footer,
)
from pageseek.index.attaching import directory_of, refuse_encrypted
from pageseek.index.targets import ends, one_file
from pageseek.prune.registry import kind_named, kind_names


@dataclass(frozen=True, slots=True)
class Entry:
    """An index of a file. `column` is empty where it is of several; `attached`: it was put there, and can be taken out.
    `chunks`: how many column chunks have it.
    """

    kind: str
    column: str
    chunks: int
    bytes: int
    attached: bool
    registered: bool = True  # its kind is known in this process

    def __str__(self) -> str:
        by = "attached" if self.attached else "by the writer"
        by += "" if self.registered else ", not registered"
        return f"{self.kind:<10}  {self.column or '-':<24}  {self.chunks:>6,} chunks  {format_size(self.bytes):>10}  {by}"


def listed(
    source: Any, *, table: bool | None = None, storage_options: Mapping[str, Any] | None = None
) -> list[Entry]:
    """The indexes that a file has: page indexes and Bloom filters by column, and those of pageseek's own. `source` and
    `storage_options`: as of `attach`; `table`: as of `scan`.

    Raises
    ------
    PageseekError
        The file cannot be opened.
    """
    one = one_file(source, storage_options, table)
    with closing(FileMetadata(one, one.open())) as file:
        found = directory_of(file, Report()) or Directory(0)
        made: list[Entry] = []
        for leaf in file.leaves:
            chunks = file.chunks(leaf)
            pages = [
                (
                    chunk.offset_index_offset,
                    chunk.offset_index_length + max(chunk.column_index_length, 0),
                )
                for chunk in chunks
                if chunk.offset_index_offset != ABSENT and chunk.offset_index_length != ABSENT
            ]
            filters = [
                (chunk.bloom_filter_offset, max(chunk.bloom_filter_length, 0))
                for chunk in chunks
                if chunk.bloom_filter_offset != ABSENT
            ]
            for kind, places in ((PAGE_INDEX, pages), (BLOOM, filters)):
                for ours in (False, True):
                    mine = [size for at, size in places if _is_ours(found, kind, at) is ours]
                    if mine:
                        made.append(Entry(kind, leaf.name, len(mine), sum(mine), ours))
        made += [
            Entry(
                one.kind,
                ".".join(one.leaf or ()),
                file.num_row_groups,
                one.length,
                True,
                one.kind in kind_names(),
            )
            for one in found.pointers
            if _is_embedded(one)
        ]
        return made + _by_others(file, found)


def _is_embedded(one: Pointer) -> bool:
    return one.leaf is not None or one.kind in _footer_keys()


def _footer_keys() -> dict[str, bytes]:
    """The kinds whose place stands under a key of their own."""
    keys = {name: getattr(kind_named(name), "footer_key", None) for name in kind_names()}
    return {name: key for name, key in keys.items() if key is not None}


def _by_others(file: FileMetadata, found: Directory) -> list[Entry]:
    """Indexes in a form of others that the writer of the file has put there."""
    made = []
    for name in _footer_keys():
        there = kind_named(name).size(file)
        if there is not None:
            column, offset, size = there
            if not any(one.kind == name and one.offset == offset for one in found.pointers):
                made.append(Entry(name, column, file.num_row_groups, size, False))
    return made


def _is_ours(found: Directory, kind: str, offset: int) -> bool:
    return any(
        one.kind == kind and one.leaf is None and one.holds(offset) for one in found.pointers
    )


def detach(
    source: Any,
    kinds: Collection[str] | None = None,
    *,
    output: Any = None,
    in_place: bool = False,
    overwrite: bool = False,
    table: Any = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Attached:
    """Take out what was attached: everything, or indexes of some kinds. What the writer of the file put there stays.

    Where everything goes, the file is as it was, to the byte, if its footer was written as the writers of today do.
    Else the bytes of what goes stay behind, until nothing is left. Bytes that others have put there since stay where they
    are, and so does what lies before them; `skipped` of the result says so. Parameters and errors as those of `attach`.
    """
    if isinstance(kinds, str):
        raise TypeError(f"kinds={kinds!r}: a list of names")
    one, end = ends(source, output, in_place, overwrite, storage_options, table)
    report = Report()
    with closing(FileMetadata(one, one.open(), report)) as file:
        refuse_encrypted(file)
        found = directory_of(file, report)
        every = () if found is None else found.pointers
        unknown = set(kinds or ()) - {pointer.kind for pointer in every if pointer.kind != FREE}
        if unknown:
            raise ValueError(f"{file.name}: no index of kind {min(unknown)!r} was attached")
        goes = [pointer for pointer in every if kinds is None or pointer.kind in kinds]
        stays = [one for one in every if one not in goes and one.kind != FREE]
        result = Attached(end.shown, file.store.size, 0)
        if end.in_place and KEY not in file.key_value_metadata:  # nothing was attached
            result.bytes_after = file.store.size
            return result
        places = _without(file, goes, result)
        length = file.footer_start
        if found is not None and not stays:
            length = _without_end(file, found, places, result)
        added = []
        if found is not None and stays:
            left = tuple(merged([one if one in stays else one.freed() for one in every]))
            added = [(KEY, Directory(found.base, left, found.orders, found.chunks).to_value())]
        dropped = [KEY]
        for name, key in _footer_keys().items():
            told = file.key_value_metadata.get(key)  # that of others, where they wrote one since
            if any(one.kind == name and told == b"%d" % one.offset for one in goes):
                dropped.append(key)
        orders = GONE if found is not None and found.orders and not stays else 0
        footer = new_footer(file, places, dropped, added, orders)
        with closing(end.target(file.store)) as target:
            target.copy(file.store, length)
            target.write(footer)
            target.write(len(footer).to_bytes(4, "little") + b"PAR1")
            result.bytes_after = target.size
            target.commit(file.store.check)
            end.done(target.size)
    result.skipped[:0] = report.notes
    return result


def _without_end(file: FileMetadata, found: Directory, places: Any, result: Attached) -> int:
    """How many bytes of the file are left where all that was attached goes: those before it, and those of others behind it, at
    the places where they are, which somebody may know.
    """
    others = uncovered(found, file.footer_start)
    length = others[-1][1] if others else found.base
    if not _is_prefix(file, length, places):
        return file.footer_start
    result.skipped += [
        f"bytes {start:,} to {stop:,} are of nothing that was attached: they stay, as does what lies before them"
        for start, stop in others
    ]
    return length


def _is_prefix(file: FileMetadata, length: int, places: Any) -> bool:
    """Whether nothing that stays lies behind so many bytes. `places`: of the new footer."""
    if not 4 <= length <= file.footer_start:
        return False
    for leaf in file.leaves:
        for group, chunk in enumerate(file.chunks(leaf)):
            at = (group * file.num_leaves + leaf.index) * core.PLACES
            stay = [
                offset + 1
                for which, offset in (
                    (OFFSET_PLACE, chunk.offset_index_offset),
                    (COLUMN_PLACE, chunk.column_index_offset),
                    (BLOOM_PLACE, chunk.bloom_filter_offset),
                )
                if offset != ABSENT and places[at + which] != GONE
            ]
            if max(chunk_range(chunk)[1], *stay, 0) > length:
                return False
    return True


def _without(file: FileMetadata, goes: Collection[Pointer], result: Attached) -> Any:
    """The places of a footer without those that go."""
    places = array("q", [ABSENT]) * (file.num_row_groups * file.num_leaves * core.PLACES)
    pages = [one for one in goes if one.kind == PAGE_INDEX]
    filters = [one for one in goes if one.kind == BLOOM]
    for leaf in file.leaves:
        for group, chunk in enumerate(file.chunks(leaf)):
            at = (group * file.num_leaves + leaf.index) * core.PLACES
            for which, offset, of in (
                (OFFSET_PLACE, chunk.offset_index_offset, pages),
                (COLUMN_PLACE, chunk.column_index_offset, pages),
                (BLOOM_PLACE, chunk.bloom_filter_offset, filters),
            ):
                if any(one.holds(offset) for one in of):
                    places[at + which] = places[at + which + 1] = GONE
                    if which != COLUMN_PLACE:
                        kind = BLOOM if which == BLOOM_PLACE else PAGE_INDEX
                        key = kind, leaf.name
                        result.added[key] = result.added.get(key, 0) - 1
    for one in goes:
        if _is_embedded(one):
            result.added[one.kind, ".".join(one.leaf or ())] = -file.num_row_groups
    return places
