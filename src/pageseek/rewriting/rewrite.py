"""`rewrite`: a Parquet file, all rows of a dataset, or the files of a table, rewritten in the layout for lookups."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa

from pageseek.api import open_file, retry_policy, scan
from pageseek.base.arguments import check_flag, check_progress, number_of_threads
from pageseek.base.errors import RewriteError, UnsupportedError
from pageseek.base.memory import machine_bytes
from pageseek.base.progress import Watch, watched_steps
from pageseek.base.report import Report
from pageseek.base.tracebacks import short_traceback
from pageseek.datasets.sources import Found, files_of
from pageseek.datasets.table_versions import AsOf
from pageseek.format.embedded import KEY
from pageseek.index.payloads import footer_key
from pageseek.prune.registry import kind_names
from pageseek.rewriting import request as asked
from pageseek.rewriting.checking import Check, check
from pageseek.rewriting.digest import Digest
from pageseek.rewriting.encoding import group_rows_of, plain, plain_schema, spread_rows
from pageseek.rewriting.layout import PAGE_ROWS, Layout
from pageseek.rewriting.orders import ByColumns, OnCurve, Order
from pageseek.rewriting.output import Output
from pageseek.rewriting.partition_choice import chosen
from pageseek.rewriting.places import Destination, destination, refuse_own_folder
from pageseek.rewriting.reading import batches_of
from pageseek.rewriting.rewritten import Rewritten
from pageseek.rewriting.sorting import Sorter
from pageseek.rewriting.spill import check_folder
from pageseek.rewriting.table_output import TableOutput, removed
from pageseek.rewriting.table_rewrite import Group, NewFile, TableRewrite
from pageseek.rewriting.tables import rewrite_of
from pageseek.scanning.queries.scan import Scan
from pageseek.storage import Origin, Source

T = TypeVar("T")
FILE_GROUPS = 10  # row groups of a file, where output is a folder
TABLE_FILE_BYTES = 128 << 20  # of a file of a table, about
MEMORY_PART = 4  # one byte in so many of the machine's memory, unless it is told
FIRST_ROWS, FIRST_BYTES = 1 << 16, 64 << 20  # by which the size of rows is known
SAMPLE = 1 << 15  # rows of which the shares of values are known, and where parts are cut
BATCH_ROWS = 1 << 17
STEP_BYTES = 64 << 20  # of the tables that the encoder takes


@short_traceback
def rewrite(
    source: Any,
    output: Any = None,
    *,
    sort_by: str | Sequence[str | tuple[str, str]] = (),
    cluster_by: Sequence[str] = (),
    page_rows: int = PAGE_ROWS,
    row_group_rows: int | None = None,
    file_rows: int | None = None,
    file_bytes: int | None = None,
    codec: str = "zstd",
    indexes: Mapping[str, Any] | None = None,
    in_place: bool = False,
    where: Any = None,
    overwrite: bool = False,
    memory_limit: int | None = None,
    spill_folder: str | None = None,
    table: bool | None = None,
    storage_options: Mapping[str, Any] | None = None,
    threads: int | None = None,
    progress: bool | Watch = False,
    **options: Any,
) -> Rewritten:
    """Rewrite a Parquet file, all rows of a dataset, or a table: sorted or clustered, in small pages, with indexes.

    A filter on a column that a file is sorted by reads a page or two of each column. What was written is read again and compared with the
    source before it gets its name; until then, and if the process is killed, the source is as it was.

    With `in_place`, the files of a table of Delta Lake or Iceberg are exchanged by one commit of the table. Those of one partition are written
    together, in files of about `file_bytes`, without the rows that were deleted. The old files stay for older versions of the
    table, until it removes them (VACUUM, expire_snapshots).

    Parameters
    ----------
    source : path, URL, glob, folder, sequence of them, (filesystem, path), bytes, or a table
        What is read, named as for `scan`. All rows of several files are written together; columns in the names of folders become
        columns of the new file. For `in_place`: a file; the folder of a Delta Lake table, or a `deltalake.DeltaTable`; or a table of
        pyiceberg, from its catalog.
    output : path, URL, or (filesystem, path)
        A file; or a folder for several (`file_rows`, a name with a slash at its end, or a folder that is there and empty).
    sort_by : str, or list of str and (str, "descending")
        Sort all rows by these columns, in a table those of each partition. Rows that tie keep their order. NaN comes after all numbers and
        null after NaN, in both directions. The footer says how the rows are sorted.
    cluster_by : list of str
        Two to eight columns: rows that are close in all of them lie close together, so that a filter on any of them reads a
        part of the pages. The rows lie along Hilbert's curve through the shares of rows below their values, which a sample of
        32,768 rows tells: skewed values are spread evenly. Instead of `sort_by`; with neither, rows keep their order.
    page_rows : int
        Rows of a page, at most; 1,000 unless given. A page also ends at about 1 MiB.
    row_group_rows : int
        Rows of a row group; unless given, a million or what is 128 MiB in memory, if that is less.
    file_rows : int
        Rows of a file, if `output` is a folder, or of a table; 10 row groups unless given.
    file_bytes : int
        Bytes of a file, about, instead of `file_rows`. A file ends with a row group. For a table 128 MiB unless given.
    codec : {"zstd", "snappy", "gzip", "brotli", "lz4", "none"}
        How pages are compressed.
    indexes : dict
        Indexes of the new file, as of `pageseek.index.attach`: `{"lookup": ["id"], "bitmap": ["state"], "bloom": ["uid"]}`. Those of the source
        are not taken over. All columns have a page index in any case.
    in_place : bool
        Replace the source, which is one file, if it is still the version that was read; or exchange the files of a table, if it still has
        them all with all their rows. In a store this takes a conditional write.
    where : str, expression or list
        Partitions of a table, with `in_place`: a filter as of `scan`, of partition columns only, such as `"day >= '2026-01-01'"`. The other
        partitions stay as they are. In Iceberg these are columns that are partitions themselves, not transforms of columns.
    overwrite : bool
        Let `output` replace a file that is there.
    memory_limit : int
        Bytes of memory, about; a quarter of the machine's unless given. Rows that do not fit wait in a temporary file.
    spill_folder : str
        The folder of that file; the system's folder for temporary files unless given.
    table : bool
        What a folder of a table means, as of `scan`.
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
        The place lies in a table of Delta Lake or Iceberg; the table has features that are not known here; a column has no order, or
        cannot have such an index.
    RewriteError
        What was written is not what was read: nothing is left of it.
    FileChangedError
        The file was replaced meanwhile, and stays; or another commit has changed files of the table.
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
        raise TypeError(
            f"table={type(table).__name__}: True or False; a table itself is the source, with in_place=True"
        )
    if file_rows is not None and file_bytes is not None:
        raise ValueError("file_rows and file_bytes: give one of them")
    check_progress(progress)
    check_flag("in_place", in_place)
    check_flag("overwrite", overwrite)
    threads = number_of_threads(threads)
    indexes = asked.indexes_of(indexes)
    asked.check_options(options, rewrite.__kwdefaults__ or ())
    check_folder(spill_folder)
    memory = machine_bytes() // MEMORY_PART
    if memory_limit is not None:
        memory = asked.number("memory_limit", memory_limit, asked.LEAST_MEMORY)
    rows_of = [
        ("page_rows", page_rows),
        ("row_group_rows", row_group_rows),
        ("file_rows", file_rows),
        ("file_bytes", file_bytes),
    ]
    given = {name: None if n is None else asked.number(name, n) for name, n in rows_of}
    layout = asked.layout_of(given["page_rows"], given["row_group_rows"], codec, by)
    as_of = AsOf.of(options.get("version"), options.get("timestamp"), options.get("snapshot"))
    policy = retry_policy(options.get("retries"), options.get("timeout"))
    limits = given["file_rows"], given["file_bytes"]
    how = _How(by, clustered, layout, limits, memory, spill_folder, threads, progress, indexes)
    reading = partial(scan, threads=threads, max_ahead_bytes=min(256 << 20, memory // 4))
    if in_place and output is None:
        into = rewrite_of(source, storage_options, policy, table, as_of)
        if into is not None:
            if overwrite:
                raise ValueError("overwrite=True goes with output=PATH")
            made = _in_table(into, partial(reading, **options), how, where)
            made.seconds = time.perf_counter() - began
            return made
    if where is not None:
        raise ValueError(
            "where= chooses partitions of a table that is rewritten in its place (in_place=True)"
        )
    found = files_of(source, storage_options, policy, table, as_of)
    if in_place and found.table is None:
        options = {"partitioning": False, **options}  # the names of its folders stay
    reading = partial(reading, source, table=table, storage_options=storage_options, **options)
    several = next((name for name in ("file_rows", "file_bytes") if given[name]), "")
    if output is not None and found.table is None:
        refuse_own_folder(source, found.files, output, several, storage_options)
    work = _Work(found, reading, how)
    work.check_arguments()
    if indexes:
        asked.try_indexes(work.schema, work.layout, indexes, work.name)
    with closing(
        destination(list(found.files), output, in_place, overwrite, several, storage_options)
    ) as place:
        made = work.run(place)
    made.seconds = time.perf_counter() - began
    return made


def _in_table(
    table: TableRewrite, reading: Callable[..., Scan], how: _How, where: Any
) -> Rewritten:
    """Rewrite the files of a table, partition by partition, and commit them. `where`: of which partitions; None: of all."""
    made = Rewritten([], 0, 0, 0, 0, 0, how.said_order(), list(how.clustered))
    new: list[NewFile] = []
    order = {"sortBy": [name for name, _ in how.by], "clusterBy": how.clustered}
    groups = table.groups()
    if where is not None:
        schema = reading(Found([], table.found, None, Origin())).schema
        groups = chosen(table, groups, where, {field.name: field.type for field in schema})
        table.choose(groups)
        made.where = str(where)
        order["predicate"] = [made.where]
    done = False
    try:
        for i, group in enumerate(groups):
            work = _Work.of_group(table, group, reading, how)
            if not i:
                work.check_arguments()
                work.check_table(table)
            made.add(work.run_in(table, group, new))
        if groups:
            made.replaced = sum([len(group.files) for group in groups])
            made.version = table.commit(new, order)
        done = True
    finally:
        if not done and not table.may_have(new):
            removed(new)
    return made


@dataclass(frozen=True, slots=True)
class _How:
    """What a caller wants. `limits`: rows and about bytes of a file."""

    by: list[tuple[str, bool]]
    clustered: list[str]
    layout: Layout
    limits: tuple[int | None, int | None]
    memory: int
    folder: str | None
    threads: int | None
    progress: bool | Watch
    indexes: Mapping[str, Any]

    def said_order(self) -> list[tuple[str, str]]:
        """Columns, and "ascending" or "descending"."""
        return [(name, asked.WAYS[down]) for name, down in self.by]


class _Work:
    """One rewrite, as far as the arguments are known to be right."""

    def __init__(self, found: Found, reading: Callable[..., Scan], how: _How) -> None:
        self._found, self._how = found, how
        self._by, self._clustered = how.by, how.clustered
        self._memory, self._folder = how.memory, how.folder
        self._threads, self._progress = how.threads, how.progress
        layout, memory = how.layout, how.memory
        self.name = (
            str(found.files[0].name) if len(found.files) == 1 else f"{len(found.files):,} files"
        )
        first = reading(batch_size=1024)
        self.schema = kept_schema(first.schema)
        if not self.schema.names:
            raise UnsupportedError(f"{self.name}: it has no columns, and nothing to rewrite")
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

    @classmethod
    def of_group(
        cls, table: TableRewrite, group: Group, reading: Callable[..., Scan], how: _How
    ) -> _Work:
        """The work on the files of one partition."""
        files = tuple([table.found.sources[i] for i in group.files])
        found = Found([], replace(table.found, sources=files, bounds=None), None, Origin())
        return cls(found, partial(reading, found), how)

    def check_arguments(self) -> None:
        """Raise where the source lacks a column, or a column has no order."""
        names = [name for name, _ in self._by] or self._clustered
        asked.check_columns(self.schema, "sort_by" if self._by else "cluster_by", names, self.name)

    def check_table(self, table: TableRewrite) -> None:
        """Raise where a column is a partition and has no order in files, or cannot have an index."""
        columns, _ = table.stored(self.schema)
        for name in [name for name, _ in self._by] or self._clustered:
            if name not in columns:
                raise ValueError(
                    f"{'sort_by' if self._by else 'cluster_by'}: {name!r} is a partition of {table.name}: all rows of a file have one value of it"
                )
        if self._how.indexes:
            kept = pa.schema([self.schema.field(name) for name in columns])
            asked.try_indexes(kept, self.layout, self._how.indexes, table.name)

    def _stored_layout(self, table: TableRewrite) -> Layout:
        by = tuple([(table.stored_name(name), down) for name, down in self.layout.sorted_by])
        return replace(self.layout, sorted_by=by)

    def run(self, place: Destination) -> Rewritten:
        """Write the files."""
        total = self._scan().count_rows()
        order = self._order(total)
        rows, size = self._how.limits if place.folder_of_files else (None, None)
        before = _sizes(self._found.files)
        self._fit(size, before, total)
        if place.folder_of_files and size is None:
            rows = rows or FILE_GROUPS * self.layout.group_rows
        output = Output(place, self.schema, self.layout, rows, size)
        with closing(output):
            expected, spilled = self._write(output, order, total)
            check(
                output.files, place.name, self.schema, self._plain, expected, order,
                threads=self._threads, max_ahead_bytes=min(256 << 20, self._memory // 4),
            )  # fmt: skip
            groups, pages = _counts(output.files)
            output.appear(self._how.indexes, self._threads, self._progress)
        return Rewritten(
            output.names, expected.rows, groups, pages, before, sum(output.sizes),
            self._how.said_order(), list(self._clustered), output.attached, spilled,
        )  # fmt: skip

    def run_in(self, table: TableRewrite, group: Group, new: list[NewFile]) -> Rewritten:
        """Write the files of one partition, which are added to `new` and are not yet in the table."""
        total, before = self._scan().count_rows(), _sizes(self._found.files)
        if not total:
            return Rewritten([], 0, 0, 0, before, 0)
        order = self._order(total)
        rows, size = self._how.limits
        size = TABLE_FILE_BYTES if rows is None and size is None else size
        self._fit(size, before, total)
        check = Check(table.name, self.schema, self._plain, order)
        indexes = _stored_names(table, self._how)
        output = TableOutput(
            table, group, self.schema, self._stored_layout(table), (rows, size), check, self._again, indexes, self._threads, new,
        )  # fmt: skip
        with closing(output):
            expected, spilled = self._write(output, order, total)
            check.finish(expected)
        groups, pages = _counts(output.files)
        return Rewritten(
            output.names, expected.rows, groups, pages, before, sum(output.sizes), indexes=output.attached, spilled=spilled,
        )  # fmt: skip

    def _again(self, file: Source) -> Scan:
        """A new file as the table reads it, with the values of its partition."""
        known = self._found.table
        assert known is not None
        file = replace(file, partitions=known.sources[0].partitions)
        found = replace(self._found, table=replace(known, sources=(file,), inside=(), spelt=()))
        return scan(found, threads=self._threads, max_ahead_bytes=min(256 << 20, self._memory // 4))

    def _fit(self, size: int | None, before: int, total: int) -> None:
        """Let row groups be no larger than files are to be, by the size of the rows in the source."""
        if size is not None and not self._how.layout.group_rows and total and before:
            most = max(size * total // before, self.layout.page_rows)
            self.layout = replace(self.layout, group_rows=min(self.layout.group_rows, most))

    def _write(self, output: Output, order: Order | None, total: int) -> tuple[Digest, int]:
        """Write all rows. Returns the digest of what was read, and the bytes that waited on disk."""
        expected = Digest(self._plain, in_order=order is None)
        spilled = 0
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
            with watched_steps("rows", total, self._progress, Report()) as step:
                output.write(_ahead(rows, self._threads), step)
            spilled = sorter.spilled
        if expected.rows != total:
            raise RewriteError(
                f"{self.name}: {expected.rows:,} rows were read, and its metadata counts {total:,}; nothing was written"
            )
        return expected, spilled

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
            rows = rows.take(spread_rows(n, total))
        made = [plain(batch, schema) for batch in rows.to_batches()]
        return pa.concat_batches(made) if made else pa.RecordBatch.from_pylist([], schema)


def _stored_names(table: TableRewrite, how: _How) -> dict[str, Any]:
    """The indexes that are wanted, with columns as files of the table call them."""

    def stored(columns: Any) -> Any:
        if isinstance(columns, str):
            return table.stored_name(columns)
        if isinstance(columns, Mapping):
            return {table.stored_name(name): stored_value for name, stored_value in columns.items()}
        if isinstance(columns, Sequence):
            return type(columns)([stored(one) for one in columns])  # type: ignore[call-arg]
        return columns

    return {
        kind: {name: stored(inside) for name, inside in columns.items()}
        if kind == "indexes"
        else stored(columns)
        for kind, columns in how.indexes.items()
    }


def kept_schema(schema: pa.Schema) -> pa.Schema:
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


def rewrite_files(
    files: Sequence[Source],
    reading: Callable[..., Scan],
    to: str,
    *,
    layout: Layout,
    clustered: Sequence[str],
    file_rows: int | None,
    indexes: Mapping[str, Any],
    memory: int,
    spill_folder: str | None,
) -> Rewritten:
    """Rewrite files of this machine or of a store in one thread, with arguments that were checked elsewhere.

    Parameters
    ----------
    files
        What `reading` scans.
    to : str
        A new file; with `file_rows` a new folder.
    layout : Layout
        With the columns that rows are sorted by, if they are. `clustered`: those that they are clustered by instead.
    memory : int
        Bytes.
    """
    by, clusters = list(layout.sorted_by), list(clustered)
    how = _How(by, clusters, layout, (file_rows, None), memory, spill_folder, 1, False, indexes)
    work = _Work(Found(list(files), None, None, Origin(())), reading, how)
    several = "" if file_rows is None else "file_rows"
    with closing(destination([], to, False, False, several, None)) as place:
        return work.run(place)
