"""The statistics in the log of a Delta Lake table as bounds (Delta protocol, Per-file Statistics)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from pageseek.base.late_modules import compute as pc
from pageseek.datasets.file_bounds import ColumnBounds, FileBounds, Path

PHYSICAL_NAME = "delta.columnMapping.physicalName"
MOST_DIGITS = 15  # of decimals: the log has them as JSON numbers, which may be doubles
_CUT = np.timedelta64(999, "us")  # times are cut to milliseconds


def delta_bounds(
    actions: pa.Table, schema: pa.Schema, fields: list[Mapping[str, Any]]
) -> FileBounds | None:
    """The bounds in the flat actions of `deltalake`; None where there are none.

    Parameters
    ----------
    schema : pyarrow.Schema
        The columns of the table.
    fields : list of dict
        The same as the log spells them, which may have other names in its statistics (Column Mapping).
    """
    names = set(actions.column_names)
    if "num_records" not in names:
        return None
    spelt = _flat_names(fields)
    num_rows = actions["num_records"].combine_chunks().fill_null(-1).to_numpy(zero_copy_only=False)

    def column(path: Path) -> ColumnBounds | None:
        physical = _physical(fields, path)
        if physical is None or any("." in name for name in physical):
            return None  # flat names of structs have dots
        name = ".".join(physical)
        if spelt[name] > 1:  # another column has a dot in its name
            return None
        if not {f"min.{name}", f"max.{name}"} <= names:
            return None
        lower, upper = (actions[f"{of}.{name}"].combine_chunks() for of in ("min", "max"))
        kind, t = lower.type, pa.types
        if t.is_decimal(kind) and kind.precision > MOST_DIGITS:
            return None
        if t.is_timestamp(kind) or t.is_time(kind):
            upper = pc.add(upper, pa.scalar(_CUT, pa.duration("us")))
        nulls = f"null_count.{name}"
        counts = pa.nulls(len(lower), pa.int64())
        if nulls in names:
            counts = actions[nulls].combine_chunks()
        return ColumnBounds(lower, upper, counts)

    return FileBounds(
        schema,
        num_rows.astype(np.int64),
        column,
        "the log of the table",
        actions["path"].to_pylist(),
    )


def _flat_names(fields: list[Mapping[str, Any]], before: str = "") -> Counter[str]:
    """How many columns have a name, with dots between the fields of structs."""
    found: Counter[str] = Counter()
    for field in fields:
        name = before + field.get("metadata", {}).get(PHYSICAL_NAME, field["name"])
        kind = field["type"]
        if isinstance(kind, Mapping) and kind["type"] == "struct":
            found += _flat_names(kind["fields"], f"{name}.")
        else:
            found[name] += 1
    return found


def _physical(fields: list[Mapping[str, Any]], path: Path) -> Path | None:
    """A path as the statistics of the log spell it, through structs."""
    found: list[str] = []
    for name in path:
        field = next((one for one in fields if one["name"] == name), None)
        if field is None:
            return None
        told = field.get("metadata", {})
        found.append(told.get(PHYSICAL_NAME, name))
        kind = field["type"]
        fields = kind["fields"] if isinstance(kind, Mapping) and kind["type"] == "struct" else []
    return tuple(found)
