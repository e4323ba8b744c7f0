"""Row groups against the statistics of their column chunks: all of a file at once, from the footer alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from functools import partial
from typing import Protocol

import numpy as np

from pageseek._core import rows
from pageseek.base.records import dataclass
from pageseek.format.schema import Leaf
from pageseek.format.types import Options
from pageseek.predicate.bound import Bound, BoundConst, BoundLeaf, Unjoined, fold
from pageseek.prune.verdicts import ALL, PASSES, SOME

_OTHER = bytes.maketrans(b"\0\1", b"\1\0")


@dataclass(frozen=True, slots=True)
class GroupProof:
    """One byte a row group, 0 or 1. `may`: a row may pass. `must`: every row passes, nothing need be evaluated.

    `tests`: such a pair for each part of the filter that is not joined of others, by its id.
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
    of_part = partial(_prove, tests, file, options, statistics, known)
    if isinstance(bound, BoundLeaf):  # as most filters are
        may, must = of_part(bound)
    else:
        never = bytes(file.num_row_groups)  # that some element passes is not proved of any row
        may, must = fold(bound, of_part, _join, _inverted, lambda found: (found[0], never))
    return GroupProof(may, must, tests)


def _prove(
    tests: dict[int, tuple[bytes, bytes]],
    file: Groups,
    options: Options,
    statistics: bool,
    known: Mapping[int, tuple[bytes, bytes]] | None,
    part: Unjoined,
) -> tuple[bytes, bytes]:
    """What is proved of a part of the filter, which is noted in `tests`."""
    zones = None
    if statistics and isinstance(part, BoundLeaf) and not part.leaf.group:
        zones = file.group_zones(part.leaf, options)
    if zones is not None:
        assert isinstance(part, BoundLeaf)
        verdict = zones.probe(part.op, part.against(0), part.nan)
        passes = PASSES[part.negate]
        found = verdict.translate(SOME[passes]), verdict.translate(ALL[passes])
    else:
        n = file.num_row_groups
        found = b"\1" * n, bytes(n)
        if isinstance(part, BoundConst):
            found = (found[0], found[0]) if part.value else (found[1], found[1])
    if known is not None and id(part) in known:
        may, must = known[id(part)]
        found = _joined(np.bitwise_and, (found[0], may)), _joined(np.bitwise_or, (found[1], must))
    tests[id(part)] = found
    return found


def _inverted(found: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    return found[1].translate(_OTHER), found[0].translate(_OTHER)


def _join(is_and: bool, parts: Iterator[tuple[bytes, bytes]]) -> tuple[bytes, bytes]:
    join = np.bitwise_and if is_and else np.bitwise_or
    may, must = zip(*parts, strict=True)
    return _joined(join, may), _joined(join, must)


def _joined(join: np.ufunc, parts: tuple[bytes, ...]) -> bytes:
    return bytes(join.reduce([np.frombuffer(part, np.uint8) for part in parts]))
