"""What the footer says of the values of columns in a row group, and where that is all that an aggregation wants."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pageseek.format.bounds import ChunkValues
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.format.types import FLOAT_KINDS, Options
from pageseek.predicate.constant_column import ConstantColumn
from pageseek.prune import STATISTICS
from pageseek.scan.aggregate_columns import Leaves, Wanted
from pageseek.scan.plan import GroupPlan
from pageseek.scan.request import Request


def declared(file: FileMetadata, row_group: int, leaf: Leaf, options: Options) -> ChunkValues:
    """What is known of the values of a row group without reading them."""
    if not isinstance(leaf, ConstantColumn):
        return file.chunk_values(row_group, leaf, options)
    n = file.group_rows[row_group]
    if leaf.values is None or leaf.values.null_count:
        return ChunkValues(null_count=n, nan_count=0)
    one = leaf.scalar
    nan = pa.types.is_floating(one.type) and bool(pc.is_nan(one).as_py())
    if nan:
        return ChunkValues()
    return ChunkValues(one, one, one, one, 0, 0)


def statistics_of(
    file: FileMetadata,
    group: GroupPlan,
    wanted: Sequence[Wanted],
    leaves: Leaves,
    request: Request,
) -> dict[tuple[str, ...], ChunkValues] | None:
    """What the footer says of the columns of a row group, by their paths, where that answers for all that is wanted."""
    num_rows = file.group_rows[group.row_group]
    whole = group.fully_matched and group.ranges.num_rows == num_rows
    if not whole or STATISTICS not in request.prune:
        return None
    for leaf, _ in leaves.values():
        if not isinstance(leaf, ConstantColumn):
            file.chunk(group.row_group, leaf)  # refused where it cannot be read, whatever is said
    said = {
        path: declared(file, group.row_group, leaf, request.options)
        for path, (leaf, _) in leaves.items()
    }
    for one in wanted:
        if not one.path:
            continue
        found, leaf_type = said[one.path], leaves[one.path][1]
        if found.null_count is None:
            return None
        if one.function == "count" or found.null_count == num_rows:
            continue
        nan = leaf_type.kind in FLOAT_KINDS and request.nan == "spark" and found.nan_count != 0
        if nan and one.function == "max":
            return None  # it may be NaN
        if (found.min if one.function == "min" else found.max) is None:
            return None
    return said
