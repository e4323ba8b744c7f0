"""Bounds and counts that are missing, partial or contradictory: a pruned read equals a full one."""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import pageseek as ps
from support.bounds import BARE, NAN, exact, groups_read, i32, one, stats, twos
from support.opened import open_metadata
from support.oracle import agree
from support.writer import (
    BYTE_ARRAY,
    DOUBLE,
    FIXED,
    I64,
    INT32,
    STRING,
    Column,
    Struct,
    decimal,
    integer,
    write,
)

# ---- nulls ---------------------------------------------------------------------------------------


def test_a_missing_null_count_is_unknown_and_not_zero() -> None:
    for values in ([1, None, 2], [1, 2, 3], [None, None, None]):
        for knobs in ({}, BARE):
            data = one(INT32, values, optional=True, null_count=False, **knobs)
            agree(data, 1, 2, 9)
            assert groups_read(data, ps.col("x").is_null()) == 1


def test_null_counts_in_the_chunk_only_or_in_the_index_only() -> None:
    def drop_index(index: Struct) -> None:
        del index[5]

    agree(one(INT32, [1, None, 2], [1, 1, 1], edit_column_index=drop_index), 1, 2)
    agree(one(INT32, [1, None, 2], [1, 1, 1], edit_chunk=stats(nulls=None)), 1, 2)


def test_a_row_group_of_nulls_prunes_comparisons_and_keeps_is_null() -> None:
    for knobs in ({}, BARE):
        data = one(INT32, [None] * 3, optional=True, **knobs)
        agree(data, 1)
        assert groups_read(data, ps.col("x") == 1) == 0
        assert groups_read(data, ps.col("x").is_null()) == 1
        assert groups_read(data, ps.col("x").is_not_null()) == 0


def test_is_null_prunes_where_there_is_none() -> None:
    data = one(INT32, [1, 2, 3], optional=True, **BARE)
    assert groups_read(data, ps.col("x").is_null()) == 0


@pytest.mark.parametrize("nulls", [-1, 4, 1 << 62])
def test_null_counts_that_cannot_be(nulls: int) -> None:
    for values in ([1, None, 2], [1, 2, 3]):
        agree(
            one(INT32, values, optional=True, edit_chunk=stats(nulls=I64(nulls)), **BARE), 1, 2, 7
        )


def test_a_null_count_of_every_row_beside_bounds_is_a_contradiction() -> None:
    agree(one(INT32, [1, 2, 3], optional=True, edit_chunk=stats(nulls=I64(3)), **BARE), 1, 2, 7)


def test_three_valued_logic_with_nulls_in_lists_and_literals() -> None:
    data = one(INT32, [1, None, 2], [1, 1, 1])
    x = ps.col("x")
    null = pa.scalar(None, pa.int32())
    for condition in (
        x == null,
        x != null,
        ~(x == null),
        ~x.isin([1, None]),
        ~x.isin([None]),
        x < null,
    ):
        assert ps.read_table(data, filter=condition).num_rows == 0
    assert ps.read_table(data, filter=x.isin([1, None]))["row"].to_pylist() == [0]
    assert ps.read_table(data, filter=~x.isin([]))["row"].to_pylist() == [0, 1, 2]
    assert ps.read_table(data, filter=~((x < 2) & (x > 0)))["row"].to_pylist() == [2]


# ---- which bounds may be used --------------------------------------------------------------------


def test_bounds_without_column_orders_are_ignored() -> None:
    lie = stats(min_value=i32(100), max_value=i32(200))
    for orders in (None, [{9: {}}, {9: {}}], []):
        data = write([Column("x", INT32, [1, 2, 3], edit_chunk=lie, **BARE)], column_orders=orders)
        assert ps.read_table(data, filter=ps.col("x") == 2).num_rows == 1
    trusted = write([Column("x", INT32, [1, 2, 3], edit_chunk=lie, **BARE)])
    assert ps.read_table(trusted, filter=ps.col("x") == 2).num_rows == 0, (
        "a plausible lie is believed"
    )


def test_the_column_index_without_column_orders_is_ignored() -> None:
    def lie(index: Struct) -> None:
        index[2] = index[3] = [i32(100)]

    data = write(
        [Column("x", INT32, [1, 2, 3], edit_column_index=lie, statistics=False)], column_orders=None
    )
    assert ps.read_table(data, filter=ps.col("x") == 2).num_rows == 1


def test_deprecated_bounds_only_where_the_order_is_signed() -> None:
    def old(low: bytes, high: bytes) -> Callable[[Struct], None]:
        return stats(min=low, max=high, min_value=None, max_value=None)

    signed = one(INT32, [1, 2, 3], edit_chunk=old(i32(1), i32(3)), **BARE)
    assert groups_read(signed, ps.col("x") == 9) == 0
    agree(signed, 1, 3, 9)
    text = one(
        BYTE_ARRAY, [b"a", b"\xc3\xa9"], logical=STRING, edit_chunk=old(b"\xc3\xa9", b"a"), **BARE
    )
    agree(text, "a", "é", "b")
    assert groups_read(text, ps.col("x") == "zz") == 1
    unsigned = one(
        INT32,
        [1, 1 << 31],
        logical=integer(32, False),
        edit_chunk=old(i32(1 << 31), i32(1)),
        **BARE,
    )
    agree(unsigned, 1, 1 << 31, 5)


def test_new_bounds_win_over_deprecated_ones() -> None:
    data = one(INT32, [1, 2, 3], edit_chunk=stats(min=i32(50), max=i32(60)), **BARE)
    agree(data, 1, 2, 55)


@pytest.mark.parametrize("change", [{"min_value": None}, {"max_value": None}])
def test_one_bound_alone(change: dict[str, None]) -> None:
    agree(one(INT32, [1, 2, 3], edit_chunk=stats(**change), **BARE), 1, 2, 0, 9)


@pytest.mark.parametrize("low", [b"", b"\0", b"\0" * 8, i32(9)])
def test_bounds_of_the_wrong_size_or_order(low: bytes) -> None:
    agree(one(INT32, [1, 2, 3], edit_chunk=stats(min_value=low), **BARE), 1, 2, 9)


def test_one_row_group_without_statistics() -> None:
    groups = [
        [
            Column("x", INT32, [g, g + 1], statistics=g != 1, **BARE),
            Column("row", INT32, [2 * g, 2 * g + 1]),
        ]
        for g in range(3)
    ]
    data = write(*groups)
    agree(data, 0, 1, 2, 3)
    assert groups_read(data, ps.col("x") == 3) == 2


# ---- what a chunk says of its values ---------------------------------------------------------------


def said(data: bytes, group: int = 0) -> tuple[Any, Any, int | None, int | None]:
    made = open_metadata(data).chunk_values(group, "x")
    low, high = (None if v is None else v.as_py() for v in (made.min, made.max))
    return low, high, made.null_count, made.nan_count


def test_66_values_of_a_chunk_are_exact_or_none() -> None:
    assert said(one(INT32, [3, None, 1], optional=True)) == (1, 3, 1, 0)
    assert said(one(INT32, [3, 1], edit_chunk=exact(True, False))) == (1, None, 0, 0)
    assert said(one(BYTE_ARRAY, [b"a", b"b"])) == (None, None, 0, 0), "they may be shortened"
    assert said(one(BYTE_ARRAY, [b"a", b"b"], edit_chunk=exact(True, False))) == (b"a", None, 0, 0)
    assert said(one(BYTE_ARRAY, [b"a", b"b"], edit_chunk=exact(True, True))) == (b"a", b"b", 0, 0)
    assert said(one(FIXED, [twos(5, 4)], type_length=4, **decimal(9, 0)))[0] == Decimal(5)
    assert said(one(INT32, [1], statistics=False)) == (None, None, 0, 0)
    assert said(one(INT32, [1], optional=True, statistics=False)) == (None, None, None, 0)
    bounds = open_metadata(one(BYTE_ARRAY, [b"a", b"b"])).chunk_values(0, "x")
    assert (bounds.lower.as_py(), bounds.upper.as_py()) == (b"a", b"b")


def test_66_counts_and_bounds_that_contradict_each_other_say_nothing() -> None:
    nothing = (None, None, None, None)
    assert said(one(INT32, [1, 2], optional=True, edit_chunk=stats(nulls=I64(2)))) == nothing
    assert said(one(INT32, [1, 2], optional=True, edit_chunk=stats(nulls=I64(3)))) == (
        1,
        2,
        None,
        0,
    )
    assert said(one(INT32, [1, 2], edit_chunk=stats(min_value=i32(5)))) == (None, None, 0, 0)


def test_61_66_values_of_floats_leave_nan_out() -> None:
    assert said(one(DOUBLE, [1.0, NAN, 2.0], nan_count=True)) == (1.0, 2.0, 0, 1)
    assert said(one(DOUBLE, [1.0, NAN, 2.0])) == (1.0, 2.0, 0, None)
    assert said(one(DOUBLE, [NAN, NAN], nan_count=True)) == (None, None, 0, 2)
    for nans in (-1, 3):
        data = one(DOUBLE, [1.0, 2.0], edit_chunk=stats(nans=I64(nans)))
        assert said(data)[3] is None
    bound = struct.pack("<d", NAN)
    data = one(DOUBLE, [1.0], edit_chunk=stats(min_value=bound, max_value=bound))
    assert said(data)[:2] == (None, None)


def test_68_one_row_group_without_statistics_has_no_values() -> None:
    groups = [[Column("x", INT32, [g, g + 1], statistics=g != 1)] for g in range(3)]
    data = write(*groups)
    assert [said(data, g)[:2] for g in range(3)] == [(0, 1), (None, None), (2, 3)]
