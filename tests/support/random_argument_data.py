"""What support.random_arguments hands over: numbers, buffers and objects of any kind, and real pages and metadata."""

from __future__ import annotations

import array
import importlib
import io
import os
import random
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pageseek import _core
from pageseek._core import codecs
from pageseek.format.types import Options
from support.opened import open_metadata

AGAIN: list[Callable[[], None]] = []  # makes one more call, from inside of another
LOG = [-1]  # the descriptor that calls are written to

R = random.Random()

ENDS = [
    0, 1, -1, 2, 3, 7, 8, 9, 63, 64, 127, 128, 255, 256, 4096,
    *(s * (1 << k) + d for k in (15, 16, 26, 27, 31, 32, 56, 59, 60, 61, 62, 63, 64) for d in (-1, 0, 1) for s in (1, -1)),
    10**30,
]  # fmt: skip
NOT_CALLED = {
    # addresses of functions are called as such: nothing tells one from another
    (codecs, "use_zstd"),
    (codecs, "use_zlib"),
    (codecs, "use_brotli"),
}


def number() -> int:
    return R.randrange(20) if R.random() < 0.6 else R.choice(ENDS)


def small(stop: int = 40) -> int:
    return R.randrange(stop)


def data(n: int | None = None) -> bytes:
    n = (
        R.choice([0, 1, 3, 8, 16, 24, 32, 64, 100, 512, 4000])
        if n is None
        else min(max(n, 0), 1 << 16)
    )
    kind = R.randrange(5)
    if kind == 0:
        return bytes(n)
    if kind == 1:
        return b"\xff" * n
    if kind == 2:
        return R.randbytes(n)
    if kind == 3:
        return bytes(R.choices((0, 1, 2, 3, 255), k=n))
    return int64s(n // 8) + bytes(n % 8)


def int64s(n: int) -> bytes:
    n, kind = min(n, 1 << 10), R.randrange(4)
    if kind == 0:
        made = [R.randrange(200) for _ in range(n)]
    elif kind == 1:
        made = sorted(R.randrange(200) for _ in range(n))
    elif kind == 2:
        made = list(range(n))
    else:
        made = [max(min(number(), (1 << 63) - 1), -(1 << 63)) for _ in range(n)]
    return array.array("q", made).tobytes()


def offsets(n: int, width: int) -> bytes:
    """Offsets of byte strings, mostly valid."""
    at, made = R.choice((0, 0, 0, 2)), []
    for _ in range(n + 1):
        made.append(at)
        at += R.randrange(5)
    if R.random() < 0.2 and made:
        made[R.randrange(len(made))] = R.choice([-1, 1 << 30, (1 << 31) - 1, 0])
    return array.array("q" if width == 8 else "i", made).tobytes()


def held_by(content: bytes) -> Any:
    """The bytes in some object: read-only or not, misaligned, in steps, of another type."""
    kind = R.randrange(12)
    if kind < 5:
        return content
    if kind == 5:
        return bytearray(content)
    if kind == 6:
        return memoryview(b"x" + content)[1:]
    if kind == 7:
        return memoryview(b"".join(bytes([b, 0]) for b in content))[::2]  # not contiguous
    if kind == 8:
        return np.frombuffer(content, np.uint8)
    if kind == 9:
        return np.frombuffer(content[: len(content) // 8 * 8], np.int64).copy()
    if kind == 10:
        return pa.py_buffer(content)
    return array.array("B", content)


def buffer(n: int | None = None) -> Any:
    return held_by(data(n))


class Odd:
    """Attributes that are not what they should be."""

    @property
    def buffers(self) -> Any:
        if R.random() < 0.3:
            raise RuntimeError("no buffers")
        return any_value()

    def __index__(self) -> Any:
        return number()

    def __iter__(self) -> Iterator[Any]:
        return iter([any_value() for _ in range(R.randrange(4))])

    def __len__(self) -> int:
        return 3


POOL: list[Any] = []


def any_value(depth: int = 0) -> Any:
    kind = R.randrange(14 if depth < 2 else 10)
    if kind <= 2:
        return number()
    if kind <= 4:
        return buffer()
    if kind == 5:
        return None
    if kind == 6:
        return R.choice([
            "", "snappy", "zstd", "none", "\0", "\udc80", 0.5, float("nan"), float("inf"), -1e308, True, b"", object(),
            Odd(), int, len, lambda *_: b"", lambda *_: any_value(), Ellipsis, 1j,
        ])  # fmt: skip
    if kind == 7:
        return raw_instance()
    if kind <= 9 and POOL:
        return R.choice(POOL)
    if kind <= 11:
        return tuple(any_value(depth + 1) for _ in range(R.randrange(8)))
    if kind == 12:
        return [any_value(depth + 1) for _ in range(R.randrange(4))]
    return {i: any_value(depth + 1) for i in range(2)}


def raw_instance() -> Any:
    """An instance of a class of the core, without __init__, and mostly without arguments."""
    cls = R.choice(CLASSES)
    arguments = () if R.random() < 0.7 else tuple(any_value(2) for _ in range(R.randrange(5)))
    note(f"{cls.__module__}.{cls.__name__}.__new__", arguments, {})
    try:
        return cls.__new__(cls, *arguments)
    except SystemError:
        raise
    except Exception:
        return None


MODULES: list[types.ModuleType] = [
    importlib.import_module(f"pageseek._core.{path.name.split('.')[0]}")
    for folder in _core.__path__
    for path in sorted(Path(folder).glob("*.*"))
    if path.suffix in (".so", ".pyd")
]
assert len(MODULES) == len(set(MODULES)) > 10
CLASSES: list[type] = []
FUNCTIONS: list[tuple[types.ModuleType, str]] = []
for module in MODULES:
    for name, item in vars(module).items():
        if name.startswith("__") or getattr(item, "__module__", None) != module.__name__:
            continue
        if isinstance(item, type):
            CLASSES.append(item)
        elif callable(item) and (module, name) not in NOT_CALLED:
            FUNCTIONS.append((module, name))


# ---- what is written of a call --------------------------------------------------------------------------


def note(name: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    text = f"{name} {shown(arguments)} {shown(named) if named else ''}"[:2000]
    os.write(LOG[0], text.encode("utf-8", "replace") + b"\n")


def shown(item: Any) -> str:
    if isinstance(item, tuple):
        return "(" + ", ".join(map(shown, item)) + ")"
    if isinstance(item, list):
        return "[" + ", ".join(map(shown, item)) + "]"
    if isinstance(item, dict):
        return "{" + ", ".join(f"{k}: {shown(v)}" for k, v in item.items()) + "}"
    if isinstance(item, (bytes, bytearray)):
        return f"{type(item).__name__}[{len(item)}] {bytes(item[:48]).hex()}"
    if isinstance(item, (memoryview, np.ndarray, pa.Buffer, array.array)):
        return f"{type(item).__name__} {bytes(item)[:48].hex()}"
    if isinstance(item, (int, float, str, type(None), bool)):
        return repr(item)
    return f"<{type(item).__name__} {id(item):x}>"


# ---- files ----------------------------------------------------------------------------------------------

CHUNKS: list[
    tuple[Any, bytes, bytes, bytes | None, int]
] = []  # decoder, chunk, its first page, its dictionary, rows
FOOTERS: list[bytes] = []
COLUMN_INDEXES: list[bytes] = []
OFFSET_INDEXES: list[bytes] = []
PACKED: list[bytes] = []


def prepare() -> None:
    """Pages of all types, encodings and codecs."""
    n = 200
    text = [None if i % 7 == 0 else f"v{i % 13}" * (i % 4) for i in range(n)]
    table = pa.table(
        {
            "i": pa.array(range(n), pa.int64()),
            "j": pa.array([None if i % 5 == 0 else i % 11 for i in range(n)], pa.int32()),
            "b": pa.array([i % 3 == 0 for i in range(n)]),
            "f": pa.array([i / 7 for i in range(n)]),
            "s": pa.array(text),
            "x": pa.array([b"abc"] * n, pa.binary(3)),
            "d": pa.array(range(n)).cast(pa.decimal128(20, 0)),
            "l": pa.array(
                [None if i % 9 == 0 else list(range(i % 4)) for i in range(n)], pa.list_(pa.int64())
            ),
            "m": pa.array(
                [[[text[i]], None, []][: i % 4] for i in range(n)], pa.list_(pa.list_(pa.string()))
            ),
            "t": pa.array([{"a": None if i % 4 == 0 else i} for i in range(n)]),
        }
    )
    encoded = {"i": "DELTA_BINARY_PACKED", "s": "DELTA_BYTE_ARRAY", "f": "BYTE_STREAM_SPLIT"}
    hows: list[dict[str, Any]] = [
        {"compression": codec, "use_dictionary": dictionary, "data_page_version": version}
        for codec in ("none", "snappy", "zstd", "lz4")
        for dictionary in (True, False)
        for version in ("1.0", "2.0")
    ]
    hows.append({"compression": "none", "use_dictionary": False, "column_encoding": encoded})
    for how in hows:
        sink = io.BytesIO()
        pq.write_table(table, sink, write_page_index=True, data_page_size=400, **how)
        content = sink.getvalue()
        file = open_metadata(content)
        length = int.from_bytes(content[-8:-4], "little")
        FOOTERS.append(content[-8 - length : -8])
        for leaf in file.leaves:
            of_column(file, leaf, content, how["compression"])
    sink = io.BytesIO()
    raw = bytes(1000)
    for codec in ("snappy", "lz4_raw", "zstd"):
        PACKED.append(
            pa.Codec(codec.removesuffix("_raw") if codec != "lz4_raw" else "lz4_raw")
            .compress(raw)
            .to_pybytes()
        )


def of_column(file: Any, leaf: Any, content: bytes, codec: str) -> None:
    form, chunk = file.leaf_type(leaf, Options()), file.chunk(0, leaf)
    at = [chunk.data_page_offset]
    if chunk.dictionary_page_offset > 0:
        at.append(chunk.dictionary_page_offset)
    start = min(at)
    stop = start + chunk.total_compressed_size
    index = file.offset_index(0, leaf)
    first, size = int(index.offset[0]), int(index.compressed_size[0])
    nesting_levels: list[tuple[int, int, int]] = []
    if leaf.max_rep:
        nesting_levels = [(1, max(leaf.max_def - 1, 0), leaf.max_rep)]
    elif leaf.max_def > 1:
        nesting_levels = [(0, 1, 0)]
    name = {"none": "uncompressed", "lz4": "lz4_raw"}.get(codec, codec)
    decoder = form.core, leaf.max_def, leaf.max_rep, tuple(nesting_levels), name
    dictionary = content[start:first] if start < first else None
    CHUNKS.append(
        (
            decoder,
            content[start:stop],
            content[first : first + size],
            dictionary,
            int(index.first_row[1]),
        )
    )
    COLUMN_INDEXES.append(content[chunk.column_index_offset :][: chunk.column_index_length])
    OFFSET_INDEXES.append(content[chunk.offset_index_offset :][: chunk.offset_index_length])
