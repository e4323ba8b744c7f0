"""Filters one row group, condition by condition. Each is evaluated on the rows that passed those before."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from pageseek._core import rows
from pageseek.format.columns import Part, levels_of, part_of, presence_leaf
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.predicate.bound import (
    Bound,
    BoundLeaf,
    all_null,
    has_residual,
    leaves_of,
    null_tests,
)
from pageseek.predicate.masks import Bitmap
from pageseek.scanning.leaves.decoded_columns import Key
from pageseek.scanning.one_file.group_reader import GroupReader
from pageseek.scanning.requests.accounting import count_limited
from pageseek.scanning.requests.bound_request import BoundRequest
from pageseek.scanning.requests.condition_order import blocks_of
from pageseek.scanning.requests.steps import ScanContext, Steps

RESIDUAL_WEIGHT = (
    8  # cost of a byte that Arrow evaluates, by the kernels' cost, until it is measured
)
FIRST_STEP = 1 << 14  # rows of the first step if a limit may be reached soon
_NO_ROWS = rows.RowRanges.empty()


class GroupFilter:
    """Finds the rows of one row group that pass the filter of a scan."""

    __slots__ = (
        "_bound",
        "_by_levels",
        "_context",
        "_file",
        "_learned",
        "_num_rows",
        "_options",
        "_reader",
        "_row_group",
        "_use",
    )

    def __init__(
        self,
        file: FileMetadata,
        row_group: int,
        bound_request: BoundRequest,
        bound: Bound,
        reader: GroupReader,
        context: ScanContext,
        num_rows: int | None = None,
    ) -> None:
        """`num_rows`: of several row groups that are read as one."""
        self._num_rows = file.group_rows[row_group] if num_rows is None else num_rows
        self._file, self._row_group, self._bound = file, row_group, bound
        self._use, self._learned = bound_request.leaves, bound_request.learned
        self._options = bound_request.request.options
        self._reader, self._context = reader, context
        self._by_levels: dict[Key, Part] = {}  # leaves that the filter only tests for null
        asked = null_tests(bound)
        if asked:
            self._ask_levels(asked)

    def _ask_levels(self, asked: dict[Key, BoundLeaf]) -> None:
        """Find the leaves of which levels are enough: only tested for null, and not payload or null in all rows that pass."""
        wanted = self._use.parts
        flat = {key for key, test in asked.items() if test.leaf.flat and not test.leaf.group}
        self._reader.all_null = flat & all_null(self._bound)
        for key, test in asked.items():
            if key in self._reader.all_null or key not in wanted:
                part = levels_of(self._file, test.leaf, self._options)
                if part is not None:
                    self._by_levels[key] = part

    def first(
        self, ranges: rows.RowRanges, limit: int, sure: rows.RowRanges
    ) -> Steps[rows.RowRanges]:
        """The rows that pass, at least the first `limit` of them. They are tested a few pages at a time."""
        tested = {test.leaf.index: test.leaf for test in leaves_of(self._bound)}.values()
        offsets = [self._file.offset_indexes.get((self._row_group, leaf.index)) for leaf in tested]
        whole = [one is None for one in offsets]
        found, step = _NO_ROWS, max(FIRST_STEP, 4 * limit)
        self._reader.stepwise = self._reader.reuses = True
        while ranges and found.num_rows < limit:
            stop = ranges.head(step).bounds[1]
            if any(whole):  # without an offset index the chunk is read at once
                stop = ranges.bounds[1]
            elif offsets[0] is not None:  # steps end with pages of the first leaf
                starts = offsets[0].first_row
                stop = int(starts[np.searchsorted(starts, stop)])
            piece = ranges.slice(ranges.bounds[0], stop)
            found |= (yield from self.passing(piece - sure)) | (piece & sure)
            self._reader.decoded.clear()  # the next step has other rows
            ranges = ranges - piece
            step *= 2
        for leaf in tested:
            count_limited(self._file, self._row_group, leaf, ranges, _NO_ROWS, self._context.report)
        return found

    def passing(self, ranges: rows.RowRanges) -> Steps[rows.RowRanges]:
        """The rows for which the filter is TRUE, condition by condition in the order that is cheapest."""
        conditions, measures = self._use.conditions, False
        order: Sequence[int] = range(len(conditions))
        if len(conditions) > 1:
            order, measures = self._learned.order([part for part, _ in conditions], self._row_bytes)
        last: dict[Key, int] = {}  # of each leaf, the last condition that needs it
        for i, place in enumerate(order):
            for key in conditions[place][1]:
                last[key] = i
        decoded, payload = self._reader.decoded, self._use.parts
        held = decoded.arrays
        if self._context.wait_bytes:
            tested = [list(conditions[place][1].values()) for place in order]
            wanted = [list(self._tested(tests)[0].values()) for tests in tested]
            yield from self._reader.fetch_ahead(wanted, ranges)
        for i, place in enumerate(order):
            part, tests = conditions[place]
            if not ranges:
                break
            began = time.perf_counter()
            found: tuple[Bitmap, int] | None = None
            own: Key | None = None  # a leaf that is held only for the rows that pass
            alone = self._tested_alone(place)
            n, before = ranges.num_rows, ranges
            if alone is not None and alone.leaf.key not in held:
                key = alone.leaf.key
                keeps = alone.leaf.index in self._use.payload or last[key] > i
                if not keeps:
                    found = yield from self._reader.test_codes(alone, part, ranges)
                if found is None and key not in held:
                    found = yield from self._reader.read_passing(alone, part, ranges, keeps)
                    own = key if found is not None else None
            if found is None:
                yield from self._read_tested(tests, ranges)
                found = decoded.evaluate(part, n)
            mask, count = found
            seconds = time.perf_counter() - began
            for key in tuple(held):
                if key not in payload and last.get(key, -1) <= i:
                    decoded.let_go(key)  # no later condition needs it
            if count < n:
                ranges = ranges.refine(mask)
                if not count:
                    decoded.clear()
                decoded.keep(mask, n, count, own)
            if measures:
                left, now = self._blocks(ranges), self._blocks(before)
                self._learned.note(place, (n, now), (count, left), seconds)
        return ranges

    def _tested_alone(self, place: int) -> Part | None:
        """The one flat leaf that a condition tests, unless more than single values are tested."""
        condition, tests = self._use.conditions[place]
        if len(tests) > 1 or self._by_levels or has_residual(condition):
            return None
        (test,) = tests.values()
        leaf = test.leaf
        return None if leaf.group or not leaf.flat else Part(leaf, test.leaf_type)

    def _read_tested(self, tests: dict[Key, BoundLeaf], ranges: rows.RowRanges) -> Steps[None]:
        """Read what a condition tests, as far as it is not held."""
        decoded = self._reader.decoded
        held = decoded.arrays
        missing = [test for key, test in tests.items() if key not in held]
        parts, shared, told = self._tested(missing)
        unread = [part for key, part in parts.items() if key not in held]
        yield from self._reader.read(unread, ranges, tested=True)
        for leaf in shared:
            decoded.share_presence(leaf)
        for key, other in told.items():
            if key != other:
                decoded.tell_by(key, other)

    def _blocks(self, ranges: rows.RowRanges) -> int:
        return blocks_of(ranges, self._num_rows)

    def _row_bytes(self, bound: Bound) -> float:
        """The bytes of a row, decompressed, that a condition reads. They weigh more if Arrow evaluates it."""
        leaves = [self._presence_leaf(t.leaf) for t in leaves_of(bound)]
        chunks = {leaf.index: self._file.chunk(self._row_group, leaf) for leaf in leaves}
        size = sum(c.total_uncompressed_size for c in chunks.values())
        weight = RESIDUAL_WEIGHT if has_residual(bound) else 1
        return float(weight * size / max(self._file.group_rows[self._row_group], 1))

    def _tested(
        self, tests: Sequence[BoundLeaf]
    ) -> tuple[dict[Key, Part], list[Leaf], dict[Key, Key]]:
        """What is read for tests.

        Returns
        -------
        parts : dict
            How each leaf is decoded, by its key.
        shared : list of Leaf
            Presence leaves that are payload as well, and are read as that.
        told : dict
            For the key of each test, the key of the leaf that is read for it.
        """
        wanted = self._use.parts
        parts: dict[Key, Part] = {}
        shared: list[Leaf] = []
        told: dict[Key, Key] = {}
        for test in tests:
            leaf = test.leaf
            if not leaf.group and leaf.flat and not self._by_levels:
                told[leaf.key] = leaf.key
                parts[leaf.key] = Part(leaf, test.leaf_type)
                continue
            by_levels = self._by_levels.get(leaf.key)
            if by_levels is not None:
                told[test.leaf.key] = by_levels.leaf.key
                parts[by_levels.leaf.key] = by_levels
                continue
            leaf = self._presence_leaf(test.leaf)
            told[test.leaf.key] = leaf.key
            payload = wanted.get((leaf.index, -1))
            if leaf.group and leaf.max_rep == 0 and payload is not None and payload.nesting_levels:
                shared.append(leaf)
                parts[payload.leaf.key] = payload
            else:
                parts[leaf.key] = part_of(self._file, leaf, test.leaf_type, self._options)
        return parts, shared, told

    def _presence_leaf(self, leaf: Leaf) -> Leaf:
        if not leaf.group:
            return leaf
        return presence_leaf(self._file, self._row_group, leaf, self._use.payload)
