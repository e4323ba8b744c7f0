"""Queries against stores that fail at random, and the memory of a slow reader."""

from __future__ import annotations

import io
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import pageseek as ps
from support.object_server.faults import Fault, Rule, status
from support.object_server.process import ServerProcess
from support.object_server.server import ObjectServer
from support.remote_files import GROUPS, PATH, ROWS, Way, content

BUSY, CUT = 0.05, 0.02  # of all answers: 503, and bodies that end in the middle
HANGS = 60.0  # seconds after which a query counts as one that hangs
TESTS = Path(__file__).resolve().parents[1]


@dataclass
class Outcome:
    """How queries ended, how long the slowest took, and how many requests were faulty."""

    ended: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    requests: int = 0
    faulty: int = 0


def run_queries(server: ObjectServer, way: Way, times: int, seed: int) -> Outcome:
    """Cold queries by key, range and whole columns, each in a thread of its own that may not take forever."""
    server.put(PATH, data := content())
    dice, made = random.Random(seed), Outcome()
    given = way(server)
    server.log.reset()
    server.faults = [
        Rule(status(503), method="GET", probability=BUSY),
        Rule(Fault("cut"), method="GET", probability=CUT),
    ]
    for _ in range(times):
        how = _query(dice)
        right = ps.read_table(data, **how)
        if dice.random() < 0.7:
            ps.clear_cache()
        begun = time.monotonic()
        made.ended[_put(given, how, right)] += 1
        made.slowest = max(made.slowest, time.monotonic() - begun)
    server.faults = None
    asked = server.log.records()
    made.requests, made.faulty = len(asked), sum(one.fault is not None for one in asked)
    return made


def _query(dice: random.Random) -> dict[str, Any]:
    key = dice.randrange(GROUPS * ROWS)
    return dice.choice(
        [
            {"filter": ps.col("id") == key},
            {"filter": ps.col("id").between(key, key + 3_000), "columns": ["v", "text"]},
            {"columns": ["v"]},
            {"filter": ps.col("v") < dice.randrange(1 << 36)},
        ]
    )


def _put(given: dict[str, Any], how: dict[str, Any], right: pa.Table) -> str:
    found: list[str] = []

    def run() -> None:
        try:
            found.append("right" if ps.read_table(**given, **how) == right else "WRONG")
        except ps.StoreError:
            found.append("refused")
        except BaseException as error:
            found.append(f"{type(error).__name__}: {error}")

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(HANGS)
    return found[0] if found else "hangs"


# ---- memory


def wide_file(groups: int, rows: int = 1 << 16) -> bytes:
    """Row groups of 2 MB that do not compress."""
    random = np.random.default_rng(0)
    made = pa.table({f"c{i}": random.integers(0, 1 << 60, groups * rows) for i in range(4)})
    file = io.BytesIO()
    pq.write_table(made, file, row_group_size=rows, compression="none", use_dictionary=False)
    return file.getvalue()


def measured(module: str, *arguments: str) -> dict[str, int]:
    """The JSON that a module prints, run in a process that returns freed memory to the system at once."""
    paths = [str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    plain = {
        "PYTHONPATH": os.pathsep.join(paths),
        "MALLOC_ARENA_MAX": "2",
        "MALLOC_MMAP_THRESHOLD_": "65536",
        "ARROW_DEFAULT_MEMORY_POOL": "system",
    }
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        env=os.environ | plain, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr)
    said: dict[str, int] = json.loads(done.stdout)
    return said


def peak(url: str, max_ahead_bytes: int, pause: float) -> dict[str, int]:
    """Of a process that reads slowly: resident memory before and at the peak, rows, bytes of the largest batch.

    Memory that is freed is given back at once, so that what is resident is in use.
    """
    return measured("support.peak", url, str(max_ahead_bytes), str(pause))


def peaks(groups: int, budgets: list[int], pause: float) -> dict[int, dict[str, int]]:
    """`peak` for several budgets, of a file on a server that is as fast as it can."""
    data = wide_file(groups)
    with ServerProcess() as server:
        server.put(PATH, data)
        return {budget: peak(server.url(PATH), budget, pause) for budget in budgets}


def long_footer(size: int) -> bytes:
    """A file of three rows with a footer of `size` bytes, which is parsed quickly."""
    file = io.BytesIO()
    with pq.ParquetWriter(file, pa.schema({"k": pa.int64()})) as writer:
        writer.write_table(pa.table({"k": [1, 2, 3]}))
        writer.add_key_value_metadata({"long": "x" * size})
    return file.getvalue()


def tails_peak(files: int, size: int, max_ahead_bytes: int, cache_bytes: int) -> dict[str, int]:
    """Resident memory before and at the peak, of a process that plans a scan of files with footers of `size` bytes."""
    data, names = long_footer(size), [f"bucket/{i}.parquet" for i in range(files + 1)]
    with ServerProcess(latency=0.01) as server:
        for name in names:
            server.put(name, data)
        limits = str(max_ahead_bytes), str(cache_bytes)
        return measured("support.tails_peak", *limits, *map(server.url, names))
