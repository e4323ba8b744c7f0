"""Random conditions over one file, through some doors, beside the answers of Spark's own reader."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pageseek.spark.table import native
from support import sql_doors
from support.random_sql import Leaf, in_other_case, leaves_of, predicate

MANY_VALUES, FILE_SECONDS = native.MANY_VALUES, native.FILE_SECONDS
WAYS: tuple[dict[str, Any], ...] = (
    {},
    {"local": False, "native": False},
    {"native": True},  # for small files, too
)
ZONE, ANSI, CASE = (
    "spark.sql.session.timeZone",
    "spark.sql.ansi.enabled",
    "spark.sql.caseSensitive",
)


def compare(
    spark: Any,
    path: str,
    rng: random.Random,
    wanted: Mapping[str, str],
    way: Mapping[str, Any],
    count: int,
    names: Sequence[str] = sql_doors.DOORS,
    leaves: list[Leaf] | None = None,
) -> tuple[Counter[str], list[str]]:
    """What was counted, and what is wrong.

    `wanted`: settings, CASE among them. `way`: how `load` reads, one of WAYS. `count`: of conditions. `names`: of the doors.
    `leaves`: those of the file, if they are known.
    """
    own = spark.read.parquet(path)
    leaves = leaves_of(own) if leaves is None else leaves
    counts: Counter[str] = Counter()
    wrong = []
    columns = rng.sample(own.columns, rng.randint(1, len(own.columns)))
    conditions = [predicate(rng, leaves) for _ in range(count)]
    native.MANY_VALUES = 0 if way.get("native") else MANY_VALUES
    native.FILE_SECONDS = 0.0 if way.get("native") else FILE_SECONDS
    with sql_doors.settings(spark, wanted):
        if wanted[CASE] == "false":
            conditions = [in_other_case(rng, condition) for condition in conditions]
        with sql_doors.settings(spark, sql_doors.ORACLE):
            theirs = sql_doors.answers(sql_doors.native(spark, path, columns), conditions)
        counts["refused by Spark"] = sum(isinstance(one, Exception) for one in theirs)
        counts["predicates"] = len(conditions)
        counts["rows"] = sum(one.total() for one in theirs if not isinstance(one, Exception))
        for name in names:
            ours = sql_doors.answers(sql_doors.door(spark, name, path, columns, **way), conditions)
            for condition, one, other in zip(conditions, theirs, ours, strict=True):
                failed = isinstance(one, Exception)
                counts["rows where Spark fails"] += failed and not isinstance(other, Exception)
                said = sql_doors.difference(one, other)
                counts["answers"] += not failed
                if said.startswith("refused") and "V2ExpressionBuilder" in str(other):
                    counts["fails in Spark before the source is asked"] += 1
                elif said:
                    counts["refused" if said.startswith("refused") else "other rows"] += 1
                    wrong.append(f"{name} {way} {columns} where {condition}\n    {said}")
    native.MANY_VALUES, native.FILE_SECONDS = MANY_VALUES, FILE_SECONDS
    return counts, wrong
