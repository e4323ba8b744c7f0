"""Tables of Delta Lake written by hand from the protocol: column mapping, partitions and deletion vectors of all kinds."""

from __future__ import annotations

import base64
import datetime as dt
import json
import random
import struct
import urllib.parse
import uuid
import zlib
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"

# the type in the log, that in files, and values
KINDS: dict[str, tuple[pa.DataType, Sequence[Any]]] = {
    "integer": (pa.int32(), [0, 1, -7, 2**31 - 1]),
    "long": (pa.int64(), [0, 5, -(2**40)]),
    "short": (pa.int16(), [1, -300]),
    "byte": (pa.int8(), [1, -100]),
    "string": (pa.string(), ["a", "b c", "é/%=:", "x" * 40]),
    "boolean": (pa.bool_(), [True, False]),
    "double": (pa.float64(), [0.5, -1e300, 3.0]),
    "float": (pa.float32(), [0.5, -2.0]),
    "date": (pa.date32(), [dt.date(2024, 2, 29), dt.date(1970, 1, 1)]),
    "decimal(9,2)": (pa.decimal128(9, 2), [Decimal("1.20"), Decimal("-99.99")]),
    "decimal(38,10)": (pa.decimal128(38, 10), [Decimal("12345678901234567890.0000000001")]),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        [dt.datetime(2024, 1, 1, 12, 30, 0, 5, dt.UTC), dt.datetime(1999, 1, 1, tzinfo=dt.UTC)],
    ),
    "timestamp_ntz": (pa.timestamp("us"), [dt.datetime(2024, 1, 1, 1, 2, 3, 4)]),
}


def bitmap(numbers: Sequence[int]) -> bytes:
    """A bitmap with arrays and runs, as they come."""
    high: dict[int, list[int]] = {}
    for number in sorted(numbers):
        high.setdefault(number >> 16, []).append(number & 0xFFFF)
    head = struct.pack("<II", 12346, len(high))
    body, at = b"", 8 + 8 * len(high)
    offsets = b""
    for key, values in high.items():
        head += struct.pack("<HH", key, len(values) - 1)
        offsets += struct.pack("<I", at + len(body))
        body += np.array(values, "<u2").tobytes()
    return struct.pack("<IQI", 1681511377, 1, 0) + head + offsets + body


def encoded(data: bytes) -> str:
    """Bytes as Z85, filled up with zeros."""
    data += bytes(-len(data) % 4)
    return base64.b85encode(data).decode().translate(str.maketrans(B85, Z85))


def with_vector(added: dict[str, Any], rows: list[int]) -> list[dict[str, Any]]:
    """The actions by which a file that was added loses rows, all in one vector."""
    bits = bitmap(rows)
    vector = {"storageType": "i", "pathOrInlineDv": encoded(bits), "sizeInBytes": len(bits), "cardinality": len(rows)}  # fmt: skip
    removed = {"path": added["path"], "deletionTimestamp": 1, "dataChange": True}
    if "deletionVector" in added:
        removed["deletionVector"] = added["deletionVector"]
    return [{"remove": removed}, {"add": added | {"deletionVector": vector}}]


def _text(value: Any) -> str | None:
    """The value of a partition as the log spells it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dt.datetime):
        text = value.strftime("%Y-%m-%d %H:%M:%S.%f")
        return text.replace(" ", "T") + "Z" if value.tzinfo else text
    if isinstance(value, float):
        return repr(value)
    return str(value)


def _bound(value: Any, upper: bool) -> Any:
    """A bound in JSON: texts and times are cut."""
    if isinstance(value, str):
        return value[:32] + "\U0010ffff" * upper if len(value) > 32 else value
    if isinstance(value, dt.datetime):
        return (
            value.strftime("%Y-%m-%dT%H:%M:%S.")
            + f"{value.microsecond // 1000:03}"
            + "Z" * (value.tzinfo is not None)
        )
    return (
        str(value)
        if isinstance(value, dt.date)
        else float(value)
        if isinstance(value, Decimal)
        else value
    )


class DeltaTable:
    """A table under way: files are added, columns are renamed, and rows are deleted. `rows` is what is in it."""

    def __init__(
        self,
        root: Path,
        mode: str,
        kinds: dict[str, str],
        partitions: Sequence[str],
        rng: random.Random,
    ) -> None:
        self._root, self._mode, self._rng = root, mode, rng
        self._kinds, self._partitions = kinds, list(partitions)
        self._next = len(kinds) + 1
        self._columns = {  # logical name -> (physical name, id)
            name: (name if mode == "none" else f"col-{i}", i) for i, name in enumerate(kinds, 1)
        }
        self._files: dict[str, tuple[list[dict[str, Any]], set[int]]] = {}
        self._vectors: dict[str, dict[str, Any]] = {}
        self._version = 0
        (root / "_delta_log").mkdir(parents=True)
        self._commit([self._protocol(), self._metadata()])

    def rows(self) -> list[dict[str, Any]]:
        """The rows that are there, by the names of now."""
        names = {physical: name for name, (physical, _) in self._columns.items()}
        return [
            {name: row.get(physical) for physical, name in names.items()}
            for rows, deleted in self._files.values()
            for i, row in enumerate(rows)
            if i not in deleted
        ]

    def add(self, num_rows: int) -> None:
        """Add a file."""
        rng = self._rng
        said = {name: self._value(name) for name in self._partitions}
        path = (
            f"part {len(self._files)}=%.parquet"
            if rng.random() < 0.3
            else f"p{len(self._files)}.parquet"
        )
        rows = [{self._columns[n][0]: v for n, v in said.items()} for _ in range(num_rows)]
        arrays, fields = [], []
        for name, (physical, number) in self._columns.items():
            if name in self._partitions:
                continue
            some = [self._value(name) for _ in range(rng.randrange(1, 4))]  # so that bounds differ
            values = [rng.choice(some) for _ in range(num_rows)]
            kind = KINDS[self._kinds[name]][0]
            for row, value in zip(rows, values, strict=True):
                row[physical] = value
            arrays.append(pa.array(values, kind))
            in_file = f"other {number}" if self._mode == "id" else physical
            told = None if self._mode == "none" else {b"PARQUET:field_id": str(number).encode()}
            fields.append(pa.field(in_file, kind, metadata=told))
        moments = pa.timestamp("us") not in [field.type for field in fields]
        table = pa.Table.from_arrays(arrays, schema=pa.schema(fields))
        pq.write_table(
            table, self._root / path, row_group_size=max(num_rows // 2, 1), write_page_index=rng.random() < 0.7,
            use_deprecated_int96_timestamps=moments and rng.random() < 0.3, max_rows_per_page=50,
        )  # fmt: skip
        self._files[path] = rows, set()
        self._commit([self._added(path, said)])

    def delete(self) -> None:
        """Delete rows of a file."""
        path = self._rng.choice(list(self._files))
        rows, deleted = self._files[path]
        if not rows:
            return
        before = set(deleted)
        start = self._rng.randrange(len(rows))
        deleted |= {*range(start, min(start + self._rng.randrange(1, 40), len(rows)))}
        deleted |= {self._rng.randrange(len(rows)) for _ in range(3)}
        if deleted == before:  # one commit does not take out and put in the same
            return
        names = {physical: name for name, (physical, _) in self._columns.items()}
        said = {n: rows[0].get(p) for p, n in names.items() if n in self._partitions}
        added = self._added(path, said)
        removed = {"path": added["add"]["path"], "deletionTimestamp": 1, "dataChange": True}
        if path in self._vectors:
            removed["deletionVector"] = self._vectors[path]
        added["add"]["deletionVector"] = self._vectors[path] = self._vector(sorted(deleted))
        actions = [{"remove": removed}, added]
        self._rng.shuffle(actions)
        self._commit(actions)

    def rename(self) -> None:
        """Rename two columns, perhaps to each other's names, or drop one and add another of its name."""
        if self._mode == "none":
            return
        names = [name for name in self._columns if name not in self._partitions]
        if len(names) < 3:
            return
        one, other = self._rng.sample(names, 2)
        if self._rng.random() < 0.3:
            self._columns[one] = f"col-{self._next}", self._next
            self._next += 1
        else:
            columns = dict(self._columns)
            columns[one], columns[other] = self._columns[other], self._columns[one]
            self._columns = columns
            kinds = self._kinds
            kinds[one], kinds[other] = kinds[other], kinds[one]
        self._commit([self._metadata()])

    def _value(self, name: str) -> Any:
        values = KINDS[self._kinds[name]][1]
        return self._rng.choice([*values, None])

    def _added(self, path: str, said: dict[str, Any]) -> dict[str, Any]:
        values = {self._columns[name][0]: _text(value) for name, value in said.items()}
        size = (self._root / path).stat().st_size
        quoted = urllib.parse.quote(path)
        stats = {} if self._rng.random() < 0.2 else {"stats": json.dumps(self._stats(path))}
        return {
            "add": {
                "path": quoted, "partitionValues": values, "size": size, "modificationTime": 1, "dataChange": True,
            } | stats
        }  # fmt: skip

    def _stats(self, path: str) -> dict[str, Any]:
        """Bounds of some columns, of all rows that the file ever had."""
        rows, deleted = self._files[path]
        told: dict[str, Any] = {"numRecords": len(rows), "tightBounds": not deleted}
        told |= {"minValues": {}, "maxValues": {}, "nullCount": {}}
        for name, (physical, _) in self._columns.items():
            if name in self._partitions or self._rng.random() < 0.2:
                continue
            there = [row[physical] for row in rows if row.get(physical) is not None]
            told["nullCount"][physical] = len(rows) - len(there)
            if there and self._kinds[name] != "boolean":
                told["minValues"][physical] = _bound(min(there), False)
                told["maxValues"][physical] = _bound(max(there), True)
        return told

    def _vector(self, numbers: list[int]) -> dict[str, Any]:
        data = bitmap(numbers)
        made: dict[str, Any] = {"sizeInBytes": len(data), "cardinality": len(numbers)}
        kind = self._rng.choice("iup")
        if kind == "i":
            return made | {"storageType": "i", "pathOrInlineDv": encoded(data)}
        number = uuid.UUID(int=self._rng.getrandbits(128))
        folder = self._rng.choice(["", "ab"])
        file = self._root / folder / f"deletion_vector_{number}.bin"
        file.parent.mkdir(exist_ok=True)
        before = b"\1" + bytes(self._rng.randrange(0, 9))
        file.write_bytes(
            before + struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))
        )
        where = folder + encoded(number.bytes) if kind == "u" else file.as_uri()
        return made | {"storageType": kind, "pathOrInlineDv": where, "offset": len(before)}

    def _protocol(self) -> dict[str, Any]:
        names = ["deletionVectors", "timestampNtz"] + ["columnMapping"] * (self._mode != "none")
        return {
            "protocol": {
                "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": names, "writerFeatures": names,
            }
        }  # fmt: skip

    def _metadata(self) -> dict[str, Any]:
        fields = []
        for name, (physical, number) in self._columns.items():
            told = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}
            fields.append(
                {
                    "name": name, "type": self._kinds[name], "nullable": True,
                    "metadata": {} if self._mode == "none" else told,
                }
            )  # fmt: skip
        told = {
            "delta.columnMapping.mode": self._mode,
            "delta.columnMapping.maxColumnId": str(self._next),
        }
        return {
            "metaData": {
                "id": "6a4c1f1e-2f56-4d8e-8f39-5f7f0c2b6a11", "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": fields}),
                "partitionColumns": self._partitions,
                "configuration": {} if self._mode == "none" else told, "createdTime": 1,
            }
        }  # fmt: skip

    def _commit(self, actions: list[dict[str, Any]]) -> None:
        path = self._root / "_delta_log" / f"{self._version:020}.json"
        path.write_text("".join(json.dumps(action) + "\n" for action in actions))
        self._version += 1
