"""Pruners of kinds of index: those that users register, whose errors name the pruner and the place, and those of this
package, which are imported when they are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from pageseek._core import rows
from pageseek.base.errors import PrunerError
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.io.range_requests import Asking, Wanted
from pageseek.predicate.bound import BoundLeaf, BoundPattern
from pageseek.prune.protocol import Price, Proof, PruneContext, Pruner

if TYPE_CHECKING:
    from pageseek.prune.embedded_pruner import EmbeddedPruner

T = TypeVar("T")
PRICE, PRUNE = ("price", "cost"), ("prune", "judge")  # names of the methods, the former ones last


class CheckedPruner:
    """A pruner of a user's. `embedded` finds its indexes in files; None for a pruner that finds what it reads by itself."""

    def __init__(self, pruner: Any, embedded: EmbeddedPruner | None = None) -> None:
        self.pruner, self._embedded = pruner, embedded
        # copied once: the user's object may change later
        self.name = pruner.name
        self.cheap = getattr(pruner, "cheap", embedded is not None) is True
        self.whole = embedded is not None or getattr(pruner, "whole", False) is True
        self.coarse = getattr(pruner, "coarse", False) is True
        self.patterns = getattr(pruner, "patterns", False) is True
        self._price = method_of(pruner, PRICE)
        self._prune = method_of(pruner, PRUNE)

    def applies(self, file: FileMetadata, leaf: Leaf) -> bool:
        """Whether the footer has an entry for the column; True where only the pruner knows."""
        if self._embedded is not None:
            return self._embedded.applies(file, leaf)
        applies = getattr(self.pruner, "applies", None)
        return applies is None or bool(applies(file, leaf))

    def price(self, context: PruneContext, test: BoundLeaf) -> int | Price | None:
        """The price that the pruner gives; for an embedded index, the bytes of it that are not in memory."""
        embedded = self._embedded
        if embedded is not None:
            answers = getattr(self.pruner, "answers", None)
            if answers is not None and not self._call(context, "answers", lambda: answers(test)):
                return None
            return embedded.price(context, test)
        name = self._price
        method: Callable[..., Any] = getattr(self.pruner, name)
        found = self._call(context, name, lambda: method(replace(context), test))
        size = found.fetched if isinstance(found, Price) else found
        if size is not None and (not isinstance(size, int) or size < 0):
            raise self._error(context, f"{name}() gave {found!r}, not a number of bytes or None")
        known: int | Price | None = found
        return known

    def prune(
        self, context: PruneContext, tests: Sequence[BoundLeaf]
    ) -> Asking[list[Proof | None]]:
        """Read the indexes of the columns, if they are embedded, then ask the pruner."""
        context = replace(context)
        if self._embedded is not None:
            yield from self._embedded.load(context, tests)
        method: Callable[..., Any] = getattr(self.pruner, self._prune)
        found = self._call(context, self._prune, lambda: method(context, tests))
        if isinstance(found, Generator):
            asking, given = found, None
            while True:
                done, found = self._call(context, self._prune, lambda: _resumed(asking, given))  # noqa: B023
                if done:
                    break
                given = yield self._places(context, found)
        elif self._embedded is None:
            what = f"{self._prune}() gave {type(found).__name__}, not a generator"
            raise self._error(context, what)
        return self._proofs(context, tests, found)

    def _places(self, context: PruneContext, wanted: Any) -> Wanted:
        try:
            places = [(int(offset), int(length)) for offset, length in wanted]
        except (TypeError, ValueError) as error:
            what = f"{self._prune}() asked for {wanted!r}, not (offset, length)"
            raise self._error(context, what) from error
        size = context.file.store.size
        for offset, length in places:
            if offset < 0 or length <= 0 or offset + length > size:
                what = f"asked for {length} bytes at byte {offset} of a file of {size}"
                raise self._error(context, f"{self._prune}() {what}")
        return places

    def _proofs(
        self, context: PruneContext, tests: Sequence[BoundLeaf], found: Any
    ) -> list[Proof | None]:
        name = self._prune
        if not isinstance(found, Sequence) or len(found) != len(tests):
            n = len(found) if isinstance(found, Sequence) else repr(found)
            raise self._error(context, f"{name}() gave {n}, not a list of {len(tests)} proofs")
        num_rows = context.file.group_rows[context.row_group]
        for test, proof in zip(tests, found, strict=True):
            if proof is None:
                continue
            fits = isinstance(proof, Proof) and all(
                isinstance(part, rows.RowRanges) for part in (proof.may, proof.must)
            )
            if not fits:
                raise self._error(context, f"{name}() gave {proof!r} for {test!r}, not a Proof")
            for part in (proof.may, proof.must):
                if part and part.bounds[1] > num_rows:
                    what = f"speaks of row {part.bounds[1] - 1} of {num_rows} for {test!r}"
                    raise self._error(context, f"{name}() {what}")
            if proof.counted and not (context.counts_only and context.ranges.num_rows == num_rows):
                raise self._error(context, f"{name}() counted for {test!r}, where rows are asked")
            if proof.must - proof.may:
                what = f"gave rows for {test!r} that must pass and may not"
                raise self._error(context, f"{name}() {what}")
        return list(found)

    def _call(self, context: PruneContext, method: str, call: Callable[[], T]) -> T:
        try:
            return call()
        except Exception as error:
            what = f"{method}() raised {type(error).__name__}: {error}"
            raise self._error(context, what) from error

    def _error(self, context: PruneContext, what: str) -> PrunerError:
        return PrunerError(
            f"{context.file.name}: row group {context.row_group}: pruner {self.name!r}: {what}; "
            "without it (prune=[...]) the file can be read"
        )


class LatePruner:
    """The pruner of a kind of this package, whose module is imported for the first file that has its key."""

    cheap = whole = coarse = patterns = True

    def __init__(self, name: str, key: bytes, kind: Callable[[], Any]) -> None:
        """`kind`: imports the kind."""
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
        """The price of the kind's pruner."""
        if isinstance(test, BoundPattern) and not self._pruner.patterns:
            return None
        return self._pruner.price(context, test)

    def prune(
        self, context: PruneContext, tests: Sequence[BoundLeaf]
    ) -> Asking[list[Proof | None]]:
        """The proofs of the kind's pruner."""
        return self._pruner.prune(context, tests)


def pruner_of(kind: Any) -> Pruner:
    """The pruner of a kind: it reads the kind's embedded indexes, or asks an object that reads by itself."""
    embedded = None
    if callable(getattr(kind, "build", None)) and not callable(getattr(kind, "price", None)):
        from pageseek.prune.embedded_pruner import (
            EmbeddedPruner,  # late: few files have such an index
        )

        title = getattr(kind, "title", f"index of kind {kind.name!r}")
        load = getattr(kind, "load", None)
        embedded = EmbeddedPruner(kind.name, getattr(kind, "version", 1), title, load)
    return CheckedPruner(kind, embedded)


def method_of(pruner: object, names: tuple[str, ...]) -> str:
    """The first of these names by which the pruner has a method; the last if there is none."""
    return next((name for name in names if callable(getattr(pruner, name, None))), names[-1])


def _resumed(asking: Generator[Any, Any, Any], given: list[memoryview] | None) -> tuple[bool, Any]:
    """Whether a generator is done, and what it returned, or what it wants next."""
    try:
        return False, asking.send(given)
    except StopIteration as done:
        return True, done.value
