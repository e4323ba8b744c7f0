"""The code that runs in an executor: plans come in as bytes, batches go out to the JVM."""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import socket
import stat
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pageseek.base.errors import FileChangedError, UnsupportedError
from pageseek.base.report import Report
from pageseek.datasets.file_cache import cache
from pageseek.spark.calendar.calendar_marks import Calendars, has_calendar, holds_old
from pageseek.spark.columns.file_values import COLUMN, with_struct
from pageseek.spark.columns.types import ToWire
from pageseek.spark.tasks.metrics import key_of
from pageseek.spark.tasks.shipping import Task, check_version, shipped

if TYPE_CHECKING:
    from pageseek.scanning.one_file.file_scan import FileScan
    from pageseek.scanning.plans.opened_file import Together
    from pageseek.scanning.plans.scan_plan import ScanPlan
    from pageseek.scanning.requests.plan import FilePlan

AGAIN = "make the DataFrame again by load or read, for the files that are there now"
ROWS = "__pageseek_rows"  # stands for the rows of a scan without columns


def pack(plan: ScanPlan, wire: pa.Schema, calendars: Calendars | None = None) -> bytes:
    """A part of a scan as bytes. It lacks the metadata of the schema, which no task needs."""
    lean = replace(
        plan, schema=pa.schema([pa.field(f.name, f.type, f.nullable) for f in plan.schema])
    )
    return zlib.compress(pickle.dumps((lean, wire, calendars), protocol=5), 1)


def make_task(
    parts: Sequence[bytes],
    python_path: str | None,
    step: int = 1,
    summary: bytes = b"",
    reports: Any = None,
) -> Task:
    """The function for `mapInArrow` over every `step`-th of `step * len(parts)` ids.

    It is shipped by value with the bytes of every part, and a task unpickles only its own part. Its size matters little:
    Spark sends it to an executor once (Classic: as a broadcast if it is large). `summary`, `reports`: as in `part_reader`.
    """
    return shipped(
        "pageseek.spark.tasks.task", "read_ids", python_path, tuple(parts), step, summary, reports
    )


def part_reader(python_path: str | None, summary: bytes = b"", reports: Any = None) -> Task:
    """The function that reads parts: it gets them in the first column of its batches.

    `summary`: pickled, what to make of the batches of a part. `reports`: an accumulator for the reports of parts.
    """
    return shipped("pageseek.spark.tasks.task", "read_parts", python_path, summary, reports)


def read_ids(
    batches: Iterator[pa.RecordBatch],
    version: str,
    parts: Sequence[bytes],
    step: int,
    summary: bytes,
    reports: Any,
) -> Iterator[pa.RecordBatch]:
    """The rows of the parts whose ids come in."""
    begin_task()
    # Spark throws a worker away whose input was not read to its end
    for i in [i for batch in batches for i in batch.column(0).to_pylist()]:
        yield from _read(parts[i // step], version, summary, reports)


def read_parts(
    batches: Iterator[pa.RecordBatch], version: str, summary: bytes, reports: Any
) -> Iterator[pa.RecordBatch]:
    """The rows of the parts that come in."""
    begin_task()
    parts = [part for batch in batches for part in batch.column(0).to_pylist()]
    for part in parts:
        yield from _read(part, version, summary, reports)


def _read(part: bytes, version: str, summary: bytes, reports: Any) -> Iterator[pa.RecordBatch]:
    report = new_report()
    read = run(part, version, report)
    yield from pickle.loads(summary)(read) if summary else read
    if reports is not None:
        reports.add({key_of(part): report})


_frozen = False  # objects of this worker


def begin_task() -> None:
    """What a task does first."""
    global _frozen
    acknowledge_at_once()
    if not _frozen:  # pyspark's modules would be searched for garbage again and again
        _frozen = True
        gc.freeze()


def acknowledge_at_once() -> None:
    """Have the kernel acknowledge what the JVM sends without delay.

    The JVM sends the input in small pieces, and each waits until the one before is acknowledged (Nagle's algorithm). Linux
    delays that by 40 ms. It may go back to delaying later, but the input of a task ends at once. Other platforms have no such
    option, and Unix sockets need none.
    """
    option = getattr(socket, "TCP_QUICKACK", None)
    if option is None or socket.getdefaulttimeout() is not None:  # which a second handle would get
        return
    with contextlib.suppress(OSError):  # a system that does not list open files
        for number in map(int, os.listdir("/proc/self/fd")):
            with contextlib.suppress(OSError):  # the list itself is closed by now
                if stat.S_ISSOCK(os.fstat(number).st_mode):
                    with socket.socket(fileno=os.dup(number)) as one:
                        if one.family in (socket.AF_INET, socket.AF_INET6):
                            one.setsockopt(socket.IPPROTO_TCP, option, 1)


def new_report() -> Report:
    """For what one part reads."""
    return Report(analyzed=True)


def run(part: bytes, version: str, report: Report | None = None) -> Iterator[pa.RecordBatch]:
    """The batches of one part, in wire types. `report` is filled as they come."""
    if report is None:
        report = new_report()
    check_version(version)
    plan, wire, calendars = pickle.loads(zlib.decompress(part))
    yield from execute(plan, wire, calendars, report)


def execute(
    plan: ScanPlan, wire: pa.Schema, calendars: Calendars | None, report: Report
) -> Iterator[pa.RecordBatch]:
    """The batches of a plan, as Spark takes them."""
    outgoing = _Outgoing(plan, wire, calendars)
    try:
        for file, batch in plan.execute_by_file(report, outgoing.together):
            yield outgoing(batch, file)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"{error}; it was there when the query was planned: it was removed, or lies on a disk that only the driver has. Put it where "
            f"every node sees it under the same name, or {AGAIN}"
        ) from error
    except FileChangedError as error:
        raise FileChangedError(f"{error}: {AGAIN}") from error


class _Outgoing:
    """Batches of a plan as Spark takes them. What depends on the types alone is found once: a batch may have few rows."""

    __slots__ = ("_calendars", "_dated", "_plan", "_to_wire", "_with_file")

    def __init__(self, plan: ScanPlan, wire: pa.Schema, calendars: Calendars | None) -> None:
        self._plan, self._calendars = plan, calendars
        self._to_wire = ToWire(wire)
        self._with_file: pa.Field | None = None
        if wire.names[-1:] == [COLUMN] and COLUMN not in plan.schema.names:
            self._with_file = wire.field(len(wire) - 1)
        self._dated = [
            (i, field.name)
            for i, field in enumerate(wire)
            if calendars is not None and has_calendar(field.type)
        ]

    @property
    def together(self) -> Together | None:
        """Whether a table of several files goes out as it is; None: none does, since each row tells its file."""
        return None if self._with_file is not None else self._fits

    def _fits(self, table: pa.Table, scan: FileScan) -> bool:
        """Whether no value is converted by its file, and none is refused, which names the file."""
        old = False
        try:
            for batch in table.to_batches():
                made = self._to_wire(batch, "")
                old = old or any(holds_old(made.column(i)) for i, _ in self._dated)
        except UnsupportedError:
            return False
        return not old or self._are_of_today(scan)

    def _are_of_today(self, scan: FileScan) -> bool:
        """Whether the values of several files are in the calendar of today."""
        from pageseek.scanning.many_files.joined_files import JoinedScan  # late: for many files

        assert isinstance(scan, JoinedScan)
        assert self._calendars is not None
        return all(map(self._calendars.are_of_today, scan.pairs_of_spark()))

    def __call__(self, batch: pa.RecordBatch, file: FilePlan) -> pa.RecordBatch:
        if self._with_file is not None:
            batch = with_struct(batch, file, self._with_file)
        if batch.num_columns == 0:  # the JVM refuses such a batch: a column of nulls has its rows
            return pa.RecordBatch.from_arrays([pa.nulls(batch.num_rows)], names=[ROWS])
        made = self._to_wire(batch, file.source.name)
        return self._in_todays_calendar(made, file) if self._dated else made

    def _in_todays_calendar(self, batch: pa.RecordBatch, file: FilePlan) -> pa.RecordBatch:
        old = [(i, name) for i, name in self._dated if holds_old(batch.column(i))]
        if not old:
            return batch
        assert self._calendars is not None
        folders = {name for name, _ in file.source.partitions}
        columns = batch.columns
        for i, name in old:
            if name not in folders:
                most = self._plan.request.limits.max_metadata_bytes
                opened = cache.open(file.source, Report(), most)
                columns[i] = self._calendars.rebased(name, columns[i], opened)
        return pa.RecordBatch.from_arrays(columns, schema=batch.schema)
