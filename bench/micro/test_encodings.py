"""Each encoding and type: rows of 50 pages of 20,000 values, beside pyarrow's full decode and filter.

The chunk is uncompressed and in memory, and one thread decodes it; the two take turns. A busy machine is best asked for
the time of the processor: `pytest bench/micro/test_encodings.py --benchmark-timer=time.thread_time`. `--table FILE`
writes the last table as Markdown.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pageseek.bench.pruning.text import texts

from pageseek._core import rows

PAGE, PAGES = 20_000, 50
N = PAGE * PAGES
SEED = 11
Dice = np.random.Generator


def _integers(bits: int, kind: pa.DataType) -> Callable[[Dice], pa.Array]:
    return lambda dice: pa.array(dice.integers(0, 1 << bits, N), kind)


def _rising(dice: Dice) -> pa.Array:
    return pa.array(np.cumsum(dice.integers(0, 100, N)))


def _reals(kind: type) -> Callable[[Dice], pa.Array]:
    return lambda dice: pa.array(dice.random(N).astype(kind))


def _texts(_: Dice) -> pa.Array:
    return pa.array([f"text {i * 7919 % N} of the row" for i in range(N)])


def _paths(_: Dice) -> pa.Array:
    return pa.array([f"/data/part/{i // 1000:05d}/row-{i:08d}" for i in range(N)])


def _language(name: str, different: int = 20_000) -> Callable[[Dice], pa.Array]:
    return lambda _: texts(name, 40, N, different)


def _fixed(width: int) -> Callable[[Dice], pa.Array]:
    def make(dice: Dice) -> pa.Array:
        data = pa.py_buffer(dice.bytes(N * width))
        return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), N, [None, data])

    return make


def _few_fixed(dice: Dice) -> pa.Array:
    return _fixed(16)(dice).slice(0, 500).take(pa.array(dice.integers(0, 500, N)))


def _decimals(dice: Dice) -> pa.Array:
    return pa.array(dice.integers(0, 10**9, N)).cast(pa.decimal128(20, 0))


def _cities(dice: Dice) -> pa.Array:
    return pa.array([f"city {i}" for i in range(500)]).take(pa.array(dice.integers(0, 500, N)))


def _flags(dice: Dice) -> pa.Array:
    return pa.array(dice.random(N) < 0.3)


def _lists(make: Callable[[Dice], pa.Array], nulls: bool = False) -> Callable[[Dice], pa.Array]:
    """N lists of 0 to 2 elements."""

    def made(dice: Dice) -> pa.Array:
        ends = np.concatenate([[0], np.cumsum(dice.integers(0, 3, N))])
        items = make(dice).take(pa.array(np.arange(ends[-1]) % N))
        mask = pa.array(dice.random(N) < 0.1) if nulls else None
        return pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), items, mask=mask)

    return made


def _struct(make: Callable[[Dice], pa.Array]) -> Callable[[Dice], pa.Array]:
    def made(dice: Dice) -> pa.Array:
        mask = pa.array(dice.random(N) < 0.1)
        return pa.StructArray.from_arrays([make(dice)], ["x"], mask=mask)

    return made


def _with_nulls(make: Callable[[Dice], pa.Array]) -> Callable[[Dice], pa.Array]:
    def made(dice: Dice) -> pa.Array:
        return make(dice).take(pa.array(np.arange(N), mask=dice.random(N) < 0.1))

    return made


DELTA, LENGTHS, STRINGS, SPLIT = (
    "DELTA_BINARY_PACKED",
    "DELTA_LENGTH_BYTE_ARRAY",
    "DELTA_BYTE_ARRAY",
    "BYTE_STREAM_SPLIT",
)
INT32, INT64 = _integers(20, pa.int32()), _integers(40, pa.int64())
COLUMNS: dict[str, tuple[str, Callable[[Dice], pa.Array]]] = {
    "plain-bool": ("PLAIN", _flags),
    "plain-int32": ("PLAIN", INT32),
    "plain-int64": ("PLAIN", INT64),
    "plain-int64-nulls": ("PLAIN", _with_nulls(INT64)),
    "plain-double": ("PLAIN", _reals(np.float64)),
    "plain-fixed16": ("PLAIN", _fixed(16)),
    "plain-decimal": ("PLAIN", _decimals),
    "plain-string": ("PLAIN", _texts),
    "plain-string-nulls": ("PLAIN", _with_nulls(_texts)),
    "plain-german": ("PLAIN", _language("german")),
    "plain-cyrillic": ("PLAIN", _language("cyrillic")),
    "plain-japanese": ("PLAIN", _language("japanese")),
    "rle-bool": ("RLE", _flags),
    "dictionary-int32": ("DICTIONARY", _integers(10, pa.int32())),
    "dictionary-int64": ("DICTIONARY", _integers(10, pa.int64())),
    "dictionary-int64-nulls": ("DICTIONARY", _with_nulls(_integers(10, pa.int64()))),
    "dictionary-fixed16": ("DICTIONARY", _few_fixed),
    "dictionary-string": ("DICTIONARY", _cities),
    "dictionary-string-nulls": ("DICTIONARY", _with_nulls(_cities)),
    "dictionary-japanese": ("DICTIONARY", _language("japanese", 500)),
    "delta-int8": (DELTA, _integers(7, pa.int8())),
    "delta-int32": (DELTA, INT32),
    "delta-int64": (DELTA, INT64),
    "delta-int64-rising": (DELTA, _rising),
    "delta-int64-nulls": (DELTA, _with_nulls(INT64)),
    "lengths-string": (LENGTHS, _texts),
    "lengths-string-nulls": (LENGTHS, _with_nulls(_texts)),
    "lengths-japanese": (LENGTHS, _language("japanese")),
    "strings-japanese": (STRINGS, _language("japanese")),
    "strings-string": (STRINGS, _texts),
    "strings-paths": (STRINGS, _paths),
    "strings-fixed16": (STRINGS, _fixed(16)),
    "strings-decimal": (STRINGS, _decimals),
    "split-float16": (SPLIT, _reals(np.float16)),
    "split-float": (SPLIT, _reals(np.float32)),
    "split-double": (SPLIT, _reals(np.float64)),
    "split-double-nulls": (SPLIT, _with_nulls(_reals(np.float64))),
    "split-int32": (SPLIT, INT32),
    "split-int64": (SPLIT, INT64),
    "split-fixed5": (SPLIT, _fixed(5)),
    "split-fixed16": (SPLIT, _fixed(16)),
    "split-decimal": (SPLIT, _decimals),
    "list-plain-int64": ("PLAIN", _lists(INT64)),
    "list-plain-int64-nulls": ("PLAIN", _lists(_with_nulls(INT64), nulls=True)),
    "list-dictionary-string": ("DICTIONARY", _lists(_cities)),
    "list-delta-int64": (DELTA, _lists(INT64)),
    "struct-plain-int64": ("PLAIN", _struct(_with_nulls(INT64))),
    "struct-dictionary-string": ("DICTIONARY", _struct(_cities)),
}


class Chunk(NamedTuple):
    name: str
    data: bytes


@pytest.fixture(scope="module", params=COLUMNS)
def chunk(request: pytest.FixtureRequest) -> Chunk:
    encoding, make = COLUMNS[request.param]
    how: dict[str, Any] = {"use_dictionary": encoding == "DICTIONARY"}
    if not how["use_dictionary"]:
        leaf = {"list": "a.list.element", "struct": "a.x"}.get(request.param.split("-")[0], "a")
        how["column_encoding"] = {leaf: encoding}
    sink = io.BytesIO()
    pq.write_table(
        pa.table({"a": make(np.random.default_rng(SEED))}),
        sink,
        compression="none",
        write_page_index=True,
        row_group_size=N,
        data_page_size=1 << 30,
        max_rows_per_page=PAGE,
        **how,
    )
    return Chunk(request.param, sink.getvalue())


def _scattered(share: float) -> npt.NDArray[np.bool_]:
    return np.random.default_rng(SEED).random(N) < share


def _clustered(share: float) -> npt.NDArray[np.bool_]:
    places = np.arange(N)
    return (places >= N // 3) & (places < N // 3 + int(N * share))


SELECTIONS: dict[str, npt.NDArray[np.bool_]] = {
    "100%": np.ones(N, np.bool_),
    "10% scattered": _scattered(0.1),
    "1% scattered": _scattered(0.01),
    "1% clustered": _clustered(0.01),
}
selections = pytest.mark.parametrize("selection", SELECTIONS)


@selections
def test_selected_rows(
    benchmark: Any,
    compare: Callable[..., Any],
    decode_of: Callable[[bytes], Any],
    chunk: Chunk,
    selection: str,
) -> None:
    benchmark.group = f"{chunk.name} {selection}"
    mask = SELECTIONS[selection]
    chosen = rows.RowRanges.from_bitmap(np.packbits(mask, bitorder="little"), 0, N)
    decode = decode_of(chunk.data)
    file, wanted = pq.ParquetFile(pa.BufferReader(chunk.data)), pa.array(mask)

    def theirs() -> pa.Table:
        table = file.read_row_group(0, use_threads=False)
        return table if selection == "100%" else table.filter(wanted)

    found = compare(lambda: decode(chosen), theirs, N)
    assert pa.chunked_array(found).equals(theirs()["a"])
