"""`python -m support.wild LOG SEED SECONDS MEMORY`: calls all that the extension modules of pageseek._core have with wild
arguments: of the wrong type, at the ends of what a type holds, of the right shape and absurd, in any order.

Every call is written to LOG before it is made; the last line of a process that died names it. Any Exception will do for
an answer but SystemError, and one that Python could not raise. With the same SEED come the same calls.
"""

from __future__ import annotations

import array
import faulthandler
import importlib
import io
import os
import random
import resource
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pageseek._core import (
    bloom,
    build,
    codecs,
    convert,
    decode,
    files,
    gather,
    held,
    lists,
    memory,
    metadata,
    pages,
    rows,
    search,
    status,
)

import pageseek as ps
from pageseek import _core
from pageseek.format.types import Options
from support.opened import open_metadata

R = random.Random()
HANG = 60  # seconds that no call may take

ENDS = [
    0, 1, -1, 2, 3, 7, 8, 9, 63, 64, 127, 128, 255, 256, 4096,
    *(s * (1 << k) + d for k in (15, 16, 26, 27, 31, 32, 56, 59, 60, 61, 62, 63, 64) for d in (-1, 0, 1) for s in (1, -1)),
    10**30,
]  # fmt: skip
NOT_CALLED = {
    # addresses of functions are called as such: nothing tells one from another
    (codecs, "use_zstd"),
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
    """Of byte strings, most often sound."""
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
        return wild()

    def __index__(self) -> Any:
        return number()

    def __iter__(self) -> Iterator[Any]:
        return iter([wild() for _ in range(R.randrange(4))])

    def __len__(self) -> int:
        return 3


POOL: list[Any] = []


def wild(depth: int = 0) -> Any:
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
            Odd(), int, len, lambda *_: b"", lambda *_: wild(), Ellipsis, 1j,
        ])  # fmt: skip
    if kind == 7:
        return raw_instance()
    if kind <= 9 and POOL:
        return R.choice(POOL)
    if kind <= 11:
        return tuple(wild(depth + 1) for _ in range(R.randrange(8)))
    if kind == 12:
        return [wild(depth + 1) for _ in range(R.randrange(4))]
    return {i: wild(depth + 1) for i in range(2)}


def raw_instance() -> Any:
    """Of a class of the core, without __init__, and most often without arguments."""
    cls = R.choice(CLASSES)
    arguments = () if R.random() < 0.7 else tuple(wild(2) for _ in range(R.randrange(5)))
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
assert {m.__name__.rpartition(".")[2] for m in MODULES} >= {
    m.__name__.rpartition(".")[2]
    for m in (bloom, build, codecs, convert, decode, files, gather, held, lists, memory, metadata, pages, rows, search, status)
}  # fmt: skip
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


# ---- arguments of the right shape ---------------------------------------------------------------------


def form() -> tuple[Any, ...]:
    physical, width, kind = R.choice([
        (0, 0, 0), (1, 0, 1), (1, 0, 3), (1, 0, 7), (1, 0, 12), (2, 0, 4), (2, 0, 13), (3, 0, 4), (4, 0, 10), (5, 0, 11),
        (6, 0, 14), (6, 0, 15), (6, 0, 12), (7, 3, 16), (7, 0, 16), (7, 1 << 27, 16), (7, 5, 12), (7, 2, 9), (7, 12, 4),
    ])  # fmt: skip
    made: list[Any] = [
        physical,
        width,
        kind,
        width,
        R.randrange(4),
        R.randrange(2),
        R.choice([0, 0, 0, 5, 38, 76]),
    ]
    if R.random() < 0.1:
        made[R.randrange(7)] = number()
    return tuple(made)


WIDTHS = [0, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 16, 32, -4, -8, 0]


def values(kind: int, width: int, n: int) -> tuple[Any, Any]:
    """Values and offsets of a kind."""
    size = WIDTHS[kind] if 0 <= kind < len(WIDTHS) else 8
    if size < 0:
        return buffer(5 * n), held_by(offsets(n, -size))
    return buffer(n * (size or (width if kind == 16 else 1))), None


def kind_width() -> tuple[int, int]:
    return R.randrange(17) if R.random() < 0.95 else number(), R.choice([0, 1, 3, 16])


def literals(kind: int, width: int, n: int | None = None) -> tuple[Any, ...]:
    n = R.choice([0, 1, 1, 1, 2, 5]) if n is None else n
    size = WIDTHS[kind] if 0 <= kind < len(WIDTHS) else 8
    if size > 0 and R.random() < 0.7:
        return n, b"".join(i.to_bytes(size, "little") for i in range(n)), None
    if size < 0 and R.random() < 0.7:
        ends = array.array("q" if size == -8 else "i", range(n + 1)).tobytes()
        return n, bytes(range(n)), ends
    found, ends = values(kind, width, n)
    return n, found, ends


def of_compare() -> tuple[Any, ...]:
    (kind, width), n = kind_width(), small(100)
    found, ends = values(kind, width, n)
    asked: Any = literals(kind, width)
    ready = [one for one in POOL if type(one) is search.Lookup]
    if ready and R.random() < 0.3:
        asked = R.choice(ready)
    validity = None if R.random() < 0.5 else buffer((n + 7) // 8)
    return (
        kind,
        width,
        n,
        validity,
        found,
        ends,
        R.randrange(12),
        R.random() < 0.5,
        asked,
        R.randrange(2),
    )


def of_zones() -> tuple[Any, ...]:
    (kind, width), n = kind_width(), small(60)
    low, low_at = values(kind, width, n)
    high, high_at = values(kind, width, n)
    more = [None if R.random() < 0.3 else buffer(8 * n) for _ in range(3)]
    known = bytes(R.choice((0, 1, 1)) for _ in range(n))
    return (
        kind,
        width,
        n,
        low,
        low_at,
        high,
        high_at,
        known,
        None if R.random() < 0.5 else data(n),
        *more,
        R.randrange(3),
    )


def of_probe() -> tuple[Any, ...]:
    kind, width = kind_width()
    return R.randrange(12), literals(kind, width), R.randrange(2)


def of_bound() -> tuple[Any, ...]:
    (kind, width), n = kind_width(), small()
    found, ends = values(kind, width, n)
    return kind, width, n, found, ends, literals(kind, width, 1)


def of_gather() -> tuple[tuple[Any, ...], dict[str, Any]]:
    (kind, width), n = kind_width(), small(100)
    found, ends = values(kind, width, n)
    validity = None if R.random() < 0.5 else buffer((n + 7) // 8)
    count, places, start = small(), R.random() < 0.5, 0
    if places:
        chosen = array.array("q", (R.randrange(max(n, 1)) for _ in range(count))).tobytes()
    else:
        chosen, start = R.randbytes((n + 15) // 8), small(8)
        bits = int.from_bytes(chosen, "little") >> start & ((1 << n) - 1)
        count = bits.bit_count()
    if R.random() < 0.2:
        count = number()
    return (kind, width, n, validity, found, ends, held_by(chosen), count), {
        "start": start,
        "places": places,
    }


def given() -> tuple[Any, ...]:
    (kind, width), n = kind_width(), small(60)
    found, ends = values(kind, width, n)
    return kind, width, (n, None if R.random() < 0.5 else buffer((n + 7) // 8), ends, found)


def selection() -> Any:
    kind = R.randrange(8)
    if kind == 0:
        return (buffer(), number(), number())
    if kind == 1:
        n = small(300)
        return (data((n + 7) // 8), small(), n)
    if kind == 2:
        return buffer()
    ranges = sorted(R.sample(range(250), 2 * R.randrange(4)))
    made = array.array("q", ranges)
    if kind == 3 and made:
        made[-1] = (1 << 63) - 1
    if kind <= 5:
        return held_by(made.tobytes())
    try:
        return ps.RowRanges(np.frombuffer(made.tobytes(), np.int64).reshape(-1, 2))
    except Exception:
        return b""


def of_page() -> tuple[Any, ...]:
    body = R.choice(CHUNKS)[1] if R.random() < 0.4 else buffer()
    version = R.choice((1, 1, 2))
    levels = buffer(6) if version == 2 or R.random() < 0.1 else None
    return (
        body, levels, version, R.choice((0, 0, 2, 3, 4, 5, 6, 7, 8, 9)), R.choice((3, 3, 4)), R.choice((3, 3, 4)),
        R.choice((small(300), number())), R.choice((-1, small())), R.choice((-1, small())), R.choice((0, 0, 3)),
        R.choice((6, 3, 0)), R.choice((0, 0, small(), number())), R.random() < 0.2, R.random() < 0.8,
    )  # fmt: skip


def of_read_page() -> tuple[Any, ...]:
    chunk = R.choice(CHUNKS)
    page, dictionary = damaged(chunk[2]), chunk[3] if R.random() < 0.7 else None
    return (
        page,
        R.choice((0, 0, small(), number())),
        R.choice((-1, chunk[4], small(300), number())),
        selection(),
        R.choice((0, 0, number())),
        dictionary,
    )


def damaged(content: bytes) -> Any:
    if R.random() < 0.4:
        return content
    made = bytearray(content)
    for _ in range(R.randrange(3)):
        if made:
            made[R.randrange(min(len(made), R.choice((20, 60, 1 << 20))))] = R.choice(
                (0, 1, 127, 128, 255, R.randrange(256))
            )
    if R.random() < 0.2:
        del made[R.randrange(len(made) + 1) :]
    return held_by(bytes(made))


def of_head() -> tuple[Any, ...]:
    chunk = R.choice(CHUNKS)
    content = R.choice((chunk[1], chunk[2], chunk[3] or b""))
    return (
        damaged(content),
        R.choice((0, 0, 0, small(), number())),
        R.choice((-1, -1, chunk[4], number())),
    )


def of_read_pages() -> tuple[Any, ...]:
    decoders = [one for one in POOL if isinstance(one, decode.LeafDecoder)]
    wanted: list[Any] = []
    for _ in range(R.randrange(5)):
        if decoders:
            wanted.append((R.choice(decoders), of_read_page(), R.random() < 0.3))
    if R.random() < 0.1:
        wanted.append(wild())
    return wanted, R.choice((1, 2, 4, number()))


def of_decoder() -> tuple[tuple[Any, ...], dict[str, Any]]:
    chunk = R.choice(CHUNKS)
    core, max_def, max_rep, nesting_levels_of, codec = chunk[0]
    how: dict[str, Any] = {"codec": codec}
    if nesting_levels_of:
        how["rungs"] = nesting_levels_of
    for option in (
        lambda: {"max_output": number()}, lambda: {"max_page": number()}, lambda: {"max_values": number()},
        lambda: {"likely_rows": number()}, lambda: {"step": number()}, lambda: {"levels_only": True},
        lambda: {"codes_only": True}, lambda: {"always_compressed": True}, lambda: {"lsb_levels": True},
        lambda: {"rungs": tuple((small(3), small(5), small(3)) for _ in range(small(5)))},
        lambda: {"codec": R.choice(["gzip", "zstd", "lz4", "snappy"])},
        lambda: {"codec_settings": R.choice([p for p in POOL if type(p) is decode.CodecSettings] or [None])},
    ):  # fmt: skip
        if R.random() < 0.08:
            how |= option()
    if how["codec"] not in ("uncompressed", "snappy", "lz4", "lz4_raw", "zstd") or R.random() < 0.1:
        how["decompress"] = R.choice(
            (lambda _, n: bytes(n), lambda *_: wild(), None, lambda *_: calls())
        )
        how["prefix"] = R.choice((None, lambda *_: None, lambda *_: wild(), lambda *_: calls()))
    if R.random() < 0.2:
        core = form()
    if R.random() < 0.1:
        max_def, max_rep = number(), number()
    return (core, max_def, max_rep), how


def calls() -> bytes:
    """A codec that itself calls what is at hand."""
    for _ in range(2):
        step()
    return b""


def of_footers() -> tuple[tuple[Any, ...], dict[str, Any]]:
    content = FOOTERS[0]
    made = metadata.footer(content)
    n = R.randrange(3)
    at = array.array("Q", [0, len(content)] * n).tobytes()
    like = content[:200], made[4], made[9], R.choice((None, b"parquet-cpp", buffer()))
    keys = R.choice(((), (b"ARROW:schema",), (b"a", b"b"), [buffer()] * 3, (b"x",) * 9, wild()))
    most = R.choice((0, 1, 5, number()))
    return (damaged(content), damaged(at), like, int64s(R.randrange(3)), most), {"keys": keys}


def of_list() -> tuple[Any, ...]:
    n, groups = small(10), small(5)
    layout, per = R.randrange(2), R.randrange(2)
    head = array.array("I", [groups, n]).tobytes() + bytes([layout, per, 0, 0])
    body = (
        head
        + array.array("I", [0 if layout else 2]).tobytes()
        + bytes(R.randrange(8) for _ in range(groups))
    )
    body += bytes(groups * ((n + 7) // 8) if per else 0)
    body += array.array("I", range(0, 2 * n + 1, 2)).tobytes() if layout else b""
    body += R.randbytes(2 * n)
    times = R.randrange(4)
    places: list[int] = []
    for _ in range(times):
        places += [
            R.choice((0, 0, 0, number())),
            R.choice((len(body), len(body), number())),
            R.choice((groups, groups, number())),
        ]
    at = array.array("q", [max(min(v, (1 << 63) - 1), -(1 << 63)) for v in places]).tobytes()
    return damaged(body), held_by(at)


def pairs(n: int, most: int) -> bytes:
    made: list[int] = []
    for _ in range(n):
        at = R.randrange(most + 1)
        made += [at, R.randrange(most - at + 1)]
    return array.array("q", made).tobytes()


def of_cut() -> tuple[Any, ...]:
    return data(64), held_by(pairs(small(5), 64)) if R.random() < 0.7 else buffer()


def of_convert() -> tuple[Any, ...]:
    n, content = small(10), data(200)
    at = [R.randrange(100) for _ in range(4 * n)]
    return form(), content, held_by(array.array("q", at).tobytes()), n


def of_names() -> tuple[Any, ...]:
    path = Path(__file__)
    return ([str(path)] * R.choice((0, 1, 3, 20)) if R.random() < 0.8 else [wild(), str(path)],)


def of_seen() -> tuple[Any, ...]:
    names = [one for one in POOL if type(one) is files.Names] or [None]
    return R.choice(names), R.choice((0, small(), number())), R.choice((1, small(), number()))


def of_read_ends() -> tuple[Any, ...]:
    n = R.choice((0, 1, 3))
    return *of_seen()[:1], 0, n, held_by(pairs(n, 100)), bytearray(100)


def of_find() -> tuple[Any, ...]:
    n = small(4)
    return (
        data(100),
        data(100),
        data(64),
        R.choice((8, 0, number())),
        [data(8) for _ in range(6)],
        number(),
        int64s(8 * n),
    )


def of_edit() -> tuple[Any, ...]:
    n = len(metadata.footer(FOOTERS[0])[7]) // 8
    places = (
        int64s(6 * n) if R.random() < 0.5 else array.array("q", [metadata.ABSENT] * 6 * n).tobytes()
    )
    return (
        damaged(FOOTERS[0]),
        places,
        [b"ARROW:schema"],
        [(b"a", b"b")],
        R.choice((0, -1, 3, number())),
    )


def of_page_bounds() -> tuple[Any, ...]:
    content = R.choice(COLUMN_INDEXES)
    n = metadata.column_index(content)[0]
    return (
        damaged(content),
        int64s(R.choice((n + 1, n + 1, small()))),
        R.random() < 0.5,
        True,
        R.random() < 0.3,
    )


def ranges() -> Any:
    found = [one for one in POOL if type(one) is ps.RowRanges]
    return R.choice(found) if found else ps.RowRanges([(1, 9), (12, 300)])


def no() -> tuple[Any, ...]:
    return ()


def ints(n: int) -> Callable[[], tuple[Any, ...]]:
    return lambda: tuple(number() for _ in range(n))


def row_pairs() -> tuple[Any, ...]:
    shape = R.randrange(4)
    if shape == 0:
        return ([(max(number(), 0), number()) for _ in range(small(4))],)
    if shape == 1:
        return ([(0, (1 << 63) - 1 - small(3))],)
    if shape == 2:
        n = small(60)
        return (
            np.cumsum(np.frombuffer(R.randbytes(2 * n), np.uint8)).astype(np.int64).reshape(-1, 2),
        )
    return (np.frombuffer(int64s(6), np.int64).reshape(-1, 2),)


DatasetSchema = Callable[[], Any]
SHAPES: dict[str, DatasetSchema] = {
    "bloom.header": lambda: (damaged(build.BloomFilter(1).to_bytes()[:20]),),
    "bloom.hashable": lambda: (form(),),
    "bloom.hashes": lambda: (lambda f: (f, literals(f[2], f[3])))(form()),
    "bloom.places": lambda: (int64s(small()), R.choice((32, 64, 4096, number()))),
    "bloom.check": lambda: (data(256), int64s(small(5)), int64s(small(5))),
    "bloom.pieces": lambda: (buffer(), R.choice((1, 512, number())), number()),
    "build.BloomFilter": lambda: (R.choice((1, 2, 64, number())),),
    "build.BloomFilter.insert": given,
    "build.BloomFilter.shrink": lambda: (R.choice((0.0, 1.0, 0.1, float("nan"))),),
    "build._Values": given,
    "build.extremes": given,
    "build.hashes": given,
    "build.column_index": lambda: (
        lambda n: (data(n), [data(3)] * n, [data(3)] * n, small(4), int64s(n), None)
    )(small(5)),
    "build.offset_index": lambda: (lambda n: (int64s(n), int64s(n), int64s(n)))(small(5)),
    "build.footer_edited": of_edit,
    "codecs.decompress": lambda: (
        R.choice(["snappy", "lz4_raw", "lz4", "zstd"]),
        damaged(R.choice(PACKED)),
        R.choice((1000, number())),
    ),
    "convert.convert_bounds": of_convert,
    "decode.Manner": lambda: (
        R.choice(["snappy", "gzip", "zstd"]),
        None,
        None,
        *(number() for _ in range(3)),
        False,
        False,
    ),
    "decode.LeafDecoder": of_decoder,
    "decode.LeafDecoder.begin": lambda: (
        selection(),
        R.choice((number(), 1 << 40)),
        R.choice((0, 0, number())),
    ),
    "decode.LeafDecoder.dictionary": lambda: (buffer(), R.choice((small(), number()))),
    "decode.LeafDecoder.page": of_page,
    "decode.LeafDecoder.take": lambda: (R.choice((0, 0, 0, small(), number())), R.random() < 0.8),
    "decode.LeafDecoder.read_page": of_read_page,
    "decode.LeafDecoder.head": of_head,
    "decode.read_pages": of_read_pages,
    "pages.PageReader.head": of_head,
    "files.Names": of_names,
    "files.seen": of_seen,
    "files.read_ends": of_read_ends,
    "gather.gather": of_gather,
    "lists.Lists": of_list,
    "lists.Lists.judge": lambda: (data(64), True, R.random() < 0.5, False),
    "lists.cut": of_cut,
    "lists.find": of_find,
    "memory.keep": lambda: (
        R.choice((0.0, 0.1, -1.0, 1e300, float("nan"))),
        R.choice((0, 1 << 20, number())),
    ),
    "memory.rest": lambda: (R.choice((0, 1 << 20, number())),),
    "memory.trim": lambda: (R.choice((0.0, 0.1, -1.0, 1e300, float("nan"))),),
    "memory.Block": lambda: (R.choice((None, small(), number())),),
    "metadata.footer": lambda: (damaged(FOOTERS[0]),),
    "metadata.footers": of_footers,
    "metadata.chunks": lambda: (FOOTERS[0], damaged(metadata.footer(FOOTERS[0])[7])),
    "metadata.chunk_bounds": lambda: (
        data(R.choice((0, 1, 2)) * 8 * len(metadata.CHUNK_FIELDS)),
        True,
        True,
    ),
    "metadata.column_index": lambda: (damaged(R.choice(COLUMN_INDEXES)),),
    "metadata.page_bounds": of_page_bounds,
    "metadata.offset_index": lambda: (
        damaged(R.choice(OFFSET_INDEXES)),
        *(number() for _ in range(3)),
    ),
    "metadata.offset_indexes": lambda: (
        [(damaged(R.choice(OFFSET_INDEXES)), number(), number())],
        number(),
    ),
    "metadata.sums": lambda: ([(buffer(), number(), number())],),
    "metadata.page_header": lambda: of_head()[:2],
    "rows.RowRanges": row_pairs,
    "rows.RowRanges.from_bitmap": lambda: (buffer(), number(), R.choice((small(100), number()))),
    "rows.RowRanges.from_ranges": lambda: (int64s(2 * small(6)),),
    "rows.RowRanges.refine": lambda: (buffer(),),
    "rows.RowRanges.slice": ints(2),
    "rows.RowRanges.complement": ints(2),
    "rows.RowRanges.meets": ints(2),
    "rows.RowRanges.shift": ints(1),
    "rows.RowRanges.split": lambda: (R.choice((1, 3, 0, -1, 1000)),),
    "rows.RowRanges.rows": no,
    "rows.zones_to_ranges": lambda: (lambda n: (data(n), small(8), int64s(n + 1)))(small()),
    "rows.pages_touched": lambda: (ranges(), int64s(small())),
    "search.Lookup": lambda: (lambda k: (*k, literals(*k), R.random() < 0.5))(kind_width()),
    "search.Zones": of_zones,
    "search.Zones.probe": of_probe,
    "search.Zones.astray": lambda: (
        R.choice([one for one in POOL if type(one) is search.Zones] or [None]),
        number(),
    ),
    "search.compare": of_compare,
    "search.codes_mask": lambda: (
        buffer(40),
        None if R.random() < 0.5 else buffer(2),
        small(12),
        data(small()) + b"\0",
    ),
    "search.sort_literals": lambda: of_bound()[:5],
    "search.lower_bound": of_bound,
    "search.upper_bound": of_bound,
    "search.locate": lambda: (lambda n: (number(), number(), int64s(n + 1), int64s(n), int64s(n)))(
        small()
    ),
    "search._Values": lambda: (lambda k: (*k, small(), None, *values(*k, 20), "x"))(kind_width()),
}
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
    nesting_levels_of: list[tuple[int, int, int]] = []
    if leaf.max_rep:
        nesting_levels_of = [(1, max(leaf.max_def - 1, 0), leaf.max_rep)]
    elif leaf.max_def > 1:
        nesting_levels_of = [(0, 1, 0)]
    name = {"none": "uncompressed", "lz4": "lz4_raw"}.get(codec, codec)
    decoder = form.core, leaf.max_def, leaf.max_rep, tuple(nesting_levels_of), name
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


# ---- calls --------------------------------------------------------------------------------------------


LOG = -1
made_calls: dict[
    str, list[int]
] = {}  # of each, how many came back, and how many of these with an answer


def note(name: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    text = f"{name} {shown(arguments)} {shown(named) if named else ''}"[:2000]
    os.write(LOG, text.encode("utf-8", "replace") + b"\n")


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


def target() -> tuple[str, Callable[..., Any]]:
    """Something to call, and its name."""
    kind = R.randrange(10)
    if kind < 4:
        module, name = R.choice(FUNCTIONS)
        return f"{module.__name__.rpartition('.')[2]}.{name}", getattr(module, name)
    if kind < 6 or not POOL:
        cls = R.choice(CLASSES)
        return f"{cls.__module__.rpartition('.')[2]}.{cls.__name__}", cls
    one = R.choice(POOL)
    cls = type(one)
    names = [n for n in dir(cls) if not n.startswith("__") or n in SPECIAL]
    plain = [n for n in names if n not in SPECIAL]
    name = R.choice(plain if plain and R.random() < 0.9 else names)
    home = next(base for base in cls.__mro__ if name in vars(base))
    if isinstance(
        vars(home)[name], (property, types.GetSetDescriptorType, types.MemberDescriptorType)
    ):
        return (
            f"{cls.__module__.rpartition('.')[2]}.{cls.__name__}.{name} (read)",
            lambda *_, **__: getattr(one, name),
        )
    return f"{cls.__module__.rpartition('.')[2]}.{cls.__name__}.{name}", getattr(one, name)


SPECIAL = {
    "__and__", "__or__", "__sub__", "__xor__", "__eq__", "__hash__", "__len__", "__iter__", "__contains__", "__bool__",
    "__repr__", "__reduce__", "__reduce_ex__", "__setstate_cython__", "__reduce_cython__", "__init__", "__buffer__",
}  # fmt: skip


def step() -> None:
    name, called = target()
    shape = SHAPES.get(name.replace("decode.LeafDecoder.head", "pages.PageReader.head"))
    arguments: Any = ()
    named: dict[str, Any] = {}
    if shape is not None and R.random() < 0.9:
        arguments = shape()
        if (
            len(arguments) == 2
            and isinstance(arguments[0], tuple)
            and isinstance(arguments[1], dict)
        ):
            arguments, named = arguments
        arguments = tuple(wild() if R.random() < 0.04 else one for one in arguments)
        named = {key: wild() if R.random() < 0.04 else one for key, one in named.items()}
    elif R.random() < 0.6:
        arguments = tuple(wild() for _ in range(R.choice((0, 1, 1, 2, 3, 7))))
    if name in ("rows.RowRanges.rows", "rows.RowRanges.split"):
        found = getattr(called, "__self__", None)
        if found is not None and found.num_rows > 1 << 20:
            return
    call(name, called, arguments, named)


def call(
    name: str, called: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]
) -> None:
    note(name, arguments, named)
    counts = made_calls.setdefault(name, [0, 0])
    try:
        result = called(*arguments, **named)
        counts[1] += 1
    except SystemError:
        raise
    except Exception as error:
        result = error
        str(error)
    counts[0] += 1
    use(result)


def use(result: Any) -> None:
    """Look at every byte of what came back, and keep some of it."""
    if isinstance(result, memory.Block):
        sum(bytes(memoryview(result))[:: 64 if len(result) > 1 << 16 else 1])
    if isinstance(result, (tuple, list)):
        for part in result[:10]:
            use(part)
    elif type(result) in CLASSES:
        POOL.append(result)
        if len(POOL) > 60:
            del POOL[R.randrange(len(POOL))]


def session() -> None:
    """A decoder, made and used as it should be, but for what now and then is not."""
    (core, max_def, max_rep, nesting_levels_of, codec), chunk, page, dictionary, n = R.choice(
        CHUNKS
    )
    arguments, how = (
        of_decoder()
        if R.random() < 0.2
        else ((core, max_def, max_rep), {"rungs": nesting_levels_of, "codec": codec})
    )
    how["likely_rows"] = R.choice((0, 1, 7))
    note("decode.LeafDecoder", arguments, how)
    try:
        decoder = decode.LeafDecoder(*arguments, **how)
    except Exception:
        return
    POOL.append(decoder)
    place = 0
    for _ in range(R.randrange(4, 30)):
        kind = R.randrange(16)
        name, given = "begin", ()
        if kind <= 1:
            given = selection(), R.choice((1 << 40, 1, 5)), R.choice((0, 0, 1000))
        elif kind <= 4:
            name, given = "head", (damaged(chunk) if R.random() < 0.2 else chunk, place, -1)
        elif kind == 5:
            name, given = "head", (page, 0, n if not nesting_levels_of else -1)
        elif kind <= 8:
            name, given = "take", (R.choice((0, decoder.row)), True)
        elif kind == 9:
            name = "take_dictionary"
        elif kind == 10:
            name, given = "read_page", (page, 0, n, selection(), 0, dictionary)
        elif kind == 11:
            name = R.choice(("finish", "resume", "end", "release", "rungs", "entries"))
        elif kind == 12:
            name = "finish"
        elif kind == 13:
            name, given = "head", (dictionary or page, 0, -1)
        elif kind == 14:
            step()
            continue
        else:
            one = decoder, (page, 0, n, selection(), 0, dictionary), False
            call("decode.read_pages", decode.read_pages, ([one], 1), {})
            continue
        try:
            call(f"decode.LeafDecoder.{name}", getattr(decoder, name), given, {})
        finally:
            place = decoder.stop if name == "take" and 0 <= decoder.stop < len(chunk) else place
    if len(POOL) > 60:
        del POOL[R.randrange(len(POOL))]


def together(seconds: float) -> None:
    """Two threads on one decoder, over and over, and on whatever else is at hand."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        threads = [threading.Thread(target=steps, args=(20,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


failed: list[BaseException] = []


def steps(n: int) -> None:
    try:
        for _ in range(n):
            try:
                session() if R.random() < 0.1 else step()
            except MemoryError:  # of what this module makes
                POOL.clear()
    except BaseException as error:
        failed.append(error)


def main() -> None:
    """Half of the time alone, half of it side by side."""
    global LOG
    path, seed, seconds, limit = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
    LOG = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
    faulthandler.enable()
    sys.unraisablehook = lambda args: failed.append(
        SystemError(f"unraisable: {args.exc_value!r} {args.object!r}")
    )
    prepare()
    if limit:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + limit,) * 2)
    R.seed(seed)
    began, written = time.monotonic(), 0
    while time.monotonic() - began < seconds * 0.7:
        faulthandler.dump_traceback_later(HANG, exit=True)
        steps(50)
        if failed:
            raise failed[0]
        written = os.fstat(LOG).st_size
        if written > 1 << 24:
            os.ftruncate(LOG, 0)
    faulthandler.dump_traceback_later(HANG + seconds, exit=True)
    together(seconds * 0.3)
    if failed:
        raise failed[0]
    for name in sorted(set(SHAPES) - set(made_calls)):
        sys.stdout.write(f"not called: {name}\n")
    for name, (came, answered) in sorted(made_calls.items()):
        sys.stdout.write(f"{name}: {came} calls, {answered} answers\n")


if __name__ == "__main__":
    main()
