"""Row groups against the list of different values that pageseek has put into the file (docs/format.md)."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import pyarrow as pa

from pageseek._core import rows
from pageseek.base.errors import CoreError, PageseekError
from pageseek.base.report import Report
from pageseek.format.embedded import (
    InvalidIndexError,
    Pointer,
    directory,
    fingerprint,
    of_leaf,
    opened,
    why_none,
)
from pageseek.format.file_metadata import WHOLE, FileMetadata
from pageseek.format.schema import Leaf
from pageseek.format.types import LeafType
from pageseek.format.value_list import KIND, VERSION
from pageseek.io.range_requests import Wanted
from pageseek.predicate.bound import BoundLeaf
from pageseek.prune.protocol import Price, Proof, PruneContext
from pageseek.prune.value_lists import ValueLists


class DistinctPruner:
    """Rules out row groups, and proves them, by the different values of their column."""

    name = "distinct"
    cheap = whole = coarse = True

    def cost(self, context: PruneContext, test: BoundLeaf) -> Price | None:
        """Of the list, unless it is known; None where the file has none of the column."""
        if test.leaf.group or test.leaf.max_rep or test.leaf_type.is_null:
            return None
        if (test.leaf.index, test.leaf_type) in context.file.indexes:
            if context.file.indexes[test.leaf.index, test.leaf_type] is not None:
                return Price(0)
            context.file.note_ignored_indexes(WHOLE, test.leaf, context.report)
            return None
        pointer = _pointer(context.file, test.leaf, context.report)
        if pointer is None:
            return None
        return Price(context.to_fetch(pointer.offset, pointer.length))

    def judge(
        self, context: PruneContext, tests: Sequence[BoundLeaf]
    ) -> Generator[Wanted, list[memoryview], list[Proof | None]]:
        """Ask for the lists that are not at hand; what they say is then known of all row groups."""
        file, known = context.file, context.file.indexes
        missing: dict[tuple[int, LeafType], Pointer] = {}
        for test in tests:
            key = test.leaf.index, test.leaf_type
            if key not in known:
                pointer = _pointer(file, test.leaf, context.report)
                if pointer is not None:
                    missing[key] = pointer
        if missing:
            answers = yield [(one.offset, one.length) for one in missing.values()]
            leaves = {test.leaf.index: test.leaf for test in tests}
            for (key, pointer), data in zip(missing.items(), answers, strict=True):
                if key not in known:  # a generator of another row group may have been first
                    found = _listed(context, leaves[key[0]], key[1], pointer, data)
                    file.keep_index(key, found, 4 * pointer.length)
        return [self._proof(context, test) for test in tests]

    def _proof(self, context: PruneContext, test: BoundLeaf) -> Proof | None:
        found: ValueLists | None = context.file.indexes.get((test.leaf.index, test.leaf_type))
        if found is None:
            return None
        answer, group = found.answer(test, context.report), context.row_group
        every = rows.RowRanges.all(context.file.group_rows[group])
        none = rows.RowRanges.empty()
        may, must = every if answer.may[group] else none, every if answer.must[group] else none
        return Proof(may, must, bool(found.exact[group]))


def _pointer(file: FileMetadata, leaf: Leaf, report: Report) -> Pointer | None:
    """Where the list of a column lies."""
    key = "pointer", leaf.index
    known: dict[Any, Any] = file.indexes
    if key not in known:
        made, why = None, None
        try:
            listed = directory(file)
            made = of_leaf(leaf, KIND, VERSION, listed)
            why = None if made is not None else why_none(leaf, KIND, VERSION, listed)
        except InvalidIndexError as error:
            file.ignore_index(
                WHOLE, leaf, f"{file.name}: embedded indexes ignored: {error}", report
            )
        if why is not None:
            file.ignore_index(WHOLE, leaf, _ignored(file, leaf, why), report)
        known[key] = made
    found: Pointer | None = known[key]
    if found is None:
        file.note_ignored_indexes(WHOLE, leaf, report)
    return found


def _ignored(file: FileMetadata, leaf: Leaf, why: object) -> str:
    return f"{file.name}: {leaf.name!r}: list of distinct values ignored: {why}"


def _listed(
    context: PruneContext, leaf: Leaf, leaf_type: LeafType, pointer: Pointer, data: memoryview
) -> Any:
    file = context.file
    try:
        payload = opened(pointer, data, fingerprint(file, leaf))
        return ValueLists.of_file(payload, file.num_row_groups, leaf_type)
    except (InvalidIndexError, CoreError, PageseekError, pa.ArrowException) as error:
        file.ignore_index(WHOLE, leaf, _ignored(file, leaf, error), context.report)
        return None
