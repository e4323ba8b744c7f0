"""What is known of the rows of one row group: a proof for each test, and what the whole filter makes of them."""

from __future__ import annotations

from collections.abc import Sequence

from pageseek._core import rows
from pageseek.predicate.bound import (
    Bound,
    BoundAnd,
    BoundAny,
    BoundConst,
    BoundLeaf,
    BoundNot,
    BoundOr,
    leaves_of,
)
from pageseek.prune.protocol import Proof, PruneContext
from pageseek.prune.row_groups import GroupProof

_NONE = rows.RowRanges.empty()


class ProofAccumulator:
    """Proofs of several mechanisms about the same tests, joined: a row may pass if none of them denies it.

    A filter can fall by two mechanisms where neither would do: of `a = 1 or b = 2` one may deny the first and
    another the second.
    """

    __slots__ = ("_all", "_asked", "_bound", "_exact", "_proofs", "context", "sure")

    def __init__(self, context: PruneContext, bound: Bound, footer: GroupProof) -> None:
        self.context = context
        self._bound = bound
        self._asked = context.ranges
        self._all = rows.RowRanges.all(context.file.group_rows[context.row_group])
        self._proofs: dict[int, Proof] = {}
        self._exact: set[int] = (
            set()
        )  # tests of which no more can be said of the row group as a whole
        self.sure = _NONE
        for test, (may, must) in footer.tests.items():
            if not may[context.row_group]:
                self._proofs[test] = Proof(_NONE, _NONE)
            elif must[context.row_group]:
                self._proofs[test] = Proof(self._all, self._all)

    def open(self, tests: Sequence[BoundLeaf], coarse: bool = False) -> list[BoundLeaf]:
        """Those tests that some row in question may pass and another may not; none, if denying all of them
        would leave as many rows as there are. `coarse`: for who judges row groups as a whole.
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
        if self._left_without(found) < self.context.ranges.num_rows:
            return found
        # what this mechanism denies may matter together with what another one will
        others = [test for test in leaves_of(self._bound) if not any(test is one for one in found)]
        return found if self._left_without(found + others) < self._left_without(others) else []

    def _left_without(self, denied: Sequence[BoundLeaf]) -> int:
        """How many rows would be left if no row passed these tests."""
        proofs = self._proofs | {id(test): Proof(_NONE, _NONE) for test in denied}
        return int((self._rows(self._bound, proofs, True) & self.context.ranges).num_rows)

    def add(self, tests: Sequence[BoundLeaf], proofs: Sequence[Proof | None]) -> bool:
        """Take in what a mechanism proved; `site.ranges` and `sure` are then what the whole filter leaves. Whether any
        test is closer to being decided.
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
            self.context.ranges = self._rows(self._bound, self._proofs, True) & self._asked
            self.sure = self._rows(self._bound, self._proofs, False) & self.context.ranges
        return closer

    def _open_rows(self, proof: Proof | None) -> int:
        """Of how many rows it is not known whether they pass a test."""
        if proof is None:
            return int(self._all.num_rows)
        return int(proof.may.num_rows - proof.must.num_rows)

    def _rows(self, bound: Bound, proofs: dict[int, Proof], may: bool) -> rows.RowRanges:
        """The rows for which a condition may be TRUE, or those for which it surely is."""
        if isinstance(bound, BoundConst):
            return self._all if bound.value else _NONE
        if isinstance(bound, BoundNot):
            return self._all - self._rows(bound.arg, proofs, not may)
        if isinstance(bound, BoundAny) and not bound.every and may:
            # where there is an offset index, pages begin with rows
            return self._rows(bound.test, proofs, True)
        if not isinstance(bound, (BoundAnd, BoundOr)):
            proof = proofs.get(id(bound))
            if proof is None:
                return self._all if may else _NONE
            return proof.may if may else proof.must
        is_and = isinstance(bound, BoundAnd)
        found = self._rows(bound.args[0], proofs, may)
        for arg in bound.args[1:]:
            if is_and and not found:
                break
            other = self._rows(arg, proofs, may)
            found = found & other if is_and else found | other
        return found
