"""Pages of codec ZSTD with the system's libzstd, and without it: the same answers, the same errors."""

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
from pageseek._core.decode import TAKE_DONE, LeafDecoder
from pageseek.base.errors import CoreError
from pageseek.format import codecs
from support.concurrency import in_threads
from support.opened import open_metadata

pytestmark = pytest.mark.skipif(codecs.LIBZSTD is None, reason="this system has no libzstd")
ROWS = 40_000
BLOCK = codecs.ZSTD_BLOCK


def refusing() -> tuple[int, ...]:
    """A library that refuses parameters of a context: ZSTD_isError replaces the setter."""
    assert codecs.LIBZSTD is not None
    found = list(codecs.LIBZSTD)
    names = codecs._FUNCTIONS
    found[names.index("DCtx_setParameter")] = found[names.index("isError")]
    return tuple(found)


def unknown() -> tuple[int, ...]:
    """The library as one of a version whose parameters may mean something else."""
    assert codecs.LIBZSTD is not None
    return (*codecs.LIBZSTD[:-1], 0)


@pytest.fixture(params=["libzstd", "refusing", "unknown", "zstandard"])
def library(request: pytest.FixtureRequest) -> Iterator[bool]:
    made = {"refusing": refusing, "unknown": unknown, "zstandard": lambda: None}
    core.use_zstd(made.get(request.param, lambda: codecs.LIBZSTD)())
    yield request.param != "zstandard"
    core.use_zstd(codecs.LIBZSTD)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The size of every page that was not left to the library."""
    made: list[int] = []
    whole, prefix = codecs._zstd, codecs._zstd_prefix

    def counted(data: memoryview, size: int) -> Any:
        made.append(size)
        return whole(data, size)

    def counted_prefix(data: memoryview, size: int, out: Any) -> None:
        made.append(len(out))
        prefix(data, size, out)

    monkeypatch.setitem(codecs._BY_NAME, "zstd", counted)
    monkeypatch.setitem(codecs._PREFIX, "zstd", (counted_prefix, BLOCK))
    return made


def make(**how: Any) -> tuple[pa.Table, bytes]:
    rng = np.random.default_rng(11)
    nulls = rng.random(ROWS) < 0.2
    table = pa.table(
        {
            "key": np.arange(ROWS),
            "value": pa.array(rng.random(ROWS), mask=nulls),
            "text": [f"text {i % 700}" for i in range(ROWS)],
            "list": pa.array([list(range(i % 3)) for i in range(ROWS)]),
        }
    )
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", use_dictionary=["text"], **how)
    return table, bytes(sink.getvalue().to_pybytes())


@pytest.mark.covering(2)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("page_rows", [900, 20_000, ROWS])
@pytest.mark.parametrize("index", [True, False])
def test_answers_are_the_same(
    library: bool, asked: list[int], version: str, page_rows: int, index: bool
) -> None:
    table, data = make(
        data_page_version=version, max_rows_per_page=page_rows, write_page_index=index,
        data_page_size=1 << 24,
    )  # fmt: skip
    for row in (0, 899, 900, 19_999, 25_000, ROWS - 1):
        assert ps.read_table(data, filter=ps.col("key") == row).equals(table.slice(row, 1))
    some = ps.col("text") == "text 13"
    wanted = table.filter(pa.compute.equal(table["text"], "text 13"))
    assert ps.read_table(data, filter=some).equals(wanted)
    assert ps.read_table(data).equals(table)
    assert bool(asked) == (not library)


def test_frames_that_the_library_is_not_given_are_read_all_the_same(asked: list[int]) -> None:
    plain = np.arange(3_000, dtype=np.int64).tobytes()
    streamed = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    half = len(plain) // 2
    odd = {
        "without its size": streamed.compress(plain) + streamed.flush(),
        "two frames": b"".join(zstandard.compress(part) for part in (plain[:half], plain[half:])),
        "a frame to be skipped": b"\x50\x2a\x4d\x18\4\0\0\0abcd" + zstandard.compress(plain),
    }
    for name, packed in odd.items():
        before = len(asked)
        decoder = LeafDecoder(
            (2, 0, 4, 0, 0, 0, 0), 0, 0, codec="zstd", decompress=codecs._BY_NAME["zstd"]
        )
        page = _page(packed, len(plain), 3_000)
        decoder.begin(np.array([7, 9], np.int64).tobytes())
        decoder.head(page)
        assert decoder.take(0) == TAKE_DONE, name
        assert np.frombuffer(decoder.finish()[4], np.int64).tolist() == [7, 8], name
        assert len(asked) == before + 1, name


def _page(packed: bytes, size: int, n: int) -> bytes:
    """A data page of version 1."""

    def number(value: int) -> bytes:
        value, out = value << 1, b""
        while value > 127:
            out, value = out + bytes([value & 127 | 128]), value >> 7
        return b"\x15" + out + bytes([value])

    head = number(0) + number(size) + number(len(packed)) + b"\x2c"
    return head + number(n) + number(0) + number(3) + number(3) + b"\0\0" + packed


def test_damage_is_told_alike() -> None:
    _, data = make(max_rows_per_page=5_000, write_page_index=True)
    file = open_metadata(data)
    offsets = file.offset_index(0, "value")
    assert offsets is not None
    rng, told = random.Random(4), 0
    for _ in range(150):
        at = data.index(zstandard.FRAME_HEADER, int(offsets.offset[3])) + rng.randrange(60)
        bad = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
        found = []
        for library in (codecs.LIBZSTD, None):
            core.use_zstd(library)
            try:
                answer: Any = ps.read_table(bad, filter=ps.col("key") == 17_000).to_pydict()
            except ps.PageseekError as error:
                answer = type(error), str(error)
            found.append(str(answer))
        core.use_zstd(codecs.LIBZSTD)
        errors = [one for one in found if "Error" in one]
        assert len({*errors}) <= 1  # a frame has no checksum: not every version sees every fault
        told += len(errors) == 2
    assert told > 50


def test_a_page_that_claims_too_much_takes_no_memory(library: bool) -> None:
    frame, rows = zstandard.compress(bytes(1 << 20)), np.array([7, 9], np.int64).tobytes()
    for size in ((1 << 40) - 1, 1 << 31, (1 << 20) + 1, (1 << 20) - 1):
        decoder = LeafDecoder(
            (2, 0, 4, 0, 0, 0, 0), 0, 0, codec="zstd", decompress=codecs._zstd, prefix=codecs._zstd_prefix,
            step=BLOCK,
        )  # fmt: skip
        with pytest.raises(CoreError):
            decoder.read_page(_page(frame, size, 1 << 17), 0, 1 << 17, rows)


def test_threads_have_contexts_of_their_own(library: bool) -> None:
    table, data = make(max_rows_per_page=2_000, write_page_index=True)
    wrong: list[int] = []

    def read(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(40):
            row = rng.randrange(ROWS)
            if not ps.read_table(data, filter=ps.col("key") == row).equals(table.slice(row, 1)):
                wrong.append(row)

    in_threads(6, read)
    assert not wrong


def test_a_library_is_whole_or_none() -> None:
    with pytest.raises(CoreError, match="8 functions"):
        core.use_zstd((1,) * 8)
    with pytest.raises(CoreError, match="9 functions"):
        core.use_zstd((0,) + (1,) * 8)
    assert codecs.LIBZSTD is not None
