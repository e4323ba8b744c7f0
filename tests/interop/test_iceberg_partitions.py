"""Iceberg tables whose partition column is not in the files: the manifests give its values, for every type."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps

pytest.importorskip("pyiceberg", "0.10")
pytest.importorskip("sqlalchemy")

from pyiceberg import types as ice
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestEntry, ManifestFile
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record

from support.iceberg_tables import N, appended, deleted, files, made_in

U = uuid.UUID("0123456789abcdef0123456789abcdef")
WHEN = dt.datetime(2023, 5, 15, 14, 30, 45, 6)
EPOCH = dt.datetime(1970, 1, 1)
MICROS = (WHEN - EPOCH) // dt.timedelta(microseconds=1)
# of each type: what a manifest holds, what the rows are, and the values of a filter in SQL that finds them
TYPES: dict[str, tuple[Any, Any, Any, str | None]] = {
    "boolean": (ice.BooleanType(), True, True, "k = true"),
    "int": (ice.IntegerType(), -5, -5, "k = -5"),
    "long": (ice.LongType(), 2**62, 2**62, f"k = {2**62}"),
    "float": (ice.FloatType(), 0.5, 0.5, "k > 0.25"),
    "double": (ice.DoubleType(), -1.5, -1.5, "k = -1.5"),
    "exact double": (ice.DoubleType(), 0.1, 0.1, "k = 0.1"),
    "large double": (ice.DoubleType(), -1e300, -1e300, "k = -1e300"),
    "infinite": (ice.DoubleType(), float("inf"), float("inf"), "k > 1e300"),
    "minus zero": (ice.DoubleType(), -0.0, -0.0, "k = 0.0"),
    "decimal": (ice.DecimalType(36, 23), Decimal("123456789.45678901234567890123456"), Decimal("123456789.45678901234567890123456"), "k > 123456789"),
    "short decimal": (ice.DecimalType(9, 2), Decimal("-1.25"), Decimal("-1.25"), "k = -1.25"),
    "long decimal": (ice.DecimalType(18, 0), Decimal(10**17), Decimal(10**17), f"k = {10**17}"),
    "widest decimal": (ice.DecimalType(38, 0), Decimal(10**38 - 1), Decimal(10**38 - 1), "k > 1"),
    "date": (ice.DateType(), 19_492, dt.date(2023, 5, 15), "k = date '2023-05-15'"),
    "time": (ice.TimeType(), 45_296_000_001, dt.time(12, 34, 56, 1), "k = time '12:34:56.000001'"),
    "timestamp": (ice.TimestampType(), MICROS, WHEN, "k = timestamp '2023-05-15 14:30:45.000006'"),
    "timestamptz": (ice.TimestamptzType(), MICROS, WHEN.replace(tzinfo=dt.UTC), "k = timestamp '2023-05-15 14:30:45.000006Z'"),
    "string": (ice.StringType(), "a/ü %", "a/ü %", "k like 'a/%'"),
    "empty": (ice.StringType(), "", "", "k = ''"),
    "binary": (ice.BinaryType(), b"\x00\xffa", b"\x00\xffa", "k = X'00ff61'"),
    "fixed": (ice.FixedType(3), b"\x00\xffa", b"\x00\xffa", "k = X'00ff61'"),
    "uuid": (ice.UUIDType(), U, U, f"k = X'{U.hex}'"),
}  # fmt: skip


def add_file(table: Any, path: Path, value: Any) -> None:
    """Add a file of one row, in the partition of a value."""
    made = DataFile.from_args(
        content=DataFileContent.DATA, file_path=f"file://{path}", file_format=FileFormat.PARQUET,
        partition=Record(value), record_count=1, file_size_in_bytes=path.stat().st_size,
        column_sizes={}, value_counts={}, null_value_counts={}, nan_value_counts={},
        lower_bounds={}, upper_bounds={}, key_metadata=None, split_offsets=[4], equality_ids=None, sort_order_id=0,
    )  # fmt: skip
    made.spec_id = table.spec().spec_id
    appended(table, made)


def table_of(catalog: Any, folder: Path, kind: Any, *values: Any) -> Any:
    """A table with a file of one row for each partition, which has all columns but that of the partition."""
    schema = Schema(ice.NestedField(1, "k", kind), ice.NestedField(2, "v", ice.LongType()))
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "k"))
    table = catalog.create_table("n.t", schema=schema, partition_spec=spec)
    for i, value in enumerate(values):
        path = folder / f"{i}.parquet"
        field = pa.field("v", pa.int64(), metadata={"PARQUET:field_id": "2"})
        pq.write_table(pa.table([pa.array([i])], pa.schema([field])), path)
        add_file(table, path, value)
    return table


@pytest.fixture(autouse=True)
def without_summaries(monkeypatch: pytest.MonkeyPatch) -> None:
    """pyiceberg sums up partitions of fewer types than it reads."""
    from pyiceberg.table import snapshots

    monkeypatch.setattr(snapshots.SnapshotSummaryCollector, "_update_partition_metrics", lambda *_, **__: None, raising=False)  # fmt: skip


@pytest.mark.parametrize("name", TYPES)
def test_a_partition_of_every_type(catalog: Any, tmp_path: Path, name: str) -> None:
    kind, value, expected, condition = TYPES[name]
    table = table_of(catalog, tmp_path, kind, value, None)
    found = ps.read_table(table).sort_by("v")
    assert found["k"].to_pylist() == [expected, None]
    assert found.schema.names == ["k", "v"]
    own = table.schema().as_arrow().field("k").type
    assert found.schema.field("k").type == {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}.get(own, own)  # fmt: skip
    assert ps.read_table(table, filter=condition)["v"].to_pylist() == [0]
    assert ps.read_table(table, filter="k is null")["v"].to_pylist() == [1]
    assert ps.scan(table, filter=condition).explain().to_dict()["files"]["pruned_by"] == {"partition": 1}  # fmt: skip
    location = str(table.metadata.location)
    assert ps.read_table(location).sort_by("v")["k"].to_pylist() == found["k"].to_pylist()


def test_nan_and_both_zeros(catalog: Any, tmp_path: Path) -> None:
    table = table_of(catalog, tmp_path, ice.DoubleType(), 0.0, -0.0, 1.0)
    assert repr(ps.read_table(table).sort_by("v")["k"].to_pylist()) == "[0.0, -0.0, 1.0]"
    assert ps.read_table(table, filter="k = 0.0").num_rows == 2


def test_doubles_that_pyiceberg_rounds_are_whole(catalog: Any) -> None:
    values = [0.1, -0.1, 1e300, 1e-300, 1.5, float("inf"), None]
    schema = pa.schema([("k", pa.float64()), ("v", pa.int64())])
    table = catalog.create_table("n.t", schema=schema)
    with table.update_spec() as spec:
        spec.add_identity("k")
    table.append(pa.table([values, range(len(values))], schema))
    assert ps.read_table(table).sort_by("v")["k"].to_pylist() == values
    for i, value in enumerate(values[:-1]):
        assert ps.read_table(table, filter=ps.col("k") == value)["v"].to_pylist() == [i]


def test_a_value_that_is_none_of_its_type(
    catalog: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_of(catalog, tmp_path, ice.LongType(), 1)
    fetch = ManifestFile.fetch_manifest_entry

    def fetched(self: Any, io: Any) -> Any:
        found = fetch(self, io)
        for entry in found:
            entry.data_file.partition[0] = "x"
        return found

    monkeypatch.setattr(ManifestFile, "fetch_manifest_entry", fetched)
    with pytest.raises(ps.UnsupportedError, match=r"0\.parquet: column 'k': .*'x'.*int64"):
        ps.scan(table)


@pytest.mark.parametrize("kind", TYPES)
def test_filters_of_a_table_without_files(catalog: Any, kind: str) -> None:
    column, _, _, condition = TYPES[kind]
    table = catalog.create_table("n.t", schema=Schema(ice.NestedField(1, "k", column)))
    assert ps.scan(table, filter=condition).count_rows() == 0
    with pytest.raises(ps.PredicateError, match="no column 'zz'; there are 'k'"):
        ps.scan(table, filter="zz = 1").count_rows()


# -- errors of pyiceberg --------------------------------------------------------------------------


def test_equality_deletes_in_tables_and_folders(catalog: Any, tmp_path: Path) -> None:
    table = made_in(catalog)
    entry: ManifestEntry
    (entry, *_) = [
        one
        for manifest in table.current_snapshot().manifests(table.io)
        for one in manifest.fetch_manifest_entry(table.io)
    ]
    assert entry.data_file.file_path in files(table)
    deleted(table, entry.data_file, tmp_path / "d.parquet", DataFileContent.EQUALITY_DELETES)
    (gone,) = pq.read_table(tmp_path / "d.parquet")["id"].to_pylist()
    for source in (table, table.scan(), str(table.metadata.location)):
        found = ps.read_table(source, columns=["text"])  # not the column that is compared
        assert found.num_rows == N - 1
        assert ps.scan(source).filter(ps.col("id") == gone).count_rows() == 0
        explained = ps.scan(source).explain(analyze=True).to_dict()
        assert explained["rows"]["pruned_by"]["deleted"] == 1


@pytest.mark.parametrize("error", [KeyError("who knows"), AttributeError("who knows")])
def test_errors_of_other_libraries(
    catalog: Any, tmp_path: Path, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_of(catalog, tmp_path, ice.LongType(), 1)

    def fail(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(ManifestFile, "fetch_manifest_entry", fail)
    with pytest.raises(ps.UnsupportedError, match=r"Iceberg table .*who knows"):
        ps.scan(table)


def test_a_partition_inside_a_struct_is_refused_where_the_file_lacks_it(
    catalog: Any, tmp_path: Path
) -> None:
    """Its values would come out as null: pageseek has no place for them inside of a struct."""
    inner = ice.StructType(
        ice.NestedField(3, "u", ice.LongType()), ice.NestedField(4, "w", ice.LongType())
    )
    schema = Schema(ice.NestedField(1, "s", inner), ice.NestedField(2, "v", ice.LongType()))
    spec = PartitionSpec(PartitionField(3, 1000, IdentityTransform(), "u"))
    table = catalog.create_table("n.t", schema=schema, partition_spec=spec)

    def numbered(name: str, kind: pa.DataType, number: int) -> pa.Field:
        return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})

    u, w = numbered("u", pa.int64(), 3), numbered("w", pa.int64(), 4)
    for i, (fields, value) in enumerate([([u, w], 7), ([w], None), ([w], 8)]):
        path = tmp_path / f"{i}.parquet"
        rows = [{"u": 7, "w": i} if u in fields else {"w": i}]
        own = pa.schema([numbered("s", pa.struct(fields), 1), numbered("v", pa.int64(), 2)])
        pq.write_table(pa.table([pa.array(rows, own.field("s").type), pa.array([i])], own), path)
        add_file(table, path, value)
        if i == 1:  # in the file, or null in the partition too: it is read
            found = ps.read_table(table).sort_by("v")["s"].to_pylist()
            assert found == [{"u": 7, "w": 0}, {"u": None, "w": 1}]
    for columns, condition in ((None, None), (["s"], None), (["v"], "s.u = 8"), (["s.w"], None)):
        with pytest.raises(
            ps.UnsupportedError, match=r"'s\.u' are not in the file but in the part"
        ):
            ps.read_table(table, columns, condition)
    assert sorted(ps.read_table(table, ["v"])["v"].to_pylist()) == [0, 1, 2]
