"""Prepared queries: with each value they give what the scan with this value in its filter gives, for every type of column."""

from __future__ import annotations

import asyncio
import datetime as dt
import multiprocessing as mp
import os
import pickle
import random
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.scanning.point_reads import PointPlan

pytestmark = pytest.mark.usefixtures("scans")

N = 3_000
UTC = dt.UTC


def column(kind: str, i: int) -> Any:
    """A value of a column, of which each occurs some times."""
    j = i * 7919 % 401
    if j % 13 == 0:
        return None
    day = dt.date(2020, 1, 1) + dt.timedelta(j)
    made: dict[str, Any] = {
        "i8": j % 256 - 128, "u8": j % 256, "i16": j * 80 - 16_000, "u16": j * 160, "i32": j * 10**6 - 2 * 10**8,
        "u32": j * 10**7, "i64": j * 10**15 - 10**17, "u64": j * 4 * 10**16,
        "f16": j / 4, "f32": j / 3, "f64": (j - 200) / 3 if j % 11 else float("nan"), "bool": j % 3 == 0,
        "text": f"text {j}", "large": f"large {j}", "view": f"view {j} of some length", "bytes": b"\xff%d" % j,
        "fixed": b"%04d" % j, "d32": Decimal(j) / 100, "d128": Decimal(j) * 10**20 / 1000, "d256": Decimal(j) * 10**40,
        "date": day, "ms": dt.datetime(2020, 1, 1) + dt.timedelta(milliseconds=j * 7),
        "us": dt.datetime(2020, 1, 1) + dt.timedelta(microseconds=j * 7), "ns": dt.datetime(2020, 1, 1, 0, 0, 0, j),
        "utc": dt.datetime(2020, 1, 1, tzinfo=UTC) + dt.timedelta(seconds=j), "time": dt.time(1, 2, 3, j),
        "time_ms": dt.time(1, j % 60), "span": dt.timedelta(microseconds=j), "coded": f"coded {j % 30}",
        "uuid": uuid.UUID(int=j), "sorted": i // 3,
    }  # fmt: skip
    return made[kind]


TYPES = {
    "i8": pa.int8(), "u8": pa.uint8(), "i16": pa.int16(), "u16": pa.uint16(), "i32": pa.int32(), "u32": pa.uint32(),
    "i64": pa.int64(), "u64": pa.uint64(), "f16": pa.float16(), "f32": pa.float32(), "f64": pa.float64(),
    "bool": pa.bool_(), "text": pa.string(), "large": pa.large_string(), "view": pa.string_view(), "bytes": pa.binary(),
    "fixed": pa.binary(4), "d32": pa.decimal128(7, 2), "d128": pa.decimal128(30, 3), "d256": pa.decimal256(60, 0),
    "date": pa.date32(), "ms": pa.timestamp("ms"), "us": pa.timestamp("us"), "ns": pa.timestamp("ns"),
    "utc": pa.timestamp("us", "UTC"), "time": pa.time64("us"), "time_ms": pa.time32("ms"), "span": pa.duration("us"),
    "coded": pa.dictionary(pa.int32(), pa.string()), "uuid": pa.uuid(), "sorted": pa.int64(),
}  # fmt: skip

# values of all sorts, compared with each column
ODD: list[Any] = [
    None, 0, -1, 1, 5, 300, -129, 2**31, 2**63, 2**64, 2.5, 3.0, 0.0, -0.0, float("nan"), float("inf"), 1 / 3, True,
    "text 7", "2020-02-03", "coded 7", "", b"0007", b"\xff7", Decimal("0.07"), Decimal("0.071"), Decimal(10) ** 40,
    dt.date(2020, 1, 8), dt.datetime(2020, 1, 1, 0, 0, 0, 7000), dt.datetime(2020, 1, 1, 0, 0, 0, 7),
    dt.datetime(2020, 1, 1, 0, 0, 7, tzinfo=UTC), dt.time(1, 7), dt.time(1, 2, 3, 7), dt.timedelta(microseconds=7),
    np.int8(5), np.float32(1 / 3), np.datetime64("2020-01-08"), np.datetime64("NaT"), pa.scalar(5, pa.int16()),
    pa.scalar(None, pa.int64()), pa.scalar("text 7"), uuid.UUID(int=7), [1], object,
]  # fmt: skip


def made() -> pa.Table:
    columns = {}
    for kind, of in TYPES.items():
        values = [column(kind, i) for i in range(N)]
        if kind == "uuid":
            stored = pa.array([None if v is None else v.bytes for v in values], pa.binary(16))
            columns[kind] = pa.ExtensionArray.from_storage(pa.uuid(), stored)
        elif kind == "f16":
            columns[kind] = pa.array([None if v is None else np.float16(v) for v in values], of)
        elif kind == "coded":
            columns[kind] = pa.array(values).dictionary_encode()
        else:
            columns[kind] = pa.array(values, of)
    columns["list"] = pa.array([[i % 5, i % 7] for i in range(N)])
    columns["struct"] = pa.array([{"a": i % 401, "b": [str(i)]} for i in range(N)])
    return pa.table(columns)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    at = tmp_path_factory.mktemp("prepared") / "all.parquet"
    pq.write_table(
        made(), at, row_group_size=1_100, write_page_index=True, max_rows_per_page=100,
        use_dictionary=["coded", "d32"], compression="zstd",
    )  # fmt: skip
    return at


def answer(read: Callable[[], pa.Table]) -> Any:
    try:
        return read()
    except (ps.PageseekError, TypeError) as error:
        return type(error), str(error)


def same(query: Callable[[], pa.Table], plain: Callable[[], pa.Table]) -> None:
    """Both give the same rows with the same schema, or the same error."""
    ours, theirs = answer(query), answer(plain)
    if isinstance(theirs, tuple):
        assert isinstance(ours, tuple), theirs
        assert ours[0] is theirs[0]
        assert ours[1].endswith(theirs[1])
        return
    assert not isinstance(ours, tuple), ours
    assert ours.schema.equals(theirs.schema, check_metadata=True)
    ours.validate(full=True)
    equal = ours.combine_chunks().equals(theirs.combine_chunks())
    assert equal or repr(ours.to_pylist()) == repr(theirs.to_pylist())  # NaN


FLAT = [kind for kind in TYPES if kind != "coded"]  # which the core reads by one call


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("columns", [None, FLAT], ids=["all", "flat"])
def test_each_type(path: Path, kind: str, columns: list[str] | None) -> None:
    """Every payload column, whatever is tested."""
    query = ps.scan(path, columns=columns).prepare(ps.col(kind) == ps.param("k"))
    own = [column(kind, i) for i in (1, 2, 5, 40, 2_999)]
    for value in [*own, *ODD]:
        same(
            lambda v=value: query(v),
            lambda v=value: ps.read_table(path, columns, ps.col(kind) == v),
        )
    assert (point_table(query, k=own[0]) is not None) == (
        columns is not None and own[0] is not None
    )


def point_table(query: Any, **values: Any) -> Any:
    """The answer by one call of the core; None where the query goes the way of every scan."""
    return None if query._points is None else query._points.table(values)


@pytest.mark.parametrize("kind", TYPES)
def test_spark_nan(path: Path, kind: str) -> None:
    query = ps.scan(path, nan="spark").select("sorted", kind).prepare(ps.col(kind) <= ps.param("k"))
    for value in [column(kind, 1), *ODD]:
        condition = ps.col(kind) <= value if value is not object else None
        if condition is not None:
            same(
                lambda v=value: query(k=v),
                lambda c=condition: (
                    ps.scan(path, nan="spark").select("sorted", kind).filter(c).to_table()
                ),
            )


OPTIONS: list[dict[str, Any]] = [
    {"columns": []},
    {"columns": ["sorted"]},
    {"columns": ["f64", "sorted", "text"]},
    {"columns": ["struct.a", "i8"]},
    {"string_type": "large"},
    {"string_type": "view", "columns": ["text", "bytes"]},
    {"dictionary_columns": ["text"], "columns": ["text", "i8"]},
    {"limit": 2},
    {"limit": 0},
    {"threads": 1},
    {"batch_size": 10},
    {"prune": False},
    {"prune": ["statistics"], "columns": ["i8", "text"]},
]
p, c = ps.param, ps.col
CONDITIONS: list[tuple[Any, Callable[..., Any], list[dict[str, Any]]]] = [
    (c("sorted") == p("k"), lambda k: c("sorted") == k, [{"k": 5}, {"k": -1}, {"k": 999}, {"k": 998.5}]),
    (p("k") == c("sorted"), lambda k: c("sorted") == k, [{"k": 5}]),
    (c("sorted") != p("k"), lambda k: c("sorted") != k, [{"k": 5}]),
    (p("k") > c("sorted"), lambda k: c("sorted") < k, [{"k": 5}, {"k": 2.5}, {"k": None}]),
    (c("sorted").between(p("a"), p("b")), lambda a, b: c("sorted").between(a, b),
     [{"a": 5, "b": 7}, {"a": 7, "b": 5}, {"a": 360, "b": 370}, {"a": None, "b": 5}]),
    (c("sorted").isin(p("ks")), lambda ks: c("sorted").isin(ks),
     [{"ks": [5, 7, 900]}, {"ks": []}, {"ks": [None, 5]}, {"ks": pa.array([1, 2])}, {"ks": np.arange(300)}]),
    (c("sorted").isin([p("a"), 9, p("b")]), lambda a, b: c("sorted").isin([a, 9, b]), [{"a": 5, "b": 5}, {"a": None, "b": 1}]),
    (~c("sorted").isin([p("a"), 9]), lambda a: ~c("sorted").isin([a, 9]), [{"a": 5}, {"a": None}]),
    (c("text").starts_with(p("s")), lambda s: c("text").starts_with(s), [{"s": "text 7"}, {"s": ""}, {"s": "z"}]),
    ((c("sorted") >= p("a")) & (c("f64") < p("b")), lambda a, b: (c("sorted") >= a) & (c("f64") < b),
     [{"a": 900, "b": 0}, {"a": 100, "b": float("nan")}]),
    ((c("sorted") == p("a")) & (c("text") == p("b")), lambda a, b: (c("sorted") == a) & (c("text") == b),
     [{"a": i // 3, "b": column("text", i)} for i in (5, 50, 500)]),
    ((c("sorted") == p("a")) | (c("i8") == p("b")), lambda a, b: (c("sorted") == a) | (c("i8") == b), [{"a": 5, "b": 7}]),
    ((c("sorted") == p("k")) | c("i64").is_null(), lambda k: (c("sorted") == k) | c("i64").is_null(), [{"k": None}, {"k": 3}]),
    (~(c("sorted") > p("k")), lambda k: ~(c("sorted") > k), [{"k": 5}, {"k": None}]),
    ((c("sorted") == p("k")) & c("text").like("%7%"), lambda k: (c("sorted") == k) & c("text").like("%7%"), [{"k": 5}, {"k": 9}]),
    ((c("sorted") == p("k")) & c("i8").is_not_null(), lambda k: (c("sorted") == k) & c("i8").is_not_null(), [{"k": 5}, {"k": 9}]),
    (c("list").any() == p("k"), lambda k: c("list").any() == k, [{"k": 4}, {"k": None}]),
    (c("list").any().between(p("a"), p("b")), lambda a, b: c("list").any().between(a, b), [{"a": 5, "b": 6}]),
    (c("struct.a") == p("k"), lambda k: c("struct.a") == k, [{"k": 4}, {"k": 4000}]),
    ([("sorted", "=", p("k"))], lambda k: c("sorted") == k, [{"k": 5}]),
    ("sorted < 4 and i8 is not null", lambda: (c("sorted") < 4) & c("i8").is_not_null(), [{}]),
]  # fmt: skip


@pytest.mark.covering(1)
@pytest.mark.parametrize("number", range(len(CONDITIONS)))
@pytest.mark.parametrize("options", [{}, *OPTIONS], ids=str)
def test_conditions_and_options(path: Path, number: int, options: dict[str, Any]) -> None:
    template, plain, calls = CONDITIONS[number]
    query = ps.scan(path, **options).prepare(template)
    for values in calls:
        same(
            lambda v=values: query(**v),
            lambda v=values: ps.scan(path, filter=plain(**v), **options).to_table(),
        )


def test_rows_are_selected_and_numbered(path: Path) -> None:
    taken = np.arange(0, N, 2)
    scan = ps.scan(path, columns=["sorted", "i8"]).take(taken).with_row_number("n")
    query = scan.prepare(ps.col("sorted") == ps.param("k"))
    for k in (0, 5, 366, 367, 999):
        same(lambda k=k: query(k), lambda k=k: scan.filter(ps.col("sorted") == k).to_table())
    numbered = ps.scan(path, columns=["sorted"]).with_row_number("n")
    assert numbered.prepare(ps.col("sorted") == ps.param("k"))(900)["n"].to_pylist() == [
        2700,
        2701,
        2702,
    ]


def test_a_filter_that_was_there_counts(path: Path) -> None:
    scan = ps.scan(path, filter=(ps.col("i8") > ps.param("low")) & (ps.col("sorted") < 500))
    query = scan.prepare(ps.col("sorted") >= ps.param("first"))
    assert query.parameters == ("low", "first")
    condition = (ps.col("i8") > 3) & (ps.col("sorted") < 500) & (ps.col("sorted") >= 400)
    same(lambda: query(low=3, first=400), lambda: ps.read_table(path, filter=condition))
    assert query.bind(low=3, first=400).count_rows() == ps.scan(path, filter=condition).count_rows()


def test_errors_name_the_parameter(path: Path) -> None:
    scan = ps.scan(path)
    query = scan.prepare((ps.col("sorted") == ps.param("k")) & (ps.col("text") == ps.param("t")))
    with pytest.raises(TypeError, match=r"no value for param\('t'\): call the query with t=..."):
        query(k=5)
    with pytest.raises(
        TypeError, match=r"no parameter 'u': did you mean|no parameter 'u': there are 'k', 't'"
    ):
        query(k=5, u=6)
    with pytest.raises(
        TypeError, match=r"1 values without a name: call the query with k=..., t=..."
    ):
        query(5)
    with pytest.raises(
        ps.PredicateError, match=r"param\('t'\): column 'text' of type string .* with 6"
    ):
        query(k=5, t=6)
    with pytest.raises(
        ps.PredicateError, match=r"param\('k'\): column 'sorted'.* give a number, not a str"
    ):
        query(k="5", t="x")
    with pytest.raises(ps.PredicateError, match=r"param\('k'\): .* is no value"):
        query(k=ps.col("i8"), t="x")
    with pytest.raises(ps.PredicateError, match=r"param\('ks'\): 5 is no list"):
        scan.prepare(ps.col("sorted").isin(ps.param("ks")))(5)
    with pytest.raises(ps.PredicateError, match=r"param\('k'\) stands for a list in isin"):
        scan.prepare(ps.col("i8").isin(ps.param("k")) & (ps.col("sorted") == ps.param("k")))


def test_errors_of_preparing(path: Path) -> None:
    with pytest.raises(ps.PredicateError, match="no column 'nope'"):
        ps.scan(path).prepare(ps.col("nope") == ps.param("k"))
    with pytest.raises(ps.PredicateError, match="no column 'nope'"):
        ps.scan(path, columns=["nope"]).prepare(ps.col("i8") == ps.param("k"))
    with pytest.raises(ps.PredicateError, match="a pattern is no parameter"):
        ps.col("text").like(ps.param("k"))  # type: ignore[arg-type]
    for name in ("", "a b", 5):
        with pytest.raises(ps.PredicateError, match="a name, as of an argument"):
            ps.param(name)  # type: ignore[arg-type]
    with pytest.raises(ps.PredicateError, match="is not a condition"):
        (ps.col("i8") == 5) & ps.param("k")  # type: ignore[operator]
    for condition in (
        ps.col("i8") == ps.param("k"),
        ps.col("i8").isin(ps.param("k")),
        ps.col("text").starts_with(ps.param("k")),  # type: ignore[arg-type]
    ):
        with pytest.raises(
            ps.PredicateError, match=r"param\('k'\) has no value: give the filter to"
        ):
            ps.read_table(path, filter=condition)


# -- many keys -------------------------------------------------------------------------------------


def expected(query: Any, keys: list[Any], name: str = "key_place") -> pa.Table:
    tables = []
    for i, key in enumerate(keys):
        table = query(key) if not isinstance(key, dict) else query(**key)
        places = pa.array([i] * table.num_rows, pa.int64())
        tables.append(table.add_column(0, pa.field(name, pa.int64(), nullable=False), places))
    schemas_differ = any(table.schema != tables[0].schema for table in tables)
    return pa.concat_tables(tables, promote_options="permissive" if schemas_differ else "none")


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("nan", ["ieee", "spark"])
def test_many_keys_of_each_type(path: Path, kind: str, nan: str) -> None:
    rng = random.Random(kind)
    query = (
        ps.scan(path, nan=nan).select("sorted", kind, "list").prepare(ps.col(kind) == ps.param("k"))
    )
    own = [column(kind, rng.randrange(N)) for _ in range(90)]
    odd = [value for value in ODD if not isinstance(answer(lambda v=value: query(v)), tuple)]
    for keys in (own, own[:20] + odd + own[:20], own[:1], [None], odd):
        same(lambda k=keys: query.many(k), lambda k=keys: expected(query, k))
    if kind not in ("uuid", "f16", "coded", "view"):
        array = pa.array(own, TYPES[kind])
        same(lambda: query.many(array), lambda: expected(query, list(array)))
        same(lambda: query.many({"k": array}), lambda: expected(query, list(array)))
        same(lambda: query.many(pa.table({"k": array})), lambda: expected(query, list(array)))


def test_many_keys_where_the_column_is_not_given(path: Path) -> None:
    for columns in ([], ["i8"], ["i8", "struct.a"]):
        query = ps.scan(path, columns=columns).prepare(ps.col("sorted") == ps.param("k"))
        keys = [5, 900, 5, -3, 17.0, 17.5]
        assert query.many(keys)["key_place"].to_pylist() == [0] * 3 + [1] * 3 + [2] * 3 + [4] * 3
        same(lambda q=query, k=keys: q.many(k), lambda q=query, k=keys: expected(q, k))
    numbered = (
        ps.scan(path, columns=["i8"])
        .with_row_number("n")
        .prepare(ps.col("sorted") == ps.param("k"))
    )
    same(lambda: numbered.many(keys, place="key"), lambda: expected(numbered, keys, "key"))


@pytest.mark.parametrize("limit", [None, 0, 1, 2, 50])
def test_many_keys_of_several_parameters(path: Path, limit: int | None) -> None:
    scan = ps.scan(path, columns=["sorted", "text"], limit=limit)
    query = scan.prepare(
        (ps.col("bool") == ps.param("b")) & (ps.col("text") == ps.param("t")) & (ps.col("i8") != 3)
    )
    rng = random.Random(3)
    keys = [
        {"b": column("bool", i), "t": column("text", j)}
        for i in range(9)
        for j in rng.choices(range(N), k=3)
    ]
    keys += [{"b": column("bool", i), "t": column("text", i)} for i in rng.choices(range(N), k=60)]
    columns = {"t": [key["t"] for key in keys], "b": [key["b"] for key in keys]}
    same(lambda: query.many(columns), lambda: expected(query, keys))


def test_many_keys_of_other_filters(path: Path) -> None:
    between = ps.scan(path, columns=["sorted"]).prepare(
        ps.col("sorted").between(ps.param("a"), ps.param("b"))
    )
    keys = [{"a": 5, "b": 7}, {"a": 7, "b": 5}, {"a": 6, "b": 8}]
    same(lambda: between.many({"a": [5, 7, 6], "b": [7, 5, 8]}), lambda: expected(between, keys))
    inside = ps.scan(path, columns=["sorted"]).prepare(ps.col("struct.a") == ps.param("k"))
    same(lambda: inside.many([5, 400, 5]), lambda: expected(inside, [5, 400, 5]))
    lists = ps.scan(path, columns=["sorted"]).prepare(ps.col("sorted").isin(ps.param("ks")))
    same(lambda: lists.many([[5, 6], [], [7]]), lambda: expected(lists, [[5, 6], [], [7]]))


def test_many_without_keys(path: Path) -> None:
    query = ps.scan(path).prepare(ps.col("sorted") == ps.param("k"))
    none = query.many([])
    assert none.num_rows == 0
    assert none.schema == query.many([5]).schema


def test_errors_of_many(path: Path) -> None:
    query = ps.scan(path).prepare(ps.col("sorted") == ps.param("k"))
    with pytest.raises(
        ps.PredicateError, match=r"there is a column 'i8'; .* many\(keys, place=...\)"
    ):
        query.many([5], place="i8")
    with pytest.raises(ps.PredicateError, match=r"param\('k'\): column 'sorted' .* with 'x'"):
        query.many([5, "x"])
    with pytest.raises(ps.PredicateError, match=r"param\('k'\): give a list of keys"):
        query.many("abc")
    two = ps.scan(path).prepare(
        (ps.col("sorted") == ps.param("k")) & (ps.col("text") == ps.param("t"))
    )
    with pytest.raises(TypeError, match=r"give a table or {'k': \[...\], 't': \[...\]}"):
        two.many([5])
    with pytest.raises(TypeError, match=r"no keys for param\('t'\)"):
        two.many({"k": [5]})
    with pytest.raises(TypeError, match="no parameter 'u'"):
        two.many({"k": [5], "t": ["a"], "u": [1]})
    with pytest.raises(ps.PredicateError, match="'k' has 1, 't' has 2"):
        two.many({"k": [5], "t": ["a", "b"]})


# -- files, threads, processes ---------------------------------------------------------------------


def test_several_files(tmp_path: Path) -> None:
    """Folders are columns, a file lacks a column, another has a narrower one."""
    for i, day in enumerate(("2024-01-01", "2024-01-02", "2024-01-03")):
        folder = tmp_path / f"day={day}"
        folder.mkdir()
        columns = {
            "k": pa.array(range(i * 50, i * 50 + 100), [pa.int32(), pa.int64(), pa.int16()][i])
        }
        if i != 1:
            columns["v"] = pa.array([f"{i} {j}" for j in range(100)])
        pq.write_table(
            pa.table(columns), folder / "a.parquet", write_page_index=True, max_rows_per_page=10
        )
    scan = ps.scan(tmp_path)
    query = scan.prepare(ps.col("k") == ps.param("k"))
    for k in (3, 60, 149, 199, 500, 2**40, None):
        same(lambda k=k: query(k), lambda k=k: scan.filter(ps.col("k") == k).to_table())
    same(lambda: query.many([60, 3, 149, None]), lambda: expected(query, [60, 3, 149, None]))
    by_day = scan.prepare((ps.col("day") == ps.param("d")) & (ps.col("v") == ps.param("v")))
    for day, v in (
        (dt.date(2024, 1, 1), "0 7"),
        ("2024-01-03", "2 9"),
        (dt.date(2024, 1, 2), "0 7"),
        (None, "0 7"),
    ):
        condition = (ps.col("day") == day) & (ps.col("v") == v)
        same(lambda d=day, v=v: by_day(d=d, v=v), lambda c=condition: scan.filter(c).to_table())
    keys = [{"d": dt.date(2024, 1, 1), "v": "0 7"}, {"d": dt.date(2024, 1, 3), "v": "2 9"}]
    given = {"d": [k["d"] for k in keys], "v": [k["v"] for k in keys]}
    same(lambda: by_day.many(given), lambda: expected(by_day, keys))


@pytest.mark.parametrize("in_place", [False, True])
def test_a_file_that_changes_is_read_anew(tmp_path: Path, in_place: bool) -> None:
    path = tmp_path / "a.parquet"

    def write(step: int, rows: int) -> None:
        table = pa.table({"k": range(rows), "v": [i * step for i in range(rows)]})
        at = path if in_place else tmp_path / "b.parquet"
        pq.write_table(table, at, write_page_index=True, max_rows_per_page=100)
        os.replace(at, path)

    write(1, 1_000)
    query = ps.scan(path).prepare(ps.col("k") == ps.param("k"))
    assert query(7).to_pylist() == [{"k": 7, "v": 7}]
    write(3, 2_000)
    assert query(7).to_pylist() == [{"k": 7, "v": 21}]
    assert query(1_500).to_pylist() == [{"k": 1_500, "v": 4_500}]
    assert query.many([1_500, 7])["v"].to_pylist() == [4_500, 21]
    pq.write_table(pa.table({"k": ["7"], "v": [1.5]}), path)
    with pytest.raises(ps.PredicateError, match=r"param\('k'\): column 'k' of type string"):
        query(7)
    assert query("7").to_pylist() == [{"k": "7", "v": 1.5}]
    path.unlink()
    with pytest.raises(FileNotFoundError):
        query("7")


def test_threads_share_a_query(path: Path) -> None:
    query = ps.scan(path).select("sorted", "text", "i64").prepare(ps.col("sorted") == ps.param("k"))
    plain = {
        k: ps.scan(path).select("sorted", "text", "i64").filter(ps.col("sorted") == k).to_table()
        for k in range(0, 1000, 9)
    }
    failed: list[Any] = []

    def run(seed: int) -> None:
        rng = random.Random(seed)
        try:
            for _ in range(200):
                k = rng.choice(list(plain))
                assert query(k).equals(plain[k])
            keys = rng.choices(list(plain), k=20)
            assert (
                query.many(keys)
                .drop_columns("key_place")
                .equals(pa.concat_tables([plain[k] for k in keys]).combine_chunks())
            )
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_a_forked_process_goes_on(path: Path) -> None:
    if "fork" not in mp.get_all_start_methods():
        pytest.skip("no fork here")
    query = ps.scan(path, columns=["sorted", "i8"]).prepare(ps.col("sorted") == ps.param("k"))
    wanted = query(5).to_pylist()
    receiver, sender = mp.get_context("fork").Pipe(duplex=False)
    child = mp.get_context("fork").Process(target=lambda: sender.send(query(5).to_pylist()))
    child.start()
    assert receiver.poll(60) and receiver.recv() == wanted
    child.join(60)


def test_another_process_loads_it(path: Path, tmp_path: Path) -> None:
    query = ps.scan(path, columns=["sorted", "i8"]).prepare(ps.col("sorted") == ps.param("k"))
    again = pickle.loads(pickle.dumps(query))
    assert again(5).to_pylist() == query(5).to_pylist()
    assert again.parameters == query.parameters
    (tmp_path / "query").write_bytes(pickle.dumps(query))
    code = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb'))(5).to_pylist())"
    command = [sys.executable, "-c", code, str(tmp_path / "query")]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    assert run.stdout.strip() == str(query(5).to_pylist())


def test_bytes_in_memory(path: Path) -> None:
    data = path.read_bytes()
    query = ps.scan(data, columns=["sorted", "text"]).prepare(ps.col("sorted") == ps.param("k"))
    for k in (5, 999, -1):
        same(
            lambda k=k: query(k),
            lambda k=k: ps.read_table(data, ["sorted", "text"], ps.col("sorted") == k),
        )


def test_asyncio(path: Path) -> None:
    query = ps.scan(path, columns=["sorted", "text"]).prepare(ps.col("sorted") == ps.param("k"))

    async def all_of() -> None:
        found = await asyncio.gather(*[query.aio(k) for k in range(0, 1_000, 7)])
        for k, table in zip(range(0, 1_000, 7), found, strict=True):
            assert table.equals(query(k))
        assert (await query.aio.many([5, 900, 5])).equals(query.many([5, 900, 5]))
        with pytest.raises(ps.PredicateError, match=r"param\('k'\): column 'sorted'"):
            await query.aio("x")
        with pytest.raises(TypeError, match="no value for param"):
            await query.aio()

    asyncio.run(all_of())


# -- random files, and files of others -------------------------------------------------------------


@pytest.mark.parametrize("seed", range(24))
def test_random_files(tmp_path: Path, seed: int) -> None:
    """Codecs, versions of pages, sizes of pages and row groups, dictionaries, nulls, duplicates over pages."""
    rng = random.Random(seed)
    n, spread = rng.choice([1, 50, 2_000]), rng.choice([3, 40, 10_000])
    nulls = rng.choice([0.0, 0.2, 0.95])

    def some(make: Callable[[int], Any]) -> list[Any]:
        return [None if rng.random() < nulls else make(rng.randrange(spread)) for _ in range(n)]

    table = pa.table(
        {
            "i": pa.array(some(lambda v: v), pa.int64()),
            "s": pa.array(some(lambda v: f"s{v}")),
            "f": pa.array(some(lambda v: v / 2), pa.float32()),
            "l": pa.array(some(lambda v: [v, None])),
        }
    )
    if rng.random() < 0.6:
        table = table.sort_by(rng.choice(["i", "s", "f"]))
    path = tmp_path / "a.parquet"
    pq.write_table(
        table, path, row_group_size=rng.choice([7, 300, 5_000]), max_rows_per_page=rng.choice([1, 10, 300]),
        compression=rng.choice(["none", "snappy", "zstd", "lz4", "gzip", "brotli"]), data_page_size=rng.choice([64, 1 << 20]),
        data_page_version=rng.choice(["1.0", "2.0"]), use_dictionary=rng.random() < 0.5,
        write_page_index=rng.random() < 0.8, write_statistics=rng.random() < 0.9,
        write_page_checksum=rng.random() < 0.5,
    )  # fmt: skip
    for name, make in (("i", lambda v: v), ("s", lambda v: f"s{v}"), ("f", lambda v: v / 2)):
        columns = rng.sample(table.column_names, rng.randrange(5))
        scan = ps.scan(path, columns=columns)
        equal, below = (
            scan.prepare(ps.col(name) == ps.param("k")),
            scan.prepare(ps.col(name) < ps.param("k")),
        )
        both = scan.prepare((ps.col(name) == ps.param("k")) & (ps.col("i") >= ps.param("low")))
        keys = [make(rng.randrange(spread)) for _ in range(8)]
        for k in keys:
            same(
                lambda q=equal, k=k: q(k),
                lambda k=k, s=scan, m=name: s.filter(ps.col(m) == k).to_table(),
            )
            same(
                lambda q=below, k=k: q(k),
                lambda k=k, s=scan, m=name: s.filter(ps.col(m) < k).to_table(),
            )
            same(
                lambda q=both, k=k: q(k=k, low=spread // 3),
                lambda k=k, s=scan, m=name: s.filter(
                    (ps.col(m) == k) & (ps.col("i") >= spread // 3)
                ).to_table(),
            )
        same(lambda q=equal, k=keys: q.many(k), lambda q=equal, k=keys: expected(q, k))


def _flat(schema: pa.Schema) -> list[str]:
    return [
        f.name for f in schema if not pa.types.is_nested(f.type) and schema.names.count(f.name) == 1
    ][:6]


@pytest.mark.parametrize("kind", ["valid", "odd", "hostile"])
def test_corpus(conformance: Path, kind: str) -> None:
    """Files of other writers, damaged ones too: the rows or the error of the plain scan, whatever column is tested."""
    tried = by_core = 0
    for path in sorted((conformance / "corpus" / kind).rglob("*.parquet")):
        whole = answer(lambda p=path: ps.scan(p).limit(200).to_table())
        if isinstance(whole, tuple):
            continue
        flat = _flat(whole.schema)
        for name in flat:
            column = ps.col(name)
            picks = sorted({0, whole.num_rows // 2}) if whole.num_rows else []
            values = [whole.column(name)[i] for i in picks] or [None]
            for columns in (None, flat):
                scan = ps.scan(path, columns=columns)
                query = answer(lambda s=scan, c=column: s.prepare(c == ps.param("k")))
                if isinstance(query, tuple):
                    continue
                tried += 1
                for value in values:
                    same(
                        lambda q=query, v=value: q(v),
                        lambda s=scan, c=column, v=value: s.filter(c == v).to_table(),
                    )
                    by_core += not isinstance(
                        answer(lambda q=query, v=value: point_table(q, k=v)), (tuple, type(None))
                    )
    assert tried
    assert by_core or kind == "odd"


@pytest.mark.parametrize("seed", range(30))
def test_damaged_files(tmp_path: Path, seed: int) -> None:
    """Whatever byte is wrong: the rows or the error of the plain scan."""
    rng = random.Random(seed)
    n = 600
    table = pa.table(
        {
            "k": pa.array([i // 3 for i in range(n)], pa.int32()),
            "s": pa.array([f"text {i % 40}" if i % 7 else None for i in range(n)]),
            "f": pa.array([i / 8 for i in range(n)]),
        }
    )
    path = tmp_path / "a.parquet"
    pq.write_table(
        table, path, row_group_size=400, max_rows_per_page=50, compression=rng.choice(["none", "snappy", "zstd", "lz4"]),
        write_page_index=True, use_dictionary=["s"], data_page_version=rng.choice(["1.0", "2.0"]),
    )  # fmt: skip
    data = path.read_bytes()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    for step in range(40):
        wrong = bytearray(data)
        for _ in range(rng.randrange(1, 4)):
            # the pages for the most part, and the page index behind them
            at = (
                rng.randrange(4, footer) if rng.random() < 0.9 else rng.randrange(footer, len(data))
            )
            wrong[at] = rng.randrange(256)
        damaged = tmp_path / f"{step}.parquet"
        damaged.write_bytes(wrong)
        query = answer(lambda p=damaged: ps.scan(p).prepare(ps.col("k") == ps.param("k")))
        if isinstance(query, tuple):
            continue
        for k in (rng.randrange(n // 3), rng.randrange(n // 3)):
            first = answer(lambda p=damaged, k=k: ps.read_table(p, filter=ps.col("k") == k))
            ps.clear_cache()
            ours = answer(lambda q=query, k=k: q(k))
            ps.clear_cache()
            if isinstance(first, tuple):
                assert isinstance(ours, tuple) and ours[0] is first[0]
            else:
                assert not isinstance(ours, tuple), ours
                assert ours.equals(first)


def test_a_fault_in_a_page_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"k": range(1_000), "v": [f"value {i}" for i in range(1_000)]})
    pq.write_table(
        table, path, write_page_index=True, max_rows_per_page=100, use_dictionary=False,
        compression="none", write_page_checksum=True,
    )  # fmt: skip
    query = ps.scan(path).prepare(ps.col("k") == ps.param("k"))
    assert query(555).num_rows == 1
    data = path.read_bytes()
    at = data.index(b"value 555")
    path.write_bytes(data[:at] + b"V" + data[at + 1 :])
    with pytest.raises(
        ps.CorruptFileError,
        match=r"a.parquet: column 'v', row group 0, page 5 at byte \d+: .*checksum",
    ):
        query(555)
    assert query(455).num_rows == 1


def test_a_file_changes_under_a_call(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written into the file after it was looked at is told by the look afterwards."""
    at = tmp_path / "a.parquet"
    at.write_bytes(path.read_bytes())
    query = ps.scan(at, columns=["sorted"]).prepare(ps.col("sorted") == ps.param("k"))
    assert query(5).num_rows == 3
    plain = PointPlan._is_small

    def changing(self: Any, found: Any, leaves: Any) -> bool:
        os.utime(at, ns=(1, 1))
        return plain(self, found, leaves)

    monkeypatch.setattr(PointPlan, "_is_small", changing)
    with pytest.raises(ps.FileChangedError, match="changed while it was being read"):
        query(5)
    monkeypatch.undo()
    assert query(5).num_rows == 3


def test_what_goes_another_way(path: Path, tmp_path: Path) -> None:
    def fast(scan: ps.Scan, condition: Any = None, **values: Any) -> bool:
        query = scan.prepare(ps.col("sorted") == ps.param("k") if condition is None else condition)
        return point_table(query, **(values or {"k": 5})) is not None

    flat = ps.scan(path, columns=FLAT)
    assert fast(flat)
    assert fast(flat.limit(1))
    assert fast(ps.scan(path, columns=[]))
    assert fast(ps.scan(path, columns=["text"], string_type="view"))
    assert fast(flat, ps.col("sorted").between(ps.param("a"), ps.param("b")), a=5, b=50)
    assert fast(flat, ps.col("sorted").isin(ps.param("ks")), ks=[5, 900])
    assert fast(flat, ~(ps.col("sorted") > ps.param("k")) & ps.col("i8").is_not_null(), k=5)
    assert not fast(ps.scan(path))  # nested columns
    assert not fast(ps.scan(path, columns=["coded"]))
    assert not fast(ps.scan(path, columns=["text"], dictionary_columns=["text"]))
    assert not fast(flat.with_row_number("n"))
    assert not fast(flat.take([5]))
    assert not fast(ps.scan(path, columns=FLAT, prune=["statistics"]))
    assert not fast(ps.scan([path, path], columns=["i8"]))
    assert not fast(ps.scan(path.read_bytes(), columns=["i8"]))
    assert not fast(flat, (ps.col("sorted") == ps.param("k")) | (ps.col("i8") == 1))
    assert not fast(flat, ps.col("struct.a") == ps.param("k"))
    other = tmp_path / "no_index.parquet"
    pq.write_table(pa.table({"sorted": range(1_000)}), other, max_rows_per_page=100)
    assert not fast(ps.scan(other))


def test_page_headers_serve_where_there_is_no_index(tmp_path: Path) -> None:
    """They are read by the first call, which goes the way of every scan."""
    path = tmp_path / "a.parquet"
    table = pa.table({"k": range(400_000), "v": [f"{i:030}" for i in range(400_000)]})
    pq.write_table(table, path, max_rows_per_page=10_000, use_dictionary=False, compression="none")
    query = ps.scan(path).prepare(ps.col("k") == ps.param("k"))
    assert point_table(query, k=5) is None
    for k in (5, 150_000, 399_999, 400_000):
        same(lambda k=k: query(k), lambda k=k: ps.read_table(path, filter=ps.col("k") == k))
    assert point_table(query, k=5) is not None
