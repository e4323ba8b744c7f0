"""How many rows a filter may leave, and what is read for them: guesses by which ways to read are chosen.

They come from the statistics of a few files.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pageseek.base.errors import PageseekError
from pageseek.format.file_metadata import FileMetadata
from pageseek.predicate import expression as ex
from pageseek.scanning.plans.scan_plan import ScanPlan
from pageseek.spark.filters.binding import tested_columns
from pageseek.spark.session.names import Columns

_SAMPLE = 4  # files whose statistics are looked at
_KEY = 1e-3  # the part of the rows that has one value, where nothing is known of the values
_DENSE = 8  # compressed bytes of a text, from which on texts are taken to differ: those that recur compress to less
_PREFIX = 0.05
_OTHER = 0.5  # for conditions of which nothing is known

Fraction = Callable[[ex.Expression], float]


def expected_rows(plan: ScanPlan, columns: Columns) -> int:
    """About the rows that pass the filter of a plan; all that the plan leaves, without a filter.

    Values are taken to lie evenly between the least and the greatest one.
    """
    condition, most = plan.request.filter, plan.num_rows
    if condition is None or not most:
        return most
    step = max(len(plan.files) // _SAMPLE, 1)
    sample = [columns.open(file.source) for file in plan.files[::step][:_SAMPLE]]
    passing = sum(file.num_rows * _fraction(condition, file) for file in sample) / len(sample)
    sure = sum(
        group.ranges.num_rows for file in plan.files for group in file.groups if group.fully_matched
    )
    return max(min(most, int(len(plan.files) * passing) + 1), sure)


def likely_bytes(plan: ScanPlan, expected: int) -> int:
    """About the bytes that a plan reads if so many rows pass: all pages of the filter's columns, and of each other column a page
    for each row at most.
    """
    leaves = plan.report.tally()[1]
    if plan.request.filter is None or not leaves:
        return plan.cost
    tested, size = tested_columns(plan.request.filter), 0.0
    for path, leaf in leaves.items():
        part = 1.0
        if leaf.pages_read and path.partition(".")[0] not in tested:
            part = min(expected / leaf.pages_read, 1.0)
        size += part * leaf.bytes
    return min(int(size), plan.cost)


def _fraction(e: ex.Expression, file: FileMetadata) -> float:
    """The part of a file's rows that passes a condition."""
    if isinstance(e, ex.And):
        return _of_all(e, file)
    if isinstance(e, ex.Or):
        return min(sum(_fraction(one, file) for one in e.args), 1.0)
    if isinstance(e, ex.Not):
        return 1.0 - _fraction(e.arg, file)
    if isinstance(e, (ex.Compare, ex.IsIn)):
        return _of_values(e, file)
    if isinstance(e, ex.IsNull):
        return _nulls(e.column.path, file)
    if isinstance(e, (ex.StartsWith, ex.Like)):
        return _PREFIX
    return _OTHER


def _of_all(e: ex.And, file: FileMetadata) -> float:
    """Conditions on one column are taken to overlap as little as they can (a range has two ends), others to be independent."""
    by_column: dict[Any, float] = {}
    for i, one in enumerate(e.args):
        key: Any = one.column.path if isinstance(one, ex.Compare) else i
        part = _fraction(one, file)
        by_column[key] = max(by_column[key] + part - 1.0, 0.0) if key in by_column else part
    made = 1.0
    for part in by_column.values():
        made *= part
    return made


def _of_values(e: ex.Compare | ex.IsIn, file: FileMetadata) -> float:
    bounds = _bounds(e.column.path, file)
    if isinstance(e, ex.IsIn):
        return min(len(e.values) * _one_value(e.column.path, bounds, file), 1.0)
    if e.op in ("=", "!="):
        text = _text(e.value)
        constant = text is not None and text == _only_value(e.column.path, file)
        same = 1.0 if constant else _one_value(e.column.path, bounds, file)
        return same if e.op == "=" else 1.0 - same
    value = _number(e.value)
    if bounds is None or value is None:
        return _OTHER
    low, high, whole = bounds
    if not math.isfinite(value):
        return _OTHER
    below = min(max((value - low) / max(high - low, 1.0 if whole else 1e-300), 0.0), 1.0)
    return below if e.op in ("<", "<=") else 1.0 - below


def _one_value(
    path: tuple[str, ...], bounds: tuple[float, float, bool] | None, file: FileMetadata
) -> float:
    """The part of the rows that has one value of a column with these bounds."""
    if bounds is not None and bounds[2]:
        return 1.0 / (bounds[1] - bounds[0] + 1.0)
    if bounds is None:
        try:
            leaf = file._resolve(".".join(path))
            chunk = file.chunk(0, leaf)
        except (PageseekError, IndexError):
            return _KEY
        if chunk.total_compressed_size > _DENSE * max(chunk.num_values, 1):
            return 1.0 / max(file.num_rows, 1)
    return _KEY


def _only_value(path: tuple[str, ...], file: FileMetadata) -> bytes | None:
    """The text or bytes that all values of a column equal, by the statistics; None where they do not say so."""
    try:
        lower, upper = file.statistics(".".join(path))
    except PageseekError:
        return None
    found = {_text(value) for bounds in (lower, upper) for value in bounds}
    return found.pop() if len(found) == 1 else None


def _text(value: Any) -> bytes | None:
    """A text or bytes as bytes; None for other values."""
    if isinstance(value, pa.Scalar):
        try:
            value = value.as_buffer()
        except (AttributeError, TypeError):
            return None
        return None if value is None else bytes(value)
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    return value if isinstance(value, bytes) else None


def _bounds(path: tuple[str, ...], file: FileMetadata) -> tuple[float, float, bool] | None:
    """The least and greatest value of a column as numbers, and whether they are whole; None where they are not known."""
    try:
        lower, upper = file.statistics(".".join(path))
    except PageseekError:
        return None
    low, high = _number(pc.min(_plain(lower))), _number(pc.max(_plain(upper)))
    if low is None or high is None or not math.isfinite(high - low):
        return None
    return low, high, not pa.types.is_floating(lower.type)


def _plain(array: pa.Array) -> pa.Array:
    """Dates and times as numbers."""
    kind = array.type
    if pa.types.is_temporal(kind):
        return array.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    if pa.types.is_float16(kind):  # Arrow cannot compare these
        return array.cast(pa.float32())
    numbers = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return array if numbers else pa.nulls(len(array), pa.int64())


def _number(value: Any) -> float | None:
    try:
        if isinstance(value, (pa.Date32Scalar, pa.TimestampScalar)):
            value = value.value
        elif isinstance(value, pa.Scalar):  # a text may be no UTF-8
            value = value.as_py()
        made = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return made if made == made else None


def _nulls(path: tuple[str, ...], file: FileMetadata) -> float:
    try:
        leaf = file._resolve(".".join(path))
        counts = [file.null_count(i, leaf) for i in range(file.num_row_groups)]
    except PageseekError:
        return _OTHER
    known = [count for count in counts if count is not None]
    if len(known) < len(counts):
        return _OTHER
    return sum(known) / max(file.num_rows, 1)
