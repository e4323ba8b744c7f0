"""Tables of Iceberg that `pyiceberg` wrote: the rows equal those that it reads."""

from __future__ import annotations

import datetime as dt
import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from support.lake_tables import rows_of

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

    from pageseek.datasets.iceberg_metadata import NOTHING
    from pageseek.datasets.iceberg_tables import _fields, _key_fields

    kind = pa.struct([("a", pa.int32()), ("b", pa.string())])
    inside = [
        Made(name="a", field_id=2, field_type=Made(), initial_default=7),
        Made(name="b", field_id=3, field_type=Made(), initial_default=None),
    ]
    schema = Made(
        fields=[Made(name="s", field_id=1, field_type=Made(fields=inside), initial_default={})]
    )
    (found,) = _fields(schema, [pa.field("s", kind)], {}, "t", NOTHING)
    assert found.default == pa.scalar({"a": 7, "b": None}, kind)
    # rows may be deleted by a field: where a file lacks it, it is null if a struct around it is
    schema.as_arrow = lambda: [pa.field("s", kind)]
    keys = _key_fields(Made(schemas=[schema]), {1: "s"}, {}, "t", NOTHING)
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
