"""Proof that queries in Spark have the answers of Spark's own reader: on the corpus, and by random SQL.

    python proofs/spark.py corpus [--files 1000] [--seed 1]
    python proofs/spark.py sql [--predicates 2000] [--seed 1]

`corpus`: every valid file that Spark reads, through `load` and `read`: the schema, all rows, rows of a few predicates by
each way of reading, counts and extremes. `sql`: random predicates over generated files in three time zones, with and
without ANSI rules and case sensitivity. Exit code 1 if an answer differs.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import os
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from support import spark_sql

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT.parent / "shared" / "conformance" / "corpus" / "valid"
ZONES = "UTC", "America/New_York", "Asia/Kolkata"
MOST_ROWS, MOST_COLUMNS = 50_000, 60


def session() -> Any:
    """A local session."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.parquet.filterPushdown": "false",  # with it, Spark loses rows for NaN
        "spark.sql.inMemoryColumnarStorage.partitionPruning": "false",  # as with this
        "spark.sql.timeType.enabled": "true",
        "spark.sql.files.ignoreCorruptFiles": "false",
        "spark.driver.memory": "3g",
    }.items():
        builder = builder.config(key, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    return made


def rows(frame: Any) -> list[str]:
    """The rows, as texts in one order."""
    return sorted(map(repr, frame.collect()))


def predicates(frame: Any, found: list[Any], rng: random.Random) -> Iterator[Any]:
    """Conditions on top-level columns with values of rows."""
    from pyspark.sql import functions as f
    from pyspark.sql import types as s

    if not found:
        return
    for field in frame.schema:
        if isinstance(field.dataType, (s.ArrayType, s.MapType, s.StructType, s.NullType)):
            continue
        column = f.col("`" + field.name.replace("`", "``") + "`")
        value = rng.choice(found)[field.name]
        yield column.isNull()
        if value is None or not isinstance(field.dataType, s.AtomicType):
            continue
        literal = f.lit(value).cast(field.dataType)
        op = rng.choice(("=", "<", ">=", "<=>", "!="))
        yield {
            "=": column == literal,
            "<": column < literal,
            ">=": column >= literal,
            "<=>": column.eqNullSafe(literal),
            "!=": column != literal,
        }[op]


def compare_file(spark: Any, path: Path, rng: random.Random, counts: Any) -> None:
    """One file of the corpus by each way of reading."""
    from pageseek.base.errors import PageseekError
    from pageseek.spark import load
    from pageseek.spark.table import native

    try:
        own = spark.read.parquet(str(path))
        if len(own.columns) > MOST_COLUMNS or len(set(own.columns)) < len(own.columns):
            counts["too wide"] += 1
            return
        if own.count() > MOST_ROWS:
            counts["too long"] += 1
            return
        own = own.cache()
        everything = own.collect()
    except Exception:  # noqa: BLE001 (whatever Spark does not read)
        counts["not read by Spark"] += 1
        return
    ways: dict[str, dict[str, Any]] = {
        "driver": {"native": False},
        "tasks": {"native": False, "local": False},
        "native": {},
    }
    for way, options in ways.items():
        native.MANY_VALUES = 0 if way == "native" else 200_000
        try:
            frame = load(spark, str(path), **options)
        except PageseekError as error:
            counts["refused"] += 1
            print(f"refused  {path.name}: {error}", flush=True)
            return
        if frame.schema.simpleString() != own.schema.simpleString():
            counts["other types"] += 1
            print(
                f"types    {path.name}\n  ours  {frame.schema.simpleString()}\n  spark {own.schema.simpleString()}",
                flush=True,
            )
            return
        cases = [("all rows", lambda f: f), ("count", lambda f: f.groupBy().count())]
        conditions = list(predicates(own, everything, rng))
        cases += [
            (str(condition), lambda frame, c=condition: frame.where(c))
            for condition in rng.sample(conditions, min(3, len(conditions)))
        ]
        for name, case in cases:
            try:
                expected = rows(case(own))
            except Exception:  # noqa: BLE001 (as above)
                counts["not read by Spark"] += 1
                continue
            try:
                same = rows(case(frame)) == expected
            except Exception as error:  # noqa: BLE001 (shown)
                counts["failed"] += 1
                print(f"FAILED   {way} {path.name} {name}: {str(error)[:300]}", flush=True)
                continue
            counts[f"{way} right" if same else "WRONG"] += 1
            if not same:
                print(f"WRONG    {way} {path.name} {name}", flush=True)
    own.unpersist()


def corpus(spark: Any, files: int, seed: int) -> collections.Counter[str]:
    """The files of the corpus."""
    rng, counts = random.Random(seed), collections.Counter()
    every = sorted(path for path in CORPUS.rglob("*") if path.suffix in (".parquet", ".parq"))
    for path in rng.sample(every, min(files, len(every))):
        compare_file(spark, path, rng, counts)
    return counts


def sql(spark: Any, predicates: int, seed: int) -> collections.Counter[str]:
    """Random predicates over generated files, by each way of reading."""
    from pageseek.spark import load
    from pageseek.spark.table import native

    counts: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        spark_sql.write_folder(Path(folder))
        own = spark.read.parquet(folder).cache()
        ways = {
            "default": load(spark, folder),
            "driver": load(spark, folder, native=False),
            "tasks": load(spark, folder, local=False, native=False),
        }
        native.MANY_VALUES = 1000
        ways["native"] = load(spark, folder)
        settings = list(itertools.product(ZONES, ("true", "false"), ("true", "false")))
        for number in range(predicates):
            zone, ansi, case = settings[number % len(settings)]
            spark.conf.set("spark.sql.session.timeZone", zone)
            spark.conf.set("spark.sql.ansi.enabled", ansi)
            spark.conf.set("spark.sql.caseSensitive", case)
            rng = random.Random(f"{seed} {number}")
            condition = spark_sql.predicate(rng)
            if case == "false":
                condition = condition.replace("small", "Small").replace("st.a", "ST.A")
            way = rng.choice(list(ways))
            native.MANY_VALUES = 1000 if way == "native" else 200_000
            try:
                expected = rows(own.where(condition).select("k", "s", "x"))
            except Exception:  # noqa: BLE001 (such as a cast that fails)
                counts["refused by Spark"] += 1
                continue
            try:
                same = rows(ways[way].where(condition).select("k", "s", "x")) == expected
            except Exception as error:  # noqa: BLE001 (shown)
                counts["failed"] += 1
                print(
                    f"FAILED   {way} {zone} {ansi} {case} {condition}: {str(error)[:300]}",
                    flush=True,
                )
                continue
            counts[f"{way} right" if same else "WRONG"] += 1
            if not same:
                print(f"WRONG    {way} {zone} {ansi} {case} {condition}", flush=True)
    return counts


def main(arguments: list[str]) -> int:
    """Run one proof."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("proof", choices=("corpus", "sql"))
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--predicates", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    spark = session()
    if given.proof == "corpus":
        found = corpus(spark, given.files, given.seed)
    else:
        found = sql(spark, given.predicates, given.seed)
    print(", ".join(f"{count:,} {name}" for name, count in sorted(found.items())))
    return int(bool(found["WRONG"] or found["failed"] or found["other types"]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
