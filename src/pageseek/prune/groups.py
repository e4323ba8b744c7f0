"""Row groups against the statistics of their column chunks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pageseek._core import rows
from pageseek.metadata import ParquetFile
from pageseek.predicate.bind import (
    Bound,
    BoundAnd,
    BoundAny,
    BoundConst,
    BoundLeaf,
    BoundNot,
    BoundResidual,
)
from pageseek.types import Options

_ANY = rows.MAY_TRUE, rows.MAY_FALSE
_MAY = {bit: bytes(int(v & bit != 0) for v in range(256)) for bit in _ANY}  # verdict -> 0 or 1
_MUST = {bit: bytes(int(v == bit) for v in range(256)) for bit in _ANY}


@dataclass(frozen=True, slots=True)
class GroupProof:
    """One byte a row group, 0 or 1. `may`: a row may pass. `must`: every row passes, nothing need be evaluated."""

    may: bytes
    must: bytes


def prune_groups(file: ParquetFile, bound: Bound, options: Options) -> GroupProof:
    """What the footer alone proves of each row group."""
    n = file.num_row_groups
    if isinstance(bound, BoundConst):
        every = bytes([bound.value]) * n
        return GroupProof(every, every)
    if isinstance(bound, BoundLeaf):
        zones = None if bound.leaf.group else file.group_zones(bound.leaf, options)
        if zones is None:
            return GroupProof(b"\1" * n, bytes(n))
        verdict = zones.probe(bound.op, bound.literals, bound.nan)
        bit = rows.MAY_FALSE if bound.negate else rows.MAY_TRUE
        return GroupProof(verdict.translate(_MAY[bit]), verdict.translate(_MUST[bit]))
    if isinstance(bound, BoundResidual) or (isinstance(bound, BoundAny) and bound.every):
        return GroupProof(b"\1" * n, bytes(n))
    if isinstance(bound, BoundAny):
        return GroupProof(prune_groups(file, bound.test, options).may, bytes(n))
    if isinstance(bound, BoundNot):
        inner = prune_groups(file, bound.arg, options)
        swap = bytes.maketrans(b"\0\1", b"\1\0")
        return GroupProof(inner.must.translate(swap), inner.may.translate(swap))
    proofs = [prune_groups(file, arg, options) for arg in bound.args]
    join = np.bitwise_and if isinstance(bound, BoundAnd) else np.bitwise_or

    def joined(parts: list[bytes]) -> bytes:
        return bytes(join.reduce([np.frombuffer(part, np.uint8) for part in parts]))

    return GroupProof(joined([p.may for p in proofs]), joined([p.must for p in proofs]))
