"""Files of the corpus have the answers of Spark's own reader, through `load`.

Every valid file that Spark reads: the schema, all rows, rows of a few predicates by each way of reading, and counts.
"""

from __future__ import annotations

import collections
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spark_sessions import session

MOST_ROWS, MOST_COLUMNS = 50_000, 60


def rows(frame: Any) -> list[str]:
    """The rows, as texts in one order."""
    return sorted(repr(shown(row)) for row in frame.collect())


def shown(value: Any) -> Any:
    """A value with its Variants as JSON: the same one may have several encodings."""
    from pyspark.sql.types import VariantVal

    if isinstance(value, VariantVal):
        return value.toJson()
    if isinstance(value, (tuple, list)):
        return [shown(one) for one in value]
    if isinstance(value, dict):
        # entries of maps whose keys are binary come in no order of their own
        return sorted(((repr(key), shown(one)) for key, one in value.items()), key=repr)
    return value


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
        if value is None or isinstance(field.dataType, s.VariantType):
            continue
        if not isinstance(field.dataType, s.AtomicType):
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
            counts[f"{way} right" if same else "other rows"] += 1
            if not same:
                print(f"WRONG    {way} {path.name} {name}", flush=True)
    own.unpersist()


def prove(corpus: Path, files: int, seed: int) -> tuple[str, collections.Counter[str]]:
    """Compare random files of the corpus: what was run, and what was counted. Prints what is wrong."""
    spark = session()
    rng, counts = random.Random(seed), collections.Counter[str]()
    every = sorted(path for path in corpus.rglob("*") if path.suffix in (".parquet", ".parq"))
    chosen = rng.sample(every, min(files, len(every)))
    for path in chosen:
        compare_file(spark, path, rng, counts)
    spark.stop()
    return f"seed {seed}, {len(chosen)} files", counts
