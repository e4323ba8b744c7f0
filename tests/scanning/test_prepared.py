"""Prepared queries: with each value they give what the scan with this value in its filter gives, for every type of column."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from support.prepared_queries import (
    FLAT,
    ODD,
    TYPES,
    N,
    answer,
    column,
    expected,
    point_table,
    same,
    written,
)

pytestmark = pytest.mark.usefixtures("scans")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("prepared") / "all.parquet")


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
        ps.PredicateError,
        match=r"param\('t'\): .*all.parquet: column 'text' of type string .* with 6",
    ):
        query(k=5, t=6)
    with pytest.raises(
        ps.PredicateError,
        match=r"param\('k'\): .*all.parquet: column 'sorted'.* give a number, not a str",
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
    with pytest.raises(
        ps.PredicateError, match=r"param\('k'\): .*all.parquet: column 'sorted' .* with 'x'"
    ):
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


@pytest.mark.parametrize("codec", ["none", "snappy", "zstd"])
def test_large_pages_on_several_threads(tmp_path: Path, codec: str) -> None:
    """Leaves with much to unpack are shared among threads, while other calls share the query."""
    rng, n = np.random.default_rng(7), 20_000
    table = pa.table(
        {
            "id": np.arange(n),
            "digits": [f"{value:060d}" for value in rng.integers(0, 1 << 62, n)],
            "blob": [rng.bytes(40) for _ in range(n)],
            "double": pa.array(rng.random(n), mask=rng.random(n) < 0.1),
            "few": pa.array([f"word {value}" for value in rng.integers(0, 50, n)]),
        }
    )
    path = tmp_path / "a.parquet"
    pq.write_table(
        table, path, compression=codec, write_page_index=True, max_rows_per_page=n // 2,
        data_page_size=1 << 24, use_dictionary=["few"],
    )  # fmt: skip
    keys = [0, n // 2 - 1, n // 2, n - 1, *rng.integers(0, n, 20).tolist()]
    for threads in (1, 2, 8):
        query = ps.scan(path, threads=threads).prepare(ps.col("id") == ps.param("k"))
        assert point_table(query, k=5) is not None
        with ThreadPoolExecutor(4) as pool:
            for key, found in zip(keys, pool.map(query, keys), strict=True):
                assert found.equals(table.slice(key, 1))
        between = ps.scan(path, threads=threads).prepare(
            ps.col("id").between(ps.param("first"), ps.param("last"))
        )
        for first in (0, n // 2 - 3, n - 5):
            assert between(first=first, last=first + 4).equals(table.slice(first, 5))
