"""The public way in: `open`, `scan`, `read_table`, and what is kept of files for the next time."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from pageseek.base.errors import PredicateError
from pageseek.base.limits import DEFAULT, Limits
from pageseek.base.progress import Progress
from pageseek.dataset.dataset_schema import DatasetSchema
from pageseek.dataset.file_cache import CacheInfo, cache
from pageseek.dataset.partitions import typed
from pageseek.dataset.sources import files_of
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.parquet_file import ParquetFile
from pageseek.format.types import Options
from pageseek.predicate.filters import to_expression
from pageseek.prune import mechanisms
from pageseek.scan.request import Request
from pageseek.scan.row_selection import MOST_ROWS
from pageseek.scan.scan import Scan, whole
from pageseek.storage import RetryPolicy, Source, Sources, Types

BATCH_SIZE = 1 << 17
AHEAD = 256 << 20
PATIENCE = RetryPolicy()
_LIMITS = DEFAULT.max_page_bytes, DEFAULT.max_output_bytes, DEFAULT.max_metadata_bytes


def scan(
    source: Any,
    *,
    columns: Sequence[str] | None = None,
    filter: Any = None,
    limit: int | None = None,
    nan: str = "ieee",
    int96_unit: str = "ns",
    string_type: str = "string",
    dictionary_columns: Sequence[str] = (),
    out_of_range: str = "error",
    prune: bool | Collection[str] = True,
    distinct_index: str | None = None,
    batch_size: int = BATCH_SIZE,
    threads: int | None = None,
    max_ahead_bytes: int = AHEAD,
    progress: bool | Callable[[Progress], None] = False,
    max_page_bytes: int = DEFAULT.max_page_bytes,
    max_output_bytes: int = DEFAULT.max_output_bytes,
    max_metadata_bytes: int = DEFAULT.max_metadata_bytes,
    partitioning: Types | bool | None = None,
    schema: pa.Schema | None = None,
    table: bool | None = None,
    storage_options: Mapping[str, Any] | None = None,
    retries: int | None = None,
    timeout: float | None = None,
) -> Scan:
    """A lazy scan of one or many Parquet files.

    Parameters
    ----------
    source : str, path, sequence of them, (filesystem, path), bytes, or a table
        A file, a directory (its .parquet files), a glob or a URL: `s3://`, `gs://`, `abfss://`, `az://`, `https://`,
        `hdfs://`, or another that fsspec knows. A filesystem is one of pyarrow or fsspec, or a store of obstore. Below a
        directory, names with a leading `_` or `.` are hidden, and folders such as `k=1` are columns of the files in
        them (`partitioning`).

        The columns of several files are joined by name: what a file lacks is null in its rows, and a type is the
        narrowest that holds the values of all exactly (docs/datasets.md); where there is none, that is an
        UnsupportedError. The schema is that of the files that have to be opened: not of those that a filter on folders
        or a limit spares, unless a column is named that is in no other.

        A table is a `deltalake.DeltaTable`, or a table or scan of `pyiceberg`, on local disk or in a store: read are the
        files of that version, as its columns. Deletion vectors and delete files are refused. A folder that is a table of
        Delta Lake or Iceberg is read as its current version (`table`).
    columns : sequence of str, optional
        Top-level columns, in the order wanted; None is all, [] none.
    filter : Expression, str, pyarrow.compute.Expression or list, optional
        `pageseek.col("a") > 35`; SQL, `"a > 35 and name like 'x%'"`; what pyarrow takes, with pyarrow's meaning; or
        DNF lists `[("a", ">", 35)]`. Rows are kept where it is TRUE, by SQL's logic of three values.

        In SQL: `and or not`, `= != < <= > >=`, `in`, `between`, `like ... escape`, `is [not] null | nan | true | false`,
        `starts_with(c, 'x')`, `is_nan(c)`, `'x' = any(tags)`; values as `35`, `3.5`, `1e3`, `'text'`, `X'00ff'`,
        `date '2024-01-31'`, `timestamp '2024-01-31 12:30:00Z'`, `time '12:30:00'`, `decimal '1.10'`. Names that are
        no plain words stand in double quotes.

        Texts of ISO 8601 may be compared with dates, times and timestamps. A column may be compared with another
        one, and some element of a list with a value: `pageseek.col("items.price").any() > 5`.
    limit : int, optional
        At most so many rows, the first of the file order.
    nan : {"ieee", "spark"}
        How floats compare: by IEEE 754, or with NaN equal to itself and above every number.
    int96_unit : {"ns", "us", "ms"}
        The unit in which INT96 timestamps come out.
    string_type : {"string", "large", "view"}
        How strings and binary come out: with 32-bit or 64-bit offsets, or as views. A dictionary keeps values
        with 32-bit offsets.
    dictionary_columns : sequence of str
        Columns of strings or binary that come out as dictionaries, with 32-bit codes and a dictionary for each
        batch of rows that was decoded together. A file whose writer had a dictionary in memory gives one anyway.
    out_of_range : {"error", "keep"}
        What becomes of a decimal of more digits than its column declares, and of a time that lies in no day:
        some writers store them (24:00:00 too), and Arrow's types have no such values. An error, or the value as
        it is stored.
    prune : bool or list of str
        Which mechanisms may rule out rows before they are read: all, none, or some of "statistics" (of row
        groups), "column_index" (of pages), "page_headers" (of pages, where there is no index), "bloom_filter",
        "dictionary", "distinct" and "distinct_index" (lists of values inside the file: docs/indexes.md), and the names
        of registered pruners. The rows are the same with any of them.
    distinct_index : str, optional
        The column of a list of values in the published form (`IDX1`), which does not name it; else the only one of
        strings.
    batch_size : int
        Greatest number of rows of a batch.
    threads : int, optional
        How many threads may decode at a time; one for each core unless given. Small answers take one. Rows come in
        file order with any number.
    max_ahead_bytes : int
        About the memory that row groups may take which are read before they are asked for; 256 MiB unless given.
    progress : bool or function
        Show a bar where it takes long, by tqdm (`pip install "pageseek[progress]"`); or call a function with a
        `pageseek.Progress` whenever a file has been planned or a row group read.
    max_page_bytes : int
        Bytes of one page, decompressed; 1 GiB unless given. A file that claims more than this, or than either
        of the next two, is a LimitError that names the option.
    max_output_bytes : int
        Bytes of each buffer of one column of one row group, decoded; 8 GiB unless given.
    max_metadata_bytes : int
        Bytes of a footer, or of an index of a column chunk, in the file and parsed; 1 GiB unless given.
    partitioning : pyarrow.Schema, mapping of names to types, or False; optional
        Types of columns in the names of folders below a directory or a glob (`k=1`, as Hive writes them). Of those
        not given: int32, int64, date, or else text, by all their values; `__HIVE_DEFAULT_PARTITION__` is null. They
        come last, and take the place of columns of that name in the files. False leaves folders alone.
    schema : pyarrow.Schema, optional
        The columns that there are, and their types: null where a file lacks one. A type that does not hold all values
        of a file's column exactly is refused, as are columns that the schema has not.
    table : bool, optional
        What a folder with `_delta_log/`, or with Iceberg's `metadata/*.metadata.json`, means: the current version of that
        table, which deltalake or pyiceberg opens (`pip install "pageseek[delta]"`, `"pageseek[iceberg]"`); with False, its
        bare files, among them those of older versions. A folder that has such tables below it is an UnsupportedError unless
        this is False. Files, globs and partition folders inside a table are read as they are named.
    storage_options : mapping, optional
        Of a URL: credentials, region, endpoint and more for the library that opens it, by its names: obstore where it
        is installed, else pyarrow or fsspec. Without them it looks in the environment, as it always does; a table's files
        are read with the table's own.
    retries : int, optional
        How often a request to a remote store is tried again, after waits that double, and longer ones where the store
        says that it is busy; 5 unless given.
    timeout : float, optional
        Seconds that a remote store may be silent until a request counts as failed; 10 unless given.
    """
    batch_size = min(whole("batch_size", batch_size), MOST_ROWS)
    if limit is not None:
        limit = min(whole("limit", limit), MOST_ROWS)
    if batch_size < 1:
        raise ValueError(f"batch_size={batch_size}: at least 1")
    if threads is not None:
        threads = whole("threads", threads)
        if threads < 1:
            raise ValueError(f"threads={threads}: at least 1")
    max_ahead_bytes = min(whole("max_ahead_bytes", max_ahead_bytes), MOST_ROWS)
    if max_ahead_bytes < 0:
        raise ValueError(f"max_ahead_bytes={max_ahead_bytes}: not negative")
    for names, given in (("columns", columns), ("dictionary_columns", dictionary_columns)):
        listed = given if isinstance(given, (list, tuple)) else ()
        if isinstance(given, str) or not all(isinstance(one, str) for one in listed):
            raise TypeError(f"{names}={given!r}: a list of names, such as ['id', 'price']")
    if nan not in ("ieee", "spark"):
        raise PredicateError(f"nan={nan!r}: 'ieee' or 'spark'")
    if limit is not None and limit < 0:
        raise ValueError(f"limit={limit}: not negative")
    limits = DEFAULT  # as a rule, and to make them anew costs more than to see that
    given_limits = max_page_bytes, max_output_bytes, max_metadata_bytes
    if given_limits != _LIMITS:
        limits = Limits(*given_limits)
    dataset_schema: DatasetSchema | None
    named = files_of(source, storage_options, retry_policy(retries, timeout), table)
    found, lake, origin = named.sources, named.table, named.origin
    if lake is None:
        if not found:
            raise ValueError("the source is an empty list: no file to read")
        sources, dataset_schema = _with_schema(found, partitioning, schema)
    elif partitioning is not None or schema is not None:
        raise ValueError(
            "partitioning= and schema=: a table has its own; table=False reads the bare files of a table's folder"
        )
    else:
        sources, dataset_schema = (
            lake.sources,
            DatasetSchema(lake.folders, lake.schema, ids=lake.ids),
        )
    request = Request(
        columns=None if columns is None else tuple(columns),
        filter=to_expression(filter),
        limit=limit,
        options=Options(int96_unit, string_type, tuple(dictionary_columns), out_of_range),
        nan=nan,
        batch_size=batch_size,
        threads=threads,
        max_ahead_bytes=max_ahead_bytes,
        prune=mechanisms(prune),
        distinct_index=distinct_index,
        limits=limits,
        dataset_schema=dataset_schema,
    )
    return Scan(Sources.of(sources), request, progress, origin)


def _with_schema(
    found: Sequence[Source], partitioning: Types | bool | None, schema: pa.Schema | None
) -> tuple[tuple[Source, ...], DatasetSchema | None]:
    """The files with what their folders say, typed, and how their columns are put together."""
    if schema is not None and not isinstance(schema, pa.Schema):
        raise TypeError(f"schema={schema!r}: a pyarrow.Schema")
    if schema is not None and len(set(schema.names)) < len(schema):
        raise ValueError("schema: a name stands there twice")
    if partitioning is False:
        found = [replace(source, partitions=()) for source in found]
    types = None if isinstance(partitioning, bool) else partitioning
    told = types is not None or any(source.partitions for source in found)
    if len(found) == 1 and not told and schema is None:
        return tuple(found), None
    folders = pa.schema([])
    if told:
        names = {name for name, _ in found[0].partitions}
        if schema is not None:
            given = {field.name: field.type for field in schema if field.name in names}
            types = {**_by_name(types), **given}
        found, folders = typed(found, types)
    if len(found) == 1 and not folders.names and schema is None:
        return tuple(found), None
    return tuple(found), DatasetSchema(folders, schema)


def _by_name(types: Types | None) -> dict[str, pa.DataType]:
    if isinstance(types, pa.Schema):
        return {field.name: field.type for field in types}
    return dict(types or {})


def read_table(
    source: Any,
    columns: Sequence[str] | None = None,
    filter: Any = None,
    limit: int | None = None,
    *,
    filters: Any = None,
    **options: Any,
) -> pa.Table:
    """The rows that pass a filter, as a table; parameters as in `scan`. `filters` is another name of `filter`."""
    if filter is not None and filters is not None:
        raise TypeError("give filter or filters, not both")
    condition = filter if filter is not None else filters
    return scan(source, columns=columns, filter=condition, limit=limit, **options).to_table()


def retry_policy(retries: int | None, timeout: float | None) -> RetryPolicy:
    """The options of this name, together."""
    if retries is None and timeout is None:
        return PATIENCE
    return RetryPolicy(
        PATIENCE.retries if retries is None else whole("retries", retries),
        PATIENCE.timeout if timeout is None else float(timeout),
    )


def open_file(
    source: Any,
    *,
    max_metadata_bytes: int = DEFAULT.max_metadata_bytes,
    table: bool | None = None,
    storage_options: Mapping[str, Any] | None = None,
    retries: int | None = None,
    timeout: float | None = None,
) -> ParquetFile:
    """Open one file: its schema, row groups, statistics and page index. The options are those of `scan`."""
    return ParquetFile(
        open_metadata(
            source,
            max_metadata_bytes=max_metadata_bytes,
            table=table,
            storage_options=storage_options,
            retries=retries,
            timeout=timeout,
        )
    )


def open_metadata(
    source: Any,
    *,
    max_metadata_bytes: int = DEFAULT.max_metadata_bytes,
    table: bool | None = None,
    storage_options: Mapping[str, Any] | None = None,
    retries: int | None = None,
    timeout: float | None = None,
) -> FileMetadata:
    """The same as this package sees it."""
    limits = Limits(max_metadata_bytes=max_metadata_bytes)
    found = files_of(source, storage_options, retry_policy(retries, timeout), table).files
    if len(found) != 1:
        raise ValueError(f"open takes one file, the source has {len(found)}")
    return FileMetadata(found[0], found[0].open(), max_metadata_bytes=limits.max_metadata_bytes)


def clear_cache() -> None:
    """Forget the footers and page indexes of files opened before."""
    cache.clear()


def cache_info() -> CacheInfo:
    """What is kept of files opened before, how much memory that takes, and how often it served."""
    return cache.info()


def resize_cache(max_bytes: int) -> None:
    """Let the footers and page indexes of files opened before take so many bytes; 256 MiB unless set."""
    cache.resize(whole("max_bytes", max_bytes))


def save_cache(path: str | os.PathLike[str]) -> int:
    """Write what is kept of remote files to a file, for `load_cache`; returns of how many.

    Of each its name, its version and its end, with footer and page index: no data, no credentials.
    """
    from pageseek.dataset import saved_cache  # and what it needs of the standard library

    return saved_cache.save(cache, os.fspath(path))


def load_cache(path: str | os.PathLike[str]) -> int:
    """Read what `save_cache` has written; returns of how many files.

    It serves for a file whose version the store confirms. Load only what you trust: nothing in it is executed, but a
    footer that somebody else made up for the right version is believed.
    """
    from pageseek.dataset import saved_cache

    return saved_cache.load(cache, os.fspath(path))
