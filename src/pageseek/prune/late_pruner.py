"""Kinds of index of this package: their modules are imported when a file has one of theirs."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.io.range_requests import Wanted
from pageseek.predicate.bound import BoundLeaf
from pageseek.prune.checked_pruner import pruner_of
from pageseek.prune.protocol import Price, Proof, PruneContext, Pruner


class LatePruner:
    """The pruner of a kind whose module is imported for the first file that has its key."""

    cheap = whole = coarse = True

    def __init__(self, name: str, key: bytes, kind: Callable[[], Any]) -> None:
        self.name, self._key, self._kind = name, key, kind
        self._made: Pruner | None = None

    @property
    def _pruner(self) -> Pruner:
        if self._made is None:
            self._made = pruner_of(self._kind())
        return self._made

    def applies(self, file: FileMetadata, leaf: Leaf) -> bool:
        """Whether the footer has the key, and an index of the column."""
        return self._key in file.key_value_metadata and self._pruner.applies(file, leaf)

    def price(self, context: PruneContext, test: BoundLeaf) -> int | Price | None:
        """What the pruner of the kind says."""
        return self._pruner.price(context, test)

    def prune(
        self, context: PruneContext, tests: Sequence[BoundLeaf]
    ) -> Generator[Wanted, list[memoryview], list[Proof | None]]:
        """What the pruner of the kind proves."""
        return self._pruner.prune(context, tests)
