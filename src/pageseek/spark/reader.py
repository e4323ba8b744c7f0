"""`read`: a pruned scan as a DataFrame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pageseek.spark.columns.plan_schema import empty_frame, schema_of
from pageseek.spark.columns.row_metadata import as_sent, as_wanted, quoted
from pageseek.spark.filters.binding import Binding
from pageseek.spark.load import loaded
from pageseek.spark.sources.opening import opened
from pageseek.spark.table.shim import fits
from pageseek.spark.table.table import Choices
from pageseek.spark.tasks.expected import expected_rows
from pageseek.spark.tasks.sizing import parts_of, range_of
from pageseek.spark.tasks.task import ROWS, make_task

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from pageseek.scan.scan_plan import ScanPlan
    from pageseek.spark.session.names import Columns


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

    Name the columns and the filter here: Spark cannot push a later `select` or `where` into the scan.

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
    filter : Expression, str, pyarrow.compute.Expression or list, optional
        `pageseek.col("a") > 35`, SQL such as `"a > 35"`, and more: as in `pageseek.scan`, but with the meaning
        that they have in this session (docs/spark.md): its SQL, its time zone, its case of names.
    limit : int, optional
        The greatest number of rows; any of those that pass, because Spark keeps no order between tasks.
    tasks : int, optional
        The greatest number of tasks; a row group is never divided. By default one for each quarter of a
        second of work, and no more than four for each core of the session.
    python_path : str, optional
        A directory that the tasks put first on `sys.path`, for a pageseek that was shipped as an archive.
    **options
        Further options of `pageseek.scan`. Here `nan` is "spark", `int96_unit` is "us" and `threads` is 1 unless
        given: Spark runs a task on each core.

    Returns
    -------
    pyspark.sql.DataFrame
        Every column is nullable. Rows of a row group stay together and in order.

    Raises
    ------
    UnsupportedError
        Spark has no type for a column, the source is in the driver's memory, or the filter hangs on dates or
        times that Spark before 3.0 wrote by another calendar.
    PredicateError
        The filter does not fit the columns, or Spark would answer it in a way that is not known here.
    """
    if tasks is not None and tasks < 1:
        raise ValueError(f"tasks={tasks}: at least 1")
    if isinstance(columns, str):
        raise TypeError(f"columns={columns!r}: a list of names")
    made = opened(spark, source, **options)
    binding = Binding(spark, made)
    made = made.filter(binding.condition(filter))
    asked = None if columns is None else [binding.columns.output(name) for name in columns]
    if asked is not None:
        made = made.select(*dict.fromkeys(asked))
    if fits(spark):
        choices = Choices(
            tasks, local=tasks is None, native=tasks is None, python_path=python_path, pinned=True
        )
        frame = loaded(spark, made, choices)
        if limit is not None:
            frame = frame.limit(limit)
    else:
        made = made if limit is None else made.limit(limit)
        plan = made.plan()
        wire, schema = schema_of(plan, made, spark)
        frame = frame_of(spark, plan, wire, schema, binding.columns, tasks, python_path)
    return frame if columns is None or asked is None else _named(frame, asked, columns)


def frame_of(
    spark: SparkSession,
    plan: ScanPlan,
    wire: pa.Schema,
    schema: StructType,
    columns: Columns,
    tasks: int | None,
    python_path: str | None,
    summary: bytes = b"",
) -> DataFrame:
    """The rows of a plan by a function over Arrow batches.

    `wire`: the types of its columns. `schema`: of the DataFrame. `summary`: pickled, what tasks make of the batches.
    """
    if not plan.files:
        return empty_frame(spark, schema)
    parts = parts_of(spark, plan, wire, tasks, expected_rows(plan, columns))
    sent = schema if schema.names else schema.add(ROWS, "void", True)
    source_ids, step = range_of(spark, plan, len(parts))
    frame = source_ids.mapInArrow(make_task(parts, python_path, step, summary), as_sent(sent))
    limit = plan.request.limit
    if limit is not None and len(parts) > 1:
        frame = frame.limit(limit)
    return frame.drop(ROWS) if sent.names == [ROWS] else as_wanted(frame, sent)


def _named(frame: DataFrame, asked: Sequence[str], columns: Sequence[str]) -> DataFrame:
    """The columns as often, and under the names, that the caller gave: case may be another than in the files, as in Spark."""
    if len(set(asked)) < len(asked) and set(asked) <= set(frame.columns):
        pairs = zip(asked, columns, strict=True)
        return frame.select(*[frame[quoted(ours)].alias(name) for ours, name in pairs])
    names = dict(zip(asked, columns, strict=True))
    wanted = [names.get(name, name) for name in frame.columns]
    return frame if wanted == frame.columns else frame.toDF(*wanted)
