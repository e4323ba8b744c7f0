"""Pages of codecs GZIP and BROTLI with the libraries of the system, and without: the same answers, the same errors."""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek._core import codecs as core
from pageseek._core.codecs import CodecSettings
from pageseek._core.decode import TAKE_DONE, LeafDecoder
from pageseek.base.errors import CoreError
from pageseek.format import codecs
from support.batch_comparison import same_rows
from support.concurrency import in_threads
from support.opened import open_metadata

ROWS = 40_000
USE: dict[str, Callable[[Any], None]] = {"gzip": core.use_zlib, "brotli": core.use_brotli}
FOUND = {"gzip": codecs.ZLIB, "brotli": codecs.LIBBROTLI}
INT64 = (2, 0, 4, 0, 0, 0, 0)  # the form of a leaf


@pytest.fixture(params=["gzip", "brotli"])
def codec(request: pytest.FixtureRequest) -> str:
    if FOUND[request.param] is None:
        pytest.skip("this system has no library")
    name: str = request.param
    return name


@pytest.fixture(params=[True, False], ids=["library", "python"])
def library(request: pytest.FixtureRequest, codec: str) -> Iterator[bool]:
    USE[codec](FOUND[codec] if request.param else None)
    yield request.param
    USE[codec](FOUND[codec])


@pytest.fixture
def asked(codec: str, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The size of every page that was not left to the library."""
    made: list[int] = []
    whole = codecs._BY_NAME[codec]

    def counted(data: memoryview, size: int) -> Any:
        made.append(size)
        return whole(data, size)

    monkeypatch.setitem(codecs._BY_NAME, codec, counted)
    return made


def make(codec: str, **how: Any) -> tuple[pa.Table, bytes]:
    rng = np.random.default_rng(11)
    nulls = rng.random(ROWS) < 0.2
    table = pa.table(
        {
            "key": np.arange(ROWS),
            "value": pa.array(rng.random(ROWS), mask=nulls),
            "text": [f"text {i % 700}" for i in range(ROWS)],
            "list": pa.array([list(range(i % 3)) for i in range(ROWS)]),
            "null": pa.nulls(ROWS, pa.int32()),
        }
    )
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression=codec, use_dictionary=["text"], **how)
    return table, bytes(sink.getvalue().to_pybytes())


def compress(codec: str, plain: bytes) -> bytes:
    packed: bytes = pa.Codec(codec).compress(plain, asbytes=True)
    return packed


@pytest.mark.covering(2)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("page_rows", [900, 20_000, ROWS])
@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("threads", [1, 3])
def test_answers_are_the_same(
    codec: str, library: bool, asked: list[int], version: str, page_rows: int, index: bool,
    threads: int,
) -> None:  # fmt: skip
    table, data = make(
        codec, data_page_version=version, max_rows_per_page=page_rows, write_page_index=index,
        data_page_size=1 << 24, row_group_size=ROWS // 2,
    )  # fmt: skip
    for row in (0, 899, 900, 19_999, 25_000, ROWS - 1):
        found = ps.read_table(data, filter=ps.col("key") == row, threads=threads)
        assert found.equals(table.slice(row, 1))
    some = ps.col("text") == "text 13"
    wanted = table.filter(pa.compute.equal(table["text"], "text 13"))
    assert ps.read_table(data, filter=some, threads=threads).equals(wanted)
    assert ps.read_table(data, threads=threads).equals(table)
    assert bool(asked) == (not library)


def test_the_core_decodes_by_itself_where_there_is_a_library(codec: str, library: bool) -> None:
    made = CodecSettings(codec, codecs._BY_NAME[codec], None, 1, 1 << 30, 1 << 30, False, False)
    assert made.own == library


def read(codec: str, packed: bytes, size: int, rows: tuple[int, int] = (7, 9)) -> list[int]:
    """Values of a page of 64-bit integers."""
    decoder = LeafDecoder(INT64, 0, 0, codec=codec, decompress=codecs._BY_NAME[codec])
    page = _page(packed, size, 3_000)
    decoder.begin(np.array(rows, np.int64).tobytes())
    decoder.head(page)
    assert decoder.take(0) == TAKE_DONE
    return [int(one) for one in np.frombuffer(decoder.finish()[4], np.int64)]


def _page(packed: bytes, size: int, n: int) -> bytes:
    """A data page of version 1."""

    def number(value: int) -> bytes:
        value, out = value << 1, b""
        while value > 127:
            out, value = out + bytes([value & 127 | 128]), value >> 7
        return b"\x15" + out + bytes([value])

    head = number(0) + number(size) + number(len(packed)) + b"\x2c"
    return head + number(n) + number(0) + number(3) + number(3) + b"\0\0" + packed


def streams(codec: str, plain: bytes) -> dict[str, bytes]:
    """Bodies that hold a page in other ways than writers do."""
    third = len(plain) // 3
    parts = (plain[:third], plain[third : 2 * third], b"", plain[2 * third :])
    if codec == "brotli":  # pyarrow takes them one after the other
        return {"streams": b"".join(compress(codec, part) for part in parts)}
    stored = zlib.compressobj(0, wbits=31)
    raw = zlib.compressobj(wbits=-15)
    named = b"\x1f\x8b\x08\x08" + bytes(6) + b"name\0" + raw.compress(plain) + raw.flush()
    named += zlib.crc32(plain).to_bytes(4, "little") + len(plain).to_bytes(4, "little")
    return {
        "members": b"".join(gzip.compress(part) for part in parts),
        "zlib": zlib.compress(plain),
        "both": gzip.compress(parts[0]) + zlib.compress(plain[third:]),
        "stored": stored.compress(plain) + stored.flush(),
        "with a name": named,
        "a small window": zlib.compressobj(6, wbits=9).compress(b"")
        + gzip.compress(plain),  # no member at all
    }


def test_bodies_of_other_kinds(codec: str, library: bool) -> None:
    plain = np.arange(3_000, dtype=np.int64).tobytes()
    for name, packed in streams(codec, plain).items():
        for rows in ((7, 9), (2_900, 2_902), (0, 3_000)):
            found = outcome(lambda p=packed, r=rows: read(codec, p, len(plain), r))
            USE[codec](None)
            wanted = outcome(lambda p=packed, r=rows: read(codec, p, len(plain), r))
            USE[codec](FOUND[codec] if library else None)
            assert found == wanted, name


def outcome(call: Callable[[], Any]) -> str:
    try:
        return str(call())
    except (CoreError, ps.PageseekError) as error:
        return f"{type(error).__name__}: {error}"


def test_damage_is_told_alike(codec: str) -> None:
    """Reading all of a page needs all of its bytes, so every outcome is the same."""
    plain = np.arange(3_000, dtype=np.int64).tobytes()
    packed = compress(codec, plain)
    rng, failed = random.Random(4), 0
    bad = [packed[:cut] for cut in (*range(40), *rng.sample(range(len(packed)), 60))]
    bad += [packed + b"\0", packed + packed[:9], packed + b"junk", packed + packed]
    for _ in range(300):
        at = rng.randrange(len(packed))
        bad.append(packed[:at] + bytes([packed[at] ^ 1 << rng.randrange(8)]) + packed[at + 1 :])
    for body in bad:
        found = []
        for functions in (FOUND[codec], None):
            USE[codec](functions)
            found.append(
                [
                    outcome(lambda b=body, r=rows: read(codec, b, len(plain), r))
                    for rows in ((0, 3_000), (7, 9))
                ]
            )
        USE[codec](FOUND[codec])
        (all_rows, few), (all_wanted, few_wanted) = found
        assert all_rows == all_wanted
        assert few == few_wanted or "Error" not in few  # what is broken lies behind these rows
        failed += "Error" in all_rows
    assert failed > 100


def rows_or_error(data: bytes) -> pa.Table | str:
    try:
        return ps.read_table(data, threads=2)
    except ps.PageseekError as error:
        return f"{type(error).__name__}: {error}"


def same_outcome(one: pa.Table | str, other: pa.Table | str) -> bool:
    """Equal errors, or equal rows: damage makes NaN, which equals itself here."""
    if isinstance(one, str) or isinstance(other, str):
        return isinstance(one, str) and isinstance(other, str) and one == other
    flat = same_rows(one.drop_columns("list"), other.drop_columns("list"))
    return flat and one["list"].equals(other["list"])


def test_damage_in_a_file_is_told_alike(codec: str) -> None:
    _, data = make(codec, max_rows_per_page=5_000, write_page_index=True)
    offsets = open_metadata(data).offset_index(0, "value")
    assert offsets is not None
    rng, failed = random.Random(5), 0
    for _ in range(60):
        at = int(offsets.offset[3]) + rng.randrange(30, 3_000)
        bad = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
        found = []
        for functions in (FOUND[codec], None):
            USE[codec](functions)
            found.append(rows_or_error(bad))
        USE[codec](FOUND[codec])
        assert same_outcome(*found)
        failed += isinstance(found[0], str) and found[0].startswith("CorruptFileError")
    assert failed > 30 if codec == "gzip" else failed > 5  # a Brotli stream has no checksum


def test_a_page_that_claims_another_size(codec: str, library: bool) -> None:
    plain = bytes(24_000)
    packed = compress(codec, plain)
    for size in ((1 << 40) - 1, 1 << 31, len(plain) + 8, len(plain) - 8, 0):
        with pytest.raises(CoreError):
            read(codec, packed, size, (0, 3_000))
    assert read(codec, packed, len(plain)) == [0, 0]


def test_pages_without_a_byte(codec: str) -> None:
    empty = compress(codec, b"")
    for body in (empty, empty + empty, b"", b"junk"):
        found = []
        for functions in (FOUND[codec], None):
            USE[codec](functions)
            decoder = LeafDecoder(INT64, 0, 0, codec=codec, decompress=codecs._BY_NAME[codec])
            decoder.begin(b"")
            decoder.head(_page(body, 0, 0))
            found.append(outcome(lambda d=decoder: d.take(0)))
        USE[codec](FOUND[codec])
        assert found[0] == found[1]


def test_threads_have_contexts_of_their_own(codec: str, library: bool) -> None:
    table, data = make(codec, max_rows_per_page=2_000, write_page_index=True)
    wrong: list[int] = []

    def look_up(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(25):
            row = rng.randrange(ROWS)
            if not ps.read_table(data, filter=ps.col("key") == row).equals(table.slice(row, 1)):
                wrong.append(row)

    in_threads(6, look_up)
    assert not wrong


def test_files_of_other_writers(codec: str, conformance: Path) -> None:
    files = 0
    for path in sorted((conformance / "corpus").rglob("*.parquet")):
        try:
            file = open_metadata(path)
            used = {file.chunk(0, leaf).codec for leaf in file.leaves if len(file.group_rows)}
        except (CoreError, ps.PageseekError):
            continue
        if codecs.CODECS.index(codec) in used:
            found = []
            for functions in (FOUND[codec], None):
                USE[codec](functions)
                found.append(
                    [
                        outcome(lambda p=path, n=n: ps.read_table(p, threads=n).combine_chunks())
                        for n in (1, 2)
                    ]
                )
            USE[codec](FOUND[codec])
            assert found[0] == found[1], path.name
            files += 1
    assert files > 5 if codec == "gzip" else files > 1


def test_a_library_is_whole_or_none(codec: str) -> None:
    for functions in ((1,), (0, 1, 1, 1)[: len(FOUND[codec] or ())]):
        with pytest.raises(CoreError, match="functions"):
            USE[codec](functions)
