"""Bloom filters that prune, and the cases in which they must not: a doubtful filter is ignored."""

from __future__ import annotations

import datetime as dt
import io
import math
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek._core import bloom as core
from pageseek.prune.bloom_blocks import WORTH
from pageseek.prune.bloom_filter import BloomPruner
from support.bloom import bitset, bloomed, header, xxh64
from support.opened import open_metadata
from support.pruners import Judged, holds, judged
from support.writer import (
    BYTE_ARRAY,
    DOUBLE,
    FIXED,
    FLOAT,
    FLOAT16,
    I32,
    I64,
    INT32,
    INT64,
    INT96,
    Column,
    Struct,
    decimal,
    integer,
    plain_value,
    write,
)

X = ps.col("x")
BLOOM = BloomPruner()


def by_arrow(kind: pa.DataType, values: list[Any], rows: int = 1 << 20, **knobs: Any) -> bytes:
    """A file of pyarrow's with a filter of column x."""
    out = io.BytesIO()
    table = pa.table({"x": pa.array(values, kind), "row": pa.array(range(len(values)))})
    options = {"x": {"ndv": 1000, "fpp": 1e-4}}
    pq.write_table(table, out, bloom_filter_options=options, row_group_size=rows, **knobs)
    return out.getvalue()


def column(physical: int = INT32, values: list[Any] | None = None, **knobs: Any) -> Column:
    return Column("x", physical, [1, 2, 3] if values is None else values, **knobs)


def with_filter(
    bits: bytes | None = None, head: bytes | None = None, col: Column | None = None, **knobs: Any
) -> bytes:
    """A file of x = 1, 2, 3 with a filter of these bits, by default the true ones."""
    col = column() if col is None else col
    if bits is None:
        bits = bitset([plain_value(col.physical, v) for v in col.values if v is not None])
    made = (header(len(bits)) if head is None else head) + bits
    rows = Column("row", INT64, list(range(len(col.values))))
    return bloomed(col, made, others=(rows,), **knobs)


def denies(data: bytes, value: Any, **options: Any) -> bool:
    """Whether the filter of the only row group rules out x = value."""
    return holds(data, BLOOM, value == X, **options).denied == [True]


def doubted(made: Judged, why: str = "") -> bool:
    """Nothing was proved, and a note says why."""
    return not any(made.denied) and any(
        "Bloom filter ignored" in n and why in n for n in made.notes
    )


# ---- the hash --------------------------------------------------------------------------------------


def test_the_hash_is_that_of_its_specification() -> None:
    dice = np.random.default_rng(3)
    data = dice.bytes(5000)
    ends = np.arange(0, 100, dtype=np.int32)
    lengths = [data[a:b] for a, b in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]
    for size in [*range(70), 255, 1024]:
        value = data[size : 2 * size]
        made = core.hashes((BYTE_ARRAY, 0, 14, 0, 0, 0, 0), (1, value, struct.pack("<2i", 0, size)))
        assert made == struct.pack("<Q", xxh64(value)), size
    form = (BYTE_ARRAY, 0, 14, 0, 0, 0, 0)
    many = core.hashes(form, (len(lengths), data, ends.tobytes()))
    assert many == b"".join(struct.pack("<Q", xxh64(v)) for v in lengths)


@pytest.mark.parametrize("blocks", [1, 2, 3, 31, 1000])
def test_blocks_and_bits_are_those_of_the_specification(blocks: int) -> None:
    values = [struct.pack("<q", v * v) for v in range(60)]
    bits = bitset(values, 32 * blocks)
    hashes = b"".join(struct.pack("<Q", xxh64(v)) for v in values)
    assert core.check(bits, core.places(hashes, len(bits)), hashes) == 60
    for value in range(-300, 0):
        plain = struct.pack("<q", value)
        wanted = all(
            word & other == other
            for word, other in zip(bits, bitset([plain], 32 * blocks), strict=True)
        )
        made = struct.pack("<Q", xxh64(plain))
        assert core.check(bits, core.places(made, len(bits)), made) == wanted


def test_wrong_arguments_of_the_core_are_refused() -> None:
    form = (INT32, 0, 3, 0, 0, 0, 0)
    for call in (
        lambda: core.hashes(form, (2, b"\0" * 4, None)),
        lambda: core.hashes(form, (-1, b"", None)),
        lambda: core.hashes((BYTE_ARRAY, 0, 14, 0, 0, 0, 0), (1, b"abc", b"\0\0\0\0")),
        lambda: core.places(b"\0" * 8, 31),
        lambda: core.places(b"\0" * 8, 1 << 36),
        lambda: core.check(b"\0" * 64, struct.pack("<Q", 33), b"\0" * 8),
        lambda: core.check(b"\0" * 64, b"", b"\0" * 8),
        lambda: core.header(b""),
    ):
        with pytest.raises(ps.PageseekError):
            call()


# ---- what is hashed (traps 86 to 90, T-61, T-62) ------------------------------------------------


day, utc = dt.datetime(2020, 1, 1, 1, 2, 3), dt.UTC
KINDS: list[tuple[pa.DataType, list[Any], Any]] = [
    (pa.int8(), [-5, 0, 127], 50),
    (pa.uint8(), [0, 200, 255], 7),
    (pa.int16(), [-300, 300], 7),
    (pa.uint16(), [65535, 0], 7),
    (pa.int32(), [-1, 1 << 30], 8),
    (pa.uint32(), [(1 << 32) - 1, 5], 7),
    (pa.int64(), [-1, 1 << 60], 7),
    (pa.uint64(), [(1 << 64) - 1, 5], 7),
    (pa.float32(), [1.5, -0.0, math.inf], 2.5),
    (pa.float64(), [1.1, 0.0], 2.5),
    (pa.string(), ["a", "é", "", "x" * 50], "b"),
    (pa.large_string(), ["a", ""], "b"),
    (pa.string_view(), ["a", ""], "b"),
    (pa.binary(), [b"a", b"\xff"], b"\\xFF"),
    (pa.binary(3), [b"abc", b"\0\0\0"], b"abx"),
    (pa.date32(), [dt.date(2020, 1, 1), dt.date(1960, 1, 1)], dt.date(2020, 1, 2)),
    (pa.time32("ms"), [dt.time(1)], dt.time(2)),
    (pa.time64("us"), [dt.time(1, 2, 3, 4)], dt.time(2)),
    (pa.time64("ns"), [dt.time(1)], dt.time(2)),
    (pa.timestamp("ms"), [day], day + dt.timedelta(1)),
    (pa.timestamp("us"), [day], day + dt.timedelta(1)),
    (pa.timestamp("us", "UTC"), [day.replace(tzinfo=utc)], day.replace(tzinfo=utc, hour=4)),
    (pa.timestamp("ns"), [day], day + dt.timedelta(1)),
    (pa.duration("ms"), [dt.timedelta(1)], dt.timedelta(2)),
    (pa.decimal128(7, 2), [Decimal("-1.25"), Decimal(5)], Decimal("5.01")),
    (pa.decimal128(15, 2), [Decimal("-1.25")], Decimal("5.01")),
    (pa.decimal128(30, 2), [Decimal("-1.25"), Decimal(10) ** 27], Decimal("5.01")),
    (pa.decimal256(60, 2), [Decimal("-1.25")], Decimal("5.01")),
    (pa.dictionary(pa.int32(), pa.string()), ["a", "b"], "c"),
]


@pytest.mark.parametrize(("kind", "values", "absent"), KINDS, ids=lambda v: str(v)[:20])
@pytest.mark.parametrize("as_integer", [False, True], ids=["", "as_integer"])
def test_86_87_88_t62_physical_bytes_are_hashed(
    kind: pa.DataType, values: list[Any], absent: Any, as_integer: bool
) -> None:
    data = by_arrow(kind, [*values, None], store_decimal_as_integer=as_integer)
    for value in values:
        assert not denies(data, value), value
        assert holds(data, BLOOM, X.isin([value, absent])).denied == [False]
    made = holds(data, BLOOM, absent == X)
    assert made.denied == [True]
    assert made.notes == []


def test_88_literals_of_another_unit_or_type_are_converted_first() -> None:
    data = by_arrow(pa.timestamp("ms"), [day])
    assert not denies(data, pa.scalar(day, pa.timestamp("ns")))
    assert not denies(data, np.datetime64(day, "us"))
    assert not denies(by_arrow(pa.int64(), [3]), 3.0)
    assert not denies(by_arrow(pa.decimal128(7, 2), [Decimal(3)]), 3)
    assert not denies(by_arrow(pa.float64(), [3.0]), 3)


@pytest.mark.parametrize("as_integer", [False, True])
def test_87_decimals_that_the_physical_type_cannot_hold_are_absent(as_integer: bool) -> None:
    data = by_arrow(pa.decimal128(9, 0), [Decimal(5)], store_decimal_as_integer=as_integer)
    assert denies(data, Decimal(10) ** 30)
    assert not denies(data, Decimal("5.00"))


def test_87_numbers_in_byte_arrays_have_many_encodings() -> None:
    values = [b"\x05", b"\0\0\x07"]
    data = with_filter(bitset(values), col=column(BYTE_ARRAY, values, **decimal(9, 0)))
    for value in (5, 7, 8):
        made = holds(data, BLOOM, value == X)
        assert made.costs == [[None]]
        assert made.denied == [False]


def test_89_lengths_of_byte_strings_matter() -> None:
    data = by_arrow(pa.binary(), [b"ab", b""])
    assert not denies(data, b"")
    assert denies(data, b"ab\0")
    fixed = by_arrow(pa.binary(2), [b"ab"])
    assert not denies(fixed, b"ab")
    assert denies(fixed, b"ac")


ZEROS = [(FLOAT, {}), (DOUBLE, {}), (FIXED, {"type_length": 2, "logical": FLOAT16})]


@pytest.mark.parametrize(("physical", "knobs"), ZEROS, ids=["float", "double", "half"])
def test_90_t61_either_zero_is_looked_for(physical: int, knobs: dict[str, Any]) -> None:
    def stored(value: float) -> Any:
        return struct.pack("<e", value) if physical == FIXED else value

    for zero in (0.0, -0.0):
        data = with_filter(col=column(physical, [stored(zero), stored(1.5)], **knobs))
        for asked in (0.0, -0.0, 1.5):
            assert not denies(data, asked)
            assert not denies(data, asked, nan="spark")
        assert denies(data, 2.5)
        assert holds(data, BLOOM, X.isin([-0.0, 2.5])).denied == [False]
    data = with_filter(col=column(physical, [stored(1.5)], **knobs))
    assert denies(data, 0.0)


@pytest.mark.parametrize("nan", ["ieee", "spark"])
def test_90_t61_nan_never_prunes(nan: str) -> None:
    (other,) = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000123))
    data = with_filter(col=column(DOUBLE, [other, 1.0]))
    for condition in (math.nan == X, X.isin([math.nan, 5.0]), X.is_nan()):
        assert holds(data, BLOOM, condition, nan=nan).denied == [False]


def test_62_types_without_one_hash_are_left_alone() -> None:
    stamp = struct.pack("<qI", 0, 2_440_588)
    data = with_filter(col=column(INT96, [stamp]))
    assert judged(data, BLOOM, dt.datetime(1971, 1, 1) == X).costs == [[None]]


def test_86_values_beyond_a_narrow_type_are_read_as_others() -> None:
    """300 in a column of 8 bits reads as 44, and is hashed as 300."""
    for knobs in ({}, {"statistics": False}):
        data = with_filter(col=column(INT32, [300, 1], logical=integer(8, True), **knobs))
        for row in ps.read_table(data).to_pylist():
            assert not denies(data, row["x"])
    assert denies(with_filter(col=column(INT32, [4, 1], logical=integer(8, True))), 44)


# ---- supported conditions (91, T-64, T-72) -------------------------------------------------------


def test_91_only_equality_is_looked_up() -> None:
    data = by_arrow(pa.int64(), [2, 4, None])
    for condition in (
        X != 3,
        X < 3,
        X >= 3,
        ~(X == 3),
        ~X.isin([3, 5]),
        X.is_null(),
        X.is_not_null(),
    ):
        made = holds(data, BLOOM, condition)
        assert not any(proof for (proof,) in made.proofs)
        assert made.waves == []
    assert holds(data, BLOOM, ~(X != 3)).denied == [True], "which is x = 3"
    assert holds(data, BLOOM, ~(X != 4)).denied == [False]


def test_72_a_list_needs_all_absent() -> None:
    data = by_arrow(pa.int64(), list(range(0, 200, 2)))
    assert holds(data, BLOOM, X.isin([1, 3, 5])).denied == [True]
    assert holds(data, BLOOM, X.isin([1, 3, 4])).denied == [False]
    assert holds(data, BLOOM, X.isin([1, None])).denied == [True]


def test_64_one_arm_of_an_or_is_not_enough() -> None:
    n = 20_000
    table = pa.table(
        {"x": pa.array(range(0, 2 * n, 2)), "y": pa.array(range(n)), "p": ["x" * 20] * n}
    )
    out = io.BytesIO()
    pq.write_table(table, out, bloom_filter_options={"x": {"ndv": n, "fpp": 1e-3}})
    data = out.getvalue()
    y = ps.col("y")
    assert ps.read_table(data, filter=(X == 7) | (y == 5)).num_rows == 1
    assert ps.read_table(data, filter=(X == 7) & (y == 5)).num_rows == 0
    report = ps.scan(data, filter=X == 7).explain(analyze=True).to_dict()
    assert report["row_groups"]["pruned_by"] == {"bloom_filter": 1}
    assert report["bytes"]["data"] == 0
    assert ps.scan(data, filter=X == 7, prune=["statistics"]).explain().row_groups.read == 1


def test_65_every_row_group_has_its_own_filter() -> None:
    data = by_arrow(pa.int64(), [2, 4, 6, 8, 10, 12], rows=2)
    assert holds(data, BLOOM, X == 2).denied == [False, True, True]
    assert holds(data, BLOOM, X == 10).denied == [True, True, False]
    assert holds(data, BLOOM, X == 5).denied == [True] * 3


def test_nested_leaves_and_structs() -> None:
    rows = [{"a": 1}, None, {"a": None}, {"a": 5}]
    out = io.BytesIO()
    table = pa.table({"x": pa.array(rows, pa.struct([("a", pa.int64())])), "row": range(4)})
    pq.write_table(table, out, bloom_filter_options={"x.a": {"ndv": 9, "fpp": 1e-3}})
    a = ps.col("x", "a")
    assert holds(out.getvalue(), BLOOM, a == 5).denied == [False]
    assert holds(out.getvalue(), BLOOM, a == 6).denied == [True]
    assert holds(out.getvalue(), BLOOM, X.is_null()).denied == [False]


# ---- the header and its place (92, 93, T-67, T-71) -------------------------------------------------


@pytest.mark.parametrize("length", [-1, None], ids=["length", "no_length"])
@pytest.mark.parametrize("size", [32, 96, 4096, 1 << 15, 3 * 32 * 1001])
def test_92_with_and_without_a_length(length: int | None, size: int) -> None:
    bits = bitset([plain_value(INT32, v) for v in (1, 2, 3)], size)
    data = with_filter(bits, length=length)
    assert not denies(data, 2)
    made = holds(data, BLOOM, X == 77)
    assert made.denied == [True] or size == 32
    assert made.notes == []
    head = len(header(size))
    if size > WORTH:
        assert made.bytes == (head if length else 64) + 32
        assert len(made.waves) == (1 if length else 2)
    else:
        assert made.bytes >= size + head
        assert made.bytes <= size + 64


def test_92_a_header_with_more_fields_than_the_format_has() -> None:
    for size in (1024, 1 << 15):
        bits = bitset([plain_value(INT32, v) for v in (1, 2, 3)], size)
        head = header(size)[:-1] + b"\x1c\x00\x00"  # another struct
        for length in (-1, None):
            data = with_filter(bits, head, length=length)
            assert not denies(data, 3)
            assert denies(data, 77)


@pytest.mark.parametrize("length", [-1, None], ids=["length", "no_length"])
@pytest.mark.parametrize("which", ["algorithm", "hash_", "compression"])
def test_71_another_algorithm_hash_or_compression(which: str, length: int | None) -> None:
    bits = bytes(1024)
    data = with_filter(bits, header(1024, **{which: 2}), length=length)
    assert doubted(holds(data, BLOOM, X == 77), "another algorithm")


@pytest.mark.parametrize("length", [-1, None], ids=["length", "no_length"])
@pytest.mark.parametrize("claims", [0, -32, 1, 33, 1000, 1 << 20, (1 << 31) - 32, -(1 << 31)])
def test_67_a_header_that_lies_about_its_size(claims: int, length: int | None) -> None:
    data = with_filter(bytes(1024), header(claims), length=length)
    assert doubted(holds(data, BLOOM, X == 77))


@pytest.mark.parametrize("length", [0, 1, 32, 33, 100, 1041, 1043, 2000, 1 << 30, -5])
def test_67_a_length_that_lies(length: int) -> None:
    data = with_filter(bitset([], 1024), length=length)
    assert doubted(holds(data, BLOOM, X == 77))
    assert doubted(holds(data, BLOOM, X == 2))


@pytest.mark.parametrize("offset", [-1, 0, 3, 4, 5, 1 << 40, (1 << 63) - 1])
@pytest.mark.parametrize("length", [-1, None], ids=["length", "no_length"])
def test_67_93_a_place_where_no_filter_is(offset: int, length: int | None) -> None:
    data = with_filter(offset=offset, length=length)
    assert doubted(holds(data, BLOOM, X == 77))
    assert ps.read_table(data, filter=X == 2).num_rows == 1


def test_93_a_filter_inside_the_footer_or_cut_by_it() -> None:
    plain = with_filter()
    footer = open_metadata(plain).footer_start
    for offset in range(footer - 60, len(plain), 7):
        for length in (-1, None):
            assert not any(judged(with_filter(offset=offset, length=length), BLOOM, X == 2).denied)


def test_93_every_byte_of_a_header_wrong() -> None:
    good = header(1024) + bitset([plain_value(INT32, v) for v in (1, 2, 3)])
    for at in range(len(header(1024))):
        for change in (1, 0x80, 0xFF):
            bad = bytearray(good)
            bad[at] ^= change
            data = bloomed(column(), bytes(bad), others=(Column("row", INT64, [0, 1, 2]),))
            holds(data, BLOOM, X == 2)


@pytest.mark.parametrize("length", [-1, None], ids=["length", "no_length"])
@pytest.mark.parametrize("size", [1024, 1 << 15])
def test_60_short_answers_are_no_zeros(length: int | None, size: int) -> None:
    data = with_filter(bitset([plain_value(INT32, v) for v in (1, 2, 3)], size), length=length)
    for keep in (0, 1, 20, 31):
        made = judged(data, BLOOM, X == 2, answer=lambda part, keep=keep: part[:keep])
        assert made.denied == [False]
        assert doubted(made)
    made = judged(data, BLOOM, X == 77, answer=lambda part: part if len(part) > 32 else part[:-1])
    assert made.denied == [size == 1024] or made.notes


def test_69_a_filter_that_its_writer_left_empty() -> None:
    """As of dictionary arrays that arrow-go wrote: values are there, and none was inserted."""
    for size in (32, 1024):
        assert doubted(holds(with_filter(bytes(size)), BLOOM, X == 2), "empty")
    nulls = column(INT32, [None, None])
    assert denies(with_filter(bytes(64), col=nulls), 2), "nothing was to be inserted"
    codes = column(INT32, [1, 2, 3], encodings="dictionary")
    bits = bitset([plain_value(INT32, 1)])  # of a page that was not written as codes
    made = with_filter(bits, col=codes, created_by=b"parquet-go version 18.4.0")
    assert holds(made, BLOOM, X == 2).costs == [[None]]


def test_92_encrypted_columns_have_no_filter_for_us() -> None:
    def encrypt(chunk: Struct) -> None:
        chunk[8] = {1: {}}

    data = with_filter(col=column(edit_column=encrypt))
    assert judged(data, BLOOM, X == 77).proofs == [[None]]


def test_1979_an_offset_without_a_filter() -> None:
    def edit(meta: Struct) -> None:
        meta[14], meta[15] = I64(0), I32(0)

    data = write([column(edit_chunk=edit), Column("row", INT64, [0, 1, 2])])
    assert not any(holds(data, BLOOM, X == 2).denied)


# ---- what it costs -------------------------------------------------------------------------------


def test_it_does_not_run_where_the_pages_are_smaller() -> None:
    small = with_filter(bitset([plain_value(INT32, 1)], 1 << 12))
    assert judged(small, BLOOM, X == 77).costs == [[None]]
    values = list(range(0, 40_000, 2))
    data = by_arrow(pa.int64(), values, use_dictionary=False, write_page_index=True)
    for rows, able in (None, True), ([(5, 6)], True), ([], False):
        ((cost,),) = judged(data, BLOOM, X == 77, rows=rows, index=True).costs
        assert (cost is not None) == able


def test_the_scan_asks_for_single_blocks(tmp_path: Path) -> None:
    n = 50_000
    table = pa.table({"x": pa.array(range(0, 2 * n, 2)), "p": ["payload"] * n})
    path = tmp_path / "many.parquet"
    options = {"x": {"ndv": n // 5, "fpp": 0.01}}
    pq.write_table(table, path, bloom_filter_options=options, row_group_size=n // 5)
    report = ps.scan(path, filter=X == 5001).explain(analyze=True).to_dict()
    assert report["row_groups"]["read"] == 0
    assert report["bytes"]["index"] < 5 * 100
    assert "Bloom filter" in str(ps.scan(path, filter=X == 5001).explain())


def test_t73_the_filter_comes_before_a_dictionary_that_costs_more() -> None:
    names = [f"a rather long name of some thing, number {i:05}" for i in range(3_000)]
    payload = [f"payload {i * 7919 % 9_000:09} of a row" for i in range(9_000)]
    table = pa.table({"x": names * 3, "row": pa.array(range(9_000)), "p": payload})
    out = io.BytesIO()
    pq.write_table(table, out, bloom_filter_options={"x": {"ndv": 3_000, "fpp": 1e-4}})
    data = out.getvalue()
    absent = names[7] + "x"
    alone = ps.scan(data, filter=absent == X, prune=["dictionary"]).explain(analyze=True).to_dict()
    assert alone["row_groups"]["pruned_by"] == {"dictionary": 1}, "it would do, too"
    assert alone["bytes"]["index"] > 5_000
    report = ps.scan(data, filter=absent == X).explain(analyze=True).to_dict()
    assert report["row_groups"]["pruned_by"] == {"bloom_filter": 1}
    assert report["bytes"]["data"] == 0
    assert report["bytes"]["index"] < 1_000, "the dictionary was left alone"
    for prune in (True, ["bloom_filter"], ["dictionary"], ["dictionary", "bloom_filter"]):
        assert ps.read_table(data, filter=absent == X, prune=prune).num_rows == 0
        found = ps.read_table(data, filter=X.isin([absent, names[7]]), prune=prune)
        assert found["row"].to_pylist() == [7, 3_007, 6_007]


def test_t65_filters_of_row_groups_and_files_are_not_taken_for_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of one layout, whose filters lie at the same places and hold other values."""
    monkeypatch.setattr("pageseek.prune.pruner_stage.DOUBT", 0)
    monkeypatch.setattr("pageseek.prune.bloom_filter.bytes_at_stake", lambda *_: 1 << 40)
    n = 3_000
    for k in range(2):
        values = [8 * i + 2 * k + (4 if i >= n // 2 else 0) for i in range(n)]
        table = pa.table({"x": pa.array(values), "row": pa.array(range(n))})
        options = {"x": {"ndv": n, "fpp": 1e-4}}
        pq.write_table(
            table, tmp_path / f"{k}.parquet", bloom_filter_options=options, row_group_size=n // 2,
            use_dictionary=False,
        )  # fmt: skip
    scan = ps.scan(tmp_path)
    for _ in range(2):  # the second time from what was kept of the first
        for value, row in ((80, 10), (82, 10), (8 * 2_000 + 4, 2_000), (8 * 2_000 + 6, 2_000)):
            assert scan.filter(value == X).to_table()["row"].to_pylist() == [row]
            alone = ps.scan(tmp_path, filter=value == X, prune=["bloom_filter"])
            assert alone.to_table()["row"].to_pylist() == [row]
            assert alone.explain(analyze=True).to_dict()["row_groups"]["read"] == 1


# ---- files of others -------------------------------------------------------------------------------


def test_filters_of_datafusion(tmp_path: Path) -> None:
    datafusion = pytest.importorskip("datafusion")
    n = 5000
    table = pa.table(
        {
            "x": pa.array([f"key-{i}" for i in range(n)]),
            "i": pa.array(range(0, 2 * n, 2), pa.int32()),
            "d": pa.array([Decimal(i) for i in range(n)], pa.decimal128(20, 2)),
            "t": pa.array([i % 100 for i in range(n)], pa.int8()),
            "row": pa.array(range(n)),
        }
    )
    path = tmp_path / "f.parquet"
    context = datafusion.SessionContext()
    context.from_arrow(table, name="t")
    context.sql(
        f"COPY t TO '{path}' STORED AS PARQUET OPTIONS ('bloom_filter_on_write' 'true')"
    ).collect()
    data = path.read_bytes()
    assert holds(data, BLOOM, X == "key-17").denied == [False]
    assert holds(data, BLOOM, X == "key-x").denied == [True]
    assert not any(holds(data, BLOOM, ps.col("i") == 20).denied)
    assert sum(holds(data, BLOOM, ps.col("i") == v).denied[0] for v in range(1, 99, 2)) > 30
    assert holds(data, BLOOM, ps.col("d") == Decimal(5)).denied == [False]
    assert sum(holds(data, BLOOM, ps.col("d") == Decimal(f"{v}.5")).denied[0] for v in range(9)) > 5
    assert holds(data, BLOOM, ps.col("t") == 5).denied == [False]
    assert holds(data, BLOOM, ps.col("t") == 101).denied == [True]


def test_filters_of_duckdb(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "f.parquet"
    duckdb.sql(
        "COPY (SELECT (i % 500) * 2 AS x, 'v' || (i % 500) AS s, ('b' || (i % 300))::BLOB AS b, "
        "((i % 400) * 2)::DECIMAL(9,1) AS d, i AS row FROM range(20000) t(i)) "
        f"TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 10240)"
    )
    data = path.read_bytes()
    assert not any(holds(data, BLOOM, X == 500).denied)
    assert all(holds(data, BLOOM, X == 501).denied)
    assert not any(holds(data, BLOOM, ps.col("s") == "v9").denied)
    assert all(holds(data, BLOOM, ps.col("s") == "w9").denied)
    assert not any(holds(data, BLOOM, ps.col("b") == b"b9").denied)
    assert not any(holds(data, BLOOM, ps.col("d") == 4).denied)


FILES = [
    "valid/cudf__bloom_filter_alignment.parquet",
    "valid/duckdb__multi_bloom_a.parquet",
    "valid/duckdb__multi_bloom_c.parquet",
    "valid/hyparquet__bloom_filter.parquet",
    "valid/impala__parquet-bloom-filtering.parquet",
    "valid/pqtest__data_index_bloom_encoding_with_length.parquet",
    "hostile/duckdb__bloom_filter_bad_numbytes.parquet",
]


@pytest.mark.parametrize("name", FILES)
def test_67_filters_of_other_writers_deny_no_value(conformance: Path, name: str) -> None:
    path = conformance / "corpus" / name
    if not path.exists():
        pytest.skip(f"the corpus has no {name}")
    data, tried = path.read_bytes(), 0
    file = open_metadata(data)
    for leaf in file.leaves:
        if not any(chunk.bloom_filter_offset >= 0 for chunk in file.chunks(leaf)) or leaf.max_rep:
            continue
        values = ps.read_table(data, columns=[leaf.name])[leaf.name].combine_chunks()
        x, first = ps.col(*leaf.path), 0
        for group, count in enumerate(file.group_rows):
            for value in values.slice(first, count).unique().drop_null()[:40]:
                assert not judged(data, BLOOM, x == value).denied[group], (leaf.name, value)
                tried += 1
            first += count
    assert tried
