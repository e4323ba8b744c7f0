"""Nulls and unknown null counts: no mechanism takes unknown for false, or a missing count for zero."""

from __future__ import annotations

import io
import itertools
import operator
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from support.opened import open_metadata
from support.oracle import Predicate, agree, build, groups_read, pages_read, rows, truth
from support.writer import BYTE_ARRAY, DOUBLE, INT32, STRING, Column, Struct, write

X, Y = ps.col("x"), ps.col("y")
BARE: dict[str, Any] = {"column_index": False, "offset_index": False}
UNKNOWN: dict[str, Any] = {"statistics": False, **BARE}


def one(values: list[Any], cuts: list[int] | None = None, **knobs: Any) -> bytes:
    return write(
        [
            Column("x", INT32, values, cuts, optional=True, **knobs),
            Column("row", INT32, list(range(len(values)))),
        ]
    )


def by_arrow(made: dict[str, Any], **how: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(made), sink, **how)
    return sink.getvalue()


# ---- what is unknown is kept (1, 12) -----------------------------------------------------------------


def test_1_a_container_of_which_nothing_is_known_is_kept_whatever_is_asked() -> None:
    """Unknown, negated, is unknown: a test and its negation both have to read it."""
    data = one([1, None, 2], **UNKNOWN)
    for test in (X == 5, X > 5, X.isin([5, 6]), X.is_null(), X.is_not_null(), X != 5, X < 0):
        assert groups_read(data, test) == 1, test
        assert groups_read(data, ~test) == 1, test
    agree(data, 1, 2, 5)


@pytest.mark.parametrize("x_knobs", [{}, BARE, UNKNOWN, {"null_count": False}], ids=str)
@pytest.mark.parametrize("y_knobs", [{}, UNKNOWN], ids=str)
def test_12_not_of_and_and_or_where_an_operand_is_null(
    x_knobs: dict[str, Any], y_knobs: dict[str, Any]
) -> None:
    """Every pair of true, false and null, each row a row group: what is proved of one operand is not of both."""
    pairs = list(itertools.product([1, 0, None], repeat=2))
    table = [{"x": x, "y": y, "row": i} for i, (x, y) in enumerate(pairs)]
    data = write(
        *(
            [
                Column("x", INT32, [r["x"]], optional=True, **x_knobs),
                Column("y", INT32, [r["y"]], optional=True, **y_knobs),
                Column("row", INT32, [r["row"]]),
            ]
            for r in table
        )
    )
    a: Predicate = ("=", "x", 1)
    b: Predicate = ("=", "y", 1)
    sides = [*itertools.product((a, ("not", a), ("is null", "x", None)), (b, ("not", b)))]
    for op, (p, q) in itertools.product(("and", "or"), sides):
        for test in ((op, p, q), ("not", (op, p, q)), ("not", ("not", (op, p, q)))):
            wanted = [r["row"] for r in table if truth(test, r) is True]
            assert rows(data, build(test)) == wanted, test


# ---- counts that are missing (2 to 6, 17, T-46) --------------------------------------------------------


@pytest.mark.parametrize("knobs", [{}, BARE], ids=["index", "no index"])
def test_2_values_are_counted_where_no_null_count_is_given(knobs: dict[str, Any]) -> None:
    for values in ([1, None, 2, None], [1, 2, 3, 4], [None] * 4):
        known = sum(v is not None for v in values)
        for null_count in (True, False):
            data = one(values, [2, 2], null_count=null_count, **knobs)
            for condition, count in ((None, known), (X.is_not_null(), known), (X.is_null(), 0)):
                found = ps.scan(data, filter=condition).aggregate([("x", "count")])
                assert found.to_pylist() == [{"x_count": count}], (values, condition)


def test_3_a_writer_that_leaves_out_a_null_count_of_none() -> None:
    """It may only cost: the row group is read for IS NULL, and none of its rows is lost to IS NOT NULL."""
    groups = [[1, 2], [3, None], [None, None]]
    data = write(
        *(
            [
                Column("x", INT32, values, optional=True, null_count=None in values, **BARE),
                Column("row", INT32, [2 * g, 2 * g + 1]),
            ]
            for g, values in enumerate(groups)
        )
    )
    agree(data, 1, 3, 9)
    assert rows(data, X.is_null()) == [3, 4, 5]
    assert rows(data, X.is_not_null()) == [0, 1, 2]
    assert groups_read(data, X.is_null()) == 3
    assert groups_read(data, X.is_not_null()) == 2


@pytest.mark.parametrize("index", [True, False])
def test_4_null_tests_of_the_one_column_without_statistics(index: bool) -> None:
    data = by_arrow(
        {"x": pa.array([1, None, 3, None], pa.int32()), "row": pa.array(range(4), pa.int32())},
        write_statistics=["row"],
        write_page_index=index,
        row_group_size=2,
    )
    assert open_metadata(data).chunk_values(0, "x").null_count is None
    assert rows(data, X.is_null()) == [1, 3]
    assert rows(data, X.is_not_null()) == [0, 2]
    assert rows(data, X.is_null() & (ps.col("row") > 1)) == [3]


def test_5_some_nulls_do_not_rule_out_is_not_null() -> None:
    for cuts in ([6], [3, 3], [1] * 6):
        data = one([1, None, None, None, None, 6], cuts)
        assert rows(data, X.is_not_null()) == [0, 5]
        assert rows(data, ~X.is_null()) == [0, 5]
    assert pages_read(one([1, None, None, None, None, 6], [2, 2, 2]), X.is_not_null()) == 2


def test_6_is_null_reads_what_may_hold_one_and_nothing_else() -> None:
    groups: list[tuple[list[Any], bool]] = [
        ([1, 2], True),
        ([1, 2], False),
        ([1, None], True),
        ([None, None], False),
    ]
    data = write(
        *(
            [
                Column("x", INT32, values, optional=True, null_count=told, **BARE),
                Column("row", INT32, [2 * g, 2 * g + 1]),
            ]
            for g, (values, told) in enumerate(groups)
        )
    )
    assert rows(data, X.is_null()) == [5, 6, 7]
    assert groups_read(data, X.is_null()) == 3


def test_17_null_counts_of_pages_and_of_the_chunk_stand_alone() -> None:
    def drop(index: Struct) -> None:
        del index[5]

    def forget(meta: Struct) -> None:
        del meta[12][3]

    values = [1, None, None, None, 5, 6]
    for knobs in (
        {"edit_column_index": drop},
        {"edit_chunk": forget},
        {"edit_column_index": drop, "edit_chunk": forget},
    ):
        data = one(values, [2, 2, 2], **knobs)
        agree(data, 1, 5, 9)
        assert rows(data, X.is_null()) == [1, 2, 3]
        assert rows(data, X.is_not_null()) == [0, 4, 5]


# ---- columns of nulls only (7, T-48) ------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", [pa.int64(), pa.string(), pa.float64(), pa.null(), pa.bool_()], ids=str
)
def test_7_a_row_group_of_nulls_is_ruled_out_by_comparisons_alone(kind: pa.DataType) -> None:
    data = by_arrow(
        {"x": pa.array([None] * 4, kind), "row": pa.array(range(4), pa.int32())}, row_group_size=2
    )
    assert rows(data, X.is_null()) == [0, 1, 2, 3]
    assert rows(data, X.is_not_null()) == []
    if kind != pa.null():
        assert groups_read(data, X.is_not_null()) == 0
        value = {"string": "a", "bool": True}.get(str(kind), 1)
        for test in (value == X, ~(value == X), X.isin([value]), ~X.isin([value])):
            assert rows(data, test) == []
            assert groups_read(data, test) == 0, test
        assert rows(data, X.is_null() | (value == X)) == [0, 1, 2, 3]


def test_7_writers_of_datafusion_and_duckdb_leave_nulls_findable(tmp_path: Any) -> None:
    datafusion, duckdb = pytest.importorskip("datafusion"), pytest.importorskip("duckdb")
    x = pa.array([None] * 3 + [1, None, 3] + [4, 5, 6], pa.int64())
    made = pa.table({"x": x, "row": pa.array(range(9), pa.int64())})
    by_duckdb, by_fusion = tmp_path / "duckdb.parquet", tmp_path / "datafusion.parquet"
    duckdb.sql(f"COPY (SELECT * FROM made ORDER BY row) TO '{by_duckdb}' (FORMAT parquet)")
    context = datafusion.SessionContext()
    context.from_arrow(made, name="t")
    for path, statistics in ((by_fusion, "page"), (by_fusion.with_suffix(".none.parquet"), "none")):
        context.sql(
            f"COPY (SELECT * FROM t ORDER BY row) TO '{path}' STORED AS PARQUET OPTIONS "
            f"('statistics_enabled' '{statistics}', 'data_page_row_count_limit' '3', "
            "'write_batch_size' '3')"
        ).collect()
    for path in (by_duckdb, by_fusion, by_fusion.with_suffix(".none.parquet")):
        data = path.read_bytes()
        assert rows(data, X.is_null()) == [0, 1, 2, 4], path.name
        assert rows(data, X.is_not_null()) == [3, 5, 6, 7, 8], path.name
        assert rows(data, X != 3) == [3, 6, 7, 8], path.name
        assert rows(data, ~X.isin([3, None])) == [], path.name


# ---- rows that all pass, and those that only seem to (9, 11, 57) ---------------------------------------


@pytest.mark.parametrize("null_count", [True, False])
def test_9_bounds_that_all_meet_a_range_prove_nothing_of_nulls(null_count: bool) -> None:
    """Rows that certainly pass may be counted, limited or taken without a read: nulls never pass."""
    values = [1, None, 3, 4, None, 6]
    for cuts in ([6], [2, 2, 2], [1] * 6):
        data = one(values, cuts, null_count=null_count)
        for test in (X > 0, X < 9, X != 9, ~(X > 9), ~X.isin([9]), (X > 0) | (X == 9)):
            assert rows(data, test) == [0, 2, 3, 5], test
            assert ps.scan(data, filter=test).count_rows() == 4
            assert ps.scan(data, filter=test).limit(3).to_table()["row"].to_pylist() == [0, 2, 3]
            assert ps.scan(data, filter=test).aggregate(["count"]).to_pylist() == [{"count": 4}]


def test_9_a_null_in_the_other_column_of_a_conjunction() -> None:
    data = write(
        [
            Column("x", INT32, [1, 2, 3, 4], [2, 2]),
            Column("y", INT32, [5, None, None, 8], [1, 3]),
            Column("row", INT32, [0, 1, 2, 3]),
        ]
    )
    assert rows(data, (X > 0) & (Y > 0)) == [0, 3]
    assert rows(data, (X > 0) | (Y > 0)) == [0, 1, 2, 3]
    assert rows(data, ~((X > 9) | (Y > 9))) == [0, 3]
    assert ps.scan(data, filter=(X > 0) & (Y > 0)).count_rows() == 2


def test_11_unequal_is_ruled_out_only_where_all_values_are_that_one() -> None:
    for values, read in (([5, 5], 0), ([5, None], 0), ([4, 6], 1), ([5, 6], 1), ([4, 5], 1)):
        data = one(values, **BARE)
        assert groups_read(data, X != 5) == read, values
        assert groups_read(data, ~(X == 5)) == read, values
        assert groups_read(data, ~X.isin([5, 99])) == read, values
        agree(data, 5)
    assert groups_read(one([5, None], **BARE), (X != 5) | X.is_null()) == 1


# ---- nulls among literals (10, 13) ---------------------------------------------------------------------


@pytest.mark.parametrize("null_count", [True, False])
def test_10_lists_with_a_null_where_nulls_are_not_counted(null_count: bool) -> None:
    data = one([1, None, 2, None, None, 3], [2, 2, 2], null_count=null_count)
    assert rows(data, X.isin([1, None])) == [0]
    assert rows(data, X.isin([None])) == []
    assert rows(data, ~X.isin([1, None])) == []
    assert rows(data, ~X.isin([None])) == []
    assert rows(data, ~(~X.isin([3, None]))) == [5]
    assert rows(data, X.isin([2, None]) | X.is_null()) == [1, 2, 3, 4]


def test_13_equal_to_null_is_nobody_and_reads_nothing() -> None:
    data = one([1, None, 2])
    for null in (None, pa.scalar(None, pa.int32())):
        for op in (operator.eq, operator.ne, operator.lt, operator.ge):
            assert rows(data, op(X, null)) == []
            assert rows(data, ~op(X, null)) == []
            assert groups_read(data, op(X, null)) == 0
    assert rows(data, "x = null") == []
    assert rows(data, "not (x = null)") == []
    assert rows(data, (X == None) | (X == 2)) == [2]  # noqa: E711


# ---- null in the judging of rows (14) --------------------------------------------------------------------


@pytest.mark.parametrize("knobs", [{}, UNKNOWN, {"encodings": "dictionary"}], ids=str)
@pytest.mark.parametrize(
    "test", [lambda: (X > 1) & (Y > 1), lambda: (Y > 1) & (X > 1), lambda: ~((X <= 1) | (Y <= 1))]
)
def test_14_a_test_that_is_null_of_a_row_is_not_passed_on(
    test: Callable[[], Any], knobs: dict[str, Any]
) -> None:
    """The second test is put to the survivors of the first; the payload to those of both."""
    values = [None, 1, 2]
    pairs = [*itertools.product(values, values)] * 3
    n = len(pairs)
    data = write(
        [
            Column("x", INT32, [a for a, _ in pairs], [9, 9, 9], **knobs),
            Column("y", INT32, [b for _, b in pairs], [5, 13, 9], **knobs),
            Column("p", BYTE_ARRAY, [b"%d" % i for i in range(n)], [1] * n, logical=STRING),
            Column("row", INT32, list(range(n)), [13, 14]),
        ]
    )
    wanted = [i for i, pair in enumerate(pairs) if pair == (2, 2)]
    found = ps.read_table(data, ["p", "row"], test())
    assert found["row"].to_pylist() == wanted
    assert found["p"].to_pylist() == [str(i) for i in wanted]


# ---- nulls above the leaf (15, 16) -----------------------------------------------------------------------


def test_15_counts_of_nulls_of_a_list_are_of_slots_and_not_of_rows() -> None:
    """As many nulls as the file has rows, or more, and yet values among them."""
    lists = [[None, None, None, 7], None, [], [None]]
    data = by_arrow(
        {"x": pa.array(lists, pa.list_(pa.int32())), "row": pa.array(range(4), pa.int32())},
        write_page_index=True,
    )
    chunk = pq.read_metadata(io.BytesIO(data)).row_group(0).column(0)
    assert chunk.statistics.null_count >= 4
    assert rows(data, X.any() == 7) == [0]
    assert rows(data, X.any().is_null()) == [0, 3]
    assert rows(data, X.is_null()) == [1]
    assert rows(data, X.is_not_null()) == [0, 2, 3]


@pytest.mark.parametrize("index", [True, False])
def test_16_a_required_field_of_a_null_struct_is_null(index: bool) -> None:
    kind = pa.struct([pa.field("a", pa.int32(), nullable=False), pa.field("b", pa.int32())])
    structs = [
        {"a": 1, "b": None},
        None,
        {"a": 3, "b": 4},
        None,
        {"a": 5, "b": None},
        {"a": 6, "b": 7},
    ]
    data = by_arrow(
        {"x": pa.array(structs, kind), "row": pa.array(range(6), pa.int32())},
        write_page_index=index,
        row_group_size=2,
    )
    a, b = ps.col("x", "a"), ps.col("x", "b")
    assert rows(data, a.is_null()) == [1, 3]
    assert rows(data, X.is_null()) == [1, 3]
    assert rows(data, b.is_null()) == [0, 1, 3, 4]
    assert rows(data, b.is_null() & X.is_not_null()) == [0, 4]
    assert rows(data, a > 0) == [0, 2, 4, 5]
    assert rows(data, ~(a > 3)) == [0, 2]
    assert ps.scan(data, filter=a > 0).count_rows() == 4
    assert groups_read(data, a.is_null()) == 2, "the last row group has no null struct"


# ---- NaN is no null ------------------------------------------------------------------------------------------


def test_57_equal_bounds_do_not_say_that_every_value_is_that_one() -> None:
    """NaN lies outside of the bounds and is counted as no null."""
    nan = float("nan")
    for nan_count in (True, False):
        for knobs in ({}, BARE):
            data = write(
                [
                    Column(
                        "x", DOUBLE, [1.0, nan, 1.0], nan_count=nan_count, optional=True, **knobs
                    ),
                    Column("row", INT32, [0, 1, 2]),
                ]
            )
            for test, wanted in (
                (X == 1.0, [0, 2]),
                (X != 1.0, [1]),
                (X <= 1.0, [0, 2]),
                (X > 1.0, []),
                (~(X > 1.0), [0, 1, 2]),
                (X.is_nan(), [1]),
                (X.is_not_null(), [0, 1, 2]),
            ):
                assert rows(data, test) == wanted, test
                assert ps.scan(data, filter=test).count_rows() == len(wanted), test
            assert rows(data, X > 1.0, nan="spark") == [1]
