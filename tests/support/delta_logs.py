"""Logs of Delta Lake tables, commit by commit, as a test spells them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

MAPPING = "delta.columnMapping"


def field(name: str, kind: Any, **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


class Log:
    """A table whose commits are written one by one."""

    def __init__(
        self,
        root: Path,
        fields: list[dict[str, Any]],
        partitions: list[str] | None = None,
        features: list[str] | None = None,
        settings: dict[str, str] | None = None,
        writers: list[str] | None = None,
        in_ascii: tuple[bool, bool] = (True, True),
    ) -> None:
        """`features`: those that readers have to know; `writers`: those that writers have to, if they are others. `in_ascii`: whether
        the schema, and the first commit, have ASCII alone.
        """
        self.root, self._version = root, 0
        (root / "_delta_log").mkdir(parents=True)
        protocol: dict[str, Any] = {"minReaderVersion": 1, "minWriterVersion": 2}
        if features is not None:
            protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features if writers is None else writers}  # fmt: skip
        metadata = {
            "id": "0c2c", "format": {"provider": "parquet", "options": {}}, "partitionColumns": partitions or [],
            "schemaString": json.dumps({"type": "struct", "fields": fields}, ensure_ascii=in_ascii[0]), "configuration": settings or {}, "createdTime": 1,
        }  # fmt: skip
        self.commit({"protocol": protocol}, {"metaData": metadata}, ascii_alone=in_ascii[1])

    def commit(self, *actions: dict[str, Any], ascii_alone: bool = True) -> Path:
        path = self.root / "_delta_log" / f"{self._version:020}.json"
        lines = [json.dumps(action, ensure_ascii=ascii_alone) for action in actions]
        path.write_text("\n".join(lines), "utf-8")
        self._version += 1
        return path

    def add(
        self,
        name: str,
        table: pa.Table,
        values: dict[str, Any] | None = None,
        stats: dict[str, Any] | None = None,
        ascii_alone: bool = True,
        **options: Any,
    ) -> None:
        """Add a file. `options`: of the writer of Parquet."""
        pq.write_table(table, self.root / name, **options)
        said = {} if stats is None else {"stats": json.dumps(stats, ensure_ascii=ascii_alone)}
        size = (self.root / name).stat().st_size  # deltalake believes it
        action = {
            "path": name,
            "partitionValues": values or {},
            "size": size,
            "modificationTime": 1,
        }
        self.commit({"add": action | {"dataChange": True} | said}, ascii_alone=ascii_alone)


def nested(kind: str) -> list[dict[str, Any]]:
    """A column `a`, and the same inside of a struct, a list and a map."""
    pairs = {"type": "map", "keyType": "string", "valueType": kind, "valueContainsNull": True}
    return [
        field("a", kind),
        field("s", {"type": "struct", "fields": [field("x", kind)]}),
        field("l", {"type": "array", "elementType": kind, "containsNull": True}),
        field("m", pairs),
    ]


def wrapped(values: pa.Array) -> pa.Table:
    """Values as those columns have them."""
    rows = values.to_pylist()
    kind = values.type
    return pa.table(
        {
            "a": values,
            "s": pa.array([{"x": one} for one in rows], pa.struct([("x", kind)])),
            "l": pa.array([[one] for one in rows], pa.list_(kind)),
            "m": pa.array([[("k", one)] for one in rows], pa.map_(pa.string(), kind)),
        }
    )
