"""Indexes that the footer's directory lists (docs/format.md). Each is read once for a file, checked, and kept with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pageseek.format.embedded import (
    KEY,
    InvalidIndexError,
    Pointer,
    directory,
    fingerprint,
    of_leaf,
    opened,
    why_none,
)
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.format.types import LeafType
from pageseek.io.range_requests import Asking
from pageseek.predicate.bound import BoundLeaf
from pageseek.prune.kind import IndexedColumn
from pageseek.prune.protocol import Price, PruneContext

Load = Callable[[IndexedColumn, memoryview], Any]
MEMORY_FACTOR = 4  # an index takes about so many times the memory of its payload


class EmbeddedPruner:
    """Finds and reads the indexes of one embedded kind for a scan."""

    def __init__(self, name: str, version: int, title: str, load: Load | None) -> None:
        """`title`: what notes call an index of this kind."""
        self.name, self.version, self.title = name, version, title
        self._load = load

    def applies(self, file: FileMetadata, leaf: Leaf) -> bool:
        """Whether the footer lists an index of the column, even one that is ignored with a note."""
        if leaf.group or leaf.max_rep or KEY not in file.key_value_metadata:
            return False
        try:
            found = directory(file)
        except InvalidIndexError:  # `price` notes it
            return True
        of_kind = leaf, self.name, self.version, found
        return of_leaf(*of_kind) is not None or why_none(*of_kind) is not None

    def price(self, context: PruneContext, test: BoundLeaf) -> Price | None:
        """The bytes of the index, 0 if it is in memory; None where the file has none of the column."""
        leaf, file = test.leaf, context.file
        if leaf.group or leaf.max_rep or test.leaf_type.is_null:
            return None
        key = self.name, leaf.index, test.leaf_type
        if key in file.indexes:
            if file.indexes[key] is not None:
                return Price(0)
            file.note_ignored_indexes(None, leaf, context.report)
            return None
        pointer = self.pointer(context, leaf)
        if pointer is None:
            return None
        return Price(context.to_fetch(pointer.offset, pointer.length))

    def load(self, context: PruneContext, tests: Sequence[BoundLeaf]) -> Asking[None]:
        """Read the indexes that are not in memory, so that `context.index` has all of them."""
        known = context.file.indexes
        missing: dict[tuple[str, int, LeafType], tuple[Leaf, Pointer]] = {}
        for test in tests:
            key = self.name, test.leaf.index, test.leaf_type
            if key not in known and key not in missing:
                pointer = self.pointer(context, test.leaf)
                if pointer is not None:
                    missing[key] = test.leaf, pointer
        if missing:
            answers = yield [(one.offset, one.length) for _, one in missing.values()]
            for (key, (leaf, pointer)), data in zip(missing.items(), answers, strict=True):
                if key not in known:  # the generator of another row group may have been first
                    found = self._made(context, leaf, key[2], pointer, data)
                    context.file.keep_index(key, found, MEMORY_FACTOR * pointer.length)
        context.kind = self.name

    def _made(
        self,
        context: PruneContext,
        leaf: Leaf,
        leaf_type: LeafType,
        pointer: Pointer,
        data: memoryview,
    ) -> Any:
        file = context.file
        try:
            payload = opened(pointer, data, fingerprint(file, leaf))
            if self._load is None:
                return bytes(payload)
            return self._load(IndexedColumn(leaf, leaf_type, file.group_rows), payload)
        except Exception as error:  # noqa: BLE001 (a payload may make `load` raise anything)
            file.ignore_index(None, leaf, self.ignored(file, leaf, error), context.report)
            return None

    def pointer(self, context: PruneContext, leaf: Leaf) -> Pointer | None:
        """Where the index of a column lies."""
        file, report = context.file, context.report
        key = "pointer", self.name, leaf.index
        known: dict[Any, Any] = file.indexes
        if key not in known:
            made, why = None, None
            try:
                listed = directory(file)
                made = of_leaf(leaf, self.name, self.version, listed)
                if made is None:
                    why = why_none(leaf, self.name, self.version, listed)
            except InvalidIndexError as error:
                text = f"{file.name}: embedded indexes ignored: {error}"
                file.ignore_index(None, leaf, text, report)
            if why is not None:
                file.ignore_index(None, leaf, self.ignored(file, leaf, why), report)
            known[key] = made
        found: Pointer | None = known[key]
        if found is None:
            file.note_ignored_indexes(None, leaf, report)
        return found

    def ignored(self, file: FileMetadata, leaf: Leaf, why: object) -> str:
        """The note on an index that is not used."""
        return f"{file.name}: {leaf.name!r}: {self.title} ignored: {why}"
