"""The embedded indexes of a file, read to be compared with its data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pageseek.base.errors import PageseekError, UnsupportedError
from pageseek.format.embedded import (
    KEY_LOOKUP,
    Directory,
    InvalidIndexError,
    Pointer,
    fingerprint,
    fingerprint_of_key,
    of_leaf,
    why_none,
)
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.index.build import Collecting
from pageseek.index.index_specs import opened_payload
from pageseek.index.kinds.key_lookup import key_leaves
from pageseek.index.page_reader import Chunk
from pageseek.index.page_values import indexed_column
from pageseek.index.spilled import SpillingBuilder
from pageseek.prune.kind import Builder, IndexedColumn, NotBuiltError
from pageseek.prune.registry import kind_named, kind_names

MAX_KEPT_BYTES = 128 << 20  # bytes of payloads that are kept
MAX_PAYLOAD_BYTES = 32 << 20  # bytes of one payload
MAX_BUILDING_BYTES = 256 << 20  # bytes that the builders of indexes which are built again hold
Wrong = Callable[[str, str, str], None]  # (kind, column, what)


class StoredIndexes:
    """The indexes of a file that registered kinds can verify. Beyond MAX_KEPT_BYTES, payloads are read again for each chunk."""

    def __init__(
        self, file: FileMetadata, found: Directory | None, named: str | None, wrong: Wrong
    ) -> None:
        """`named`: the column of a list in DataFusion's form; `wrong` takes what is wrong with an index."""
        self._file, self._wrong = file, wrong
        self._columns: dict[tuple[str, int], tuple[IndexedColumn, Pointer | None]] = {}
        self._kept: dict[tuple[str, int], Any] = {}
        self._rebuilt: dict[tuple[str, int], Builder | None] = {}
        self._keys: dict[str, tuple[Leaf, ...]] = {}  # by name the columns of keys
        self._held = 0
        for pointer in () if found is None else found.pointers:
            if pointer.kind == KEY_LOOKUP:
                self._find_key(pointer)
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
            column = indexed_column(self._file, leaf, name)
            compares = callable(getattr(kind, "verify", None))
            made = self._read(kind, column, pointer, compares)
        except Exception as error:  # noqa: BLE001 (whatever a payload makes `load` do)
            self._wrong(name, leaf.name, str(error))
            return
        key = name, leaf.index
        self._columns[key] = column, pointer
        if not compares:
            self._rebuilt[key] = kind.build(column)
        elif self._held + pointer.length <= MAX_KEPT_BYTES:
            self._held += pointer.length
            self._kept[key] = made

    def _find_key(self, pointer: Pointer) -> None:
        """An index of several columns, which is built again."""
        file, kind = self._file, kind_named(KEY_LOOKUP)
        leaves = key_leaves(file, pointer)
        try:
            if leaves is None:
                raise InvalidIndexError("the file has no such columns, or of other types")
            opened_payload(file, pointer, fingerprint_of_key(file, leaves))
            columns = [indexed_column(file, leaf, KEY_LOOKUP) for leaf in leaves]
        except (InvalidIndexError, UnsupportedError) as error:
            self._wrong(KEY_LOOKUP, pointer.column, str(error))
            return
        name = f"{KEY_LOOKUP}({pointer.column})"
        self._keys[name] = leaves
        for column, member in zip(columns, kind.build_key(columns).members, strict=True):
            self._columns[name, column.leaf.index] = column, pointer
            self._rebuilt[name, column.leaf.index] = member

    def _find_one(self, name: str, kind: Any, named: str | None) -> None:
        leaf: Leaf | None = None
        try:
            leaf = kind.column(self._file, named)
            if leaf is not None:
                made, column = kind.read(self._file, leaf), indexed_column(self._file, leaf, name)
                self._columns[name, leaf.index] = column, None
                self._kept[name, leaf.index] = made
        except InvalidIndexError as error:
            self._wrong(name, named or ("" if leaf is None else leaf.name), str(error))

    def _read(
        self, kind: Any, column: IndexedColumn, pointer: Pointer, compares: bool = True
    ) -> Any:
        """The index as its kind takes it; None of one that the kind does not compare with data, and has no form for."""
        most = getattr(kind, "largest", MAX_PAYLOAD_BYTES)
        if pointer.length > most:
            raise InvalidIndexError(
                f"its {pointer.length:,} bytes are more than the {most:,} that are held against data"
            )
        payload = self._payload(column, pointer)
        load = getattr(kind, "parse", None) or getattr(kind, "load", None)
        if load is None:
            return bytes(payload) if compares else None
        return load(column, payload)

    def _payload(self, column: IndexedColumn, pointer: Pointer) -> memoryview:
        return opened_payload(self._file, pointer, fingerprint(self._file, column.leaf))

    def checks(self, chunk: Chunk) -> Iterator[tuple[str, Collecting]]:
        """By kind a generator that is sent the pages of a chunk. It returns sentences about what is wrong; for a kind whose index
        is built again, what its builder takes.
        """
        for (name, leaf), (column, pointer) in self._columns.items():
            if leaf != chunk.leaf.index:
                continue
            kind, key = kind_named(name), (name, leaf)
            if key in self._rebuilt:
                builder = self._rebuilt[key]
                if builder is None:  # given up
                    continue
                asking = builder.collect()
            else:
                index = self._kept.get(key)
                if index is None and pointer is not None:
                    index = self._read(kind, column, pointer)
                asking = kind.verify(column, index, chunk.row_group)
            yield name, Collecting(name, chunk.where, column, asking)

    def take(self, name: str, leaf: Leaf, row_group: int, made: Any) -> list[str]:
        """What is wrong, by what a check returned. A kind whose index is built again has its answer in `finish`."""
        key = name, leaf.index
        if key not in self._rebuilt:
            return list(made)
        builder = self._rebuilt[key]
        if isinstance(made, NotBuiltError):
            self._rebuilt[key] = None
        elif builder is not None:
            try:
                builder.add(row_group, made)
            except NotBuiltError:
                self._rebuilt[key] = None
            self._make_room()
        return []

    def _make_room(self) -> None:
        """Let builders put what they hold into files, where it is much."""
        builders = [one for one in self._rebuilt.values() if one is not None]
        if sum(getattr(one, "nbytes", 0) for one in builders) > MAX_BUILDING_BYTES:
            for one in builders:
                if isinstance(one, SpillingBuilder):
                    one.spill()

    def finish(self) -> None:
        """Compare the indexes that were built again with the payloads of the file."""
        for (name, leaf), builder in self._rebuilt.items():
            column, pointer = self._columns[name, leaf]
            assert pointer is not None
            kind, label = name, column.name
            leaves: tuple[Leaf, ...] = (column.leaf,)
            if name in self._keys:
                leaves = self._keys[name]
                if leaf != leaves[0].index:  # the first column finishes for all
                    continue
                kind, label = KEY_LOOKUP, pointer.column
                several = [self._rebuilt[name, one.index] for one in leaves]
                builder = None if None in several else builder
            try:
                if builder is None:
                    raise NotBuiltError("it would not be built of this data")
                chunks = fingerprint_of_key(self._file, leaves)
                if _equal(builder.finish(), opened_payload(self._file, pointer, chunks)):
                    continue
                what = "it is not the index of this data, which was built again"
            except (NotBuiltError, InvalidIndexError, PageseekError) as error:
                what = str(error)
            self._wrong(kind, label, what)


def _equal(one: bytes | bytearray, other: memoryview) -> bool:
    """Whether bytes are equal; they may be many, and are not copied."""
    return np.array_equal(np.frombuffer(one, np.uint8), np.frombuffer(other, np.uint8))


def _is_left_out(leaf: Leaf, found: Directory | None) -> bool:
    """Whether the directory has told already what is wrong with the entry."""
    return found is not None and any(path == leaf.path for _, path, _ in found.left_out)
