"""Tables of Iceberg written without pyiceberg: metadata in JSON, manifests in Avro, as the specification has them.

So a test may write what pyiceberg does not: tables of version 1 and 3, wrong counts and bounds, any partition and sequence number.
"""

from __future__ import annotations

import json
import struct
import uuid
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from support.delta_by_hand import bitmap

SNAPSHOT, MOMENT = 77, 1_700_000_000_001
DATE = {"type": "int", "logicalType": "date"}
PATH_ID, POSITION_ID = 2147483546, 2147483545
COUNTS = tuple(
    [f"{what}_{of}_count" for of in ("files", "rows") for what in ("added", "existing", "deleted")]
)


def ided(name: str, kind: pa.DataType, number: int, nullable: bool = True) -> pa.Field:
    """A field of a Parquet file with a field id."""
    return pa.field(name, kind, nullable, {b"PARQUET:field_id": str(number).encode()})


def column(number: int, name: str, kind: Any, **more: Any) -> dict[str, Any]:
    """A field of a schema of a table. `more`: such as initial_default."""
    told = {key.replace("_", "-"): value for key, value in more.items()}
    return {"id": number, "name": name, "required": False, "type": kind, **told}


def struct_of(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def list_of(number: int, element: Any) -> dict[str, Any]:
    return {"type": "list", "element-id": number, "element-required": False, "element": element}


def rows_of(fields: Sequence[pa.Field], *columns: Sequence[Any]) -> pa.Table:
    arrays = [pa.array(values, one.type) for one, values in zip(fields, columns, strict=True)]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


POSITIONS = [ided("file_path", pa.string(), PATH_ID), ided("pos", pa.int64(), POSITION_ID)]


@dataclass
class Entry:
    """A file of a manifest. `told`: what the manifest says of it."""

    told: dict[str, Any]
    sequence: int
    spec: int = 0

    @property
    def url(self) -> str:
        return str(self.told["file_path"])


@dataclass
class Written:
    """A table in a folder. `specs`: of each partition field its source, its name, its transform and its type in Avro."""

    folder: Path
    schemas: Sequence[Sequence[dict[str, Any]]]
    version: int = 2
    specs: Sequence[Sequence[tuple[int, str, str, Any]]] = ((),)
    properties: Mapping[str, str] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    table: str = field(default_factory=lambda: str(uuid.uuid4()))
    inline: bool = False  # the snapshot names its manifests, without a list
    counts: Sequence[str | None] = COUNTS  # those that the list of manifests has; None: null ones

    def add(self, rows: pa.Table, sequence: int = 1, spec: int = 0, **told: Any) -> Entry:
        """A file of data, or of deletes if its `content` says so."""
        path = self.folder / "data" / f"{len(self.entries)}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, path)
        return self._entry(path, rows.num_rows, sequence, spec, told)

    def positions(
        self,
        of: Sequence[tuple[Entry, int]],
        sequence: int,
        fields: Sequence[pa.Field] = POSITIONS,
        deleted: Sequence[Any] | None = None,
        **told: Any,
    ) -> Entry:
        """Deletes by position. `fields`: the columns of the file. `deleted`: the rows, if the file has them."""
        columns: list[Sequence[Any]] = [[one.url for one, _ in of], [number for _, number in of]]
        rows = rows_of(fields, *columns, *([] if deleted is None else [deleted]))
        return self.add(rows, sequence, content=1, **told)

    def values(self, rows: pa.Table, ids: Sequence[int], sequence: int, **told: Any) -> Entry:
        return self.add(rows, sequence, content=2, equality_ids=list(ids), **told)

    def vector(self, of: Entry, numbers: Sequence[int], sequence: int) -> Entry:
        """A deletion vector of a file."""
        data = bitmap(list(numbers))
        blob = struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))
        path = self.folder / "data" / f"{len(self.entries)}.puffin"
        path.write_bytes(b"PFA1" + blob)
        told = {
            "content": 1, "file_format": "PUFFIN", "referenced_data_file": of.url, "content_offset": 4,
            "content_size_in_bytes": len(blob), "partition": of.told["partition"],
        }  # fmt: skip
        return self._entry(path, len(numbers), sequence, of.spec, told)

    def _entry(self, path: Path, n: int, sequence: int, spec: int, told: dict[str, Any]) -> Entry:
        made = {
            "content": 0, "file_path": f"file://{path}", "file_format": "PARQUET", "partition": (), "record_count": n,
            "file_size_in_bytes": path.stat().st_size, "block_size_in_bytes": 1, **told,
        }  # fmt: skip
        self.entries.append(Entry(made, sequence, spec))
        return self.entries[-1]

    def commit(self) -> str:
        """Write manifests and metadata. Returns the folder."""
        at = self.folder / "metadata"
        at.mkdir(parents=True, exist_ok=True)
        manifests = []
        groups: dict[tuple[int, int], list[Entry]] = {}
        for one in self.entries:
            groups.setdefault((min(one.told["content"], 1), one.spec), []).append(one)
        for (content, spec), files in groups.items():
            path = at / f"{uuid.uuid4()}-m0.avro"
            about = {
                "schema": json.dumps(self._schema(len(self.schemas) - 1)), "partition-spec": json.dumps(self._spec(spec)),
            }  # fmt: skip
            if self.version > 1:
                about |= {"format-version": str(self.version), "content": "deletes" if content else "data"}  # fmt: skip
            if self.version > 1 or spec:
                about["partition-spec-id"] = str(spec)
            _write_avro(path, self._of_entries(spec), map(self._as_entry, files), about)
            manifests.append(
                {
                    "manifest_path": f"file://{path}", "manifest_length": path.stat().st_size, "partition_spec_id": spec,
                    "content": content, "sequence_number": 1, "min_sequence_number": 1, "added_snapshot_id": SNAPSHOT, "existing_files_count": len(files),
                }
            )  # fmt: skip
        path = at / f"snap-{uuid.uuid4()}.avro"
        fields: list[tuple[str, Any, int]] = [
            ("manifest_path", "string", 500), ("manifest_length", "long", 501), ("partition_spec_id", "int", 502),
            ("content", "int", 517), ("sequence_number", "long", 515), ("min_sequence_number", "long", 516),
            ("added_snapshot_id", "long", 503),
        ]  # fmt: skip
        if self.version == 1:
            fields = [one for one in fields if one[2] < 515]
        for i, name in enumerate(COUNTS):
            kind: Any = "int" if i < 3 else "long"
            if name not in self.counts:
                kind = ["null", kind]
            if name in self.counts or None in self.counts:
                fields.append((name, kind, (504, 505, 506, 512, 513, 514)[i]))
        listed = [{**dict.fromkeys(filter(None, self.counts), 0), **one} for one in manifests]
        if None in self.counts:
            listed = [{key: value for key, value in one.items() if key not in COUNTS or key in self.counts} for one in listed]  # fmt: skip
        about = {"format-version": str(self.version)}
        _write_avro(path, _record("manifest_file", fields), listed, about)
        named: dict[str, Any] = {"manifest-list": f"file://{path}"}
        if self.inline:
            named = {"manifests": [one["manifest_path"] for one in manifests]}
        self._write_metadata(at, named)
        return str(self.folder)

    def _write_metadata(self, at: Path, named: Mapping[str, Any]) -> None:
        last = max((one.sequence for one in self.entries), default=0)
        snapshot = {
            "snapshot-id": SNAPSHOT, "timestamp-ms": MOMENT, **named,
            "summary": {"operation": "append"}, "schema-id": len(self.schemas) - 1, "sequence-number": last,
        }  # fmt: skip
        told = {
            "format-version": self.version, "table-uuid": self.table, "location": f"file://{self.folder}",
            "last-updated-ms": MOMENT, "last-column-id": 999, "current-schema-id": len(self.schemas) - 1,
            "schemas": [self._schema(i) for i in range(len(self.schemas))], "default-spec-id": len(self.specs) - 1,
            "partition-specs": [{"spec-id": i, "fields": self._spec(i)} for i in range(len(self.specs))],
            "last-partition-id": 1999, "default-sort-order-id": 0, "sort-orders": [{"order-id": 0, "fields": []}],
            "properties": dict(self.properties), "current-snapshot-id": SNAPSHOT, "snapshots": [snapshot],
            "snapshot-log": [{"snapshot-id": SNAPSHOT, "timestamp-ms": MOMENT}], "last-sequence-number": last,
            "refs": {"main": {"snapshot-id": SNAPSHOT, "type": "branch"}}, "next-row-id": 0,
        }  # fmt: skip
        if self.version == 1:
            told = self._as_version_1(told)
        (at / "v1.metadata.json").write_text(json.dumps(told))

    def _as_version_1(self, told: dict[str, Any]) -> dict[str, Any]:
        """The metadata with what version 1 requires, and no more: one schema and one partitioning."""
        names = "format-version", "location", "last-updated-ms", "last-column-id", "current-snapshot-id", "snapshots"  # fmt: skip
        made = {name: told[name] for name in names}
        for one in told["snapshots"]:
            for name in ("summary", "schema-id", "sequence-number"):
                del one[name]
        made["schema"] = self._schema(len(self.schemas) - 1)
        del made["schema"]["schema-id"]
        if len(self.specs) > 1:
            made |= {name: told[name] for name in ("partition-specs", "default-spec-id")}
        fields = self._spec(len(self.specs) - 1)
        made["partition-spec"] = [{k: v for k, v in one.items() if k != "field-id"} for one in fields]  # fmt: skip
        return made

    def _schema(self, at: int) -> dict[str, Any]:
        return {"type": "struct", "schema-id": at, "fields": list(self.schemas[at])}

    def _spec(self, at: int) -> list[dict[str, Any]]:
        return [
            {"source-id": source, "field-id": 1000 + i, "name": name, "transform": transform}
            for i, (source, name, transform, _) in enumerate(self.specs[at])
        ]

    def _of_entries(self, spec: int) -> dict[str, Any]:
        """The Avro schema of a manifest."""
        inside = [
            (name, ["null", kind], 1000 + i) for i, (_, name, _, kind) in enumerate(self.specs[spec])
        ]  # fmt: skip
        counts, bounds = _map("long", 121, 122), _map("bytes", 126, 127)
        fields: list[tuple[str, Any, int]] = [
            ("content", "int", 134), ("file_path", "string", 100), ("file_format", "string", 101),
            ("partition", _record("r102", inside), 102), ("record_count", "long", 103), ("file_size_in_bytes", "long", 104),
            ("value_counts", ["null", _map("long", 119, 120)], 109), ("null_value_counts", ["null", counts], 110), ("lower_bounds", ["null", bounds], 125),
            ("upper_bounds", ["null", bounds], 128), ("equality_ids", ["null", {"type": "array", "items": "int", "element-id": 136}], 135),
            ("referenced_data_file", ["null", "string"], 143), ("content_offset", ["null", "long"], 144),
            ("content_size_in_bytes", ["null", "long"], 145),
        ]  # fmt: skip
        if self.version == 1:  # what it requires
            fields = [one for one in fields if one[2] in range(100, 105)]
            fields.append(("block_size_in_bytes", "long", 105))
            return _record(
                "manifest_entry",
                [("status", "int", 0), ("snapshot_id", "long", 1), ("data_file", _record("r2", fields), 2)],
            )  # fmt: skip
        return _record(
            "manifest_entry",
            [("status", "int", 0), ("snapshot_id", ["null", "long"], 1), ("sequence_number", ["null", "long"], 3), ("data_file", _record("r2", fields), 2)],
        )  # fmt: skip

    def _as_entry(self, one: Entry) -> dict[str, Any]:
        file = dict(one.told)
        names = [name for _, name, _, _ in self.specs[one.spec]]
        file["partition"] = dict(zip(names, file["partition"], strict=True))
        for name in ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds"):
            if name in file:
                file[name] = [{"key": key, "value": value} for key, value in file[name].items()]
        return {"status": 0, "snapshot_id": SNAPSHOT, "sequence_number": one.sequence, "data_file": file}  # fmt: skip


# -- Avro -----------------------------------------------------------------------------------------


def _record(name: str, fields: Iterable[tuple[str, Any, int]]) -> dict[str, Any]:
    made = [{"name": one, "type": kind, "field-id": number} for one, kind, number in fields]
    return {"type": "record", "name": name, "fields": made}


def _map(kind: str, key: int, value: int) -> dict[str, Any]:
    pair = _record(f"k{key}_v{value}", [("key", "int", key), ("value", kind, value)])
    return {"type": "array", "logicalType": "map", "items": pair}


def _write_avro(path: Path, schema: Any, rows: Iterable[Any], about: Mapping[str, str]) -> None:
    _unique_names(schema, [0])
    told = {"avro.schema": json.dumps(schema), "avro.codec": "null", **about}
    pairs = [_as_avro("string", key) + _as_avro("bytes", value.encode()) for key, value in told.items()]  # fmt: skip
    sync = bytes(range(16))
    encoded = [_as_avro(schema, row) for row in rows]
    body = b"".join(encoded)
    head = b"Obj\x01" + _number(len(pairs)) + b"".join(pairs) + _number(0) + sync
    path.write_bytes(head + _number(len(encoded)) + _number(len(body)) + body + sync)


def _unique_names(schema: Any, seen: list[int]) -> None:
    """A name of a record may occur once in a schema."""
    if isinstance(schema, dict):
        if schema.get("type") == "record":
            seen[0] += 1
            schema["name"] = f"r{seen[0]}"
        for value in schema.values():
            _unique_names(value, seen)
    elif isinstance(schema, list):
        for value in schema:
            _unique_names(value, seen)


def _number(value: int) -> bytes:
    left = ((value << 1) ^ (value >> 63)) & (1 << 64) - 1
    made = bytearray()
    while left > 0x7F:
        made.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*made, left])


def _as_avro(schema: Any, value: Any) -> bytes:
    if isinstance(schema, list):  # null, or the other
        return _number(0) if value is None else _number(1) + _as_avro(schema[1], value)
    kind = schema if isinstance(schema, str) else schema["type"]
    if kind in ("int", "long"):
        return _number(value)
    if kind == "double":
        return struct.pack("<d", value)
    if kind in ("string", "bytes"):
        data = value.encode() if isinstance(value, str) else value
        return _number(len(data)) + data
    if kind == "record":
        return b"".join(_as_avro(one["type"], value.get(one["name"])) for one in schema["fields"])
    assert kind == "array"
    items = b"".join(_as_avro(schema["items"], one) for one in value)
    return _number(len(value)) + items + _number(0) if value else _number(0)
