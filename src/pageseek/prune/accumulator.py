"""One file that mechanisms prune, and what they have proved of the rows of each row group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from pageseek._core import rows
from pageseek.base.records import dataclass
from pageseek.base.report import Report
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.format.types import Options
from pageseek.io.fetch import Kept
from pageseek.predicate.bound import (
    Bound,
    BoundAnd,
    BoundConst,
    BoundLeaf,
    BoundResidual,
    Unjoined,
    fold,
    leaves_of,
    patterns_of,
)
from pageseek.prune.protocol import Proof, PruneContext
from pageseek.prune.row_groups import GroupProof

_NONE = rows.RowRanges.empty()
_NO_ROWS = Proof(_NONE, _NONE)
_MayMust: TypeAlias = tuple[rows.RowRanges, rows.RowRanges]


@dataclass(frozen=True, slots=True)
class MechanismRun:
    """One file to prune.

    Parameters
    ----------
    footer
        What the statistics of the footer have proved.
    required_leaves
        The leaves that are read of a row group.
    use
        The names of the mechanisms that may prune.
    wants_matches
        Whether the caller can use rows that are known to pass without being evaluated.
    kept, distinct_index, counts_only
        As of `PruneContext`.
    """

    file: FileMetadata
    bound: Bound
    footer: GroupProof
    required_leaves: Callable[[int], Sequence[Leaf]]
    use: frozenset[str]
    options: Options
    report: Report
    wants_matches: bool
    kept: Kept | None = None
    distinct_index: str | None = None
    counts_only: bool = False


class ProofAccumulator:
    """Proofs of several mechanisms about the tests of a filter, in one row group. A row may pass if none of them denies it.

    A filter can fall by two mechanisms where neither would do: of `a = 1 or b = 2` one may deny the first and
    another the second.

    Attributes
    ----------
    context : PruneContext
        Its `ranges` are the rows that may pass the whole filter.
    fully_matched : RowRanges
        The rows of these that all pass.
    pruned_by : str
        The mechanism that last ruled out rows, "" if none did.
    counted : bool
        A proof has only counted the rows that pass, so that no mechanism can rule out more.
    """

    __slots__ = (
        "_all", "_asked", "_bound", "_exact", "_num_rows", "_proofs",
        "context", "counted", "fully_matched", "pruned_by",
    )  # fmt: skip

    def __init__(self, context: PruneContext, bound: Bound, footer: GroupProof) -> None:
        self.context = context
        self._bound = bound
        self._asked = context.ranges
        self._num_rows = context.file.group_rows[context.row_group]
        self._all = rows.RowRanges.all(self._num_rows)
        self._proofs: dict[int, Proof] = {}
        self._exact: set[int] = set()  # tests decided for the row group as a whole, by id
        self.fully_matched = _NONE
        self.pruned_by = ""
        self.counted = False
        for test, (may, must) in footer.tests.items():
            if not may[context.row_group]:
                self._proofs[test] = _NO_ROWS
            elif must[context.row_group]:
                self._proofs[test] = Proof(self._all, self._all)

    @property
    def share(self) -> float:
        """The share of the rows of the row group that is in question."""
        return float(self.context.ranges.num_rows / max(self._num_rows, 1))

    def open(self, tests: Sequence[BoundLeaf], coarse: bool = False) -> list[BoundLeaf]:
        """Those tests that some row in question may pass and another may fail; none, if denying all of them would rule out
        no row. `coarse`: for a mechanism that speaks of row groups as a whole.
        """
        found = []
        for test in tests:
            if coarse and id(test) in self._exact:
                continue
            proof = self._proofs.get(id(test))
            if proof is None or (proof.may and proof.must.num_rows < self._num_rows):
                found.append(test)
        if not found or (len(self._proofs) == 0 and isinstance(self._bound, (BoundLeaf, BoundAnd))):
            return found
        if isinstance(self._bound, BoundLeaf):
            return found if self.context.ranges else []
        if self._remaining_without(found) < self.context.ranges.num_rows:
            return found
        # what this mechanism denies may matter together with what another will deny
        every = *leaves_of(self._bound), *patterns_of(self._bound)
        others = [test for test in every if not any(test is one for one in found)]
        denied = self._remaining_without(found + others) < self._remaining_without(others)
        return found if denied else []

    def _remaining_without(self, denied: Sequence[BoundLeaf]) -> int:
        """How many rows would remain if no row passed these tests."""
        proofs = self._proofs | {id(test): _NO_ROWS for test in denied}
        return int((self._proof_of_filter(proofs)[0] & self.context.ranges).num_rows)

    def add(self, tests: Sequence[BoundLeaf], proofs: Sequence[Proof | None]) -> bool:
        """Join what a mechanism proved, and evaluate the whole filter again. Returns whether any test is closer to being
        decided: fewer rows are left that may pass it or fail it.
        """
        closer = False
        for test, proof in zip(tests, proofs, strict=True):
            if proof is None:
                continue
            if proof.exact:
                self._exact.add(id(test))
            if proof.counted:  # the filter is this test
                self.counted, self.context.ranges, self.fully_matched = True, proof.may, proof.must
                return True
            before = self._proofs.get(id(test))
            if before is None:
                undecided = self._num_rows
            else:
                undecided = before.may.num_rows - before.must.num_rows
                proof = Proof(before.may & proof.may, before.must | proof.must)
            self._proofs[id(test)] = proof
            closer |= proof.may.num_rows - proof.must.num_rows < undecided
        if closer:
            may, must = self._proof_of_filter(self._proofs)
            self.context.ranges = may & self._asked
            self.fully_matched = must & self.context.ranges
        return closer

    def _proof_of_filter(self, proofs: dict[int, Proof]) -> _MayMust:
        """What proofs of its tests prove of the whole filter."""
        every, alone = self._all, proofs.get(id(self._bound))
        if alone is not None:  # the filter is a single test, as most are
            return alone.may, alone.must

        def of_part(part: Unjoined) -> _MayMust:
            test = part.test if isinstance(part, BoundResidual) else part
            proof = proofs.get(id(test))
            if proof is not None:
                return proof.may, proof.must
            if isinstance(part, BoundConst):
                return (every, every) if part.value else (_NONE, _NONE)
            return every, _NONE

        return fold(
            self._bound, of_part, _joined, lambda p: (every - p[1], every - p[0]), _of_element
        )


def _of_element(found: _MayMust) -> _MayMust:
    """A condition that some element of a list has to satisfy: where no element may, no row does. Rows that must satisfy it
    are not known, since a list may be empty.
    """
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
