"""Proof that SQL has the answers of Spark's own reader through every door: `load`, `read`, the format and SQL views.

    python proofs/spark_sql.py [--connect] [--predicates 2000] [--seed 1] [--corpus FOLDER] [--most-files 200]

Random predicates over generated files of many kinds and over files of the corpus, in three time zones, with and without ANSI
rules and case sensitivity. Rows are compared as multisets. Where Spark's own reader fails (a cast of ANSI), ours may give
rows: a filter that was pushed has ruled out the row at fault, as Spark's own pushdown does. Conditions that Spark fails to hand to any table of
DataSource V2 are counted apart. `--connect`: in a session of
Spark Connect, whose server is started for it. Exit code 1 if rows differ, or a door refuses what Spark answers.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from pageseek.spark import load, register
from pageseek.spark.table import native
from support import sql_doors
from support.random_sql import in_other_case, leaves_of, predicate
from support.sql_files import write_files

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT.parent / "shared" / "conformance" / "corpus" / "valid"
ZONES = "UTC", "America/New_York", "Asia/Kolkata"
GROUP = 10  # predicates that are asked in one job
WAYS: tuple[dict[str, Any], ...] = (
    {},
    {"local": False, "native": False},
    {"native": True},  # for small files, too
)
MANY_VALUES = native.MANY_VALUES
MOST_ROWS, MOST_COLUMNS = 2_000, 40


def session(connect: bool) -> Any:
    """A local session, Classic or Connect."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    if connect:
        os.environ["SPARK_TESTING"] = "1"  # a free port
    builder = SparkSession.builder
    builder = builder.remote("local[2]") if connect else builder.master("local[2]")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.timeType.enabled": "true",
        "spark.driver.memory": "2g",
        "spark.log.level": "OFF",
    }.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def corpus_files(spark: Any, corpus: Path, rng: random.Random, most: int) -> dict[str, str]:
    """Small files of the corpus that Spark reads and `load` has the same schema of."""
    made: dict[str, str] = {}
    every = sorted(corpus.glob("*.parquet"))
    rng.shuffle(every)
    for path in every:
        if len(made) == most:
            break
        if path.stat().st_size > 1 << 20:
            continue
        try:
            own = spark.read.parquet(str(path))
            names = {name.lower() for name in own.columns}
            fits = 0 < len(names) == len(own.columns) <= MOST_COLUMNS and own.count() <= MOST_ROWS
            if fits and load(spark, str(path)).schema == own.schema and leaves_of(own):
                made[path.name] = str(path)
        except Exception:  # noqa: BLE001 (what one of them does not read is another proof's)
            continue
    return made


def ask(
    spark: Any,
    path: str,
    rng: random.Random,
    wanted: dict[str, str],
    way: dict[str, Any],
    count: int,
) -> tuple[collections.Counter[str], list[str]]:
    """Some predicates over one file, through all doors, with some settings: what was counted, and what is wrong."""
    own = spark.read.parquet(path)
    leaves = leaves_of(own)
    native.MANY_VALUES = 0 if way.get("native") else MANY_VALUES
    counts: collections.Counter[str] = collections.Counter()
    wrong = []
    columns = rng.sample(own.columns, rng.randint(1, len(own.columns)))
    conditions = [predicate(rng, leaves) for _ in range(count)]
    with sql_doors.settings(spark, wanted):
        if wanted["spark.sql.caseSensitive"] == "false":
            conditions = [in_other_case(rng, condition) for condition in conditions]
        with sql_doors.settings(spark, sql_doors.ORACLE):
            theirs = sql_doors.answers(sql_doors.native(spark, path, columns), conditions)
        counts["refused by Spark"] = sum(isinstance(one, Exception) for one in theirs)
        counts["predicates"] = len(conditions)
        counts["rows"] = sum(one.total() for one in theirs if not isinstance(one, Exception))
        for name, door in sql_doors.doors(spark, path, columns, **way).items():
            ours = sql_doors.answers(door, conditions)
            for condition, one, other in zip(conditions, theirs, ours, strict=True):
                failed = isinstance(one, Exception)
                counts["rows where Spark fails"] += failed and not isinstance(other, Exception)
                said = sql_doors.difference(one, other)
                counts["answers"] += not failed
                if said.startswith("refused") and "V2ExpressionBuilder" in str(other):
                    counts["fails in Spark before the source is asked"] += 1
                elif said:
                    counts["refused" if said.startswith("refused") else "WRONG"] += 1
                    wrong.append(f"{name} {way} {columns} where {condition}\n    {said}")
    return counts, wrong


def main(arguments: list[str]) -> int:
    """Run the proof."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--connect", action="store_true")
    parser.add_argument("--predicates", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--corpus", type=Path, default=CORPUS)
    parser.add_argument("--most-files", type=int, default=200)
    given = parser.parse_args(arguments)
    start, counts = time.perf_counter(), collections.Counter[str]()
    spark = session(given.connect)
    register(spark)
    with tempfile.TemporaryDirectory() as folder:
        files = write_files(spark, Path(folder))
        of_corpus = corpus_files(spark, given.corpus, random.Random(given.seed), given.most_files)
        counts["files"] = len(files) + len(of_corpus)
        named = list(files.items()), list(of_corpus.items()) or list(files.items())
        every = list(itertools.product(ZONES, ("true", "false"), ("true", "false")))
        for number in range(-(-given.predicates // GROUP)):
            rng = random.Random(f"{given.seed} {number}")
            name, path = rng.choice(named[number % 2])
            zone, ansi, case = every[number % len(every)]
            wanted = {
                "spark.sql.session.timeZone": zone,
                "spark.sql.ansi.enabled": ansi,
                "spark.sql.caseSensitive": case,
            }
            found, wrong = ask(spark, path, rng, wanted, rng.choice(WAYS), GROUP)
            counts += found
            for one in wrong:
                print(f"WRONG {name} {zone} ansi={ansi} case={case} {one}", flush=True)
            if number % 10 == 9:
                print(f"{time.perf_counter() - start:.0f} s: {dict(counts)}", flush=True)
    print(f"{time.perf_counter() - start:.0f} s: {dict(counts)}")
    return int(bool(counts["WRONG"] or counts["refused"] or not counts["answers"]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
