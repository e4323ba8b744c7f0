"""The public way in: `open`, `scan`, `read_table`."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from pageseek._core import rows
from pageseek.cache import CacheInfo, cache
from pageseek.doubts import Doubts, trusting
from pageseek.errors import PredicateError
from pageseek.limits import DEFAULT, Limits
from pageseek.metadata import ParquetFile
from pageseek.plan import Ahead, ScanPlan
from pageseek.planning import make_plan, prepare
from pageseek.predicate.expression import And, Expression, flatten, to_expression
from pageseek.progress import Progress, Watch, watched
from pageseek.prune import mechanisms
from pageseek.records import dataclass
from pageseek.report import Report
from pageseek.request import Opened, Request
from pageseek.shape import Shape
from pageseek.storage import Patience, Source, Sources, Types, resolve, typed
from pageseek.tables import batches_of, table_of
from pageseek.types import Options

BATCH_SIZE = 1 << 17
AHEAD = 256 << 20
PATIENCE = Patience()
_LIMITS = DEFAULT.max_page_bytes, DEFAULT.max_output_bytes, DEFAULT.max_metadata_bytes


@dataclass(frozen=True, slots=True)
class Scan:
    """A lazy scan: build it with `select`, `filter`, `limit`; nothing is read before a `to_...`.

    Every method gives a new scan. Rows come out in file order.
    """

    _sources: Sources
    _request: Request
    _progress: bool | Watch = False

    @property
    def sources(self) -> tuple[Source, ...]:
        """The files, in the order of their rows."""
        return self._sources

    def select(self, *columns: str | Sequence[str]) -> Scan:
        """Only these columns, in this order. None named: rows without columns."""
        names: list[str] = []
        for column in columns:
            names.extend([column] if isinstance(column, str) else column)
        return replace(self, _request=replace(self._request, columns=tuple(names)))

    def filter(self, condition: Any) -> Scan:
        """Only rows for which the condition is TRUE, and every condition given before."""
        made = to_expression(condition)
        if made is None:
            return self
        before = self._request.filter
        return replace(
            self,
            _request=replace(
                self._request, filter=made if before is None else flatten(And((before, made)))
            ),
        )

    def limit(self, n: int) -> Scan:
        """At most the first `n` rows of those that pass every filter, whether given before or after."""
        n = min(_whole("limit", n), MOST)
        if n < 0:
            raise ValueError(f"limit({n}): not negative")
        before = self._request.limit
        return replace(
            self, _request=replace(self._request, limit=n if before is None else min(n, before))
        )

    def take(self, row_numbers: Any) -> Scan:
        """Only the rows of these numbers, as `with_row_number` counts them; of a scan that has taken before, those
        in both.

        Rows come out in file order, each once, in whatever order the numbers are given; a filter applies to them
        as well. The pages of other rows are not read. A number beyond the last row is an IndexError once the
        files are opened.

        Parameters
        ----------
        row_numbers : sequence of int, or integer array
            From 0, counted through all row groups and files of the scan.
        """
        numbers = _row_numbers(row_numbers)
        before = self._request.take
        return replace(
            self,
            _request=replace(self._request, take=numbers if before is None else before & numbers),
        )

    def with_row_number(self, name: str = "row") -> Scan:
        """A first column of int64 with the number of each row in the source, from 0.

        It is the place of the row in the files, counted through all row groups and files of the scan in order,
        whatever filters, limits and pruning leave of them.
        """
        if not isinstance(name, str):
            raise TypeError(f"with_row_number({name!r}): a name")
        return replace(self, _request=replace(self._request, row_number=name))

    def plan(self) -> ScanPlan:
        """Open the files and prune: what would be read. Picklable, versioned, splittable."""
        return make_plan(self._sources, self._request)

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result."""
        request = replace(self._request, limit=None)
        if (
            request.shape is None or not request.shape.folders.names
        ):  # else it says which files there are
            request = replace(request, filter=None)
        return make_plan(self._sources, request).schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as record batches, read as they are asked for."""
        if not self._sources.far:
            return self._batches()[1]
        doubts = Doubts()
        try:
            plan, opened = self._prepared(self._request, doubts)
        except Exception as error:
            if not doubts.may_explain(error):
                raise
        else:
            return self._trusted(plan, opened, doubts)
        return self._batches()[1]

    def _trusted(
        self, plan: ScanPlan, opened: Sequence[Opened | None], doubts: Doubts
    ) -> Iterator[pa.RecordBatch]:
        """The batches of a plan of which versions are to be confirmed: all of them before a row is handed out."""
        report, again = plan.report, False
        with watched(self._progress, report), doubts:
            try:
                # the others are confirmed while the first is read
                doubts.ask_all_but([one.file.store for one in opened[:1] if one is not None])
                tables = plan.tables(report, opened)
                ready = list(islice(tables, 1))
                doubts.settle()
            except Exception as error:
                if not doubts.may_explain(error):
                    raise
                again = True
            while not again and ready:
                yield from batches_of(ready.pop(), self._request.batch_size)
                ready.extend(islice(tables, 1))
        if again:
            yield from self._batches()[1]

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream of record batches."""
        schema, batches = self._batches()
        return pa.RecordBatchReader.from_batches(schema, batches)

    def _batches(self) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        plan, opened = self._prepared(self._request)
        if self._progress is False:
            return plan.schema, plan.batches(opened)
        return plan.schema, self._watched(plan, opened)

    def _watched(self, plan: ScanPlan, opened: Sequence[Opened | None]) -> Iterator[pa.RecordBatch]:
        with watched(self._progress, plan.report):
            yield from plan.batches(opened, plan.report)

    def _prepared(
        self, request: Request, doubts: Doubts | None = None, ahead: Ahead | None = None
    ) -> tuple[ScanPlan, list[Opened | None]]:
        """A plan that is executed at once; its report goes on: nobody looks at it but who watches the progress. `ahead`:
        where all of it will be asked for.
        """
        report = Report(nan=request.nan, chunks=None)
        with watched(self._progress, report):
            plan, opened = prepare(
                self._sources,
                request,
                account=False,
                lazy=True,
                report=report,
                doubts=doubts,
                ahead=ahead,
            )
        plan.report.analyzed = True
        return plan, opened

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The Arrow PyCapsule protocol: any library that knows it can read a scan.

        How deep types may be is up to that library: pyarrow's import takes 64 levels. `to_reader` has no such limit.
        """
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def to_table(self) -> pa.Table:
        """The rows as a table."""
        return trusting(self._sources, self._table)

    def _table(self, doubts: Doubts | None) -> pa.Table:
        with Ahead(self._request) as ahead:
            plan, opened = self._prepared(self._request, doubts, ahead)
            with watched(self._progress, plan.report):
                tables = list(plan.tables(plan.report, opened))
        if len(tables) == 1:
            return tables[0]
        if not plan.schema.names:
            return table_of(plan.schema, sum(table.num_rows for table in tables), [])
        return (
            pa.concat_tables(tables)
            if tables
            else table_of(plan.schema, 0, [[] for _ in plan.schema])
        )

    def count_rows(self) -> int:
        """How many rows pass; without a filter the footers answer."""
        return trusting(self._sources, self._count)

    def _count(self, doubts: Doubts | None) -> int:
        request = replace(self._request, columns=(), row_number=None)
        with Ahead(request) as ahead:
            plan, opened = self._prepared(request, doubts, ahead)
            if self._request.filter is None or all(g.proven for f in plan.files for g in f.groups):
                n, limit = plan.num_rows, self._request.limit
                return n if limit is None else min(n, limit)
            with watched(self._progress, plan.report):
                return sum(table.num_rows for table in plan.tables(plan.report, opened))

    def aggregate(self, figures: Iterable[Any]) -> pa.Table:
        """One row with counts, least and greatest values of the rows that pass: from statistics where these are exact
        and prove it, else from as few pages as can matter.

        NaN is left out of "min" and "max" unless there is nothing else; with nan="spark" it is the greatest value.
        Nulls are left out always; of no value at all the least is null. A zero is 0.0, whatever its sign.

        Parameters
        ----------
        figures : iterable of str or tuple
            "count" is the number of rows; `(column, "count")` that of its values that are not null,
            `(column, "min")` and `(column, "max")`. A column is a name, a dotted path or `pageseek.col(...)`.

        Returns
        -------
        pyarrow.Table
            Columns `count` and `column_function`, in the order asked.
        """
        from pageseek.aggregate import aggregate

        return aggregate(self._sources, self._request, figures)

    def explain(self, analyze: bool = False, aggregate: Iterable[Any] | None = None) -> Report:
        """What would be read and why not more; with `analyze`, what was. Print it, or `.to_dict()`.

        With a limit and a filter, what would be read is what may be: the reading ends where the limit is reached.

        Parameters
        ----------
        analyze : bool
            Do it, and count what happens.
        aggregate : iterable of str or tuple, optional
            The figures that `aggregate` is to be explained for; `answered` then counts files and row groups of
            which the footer has them, `bounds` what is not read because it holds nothing less, or greater.
        """
        if aggregate is not None:
            from pageseek.aggregate import explain

            return explain(self._sources, self._request, aggregate, analyze)
        if not analyze:
            report = prepare(self._sources, self._request)[0].report
            report.note_unknown()
            return report
        return trusting(self._sources, self._analyzed).finish()

    def _analyzed(self, doubts: Doubts | None) -> Report:
        plan, opened = prepare(self._sources, self._request, lazy=True, doubts=doubts)
        report = plan.report.to_execute()
        if doubts is not None:
            doubts.report = report
        with watched(self._progress, report):
            for _ in plan.tables(report, opened):
                pass
        return report

    def __repr__(self) -> str:
        request = self._request
        parts = [
            f"{len(self._sources)} files" if len(self._sources) != 1 else self._sources[0].name
        ]
        if request.columns is not None:
            parts.append("columns " + ", ".join(request.columns))
        if request.filter is not None:
            parts.append(f"where {request.filter!r}")
        if request.take is not None:
            parts.append(f"{request.take.num_rows:,} rows taken")
        if request.limit is not None:
            parts.append(f"limit {request.limit}")
        return f"<Scan {'; '.join(parts)}>"


MOST = (1 << 63) - 1  # rows that the core counts


def _row_numbers(given: Any) -> rows.RowRanges:
    numbers = np.asarray(given)
    if not numbers.size:
        return rows.RowRanges.empty()
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise TypeError("take: row numbers are a list of integers")
    if numbers.min() < 0:
        raise IndexError(f"take: row {numbers.min()}: rows are counted from 0")
    if numbers.max() > MOST:
        raise IndexError(f"take: row {numbers.max()}: no source has so many rows")
    return rows.RowRanges.from_rows(np.unique(numbers).astype(np.int64))


def _whole(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name}={value!r}: an integer") from None


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
        files of that version, as its columns. Deletion vectors and delete files are refused.
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
    storage_options : mapping, optional
        Of a URL: credentials, region, endpoint and more for the library that opens it, by its names: obstore where it
        is installed, else pyarrow or fsspec. Without them it looks in the environment, as it always does; a table's files
        are read with the table's own.
    retries : int, optional
        How often a request to a distant store is tried again, after waits that double, and longer ones where the store
        says that it is busy; 5 unless given.
    timeout : float, optional
        Seconds that a distant store may be silent until a request counts as failed; 10 unless given.
    """
    batch_size = min(_whole("batch_size", batch_size), MOST)
    if limit is not None:
        limit = min(_whole("limit", limit), MOST)
    if batch_size < 1:
        raise ValueError(f"batch_size={batch_size}: at least 1")
    if threads is not None:
        threads = _whole("threads", threads)
        if threads < 1:
            raise ValueError(f"threads={threads}: at least 1")
    max_ahead_bytes = min(_whole("max_ahead_bytes", max_ahead_bytes), MOST)
    if max_ahead_bytes < 0:
        raise ValueError(f"max_ahead_bytes={max_ahead_bytes}: not negative")
    for names, given in (("columns", columns), ("dictionary_columns", dictionary_columns)):
        if isinstance(given, str):
            raise TypeError(f"{names}={given!r}: a list of names")
    if nan not in ("ieee", "spark"):
        raise PredicateError(f"nan={nan!r}: 'ieee' or 'spark'")
    if limit is not None and limit < 0:
        raise ValueError(f"limit={limit}: not negative")
    limits = DEFAULT  # as a rule, and to make them anew costs more than to see that
    given_limits = max_page_bytes, max_output_bytes, max_metadata_bytes
    if given_limits != _LIMITS:
        limits = Limits(*given_limits)
    table = None
    if type(source).__module__.partition(".")[0] in ("deltalake", "pyiceberg"):
        from pageseek.storage.lake import table_of_lake

        table = table_of_lake(source, storage_options, patience(retries, timeout))
    shape: Shape | None
    if table is None:
        found = resolve(source, storage_options, patience(retries, timeout))
        if not found:
            raise ValueError("the source is an empty list: no file to read")
        sources, shape = _shaped(found, partitioning, schema)
    elif partitioning is not None or schema is not None:
        raise ValueError("partitioning= and schema=: a table has its own")
    else:
        sources, shape = table.sources, Shape(table.folders, table.schema, ids=table.ids)
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
        shape=shape,
    )
    return Scan(Sources.of(sources), request, progress)


def _shaped(
    found: list[Source], partitioning: Types | bool | None, schema: pa.Schema | None
) -> tuple[tuple[Source, ...], Shape | None]:
    """The files with what their folders say, typed, and how their columns are put together."""
    if schema is not None and not isinstance(schema, pa.Schema):
        raise TypeError(f"schema={schema!r}: a pyarrow.Schema")
    if schema is not None and len(set(schema.names)) < len(schema):
        raise ValueError("schema: a name stands there twice")
    if partitioning is False:
        found = [replace(source, partitions=()) for source in found]
    types = None if isinstance(partitioning, bool) else partitioning
    folders = pa.schema([])
    if types is not None or any(source.partitions for source in found):
        names = {name for name, _ in found[0].partitions}
        if schema is not None:
            given = {field.name: field.type for field in schema if field.name in names}
            types = {**_by_name(types), **given}
        found, folders = typed(found, types)
    if len(found) == 1 and not folders.names and schema is None:
        return tuple(found), None
    return tuple(found), Shape(folders, schema)


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


def patience(retries: int | None, timeout: float | None) -> Patience:
    """The options of this name, together."""
    if retries is None and timeout is None:
        return PATIENCE
    return Patience(
        PATIENCE.retries if retries is None else _whole("retries", retries),
        PATIENCE.timeout if timeout is None else float(timeout),
    )


def open_file(
    source: Any,
    *,
    max_metadata_bytes: int = DEFAULT.max_metadata_bytes,
    storage_options: Mapping[str, Any] | None = None,
    retries: int | None = None,
    timeout: float | None = None,
) -> ParquetFile:
    """Open one file: its schema, row groups, statistics and page index. The options are those of `scan`."""
    limits = Limits(max_metadata_bytes=max_metadata_bytes)
    found = resolve(source, storage_options, patience(retries, timeout))
    if len(found) != 1:
        raise ValueError(f"open takes one file, the source has {len(found)}")
    return ParquetFile(found[0], found[0].open(), max_metadata_bytes=limits.max_metadata_bytes)


def clear_cache() -> None:
    """Forget the footers and page indexes of files opened before."""
    cache.clear()


def cache_info() -> CacheInfo:
    """What is kept of files opened before, how much memory that takes, and how often it served."""
    return cache.info()


def resize_cache(max_bytes: int) -> None:
    """Let the footers and page indexes of files opened before take so many bytes; 256 MiB unless set."""
    cache.resize(_whole("max_bytes", max_bytes))


def save_cache(path: str | os.PathLike[str]) -> int:
    """Write what is kept of distant files to a file, for `load_cache`; returns of how many.

    Of each its name, its version and its end, with footer and page index: no data, no credentials.
    """
    from pageseek import saved_cache  # and what it needs of the standard library

    return saved_cache.save(cache, os.fspath(path))


def load_cache(path: str | os.PathLike[str]) -> int:
    """Read what `save_cache` has written; returns of how many files.

    It serves for a file whose version the store confirms. Load only what you trust: nothing in it is executed, but a
    footer that somebody else made up for the right version is believed.
    """
    from pageseek import saved_cache

    return saved_cache.load(cache, os.fspath(path))


__all__ = [
    "CacheInfo",
    "Expression",
    "Scan",
    "cache_info",
    "clear_cache",
    "load_cache",
    "open_file",
    "read_table",
    "resize_cache",
    "save_cache",
    "scan",
]
