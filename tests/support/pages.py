"""Single pages of every kind and encoding, and what the leaf decoder makes of them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import pageseek as ps
from support.writer import BOOLEAN, BYTE_ARRAY, DOUBLE, FIXED, INT32, INT64, INT96, hybrid, plain

PLAIN, RLE, RLE_DICTIONARY = 0, 3, 8
Mask = npt.NDArray[np.bool_]


class Kind(NamedTuple):
    name: str
    form: tuple[int, int, int, int, int, int]
    values: list[Any]
    encodings: tuple[int, ...]

    @property
    def physical(self) -> int:
        return self.form[0]


N = 21
KINDS = [
    Kind("bool", (BOOLEAN, 0, 0, 0, 0, 0), [i % 3 == 0 for i in range(N)], (PLAIN, RLE)),
    Kind("int32", (INT32, 0, 3, 0, 0, 0), [i * 7 % 5 for i in range(N)], (PLAIN, RLE_DICTIONARY)),
    Kind("int64", (INT64, 0, 4, 0, 0, 0), [i * 7 % 5 << 40 for i in range(N)], (PLAIN, RLE_DICTIONARY)),
    Kind("int8", (INT32, 0, 1, 0, 0, 0), [i * 11 % 9 - 4 for i in range(N)], (PLAIN, RLE_DICTIONARY)),
    Kind("int16", (INT32, 0, 2, 0, 0, 0), [i * 11 % 9 - 4 for i in range(N)], (PLAIN, RLE_DICTIONARY)),
    Kind("double", (DOUBLE, 0, 11, 0, 0, 0), [i * 11 % 9 / 4 for i in range(N)], (PLAIN, RLE_DICTIONARY)),
    Kind("string", (BYTE_ARRAY, 0, 14, 0, 0, 1), [b"x" * (i % 4) + b"%d" % (i % 6) for i in range(N)], (PLAIN, RLE_DICTIONARY)),
    Kind("large string", (BYTE_ARRAY, 0, 15, 0, 0, 0), [b"y" * (i * 9 % 40) for i in range(N)], (PLAIN, RLE_DICTIONARY)),
    Kind("fixed", (FIXED, 3, 16, 3, 0, 0), [b"%03d" % (i % 8) for i in range(N)], (PLAIN, RLE_DICTIONARY)),
    Kind("decimal", (BYTE_ARRAY, 0, 12, 0, 0, 0), [bytes([i % 4 + 1]) * (i % 4 + 1) for i in range(N)], (PLAIN, RLE_DICTIONARY)),
    Kind("int96", (INT96, 0, 4, 0, 3, 0), [struct.pack("<qI", i % 4, 2_440_588) for i in range(N)], (PLAIN, RLE_DICTIONARY)),
]  # fmt: skip


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
    decoder = ps.LeafDecoder(kind.form, int(optional), 0)
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
    11: pa.float64(),
    12: pa.decimal128(38, 0),
    14: pa.binary(),
    15: pa.large_binary(),
}


def arrow(kind: Kind, finished: tuple[Any, ...]) -> list[Any]:
    n, null_count, validity, offsets, values = finished
    made = TYPES.get(kind.form[2], pa.binary(3))
    buffers = [
        b if b is None else pa.py_buffer(b)
        for b in ((validity, values) if offsets is None else (validity, offsets, values))
    ]
    array = pa.Array.from_buffers(made, n, buffers, null_count)
    array.validate(full=True)
    found: list[Any] = array.to_pylist()
    assert sum(v is None for v in found) == null_count
    return found


def masks(n: int, dice: np.random.Generator) -> list[Mask]:
    """Of all densities, with long runs between short ones, and at the edges of words and blocks."""
    some = [dice.random(n) < share for share in (0.003, 0.02, 0.1, 0.5, 0.9, 0.99)]
    mixed = dice.random(n) < 0.3
    mixed[n // 4 : n // 2] = True
    mixed[n // 2 : 3 * n // 4] = False
    edges = np.zeros(n, np.bool_)
    edges[[i for k in range(0, n, 64) for i in (k - 1, k, k + 1) if 0 <= i < n]] = True
    every_other = np.arange(n) % 2 == 1
    return [*some, mixed, edges, every_other]
