"""What is known of the rows of one row group: a proof for each test, and what the whole filter makes of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from pageseek._core import rows
from pageseek.predicate.bound import (
    Bound,
    BoundAnd,
    BoundConst,
    BoundLeaf,
    Unjoined,
    fold,
    leaves_of,
)
from pageseek.prune.protocol import Proof, PruneContext
from pageseek.prune.row_groups import GroupProof

_NONE = rows.RowRanges.empty()
_NO_ROWS = Proof(_NONE, _NONE)
_MayMust: TypeAlias = tuple[rows.RowRanges, rows.RowRanges]


class ProofAccumulator:
    """Proofs of several mechanisms about the same tests, joined: a row may pass if none of them denies it.

    A filter can fall by two mechanisms where neither would do: of `a = 1 or b = 2` one may deny the first and
    another the second.
    """

    __slots__ = ("_all", "_asked", "_bound", "_exact", "_proofs", "context", "fully_matched")

    def __init__(self, context: PruneContext, bound: Bound, footer: GroupProof) -> None:
        self.context = context
        self._bound = bound
        self._asked = context.ranges
        self._all = rows.RowRanges.all(context.file.group_rows[context.row_group])
        self._proofs: dict[int, Proof] = {}
        self._exact: set[int] = set()  # tests decided for the row group as a whole, by id
        self.fully_matched = _NONE
        for test, (may, must) in footer.tests.items():
            if not may[context.row_group]:
                self._proofs[test] = _NO_ROWS
            elif must[context.row_group]:
                self._proofs[test] = Proof(self._all, self._all)

    def open(self, tests: Sequence[BoundLeaf], coarse: bool = False) -> list[BoundLeaf]:
        """Those tests that some row in question may pass and another may not; none, if denying all of them
        would leave as many rows as there are. `coarse`: for a mechanism that speaks of row groups as a whole.
        """
        found = []
        for test in tests:
            if coarse and id(test) in self._exact:
                continue
            proof = self._proofs.get(id(test))
            if proof is None or (proof.may and proof.must.num_rows < self._all.num_rows):
                found.append(test)
        if not found or (len(self._proofs) == 0 and isinstance(self._bound, (BoundLeaf, BoundAnd))):
            return found
        if isinstance(self._bound, BoundLeaf):
            return found if self.context.ranges else []
        if self._remaining_without(found) < self.context.ranges.num_rows:
            return found
        # what this mechanism denies may matter together with what another will deny
        others = [test for test in leaves_of(self._bound) if not any(test is one for one in found)]
        return (
            found
            if self._remaining_without(found + others) < self._remaining_without(others)
            else []
        )

    def _remaining_without(self, denied: Sequence[BoundLeaf]) -> int:
        """How many rows would remain if no row passed these tests."""
        proofs = self._proofs | {id(test): _NO_ROWS for test in denied}
        return int((self._proof_of_filter(proofs)[0] & self.context.ranges).num_rows)

    def add(self, tests: Sequence[BoundLeaf], proofs: Sequence[Proof | None]) -> bool:
        """Take in what a mechanism proved: the rows of `context`, and `fully_matched`, are then those that the whole filter
        leaves. Returns whether any test is closer to being decided.
        """
        closer = False
        for test, proof in zip(tests, proofs, strict=True):
            if proof is None:
                continue
            if proof.exact:
                self._exact.add(id(test))
            before = self._proofs.get(id(test))
            joined = proof
            if before is not None:
                joined = Proof(before.may & proof.may, before.must | proof.must)
            open_before = self._open_rows(before)
            self._proofs[id(test)] = joined
            closer |= self._open_rows(joined) < open_before
        if closer:
            may, must = self._proof_of_filter(self._proofs)
            self.context.ranges = may & self._asked
            self.fully_matched = must & self.context.ranges
        return closer

    def _open_rows(self, proof: Proof | None) -> int:
        """How many rows may pass a test or fail it."""
        if proof is None:
            return int(self._all.num_rows)
        return int(proof.may.num_rows - proof.must.num_rows)

    def _proof_of_filter(self, proofs: dict[int, Proof]) -> _MayMust:
        """What proofs of its tests prove of the whole filter."""
        every = self._all

        def of_part(part: Unjoined) -> _MayMust:
            proof = proofs.get(id(part))
            if proof is not None:
                return proof.may, proof.must
            if isinstance(part, BoundConst):
                return (every, every) if part.value else (_NONE, _NONE)
            return every, _NONE

        return fold(
            self._bound, of_part, _joined, lambda p: (every - p[1], every - p[0]), _of_element
        )


def _of_element(found: _MayMust) -> _MayMust:
    """A condition that some element of a list has to satisfy: it is proved where none does, and nowhere that one does."""
    return found[0], _NONE  # where there is an offset index, pages begin with rows


def _joined(is_and: bool, parts: Iterator[_MayMust]) -> _MayMust:
    may, must = next(parts)
    for other in parts:
        if is_and:
            may, must = may & other[0], must & other[1]
            if not may:
                break
        else:
            may, must = may | other[0], must | other[1]
    return may, must
