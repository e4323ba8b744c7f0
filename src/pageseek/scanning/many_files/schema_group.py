"""Similar files: they have the same columns and writer, and a request is bound to them once."""

from __future__ import annotations

import numpy as np

from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.format.types import LeafType
from pageseek.predicate.bound import BoundConst, BoundLeaf, conjuncts, leaves_of, tests_of
from pageseek.prune.footer_finality import may_be_final
from pageseek.scanning.leaves.leaf_reader import CODED_KINDS
from pageseek.scanning.one_file.group_joints import leaves_to_join
from pageseek.scanning.requests.bound_request import BoundRequest

WIDE = 16  # leaves to read beyond which their chunks are looked at only to count them
WIDE_JOINED = 32  # where small files are read as one if it is known that they are small
SCHEMAS = 64  # Arrow schemas of other files that are remembered


class SchemaGroup:
    """Files that are like one that was opened.

    Attributes
    ----------
    like, stored : bytes
        The schema, and the Arrow schema that its writer left.
    read : list of Leaf
        The leaves that are read; empty if they are not looked at.
    tests, required : list of BoundLeaf
        The tests that an index may decide, and those of them that every row of the result passes.
    leaf_types : dict
        For each tested leaf its leaf type, whether its bounds are trusted, and whether its counts of nulls are.
    leaves : uint64 array
        The leaves that are looked at in footers: `read`, then the others that are tested.
    column : dict
        The position in `leaves` of a leaf.
    wanted : bool array
        For each leaf of `read` whether it belongs to the payload.
    joins : bool
        Whether row groups of several files can be read as one.
    tests_codes : bool
        Whether a leaf is tested that is tested faster by the codes of its dictionary, if it has many rows.
    """

    def __init__(self, file: FileMetadata, bound_request: BoundRequest, account: bool) -> None:
        self.like = file.schema_key
        self.stored = file.columns_key[2]
        self._stored: dict[bytes | None, bool] = {}  # answers of `stores`
        self.bound_request, self.tree = bound_request, file.schema_tree
        self.orders, self.writer = file.orders, file.writer
        bound, options = bound_request.bound, bound_request.request.options
        self.constant = isinstance(bound, BoundConst)  # the filter does not depend on rows
        self.tests = [] if bound is None else tests_of(bound)
        parts = [] if bound is None else conjuncts(bound)
        self.required = [part for part in parts if isinstance(part, BoundLeaf)]
        tested = [test.leaf for test in self.tests if not test.leaf.group]
        self.leaf_types: dict[int, tuple[LeafType, bool, bool]] = {
            leaf.index: (file.leaf_type(leaf, options), *file.usable_statistics(leaf))
            for leaf in tested
        }
        self.read: list[Leaf] = []
        groups = bound is not None and any(test.leaf.group for test in leaves_of(bound))
        if not groups and (account or bound is not None):
            self.read = bound_request.leaves.required(file)(0)
        self.joins = leaves_to_join(bound_request) is not None
        self.tests_codes = any(
            test.leaf_type.kind in CODED_KINDS
            for test in ([] if bound is None else leaves_of(bound))
        )
        if not account and len(self.read) > (WIDE_JOINED if self.joins else WIDE):
            self.read = []
        use = bound_request.request.prune
        self.may_be_final = bool(self.read) and may_be_final(self.tests, use)
        asked = {leaf.index: leaf for leaf in self.read}
        asked |= {leaf.index: leaf for leaf in tested}
        self.column = {index: i for i, index in enumerate(asked)}
        self.leaves = np.array(list(asked), np.uint64)
        self.wanted = np.array(
            [leaf.index in bound_request.leaves.payload for leaf in self.read], bool
        )

    def requires(self, test: BoundLeaf) -> bool:
        """Whether every row of the result passes a test."""
        return any(test is one for one in self.required)

    @staticmethod
    def may_be_made(file: FileMetadata, bound_request: BoundRequest, account: bool) -> bool:
        """Whether the footers of such files tell enough to plan by them."""
        if (
            file.is_encrypted
            or file.writer.understates_chunks
            or len(file.orders) * 8 != len(file.schema_key[2])
        ):
            return False
        bound = bound_request.bound
        # the presence leaf of a group depends on the chunks of each file
        return bound is None or not account or not any(t.leaf.group for t in leaves_of(bound))

    def stores(self, raw: bytes | None) -> bool:
        """Whether a file with this Arrow schema is one of them. As a rule schemas differ in their metadata at most."""
        found = self._stored.get(raw)
        if found is None:
            if len(self._stored) >= SCHEMAS:
                self._stored.clear()
            found = self._stored[raw] = raw == self.stored or self.tree.stores(raw)
        return found
