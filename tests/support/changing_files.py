"""Files that become others while they are read: each answer has to be that of one version, whole, or FileChangedError.

The versions have the same size, and the same rows but for their values, so that a mixture is easily made and says so.
"""

from __future__ import annotations

import io
import itertools
import os
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import pageseek as ps
from support.object_server.server import ObjectServer
from support.remote_files import GROUPS, PATH, ROWS, Way

VERSIONS = 3
CUT = re.compile("too few for a Parquet file|not a Parquet file, or cut short")
QUERIES: list[dict[str, Any]] = [
    {},
    {"columns": ["seed", "v"]},
    {"filter": ps.col("id") == 12_345},
    {"filter": ps.col("id").between(4_000, 17_000), "columns": ["id", "seed", "text"]},
    {"filter": ps.col("v") < 1 << 38},
    {"filter": ps.col("text") > "9", "limit": 50},
]
UNLIMITED = [how for how in QUERIES if "limit" not in how]
FIGURES: list[Any] = ["count", ("id", "max"), ("v", "min"), ("seed", "max")]


class MixtureError(AssertionError):
    """An answer that is of no version."""


def version(seed: int) -> bytes:
    """A file whose pages lie where they lie in the others."""
    n = GROUPS * ROWS
    random = np.random.default_rng(seed)
    made = pa.table(
        {
            "id": np.roll(np.arange(n), 7_300 * seed),  # another page has a key in each
            "seed": np.full(n, seed),
            "v": random.integers(0, 1 << 40, n),
            "text": np.char.mod("%012d", random.integers(0, 10**12, n)),
        }
    )
    file = io.BytesIO()
    pq.write_table(
        made, file, row_group_size=ROWS, max_rows_per_page=500, write_batch_size=100,
        write_page_index=True, compression="none", use_dictionary=False,
    )  # fmt: skip
    return file.getvalue()


class Truth:
    """The versions, and the answers of each."""

    def __init__(self) -> None:
        self.data = [version(seed) for seed in range(VERSIONS)]
        assert len({len(data) for data in self.data}) == 1
        self._answers = [[ps.read_table(data, **how) for data in self.data] for how in QUERIES]
        self._figures = [
            [ps.scan(data, **how).aggregate(FIGURES) for data in self.data] for how in UNLIMITED
        ]

    def is_one(self, query: int, answer: pa.Table) -> bool:
        """Whether it is the whole answer of some version."""
        return any(answer == right for right in self._answers[query])

    def is_figure_of_one(self, query: int, answer: pa.Table) -> bool:
        """Whether the results of FIGURES are those of one version."""
        return any(answer == right for right in self._figures[query])


def read(
    truth: Truth, given: dict[str, Any], dice: random.Random, between: Callable[[], None]
) -> str:
    """Put one query at random. `between` is called while batches come, of half of the queries. What came of it."""
    query = dice.randrange(len(QUERIES))
    how = {**QUERIES[query], "threads": dice.choice([1, 2])}
    rows: list[pa.RecordBatch] = []
    try:
        if dice.random() < 0.2:
            query = dice.randrange(len(UNLIMITED))
            found = ps.scan(**given, **UNLIMITED[query]).aggregate(FIGURES)
            if not truth.is_figure_of_one(query, found):
                raise MixtureError(f"figures of {UNLIMITED[query]}: {found.to_pylist()}")
            return "right"
        if dice.random() < 0.5:
            answer = ps.read_table(**given, **how)
        else:
            reader = ps.scan(**given, **how, batch_size=1 << 12).to_reader()
            for i, batch in enumerate(reader):
                rows.append(batch)
                if i == 0 or dice.random() < 0.3:
                    between()
            answer = pa.Table.from_batches(rows, reader.schema)
    except ps.FileChangedError:
        return "changed"
    if not truth.is_one(query, answer):
        raise MixtureError(f"{QUERIES[query]}: {answer.num_rows} rows of no version")
    return "right"


# ---- on this machine


def replace(path: Path, data: bytes, dice: random.Random) -> None:
    """By another file of this name."""
    other = path.with_suffix(".new")
    other.write_bytes(data)
    os.replace(other, path)


def overwrite(path: Path, data: bytes, dice: random.Random) -> None:
    """In place, in pieces: a single call that a busy machine draws out longer than a tick of the clock is seen by nobody
    (docs/stores.md).
    """
    step = dice.choice([1 << 16, 1 << 13])
    with path.open("r+b", buffering=0) as file:
        for at in range(0, len(data), step):
            file.write(data[at : at + step])


def truncate(path: Path, data: bytes, dice: random.Random) -> None:
    """To nothing or to a part of it; then written whole."""
    with path.open("r+b", buffering=0) as file:
        file.truncate(dice.randrange(len(data)))
        time.sleep(dice.random() * 1e-3)
        file.write(data)


Change = Callable[[Path, bytes, random.Random], None]
CHANGES: list[Change] = [replace, overwrite, truncate]


def local(truth: Truth, path: Path, change: Change, times: int, seed: int) -> Counter[str]:
    """Queries of a file that changes under each of them, now between batches, now at any moment."""
    dice, found = random.Random(seed), Counter[str]()
    path.write_bytes(truth.data[0])
    others = itertools.cycle([1, 2, 0])
    took = 0.01
    left: list[bytes] = []

    def between() -> None:
        if left:
            change(path, left.pop(), dice)

    for _ in range(times):
        left.append(truth.data[next(others)])
        beside = dice.random() < 0.5
        timer = threading.Timer(dice.random() * 1.2 * took, between)
        begun = time.perf_counter()
        if beside:
            timer.start()
        try:
            found[read(truth, {"source": str(path)}, dice, between)] += 1
        except ps.CorruptFileError as error:  # it was, as it was opened
            if change is not truncate or not CUT.search(str(error)):
                raise
            found["cut short"] += 1
        finally:
            took += 0.2 * (time.perf_counter() - begun - took)
            if beside:
                timer.join()
        between()
    return found


# ---- on a server


@contextmanager
def replaced_all_the_time(
    server: ObjectServer, truth: Truth, pause: float
) -> Iterator[Counter[str]]:
    """Another version is put again and again; counts how often."""
    ended, done = threading.Event(), Counter[str]()
    dice = random.Random(3)

    def run() -> None:
        for data in itertools.cycle(truth.data):
            if ended.wait(pause * 2 * dice.random()):
                return
            server.put(PATH, data)
            done["put"] += 1

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield done
    finally:
        ended.set()
        thread.join()


def remote(
    truth: Truth, server: ObjectServer, way: Way, times: int, seed: int, pause: float = 0.03
) -> Counter[str]:
    """Queries of an object that is replaced between and during requests."""
    dice, found = random.Random(seed), Counter[str]()
    server.put(PATH, truth.data[0])
    others = itertools.cycle([1, 2, 0])

    def between() -> None:
        server.put(PATH, truth.data[next(others)])

    given = way(server)
    with replaced_all_the_time(server, truth, pause) as done:
        for _ in range(times):
            if dice.random() < 0.2:
                ps.clear_cache()
            found[read(truth, given, dice, between)] += 1
    assert done["put"] > times / 20
    return found
