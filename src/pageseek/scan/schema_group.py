"""What files of one kind have in common: their columns, their writer, and what a request asks of them."""

from __future__ import annotations

import numpy as np

from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.format.types import LeafType
from pageseek.predicate.bound import BoundConst, leaves_of, tests_of
from pageseek.prune import may_be_final
from pageseek.scan.bound_request import BoundRequest

WIDE = 16  # columns of a file beyond which they are not looked at without need
SCHEMAS = 64  # stored by files of one kind


class SchemaGroup:
    """Files of which one was opened: they have its columns, its writer, and the same is asked of them."""

    def __init__(self, file: FileMetadata, bound_request: BoundRequest, account: bool) -> None:
        self.like = file.schema_key
        self.stored = file.columns_key[2]
        # what others have stored, and whether that says the same
        self._stored: dict[bytes | None, bool] = {}
        self.bound_request, self.tree = bound_request, file.schema_tree
        self.orders, self.writer = file.orders, file.writer
        bound, options = bound_request.bound, bound_request.request.options
        self.constant = isinstance(bound, BoundConst)  # the filter is, whatever the rows
        self.tests = [] if bound is None else tests_of(bound)
        tested = [test.leaf for test in self.tests if not test.leaf.group]
        self.leaf_types: dict[int, tuple[LeafType, bool, bool]] = {
            leaf.index: (file.leaf_type(leaf, options), *file.usable_statistics(leaf))
            for leaf in tested
        }
        # the leaves that are read, and those of which the statistics are asked, the first of which they are
        self.read: list[Leaf] = []
        if not any(test.leaf.group for test in ([] if bound is None else leaves_of(bound))):
            self.read = (
                bound_request.leaves.required(file)(0) if account or bound is not None else []
            )
        if not account and len(self.read) > WIDE:
            self.read = []
        self.may_be_final = bool(self.read) and may_be_final(
            self.tests, bound_request.request.prune
        )
        asked = {leaf.index: leaf for leaf in self.read}
        asked |= {leaf.index: leaf for leaf in tested}
        self.column = {index: i for i, index in enumerate(asked)}
        self.leaves = np.array(list(asked), np.uint64)
        self.wanted = np.array(
            [leaf.index in bound_request.leaves.payload for leaf in self.read], bool
        )

    @staticmethod
    def may_be_made(file: FileMetadata, bound_request: BoundRequest, account: bool) -> bool:
        """Whether the footers of such files say all that there is to know."""
        if (
            file.is_encrypted
            or file.writer.understates_chunks
            or len(file.orders) * 8 != len(file.schema_key[2])
        ):
            return False
        bound = bound_request.bound
        # which leaf of a group is read hangs on its chunks
        return bound is None or not account or not any(t.leaf.group for t in leaves_of(bound))

    def stores(self, raw: bytes | None) -> bool:
        """Whether a file with this Arrow schema is one of them; as a rule schemas differ in no more than remarks."""
        found = self._stored.get(raw)
        if found is None:
            if len(self._stored) >= SCHEMAS:
                self._stored.clear()
            found = self._stored[raw] = raw == self.stored or self.tree.stores(raw)
        return found
