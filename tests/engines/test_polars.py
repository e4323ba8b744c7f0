"""A LazyFrame over a scan: its predicates prune, and its answers are those of polars."""

from __future__ import annotations

import datetime as dt
import importlib
import io
import pickle
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps

pl = pytest.importorskip("polars")
module = importlib.import_module("pageseek.engines.polars_predicate")
c = pl.col
N = 2_000
DAY, NOON = dt.date(2024, 1, 1), dt.datetime(2024, 1, 1, 12)
TABLE = pa.table(
    {
        "k": range(N),
        "j": pa.array(range(N), pa.int32()),
        "u": pa.array([k % 200 for k in range(N)], pa.uint8()),
        "f": [float("nan") if k % 500 == 7 else k / 4 for k in range(N)],
        "g": pa.array([k / 4 for k in range(N)], pa.float32()),
        "s": [None if k % 9 == 0 else f"s{k:05}" for k in range(N)],
        "bin": [f"s{k:05}".encode() for k in range(N)],
        "d": [DAY + dt.timedelta(k) for k in range(N)],
        "t": pa.array([NOON + dt.timedelta(k) for k in range(N)], pa.timestamp("ns")),
        "z": pa.array([NOON + dt.timedelta(k) for k in range(N)], pa.timestamp("us", "UTC")),
        "m": pa.array([Decimal(k) / 4 for k in range(N)], pa.decimal128(9, 2)),
        "b": [k < 600 for k in range(N)],
        "st": [{"x": k, "y.z": k} for k in range(N)],
    }
)
MOMENT = NOON + dt.timedelta(1700)
HIGH = pl.lit(float("nan"))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("polars") / "a.parquet"
    pq.write_table(TABLE, made, row_group_size=100, write_page_index=True, store_schema=True)
    return made


# predicates of polars that few of the twenty row groups can satisfy, as the filter that is made of them shows
PRUNED = {
    "equal": c("k") == 5,
    "flipped": pl.lit(5) == c("k"),
    "and": (c("k") < 150) & (c("f") * 2 > 3),
    "or": (c("k") < 50) | (c("s") == "s00190"),
    "not": ~(c("k") >= 150),
    "between": c("k").is_between(20, 50, closed="left"),
    "in": c("k").is_in([1, 2, 450]),
    "in a series": c("k").is_in(pl.Series([1, 2, 450]).implode()),
    "in texts": c("s").is_in(["s00001", "s00500", None]),
    "in, nulls equal": c("k").is_in([1, None], nulls_equal=True),
    "not missing": c("k").eq_missing(5),
    "int and double": c("j") < 100.5,
    "small int": (c("k") < 100) & (c("u") == 5),
    "double": c("f") < 25.0,
    "float": c("g") < pl.lit(25.1, pl.Float64),
    "text": c("s") < "s00100",
    "prefix": c("s").str.starts_with("s0001"),
    "binary": c("bin") == b"s00007",
    "date": c("d") > DAY + dt.timedelta(1800),
    "date and time": c("d") > MOMENT,
    "timestamp": c("t") > MOMENT,
    "zoned": c("z") > MOMENT.replace(tzinfo=dt.UTC),
    "decimal": c("m") == Decimal("12.25"),
    "boolean": c("b") & (c("k") > 550),
    "field": c("st").struct.field("x") == 5,
    "columns": (c("k") == 5) & (c("k") == c("j")),
    "null": c("k").is_null() | (c("k") == 3),
    "false": pl.lit(False),
}
# predicates of which nothing is known, or that say nothing of row groups
WHOLE = {
    "above, with nan": c("f") > 480.0,
    "nan": c("f") == HIGH,
    "is nan": c("f").is_nan(),
    "is not nan": c("f").is_not_nan(),
    "infinite": c("f") < float("inf"),
    "arithmetic": c("k") + 1 == 5,
    "text of a number": c("k").cast(pl.String) == "5",
    "narrow": c("k").cast(pl.Int8, strict=False) == 5,
    "exclusive or": (c("k") == 1) ^ (c("k") == 2),
    "suffix": c("s").str.ends_with("7"),
    "suffix with signs": ~c("s").str.ends_with("%_\\"),
    "inside": c("s").str.contains("007", literal=True),
    "regex": c("s").str.contains("0.7"),
    "not in": ~c("k").is_in([1, 2, None]),
    "not missing": c("s").ne_missing("s00001"),
    "missing": c("s").eq_missing(pl.lit(None, pl.String)),
    "missing in both": c("s").eq_missing(c("s")),
    "missing in one": c("s").ne_missing(c("s")),
    "not in an empty list": ~c("s").is_in([]),
    "not in an empty list, and more": ~(c("s").is_in([]) & (c("k") < 5)),
    "in column": c("k").is_in(pl.concat_list("j").cast(pl.List(pl.Int64))),
    "year": c("d").dt.year() == 2025,
    "true": pl.lit(True),
    "name with a dot": c("st").struct.field("y.z") == 5,
    "int64 rounded": c("k").cast(pl.Float64) >= 2.0**53,
    "udf": c("k").map_batches(lambda s: s == 5, return_dtype=pl.Boolean),
    "or with unknown": (c("k") == 5) | (c("k") * 2 == 8),
    "not of a part": ~((c("k") < 5) & (c("k") * 2 < 100)),
}


@pytest.mark.covering(1)
@pytest.mark.parametrize("name", [*PRUNED, *WHOLE])
@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_rows_are_those_of_polars(path: Path, name: str, engine: Any) -> None:
    predicate = (PRUNED | WHOLE)[name]
    wanted = pl.DataFrame(TABLE).filter(predicate).select("k", "s", "t")
    found = ps.polars.scan(path).filter(predicate).select("k", "s", "t").collect(engine=engine)
    assert found.equals(wanted)


@pytest.mark.parametrize("name", PRUNED)
def test_what_is_known_prunes(path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[ps.Scan] = []
    polars = importlib.import_module("pageseek.engines.polars")
    inner = polars._batches

    def batches(scan: ps.Scan, *more: Any) -> Any:
        seen.append(scan)
        return inner(scan, *more)

    monkeypatch.setattr(polars, "_batches", batches)
    ps.polars.scan(path).filter(PRUNED[name]).collect()
    for scan in seen:
        groups = scan.explain().row_groups
        assert groups.read < 8 and groups.total in (0, 20)


@pytest.mark.parametrize("version", ["3.0.0", "0.20.1"])
def test_a_form_that_is_not_known_is_left_to_polars(
    path: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lazy = ps.polars.scan(path).filter(c("k") == 5)
    monkeypatch.setattr(pl, "__version__", version)
    assert module.Predicate.of(c("k") == 5).part(TABLE.schema) is None
    assert lazy.collect()["k"].to_list() == [5]


@pytest.mark.parametrize(
    "tree",
    [
        {}, {"BinaryExpr": {}}, {"BinaryExpr": {"left": 1, "op": "Eq", "right": 2}}, {"Column": 7},
        {"Function": {"function": {"Boolean": "Odd"}, "input": [{"Column": "k"}]}}, [], "k",
        {"Function": {"function": {"Boolean": {"IsIn": {}}}, "input": []}}, {"Literal": {"Odd": 1}},
        {"BinaryExpr": {"left": {"Column": "q"}, "op": "Eq", "right": {"Literal": {"Scalar": {"Int64": 1}}}}},
        {"BinaryExpr": {"left": {"Column": "k"}, "op": "Odd", "right": {"Literal": {"Scalar": {"Int64": 1}}}}},
    ],
)  # fmt: skip
def test_odd_trees_say_nothing(tree: Any) -> None:
    assert module.Predicate(c("k"), tree).part(TABLE.schema) is None


def test_what_polars_adds_for_itself_is_taken_out() -> None:
    """As duckdb's reader of polars describes it: a node that only shows itself, joined by AND."""
    tree = b'{"Display":{"inputs":[],"fmt_str":"dynamic_pred: 1-2"}}'
    added = pl.Expr.deserialize(io.BytesIO(tree), format="json")
    frame = pl.DataFrame({"f": [float("nan"), 1.0, 2.0], "b": [True, True, False]})
    for predicate in (
        c("b") & added,
        added & c("b"),
        (c("b") & added) & (c("f") == HIGH),
        (c("f") == HIGH) & (added & c("b")),
    ):
        made = module.Predicate.of(predicate)
        rows = 1 if "f" in made.columns else 2
        assert frame.filter(made.expression).height == rows
        assert "Display" not in str(made.tree)
    assert module.Predicate.of(added) == module.Predicate(None, None)
    kept = c("b") & (c("f") > 1)
    assert module.Predicate.of(kept).expression is kept


def test_projections_limits_and_counts(path: Path) -> None:
    lazy, wanted = ps.polars.scan(path), pl.DataFrame(TABLE)
    assert lazy.collect_schema() == wanted.schema
    assert lazy.select(pl.len()).collect().item() == N
    assert lazy.head(3).collect().equals(wanted.head(3))
    assert lazy.filter(c("k") > 7).head(3).collect().equals(wanted.slice(8, 3))
    assert lazy.select("s", "k").tail(2).collect().equals(wanted.select("s", "k").tail(2))
    assert lazy.filter(c("k") < 0).select("s").collect().equals(wanted.select("s").head(0))
    top = lazy.sort("k", descending=True).head(2).select("k").collect(engine="streaming")
    assert top["k"].to_list() == [N - 1, N - 2]
    joined = lazy.join(lazy.filter(c("k") == 9), on="k").select("k", "s_right").collect()
    assert joined.rows() == [(9, None)]


def test_a_limit_before_a_predicate(path: Path) -> None:
    lazy, wanted = ps.polars.scan(path), pl.DataFrame(TABLE)
    assert lazy.head(50).filter(c("u") > 47).collect().equals(wanted.slice(48, 2))
    assert lazy.head(3).filter(c("k") == N - 1).collect().is_empty()
    assert lazy.head(10).drop_nulls("s").select("k").collect()["k"].to_list() == [*range(1, 9)]
    assert lazy.slice(5, 10).filter(c("k") < 7).collect()["k"].to_list() == [5, 6]
    assert lazy.filter(c("k") > 8).head(1).filter(c("s").is_null()).collect()["k"].to_list() == [9]


def test_integers_that_are_equal_as_doubles_only(tmp_path: Path) -> None:
    made = pa.table({"a": [2**53 + 1, 1], "b": [2**53, 2]})
    pq.write_table(made, tmp_path / "a.parquet")
    lazy, double = ps.polars.scan(tmp_path / "a.parquet"), c("a").cast(pl.Float64)
    for predicate in (
        double == c("b"), double <= c("b"), ~(double != c("b")), double.eq_missing(c("b")),
        double.cast(pl.Int64) == 2**53, c("a") == c("b"),
    ):  # fmt: skip
        assert lazy.filter(predicate).collect().equals(pl.DataFrame(made).filter(predicate))


def test_types_that_differ_between_files(tmp_path: Path) -> None:
    for day, kind in (("2024-01-01", pa.int32()), ("2024-01-02", pa.int64())):
        (tmp_path / f"day={day}").mkdir()
        some = pa.table({"id": pa.array([1, 2], kind)})
        pq.write_table(some, tmp_path / f"day={day}" / "a.parquet")
    lazy, first = ps.polars.scan(tmp_path), dt.date(2024, 1, 1)
    for some in (lazy.head(2), lazy.filter(c("day") == first), ps.polars.scan(tmp_path, limit=2)):
        assert some.collect().rows() == [(1, first), (2, first)]
        assert some.collect_schema()["id"] == pl.Int64
    numbered = ps.polars.scan(ps.scan(tmp_path).with_row_number("row")).head(3).collect()
    assert numbered["row"].to_list() == [0, 1, 2] and numbered["id"].dtype == pl.Int64


def test_a_scan_may_have_a_filter_a_limit_and_numbers(path: Path) -> None:
    scan = ps.scan(path, string_type="view").select("k").filter("k >= 10")
    lazy = ps.polars.scan(scan.limit(5))
    assert lazy.filter(c("k") > 12).collect()["k"].to_list() == [13, 14]  # of the first five
    assert lazy.head(2).collect()["k"].to_list() == [10, 11]
    numbered = ps.polars.scan(scan.with_row_number("row"))
    assert numbered.filter(c("row") == 12).collect().rows() == [(12, 12)]
    assert numbered.select("k").head(1).collect().rows() == [(10,)]
    with pytest.raises(TypeError, match="threads"):
        ps.polars.scan(scan, threads=1)


def test_nothing_is_read_before_it_is_collected(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"not yet")
    lazy = ps.polars.scan(path)
    pq.write_table(TABLE.slice(0, 3), path)
    assert lazy.select("k").collect()["k"].to_list() == [0, 1, 2]
    pq.write_table(pa.table({"k": ["x"]}), path)
    with pytest.raises(ps.FileChangedError, match="'k' is string"):
        lazy.select("k").collect()
    with pytest.raises(ps.FileChangedError, match="'k' is string"):
        lazy.filter(c("k") == 1).collect()


def test_odd_names(tmp_path: Path) -> None:
    made = pa.table({"a.b": [1, 2], "": [3, 4], 'q"': [5, 6]})
    pq.write_table(made, tmp_path / "a.parquet")
    lazy = ps.polars.scan(tmp_path / "a.parquet")
    assert lazy.collect_schema().names() == made.column_names
    assert lazy.filter(c("a.b") == 2, c("") == 4).collect().rows() == [(2, 4, 6)]


def test_dictionaries_are_categories(path: Path) -> None:
    lazy = ps.polars.scan(path, dictionary_columns=["s"]).filter(c("s") == "s00007")
    assert lazy.select("k").collect()["k"].to_list() == [7]
    assert lazy.select("s").collect().dtypes == [pl.Categorical]


def test_frames_of_scans(path: Path) -> None:
    scan = ps.scan(path, columns=["k", "s"])
    assert pl.DataFrame(scan).equals(pl.DataFrame(TABLE.select(["k", "s"])))
    assert pl.DataFrame(ps.dataset(scan)).equals(pl.DataFrame(scan))
    assert pl.from_arrow(scan.to_reader()).equals(pl.DataFrame(scan))


def test_it_is_imported_by_its_name(path: Path) -> None:
    named = importlib.import_module("pageseek.polars")
    assert named is ps.polars
    assert named.scan is ps.polars.scan
    assert named.scan(path).select("k").head(1).collect().item() == 0


def test_a_predicate_travels_as_a_filter_of_ours(path: Path) -> None:
    made = module.Predicate.of((c("k") == 5) & c("s").is_in(["a", "b"])).part(TABLE.schema).filter
    assert repr(pickle.loads(pickle.dumps(made))) == "k = 5 and s in ('a', 'b')"


def test_fields_of_a_struct_that_a_scan_has_chosen(tmp_path: Path) -> None:
    rows = [{"x": 1, "y": 2}, {"x": 3, "y": 4}]
    pq.write_table(pa.table({"k": [1, 2], "st": rows}), tmp_path / "a.parquet")
    scan = ps.scan(tmp_path / "a.parquet").select("st.y", "k")
    for made in (scan, scan.with_row_number("n")):
        frame = ps.polars.scan(made).filter(pl.col("k") == 2)
        assert frame.collect()["st"].to_list() == [{"y": 4}]
        assert frame.select("st").collect()["st"].to_list() == [{"y": 4}]


OF_ONE_NAME = pa.StructArray.from_arrays([pa.array([1]), pa.array(["a"])], names=["x", "x"])


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (pa.array([1], pa.timestamp("us", "+05:30")), "unable to parse time zone"),
        (pa.array([1], pa.decimal256(60, 0)), "column 'v' of type .*: polars has no decimal256"),
        (OF_ONE_NAME, "column 'v' of type .*: polars has no struct"),
        (pa.ListArray.from_arrays([0, 1], OF_ONE_NAME), "column 'v' of type .*: polars has no struct"),
    ],
)  # fmt: skip
def test_types_that_polars_lacks_are_refused(values: pa.Array, says: str, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"k": [1], "v": values}), path)
    # polars hands it on as an error of its own
    with pytest.raises((ps.UnsupportedError, pl.exceptions.ComputeError), match=says):
        ps.polars.scan(path).collect_schema()
    with pytest.raises(ps.UnsupportedError, match=says):
        ps.scan(path).to_polars()
    assert ps.polars.scan(path, columns=["k"]).collect().rows() == [(1,)]


@pytest.mark.parametrize("kind", [pa.decimal32(7, 2), pa.decimal64(16, 2)])
def test_narrow_decimals_have_their_values(kind: pa.DataType, tmp_path: Path) -> None:
    """polars 2.1 takes the decimals of any Arrow stream for those of 128 bits."""
    values = [None if k % 3 == 2 else Decimal(k) / 100 for k in range(40)]
    table = pa.table(
        {
            "v": pa.array(values, kind),
            "struct": pa.array([{"x": {"y": v}} for v in values], pa.struct([("x", pa.struct([("y", kind)]))])),
            "list": pa.array([[v, v] for v in values], pa.list_(kind)),
            "pair": pa.array([[v, v] for v in values], pa.list_(kind, 2)),
            "large": pa.array([[v] for v in values], pa.large_list(kind)),
        }
    )  # fmt: skip
    keyed = pa.array([[("a", v)] for v in values], pa.map_(pa.string(), kind))
    pq.write_table(table.append_column("map", keyed), tmp_path / "a.parquet", row_group_size=10)
    assert ps.read_table(tmp_path / "a.parquet").schema.field("v").type == kind
    lazy = ps.polars.scan(tmp_path / "a.parquet")
    frame = lazy.collect()
    for name in table.column_names:
        assert frame[name].to_list() == table[name].to_pylist()
    assert [
        value for row in pa.table(frame.select("map"))["map"].to_pylist() for _, value in row
    ] == values
    assert ps.scan(tmp_path / "a.parquet").to_polars().equals(frame)
    few = lazy.filter(c("v") == Decimal("0.10")).select("v", "list").collect()
    assert few.rows() == [(Decimal("0.10"), [Decimal("0.10")] * 2)]


def test_an_error_of_polars_says_that_a_name_stands_twice(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["x", "x"]), path)
    with pytest.raises((ps.UnsupportedError, pl.exceptions.ComputeError), match="several columns"):
        ps.polars.scan(path).collect()


@pytest.mark.parametrize("missing", ["polars", "polars.io.plugins"])
def test_polars_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ps.MissingPackageError, match=r"pip install .*polars") as caught:
        ps.polars.scan(tmp_path / "a.parquet")
    assert caught.value.name == "polars"
