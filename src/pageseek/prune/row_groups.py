"""Row groups against the statistics of their column chunks: all of a file at once, from the footer alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Protocol

import numpy as np

from pageseek._core import rows
from pageseek.base.records import dataclass
from pageseek.format.schema import Leaf
from pageseek.format.types import Options
from pageseek.predicate.bound import Bound, BoundConst, BoundLeaf, Unjoined, fold

_ANY = rows.MAY_TRUE, rows.MAY_FALSE
_MAY = {bit: bytes(int(v & bit != 0) for v in range(256)) for bit in _ANY}  # verdict -> 0 or 1
_OTHER = bytes.maketrans(b"\0\1", b"\1\0")
_MUST = {bit: bytes(int(v == bit) for v in range(256)) for bit in _ANY}


@dataclass(frozen=True, slots=True)
class GroupProof:
    """One byte a row group, 0 or 1. `may`: a row may pass. `must`: every row passes, nothing need be evaluated.

    `tests`: such a pair for each test of the filter, by its id.
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


def fully_matched(verdict: bytes, bit: int) -> bytes:
    """1 for each zone whose rows all have this outcome."""
    return verdict.translate(_MUST[bit])


def prune_groups(
    file: Groups,
    bound: Bound,
    options: Options,
    statistics: bool = True,
    known: Mapping[int, tuple[bytes, bytes]] | None = None,
) -> GroupProof:
    """What the footer alone proves of each row group; without its `statistics`, what the filter itself does. `known`: what
    else is proved of tests, by their ids.
    """
    tests: dict[int, tuple[bytes, bytes]] = {}

    def of_part(part: Unjoined) -> tuple[bytes, bytes]:
        found = _proved(file, part, options, statistics)
        if known is not None and id(part) in known:
            may, must = known[id(part)]
            found = (
                _joined(np.bitwise_and, (found[0], may)),
                _joined(np.bitwise_or, (found[1], must)),
            )
        tests[id(part)] = found
        return found

    def some(found: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
        return found[0], bytes(file.num_row_groups)

    may, must = fold(bound, of_part, _join, _inverted, some)
    return GroupProof(may, must, tests)


def _inverted(found: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    return found[1].translate(_OTHER), found[0].translate(_OTHER)


def _join(is_and: bool, parts: Iterator[tuple[bytes, bytes]]) -> tuple[bytes, bytes]:
    join = np.bitwise_and if is_and else np.bitwise_or
    may, must = zip(*parts, strict=True)
    return _joined(join, may), _joined(join, must)


def _joined(join: np.ufunc, parts: tuple[bytes, ...]) -> bytes:
    return bytes(join.reduce([np.frombuffer(part, np.uint8) for part in parts]))


def _proved(
    file: Groups, test: Unjoined, options: Options, statistics: bool
) -> tuple[bytes, bytes]:
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
