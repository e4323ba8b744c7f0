"""`rewrite`: a Parquet file, or all rows of a dataset, written anew in the layout for lookups."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from pageseek.api import open_file, retry_policy, scan
from pageseek.base.errors import RewriteError, UnsupportedError
from pageseek.base.memory import machine_bytes
from pageseek.base.progress import Watch, counted
from pageseek.base.report import Report
from pageseek.dataset.sources import Found, files_of
from pageseek.dataset.table_versions import AsOf
from pageseek.format.embedded import KEY
from pageseek.index.payloads import footer_key
from pageseek.prune.registry import kind_names
from pageseek.rewriting import request as asked
from pageseek.rewriting.checking import check
from pageseek.rewriting.digest import Digest
from pageseek.rewriting.encoding import (
    MOST_BYTES,
    MOST_TOLD_BYTES,
    group_rows_of,
    plain,
    plain_schema,
)
from pageseek.rewriting.layout import PAGE_ROWS, Layout
from pageseek.rewriting.orders import ByColumns, OnCurve, Order
from pageseek.rewriting.output import Output
from pageseek.rewriting.places import NO_COMMIT, Destination, destination
from pageseek.rewriting.reading import batches_of
from pageseek.rewriting.rewritten import Rewritten
from pageseek.rewriting.sorting import Sorter
from pageseek.rewriting.spill import check_folder
from pageseek.scan.scan import Scan
from pageseek.storage import Source

T = TypeVar("T")
FILE_GROUPS = 10  # row groups of a file, where output is a folder
MEMORY_PART = 4  # one byte in so many of the machine's memory, unless it is told
FIRST_ROWS, FIRST_BYTES = 1 << 16, 64 << 20  # by which the size of rows is known
SAMPLE = 1 << 15  # rows of which the shares of values are known, and where parts are cut
BATCH_ROWS = 1 << 17
STEP_BYTES = 64 << 20  # of the tables that the encoder takes


def rewrite(
    source: Any,
    output: Any = None,
    *,
    sort_by: str | Sequence[str | tuple[str, str]] = (),
    cluster_by: Sequence[str] = (),
    page_rows: int = PAGE_ROWS,
    row_group_rows: int | None = None,
    file_rows: int | None = None,
    codec: str = "zstd",
    indexes: Mapping[str, Any] | None = None,
    in_place: bool = False,
    overwrite: bool = False,
    memory_limit: int | None = None,
    spill_folder: str | None = None,
    table: bool | None = None,
    storage_options: Mapping[str, Any] | None = None,
    threads: int | None = None,
    progress: bool | Watch = False,
    **options: Any,
) -> Rewritten:
    """Write a Parquet file, or all rows of a dataset, anew: sorted or clustered, in small pages, with indexes.

    A filter on a column that a file is sorted by reads a page or two of each column. What was written is read again and compared with the
    source before it gets its name; until then, and if the process is killed, the source is as it was.

    Parameters
    ----------
    source : path, URL, glob, folder, sequence of them, (filesystem, path), bytes, or a table
        What is read, named as for `scan`. All rows of several files are written together; columns in the names of folders become
        columns of the new file.
    output : path, URL, or (filesystem, path)
        A file; or a folder for several (`file_rows`, a name with a slash at its end, or a folder that is there and empty).
    sort_by : str, or list of str and (str, "descending")
        Sort all rows by these columns. Rows that tie keep their order. NaN comes after all numbers and null after NaN, in both
        directions. The footer says how the rows are sorted.
    cluster_by : list of str
        Two to eight columns: rows that are close in all of them lie close together, so that a filter on any of them reads a
        part of the pages. The rows lie along Hilbert's curve through the shares of rows below their values, which a sample of
        32,768 rows tells: skewed values are spread evenly. Instead of `sort_by`; with neither, rows keep their order.
    page_rows : int
        Rows of a page, at most; 1,000 unless given. A page also ends at about 1 MiB.
    row_group_rows : int
        Rows of a row group; unless given, a million or what is 128 MiB in memory, if that is less.
    file_rows : int
        Rows of a file, if `output` is a folder; 10 row groups unless given.
    codec : {"zstd", "snappy", "gzip", "brotli", "lz4", "none"}
        How pages are compressed.
    indexes : dict
        Indexes of the new file, as of `pageseek.index.attach`: `{"lookup": ["id"], "bitmap": ["state"], "bloom": ["uid"]}`. Those of the source
        are not taken over. All columns have a page index in any case.
    in_place : bool
        Replace the source, which is one file, if it is still the version that was read. In a store this takes a conditional write.
    overwrite : bool
        Let `output` replace a file that is there.
    memory_limit : int
        Bytes of memory, about; a quarter of the machine's unless given. Rows that do not fit wait in a temporary file.
    spill_folder : str
        The folder of that file; the system's folder for temporary files unless given.
    table : bool
        What a folder of a table means, as of `scan`. A table is read as any source; it cannot be written to yet.
    storage_options : mapping
        Options of the stores of `source` and `output`, as of `scan`.
    threads : int
        Threads that decode; by default one for each core.
    progress : bool or callable
        Show a bar (by tqdm), or call a function with a pageseek.Progress.
    **options
        How the source is read, as of `scan`: `int96_unit`, `out_of_range`, `partitioning`, `schema`, `version`, `timestamp`, `snapshot`, `retries`,
        `timeout`, `max_page_bytes`, `max_output_bytes`, `max_metadata_bytes`.

    Returns
    -------
    Rewritten
        What was written. Print it.

    Raises
    ------
    UnsupportedError
        The place lies in a table of Delta Lake or Iceberg; a column has no order, or cannot have such an index.
    RewriteError
        What was written is not what was read: nothing is left of it.
    FileChangedError
        The file was replaced meanwhile, and stays.
    FileExistsError
        There is something at `output`.
    CorruptFileError, StoreError
        The source cannot be read, or the new file cannot be written.
    """
    began = time.perf_counter()
    by, clustered = asked.sort_columns(sort_by), asked.cluster_columns(cluster_by)
    if by and clustered:
        raise ValueError("sort_by and cluster_by: rows have one order; give one of them")
    if table is not None and not isinstance(table, bool):
        raise UnsupportedError(f"table={type(table).__name__}: {NO_COMMIT}")
    indexes = {} if indexes is None else dict(indexes)
    asked.check_names(options, indexes)
    check_folder(spill_folder)
    memory = machine_bytes() // MEMORY_PART
    if memory_limit is not None:
        memory = asked.number("memory_limit", memory_limit, asked.LEAST_MEMORY)
    rows_of = [
        ("page_rows", page_rows),
        ("row_group_rows", row_group_rows),
        ("file_rows", file_rows),
    ]
    given = {name: None if n is None else asked.number(name, n) for name, n in rows_of}
    layout = Layout(
        given["page_rows"] or PAGE_ROWS,
        given["row_group_rows"] or 0,
        asked.codec_named(codec),
        MOST_BYTES if given["row_group_rows"] is None else MOST_TOLD_BYTES,
        tuple(by),
    )
    as_of = AsOf.of(options.get("version"), options.get("timestamp"), options.get("snapshot"))
    policy = retry_policy(options.get("retries"), options.get("timeout"))
    found = files_of(source, storage_options, policy, table, as_of)
    if in_place:
        if found.table is not None:
            raise UnsupportedError(
                f"{found.origin.notes[0] if found.origin.notes else source}: in_place=True: {NO_COMMIT}"
            )
        options = {"partitioning": False, **options}  # the names of its folders stay
    reading = partial(
        scan, source, table=table, storage_options=storage_options, threads=threads,
        max_ahead_bytes=min(256 << 20, memory // 4), **options,
    )  # fmt: skip
    work = _Work(found, reading, by, clustered, layout, memory, spill_folder, threads, progress)
    asked.check_columns(
        work.schema, "sort_by" if by else "cluster_by", [n for n, _ in by] or clustered, work.name
    )
    if indexes:
        asked.try_indexes(work.schema, work.layout, indexes, work.name)
    with closing(
        destination(
            list(found.files), output, in_place, overwrite, file_rows is not None, storage_options
        )
    ) as place:
        made = work.run(place, given["file_rows"], indexes)
    made.seconds = time.perf_counter() - began
    return made


class _Work:
    """One rewrite, as far as the arguments are known to be right."""

    def __init__(
        self,
        found: Found,
        reading: Callable[..., Scan],
        by: list[tuple[str, bool]],
        clustered: list[str],
        layout: Layout,
        memory: int,
        spill_folder: str | None,
        threads: int | None,
        progress: bool | Watch,
    ) -> None:
        self._found, self._by, self._clustered = found, by, clustered
        self._memory, self._folder = memory, spill_folder
        self._threads, self._progress = threads, progress
        self.name = (
            str(found.files[0].name) if len(found.files) == 1 else f"{len(found.files):,} files"
        )
        first = reading(batch_size=1024)
        self.schema = _kept(first.schema)
        if not self.schema.names:
            raise UnsupportedError(f"{self.name}: it has no columns, and nothing to write anew")
        self._plain = plain_schema(self.schema)
        sample = self._first(first)
        row_bytes = max(sample.nbytes // max(sample.num_rows, 1), 1)
        self.layout = replace(layout, group_rows=layout.group_rows or group_rows_of(sample))
        self._scan = partial(
            reading, batch_size=max(min(BATCH_ROWS, memory // 32 // row_bytes), 256)
        )
        self._step = max(
            min(self.layout.group_rows, STEP_BYTES // row_bytes, memory // 16 // row_bytes), 1
        )

    def _first(self, first: Scan) -> pa.Table:
        """The first rows."""
        batches, size = [], 0
        with closing(first.limit(FIRST_ROWS).to_batches()) as rows:  # type: ignore[type-var]
            for batch in rows:
                batches.append(plain(batch, self._plain))
                size += batches[-1].nbytes
                if size >= FIRST_BYTES:
                    break
        return pa.Table.from_batches(batches, self._plain)

    def run(
        self, place: Destination, file_rows: int | None, indexes: Mapping[str, Any]
    ) -> Rewritten:
        """Write the files."""
        total = self._scan().count_rows()
        order = self._order(total)
        several = place.folder_of_files
        per_file = (file_rows or FILE_GROUPS * self.layout.group_rows) if several else None
        expected = Digest(self._plain, in_order=order is None)
        spilled = 0
        output = Output(place, self.schema, self.layout, per_file)
        with closing(output):
            batches = (plain(b, self._plain) for b in batches_of(self._scan(), self._progress))
            rows: Iterator[pa.Table]
            if order is None:
                rows = (pa.Table.from_batches([b]) for b in expected.add_all(batches))
                output.write(_ahead(rows, self._threads), lambda n: None)
            else:
                sorter = Sorter(
                    order, self._plain, self._memory, self._step,
                    partial(self._keys, order, total), total, self._threads or os.cpu_count() or 1, self._folder,
                )  # fmt: skip
                rows = sorter.sorted(expected.add_all(batches))
                with counted("rows", total, self._progress, Report()) as step:
                    output.write(_ahead(rows, self._threads), step)
                spilled = sorter.spilled
            if expected.rows != total:
                raise RewriteError(
                    f"{self.name}: {expected.rows:,} rows were read, and its metadata counts {total:,}; nothing was written"
                )
            check(
                output.files, place.name, self.schema, self._plain, expected, order,
                threads=self._threads, max_ahead_bytes=min(256 << 20, self._memory // 4),
            )  # fmt: skip
            groups, pages = _counts(output.files)
            output.appear(indexes, self._threads, self._progress)
        return Rewritten(
            output.names, expected.rows, groups, pages, _sizes(self._found.files), sum(output.sizes),
            [(name, asked.WAYS[down]) for name, down in self._by], list(self._clustered), output.attached, spilled,
        )  # fmt: skip

    def _order(self, total: int) -> Order | None:
        if self._by:
            return ByColumns(self._by)
        if not self._clustered:
            return None
        return OnCurve(self._clustered, self._sample(self._clustered, total))

    def _keys(self, order: Order, total: int) -> pa.RecordBatch:
        return order.keys(self._sample(order.columns, total))

    def _sample(self, columns: Sequence[str], total: int) -> pa.RecordBatch:
        """Some rows of a few columns: the same ones each time, spread over the source."""
        names = list(columns)
        schema = pa.schema([self._plain.field(name) for name in names])
        rows = self._scan().select(names)
        n = min(SAMPLE, total)
        if n < total:
            starts = np.arange(n, dtype=np.int64) * total // n
            stops = np.append(starts[1:], total)
            # one row of each stretch, by chance: values that repeat with a period are met evenly
            rows = rows.take(np.random.default_rng(0).integers(starts, stops))
        made = [plain(batch, schema) for batch in rows.to_batches()]
        return pa.concat_batches(made) if made else pa.RecordBatch.from_pylist([], schema)


def _kept(schema: pa.Schema) -> pa.Schema:
    """A schema without the keys of indexes, which the new file does not have."""
    gone = {KEY} | {key for key in map(footer_key, kind_names()) if key is not None}
    metadata = {key: value for key, value in (schema.metadata or {}).items() if key not in gone}
    return schema.with_metadata(metadata or None)


def _ahead(made: Iterator[T], threads: int | None) -> Iterator[T]:
    """What an iterator gives; while one is used, the next is made in a thread."""
    if threads == 1:
        yield from made
        return
    end: Any = object()
    with ThreadPoolExecutor(1, "pageseek-rewrite") as pool:
        future = pool.submit(next, made, end)
        while (one := future.result()) is not end:
            future = pool.submit(next, made, end)
            yield one
            del one


def _counts(files: Iterable[Source]) -> tuple[int, int]:
    """Row groups and data pages."""
    groups = pages = 0
    for one in files:
        with open_file(one) as file:
            groups += file.num_row_groups
            for leaf in file.leaves:
                for group in range(file.num_row_groups):
                    index = file.offset_index(group, leaf)
                    pages += 0 if index is None else len(index.offset)
    return groups, pages


def _sizes(files: Iterable[Source]) -> int:
    """Bytes of files."""
    total = 0
    for one in files:
        with closing(one.open()) as store:
            total += store.size
    return total
