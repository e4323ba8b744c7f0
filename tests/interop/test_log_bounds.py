"""Files that the log of a table rules out are not opened; bounds that prove nothing rule out nothing."""

from __future__ import annotations

import datetime as dt
import json
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pageseek as ps
from pageseek.base.errors import NoColumnError
from pageseek.base.report import Report
from pageseek.datasets.file_bounds import ColumnBounds, FileBounds
from pageseek.format.types import Options
from pageseek.predicate.bind import bind
from pageseek.predicate.filters import to_expression
from pageseek.prune.row_groups import prune_groups

deltalake = pytest.importorskip("deltalake")


def delta_of(root: Path, files: list[dict[str, Any]], fields: list[tuple[str, str]]) -> str:
    """A table with files that are not there, but for those that are written later. `files`: their statistics."""
    log = root / "_delta_log"
    log.mkdir(parents=True)
    schema = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in fields]
    actions: list[dict[str, Any]] = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": "6a4c1f1e-2f56-4d8e-8f39-5f7f0c2b6a11", "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": schema}), "partitionColumns": [],
                "configuration": {}, "createdTime": 1,
            }
        },
    ]  # fmt: skip
    for i, told in enumerate(files):
        actions.append(
            {
                "add": {
                    "path": f"{i}.parquet", "partitionValues": {}, "size": 1000, "modificationTime": 1,
                    "dataChange": True, "stats": told if isinstance(told, str) else json.dumps(told),
                }
            }
        )  # fmt: skip
    (log / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)))
    return str(root)


def said(low: Any, high: Any, nulls: int = 0, n: int = 10) -> dict[str, Any]:
    return {
        "numRecords": n,
        "minValues": {"a": low},
        "maxValues": {"a": high},
        "nullCount": {"a": nulls},
    }


def left(root: str, condition: Any, **options: Any) -> list[int]:
    """The numbers of the files that the log leaves."""
    from pageseek.scanning.requests.log_answers import LogAnswers

    scan = ps.scan(root, filter=condition, **options)
    log = LogAnswers.of(scan._sources, scan._request, Report())
    every = np.arange(len(scan._sources))
    places = every if log is None else log.left(every)
    return sorted(int(Path(scan._sources[i].name).stem) for i in places)


def test_ten_thousand_files_of_which_one_is_there(tmp_path: Path) -> None:
    """No other footer can be read: there is no other file."""
    n = 10_000
    root = delta_of(tmp_path / "t", [said(i * 10, i * 10 + 9) for i in range(n)], [("a", "long")])
    pq.write_table(pa.table({"a": range(77_770, 77_780)}), tmp_path / "t" / "7777.parquet")
    scan = ps.scan(root, filter="a = 77775")
    assert scan.to_table().to_pylist() == [{"a": 77_775}]
    report = scan.explain(analyze=True).to_dict()
    assert report["files"] == {"total": n, "read": 1, "pruned_by": {"log": n - 1}}
    assert ps.scan(root, filter="a < 0").count_rows() == 0
    plan = ps.scan(root, filter="a = 77775").plan()
    assert sum(batch.num_rows for batch in plan.execute()) == 1
    with pytest.raises(FileNotFoundError):
        ps.scan(root, filter="a = 77775", prune=["statistics"]).count_rows()


def test_what_the_log_leaves(tmp_path: Path) -> None:
    files = [
        said(1, 5), said(6, 9), said(None, None, 10), {"numRecords": 10}, said(1, 5, 3), {},
        {"numRecords": 10, "minValues": {"a": 1}, "maxValues": {"b": 3}},
    ]  # fmt: skip
    root = delta_of(tmp_path / "t", files, [("a", "long")])
    unknown = [3, 5, 6]
    assert set(left(root, "a = 3")) == {0, 4, *unknown}
    assert set(left(root, "a > 5")) == {1, *unknown}
    assert set(left(root, "a is null")) == {2, 4, *unknown}
    assert set(left(root, "a is not null")) == {0, 1, 4, *unknown}
    assert set(left(root, "not a = 3")) == {0, 1, 4, *unknown}
    assert left(root, "a = 3", prune=False) == [*range(7)]
    root = delta_of(tmp_path / "one", [said(1, 5)], [("a", "long")])
    pq.write_table(pa.table({"a": [1]}), tmp_path / "one" / "0.parquet")
    with pytest.raises(NoColumnError):
        ps.scan(root, filter="a = 99", columns=["none"]).to_table()


def notes(root: str, condition: str) -> list[str]:
    return [
        one
        for one in ps.scan(root, filter=condition).explain().to_dict()["notes"]
        if "the log of" in one
    ]


def test_malformed_statistics_rule_out_nothing_and_are_noted(tmp_path: Path) -> None:
    def made(name: str, wrong: Any) -> str:
        root = delta_of(tmp_path / name, [said(1, 5), wrong], [("a", "long"), ("b", "long")])
        for i in range(2):
            pq.write_table(pa.table({"a": [i], "b": [i]}), Path(root, f"{i}.parquet"))
        return root

    for i, wrong in enumerate([said("x", [1]), "no JSON", {"numRecords": "many"}, {}]):
        root = made(str(i), wrong)
        assert 1 in left(root, "a = 7")
        (note,) = notes(root, "a = 7")
        assert "the log of the table has no statistics of" in note
    root = made("inverted", said(9, 3))
    assert left(root, "a = 7") == [1]
    assert notes(root, "b = 7") == []
    (note,) = notes(root, "a = 7")
    assert (
        note == "the log of the table: statistics of 'a' are malformed for 1.parquet, and ignored"
    )
    for nulls in (-1, 11):
        root = made(f"nulls {nulls}", said(1, 2, nulls))
        assert left(root, "a = 7") == [1] and len(notes(root, "a is null")) == 1


def test_bounds_that_were_cut(tmp_path: Path) -> None:
    """Times to milliseconds; decimals are JSON numbers."""
    moment = "2024-01-01T00:00:00.001Z"
    root = delta_of(tmp_path / "t", [said(moment, moment)], [("a", "timestamp")])
    for micros, there in ((1000, [0]), (1999, [0]), (2000, []), (999, [])):
        value = dt.datetime(2024, 1, 1, 0, 0, 0, micros, dt.UTC)
        assert left(root, ps.col("a") == value) == there
    root = delta_of(tmp_path / "d", [said(1.2, 1.2)], [("a", "decimal(9,2)")])
    assert left(root, ps.col("a") == Decimal("1.20")) == [0]
    assert left(root, ps.col("a") == Decimal("1.21")) == []
    root = delta_of(tmp_path / "w", [said(1.2, 1.2)], [("a", "decimal(38,20)")])
    assert left(root, ps.col("a") == Decimal("7")) == [0]  # more digits than a double has
    long = "x" * 32
    root = delta_of(tmp_path / "s", [said(long, long + "\U0010ffff")], [("a", "string")])
    assert left(root, ps.col("a") == long + "zzz") == [0]
    assert left(root, ps.col("a") == "y") == []


@pytest.mark.parametrize("nan", ["ieee", "spark"])
def test_not_a_number_may_be_in_any_file(tmp_path: Path, nan: str) -> None:
    files = [said(0.0, 1.5), said("NaN", "NaN"), said(-0.0, -0.0)]
    root = delta_of(tmp_path / "t", files, [("a", "double")])
    assert 1 in left(root, "a > 100", nan=nan)
    assert (0 in left(root, "a > 100", nan=nan)) == (nan == "spark")
    assert {0, 2} <= set(left(root, ps.col("a") == 0.0, nan=nan))


values = st.one_of(st.none(), st.integers(-9, 9))
tests = st.tuples(st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), st.integers(-10, 10))


@given(
    st.lists(st.lists(values, max_size=6), min_size=1, max_size=5),
    st.lists(tests, min_size=1, max_size=3),
    st.booleans(),
)
def test_no_file_with_a_row_that_passes_is_ruled_out(
    files: list[list[int | None]], conditions: list[tuple[str, int]], joined: bool
) -> None:
    there = [[v for v in one if v is not None] for one in files]
    bounds = FileBounds(
        pa.schema([("a", pa.int64())]),
        np.array([len(one) for one in files]),
        lambda _: ColumnBounds(
            pa.array([min(one, default=None) for one in there], pa.int64()),
            pa.array([max(one, default=None) for one in there], pa.int64()),
            pa.array([one.count(None) for one in files], pa.int64()),
        ),
        "the log",
        [str(i) for i in range(len(files))],
    )
    text = (" and " if joined else " or ").join(f"a {op} {value}" for op, value in conditions)
    may = prune_groups(bounds, bind(to_expression(text), bounds, "ieee"), Options()).may
    ops = {
        "=": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b,
        "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
    }  # fmt: skip
    for one, left_ in zip(there, may, strict=True):
        found = [[ops[op](v, value) for op, value in conditions] for v in one]
        if any((all if joined else any)(row) for row in found):
            assert left_
    if len(conditions) == 1 and conditions[0][0] in ("<", "<=", ">", ">="):  # bounds decide these
        op, value = conditions[0]
        assert [bool(x) for x in may] == [any(ops[op](v, value) for v in one) for one in there]


def test_iceberg_bounds(tmp_path: Path) -> None:
    sql = pytest.importorskip("pyiceberg.catalog.sql")
    catalog = sql.SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("n")
    inner = pa.struct([("u", pa.int32())])
    schema = pa.schema(
        [
            ("i", pa.int64()), ("s", pa.string()), ("d", pa.date32()), ("t", pa.timestamp("us")), ("m", pa.decimal128(30, 4)),
            ("f", pa.float64()), ("n", inner), ("b", pa.binary()), ("x", pa.bool_()),
        ]
    )  # fmt: skip
    table = catalog.create_table("n.t", schema=schema)
    rows = []
    for k in range(6):
        mine = [
            {
                "i": k * 100 + j, "s": f"{'long prefix ' * 3}{k}{j}", "d": dt.date(2024, 1 + k, 1 + j),
                "t": dt.datetime(2024, 1 + k, 1, 0, 0, j), "m": Decimal(k * 10 + j) / 7 // Decimal("0.0001") * Decimal("0.0001"),
                "f": float("nan") if j == 3 else k + j / 10, "n": {"u": k * 7} if j % 2 else None, "b": bytes([k, j]), "x": j % 2 == 0,
            }
            for j in range(8)
        ]  # fmt: skip
        rows += mine
        table.append(pa.Table.from_pylist(mine, schema))
    names = {
        "i": 205,
        "d": dt.date(2024, 3, 2),
        "t": dt.datetime(2024, 4, 1, 0, 0, 5),
        "b": bytes([4, 4]),
        "m": rows[20]["m"],
    }
    for name, value in names.items():
        scan = ps.scan(table, filter=ps.col(name) == value)
        assert scan.to_table().to_pylist() == [row for row in rows if row[name] == value]
        pruned = scan.explain().to_dict()["files"]["pruned_by"]
        assert pruned.get("log", 0) >= 4, name
    for condition, want in [
        (ps.col("f") > 4.9, lambda r: r["f"] > 4.9), (ps.col("n.u") == 14, lambda r: (r["n"] or {}).get("u") == 14),
        (ps.col("x").isin([True]), lambda r: r["x"]), (ps.col("s") == rows[9]["s"], lambda r: r["s"] == rows[9]["s"]),
    ]:  # fmt: skip
        found = ps.scan(table, filter=condition).to_table()["i"].to_pylist()
        assert sorted(found) == [row["i"] for row in rows if want(row)]
    with table.update_schema() as change:
        change.rename_column("i", "j")
    assert ps.scan(table, filter="j = 205").explain().to_dict()["files"]["pruned_by"] == {"log": 5}
    # the files themselves are not needed
    for file in sorted(tmp_path.rglob("*.parquet"), key=os.path.getmtime)[1:]:
        file.unlink()
    assert ps.scan(table, filter="j = 3").count_rows() == 1
    catalog.close()


LIES: list[tuple[dict[str, Any], str]] = [
    ({"minValues": {"a": 3}}, "no value is below 3 by it, and 1 is there"),
    ({"maxValues": {"a": 4}}, "no value is above 4 by it, and 5 is there"),
    ({"nullCount": {"a": 0}}, "there is no null by it, and there are 1"),
    ({"nullCount": {"a": 6}}, "all of 6 values are null by it, and 5 are not"),
    ({"numRecords": 7}, "it says 7 rows, and the file has 6"),
    ({"minValues": {"a": 6}}, "its bounds are no values of the column, inverted"),
    ({"minValues": {"s": {"t": "b"}}}, "no value is below 'b' by it, and 'a' is there"),
]


@pytest.mark.parametrize(("lie", "finding"), LIES)
def test_verify_finds_what_a_log_says_wrong(
    tmp_path: Path, lie: dict[str, Any], finding: str
) -> None:
    rows = pa.table({"a": [1, 2, None, 3, 4, 5], "s": [{"t": "a"}, None, *[{"t": "b"}] * 4]})
    root = str(tmp_path / "t")
    deltalake.write_deltalake(root, rows)
    deltalake.write_deltalake(root, rows, mode="append")
    found = ps.index.verify(root)
    assert found.ok and found.checked["log"] == 4
    (log,) = Path(root, "_delta_log").glob("*1.json")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    (added,) = [line["add"] for line in lines if "add" in line]
    told = json.loads(added["stats"])
    for key, value in lie.items():
        told[key] = told[key] | value if isinstance(value, dict) else value
    added["stats"] = json.dumps(told)
    log.write_text("\n".join(map(json.dumps, lines)))
    found = ps.index.verify(root)
    (one,) = found.findings
    assert finding in one.what and one.kind == "log" and added["path"] in one.file
    assert added["path"] in str(found) and "log" in str(found)


def test_bounds_of_manifests_that_are_no_values() -> None:
    from types import SimpleNamespace

    from pageseek.datasets.iceberg_bounds import iceberg_bounds
    from pageseek.datasets.table_fields import TableField

    def file(name: str, low: bytes, high: bytes, text: bytes = b"a") -> Any:
        return SimpleNamespace(
            file_path=name, record_count=10, null_value_counts={1: 0, 2: 0},
            lower_bounds={1: low, 2: text}, upper_bounds={1: high, 2: b"z"},
        )  # fmt: skip

    one, nine = (n.to_bytes(8, "little") for n in (1, 9))
    files = [file("sound", one, nine), file("short", one[:3], nine), file("inverted", nine, one), file("text", one, nine, b"\xc3")]  # fmt: skip
    schema = pa.schema([("a", pa.int64()), ("s", pa.string())])
    bounds = iceberg_bounds(files, schema, [TableField("a", 1), TableField("s", 2)])
    assert bounds is not None
    for condition, left_, note in (
        ("a > 20", [0, 1, 1, 0], "statistics of 'a' are malformed for 2 files, such as short"),
        ("s > 'zz'", [0, 0, 0, 1], "statistics of 's' are malformed for text"),
    ):
        bound = bind(to_expression(condition), bounds, "ieee")
        assert [*prune_groups(bounds, bound, Options()).may] == left_
        (found,) = bounds.notes([(condition[0],)])
        assert note in found
