"""Which mechanisms may prune, by name: those of this package, and those that others registered."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from pageseek._core import rows
from pageseek.base.errors import PredicateError, PrunerError
from pageseek.base.report import MECHANISMS
from pageseek.base.suggest import nearest
from pageseek.io.range_requests import Wanted
from pageseek.predicate.bound import BoundLeaf
from pageseek.prune.bloom_filter import BloomPruner
from pageseek.prune.datafusion_index import PublishedPruner
from pageseek.prune.dictionary import DictionaryPruner
from pageseek.prune.distinct_index import DistinctPruner
from pageseek.prune.protocol import Price, Proof, PruneContext, Pruner

T = TypeVar("T")
STATISTICS, COLUMN_INDEX, PAGE_HEADERS = "statistics", "column_index", "page_headers"
DICTIONARY = DictionaryPruner.name
DISTINCT, PUBLISHED = DistinctPruner.name, PublishedPruner.name
_OURS: tuple[Pruner, ...] = (BloomPruner(), DictionaryPruner(), DistinctPruner(), PublishedPruner())


class _Registry:
    """The pruners in the order of their registration; who reads the tuple needs no lock."""

    def __init__(self) -> None:
        self.pruners: tuple[Pruner, ...] = _OURS
        self._lock = threading.Lock()

    def add(self, pruner: Pruner) -> None:
        with self._lock:
            for known in self.pruners[len(_OURS) :]:
                if isinstance(known, _Checked) and known.pruner is pruner:
                    return
            if pruner.name in MECHANISMS or pruner.name in names():
                raise ValueError(
                    f"register_pruner: {pruner.name!r} is taken; give the pruner another name, or call "
                    f"unregister_pruner({pruner.name!r}) first if that is a pruner of yours"
                )
            self.pruners = (*self.pruners, _Checked(pruner))

    def remove(self, name: str) -> None:
        with self._lock:
            left = (*_OURS, *(p for p in self.pruners[len(_OURS) :] if p.name != name))
            if len(left) == len(self.pruners):
                known = ", ".join(p.name for p in self.pruners[len(_OURS) :]) or "none"
                raise ValueError(
                    f"unregister_pruner: no pruner {name!r} was registered; there are: {known}"
                )
            self.pruners = left


def register_pruner(pruner: Pruner) -> None:
    """Let a mechanism of your own rule out rows: an index that your files carry, or one that lies beside them.

    Scans that are made from then on use it with prune=True, know its name in `prune=[...]`, and count what it ruled
    out under that name in `explain`. It is asked where what it reads is little beside the pages at stake, cheaper
    mechanisms first, and about the rows that those left. The same object may be registered again, to no effect.
    Safe for threads.

    A registration holds for the process that made it, and pruners work where a scan is planned.
    `pageseek.spark.read` plans on the driver, so that to register there is enough. Code of your own that scans
    inside Spark's executors (in `mapInArrow`, say), or in worker processes that do not fork, has to import the
    module that registers there: put the call at the top level of that module, and import it in the function.

    Parameters
    ----------
    pruner : pageseek.prune.Pruner
        `name` (str), `cheap` (bool), `cost(site, test)` and `judge(site, tests)`, as that protocol says; `whole`
        and `coarse` may be missing, which is False.
        `pageseek.prune` also has what a pruner is made with: `Proof`, `Site`, `passing`.

    Raises
    ------
    TypeError
        The object does not fit the protocol.
    ValueError
        The name is taken, or is no plain word.
    """
    for attribute, kind in (("name", str), ("cheap", bool)):
        if not isinstance(getattr(pruner, attribute, None), kind):
            raise TypeError(
                f"register_pruner: {pruner!r} has no attribute {attribute!r} of type {kind.__name__}"
            )
    for method in ("cost", "judge"):
        if isinstance(pruner, type) or not callable(getattr(pruner, method, None)):
            what = "is a class, not an object" if isinstance(pruner, type) else f"has no {method}()"
            raise TypeError(f"register_pruner: {pruner!r} {what}")
    if not pruner.name.isidentifier():
        raise ValueError(
            f"register_pruner: the name {pruner.name!r} is no plain word such as 'my_index'"
        )
    _registry.add(pruner)


def unregister_pruner(name: str) -> None:
    """Take a registered pruner back; scans that exist already go without it. ValueError: there is none."""
    _registry.remove(name)


def pruners() -> tuple[Pruner, ...]:
    """Those that judge one row group at a time, ours and registered ones."""
    return _registry.pruners


def names() -> tuple[str, ...]:
    """All names that `prune=[...]` knows."""
    return (STATISTICS, COLUMN_INDEX, PAGE_HEADERS, *(pruner.name for pruner in pruners()))


def mechanisms(chosen: bool | Collection[str]) -> frozenset[str]:
    """The names of the mechanisms that may prune: all, none, or those named."""
    known = names()
    if isinstance(chosen, bool):
        return frozenset(known if chosen else ())
    if not isinstance(chosen, Collection):
        raise TypeError(f"prune={chosen!r}: True, False, or a list of names")
    wanted = [chosen] if isinstance(chosen, str) else list(chosen)
    unknown = [name for name in wanted if name not in known]
    if unknown:
        close = nearest(str(unknown[0]), known)
        meant = f" did you mean {close[0]!r}?" if close else ""
        raise PredicateError(
            f"prune={unknown[0]!r}:{meant} True, False, or some of {', '.join(known)}"
        )
    return frozenset(wanted)


class _Checked:
    """A pruner that is not ours: whatever it does wrong is an error that says where."""

    def __init__(self, pruner: Pruner) -> None:
        self.pruner = pruner
        self.name, self.cheap = pruner.name, pruner.cheap  # as they were when they were looked at
        self.whole = getattr(pruner, "whole", False) is True
        self.coarse = getattr(pruner, "coarse", False) is True

    def cost(self, context: PruneContext, test: BoundLeaf) -> int | Price | None:
        found = self._call(context, "cost", lambda: self.pruner.cost(replace(context), test))
        size = found.fetched if isinstance(found, Price) else found
        if size is not None and (not isinstance(size, int) or size < 0):
            raise self._error(context, f"cost() gave {found!r}, not a number of bytes or None")
        return found

    def judge(
        self, context: PruneContext, tests: Sequence[BoundLeaf]
    ) -> Generator[Wanted, list[memoryview], list[Proof | None]]:
        asking = self._call(context, "judge", lambda: self.pruner.judge(replace(context), tests))
        if not isinstance(asking, Generator):
            raise self._error(context, f"judge() gave {type(asking).__name__}, not a generator")
        given: list[memoryview] | None = None
        while True:
            done, found = self._call(context, "judge", lambda: _resumed(asking, given))  # noqa: B023
            if done:
                return self._proofs(context, tests, found)
            given = yield self._places(context, found)

    def _places(self, context: PruneContext, wanted: Any) -> Wanted:
        try:
            places = [(int(offset), int(length)) for offset, length in wanted]
        except (TypeError, ValueError) as error:
            raise self._error(
                context, f"judge() asked for {wanted!r}, not (offset, length)"
            ) from error
        for offset, length in places:
            if offset < 0 or length <= 0 or offset + length > context.file.store.size:
                raise self._error(
                    context,
                    f"judge() asked for {length} bytes at byte {offset} of a file of {context.file.store.size}",
                )
        return places

    def _proofs(
        self, context: PruneContext, tests: Sequence[BoundLeaf], found: Any
    ) -> list[Proof | None]:
        if not isinstance(found, Sequence) or len(found) != len(tests):
            n = len(found) if isinstance(found, Sequence) else repr(found)
            raise self._error(context, f"judge() gave {n}, not a list of {len(tests)} proofs")
        num_rows = context.file.group_rows[context.row_group]
        for test, proof in zip(tests, found, strict=True):
            if proof is None:
                continue
            fits = isinstance(proof, Proof) and all(
                isinstance(part, rows.RowRanges) for part in (proof.may, proof.must)
            )
            if not fits:
                raise self._error(context, f"judge() gave {proof!r} for {test!r}, not a Proof")
            for part in (proof.may, proof.must):
                if part and part.bounds[1] > num_rows:
                    raise self._error(
                        context,
                        f"judge() speaks of row {part.bounds[1] - 1} of {num_rows} for {test!r}",
                    )
            if proof.must - proof.may:
                raise self._error(
                    context, f"judge() gave rows for {test!r} that must pass and may not"
                )
        return list(found)

    def _call(self, context: PruneContext, method: str, call: Callable[[], T]) -> T:
        try:
            return call()
        except Exception as error:
            raise self._error(
                context, f"{method}() raised {type(error).__name__}: {error}"
            ) from error

    def _error(self, context: PruneContext, what: str) -> PrunerError:
        return PrunerError(
            f"{context.file.name}: row group {context.row_group}: pruner {self.name!r}: {what}; "
            "without it (prune=[...]) the file can be read"
        )


def _resumed(asking: Generator[Any, Any, Any], given: list[memoryview] | None) -> tuple[bool, Any]:
    """Whether a generator is done, and what it returned; else what it wants next."""
    try:
        return False, asking.send(given)
    except StopIteration as done:
        return True, done.value


_registry = _Registry()
