"""A list of distinct values in the form of DataFusion's example, `IDX1` (docs/format.md).

`prune.datafusion_list` has the form, and evaluates tests, since a scan of many similar files reads the lists of all files
at once.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pageseek.base.errors import PageseekError
from pageseek.base.report import format_size
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.io.range_requests import Asking
from pageseek.predicate.bound import BoundLeaf
from pageseek.prune import datafusion_list as form
from pageseek.prune.chunk_pruner import NONE_PASSES
from pageseek.prune.kind import IndexedColumn, InvalidIndexError, NotBuiltError
from pageseek.prune.protocol import Price, Proof, PruneContext

if TYPE_CHECKING:
    import pyarrow as pa

    from pageseek.index.distinct_builder import FileValues, ListBuilder


class DatafusionIndexKind:
    """Rules out the row groups of a file whose list lacks the values that a test requires."""

    name, version = form.KIND, 1
    title = "DataFusion's list"
    footer_key = form.KEY  # has the place of the payload, which has no frame
    cheap = whole = coarse = True

    def applies(self, file: FileMetadata, leaf: Leaf) -> bool:
        """Whether the footer has the key."""
        return form.KEY in file.key_value_metadata

    def price(self, context: PruneContext, test: BoundLeaf) -> Price | None:
        """The bytes of the list that are read first; None where the file has no list of the column, or the list proves nothing."""
        if not form.may_deny(test):
            return None
        found = _place(context)
        if found is None or found[1].index != test.leaf.index:
            return None
        key = self.name, found[1].index
        known = context.file.indexes
        if key not in known:
            offset = found[0]
            length = min(form.FIRST_READ_BYTES, context.file.footer_start - offset)
            return Price(context.to_fetch(offset, length))
        if known[key] is not None:
            return Price(0)
        context.file.note_ignored_indexes(None, found[1], context.report)
        return None

    def prune(
        self, context: PruneContext, tests: Sequence[BoundLeaf]
    ) -> Asking[list[Proof | None]]:
        """Read the list, unless it is in memory."""
        found = _place(context)
        if found is None:
            return [None] * len(tests)
        offset, leaf = found
        file, key = context.file, (self.name, leaf.index)
        known: dict[Any, Any] = file.indexes
        if key not in known:
            try:
                values = yield from _values(file, leaf, offset)
            except (InvalidIndexError, PageseekError) as error:
                note = f"{file.name}: {leaf.name!r}: {_MAGIC} index ignored: {error}"
                file.ignore_index(None, leaf, note, context.report)
                values = None
            file.keep_index(key, values, 0 if values is None else values.nbytes)
        values = known[key]
        return [
            NONE_PASSES
            if values is not None
            and test.leaf.index == leaf.index
            and form.denies(test, form.asked_of(test), values)
            else None
            for test in tests
        ]

    # -- build and verify -------------------------------------------------------------------------

    def check_column(self, column: IndexedColumn) -> None:
        """Raise UnsupportedError where a column has no strings."""
        form.check_type(column.leaf)

    def build(self, column: IndexedColumn) -> ListBuilder:
        """The values of all row groups, put together."""
        from pageseek.index.distinct_builder import ListBuilder

        return ListBuilder(column, partial(_payload, column))

    def place(self, file: FileMetadata) -> int | None:
        """Where the list of a file begins, whoever wrote it. InvalidIndexError: it cannot lie there."""
        return form.place(file)

    def column(self, file: FileMetadata, named: str | None) -> Leaf | None:
        """The column of the list of a file. `named`: the one that the caller names."""
        leaf = form.column(file, named) if form.place(file) is not None else None
        if leaf is not None:
            form.check_type(leaf)
        return leaf

    def read(self, file: FileMetadata, leaf: Leaf) -> form.Listed:
        """The list of a file, for `verify`."""
        offset, head, length = _head(file)
        (data,) = file.store.read([(offset + form.LIST_HEAD_BYTES, length)])
        form.check_bytes(file, leaf, head, memoryview(data))
        return form.Listed(memoryview(data))

    def size(self, file: FileMetadata) -> tuple[str, int, int] | None:
        """The column, the place and the bytes of the list of a file; None where there is none that a reader can use."""
        try:
            if form.place(file) is None:
                return None
            leaf, (offset, _, length) = form.column(file, None), _head(file)
        except InvalidIndexError:
            return None
        return "" if leaf is None else leaf.name, offset, form.LIST_HEAD_BYTES + length

    def verify(
        self, column: IndexedColumn, listed: form.Listed, row_group: int
    ) -> Generator[None, Any, list[str]]:
        """What the list lacks. Values are compared with it some at a time."""
        from pageseek.index.distinct_builder import gather
        from pageseek.index.statistics_check import shown

        read = missing = 0
        example = b""

        def look(values: pa.Array) -> None:
            nonlocal read, missing, example
            found = values.to_pylist()
            read += len(found)
            lacks = listed.missing(line for one in found for line in one.split(b"\n"))
            if lacks:
                those = [one for one in found if not lacks.isdisjoint(one.split(b"\n"))]
                example = example if missing else those[0]
                missing += len(those)

        gathered = yield from gather(column, over=look)
        assert gathered.values is not None
        look(gathered.values)
        if not missing:
            return []
        return [f"{missing} of its {read} values are not listed: {shown(example)}"]


_MAGIC = form.MAGIC.decode()


def _head(file: FileMetadata) -> tuple[int, memoryview, int]:
    """Where the list of a file begins, the bytes before its values, and the bytes of these."""
    offset = form.place(file)
    assert offset is not None
    (read,) = file.store.read([(offset, form.LIST_HEAD_BYTES)])
    head = memoryview(read)
    return offset, head, form.length_of(head, file.footer_start - offset)


def _values(file: FileMetadata, leaf: Leaf, offset: int) -> Asking[form.Listed]:
    room = file.footer_start - offset
    (head,) = yield [(offset, min(form.FIRST_READ_BYTES, room))]
    length = form.length_of(head, room)
    data = head[form.LIST_HEAD_BYTES : form.LIST_HEAD_BYTES + length]
    if data.nbytes < length:
        (data,) = yield [(offset + form.LIST_HEAD_BYTES, length)]
    if data.nbytes != length:
        raise InvalidIndexError("its bytes could not be read")
    form.check_bytes(file, leaf, head, data)
    listed = form.Listed(data)
    form.check(file, leaf, listed)
    return listed


def _place(context: PruneContext) -> tuple[int, Leaf] | None:
    """Where the list lies, and the column of its values."""
    file = context.file
    key = form.KIND, "place", context.distinct_index
    known: dict[Any, Any] = file.indexes
    if key not in known:
        found = None
        try:
            offset = form.place(file)
            if offset is not None:
                leaf = form.column(file, context.distinct_index)
                if leaf is None:
                    raise InvalidIndexError(
                        "it does not say whose values it has: distinct_index= does"
                    )
                found = offset, leaf
        except (InvalidIndexError, PageseekError) as error:
            note = f"{file.name}: {_MAGIC} index ignored: {error}"
            file.ignore_index(None, None, note, context.report)
        file.keep_index(key, found, 0)
    made: tuple[int, Leaf] | None = known[key]
    if made is None:
        file.note_ignored_indexes(None, None, context.report)
    return made


def _payload(column: IndexedColumn, values: FileValues) -> bytes:
    """The payload. UnsupportedError: the form cannot hold the values."""
    from pageseek.index.distinct_builder import MAX_LIST_BYTES, MAX_VALUES

    every = values.values()
    if every is None:
        raise NotBuiltError(f"more than {MAX_VALUES:,} values, or {format_size(MAX_LIST_BYTES)}")
    return form.written(every, column.leaf)


KIND = DatafusionIndexKind()
