"""The doors through which SQL reaches files, and their answers to many conditions, beside those of Spark's own reader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pageseek.spark import load, read

# Spark's own pushdown loses rows for NaN, so that it is no oracle.
ORACLE = {
    "spark.sql.parquet.filterPushdown": "false",
    "spark.sql.inMemoryColumnarStorage.partitionPruning": "false",
}
AT_ONCE = 12  # conditions in one job
DOORS = "load", "read text", "read column", "load filter", "format", "view"
Door = Callable[[str], Any]
Answer = Counter[str] | Exception


@contextmanager
def settings(spark: Any, wanted: Mapping[str, str]) -> Iterator[None]:
    """Settings of a session, for a while."""
    before = {key: spark.conf.get(key) for key in wanted}
    try:
        for key, value in wanted.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def door(spark: Any, name: str, path: str, columns: Sequence[str], **options: Any) -> Door:
    """A DataFrame of some columns for a condition, by one of DOORS. The format is registered. `options`: of `load`."""
    from pyspark.sql.functions import expr

    chosen = [quoted(column) for column in columns]
    tasks = {"tasks": 2} if options else {}
    if name == "read text":
        return lambda condition: read(spark, path, columns, condition, **tasks)
    if name == "read column":
        return lambda condition: read(spark, path, columns, expr(condition), **tasks)
    if name == "load filter":
        return lambda condition: load(spark, path, columns=columns, filter=condition, **options)
    plain = {key: str(value).lower() for key, value in options.items()}
    if name == "view":
        where = path.replace("\\", "\\\\").replace("'", "\\'")
        told = "".join(f", {key} '{value}'" for key, value in plain.items())
        view = "create or replace temporary view door using pageseek options (path '{}'{})"
        spark.sql(view.format(where, told)).collect()
        what = f"select {', '.join(chosen)} from door where "
        return lambda condition: spark.sql(what + condition)
    if name == "load":
        frame = load(spark, path, **options)
    else:
        assert name == "format"
        frame = spark.read.format("pageseek").options(**plain).load(path)
    return lambda condition: frame.where(condition).select(*chosen)


def native(spark: Any, path: str, columns: Sequence[str]) -> Door:
    """The same by Spark's own reader, to be used with the settings of ORACLE."""
    frame = spark.read.parquet(path)
    return lambda condition: frame.where(condition).select(*map(quoted, columns))


def answers(door: Door, conditions: Sequence[str]) -> list[Answer]:
    """For each condition how often each row comes, or the error. Rows are told apart by their texts: NaN is NaN, -0.0 is not 0.0."""
    if len(conditions) > AT_ONCE:
        return [*answers(door, conditions[:AT_ONCE]), *answers(door, conditions[AT_ONCE:])]
    made: list[Any] = []
    for condition in conditions:
        try:
            made.append(_hashed(door(condition), len(made)))
        except Exception as error:
            made.append(error)
    frames = [one for one in made if not isinstance(one, Exception)]
    found: list[Answer] = [one if isinstance(one, Exception) else Counter() for one in made]
    try:
        for i, row in _together(frames):
            counter = found[i]
            assert isinstance(counter, Counter)
            counter[row] += 1
        return found
    except Exception as error:
        if len(conditions) == 1:
            return [error]
    half = len(conditions) // 2
    return [*answers(door, conditions[:half]), *answers(door, conditions[half:])]


def _hashed(frame: Any, number: int) -> Any:
    from pyspark.sql import functions as f

    texts = [f.col(quoted(name)).cast("string") for name in frame.columns]
    return frame.select(f.lit(number).alias("i"), f.to_json(f.array(*texts)).alias("row"))


def _together(frames: list[Any]) -> list[Any]:
    if not frames:
        return []
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.unionAll(frame)
    return list(whole.collect())


def difference(theirs: Answer, ours: Answer) -> str:
    """What is wrong with an answer: "" for nothing. Where Spark's own reader fails, rows may have been ruled out before."""
    if isinstance(theirs, Exception):
        return ""
    if isinstance(ours, Exception):
        return f"refused: {type(ours).__name__}: {str(ours)[:300]}"
    if ours == theirs:
        return ""
    more, fewer = ours - theirs, theirs - ours
    return f"{more.total()} rows more, {fewer.total()} fewer: {[*more, *fewer][:2]}"
