"""The first query of a session, in processes of their own: what importing, the classes of Java and the start of workers cost.

`python -m pageseek.bench.spark --case "first query: point lookup"` runs it. A process is one of

    python -m pageseek.bench.first_query WHO PATH CONDITION MASTER

WHO is "spark" or "pageseek". It starts a session, which is not counted, then runs one query, and prints JSON: the milliseconds of the
query, those of a Python job that does nothing after it, the CPU time of either in all processes, a checksum of the rows, and who read.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

CONDITIONS: dict[str, Callable[[int], str]] = {
    "first query: point lookup": lambda rows: f"id = {rows // 3}",
    "first query: 0.1 % range": lambda rows: (
        f"id between {rows // 2} and {rows // 2 + rows // 1000}"
    ),
}
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.memory": "4g",
}


def compared(path: str, rows: int, names: Sequence[str], rounds: int, master: str) -> None:
    """Print the table of these cases. Processes of Spark's own reader alternate with those of pageseek."""
    print("| case | Spark: query / no-op Python job | pageseek | quicker | CPU time | read by |")
    print("|---|---|---|---|---|---|")
    for name in names:
        condition = CONDITIONS[name](rows)
        runs: dict[str, list[dict[str, Any]]] = {"spark": [], "pageseek": []}
        for number in range(rounds):
            for who in ("spark", "pageseek") if number % 2 else ("pageseek", "spark"):
                runs[who].append(_run(who, path, condition, master))
        if len({one["rows"] for found in runs.values() for one in found}) > 1:
            raise SystemExit(f"{name}: the rows are not the same in all processes")
        way = runs["pageseek"][0]["way"]

        def median(who: str, key: str, runs: Mapping[str, list[dict[str, Any]]] = runs) -> float:
            return float(statistics.median(one[key] for one in runs[who]))

        # a query that Python tasks answer cannot be quicker than the start of a worker
        idle = 1 if way == "tasks" else 0
        allowed = median("spark", "query") + idle * median("spark", "job")
        cpu = median("spark", "query_cpu") + idle * median("spark", "job_cpu")
        print(
            f"| {name} | {median('spark', 'query'):.0f} / {median('spark', 'job'):.0f} | {median('pageseek', 'query'):.0f} | "
            f"{allowed / median('pageseek', 'query'):.2f} | {cpu / median('pageseek', 'query_cpu'):.2f} | {way} |",
            flush=True,
        )


def _run(who: str, path: str, condition: str, master: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "pageseek.bench.first_query", who, path, condition, master]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    made: dict[str, Any] = json.loads(done.stdout.decode().splitlines()[-1])
    return made


def cpu_seconds() -> float:
    """The CPU time of this process and of those that it has started, and they; 0 where the system has no `/proc`."""
    parents, used = {}, {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        number = int(entry.parent.name)
        parents[number], used[number] = int(fields[1]), sum(map(int, fields[11:15]))
    ours, more = set(), {os.getpid()}
    while more:
        ours |= more
        more = {one for one, parent in parents.items() if parent in more} - ours
    return sum(used.get(one, 0) for one in ours) / os.sysconf("SC_CLK_TCK")


def main(who: str, path: str, condition: str, master: str) -> None:
    """One process."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.master(master).config(map=SETTINGS).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    time.sleep(1)  # what the JVM does of its own accord after the start
    found: dict[str, Any] = {"way": "Spark's reader"}

    def measured(name: str, act: Callable[[], Any]) -> Any:
        cpu, start = cpu_seconds(), time.perf_counter()
        made = act()
        found[name] = (time.perf_counter() - start) * 1000
        found[f"{name}_cpu"] = (cpu_seconds() - cpu) * 1000
        return made

    frames = []

    def query() -> list[Any]:
        if who == "pageseek":
            from pageseek.spark import load

            frame = load(spark, path)
        else:
            frame = spark.read.parquet(path)
        frames.append(frame.where(condition))
        rows: list[Any] = frames[0].collect()
        return rows

    rows = measured("query", query)
    found["rows"] = zlib.crc32("\n".join(sorted(map(str, rows))).encode())
    if who == "pageseek":
        found["way"] = way_of(frames[0])
    idle = spark.range(10).mapInArrow(lambda batches: batches, "id long")
    measured("job", idle.count)
    print(json.dumps(found), flush=True)
    spark.stop()


def way_of(frame: Any) -> str:
    """By whom a query of `load` is read."""
    plan = frame._jdf.queryExecution().executedPlan().toString()
    ways = (("LocalTableScan", "driver"), ("leaves to Spark's reader", "Spark's reader"))
    return next((told for mark, told in ways if mark in plan), "tasks")


if __name__ == "__main__":
    main(*sys.argv[1:])
