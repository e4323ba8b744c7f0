"""`load`: a DataFrame that prunes by what comes later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pageseek.base.errors import UnsupportedError
from pageseek.base.tracebacks import short_traceback
from pageseek.datasets.confirmed import asked_once
from pageseek.scanning.queries.scan import Scan
from pageseek.spark.columns.plan_schema import shown
from pageseek.spark.datasource.source import source_frame
from pageseek.spark.session.settings import check_session
from pageseek.spark.sources.asked import Asked
from pageseek.spark.sources.narrowed import narrowed, nothing, with_data
from pageseek.spark.sources.opening import opened
from pageseek.spark.table.planner import TablePlanner
from pageseek.spark.table.shim import JAR, fits, table_frame, table_of
from pageseek.spark.table.table import Choices, SourceTable
from pageseek.storage.listing import NoDataError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


@short_traceback
@asked_once()
def load(
    spark: SparkSession,
    source: Any,
    *,
    columns: Sequence[str] | None = None,
    filter: Any = None,
    local: bool = True,
    native: bool = True,
    tasks: int | None = None,
    python_path: str | None = None,
    **options: Any,
) -> DataFrame:
    """A DataFrame of the rows of a source, which prunes by what comes later: `.where`, `.select`, `.limit`, joins, counts.

    Each query is planned when Spark plans it, on the driver: Spark hands over its filters, bound and with its casts, the
    columns that it needs, a limit or an aggregation. What pageseek answers exactly it applies itself; Spark applies the
    rest behind the scan. `DataFrame.explain()` shows which files, and what is read by whom.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        Of Spark 4. Over Connect, Spark hands over columns and filters only, and not those with OR.
    source : str, path, sequence of them, or (pyarrow filesystem, path)
        As in `pageseek.scan`. Every executor must see the files under the same names.
    columns, filter : optional
        As in `read`.
    local : bool
        Whether the driver itself reads what pruning leaves if few rows are expected to pass, about 5,000 of 1.5 MB at most, from a
        store 20,000 of 6 MB, and if that takes less time than a job begins in. Such a query has no task.
    native : bool
        Whether Spark's own reader may read the files that are left where most of their rows are wanted, since it is
        quicker then. It is taken only for files that it reads as pageseek does.
    tasks : int, optional
        The greatest number of Python tasks of a query, as in `read`.
    python_path : str, optional
        As in `read`.
    **options
        Further options of `pageseek.scan`, as in `read`. Over Connect, where the server plans, `progress` has no effect.

    Returns
    -------
    pyspark.sql.DataFrame
        Every column is nullable.

    Raises
    ------
    UnsupportedError
        The session is of Spark 3, Spark has no type for a column, or the source is in the driver's memory.
    """
    check_session(spark)
    if int(spark.version.split(".")[0]) < 4:
        raise UnsupportedError(
            f"load needs Spark 4, and this is Spark {spark.version}: use pageseek.spark.read, and name columns and filter"
        )
    if not fits(spark):
        options.pop("progress", None)  # the server plans
        chosen = {"local": local, "native": native, "tasks": tasks, "python_path": python_path}
        return source_frame(spark, source, JAR, columns, filter, {**chosen, **options})
    choices = Choices(tasks, local, native, python_path)
    made = opened(spark, source, **options)
    asked = Asked.of(spark, made, columns, filter, True)
    return asked.of_frame(loaded(spark, asked.scan, choices, shown(source, made)))


@asked_once()
def table(
    spark: SparkSession,
    source: Any,
    choices: Choices,
    *,
    schema: StructType | None = None,
    columns: Sequence[str] | None = None,
    filter: Any = None,
    folders_last: bool = False,
    **options: Any,
) -> Any:
    """The table of a source, as an object of Java.

    `schema`, `folders_last`: the columns that are wanted, and their types, as in `narrowed`. `columns`, `filter`: as in `read`; all queries have them.
    """

    def narrow(parts: Any) -> Scan:
        return narrowed(
            spark,
            parts,
            schema=schema,
            columns=columns,
            filter=filter,
            folders_last=folders_last,
            **options,
        )

    absent = ""
    try:
        made = narrow(source)
    except NoDataError as error:
        if schema is None:
            raise
        left, absent = with_data(spark, source, options), str(error)
        made = narrow(left) if left else nothing(schema)  # a stream may begin with it
    name = shown(source, made)
    return _of_java(SourceTable(spark, made, choices, name, schema, absent), schema is not None)


def loaded(spark: SparkSession, scan: Scan, choices: Choices, name: str) -> DataFrame:
    """A DataFrame of a scan's rows, by a table. `name`: what plans call it."""
    return table_frame(spark, _of_java(SourceTable(spark, scan, choices, name), False))


def _of_java(table: SourceTable, given: bool) -> Any:
    """The table as an object of Java. `given`: whether a user gave its schema."""
    name = f"pageseek {table.name}"
    return table_of(table.spark, name, table.schema, TablePlanner(table), given)
