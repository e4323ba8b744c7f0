"""Bounds in the order of each type, or in a wrong order: a pruned read equals a full one."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import pageseek as ps
from support.bounds import BARE, INF, NAN, groups_read, i32, one, stats, twos
from support.oracle import agree, pages_read
from support.writer import (
    BOOLEAN,
    BYTE_ARRAY,
    DATE,
    DOUBLE,
    FIXED,
    FLOAT,
    FLOAT16,
    I32,
    I64,
    INT32,
    INT64,
    INT96,
    STRING,
    Column,
    Struct,
    decimal,
    integer,
    plain_value,
    timestamp,
    write,
)

# ---- integers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_unsigned_integers_compare_unsigned(bits: int) -> None:
    top = (1 << bits) - 1
    values = [0, 1, top // 2, top // 2 + 1, top]
    physical = INT64 if bits == 64 else INT32
    data = one(physical, values, [1] * 5, logical=integer(bits, False))
    rows = agree(data, 0, 1, top // 2, top // 2 + 1, top)
    assert [r["x"] for r in rows] == values
    assert pages_read(data, ps.col("x") == top) == 1
    agree(data, -1, 1 << bits, 1.5)


@pytest.mark.parametrize("bits", [8, 16])
def test_narrow_signed_integers(bits: int) -> None:
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    for logical in (integer(bits, True), None):
        converted = {8: 15, 16: 16}[bits] if logical is None else None
        data = one(INT32, [low, -1, 0, high], [1] * 4, logical=logical, converted=converted)
        agree(data, low, -1, 0, high, 300 << bits, -(300 << bits))
        assert pages_read(data, ps.col("x") == high) == 1


@pytest.mark.parametrize(("bits", "signed"), [(8, True), (8, False), (16, True), (16, False)])
def test_values_beyond_the_logical_type(bits: int, signed: bool) -> None:
    """Whatever such a value reads as, bounds beyond the type must not rule it out."""
    values = [10, 200, 300, 70_000, -5]
    for cuts in ([5], [2, 3], [1] * 5):
        data = one(INT32, values, cuts, logical=integer(bits, signed))
        found = [r["x"] for r in ps.read_table(data).to_pylist()]
        agree(data, *found)


# ---- floats --------------------------------------------------------------------------------------


def both(physical: int, values: list[float]) -> list[Any]:
    return [struct.pack("<e", v) for v in values] if physical == FIXED else values


FLOATS = pytest.mark.parametrize(
    ("physical", "knobs"),
    [(FLOAT, {}), (DOUBLE, {}), (FIXED, {"type_length": 2, "logical": FLOAT16})],
    ids=["float", "double", "float16"],
)


@FLOATS
@pytest.mark.parametrize("nan_count", [True, False])
def test_nan_lies_outside_the_bounds(physical: int, knobs: dict[str, Any], nan_count: bool) -> None:
    for values in ([1.0, NAN, 2.0, 1.0], [1.0, 1.0, NAN, NAN], [1.0, 1.0, 2.0, 2.0], [NAN] * 4):
        for cuts in ([4], [2, 2], [1] * 4):
            data = one(physical, both(physical, values), cuts, nan_count=nan_count, **knobs)
            agree(data, 1.0, 1.5, NAN, INF)
            wanted = [i for i, v in enumerate(values) if v != v]
            assert ps.read_table(data, filter=ps.col("x").is_nan())["row"].to_pylist() == wanted


@FLOATS
def test_nan_as_the_largest_value(physical: int, knobs: dict[str, Any]) -> None:
    data = one(physical, both(physical, [1.0, NAN, 2.0]), [1] * 3, nan_count=True, **knobs)
    for condition, wanted in (
        (ps.col("x") > 1.5, [1, 2]),
        (ps.col("x") == NAN, [1]),
        (ps.col("x") < NAN, [0, 2]),
        (ps.col("x") <= NAN, [0, 1, 2]),
        (ps.col("x") != NAN, [0, 2]),
        (ps.col("x").isin([NAN, 1.0]), [0, 1]),
        (~(ps.col("x") <= 2.0), [1]),
    ):
        assert ps.read_table(data, filter=condition, nan="spark")["row"].to_pylist() == wanted, (
            condition
        )


@FLOATS
def test_bounds_that_are_nan_prove_nothing(physical: int, knobs: dict[str, Any]) -> None:
    nans = both(physical, [NAN, -NAN])
    for nan in nans:
        bound = plain_value(physical, nan)

        def index(made: Struct, bound: bytes = bound) -> None:
            made[2], made[3] = [bound] * len(made[2]), [bound] * len(made[3])

        values = both(physical, [1.0, 5.0, 3.0])
        data = one(
            physical,
            values,
            [1] * 3,
            edit_chunk=stats(min_value=bound, max_value=bound),
            edit_column_index=index,
            **knobs,
        )
        agree(data, 1.0, 3.0, 9.0)


@FLOATS
@pytest.mark.parametrize("order", [1, 2])
def test_zeros_of_either_sign_are_equal(physical: int, knobs: dict[str, Any], order: int) -> None:
    values = both(physical, [0.0, -0.0, 0.0, 1.0])

    def index(
        made: Struct,
    ) -> None:  # bounds as a careless writer has them: the sign of the first zero
        made[2] = [plain_value(physical, v) for v in values]
        made[3] = list(made[2])

    low = plain_value(physical, values[0])
    data = write(
        [
            Column(
                "x",
                physical,
                values,
                [1] * 4,
                edit_chunk=stats(min_value=low),
                edit_column_index=index,
                **knobs,
            ),
            Column("row", INT32, [0, 1, 2, 3]),
        ],
        column_orders=[{order: {}}, {1: {}}],
    )
    agree(data, 0.0, -0.0, 1.0)
    assert ps.read_table(data, filter=ps.col("x").isin([-0.0]))["row"].to_pylist() == [0, 1, 2]


@pytest.mark.parametrize("nans", [-1, 0, 2, 99])
def test_nan_counts_wrong_or_right(nans: int) -> None:
    values = [1.0, NAN, NAN, 2.0] if nans else [1.0, 1.5, 1.7, 2.0]
    agree(one(DOUBLE, values, edit_chunk=stats(nans=I64(nans)), **BARE), 1.0, 2.0, 3.0, NAN)


def test_float16_compares_as_a_number() -> None:
    data = one(
        FIXED, both(FIXED, [-2.0, -1.0, 0.5, 100.0]), [1] * 4, type_length=2, logical=FLOAT16
    )
    agree(data, -2.0, -1.0, 0.5, 100.0, 3)
    assert pages_read(data, ps.col("x") == -1.0) == 1


# ---- byte strings --------------------------------------------------------------------------------


def test_text_orders_by_unsigned_bytes() -> None:
    data = one(BYTE_ARRAY, [b"a", b"\xc3\xa9", b"z", b"\xf0\x9f\x98\x80"], [1] * 4, logical=STRING)
    agree(data, "a", "é", "z", "😀", "")
    binary = one(BYTE_ARRAY, [b"\x7f", b"\x80", b"\xff", b""], [1] * 4)
    agree(binary, b"\x7f", b"\x80", b"\xff", b"")


def test_truncated_bounds_are_bounds() -> None:
    values = [b"apple pie", b"apple tart", b"banana", b"\xff\xff\xff\x01"]

    def truncate(index: Struct) -> None:
        index[2] = [b"apple", b"ban", b"\xff"]
        index[3] = [b"applf", b"bao", b"\xff\xff\xff\x01"]

    change = stats(min_value=b"appl", max_value=b"\xff\xff\xff\x02")
    data = one(BYTE_ARRAY, values, [2, 1, 1], edit_column_index=truncate, edit_chunk=change)
    agree(data, *values, b"apple", b"applf", b"ban", b"")
    for prefix, rows in (
        (b"apple p", [0]),
        (b"apple", [0, 1]),
        (b"", [0, 1, 2, 3]),
        (b"\xff\xff\xff\x01\x01", []),
        (b"banz", []),
    ):
        assert (
            ps.read_table(data, filter=ps.col("x").starts_with(prefix))["row"].to_pylist() == rows
        )
        rest = [r for r in range(4) if r not in rows]
        assert (
            ps.read_table(data, filter=~ps.col("x").starts_with(prefix))["row"].to_pylist() == rest
        )


def test_text_bounds_cut_inside_a_character_prune_all_the_same() -> None:
    def truncate(index: Struct) -> None:
        index[2], index[3] = [b"\xc3"] * 2, [b"\xc4"] * 2

    data = one(
        BYTE_ARRAY, ["é".encode(), "è".encode()], [1, 1], logical=STRING, edit_column_index=truncate
    )
    agree(data, "é", "è", "a", "ÿ")


def test_fixed_width_bytes_and_uuids_order_unsigned() -> None:
    values = [b"\x00" * 16, b"\x7f" * 16, b"\x80" + b"\0" * 15, b"\xff" * 16]
    agree(one(FIXED, values, [1] * 4, type_length=16), *values)
    ids = one(FIXED, values, [1] * 4, type_length=16, logical={14: {}})
    full = ps.read_table(ids)["x"].to_pylist()
    agree(ids, *full)


def test_intervals_have_no_order() -> None:
    values = [b"\1" + b"\0" * 11, b"\0" * 11 + b"\1", b"\2" * 12]
    data = one(FIXED, values, [1] * 3, type_length=12, converted=21)
    for v in values:
        assert ps.read_table(data, filter=ps.col("x") == v).num_rows == 1


def test_booleans() -> None:
    for values in ([True, False, None, True], [True] * 4, [False] * 4):
        data = one(BOOLEAN, values, [1] * 4, optional=True)
        agree(data, True, False)
    assert pages_read(one(BOOLEAN, [True, False], [1, 1]), ps.col("x") == True) == 1  # noqa: E712


# ---- decimals ------------------------------------------------------------------------------------


UNSCALED = [-12_345, -1, 0, 5, 127, 128, 99_999]


@pytest.mark.parametrize("scale", [0, 2])
@pytest.mark.parametrize("kind", ["int32", "int64", "fixed", "wide", "bytes", "padded"])
def test_decimals_compare_by_value(kind: str, scale: int) -> None:
    physical, encode, length = {
        "int32": (INT32, int, None),
        "int64": (INT64, int, None),
        "fixed": (FIXED, lambda v: twos(v, 5), 5),
        "wide": (FIXED, lambda v: twos(v, 20), 20),
        "bytes": (BYTE_ARRAY, twos, None),
        "padded": (BYTE_ARRAY, lambda v: twos(v, 4 + v % 5), None),
    }[kind]
    values = [encode(v) for v in UNSCALED]
    precision = 40 if kind == "wide" else 9
    for encodings in ("plain", "dictionary"):
        data = one(
            physical,
            values,
            [1] * 7,
            type_length=length,
            encodings=encodings,
            **decimal(precision, scale),
        )
        exact = [Decimal(v).scaleb(-scale) for v in UNSCALED]
        rows = agree(data, exact[0], exact[3], exact[-1], 1, Decimal("0.005"))
        assert [r["x"] for r in rows] == exact
        assert pages_read(data, ps.col("x") == exact[0]) == 1


def test_decimal_bounds_in_unsigned_order_are_ignored() -> None:
    values = [twos(-5, 4), twos(7, 4)]
    wrong = stats(min_value=values[1], max_value=values[0])

    def index(made: Struct) -> None:
        made[2], made[3] = [values[1]], [values[0]]

    agree(
        one(
            FIXED, values, type_length=4, edit_chunk=wrong, edit_column_index=index, **decimal(9, 0)
        ),
        -5,
        7,
        0,
    )


def test_decimals_of_no_bytes_are_zero() -> None:
    data = one(BYTE_ARRAY, [b"", twos(3)], [1, 1], **decimal(9, 0))
    agree(data, 0, 3)


# ---- time ----------------------------------------------------------------------------------------


def int96(day: int, nanoseconds: int = 0) -> bytes:
    return struct.pack("<qI", nanoseconds, day + 2_440_588)


def test_bounds_of_int96_are_ignored() -> None:
    values = [int96(0), int96(1, 5), int96(-1, 7)]

    def lie(index: Struct) -> None:
        index.update({1: [False] * 3, 2: [values[0]] * 3, 3: [values[0]] * 3, 4: I32(1)})

    data = one(
        INT96,
        values,
        [1] * 3,
        edit_chunk=stats(min_value=values[0], max_value=values[0]),
        edit_column_index=lie,
    )
    full = ps.read_table(data)["x"].to_numpy()
    for row, value in enumerate(full):
        assert ps.read_table(data, filter=ps.col("x") == value)["row"].to_pylist() == [row]
    agree(data, *ps.read_table(data, int96_unit="us")["x"].to_pylist(), int96_unit="us")


def test_int96_beyond_nanoseconds_names_the_option() -> None:
    data = one(INT96, [int96(1_000_000)])
    with pytest.raises(ps.LimitError, match="int96_unit"):
        ps.read_table(data)
    assert ps.read_table(data, int96_unit="us").num_rows == 1


def test_dates_and_timestamps_of_every_unit() -> None:
    agree(
        one(INT32, [-1, 0, 20_000], [1] * 3, logical=DATE),
        *ps.read_table(one(INT32, [-1, 0, 20_000], logical=DATE))["x"].to_pylist(),
    )
    for unit in ("ms", "us"):
        for utc in (False, True):
            data = one(INT64, [-1, 0, 1_700_000_000_001], [1] * 3, logical=timestamp(unit, utc))
            agree(data, *ps.read_table(data)["x"].to_pylist())


def test_logical_types_that_are_unknown_have_no_order() -> None:
    def lie(index: Struct) -> None:
        index[2] = index[3] = [i32(50)] * 2

    data = one(
        INT32,
        [1, 2],
        [1, 1],
        logical={99: {}},
        edit_column_index=lie,
        edit_chunk=stats(min_value=i32(50), max_value=i32(60)),
    )
    assert ps.read_table(data, filter=ps.col("x") == 1)["row"].to_pylist() == [0]


# ---- orders ----------------------------------------------------------------------------------------


def test_43_an_order_that_is_not_for_the_type_is_ignored() -> None:
    lie = stats(min_value=i32(100), max_value=i32(200))
    for order in (2, 3, 4):
        made = write(
            [Column("x", INT32, [1, 2], edit_chunk=lie, **BARE)], column_orders=[{order: {}}]
        )
        assert ps.read_table(made, filter=ps.col("x") == 2).num_rows == 1
    for order in (3, 4):
        low, high = struct.pack("<d", 100), struct.pack("<d", 200)
        edit = stats(min_value=low, max_value=high)
        made = write(
            [Column("x", DOUBLE, [1.0], edit_chunk=edit, **BARE)], column_orders=[{order: {}}]
        )
        assert ps.read_table(made, filter=ps.col("x") == 1.0).num_rows == 1


def test_43_orders_of_another_number_of_columns_are_nobodys() -> None:
    lie = stats(min_value=i32(100), max_value=i32(200))
    for count in (1, 3):
        made = write(
            [Column("x", INT32, [1, 2], edit_chunk=lie, **BARE), Column("row", INT32, [0, 1])],
            column_orders=[{1: {}}] * count,
        )
        assert ps.read_table(made, filter=ps.col("x") == 2).num_rows == 1


class Chronological(Column):
    """INT96 with bounds in its own order."""

    def bounds(self, values: Iterable[Any]) -> tuple[bytes, bytes] | None:
        ordered = sorted(values, key=lambda v: struct.unpack("<qi", v)[::-1])
        return ordered[0], ordered[-1]


def int96_file(values: list[bytes], order: int = 3) -> bytes:
    rows = Column("row", INT32, list(range(len(values))))
    x = Chronological("x", INT96, values, [1] * len(values), order=0)
    return write([x, rows], column_orders=[{order: {}}, {1: {}}])


@pytest.mark.parametrize("unit", ["ns", "us", "ms"])
def test_43_63_int96_in_its_own_order(unit: str) -> None:
    values = [int96(0, 1_500), int96(1, 5_000_001), int96(-1, 86_399_999_999_999), int96(-9_000)]
    data = int96_file(values)
    options = {"int96_unit": unit}
    full = ps.read_table(data, **options)["x"]
    for row, value in enumerate(full):
        found = ps.scan(data, filter=ps.col("x") == value, **options)
        assert found.to_table()["row"].to_pylist() == [row]
        assert found.explain(analyze=True).to_dict()["leaves"]["x"]["pages"]["read"] == 1
        below = ps.read_table(data, filter=ps.col("x") < value, **options)["row"].to_pylist()
        assert below == [r for r, v in enumerate(full) if v.value < value.value]
    far = pa.scalar(10**9, pa.timestamp("s")).cast(pa.timestamp(unit))
    assert ps.scan(data, filter=ps.col("x") == far, **options).explain().row_groups.read == 0
    unordered = int96_file(values, order=1)
    assert ps.scan(unordered, filter=ps.col("x") == far, **options).explain().row_groups.read == 1


def test_63_bounds_of_int96_that_are_no_times_or_do_not_fit() -> None:
    day = 86_400_000_000_000
    for low, high in (
        (int96(0), int96(1, day)),  # beyond its day: other values may be later
        (int96(0, -1), int96(1)),
        (int96(0), int96(1_000_000)),  # beyond nanoseconds
        (int96(1), int96(0)),
        (int96(0)[:8], int96(1)),
        (b"", b""),
        (int96(0), struct.pack("<qi", 0, -5)),
    ):
        made = one(INT96, [int96(5)], edit_chunk=stats(min_value=low, max_value=high), **BARE)
        ordered = write(
            [
                Column(
                    "x", INT96, [int96(5)], edit_chunk=stats(min_value=low, max_value=high), **BARE
                )
            ],
            column_orders=[{3: {}}],
        )
        for data in (made, ordered):
            value = ps.read_table(data)["x"][0]
            assert ps.read_table(data, filter=ps.col("x") == value).num_rows == 1


@FLOATS
@pytest.mark.parametrize("order", [1, 2])
def test_44_59_a_row_group_of_nothing_but_nan(
    physical: int, knobs: dict[str, Any], order: int
) -> None:
    nan = plain_value(physical, both(physical, [NAN])[0])
    edit = stats(min_value=nan, max_value=nan) if order == 2 else None

    def index(made: Struct) -> None:
        made.update({2: [nan, made[2][1]], 3: [nan, made[3][1]], 1: [False, False]})

    for values, told in (([NAN, NAN], True), ([NAN, NAN, None], True), ([NAN, 1.0], False)):
        stored = [None if v is None else both(physical, [v])[0] for v in values]
        data = write(
            [
                Column("x", physical, stored, nan_count=True, edit_chunk=edit, **knobs, **BARE),
                Column("row", INT32, list(range(len(values)))),
            ],
            column_orders=[{order: {}}, {1: {}}],
        )
        agree(data, 0.0, 1.0, NAN)
        assert groups_read(data, ps.col("x") > 0.5) == (0 if told else 1)
        wanted = [r for r, v in enumerate(values) if v is not None and v != v]
        assert ps.read_table(data, filter=ps.col("x").is_nan())["row"].to_pylist() == wanted
        spark = ps.read_table(data, filter=ps.col("x") > 5.0, nan="spark")["row"].to_pylist()
        assert spark == wanted


@FLOATS
def test_44_nan_outside_of_bounds_in_total_order(physical: int, knobs: dict[str, Any]) -> None:
    for nan_count in (True, False):
        for values in ([1.0, NAN, 2.0, -1.0], [0.0, -0.0, NAN, -NAN]):
            data = write(
                [
                    Column(
                        "x", physical, both(physical, values), nan_count=nan_count, **knobs, **BARE
                    ),
                    Column("row", INT32, [0, 1, 2, 3]),
                ],
                column_orders=[{2: {}}, {1: {}}],
            )
            agree(data, -0.0, 0.0, 1.0, 5.0, NAN)
            found = ps.read_table(data, filter=ps.col("x") > 5.0, nan="spark")["row"].to_pylist()
            assert found == [r for r, v in enumerate(values) if v != v]


# ---- beyond the type -------------------------------------------------------------------------------


def test_47_bounds_beyond_the_logical_type_bound_nothing() -> None:
    for logical, low, high in (
        (decimal(4, 0), 10_000, 20_000),
        ({"logical": {7: {1: True, 2: {1: {}}}}}, 86_400_000, 90_000_000),
        ({"logical": {7: {1: True, 2: {1: {}}}}}, -5, -1),
    ):
        edit = stats(min_value=i32(low), max_value=i32(high))
        data = one(INT32, [1, 2], edit_chunk=edit, **logical, **BARE)
        for value in ps.read_table(data)["x"]:
            assert ps.read_table(data, filter=ps.col("x") == value).num_rows == 1


# ---- no order, no common unit, no upper bound --------------------------------------------------------


@pytest.mark.parametrize("kind", [2, 3, 16, 17, 18, 19, 99])
def test_53_byte_strings_of_types_without_an_order(kind: int) -> None:
    """Variants, geometries and later types: their bounds have no meaning here, or another one."""

    def lie(index: Struct) -> None:
        index[2] = index[3] = [b"x"] * 2

    data = one(
        BYTE_ARRAY,
        [b"a", b"b"],
        [1, 1],
        logical={kind: {}},
        edit_column_index=lie,
        edit_chunk=stats(min_value=b"x", max_value=b"x"),
    )
    assert ps.read_table(data)["row"].to_pylist() == [0, 1]
    for condition in (ps.col("x") == b"b", ps.col("x") > b"a", ~(ps.col("x") <= b"a")):
        try:
            found = ps.read_table(data, filter=condition)["row"].to_pylist()
        except ps.PredicateError:
            continue
        assert found == [1], condition
    assert ps.read_table(data, filter=ps.col("x").is_not_null()).num_rows == 2


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_64_units_whose_conversion_leaves_64_bits(unit: str) -> None:
    top = (1 << 63) - 1
    values = [-top, -1, 0, 1, top]
    data = one(INT64, values, [1] * 5, logical=timestamp(unit))
    per = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
    for other in per:
        for ticks in (top, -top, 0, 1, -1, top // 1000, 10**15 + 1):
            x, literal = ps.col("x"), pa.scalar(ticks, pa.timestamp(other))
            for test, holds in (
                (x < literal, lambda v, t: v < t),
                (x >= literal, lambda v, t: v >= t),
                (x == literal, lambda v, t: v == t),
            ):
                wanted = [
                    i for i, v in enumerate(values) if holds(v * per[unit], ticks * per[other])
                ]
                found = ps.read_table(data, ["row"], test)["row"].to_pylist()
                assert found == wanted, (test, other, ticks)
