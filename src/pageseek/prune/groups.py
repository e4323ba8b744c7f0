"""Row groups against the statistics of their column chunks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pageseek._core import rows
from pageseek.metadata import ParquetFile
from pageseek.predicate.bind import Bound, BoundAnd, BoundConst, BoundLeaf
from pageseek.schema import Options


@dataclass(frozen=True, slots=True)
class GroupProof:
    """One bool a row group. `may`: a row may pass. `must`: every row passes, so nothing need be evaluated."""

    may: npt.NDArray[np.bool_]
    must: npt.NDArray[np.bool_]


def prune_groups(file: ParquetFile, bound: Bound, options: Options) -> GroupProof:
    """What the footer alone proves of each row group."""
    n = file.num_row_groups
    if isinstance(bound, BoundConst):
        return GroupProof(np.full(n, bound.value), np.full(n, bound.value))
    if isinstance(bound, BoundLeaf):
        zones = file.group_zones(bound.leaf, options)
        if zones is None:
            return GroupProof(np.ones(n, np.bool_), np.zeros(n, np.bool_))
        verdict = np.frombuffer(zones.probe(bound.op, bound.literals, bound.nan), np.uint8)
        bit = rows.MAY_FALSE if bound.negate else rows.MAY_TRUE
        return GroupProof((verdict & bit) != 0, verdict == bit)
    proofs = [prune_groups(file, arg, options) for arg in bound.args]
    join = np.logical_and if isinstance(bound, BoundAnd) else np.logical_or
    return GroupProof(join.reduce([p.may for p in proofs]), join.reduce([p.must for p in proofs]))
