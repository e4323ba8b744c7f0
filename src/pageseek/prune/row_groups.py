"""Row groups against the statistics of their column chunks: all of a file at once, from the footer alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Protocol

import numpy as np

from pageseek._core import rows
from pageseek.base.records import dataclass
from pageseek.format.schema import Leaf
from pageseek.format.types import Options
from pageseek.predicate.bound import (
    Bound,
    BoundAnd,
    BoundAny,
    BoundConst,
    BoundLeaf,
    BoundNot,
    BoundOr,
)

_ANY = rows.MAY_TRUE, rows.MAY_FALSE
_MAY = {bit: bytes(int(v & bit != 0) for v in range(256)) for bit in _ANY}  # verdict -> 0 or 1
_OTHER = bytes.maketrans(b"\0\1", b"\1\0")
_MUST = {bit: bytes(int(v == bit) for v in range(256)) for bit in _ANY}


@dataclass(frozen=True, slots=True)
class GroupProof:
    """One byte a row group, 0 or 1. `may`: a row may pass. `must`: every row passes, nothing need be evaluated.

    `tests`: the same for each test of the filter, by its id.
    """

    may: bytes
    must: bytes
    tests: dict[int, tuple[bytes, bytes]] = field(default_factory=dict)


class Groups(Protocol):
    """Row groups of one file, or of several, with their statistics."""

    @property
    def num_row_groups(self) -> int: ...

    def group_zones(self, leaf: Leaf, options: Options) -> rows.Zones | None:
        """The statistics of a leaf's chunks as zones to probe, one a row group; None without any."""
        ...


def bit_of(test: BoundLeaf) -> int:
    """The outcome of the comparison for which a row passes the test."""
    return rows.MAY_FALSE if test.negate else rows.MAY_TRUE


def surely(verdict: bytes, bit: int) -> bytes:
    """1 for each zone of which every row has this outcome."""
    return verdict.translate(_MUST[bit])


def prune_groups(
    file: Groups,
    bound: Bound,
    options: Options,
    statistics: bool = True,
    told: Mapping[int, tuple[bytes, bytes]] | None = None,
) -> GroupProof:
    """What the footer alone proves of each row group; without its `statistics`, what the filter itself says. `told`: what
    is known of tests besides, by their ids.
    """
    tests: dict[int, tuple[bytes, bytes]] = {}

    def of_test(test: Bound) -> tuple[bytes, bytes]:
        found = _proved(file, test, options, statistics)
        if told is not None and id(test) in told:
            known = told[id(test)]
            found = (
                _joined(np.bitwise_and, (found[0], known[0])),
                _joined(np.bitwise_or, (found[1], known[1])),
            )
        tests[id(test)] = found
        return found

    may, must = _combined(bound, of_test, file.num_row_groups)
    return GroupProof(may, must, tests)


def _combined(
    part: Bound, of_test: Callable[[Bound], tuple[bytes, bytes]], n: int
) -> tuple[bytes, bytes]:
    """What is proved of a condition by what is proved of its tests. No closure: one that calls itself would hold the file
    until garbage is collected.
    """
    if isinstance(part, BoundNot):
        inner = _combined(part.arg, of_test, n)
        return inner[1].translate(_OTHER), inner[0].translate(_OTHER)
    if isinstance(part, BoundAny) and not part.every:
        return _combined(part.test, of_test, n)[0], bytes(n)
    if not isinstance(part, (BoundAnd, BoundOr)):
        return of_test(part)
    parts = [_combined(arg, of_test, n) for arg in part.args]
    join = np.bitwise_and if isinstance(part, BoundAnd) else np.bitwise_or
    may, must = zip(*parts, strict=True)
    return _joined(join, may), _joined(join, must)


def _joined(join: np.ufunc, parts: tuple[bytes, ...]) -> bytes:
    return bytes(join.reduce([np.frombuffer(part, np.uint8) for part in parts]))


def _proved(file: Groups, test: Bound, options: Options, statistics: bool) -> tuple[bytes, bytes]:
    n = file.num_row_groups
    if isinstance(test, BoundConst):
        every = bytes([test.value]) * n
        return every, every
    zones = None
    if statistics and isinstance(test, BoundLeaf) and not test.leaf.group:
        zones = file.group_zones(test.leaf, options)
    if zones is None:
        return b"\1" * n, bytes(n)
    assert isinstance(test, BoundLeaf)
    verdict, bit = zones.probe(test.op, test.against(0), test.nan), bit_of(test)
    return verdict.translate(_MAY[bit]), verdict.translate(_MUST[bit])
