"""Dictionaries and string pages are decompressed only as far as the rows need: the rows equal a full read, for every codec, type,
layout and selection.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.scanning.leaves import page_batch
from support.tiers import FULL, rounds

pytestmark = pytest.mark.usefixtures("scans")

ROWS = 40_000
ENTRIES = 30_000  # of most columns: of 8 bytes each, that is two blocks of zstd
CODECS = ("none", "snappy", "lz4", "gzip", "zstd")
BLOCK = 1 << 17  # greatest size of a block of zstd


def _texts(n: int, dice: random.Random) -> list[str]:
    """Strings of very different lengths, some empty, one as large as a block."""
    made = [f"{i} é " * dice.choice((0, 1, 1, 2, 9)) for i in range(n)]
    made[n // 3] = "long " * (BLOCK // 4)
    return made


# what the entries of a dictionary are, of each type
KINDS: dict[str, Callable[[int, random.Random], pa.Array]] = {
    "int32": lambda n, dice: pa.array(range(n), pa.int32()),
    "int64": lambda n, dice: pa.array([i * 977 - 5 for i in range(n)], pa.int64()),
    "uint16": lambda n, dice: pa.array(range(n), pa.uint16()),
    "float64": lambda n, dice: pa.array([i / 7 for i in range(n)], pa.float64()),
    "small": lambda n, dice: pa.array([Decimal(i) / 100 for i in range(n)], pa.decimal128(9, 2)),
    "decimal": lambda n, dice: pa.array([Decimal(i - 9) / 100 for i in range(n)], pa.decimal128(30, 2)),
    "wide": lambda n, dice: pa.array([Decimal(i) for i in range(n)], pa.decimal256(60, 0)),
    "string": lambda n, dice: pa.array(_texts(n, dice), pa.string()),
    "large": lambda n, dice: pa.array([f"{i} large" for i in range(n)], pa.large_string()),
    "binary": lambda n, dice: pa.array([one.encode() for one in _texts(n, dice)], pa.binary()),
    "fixed": lambda n, dice: pa.array([i.to_bytes(5, "big") for i in range(n)], pa.binary(5)),
    "time": lambda n, dice: pa.array([i * 1_000_003 for i in range(n)], pa.timestamp("us", "UTC")),
    "nanos": lambda n, dice: pa.array([i * 1_000_003 for i in range(n)], pa.timestamp("ns")),
    "date": lambda n, dice: pa.array(range(n), pa.date32()),
}  # fmt: skip


@functools.cache
def table_of() -> pa.Table:
    """A key, and columns whose rows take entries as they please: the later the row, the further into the dictionary."""
    dice, rng = random.Random(5), np.random.default_rng(5)
    columns: dict[str, Any] = {"key": pa.array(range(ROWS), pa.int64())}
    for name, make in KINDS.items():
        entries = make(ENTRIES, dice)
        codes = pa.array(rng.integers(0, ENTRIES, ROWS))
        columns[name] = entries.take(codes)
        nulls = pa.array(codes, mask=rng.random(ROWS) < 0.3)
        columns[f"{name}?"] = entries.take(nulls)
    texts = pa.array([f"item {i}" for i in range(ENTRIES)])
    offsets = np.concatenate([[0], np.cumsum(rng.integers(0, 4, ROWS))])
    items = texts.take(pa.array(rng.integers(0, ENTRIES, int(offsets[-1]))))
    columns["list"] = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items)
    columns["ends"] = pa.array([None if i > ROWS // 2 else f"x{i}" for i in range(ROWS)])
    columns["few"] = pa.array([f"few {i % 7}" for i in range(ROWS)])
    return pa.table(columns)


# limits: dictionaries of any size, or so small that chunks go on with PLAIN pages; the usual one is 1 MiB
LAYOUTS: dict[str, dict[str, Any]] = {
    "one page": {
        "dictionary_pagesize_limit": 1 << 26, "max_rows_per_page": ROWS, "data_page_size": 1 << 26,
        "write_page_index": True,
    },
    "one page, no index": {
        "dictionary_pagesize_limit": 1 << 26, "max_rows_per_page": ROWS, "data_page_size": 1 << 26,
        "data_page_version": "2.0", "store_decimal_as_integer": True,
    },
    "pages": {
        "dictionary_pagesize_limit": 1 << 26, "max_rows_per_page": 3_000, "write_page_index": True,
        "data_page_version": "2.0", "write_page_checksum": True,
    },
    "falls back": {
        "dictionary_pagesize_limit": 1 << 17, "max_rows_per_page": 5_000, "write_page_index": True,
        "store_decimal_as_integer": True,
    },
    "falls back, no index": {"dictionary_pagesize_limit": 1 << 17, "max_rows_per_page": 5_000},
    "usual": {"write_page_index": True},
}  # fmt: skip


# gzip is slow to write, and is always unpacked whole; the sample has every codec and every layout
CASES = [
    pytest.param(codec, layout, marks=() if (i + j) % 3 == 2 else pytest.mark.slow)
    for (i, codec), (j, layout) in itertools.product(enumerate(CODECS), enumerate(LAYOUTS))
    if codec != "gzip" or layout in ("pages", "usual")
]


@functools.cache
def written(codec: str, layout: str) -> tuple[pa.Table, bytes]:
    """The table that pyarrow reads from a file, and the file."""
    sink = pa.BufferOutputStream()
    pq.write_table(table_of(), sink, compression=codec, **LAYOUTS[layout])
    data = sink.getvalue()
    return pq.read_table(pa.BufferReader(data)), bytes(data.to_pybytes())


def check(data: bytes, condition: ps.Expression, wanted: pa.Table, threads: int = 1) -> None:
    found = ps.read_table(data, filter=condition, threads=threads)
    found.validate(full=True)
    assert found.schema.equals(wanted.schema)
    for name in wanted.column_names:
        assert found[name].equals(wanted[name]), (name, condition)


def places(dice: random.Random) -> Iterator[tuple[ps.Expression, list[int]]]:
    """Conditions on the key, with the rows that they leave."""
    key = ps.col("key")
    for row in (0, 1, 2_999, 3_000, 4_999, 5_000, ROWS - 1, *dice.sample(range(ROWS), rounds(8))):
        yield key == row, [row]
    for n in (2, 3, 20, 400):
        rows = sorted(dice.sample(range(ROWS), n))
        yield key.isin(rows), rows
    for first, n in ((0, 7), (2_990, 20), (ROWS - 3, 3), (17, 9_000)):
        yield key.between(first, first + n - 1), list(range(first, first + n))


@pytest.mark.parametrize(("codec", "layout"), CASES)
def test_rows_anywhere(codec: str, layout: str) -> None:
    table, data = written(codec, layout)
    dice = random.Random(f"{codec} {layout}")
    for threads, (condition, rows) in zip(itertools.cycle((1, 4)), places(dice), strict=False):
        check(data, condition, table.take(rows), threads)


@pytest.mark.covering(1)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_anywhere_of_zstd(library: bool, layout: str) -> None:
    table, data = written("zstd", layout)
    for i, (condition, rows) in enumerate(places(random.Random(layout))):
        for threads in (1, 4):
            if FULL or (i % 2 == 0) == (threads == 1):
                check(data, condition, table.take(rows), threads)


@pytest.mark.covering(1)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("codec", ["none", "snappy", "zstd"])
def test_filters_on_the_column_itself(codec: str, layout: str) -> None:
    table, data = written(codec, layout)
    dice = random.Random(layout)
    for name in ("int32", "int64?", "decimal", "string?", "large", "time", "fixed?"):
        column = table[name]
        values = [
            one for i in dice.sample(range(ROWS), 6) if (one := column[i].as_py()) is not None
        ]
        wanted = table.filter(pc.is_in(column, pa.array(values, column.type)))
        check(data, ps.col(name).isin(values), wanted, dice.choice((1, 4)))
        one = ps.read_table(data, ["key", name], ps.col(name) == values[0])
        assert one.equals(
            table.select(["key", name]).filter(pc.equal(column, pa.scalar(values[0], column.type)))
        )


@pytest.mark.parametrize("codec", ["snappy", "zstd"])
def test_another_column_leaves_few_rows(codec: str) -> None:
    table, data = written(codec, "one page")
    condition = (ps.col("few") == "few 3") & (ps.col("key") > ROWS - 30) | (ps.col("key") == 5)
    rows = [5, *(row for row in range(ROWS - 29, ROWS) if row % 7 == 3)]
    check(data, condition, table.take(rows))
    check(
        data,
        ps.col("ends").is_null() & (ps.col("key") < ROWS // 2 + 3),
        table.slice(ROWS // 2 + 1, 2),
    )


# ---- PLAIN strings: how far they reach is guessed ----------------------------------------------

PLAIN_ROWS = 6_000


def lengths(shape: str, dice: random.Random) -> Sequence[int | None]:
    """Lengths of the values of a page; None is null."""
    half = PLAIN_ROWS // 2
    shapes: dict[str, Sequence[int | None]] = {
        "homogeneous": [20] * PLAIN_ROWS,
        "empty": [0] * PLAIN_ROWS,
        "short first": [0] * half + [90] * half,
        "long first": [90] * half + [0] * half,
        "one huge, early": [3] * 10 + [1 << 20] + [3] * (PLAIN_ROWS - 11),
        "one huge, late": [3] * (PLAIN_ROWS - 9) + [1 << 20] + [3] * 8,
        "nulls last": [30] * half + [None] * half,
        "nulls first": [None] * half + [30] * half,
        "nulls here and there": [dice.choice((None, 1, 200)) for _ in range(PLAIN_ROWS)],
        "any": [dice.choice((0, 1, 5, 1_000)) for _ in range(PLAIN_ROWS)],
    }  # fmt: skip
    return shapes[shape]


SHAPES = (
    "homogeneous", "empty", "short first", "long first", "one huge, early", "one huge, late", "nulls last", "nulls first",
    "nulls here and there", "any",
)  # fmt: skip


@functools.cache
def plain(shape: str, codec: str, version: str, page_rows: int) -> tuple[pa.Table, bytes]:
    dice = random.Random(shape)
    texts = [
        None if n is None else "".join(dice.choices("abcdefgh é", k=min(n, 99))).ljust(n, "z")
        for n in lengths(shape, dice)
    ]
    bodies = [None if one is None else one.encode() for one in texts]
    table = pa.table(
        {
            "key": pa.array(range(PLAIN_ROWS)),
            "text": pa.array(texts, pa.string()),
            "large": pa.array(texts, pa.large_string()),
            "binary": pa.array(bodies, pa.binary()),
            "decimal": pa.array([Decimal(i) for i in range(PLAIN_ROWS)], pa.decimal128(33, 0)),
            "after": pa.array([f"{i} after" for i in range(PLAIN_ROWS)]),
        }
    )
    sink = pa.BufferOutputStream()
    pq.write_table(
        table, sink, compression=codec, use_dictionary=False, data_page_version=version, data_page_size=1 << 26,
        max_rows_per_page=page_rows, write_page_index=True,
    )  # fmt: skip
    return table, bytes(sink.getvalue().to_pybytes())


@pytest.mark.covering(2)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("page_rows", [PLAIN_ROWS, PLAIN_ROWS // 2 + 100])
def test_plain_strings_of_lengths_unlike(
    shape: str, codec: str, version: str, page_rows: int
) -> None:
    dice = random.Random(f"{shape} {codec}")
    half = PLAIN_ROWS // 2
    table, data = plain(shape, codec, version, page_rows)
    for row in (
        0,
        9,
        10,
        11,
        half - 1,
        half,
        half + 1,
        PLAIN_ROWS - 10,
        PLAIN_ROWS - 9,
        PLAIN_ROWS - 1,
    ):
        check(data, ps.col("key") == row, table.slice(row, 1), dice.choice((1, 4)))
    for n in (2, 5, 60, 600):
        rows = sorted(dice.sample(range(dice.choice((50, half, PLAIN_ROWS))), min(n, 50)))
        check(data, ps.col("key").isin(rows), table.take(rows))
    for first, n in ((0, 4), (half - 5, 10), (half + 90, 20)):
        check(data, ps.col("key").between(first, first + n - 1), table.slice(first, n), 4)


def test_plain_strings_of_zstd(library: bool) -> None:
    for shape, version in itertools.product(SHAPES, ("1.0", "2.0")):
        table, data = plain(shape, "zstd", version, PLAIN_ROWS)
        for row in (0, 1, 10, 11, 700, PLAIN_ROWS // 2, PLAIN_ROWS - 9, PLAIN_ROWS - 1):
            check(data, ps.col("key") == row, table.slice(row, 1))
        check(data, ps.col("key").isin([3, 2_000, 2_800]), table.take([3, 2_000, 2_800]))


# ---- what is counted ---------------------------------------------------------------------------


@pytest.mark.timed
@pytest.mark.parametrize(("codec", "layout"), CASES)
def test_counts_are_those_of_one_leaf_after_the_other(
    codec: str, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, data = written(codec, layout)

    def counts(condition: ps.Expression) -> dict[str, Any]:
        made: dict[str, Any] = ps.scan(data, filter=condition).explain(analyze=True).to_dict()
        for name in ("seconds", "requests", "waves"):  # these may be fewer
            made.pop(name)
        return made

    key = ps.col("key")
    for condition in (key == 7, key == ROWS - 1, key.isin([3, 3_500]), ps.col("few") == "few 3"):
        ahead = counts(condition)
        with monkeypatch.context() as patch:
            patch.setattr(page_batch, "decode_pages", lambda *_: iter(()))
            later = counts(condition)
        assert ahead == later
        leaves = ahead["leaves"]
        assert all(leaf["dictionary_pages"] <= 1 for leaf in leaves.values())
        if layout == "one page":
            assert leaves["int64"]["dictionary_pages"] == 1
