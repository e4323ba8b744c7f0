"""`load`: a DataFrame that prunes by what comes later."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

from pageseek.base.errors import UnsupportedError
from pageseek.scan.scan import Scan
from pageseek.spark.opening import opened
from pageseek.spark.plan_schema import name_of
from pageseek.spark.planner import Choices, TablePlanner
from pageseek.spark.shim import fits, python_of, table_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def load(
    spark: SparkSession,
    source: Any,
    *,
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
        A Classic session of Spark 4.
    source : str, path, sequence of them, or (pyarrow filesystem, path)
        As in `pageseek.scan`. Every executor must see the files under the same names.
    local : bool
        Whether the driver itself reads what pruning leaves if that is little: about 2,000 rows and 8 MB at most. Such a
        query has no task.
    native : bool
        Whether Spark's own reader may read the files that are left where most of their rows are wanted, since it is
        quicker then. It is taken only for files that it reads as pageseek does.
    tasks : int, optional
        The greatest number of Python tasks of a query, as in `read`.
    python_path : str, optional
        As in `read`.
    **options
        Further options of `pageseek.scan`, as in `read`.

    Returns
    -------
    pyspark.sql.DataFrame
        Every column is nullable.

    Raises
    ------
    UnsupportedError
        The session cannot have such a table, Spark has no type for a column, or the source is in the driver's memory.
    """
    if not fits(spark):
        raise UnsupportedError(
            f"load needs a Classic session of Spark 4, and this is Spark {spark.version}"
            f"{' over Connect' if 'connect' in type(spark).__module__ else ''}: use pageseek.spark.read, and name columns and filter"
        )
    made = opened(spark, source, **options)
    return loaded(spark, made, Choices(tasks, local, native, python_path), shown(source, made))


def loaded(spark: SparkSession, scan: Scan, choices: Choices, name: str = "") -> DataFrame:
    """A DataFrame of a scan's rows, by a table. `name`: what plans call it."""
    planner = TablePlanner(spark, scan, choices)
    called = f"pageseek {name or name_of(scan)}"
    return table_frame(spark, called, planner.schema, planner, python_of(spark))


def shown(source: Any, scan: Scan) -> str:
    """What plans call a source."""
    return str(source) if isinstance(source, (str, PathLike)) else name_of(scan)
