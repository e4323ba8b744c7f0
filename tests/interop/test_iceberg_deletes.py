"""Random tables of Iceberg with delete files, as Spark and Flink write them: rows and filters equal a plain model."""

from __future__ import annotations

import datetime as dt
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps

pytest.importorskip("pyiceberg", "0.10")
pytest.importorskip("sqlalchemy")

from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.typedef import Record

from support.iceberg_by_hand import IDS, SCHEMA, Model, X, as_text, key_of, vector_of, where
from support.iceberg_tables import appended, entries

TABLES = int(os.environ.get("ICEBERG_TABLES", "12"))
FIRST = int(os.environ.get("FIRST_TABLE", "0"))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + TABLES))
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


def deletes_of(
    model: Model, fields: dict[str, int], rows: pa.Table, ids: list[int] | None = None
) -> None:
    """Delete the rows that have values, in all partitions. `fields`: names in the file, and ids. `ids`: of those that are
    compared, if they are inside.
    """
    one = next(iter(model.files.values()))[0]
    named = [
        pa.field(f.name, f.type, metadata={b"PARQUET:field_id": str(fields[f.name]).encode()})
        for f in rows.schema
    ]
    table = pa.Table.from_arrays(
        [c.combine_chunks() for c in rows.columns], schema=pa.schema(named)
    )
    model.commit(table, DataFileContent.EQUALITY_DELETES, one, ids or list(fields.values()), None)


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


def test_reads_of_deletes_are_counted_once(tmp_path: Path) -> None:
    model = Model(tmp_path, 4)
    model.append()
    model.positions()
    model.values()
    ps.clear_cache()
    scan = ps.scan(model.table, columns=["id"])
    first = scan.explain(analyze=True).to_dict()
    again = scan.explain(analyze=True).to_dict()
    assert first["rows"]["pruned_by"]["deleted"] == again["rows"]["pruned_by"]["deleted"] > 0
    assert first["requests"] > again["requests"]
    deletes = sum(one.stat().st_size for one in tmp_path.glob("deletes *.parquet"))
    assert again["bytes"]["index"] < first["bytes"]["index"] < again["bytes"]["index"] + deletes
    assert scan.explain(analyze=True).to_dict()["requests"] == again["requests"]
    ps.clear_cache()
    assert scan.explain(analyze=True).to_dict()["requests"] == first["requests"]
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
            (pa.table({"file_path": [path], "pos": pa.array([None], pa.int64())}), "'pos' has no number"),
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


def test_deletion_vectors_of_puffin_files(tmp_path: Path) -> None:
    """A vector has the deletes by position of before; one with rows beyond its file, and one of another file, is an error."""
    model = Model(tmp_path, 1)
    model.append()
    model.positions()
    model.vector()
    model.values()
    model.append()
    ((first, _, old), (second, _, more)) = model.files.values()
    assert model.with_vectors == {first.file_path}
    assert any(row is None for row in old)
    assert as_text(ps.read_table(model.table).to_pylist()) == as_text(model.rows())
    report = ps.scan(model.table).explain(analyze=True)
    assert report.to_dict()["rows"]["pruned_by"]["deleted"] == old.count(None)
    path = second.file_path
    numbers = [0, len(more) - 1, len(more) + 5]
    model.delete(vector_of(tmp_path / "beyond.puffin", second, path, numbers))
    with pytest.raises(
        ps.CorruptFileError, match=f"deletes row {len(more) + 5}, and the file has {len(more)}"
    ):
        ps.read_table(model.table)
    assert ps.scan(model.table, columns=["id"]).filter(ps.col("id") == -1).count_rows() == 0
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


@needs_shared
@pytest.mark.parametrize(
    ("name", "value"),
    [("time", dt.time.fromisoformat), ("timestamptz", dt.datetime.fromisoformat)],
)
def test_values_of_folders_that_pyiceberg_cannot_give(
    monkeypatch: pytest.MonkeyPatch, name: str, value: Callable[[str], object]
) -> None:
    """They are in the names of the folders alone."""
    from pyiceberg.table import StaticTable

    monkeypatch.chdir(SHARED)
    folder = Path(f"data/persistent/partition_{name}/default.db/partition_{name}")
    newest = max(folder.glob("metadata/*.metadata.json"))
    expected = [
        {"partition_col": value(unquote(path.parent.name.partition("=")[2])), **row}
        for path in folder.glob("data/*/*.parquet")
        for row in pq.ParquetFile(path).read().to_pylist()
    ]
    found = ps.read_table(StaticTable.from_metadata(str(newest)))
    assert len(expected) == 2
    for row in expected:
        assert row in found.to_pylist()
        assert ps.scan(StaticTable.from_metadata(str(newest)), filter=ps.col("partition_col") == row["partition_col"]).to_pylist() == [row]  # fmt: skip
    assert found.num_rows == 2


def test_values_of_a_field_of_a_struct_in_a_file_without_ids(tmp_path: Path) -> None:
    """Its field is found by the names of the table's mapping; it is not taken as missing, which would be null in all rows."""
    model = Model(tmp_path, 1)
    mapping = [{"field-id": IDS["id"], "names": ["id"]}, {"field-id": IDS["n"], "names": ["old"], "fields": [{"field-id": X, "names": ["x", "ex"]}]}]  # fmt: skip
    with model.table.transaction() as change:
        change.set_properties({"schema.name-mapping.default": json.dumps(mapping)})
    path = tmp_path / "a.parquet"
    inner = pa.array([{"ex": 1}, {"ex": 2}, {"ex": None}, None], pa.struct([("ex", pa.int32())]))
    pq.write_table(pa.table({"id": range(4), "old": inner}), path)
    made = DataFile.from_args(
        content=DataFileContent.DATA, file_path=f"file://{path}", file_format=FileFormat.PARQUET, partition=Record(),
        record_count=4, file_size_in_bytes=path.stat().st_size,
    )  # fmt: skip
    made.spec_id = 0
    appended(model.table, made)
    model.files[made.file_path] = made, 1, []

    def delete(value: int | None) -> list[int]:
        inner = pa.field("x", pa.int32(), metadata={b"PARQUET:field_id": str(X).encode()})
        rows = pa.table({"n": pa.array([{"x": value}], pa.struct([inner]))})
        deletes_of(model, {"n": IDS["n"]}, rows, [X])
        return ps.read_table(model.table)["id"].to_pylist()  # type: ignore[no-any-return]

    assert delete(1) == [1, 2, 3]
    assert delete(None) == [1]
    model.catalog.close()


def test_a_partition_that_was_removed_in_version_1_leaves_deletes_for_the_whole_table(
    tmp_path: Path,
) -> None:
    """Its specification keeps the field as `void`, and deletes by equality of that specification are of all partitions."""
    from pyiceberg.transforms import IdentityTransform

    model = Model(tmp_path, 1)
    model.table = model.catalog.create_table("n.v", SCHEMA, properties={"format-version": "1"})
    with model.table.update_spec() as spec:
        spec.add_field("k", IdentityTransform(), "k")
    rows = pa.table({"id": range(4), "k": ["a", "b", "a", "b"], "v": [1, 2, 3, 4]})
    model.table.append(rows.cast(pa.schema([SCHEMA.field(name) for name in rows.column_names])))
    with model.table.update_spec() as spec:
        spec.remove_field("k")
    with model.table.transaction() as change:
        change.upgrade_table_version(2)
    model.table.append(pa.table({"id": [9], "k": ["c"]}))
    found = entries(model.table)
    last = next(one.data_file for one in found if one.data_file.spec_id == model.table.spec().spec_id)  # fmt: skip
    assert [str(field.transform) for field in model.table.spec().fields] == ["void"]
    model.files = {last.file_path: (last, 1, [])}
    deletes_of(model, {"id": IDS["id"]}, pa.table({"id": [1, 2]}))
    assert sorted(ps.read_table(model.table)["id"].to_pylist()) == [0, 3, 9]
    for one in found:
        if one.data_file is not last and one.data_file.record_count:
            with pytest.raises(ps.UnsupportedError, match="are deleted by"):
                ps.index.attach(one.data_file.file_path, table=model.table, bloom=["id"])
    model.catalog.close()
