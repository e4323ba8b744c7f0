"""`aggregate`: counts, sums and extremes of a source, by groups."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pageseek.base.errors import PredicateError
from pageseek.base.records import NamedTuple
from pageseek.base.tracebacks import short_traceback
from pageseek.scanning.aggregates.aggregate_columns import parse
from pageseek.spark.columns.plan_schema import name_of, schema_of, shown
from pageseek.spark.columns.row_metadata import quoted
from pageseek.spark.columns.types import to_wire
from pageseek.spark.filters.binding import Binding
from pageseek.spark.loader import load
from pageseek.spark.reader import frame_of, read
from pageseek.spark.session.one_spelling import planned
from pageseek.spark.session.settings import check_session
from pageseek.spark.sources.asked import Asked
from pageseek.spark.sources.opening import opened
from pageseek.spark.table.aggregates import (
    Aggregation,
    Function,
    answers,
    is_of_today,
    summarized,
    wire_of,
)
from pageseek.spark.table.shim import fits

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

FUNCTIONS = ("count", "min", "max", "sum")


class Figure(NamedTuple):
    """What is wanted: a function and a column, "" for the rows themselves; and the name that it gets."""

    function: str
    column: str
    name: str

    def of(self, frame: DataFrame) -> SparkColumn:
        """It as an expression of Spark, over rows."""
        from pyspark.sql import functions

        what = _column(frame, self.column) if self.column else functions.lit(1)
        made: SparkColumn = getattr(functions, self.function)(what)
        return made.alias(self.name)

    def again(self, part: str) -> SparkColumn:
        """It as an expression of Spark, over the column with the figures of parts."""
        from pyspark.sql import functions

        if self.function != "count":
            made: SparkColumn = getattr(functions, self.function)(part)
            return made.alias(self.name)
        return functions.coalesce(functions.sum(part), functions.lit(0)).alias(self.name)


@short_traceback
def aggregate(
    spark: SparkSession,
    source: Any,
    figures: Iterable[Any],
    by: str | Sequence[str] = (),
    *,
    filter: Any = None,
    tasks: int | None = None,
    python_path: str | None = None,
    **options: Any,
) -> DataFrame:
    """Counts, sums, least and greatest values of the rows that pass a filter, one row for each group.

    What the metadata prove no task computes. Of the rest, tasks send a row for each of their groups instead of the rows
    themselves, as far as there are few groups and parts of a figure can be put together exactly.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        Classic or Connect.
    source : str, path, sequence of them, or (pyarrow filesystem, path)
        As in `load`.
    figures : iterable of str or tuple
        As in `Scan.aggregate`: "count" is the number of rows, `(column, "count")` the number of values that are not null,
        `(column, "min")` and `(column, "max")` the least and the greatest. Besides, `(column, "sum")`. They have the types
        and the values of Spark's functions: NaN is the greatest value, and nulls do not count.
    by : str or sequence of str
        The columns whose values make the groups; none: one row in all.
    filter : str, Expression and others, optional
        As in `read`.
    tasks, python_path, **options
        As in `read`.

    Returns
    -------
    pyspark.sql.DataFrame
        The columns of `by`, then `count` and `column_function`, in the order asked. Groups are in no order.

    Raises
    ------
    PredicateError
        A figure is none, or a name occurs twice.
    UnsupportedError
        As in `read`.
    """
    check_session(spark)
    wanted = _parsed(figures)
    groups = [by] if isinstance(by, str) else list(by)
    given: dict[str, Any] = {"tasks": tasks, "python_path": python_path}
    if not fits(spark):
        return _by_functions(spark, source, wanted, groups, filter, given, options)
    return _of_rows(load(spark, source, filter=filter, **given, **options), wanted, groups)


def _parsed(figures: Iterable[Any]) -> list[Figure]:
    made = [Figure(f, ".".join(path), name) for f, path, name in parse(figures, FUNCTIONS)]
    if not made:
        raise PredicateError("aggregate: no figure; 'count' is the number of rows")
    return made


def _column(frame: DataFrame, name: str) -> SparkColumn:
    """A column by its name, which may have dots; else by the path to a field of a struct."""
    found: SparkColumn = frame[quoted(name) if name in frame.columns else name]
    return found


def _of_rows(frame: DataFrame, wanted: Sequence[Figure], groups: Sequence[str]) -> DataFrame:
    """The figures of a DataFrame's rows."""
    by = [_column(frame, name).alias(name) for name in groups]
    return frame.groupBy(*by).agg(*[figure.of(frame) for figure in wanted])


def _by_functions(
    spark: SparkSession,
    source: Any,
    wanted: Sequence[Figure],
    groups: Sequence[str],
    filter: Any,
    given: dict[str, Any],
    options: dict[str, Any],
) -> DataFrame:
    """The figures where Spark takes no table of this package: tasks are functions over Arrow batches."""
    scan = opened(spark, source, **options)
    binding = Binding(spark, scan)
    by = [binding.columns.output(name) for name in groups]
    functions = [
        Function(
            f.function if f.column else "count_all", f.column and binding.columns.output(f.column)
        )
        for f in wanted
    ]
    aggregation = Aggregation(tuple(by), tuple(functions))
    asked = Asked.of(spark, binding.scan, None, filter, pushes=False)
    scan = asked.scan.select(*aggregation.columns)
    scan, plan = planned(scan)
    names = [
        name if name in plan.schema.names else name.partition(".")[0]
        for name in aggregation.columns
    ]
    wire, table = schema_of(plan, scan, spark)
    # Spark takes fields out of structs, and applies what is left of the filter
    here = names == aggregation.columns and asked.behind is None
    schema = aggregation.schema(table) if here else None
    if schema is None:
        rows = read(spark, source, list(dict.fromkeys(names)), filter, **given, **options)
        return _of_rows(rows, wanted, groups)
    sent = wire_of(wire, aggregation, schema)
    parts = [aggregation.named(i) for i in range(len(wanted))]
    whole = answers(scan, aggregation) and is_of_today(scan, aggregation, table)
    if whole and int(spark.version.split(".")[0]) >= 4:
        import pyarrow as pa

        found = [to_wire(b, sent, name_of(scan)) for b in aggregation.row(scan).to_batches()]
        frame = spark.createDataFrame(pa.Table.from_batches(found, sent), schema)
        return frame.toDF(*[figure.name for figure in wanted])
    summary = pickle.dumps(partial(summarized, aggregation=aggregation, wire=sent))
    frame = frame_of(
        spark, plan, wire, schema, binding.columns, shown(source, scan), **given, summary=summary
    )
    named = [frame[quoted(ours)].alias(name) for ours, name in zip(by, groups, strict=True)]
    return frame.groupBy(*named).agg(
        *[f.again(part) for f, part in zip(wanted, parts, strict=True)]
    )
