"""The public functions: `open`, `scan`, `read_table`, and those of the cache."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pyarrow as pa

from pageseek.base.arguments import check_column, check_progress, local_path, seconds, whole
from pageseek.base.limits import DEFAULT
from pageseek.base.progress import Progress
from pageseek.base.tracebacks import short_traceback
from pageseek.datasets.file_cache import CacheInfo as CacheInfo
from pageseek.datasets.file_cache import cache
from pageseek.datasets.sources import files_of, open_metadata, with_schema
from pageseek.datasets.table_versions import AsOf
from pageseek.predicate.filters import to_expression
from pageseek.scanning.queries.scan import Scan as Scan
from pageseek.scanning.requests.request import AHEAD, BATCH_SIZE, Request
from pageseek.storage import RetryPolicy, Sources

if TYPE_CHECKING:
    from typing import Unpack

    from pageseek.base.habits import OpenHabits, ReadHabits
    from pageseek.format.parquet_file import ParquetFile

DEFAULT_RETRIES = RetryPolicy()
Params: TypeAlias = Sequence[Any] | Mapping[str, Any]


@short_traceback
def scan(
    source: Any,
    *,
    columns: Sequence[str] | None = None,
    filter: Any = None,
    limit: int | None = None,
    params: Params | None = None,
    nan: Literal["ieee", "spark"] = "ieee",
    int96_unit: Literal["ns", "us", "ms"] = "ns",
    string_type: Literal["string", "large", "view"] = "string",
    dictionary_columns: Sequence[str] = (),
    out_of_range: Literal["error", "keep"] = "error",
    prune: bool | Collection[str] = True,
    distinct_index: str | None = None,
    batch_size: int = BATCH_SIZE,
    threads: int | None = None,
    max_ahead_bytes: int = AHEAD,
    progress: bool | Callable[[Progress], None] = False,
    max_page_bytes: int = DEFAULT.max_page_bytes,
    max_output_bytes: int = DEFAULT.max_output_bytes,
    max_metadata_bytes: int = DEFAULT.max_metadata_bytes,
    partitioning: Any = None,
    schema: pa.Schema | None = None,
    table: bool | None = None,
    version: int | None = None,
    timestamp: dt.datetime | str | None = None,
    snapshot: int | str | None = None,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    retries: int | None = None,
    timeout: float | None = None,
    **habits: Unpack[ReadHabits],
) -> Scan:
    """A lazy scan of one or many Parquet files.

    Parameters
    ----------
    source : str, path, sequence or iterator of them, (filesystem, path), bytes, an open file, a dataset, or a table
        A file, a directory (its .parquet files), a glob or a URL: `s3://`, `gs://`, `abfss://`, `az://`, `https://`,
        `hdfs://`, or another that fsspec knows. A filesystem is one of pyarrow or fsspec, or a store of obstore. An open file
        (`open(path, "rb")`, `io.BytesIO`, `fsspec.open(...)`) stays open and is the caller's: keep it open until the rows
        have been read. Of a `pyarrow.dataset` the files, their filesystem and the values of its folders are taken. Below a
        directory, names with a leading `_` or `.` are hidden, and folders such as `k=1` are columns of the files in
        them (`partitioning`).

        The columns of several files are joined by name: what a file lacks is null in its rows, and a type is the
        narrowest that holds the values of all exactly (docs/datasets.md). If there is none, an UnsupportedError is raised.
        Only files that have to be opened count for the schema: not those that a filter on folders or a limit rules out,
        unless a column that is named is in no other file.

        A table is a `deltalake.DeltaTable`, or a table or scan of `pyiceberg`, on local disk or in a store. The files of
        that version are read, as the table's columns, without the rows that it has deleted. A folder that is a table of Delta
        Lake or Iceberg, or a file of Iceberg's metadata, is read as its current version (`table`).
    columns : sequence of str, optional
        Columns, and fields of structs by their path (`"address.city"`), in the order wanted; None is all, [] none.
    filter : Expression, str, pyarrow.compute.Expression or list, optional
        `pageseek.col("a") > 35`; SQL, `"a > 35 and name like 'x%'"`; what pyarrow takes, with pyarrow's meaning; or
        DNF lists `[("a", ">", 35)]`. Rows are kept where it is TRUE, by SQL's logic of three values.

        In SQL: `and or not`, `= != < <= > >=`, `in`, `between`, `like ... escape`, `is [not] null | nan | true | false`,
        `starts_with(c, 'x')`, `is_nan(c)`, `'x' = any(tags)`; values as `35`, `3.5`, `1e3`, `'text'`, `X'00ff'`,
        `date '2024-01-31'`, `timestamp '2024-01-31 12:30:00Z'`, `time '12:30:00'`, `decimal '1.10'`. Names that are
        no plain words stand in double quotes.

        Texts of ISO 8601 may be compared with dates, times and timestamps. A column may be compared with another
        one, and some element of a list with a value: `pageseek.col("items.price").any() > 5`.
    params : sequence or mapping, optional
        The values of `?` in a filter in SQL, in their order, or of `:name`, by name: `filter="id = ?", params=[5]`. They are
        no part of the text, so that texts of others are safe. `in ?` takes a list. docs/parameters.md has more.
    limit : int, optional
        The greatest number of rows; they are the first in file order.
    nan : {"ieee", "spark"}
        How floats compare: by IEEE 754, or with NaN equal to itself and above every number.
    int96_unit : {"ns", "us", "ms"}
        The unit in which INT96 timestamps come out; those of a table are microseconds of UTC.
    string_type : {"string", "large", "view"}
        How strings and binary come out: with 32-bit or 64-bit offsets, or as views. A dictionary keeps values
        with 32-bit offsets.
    dictionary_columns : sequence of str
        Columns of strings or binary that come out as dictionaries, with 32-bit codes and a dictionary for each
        batch of rows that was decoded together. A file whose writer had a dictionary in memory gives one anyway.
    out_of_range : {"error", "keep"}
        Whether a decimal of more digits than its column declares, or a time of day outside a day (24:00:00 too), is an
        error, or the value as it is stored. Some writers store such values, and Arrow's types do not allow them.
    prune : bool or list of str
        Which mechanisms may rule out rows before they are read: all, none, or some of "log" (of files, by the log or the
        manifests of their table), "statistics" (of row groups), "column_index" (of pages), "page_headers" (of pages, where
        there is no index), "bloom_filter", "dictionary", those of attached indexes (docs/indexes.md): "lookup", "key_lookup", "bitmap",
        "trigram", "file_bloom", "distinct" and "distinct_index", and the names of registered pruners. The rows are the same
        with any of them.
    distinct_index : str, optional
        The column of a list of values in the form `IDX1`, which does not name its column. Unless given, it is the only
        column of strings.
    batch_size : int
        Greatest number of rows of a batch.
    threads : int, optional
        The greatest number of threads that decode at a time; one for each core unless given. Small answers use one. The
        order of rows is always that of the files.
    max_ahead_bytes : int
        About the bytes of memory for row groups that are read before the caller takes them; 256 MiB unless given.
    progress : bool or function
        Show a bar if it takes long, by tqdm (`pip install "pageseek[progress]"`); or call a function with a
        `pageseek.Progress` after a file has been planned or a row group read.
    max_page_bytes : int
        Bytes of one page, decompressed; 1 GiB unless given. A file that claims more than this, or than either
        of the next two, is a LimitError that names the option.
    max_output_bytes : int
        Bytes of each buffer of one column of one row group, decoded; 8 GiB unless given.
    max_metadata_bytes : int
        Bytes of a footer, or of an index of a column chunk, in the file and parsed; 1 GiB unless given.
    partitioning : pyarrow.Schema, mapping of names to types, "hive", or False; optional
        Types of the columns in the names of folders below a directory or a glob (`k=1`, as Hive writes them). A column
        whose type is not given is int32, int64, date, or else text, by all its values; `__HIVE_DEFAULT_PARTITION__` is
        null. These columns come last, and replace columns of the same name in the files. False ignores folders.
        `pyarrow.dataset.partitioning(..., flavor="hive")` is taken, too.
    schema : pyarrow.Schema, optional
        The columns and their types. A column is null in the rows of a file that lacks it. A type that does not hold all
        values of a file's column exactly is refused, as is a column that is not in the schema.
    table : bool, optional
        What a folder with `_delta_log/`, or with Iceberg's `metadata/*.metadata.json`, means: the current version of that
        table, which deltalake or pyiceberg opens (`pip install "pageseek[delta]"`, `"pageseek[iceberg]"`); with False, its
        bare files, among them those of older versions. A folder that has such tables below it is an UnsupportedError unless
        this is False. Files, globs and partition folders inside a table are read as they are named.
    version : int, optional
        Of a table of Delta Lake: the number of the version to read, in place of the current one.
    timestamp : datetime or str, optional
        Of a table: the version that was current then; without a zone, UTC. Delta Lake has the times of versions in the files of its
        log, so that it needs a local folder or a DeltaTable.
    snapshot : int or str, optional
        Of a table of Iceberg: the number of a snapshot, or the name of a branch or a tag.
    filesystem : filesystem of pyarrow or fsspec, or store of obstore; optional
        Has the paths of the source: the same as (filesystem, path).
    storage_options : mapping, optional
        Credentials, region, endpoint and more for the library that opens a URL: obstore if it is installed, else pyarrow
        or fsspec. Their names are those of that library. Without them, the library looks in the environment. The files of
        a table are read with the table's own options.
    retries : int, optional
        How often a request to a remote store is tried again, after waits that double, and longer waits if the store says
        that it is busy; 5 unless given.
    timeout : float, optional
        Seconds without an answer of a remote store after which a request has failed; 10 unless given.
    **habits
        Options of pyarrow's readers: `use_threads=False` is `threads=1`, `read_dictionary` is `dictionary_columns`, and
        `coerce_int96_timestamp_unit` is `int96_unit`. `memory_map`, `pre_buffer` and `buffer_size` change nothing. Others are
        a TypeError that says what to write (docs/pyarrow.md).

    Returns
    -------
    Scan
        Its methods read: `to_table`, `to_batches`, `count_rows` and more. A scan can be read any number of times.

    Raises
    ------
    FileNotFoundError, PermissionError, StoreError
        There is no such file; it may not be read; a store does not answer.
    UnsupportedError
        Columns of several files have no type in common; a table has a feature that is not known here.
    PredicateError
        The filter is not understood. That it does not fit the columns is said when it is first read.
    TypeError, ValueError
        An option is not known, or has a value that it cannot have.
    """
    if habits:
        from pageseek.base.habits import read_habits  # late: few callers need it

        threads, changed_unit, dictionary_columns = read_habits(
            habits, scan.__kwdefaults__ or (), threads, int96_unit, dictionary_columns
        )
        int96_unit = changed_unit
    if progress is not False:
        check_progress(progress)
    if distinct_index is not None:
        check_column("distinct_index", distinct_index)
    condition = filter if params is None else to_expression(filter, params)
    if filesystem is not None:
        from pageseek.storage.given import with_filesystem

        source = with_filesystem(source, filesystem)
    request = Request.of(
        columns,
        condition,
        limit,
        (int96_unit, string_type, dictionary_columns, out_of_range),
        nan,
        prune,
        batch_size,
        threads,
        max_ahead_bytes,
        (max_page_bytes, max_output_bytes, max_metadata_bytes),
        distinct_index,
    )
    as_of = AsOf.of(version, timestamp, snapshot)
    found = files_of(source, storage_options, retry_policy(retries, timeout), table, as_of)
    sources, dataset_schema = with_schema(found, partitioning, schema)
    if dataset_schema is not None:
        request = replace(request, dataset_schema=dataset_schema)
    if schema is not None and dataset_schema is not None and dataset_schema.given is not None:
        from pageseek.datasets.widening import paths_of_bytes  # late: for a schema

        paths = tuple(paths_of_bytes(dataset_schema.given))
        request = replace(request, options=request.options._replace(as_bytes=paths))
    if found.table is not None:  # its timestamps are microseconds, and moments
        options = request.options._replace(
            int96_unit="us", int96_utc=True, instants=found.table.has_moments_only
        )
        request = replace(request, options=options)
    return Scan(Sources.of(sources), request, progress, found.origin)


@short_traceback
def read_table(
    source: Any,
    columns: Sequence[str] | None = None,
    filter: Any = None,
    limit: int | None = None,
    *,
    filters: Any = None,
    params: Params | None = None,
    nan: Literal["ieee", "spark"] = "ieee",
    int96_unit: Literal["ns", "us", "ms"] = "ns",
    string_type: Literal["string", "large", "view"] = "string",
    dictionary_columns: Sequence[str] = (),
    out_of_range: Literal["error", "keep"] = "error",
    prune: bool | Collection[str] = True,
    distinct_index: str | None = None,
    batch_size: int = BATCH_SIZE,
    threads: int | None = None,
    max_ahead_bytes: int = AHEAD,
    progress: bool | Callable[[Progress], None] = False,
    max_page_bytes: int = DEFAULT.max_page_bytes,
    max_output_bytes: int = DEFAULT.max_output_bytes,
    max_metadata_bytes: int = DEFAULT.max_metadata_bytes,
    partitioning: Any = None,
    schema: pa.Schema | None = None,
    table: bool | None = None,
    version: int | None = None,
    timestamp: dt.datetime | str | None = None,
    snapshot: int | str | None = None,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    retries: int | None = None,
    timeout: float | None = None,
    **habits: Unpack[ReadHabits],
) -> pa.Table:
    """The rows that pass a filter, as a table; parameters as in `scan`. `filters` is another name of `filter`."""
    if filter is not None and filters is not None:
        raise TypeError("read_table: give filter= or filters=, not both")
    lazy = scan(
        source,
        columns=columns,
        filter=filters if filter is None else filter,
        limit=limit,
        params=params,
        nan=nan,
        int96_unit=int96_unit,
        string_type=string_type,
        dictionary_columns=dictionary_columns,
        out_of_range=out_of_range,
        prune=prune,
        distinct_index=distinct_index,
        batch_size=batch_size,
        threads=threads,
        max_ahead_bytes=max_ahead_bytes,
        progress=progress,
        max_page_bytes=max_page_bytes,
        max_output_bytes=max_output_bytes,
        max_metadata_bytes=max_metadata_bytes,
        partitioning=partitioning,
        schema=schema,
        table=table,
        version=version,
        timestamp=timestamp,
        snapshot=snapshot,
        filesystem=filesystem,
        storage_options=storage_options,
        retries=retries,
        timeout=timeout,
        **habits,
    )
    return lazy.to_table()


def retry_policy(retries: int | None, timeout: float | None) -> RetryPolicy:
    """The options `retries` and `timeout` as one record."""
    if retries is None and timeout is None:
        return DEFAULT_RETRIES
    return RetryPolicy(
        DEFAULT_RETRIES.retries if retries is None else whole("retries", retries),
        DEFAULT_RETRIES.timeout if timeout is None else seconds("timeout", timeout),
    )


@short_traceback
def open_file(
    source: Any,
    *,
    max_metadata_bytes: int = DEFAULT.max_metadata_bytes,
    table: bool | None = None,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    retries: int | None = None,
    timeout: float | None = None,
    **habits: Unpack[OpenHabits],
) -> ParquetFile:
    """Open one file: its schema, row groups, statistics and page index. The options are those of `scan`."""
    if habits:
        from pageseek.base.habits import refuse

        refuse(habits, open_file.__kwdefaults__ or (), "open")
    if filesystem is not None:
        from pageseek.storage.given import with_filesystem

        source = with_filesystem(source, filesystem)
    from pageseek.format.parquet_file import ParquetFile  # late, as below: scans do not need it

    return ParquetFile(
        open_metadata(
            source,
            max_metadata_bytes=max_metadata_bytes,
            table=table,
            storage_options=storage_options,
            retry_policy=retry_policy(retries, timeout),
        )
    )


@short_traceback
def clear_cache() -> None:
    """Forget the footers and page indexes of files opened before, and the deleted rows of tables."""
    from pageseek.scanning.deletes import deleted_rows

    cache.clear()
    deleted_rows.forget()


def cache_info() -> CacheInfo:
    """The number of files in the cache, its bytes, and how often it was hit and missed."""
    return cache.info()


@short_traceback
def resize_cache(max_bytes: int) -> None:
    """Set the greatest number of bytes of the cache of footers and page indexes; 256 MiB unless set."""
    cache.resize(whole("max_bytes", max_bytes))


@short_traceback
def save_cache(path: str | os.PathLike[str]) -> int:
    """Write what the cache has of remote files to a file, for `load_cache`; return the number of remote files.

    Written are the name of each file, its version and its tail with footer and page index: no data, no credentials.
    """
    from pageseek.datasets import saved_cache  # late: few need it

    ends = cache.ends()
    saved_cache.save(ends, local_path("path", path))
    return len(ends)


@short_traceback
def load_cache(path: str | os.PathLike[str]) -> int:
    """Read what `save_cache` has written; return the number of remote files.

    An entry is used if the store confirms the version of the file. Load only what you trust: nothing is executed, but a
    forged footer with the right version is believed.
    """
    from pageseek.datasets import saved_cache

    ends = saved_cache.load(local_path("path", path))
    cache.adopt(ends)
    return len(ends)
