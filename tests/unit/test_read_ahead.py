"""Columns of which one page each is wanted are decoded together; what goes wrong is told as if they were not."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pageseek._core.decode import TAKE_DICTIONARY, LeafDecoder, read_pages

import pageseek as ps
from pageseek import execute

ROWS = 6_000


def make(compression: str, version: str) -> tuple[pa.Table, bytes]:
    rng = np.random.default_rng(3)
    nulls = rng.random(ROWS) < 0.3
    table = pa.table(
        {
            "key": np.arange(ROWS),
            "value": pa.array(rng.integers(0, 1 << 40, ROWS), mask=nulls),
            "text": pa.array([f"text {i} é" for i in range(ROWS)], mask=nulls),
            "city": pa.array([f"city {i % 90}" for i in range(ROWS)]),
            "inside": pa.array([None if i % 7 == 0 else {"a": i} for i in range(ROWS)]),
            "list": pa.array([list(range(i % 4)) for i in range(ROWS)]),
        }
    )
    out = pa.BufferOutputStream()
    pq.write_table(
        table, out, compression=compression, use_dictionary=["city"], max_rows_per_page=500,
        write_page_index=True, data_page_version=version, write_page_checksum=True,
    )  # fmt: skip
    return table, bytes(out.getvalue().to_pybytes())


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd", "gzip"])
def test_rows_are_the_same_ahead_or_not(
    compression: str, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, data = make(compression, version)
    for row in (0, 499, 500, 3_333, ROWS - 1):
        condition = ps.col("key") == row
        found = ps.read_table(data, filter=condition)
        assert found.equals(table.slice(row, 1))
        found.validate(full=True)
        ahead = ps.scan(data, filter=condition).explain(analyze=True).to_dict()
        with monkeypatch.context() as patch:
            patch.setattr(execute, "read_ahead", lambda readers: None)
            assert ps.read_table(data, filter=condition).equals(found)
            later = ps.scan(data, filter=condition).explain(analyze=True).to_dict()
        ahead.pop("seconds"), later.pop("seconds")
        assert ahead == later


@pytest.mark.parametrize("column", ["value", "text", "city", "inside.a", "list.list.element"])
def test_damage_is_told_with_its_place(column: str) -> None:
    _, data = make("zstd", "1.0")
    offsets = ps.open(data).offset_index(0, column)
    assert offsets is not None
    at = int(offsets.offset[4]) + int(offsets.compressed_size[4]) - 5
    bad = data[:at] + bytes([data[at] ^ 255]) + data[at + 1 :]
    message = f"column '{column}', row group 0, page 4 at byte {int(offsets.offset[4])}: .*checksum"
    with pytest.raises(ps.CorruptFileError, match=message):
        ps.read_table(bad, filter=ps.col("key") == 2_100)


def test_damage_of_a_dictionary_is_told_as_that() -> None:
    _, data = make("zstd", "1.0")
    offsets = ps.open(data).offset_index(0, "city")
    assert offsets is not None
    at = offsets.start - 5
    bad = data[:at] + bytes([data[at] ^ 255]) + data[at + 1 :]
    with pytest.raises(ps.CorruptFileError, match=r"column 'city', row group 0, dictionary page"):
        ps.read_table(bad, filter=ps.col("key") == 2_100)


def test_of_a_page_of_codes_without_its_dictionary_nothing_is_given() -> None:
    table, data = make("none", "1.0")
    offsets = ps.open(data).offset_index(0, "city")
    assert offsets is not None
    at, size = int(offsets.offset[2]), int(offsets.compressed_size[2])
    page, ranges = data[at : at + size], np.array([1_000, 1_001], np.int64).tobytes()
    first = data.index(b"PAR1") + 4
    start = next(
        ps.open(data).chunk(0, leaf).dictionary_page_offset
        for leaf in ps.open(data).leaves
        if leaf.name == "city"
    )
    assert start >= first

    def decoder() -> LeafDecoder:
        return LeafDecoder((6, 0, 14, 0, 0, 1, 0), 1, 0)

    dictionary = data[start : offsets.start]
    tasks = [
        (decoder(), (page, 1_000, 500, ranges, 0, None)),
        (decoder(), (page, 1_000, 499, ranges, 0, dictionary)),
        (decoder(), (page, 1_000, 500, ranges, 0, dictionary + b"more")),
        (decoder(), (page, 1_000, 500, ranges, 0, dictionary)),
    ]
    wanting, other, more, made = read_pages(tasks)
    assert (wanting, other, more) == (TAKE_DICTIONARY, None, None)
    assert isinstance(made, tuple)
    assert bytes(made[4]) == table["city"][1_000].as_py().encode()
