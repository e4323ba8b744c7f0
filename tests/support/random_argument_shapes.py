"""Arguments of the right shape for what the extension modules have, often absurd: SHAPES, by module and name."""

from __future__ import annotations

import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import pageseek as ps
from pageseek._core import build, codecs, decode, files, metadata, points, search
from pageseek.storage.local import LocalStore
from support.random_argument_data import (
    AGAIN,
    CHUNKS,
    COLUMN_INDEXES,
    FOOTERS,
    OFFSET_INDEXES,
    PACKED,
    POOL,
    R,
    any_value,
    buffer,
    data,
    held_by,
    int64s,
    number,
    small,
)
from support.random_argument_values import (
    damaged,
    form,
    given,
    kind_width,
    literals,
    selection,
    values,
)
from support.random_point_arguments import of_point_read, of_point_reader, of_point_task


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


def of_row_tests() -> tuple[Any, ...]:
    kind, width = kind_width()
    ready = [one for one in POOL if type(one) is search.Lookup]
    tests: list[Any] = []
    for _ in range(R.choice((1, 1, 2, 3, 0))):
        asked = R.choice(ready) if ready and R.random() < 0.3 else literals(kind, width)
        tests.append((R.randrange(12), R.random() < 0.5, asked, R.randrange(2)))
    if R.random() < 0.05:
        tests.append(any_value())
    return kind, width, tests, R.random() < 0.5


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
            data, first, rows, *rest = of_read_page()
            pages = [(data, first, rows) for _ in range(R.choice((1, 1, 1, 2, 5, 0)))]
            wanted.append((R.choice(decoders), pages, *rest, R.random() < 0.3))
    tasks = [one for one in POOL if type(one) is points.PointTask]
    if tasks and R.random() < 0.5:
        wanted += R.choices(tasks, k=R.choice((1, 1, 2)))
    if R.random() < 0.1:
        wanted.append(any_value())
    return wanted, R.choice((1, 2, 4, number()))


def of_decoder() -> tuple[tuple[Any, ...], dict[str, Any]]:
    chunk = R.choice(CHUNKS)
    core, max_def, max_rep, nesting_levels, codec = chunk[0]
    how: dict[str, Any] = {"codec": codec}
    if nesting_levels:
        how["nesting_levels"] = nesting_levels
    for option in (
        lambda: {"max_output": number()}, lambda: {"max_page": number()}, lambda: {"max_values": number()},
        lambda: {"likely_rows": number()}, lambda: {"step": number()}, lambda: {"levels_only": True},
        lambda: {"tests": R.choice([one for one in POOL if type(one) is search.RowTests] or [None])},
        lambda: {"codes_only": True}, lambda: {"always_compressed": True}, lambda: {"lsb_levels": True},
        lambda: {"nesting_levels": tuple((small(3), small(5), small(3)) for _ in range(small(5)))},
        lambda: {"codec": R.choice(["gzip", "zstd", "lz4", "snappy"])},
        lambda: {"codec_settings": R.choice([p for p in POOL if type(p) is codecs.CodecSettings] or [None])},
    ):  # fmt: skip
        if R.random() < 0.08:
            how |= option()
    if how["codec"] not in ("uncompressed", "snappy", "lz4", "lz4_raw", "zstd") or R.random() < 0.1:
        how["decompress"] = R.choice(
            (lambda _, n: bytes(n), lambda *_: any_value(), None, lambda *_: calls())
        )
        how["prefix"] = R.choice(
            (None, lambda *_: None, lambda *_: any_value(), lambda *_: calls())
        )
    if R.random() < 0.2:
        core = form()
    if R.random() < 0.1:
        max_def, max_rep = number(), number()
    return (core, max_def, max_rep), how


def calls() -> bytes:
    """A codec that itself calls what is at hand."""
    for _ in range(2):
        AGAIN[0]()
    return b""


def of_footers() -> tuple[tuple[Any, ...], dict[str, Any]]:
    content = FOOTERS[0]
    made = metadata.footer(content)
    n = R.randrange(3)
    at = array.array("Q", [0, len(content)] * n).tobytes()
    like = content[:200], made[4], made[9], R.choice((None, b"parquet-cpp", buffer()))
    keys = R.choice(
        ((), (b"ARROW:schema",), (b"a", b"b"), [buffer()] * 3, (b"x",) * 9, any_value())
    )
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
    return (
        [str(path)] * R.choice((0, 1, 3, 20)) if R.random() < 0.8 else [any_value(), str(path)],
    )


def of_file_bytes() -> tuple[Any, ...]:
    """Of a store with this file, whose descriptor may be closed, or be that of something else."""
    store = LocalStore(__file__)
    fd = R.choice((store.descriptor, -1, 1 << 20, small()))
    return (
        store,
        fd,
        R.choice((store._open_file, None)),
        R.choice((0, small(), number())),
        R.choice((0, small(), number())),
    )


def of_seen() -> tuple[Any, ...]:
    names = [one for one in POOL if type(one) is files.Names] or [None]
    return R.choice(names), R.choice((0, small(), number())), R.choice((1, small(), number()))


def of_read_ends() -> tuple[Any, ...]:
    n = R.choice((0, 1, 3))
    behind = R.choice((None, int64s(n), buffer()))
    return *of_seen()[:1], 0, n, held_by(pairs(n, 100)), bytearray(100), behind


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


Arguments = Callable[[], Any]
SHAPES: dict[str, Arguments] = {
    "bloom.header": lambda: (damaged(build.BloomFilter(1).to_bytes()[:20]),),
    "bloom.hashable": lambda: (form(),),
    "bloom.hashes": lambda: (lambda f: (f, literals(f[2], f[3])))(form()),
    "bloom.places": lambda: (int64s(small()), R.choice((32, 64, 4096, number()))),
    "bloom.check": lambda: (data(256), int64s(small(5)), int64s(small(5))),
    "bloom.sound": lambda: (lambda n: (data(256), int64s(3 * n), int64s(n)))(small(4)),
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
    "codecs.CodecSettings": lambda: (
        R.choice(["snappy", "gzip", "zstd"]),
        None,
        None,
        *(number() for _ in range(3)),
        False,
        False,
    ),
    "decode.LeafDecoder": of_decoder,
    "leaf.LeafBuffers": of_decoder,
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
    "page_tasks.read_pages": of_read_pages,
    "pages.PageReader.head": of_head,
    "points.PointReader": of_point_reader,
    "points.PointReader.read": of_point_read,
    "points.PointTask": of_point_task,
    "file_bytes.FileBytes": of_file_bytes,
    "files.Names": of_names,
    "files.seen": of_seen,
    "files.read_ends": of_read_ends,
    "gather.gather": of_gather,
    "lists.Lists": of_list,
    "lists.Lists.evaluate": lambda: (data(64), True, R.random() < 0.5, False),
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
    "search.RowTests": of_row_tests,
    "search.Zones": of_zones,
    "search.Zones.probe": of_probe,
    "search.Zones.out_of_bounds": lambda: (
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
