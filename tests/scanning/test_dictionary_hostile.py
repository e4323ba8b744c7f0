"""Damaged dictionaries and string pages that are read in part: bytes that the rows do not need are not examined, damage in bytes that
they need is an error of pageseek, and memory follows the bytes that exist.
"""

from __future__ import annotations

import functools
import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

import pageseek as ps
from pageseek._core.decode import TAKE_DICTIONARY, LeafDecoder
from pageseek._core.memory import trim
from pageseek._core.page_tasks import read_pages
from pageseek.base.errors import CoreError
from pageseek.format import codecs
from support.concurrency import in_threads
from support.opened import open_metadata
from support.page_truth import Reader
from support.tiers import rounds

pytestmark = pytest.mark.usefixtures("scans")

ROWS = 50_000
BLOCK = 1 << 17  # greatest size of a block of zstd


needs_libzstd = pytest.mark.skipif(codecs.LIBZSTD is None, reason="this system has no libzstd")


# ---- files of which the end of a dictionary, or of a page, is damaged ---------------------------


@functools.cache
def written(codec: str, dictionary: bool, checksum: bool = False) -> tuple[pa.Table, bytes]:
    """Chunks of one page: every row is an entry of its own, so that row and code are the same."""
    rng = np.random.default_rng(1)
    numbers = rng.integers(0, 1 << 44, ROWS)
    table = pa.table(
        {
            "key": np.arange(ROWS),
            "number": numbers,
            "text": [f"{i} {n % 1000}" for i, n in enumerate(numbers)],
            "price": pa.array(numbers).cast(pa.decimal128(38, 0)),
        }
    )
    sink = pa.BufferOutputStream()
    pq.write_table(
        table, sink, compression=codec, use_dictionary=["number", "text", "price"] if dictionary else False,
        dictionary_pagesize_limit=1 << 26, data_page_size=1 << 26, max_rows_per_page=ROWS, write_page_index=True,
        write_page_checksum=checksum,
    )  # fmt: skip
    return table, bytes(sink.getvalue().to_pybytes())


def first_page(data: bytes, column: str) -> tuple[int, int]:
    """Where the body of the first page of a column lies, be it a dictionary or not."""
    file = open_metadata(data)
    leaf = next(leaf for leaf in file.leaves if leaf.name == column)
    start = file.placed_chunk(0, leaf)[1]
    header = Reader(data)
    header.at = start
    size = header.struct()[3]
    return header.at, header.at + size


def damaged(data: bytes, column: str, codec: str) -> bytes:
    """The last block of zstd claims too many literals; of the others the last quarter is no code."""
    start, stop = first_page(data, column)
    if codec != "zstd":
        return data[: (at := stop - (stop - start) // 4)] + b"\xff" * (stop - at) + data[stop:]
    at, last = start + 4, False
    kind = data[at]
    at += 1 + (not kind >> 5 & 1) + ((kind >> 5 & 1), 2, 4, 8)[kind >> 6]
    while not last:
        head = int.from_bytes(data[at : at + 3], "little")
        last, size = bool(head & 1), 1 if head >> 1 & 3 == 1 else head >> 3
        block, at = at, at + 3 + size
    assert (at <= stop) and data[block] >> 1 & 3 == 2  # a compressed block
    return data[: block + 3] + b"\xff" * (at - block - 3) + data[at:]


LAZY = [  # codec, column, whether it has a dictionary; decimals and what is not compressed are read whole
    ("zstd", "number", True), ("zstd", "text", True), ("zstd", "price", True), ("zstd", "number", False),
    ("zstd", "text", False), ("snappy", "number", True), ("snappy", "text", True), ("snappy", "price", True),
    ("snappy", "number", False), ("snappy", "text", False), ("lz4", "text", True), ("lz4", "text", False),
    ("none", "text", True),
]  # fmt: skip


@needs_libzstd
@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize(("codec", "column", "dictionary"), LAZY)
def test_what_no_row_needs_is_not_looked_at(
    codec: str, column: str, dictionary: bool, threads: int
) -> None:
    table, data = written(codec, dictionary)
    bad = damaged(data, column, codec)
    anew = dictionary and codec in ("snappy", "lz4")  # for the second of several rows
    for rows in ([0], [7], [900], *([] if anew else [[3, 90, 2_000]])):
        found = ps.read_table(bad, filter=ps.col("key").isin(rows), threads=threads)
        assert found.equals(table.take(rows))
    where = f"column '{column}', row group 0, " + ("dictionary page" if dictionary else "page 0")
    with pytest.raises(ps.CorruptFileError, match=where):
        ps.read_table(bad, filter=ps.col("key") == ROWS - 1, threads=threads)
    with pytest.raises(ps.CorruptFileError, match=where):
        ps.read_table(bad, filter=ps.col("key").isin([0, ROWS - 1]), threads=threads)
    with pytest.raises(ps.CorruptFileError, match=where):
        ps.read_table(bad, threads=threads)


def test_without_the_library_damage_is_told_or_not_met(library: bool) -> None:
    for dictionary in (True, False):
        table, data = written("zstd", dictionary)
        for column in ("number", "text"):
            bad = damaged(data, column, "zstd")
            for row in (0, 500, ROWS - 1):
                try:
                    found = ps.read_table(bad, filter=ps.col("key") == row)
                except ps.CorruptFileError:
                    assert row > 500 or not library
                else:
                    assert found.equals(table.slice(row, 1))
                    assert row != ROWS - 1


@pytest.mark.parametrize("codec", ["zstd", "snappy", "none"])
def test_a_checksum_is_of_the_whole_page(codec: str) -> None:
    for dictionary, column in ((True, "number"), (True, "text"), (False, "text")):
        table, data = written(codec, dictionary, checksum=True)
        assert ps.read_table(data, filter=ps.col("key") == 3).equals(table.slice(3, 1))
        bad = damaged(data, column, codec)
        with pytest.raises(ps.CorruptFileError, match=rf"column '{column}'.*checksum"):
            ps.read_table(bad, filter=ps.col("key") == 3)
        others = [name for name in table.column_names if name != column]
        assert ps.read_table(bad, others, ps.col("key") == 3).equals(
            table.select(others).slice(3, 1)
        )


@pytest.mark.parametrize("codec", ["zstd", "snappy", "lz4", "gzip", "none"])
def test_any_damage_gives_an_answer_or_an_error_of_its_own(codec: str) -> None:
    dice = random.Random(codec)
    for dictionary in (True, False):
        table, data = written(codec, dictionary)
        for column in ("number", "text", "price"):
            start, stop = first_page(data, column)
            for _ in range(12):
                bad = bytearray(data)
                for _ in range(dice.choice((1, 1, 4))):
                    bad[
                        dice.choice((dice.randrange(start - 8, stop), start + dice.randrange(20)))
                    ] ^= 1 << dice.randrange(8)
                row = dice.choice((0, 100, ROWS // 2, ROWS - 1))
                try:
                    found = ps.read_table(bytes(bad), filter=ps.col("key") == row)
                except ps.PageseekError:
                    continue
                assert found["key"].equals(table["key"].slice(row, 1))
                found.validate(full=True)


# ---- pages made by hand --------------------------------------------------------------------------

INT64 = (2, 0, 4, 0, 0, 0, 0)
TEXT = (6, 0, 14, 0, 0, 1, 0)
NARROW = (1, 0, 1, 0, 0, 0, 0)
DECIMAL = (7, 5, 12, 0, 0, 0, 38)
FORMS = {"int64": INT64, "text": TEXT, "narrow": NARROW, "decimal": DECIMAL}
ENTRIES = 60_000


def number(value: int) -> bytes:
    """A field of a Thrift struct, next to the one before: its number, and an i32 or i64."""
    value, out = (value << 1) ^ (value >> 63), b"\x15"
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def dictionary_page(packed: bytes, size: int, n: int) -> bytes:
    return (
        number(2)
        + number(size)
        + number(len(packed))
        + b"\x4c"
        + number(n)
        + number(0)
        + b"\0\0"
        + packed
    )


def codes_page(rows: list[int], codec: str) -> bytes:
    """A page of version 1 of codes of 16 bits, row by row."""
    padded = [*rows, *[0] * (-len(rows) % 8)]
    body = bytes([16, len(padded) // 8 << 1 | 1]) + struct.pack(f"<{len(padded)}H", *padded)
    packed = zstandard.compress(body) if codec == "zstd" else body
    head = number(0) + number(len(body)) + number(len(packed)) + b"\x2c"
    return head + number(len(rows)) + number(8) + number(3) + number(3) + b"\0\0" + packed


@functools.cache
def entries(form: str) -> bytes:
    if form == "text":
        texts = [str(i).encode() for i in range(ENTRIES)]
        return b"".join(struct.pack("<I", len(one)) + one for one in texts)
    if form == "decimal":
        return b"".join(i.to_bytes(5, "big") for i in range(ENTRIES))
    return np.arange(ENTRIES).astype(np.int64 if form == "int64" else np.int32).tobytes()


def value(form: str, made: tuple[Any, ...]) -> Any:
    out = bytes(made[4])
    if form == "narrow":
        return np.frombuffer(out, np.int8)[0]
    return int(out) if form == "text" else int.from_bytes(out[:16], "little", signed=True)


def outcome(form: str, dictionary: bytes, row: int, codec: str = "zstd") -> tuple[Any, Any]:
    """The value of the one row by `read_pages`, or None; by the decoder itself, or its CoreError."""
    page, ranges = codes_page([row, 0], codec), np.array([0, 1], np.int64).tobytes()
    arguments = (page, 0, 2, ranges, 0, dictionary)

    def decoder() -> LeafDecoder:
        decompress = codecs._zstd if codec == "zstd" else None
        return LeafDecoder(FORMS[form], 0, 0, codec=codec, decompress=decompress, max_page=1 << 30)

    (ahead,) = read_pages([(decoder(), [arguments[:3]], *arguments[3:], False)])
    assert ahead is None or (isinstance(ahead, tuple) and ahead[0] == 1)
    try:
        alone: Any = decoder().read_page(*arguments)
        assert isinstance(alone, tuple)
        alone = value(form, alone)
    except CoreError as error:
        alone = error
    return None if ahead is None else value(form, ahead), alone


def frames(plain: bytes) -> dict[str, tuple[bytes, bool]]:
    """Name: the compressed bytes, and whether they are sound."""
    usual = zstandard.ZstdCompressor().compress(plain)
    checked = zstandard.ZstdCompressor(write_checksum=True).compress(plain)
    stream = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    half, size = len(plain) // 2, struct.pack("<I", len(plain))
    at = usual.index(size)
    assert at in (5, 6)

    def says(n: int) -> bytes:
        return usual[:at] + struct.pack("<I", n) + usual[at + 4 :]

    return {
        "usual": (usual, True),
        "checksum": (checked, True),
        "two": (zstandard.compress(plain[:half]) + zstandard.compress(plain[half:]), True),
        "size untold": (stream.compress(plain) + stream.flush(), True),
        "skippable": (b"\x50\x2a\x4d\x18\4\0\0\0abcd" + usual, True),
        "wrong checksum": (checked[:-1] + bytes([checked[-1] ^ 1]), False),
        "says less": (says(len(plain) - 1), False),
        "says more": (says(len(plain) + 1), False),
        "says much more": (says((1 << 30) - 1), False),
        "cut": (usual[:-5], False),
        "cut at half": (usual[: len(usual) // 2], False),
        "without checksum": (checked[:-4], False),
        "something behind": (usual + b"more", False),
        "empty": (b"", False),
        "header": (usual[: at + 4], False),
    }


@pytest.mark.parametrize("form", FORMS)
def test_frames_of_all_kinds(library: bool, form: str) -> None:
    plain = entries(form)
    sizes = (len(plain), len(plain) - 1, len(plain) + 1, (1 << 30) - 1)
    for name, (packed, sound) in frames(plain).items():
        for size in sizes:
            dictionary = dictionary_page(packed, size, ENTRIES - 2)
            for row in (0, 9, ENTRIES - 3):
                right = row if form != "narrow" else int(np.int64(row).astype(np.int8))
                ahead, alone = outcome(form, dictionary, row)
                assert ahead in (None, right), (name, size, row)
                if sound and size == len(plain):
                    assert alone == right, (name, row, alone)
                else:  # what is unpacked whole has to be sound
                    assert isinstance(alone, CoreError), (name, size, row)
                if row == ENTRIES - 3 and name in ("cut at half", "header", "empty"):
                    assert ahead is None, (name, size)
                if library and name in ("usual", "checksum") and size == len(plain):
                    assert ahead == right, (name, row)


@pytest.mark.parametrize("codec", ["zstd", "uncompressed", "snappy", "lz4_raw", "lz4"])
@pytest.mark.parametrize("form", FORMS)
def test_claims_of_so_many_entries(form: str, codec: str) -> None:
    """Codes of another page come uncompressed: all are of one codec, so that only zstd and none get to the entries."""
    plain = entries(form)
    packed = zstandard.compress(plain) if codec == "zstd" else plain
    for n in (
        -(1 << 31),
        -1,
        0,
        1,
        2,
        9,
        ENTRIES,
        ENTRIES + 1,
        2 * ENTRIES,
        1 << 28,
        (1 << 31) - 1,
    ):
        for size in (len(plain), 0, 1, len(plain) // 2, (1 << 31) - 1):
            for row in (0, 1, ENTRIES - 1):
                ahead, alone = outcome(form, dictionary_page(packed, size, n), row, codec)
                right = row if form != "narrow" else int(np.int64(row).astype(np.int8))
                assert ahead in (None, right), (n, size, row)
                assert isinstance(alone, CoreError) or alone == right, (n, size, row)
                if row >= n or size != len(plain):
                    assert ahead is None
                    assert isinstance(alone, CoreError)
                if codec in ("zstd", "uncompressed") and n == ENTRIES and size == len(plain):
                    assert ahead == alone == right


def test_lengths_of_strings_that_lie() -> None:
    plain = bytearray(entries("text"))
    starts = np.cumsum([0, *(4 + len(str(i)) for i in range(ENTRIES))])
    for length in (0xFFFFFFFF, 0x7FFFFFFF, len(plain), 1 << 20):
        bad = plain.copy()
        struct.pack_into("<I", bad, int(starts[20_000]), length)
        page = dictionary_page(zstandard.compress(bytes(bad)), len(bad), ENTRIES)
        none = dictionary_page(bytes(bad), len(bad), ENTRIES)
        for codec, dictionary in (("zstd", page), ("uncompressed", none)):
            early, late = (
                outcome("text", dictionary, 5, codec),
                outcome("text", dictionary, 30_000, codec),
            )
            assert early[0] == 5
            assert late[0] is None
            assert isinstance(late[1], CoreError)
            assert "inside value" in str(late[1])


# ---- memory ---------------------------------------------------------------------------------------


def giant(size: int) -> bytes:
    """A frame of zeros of zstd: blocks of one repeated byte, four bytes for each 128 KiB, a window of 8 MiB."""
    assert size % BLOCK == 0
    block, n = BLOCK << 3 | 2, size // BLOCK
    blocks = (
        (block.to_bytes(3, "little") + b"\0") * (n - 1) + (block | 1).to_bytes(3, "little") + b"\0"
    )
    return b"\x28\xb5\x2f\xfd" + bytes([0x80, 13 << 3]) + struct.pack("<I", size) + blocks


def peak_of(act: Any) -> int:
    """Bytes by which memory grew at most while `act` ran."""
    trim(0)
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pytest.skip("the peak of this process cannot be set back")

    def told(name: str) -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name))

    before = told("VmRSS")
    act()
    return told("VmHWM") - before


@needs_libzstd
@pytest.mark.parametrize("form", ["int64", "text", "narrow", "decimal"])
def test_of_a_giant_only_what_is_needed_becomes_resident(form: str) -> None:
    size = 1 << 28  # beyond the window that a stream may have, were it all one segment
    n = size // {"int64": 8, "text": 4, "narrow": 4, "decimal": 5}[form]
    page, ranges = codes_page([9_000, 0], "zstd"), np.array([0, 1], np.int64).tobytes()
    dictionary = dictionary_page(giant(size), size, n)
    assert len(dictionary) < 10_000
    found: list[Any] = []

    def act() -> None:
        decoder = LeafDecoder(FORMS[form], 0, 0, codec="zstd", decompress=codecs._zstd)
        found.extend(read_pages([(decoder, [(page, 0, 2)], ranges, 0, dictionary, False)]))

    assert peak_of(act) < 16 << 20
    assert isinstance(found[0], tuple)
    assert not any(bytes(found[0][4]))


@needs_libzstd
def test_of_a_giant_page_of_strings_only_what_is_needed_becomes_resident() -> None:
    size = 1 << 28
    packed, n, ranges = giant(size), size // 4, np.array([9_000, 9_002], np.int64).tobytes()
    head = number(0) + number(size) + number(len(packed)) + b"\x2c"
    page = head + number(n) + number(0) + number(3) + number(3) + b"\0\0" + packed

    def ahead() -> None:
        decoder = LeafDecoder(TEXT, 0, 0, codec="zstd", decompress=codecs._zstd, step=BLOCK)
        (found,) = read_pages([(decoder, [(page, 0, n)], ranges, 0, None, False)])
        assert isinstance(found, tuple)
        assert found[0] == 2

    def alone() -> None:
        decoder = LeafDecoder(TEXT, 0, 0, codec="zstd", decompress=codecs._zstd, step=BLOCK)
        found = decoder.read_page(page, 0, n, ranges)
        assert isinstance(found, tuple)
        assert found[0] == 2

    assert peak_of(ahead) < 16 << 20
    assert peak_of(alone) < 16 << 20


def test_a_page_of_codes_asks_for_its_dictionary_first() -> None:
    page, ranges = codes_page([1, 0], "zstd"), np.array([0, 1], np.int64).tobytes()
    decoder = LeafDecoder(INT64, 0, 0, codec="zstd", decompress=codecs._zstd)
    for _ in range(2):
        made = read_pages([(decoder, [(page, 0, 2)], ranges, 0, None, False)])
        assert made == [TAKE_DICTIONARY] or not codecs.LIBZSTD
    whole = dictionary_page(zstandard.compress(entries("int64")), len(entries("int64")), ENTRIES)
    (found,) = read_pages([(decoder, [(page, 0, 2)], ranges, 0, whole, False)])
    assert found is None or (isinstance(found, tuple) and value("int64", found) == 1)


# ---- several at a time ---------------------------------------------------------------------------


@pytest.mark.parametrize("codec", ["zstd", "snappy"])
def test_many_threads_on_one_file(library: bool, codec: str, tmp_path: Path) -> None:
    table, data = written(codec, True)
    bad = damaged(data, "text", codec)
    path, other = tmp_path / "right.parquet", tmp_path / "bad.parquet"
    path.write_bytes(data)
    other.write_bytes(bad)
    right, wrong = ps.scan(str(path)), ps.scan(str(other))
    faults: list[str] = []

    def read(seed: int) -> None:
        dice = random.Random(seed)
        for _ in range(rounds(30, 2)):
            row = dice.choice((dice.randrange(ROWS), dice.randrange(3_000)))
            condition = ps.col("key") == row
            try:
                if not right.filter(condition).to_table().equals(table.slice(row, 1)):
                    faults.append(f"row {row}")
                if not wrong.filter(condition).to_table().equals(table.slice(row, 1)):
                    faults.append(f"damaged row {row}")
            except ps.CorruptFileError as error:
                if "'text'" not in str(error):
                    faults.append(str(error))
            except Exception as error:
                faults.append(repr(error))

    in_threads(8, read)
    assert not faults
