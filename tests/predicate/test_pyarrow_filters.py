"""pyarrow expressions: the same rows as pyarrow finds; the parts with an equivalent prune."""

from __future__ import annotations

import datetime as dt
import importlib
import io
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.format.columns import Names
from pageseek.format.types import Options
from pageseek.predicate import expression as ex
from pageseek.predicate import pyarrow_filter as arrow
from pageseek.predicate.bound import has_residual
from support.opened import open_metadata

binder = importlib.import_module("pageseek.predicate.bind")
conditions = importlib.import_module("pageseek.predicate.arrow_conditions")
NAN = float("nan")
F = pc.field
NOON = dt.datetime(2024, 1, 1, 12)
MOMENT = NOON + dt.timedelta(3, microseconds=1)
TABLE = pa.table(
    {
        "i": pa.array([1, 2, None, 4, 5, 2**53 + 1, -(2**63), 7], pa.int64()),
        "j": pa.array([1, -1, 0, None, 5, 6, 7, 8], pa.int32()),
        "u": pa.array([1, 2**64 - 1, 0, None, 5, 6, 7, 2**63], pa.uint64()),
        "f": pa.array([NAN, 0.0, -0.0, None, 1.5, 0.1, float("inf"), 2.0]),
        "g": pa.array([NAN, 0.0, -0.0, None, 1.5, 0.1, 2.5, 2.0], pa.float32()),
        "s": pa.array(["a", "ab", None, "", "a%", "b\nc", "é", "abab"]),
        "cat": pa.array(["x", "y", None, "x", "z", "x", "y", "y"]).dictionary_encode(),
        "bin": pa.array([b"a", b"\xff", None, b"", b"ab", b"b", b"c", b"d"]),
        "flag": pa.array([True, False, None, True, False, None, True, False]),
        "d": pa.array([dt.date(2024, 1, k + 1) if k else None for k in range(8)]),
        "t": pa.array([NOON + dt.timedelta(k) if k else None for k in range(8)], pa.timestamp("us")),
        "z": pa.array([NOON + dt.timedelta(k) if k else None for k in range(8)], pa.timestamp("us", "UTC")),
        "m": pa.array([Decimal(k) / 4 if k else None for k in range(8)], pa.decimal128(9, 2)),
        "st": pa.array([{"x": k, "y": {"w": str(k)}} if k % 3 else None for k in range(8)]),
        "l": pa.array([[k] * (k % 3) if k else None for k in range(8)], pa.list_(pa.int64())),
        "odd.name\n'": pa.array(range(8)),
        "n": pa.nulls(8),
    }
)  # fmt: skip


def written(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    how: dict[str, Any] = {"row_group_size": 3, "write_page_index": True}
    pq.write_table(table, sink, **how | options)
    return sink.getvalue()


DATA = written(TABLE)
STORED = pq.read_table(io.BytesIO(DATA))  # in which times are what the file has


def found(condition: Any, **options: Any) -> list[int]:
    scan = ps.scan(DATA, columns=["j"], filter=condition, **options)
    return list(scan.with_row_number("row").to_table()["row"].to_pylist())


def wanted(condition: Any) -> list[int]:
    numbered = STORED.append_column("row", pa.array(range(8)))
    return list(numbered.filter(condition)["row"].to_pylist())


def bound(condition: Any) -> Any:
    file = open_metadata(DATA)
    return binder.bind(ex.ArrowFilter(condition), Names(file, Options()))


def bind_part(file: Any) -> Any:
    return lambda part: binder.bind(part, Names(file, Options()))


def lookup(column: str, values: Any, kind: pa.DataType, **options: Any) -> Any:
    made = pa.array(values, kind)
    return pc.is_in(F(column), options=pc.SetLookupOptions(made, **options))


def in_or_null(column: str, values: Any) -> Any:
    """IN of SQL, as duckdb writes it for pyarrow."""
    null = pa.scalar(None, pa.bool_())
    return pc.if_else(F(column).is_valid(), F(column).isin(pa.array(values)), null)


KNOWN = {
    "int": F("i") > 2,
    "int and int32": F("i") == pa.scalar(2, pa.int32()),
    "flipped": pc.scalar(2) < F("i"),
    "not": ~(F("i") > 2),
    "beyond the type": F("j") < 2**40,
    "not beyond the type": ~(F("j") == 2**40),
    "int32 and double": F("j") >= 0.5,
    "int64 and double": F("j") == float(2**53),
    "uint64": F("u") >= pa.scalar(2**63, pa.uint64()),
    "double": F("f") < 1.0,
    "double nan": F("f") != NAN,
    "not double": ~(F("f") < 1.0),
    "double and int": F("f") == 2,
    "float and what it can hold": F("g") == 1.5,
    "string": F("s") >= "ab",
    "binary": F("bin") > b"a",
    "bool": F("flag"),
    "not bool": ~F("flag"),
    "bool = true": F("flag") == True,  # noqa: E712
    "date": F("d") > dt.date(2024, 1, 3),
    "timestamp": F("t") <= NOON + dt.timedelta(3),
    "zoned": F("z") > pa.scalar(NOON, pa.timestamp("us", "UTC")),
    "decimal": F("m") == pa.scalar(Decimal("0.50"), pa.decimal128(5, 2)),
    "and": (F("i") > 1) & (F("s") == "ab"),
    "or": (F("i") > 4) | (F("s") == "a"),
    "not or": ~((F("i") > 4) | (F("s") == "a")),
    "null": F("i") == pa.scalar(None, pa.int64()),
    "is_null": F("f").is_null(),
    "is_null or nan": F("f").is_null(nan_is_null=True),
    "not null or nan": ~F("f").is_null(nan_is_null=True),
    "is_valid": F("s").is_valid(),
    "is_nan": F("f").is_nan(),
    "not is_nan": ~F("f").is_nan(),
    "isin": F("i").isin([1, 4]),
    "isin and null": F("i").isin([1, None]),
    "not isin and null": ~F("i").isin([1, None]),
    "isin skip": lookup("i", [1, None], pa.int64(), skip_nulls=True),
    "not isin skip": ~lookup("i", [1, None], pa.int64(), skip_nulls=True),
    "isin string": F("s").isin(["a", "é", "nope"]),
    "isin date": lookup("d", [dt.date(2024, 1, 3)], pa.date32()),
    "starts_with": pc.starts_with(F("s"), "a"),
    "not starts_with": ~pc.starts_with(F("s"), "a"),
    "like": pc.match_like(F("s"), "a%"),
    "nested": F("st", "x") > 4,
    "nested twice": F(("st", "y", "w")) == "4",
    "dictionary": F("cat") == "x",
    "true": pc.scalar(True) & (F("i") > 2),
    "timestamp of another unit": F("t") < pa.scalar(MOMENT, pa.timestamp("ns")),
    "timestamp, coarser": F("t") >= pa.scalar(NOON + dt.timedelta(3), pa.timestamp("s")),
    "zoned, finer": F("z") > pa.scalar(MOMENT, pa.timestamp("ns", "UTC")),
    "timestamp and date": F("t") < pa.scalar(dt.date(2024, 1, 4), pa.date32()),
    "date and timestamp": F("d") <= pa.scalar(MOMENT, pa.timestamp("us")),
    "date and date64": F("d") <= pa.scalar(dt.date(2024, 1, 4), pa.date64()),
    "decimal of another scale": F("m") < pa.scalar(Decimal("0.7501"), pa.decimal128(12, 4)),
    "int and decimal": F("j") <= pa.scalar(Decimal("5.5"), pa.decimal128(9, 1)),
    "a value of a dictionary": F("s") == pa.array(["ab"]).dictionary_encode()[0],
    "wider int": F("j").cast(pa.int64()) < 2**40,
    "int as double": F("j").cast(pa.float64()) >= 5.5,
    "float as double": F("g").cast(pa.float64()) > 0.1,
    "date as timestamp": F("d").cast(pa.timestamp("us")) > pa.scalar(MOMENT, pa.timestamp("us")),
    "timestamp as finer": F("t").cast(pa.timestamp("ns")) > pa.scalar(MOMENT, pa.timestamp("ns")),
    "string as large": F("s").cast(pa.large_string()) == pa.scalar("ab", pa.large_string()),
    "isin double": lookup("f", [1.5, 2.0, 7.0], pa.float64()),
    "not isin double": ~lookup("f", [1.5, None], pa.float64()),
    "isin of large strings": lookup("s", ["a", "é"], pa.large_string()),
    "isin timestamp of another unit": lookup("t", [NOON + dt.timedelta(3)], pa.timestamp("ns")),
    "isin decimal of another scale": lookup("m", [Decimal("0.5")], pa.decimal128(3, 1)),
    "isin, null where null": in_or_null("s", ["a", "é"]),
    "not isin, null where null": ~in_or_null("s", ["a", "é"]),
    "isin double, null where null": in_or_null("f", [1.5, 2.0]),
    "null where null": pc.if_else(F("t").is_valid(), pa.scalar(True), pa.scalar(None, pa.bool_())),
    "where null": ~pc.if_else(F("i").is_null(), F("s") == "ab", F("i") > 4),
    "and (not kleene) in an or": pc.Expression._call("and", [F("flag"), F("i") > 4]) | (F("s") == "ab"),
    "a condition of duckdb in an or": (F("i") == 7)
    | pc.if_else(F("flag"), F("i") > 2, pa.scalar(False)),
    "of duckdb, in two": (F("j") > 0)
    & ((F("i") > 4) | pc.if_else(F("i") > 1, pc.if_else(F("flag"), F("j") > 2, pa.scalar(None, pa.bool_())), pa.scalar(False))),
}  # fmt: skip
# of these pyarrow evaluates the whole, and a looser condition prunes
LOOSER = {
    "isin double and zero": lookup("f", [0.0, 2.0], pa.float64()),
    "isin double, nan and null": lookup("f", [NAN, None, 2.0], pa.float64()),
    "or of parts": ((F("j") * 2 > 3) & (F("i") == 7)) | ((F("i") == 1) & (F("j") + 1 == 2)),
    "zero, null where null": in_or_null("f", [-0.0]),
    "one branch": pc.if_else(F("j") + 1 > 2, F("i") > 2, pa.scalar(False)),
    "no branch": pc.if_else(F("j") + 1 > 2, pa.scalar(False), pa.scalar(False)),
}
LEFT_TO_PYARROW = {
    "like inside": pc.match_like(F("s"), "b_c"),
    "arithmetic": F("i") + 1 > 3,
    "float and what it cannot hold": F("g") == 0.1,
    "isin nan": lookup("f", [NAN, 0.0], pa.float64()),
    "isin zero": lookup("f", [-0.0], pa.float64()),
    "cast": F("i").cast(pa.string()) == "2",
    "strict cast": F("f").cast(pa.int64(), safe=False) == 1,
    "columns": F("i") < F("j"),
    "and (not kleene)": ~pc.Expression._call("and", [F("flag"), F("i") > 4]),
    "ignore case": pc.starts_with(F("s"), "A", ignore_case=True),
    "like with an escape": pc.match_like(F("s"), "a\\%"),
    "coalesce": pc.coalesce(F("flag"), pc.scalar(False)),
    "lists": pc.list_value_length(F("l")) > 1,
    "struct": F("st").is_null(),
    "odd name": F("odd.name\n'") > 5,
    "day of week": pc.day_of_week(F("t")) == 3,
    "decimal and float": F("m") == 0.5,
    "null type": F("n").is_null(),
    "substring": pc.match_substring(F("s"), "b"),
    "and (not kleene) in an or in a not": ~(
        (F("i") == 7) | pc.Expression._call("and", [F("flag"), F("i") > 4])
    ),
    "if_else in a not": ~((F("i") == 7) | pc.if_else(F("flag"), F("i") > 2, pa.scalar(False))),
    "if_else": pc.if_else(F("flag"), F("i") > 2, F("j") > 2),
    "field by number": F(0) > 2,
    "narrower int": F("j").cast(pa.int8()) == 5,
    "a cast that may lose": F("t").cast(pa.timestamp("s"), safe=False)
    == pa.scalar(NOON + dt.timedelta(3), pa.timestamp("s")),
    "int64 as double": F("i").cast(pa.float64(), safe=False) > 4.0,
}


@pytest.mark.parametrize("name", KNOWN)
def test_what_is_understood(name: str) -> None:
    assert not has_residual(bound(KNOWN[name])), "it could be a test"


@pytest.mark.parametrize("name", LEFT_TO_PYARROW)
def test_what_is_left_to_pyarrow(name: str) -> None:
    assert has_residual(bound(LEFT_TO_PYARROW[name]))


@pytest.mark.parametrize("name", LOOSER)
def test_what_is_understood_in_part_prunes(name: str) -> None:
    condition = LOOSER[name]
    assert has_residual(bound(condition)) or "no branch" in name
    file = open_metadata(DATA)
    known, whole = conditions._known(
        arrow.read(condition), Names(file, Options()), None, bind_part(file)
    )
    assert known
    assert not whole


@pytest.mark.covering(1)
@pytest.mark.parametrize("nan", ["ieee", "spark"])
@pytest.mark.parametrize("name", [*KNOWN, *LEFT_TO_PYARROW, *LOOSER])
def test_rows_are_those_of_pyarrow_whatever_the_rule_for_nan(name: str, nan: str) -> None:
    condition = (KNOWN | LEFT_TO_PYARROW | LOOSER)[name]
    assert found(condition, nan=nan) == wanted(condition)


@pytest.mark.parametrize("name", [*KNOWN, *LEFT_TO_PYARROW, *LOOSER])
def test_rows_are_the_same_where_the_form_is_not_known(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow, "KNOWN_VERSIONS", range(0))
    condition = (KNOWN | LEFT_TO_PYARROW | LOOSER)[name]
    assert arrow.read(condition) is None
    assert found(condition) == wanted(condition)


def test_an_answer_where_pyarrow_fails_to_cast_a_column() -> None:
    """It compares uint64 with a signed literal as int64, and fails on what does not fit."""
    assert found(F("u") < 7) == [0, 2, 4, 5]
    assert found(F("i") == float(2**53)) == []


@pytest.mark.parametrize(
    "condition",
    [
        F("t").cast(pa.timestamp("s")) == pa.scalar(NOON, pa.timestamp("s")),
        F("i").cast(pa.int32()) == 5,
        F("u").cast(pa.int64()) == 5,
        F("i").cast(pa.float64()) == 5.0,
        F("t").cast(pa.timestamp("us", "UTC")) == pa.scalar(NOON, pa.timestamp("us", "UTC")),
        F("m").cast(pa.decimal128(9, 1)) == pa.scalar(Decimal("0.5"), pa.decimal128(9, 1)),
    ],
)
def test_a_cast_that_may_fail_is_left_to_pyarrow(condition: Any) -> None:
    assert has_residual(bound(condition))


def test_parts_that_are_understood_prune() -> None:
    n = 1000
    table = pa.table({"k": range(n), "v": [k % 9 for k in range(n)]})
    data = written(table, row_group_size=100)
    condition = (F("k") >= 500) & (F("v") + 1 == 5) & (F("k") < 600)
    report = ps.scan(data, filter=condition).explain()
    assert report.row_groups.read == 1
    assert ps.read_table(data, filter=condition) == table.filter(condition)
    opposite = ~condition
    assert ps.scan(data, filter=opposite).explain().row_groups.read == 10
    assert ps.read_table(data, filter=opposite) == table.filter(opposite)


def test_a_list_of_doubles_with_zero_prunes() -> None:
    table = pa.table({"f": [float(k) for k in range(-500, 500)]})
    data = written(table, row_group_size=100)
    condition = in_or_null("f", [0.0, 250.5, 251.0])
    report = ps.scan(data, filter=condition).explain()
    assert report.row_groups.read < 4
    assert ps.read_table(data, filter=condition) == table.filter(condition)


def test_only_the_columns_that_are_named_are_read() -> None:
    report = ps.scan(DATA, columns=["i"], filter=F("i") + F("j") > 3).explain()
    assert set(report.to_dict()["leaves"]) == {"i", "j"}
    report = ps.scan(DATA, columns=["i"], filter=F("st", "x") + 1 > 3).explain()
    assert set(report.to_dict()["leaves"]) == {"i", "st.x"}


STRUCTS = pa.table(
    {"k": range(6), "st": [None, *({"x": i, "y": {"z": i % 2}} for i in range(1, 6))]}
)


@pytest.mark.parametrize(
    "condition",
    [
        pc.field("st").is_valid() & (pc.field("st", "x") > 2),
        (pc.field("st", "x") == 3) | pc.field("st").is_null(),
        pc.field("st", "y").is_valid() & (pc.field("st", "y", "z") == 1),
    ],
    ids=str,
)
def test_a_struct_and_a_field_of_it(condition: Any, tmp_path: Any) -> None:
    for name in "ab":
        pq.write_table(STRUCTS, tmp_path / f"{name}.parquet")
    wanted = STRUCTS.filter(condition)
    assert 0 < wanted.num_rows < 6
    assert ps.read_table(tmp_path / "a.parquet", filter=condition) == wanted
    twice = pa.concat_tables([wanted, wanted])
    assert ps.read_table(tmp_path, filter=condition) == twice
    more = ps.scan(tmp_path, filter=condition).filter(pc.field("st", "x") + 1 > 0).filter("k >= 0")
    assert more.to_table() == twice.filter(pc.field("st").is_valid())


def test_it_joins_with_other_filters_and_travels() -> None:
    scan = ps.scan(DATA, columns=["i"], filter=F("i") + 0 > 1).filter("j > 4").filter(F("u") < 7)
    assert scan.to_table()["i"].to_pylist() == [5, 2**53 + 1]
    plan = pickle.loads(pickle.dumps(scan.plan()))
    assert sum(batch.num_rows for batch in plan.execute()) == 2
    both = ps.col("j").isin([5, 6]) & ps.scan(DATA, filter=F("i") < 9)._request.filter  # type: ignore[operator]
    assert ps.read_table(DATA, columns=["i"], filter=both)["i"].to_pylist() == [5]


@pytest.mark.parametrize(
    "condition",
    [
        F("nope") > 1,
        F("i") + 1,
        F("s") > 5,
        F("z") > NOON,
        pc.divide(F("j"), 0) > 1,
        F("i") == 2**53,
        F("s").cast(pa.int32()) > 1,
    ],
    ids=str,
)
def test_an_error_of_pyarrow_is_ours(condition: Any) -> None:
    try:
        rows = wanted(condition)
    except (pa.ArrowException, TypeError, ValueError, KeyError):
        with pytest.raises(ps.PredicateError):
            found(condition)
    else:
        assert found(condition) == rows


def test_what_a_serialized_expression_says() -> None:
    node = arrow.read((F("a") > 5) & F("b", "c").isin([1, None]))
    assert isinstance(node, arrow.Call)
    assert node.name == "and_kleene"
    assert arrow.fields(node) == [("a",), ("b", "c")]
    assert len(list(arrow.conjuncts(node))) == 2
    assert arrow.read(F(0) > 5) is None, "a field by number does not serialize"
    assert arrow.read("no expression") is None
    deep = F("a") > 5
    for _ in range(200):
        deep = ~deep
    assert arrow.read(deep) is None


@pytest.mark.parametrize("size", [1, 2, 7])
def test_expressions_over_no_columns(size: int) -> None:
    for condition in (pc.scalar(True), pc.scalar(1) < pc.scalar(size)):
        data = written(pa.table({"k": range(size)}))
        expected = size if condition.equals(pc.scalar(True)) or size > 1 else 0
        assert ps.scan(data, filter=condition).count_rows() == expected


def test_large_sets() -> None:
    condition = F("i").isin(pa.array(np.arange(3, 100_000)))
    assert not has_residual(bound(condition))
    assert found(condition) == wanted(condition)


def test_both_rules_for_nan_in_one_filter() -> None:
    """pyarrow's NaN is above nothing, that of the scan above everything."""
    theirs, ours = F("f") > 1.0, ps.col("f") > 1.2
    scan = ps.scan(DATA, columns=["i"], nan="spark")
    for one, other in ((theirs, ours), (ours, theirs)):
        assert scan.filter(one).filter(other).to_table()["i"].to_pylist() == [5, -(2**63), 7]
    assert scan.filter(ours).count_rows() == 4


def test_functions_take_views_as_texts(tmp_path: Path) -> None:
    """pyarrow's functions have no kernels for views."""
    table = pa.table({"s": ["a", "bb", None], "b": [b"a", b"bb", None]})
    pq.write_table(table, tmp_path / "a.parquet")
    for condition in (
        pc.utf8_length(pc.field("s")) == 2,
        pc.binary_length(pc.field("b")) == 2,
        pc.coalesce(pc.field("s"), "z") == "bb",
        pc.is_in(pc.utf8_upper(pc.field("s")), value_set=pa.array(["BB"])),
    ):
        found = ps.read_table(tmp_path / "a.parquet", filter=condition, string_type="view")
        assert found["s"].to_pylist() == ["bb"]
        assert found.schema.field("s").type == pa.string_view()
