"""Spark's own reader and `pageseek.spark.load`, side by side in one session.

    python -m pageseek.bench.spark [--folder F] [--rows 10000000] [--rounds 5] [--case NAME ...] [--delay MS]

Each case runs with a fresh DataFrame, as a script makes it, and again on the same DataFrame. Rounds alternate the two.
The table has medians in milliseconds, and how much quicker pageseek is; below 1.0 it is slower. The first query of a session is
measured in processes of its own (first_query.py). With `--delay` the files lie
far away (slow_files.py), and the driver and the workers have forgotten all about them when a DataFrame is made.

The answers of the two are compared, outside of what is timed: rows that are collected, and of a sink the number of all rows and
the sum of their hashes.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pageseek.bench import generate
from pageseek.bench.first_query import CONDITIONS, SETTINGS, compared, way_of
from pageseek.bench.slow_files import FarFolder, far

MANY_FILES, IN_EACH = 500, 20_000
Case = Callable[[Any, dict[str, Any]], Any]


def make(folder: Path, rows: int) -> dict[str, Any]:
    """The files, made once, and values that are in them."""
    one, many = generate.events_file(folder, rows), folder / f"many-{MANY_FILES}"
    if not many.exists():
        made = many.with_suffix(".tmp")
        made.mkdir(parents=True, exist_ok=True)
        for i in range(MANY_FILES):
            part = generate.event_table(i * IN_EACH, IN_EACH).drop(["payload"])
            words = pa.array([generate.EVENT_CATEGORIES[i % 12]] * IN_EACH)
            part = part.set_column(5, "category", words)
            options = generate.EVENT_WRITER | {"compression": "zstd"}
            pq.write_table(part, made / f"{i:03d}.parquet", **options)
        made.rename(many)
    file = pq.ParquetFile(one)
    taken = file.read_row_group(file.num_row_groups // 2, columns=["uid"]).column("uid")
    ks = np.random.default_rng(5).integers(0, generate.EVENT_KEYS, 100).tolist()
    small = str(generate.small_files(folder))
    return {
        "one": str(one),
        "many": str(many),
        "small": small,
        "lineitem": str(generate.lineitem_large_groups(folder, scale=rows / 10_000_000)),
        "rows": rows,
        "uid": taken[777].as_py(),
        "ks": ks,
    }


def _sink(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _collect(frame: Any) -> list[Any]:
    rows: list[Any] = frame.collect()
    return rows


def _answer(frame: Any, found: list[Any] | None) -> tuple[Any, ...]:
    """What is compared: the rows that an action has collected, in an order of their own, else a hash of all rows."""
    if found is not None:
        return frame.columns, sorted(map(str, found))
    hashes = frame.selectExpr("cast(xxhash64(*) as decimal(38, 0)) as hash")
    return frame.columns, hashes.selectExpr("count(*)", "sum(hash)").collect()


def _forget(spark: Any) -> None:
    """Have the driver and all workers forget the files: Spark gives tasks to the workers in turn."""
    from pageseek import clear_cache

    def forgotten(batches: Any) -> Any:
        from pageseek import cache_info, clear_cache

        for batch in batches:
            files = cache_info().files
            clear_cache()
            time.sleep(0.05)  # so that tasks at the same time have workers of their own
            yield pa.RecordBatch.from_arrays([pa.array([files] * len(batch))], names=["files"])

    clear_cache()
    tasks = 4 * spark.sparkContext.defaultParallelism
    kept = True
    while kept:
        told = spark.range(0, tasks, 1, tasks).mapInArrow(forgotten, "files long").collect()
        kept = any(row.files for row in told)


LOOKUP = "10,000 keys, 500 files"  # by `lookup`, where Spark joins
CASES: dict[str, tuple[str, Case, Callable[[Any], Any]]] = {
    "point lookup": ("one", lambda f, v: f.where(f"id = {v['rows'] // 3}"), _collect),
    "point lookup, 500 files": ("many", lambda f, v: f.where("id = 4711000"), _collect),
    "0.1 % range": ("one", lambda f, v: f.where(f"id between {v['rows'] // 2} and {v['rows'] // 2 + v['rows'] // 1000}"), _collect),
    "scattered rows, wide": ("one", lambda f, v: f.where(f"k in ({','.join(map(str, v['ks']))})"), _collect),
    "unique string: there": ("one", lambda f, v: f.where(f"uid = '{v['uid']}'"), _collect),
    "unique string: absent": ("one", lambda f, v: f.where(f"uid = '{v['uid'][:-1]}z'"), _collect),
    "500 files, one category": ("many", lambda f, v: f.where("category = 'category-07' and dev = 17"), _collect),
    "500 files, category aggregated": ("many", lambda f, v: f.where("category = 'category-07'").groupBy("dev").count(), _collect),
    "count(*)": ("one", lambda f, v: f.groupBy().count(), _collect),
    "group-by of two columns": ("one", lambda f, v: f.groupBy("category", "dev").count(), _collect),
    "full scan to a sink": ("one", lambda f, v: f, _sink),
    "lineitem to a sink": ("lineitem", lambda f, v: f, _sink),
    "lineitem, a month, 3 columns": ("lineitem", lambda f, v: f.where("l_shipdate between '1995-03-01' and '1995-03-31'").select("l_extendedprice", "l_discount", "l_quantity"), _sink),
    "range of 10 %, all columns": ("one", lambda f, v: f.where(f"id < {v['rows'] // 10}"), _sink),
    "10,000 small files to a sink": ("small", lambda f, v: f, _sink),
    "10,000 small files, 2 %": ("small", lambda f, v: f.where("quantity = 7"), _sink),
    LOOKUP: ("many", lambda f, v: f.join(v["many keys"], "id"), _collect),
    "join with 100 keys": ("many", lambda f, v: f.join(v["keys"], "id"), _collect),
}  # fmt: skip


def run(
    spark: Any, values: dict[str, Any], names: Sequence[str], rounds: int, away: FarFolder | None
) -> None:
    """Print the table. `away`: the folder from afar."""
    from pyspark.sql.functions import broadcast

    from pageseek.spark import load, lookup

    values["keys"] = broadcast(spark.range(100).selectExpr("id * 90001 as id").where("id >= 0"))
    random = np.random.default_rng(7).choice(MANY_FILES * IN_EACH, 10_000, replace=False)
    many_keys = spark.createDataFrame(pa.table({"id": random})).cache()
    values["many keys"] = broadcast(many_keys)
    openers = {
        "spark": lambda path: spark.read.parquet(path if away is None else away.of_spark(path)),
        "pageseek": lambda path: load(spark, path if away is None else away.of_pageseek(path)),
    }
    print("| case | Spark: fresh / reused | pageseek | quicker | read by |")
    print("|---|---|---|---|---|")
    for name in names:
        source, case, act = CASES[name]
        times: dict[tuple[str, str], list[float]] = {}
        wanted: tuple[Any, ...] | None = None
        for number in range(rounds + 1):
            for who in ("spark", "pageseek") if number % 2 else ("pageseek", "spark"):
                if away is not None:
                    _forget(spark)
                start = time.perf_counter()
                if name == LOOKUP and who == "pageseek":
                    path = values[source] if away is None else away.of_pageseek(values[source])
                    frame = lookup(spark, path, many_keys, "id")
                else:
                    frame = case(openers[who](values[source]), values)
                found = act(frame)
                middle = time.perf_counter()
                again = act(frame)
                end = time.perf_counter()
                if number:  # the first round warms up
                    times.setdefault((who, "fresh"), []).append(middle - start)
                    times.setdefault((who, "reused"), []).append(end - middle)
                if found is not None or not number:
                    answers = [_answer(frame, rows) for rows in (found, again)]
                    wanted = answers[0] if wanted is None else wanted
                    if answers != [wanted, wanted]:
                        raise SystemExit(f"{name}: {who} has other rows than those before")
                if who == "pageseek":
                    way = way_of(frame)
        ms = {key: statistics.median(found) * 1000 for key, found in times.items()}
        ratios = [ms["spark", kind] / ms["pageseek", kind] for kind in ("fresh", "reused")]
        print(
            f"| {name} | {ms['spark', 'fresh']:.0f} / {ms['spark', 'reused']:.0f} | "
            f"{ms['pageseek', 'fresh']:.0f} / {ms['pageseek', 'reused']:.0f} | "
            f"{ratios[0]:.2f} / {ratios[1]:.2f} | {way} |",
            flush=True,
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the files where they are missing, and run the cases."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=Path("bench-data"))
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--case", action="append", choices=[*CASES, *CONDITIONS])
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--delay", type=float, metavar="MS", help="milliseconds at each request")
    given = parser.parse_args(arguments)
    given.folder.mkdir(parents=True, exist_ok=True)
    values = make(given.folder.resolve(), given.rows)
    wanted = given.case or [*CASES, *CONDITIONS]
    first = [name for name in wanted if name in CONDITIONS]
    if first and given.delay is None:
        compared(values["one"], given.rows, first, given.rounds, given.master)
    if len(wanted) == len(first):
        return 0
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = dict(SETTINGS)
    with ExitStack() as stack:
        away = None
        if given.delay is not None:
            away = stack.enter_context(far(given.folder, given.delay / 1000))
            settings |= away.settings
        spark = SparkSession.builder.master(given.master).config(map=settings).getOrCreate()
        stack.callback(spark.stop)
        spark.sparkContext.setLogLevel("OFF")
        spark.range(10).mapInArrow(lambda batches: batches, "id long").count()  # workers are up
        run(spark, values, [name for name in wanted if name in CASES], given.rounds, away)
    return 0


if __name__ == "__main__":
    sys.exit(main())
