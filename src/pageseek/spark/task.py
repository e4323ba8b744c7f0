"""The code that runs in an executor: plans come in as bytes, batches go out to the JVM."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from pageseek.base.report import Report
from pageseek.dataset.file_cache import cache
from pageseek.spark.calendar_marks import Modes, check_values, holds_old
from pageseek.spark.shipping import Task, check_version, shipped
from pageseek.spark.types import to_wire

if TYPE_CHECKING:
    from pageseek.scan.plan import FilePlan
    from pageseek.scan.scan_plan import ScanPlan

ROWS = "__pageseek_rows"  # stands for the rows of a scan without columns


def pack(plan: ScanPlan, wire: pa.Schema, modes: Modes | None = None) -> bytes:
    """A part of a scan as bytes. It lacks the metadata of the schema, which no task needs."""
    lean = replace(
        plan, schema=pa.schema([pa.field(f.name, f.type, f.nullable) for f in plan.schema])
    )
    return zlib.compress(pickle.dumps((lean, wire, modes), protocol=5), 1)


def make_task(parts: Sequence[bytes], version: str, python_path: str | None, step: int = 1) -> Task:
    """The function for `mapInArrow` over every `step`-th of `step * len(parts)` ids.

    It is shipped by value with the bytes of every part, and a task unpickles only its own part. Its size matters little:
    Spark sends it to an executor once (Classic: as a broadcast if it is large).
    """
    return shipped(__name__, "run_parts", version, python_path, tuple(parts), step)


def run_parts(
    batches: Iterator[pa.RecordBatch], version: str, parts: Sequence[bytes], step: int
) -> Iterator[pa.RecordBatch]:
    """The batches of the parts whose numbers are every `step`-th id."""
    for batch in batches:
        for i in batch.column(0).to_pylist():
            yield from run(parts[i // step], version)


def run(part: bytes, version: str) -> Iterator[pa.RecordBatch]:
    """The batches of one part, in wire types."""
    check_version(version)
    yield from plan_batches(*pickle.loads(zlib.decompress(part)))


def plan_batches(plan: ScanPlan, wire: pa.Schema, modes: Modes | None) -> Iterator[pa.RecordBatch]:
    """The batches of a plan, in wire types."""
    left = plan.request.limit
    for file in plan.files:
        if left == 0:
            return
        limited = replace(plan, files=(file,), request=replace(plan.request, limit=left))
        try:
            for batch in limited.execute():
                if left is not None:
                    left -= batch.num_rows
                yield _outgoing(batch, wire, file, plan, modes)
        except FileNotFoundError as error:
            error.add_note(
                f"{file.source.name}: planned on the driver, and not to be seen from this executor: it was removed, "
                "or lies on a disk that only the driver has; put it where every node sees it under the same name"
            )
            raise
        except Exception as error:
            if file.source.name not in str(error):
                error.add_note(f"while reading {file.source.name}")
            raise


def _outgoing(
    batch: pa.RecordBatch, wire: pa.Schema, file: FilePlan, plan: ScanPlan, modes: Modes | None
) -> pa.RecordBatch:
    if batch.num_columns == 0:  # the JVM refuses such a batch: a column of nulls has its rows
        return pa.RecordBatch.from_arrays([pa.nulls(batch.num_rows)], names=[ROWS])
    made = to_wire(batch, wire, file.source.name)
    if modes is not None:
        _check_calendar(made, file, plan, modes)
    return made


def _check_calendar(batch: pa.RecordBatch, file: FilePlan, plan: ScanPlan, modes: Modes) -> None:
    folders = {name for name, _ in file.source.partitions}
    for name, array in zip(batch.schema.names, batch.columns, strict=True):
        if name not in folders and holds_old(array):
            most = plan.request.limits.max_metadata_bytes
            check_values(name, cache.open(file.source, Report(), most), modes)
