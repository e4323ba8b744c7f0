"""What a task of `write` does: rows come in from the JVM, files are staged, and a row for each goes back."""

from __future__ import annotations

import inspect
import json
import mmap
import os
import pickle
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pageseek.base.arrays import first_leaves
from pageseek.base.errors import UnsupportedError
from pageseek.base.records import NamedTuple
from pageseek.index import attach
from pageseek.index.delta_statistics import stated
from pageseek.spark.tasks.shipping import Task, check_version, shipped
from pageseek.spark.writing.write_types import converted
from pageseek.storage.atomic_files import fsync_folder
from pageseek.storage.hive import NULL
from pageseek.storage.output_folders import OutputFolder
from pageseek.storage.writing import writer

GROUP_BYTES = 128 << 20  # of Arrow, in a row group: they are held in memory until it is written
LOOKUP_ROWS = 1000  # of a page, in files for lookups
# a lookup reads the dictionary with its page. By less, columns of a few thousand values would be ten times as large
LOOKUP_DICTIONARY_BYTES = 128 << 10
SHOWN = 40  # characters of a value that errors show
SCAN_BYTES = 1 << 20  # of a page, in files for scans
REPORT = pa.schema(
    [
        ("partition", pa.int32()), ("attempt", pa.string()), ("staged", pa.string()), ("name", pa.string()),
        ("rows", pa.int64()), ("bytes", pa.int64()), ("statistics", pa.string()), ("values", pa.string()), ("refused", pa.string()),
    ]
)  # fmt: skip
REPORT_DDL = (
    "partition int, attempt string, staged string, name string, rows bigint, bytes bigint, "
    "statistics string, values string, refused string"
)
# what Hive and Spark escape in the name of a folder, beside control characters
_ESCAPED = frozenset("\"#%'*/:=?\\{[]^\x7f") | {chr(c) for c in range(1, 32)}
Texts = tuple[str | None, ...]  # of the values of a partition
_HAS_PAGE_ROWS = "max_rows_per_page" in inspect.signature(pq.ParquetWriter.__init__).parameters


class StagedReport(NamedTuple):
    """What a task says of a file. One that has written none gives one report without names.

    `values`: the texts of its partition, as a list in JSON. `refused`: why the task has given up, which the driver is to raise.
    """

    partition: int
    attempt: str
    staged: str | None
    name: str
    rows: int
    bytes: int
    statistics: str | None
    values: str | None
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class WriteSpec:
    """What all tasks of a write have in common.

    `schema`: of the files; the columns of `partition_by` follow it as text. `sorting`: columns, and whether descending.
    `statistics`: whether reports have those of the columns.
    """

    folder: OutputFolder
    staging: str
    job: str
    schema: pa.Schema
    partition_by: tuple[str, ...]
    layout: str
    sorting: tuple[tuple[str, bool], ...]
    compression: str
    metadata: Mapping[str, str]
    bloom: Mapping[str, float]
    indexes: Mapping[str, Sequence[str]]
    group_rows: int
    file_rows: int | None
    statistics: bool = False


def make_task(spec: WriteSpec, python_path: str | None) -> Task:
    """The function for `mapInArrow`."""
    return shipped(
        "pageseek.spark.writing.write_task", "run", python_path, pickle.dumps(spec, protocol=5)
    )


def run(batches: Iterator[pa.RecordBatch], version: str, packed: bytes) -> Iterator[pa.RecordBatch]:
    """Write the rows of a partition, and report the files."""
    from pyspark import TaskContext

    check_version(version)
    context = TaskContext.get()
    partition = 0 if context is None else context.partitionId()
    yield write_partition(pickle.loads(packed), partition, batches)


def write_partition(
    spec: WriteSpec, partition: int, batches: Iterator[pa.RecordBatch]
) -> pa.RecordBatch:
    """Stage the rows of one partition in files of this attempt. Returns a row for each file, or one without a file."""
    attempt = Attempt(spec, partition)
    try:
        for batch in batches:
            attempt.take(batch)
        return attempt.finished()
    except UnsupportedError as error:  # which other attempts would raise, too
        attempt.abandon()
        for _ in batches:
            pass
        return attempt.given_up(str(error))
    except BaseException:
        attempt.abandon()
        raise


def folder_name(column: str, value: str | None) -> str:
    """The folder of a value of a partition column, as Spark names it."""
    return f"{_escaped(column)}={_escaped(value) if value else NULL}"


def _escaped(text: str) -> str:
    if _ESCAPED.isdisjoint(text):
        return text
    return "".join(f"%{ord(c):02X}" if c in _ESCAPED else c for c in text)


def attempt_folder(folder: OutputFolder, staging: str, attempt: str) -> str:
    """Make the folder of an attempt in the staging folder that the driver has made on a disk. Returns its path."""
    made = os.path.join(folder.path, staging, attempt)
    try:
        os.mkdir(made)
    except FileNotFoundError as error:
        error.add_note(
            f"{folder.name}: the driver has made this folder, and it is not to be seen from this executor, or the "
            "write was given up; write to where every node sees it under the same name"
        )
        raise
    return made


class Attempt:
    """One attempt to write a partition. Its files lie in a folder of its own."""

    def __init__(self, spec: WriteSpec, partition: int) -> None:
        self._spec, self._partition = spec, partition
        self._attempt = f"{partition:05}-{secrets.token_hex(6)}"
        self._file: StagedFile | None = None
        self._at: Texts | None = None  # the partition of its rows
        self._rows: list[tuple[Any, ...]] = []
        self._temporary: str | None = None
        if spec.folder.far:
            self._temporary = tempfile.mkdtemp(prefix="pageseek-write-")
            self._local = self._temporary
            return
        self._local = attempt_folder(spec.folder, spec.staging, self._attempt)

    def take(self, batch: pa.RecordBatch) -> None:
        """Write rows."""
        count = len(self._spec.partition_by)
        data = converted(batch.select(range(batch.num_columns - count)), self._spec.schema)
        if not count:
            self._write((), data)
            return
        values = batch.columns[-count:]
        for start, stop in _runs(values):
            self._write(self._texts(values, start), data[start:stop])

    def _write(self, partition: Texts, data: pa.RecordBatch) -> None:
        # an empty text and NULL share a folder, and no file: tables tell them apart
        if partition != self._at:
            self._close()
            self._at = partition
            self._check_name()
        most = self._spec.file_rows
        while data.num_rows:
            if self._file is None:
                self._file = StagedFile(
                    self._spec, os.path.join(self._local, f"{len(self._rows):05}.parquet")
                )
            part = data if most is None else data[: most - self._file.rows]
            self._file.add(part)
            data = data[part.num_rows :]
            if self._file.rows == most:
                self._close()

    def _texts(self, values: Sequence[pa.Array], row: int) -> Texts:
        """The values of the partition of a row. UnsupportedError: one is no text."""
        made = []
        for column, array in zip(self._spec.partition_by, values, strict=True):
            try:
                made.append(array[row].as_py())
            except UnicodeDecodeError as error:
                raise self._unnamed(column, error.object, "it is not UTF-8") from None
        return tuple(made)

    def _check_name(self) -> None:
        """Raise UnsupportedError where the folders of the partition cannot be: before its rows are written."""
        texts = self._at or ()
        why = self._spec.folder.refused(self._name()) if texts else None
        if why is None:
            return
        named = list(zip(self._spec.partition_by, texts, strict=True))
        column, text = max(named, key=lambda one: ("\0" in (one[1] or ""), len(folder_name(*one))))
        raise self._unnamed(column, text, why)

    def _unnamed(self, column: str, value: Any, why: str) -> UnsupportedError:
        shown = repr(value)
        if value is not None and len(value) > SHOWN:
            shown = f"{value[:SHOWN]!r}... (of length {len(value)})"
        return UnsupportedError(
            f"{self._spec.folder.name}: partition_by: column {column!r} has the value {shown}, which cannot name a folder there: {why}; "
            "nothing was written: partition by a shorter or simpler value, such as a part or a hash of it"
        )

    def _name(self) -> str:
        """The last name of the file that is being written."""
        codec = "" if self._spec.compression == "none" else f".{self._spec.compression}"
        name = f"part-{self._partition:05}-{self._spec.job}-c{len(self._rows):03}{codec}.parquet"
        return "/".join([*map(folder_name, self._spec.partition_by, self._at or ()), name])

    def _close(self) -> None:
        if self._file is None:
            return
        self._file.close()
        number = len(self._rows)
        staged = f"{self._spec.staging}/{self._attempt}/{number:05}.parquet"
        if self._temporary is not None:
            upload(self._file.path, self._spec.folder, staged)
        self._rows.append(
            (
                self._partition, self._attempt, staged, self._name(), self._file.rows,
                self._file.bytes, self._file.statistics, json.dumps(self._at or ()), None,
            )
        )  # fmt: skip
        self._file = None

    def finished(self) -> pa.RecordBatch:
        """All rows are written: the report."""
        self._close()
        if self._temporary is None:
            fsync_folder(os.path.join(self._local, "x"))
            fsync_folder(self._local)
        else:
            shutil.rmtree(self._temporary, ignore_errors=True)
        return self._report(self._rows or [self._no_file()])

    def given_up(self, why: str) -> pa.RecordBatch:
        """The report of an attempt that is not to be made again."""
        return self._report([(*self._no_file()[:-1], why)])

    def _no_file(self) -> tuple[Any, ...]:
        return self._partition, self._attempt, None, None, 0, 0, None, None, None

    def _report(self, rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
        columns = [
            pa.array(c, kind) for c, kind in zip(zip(*rows, strict=True), REPORT.types, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=REPORT)

    def abandon(self) -> None:
        """Leave nothing, as far as that is possible."""
        with suppress(Exception):
            if self._file is not None:
                self._file.abandon()
        shutil.rmtree(self._local, ignore_errors=True)


def write_empty(spec: WriteSpec) -> pa.RecordBatch:
    """Stage a file without rows, which has the schema. Returns its report."""
    attempt = Attempt(spec, 0)
    try:
        attempt._file = StagedFile(spec, os.path.join(attempt._local, "00000.parquet"))
        return attempt.finished()
    except BaseException:
        attempt.abandon()
        raise


class StagedFile:
    """A Parquet file that is being written on this machine."""

    def __init__(self, spec: WriteSpec, path: str) -> None:
        self.path, self.rows, self.bytes = path, 0, 0
        self.statistics: str | None = None
        self._spec = spec
        self._held: list[pa.RecordBatch] = []
        self._held_rows = self._held_bytes = 0
        schema = spec.schema
        pages: dict[str, Any] = {"data_page_size": SCAN_BYTES}
        if spec.layout == "lookup":
            # without a limit of rows: a page ends with each batch of so many values
            pages = (
                {"max_rows_per_page": LOOKUP_ROWS, "write_batch_size": LOOKUP_ROWS}
                if _HAS_PAGE_ROWS
                else {"data_page_size": 1, "write_batch_size": LOOKUP_ROWS}
            )
            pages["dictionary_pagesize_limit"] = LOOKUP_DICTIONARY_BYTES
        first = first_leaves(schema)
        sorting = [pq.SortingColumn(first[c], down, not down) for c, down in spec.sorting]
        self._writer = pq.ParquetWriter(
            path, schema, compression=spec.compression, write_page_index=True, store_schema=False,
            store_decimal_as_integer=True, sorting_columns=sorting or None, **pages,
        )  # fmt: skip

    def add(self, batch: pa.RecordBatch) -> None:
        """Write rows: at the end of a row group they go to the file."""
        size = batch.nbytes
        while batch.num_rows:
            part = batch[: self._spec.group_rows - self._held_rows]
            self._held.append(part)
            self._held_rows += part.num_rows
            self._held_bytes += size * part.num_rows // max(batch.num_rows, 1)
            self.rows += part.num_rows
            if self._held_rows == self._spec.group_rows or self._held_bytes >= GROUP_BYTES:
                self._flush()
            batch, size = batch[part.num_rows :], size - size * part.num_rows // batch.num_rows

    def _flush(self) -> None:
        if not self._held:
            return
        table = pa.Table.from_batches(self._held, self._spec.schema)
        self._held, self._held_rows, self._held_bytes = [], 0, 0
        self._writer.write_table(table, row_group_size=table.num_rows)

    def close(self) -> None:
        """Write the footer, add indexes, and flush the file to disk."""
        self._flush()
        self._writer.add_key_value_metadata(dict(self._spec.metadata))
        self._writer.close()
        spec = self._spec
        if (spec.bloom or spec.indexes) and self.rows:
            attach(
                self.path, page_index=False, bloom=spec.bloom, indexes=spec.indexes, in_place=True, threads=1
            )  # fmt: skip
        else:
            fd = os.open(self.path, os.O_RDWR)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
        self.bytes = os.path.getsize(self.path)
        if spec.statistics:
            self.statistics = stated(pq.read_metadata(self.path))

    def abandon(self) -> None:
        """Close the file, which is not wanted."""
        self._held = []
        self._writer.close()


def upload(path: str, folder: OutputFolder, staged: str) -> None:
    """Bring a file of this machine to a store, and delete it here."""
    folder.make_for([staged])
    with open(path, "rb") as file:
        body = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    writer(folder.source(staged)).put(memoryview(body), overwrite=True)
    with suppress(BufferError):  # a client may hold it a little longer
        body.close()
    os.unlink(path)


def _runs(values: Sequence[pa.Array]) -> list[tuple[int, int]]:
    """Where all columns stay the same: starts and stops."""
    rows = len(values[0])
    change = np.zeros(max(rows - 1, 0), bool)
    for array in values:
        codes = np.asarray(array.dictionary_encode(null_encoding="encode").indices)
        change |= codes[1:] != codes[:-1]
    ends = [0, *(np.flatnonzero(change) + 1).tolist(), rows]
    return [(a, b) for a, b in pairwise(ends) if b > a]
