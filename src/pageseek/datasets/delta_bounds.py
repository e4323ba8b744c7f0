"""The statistics in the log of a Delta Lake table as bounds (Delta protocol, Per-file Statistics)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from pageseek.base.late_modules import compute as pc
from pageseek.datasets.delta_text import highest
from pageseek.datasets.file_bounds import ColumnBounds, FileBounds, Path

PHYSICAL_NAME = "delta.columnMapping.physicalName"
TYPE_CHANGES = "delta.typeChanges"
MOST_DIGITS = 15  # of decimals: the log has them as JSON numbers, which may be doubles
_CUT = np.timedelta64(999, "us")  # times are cut to milliseconds


def delta_bounds(
    actions: pa.Table, schema: pa.Schema, fields: list[Mapping[str, Any]], mapped: bool
) -> FileBounds | None:
    """The bounds in the flat actions of `deltalake`; None where there are none.

    Parameters
    ----------
    schema : pyarrow.Schema
        The columns of the table.
    fields : list of dict
        The same as the log spells them.
    mapped : bool
        Whether they have other names in its statistics (Column Mapping).
    """
    names = set(actions.column_names)
    if "num_records" not in names:
        return None
    own_name = _physical_name if mapped else _name
    spelt = _flat_names(fields, own_name)
    num_rows = actions["num_records"].combine_chunks().fill_null(-1).to_numpy(zero_copy_only=False)

    def column(path: Path) -> ColumnBounds | None:
        found = _at(fields, path)
        if found is None or any("." in own_name(one) for one in found):
            return None  # flat names of structs have dots
        name = ".".join(map(own_name, found))
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
        if t.is_string(kind):
            upper = highest(upper)
        if t.is_float64(kind) and any(TYPE_CHANGES in one.get("metadata", {}) for one in found):
            lower, upper = _with_floats(lower, upper)
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


def _with_floats(lower: pa.Array, upper: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Bounds of doubles, some of which were floats when they were written: 0.1 is then the float next to it, which is greater."""
    low, high = (one.cast(pa.float32(), safe=False).cast(pa.float64()) for one in (lower, upper))
    return pc.min_element_wise(lower, low), pc.max_element_wise(upper, high)


def _name(field: Mapping[str, Any]) -> str:
    return str(field["name"])


def _physical_name(field: Mapping[str, Any]) -> str:
    return str(field.get("metadata", {}).get(PHYSICAL_NAME, field["name"]))


def _flat_names(
    fields: list[Mapping[str, Any]], own_name: Callable[[Mapping[str, Any]], str], before: str = ""
) -> Counter[str]:
    """How many columns have a name, with dots between the fields of structs."""
    found: Counter[str] = Counter()
    for field in fields:
        name = before + own_name(field)
        kind = field["type"]
        if isinstance(kind, Mapping) and kind["type"] == "struct":
            found += _flat_names(kind["fields"], own_name, f"{name}.")
        else:
            found[name] += 1
    return found


def _at(fields: list[Mapping[str, Any]], path: Path) -> list[Mapping[str, Any]] | None:
    """The fields that a path leads through."""
    found: list[Mapping[str, Any]] = []
    for name in path:
        field = next((one for one in fields if one["name"] == name), None)
        if field is None:
            return None
        found.append(field)
        kind = field["type"]
        fields = kind["fields"] if isinstance(kind, Mapping) and kind["type"] == "struct" else []
    return found
