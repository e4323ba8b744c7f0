"""UTF-8 checks: errors have the right place for any number of bytes checked at once; size hints are only hints."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek._core import memory as blocks
from pageseek._core import rows
from pageseek.base import memory
from pageseek.base.report import Report
from pageseek.format.columns import output
from pageseek.format.types import Options
from pageseek.scanning.leaves import leaf_reader as decode
from pageseek.scanning.requests.steps import ScanContext
from support.opened import open_metadata

ENCODINGS = ("PLAIN", "DICTIONARY", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY")
LANGUAGES = {"ascii": "plain old text", "german": "Übergrößenträger", "greek": "ελληνικά", "japanese": "日本語の文字列", "signs": "🙂🙃"}  # fmt: skip
N = 20_000


def texts(words: str, n: int = N) -> list[str | None]:
    """Strings of many lengths, one in eleven null."""
    return [None if i % 11 == 3 else f"{words[: i % 9]}{i % 700}" * (i % 4) for i in range(n)]


def written(values: pa.Array, encoding: str, **how: Any) -> bytes:
    sink = io.BytesIO()
    if encoding != "DICTIONARY":
        how["column_encoding"] = {"a": encoding}
    pq.write_table(
        pa.table({"a": values}), sink, use_dictionary=encoding == "DICTIONARY",
        write_page_index=True, max_rows_per_page=3000, **how,
    )  # fmt: skip
    return sink.getvalue()


def with_fault(values: list[bytes]) -> pa.Array:
    """Bytes as text, which is what a writer does that does not look at them."""
    made = pa.array(values, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(made), made.buffers())


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("form", ["string", "large", "view"])
def test_text_of_every_width_reads_as_it_was_written(
    encoding: str, language: str, form: str
) -> None:
    values = texts(LANGUAGES[language])
    data = written(pa.array(values), encoding)
    assert ps.read_table(data, string_type=form)["a"].to_pylist() == values
    picked = [*range(5, N, 7), N - 1]
    found = ps.scan(data, string_type=form).take(picked).to_table()["a"].to_pylist()
    assert found == [values[i] for i in picked]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("place", [0, 1, 2999, 3000, 7777, N - 1])
@pytest.mark.parametrize("fault", [b"\xff", b"a\xc3", b"\xa9", b"\xed\xa0\x80"])
def test_a_fault_is_named_by_its_row(encoding: str, place: int, fault: bytes) -> None:
    values = [f"naïve text {i}".encode() for i in range(N)]
    values[place] = fault
    data = written(with_fault(values), encoding)
    for form in ("string", "large"):
        with pytest.raises(ps.CorruptFileError, match=f"value {place} of the selected rows is not UTF-8"):  # fmt: skip
            ps.read_table(data, string_type=form)
    left = [i for i in range(max(place - 20, 0), min(place + 20, N)) if i != place]
    found = ps.scan(data).take(left).to_table()["a"].to_pylist()
    assert found == [values[i].decode() for i in left]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_values_that_are_text_only_together_are_none(encoding: str) -> None:
    values = [b"abcdefgh" * 5, b"na\xc3", b"\xafve", b"ijklmnop" * 5]
    with pytest.raises(ps.CorruptFileError, match="value 2 of the selected rows is not UTF-8"):
        ps.read_table(written(with_fault(values), encoding))


SAME = """
import sys
import pageseek as ps
from pageseek._core.leaf import utf8_scan
print(utf8_scan)
for path in sys.argv[1:]:
    try:
        print(hash(tuple(ps.read_table(path)["a"].to_pylist())))
    except ps.PageseekError as error:
        print(error)
"""


def test_plain_c_finds_what_the_processor_s_own_instructions_find(tmp_path: Any) -> None:
    paths = []
    for i, encoding in enumerate(ENCODINGS):
        values = [f"naïve text {i} 日本語".encode() for i in range(N)]
        paths += [tmp_path / f"good-{i}.parquet", tmp_path / f"bad-{i}.parquet"]
        paths[-2].write_bytes(written(with_fault(values), encoding))
        values[12_345] = b"\xe6\x97"
        paths[-1].write_bytes(written(with_fault(values), encoding))
    said = {}
    for plain in ("0", "1"):
        done = subprocess.run(
            [sys.executable, "-c", SAME, *map(str, paths)],
            env=os.environ | {"PAGESEEK_PLAIN_C": plain, "PYTHONHASHSEED": "1"},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        said[plain] = done.stdout.splitlines()
    assert said["1"][0] == "plain"
    assert said["0"][0] in ("plain", "ssse3", "avx2")
    assert said["0"][1:] == said["1"][1:]
    assert sum("value 12345 of the selected rows" in line for line in said["1"]) == len(ENCODINGS)


def reader_of(data: bytes) -> decode.LeafReader:
    file = open_metadata(data)
    columns, _ = output(file, None, Options())
    reader = decode.LeafReader(file, 0, columns[0].parts[0], ScanContext(Report()))
    ranges = rows.RowRanges([(0, file.num_rows)])
    (wanted,) = reader.want(ranges)
    reader.give([memoryview(data)[wanted[0] : sum(wanted)]], wanted[1])
    return reader


def hint_of(reader: decode.LeafReader) -> int:
    return reader.of.hint(reader._ranges, reader._buffers)


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("encoding", ENCODINGS[2:] + ENCODINGS[:1])
def test_room_is_made_for_all_text_at_once(encoding: str, nulls: bool) -> None:
    values = pa.array([f"{i:020}" if not nulls or i % 10 else None for i in range(N)])
    size = 20 * (N - values.null_count)
    data = written(values, encoding, compression="none")
    least = size if encoding != "DELTA_BYTE_ARRAY" else 0  # what is shared is not stored
    assert least <= hint_of(reader_of(data)) <= size * 1.25 + 20_000


def test_a_hint_that_lies_is_no_large_allocation() -> None:
    reader = reader_of(written(pa.array(["text"] * N), "PLAIN", compression="zstd"))
    fetched = sum(data.nbytes for data in reader._buffers)
    for size in (1 << 40, (1 << 63) - 1):
        for nulls in (0, -(1 << 63), (1 << 63) - 1):
            reader.of.chunk = reader.of.chunk._replace(
                total_uncompressed_size=size, statistics_null_count=nulls
            )
            assert hint_of(reader) == 16 * fetched
    reader.of.chunk = reader.of.chunk._replace(total_uncompressed_size=-5)
    assert hint_of(reader) == 0
    with pytest.raises(StopIteration) as done:  # nothing is left to be fetched
        next(reader.decode())
    (found,) = done.value.value
    assert found.to_pylist() == ["text"] * N


def test_what_a_row_group_frees_waits_for_the_next_until_the_scan_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "_until", 0.0)  # threads of a scan before may have kept some
    blocks.keep(0, 0)
    blocks.rest(memory.REST)

    def held() -> int:
        kept, reclaimable = blocks.kept()
        return kept - reclaimable

    assert held() <= memory.REST
    with memory.kept():
        with memory.kept():
            blocks.Block(32 << 20)  # and freed
        assert held() >= 32 << 20
    assert held() <= memory.REST
