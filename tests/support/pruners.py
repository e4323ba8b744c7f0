"""One pruner at a time, by hand: what it asks for, what it proves, and whether that is so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pageseek as ps
from pageseek._core.rows import RowRanges
from pageseek.base.report import Report
from pageseek.format.columns import tested
from pageseek.format.types import Options
from pageseek.io.range_requests import answered
from pageseek.predicate.bind import bind
from pageseek.predicate.bound import leaves_of
from pageseek.prune.protocol import Price, Proof, PruneContext, Pruner
from support.opened import open_metadata


@dataclass
class Judged:
    """The proofs of a pruner for the tests of a condition, by row group."""

    proofs: list[list[Proof | None]] = field(default_factory=list)
    costs: list[list[int | None]] = field(default_factory=list)
    waves: list[list[tuple[int, int]]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def denied(self) -> list[bool]:
        """The row groups without a row that passes a single test."""
        return [proof is not None and not proof.may for (proof,) in self.proofs]

    @property
    def sure(self) -> list[bool]:
        """The row groups with a row that certainly passes a single test."""
        return [proof is not None and bool(proof.must) for (proof,) in self.proofs]

    @property
    def bytes(self) -> int:
        return sum(length for wave in self.waves for _, length in wave)


def judged(
    data: bytes,
    pruner: Pruner,
    condition: ps.Expression,
    nan: str = "ieee",
    answer: Callable[[bytes], bytes] = bytes,
    rows: Sequence[tuple[int, int]] | None = None,
    index: bool = False,
    **options: Any,
) -> Judged:
    """Put a condition to a pruner. `answer` may spoil what it reads; `index`: with the offset index at hand."""
    made, chosen = Judged(), Options(**options)
    file = open_metadata(data)
    bound = bind(condition, lambda path: tested(file, path, chosen), nan)
    tests = leaves_of(bound)

    def fetch(wanted: list[tuple[int, int]]) -> list[memoryview]:
        made.waves.append(wanted)
        for at, length in wanted:
            assert 0 <= at < at + length <= len(data), (at, length)
        return [memoryview(answer(data[at : at + length])) for at, length in wanted]

    for group, count in enumerate(file.group_rows):
        for test in tests if index else ():
            file.offset_index(group, test.leaf)
        ranges = RowRanges.all(count) if rows is None else RowRanges(list(rows))
        report = Report()
        site = PruneContext(file, group, ranges, chosen, report)
        made.costs.append([_size(pruner.price(site, test)) for test in tests])
        made.proofs.append(answered(pruner.prune(site, tests), fetch))
        made.notes += [note for note in report.notes if note not in made.notes]
    return made


def _size(price: int | Price | None) -> int | None:
    """The bytes that are examined; None if that does not pay."""
    if isinstance(price, Price):
        return price.size if price.pays else None
    return price


def holds(
    data: bytes, pruner: Pruner, condition: ps.Expression, nan: str = "ieee", **options: Any
) -> Judged:
    """`judged`, with the proofs compared with the rows of a full read, by their column "row"."""
    made = judged(data, pruner, condition, nan, **options)
    table = ps.read_table(data, columns=["row"], filter=condition, prune=False, nan=nan, **options)
    found, first = set(table["row"].to_pylist()), 0
    for count, (proof,) in zip(open_metadata(data).group_rows, made.proofs, strict=True):
        for row in range(count):
            if proof is not None and row not in proof.may:
                assert first + row not in found, condition
            if proof is not None and row in proof.must:
                assert first + row in found, condition
        first += count
    return made
