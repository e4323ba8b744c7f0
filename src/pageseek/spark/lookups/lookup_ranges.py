"""Groups of row groups by the ranges of their keys: each task of a shuffled lookup has one, and the keys in its range."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pageseek.base.errors import PageseekError
from pageseek.base.records import NamedTuple
from pageseek.base.report import Report
from pageseek.format.bounds import ChunkValues
from pageseek.predicate.text import bare
from pageseek.scanning.aggregates.aggregate_bounds import declared
from pageseek.scanning.plans.scan_plan import ScanPlan
from pageseek.scanning.requests.plan import FilePlan, GroupPlan
from pageseek.spark.calendar.calendar_marks import has_calendar
from pageseek.spark.columns.types import to_wire
from pageseek.spark.lookups.lookup_keys import first_plain, ordered
from pageseek.spark.session.names import Columns


class Piece(NamedTuple):
    """A row group of a plan. `low` and `high`: its bounds as `ordered` gives them; None where they are not known."""

    file: int
    group: GroupPlan
    low: Any
    high: Any


@dataclass(frozen=True)
class KeyRange:
    """The keys that a task needs, by the column `by` of the keys. Without bounds it needs all."""

    by: int
    low: pa.Scalar | None
    high: pa.Scalar | None

    def covers(self, keys: pa.Array) -> pa.Array:
        """Which keys are in the range, as booleans. `keys`: as `ordered` gives them, without nulls. NaN is in no range that has bounds."""
        if self.low is None or self.high is None:
            return pc.is_valid(keys)
        return pc.and_(pc.greater_equal(keys, self.low), pc.less_equal(keys, self.high))


def key_ranges(
    plan: ScanPlan, columns: Columns, on: Sequence[str], wire: pa.Schema, tasks: int
) -> list[tuple[KeyRange, ScanPlan]]:
    """Parts of a plan, at most about `tasks`, each with the range of its keys.

    The ranges are those of the column that separates the row groups best. Where none does, every part needs most keys.
    """
    best: tuple[float, list[tuple[KeyRange, ScanPlan]]] | None = None
    for by, name in enumerate(on):
        pieces = list(_pieces(plan, columns, name, wire.field(name)))
        parts = _parts(plan, by, pieces, tasks, _kind(wire.field(name).type))
        copies = _copies(pieces, parts)
        if best is None or copies < best[0]:
            best = copies, parts
    assert best is not None
    return best[1]


def _kind(wire: pa.DataType) -> pa.DataType:
    return ordered(pa.array([], wire)).type


def _pieces(plan: ScanPlan, columns: Columns, name: str, field: pa.Field) -> Iterator[Piece]:
    """The row groups that have keys, and their bounds."""
    for i, file in enumerate(plan.files):
        metadata = columns.open(file.source)
        try:
            found = columns.names_of(metadata, file.source)((name,))
        except PageseekError:  # a task raises it, or all values are null
            found = None
        for group in file.groups:
            values = ChunkValues()
            if found is not None:
                values = declared(metadata, group.row_group, *found, plan.request.options)
            if values.null_count is not None and values.null_count == _rows(metadata, group):
                continue
            low, high = (
                _bound(one, field, file.source.name) for one in (values.lower, values.upper)
            )
            if pa.types.is_floating(field.type) and values.nan_count != 0:
                high = None
            if has_calendar(field.type) and low is not None and low < first_plain(field.type).value:
                low = None  # what old values become is not known here
            yield Piece(i, group, low, high)


def _rows(metadata: Any, group: GroupPlan) -> int:
    return int(metadata.group_rows[group.row_group])


def _bound(value: pa.Scalar | None, field: pa.Field, source: str) -> Any:
    if value is None:
        return None
    array = pa.repeat(bare(value), 1)
    batch = pa.RecordBatch.from_arrays([array], names=[field.name])
    made = ordered(to_wire(batch, pa.schema([field]), source).column(0))
    return made[0].as_py()


def _parts(
    plan: ScanPlan, by: int, pieces: Sequence[Piece], tasks: int, kind: pa.DataType
) -> list[tuple[KeyRange, ScanPlan]]:
    """Runs of row groups of nearly equal cost, in the order of their bounds; those without bounds by themselves."""
    bounded = sorted(
        (p for p in pieces if p.low is not None and p.high is not None),
        key=lambda p: (p.low, p.high),
    )
    others = [p for p in pieces if p.low is None or p.high is None]
    total = sum(p.group.cost for p in pieces) or 1
    made: list[tuple[KeyRange, ScanPlan]] = []
    for members, known in ((bounded, True), (others, False)):
        if not members:
            continue
        cost = sum(p.group.cost for p in members)
        for run in _runs(members, max(round(tasks * cost / total), 1)):
            low = high = None
            if known:
                low = pa.scalar(min(p.low for p in run), kind)
                high = pa.scalar(max(p.high for p in run), kind)
            made.append((KeyRange(by, low, high), _part(plan, run)))
    return made


def _runs(pieces: Sequence[Piece], n: int) -> Iterator[list[Piece]]:
    """The pieces in at most `n` runs of nearly equal cost."""
    costs = np.array([piece.group.cost + 1 for piece in pieces], np.float64)
    middles = np.cumsum(costs) - costs / 2
    shares = (middles * n / costs.sum()).astype(np.int64)
    ends = [0, *(np.flatnonzero(np.diff(shares)) + 1).tolist(), len(pieces)]
    for start, stop in pairwise(ends):
        yield list(pieces[start:stop])


def _part(plan: ScanPlan, pieces: Sequence[Piece]) -> ScanPlan:
    groups: dict[int, list[GroupPlan]] = {}
    for piece in pieces:
        groups.setdefault(piece.file, []).append(piece.group)
    files: list[FilePlan] = []
    for i in sorted(groups):
        chosen = tuple(sorted(groups[i], key=lambda group: group.row_group))
        files.append(replace(plan.files[i], groups=chosen, footer=None))
    return replace(plan, files=tuple(files), report=Report())


def _copies(pieces: Sequence[Piece], parts: Sequence[tuple[KeyRange, ScanPlan]]) -> float:
    """About how many parts a key is sent to."""
    lows = [piece.low for piece in pieces if piece.low is not None]
    if not lows:
        return float(len(parts))
    kind = next((r.low.type for r, _ in parts if r.low is not None), None)
    keys = pa.array(lows, kind)
    return sum(pc.sum(key_range.covers(keys)).as_py() or 0 for key_range, _ in parts) / len(lows)


# -- the place of a part in a shuffle -------------------------------------------------------------


def partition_ids(n: int) -> list[int]:
    """For each of `n` partitions an integer that Spark's `repartition(n, ...)` puts there, alone of all."""
    found: dict[int, int] = {}
    value = 0
    while len(found) < n:
        found.setdefault(spark_hash(value) % n, value)
        value += 1
    return [found[i] for i in range(n)]


def spark_hash(value: int) -> int:
    """The hash of a 32-bit integer by which Spark partitions rows: Murmur3 with the seed 42."""
    mask = 0xFFFFFFFF
    k = value * 0xCC9E2D51 & mask
    k = (k << 15 | k >> 17) & mask
    h = 42 ^ (k * 0x1B873593 & mask)
    h = (h << 13 | h >> 19) & mask
    h = (h * 5 + 0xE6546B64 & mask) ^ 4
    h = (h ^ h >> 16) * 0x85EBCA6B & mask
    h = (h ^ h >> 13) * 0xC2B2AE35 & mask
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h
