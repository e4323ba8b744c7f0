"""Tables that the packages of Delta Lake and Iceberg wrote: the rows equal those that these packages read."""

from __future__ import annotations

import datetime as dt
import json
import os
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import pageseek as ps


def rows_of(table: pa.Table, *keys: str) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=lambda row: repr([row[key] for key in keys]))


# -- Delta Lake -----------------------------------------------------------------------------------

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


# -- Iceberg --------------------------------------------------------------------------------------

pytest.importorskip("pyiceberg")
pytest.importorskip("sqlalchemy")


@pytest.fixture
def catalog(tmp_path: Path) -> Any:
    from pyiceberg.catalog.sql import SqlCatalog

    made = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}")
    made.create_namespace("n")
    yield made
    made.close()


ICE = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int32()),
        "k": ["x", "y/ %", None, "x"],
        "d": pa.array([dt.date(2024, 1, 1), dt.date(2024, 1, 2), None, dt.date(2024, 1, 2)]),
        "gone": [1, 2, 3, 4],
        "s": pa.array([{"u": 1}, None, {"u": 3}, {"u": None}], pa.struct([("u", pa.int64())])),
        "f": pa.array([0.5, 1.5, None, 2.5], pa.float32()),
    }
)


@pytest.fixture
def iceberg(catalog: Any) -> Any:
    """Partitions added later, columns renamed, widened, dropped and added again, rows deleted (by rewriting files)."""
    from pyiceberg.transforms import IdentityTransform
    from pyiceberg.types import DoubleType, LongType, StringType

    table = catalog.create_table("n.t", schema=ICE.schema)
    table.append(ICE.slice(0, 1))
    with table.update_spec() as spec:
        spec.add_field("k", IdentityTransform(), "k")
        spec.add_field("d", IdentityTransform(), "day")
    table.append(ICE.slice(1))
    with table.update_schema(allow_incompatible_changes=True) as change:
        change.rename_column("id", "number")
        change.update_column("id", LongType())
        change.delete_column("gone")
        change.update_column("f", DoubleType())
    with table.update_schema() as change:
        change.add_column("gone", StringType())  # another one of the same name
        change.add_column(("s", "v"), StringType())
    more = pa.table(
        {
            "number": [2**40], "k": ["x"], "d": pa.array([dt.date(2024, 1, 1)]),
            "s": pa.array([{"u": 9, "v": "new"}], pa.struct([("u", pa.int64()), ("v", pa.string())])),
            "f": [0.1], "gone": ["text"],
        }
    )  # fmt: skip
    table.append(more)
    table.delete("number == 4")
    return table


def test_iceberg_rows_and_schema(iceberg: Any) -> None:
    ours, expected = ps.read_table(iceberg), iceberg.scan().to_arrow()
    assert ours.schema.names == expected.schema.names
    assert ours.schema.field("number").type == pa.int64()
    assert ours.schema.field("k").type == pa.string()
    assert ours.num_rows == 4
    assert rows_of(ours, "number") == rows_of(expected, "number")
    assert ps.scan(iceberg).count_rows() == 4


@pytest.mark.parametrize(
    ("condition", "in_theirs"),
    [
        ("number > 1", "number > 1"),
        ("k = 'x'", "k = 'x'"),
        ("k is null", "k is null"),
        ("d = date '2024-01-02'", "d = '2024-01-02'"),
        ("gone = 'text' or number = 2", "gone = 'text' or number = 2"),
        ("gone is null and f < 2.0", "gone is null and f < 2.0"),
        ("s.u = 3", "s.u = 3"),
    ],
)
def test_iceberg_filters(iceberg: Any, condition: str, in_theirs: str) -> None:
    expected = iceberg.scan(row_filter=in_theirs).to_arrow()
    assert expected.num_rows > 0
    scan = ps.scan(iceberg, filter=condition)
    assert rows_of(scan.to_table(), "number") == rows_of(expected, "number")
    plan = pickle.loads(pickle.dumps(scan.plan()))
    assert (
        sum(batch.num_rows for part in plan.split(3) for batch in part.execute())
        == expected.num_rows
    )


def test_iceberg_partitions_prune_files(iceberg: Any) -> None:
    assert (
        "partition"
        in ps.scan(iceberg, filter="k = 'y/ %'").explain().to_dict()["files"]["pruned_by"]
    )


def test_iceberg_snapshots_by_options(iceberg: Any) -> None:
    history = [one.snapshot_id for one in iceberg.history()]
    with iceberg.manage_snapshots() as change:
        change.create_tag(history[0], "first")
    folder = iceberg.metadata.location
    for source in (iceberg, folder):
        for number in history:
            expected = iceberg.scan(snapshot_id=number).count()
            assert ps.scan(source, snapshot=number).count_rows() == expected
        assert ps.scan(source, snapshot="first").count_rows() == 1
        moment = iceberg.snapshot_by_id(history[1]).timestamp_ms / 1000
        at = dt.datetime.fromtimestamp(moment, dt.UTC) + dt.timedelta(milliseconds=1)
        expected = iceberg.snapshot_as_of_timestamp(int(at.timestamp() * 1000)).snapshot_id
        assert str(expected) in ps.scan(source, timestamp=at).explain().notes[0]
        for options in ({"snapshot": 5}, {"snapshot": "none"}, {"timestamp": "1999-01-01"}):
            with pytest.raises(ps.UnsupportedError, match="names no snapshot"):
                ps.scan(source, **options)
        with pytest.raises(ps.UnsupportedError, match="for tables of Delta Lake"):
            ps.scan(source, version=1)
    with pytest.raises(ValueError, match="a snapshot of its own"):
        ps.scan(iceberg.scan(), snapshot=history[0])


def test_iceberg_branches_have_the_columns_of_the_table(iceberg: Any) -> None:
    """A tag and a snapshot have those of the snapshot."""
    from pyiceberg.types import LongType

    first, last = (iceberg.history()[at].snapshot_id for at in (0, -1))
    before = ps.scan(iceberg, snapshot=last).schema
    with iceberg.manage_snapshots() as change:
        change.create_tag(first, "tag").create_branch(first, "branch")
    with iceberg.update_schema() as change:
        change.add_column("newest", LongType())
        change.rename_column("number", "renamed")
    assert {"newest", "renamed"} <= set(ps.scan(iceberg).schema.names)
    for source in (iceberg, iceberg.metadata.location):
        now = ps.scan(source).schema
        for branch in ("branch", "main"):
            assert ps.scan(source, snapshot=branch).schema.equals(now)
        (row,) = ps.read_table(source, snapshot="branch").to_pylist()
        assert row["newest"] is None
        assert ps.scan(source, snapshot="branch", filter="renamed is null").count_rows() <= 1
        old = ps.scan(source, snapshot=first).schema
        assert not {"newest", "renamed"} & set(old.names)
        assert ps.scan(source, snapshot="tag").schema.equals(old)
        assert ps.scan(source, snapshot=last).schema.equals(before)


def test_iceberg_scans(iceberg: Any) -> None:
    first = iceberg.history()[0].snapshot_id
    scan = iceberg.scan(snapshot_id=first, selected_fields=("id", "k"))
    assert ps.read_table(scan).to_pylist() == [{"id": 1, "k": "x"}] == scan.to_arrow().to_pylist()
    for own in (iceberg.scan(row_filter="number = 1"), iceberg.scan(limit=1)):
        with pytest.raises(ps.UnsupportedError, match="filter or a limit of its own"):
            ps.scan(own)


def test_iceberg_fields_of_structs_renamed_swapped_dropped_and_added(catalog: Any) -> None:
    inner = pa.struct([("u", pa.int64()), ("v", pa.int64()), ("gone", pa.string())])
    schema = pa.schema(
        [
            ("id", pa.int64()), ("s", inner), ("l", pa.list_(inner)), ("m", pa.map_(pa.string(), inner)),
            ("deep", pa.struct([("l", pa.list_(pa.struct([("t", inner)])))])),
        ]
    )  # fmt: skip
    table = catalog.create_table("n.s", schema=schema)
    one = {"u": 1, "v": 2, "gone": "x"}
    two = {"u": None, "v": 5, "gone": None}
    rows = [
        {"id": 1, "s": one, "l": [one, two], "m": {"a": one}, "deep": {"l": [{"t": one}, {"t": None}]}},
        {"id": 2, "s": None, "l": None, "m": {"b": two}, "deep": {"l": []}},
    ]  # fmt: skip
    table.append(pa.Table.from_pylist(rows, schema))
    places = [("s",), ("l", "element"), ("m", "value"), ("deep", "l", "element", "t")]
    for place in places:
        with table.update_schema(allow_incompatible_changes=True) as change:
            change.rename_column((*place, "u"), "w")
            change.delete_column((*place, "gone"))
        with table.update_schema(allow_incompatible_changes=True) as change:
            change.rename_column((*place, "v"), "u")
        with table.update_schema(allow_incompatible_changes=True) as change:
            change.rename_column((*place, "w"), "v")
            from pyiceberg.types import IntegerType

            change.add_column((*place, "gone"), IntegerType())  # another one of the same name
    ours, expected = ps.read_table(table), table.scan().to_arrow()
    assert ours.to_pylist() == expected.cast(ours.schema).to_pylist()
    assert ours["s"].to_pylist()[0] == {"v": 1, "u": 2, "gone": None}
    assert ours["l"].to_pylist()[0][1] == {"v": None, "u": 5, "gone": None}
    assert ours["deep"].to_pylist()[0] == {
        "l": [{"t": {"v": 1, "u": 2, "gone": None}}, {"t": None}]
    }
    assert ps.read_table(table, filter="s.u = 2")["id"].to_pylist() == [1]
    assert ps.read_table(table, filter="s.v = 2").num_rows == 0
    assert ps.read_table(table, filter="s.gone is null")["id"].to_pylist() == [1, 2]
    assert ps.read_table(table, filter="s.gone = 1").num_rows == 0
    assert ps.read_table(table, columns=["s.u", "id"], filter="s.v = 1").to_pylist() == [
        {"s": {"u": 2}, "id": 1}
    ]
    assert ps.read_table(table, columns=["s.gone"]).to_pylist() == [
        {"s": {"gone": None}}, {"s": None}
    ]  # fmt: skip
    assert ps.read_table(table, filter=ps.col("l.u").any() == 5)["id"].to_pylist() == [1]


def test_iceberg_files_without_ids(catalog: Any, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    table = catalog.create_table("n.u", schema=ICE.select(["id", "k"]).schema)
    path = tmp_path / "added.parquet"
    pq.write_table(ICE.select(["k", "id"]), path)
    table.add_files([f"file://{path}"])  # gives the table a mapping of names
    with table.update_schema() as change:
        change.rename_column("id", "number")
    assert rows_of(ps.read_table(table), "number") == rows_of(table.scan().to_arrow(), "number")


def test_the_default_of_a_struct_is_those_of_its_fields() -> None:
    """pyiceberg does not read such metadata yet."""
    from types import SimpleNamespace as Made

    from pageseek.datasets.iceberg_tables import _fields, _key_fields

    kind = pa.struct([("a", pa.int32()), ("b", pa.string())])
    inside = [
        Made(name="a", field_id=2, field_type=Made(), initial_default=7),
        Made(name="b", field_id=3, field_type=Made(), initial_default=None),
    ]
    schema = Made(
        fields=[Made(name="s", field_id=1, field_type=Made(fields=inside), initial_default={})]
    )
    (found,) = _fields(schema, [pa.field("s", kind)], {}, "t")
    assert found.default == pa.scalar({"a": 7, "b": None}, kind)
    # rows may be deleted by a field: where a file lacks it, it is null if a struct around it is
    schema.as_arrow = lambda: [pa.field("s", kind)]
    keys = _key_fields(Made(schemas=[schema]), {1: "s"}, {}, "t")
    assert keys[1].around == () and keys[2].around == keys[3].around == ((1, True),)


def test_any_of_a_default_in_lists_of_lists(catalog: Any, tmp_path: Path) -> None:
    from pyiceberg.table import StaticTable

    inner = pa.list_(pa.list_(pa.list_(pa.struct([("u", pa.int64())]))))
    schema = pa.schema([("id", pa.int64()), ("l", inner), ("s", pa.struct([("l", inner)]))])
    table = catalog.create_table("n.lists", schema=schema)
    lists = [[[[{"u": 1}, None]], [[]]], [[[None]], [], None], [], None]
    rows = [{"id": i, "l": one, "s": {"l": one}} for i, one in enumerate(lists)]
    table.append(pa.Table.from_pylist(rows, schema))
    told = json.loads(Path(table.metadata_location.removeprefix("file://")).read_text())
    told |= {"format-version": 3, "next-row-id": 0, "last-column-id": 51}
    for one in told["schemas"]:
        found = [one["fields"][1]["type"], one["fields"][2]["type"]["fields"][0]["type"]]
        for number, of in enumerate(found, 50):
            struct = of["element"]["element"]["element"]
            struct["fields"].append(
                {"id": number, "name": "w", "type": "string", "required": False, "initial-default": "wd"}
            )  # fmt: skip
    changed = tmp_path / "changed.metadata.json"
    changed.write_text(json.dumps(told))
    opened = StaticTable.from_metadata(str(changed))
    with_fields = tmp_path / "with_fields.parquet"  # no default is needed here
    pq.write_table(ps.read_table(opened), with_fields)
    spelt = "l.w", "l.element.w", "l.element.element.w", "l.element.element.element.w"
    for path in (*spelt, "s.l.w"):
        column = ps.col(path).any()
        hits = (column == "wd", [0]), (column == "x", []), (column.is_null(), [0, 1])
        for test, ids in (*hits, (~(column == "wd"), [2]), (~(column == "x"), [2])):
            for source in (with_fields, opened):
                found = ps.read_table(source, columns=["id"], filter=test)["id"].to_pylist()
                assert found == ids, (source, test)
            assert ps.scan(opened, filter=test).count_rows() == len(ids)


def test_iceberg_defaults_of_columns_and_fields_that_files_lack(
    catalog: Any, tmp_path: Path
) -> None:
    """pyiceberg has no way to add them: the metadata are changed by hand."""
    from pyiceberg.table import StaticTable

    inner = pa.struct([("u", pa.int64())])
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("s", inner),
            ("l", pa.list_(inner)),
            ("m", pa.map_(pa.string(), inner)),
        ]
    )
    table = catalog.create_table("n.d", schema=schema)
    rows = [
        {"id": 1, "s": {"u": 1}, "l": [{"u": 1}, None], "m": {"a": {"u": None}}},
        {"id": 2, "s": None, "l": [], "m": {}},
    ]  # fmt: skip
    table.append(pa.Table.from_pylist(rows, schema))
    told = json.loads(Path(table.metadata_location.removeprefix("file://")).read_text())
    told["format-version"] = 3
    told["next-row-id"] = 0
    for one in told["schemas"]:
        structs = [
            one["fields"][1]["type"],
            one["fields"][2]["type"]["element"],
            one["fields"][3]["type"]["value"],
        ]
        for number, of in enumerate(structs, 50):
            of["fields"].append(
                {
                    "id": number,
                    "name": "w",
                    "type": "string",
                    "required": False,
                    "initial-default": f"w{number}",
                    "write-default": "x",
                }
            )
        structs[0]["fields"].append(
            {"id": 53, "name": "v", "type": "long", "required": False, "initial-default": 1}
        )
        for number, kind, value in [
            (60, "int", 7),
            (61, "date", "2024-02-29"),
            (62, "timestamptz", "2024-01-01T00:00:00.000001+00:00"),
            (63, "binary", "0aff"),
        ]:
            one["fields"].append(
                {
                    "id": number,
                    "name": f"c{number}",
                    "type": kind,
                    "required": False,
                    "initial-default": value,
                    "write-default": value,
                }
            )
    told["last-column-id"] = 63
    changed = tmp_path / "changed.metadata.json"
    changed.write_text(json.dumps(told))
    opened = StaticTable.from_metadata(str(changed))
    more = {
        "c60": 7, "c61": dt.date(2024, 2, 29), "c62": dt.datetime(2024, 1, 1, 0, 0, 0, 1, dt.UTC), "c63": b"\x0a\xff",
    }  # fmt: skip
    expected = [
        {
            "id": 1,
            "s": {"u": 1, "w": "w50", "v": 1},
            "l": [{"u": 1, "w": "w51"}, None],
            "m": [("a", {"u": None, "w": "w52"})],
            **more,
        },
        {"id": 2, "s": None, "l": [], "m": [], **more},
    ]
    assert ps.read_table(opened).to_pylist() == expected
    assert ps.scan(opened, columns=["c60", "id"]).to_table().to_pylist() == [
        {"c60": 7, "id": 1}, {"c60": 7, "id": 2},
    ]  # fmt: skip
    assert ps.read_table(opened, columns=["s.w"]).to_pylist() == [{"s": {"w": "w50"}}, {"s": None}]
    assert ps.scan(opened, filter="c60 = 7 and c61 = date '2024-02-29'").count_rows() == 2
    assert ps.scan(opened, filter="c60 = 8").count_rows() == 0
    assert (
        ps.scan(opened, filter="c62 > timestamp '2024-01-01 00:00:00Z' and id = 2").count_rows()
        == 1
    )
    assert ps.scan(opened).aggregate([("c60", "max"), ("c60", "count")]).to_pylist() == [
        {"c60_max": 7, "c60_count": 2}
    ]
    for condition, ids in (
        ("s.w = 'w50'", [1]), ("s.w = 'x'", []), ("not s.w = 'x'", [1]), ("not s.w = 'w50'", []), ("s.w is null", [2]),
        ("s.w is not null", [1]), ("s.w in ('w50', 'a')", [1]), ("s.w > 'w'", [1]), ("s.w like 'w%'", [1]),
        ("s.w = 'w50' or id = 2", [1, 2]), ("s.w = 'w50' and s.u = 1", [1]), ("s.w = 'x' or s.u is null", [2]),
        ("not (s.w = 'x' and id = 2)", [1]), ("not (s.w = 'x' or id = 7)", [1]), ("s.w is null or s.w = 'w50'", [1, 2]),
    ):  # fmt: skip
        for prune in (True, False):
            found = ps.read_table(opened, columns=["id"], filter=condition, prune=prune)
            assert found["id"].to_pylist() == ids, condition
    assert ps.scan(opened, filter=ps.col("s.w").isin([])).count_rows() == 0
    assert ps.scan(opened, filter=~ps.col("s.w").isin([])).count_rows() == 2
    number = ps.col("id")
    of_list, of_map = ps.col("l.w").any(), ps.col("m.value.w").any()
    elements: list[tuple[Any, list[int]]] = [
        (of_list == "w51", [1]), (of_list == "x", []), (of_list.isin(["a", "w51"]), [1]), (of_list > "w", [1]), (of_list.like("%51"), [1]),
        (of_list.is_null(), [1]), (of_list.is_not_null(), [1]), (~(of_list == "x"), [2]), (~(of_list == "w51"), [2]),
        ((of_list == "w51") & (number == 1), [1]), ((of_list == "x") | (number == 2), [2]), (ps.col("l.element.w").any() == "w51", [1]),
        (of_map == "w52", [1]), (of_map == "w51", []), (~(of_map == "w51"), [1, 2]), (~(of_map == "w52"), [2]),
        (of_map.between("w", "x"), [1]), (ps.col("l.u").any() == 1, [1]),
    ]  # fmt: skip
    with_fields = tmp_path / "with_fields.parquet"  # no default is needed here
    pq.write_table(ps.read_table(opened), with_fields)
    for of, ids in elements:
        assert ps.read_table(with_fields, filter=of)["id"].to_pylist() == ids, of
        for prune in (True, False):
            found = ps.read_table(opened, columns=["id"], filter=of, prune=prune)
            assert found["id"].to_pylist() == ids, of
        assert ps.scan(opened, filter=of).count_rows() == len(ids), of
    v, c60 = ps.col("s.v"), ps.col("c60")
    pairs: list[tuple[Any, list[int]]] = [
        (v == number, [1]), (v != number, []), (~(v == number), []), (~(v != number), [1]), (number >= v, [1]),
        (~(number < v), [1]), (v == ps.col("s.u"), [1]), (v == v, [1]), (~(v < ps.col("s.u")), [1]), (v == c60, []),
        (c60 > v, [1]), (~(c60 > v), []), ((v == number) | (number == 2), [1, 2]), ((v != number) | (number == 2), [2]),
        (pc.field("s", "v") + 1 == 2, [1]), (pc.field("s", "v") + 1 == pc.field("id"), []),
    ]  # fmt: skip
    for pair, ids in pairs:
        for prune in (True, False):
            found = ps.read_table(opened, columns=["id"], filter=pair, prune=prune)
            assert found["id"].to_pylist() == ids, pair
    figures = [("s.w", "max"), ("s.w", "count"), (ps.col("s", "v"), "min"), ("s.u", "count")]
    for condition, least, n in ((None, 1, 1), ("id = 1", 1, 1), ("id = 2", None, 0)):
        (row,) = ps.scan(opened, filter=condition).aggregate(figures).to_pylist()
        most = None if least is None else "w50"
        assert row == {"s.w_max": most, "s.w_count": n, "s.v_min": least, "s.u_count": n}
    (row,) = ps.scan(opened).aggregate([("s.w", "max"), ("s.u", "min")]).to_pylist()
    assert row == {"s.w_max": "w50", "s.u_min": 1}
