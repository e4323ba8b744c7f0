"""Byte strings that come out as views: equal to those that pyarrow reads, whatever the encoding, page and selection."""

from __future__ import annotations

import io
import random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps

ENCODINGS = ["PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", "dictionary"]
LENGTHS = [0, 1, 4, 5, 8, 11, 12, 13, 14, 31, 40, 200]  # a view holds 12 bytes
ROWS = 5000


def strings(seed: int, nulls: float, distinct: int, longest: int) -> list[str | None]:
    dice = random.Random(seed)
    lengths = [n for n in LENGTHS if n <= longest]
    some = ["".join(dice.choices("abcä€😀", k=dice.choice(lengths))) for _ in range(distinct)]
    return [None if dice.random() < nulls else dice.choice(some) for _ in range(ROWS)]


def file_of(column: pa.Array, encoding: str, compression: str) -> bytes:
    sink = io.BytesIO()
    how: dict[str, Any] = {"use_dictionary": encoding == "dictionary"}
    if encoding != "dictionary":
        how["column_encoding"] = {"s": encoding}
    table = pa.table({"s": column, "n": pa.array(range(ROWS), pa.int32())})
    pq.write_table(
        table, sink, row_group_size=3000, data_page_size=4000, write_batch_size=100,
        write_page_index=True, compression=compression, store_schema=False, **how,
    )  # fmt: skip
    return sink.getvalue()


def selections() -> list[list[int] | None]:
    dice = random.Random(3)
    return [
        None,
        list(range(700, 1900)),
        [5, 2999, 3000, 4999],
        sorted(dice.sample(range(ROWS), 900)),
        [i for i in range(ROWS) if i % 7 in (2, 3)],
    ]


@pytest.mark.covering(2)
@pytest.mark.parametrize("compression", ["none", "zstd"])
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("nulls", [0, 0.3])
@pytest.mark.parametrize("longest", [12, 200])
@pytest.mark.parametrize("distinct", [30, 2000])
def test_views_equal_strings(
    compression: str, encoding: str, nulls: float, longest: int, distinct: int
) -> None:
    kind = pa.string() if distinct == 30 or encoding == "PLAIN" else pa.binary()
    column = pa.array(strings(distinct + longest, nulls, distinct, longest)).cast(kind)
    data = file_of(column, encoding, compression)
    view = pa.string_view() if kind == pa.string() else pa.binary_view()
    for chosen in selections():
        for threads in (1, 2):
            scan = ps.scan(data, string_type="view", threads=threads)
            found = (scan if chosen is None else scan.take(chosen)).to_table()
            found.validate(full=True)
            assert found["s"].type == view
            expected = column if chosen is None else column.take(pa.array(chosen))
            assert found["s"].cast(kind).equals(pa.chunked_array([expected]))
    found = ps.scan(data, string_type="view", batch_size=333).to_table()
    assert found["s"].cast(kind).equals(pa.chunked_array([column]))


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(
    "text", [b"short\xff", b"a longer one that is not text \xc3", b"\xa9" * 20]
)
def test_views_of_what_is_no_text(encoding: str, text: bytes) -> None:
    values = [b"some \xc3\xa9", b"some more of it, longer"] * (ROWS // 2)
    values[1234] = text
    column = pa.array(values, pa.binary())
    strings_ = pa.Array.from_buffers(pa.string(), ROWS, column.buffers())
    data = file_of(strings_, encoding, "none")
    errors = []
    for string_type in ("large", "view"):
        with pytest.raises(ps.CorruptFileError) as caught:
            ps.read_table(data, string_type=string_type)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]
    others = [i for i in range(ROWS) if i != 1234]
    found = ps.scan(data, string_type="view").take(others).to_table()
    assert found["s"].cast(pa.string()).equals(pa.chunked_array([strings_.take(pa.array(others))]))


def test_entries_in_use_alone_are_kept() -> None:
    """A long entry is in memory once for each array, and only if a row has it."""
    entries = [f"{i:04d}" * 50 for i in range(1000)]
    column = pa.array(entries * 5)
    data = file_of(column, "dictionary", "none")
    found = ps.scan(data, string_type="view").take([3, 1003, 2003, 2004]).to_table()
    assert found["s"].to_pylist() == [entries[3]] * 3 + [entries[4]]
    assert sum(b.size for c in found["s"].chunks for b in c.buffers() if b) <= 4 * 16 + 2 * 200 + 64


def test_views_beside_a_filter() -> None:
    values = strings(7, 0.2, 400, 200)
    data = file_of(pa.array(values), "dictionary", "zstd")
    for condition, keep in [
        (ps.col("n") >= 2500, lambda i, v: i >= 2500),
        (ps.col("s") > "b", lambda i, v: v is not None and v.encode() > b"b"),
        (ps.col("s").is_null() & (ps.col("n") < 3100), lambda i, v: v is None and i < 3100),
    ]:
        for limit in (None, 7):
            expected = [v for i, v in enumerate(values) if keep(i, v)][:limit]
            found = ps.read_table(data, filter=condition, string_type="view", limit=limit)
            found.validate(full=True)
            assert found["s"].to_pylist() == expected
