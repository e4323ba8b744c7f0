"""Partition columns from folder names: typed, selected and filtered like other columns; they prune files."""

from __future__ import annotations

import datetime as dt
import itertools
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

import pageseek as ps

NULL = "__HIVE_DEFAULT_PARTITION__"


def lake(root: Path, folders: list[str], table: pa.Table | None = None) -> str:
    table = pa.table({"a": [1, 2, 3], "b": ["x", None, "z"]}) if table is None else table
    for folder in folders:
        (root / folder).mkdir(parents=True)
        pq.write_table(table, root / folder / "part-0.parquet")
    return str(root)


FOLDERS = ["k=1/d=2024-01-01", "k=2/d=2024-01-02", f"k={NULL}/d=2024-01-02"]
ROWS = [
    {"a": a, "b": b, "k": k, "d": d}
    for k, d in ((1, dt.date(2024, 1, 1)), (2, dt.date(2024, 1, 2)), (None, dt.date(2024, 1, 2)))
    for a, b in ((1, "x"), (2, None), (3, "z"))
]


@pytest.fixture
def root(tmp_path: Path) -> str:
    return lake(tmp_path, FOLDERS)


def leaf_types(root: str) -> list[Any]:
    return [
        root,
        [root],
        f"{root}/**/*.parquet",
        f"{root}/k=*/*/*.parquet",
        (pafs.LocalFileSystem(), root),
    ]


def test_folders_are_columns_the_last_ones(root: str) -> None:
    for source in leaf_types(root):
        table = ps.read_table(source)
        assert table.schema.names == ["a", "b", "k", "d"], source
        assert table.schema.types[2:] == [pa.int32(), pa.date32()]
        assert table.to_pylist() == ROWS
    assert ps.scan(root).schema.names == ["a", "b", "k", "d"]


def test_what_lies_above_the_root_is_no_column(root: str) -> None:
    assert ps.read_table(f"{root}/k=1").schema.names == ["a", "b", "d"]
    assert ps.read_table(f"{root}/k=1/*/*.parquet").schema.names == ["a", "b", "d"]
    assert ps.read_table([f"{root}/k=1/d=2024-01-01/part-0.parquet"]).schema.names == ["a", "b"]
    assert ps.read_table(root, partitioning=False).schema.names == ["a", "b"]


K, D, A = ps.col("k"), ps.col("d"), ps.col("a")
PARTS: list[tuple[Any, Any]] = [  # a condition, and its result for a row: True, False or None
    (K == 1, lambda r: None if r["k"] is None else r["k"] == 1),
    (K != 1, lambda r: None if r["k"] is None else r["k"] != 1),
    (K < 1.5, lambda r: None if r["k"] is None else r["k"] < 1.5),
    (K.isin([2, 5]), lambda r: None if r["k"] is None else r["k"] in (2, 5)),
    (K.isin([2, None]), lambda r: True if r["k"] == 2 else None),
    (K.is_null(), lambda r: r["k"] is None),
    (dt.date(2024, 1, 2) == D, lambda r: r["d"] == dt.date(2024, 1, 2)),
    (D < "2024-01-02", lambda r: r["d"] < dt.date(2024, 1, 2)),
    (A > 1, lambda r: r["a"] > 1),
    (ps.col("b") == "x", lambda r: None if r["b"] is None else r["b"] == "x"),
    (A <= K, lambda r: None if r["k"] is None else r["a"] <= r["k"]),
    (K > A, lambda r: None if r["k"] is None else r["k"] > r["a"]),
    (ps.col("k") == K, lambda r: None if r["k"] is None else True),
]


def negated(value: Any) -> Any:
    return None if value is None else not value


def both(x: Any, y: Any) -> Any:
    return False if x is False or y is False else None if x is None or y is None else True


def test_filters_by_three_valued_logic(root: str) -> None:
    conditions: list[tuple[Any, Any]] = list(PARTS)
    for (c, f), (e, g) in itertools.product(PARTS, PARTS):
        conditions.append((c & ~e, lambda r, f=f, g=g: both(f(r), negated(g(r)))))
        conditions.append(
            (~(c | e), lambda r, f=f, g=g: both(negated(f(r)), negated(g(r)))),
        )
    for condition, judge in conditions:
        expected = [row for row in ROWS if judge(row) is True]
        assert ps.read_table(root, filter=condition).to_pylist() == expected, condition
        assert ps.scan(root, filter=condition).count_rows() == len(expected), condition


@pytest.mark.parametrize(
    ("condition", "places"),
    [
        ("k = 1 and a > 1", [1, 2]),
        ("(k = 1) is not true", [3, 4, 5, 6, 7, 8]),
        ("d = date '2024-01-02' and k is null", [6, 7, 8]),
        ([("k", "in", [1, 2]), ("a", "==", 3)], [2, 5]),
        ([[("k", "=", 2)], [("a", "=", 1)]], [0, 3, 4, 5, 6]),
        (pc.field("k") == 1, [0, 1, 2]),
        (pc.field("k") + pc.field("a") == 3, [1, 3]),
        (~pc.field("k").is_null() & (pc.field("b") == "z"), [2, 5]),
        (pc.field("k") * 2 == 4, [3, 4, 5]),
        (pc.year(pc.field("d")) == 2023, []),
    ],
)
def test_filters_in_every_language(root: str, condition: Any, places: list[int]) -> None:
    expected = [ROWS[i] for i in places]
    assert ps.read_table(root, filter=condition).to_pylist() == expected
    scan = ps.scan(root, filter=condition)
    assert scan.with_row_number().to_table()["row"].to_pylist() == places
    assert scan.take([1, 3, 5]).with_row_number().to_table()["row"].to_pylist() == [
        p for p in places if p in (1, 3, 5)
    ]
    plan = pickle.loads(pickle.dumps(scan.plan()))
    found = [row for part in plan.split(2) for batch in part.execute() for row in batch.to_pylist()]
    assert sorted(map(repr, found)) == sorted(map(repr, expected))
    for prune in (False, ["statistics"]):
        assert ps.read_table(root, filter=condition, prune=prune).num_rows == len(places)


def test_files_are_pruned_before_they_are_opened(root: str) -> None:
    ps.clear_cache()
    bad = Path(root) / "k=7" / "d=2024-01-01" / "no.parquet"
    bad.parent.mkdir(parents=True)
    bad.write_bytes(b"no Parquet file")
    for prune in (True, False):
        report = ps.scan(root, filter="k = 1 and a > 1", prune=prune).explain(analyze=True)
        assert report.to_dict()["files"] == {"total": 4, "read": 1, "pruned_by": {"partition": 3}}
    assert "names of their folders" in str(report)
    with pytest.raises(ps.CorruptFileError):
        ps.read_table(root)
    # rows are counted through all files, so that those are opened too
    with pytest.raises(ps.CorruptFileError):
        ps.scan(root, filter="k = 1").with_row_number().to_table()
    bad.unlink()
    assert ps.read_table(root, filter="k = 99").schema.names == ["a", "b", "k", "d"]


def test_selected_and_ordered(root: str) -> None:
    table = ps.read_table(root, columns=["d", "a", "k"])
    assert table.schema.names == ["d", "a", "k"]
    assert ps.read_table(root, columns=["k"]).to_pylist() == [{"k": row["k"]} for row in ROWS]
    assert ps.read_table(root, columns=[]).num_rows == 9
    assert ps.read_table(root, columns=["k"], limit=4).to_pylist() == [
        {"k": r["k"]} for r in ROWS[:4]
    ]
    assert ps.scan(root).count_rows() == 9
    with pytest.raises(ps.PredicateError, match="no column 'zz'"):
        ps.read_table(root, columns=["k", "zz"])
    with pytest.raises(ps.PredicateError, match="column of this name"):
        ps.scan(root).with_row_number("k").to_table()
    with pytest.raises(ps.PredicateError, match="cannot be compared"):
        ps.read_table(root, filter=K == "text")


def test_aggregates(root: str) -> None:
    figures = ["count", ("k", "count"), ("k", "min"), ("k", "max"), ("d", "max"), ("a", "max")]
    assert ps.scan(root).aggregate(figures).to_pylist() == [
        {"count": 9, "k_count": 6, "k_min": 1, "k_max": 2, "d_max": dt.date(2024, 1, 2), "a_max": 3}
    ]
    found = ps.scan(root, filter="a = 2 and k < 2").aggregate([("k", "max"), ("a", "min")])
    assert found.to_pylist() == [{"k_max": 1, "a_min": 2}]
    assert found.schema.types == [pa.int32(), pa.int64()]
    assert ps.scan(root, filter="b = 'z'").aggregate([("k", "max")]).to_pylist() == [{"k_max": 2}]
    assert (
        ps.scan(root, filter="a > 2").explain(aggregate=[("k", "max")], analyze=True).rows_out == 1
    )


@pytest.mark.parametrize(
    ("values", "kind", "read"),
    [
        (["1", "02", "-3"], pa.int32(), [1, 2, -3]),
        (["1", str(2**31)], pa.int64(), [1, 2**31]),
        (["1", str(2**63)], pa.string(), ["1", str(2**63)]),
        (["1", "x"], pa.string(), ["1", "x"]),
        (["1.5", "2"], pa.string(), ["1.5", "2"]),
        (["true"], pa.string(), ["true"]),
        (["2024-02-29", NULL], pa.date32(), [dt.date(2024, 2, 29), None]),
        (["2023-02-29"], pa.string(), ["2023-02-29"]),
        (["2024-01-01 10:00:00"], pa.string(), ["2024-01-01 10:00:00"]),
        ([NULL], pa.string(), [None]),
        ([""], pa.string(), [""]),
        (["a%2Fb%3Dc%20%C3%A9", "x=y"], pa.string(), ["a/b=c é", "x=y"]),
    ],
)
def test_types_are_inferred_over_all_files(
    values: list[str], kind: pa.DataType, read: list[Any], tmp_path: Path
) -> None:
    table = pa.table({"a": [1]})
    root = lake(tmp_path, [f"k={value}" for value in values], table)
    found = ps.read_table(root)
    assert found.schema.field("k").type == kind
    assert sorted(found["k"].to_pylist(), key=repr) == sorted(read, key=repr)
    if kind in (pa.int32(), pa.string()) and "" not in values and values != [NULL]:
        other = ds.dataset(root, partitioning="hive").to_table()
        if str(2**63) not in values:
            assert other.schema.field("k").type == kind
            assert sorted(map(repr, other["k"].to_pylist())) == sorted(map(repr, read))


def test_types_that_are_given(tmp_path: Path) -> None:
    root = lake(
        tmp_path, ["k=1/t=2024-01-01 10:00:00", "k=2/t=2024-01-01 11:30:00"], pa.table({"a": [1]})
    )
    schema = pa.schema([("k", pa.string()), ("t", pa.timestamp("us"))])
    for given in (schema, {"k": pa.string(), "t": pa.timestamp("us")}):
        table = ps.read_table(
            root, partitioning=given, filter="k = '2' and t > timestamp '2024-01-01 11:00:00'"
        )
        assert table.to_pylist() == [{"a": 1, "k": "2", "t": dt.datetime(2024, 1, 1, 11, 30)}]
    for kind, read in (
        (pa.float64(), 1.0),
        (pa.decimal128(5, 2), 1),
        (pa.int64(), 1),
        (pa.binary(), b"1"),
    ):
        assert ps.read_table(root, partitioning={"k": kind})["k"][0].as_py() == read
        assert ps.read_table(root, partitioning={"k": kind}, filter=read == K).num_rows == 1
    with pytest.raises(
        ps.UnsupportedError,
        match=r"t=2024-01-01 10:00:00/part-0\.parquet: the folder says 't' is '2024",
    ):
        ps.read_table(root, partitioning={"t": pa.int32()})
    with pytest.raises(
        ps.UnsupportedError, match="partitioning: no folders of the column 'z'; there are 'k', 't'"
    ):
        ps.read_table(root, partitioning={"z": pa.int8()})


def test_folders_have_to_agree(tmp_path: Path) -> None:
    lake(tmp_path, ["k=1/j=1", "j=1/k=1"])
    with pytest.raises(
        ps.UnsupportedError, match=r"j=1/k=1/part-0.* 'j', 'k', and .*k=1/j=1/part-0.* 'k', 'j'"
    ):
        ps.scan(str(tmp_path))
    assert ps.read_table(str(tmp_path), partitioning=False).num_rows == 6
    with pytest.raises(ps.UnsupportedError, match="no column"):
        ps.scan([f"{tmp_path}/k=1", f"{tmp_path}/k=1/j=1/part-0.parquet"])


def test_the_folder_wins_over_a_column_of_the_file(tmp_path: Path) -> None:
    root = lake(tmp_path, ["k=1", "k=2"], pa.table({"k": [70, 80], "a": [1, 2]}))
    assert ps.read_table(root, filter="k = 2").to_pylist() == [{"a": 1, "k": 2}, {"a": 2, "k": 2}]
    assert ps.read_table(root, filter="k = 70").num_rows == 0
    assert ps.read_table(root, columns=["k"]).to_pylist() == [{"k": 1}] * 2 + [{"k": 2}] * 2
    assert ps.read_table(root, filter=pc.field("k") * 1 == 1).num_rows == 2
    assert ps.read_table(root, partitioning=False)["k"].to_pylist() == [70, 80] * 2


def test_a_schema_says_which_partitions_there_are(root: str) -> None:
    schema = pa.schema([("k", pa.int64()), ("a", pa.int64()), ("later", pa.string())])
    table = ps.read_table(root, schema=schema, filter="k = 2")
    assert table.schema == schema
    assert table.to_pylist() == [{"k": 2, "a": a, "later": None} for a in (1, 2, 3)]


def test_partitions_beside_evolution(tmp_path: Path) -> None:
    lake(tmp_path, ["y=2023"], pa.table({"a": pa.array([1, 2], pa.int32())}))
    lake(tmp_path, ["y=2024"], pa.table({"a": pa.array([2**40], pa.int64()), "n": [5]}))
    root = str(tmp_path)
    assert ps.read_table(root).to_pylist() == [
        {"a": 1, "n": None, "y": 2023}, {"a": 2, "n": None, "y": 2023}, {"a": 2**40, "n": 5, "y": 2024},
    ]  # fmt: skip
    assert ps.read_table(root, filter="y = 2024 or n is null and a < 2").num_rows == 2
    # the schema is that of the files that are left; a column that is named is looked for in the others
    assert ps.read_table(root, filter="y = 2023").schema.names == ["a", "y"]
    assert ps.read_table(root, filter="y = 2023", columns=["n", "a"]).to_pylist() == [
        {"n": None, "a": 1}, {"n": None, "a": 2},
    ]  # fmt: skip
    assert ps.read_table(root, filter="y = 2023 and n is null").num_rows == 2


def test_sources_stay_small(tmp_path: Path) -> None:
    from pageseek.datasets.partitions import typed
    from pageseek.storage.resolve import resolve

    for i in range(40):
        (tmp_path / f"k={i % 4}").mkdir(exist_ok=True)
        (tmp_path / f"k={i % 4}" / f"{i}.parquet").write_bytes(b"")
    sources, _ = typed(resolve(str(tmp_path)), None)
    assert len({id(source.partitions) for source in sources}) == 4
    paths = sum(len(source.path) for source in sources)
    assert len(pickle.dumps(sources)) < 2 * paths + 40 * 60 + 2000
