"""The embedded indexes that a file has, brought to be held against its data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pageseek.base.errors import PageseekError
from pageseek.format.embedded import (
    Directory,
    InvalidIndexError,
    Pointer,
    fingerprint,
    of_leaf,
    opened,
    why_none,
)
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.index.build import Collecting
from pageseek.index.page_reader import Chunk
from pageseek.index.page_values import check_column
from pageseek.prune.kind import Builder, IndexedColumn, NotBuiltError
from pageseek.prune.registry import kind_named, kind_names

KEPT, LONGEST = 128 << 20, 32 << 20  # bytes of payloads that are held, and of one
Wrong = Callable[[str, str, str], None]  # (kind, column, what)


class StoredIndexes:
    """The indexes of a file that registered kinds can verify. Those that do not fit into KEPT bytes are read anew for each
    chunk.
    """

    def __init__(
        self, file: FileMetadata, found: Directory | None, named: str | None, wrong: Wrong
    ) -> None:
        """`named`: the column of a list in DataFusion's form; `wrong` is told of indexes that make no sense."""
        self._file, self._wrong = file, wrong
        self._columns: dict[tuple[str, int], tuple[IndexedColumn, Pointer | None]] = {}
        self._kept: dict[tuple[str, int], Any] = {}
        self._rebuilt: dict[tuple[str, int], Builder | None] = {}
        self._held = 0
        for name in kind_names():
            kind = kind_named(name)
            if getattr(kind, "footer_key", None) is not None:
                self._find_one(name, kind, named)
            elif callable(getattr(kind, "build", None)):
                for leaf in file.leaves:
                    self._find(name, kind, leaf, found)

    def _find(self, name: str, kind: Any, leaf: Leaf, found: Directory | None) -> None:
        version = getattr(kind, "version", 1)
        pointer = of_leaf(leaf, name, version, found)
        if pointer is None:
            why = why_none(leaf, name, version, found)
            if why is not None and not _is_left_out(leaf, found):
                self._wrong(name, leaf.name, why)
            return
        try:
            column = self._column(leaf, name)
            made = self._read(kind, column, pointer)
        except Exception as error:  # noqa: BLE001 (whatever a payload makes `load` do)
            self._wrong(name, leaf.name, str(error))
            return
        key = name, leaf.index
        self._columns[key] = column, pointer
        if self._held + pointer.length <= KEPT:
            self._held += pointer.length
            self._kept[key] = made
        if not callable(getattr(kind, "verify", None)):
            self._rebuilt[key] = kind.build(column)

    def _find_one(self, name: str, kind: Any, named: str | None) -> None:
        leaf: Leaf | None = None
        try:
            leaf = kind.column(self._file, named)
            if leaf is not None:
                made, column = kind.read(self._file, leaf), self._column(leaf, name)
                self._columns[name, leaf.index] = column, None
                self._kept[name, leaf.index] = made
        except InvalidIndexError as error:
            self._wrong(name, named or ("" if leaf is None else leaf.name), str(error))

    def _column(self, leaf: Leaf, name: str) -> IndexedColumn:
        check_column(leaf, f"{name}=[...]")
        leaf_type = self._file.schema_tree.parquet_leaf_type(leaf)
        return IndexedColumn(leaf, leaf_type, self._file.group_rows)

    def _read(self, kind: Any, column: IndexedColumn, pointer: Pointer) -> Any:
        if pointer.length > LONGEST:
            raise InvalidIndexError(
                f"its {pointer.length:,} bytes are more than the {LONGEST:,} that are held against data"
            )
        payload = self._payload(column, pointer)
        load = getattr(kind, "parse", None) or getattr(kind, "load", None) or bytes_of
        return load(column, payload)

    def _payload(self, column: IndexedColumn, pointer: Pointer) -> memoryview:
        (data,) = self._file.store.read([(pointer.offset, pointer.length)])
        return opened(pointer, memoryview(data), fingerprint(self._file, column.leaf))

    def checks(self, chunk: Chunk) -> Iterator[tuple[str, Collecting]]:
        """By kind what the pages of a chunk are sent to. It returns sentences about what is wrong; of a kind that is built
        again, what its builder takes in.
        """
        for (name, leaf), (column, pointer) in self._columns.items():
            if leaf != chunk.leaf.index:
                continue
            kind, key = kind_named(name), (name, leaf)
            if key in self._rebuilt:
                builder = self._rebuilt[key]
                asking = kind.build(column).collect() if builder is None else builder.collect()
            else:
                index = self._kept.get(key)
                if index is None and pointer is not None:
                    index = self._read(kind, column, pointer)
                asking = kind.verify(column, index, chunk.row_group)
            yield name, Collecting(name, chunk.where, column, asking)

    def take(self, name: str, leaf: Leaf, row_group: int, made: Any) -> list[str]:
        """What is wrong by what a check has returned; nothing yet of a kind that is built again."""
        key = name, leaf.index
        if key not in self._rebuilt:
            return list(made)
        builder = self._rebuilt[key]
        if isinstance(made, NotBuiltError):
            self._rebuilt[key] = None
        elif builder is not None:
            builder.add(row_group, made)
        return []

    def finish(self) -> None:
        """Compare the indexes that were built again with those of the file."""
        for (name, leaf), builder in self._rebuilt.items():
            column, pointer = self._columns[name, leaf]
            assert pointer is not None
            try:
                if builder is None:
                    raise NotBuiltError("it would not be built of this data")
                if builder.finish() == bytes(self._payload(column, pointer)):
                    continue
                what = "it is not the index of this data, which was built again"
            except (NotBuiltError, InvalidIndexError, PageseekError) as error:
                what = str(error)
            self._wrong(name, column.name, what)


def bytes_of(column: IndexedColumn, payload: memoryview) -> bytes:
    """The payload as it is, for kinds without `load`."""
    return bytes(payload)


def _is_left_out(leaf: Leaf, found: Directory | None) -> bool:
    """Whether what is wrong with the entry was said of the directory."""
    return found is not None and any(path == leaf.path for _, path, _ in found.left_out)
