"""Which leaves of a file a bound request reads, and what for. Files with the same columns share it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pageseek.format.columns import Column, presence_leaf
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.format.types import K_D256, LeafType
from pageseek.predicate.bound import Bound, BoundAnd, BoundLeaf, conjuncts, has_not, leaves_of

Key = tuple[int, int]  # of a leaf: Leaf.key


class LeafUse:
    """The leaves that columns and a filter read.

    Attributes
    ----------
    payload : set of int
        The leaves whose values are read.
    parts : dict
        How each leaf of the payload is decoded, by its key.
    conditions : list of (Bound, dict)
        The conditions that the filter joins by AND, each with its tests by the keys of their leaves. All comparisons of one
        leaf of numbers are one condition.
    tested : set of int
        The leaves that the filter tests.
    tests_payload : bool
        Whether a leaf is both tested and payload. For a test of a group it may be, since any leaf of the group will do.
    asks_for_matches : bool
        Whether it helps to know which rows match before their values are read.
    """

    __slots__ = (
        "_groups",
        "_leaves",
        "asks_for_matches",
        "conditions",
        "parts",
        "payload",
        "tested",
        "tests_payload",
    )

    def __init__(self, columns: Sequence[Column], bound: Bound | None) -> None:
        parts, leaves, groups = {}, {}, []
        for column in columns:
            for part in column.parts:
                parts[part.leaf.key] = part
                leaves[part.leaf.index] = part.leaf
        self.parts, self.payload = parts, set(leaves)
        self.conditions: list[tuple[Bound, dict[Key, BoundLeaf]]] = []
        self.tests_payload = False
        self.asks_for_matches = True
        if bound is not None:
            for condition in _conditions(bound):
                tests = {}
                for test in leaves_of(condition):
                    leaf = test.leaf
                    tests[leaf.key] = test
                    if leaf.group:
                        groups.append(leaf)
                        self.tests_payload = True
                    else:
                        self.tests_payload |= leaf.index in self.payload
                        leaves[leaf.index] = leaf
                self.conditions.append((condition, tests))
            self.asks_for_matches = not self.tests_payload or has_not(bound)
        self.tested = tested = {
            test.leaf.index for _, tests in self.conditions for test in tests.values()
        }
        for key, part in parts.items():
            leaf_type = part.leaf_type
            if leaf_type.type is leaf_type.storage or not part.leaf.flat or key[0] in tested:
                continue
            parts[key] = part._replace(leaf_type=leaf_type.as_views())
        self._leaves, self._groups = list(leaves.values()), groups

    def read(self) -> Iterator[tuple[Leaf, LeafType]]:
        """The leaves that are read, with their types."""
        for part in self.parts.values():
            yield part.leaf, part.leaf_type
        for _, tests in self.conditions:
            for test in tests.values():
                yield test.leaf, test.leaf_type

    def required(self, file: FileMetadata) -> Callable[[int], list[Leaf]]:
        """For each row group, the leaves that are read. A leaf of the payload stands for itself, not for a group."""
        if not self._groups:
            leaves = self._leaves
            return lambda _: leaves

        def of(row_group: int) -> list[Leaf]:
            told = [presence_leaf(file, row_group, leaf, self.payload) for leaf in self._groups]
            values = {leaf.index: leaf for leaf in self._leaves}
            return list(({leaf.index: leaf for leaf in told} | values).values())

        return of


def _conditions(bound: Bound) -> list[Bound]:
    """The parts that must all be TRUE. Comparisons of one leaf of numbers are one part.

    To compare all values once more costs less than to copy those that passed the first comparison.
    """
    found: list[Bound] = []
    places: dict[Key, int] = {}
    for part in conjuncts(bound):
        if isinstance(part, BoundLeaf) and part.leaf_type.kind <= K_D256 and not part.leaf.group:
            key = part.leaf.key
            if key in places:
                before = found[places[key]]
                found[places[key]] = BoundAnd((*conjuncts(before), part))
                continue
            places[key] = len(found)
        found.append(part)
    return found
