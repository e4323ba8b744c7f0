"""A random table of Iceberg with delete files, as Spark and Flink write them, beside a plain model of its rows."""

from __future__ import annotations

import json
import random
import struct
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.delta_by_hand import bitmap
from support.iceberg_tables import Deleting, here

pytest.importorskip("pyiceberg", "0.10")
pytest.importorskip("sqlalchemy")

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table.snapshots import Operation
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record

NAMES = ["id", "k", "v", "s", "n"]
IDS = {name: i for i, name in enumerate(NAMES, 1)}
INNER = pa.struct([pa.field("x", pa.int32())])
SCHEMA = pa.schema(
    [("id", pa.int64()), ("k", pa.string()), ("v", pa.int32()), ("s", pa.string()), ("n", INNER)]
)
X = 6  # the field id of n.x


class Model:
    """A table, and its rows as the specification has them."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng, self.folder = random.Random(seed), folder
        self.catalog = SqlCatalog("c", uri=f"sqlite:///{folder}/c.db", warehouse=f"file://{folder}")
        self.catalog.create_namespace("n")
        self.table = self.catalog.create_table(
            "n.t", SCHEMA, properties={"write.parquet.row-group-limit": "40"}
        )
        # of each data file: its entry, the number of its commit, and its rows, None where deleted
        self.files: dict[str, tuple[DataFile, int, list[Any]]] = {}
        self.added = self.next = 0
        self.numbers: dict[str, set[int]] = {}  # that deletes by position have of a file
        self.with_vectors: set[str] = set()

    def act(self) -> None:
        acts = [self.append, self.append, self.positions, self.positions, self.values, self.values]
        self.rng.choice([*acts, self.evolve, self.vector])()

    def rows(self) -> list[dict[str, Any]]:
        return [row for _, _, rows in self.files.values() for row in rows if row is not None]

    def append(self) -> None:
        rng, rows = self.rng, []
        for _ in range(rng.randrange(1, 120)):
            x = rng.choice([None, {"x": None}, {"x": rng.randrange(4)}])
            rows.append(
                {
                    "id": rng.choice([None, rng.randrange(60)]), "k": rng.choice(["a", "b/%", None]),
                    "v": rng.choice([None, *range(5)]), "s": f"text {rng.randrange(30)}", "n": x,
                }
            )  # fmt: skip
        self.table.append(pa.Table.from_pylist(rows, self.table.schema().as_arrow()))
        number = self.table.metadata.last_sequence_number
        snapshot = self.table.current_snapshot()
        for manifest in snapshot.manifests(self.table.io):
            for entry in manifest.fetch_manifest_entry(self.table.io):
                path = entry.data_file.file_path
                if int(entry.data_file.content) == 0 and path not in self.files:
                    told = pq.read_table(here(path)).to_pylist()
                    self.files[path] = entry.data_file, number, told

    def evolve(self) -> None:
        """Partition otherwise from now on."""
        with self.table.update_spec() as spec:
            if not self.table.spec().fields:
                spec.add_field("k", IdentityTransform(), f"k{self.next}")
            elif len(self.table.spec().fields) == 1 and self.rng.random() < 0.5:
                spec.add_field("v", IdentityTransform(), f"v{self.next}")
            else:
                for field in self.table.spec().fields:
                    spec.remove_field(field.name)
        self.next += 1

    def positions(self) -> None:
        """Delete rows of one file, or of several of a partition, by their numbers."""
        files = {p: one for p, one in self.files.items() if p not in self.with_vectors}
        if not files:
            return
        one = self.rng.choice(list(files.values()))[0]
        same = [p for p, (f, _, _) in files.items() if where(f) == where(one)]
        chosen = self.rng.sample(same, self.rng.randrange(1, len(same) + 1))
        pairs = []
        for path in sorted(chosen):
            n = len(self.files[path][2])
            numbers = sorted({self.rng.randrange(n) for _ in range(self.rng.randrange(1, 9))})
            pairs += [(path, number) for number in numbers]
        table = pa.table({"file_path": [p for p, _ in pairs], "pos": [i for _, i in pairs]})
        table = table.append_column(
            "other", pa.array(range(len(pairs)))
        )  # it may have the row, too
        bounds = chosen[0].encode() if len(chosen) == 1 and self.rng.random() < 0.5 else None
        self.commit(table, DataFileContent.POSITION_DELETES, one, None, bounds)
        for path, number in pairs:
            self.files[path][2][number] = None
            self.numbers.setdefault(path, set()).add(number)

    def vector(self) -> None:
        """Delete rows of a file by a deletion vector, which takes the place of its deletes by position."""
        files = [path for path in self.files if path not in self.with_vectors]
        if not files:
            return
        path = self.rng.choice(files)
        of, _, rows = self.files[path]
        numbers = self.numbers.get(path, set()) | {
            self.rng.randrange(len(rows)) for _ in range(self.rng.randrange(1, 9))
        }
        vector = vector_of(self.folder / f"vector {self.added}.puffin", of, path, sorted(numbers))
        self.added += 1
        self.delete(vector)
        self.with_vectors.add(path)
        for number in numbers:
            rows[number] = None

    def values(self) -> None:
        """Delete rows by some columns: of a partition, or of the whole table."""
        if not self.files:
            return
        fields = self.rng.choice([["id"], ["v"], ["id", "v"], ["k", "s"], ["n.x"], ["s", "n.x"]])
        one = self.rng.choice(list(self.files.values()))[0]
        rows = [row for row in self.rng.choice(list(self.files.values()))[2] if row is not None]
        rows = self.rng.sample(rows, min(len(rows), self.rng.randrange(1, 4)))
        if not rows:
            return
        keys = {key_of(row, fields) for row in rows}
        names = {"id": "id", "v": "v", "k": "k", "s": "other name", "n.x": "n"}
        arrays, columns = [], []
        for name in fields:
            values = [row["n"] if name == "n.x" else row[name] for row in rows]
            kind = SCHEMA.field("n" if name == "n.x" else name).type
            if name == "n.x":
                inner = pa.field("x", pa.int32(), metadata={b"PARQUET:field_id": str(X).encode()})
                kind = pa.struct([inner])
            arrays.append(pa.array(values, kind))
            number = IDS["n" if name == "n.x" else name]
            columns.append(
                pa.field(names[name], kind, metadata={b"PARQUET:field_id": str(number).encode()})
            )
        table = pa.Table.from_arrays(arrays, schema=pa.schema(columns))
        ids = [X if name == "n.x" else IDS[name] for name in fields]
        self.commit(table, DataFileContent.EQUALITY_DELETES, one, ids, None)
        number = self.table.metadata.last_sequence_number
        everywhere = not self.table.specs()[one.spec_id].fields
        for file, of, data in self.files.values():
            if of < number and (everywhere or where(file) == where(one)):
                for i, row in enumerate(data):
                    if row is not None and key_of(row, fields) in keys:
                        data[i] = None

    def commit(
        self,
        rows: pa.Table,
        content: Any,
        of: DataFile,
        ids: list[int] | None,
        bounds: bytes | None,
    ) -> None:
        self.added += 1
        path = self.folder / f"deletes {self.added}.parquet"
        pq.write_table(rows, path, row_group_size=5)
        told = {2147483546: bounds} if bounds else None
        made = DataFile.from_args(
            content=content, file_path=f"file://{path}", file_format=FileFormat.PARQUET,
            partition=Record(*[of.partition[i] for i in range(len(of.partition))]), record_count=rows.num_rows,
            file_size_in_bytes=path.stat().st_size, lower_bounds=told, upper_bounds=told, equality_ids=ids,
        )  # fmt: skip
        made.spec_id = of.spec_id
        self.delete(made)

    def delete(self, made: DataFile) -> None:
        """Commit a file of deletes."""
        change = self.table.transaction()
        update = Deleting(Operation.APPEND, change, self.table.io)
        update.made = [made]
        update.commit()
        change.commit_transaction()


def vector_of(to: Path, of: DataFile, path: str, numbers: list[int]) -> DataFile:
    """A deletion vector of a data file, in a Puffin file with another blob before it (Puffin specification, deletion-vector-v1)."""
    data = bitmap(numbers)
    blob = struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    other = b"another blob"
    about = {"referenced-data-file": path, "cardinality": str(len(numbers))}
    blobs = [
        {"type": "other", "fields": [], "snapshot-id": -1, "sequence-number": -1, "offset": 4, "length": len(other)},
        {
            "type": "deletion-vector-v1", "fields": [], "snapshot-id": -1, "sequence-number": -1,
            "offset": 4 + len(other), "length": len(blob), "properties": about,
        },
    ]  # fmt: skip
    footer = json.dumps({"blobs": blobs}).encode()
    end = b"PFA1" + footer + struct.pack("<II", len(footer), 0) + b"PFA1"
    to.write_bytes(b"PFA1" + other + blob + end)
    made = DataFile.from_args(
        _table_format_version=3, content=DataFileContent.POSITION_DELETES, file_path=f"file://{to}", file_format="PUFFIN",
        partition=Record(*[of.partition[i] for i in range(len(of.partition))]), record_count=len(numbers),
        file_size_in_bytes=to.stat().st_size, referenced_data_file=path, content_offset=4 + len(other),
        content_size_in_bytes=len(blob),
    )  # fmt: skip
    made.spec_id = of.spec_id
    return made


def where(file: DataFile) -> Any:
    return file.spec_id, [repr(file.partition[i]) for i in range(len(file.partition))]


def key_of(row: dict[str, Any], fields: list[str]) -> tuple[Any, ...]:
    return tuple((row["n"] or {}).get("x") if name == "n.x" else row[name] for name in fields)


def as_text(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in rows)
