"""A lookup in an executor: keys meet the rows of files."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pageseek.base.errors import FileChangedError
from pageseek.base.report import Report
from pageseek.datasets.file_cache import cache
from pageseek.predicate.expression import And, Expression, flatten
from pageseek.scanning.plans.prepare import make_plan
from pageseek.scanning.plans.scan_plan import ScanPlan
from pageseek.spark.calendar.calendar_marks import Calendars
from pageseek.spark.lookups.key_index import KeyIndex
from pageseek.spark.lookups.lookup_keys import (
    comparable,
    condition,
    ordered,
    whole,
    without_nulls,
)
from pageseek.spark.lookups.lookup_ranges import KeyRange
from pageseek.spark.tasks.metrics import key_of
from pageseek.spark.tasks.shipping import check_version
from pageseek.spark.tasks.task import begin_task, execute, new_report
from pageseek.storage import Sources

MOST_KEYS = 1_000_000  # that a task holds at a time, with the rows of its files that have them
MOST_KEY_BYTES = 64 << 20
GATHERED_ROWS = 1 << 16  # rows that meet the keys together
GATHERED_BYTES = 32 << 20


@dataclass(frozen=True)
class Probe:
    """What a task does with keys and rows.

    Attributes
    ----------
    on : tuple of str
        The columns of the files that equal the columns of the keys.
    forms : tuple of int
        How keys are compared with them (lookup_keys.py).
    output : tuple of str
        The columns of the files that come out.
    with_keys : bool
        Every pair of a key and a row comes out, with the columns of the key first. Else every row that has a key does, once.
    filter : Expression, optional
        A further condition on the rows.
    wire : pyarrow.Schema
        The wire types of the scan's columns.
    calendars : Calendars, optional
        How old dates and times are converted, where a column may have some.
    """

    on: tuple[str, ...]
    forms: tuple[int, ...]
    output: tuple[str, ...]
    with_keys: bool
    filter: Expression | None
    wire: pa.Schema
    calendars: Calendars | None = None

    def condition(self, keys: pa.Table) -> Expression:
        """The filter of the files: it is TRUE for all rows that have a key, and may be for others."""
        tests = [
            condition(name, form, whole(column))
            for name, form, column in zip(self.on, self.forms, keys.columns, strict=True)
        ]
        if self.filter is not None:
            tests.insert(0, self.filter)
        return flatten(And(tuple(tests))) if len(tests) > 1 else tests[0]

    def batches(self, plan: ScanPlan, keys: pa.Table, report: Report) -> Iterator[pa.RecordBatch]:
        """The rows of a plan, which was made with the condition, that have a key. The keys have no nulls.

        `report` is filled as they come.
        """
        index: KeyIndex | None = None
        for table in _gathered(execute(plan, self.wire, self.calendars, report)):
            if index is None:
                index = KeyIndex([whole(column) for column in keys.columns])
            codes = index.codes([whole(table.column(name)) for name in self.on])
            pairs = (
                index.pairs(codes)
                if self.with_keys
                else iter([(np.flatnonzero(codes >= 0), codes)])
            )
            for rows, places in pairs:
                yield from self._outgoing(table, rows, keys, places)

    def _outgoing(
        self, table: pa.Table, rows: np.ndarray, keys: pa.Table, places: np.ndarray
    ) -> Iterator[pa.RecordBatch]:
        """Rows, and the key of each where keys come out, at most GATHERED_ROWS at a time."""
        for start in range(0, len(rows), GATHERED_ROWS):
            piece = slice(start, start + GATHERED_ROWS)
            columns = []
            if self.with_keys:
                chosen = pa.array(places[piece])
                columns = [whole(column.take(chosen)) for column in keys.columns]
            taken = pa.array(rows[piece])
            columns += [whole(table.column(name).take(taken)) for name in self.output]
            if not columns:  # the JVM refuses a batch without columns
                columns = [pa.nulls(len(taken))]
            names = [str(i) for i in range(len(columns))]
            yield pa.RecordBatch.from_arrays(columns, names=names)


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches together, until they have GATHERED_ROWS or GATHERED_BYTES."""
    kept: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        kept.append(batch)
        rows += batch.num_rows
        size += batch.get_total_buffer_size()  # of a part of a table too much; `nbytes` takes long
        if rows >= GATHERED_ROWS or size >= GATHERED_BYTES:
            yield pa.Table.from_batches(kept)
            kept, rows, size = [], 0, 0
    if rows:
        yield pa.Table.from_batches(kept)


# -- keys that every task has ---------------------------------------------------------------------


def pack(plan: ScanPlan) -> bytes:
    """A part of a plan as bytes, without its filter and without metadata of the schema."""
    schema = pa.schema([pa.field(f.name, f.type, f.nullable) for f in plan.schema])
    request = replace(plan.request, filter=None)
    lean = replace(plan, schema=schema, request=request)
    return zlib.compress(pickle.dumps(lean, protocol=5), 1)


def _unpacked(part: bytes) -> ScanPlan:
    plan: ScanPlan = pickle.loads(zlib.decompress(part))
    return plan


def pack_keys(keys: pa.Table) -> bytes:
    """Keys as bytes."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(sink, keys.schema, options=options) as writer:
        writer.write_table(keys)
    return bytes(sink.getvalue())


def probe_parts(
    batches: Iterator[pa.RecordBatch],
    version: str,
    probe: bytes,
    keys: bytes,
    parts: Sequence[bytes],
    step: int,
    reports: Any,
) -> Iterator[pa.RecordBatch]:
    """The rows of the parts whose numbers are every `step`-th id. `reports`: an accumulator for their reports."""
    begin_task()
    check_version(version)
    # Spark throws a worker away whose input was not read to its end
    ids = [i for batch in batches for i in batch.column(0).to_pylist()]
    if not ids:
        return
    how: Probe = pickle.loads(probe)
    table = pa.ipc.open_stream(keys).read_all()
    for i in ids:
        part, report = parts[i // step], new_report()
        plan = _unpacked(part)
        request = replace(plan.request, filter=how.condition(table))
        yield from how.batches(replace(plan, request=request), table, report)
        if reports is not None:
            reports.add({key_of(part): report})


# -- keys that are shuffled -----------------------------------------------------------------------


def assign(
    batches: Iterator[pa.RecordBatch], version: str, sent: bytes
) -> Iterator[pa.RecordBatch]:
    """Each key with the id of each part whose range has it. A key outside all ranges is in no file.

    `sent`: the ranges and the ids, pickled.
    """
    begin_task()
    check_version(version)
    ranges: Sequence[KeyRange]
    ranges, ids = pickle.loads(sent)
    for batch in batches:
        table = without_nulls(pa.Table.from_batches([batch]))
        if not table.num_rows:
            continue
        values = [ordered(whole(column)) for column in table.columns]
        for key_range, number in zip(ranges, ids, strict=True):
            found = table.filter(key_range.covers(values[key_range.by]))
            if not found.num_rows:
                continue
            columns = [pa.array(np.full(found.num_rows, number, np.int32))]
            columns += [whole(column) for column in found.columns]
            yield pa.RecordBatch.from_arrays(columns, names=["part", *batch.schema.names])


def probe_partition(
    batches: Iterator[pa.RecordBatch],
    version: str,
    sent: bytes,
    parts: Sequence[tuple[int, bytes]],
    reports: Any,
) -> Iterator[pa.RecordBatch]:
    """The rows of the keys of a partition, which come in order: id, then the columns of the keys.

    `sent`: the probe and the schema of the keys, pickled. `parts`: the row groups of each id, not pruned by keys yet.
    `reports`: an accumulator for the reports of those that have keys.
    """
    begin_task()
    check_version(version)
    probe: Probe
    probe, schema = pickle.loads(sent)
    plans = dict(parts)
    told: dict[bytes, Report] = {}
    last: tuple[int, list[pa.Scalar]] | None = None
    for number, keys in _chunks(batches, schema):
        if not probe.with_keys:
            chosen = _after(keys, last[1]) if last is not None and last[0] == number else keys
            last = (
                number,
                [comparable(whole(column.slice(len(keys) - 1)))[0] for column in keys.columns],
            )
            keys = chosen
        if keys.num_rows:
            part = plans[number]
            report = told.setdefault(key_of(part), new_report())
            plan = _pruned(_unpacked(part), probe.condition(keys))
            yield from probe.batches(plan, keys, report)
    if reports is not None:
        reports.add(told)


def _chunks(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[tuple[int, pa.Table]]:
    """Keys of one id each, as many as are held at a time."""
    kept: list[pa.RecordBatch] = []
    held, rows, size = -1, 0, 0
    for batch in batches:
        numbers = np.asarray(batch.column(0))
        ends = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
        for start, stop in pairwise(ends):
            if start == stop:
                continue
            number, piece = int(numbers[start]), batch.slice(start, stop - start)
            if kept and (number != held or rows >= MOST_KEYS or size >= MOST_KEY_BYTES):
                yield held, _keys(kept, schema)
                kept, rows, size = [], 0, 0
            held = number
            kept.append(piece)
            rows, size = rows + piece.num_rows, size + piece.nbytes
    if kept:
        yield held, _keys(kept, schema)


def _keys(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """The columns of keys in a chunk of what Spark sends: the id before them, and the padding behind, are left out."""
    table = pa.Table.from_batches(batches)
    columns = [table.column(i + 1).cast(field.type) for i, field in enumerate(schema)]
    return pa.Table.from_arrays(columns, schema=schema)


def _after(keys: pa.Table, last: Sequence[pa.Scalar]) -> pa.Table:
    """The keys that do not equal the last one of the chunk before, whose rows were given there."""
    same = pa.array([True] * len(keys))
    for column, value in zip(keys.columns, last, strict=True):
        values = comparable(whole(column))
        same = pc.and_(same, pc.equal(values, value))
    return keys.filter(pc.invert(same))


def _pruned(part: ScanPlan, by: Expression) -> ScanPlan:
    """A part with the rows that a condition leaves of it, in the versions of the files that it has.

    Raises
    ------
    FileChangedError
        A file has another version now.
    """
    plan = make_plan(
        Sources.of([file.source for file in part.files]), replace(part.request, filter=by)
    )
    pruned = {file.source.key: file for file in plan.files}
    files = []
    for before in part.files:
        file = pruned.get(before.source.key)
        version = None if file is None else file.version
        if version is None:  # a file that has changed may have keys that the planned one had not
            most = part.request.limits.max_metadata_bytes
            version = cache.open(before.source, Report(), most).store.version
        if version != before.version:
            raise FileChangedError(
                f"{before.source.name}: it has changed since it was planned: call lookup again"
            )
        if file is not None:
            mine = {group.row_group for group in before.groups}
            groups = tuple(group for group in file.groups if group.row_group in mine)
            files.append(replace(file, groups=groups, first_row=before.first_row))
    return replace(part, request=plan.request, files=tuple(files))
