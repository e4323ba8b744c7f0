"""Values of partition columns of Delta Lake tables, as the type of today spells them.

A table whose types may widen keeps the values of files that were added before (Delta protocol, Type Widening and Partition Value
Serialization): `5` in a column that is a `decimal(12,2)` now. `deltalake` 1.6 opens no table with such a value. So it is given a
copy of the log that spells them as it wants them.
"""

from __future__ import annotations

import decimal
import io
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pageseek.datasets.delta_bounds import PHYSICAL_NAME, TYPE_CHANGES

Respell = Callable[[str], str]
_DECIMAL = re.compile(r"decimal\((\d+), *(\d+)\)")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def widened_partitions(metadata: Mapping[str, Any]) -> dict[str, Respell]:
    """How values are spelt of partition columns whose type was widened, by the names that they have in the log. `metadata`: the
    action of the table that says its schema.
    """
    partitions, found = set(metadata.get("partitionColumns") or ()), {}
    for field in json.loads(metadata["schemaString"])["fields"]:
        told = field.get("metadata") or {}
        respell = _respell(field["type"])
        if field["name"] in partitions and TYPE_CHANGES in told and respell is not None:
            found[field["name"]] = found[told.get(PHYSICAL_NAME, field["name"])] = respell
    return found


def respelt(name: str, data: bytes, columns: Mapping[str, Respell]) -> bytes:
    """A file of the log that spells the values of these columns so."""
    if name.endswith(".parquet"):
        return _checkpoint(data, columns)
    lines = []
    for line in data.splitlines():
        action = json.loads(line) if b'"partitionValues"' in line else {}
        changed = False
        for one in action.values():
            values = one.get("partitionValues") if isinstance(one, dict) else None
            if isinstance(values, dict):
                made = _values(values, columns)
                changed |= made != values
                one["partitionValues"] = made
        # what stays is not spelt otherwise
        lines.append(json.dumps(action).encode() if changed else line)
    return b"\n".join(lines) + b"\n"


def _values(values: Mapping[str, Any], columns: Mapping[str, Respell]) -> dict[str, Any]:
    return {
        key: columns[key](text) if key in columns and isinstance(text, str) and text else text
        for key, text in values.items()
    }


def _respell(kind: Any) -> Respell | None:
    """How values of a type are spelt that a narrower one may have spelt otherwise; None where it spells them the same way."""
    if kind == "timestamp_ntz":
        return lambda text: f"{text} 00:00:00" if _DATE.fullmatch(text) else text
    scaled = _DECIMAL.fullmatch(kind) if isinstance(kind, str) else None
    if scaled is None:
        return None
    context = decimal.Context(prec=int(scaled[1]))
    unit = decimal.Decimal(1).scaleb(-int(scaled[2]))

    def respell(text: str) -> str:
        try:
            number = decimal.Decimal(text)
            made = number.quantize(unit, context=context)
        except decimal.InvalidOperation:  # deltalake says why it is none
            return text
        return format(made, "f") if made == number else text

    return respell


def _checkpoint(data: bytes, columns: Mapping[str, Respell]) -> bytes:
    table = pq.read_table(io.BytesIO(data))
    for action in ("add", "remove"):
        at = table.schema.get_field_index(action)
        kind = table.schema.field(at).type if at >= 0 else pa.null()
        inside = kind.get_field_index("partitionValues") if pa.types.is_struct(kind) else -1
        if inside < 0 or not pa.types.is_map(kind.field(inside).type):
            continue
        made = [_action(one, columns) for one in table[action].to_pylist()]
        table = table.set_column(at, table.schema.field(at), pa.array(made, kind))
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


def _action(found: dict[str, Any] | None, columns: Mapping[str, Respell]) -> dict[str, Any] | None:
    if found is not None and found["partitionValues"] is not None:
        found["partitionValues"] = list(_values(dict(found["partitionValues"]), columns).items())
    return found
