"""Proof of what Spark's driver needs for a source of 100,000 files: time to plan, memory, and the bytes of plans.

    python proofs/spark_many.py                 on this machine's disk, and in a simulated store; some minutes
    python proofs/spark_many.py --files 10000 disk

On disk, 100,000 names are hard links to a hundred files. In the store (many_names.py), as many names are made up, and each read goes to
one of these files. A query is planned again in each round, as Spark plans it, and its answer is checked. The results go to
docs/proofs.md. The command fails if an answer is wrong, if a plan sends 100 MB, if on disk it takes more than 20 s of CPU time, or if
the driver's memory grows from round to round.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import pageseek as ps
from many_names import IN_A_FOLDER, ManyNames
from pageseek.spark import load
from pageseek.spark.table import planned_scan
from results import Failed, run

PAGE = Path(__file__).resolve().parents[1] / "docs" / "proofs.md"
TITLE = "## Spark over 100,000 files"
HEAD = f"""{TITLE}

Results of `python proofs/spark_many.py`: seconds until Spark has a plan that can be executed (the least of three rounds, and the CPU time of
the driver's Python and Java), bytes that are sent to the tasks, seconds until the answer, and the memory of the driver's Python before and
after. It may not grow from the second round to the third. Each file has 100 rows of four columns. `c` has one of five values in each row, so that the footer rules out no file: the tasks look at dictionaries.

| proof | date | what was run | found |
|---|---|---|---|
"""
FILES, REAL, ROWS, ROUNDS = 100_000, 100, 100, 3
SECONDS, SENT, GROWTH = 20.0, 100e6, 32e6  # the greatest that may be, of plans and of each round


class Query(NamedTuple):
    """A query over `n` names. `wanted`: the rows, and the sum of their ids, from `n`."""

    name: str
    condition: str
    wanted: Callable[[int], tuple[int, int]]


def _all(n: int) -> tuple[int, int]:
    ids = REAL * ROWS
    return n * ROWS, n // REAL * (ids * (ids - 1) // 2)


QUERIES = [
    Query("a folder", "day = 7", lambda _: _all(IN_A_FOLDER)),
    Query("a key, by statistics", "id = 4711", lambda n: (n // REAL, n // REAL * 4711)),
    Query(
        "a value of all files",
        "c = 3",
        lambda n: (n * ROWS // 5, n // REAL * sum(range(3, REAL * ROWS, 5))),
    ),
    Query("all rows", "true", _all),
]


def write_files(folder: Path) -> None:
    """The hundred files that are there."""
    for i in range(REAL):
        k = np.arange(i * ROWS, (i + 1) * ROWS)
        table = pa.table(
            {"id": k, "x": k / 7, "s": [f"text {n}" for n in k], "c": pa.array(k % 5, pa.int32())}
        )
        pq.write_table(table, folder / f"{i:03}.parquet", write_page_index=True)


def link(names: ManyNames, folder: Path) -> None:
    """Give the files their many names on disk."""
    for name, number in names.names.items():
        path = folder / name
        if number == 0:
            path.parent.mkdir(parents=True, exist_ok=True)
        os.link(names.files[number][0], path)


def memory(spark: Any) -> int:
    """The resident bytes of this process. It holds a plan until Java has collected what stands for it there."""
    spark._jvm.System.gc()
    time.sleep(1)
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def worked(spark: Any) -> float:
    """The CPU time in seconds of this process and of its Java."""
    java = spark._jvm.java.lang.ProcessHandle.current().pid()
    spent = Path(f"/proc/{java}/stat").read_text().rpartition(")")[2].split()[11:13]
    return time.process_time() + sum(map(int, spent)) / os.sysconf("SC_CLK_TCK")


def session() -> Any:
    """A local session whose workers find this folder's modules."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = str(Path(__file__).resolve().parent)
    builder = SparkSession.builder.master("local[2]")
    for key, value in {
        "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1", "spark.sql.session.timeZone": "UTC",
    }.items():  # fmt: skip
        builder = builder.config(key, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made


def measured(spark: Any, source: Any, count: int, strict: bool) -> list[str]:
    """What each query needs. `strict`: whether the limits of time and memory hold."""
    sent: list[int] = []
    framed = planned_scan.framed

    def counted(parts: Any) -> bytearray:
        made = framed(parts)
        sent.append(len(made))
        return made

    planned_scan.framed = counted
    began, before = time.monotonic(), worked(spark)
    frame = load(spark, source)
    texts = [f"`load` {time.monotonic() - began:.1f} s ({worked(spark) - before:.1f} s)"]
    for query in QUERIES:
        plans: list[float] = []
        spent: list[float] = []
        answers: list[float] = []
        held = [memory(spark)]
        sent.clear()
        for _ in range(ROUNDS):
            began, before = time.monotonic(), worked(spark)
            asked = frame.where(query.condition).groupBy().agg({"*": "count", "id": "sum"})
            asked._jdf.queryExecution().executedPlan()  # the frame holds its plan until the next round
            plans.append(time.monotonic() - began)
            spent.append(worked(spark) - before)
            began = time.monotonic()
            found = asked.collect()[0].asDict()
            answers.append(time.monotonic() - began)
            answer = found["count(1)"], found["sum(id)"]
            if answer != query.wanted(count):
                raise Failed(f"{query.name}: {answer}, not {query.wanted(count)}")
            held.append(memory(spark))
        most = max(sent, default=0)
        grown = (
            held[-1] - held[2]
        )  # the first round fills the caches, in the second there are two plans for a moment
        text = (
            f"{query.name}: {min(plans):.1f} s ({min(spent):.1f} s), {most / 1e6:.1f} MB sent, answer {min(answers):.0f} s, "
            f"{' '.join(f'{one / 1e6:.0f}' for one in held)} MB"
        )
        print(text, flush=True)
        texts.append(text)
        if most > SENT or (strict and (min(spent) > SECONDS or grown > GROWTH)):
            raise Failed(text)
    planned_scan.framed = framed
    return texts


def over(count: int, on_disk: bool) -> tuple[str, str]:
    """The queries over so many names, on disk or in the simulated store."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as temporary:
        folder = Path(temporary, "files")
        folder.mkdir()
        write_files(folder)
        names = ManyNames(str(folder), count)
        source: Any = (names, "lake")
        if on_disk:
            link(names, Path(temporary))
            source = str(Path(temporary, "lake"))
        del names
        ps.clear_cache()
        spark = session()
        texts = measured(spark, source, count, strict=on_disk)
    return f"{count:,} names, `local[2]`", "; ".join(texts)


def main() -> int:
    """Run the proofs that are named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("proofs", nargs="*", default=["disk", "store"])
    parser.add_argument("--files", type=int, default=FILES)
    given = parser.parse_args()
    every = {
        "disk": lambda: over(given.files, True),
        "store": lambda: over(given.files, False),
    }
    return run(every, given.proofs, PAGE, TITLE, lambda before: f"{before.rstrip()}\n\n{HEAD}")


if __name__ == "__main__":
    sys.exit(main())
