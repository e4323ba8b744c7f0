"""Conditions that prune, and those that must not: casts, names, patterns, lists, alternatives, functions."""

from __future__ import annotations

import io
import itertools
import operator
import random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from support.oracle import agree, groups_read, pages_read, rows
from support.writer import (
    BYTE_ARRAY,
    DOUBLE,
    I64,
    INT32,
    INT64,
    STRING,
    Column,
    Struct,
    integer,
    write,
)

X, Y = ps.col("x"), ps.col("y")
F = pc.field
BARE: dict[str, Any] = {"column_index": False, "offset_index": False}


def by_arrow(made: dict[str, Any], **how: Any) -> bytes:
    sink = io.BytesIO()
    how = {"row_group_size": 2, "write_page_index": True, **how}
    pq.write_table(pa.table(made), sink, **how)
    return sink.getvalue()


def texts(values: list[str | None], cuts: list[int], **knobs: Any) -> bytes:
    stored = [None if v is None else v.encode() for v in values]
    return write(
        [
            Column("x", BYTE_ARRAY, stored, cuts, logical=STRING, **knobs),
            Column("row", INT32, list(range(len(values)))),
        ]
    )


# ---- casts (73 to 75) ----------------------------------------------------------------------------------


def test_73_text_is_not_ordered_as_the_numbers_it_spells() -> None:
    """Bounds of text do not bound its numbers: "100" and "99" would leave nothing between them."""
    values = ["13", "100", "3", "99", None, "20"]
    data = by_arrow({"x": values, "row": pa.array(range(6), pa.int32())})
    table = pq.read_table(io.BytesIO(data))
    for op in (operator.lt, operator.ge, operator.eq):
        for number in (5, 13, 50, 100):
            test = op(F("x").cast(pa.int64()), number)
            assert rows(data, test) == table.filter(test)["row"].to_pylist(), test
    assert rows(data, X < "3") == [0, 1, 5], "as text"
    with pytest.raises(ps.PredicateError, match="cannot be compared"):
        rows(data, X < 3)
    numbers = by_arrow({"x": [13, 100, 3, 99], "row": pa.array(range(4), pa.int32())})
    assert rows(numbers, F("x").cast(pa.string()) < "3") == [0, 1]
    assert rows(numbers, F("x").cast(pa.string()) == "3") == [2]


def test_74_a_cast_that_loses_digits_is_not_left_out() -> None:
    values = [1.0, 1.0 + 1e-12, 1.0 - 1e-12, 2.0, 0.5, 1.5]
    for cut in (1, 2, 3):
        data = by_arrow({"x": values, "row": pa.array(range(6), pa.int32())}, row_group_size=cut)
        assert rows(data, F("x").cast(pa.float32()) == pa.scalar(1.0, pa.float32())) == [0, 1, 2]
        assert rows(data, F("x").cast(pa.int64(), safe=False) == 1) == [0, 1, 5]
        assert rows(data, F("x").cast(pa.int64(), safe=False) != 0) == [0, 1, 3, 5]
        assert rows(data, X == 1.0) == [0]
    far = by_arrow({"x": [2**53, 2**53 + 1], "row": pa.array(range(2), pa.int32())})
    assert rows(far, F("x").cast(pa.float64(), safe=False) == float(2**53)) == [0, 1]
    assert rows(far, float(2**53) == X) == [0]


@pytest.mark.parametrize(("bits", "signed"), [(8, True), (8, False), (16, True), (32, False)])
def test_75_a_literal_beyond_the_type_is_less_or_greater_and_never_wraps(
    bits: int, signed: bool
) -> None:
    values = [44, -84 if signed else 172, 0, None]
    data = write(
        [
            Column("x", INT32, values, [1] * 4, logical=integer(bits, signed)),
            Column("row", INT32, [0, 1, 2, 3]),
        ]
    )
    for turns in (1, -1, 3):
        far = 44 + turns * (1 << max(bits, 16))
        for test, wanted in (
            (far == X, []),
            (far != X, [0, 1, 2]),
            (far > X, [0, 1, 2] if turns > 0 else []),
            (far <= X, [] if turns > 0 else [0, 1, 2]),
            (X.isin([far]), []),
            (~X.isin([far, 0]), [0, 1]),
            (X.between(far, far), []),
        ):
            assert rows(data, test) == wanted, test
        assert pages_read(data, far == X) == 0


# ---- names (77, 78, T-12) ----------------------------------------------------------------------------------


def test_77_names_that_differ_in_case_or_hold_a_dot_are_columns_of_their_own() -> None:
    made = {
        "a": [1, 2, 3, 4],
        "A": [40, 30, 20, 10],
        "a.A": [7, 7, 8, 8],
        "b": [{"a": 5}, {"a": 6}, {"a": 5}, {"a": 6}],
        "row": pa.array(range(4), pa.int32()),
    }
    data = by_arrow(made)
    assert rows(data, ps.col("a") == 4) == [3]
    assert rows(data, ps.col("A") == 40) == [0]
    assert rows(data, ps.col("a.A") == 8) == [2, 3]
    assert rows(data, ps.col("b", "a") == 6) == [1, 3]
    assert rows(data, ps.col("b.a") == 6) == [1, 3]
    assert groups_read(data, ps.col("A") == 40) == 1
    for absent in ("B", "ROW", "b.A"):
        with pytest.raises(ps.PredicateError, match=r"no (column|field)"):
            rows(data, ps.col(absent) == 4)


def test_78_files_whose_columns_stand_in_another_order_are_not_mixed_up(tmp_path: Any) -> None:
    """Alone and together they are read by their names, never matched by place."""
    for name, order in (("1", ("x", "y")), ("2", ("y", "x"))):
        columns = {"x": [1, 2], "y": [10, 20]}
        pq.write_table(pa.table({c: columns[c] for c in order}), tmp_path / f"{name}.parquet")
        path = tmp_path / f"{name}.parquet"
        assert ps.read_table(path, ["y"], X == 2).to_pylist() == [{"y": 20}]
    assert ps.read_table(tmp_path, filter=X == 2).to_pylist() == [{"x": 2, "y": 20}] * 2


def test_t12_a_column_that_is_only_tested_is_not_taken_for_one_of_nulls() -> None:
    data = by_arrow(
        {"x": [1, None, 3, 4], "y": [5, 6, 7, 8], "row": pa.array(range(4), pa.int32())}
    )
    for test, wanted in (
        (X == 3, [7]),
        (X.is_null(), [6]),
        (X.is_not_null(), [5, 7, 8]),
        (X != 3, [5, 8]),
        (~X.isin([1]), [7, 8]),
        ((X > 1) & (ps.col("row") < 3), [7]),
    ):
        assert ps.read_table(data, ["y"], test)["y"].to_pylist() == wanted, test
        assert ps.read_table(data, [], test).num_rows == len(wanted), test


# ---- patterns (79, 80) -----------------------------------------------------------------------------------------


def truncated(low: list[bytes], high: list[bytes]) -> Any:
    def edit(index: Struct) -> None:
        index[2], index[3] = low, high

    return edit


def test_79_escapes_are_taken_out_of_a_prefix_before_it_bounds() -> None:
    values = ["a%b", "a%c", "a\\b", "a_b", "aXb", "ab", "b", None]
    data = texts(values, [1] * 8)
    for pattern, wanted in (
        ("a\\%%", [0, 1]),
        ("a\\_%", [3]),
        ("a\\\\%", [2]),
        ("a\\%b", [0]),
        ("a_b", [0, 2, 3, 4]),
        ("ab", [5]),
        ("a\\b", [5]),
    ):
        assert rows(data, X.like(pattern)) == wanted, pattern
        others = [i for i in range(7) if i not in wanted]
        assert rows(data, ~X.like(pattern)) == others, pattern
    assert pages_read(data, X.like("ab")) == pages_read(data, X == "ab") == 1
    assert pages_read(data, X.like("a\\%%")) == 2


def test_79_a_prefix_longer_than_the_bounds_were_cut() -> None:
    values = ["prefix-a", "prefix-b", "prefix-c", "q"]
    knobs = {
        "edit_column_index": truncated([b"pre", b"q"], [b"prf", b"q"]),
        "edit_chunk": lambda meta: meta[12].update({6: b"pr", 5: b"r"}),
    }
    data = texts(values, [3, 1], **knobs)
    for pattern, wanted in (
        ("prefix-b%", [1]),
        ("prefix-%", [0, 1, 2]),
        ("pre%", [0, 1, 2]),
        ("prf%", []),
        ("prefix-b", [1]),
        ("q%", [3]),
        ("qq%", []),
    ):
        assert rows(data, X.like(pattern)) == wanted, pattern
        assert rows(data, ~X.like(pattern)) == [i for i in range(4) if i not in wanted], pattern
    assert pages_read(data, X.like("prefix-b%")) == 1
    assert pages_read(data, X.starts_with("q")) == 1


@pytest.mark.parametrize("last", ["\U0010ffff", "\ud7ff", "\x7f", "\u07ff", "\uffff", "\0"])
def test_79_a_prefix_whose_last_character_has_no_plain_successor(last: str) -> None:
    """The next code point may be longer in UTF-8, a surrogate, or absent."""
    beside = [
        chr(c)
        for c in (ord(last) - 1, ord(last) + 1)
        if 0 <= c < 0x110000 and not 0xD800 <= c < 0xE000
    ]
    values = sorted(
        ["", "p", "p" + last, "p" + last + "a", "p" + last * 2, "q", *("p" + b for b in beside)],
        key=str.encode,
    )
    n = len(values)
    for prefix in ("p" + last, "p" + last * 2, last, "p"):
        wanted = [i for i, v in enumerate(values) if v.startswith(prefix)]
        for cuts in ([1] * n, [2, n - 2], [n]):
            data = texts(list(values), cuts)
            assert rows(data, X.starts_with(prefix)) == wanted
            assert rows(data, ~X.starts_with(prefix)) == [i for i in range(n) if i not in wanted]
        one_each = texts(list(values), [1] * n)
        assert rows(one_each, X.like(prefix + "%")) == wanted
        assert pages_read(one_each, X.starts_with(prefix)) == len(wanted)


def test_80_not_like_is_ruled_out_only_where_both_bounds_have_the_prefix() -> None:
    pages: list[list[str | None]] = [
        ["pa", "pz"], ["oa", "pz"], ["pa", "qz"], ["oa", "qz"], ["p", None], ["pa", "pa"]
    ]  # fmt: skip
    values = [v for page in pages for v in page]
    data = texts(values, [2] * 6)
    wanted = [i for i, v in enumerate(values) if v is not None and not v.startswith("p")]
    for test in (~X.like("p%"), ~X.starts_with("p")):
        assert rows(data, test) == wanted
        assert pages_read(data, test) == 3
    # bounds as a writer may shorten them: "q" is above every "p...", and bounds none of them as such
    cut = truncated([b"p", b"p", b"p", b"o"], [b"q", b"pq", b"q", b"q"])
    shortened = texts(
        ["pa", "pb", "pc", "pd", "pe", "py", "oa", "pf"], [2] * 4, edit_column_index=cut
    )
    assert rows(shortened, ~X.like("p%")) == [6]
    assert rows(shortened, ~X.like("pa%")) == [1, 2, 3, 4, 5, 6, 7]
    assert rows(shortened, X.like("p%")) == [0, 1, 2, 3, 4, 5, 7]
    half = texts(["pa", "zz"], [2], edit_chunk=lambda meta: meta[12].pop(5), **BARE)
    assert rows(half, ~X.like("p%")) == [1], "one bound alone does not tell"


# ---- alternatives (81, T-5) ---------------------------------------------------------------------------------


def pair(x: dict[str, Any], y: dict[str, Any]) -> bytes:
    """Six rows whose columns are cut at other places."""
    return write(
        [
            Column("x", INT32, [1, 2, 3, 4, 5, 6], [2, 2, 2], **x),
            Column("y", INT32, [60, 50, 40, 30, 20, 10], [1, 3, 2], **y),
            Column("row", INT32, list(range(6)), [1] * 6),
        ]
    )


def test_81_a_side_that_cannot_be_judged_keeps_everything() -> None:
    data = pair({}, {"statistics": False, **BARE})
    report = ps.scan(data, filter=(X == 99) | (Y == 10)).explain(analyze=True).to_dict()
    assert report["rows"]["read"] == 6
    assert rows(data, (X == 99) | (Y == 10)) == [5]
    assert rows(data, (X == 1) | (Y == 10)) == [0, 5]
    assert rows(data, (X == 1) & (Y == 60)) == [0]
    assert pages_read(data, (X == 1) & (Y == 60)) == 1
    assert rows(data, ((X == 1) & (Y == 60)) | ((X == 6) & (Y == 10))) == [0, 5]


def test_81_alternatives_over_columns_are_the_union_of_their_rows() -> None:
    data = pair({}, {})
    for a, b in itertools.product(range(8), (5, 10, 20, 30, 50, 60)):
        wanted = [i for i in range(6) if i + 1 == a or 60 - 10 * i == b]
        assert rows(data, (a == X) | (b == Y)) == wanted
        both = [i for i in range(6) if i + 1 == a and 60 - 10 * i == b]
        assert rows(data, (a == X) & (b == Y)) == both
    report = (
        ps.scan(data, columns=["row"], filter=(X == 1) | (Y == 10)).explain(analyze=True).to_dict()
    )
    assert report["rows"]["read"] == 4, "rows 0 and 1 by x, 4 and 5 by y"


def test_t5_an_empty_row_group_does_not_end_the_scan() -> None:
    """Pages of both conditions are left in the first row groups, but no row has both."""
    groups = [
        ([1, 2, 3, 4], [9, 9, 5, 5]),
        ([3, 4, 1, 2], [5, 5, 9, 9]),
        ([4, 1, 1, 4], [9, 9, 5, 9]),
    ]
    data = write(
        *(
            [
                Column("x", INT32, x, [2, 2]),
                Column("y", INT32, y, [2, 2]),
                Column("row", INT32, list(range(4 * g, 4 * g + 4)), [1, 3]),
            ]
            for g, (x, y) in enumerate(groups)
        )
    )
    assert rows(data, (X <= 2) & (Y == 5)) == [10]
    assert rows(data, (X >= 3) & (Y == 9)) == [8, 11]
    found = (
        ps.scan(data, columns=["row"], filter=(X <= 2) & (Y == 5)).with_row_number("at").to_table()
    )
    assert found.to_pylist() == [{"at": 10, "row": 10}]


# ---- lists and ranges (82, 83) ----------------------------------------------------------------------------------


def test_82_lists_of_any_length_prune() -> None:
    n = 400
    data = write(
        [
            Column("x", INT32, list(range(0, 2 * n, 2)), [10] * (n // 10)),
            Column("row", INT64, list(range(n))),
        ]
    )
    odd = list(range(201, 260, 2))
    dice = random.Random(3)
    for length in (1, 2, 20, 21, 63, 64, 65, 1_000, 5_000):
        wanted = [200 + 2 * (i % 5) for i in range(length)]
        mixed: list[Any] = [*wanted, *wanted[:3], None, 10**12, -5, *(odd if length < 30 else [])]
        dice.shuffle(mixed)
        assert rows(data, X.isin(mixed)) == list(range(100, 100 + min(length, 5)))
        assert pages_read(data, X.isin(wanted)) == 1, length
        far = [10_000 + i for i in range(length)]
        assert pages_read(data, X.isin(far)) == 0, length
        assert rows(data, ~X.isin(far)) == list(range(n))
        assert rows(data, ~X.isin([*far, None])) == []
    assert rows(data, X.isin([])) == []
    assert pages_read(data, X.isin([])) == 0
    assert rows(data, ~X.isin([])) == list(range(n))
    assert pages_read(data, X.isin([3, 797])) <= 2


def test_83_ranges_that_no_value_can_meet_ask_for_nothing() -> None:
    data = pair({}, {})
    for test in (
        X.between(5, 2),
        (X > 3) & (X < 3),
        (X == 2) & (X == 3),
        X.isin([1, 2]) & X.isin([3, 4]),
        (X == 2) & X.is_null(),
        (X >= 4) & (X <= 3) & (Y > 0),
    ):
        report = ps.scan(data, filter=test).explain(analyze=True).to_dict()
        assert report["bytes"]["data"] == 0, test
        assert rows(data, test) == []
    assert rows(data, ~X.between(5, 2)) == [0, 1, 2, 3, 4, 5]
    assert rows(data, X.between(5, 2) | (X == 2)) == [1]


# ---- what only values can answer (84, 85, 91, T-63) ---------------------------------------------------------------


def test_84_a_function_beside_a_test_that_prunes() -> None:
    made = {
        "x": list(range(8)),
        "y": [7, 6, 5, 4, 3, 2, 1, 0],
        "row": pa.array(range(8), pa.int32()),
    }
    data = by_arrow(made)
    strange = pc.bit_wise_and(F("y"), 1) == 1
    table = pq.read_table(io.BytesIO(data))
    for test in (
        (F("x") >= 5) & strange,
        strange & (F("x") >= 5),
        (F("x") >= 5) | strange,
        ~((F("x") >= 5) & strange),
        ~(F("x") >= 5) & ~strange,
    ):
        assert rows(data, test) == table.filter(test)["row"].to_pylist(), test
    assert groups_read(data, (F("x") >= 6) & strange) == 1
    assert groups_read(data, (F("x") >= 6) | strange) == 4


def test_85_two_columns_of_a_row_are_compared_by_their_values() -> None:
    pairs = [(1, 9), (9, 1), (5, 5), (None, 1), (1, None), (None, None), (2, 2), (3, 4)]
    data = write(
        [
            Column("x", INT32, [a for a, _ in pairs], [4, 4]),
            Column("y", INT64, [b for _, b in pairs], [2, 6]),
            Column("row", INT32, list(range(8)), [1] * 8),
        ]
    )
    for op in (operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge):
        wanted = [
            i for i, (a, b) in enumerate(pairs) if a is not None and b is not None and op(a, b)
        ]
        others = [
            i for i, (a, b) in enumerate(pairs) if a is not None and b is not None and not op(a, b)
        ]
        assert rows(data, op(X, Y)) == wanted, op
        assert rows(data, ~op(X, Y)) == others, op
        assert rows(data, op(X, Y) & (X < 3)) == [i for i in wanted if (pairs[i][0] or 0) < 3], op


def test_91_t63_a_function_of_a_key_is_not_the_key() -> None:
    """Neither a Bloom filter nor a dictionary nor a bound of the column says anything of what is made of it."""
    n = 2_000
    data = by_arrow(
        {"x": [2 * (i % 500) for i in range(n)], "row": pa.array(range(n), pa.int32())},
        row_group_size=n,
        bloom_filter_options={"x": {"ndv": 500, "fpp": 1e-4}},
    )
    assert rows(data, F("x") + 1 == 301) == [150, 650, 1150, 1650]
    assert rows(data, (F("x") + 1).isin([301, 5_001])) == [150, 650, 1150, 1650]
    assert rows(data, pc.negate(F("x")) == -998) == [499, 999, 1499, 1999]
    assert rows(data, F("x").cast(pa.string()) == "998") == [499, 999, 1499, 1999]
    assert rows(data, F("x") == 301) == []


# ---- false figures beside true ones (72) ------------------------------------------------------------------------


@pytest.mark.parametrize("distinct", [-1, 0, 1, 2, 1 << 40])
def test_72_a_count_of_distinct_values_is_believed_by_nobody(distinct: int) -> None:
    def edit(meta: Struct) -> None:
        meta[12][4] = I64(distinct)

    for physical, values in ((INT32, [1, 2, None, 3]), (DOUBLE, [1.0, 2.0, None, 3.0])):
        data = write(
            [
                Column("x", physical, values, edit_chunk=edit, **BARE),
                Column("row", INT32, [0, 1, 2, 3]),
            ]
        )
        agree(data, 1, 2, 9)
        made = ps.scan(data).aggregate([("x", "count"), ("x", "min"), ("x", "max")])
        assert made.to_pylist() == [{"x_count": 3, "x_min": 1, "x_max": 3}]
