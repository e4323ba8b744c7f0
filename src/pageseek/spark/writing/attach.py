"""`attach_index`: indexes for the files of a source, built by tasks side by side."""

from __future__ import annotations

import heapq
import pickle
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pageseek.base.errors import FileChangedError, PageseekError, PredicateError, UnsupportedError
from pageseek.base.progress import Watch, watched_steps
from pageseek.base.report import Report
from pageseek.base.tracebacks import short_traceback
from pageseek.datasets.sources import files_of
from pageseek.index import Attached, attach
from pageseek.index import verify as verified
from pageseek.spark.session.progress import progress_of
from pageseek.spark.session.settings import Settings, check_session
from pageseek.spark.sources.buckets import reached
from pageseek.spark.tasks.shipping import check_version, shipped
from pageseek.spark.tasks.sizing import parallelism_of
from pageseek.spark.writing.asked_indexes import AT_ONCE, AskedIndexes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pageseek.storage import Source

TASKS_PER_CORE = 4  # so that a core that is done early gets more
REPORT = pa.schema(
    [
        ("file", pa.string()), ("status", pa.string()), ("added", pa.string()), ("bytes_before", pa.int64()),
        ("bytes_after", pa.int64()), ("seconds", pa.float64()), ("error", pa.string()),
    ]
)  # fmt: skip
REPORT_DDL = "file string, status string, added string, bytes_before bigint, bytes_after bigint, seconds double, error string"


@short_traceback
def attach_index(
    spark: SparkSession,
    source: Any,
    *,
    page_index: bool | str | Sequence[str] = True,
    bloom: str | Sequence[str] | Mapping[str, float] = (),
    distinct: str | Sequence[str] = (),
    lookup: str | Sequence[str | tuple[str, ...]] = (),
    bitmap: str | Sequence[str] = (),
    trigram: str | Sequence[str] = (),
    file_bloom: str | Sequence[str] | Mapping[str, float] = (),
    footer: bool = False,
    distinct_index: str | None = None,
    indexes: Mapping[str, str | Sequence[str]] | None = None,
    replace: bool = False,
    verify: bool = False,
    tasks: int | None = None,
    progress: bool | Watch | None = None,
    python_path: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> pa.Table:
    """Add indexes to all files of a source in place, by tasks, as `pageseek.index.attach` does to one.

    Each file is replaced in one step, when its indexes are complete, and a file that has what is asked for is left. So a run
    that died can be started again, and builds what is missing. A file that fails stays as it was, and the others go on: so
    does one that lacks a column which others have.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        Classic or Connect.
    source : str, path, sequence of them, or (filesystem, path)
        As in `pageseek.scan`. Every executor must see the files under the same names.
    page_index, bloom, distinct, lookup, bitmap, trigram, file_bloom, footer, distinct_index, indexes, replace
        What to build, as in `pageseek.index.attach`. Whether case matters in names says the session; one name may stand for a
        list of one.
    verify : bool
        Compare the indexes that a file has with its data, and build them again if they are wrong. All pages are read for that.
    tasks : int, optional
        The greatest number of tasks; by default four for each core of the session. A file is never divided.
    progress : bool or function, optional
        Show for how many files the tasks are packed, as in `pageseek.scan`; by default where the driver has a terminal or a
        notebook. Spark's own bar shows the tasks.
    python_path : str, optional
        As in `read`.
    storage_options : mapping, optional
        Options of the stores, as in `scan`; for S3, those of the session's Hadoop settings unless given.

    Returns
    -------
    pyarrow.Table
        A row for each file: `file`, `status` ("attached", "present" or "failed"), `added` (kinds and columns), `bytes_before`,
        `bytes_after`, `seconds`, `error`.

    Raises
    ------
    PredicateError
        No file has a column of a name.
    UnsupportedError
        The source is a table of Delta Lake or Iceberg, whose files change by commits only; or bytes in memory.

    Warns
    -----
    UserWarning
        Files have failed; it says how many, and why the first did.
    """
    check_session(spark)
    if tasks is not None and tasks < 1:
        raise ValueError(f"tasks={tasks}: at least 1")
    named = files_of(*reached(spark, source, storage_options))
    if named.table is not None:
        raise UnsupportedError(
            f"{', '.join(named.origin.notes)}: a table, whose files are changed by its own commits: call "
            "pageseek.index.attach(file, table=...) for each of its files"
        )
    if any(file.data is not None for file in named.files):
        raise UnsupportedError(
            "bytes in memory cannot be changed by executors: write them to a file"
        )
    if not named.files:
        return REPORT.empty_table()
    fold = not Settings(spark).case_sensitive
    kinds = {"distinct": distinct, "lookup": lookup, "bitmap": bitmap, "trigram": trigram}
    asked = AskedIndexes.of(page_index, bloom, file_bloom, kinds, distinct_index, indexes, footer)
    asked = asked.spelled_as(named.files, fold)
    most, shown = tasks or TASKS_PER_CORE * parallelism_of(spark), progress_of(spark, progress)
    with watched_steps("files", len(named.files), shown, Report()) as step:
        parts = _packed(named.files, most, step)
    packed = tuple(pickle.dumps((part, asked, fold, replace, verify)) for part in parts)
    task = shipped("pageseek.spark.writing.attach", "run", python_path, packed)
    rows = spark.range(0, len(parts), 1, len(parts)).mapInArrow(task, REPORT_DDL).collect()
    made = pa.Table.from_pylist([row.asDict() for row in rows], REPORT).sort_by("file")
    failed = [row for row in made.to_pylist() if row["status"] == "failed"]
    if failed:
        warnings.warn(
            f"attach_index: {len(failed)} of {len(rows)} files have failed and are as they were; the first: {failed[0]['error']}",
            stacklevel=2,
        )
    return made


def _packed(files: Sequence[Source], most: int, step: Callable[[], None]) -> list[list[Source]]:
    """The files in groups of about the same bytes, the largest first. `step` is called after each file."""
    sizes = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for size in pool.map(_size, files):
            sizes.append(size)
            step()
    count = min(most, len(files))
    heap = [(0, i) for i in range(count)]
    parts: list[list[Source]] = [[] for _ in range(count)]
    for size, at in sorted(zip(sizes, range(len(files)), strict=True), reverse=True):
        load, i = heap[0]
        heapq.heapreplace(heap, (load + size + 1, i))
        parts[i].append(files[at])
    return parts


def _size(file: Source) -> int:
    try:
        store = file.open()
    except (OSError, PageseekError):  # its task reports that
        return 0
    try:
        return store.size
    finally:
        store.close()


def run(
    batches: Iterator[pa.RecordBatch], version: str, parts: Sequence[bytes]
) -> Iterator[pa.RecordBatch]:
    """Attach indexes to the files of the parts whose numbers come in, and report each."""
    check_version(version)
    for at in [at for batch in batches for at in batch.column(0).to_pylist()]:
        files, *how = pickle.loads(parts[at])
        for file in files:
            yield pa.RecordBatch.from_pylist([_attached(file, *how)], REPORT)


def _attached(
    file: Source, asked: AskedIndexes, fold: bool, replace: bool, verify: bool
) -> dict[str, Any]:
    begun = time.monotonic()
    row: dict[str, Any] = {"file": file.name}
    try:
        wrong = verify and not verified(file).ok
        try:
            done = _with_indexes(file, asked, fold, replace or wrong)
        except FileChangedError:  # another attempt of this task has been quicker
            done = _with_indexes(file, asked, fold, replace)
    except Exception as error:  # noqa: BLE001 - the other files go on, whatever it is
        said = f"{type(error).__name__}: {error}"
        row |= {"status": "failed", "error": said if file.name in said else f"{file.name}: {said}"}
    else:
        added = ", ".join(f"{kind}({column})" for kind, column in done.added)
        row |= {
            "status": "attached" if done.added else "present", "added": added, "bytes_before": done.bytes_before,
            "bytes_after": done.bytes_after,
        }  # fmt: skip
    return row | {"seconds": time.monotonic() - begun}


def _with_indexes(file: Source, asked: AskedIndexes, fold: bool, replace: bool) -> Attached:
    try:
        return _attach(file, asked, replace)
    except PredicateError:
        # the other files may spell a name otherwise
        own = asked.spelled_as([file], fold) if fold else asked
        if own == asked:
            raise
        return _attach(file, own, replace)


def _attach(file: Source, asked: AskedIndexes, replace: bool) -> Attached:
    return attach(file, in_place=True, replace=replace, threads=1, **asked.arguments())
