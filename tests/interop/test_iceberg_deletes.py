"""Random tables of Iceberg with delete files, as Spark and Flink write them: rows and filters equal a plain model."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps

pytest.importorskip("pyiceberg", "0.10")
pytest.importorskip("sqlalchemy")

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table.snapshots import Operation
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record

from support.iceberg_tables import Deleting, here

TABLES = int(os.environ.get("ICEBERG_TABLES", "12"))
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

    def act(self) -> None:
        acts = [self.append, self.append, self.positions, self.positions, self.values, self.values]
        self.rng.choice([*acts, self.evolve])()

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
        if not self.files:
            return
        one = self.rng.choice(list(self.files.values()))[0]
        same = [p for p, (f, _, _) in self.files.items() if where(f) == where(one)]
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
        change = self.table.transaction()
        update = Deleting(Operation.APPEND, change, self.table.io)
        update.made = [made]
        update.commit()
        change.commit_transaction()


def where(file: DataFile) -> Any:
    return file.spec_id, [repr(file.partition[i]) for i in range(len(file.partition))]


def key_of(row: dict[str, Any], fields: list[str]) -> tuple[Any, ...]:
    return tuple((row["n"] or {}).get("x") if name == "n.x" else row[name] for name in fields)


def as_text(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in rows)


@pytest.mark.parametrize("seed", range(TABLES))
def test_rows_and_filters_equal_a_model(tmp_path: Path, seed: int) -> None:
    model = Model(tmp_path, seed)
    try:
        for _ in range(model.rng.randrange(2, 10)):
            model.act()
        rows, scan, rng = model.rows(), ps.scan(model.table), random.Random(-seed)
        assert as_text(scan.to_table().to_pylist()) == as_text(rows)
        assert scan.count_rows() == len(rows)
        for _ in range(30):
            value, text = rng.randrange(60), f"text {rng.randrange(30)}"
            condition, expected = rng.choice(
                [
                    (ps.col("id") == value, [r for r in rows if r["id"] == value]),
                    (ps.col("id").is_null(), [r for r in rows if r["id"] is None]),
                    (ps.col("v") > value % 5, [r for r in rows if (r["v"] or 0) > value % 5]),
                    (ps.col("s") == text, [r for r in rows if r["s"] == text]),
                    (ps.col("k") == "b/%", [r for r in rows if r["k"] == "b/%"]),
                    (ps.col("n.x") == value % 4, [r for r in rows if key_of(r, ["n.x"]) == (value % 4,)]),
                ]
            )  # fmt: skip
            assert as_text(scan.filter(condition).to_table().to_pylist()) == as_text(expected)
    finally:
        model.catalog.close()


def deletes_of(model: Model, fields: dict[str, int], rows: pa.Table) -> None:
    """Delete the rows that have values, in all partitions. `fields`: names in the file, and ids."""
    one = next(iter(model.files.values()))[0]
    named = [
        pa.field(f.name, f.type, metadata={b"PARQUET:field_id": str(fields[f.name]).encode()})
        for f in rows.schema
    ]
    table = pa.Table.from_arrays(
        [c.combine_chunks() for c in rows.columns], schema=pa.schema(named)
    )
    model.commit(table, DataFileContent.EQUALITY_DELETES, one, list(fields.values()), None)


def test_values_of_other_types_and_columns_that_are_gone(tmp_path: Path) -> None:
    """Files of deletes from before a type became wider, by a column that was renamed, and by one that was dropped."""
    from pyiceberg.types import LongType

    model = Model(tmp_path, 1)
    rows = [
        {"id": i, "k": "a" if i % 2 else None, "v": i % 7, "s": f"s{i}", "n": {"x": i}} for i in range(50)
    ]  # fmt: skip
    model.table.append(pa.Table.from_pylist(rows, model.table.schema().as_arrow()))
    entry = (
        model.table.current_snapshot()
        .manifests(model.table.io)[0]
        .fetch_manifest_entry(model.table.io)[0]
    )
    model.files[entry.data_file.file_path] = entry.data_file, 1, rows
    deletes_of(model, {"v": 3}, pa.table({"v": pa.array([3], pa.int32())}))
    with model.table.update_schema() as change:
        change.update_column("v", LongType())
        change.rename_column("v", "w")
    deletes_of(model, {"w": 3}, pa.table({"w": pa.array([5, 2**40], pa.int64())}))
    deletes_of(
        model, {"k": 2, "id": 1}, pa.table({"k": pa.array([None, None], pa.string()), "id": [2, 3]})
    )
    deletes_of(model, {"s": 4}, pa.table({"s": ["s20", "none"]}))
    with model.table.update_schema(allow_incompatible_changes=True) as change:
        change.delete_column("s")
    left = [r["id"] for r in rows if r["v"] not in (3, 5) and r["id"] not in (2, 20)]
    found = ps.read_table(model.table)
    assert found.schema.names == ["id", "k", "w", "n"]
    assert found["id"].to_pylist() == left
    assert ps.scan(model.table, columns=["n.x"]).count_rows() == len(left)
    deletes_of(model, {"id": 1}, pa.table({"id": ["text"]}))
    with pytest.raises(ps.CorruptFileError, match="rows of it are deleted by values of string"):
        ps.read_table(model.table)
    model.catalog.close()


def test_deletes_that_are_broken(tmp_path: Path) -> None:
    for case in range(5):
        (tmp_path / str(case)).mkdir()
        model = Model(tmp_path / str(case), 2)
        model.append()
        (path, (file, _, data)) = next(iter(model.files.items()))
        rows, why = [
            (pa.table({"file_path": [path], "pos": [len(data)]}), f"deletes row {len(data)}"),
            (pa.table({"file_path": [path], "pos": [-1]}), "it deletes row -1"),
            (pa.table({"file_path": [path], "pos": pa.array([None], pa.int64())}), "'pos' is no number"),
            (pa.table({"file_path": [path], "other": [1]}), "no column 'pos'"),
            (pa.table({"pos": [1]}), "no column 'file_path'"),
        ][case]  # fmt: skip
        model.commit(rows, DataFileContent.POSITION_DELETES, file, None, None)
        with pytest.raises(ps.CorruptFileError, match=why):
            ps.read_table(model.table)
        (tmp_path / str(case) / "deletes 1.parquet").write_bytes(b"PAR1 nothing PAR1")
        ps.clear_cache()
        with pytest.raises(ps.CorruptFileError, match=r"deletes 1\.parquet"):
            ps.read_table(model.table)
        model.catalog.close()


# -- tables of another writer ---------------------------------------------------------------------

SHARED = Path(__file__).parents[3] / "shared" / "conformance" / "tables" / "iceberg"
LEGACY = "data/persistent/legacy_bare_deletion_vector/warehouse/default/legacy_bare_deletion_vector"
needs_shared = pytest.mark.skipif(
    not SHARED.exists(), reason="the tables of other projects are not beside this folder"
)


@needs_shared
@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("data/persistent/equality_deletes/warehouse/mydb/mytable", 2),
        ("data/persistent/equality_deletes/warehouse/mydb/mytable_partitioned", 3),
        (LEGACY, 2),
    ],
)
def test_tables_that_pyiceberg_cannot_read(
    monkeypatch: pytest.MonkeyPatch, folder: str, expected: int
) -> None:
    """Worked out from the files and the numbers of their commits, without any of our code."""
    from pyiceberg.table import StaticTable

    monkeypatch.chdir(SHARED)
    newest = sorted(Path(folder, "metadata").glob("*.metadata.json"))[-1]
    table = StaticTable.from_metadata(str(newest))
    entries = [
        entry
        for manifest in table.current_snapshot().manifests(table.io)
        for entry in manifest.fetch_manifest_entry(table.io)
    ]
    names = {field.field_id: field.name for field in table.schema().fields}
    left = []
    for data in entries:
        if data.data_file.content != DataFileContent.DATA:
            continue
        for position, row in enumerate(pq.read_table(data.data_file.file_path).to_pylist()):
            gone = False
            for other in entries:
                file = other.data_file
                same = not table.spec().fields or where(file) == where(data.data_file)
                if file.content == DataFileContent.EQUALITY_DELETES and same:
                    keys = [names[number] for number in file.equality_ids]
                    values = pq.read_table(file.file_path).to_pylist()
                    hit = any(all(v[k] == row[k] for k in keys) for v in values)
                    gone |= hit and data.sequence_number < other.sequence_number
                if file.file_format == "PUFFIN":  # its bitmap has the row 1
                    gone |= position == 1
            if not gone:
                left.append(row)
    assert len(left) == expected
    assert as_text(ps.read_table(table).to_pylist()) == as_text(left)
