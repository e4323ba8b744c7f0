"""`read`: a pruned scan as a DataFrame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pageseek.base.tracebacks import short_traceback
from pageseek.datasets.confirmed import asked_once
from pageseek.spark.columns.plan_schema import empty_frame, name_of, schema_of, shown
from pageseek.spark.columns.row_metadata import as_sent, as_wanted
from pageseek.spark.filters.binding import Binding
from pageseek.spark.loader import loaded
from pageseek.spark.session.one_spelling import planned
from pageseek.spark.sources.asked import Asked
from pageseek.spark.sources.opening import opened
from pageseek.spark.table.shim import fits
from pageseek.spark.table.table import Choices
from pageseek.spark.tasks.described import described
from pageseek.spark.tasks.expected import expected_rows
from pageseek.spark.tasks.metrics import Run
from pageseek.spark.tasks.sizing import parts_of, range_of
from pageseek.spark.tasks.task import ROWS, make_task

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from pageseek.scanning.plans.scan_plan import ScanPlan
    from pageseek.spark.session.names import Columns


@short_traceback
@asked_once()
def read(
    spark: SparkSession,
    source: Any,
    columns: Sequence[str] | None = None,
    filter: Any = None,
    *,
    limit: int | None = None,
    tasks: int | None = None,
    python_path: str | None = None,
    **options: Any,
) -> DataFrame:
    """A DataFrame of the rows that pass a filter, read by as few tasks as the work is worth.

    Planning happens here, at once, on the driver: files are listed, footers read, row groups and pages
    ruled out. The DataFrame itself is lazy, and every action reads the versions of the files that were
    planned; a file that has changed since fails the task with FileChangedError.

    Over Connect and of Spark 3.5, name the columns and the filter here: Spark cannot push a later `select` or `where` into
    the scan there.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        Classic or Connect.
    source : str, path, sequence of them, or (pyarrow filesystem, path)
        As in `pageseek.scan`. Every executor must see the files under the same names; on Connect,
        so must the client, which is where planning happens.
    columns : sequence of str, optional
        Top-level columns, in the order wanted; None is all. [] gives a DataFrame without columns whose
        `count()` is right.
    filter : str, pyspark.sql.Column, Expression, pyarrow.compute.Expression or list, optional
        SQL such as `"a > 35"` and Columns are Spark's own `where`, before the columns are chosen: it prunes by what is
        understood of it (docs/spark.md). Others, such as `pageseek.col("a") > 35`, are as in `pageseek.scan`, but with the
        meaning that they have in this session: its time zone, its case of names.
    limit : int, optional
        The greatest number of rows; any of those that pass, because Spark keeps no order between tasks.
    tasks : int, optional
        The greatest number of tasks. By default one for each core that has a tenth of a second of work, and of much
        work more, at most four for each core of the session. A row group that costs more than a task is divided where its pages are known.
        If it is given, tasks read, and neither the driver nor Spark's own reader.
    python_path : str, optional
        A directory that the tasks put first on `sys.path`, for a pageseek that was shipped as an archive.
    **options
        Further options of `pageseek.scan`. Here `nan` is "spark", `int96_unit` is "us" and `threads` is 1 unless
        given: Spark runs a task on each core. `progress` is of the planning: unless given, there is a bar where the driver has a
        terminal or a notebook, and `spark.ui.showConsoleProgress` is not off.

    Returns
    -------
    pyspark.sql.DataFrame
        Every column is nullable. A task gives its rows in the order of the files.

    Raises
    ------
    UnsupportedError
        Spark has no type for a column, the source is in the driver's memory, or a filter that is not Spark's hangs on
        dates or times that Spark before 3.0 wrote by another calendar.
    PredicateError
        A filter that is not Spark's does not fit the columns, or Spark would answer it in a way that is not known here.
        Spark's own are its AnalysisException.
    """
    choices = Choices(
        tasks, local=tasks is None, native=tasks is None, python_path=python_path, pinned=True
    )
    made, classic = opened(spark, source, **options), fits(spark)
    asked = Asked.of(spark, made, columns, filter, classic)
    if classic:
        return asked.of_frame(loaded(spark, asked.scan, choices, name_of(made)), limit)
    scan, behind = asked.scan, asked.behind is not None
    if limit is not None and not behind:
        scan = scan.limit(limit)
    scan, plan = planned(scan)
    wire, schema = schema_of(plan, scan, spark)
    known = Binding(spark, made).columns
    frame = frame_of(spark, plan, wire, schema, known, shown(source, made), tasks, python_path)
    return asked.of_frame(frame, limit if behind else None)


def frame_of(
    spark: SparkSession,
    plan: ScanPlan,
    wire: pa.Schema,
    schema: StructType,
    columns: Columns,
    name: str,
    tasks: int | None,
    python_path: str | None,
    summary: bytes = b"",
) -> DataFrame:
    """The rows of a plan by a function over Arrow batches.

    `wire`: the types of its columns. `schema`: of the DataFrame. `name`: what plans call the source. `summary`: pickled, what tasks make of the batches.
    """
    if not plan.files:
        return empty_frame(spark, schema)
    parts = parts_of(spark, plan, wire, tasks, expected_rows(plan, columns))
    sent = schema if schema.names else schema.add(ROWS, "void", True)
    source_ids, step = range_of(spark, plan, len(parts))
    told = Run.of_function(plan, parts, source=name)
    task = make_task(parts, python_path, step, summary, told.accumulator(spark))
    task = told.named(task, f"{name}; {described(plan)}")
    frame = source_ids.mapInArrow(task, as_sent(sent))
    limit = plan.request.limit
    if limit is not None and len(parts) > 1:
        frame = frame.limit(limit)
    return frame.drop(ROWS) if sent.names == [ROWS] else as_wanted(frame, sent)
