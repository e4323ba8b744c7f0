"""Literals are bound exactly: nothing wraps or is rounded, and literals that cannot be compared raise errors."""

from __future__ import annotations

import copy
import datetime as dt
import functools
import io
import math
import pickle
import struct
import uuid
from decimal import Decimal
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pageseek as ps
from support.oracle import OPS, agree, build
from support.tiers import examples
from support.writer import (
    BOOLEAN,
    BYTE_ARRAY,
    DATE,
    DOUBLE,
    FIXED,
    FLOAT,
    FLOAT16,
    INT32,
    INT64,
    STRING,
    Column,
    decimal,
    integer,
    timestamp,
    write,
)

NAN, INF = math.nan, math.inf


def written(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue())


def one(physical: int, values: list[Any], **knobs: Any) -> bytes:
    """Each value in a page of its own."""
    n = len(values)
    return write(
        [Column("x", physical, values, [1] * n, **knobs), Column("row", INT32, list(range(n)))]
    )


def passing(data: bytes, op: str, literal: Any) -> list[int]:
    found: list[int] = ps.read_table(data, filter=build((op, "x", literal)))["row"].to_pylist()
    return found


def wanted(values: list[Any], op: str, literal: Any) -> list[int]:
    tests = {
        "=": lambda v: v == literal,
        "!=": lambda v: v != literal,
        "<": lambda v: v < literal,
        "<=": lambda v: v <= literal,
        ">": lambda v: v > literal,
        ">=": lambda v: v >= literal,
    }
    return [i for i, v in enumerate(values) if tests[op](v)]


def check(data: bytes, values: list[Any], literal: Any, as_number: Any = None) -> None:
    for op in OPS:
        assert passing(data, op, literal) == wanted(
            values, op, literal if as_number is None else as_number
        ), op


# ---- integers ------------------------------------------------------------------------------------


@functools.cache
def integers(bits: int, signed: bool) -> tuple[bytes, list[int]]:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    values = sorted({low, low + 1, max(low, -1), 0, 1, 100, high - 1, high})
    physical = INT64 if bits == 64 else INT32
    return one(physical, values, logical=integer(bits, signed)), values


NUMBERS = (
    st.integers(-(1 << 70), 1 << 70)
    | st.sampled_from(
        [
            s * (1 << b) + d
            for s in (1, -1)
            for b in (7, 8, 15, 16, 31, 32, 53, 63, 64)
            for d in (-1, 0, 1)
        ]
    )
    | st.floats(allow_nan=False)
    | st.decimals(allow_nan=False, allow_infinity=False, places=3)
    | st.fractions(max_denominator=9)
)


@settings(max_examples=examples(120), deadline=None)
@given(
    st.sampled_from([(b, s) for b in (8, 16, 32, 64) for s in (True, False)]),
    NUMBERS,
    st.sampled_from(OPS),
)
def test_any_number_against_integers(kind: tuple[int, bool], literal: Any, op: str) -> None:
    data, values = integers(*kind)
    number = literal if isinstance(literal, float) and math.isinf(literal) else Fraction(literal)
    assert passing(data, op, literal) == wanted(values, op, number)


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("signed", [True, False])
def test_integers_beyond_the_column_do_not_wrap(bits: int, signed: bool) -> None:
    data, values = integers(bits, signed)
    for literal in (
        values[0] - 1,
        values[-1] + 1,
        1 << bits,
        -(1 << bits),
        10**30,
        0.5,
        -0.5,
        1e300,
        INF,
        -INF,
    ):
        check(data, values, literal)
        assert passing(data, "in", (literal, 1)) == [values.index(1)]


def test_nan_against_integers() -> None:
    data, values = integers(32, True)
    for op in OPS:
        assert passing(data, op, NAN) == (list(range(len(values))) if op == "!=" else [])
        assert passing(data, op, np.float32("nan")) == passing(data, op, NAN)
    for op in ("<", "<=", "!="):
        assert ps.read_table(data, filter=build((op, "x", NAN)), nan="spark").num_rows == len(
            values
        )


@pytest.mark.parametrize(
    "literal",
    [np.int8(100), np.uint64(100), np.int64(100), np.float32(100), np.float64(100), pa.scalar(100), pa.scalar(100, pa.uint8()),
     pa.scalar(100.0), pa.scalar(Decimal("100.00")), Decimal("100"), Fraction(100), pd.Series([100])[0]],
    ids=repr,
)  # fmt: skip
def test_scalars_of_other_libraries(literal: Any) -> None:
    data, values = integers(16, True)
    check(data, values, literal, 100)


@pytest.mark.parametrize(
    "literal",
    [True, "100", b"100", dt.date(2020, 1, 1), [1], 1j, np.array([1, 2])],
    ids=repr,
)
def test_literals_of_another_domain_are_refused_by_name(literal: Any) -> None:
    data, _ = integers(32, True)
    with pytest.raises(ps.PredicateError, match=r"'x'|x"):
        passing(data, "<", literal)


def test_null_literals_are_never_true() -> None:
    data, _ = integers(32, True)
    for null in (None, pa.scalar(None), pa.scalar(None, pa.int64())):
        for op in OPS:
            assert passing(data, op, null) == []


@pytest.mark.parametrize("null", [pd.NaT, pd.NA, np.datetime64("NaT")], ids=repr)
def test_nulls_of_pandas_are_null(null: Any) -> None:
    for data in (integers(64, True)[0], one(INT64, [1, 2], logical=timestamp("us"))):
        assert passing(data, "=", null) == []


# ---- floats --------------------------------------------------------------------------------------


@functools.cache
def floats(width: int) -> tuple[bytes, list[float]]:
    values = [-INF, -2.5, -0.0, 0.1, 1.0, 2.0**10, INF]
    if width == 16:
        narrow = [struct.unpack("<e", struct.pack("<e", v))[0] for v in values]
        packed = [struct.pack("<e", v) for v in narrow]
        return one(FIXED, packed, type_length=2, logical=FLOAT16), narrow
    if width == 32:
        narrow = [struct.unpack("<f", struct.pack("<f", v))[0] for v in values]
        return one(FLOAT, narrow), narrow
    return one(DOUBLE, values), values


@settings(max_examples=examples(120), deadline=None)
@given(
    st.sampled_from((16, 32, 64)),
    NUMBERS | st.sampled_from([0.1, 1e39, -1e39, 65_520, 65_519, 2**-149, 2**-25]),
    st.sampled_from(OPS),
)
def test_any_number_against_floats(width: int, literal: Any, op: str) -> None:
    data, values = floats(width)
    number = literal if isinstance(literal, float) else Fraction(literal)
    assert passing(data, op, literal) == wanted(values, op, number)


@pytest.mark.parametrize("width", [16, 32])
def test_a_double_between_two_narrow_floats_equals_neither(width: int) -> None:
    data, values = floats(width)
    check(data, values, 0.1)
    check(data, values, np.float32(0.1), float(np.float32(0.1)))
    check(data, values, 1e60)
    check(data, values, -(10**400))


# ---- decimals ------------------------------------------------------------------------------------


@settings(max_examples=examples(100), deadline=None)
@given(NUMBERS, st.sampled_from(OPS), st.sampled_from((0, 2, 4)))
def test_any_number_against_decimals(literal: Any, op: str, scale: int) -> None:
    data, values = decimals(scale)
    number = literal if isinstance(literal, float) and math.isinf(literal) else Fraction(literal)
    assert passing(data, op, literal) == wanted(values, op, number)


@functools.cache
def decimals(scale: int) -> tuple[bytes, list[Fraction]]:
    unscaled = [-99_999, -1, 0, 1, 150, 99_999]
    return one(INT64, unscaled, **decimal(15, scale)), [Fraction(v, 10**scale) for v in unscaled]


def test_decimals_of_another_scale_or_beyond_the_precision() -> None:
    data, values = decimals(2)
    for literal in (
        Decimal("1.5"),
        Decimal("1.500"),
        Decimal("1.505"),
        Decimal("1E+40"),
        Decimal("-1E-40"),
        Decimal("0E+3"),
    ):
        check(data, values, literal, Fraction(literal))
    check(data, values, pa.scalar(Decimal("1.50"), pa.decimal256(60, 20)), Fraction(3, 2))
    for special in (Decimal("NaN"), Decimal("Infinity")):
        assert passing(data, "=", special) == []


# ---- strings and bytes ---------------------------------------------------------------------------


def test_text_takes_str_and_binary_takes_bytes() -> None:
    text = one(BYTE_ARRAY, [b"a", b"b"], logical=STRING)
    binary = one(BYTE_ARRAY, [b"a", b"b"])
    for literal in ("a", np.str_("a"), pa.scalar("a"), pa.scalar("a", pa.large_string())):
        assert passing(text, "=", literal) == [0]
        with pytest.raises(ps.PredicateError, match="bytes"):
            passing(binary, "=", literal)
    for literal in (b"a", bytearray(b"a"), memoryview(b"a"), pa.scalar(b"a")):
        assert passing(binary, "=", literal) == [0]
        with pytest.raises(ps.PredicateError, match="str"):
            passing(text, "=", literal)
    assert passing(text, "<", "\ud800") == [0, 1], "a lone surrogate is a literal like any other"


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("literal", [b"", b"a", b"ab", b"abc", b"b\0", b"\xff\xff", b"zzzzzz"])
def test_fixed_width_columns_take_literals_of_any_length(op: str, literal: bytes) -> None:
    values = [b"ab", b"b\0", b"\xff\xff", b"a\0"]
    assert passing(one(FIXED, values, type_length=2), op, literal) == wanted(values, op, literal)


def test_uuids() -> None:
    ids = [uuid.UUID(int=5), uuid.UUID(int=1 << 127)]
    data = one(FIXED, [u.bytes for u in ids], type_length=16, logical={14: {}})
    for literal in (ids[1], ids[1].bytes, pa.scalar(ids[1].bytes, pa.uuid())):
        assert passing(data, "=", literal) == [1]
    assert passing(data, "<", ids[1]) == [0]


def test_booleans_take_only_booleans() -> None:
    data = one(BOOLEAN, [True, False])
    assert passing(data, "=", True) == [0]
    assert passing(data, "<", np.True_) == [1]
    assert passing(data, "=", pa.scalar(False)) == [1]
    with pytest.raises(ps.PredicateError):
        passing(data, "=", 1)


# ---- time ----------------------------------------------------------------------------------------

PER = {"ms": 10**3, "us": 10**6, "ns": 10**9}
EPOCH = dt.datetime(1970, 1, 1)


@functools.cache
def times(unit: str, utc: bool) -> tuple[bytes, list[Fraction]]:
    seconds = [
        Fraction(-1),
        Fraction(-1, PER[unit]),
        Fraction(0),
        Fraction(1, PER[unit]),
        Fraction(1_700_000_000),
    ]
    values = [int(s * PER[unit]) for s in seconds]
    return one(INT64, values, logical=timestamp(unit, utc)), seconds


def seconds_of(value: dt.datetime) -> Fraction:
    delta = (
        value.replace(tzinfo=None) - EPOCH
        if value.tzinfo is None
        else value.astimezone(dt.UTC).replace(tzinfo=None) - EPOCH
    )
    return Fraction(delta.days * 86_400 + delta.seconds) + Fraction(delta.microseconds, 10**6)


@settings(max_examples=examples(80), deadline=None)
@given(st.datetimes() | st.sampled_from([EPOCH, EPOCH + dt.timedelta(microseconds=1), EPOCH - dt.timedelta(microseconds=1)]),
       st.sampled_from(sorted(PER)), st.sampled_from(OPS), st.sampled_from([None, "UTC", "Europe/Berlin", "America/Caracas"]))  # fmt: skip
def test_any_datetime_against_timestamps(
    when: dt.datetime, unit: str, op: str, zone: str | None
) -> None:
    data, values = times(unit, zone is not None)
    if zone is not None:
        when = when.replace(tzinfo=ZoneInfo(zone))
        if not dt.datetime(2, 1, 1) < when.replace(tzinfo=None) < dt.datetime(9998, 1, 1):
            return
    assert passing(data, op, when) == wanted(values, op, seconds_of(when))


def test_a_zone_on_one_side_only_is_refused_with_the_remedy() -> None:
    with pytest.raises(ps.PredicateError, match="without one"):
        passing(times("us", False)[0], "=", dt.datetime(2020, 1, 1, tzinfo=dt.UTC))
    with pytest.raises(ps.PredicateError, match="time zone"):
        passing(times("us", True)[0], "=", dt.datetime(2020, 1, 1))
    with pytest.raises(ps.PredicateError, match="write it as '2024-01-31"):
        passing(times("us", False)[0], "=", "tomorrow")


@pytest.mark.parametrize("unit", sorted(PER))
def test_nanoseconds_are_kept(unit: str) -> None:
    data, values = times(unit, False)
    nanosecond = Fraction(1, 10**9)
    for literal in (pd.Timestamp(1), np.datetime64(1, "ns"), pa.scalar(1, pa.timestamp("ns"))):
        check(data, values, literal, nanosecond)
    utc, values = times(unit, True)
    check(utc, values, pd.Timestamp(1, tz="UTC"), nanosecond)
    check(utc, values, pd.Timestamp(-1, tz="Asia/Kolkata"), -nanosecond)
    check(utc, values, pa.scalar(1, pa.timestamp("ns", "Asia/Kolkata")), nanosecond)


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns"])
def test_numpy_times_of_every_unit(unit: str) -> None:
    data, values = times("us", False)
    check(data, values, np.datetime64(0, unit), Fraction(0))


def test_numpy_times_beyond_64_bits_of_nanoseconds() -> None:
    durations = [0, 1, -5, 10**9]
    data = written(pa.table({"a": pa.array(durations, pa.duration("us"))}))
    for literal, found in (
        (np.timedelta64(150_000, "D"), 4),
        (np.timedelta64(-(2**62), "s"), 0),
        (np.timedelta64(1, "fs"), 2),
        (np.timedelta64(999_999_999, "ns"), 3),
        (np.timedelta64(25, "W"), 4),
    ):
        assert ps.read_table(data, filter=ps.col("a") < literal).num_rows == found
    for literal in (np.timedelta64(1, "M"), np.timedelta64(1, "Y"), np.timedelta64(2)):
        with pytest.raises(ps.PredicateError, match="cannot be compared"):
            ps.scan(data, filter=ps.col("a") < literal).plan()


@pytest.mark.parametrize(
    ("made", "literal", "remedy"),
    [
        (pa.string(), 7, "give str, not int"),
        (pa.date32(), 5, "give a value of the column's type"),
        (pa.bool_(), 2, "give a value of the column's type"),
        (pa.int64(), object(), "give a value of the column's type"),
        (pa.int64(), [1, 2], "give one value, or write isin for several"),
        (pa.string(), ("x", "y"), "give one value, or write isin for several"),
    ],
)
def test_a_literal_that_does_not_fit_has_a_remedy(
    made: pa.DataType, literal: object, remedy: str
) -> None:
    data = written(pa.table({"a": pa.array([None], made)}))
    with pytest.raises(ps.PredicateError, match=f"^<memory>: column 'a' of type .*: {remedy}$"):
        ps.read_table(data, filter=ps.col("a") == literal)


@pytest.mark.parametrize("unit", ["M", "Y"])
def test_numpy_months_and_years(unit: str) -> None:
    counts = [*range(-4900, 4900, 7), 0, -1, -9, -10, -11]
    days = [int(np.datetime64(c, unit).astype("datetime64[D]").astype(int)) for c in counts]
    data = written(pa.table({"a": pa.array(days, pa.int32()).cast(pa.date32())}))
    for i in range(0, len(counts), 50):
        literal = np.datetime64(counts[i], unit)
        assert ps.read_table(data, filter=ps.col("a") == literal).num_rows == days.count(days[i])
    for far, found in ((2**62, len(days)), (-(2**62), 0)):
        assert ps.read_table(data, filter=ps.col("a") < np.datetime64(far, unit)).num_rows == found


def test_the_last_times_of_python_in_any_zone() -> None:
    moments = [dt.datetime(1970, 1, 1, tzinfo=dt.UTC), dt.datetime(9999, 12, 31, 23, tzinfo=dt.UTC)]
    data = written(pa.table({"a": pa.array(moments, pa.timestamp("us", "UTC"))}))
    west, east = dt.timezone(dt.timedelta(hours=-5)), dt.timezone(dt.timedelta(hours=5))
    a = ps.col("a")
    assert ps.read_table(data, filter=a < dt.datetime.max.replace(tzinfo=west)).num_rows == 2
    assert ps.read_table(data, filter=a < dt.datetime.max.replace(tzinfo=east)).num_rows == 1
    assert ps.read_table(data, filter=a > dt.datetime.min.replace(tzinfo=east)).num_rows == 2


def test_dates() -> None:
    days = [-1, 0, 1, 20_000]
    data = one(INT32, days, logical=DATE)
    start = dt.date(1970, 1, 1)
    for literal in (
        start,
        pa.scalar(start),
        np.datetime64("1970-01-01"),
        pa.scalar(start, pa.date64()),
    ):
        check(data, days, literal, 0)
    check(data, days, dt.datetime(1970, 1, 1, 12), Fraction(1, 2))
    check(data, days, dt.date.max, 10**9)
    stamps, values = times("ms", False)
    check(stamps, values, start, Fraction(0))


def test_times_of_day() -> None:
    data = one(INT64, [0, 1, 86_399_999_999], logical={7: {1: False, 2: {2: {}}}})
    agree(data, dt.time(0), dt.time(0, 0, 0, 1), dt.time(23, 59, 59, 999_999), dt.time(12))
    assert passing(data, "=", pa.scalar(1000, pa.time64("ns"))) == [1]
    assert passing(data, ">", pa.scalar(500, pa.time64("ns"))) == [1, 2]
    with pytest.raises(ps.PredicateError):
        passing(data, "=", dt.time(0, tzinfo=dt.UTC))


def test_lists_with_duplicates_and_many_values() -> None:
    data, values = integers(32, True)
    assert passing(data, "in", (1, 1, 0, 1.0, Decimal(1), 99.5, 1 << 40)) == [
        values.index(0),
        values.index(1),
    ]
    assert passing(data, "in", tuple(range(10_000))) == [
        i for i, v in enumerate(values) if 0 <= v < 10_000
    ]
    assert passing(data, "in", np.arange(3)) == [values.index(0), values.index(1)]
    assert passing(data, "in", pa.array([0, None, 1])) == [values.index(0), values.index(1)]


FAR = {
    "time of nanoseconds": (pa.time64("ns"), 1_234_567),
    "timestamp of nanoseconds": (pa.timestamp("ns"), 1_234_567),
    "duration of nanoseconds": (pa.duration("ns"), 1_234_567),
    "timestamp beyond the year 9999": (pa.timestamp("ms"), 431_606_573_989_437),
    "date beyond the year 9999": (pa.date32(), 10_000_000),
}


@pytest.mark.parametrize("name", FAR)
def test_times_that_python_cannot_hold_are_pickled_and_shown(name: str) -> None:
    kind, value = FAR[name]
    ticks = pa.array([value, value + 1, value - 1, None], pa.int64())
    column = (ticks.cast(pa.int32()) if kind == pa.date32() else ticks).cast(kind)
    file = io.BytesIO()
    pq.write_table(pa.table({"x": column}), file)
    for literal in (column[0], column.dictionary_encode()[0]):
        for condition in (ps.col("x") == literal, ps.col("x").isin([literal, None])):
            assert "x" in repr(condition)
            for copied in (copy.copy(condition), copy.deepcopy(condition)):
                assert ps.read_table(file.getvalue(), filter=copied).num_rows == 1
            plan = ps.scan(file.getvalue(), filter=condition).plan()
            for again in (plan, pickle.loads(pickle.dumps(plan))):
                assert sum(batch.num_rows for batch in again.execute()) == 1, repr(condition)
    missing = pickle.loads(pickle.dumps(ps.col("x") == pa.scalar(None, kind)))
    assert ps.read_table(file.getvalue(), filter=missing).num_rows == 0
