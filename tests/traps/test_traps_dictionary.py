"""Dictionaries that prune, and the cases in which they must not: every page must have codes, and nulls are not in them."""

from __future__ import annotations

import datetime as dt
import io
import math
import struct
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.io.fetch import Kept
from pageseek.prune.dictionary import DictionaryPruner
from support.oracle import agree
from support.pruners import Judged, holds, judged
from support.writer import (
    BYTE_ARRAY,
    DOUBLE,
    FIXED,
    I32,
    I64,
    INT32,
    INT64,
    STRING,
    Column,
    Struct,
    decimal,
    integer,
    write,
)

X = ps.col("x")
DICTIONARY = DictionaryPruner()


def make(
    values: list[Any], physical: int = INT32, pages: list[int] | None = None, **knobs: Any
) -> bytes:
    knobs.setdefault("encodings", "dictionary")
    return write(
        [
            Column("x", physical, values, pages, **knobs),
            Column("row", INT64, list(range(len(values)))),
        ]
    )


def doubted(made: Judged, why: str = "") -> bool:
    """Nothing was proved, and a note says why."""
    return not any(p for (p,) in made.proofs) and any(
        "dictionary ignored" in n and why in n for n in made.notes
    )


def silent(made: Judged) -> bool:
    """The mechanism was not run."""
    return made.waves == [] and not any(p for (p,) in made.proofs) and made.costs == [[None]]


# ---- every test, every type ------------------------------------------------------------------------


TYPES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int8(), [-5, 7, 100]),
    (pa.uint16(), [5, 7, 60_000]),
    (pa.int32(), [-5, 7, 100]),
    (pa.uint64(), [5, 7, 1 << 63]),
    (pa.float32(), [-1.5, 0.0, math.inf, math.nan]),
    (pa.float64(), [-0.0, 7.25, math.nan]),
    (pa.string(), ["", "a", "b", "é" * 20]),
    (pa.large_string(), ["a", "b"]),
    (pa.binary(), [b"a", b"\xff"]),
    (pa.binary(2), [b"ab", b"\xff\xff"]),
    (pa.date32(), [dt.date(2020, 1, 1), dt.date(2021, 1, 1)]),
    (pa.time64("us"), [dt.time(1), dt.time(2)]),
    (pa.timestamp("us"), [dt.datetime(2020, 1, 1), dt.datetime(2021, 1, 1)]),
    (pa.timestamp("ns"), [dt.datetime(2020, 1, 1), dt.datetime(2021, 1, 1)]),
    (pa.decimal128(7, 2), [Decimal("-1.25"), Decimal(5)]),
    (pa.decimal256(50, 2), [Decimal("-1.25"), Decimal(5)]),
    (pa.dictionary(pa.int8(), pa.string()), ["a", "b"]),
]


@pytest.mark.covering(2)
@pytest.mark.parametrize("nulls", [False, True], ids=["", "nulls"])
@pytest.mark.parametrize("nan", ["ieee", "spark"])
@pytest.mark.parametrize(("kind", "values"), TYPES, ids=lambda v: str(v)[:20])
def test_what_a_dictionary_proves_is_so(
    kind: pa.DataType, values: list[Any], nan: str, nulls: bool
) -> None:
    for chosen in (values[:1], values[:-1], values[1:], values):
        out = io.BytesIO()
        rows = [*chosen, None, *chosen] if nulls else [*chosen, *chosen]
        pq.write_table(pa.table({"x": pa.array(rows, kind), "row": range(len(rows))}), out)
        data, proved = out.getvalue(), 0
        for v in values:
            tests = [v == X, v != X, v > X, v >= X, v < X, v <= X, X.isin([v]), X.isin(values[:2])]
            if pa.types.is_floating(kind):
                tests.append(X.is_nan())
            for test in (*tests, *(~test for test in tests)):
                made = holds(data, DICTIONARY, test, nan=nan)
                assert made.notes == []
                proved += made.denied[0] + made.sure[0]
                if nulls:
                    assert not made.sure[0] or made.denied[0]
        assert proved
        assert silent(holds(data, DICTIONARY, X.is_null()))
        assert silent(holds(data, DICTIONARY, X.is_not_null()))


def test_prefixes() -> None:
    data = make([b"apple", b"apricot", b"berry"] * 4, BYTE_ARRAY, logical=STRING)
    assert holds(data, DICTIONARY, X.starts_with("ap")).proofs == [[None]]
    assert holds(data, DICTIONARY, X.starts_with("b")).proofs == [[None]]
    assert holds(data, DICTIONARY, X.starts_with("c")).denied == [True]
    assert holds(data, DICTIONARY, X.starts_with("")).sure == [True]
    assert holds(data, DICTIONARY, ~X.starts_with("c")).sure == [True]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("codec", ["uncompressed", "snappy", "gzip", "zstd", "brotli", "lz4_raw"])
def test_codecs_and_versions(codec: str, version: int) -> None:
    data = make([1, 5, 5, 9] * 9, codec=codec, version=version, crc=True)
    assert holds(data, DICTIONARY, X == 5).denied == [False]
    assert holds(data, DICTIONARY, X == 4).denied == [True]


# ---- every page of codes (94, T-50) ----------------------------------------------------------------


def test_50_94_a_fallback_to_plain_in_the_middle() -> None:
    data = make(
        [1, 5, 9, 4, 7, 8], pages=[3, 3], encodings=["dictionary", "plain"], dictionary=[1, 5, 9]
    )
    assert silent(holds(data, DICTIONARY, X == 4))
    assert ps.read_table(data, filter=X == 4)["row"].to_pylist() == [3]


def test_50_94_without_encoding_stats_nothing_is_known() -> None:
    assert silent(holds(make([1, 5, 9], encoding_stats=False), DICTIONARY, X == 4))


def stats_of_encodings(*counts: tuple[int, int, int]) -> Callable[[Struct], None]:
    def edit(meta: Struct) -> None:
        meta[13] = [{1: I32(a), 2: I32(b), 3: I32(c)} for a, b, c in counts]

    return edit


@pytest.mark.parametrize(
    "counts",
    [
        [(0, 8, 1), (0, 0, 1)],  # type, encoding, how many pages
        [(3, 8, 1), (3, 5, 1)],
        [(0, 8, -1)],
        [(2, 0, 1)],
        [(0, 8, 0)],
        [(0, 8, 2)],  # of which the offset index knows one
    ],
)
def test_50_encoding_stats_that_prove_nothing(counts: list[tuple[int, int, int]]) -> None:
    data = make([1, 5, 9], edit_chunk=stats_of_encodings(*counts))
    assert not any(
        p
        for (p,) in holds(
            data,
            DICTIONARY,
            X == 4,
        ).proofs
    ) or counts == [(0, 8, 2)]
    assert judged(data, DICTIONARY, X == 4, index=True).proofs == [[None]]


def test_50_encodings_that_contradict_the_statistics() -> None:
    def edit(meta: Struct) -> None:
        meta[2] = [*meta[2], I32(5)]

    assert silent(holds(make([1, 5, 9], edit_chunk=edit), DICTIONARY, X == 4))


# ---- nulls (95, T-52) ------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [True, False])
def test_52_95_nulls_are_not_in_the_dictionary(count: bool) -> None:
    data = make([5, None, 5], null_count=count)
    for condition in (X == 5, X != 6, ~X.isin([6]), X < 9):
        assert holds(data, DICTIONARY, condition).proofs == [[None]]
    for condition in (X != 5, X == 6, ~(X == 5), X.isin([6])):
        assert holds(data, DICTIONARY, condition).denied == [True]
    agree(data, 5, 6)


def test_52_every_row_passes_only_where_no_null_is_known() -> None:
    assert holds(make([5, 7]), DICTIONARY, X > 4).sure == [True], "the column has no nulls"
    assert holds(make([5, 7], optional=True), DICTIONARY, X > 4).sure == [True]
    assert holds(make([5, 7], optional=True, null_count=False), DICTIONARY, X > 4).sure == [False]


@pytest.mark.parametrize("nulls", [-1, 3, 1 << 40])
def test_52_null_counts_that_cannot_be(nulls: int) -> None:
    def edit(meta: Struct) -> None:
        meta[12][3] = I64(nulls)

    for values in ([5, 7], [5, None]):
        holds(make(values, optional=True, edit_chunk=edit), DICTIONARY, X > 4)


# ---- odd dictionaries (96, T-51, T-54) ---------------------------------------------------------------


def test_96_entries_that_no_row_has_and_entries_twice() -> None:
    data = make([1, 5], dictionary=[1, 5, 7])
    assert holds(data, DICTIONARY, X == 7).proofs == [[None]]
    assert holds(data, DICTIONARY, X < 6).proofs == [[None]]
    assert holds(data, DICTIONARY, X < 8).sure == [True]
    assert holds(data, DICTIONARY, X == 8).denied == [True]
    twice = make([1, 5], dictionary=[1, 5, 5, 1])
    assert holds(twice, DICTIONARY, X == 2).denied == [True]


def test_96_an_empty_dictionary() -> None:
    data = make([None, None], dictionary=[])
    for condition in (X == 5, X != 5, ~(X < 5)):
        assert holds(data, DICTIONARY, condition).denied == [True]

    def edit(meta: Struct) -> None:
        meta[12][3] = I64(0)

    assert doubted(
        holds(make([None, None], dictionary=[], edit_chunk=edit), DICTIONARY, X == 5), "empty"
    )


def test_54_96_code_widths_of_0_and_32() -> None:
    for width, values in (0, [5, 5, 5]), (32, [5, 6, 5]):
        data = make(values, code_width=width)
        assert holds(data, DICTIONARY, X == 4).denied == [True]
        assert holds(data, DICTIONARY, X == 5).denied == [False]


@pytest.mark.parametrize("index", [False, True])
def test_51_a_dictionary_of_many_kilobytes_and_short_answers(index: bool) -> None:
    values = [f"value {i:05}".encode() for i in range(3000)]
    data = make(values * 3, BYTE_ARRAY, logical=STRING)
    for asked, there in (("value 02999", True), ("value 03000", False)):
        made = judged(data, DICTIONARY, asked == X, index=index)
        assert made.denied == [not there]
        assert len(made.waves) == 1
    for keep in (0, 10, 8192):
        made = judged(data, DICTIONARY, X == "value 02999", answer=lambda b, k=keep: b[:k])
        assert doubted(made)


# ---- where it lies -----------------------------------------------------------------------------------


@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("offset", [None, 0, 1 << 40])
def test_35_36_without_a_dictionary_page_offset(offset: int | None, index: bool) -> None:
    def edit(meta: Struct) -> None:
        meta[9], meta[11] = meta[11], None if offset is None else I64(offset)

    values = [f"value {i:03}".encode() * 9 for i in range(50)]
    data = make(values * 40, BYTE_ARRAY, logical=STRING, edit_chunk=edit, offset_index=index)
    there, absent = values[7].decode(), "value"
    assert judged(data, DICTIONARY, there == X, index=index).denied == [False]
    made = judged(data, DICTIONARY, absent == X, index=index)
    assert made.denied == [True]
    assert len(made.waves) == (1 if index else 2), "header, then page"


@pytest.mark.parametrize("shift", [-40, -5, 3, 20, 1000, 1 << 40, -(1 << 40)])
def test_28_data_page_offsets_that_lie(shift: int) -> None:
    def edit(meta: Struct) -> None:
        meta[9] = I64(meta[9] + shift)

    data = make([1, 5, 9] * 30, edit_chunk=edit, offset_index=False)
    for asked in (1, 4, 5):
        try:
            full = ps.read_table(data, filter=asked == X, prune=False)
        except ps.PageseekError:
            judged(data, DICTIONARY, asked == X)
        else:
            assert ps.read_table(data, filter=asked == X) == full
            holds(data, DICTIONARY, asked == X)


# ---- damage ------------------------------------------------------------------------------------------


def damaged(edit: Callable[[int, Any], Any], which: str, **knobs: Any) -> bytes:
    def of_dictionary(page: int, made: Any) -> Any:
        return edit(page, made) if page == -1 else made

    return make([1, 5, 9] * 9, **{which: of_dictionary}, **knobs)


@pytest.mark.parametrize(
    "change",
    [
        {7: {1: I32(-1), 2: I32(0)}},
        {7: {1: I32(99), 2: I32(0)}},
        {7: {1: I32((1 << 31) - 1), 2: I32(0)}},
        {7: {1: I32(3), 2: I32(5)}},
        {1: I32(0)},
        {2: I32(11)},
        {2: I32((1 << 31) - 1)},
        {3: I32(1 << 20)},
        {3: I32(-1)},
        {4: I32(12345)},
    ],
)
@pytest.mark.parametrize("index", [False, True])
def test_54_headers_of_dictionaries_that_lie(change: Struct, index: bool) -> None:
    data = damaged(lambda _, header: header.update(change), "edit_header")
    made = judged(data, DICTIONARY, X == 4, index=index)
    assert doubted(made)
    with pytest.raises(ps.PageseekError):
        ps.read_table(data)


@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("claimed", [0, 1, 2])
@pytest.mark.parametrize(
    ("values", "physical", "knobs"),
    [
        ([1, 5, 9], INT32, {}),
        ([1, 5, 9], INT64, {}),
        ([b"a", b"bcd", b""], BYTE_ARRAY, {"logical": STRING}),
        ([b"a", b"bcd", b""], BYTE_ARRAY, {}),
        ([b"ab", b"cd", b"ef"], FIXED, {"type_length": 2}),
    ],
)
def test_54_a_dictionary_that_claims_fewer_entries(
    values: list[Any], physical: int, knobs: dict[str, Any], claimed: int, index: bool
) -> None:
    """Codes stand for the others, too: a value among these is not denied."""

    def header(page: int, made: Struct) -> None:
        if page == -1:
            made[7][1] = I32(claimed)

    data = make(values * 9, physical, edit_header=header, **knobs)
    absent = 4 if physical in (INT32, INT64) else b"zz"
    if knobs.get("logical"):
        absent = "zz"
    assert doubted(judged(data, DICTIONARY, absent == X, index=index))


def test_a_dictionary_whose_bytes_changed() -> None:
    data = damaged(lambda _, part: bytes([part[0] ^ 1]) + part[1:], "edit_bytes")
    assert holds(data, DICTIONARY, X == 1).denied == [True], "who has no checksum cannot tell"

    def spoil(page: bytes) -> bytes:
        return page[:-1] + bytes([page[-1] ^ 1])

    good = make([1, 5, 9] * 9, crc=True)
    assert doubted(judged(good, DICTIONARY, X == 4, answer=spoil), "checksum")


def test_a_dictionary_that_claims_values_of_no_bytes() -> None:
    def header(page: int, made: Struct) -> None:
        if page == -1:
            made[7][1] = I32((1 << 31) - 1)

    data = make([b"", b""], FIXED, type_length=0, edit_header=header)
    assert judged(data, DICTIONARY, X == b"").proofs == [[None]]


def test_text_that_is_none_is_left_to_the_read() -> None:
    data = make([b"a", b"\xff"] * 5, BYTE_ARRAY, logical=STRING)
    assert doubted(judged(data, DICTIONARY, X == "b"))


@pytest.mark.parametrize("bits", [8, 16])
def test_47_entries_beyond_the_logical_type_are_what_they_read_as(bits: int) -> None:
    data = make([300, 70_000, 1], logical=integer(bits, True))
    for row in ps.read_table(data).to_pylist():
        assert holds(data, DICTIONARY, row["x"] == X).denied == [False]


def test_decimals_of_any_length() -> None:
    values = [b"\x05", b"\0\x07", b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x09"]
    data = make(values, BYTE_ARRAY, **decimal(9, 0))
    for value in (5, 7, 9):
        assert holds(data, DICTIONARY, value == X).denied == [False]
    assert holds(data, DICTIONARY, X == 6).denied == [True]


def test_nan_and_zeros_in_a_dictionary() -> None:
    data = make([math.nan, -0.0, 1.0], DOUBLE)
    assert holds(data, DICTIONARY, X == 0.0).denied == [False]
    assert holds(data, DICTIONARY, math.nan == X).denied in ([True], [False])
    assert holds(data, DICTIONARY, math.nan == X, nan="spark").denied == [False]
    assert holds(data, DICTIONARY, X > 5.0, nan="spark").denied == [False]
    assert holds(data, DICTIONARY, X > 5.0).denied == [True]


def test_int96_in_a_dictionary() -> None:
    stamps = [struct.pack("<qI", 5 * i, 2_440_588 + i) for i in range(3)]
    data = make(stamps, 3)
    full = ps.read_table(data)["x"].to_pylist()
    assert holds(data, DICTIONARY, full[1] == X).denied == [False]
    assert holds(data, DICTIONARY, dt.datetime(1999, 1, 1) == X).denied == [True]


# ---- what it costs, and what is kept -----------------------------------------------------------------


def test_it_does_not_run_where_the_pages_are_smaller() -> None:
    values = list(range(1000))
    data = make(values, pages=[10] * 100)
    ((cost,),) = judged(data, DICTIONARY, X == 4000, index=True).costs
    assert cost is None or cost < len(data)
    assert judged(data, DICTIONARY, X == 4000, index=True, rows=[(0, 10)]).costs == [[None]]


def test_a_dictionary_is_read_once(tmp_path: Path) -> None:
    n = 40_000
    names = [f"name number {i % 700}" for i in range(n)]
    table = pa.table({"x": names, "p": [f"payload {i}" for i in range(n)]})
    path = tmp_path / "d.parquet"
    pq.write_table(table, path, row_group_size=n // 4, data_page_size=2000, write_page_index=True)
    report = ps.scan(path, filter=X == "name number 9").explain(analyze=True).to_dict()
    ps.clear_cache()
    alone = ps.scan(path, filter=X == "name number 9", prune=["statistics", "column_index"])
    ps.clear_cache()
    before = alone.explain(analyze=True).to_dict()
    assert report["rows"]["out"] == before["rows"]["out"] > 0
    assert report["bytes"]["total"] == before["bytes"]["total"]
    none = ps.scan(path, filter=X == "name number 50x").explain(analyze=True).to_dict()
    assert none["row_groups"]["pruned_by"] == {"dictionary": 4}
    assert none["bytes"]["data"] == 0


def test_what_is_kept_is_bounded_and_handed_out_once() -> None:
    kept = Kept(10)
    kept.put(0, memoryview(b"abcdef"))
    kept.put(9, memoryview(b"ghijkl"))
    assert kept.take(9, 6) == b""
    assert kept.take(0, 5) == b""
    assert kept.take(0, 6) == b"abcdef"
    assert kept.take(0, 6) == b""
    kept.put(9, memoryview(b"ghijkl"))
    assert kept
    assert kept.take(9, 60) == b"ghijkl"
    assert not kept


def test_nested_leaves() -> None:
    out = io.BytesIO()
    rows = [{"a": "u"}, None, {"a": None}, {"a": "v"}]
    table = pa.table({"x": pa.array(rows, pa.struct([("a", pa.string())])), "row": range(4)})
    pq.write_table(table, out)
    a = ps.col("x", "a")
    assert holds(out.getvalue(), DICTIONARY, a == "u").denied == [False]
    assert holds(out.getvalue(), DICTIONARY, a == "w").denied == [True]
    assert holds(out.getvalue(), DICTIONARY, a < "z").sure == [False]
