"""Single pages of every kind and encoding, and what the leaf decoder makes of them."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

import pageseek as ps
from pageseek._core.decode import TAKE_DONE, TAKE_FULL, TAKE_PAGE
from support import encodings
from support.encodings import (
    BYTE_STREAM_SPLIT,
    DELTA_BINARY_PACKED,
    DELTA_BYTE_ARRAY,
    DELTA_LENGTH_BYTE_ARRAY,
    Delta,
)
from support.tiers import each_part, in_part, named
from support.writer import (
    BOOLEAN,
    BYTE_ARRAY,
    DOUBLE,
    FIXED,
    FLOAT,
    INT32,
    INT64,
    INT96,
    hybrid,
    plain,
)

PLAIN, RLE, RLE_DICTIONARY = 0, 3, 8
Mask = npt.NDArray[np.bool_]
Selection = Any  # what LeafDecoder.begin takes


class Kind(NamedTuple):
    name: str
    leaf_type: tuple[int, int, int, int, int, int, int]
    values: list[Any]
    encodings: tuple[int, ...]

    @property
    def physical(self) -> int:
        return self.leaf_type[0]

    def wanted(self, value: Any) -> Any:
        """What Arrow has for a physical value."""
        if value is None:
            return None
        kind = self.leaf_type[2]
        if kind in (12, 13):
            number = value if isinstance(value, int) else int.from_bytes(value, "big", signed=True)
            return Decimal(number)
        if kind == 9:
            return struct.unpack("<e", value)[0]
        if self.physical == INT96:
            nanos, day = struct.unpack("<qI", value)
            return nanos + (day - 2_440_588) * 86_400_000_000_000
        if kind == 7:
            return value % (1 << 32)
        return value


N = 21
NUMBERS = (PLAIN, RLE_DICTIONARY, DELTA_BINARY_PACKED, BYTE_STREAM_SPLIT)
FLOATS = (PLAIN, RLE_DICTIONARY, BYTE_STREAM_SPLIT)
STRINGS = (PLAIN, RLE_DICTIONARY, DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY)
FIXEDS = (PLAIN, RLE_DICTIONARY, DELTA_BYTE_ARRAY, BYTE_STREAM_SPLIT)
TOPS = [(1 << 31) - 1, -(1 << 31)]  # differences that wrap around
KINDS = [
    Kind("bool", (BOOLEAN, 0, 0, 0, 0, 0, 0), [i % 3 == 0 for i in range(N)], (PLAIN, RLE)),
    Kind("int32", (INT32, 0, 3, 0, 0, 0, 0), [i * 7 % 5 for i in range(N)], NUMBERS),
    Kind("int64", (INT64, 0, 4, 0, 0, 0, 0), [i * 7 % 5 << 40 for i in range(N)], NUMBERS),
    Kind("int8", (INT32, 0, 1, 0, 0, 0, 0), [i * 11 % 9 - 4 for i in range(N)], NUMBERS),
    Kind("int16", (INT32, 0, 2, 0, 0, 0, 0), [i * 11 % 9 - 4 for i in range(N)], NUMBERS),
    Kind("uint32", (INT32, 0, 7, 0, 0, 0, 0), [*TOPS, -1] * (N // 3), NUMBERS),
    Kind("wide int32", (INT32, 0, 4, 0, 0, 0, 0), [*TOPS, 3] * (N // 3), NUMBERS),
    Kind("far int64", (INT64, 0, 4, 0, 0, 0, 0), [(t << 32) + i % 3 for i in range(N // 3) for t in (*TOPS, 0)], NUMBERS),
    Kind("steady int64", (INT64, 0, 4, 0, 0, 0, 0), [7 - 3 * i for i in range(N)], NUMBERS),
    Kind("float", (FLOAT, 0, 10, 0, 0, 0, 0), [i * 11 % 9 / 4 for i in range(N)], FLOATS),
    Kind("double", (DOUBLE, 0, 11, 0, 0, 0, 0), [i * 11 % 9 / 4 for i in range(N)], FLOATS),
    Kind("string", (BYTE_ARRAY, 0, 14, 0, 0, 1, 0), [b"x" * (i % 4) + b"%d" % (i % 6) for i in range(N)], STRINGS),
    Kind("large string", (BYTE_ARRAY, 0, 15, 0, 0, 0, 0), [b"y" * (i * 9 % 40) for i in range(N)], STRINGS),
    Kind("long string", (BYTE_ARRAY, 0, 14, 0, 0, 0, 0), [b"z" * (i * 7 % 60) + b"%d" % i for i in range(N)], STRINGS),
    Kind("fixed", (FIXED, 3, 16, 3, 0, 0, 0), [b"%03d" % (i % 8) for i in range(N)], FIXEDS),
    Kind("fixed 16", (FIXED, 16, 16, 16, 0, 0, 0), [b"%016d" % (i * i % 70) for i in range(N)], FIXEDS),
    Kind("fixed 21", (FIXED, 21, 16, 21, 0, 0, 0), [b"%021d" % (i * 37) for i in range(N)], FIXEDS),
    Kind("float16", (FIXED, 2, 9, 0, 0, 0, 0), [struct.pack("<e", i * 11 % 9 / 4) for i in range(N)], FIXEDS),
    Kind("decimal", (BYTE_ARRAY, 0, 12, 0, 0, 0, 30), [bytes([i % 4 + 1]) * (i % 4 + 1) for i in range(N)], STRINGS),
    Kind("int32 decimal", (INT32, 0, 12, 0, 0, 0, 0), [i * 11 % 9 - 4 for i in range(N)], NUMBERS),
    Kind("int64 decimal", (INT64, 0, 13, 0, 0, 0, 18), [(i * 11 % 9 - 4) << 35 for i in range(N)], NUMBERS),
    Kind("fixed decimal", (FIXED, 5, 12, 0, 0, 0, 0), [(i * 31 - 300).to_bytes(5, "big", signed=True) for i in range(N)], FIXEDS),
    Kind("wide decimal", (FIXED, 70, 13, 0, 0, 0, 70), [(i * 31 - 300).to_bytes(70, "big", signed=True) for i in range(N)], FIXEDS),
    Kind("int96", (INT96, 0, 4, 0, 3, 0, 0), [struct.pack("<qI", i % 4, 2_440_588) for i in range(N)], (PLAIN, RLE_DICTIONARY)),
]  # fmt: skip
NULLS = ("required", "none", "some", "all")
HOWS = [(nulls, version) for version in (1, 2) for nulls in NULLS]
Test = Callable[[Kind, int, str, int], None]
each_kind = pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])


def cases(test: Test) -> Callable[[Kind], None]:
    """A test of every encoding of a kind, with every share of nulls, in pages of either version."""

    @each_kind
    def every(kind: Kind) -> None:
        for encoding, (nulls, version) in itertools.product(kind.encodings, HOWS):
            with named(encoding, nulls, f"v{version}"):
                test(kind, encoding, nulls, version)

    return every


def sampled_cases(test: Test) -> Callable[[Kind, str], None]:
    """The same for a test that takes longer: of each encoding of each kind it tries one in four. The others are slow tests."""

    @each_kind
    @each_part
    def every(kind: Kind, part: str) -> None:
        for place, encoding in enumerate(kind.encodings):
            for number, (nulls, version) in enumerate(HOWS):
                # the two of one encoding differ in version and nulls, and those of the next encoding are the next two
                turn = (number + number // len(NULLS)) % len(NULLS)
                if in_part(part, turn, len(NULLS), KINDS.index(kind) + place):
                    with named(encoding, nulls, f"v{version}"):
                        test(kind, encoding, nulls, version)

    return every


# a stream of deltas as writers write it, and as none does
USUAL, ODD = Delta(), Delta(minis=3, per_mini=8, extra=1, pad=True, unneeded=255, cut=True)


class Page(NamedTuple):
    """What LeafDecoder.page takes, but for the first row."""

    body: bytes
    levels: bytes | None
    version: int
    encoding: int
    num_values: int
    num_nulls: int

    def hand(self, decoder: ps.LeafDecoder, first: int = 0, partial: bool = False) -> int:
        v2 = self.version == 2
        state = decoder.page(
            self.body, self.levels, self.version, self.encoding, RLE, RLE, self.num_values,
            self.num_nulls if v2 else -1, self.num_values if v2 else -1,
            0, len(self.levels or b""), first, partial,
        )  # fmt: skip
        assert isinstance(state, int)
        return state


def rows_of(kind: Kind, nulls: str) -> list[Any]:
    keep = {
        "required": lambda _: True,
        "none": lambda _: True,
        "some": lambda i: i % 5 not in (0, 3),
        "all": lambda _: False,
    }
    return [v if keep[nulls](i) else None for i, v in enumerate(kind.values)]


def page_of(
    kind: Kind,
    encoding: int,
    rows: Sequence[Any],
    optional: bool,
    version: int,
    packed: bool = False,
) -> Page:
    present = [v for v in rows if v is not None]
    if encoding == RLE_DICTIONARY:
        entries = entries_of(kind)
        width = max((len(entries) - 1).bit_length(), 1)
        body = bytes([width]) + hybrid([entries.index(v) for v in present], width, packed)
    elif encoding == RLE:
        runs = hybrid([int(v) for v in present], 1, packed)
        body = struct.pack("<I", len(runs)) + runs
    else:
        body = plain(kind.physical, present)
        if encoding != PLAIN:
            how = ODD if packed else USUAL
            body = encodings.encode(encoding, kind.physical, present, body, how)
    levels = hybrid([int(v is not None) for v in rows], 1, packed) if optional else b""
    nulls = len(rows) - len(present)
    if version == 2:
        return Page(body, levels, 2, encoding, len(rows), nulls)
    return Page(
        (struct.pack("<I", len(levels)) + levels if optional else b"") + body,
        None,
        1,
        encoding,
        len(rows),
        nulls,
    )


def entries_of(kind: Kind) -> list[Any]:
    return list(dict.fromkeys(kind.values))


def decoder_of(kind: Kind, encoding: int, optional: bool) -> ps.LeafDecoder:
    decoder = ps.LeafDecoder(kind.leaf_type, int(optional), 0)
    if encoding == RLE_DICTIONARY:
        entries = entries_of(kind)
        decoder.dictionary(plain(kind.physical, entries), len(entries))
    return decoder


TYPES = {
    0: pa.bool_(),
    1: pa.int8(),
    2: pa.int16(),
    3: pa.int32(),
    4: pa.int64(),
    7: pa.uint32(),
    9: pa.float16(),
    10: pa.float32(),
    11: pa.float64(),
    12: pa.decimal128(38, 0),
    13: pa.decimal256(76, 0),
    14: pa.binary(),
    15: pa.large_binary(),
}


def arrow(kind: Kind, finished: tuple[Any, ...]) -> list[Any]:
    n, null_count, validity, offsets, values = finished
    made = TYPES.get(kind.leaf_type[2]) or pa.binary(kind.leaf_type[3])
    buffers = [
        b if b is None else pa.py_buffer(b)
        for b in ((validity, values) if offsets is None else (validity, offsets, values))
    ]
    array = pa.Array.from_buffers(made, n, buffers, null_count)
    array.validate(full=True)
    found: list[Any] = array.to_pylist()
    assert sum(v is None for v in found) == null_count
    return found


def read_pages(
    decoder: ps.LeafDecoder,
    pages: Sequence[Page],
    selection: Selection,
    kind: Kind,
    max_rows: int = 1 << 62,
    first: int = 0,
) -> list[Any]:
    """The selected rows of pages that follow one another, in portions of `max_rows`."""
    feed, out = iter(pages), []
    decoder.begin(selection, max_rows)
    state = TAKE_PAGE
    while state != TAKE_DONE:
        if state == TAKE_FULL:
            part = arrow(kind, decoder.finish())
            assert len(part) == max_rows
            out += part
            decoder.begin(selection, max_rows)
            state = decoder.resume()
        else:
            page = next(feed)
            state = page.hand(decoder, first)
            first += page.num_values
    return out + arrow(kind, decoder.finish())


def masks(n: int, dice: np.random.Generator) -> list[Mask]:
    """Masks of all densities, with long and short runs, and with runs at the edges of words and blocks."""
    some = [dice.random(n) < share for share in (0.003, 0.02, 0.1, 0.5, 0.9, 0.99)]
    mixed = dice.random(n) < 0.3
    mixed[n // 4 : n // 2] = True
    mixed[n // 2 : 3 * n // 4] = False
    edges = np.zeros(n, np.bool_)
    edges[[i for k in range(0, n, 64) for i in (k - 1, k, k + 1) if 0 <= i < n]] = True
    every_other = np.arange(n) % 2 == 1
    return [*some, mixed, edges, every_other]
