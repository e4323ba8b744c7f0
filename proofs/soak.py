"""A process that answers queries of many kinds for half an hour: does its memory stay flat, does it keep descriptors or threads?

    python proofs/soak.py                 30 minutes
    python proofs/soak.py --minutes 5     a try, which writes no result; in less time memory is still growing to its usual size

Threads put random queries to local files, an open file, folders, files with attached indexes, bytes in memory and an object server in another
process, which fails now and then. Some leave their batches half way, some files change. Each answer is compared with that of
pyarrow on the same rows. The result goes into docs/proofs.md, dated.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import io
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import pageseek as ps
from results import Failed, run

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
import contextlib

from support.object_server.faults import Fault, Rule, Rules, status
from support.object_server.process import ServerProcess

ROOT = Path(__file__).resolve().parent.parent
PAGE, TITLE = ROOT / "docs" / "proofs.md", "## Half an hour of mixed queries\n"
HEAD = f"""{TITLE}
Results of `python proofs/soak.py`: threads put random queries to local files, a folder of 40 files, files with attached indexes, bytes
in memory and an object server that fails now and then; some leave their batches half way, some files are replaced. Every answer is compared
with pyarrow's. *Memory* is the resident memory at the end of the first fifth, in the middle, and at the end; the command fails if the
median of the last fifth is more than {{more:.0%}} above that of the second, if descriptors or threads grow, or if an answer is wrong.

| proof | date | what was run | found |
|---|---|---|---|
"""
MORE = 0.05  # growth that counts as none: allocators keep what they had
ROWS, GROUP, THREADS = 120_000, 20_000, 4
COLOURS = ["red", "crimson", "blue", "green", "white"]
Pick = Callable[[pa.Table], pa.Table]


def table(seed: int) -> pa.Table:
    """The rows of one file: a sorted key, a key without order, and payload with nulls, texts and lists."""
    rng = np.random.default_rng(seed)
    unsorted = rng.permutation(ROWS) * 3
    return pa.table(
        {
            "id": np.arange(ROWS) + seed * ROWS,
            "other": unsorted,
            "name": [f"n{value:07}" for value in unsorted],
            "colour": [COLOURS[i] for i in rng.integers(0, len(COLOURS), ROWS)],
            "price": pa.array(rng.random(ROWS), mask=rng.random(ROWS) < 0.1),
            "tags": [["a", "b"][: i % 3] for i in range(ROWS)],
        }
    )


def content(rows: pa.Table) -> bytes:
    """A file of these rows, with a page index, in memory."""
    file = io.BytesIO()
    pq.write_table(
        rows, file, row_group_size=GROUP, write_page_index=True, data_page_size=16_384,
        write_batch_size=1_000, compression="zstd",
    )  # fmt: skip
    return file.getvalue()


@dataclass(frozen=True)
class Query:
    """A filter in the forms of pageseek and of pyarrow."""

    ours: Any
    theirs: pc.Expression


def queries(rng: random.Random, seed: int) -> Query:
    """A random filter: a key, a range, a value without order, a few values, a text."""
    field, key = pc.field, seed * ROWS + rng.randrange(ROWS)
    other = rng.randrange(ROWS) * 3 + (rng.random() < 0.3)
    return rng.choice(
        [
            Query(ps.col("id") == key, field("id") == key),
            Query(f"id = {key}", field("id") == key),
            Query(
                ps.col("id").between(key, key + 900),
                (field("id") >= key) & (field("id") <= key + 900),
            ),
            Query(ps.col("other") == other, field("other") == other),
            Query(f"name = 'n{other:07}'", field("name") == f"n{other:07}"),
            Query(ps.col("other").isin([other, other + 3]), field("other").isin([other, other + 3])),
            Query(
                "colour = 'red' and price < 0.001", (field("colour") == "red") & (field("price") < 0.001)
            ),
            Query(f"name like 'n{other // 1000:04}%'", pc.starts_with(field("name"), f"n{other // 1000:04}")),
            Query("price is null and id < 500", field("price").is_null() & (field("id") < 500)),
        ]
    )  # fmt: skip


class Soak:
    """The sources, the rows that they have, and what a thread does with one of them."""

    def __init__(self, folder: Path, server: ServerProcess) -> None:
        self.folder, self.server = folder, server
        self.rows = [table(seed) for seed in range(3)]
        bodies = [content(rows) for rows in self.rows]
        self.memory = bodies[0]
        (folder / "plain.parquet").write_bytes(bodies[0])
        (folder / "indexed.parquet").write_bytes(bodies[1])
        ps.index.attach(
            folder / "indexed.parquet", lookup=["other", "name"], bitmap=["colour"], bloom=["name"], in_place=True
        )  # fmt: skip
        (folder / "many").mkdir()
        step = ROWS // 40
        for i in range(40):
            pq.write_table(
                self.rows[0].slice(i * step, step), folder / "many" / f"{i:02}.parquet", write_page_index=True
            )  # fmt: skip
        for seed, body in enumerate(bodies):
            server.put(f"bucket/{seed}.parquet", body)
        self.bodies = bodies
        (folder / "open.parquet").write_bytes(bodies[2])
        self.opened = open(folder / "open.parquet", "rb")  # noqa: SIM115 (all threads share it)
        self.done: Counter[str] = Counter()
        self._lock = threading.Lock()
        self.prepared = ps.scan(folder / "plain.parquet").prepare(ps.col("id") == ps.param("k"))

    def source(self, rng: random.Random) -> tuple[Any, int]:
        """A source, and the number of its rows' table."""
        remote = rng.randrange(3)
        return rng.choice(
            [
                (self.folder / "plain.parquet", 0),
                (self.folder / "indexed.parquet", 1),
                (self.folder / "many", 0),
                (self.memory, 0),
                (self.opened, 2),
                (self.server.url(f"bucket/{remote}.parquet"), remote),
                (self.server.url(f"bucket/{remote}.parquet"), remote),
            ]
        )

    def once(self, rng: random.Random) -> None:
        """One query of a random kind; raises AssertionError where its answer is wrong."""
        kind = rng.choice(
            ["rows", "rows", "rows", "count", "least", "batches", "half", "prepared", "aio", "take", "changed", "broken", "dataset"]
        )  # fmt: skip
        getattr(self, f"_{kind}")(rng)
        with self._lock:
            self.done[kind] += 1

    def _rows(self, rng: random.Random) -> None:
        source, seed = self.source(rng)
        query = queries(rng, seed)
        columns = rng.choice([None, ["id", "name"], ["price"], ["tags", "colour"]])
        got = ps.read_table(source, columns=columns, filter=query.ours)
        wanted = self.rows[seed].filter(query.theirs)
        self._same(got, wanted if columns is None else wanted.select(columns), query)

    def _same(self, got: pa.Table, wanted: pa.Table, query: Any) -> None:
        assert got.num_rows == wanted.num_rows and got.to_pydict() == wanted.to_pydict(), query

    def _count(self, rng: random.Random) -> None:
        source, seed = self.source(rng)
        query = queries(rng, seed)
        wanted = self.rows[seed].filter(query.theirs).num_rows
        assert ps.scan(source, filter=query.ours).count_rows() == wanted, query

    def _least(self, rng: random.Random) -> None:
        source, seed = self.source(rng)
        got = ps.scan(source).aggregate(["count", ("price", "min"), ("id", "max")]).to_pylist()[0]
        rows = self.rows[seed]
        wanted = (ROWS, pc.min(rows["price"]).as_py(), pc.max(rows["id"]).as_py())
        assert tuple(got.values()) == wanted, got

    def _batches(self, rng: random.Random) -> None:
        source, seed = self.source(rng)
        scan = ps.scan(source, columns=["id", "other"], batch_size=rng.choice([1_000, 50_000]))
        total = sum(pc.sum(batch.column("other")).as_py() for batch in scan.to_batches())
        assert total == pc.sum(self.rows[seed]["other"]).as_py()

    def _half(self, rng: random.Random) -> None:
        source, _ = self.source(rng)
        batches: Iterator[pa.RecordBatch] = ps.scan(source, batch_size=5_000).to_batches()
        for _ in range(rng.randrange(1, 4)):
            assert next(batches).num_rows
        # and the rest is never taken

    def _prepared(self, rng: random.Random) -> None:
        key = rng.randrange(ROWS)
        self._same(self.prepared(key), self.rows[0].slice(key, 1), key)

    def _aio(self, rng: random.Random) -> None:
        keys = [rng.randrange(ROWS) for _ in range(8)]

        async def all_of_them() -> list[pa.Table]:
            return list(await asyncio.gather(*(self.prepared.aio(key) for key in keys)))

        for key, got in zip(keys, asyncio.run(all_of_them()), strict=True):
            self._same(got, self.rows[0].slice(key, 1), key)

    def _take(self, rng: random.Random) -> None:
        source, seed = self.source(rng)
        numbers = sorted({rng.randrange(ROWS) for _ in range(5)})
        self._same(ps.scan(source).take(numbers).to_table(), self.rows[seed].take(numbers), numbers)

    def _changed(self, rng: random.Random) -> None:
        """A file of this thread's own is replaced, and the new rows are read."""
        path = self.folder / f"changing-{threading.get_ident()}.parquet"
        for seed in rng.sample(range(3), 2):
            beside = path.with_suffix(".new")
            beside.write_bytes(self.bodies[seed])
            os.replace(beside, path)
            query = queries(rng, seed)
            got = ps.read_table(path, filter=query.ours)
            self._same(got, self.rows[seed].filter(query.theirs), query)

    def _dataset(self, rng: random.Random) -> None:
        """As other engines read: a dataset of pyarrow, asked for columns and by a filter."""
        source, seed = self.source(rng)
        query = queries(rng, seed)
        got = ps.dataset(source).to_table(columns=["id", "name"], filter=query.theirs)
        wanted = self.rows[seed].filter(query.theirs).select(["id", "name"])
        self._same(got, wanted, query)

    def _broken(self, rng: random.Random) -> None:
        """Bytes that were flipped: rows, or an error of pageseek."""
        body = bytearray(self.memory)
        for _ in range(3):
            body[rng.randrange(len(body))] ^= 1 << rng.randrange(8)
        with contextlib.suppress(ps.PageseekError):
            ps.read_table(bytes(body), filter=queries(rng, 0).ours)


def resident() -> int:
    """The resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@dataclass
class Sample:
    """What the process held at one moment."""

    memory: int
    descriptors: int
    threads: int


def sampled() -> Sample:
    """What the process holds now."""
    gc.collect()
    return Sample(resident(), len(os.listdir("/proc/self/fd")), threading.active_count())


def soak(minutes: float) -> tuple[str, str]:
    """Query until the time is over."""
    faults = Rules(
        [
            Rule(status(503), probability=0.01),
            Rule(Fault("cut"), probability=0.005),
            Rule(Fault("close"), probability=0.005),
        ]
    )
    stop = threading.Event()
    samples: list[Sample] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        ServerProcess() as server,
        ThreadPoolExecutor(THREADS) as pool,
    ):
        soaked = Soak(Path(folder), server)
        server.faults = faults

        def work(seed: int) -> None:
            rng = random.Random(seed)
            while not stop.is_set():
                try:
                    soaked.once(rng)
                except BaseException:
                    stop.set()
                    raise

        workers = [pool.submit(work, seed) for seed in range(THREADS)]
        end = time.monotonic() + minutes * 60
        pause = minutes * 60 / 50
        while time.monotonic() < end and not stop.is_set():
            stop.wait(min(pause, max(end - time.monotonic(), 0)))
            samples.append(sampled())
            print(f"  {soaked.done.total():>8,} queries, {samples[-1].memory / 2**20:,.0f} MiB, "
                  f"{samples[-1].descriptors} descriptors, {samples[-1].threads} threads", flush=True)  # fmt: skip
        stop.set()
        for worker in workers:
            worker.result()
    return _judged(minutes, samples, soaked.done)


def _judged(minutes: float, samples: list[Sample], done: Counter[str]) -> tuple[str, str]:
    fifth = max(len(samples) // 5, 1)

    def median(part: list[Sample], what: str) -> float:
        return float(np.median([getattr(one, what) for one in part]))

    early, late = samples[fifth : 2 * fifth], samples[-fifth:]
    for what, slack in (("memory", 8 << 20), ("descriptors", 8), ("threads", 2)):
        before, after = median(early, what), median(late, what)
        if after > before * (1 + MORE) + slack:
            raise Failed(f"{what} grew from {before:,.0f} to {after:,.0f}")
    mib = [
        one.memory / 2**20 for one in (samples[fifth - 1], samples[len(samples) // 2], samples[-1])
    ]
    kinds = ", ".join(f"{n:,} {kind}" for kind, n in sorted(done.items()))
    return (
        f"{minutes:.0f} minutes, {THREADS} threads, {done.total():,} queries: {kinds}",
        (
            f"no wrong answer; memory {mib[0]:,.0f}, {mib[1]:,.0f}, {mib[2]:,.0f} MiB; "
            f"descriptors {median(early, 'descriptors'):.0f}, {median(late, 'descriptors'):.0f}; "
            f"threads {median(early, 'threads'):.0f}, {median(late, 'threads'):.0f}"
        ),
    )


def main(arguments: list[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=30)
    given = parser.parse_args(arguments)
    if given.minutes < 30:
        print(*soak(given.minutes), sep="\n")
        return 0
    head = HEAD.format(more=MORE)
    proofs = {"soak": lambda: soak(given.minutes)}
    return run(proofs, [], PAGE, TITLE, lambda before: f"{before.rstrip()}\n\n{head}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
