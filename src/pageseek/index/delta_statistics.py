"""What the log of a Delta Lake table says of a file: rows, and of flat columns nulls, minimum and maximum.

Source: Delta Lake's protocol, "Per-file Statistics".
"""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pyarrow.parquet as pq

MOST_TEXT = 100  # characters of a bound


def stated(metadata: pq.FileMetaData) -> str:
    """The statistics of a file, as JSON.

    Floats have no bounds: those in Parquet leave NaN out, which Spark orders above all numbers.
    """
    nulls: dict[str, int] = {}
    least: dict[str, Any] = {}
    most: dict[str, Any] = {}
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    for i in range(metadata.num_columns):
        column = metadata.schema.column(i)
        if column.path != column.name or column.max_repetition_level or "." in column.name:
            continue
        found = [group.column(i).statistics for group in groups]
        if any(one is None or not one.has_null_count for one in found):
            continue
        nulls[column.name] = sum(one.null_count for one in found)
        bounds = [one for one, g in zip(found, groups, strict=True) if one.null_count < g.num_rows]
        if bounds and all(one.has_min_max for one in bounds):
            try:
                low, high = min(one.min for one in bounds), max(one.max for one in bounds)
            except OverflowError:  # a year beyond 1 to 9999, which Python's dates have not
                continue
            plain = _plain(low), _plain(high)
            if None not in plain:
                least[column.name], most[column.name] = plain
    made = {"numRecords": metadata.num_rows, "minValues": least, "maxValues": most}
    return json.dumps({**made, "nullCount": nulls})


def _plain(value: Any) -> Any:
    """A bound as JSON has it; None: it has none."""
    if isinstance(value, bool) or (isinstance(value, str) and len(value) > MOST_TEXT):
        return None
    if isinstance(value, dt.datetime):
        text = value.replace(tzinfo=None).isoformat(timespec="microseconds")
        return text + "Z" if value.tzinfo else text
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, Decimal):  # JSON's numbers are read as doubles by some
        return float(value) if Decimal(repr(float(value))) == value else None
    return value if isinstance(value, (int, str)) else None
