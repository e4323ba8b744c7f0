"""Tables of Delta Lake that `deltalake` wrote: the rows equal those that it reads."""

from __future__ import annotations

import datetime as dt
import json
import os
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from support.lake_tables import rows_of

deltalake = pytest.importorskip("deltalake")
FIRST = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int32()),
        "k": ["x", "x y/%=", None, "x"],
        "d": pa.array([dt.date(2024, 1, 1), dt.date(2024, 1, 2), None, dt.date(2024, 1, 2)]),
        "m": pa.array([1, 2, 2, 2], pa.int64()),
        "t": pa.array([dt.datetime(2024, 1, 1, 12)] * 4, pa.timestamp("us", "UTC")),
        "s": pa.array([{"u": 1}, None, {"u": 3}, {"u": None}], pa.struct([("u", pa.int32())])),
    }
)


@pytest.fixture
def delta(tmp_path: Path) -> Any:
    """Partitions with nulls and unusual characters, a column added, rows deleted (by rewriting files)."""
    root = str(tmp_path / "a table")
    deltalake.write_deltalake(root, FIRST, partition_by=["k", "d", "m"])
    more = FIRST.slice(0, 2).append_column("new", pa.array([1.5, None]))
    more = more.append_column("p", pa.array([Decimal("1.20"), None], pa.decimal128(8, 2)))
    deltalake.write_deltalake(root, more, mode="append", schema_mode="merge")
    deltalake.DeltaTable(root).delete("id = 4")
    return deltalake.DeltaTable(root)


def theirs(table: Any) -> pa.Table:
    from deltalake import QueryBuilder

    return pa.table(QueryBuilder().register("t", table).execute("select * from t"))


def test_delta_rows_and_schema(delta: Any) -> None:
    ours = ps.read_table(delta)
    assert ours.num_rows == 5
    assert ours.schema.names == [field.name for field in delta.schema().fields]
    assert ours.schema.field("k").type == pa.string()
    assert rows_of(ours, "id", "new") == rows_of(theirs(delta), "id", "new")
    assert ps.scan(delta).schema == ours.schema
    assert ps.scan(delta).count_rows() == 5
    assert ps.scan(delta).aggregate([("m", "max"), ("id", "min"), ("new", "max")]).to_pylist() == [
        {"m_max": 2, "id_min": 1, "new_max": 1.5}
    ]


@pytest.mark.parametrize(
    "condition",
    [
        "k = 'x'",
        "k is null",
        "d >= date '2024-01-02'",
        "id = 2 and k = 'x y/%='",
        "new is null",
        "p = 1.2",
        "m >= id",
    ],
)
def test_delta_filters(delta: Any, condition: str) -> None:
    from deltalake import QueryBuilder

    query = f"select * from t where {condition}"
    expected = pa.table(QueryBuilder().register("t", delta).execute(query))
    assert expected.num_rows > 0
    scan = ps.scan(delta, filter=condition)
    assert rows_of(scan.to_table(), "id", "new") == rows_of(expected, "id", "new")
    plan = pickle.loads(pickle.dumps(scan.plan()))
    assert sum(batch.num_rows for batch in plan.execute()) == expected.num_rows


def test_a_delta_table_without_files_knows_its_columns(tmp_path: Path) -> None:
    """Names and values that do not suit them are errors, as in a table with files."""
    root, schema = str(tmp_path / "t"), FIRST.schema.append(pa.field("l", pa.list_(pa.int64())))
    deltalake.DeltaTable.create(root, schema, partition_by=["k"])
    scan = ps.scan(root)
    for right in (
        "id = 1",
        "k = 'x'",
        "d > date '2024-01-01'",
        "t is null",
        "s.u = 1",
        "s is null",
    ):
        assert scan.filter(right).count_rows() == scan.filter(right).to_table().num_rows == 0
    assert not scan.filter(ps.col("l").any() == 1).count_rows()
    assert scan.prepare(ps.col("id") == ps.param("k"))(k=1).schema == scan.schema
    for wrong, said in {
        "zz = 1": "no column 'zz'", "s.zz = 1": "no field 'zz'", "id = 'x'": "'id' of type int32",
        "s = 1": "s is nested", "id = 1 and zz = 1": "no column 'zz'",
    }.items():  # fmt: skip
        for run in ("count_rows", "to_table", "plan", "explain"):
            with pytest.raises(ps.PageseekError, match=said):
                getattr(scan.filter(wrong), run)()
    with pytest.raises(ps.PageseekError, match="no column 'zz'"):
        scan.select("zz").to_table()
    assert scan.aggregate([("id", "max"), ("s.u", "count")]).to_pylist() == [
        {"id_max": None, "s.u_count": 0}
    ]
    for wrong, said in {
        "zz": "no column 'zz'",
        "s.zz": "no field",
        "s": "nested",
        "l": "nested",
    }.items():
        with pytest.raises(ps.PageseekError, match=f"^the table: .*{said}"):
            scan.aggregate([(wrong, "max")])


def test_delta_partitions_prune_files(delta: Any) -> None:
    files = ps.scan(delta, filter="k = 'x' and id = 1").explain().to_dict()["files"]
    assert files["pruned_by"] == {"partition": 3}


def test_delta_versions(delta: Any) -> None:
    delta.load_as_version(0)
    assert rows_of(ps.read_table(delta), "id") == rows_of(FIRST, "id")
    assert ps.read_table(delta).schema.names == FIRST.schema.names


@pytest.mark.parametrize("name", ["plain", "copied#"])
def test_delta_versions_by_options(tmp_path: Path, name: str) -> None:
    root = str(tmp_path / name)
    for i in range(3):
        deltalake.write_deltalake(str(tmp_path / "t"), pa.table({"a": [i]}), mode="append")
    os.rename(tmp_path / "t", root)
    for i, moment in enumerate([1_700_000_000, 1_700_000_100, 1_700_000_200]):
        os.utime(tmp_path / name / "_delta_log" / f"{i:020}.json", (moment, moment))
    for i in range(3):
        assert sorted(ps.read_table(root, version=i)["a"].to_pylist()) == [*range(i + 1)]
        assert f"version {i}" in ps.scan(root, version=i).explain().notes[0]
    assert ps.scan(root).count_rows() == 3
    with pytest.raises(ps.UnsupportedError, match=str(tmp_path)):
        ps.scan(root, version=7)
    with pytest.raises(ps.UnsupportedError, match="for tables of Iceberg"):
        ps.scan(root, snapshot=1)
    with pytest.raises(ps.UnsupportedError, match="before the first commit"):
        ps.scan(root, timestamp="2001-01-01")
    assert ps.scan(root, timestamp="2024-01-01").count_rows() == 3
    assert ps.scan(root, timestamp="2023-11-14T22:15:10Z").count_rows() == 2
    assert ps.scan(root, timestamp=dt.datetime.fromtimestamp(1_700_000_150)).count_rows() >= 1
    table = deltalake.DeltaTable(root)
    assert ps.scan(table, version=0).count_rows() == 1
    moment = dt.datetime.fromtimestamp(1_700_000_100, dt.UTC)
    assert ps.scan(table, timestamp=moment).count_rows() == 2
    assert table.version() == 2


def test_delta_versions_by_times_of_commits(tmp_path: Path) -> None:
    """A commit may have its own time. Times of files that go back, as after a copy, count as those before them."""
    root = tmp_path / "t"
    for i in range(6):
        deltalake.write_deltalake(str(root), pa.table({"a": [i]}), mode="append")
    log = root / "_delta_log"

    def touch(times: list[int]) -> None:
        for i, moment in enumerate(times):
            os.utime(log / f"{i:020}.json", (moment, moment))

    def rows_at(moment: float) -> int:
        return ps.scan(str(root), timestamp=dt.datetime.fromtimestamp(moment, dt.UTC)).count_rows()

    touch([100, 300, 200, 400, 350, 500])
    assert [rows_at(one) for one in (100, 250, 300, 399, 400, 450, 500)] == [1, 1, 3, 3, 5, 5, 6]
    touch([100, 500, 200, 300, 400, 450])
    assert [rows_at(one) for one in (100, 250, 450, 500)] == [1, 1, 1, 6]
    for i in range(3, 6):  # from here on the commits have times of their own
        path = log / f"{i:020}.json"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        lines.sort(key=lambda line: "commitInfo" not in line)
        lines[0]["commitInfo"]["inCommitTimestamp"] = i * 1_000_000
        path.write_text("\n".join(map(json.dumps, lines)))
    touch([100, 300, 200, 9000, 9000, 50])
    assert [rows_at(one) for one in (200, 300, 2999, 3000, 3999.5, 4000, 6000)] == [
        1, 3, 3, 4, 4, 5, 6,
    ]  # fmt: skip


def test_versions_that_mean_nothing(tmp_path: Path) -> None:
    pq.write_table(FIRST.select(["id"]), tmp_path / "f.parquet")
    path = str(tmp_path / "f.parquet")
    for options, error, why in [
        ({"version": 1}, ValueError, "version=: the source is no table"),
        ({"snapshot": 1}, ValueError, "snapshot=: the source is no table"),
        ({"version": -1}, ValueError, "not negative"),
        ({"version": True}, TypeError, "the number of a version"),
        ({"version": 1, "timestamp": "2024-01-01"}, ValueError, "give one"),
        ({"timestamp": "noon"}, ValueError, "such as"),
        ({"timestamp": 5}, TypeError, "a datetime"),
        ({"snapshot": 1.5}, TypeError, "name of a branch"),
    ]:
        with pytest.raises(error, match=why):
            ps.scan(path, **options)


def test_delta_without_files_and_options(tmp_path: Path) -> None:
    root = str(tmp_path)
    deltalake.write_deltalake(root, pa.table({"a": [1]}))
    deltalake.DeltaTable(root).delete()
    table = deltalake.DeltaTable(root)
    assert ps.read_table(table, filter="a = 1").schema.names == ["a"]
    assert ps.scan(table).count_rows() == 0
    with pytest.raises(ValueError, match="a table has its own"):
        ps.scan(table, schema=pa.schema([("a", pa.int8())]))


def edited(root: Path, edit: Any) -> Any:
    """A table whose log says something else."""
    deltalake.write_deltalake(str(root), pa.table({"a": list(range(40))}))
    log = root / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        edit(action)
    log.write_text("\n".join(map(json.dumps, actions)))
    for checksum in (root / "_delta_log").glob("*.crc"):
        checksum.unlink()
    return deltalake.DeltaTable(str(root))


def features(action: dict[str, Any], name: str) -> None:
    if "protocol" in action:
        action["protocol"] = {
            "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [name], "writerFeatures": [name],
        }  # fmt: skip


def test_delta_vector_in_the_log(tmp_path: Path) -> None:
    def edit(action: dict[str, Any]) -> None:
        features(action, "deletionVectors")
        if "add" in action:  # six rows
            action["add"]["deletionVector"] = {
                "storageType": "i", "pathOrInlineDv": "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
                "sizeInBytes": 44, "cardinality": 6,
            }  # fmt: skip

    table = edited(tmp_path, edit)
    left = [i for i in range(40) if i not in (3, 4, 7, 11, 18, 29)]
    assert ps.read_table(table)["a"].to_pylist() == left
    assert ps.scan(str(tmp_path)).filter("a < 12").count_rows() == 8
    assert ps.scan(table).aggregate([("a", "max"), "count"]).to_pylist() == [
        {"a_max": 39, "count": 34}
    ]
    plan = pickle.loads(pickle.dumps(ps.scan(table).plan()))
    assert sum(batch.num_rows for batch in plan.execute()) == 34
    ps.index.attach(table.file_uris()[0], table=table, distinct=["a"])
    assert ps.read_table(str(tmp_path))["a"].to_pylist() == left


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"cardinality": 5}, "it deletes 6 rows, and 5 by the log"),
        ({"sizeInBytes": 43}, "deletion vector in the log of the table"),
        ({"storageType": "x"}, "of kind 'x'"),
        ({"pathOrInlineDv": "wi5b"}, "3 bytes are too few"),
        ({"pathOrInlineDv": "wi5b\\"}, "describes a deletion vector"),
        ({"storageType": "u", "pathOrInlineDv": "short"}, "describes a deletion vector"),
    ],
)
def test_delta_vectors_that_mean_nothing(tmp_path: Path, changes: dict[str, Any], why: str) -> None:
    def edit(action: dict[str, Any]) -> None:
        features(action, "deletionVectors")
        if "add" in action:
            said = {
                "storageType": "i", "pathOrInlineDv": "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
                "sizeInBytes": 44, "cardinality": 6,
            }  # fmt: skip
            action["add"]["deletionVector"] = said | changes

    with pytest.raises((ps.CorruptFileError, ps.UnsupportedError), match=why):
        ps.read_table(edited(tmp_path, edit))


def test_delta_vectors_that_are_possible_and_not_there(tmp_path: Path) -> None:
    table = edited(tmp_path, lambda action: features(action, "deletionVectors"))
    assert ps.read_table(table)["a"].to_pylist() == list(range(40))


SHARED = Path(__file__).parents[3] / "shared" / "conformance" / "tables" / "delta"


@pytest.mark.skipif(
    not SHARED.exists(), reason="the tables of other projects are not beside this folder"
)
@pytest.mark.parametrize("name", ["table-with-dv-small", "table_with_deletion_logs"])
def test_deletion_vectors_as_the_queries_of_the_library_apply_them(name: str) -> None:
    """deltalake's datasets refuse these tables; its SQL reads them."""
    table = deltalake.DeltaTable(next(SHARED.glob(f"**/{name}/delta")))
    builder = deltalake.QueryBuilder().register("t", table)
    expected = pa.table(builder.execute("select * from t")).to_pylist()
    found = ps.read_table(table)
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, expected))
    for column in found.column_names:
        value = found[column][len(found) // 2].as_py()
        same = [row for row in expected if row[column] == value]
        got = ps.read_table(table, filter=ps.col(column) == value).to_pylist()
        assert sorted(map(str, got)) == sorted(map(str, same))
