"""zstd pages of which only the first blocks are decoded."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

import pageseek as ps
from pageseek._core import codecs as core
from pageseek._core.memory import Block
from pageseek.base.errors import CoreError, CorruptFileError
from pageseek.format import codecs
from pageseek.format.codecs import ZSTD_BLOCK, prefix_of
from support.opened import open_metadata

pytestmark = pytest.mark.skipif(prefix_of("zstd")[0] is None, reason="no context to stream with")
ROWS = 60_000  # of 8 bytes: four blocks


@pytest.fixture
def no_library() -> Iterator[None]:
    """As on a system without libzstd."""
    core.use_zstd(None)
    yield
    core.use_zstd(codecs.LIBZSTD)


def prefix(packed: bytes, size: int, reach: int) -> bytes:
    fill, step = prefix_of("zstd")
    assert fill is not None
    assert step == ZSTD_BLOCK
    out = Block(reach)
    fill(memoryview(packed), size, out)
    return bytes(out)


def plain_of(size: int) -> bytes:
    return np.random.default_rng(size).integers(0, 50, size, np.uint8).tobytes()


@pytest.mark.parametrize("level", [1, 3, 19])
def test_a_prefix_is_what_all_of_it_begins_with(level: int) -> None:
    for size in (1, 1_000, ZSTD_BLOCK, ZSTD_BLOCK + 1, 5 * ZSTD_BLOCK + 77):
        plain = plain_of(size)
        packed = zstandard.ZstdCompressor(level=level).compress(plain)
        for reach in {1, size // 3 + 1, min(size, ZSTD_BLOCK), min(size, ZSTD_BLOCK + 1), size}:
            assert prefix(packed, size, reach) == plain[:reach]
            assert bytes(codecs._zstd(memoryview(packed), size)) == plain  # the context is sound


def test_what_is_no_frame_of_that_size_is_refused() -> None:
    size = 3 * ZSTD_BLOCK
    plain = plain_of(size)
    packed = zstandard.ZstdCompressor().compress(plain)
    silent = zstandard.ZstdCompressor(write_content_size=False).compress(plain)
    bad = [b"", b"\0" * 40, packed[:3], packed[:20], packed[: len(packed) // 4], silent]
    for data in bad:
        with pytest.raises(CoreError):
            prefix(data, size, 2 * ZSTD_BLOCK)
    for lie in (size - 1, size + 1, 1 << 60):
        with pytest.raises(CoreError):
            prefix(packed, lie, ZSTD_BLOCK)
    assert prefix(packed, size, 100) == plain[:100]


def test_damaged_frames_fill_or_fail() -> None:
    rng = random.Random(2)
    packed = zstandard.ZstdCompressor().compress(plain_of(2 * ZSTD_BLOCK))
    for _ in range(400):
        data = bytearray(packed)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        try:
            assert len(prefix(bytes(data), 2 * ZSTD_BLOCK, ZSTD_BLOCK)) == ZSTD_BLOCK
        except CoreError:
            pass


@pytest.fixture(params=["1.0", "2.0"])
def data(request: pytest.FixtureRequest) -> bytes:
    rng = np.random.default_rng(5)
    table = pa.table(
        {
            "key": np.arange(ROWS),
            "value": pa.array(rng.integers(0, 1000, ROWS), mask=rng.random(ROWS) < 0.2),
            "price": rng.random(ROWS),
        }
    )
    out = pa.BufferOutputStream()
    pq.write_table(
        table, out, compression="zstd", use_dictionary=False, data_page_size=1 << 23,
        max_rows_per_page=ROWS, write_page_index=True, data_page_version=request.param,
    )  # fmt: skip
    return bytes(out.getvalue().to_pybytes())


def test_rows_of_large_pages_come_from_a_prefix(
    data: bytes, monkeypatch: pytest.MonkeyPatch, no_library: None
) -> None:
    fill, step = prefix_of("zstd")
    assert fill is not None
    filled: list[int] = []

    def counted(packed: memoryview, size: int, out: Block) -> None:
        filled.append(len(out))
        fill(packed, size, out)

    monkeypatch.setitem(codecs._PREFIX, "zstd", (counted, step))
    wanted = pq.read_table(pa.BufferReader(data))
    for row in (0, 1, 7_000, 16_383, 16_384, 30_000, 50_000, ROWS - 1):
        filled.clear()
        assert ps.read_table(data, filter=ps.col("key") == row).equals(wanted.slice(row, 1))
        assert bool(filled) == (row <= 30_000)
        assert all(n < ROWS * 6 for n in filled)
    rows = [5, 900, 20_000]
    assert ps.read_table(data, filter=ps.col("key").isin(rows)).equals(wanted.take(rows))
    assert filled
    filled.clear()
    assert ps.read_table(data).equals(wanted)
    assert not filled


def test_damage_in_a_prefix_is_told_as_damage_of_the_page(
    data: bytes, monkeypatch: pytest.MonkeyPatch, no_library: None
) -> None:
    def broken(packed: memoryview, size: int, out: Any) -> None:
        raise CoreError(codecs.CORRUPT, None, "not this way")

    wanted = pq.read_table(pa.BufferReader(data)).slice(3, 1)
    monkeypatch.setitem(codecs._PREFIX, "zstd", (broken, ZSTD_BLOCK))
    assert ps.read_table(data, filter=ps.col("key") == 3).equals(wanted)  # then all of it
    monkeypatch.undo()
    file = open_metadata(data)
    offsets = file.offset_index(0, "price")
    assert offsets is not None
    at = data.index(zstandard.FRAME_HEADER, offsets.start) + 2
    bad = data[:at] + bytes(2) + data[at + 2 :]
    with pytest.raises(CorruptFileError, match="price"):
        ps.read_table(bad, filter=ps.col("key") == 3)
