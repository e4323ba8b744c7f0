"""Random SQL has the answers of Spark's own reader through every door: `load`, `read`, the format and SQL views.

The files are generated ones of many kinds and files of the corpus. Each group of predicates is asked in one time zone, with
one choice of ANSI rules and case sensitivity, and through three of the six doors; the run goes through all of them. Rows are
compared as multisets. Where Spark's own reader fails (a cast of ANSI), ours may give rows: a filter that was pushed
has ruled out the row at fault, as Spark's own pushdown does. Conditions that Spark fails to hand to any table of DataSource V2
are counted apart.
"""

from __future__ import annotations

import collections
import itertools
import random
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from pageseek.spark import load, register
from spark_sessions import session
from support.random_sql import Leaf, leaves_of
from support.sql_comparison import ANSI, CASE, WAYS, ZONE, compare
from support.sql_doors import DOORS
from support.sql_files import write_files

ZONES = "UTC", "America/New_York", "Asia/Kolkata"
GROUP = 10  # predicates that are asked in one job
AT_ONCE = 3  # doors of a group
MOST_ROWS, MOST_COLUMNS = 2_000, 40


class File(NamedTuple):
    """A file or folder that is asked."""

    name: str
    path: str
    leaves: list[Leaf]


def corpus_files(spark: Any, corpus: Path, rng: random.Random, most: int) -> list[File]:
    """Small files of the corpus that Spark reads and `load` has the same schema of."""
    made: list[File] = []
    every = sorted(corpus.glob("*.parquet"))
    rng.shuffle(every)
    for path in every:
        if len(made) == most:
            break
        if path.stat().st_size > 1 << 20:
            continue
        try:
            if pq.read_metadata(path).num_rows > MOST_ROWS:
                continue
            own = spark.read.parquet(str(path))
            names = {name.lower() for name in own.columns}
            fits = 0 < len(names) == len(own.columns) <= MOST_COLUMNS
            if fits and load(spark, str(path)).schema == own.schema:
                leaves = leaves_of(own)
                if leaves:
                    made.append(File(path.name, str(path), leaves))
        except Exception:  # noqa: BLE001 (what one of them does not read is another proof's)
            continue
    return made


def prove(
    corpus: Path, connect: bool, predicates: int, seed: int, files: int
) -> tuple[str, collections.Counter[str]]:
    """Ask the predicates: what was run, and what was counted. Prints what is wrong."""
    start, counts = time.perf_counter(), collections.Counter[str]()
    spark = session(connect)
    register(spark)
    with tempfile.TemporaryDirectory() as folder:
        made = [
            File(name, path, leaves_of(spark.read.parquet(path)))
            for name, path in write_files(spark, Path(folder)).items()
        ]
        of_corpus = corpus_files(spark, corpus, random.Random(seed), files)
        print(
            f"{time.perf_counter() - start:.0f} s: {len(of_corpus)} files of the corpus", flush=True
        )
        named = made, of_corpus or made
        every = list(itertools.product(ZONES, ("true", "false"), ("true", "false")))
        for number in range(-(-predicates // GROUP)):
            rng = random.Random(f"{seed} {number}")
            file = rng.choice(rng.choice(named))
            zone, ansi, case = every[number % len(every)]
            doors = rng.sample(DOORS, AT_ONCE)
            wanted = {ZONE: zone, ANSI: ansi, CASE: case}
            way = rng.choice(WAYS)
            found, wrong = compare(spark, file.path, rng, wanted, way, GROUP, doors, file.leaves)
            counts += found
            for one in wrong:
                print(f"WRONG {file.name} {zone} ansi={ansi} case={case} {one}", flush=True)
            if number % 10 == 9:
                print(f"{time.perf_counter() - start:.0f} s: {dict(counts)}", flush=True)
    spark.stop()
    ran = f"seed {seed}, {counts.pop('predicates'):,} predicates on {len(made)} generated files and {len(of_corpus)} of the corpus"
    return ran, counts
