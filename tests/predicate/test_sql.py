"""SQL filters: the meaning of each form, and the errors of invalid ones."""

from __future__ import annotations

import datetime as dt
import functools
import io
import operator
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.predicate.expression import Constant, Or
from pageseek.predicate.filters import to_expression
from pageseek.predicate.literal import Number
from pageseek.predicate.sql import parse
from support.tiers import FULL

a, b, s = ps.col("a"), ps.col("b"), ps.col("s")
UTC = dt.UTC


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a > 5", a > 5),
        ("5 < a", a > 5),
        ("5 >= a", a <= 5),
        ("a == -5", a == -5),
        ("a <> +5", a != 5),
        ("a = 123456789012345678901234567890", a == 123456789012345678901234567890),
        ("a = 1.50", a == Number("1.50")),
        ("a = .5", a == Number("0.5")),
        ("a = 1.5e-3", a == 0.0015),
        ("a = 1E3", a == 1000.0),
        ("s = 'it''s'", s == "it's"),
        ("s = ''", s == ""),
        ("s = X'00fF'", s == b"\x00\xff"),
        ("a = date '2024-01-31'", a == dt.date(2024, 1, 31)),
        ("a = TIMESTAMP '2024-01-31 12:30'", a == dt.datetime(2024, 1, 31, 12, 30)),
        (
            "a = timestamp '2024-01-31T12:30:05.25'",
            a == dt.datetime(2024, 1, 31, 12, 30, 5, 250000),
        ),
        ("a = timestamp '2024-01-31 12:30Z'", a == dt.datetime(2024, 1, 31, 12, 30, tzinfo=UTC)),
        ("a = time '12:30:00.5'", a == dt.time(12, 30, 0, 500000)),
        ("a = decimal '1.10'", a == Decimal("1.10")),
        ("a = double 'inf'", a == float("inf")),
        ("a IS NULL and b Is Not Null", a.is_null() & b.is_not_null()),
        ("a is nan or not is_nan(b)", a.is_nan() | ~b.is_nan()),
        ("a in (1, 2, null)", a.isin([1, 2, None])),
        ("a not in ('x')", ~a.isin(["x"])),
        ("a between 1 and 2 and b = 3", a.between(1, 2) & (b == 3)),
        ("a not between 1 and 2", ~a.between(1, 2)),
        ("s like 'a%'", s.like("a%")),
        ("s not like 'a!%' escape '!'", ~s.like("a!%", "!")),
        ("starts_with(s, 'x')", s.starts_with("x")),
        ("a < b", a < b),
        ("a between b and 9", (a >= b) & (a <= 9)),
        ("flag", ps.col("flag") == True),  # noqa: E712
        ("not flag", ~(ps.col("flag") == True)),  # noqa: E712
        ("'x' = any(tags)", ps.col("tags").any() == "x"),
        ("5 < ANY(tags)", ps.col("tags").any() > 5),
        ("array_contains(a.tags, 'x')", ps.col("a.tags").any() == "x"),
        ('"odd name" = 1', ps.col("odd name") == 1),
        ('"a ""b""" = 1', ps.col('a "b"') == 1),
        ("`a b`.c = 1", ps.col("a b", "c") == 1),
        ("a.b.c = 1", ps.col("a.b.c") == 1),
        ('"a.b".c = 1', ps.col("a.b", "c") == 1),
        ("date = '2024-01-31'", ps.col("date") == "2024-01-31"),
        ("(a) > 5", a > 5),
        ("((a > 5))", a > 5),
        ("a > 5 -- of late\nand b < 3", (a > 5) & (b < 3)),
        ("not not a > 5", a > 5),
        ("a = 1 or b = 2 and s = 'x'", (a == 1) | ((b == 2) & (s == "x"))),
        ("(a = 1 or b = 2) and s = 'x'", ((a == 1) | (b == 2)) & (s == "x")),
        ("any = 1 and escape = 2", (ps.col("any") == 1) & (ps.col("escape") == 2)),
    ],
)
def test_what_is_written_is_what_the_expression_says(text: str, expected: Any) -> None:
    assert repr(to_expression(text)) == repr(to_expression(expected))


@pytest.mark.parametrize(
    ("text", "caret", "words"),
    [
        ("", 0, "a column or a value"),
        ("a >", 3, "a column or a value"),
        ("a > 5 b", 6, "AND, OR or the end"),
        ("a + 1 > 5", 2, "without arithmetic|comparison"),
        ("a * 2 = 5", 2, "without arithmetic"),
        ("a = 'x", 4, "never closed"),
        ('"a = 1', 0, "never closed"),
        ("a in ()", 6, "at least one value"),
        ("a in (1", 7, "to end the values"),
        ("a in (1, b)", 9, "not columns"),
        ("a is 5", 5, "NULL, NAN, TRUE, FALSE or UNKNOWN"),
        ("(a > 5", 6, "close the parenthesis"),
        ("a > 5)", 5, "AND, OR or the end"),
        ("1 = 'a'", 2, "two values"),
        ("true = 1", 5, "two values"),
        ("double 'nan' = 1.0", 13, "NaN is compared with columns only"),
        ("5", 1, "comparison"),
        ("upper(s) = 'X'", 0, "no function upper"),
        ("a = date '2024-13-01'", 9, "month"),
        ("a = date 'tomorrow'", 9, "'2024-01-31'"),
        ("a = time '25:00:00'", 9, "hour"),
        ("a = decimal '1e999999999'", 12, "no number"),
        ("a = X'1'", 4, "hexadecimal"),
        ("a = 12abc", 6, "run into each other"),
        ("s like 5", 2, "pattern of LIKE"),
        ("s like 'a' escape 'xy'", 18, "one character"),
        ("5 like 'a'", 2, "value before it"),
        ("a between 1 or 2", 12, "between the two ends"),
        ("a ; drop", 2, "no meaning"),
        ("any(a)", 6, "after ANY"),
        ("a = = 1", 4, "a column or a value"),
    ],
)
def test_an_error_points_at_the_character(text: str, caret: int, words: str) -> None:
    with pytest.raises(ps.PredicateError, match=words) as error:
        parse(text)
    head, line, mark = str(error.value).split("\n")
    assert head.startswith("filter: ")
    assert line == f"  {text}"
    assert mark.index("^") - 2 == caret


def test_an_error_in_a_long_text_shows_the_line_around_it() -> None:
    text = "a = 1 and\n" + "b = 2 and " * 1000 + "c = = 3\nand d = 4"
    with pytest.raises(ps.PredicateError) as error:
        parse(text)
    _, line, mark = str(error.value).split("\n")
    assert len(line) < 120
    assert line[mark.index("^")] == "="


# ---- meaning -------------------------------------------------------------------------------------

NS = 1_706_700_000_123_456_789
TABLE = pa.table(
    {
        "a": pa.array([1, None, 3, 4], pa.int64()),
        "f": pa.array([0.1, float("nan"), None, -0.0]),
        "flag": pa.array([True, False, None, True]),
        "d": pa.array([dt.date(2024, 1, 31), dt.date(2024, 2, 1), None, dt.date(1, 1, 1)]),
        "t": pa.array([NS, NS - 1, None, 0], pa.timestamp("ns")),
        "z": pa.array([NS, NS - 1, None, 0], pa.timestamp("ns", "Europe/Berlin")),
        "us": pa.array([NS // 1000, 0, None, 1], pa.timestamp("us")),
        "clock": pa.array([45_000_000_000_001, 0, None, 1], pa.time64("ns")),
        "m": pa.array([Decimal("0.10"), Decimal("-1.50"), None, Decimal("7.00")]),
        "s": pa.array(["x", "2024-01-31", None, ""]),
    }
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sql") / "t.parquet"
    pq.write_table(TABLE, path, row_group_size=2, write_page_index=True, store_schema=True)
    return path


def places(path: Path, text: str) -> list[int]:
    found = ps.scan(path, columns=["a"], filter=text).with_row_number("row").to_table()
    return list(found["row"].to_pylist())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a > 1", [2, 3]),
        ("not a > 1", [0]),
        ("a = null", []),
        ("not (a = null)", []),
        ("a in (1, null)", [0]),
        ("a not in (1, null)", []),
        ("a > 1 or null", [2, 3]),
        ("a > 1 and true", [2, 3]),
        ("false or a > 1", [2, 3]),
        ("null is null", [0, 1, 2, 3]),
        ("a > 1 is true", [2, 3]),
        ("a > 1 is not true", [0, 1]),
        ("(a > 1) is false", [0]),
        ("(a > 1) is not false", [1, 2, 3]),
        ("(a > 1) is null", [1]),
        ("(a > 1) is not null", [0, 2, 3]),
        ("not ((a > 1) is true)", [0, 1]),
        ("flag", [0, 3]),
        ("flag is not true", [1, 2]),
        ("flag is false", [1]),
        ("flag is null", [2]),
        ("not flag or a = 3", [1, 2]),
        ("f = 0.1", [0]),
        ("f = 0", [3]),
        ("f is nan", [1]),
        ("f is not nan", [0, 3]),
        ("m = 0.1", [0]),
        ("m = 0.100", [0]),
        ("m < -1.4999999999999999999999999999", [1]),
        ("m = 1e-1", []),
        ("a < 100000000000000000000000000", [0, 2, 3]),
        ("a = 1.0", [0]),
        ("a < 3.5", [0, 2]),
        ("d = '2024-01-31'", [0]),
        ("d > '2024-01-31 12:00:00'", [1]),
        ("d >= date '2024-01-31'", [0, 1]),
        ("d in ('2024-01-31', '0001-01-01')", [0, 3]),
        ("t = '2024-01-31 11:20:00.123456789'", [0]),
        ("t < timestamp '2024-01-31T11:20:00.123456789'", [1, 3]),
        ("t < '2024-01-31'", [3]),
        ("z = '2024-01-31 12:20:00.123456789+01:00'", [0]),
        ("z = timestamp '2024-01-31 11:20:00.123456789Z'", [0]),
        ("us <= '2024-01-31 11:20:00.123456789'", [0, 1, 3]),
        ("us < '2024-01-31 11:20:00.123456'", [1, 3]),
        ("clock = '12:30:00.000000001'", [0]),
        ("clock > time '00:00'", [0, 3]),
        ("s = '2024-01-31'", [1]),
        ("t = us", [3][:0]),
        ("d < t", [0, 3]),
    ],
)
def test_rows(path: Path, text: str, expected: list[int]) -> None:
    assert places(path, text) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("d = 'soon'", "write it as date '2024-01-31'"),
        ("z = '2024-01-31'", "give a value with a time zone"),
        ("t = '2024-01-31Z'", "write it as"),
        ("t = '2024-01-31 10:00Z'", "give a value without one"),
        ("t = z", "one has a time zone"),
        ("m = '0.1'", "without quotes"),
        ("a = '1'", "without quotes"),
        ("a = s", "cannot be compared"),
        ("clock = 'noon'", "12:30:00"),
        ("a", "cannot be compared with true"),
        ("a like '1%'", "no text"),
        ("nope = 1", "no column 'nope'"),
    ],
)
def test_what_has_no_meaning_is_an_error_with_a_remedy(path: Path, text: str, words: str) -> None:
    with pytest.raises(ps.PredicateError, match=words):
        places(path, text)


def test_sql_is_taken_wherever_a_filter_is(path: Path) -> None:
    assert ps.read_table(path, filters="a > 1").num_rows == 2
    assert ps.scan(path).filter("a > 1").filter("a < 4").count_rows() == 1
    plan = pickle.loads(pickle.dumps(ps.scan(path, filter="m = 0.1 and t < '2024-02-01'").plan()))
    assert sum(batch.num_rows for batch in plan.execute()) == 1


# ---- size and depth ------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["({})", "not({})"])
def test_deep_nesting_is_a_clear_error(path: Path, text: str) -> None:
    opened, closed = text.split("{}")
    assert len(places(path, opened * 90 + "a = 1" + closed * 90)) == 1
    for depth in (101, 900, 50_000):
        with pytest.raises(ps.PredicateError, match="limit of 100"):
            parse(opened * depth + "a = 1" + closed * depth)


def test_expressions_of_any_depth_are_shown_and_refused_without_recursion(path: Path) -> None:
    nots, deep = a == 1, a == 1
    for _ in range(4001):
        nots = ~nots
        deep = ~deep & (b > 0)
    assert repr(nots).startswith("not (")
    assert ps.scan(path, filter=nots).count_rows() == 2
    assert repr(deep)
    with pytest.raises(ps.PredicateError, match="limit of 100"):
        ps.scan(path, filter=deep)


def test_long_chains_are_no_depth(path: Path) -> None:
    n = 20_000 if FULL else 4_000  # frames of Python are fewer
    assert places(path, " or ".join(f"a = {i}" for i in range(3, n))) == [2, 3]
    assert places(path, " and ".join(f"a <> {i}" for i in range(3, n))) == [0]
    assert places(path, " and ".join(f"a > {i}" for i in range(-n, 2))) == [2, 3]
    assert places(path, "not " * n + "a = 1") == [0]
    chain = functools.reduce(operator.or_, [a == i for i in range(3, n)])
    made = to_expression(chain)
    assert isinstance(made, Or)
    assert len(made.args) == n - 3
    assert ps.scan(path, filter=chain).count_rows() == 2


def test_numbers_of_any_length(path: Path) -> None:
    assert places(path, "a < " + "9" * 10_000) == [0, 2, 3]
    assert places(path, "a > -" + "9" * 10_000) == [0, 2, 3]
    assert places(path, "f < 1e400") == [0, 3]
    assert places(path, "a in (1, " + ", ".join(map(str, range(1000, 3000))) + ")") == [0]


# ---- many literals -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["list", "numpy", "arrow", "chunked", "pandas"])
@pytest.mark.parametrize("column", ["a", "f", "s", "d", "t", "us"])
def test_isin_takes_arrays_of_many_values(path: Path, column: str, kind: str) -> None:
    base: dict[str, Any] = {
        "a": pa.array(range(3, 500)),
        "f": pa.array([0.1, *map(float, range(1, 300))]),
        "s": pa.array(["", *map(str, range(300))]),
        "d": pa.array([dt.date(2024, 1, 1) + dt.timedelta(i) for i in range(200)]),
        "t": pa.array([NS, *range(5, 200)], pa.timestamp("ns")),
        "us": pa.array([NS // 1000, *range(1, 200)], pa.timestamp("us")),
    }
    values = base[column]
    given: Any = {
        "list": lambda: values.to_pylist() if column != "t" else list(values),
        "numpy": lambda: values.to_numpy(zero_copy_only=False),
        "arrow": lambda: values,
        "chunked": lambda: pa.chunked_array([values[:7], values[7:]]),
        "pandas": lambda: values.to_pandas(),
    }[kind]()
    wanted = {"a": [2, 3], "f": [0], "s": [3], "d": [0, 1], "t": [0], "us": [0, 3]}[column]
    test = ps.col(column).isin(given)
    assert places(path, test) == wanted  # type: ignore[arg-type]
    assert places(path, pickle.loads(pickle.dumps(test))) == wanted  # type: ignore[arg-type]
    rest = [i for i, v in enumerate(TABLE[column].is_valid().to_pylist()) if v and i not in wanted]
    assert places(path, ~test) == rest  # type: ignore[arg-type,operator]


def test_isin_of_many_values_of_other_types_and_nulls(path: Path) -> None:
    wide = [2**70, 3, *range(10**10, 10**10 + 100)]
    assert places(path, a.isin(wide)) == [2]  # type: ignore[arg-type]
    halves = [3.5, 4.0, float("nan"), *(i + 0.5 for i in range(100))]
    assert places(path, a.isin(halves)) == [3]  # type: ignore[arg-type]
    assert places(path, ~a.isin([None, *range(3, 100)])) == []  # type: ignore[arg-type]
    assert places(path, a.isin(np.arange(3, 200, dtype=np.uint64))) == [2, 3]  # type: ignore[arg-type]
    assert places(path, ps.col("f").isin([float("nan"), *map(float, range(100))])) == [3]  # type: ignore[arg-type]
    with pytest.raises(ps.PredicateError):
        places(path, a.isin([str(i) for i in range(100)]))  # type: ignore[arg-type]


def test_a_million_values(path: Path) -> None:
    n = 1_000_000
    assert places(path, a.isin(list(range(3, n)))) == [2, 3]  # type: ignore[arg-type]
    assert places(path, s.isin([*map(str, range(n)), "x"])) == [0]  # type: ignore[arg-type]


def test_many_values_at_the_ends_of_a_type() -> None:
    least, most = -(2**63), 2**63 - 1
    table = pa.table(
        {
            "i": pa.array([least, most, 0]),
            "t": pa.array([least, most, 0], pa.timestamp("ns")),
            "s": pa.array(["", "x", None]),
        }
    )
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    data = sink.getvalue().to_pybytes()
    ends = pa.array([least, most, *range(5, 200)])
    for column, values in (
        ("i", ends),
        ("i", pa.array([float(least), *map(float, range(5, 200))])),
        ("t", ends.cast(pa.timestamp("ns"))),
    ):
        test = ps.col(column).isin(values)
        wanted = 1 if values.type == pa.float64() else 2
        assert ps.scan(data, filter=test).count_rows() == wanted
        assert ps.scan(data, filter=ps.col(column).isin(list(values))).count_rows() == wanted
    texts = ps.col("s").isin([str(k) for k in range(100)] + ["x"])
    for string_type in ("string", "large", "view"):
        assert ps.scan(data, filter=texts, string_type=string_type).count_rows() == 1


@pytest.mark.parametrize("unit", ["h", "D", "s", "ms", "us", "ns", "10us"])
def test_isin_takes_times_of_numpy(path: Path, unit: str) -> None:
    at = np.array(["2024-01-31T11:20:00.123456789", "NaT", "2024-01-31"], "datetime64[ns]")
    many = np.concatenate([at, at[2] + np.arange(1, 100).astype("timedelta64[h]")])
    wanted = {"ns": ([0], [], [0]), "us": ([], [0], [0])}.get(unit, ([], [], [0]))
    for column, rows in zip(("t", "us", "d"), wanted, strict=True):
        found = ps.col(column).isin(many.astype(f"datetime64[{unit}]"))
        expected = rows if column != "d" else [0, 1]
        assert places(path, found) == expected  # type: ignore[arg-type]


def test_many_filters_one_by_one(path: Path) -> None:
    scan = ps.scan(path)
    for k in range(500):
        scan = scan.filter(f"a > {k - 500} or f < 3")
    assert scan.filter("a > 1").count_rows() == 2


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 = 1", True),
        ("1 = 2", False),
        ("1.0 = 1", True),
        ("0.1 < 0.2", True),
        ("'a' <> 'b'", True),
        ("'a' >= 'b'", False),
        ("true = false", False),
        ("1 = null", None),
        ("null <> null", None),
    ],
)
def test_values_are_compared_with_each_other(text: str, value: bool | None) -> None:
    made = to_expression(text)
    assert isinstance(made, Constant)
    assert made.value is value


def small() -> bytes:
    sink = io.BytesIO()
    columns = {"a": [1, None], "t": ["x", "y"], "l": [[1], [2]], "g": [True, None]}
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


NO_COLUMN = "<memory>: no column 'nope'; there are 'a', 't', 'l', 'g'"
OF_A = "column 'a' of type int64 cannot be compared with 'x': write the number without quotes"
OF_T = "column 't' of type string cannot be compared with 3: write it in quotes"
UNBOUND = [  # a filter, the character that is pointed at marked by ^ before it, and the words
    ("^nope = 3", NO_COLUMN),
    ("a > 1 and ^nope is null", NO_COLUMN),
    ("a = ^nope", NO_COLUMN + "; a text is written in single quotes, 'nope'"),
    ("not is_nan(^nope) or a = 1", NO_COLUMN),
    ("any(^nope) = 1", NO_COLUMN),
    ("^nope in (1, 2)", NO_COLUMN),
    ("^nope like 'a%'", NO_COLUMN),
    ("a = ^'x'", OF_A),
    ("^'x' > a", OF_A),
    ("a in (1, ^'x', 'y')", OF_A),
    ("a in (" + "1, " * 9 + "^'x'" + ", 2" * 3 + ")", OF_A),
    ("a between 1 and ^'x'", OF_A),
    ("a not between ^'x' and 1", OF_A),
    ("a = 1 or (t = 'x' and\n  not t <= ^3)", OF_T),
    ("t in ('a', ^3)", OF_T),
    ("any(l) = ^'x'", OF_A.replace("'a'", "'any(l)'")),
    ("array_contains(l, ^'x')", OF_A.replace("'a'", "'any(l)'")),
    ("any(^a) = 1", "any(a) = 1: column of type int64 is no list; compare it without any()"),
    ("t = ^a", "t = a: string and int64 cannot be compared"),
    ("^a is true", "column 'a' of type int64 cannot be compared with true: only booleans are true or false; compare the column with a value"),
    ("^a like 'x'", "a like 'x': column of type int64 is no text; compare it with ="),
    ("starts_with(^a, 'x')", "starts_with(a, 'x'): column of type int64 has no prefix"),
    ("t like ^x'61'", "t like X'61': write 'text' for columns of text and X'00ff' for binary ones"),
]  # fmt: skip


@pytest.mark.parametrize(("marked", "words"), UNBOUND, ids=[text for text, _ in UNBOUND])
def test_what_cannot_be_bound_is_pointed_at(marked: str, words: str) -> None:
    at = marked.index("^")
    text = marked.replace("^", "")
    start = text.rfind("\n", 0, at) + 1
    line = text[start:].split("\n")[0]
    with pytest.raises(ps.PredicateError) as caught:
        ps.read_table(small(), filter=text)
    named = f"<memory>: {words.removeprefix('<memory>: ')}"
    assert str(caught.value) == f"{named}\n  {line}\n  {' ' * (at - start)}^"
    assert caught.value.at == at
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.at) == (str(caught.value), at)


def test_in_a_long_list_the_value_is_pointed_at() -> None:
    text = f"a in ({', '.join(map(str, range(500)))}, 'x', 7)"
    with pytest.raises(ps.PredicateError) as caught:
        ps.read_table(small(), filter=text)
    assert caught.value.at == text.index("'x'")
    words, shown, caret = str(caught.value).split("\n")
    assert words == f"<memory>: {OF_A}"
    assert shown[caret.index("^") :].startswith("'x'")


def test_a_place_in_the_text_changes_nothing_else() -> None:
    text = "a = 1 and any(l) > 2"
    parsed, written = parse(text), (ps.col("a") == 1) & (ps.col("l").any() > 2)
    assert repr(parsed) == repr(written) == text
    assert pickle.dumps(parsed) == pickle.dumps(written)
    for condition in (ps.col("nope") == 1, pickle.loads(pickle.dumps(parse("nope = 1")))):
        with pytest.raises(ps.PredicateError) as caught:
            ps.read_table(small(), filter=condition)
        assert (str(caught.value), caught.value.at) == (NO_COLUMN, None)


NULLS = {  # what a condition on a null comes to, in three-valued logic
    "null is null": True,
    "null is not null": False,
    "null is unknown": True,
    "null is true": False,
    "null is not true": True,
    "(null) is null": True,
    "not null is null": False,
    "(not null) is null": True,
    "a = null is null": True,
    "(a = null) is unknown": True,
    "(a <> null) is not unknown": False,
    "null = null is unknown": True,
    "(null and false) is false": True,
    "(null or true) is true": True,
    "(null and true) is unknown": True,
    "null in (1, null) is unknown": True,
    "null not in (1) is unknown": True,
    "null like 'a' is unknown": True,
    "null between 1 and 2 is unknown": True,
    "true is unknown": False,
    "1 is null": False,
    "'x' is not null": True,
    "date '2024-01-31' is null": False,
}


@pytest.mark.parametrize("text", NULLS)
def test_a_null_that_is_written(text: str) -> None:
    assert ps.read_table(small(), filter=text).num_rows == 2 * NULLS[text]


def test_unknown_of_booleans_and_columns_of_that_name() -> None:
    assert ps.read_table(small(), filter="g is unknown")["a"].to_pylist() == [None]
    assert ps.read_table(small(), filter="g is not unknown")["a"].to_pylist() == [1]
    assert ps.read_table(small(), filter="a = 1 is unknown")["a"].to_pylist() == [None]
    sink = io.BytesIO()
    pq.write_table(pa.table({"unknown": [True, None]}), sink)
    assert ps.read_table(sink.getvalue(), filter="unknown is unknown").num_rows == 1
    with pytest.raises(ps.PredicateError) as caught:
        ps.read_table(small(), filter="a = 1 or unknown is unknown")
    assert caught.value.at == len("a = 1 or ")
    with pytest.raises(ps.PredicateError, match="write NULL after a value and IS here, not nan"):
        parse("1 is nan")
