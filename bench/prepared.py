"""`python -m pageseek.bench.prepared`: one lookup after the other by a prepared query, and many at once.

The file has eight columns in pages of 1,000 rows. The floor is `pread` of exactly the pages that hold the answer, neighbours by one
call, and their decompression: Snappy by the function of the core, ZSTD by libzstd with one context. It decodes nothing. Floor,
`read_table` and the prepared query take turns with the same key.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from pageseek.bench import generate
from pageseek.bench.floor import Decompress, decompressor
from pageseek.bench.run import machine

import pageseek as ps
from pageseek._core import codecs
from pageseek.datasets.sources import open_metadata
from pageseek.format.chunks import chunk_range, page_header

CODECS = "zstd", "snappy"
KEYS = 1_000  # of `many`
ROUNDS = 9


@dataclass(frozen=True)
class Reads:
    """Places to read, (offset, length), and the bodies of pages in them: (read, start, stop, size)."""

    places: list[tuple[int, int]]
    bodies: list[tuple[int, int, int, int]]


class Floor:
    """Reads and decompresses the pages of rows."""

    def __init__(self, path: Path, codec: str) -> None:
        self._file = open_metadata(str(path))
        self._fd = os.open(path, os.O_RDONLY)
        self._codec = codec
        self._starts = np.cumsum([0, *[group.num_rows for group in self._file.row_groups]])

    def plan(self, rows: Sequence[int]) -> Reads:
        """The different pages of all rows, and the dictionaries that they need."""
        found: dict[int, int] = {}
        for group in range(self._file.num_row_groups):
            first, stop = self._starts[group : group + 2]
            inside = [row - first for row in rows if first <= row < stop]
            for leaf in self._file.leaves if inside else ():
                offsets = self._file.offset_index(group, leaf)
                assert offsets is not None
                pages = np.unique(np.searchsorted(offsets.first_row, inside, "right") - 1).tolist()
                found |= {int(offsets.offset[i]): int(offsets.compressed_size[i]) for i in pages}
                start = chunk_range(self._file.chunk(group, leaf))[0]
                if start < offsets.start:
                    found[start] = offsets.start - start
        return self._joined(sorted(found.items()))

    def _joined(self, pages: Sequence[tuple[int, int]]) -> Reads:
        places: list[tuple[int, int]] = []
        bodies = []
        for offset, length in pages:
            (data,) = self._file.store.read([(offset, length)])
            header = page_header(memoryview(data), 0, str, offset)
            if places and sum(places[-1]) == offset:
                places[-1] = places[-1][0], places[-1][1] + length
            else:
                places.append((offset, length))
            start = offset - places[-1][0] + header.header_length
            bodies.append(
                (len(places) - 1, start, start + header.compressed_size, header.uncompressed_size)
            )
        return Reads(places, bodies)

    def runner(self, reads: Sequence[Reads]) -> Callable[[Reads], None]:
        """A function for one thread that does the work of any of these."""
        largest = max(body[3] for one in reads for body in one.bodies)
        unpack = self._unpacking(largest)
        pread, fd = os.pread, self._fd

        def run(one: Reads) -> None:
            last, data, places = -1, b"", one.places
            for read, start, stop, size in one.bodies:
                if read != last:
                    offset, length = places[read]
                    last, data = read, pread(fd, length, offset)
                unpack(data, start, stop, size)

        return run

    def _unpacking(self, largest: int) -> Decompress:
        if self._codec == "zstd":
            return decompressor("zstd", largest)[0]
        core, codec = codecs.decompress, self._codec

        def unpack(data: bytes, start: int, stop: int, size: int) -> None:
            core(codec, memoryview(data)[start:stop], size)

        return unpack

    def close(self) -> None:
        os.close(self._fd)


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def in_threads(works: Sequence[Callable[[], Any]]) -> float:
    """Seconds that threads take, one for each work."""
    gate = threading.Barrier(len(works) + 1)

    def run(work: Callable[[], Any]) -> None:
        gate.wait()
        work()

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    gate.wait()
    start = time.perf_counter()
    for thread in threads:
        thread.join()
    return time.perf_counter() - start


@dataclass(frozen=True)
class Single:
    """Seconds of one lookup, and lookups a second."""

    floor: float
    table: float
    prepared: float
    above: float  # of prepared above the floor with the same key
    rates: dict[str, tuple[float, float]]  # with one thread, and with two


def one_by_one(
    path: Path, floor: Floor, keys: Sequence[int], rows: Sequence[int], rounds: int
) -> Single:
    query = ps.scan(path, threads=1).prepare(ps.col("key") == ps.param("k"))

    def table(key: int) -> Any:
        return ps.read_table(path, filter=ps.col("key") == key, threads=1)

    plans = [floor.plan([row]) for row in rows]
    run = floor.runner(plans)
    for key in keys:
        if not query(key).equals(table(key)):
            raise RuntimeError(f"key {key}: a prepared query and read_table differ")
    times: dict[str, list[float]] = {"floor": [], "table": [], "prepared": []}
    for _ in range(rounds):
        for key, plan in zip(keys, plans, strict=True):
            times["floor"].append(seconds(lambda p=plan: run(p)))  # type: ignore[misc]
            times["table"].append(seconds(lambda k=key: table(k)))  # type: ignore[misc]
            times["prepared"].append(seconds(lambda k=key: query(k)))  # type: ignore[misc]
    rates = {}
    for name, look in (("table", table), ("prepared", query)):

        def work(look: Callable[[int], Any] = look) -> None:
            for key in keys:
                look(key)

        best = [min(in_threads([work] * n) for _ in range(rounds)) for n in (1, 2)]
        rates[name] = len(keys) / best[0], 2 * len(keys) / best[1]
    above = [b - a for a, b in zip(times["floor"], times["prepared"], strict=True)]
    middle = {name: statistics.median(some) for name, some in times.items()}
    return Single(**middle, above=statistics.median(above), rates=rates)


@dataclass(frozen=True)
class Many:
    """Seconds of many lookups at once."""

    pages: int
    floor: float
    floor_two: float  # divided among two threads
    one: float
    two: float
    ratio_one: float  # to the floor, round by round
    ratio_two: float


def at_once(
    path: Path, floor: Floor, keys: Sequence[int], rows: Sequence[int], rounds: int
) -> Many:
    plan = floor.plan(rows)
    half = sorted(rows)[len(rows) // 2]
    parts = [floor.plan([row for row in rows if (row < half) == low]) for low in (True, False)]
    run, runs = floor.runner([plan]), [floor.runner(parts) for _ in parts]
    queries = [ps.scan(path, threads=n).prepare(ps.col("key") == ps.param("k")) for n in (1, 2)]
    for query in queries:
        if query.many(keys)["key"].to_pylist() != list(keys):
            raise RuntimeError("many: not the rows of the keys")
    times: dict[str, list[float]] = {name: [] for name in ("floor", "floor_two", "one", "two")}
    for _ in range(rounds):
        times["floor"].append(seconds(lambda: run(plan)))
        times["one"].append(seconds(lambda: queries[0].many(keys)))
        times["two"].append(seconds(lambda: queries[1].many(keys)))
        works = [partial(runs[i], parts[i]) for i in range(2)]
        times["floor_two"].append(in_threads(works))
    middle = {name: statistics.median(some) for name, some in times.items()}
    ratios = [
        statistics.median(b / a for a, b in zip(times["floor"], times[name], strict=True))
        for name in ("one", "two")
    ]
    return Many(len(plan.bodies), **middle, ratio_one=ratios[0], ratio_two=ratios[1])


def lines(codec: str, single: Single, many: Many) -> list[str]:
    def us(value: float) -> str:
        return f"{value * 1e6:,.0f} us"

    def ms(value: float) -> str:
        return f"{value * 1e3:,.1f} ms"

    (t1, t2), (p1, p2) = single.rates["table"], single.rates["prepared"]
    return [
        (
            f"| {codec} | {us(single.floor)} | {us(single.table)} | {us(single.prepared)} | **{us(single.above)}** "
            f"| {t1:,.0f} | {t2:,.0f} | {p1:,.0f} | {p2:,.0f} |"
        ),
        (
            f"| {codec} | {many.pages:,} | {ms(many.floor)} | {ms(many.floor_two)} | {ms(many.one)} | {ms(many.two)} "
            f"| {many.ratio_one:.2f}x | **{many.ratio_two:.2f}x** |"
        ),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="pageseek.bench.prepared", description=__doc__)
    parser.add_argument(
        "--folder", type=Path, default=generate.default_folder(), help="where the files are kept"
    )
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--codecs", default=",".join(CODECS), metavar="A,B")
    parser.add_argument("--table", type=Path, metavar="FILE", help="write the tables (Markdown)")
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    one = [
        "| codec | floor | read_table | prepared | above the floor | read_table: a second, one thread | two | prepared: one | two |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    several = [
        "| codec | pages | floor | floor, two threads | many, one thread | two | one, by the floor | two |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for codec in options.codecs.split(","):
        path = generate.small_pages_file(options.folder, codec, options.rows, options.rows // 2)
        every = pq.read_table(path, columns=["key"])["key"].to_numpy()
        rows = random.Random(generate.SEED).sample(range(len(every)), min(KEYS, len(every) // 2))
        keys = [int(every[row]) for row in rows]
        floor = Floor(path, codec)
        single = one_by_one(path, floor, keys[:100], rows[:100], options.rounds)
        found = lines(codec, single, at_once(path, floor, keys, rows, options.rounds))
        floor.close()
        one.append(found[0])
        several.append(found[1])
        print(*found, sep="\n", flush=True)
    text = "\n".join(
        [
            "# Prepared queries compared with a floor",
            "",
            f"Eight columns, {options.rows:,} rows, pages of 1,000 rows; the key is unique and sorted. One lookup gives one row of all columns.",
            "The floor reads and decompresses the pages of the answer, and decodes nothing. Times are medians; floor, `read_table` and the",
            "prepared query take turns with the same key. Made by `python -m pageseek.bench.prepared --table docs/lookups.md`.",
            "",
            ", ".join(str(value) for value in machine().values()) + ".",
            "",
            *one,
            "",
            f"`many` with {KEYS:,} random keys, by the floor of its different pages with one thread:",
            "",
            *several,
            "",
        ]
    )  # fmt: skip
    if options.table is not None:
        options.table.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
