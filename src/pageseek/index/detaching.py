"""Attached indexes: listed, and taken out again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pageseek.base.arguments import refuse_others
from pageseek.base.escapes import one_line
from pageseek.base.late_modules import above
from pageseek.base.report import Report, format_size
from pageseek.base.tracebacks import short_traceback
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
from pageseek.format.footer_form import KIND as FOOTER
from pageseek.format.types import ABSENT
from pageseek.index.attachable import attached_directory, refuse_encrypted
from pageseek.index.attached import Attached
from pageseek.index.footer_edit import BLOOM_PLACE, COLUMN_PLACE, GONE, OFFSET_PLACE, FooterEdit
from pageseek.index.footer_index import footer_pointer, write_footer
from pageseek.index.payloads import footer_key
from pageseek.index.targets import ends, one_file
from pageseek.prune.registry import kind_named, kind_names

if TYPE_CHECKING:
    from typing import Unpack

    from pageseek.base.habits import NoHabits


@dataclass(frozen=True, slots=True)
class Entry:
    """An index of a file. `column` is empty where the index is of several. `attached`: it can be taken out. `chunks`: how many
    column chunks have it.
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
        return f"{self.kind:<10}  {one_line(self.column or '-'):<24}  {self.chunks:>6,} chunks  {format_size(self.bytes):>10}  {by}"


class Listed(list[Entry]):
    """The indexes of a file, as a list that notebooks show as a table. `name`: of the file."""

    __slots__ = ("name",)

    def __init__(self, entries: Iterable[Entry], name: str) -> None:
        super().__init__(entries)
        self.name = name

    def _repr_html_(self) -> str:
        shown: str = above("Listed._repr_html_")(self)
        return shown


@short_traceback
def listed(
    source: Any,
    *,
    table: bool | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **others: Unpack[NoHabits],
) -> list[Entry]:
    """The indexes of a file: page indexes and Bloom filters by column, and embedded kinds. `source` and `storage_options`: as
    of `attach`. `table`: as of `scan`.

    Raises
    ------
    PageseekError
        The file cannot be opened.
    """
    refuse_others(others, listed, "index.list")
    one = one_file(source, storage_options, table)
    with closing(FileMetadata(one, one.open())) as file:
        found = attached_directory(file, Report()) or Directory(0)
        made: list[Entry] = []
        for leaf in file.leaves:
            pages, filters = [], []  # places and bytes
            for chunk in file.chunks(leaf):
                if ABSENT not in (chunk.offset_index_offset, chunk.offset_index_length):
                    size = chunk.offset_index_length + max(chunk.column_index_length, 0)
                    pages.append((chunk.offset_index_offset, size))
                if chunk.bloom_filter_offset != ABSENT:
                    filters.append((chunk.bloom_filter_offset, max(chunk.bloom_filter_length, 0)))
            for kind, places in ((PAGE_INDEX, pages), (BLOOM, filters)):
                for ours in (False, True):
                    mine = [size for at, size in places if _is_ours(found, kind, at) is ours]
                    if mine:
                        made.append(Entry(kind, leaf.name, len(mine), sum(mine), ours))
        n, known = file.num_row_groups, kind_names()
        made += [
            Entry(
                one.kind, one.column, n, one.length, True, one.kind in known or one.kind == FOOTER
            )
            for one in found.pointers
            if _is_embedded(one)
        ]
        for name in known:  # what the writer of the file has put there in a form of others
            there = None if footer_key(name) is None else kind_named(name).size(file)
            if there is not None:
                column, offset, size = there
                if not any(one.kind == name and one.offset == offset for one in found.pointers):
                    made.append(Entry(name, column, n, size, False))
        return Listed(made, file.name)


def _is_embedded(one: Pointer) -> bool:
    return one.leaf is not None or one.kind == FOOTER or footer_key(one.kind) is not None


def _is_ours(found: Directory, kind: str, offset: int) -> bool:
    return any(
        one.kind == kind and one.leaf is None and one.holds(offset) for one in found.pointers
    )


@short_traceback
def detach(
    source: Any,
    kinds: Collection[str] | None = None,
    *,
    output: Any = None,
    in_place: bool = False,
    overwrite: bool = False,
    table: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    **others: Unpack[NoHabits],
) -> Attached:
    """Take out what was attached: everything, or indexes of some kinds. Indexes of the file's writer stay.

    Where everything goes, the file becomes what it was before, to the byte, if its footer has the form that today's writers
    give it. Where something stays, the bytes of the removed indexes stay too, unused. Bytes that others have appended since
    are kept with all that lies before them; `skipped` of the result says so. Parameters and errors: as of `attach`.
    """
    refuse_others(others, detach, "index.detach")
    if isinstance(kinds, str):
        raise TypeError(f"kinds={kinds!r}: a list of names")
    one, end = ends(source, output, in_place, overwrite, storage_options, table)
    report = Report()
    with closing(FileMetadata(one, one.open(), report)) as file:
        refuse_encrypted(file)
        found = attached_directory(file, report)
        every = () if found is None else found.pointers
        unknown = set(kinds or ()) - {pointer.kind for pointer in every if pointer.kind != FREE}
        if unknown:
            raise ValueError(f"{file.name}: no index of kind {min(unknown)!r} was attached")
        goes = [pointer for pointer in every if kinds is None or pointer.kind in kinds]
        stays = [one for one in every if one not in goes and one.kind != FREE]
        result = Attached(end.to.name, file.store.size, 0)
        if end.in_place and KEY not in file.key_value_metadata:  # nothing was attached
            result.bytes_after = file.store.size
            return result
        edit = FooterEdit(file)
        _remove(file, goes, edit, result)
        length, directory = file.footer_start, Directory(0)
        indexed = footer_pointer(Directory(0, tuple(stays))) is not None  # of the new footer
        stays = [one for one in stays if one.kind != FOOTER]
        if found is not None and (stays or indexed):
            left = tuple(merged([one if one in stays else one.freed() for one in every]))
            directory = Directory(found.base, left, found.orders, found.chunks)
        elif found is not None:
            length = _length_without(file, found, edit, result)
        for pointer in goes:
            key = footer_key(pointer.kind)
            # somebody else may have written another list since, with its place under the key
            if key is not None and file.key_value_metadata.get(key) == b"%d" % pointer.offset:
                edit.set_key(key, None)
        orders = GONE if found is not None and found.orders and not directory.pointers else 0
        with closing(end.target(file.store)) as target:
            target.copy(file.store, length)
            why = write_footer(file, edit, directory, target, orders, indexed)
            result.skipped += [] if why is None else [why]
            result.bytes_after = target.size
            target.commit(file.store.check)
            end.done(target.size)
    result.skipped[:0] = report.notes
    return result


def _length_without(
    file: FileMetadata, found: Directory, edit: FooterEdit, result: Attached
) -> int:
    """The bytes of the file that stay where everything that was attached goes: those before it, and all up to the last bytes
    that others have appended, since a reader may know their places.
    """
    others = uncovered(found, file.footer_start)
    length = others[-1][1] if others else found.base
    if not _is_prefix(file, length, edit):
        return file.footer_start
    result.skipped += [
        f"bytes {start:,} to {stop:,} are of nothing that was attached: they stay, as does what lies before them"
        for start, stop in others
    ]
    return length


def _places(chunk: Any) -> tuple[tuple[int, int], ...]:
    """Where the indexes of Parquet of a chunk lie by the old footer."""
    return (
        (OFFSET_PLACE, chunk.offset_index_offset),
        (COLUMN_PLACE, chunk.column_index_offset),
        (BLOOM_PLACE, chunk.bloom_filter_offset),
    )


def _is_prefix(file: FileMetadata, length: int, edit: FooterEdit) -> bool:
    """Whether nothing that stays lies behind the first `length` bytes."""
    if not 4 <= length <= file.footer_start:
        return False
    for leaf in file.leaves:
        for group, chunk in enumerate(file.chunks(leaf)):
            if chunk_range(chunk)[1] > length:
                return False
            for which, offset in _places(chunk):
                if offset >= length and not edit.removes(group, leaf, which):
                    return False
    return True


def _remove(
    file: FileMetadata, goes: Collection[Pointer], edit: FooterEdit, result: Attached
) -> None:
    """Take the indexes that go out of the new footer, and count them."""
    for leaf in file.leaves:
        for group, chunk in enumerate(file.chunks(leaf)):
            for which, offset in _places(chunk):
                kind = BLOOM if which == BLOOM_PLACE else PAGE_INDEX
                if any(one.kind == kind and one.holds(offset) for one in goes):
                    edit.remove(group, leaf, which)
                    if which != COLUMN_PLACE:
                        result._count(kind, leaf.name, -1)
    for one in goes:
        if _is_embedded(one):
            result.added[one.kind, one.column] = -file.num_row_groups
