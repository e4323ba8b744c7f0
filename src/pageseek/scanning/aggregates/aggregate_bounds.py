"""The pages that may hold a value less, or greater, than those known of a column, by statistics and the column index."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa

from pageseek._core import rows
from pageseek.base.errors import LimitError
from pageseek.base.late_modules import compute as pc
from pageseek.base.report import Report
from pageseek.format.bounds import ChunkValues
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.format.types import FLOAT_KINDS, LeafType, Options
from pageseek.predicate.constant_column import ConstantColumn
from pageseek.prune.column_index import load_indexes
from pageseek.prune.registry import COLUMN_INDEX, STATISTICS
from pageseek.scanning.aggregates.aggregate_values import ColumnValues, less, plain, zoned
from pageseek.scanning.requests.plan import GroupPlan
from pageseek.scanning.requests.request import Request
from pageseek.scanning.requests.steps import Steps


def declared(
    file: FileMetadata, row_group: int, leaf: Leaf, leaf_type: LeafType, options: Options
) -> ChunkValues:
    """The values of a row group as far as the metadata tell."""
    if not isinstance(leaf, ConstantColumn):
        found, kind = file.chunk_values(row_group, leaf, options), leaf_type.type
        if not pa.types.is_timestamp(kind) or found.lower is None:
            return found
        return replace(
            found, lower=zoned(found.lower, kind), upper=zoned(found.upper, kind), min=zoned(found.min, kind), max=zoned(found.max, kind)
        )  # fmt: skip
    if leaf.values is None or leaf.values.null_count:
        return ChunkValues(null_count=file.group_rows[row_group], nan_count=0)
    one = leaf.scalar
    if pa.types.is_floating(one.type) and pc.is_nan(one).as_py():
        return ChunkValues()
    return ChunkValues(one, one, one, one, 0, 0)


def promising(
    file: FileMetadata,
    group: GroupPlan,
    wanted: Sequence[tuple[str, Leaf, LeafType, ColumnValues]],
    request: Request,
    report: Report,
) -> Steps[rows.RowRanges]:
    """The rows of a row group whose pages may hold a value less, or greater, than those known.

    `wanted`: for each figure its function, its leaf, and the values that are known.
    """
    found = rows.RowRanges.empty()
    for function, leaf, leaf_type, values in wanted:
        is_min = function == "min"
        if isinstance(leaf, ConstantColumn) and leaf.values is None:
            continue  # null in all rows
        bound, known = None, values.low if is_min else values.high
        if STATISTICS in request.prune or isinstance(leaf, ConstantColumn):
            said = declared(file, group.row_group, leaf, leaf_type, request.options)
            bound = said.lower if is_min else said.upper
        nan = leaf_type.kind in FLOAT_KINDS and request.nan == "spark"
        if bound is not None and known is not None and not nan:
            better = less(plain(bound), known) if is_min else less(known, plain(bound))
            if not better:
                continue
        if isinstance(leaf, ConstantColumn):  # some row has to pass, whichever
            return group.ranges
        if nan or COLUMN_INDEX not in request.prune:
            found |= group.ranges
        else:
            found |= yield from _pages(
                file, group, (leaf, leaf_type), known, is_min, request.options, report
            )
    return found


def _pages(
    file: FileMetadata,
    group: GroupPlan,
    column: tuple[Leaf, LeafType],
    known: pa.Scalar | None,
    is_min: bool,
    options: Options,
    report: Report,
) -> Steps[rows.RowRanges]:
    """The rows of the pages of a leaf that may hold a value less, or greater, than `known`."""
    leaf, leaf_type = column
    loading = load_indexes(file, [group.row_group], lambda _: [leaf], [leaf], options, report)
    yield from loading
    index = file.column_indexes.get((group.row_group, leaf.index, options))
    offsets = file.offset_indexes.get((group.row_group, leaf.index))
    if index is None or offsets is None:
        return group.ranges
    try:
        lower, upper = (plain(zoned(one, leaf_type.type)) for one in (index.lower, index.upper))
    except LimitError:  # the schema claims a width that makes even nulls too large
        return group.ranges
    near, far = (lower, upper) if is_min else (upper, lower)
    before = pc.less if is_min else pc.greater
    better = pa.array([True] * len(near))
    if known is not None:
        with suppress(pa.ArrowInvalid):  # a timestamp that their unit does not hold
            better = before(near, known)
    if group.fully_matched and group.ranges.num_rows == file.group_rows[group.row_group]:
        # each page holds a value within its bounds, so that pages which begin beyond those of another are left out
        end = pc.min_max(far)["max" if not is_min else "min"]
        if end.is_valid:
            better = pc.and_kleene(better, pc.invert(before(end, near)))
    flags = pc.fill_null(better, True).cast(pa.uint8()).to_numpy().tobytes()
    return group.ranges & offsets.rows_of(flags, 1)
