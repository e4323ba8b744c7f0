"""A lazy scan: a request to files, until its rows are wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Unpack

    from pageseek.base.habits import NoHabits
    from pageseek.scanning.plans.scan_plan import ScanPlan
    from pageseek.scanning.queries.prepared import PreparedQuery

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import pyarrow as pa

from pageseek.base.arguments import refuse_others, whole
from pageseek.base.late_modules import above, names_of_others
from pageseek.base.progress import Watch
from pageseek.base.records import dataclass
from pageseek.base.report import Report, counted
from pageseek.base.tracebacks import short_traceback
from pageseek.predicate.expression import And, Expression, flatten
from pageseek.predicate.filters import to_expression
from pageseek.scanning.queries.execution import Execution
from pageseek.scanning.requests.request import Request, names_of, rows_of_batches
from pageseek.scanning.requests.row_selection import MOST_ROWS, row_ranges, selected_rows
from pageseek.storage import Origin, Source, Sources


@dataclass(frozen=True, slots=True)
class Scan:
    """A lazy scan: build it with `select`, `filter`, `limit`; nothing is read before a `to_...`.

    Every method gives a new scan. Rows come out in file order.
    """

    _sources: Sources
    _request: Request
    _progress: bool | Watch = False
    _origin: Origin = Origin()

    if not TYPE_CHECKING:  # which knows by itself what a scan has
        __getattr__ = names_of_others("Scan")

        def __getitem__(self, name: object) -> NoReturn:
            raise TypeError(
                f"scan[{name!r}]: write select({name!r}), and to_table() for its values"
            )

    @property
    def sources(self) -> tuple[Source, ...]:
        """The files, in the order of their rows."""
        return self._sources

    @short_traceback
    def select(self, *columns: str | Sequence[str]) -> Scan:
        """Only these columns, in this order. Without any: rows without columns."""
        names: list[str] = []
        for column in columns:
            names.extend([column] if isinstance(column, str) else names_of("select", column))
        return replace(self, _request=replace(self._request, columns=tuple(names)))

    @short_traceback
    def filter(
        self, condition: Any, params: Sequence[Any] | Mapping[str, Any] | None = None
    ) -> Scan:
        """Only rows for which the condition, and each one given before, is TRUE. `params`: values of its `?` or `:name`."""
        if isinstance(params, (str, Expression)):
            raise TypeError(
                "filter() takes one condition: write a & b, or 'a and b', or .filter(a).filter(b)"
            )
        made = to_expression(condition, params)
        if made is None:
            return self
        if self._request.filter is not None:
            made = flatten(And((self._request.filter, made)))
        return replace(self, _request=replace(self._request, filter=made))

    @short_traceback
    def limit(self, n: int) -> Scan:
        """At most the first `n` of the rows that pass every filter, whether given before or after."""
        n = min(whole("limit", n), MOST_ROWS)
        if n < 0:
            raise ValueError(f"limit({n}): give a number that is not negative")
        if self._request.limit is not None:
            n = min(n, self._request.limit)
        return replace(self, _request=replace(self._request, limit=n))

    @short_traceback
    def take(self, selection: Any) -> Scan:
        """Only the rows of these numbers, and of those taken before.

        A selection may come from an index of your own: it counts as any other pruning. Rows come out in file order, each once,
        in any order of the numbers; a filter applies to them as well. The pages of other rows are not read. Files without a
        selected row are not opened, unless rows are counted through all files. A number beyond the last row is an IndexError
        once the files are opened.

        Parameters
        ----------
        selection : sequence of int, integer array, RowRanges, or mapping
            Row numbers from 0, as `with_row_number` counts them through all row groups and files of the scan. Or, by the path
            of each file (`sources`), row numbers within this file; from files that are not named no row is taken.
        """
        request = self._request
        if isinstance(selection, Mapping):
            found = selected_rows(selection, self._sources)
            if request.selected is not None:
                before = request.selected
                found = {name: found[name] & before[name] for name in found if name in before}
            return replace(self, _request=replace(request, selected=found))
        numbers = row_ranges(selection)
        if request.take is not None:
            numbers = request.take & numbers
        return replace(self, _request=replace(request, take=numbers))

    @short_traceback
    def with_row_number(self, name: str = "row") -> Scan:
        """A first column of int64 with the number of each row in the source, from 0.

        It is the place of the row in the files, counted through all row groups and files of the scan in order,
        with or without filters, limits and pruning.
        """
        if not isinstance(name, str):
            raise TypeError(f"with_row_number({name!r}): a name")
        return replace(self, _request=replace(self._request, row_number=name))

    @short_traceback
    def prepare(self, condition: Any = None) -> PreparedQuery:
        """A function of the values that a filter has parameters for: `scan.prepare(col("id") == param("k"))`.

        It returns the rows for a value as a table, and those of many values with `many`. What does not depend on a value is
        done once. A service that looks up one key after the other gains most.

        Parameters
        ----------
        condition : Expression, list or str, optional
            A further filter, as of `filter`. A filter that was given before may have parameters, too.

        Raises
        ------
        PredicateError
            A column does not exist, or a parameter stands where none may.
        """
        made: PreparedQuery = above("Scan.prepare")(
            self if condition is None else self.filter(condition)
        )
        return made

    @short_traceback
    def plan(self, selection: Any = None) -> ScanPlan:
        """Open the files and prune: the plan of what would be read. `selection`: as of `take`."""
        request = self._request if selection is None else self.take(selection)._request
        plan = Execution(self._sources, request, self._progress).plan()
        for note in self._origin.notes:
            plan.report.note(note)
        return plan

    @property
    @short_traceback
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result. Nothing is read where a table or `schema=` has it; otherwise the footers are."""
        request, dataset_schema = self._request, self._request.dataset_schema
        leaves_out = dataset_schema is not None and dataset_schema.folders.names
        if not leaves_out and request.limit is None:
            request = replace(request, filter=None)
        return Execution(self._sources, request, self._progress).schema()

    @property
    @short_traceback
    def columns(self) -> list[str]:
        """The names of the columns of the result, as `schema` has them."""
        return list(self.schema.names)

    def _in_batches(self, batch_size: int | None) -> Scan:
        """The scan with at most so many rows in a batch."""
        if batch_size is None:
            return self
        return replace(
            self, _request=replace(self._request, batch_size=rows_of_batches(batch_size))
        )

    @property
    def _execution(self) -> Execution:
        return Execution(self._sources, self._request, self._progress)

    @short_traceback
    def to_batches(self, batch_size: int | None = None) -> Iterator[pa.RecordBatch]:
        """The rows as record batches, read as the iterator advances. `batch_size`: the most rows of one; None: as the scan has it."""
        return self._in_batches(batch_size)._execution.batches()

    @short_traceback
    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """`to_batches`: `for batch in scan`, as of a `pyarrow.RecordBatchReader`."""
        return self.to_batches()

    def __contains__(self, value: object) -> NoReturn:
        raise TypeError(
            "in: a scan is no collection of values; filter(...).count_rows() counts rows"
        )

    def __array__(self, *args: Any, **options: Any) -> NoReturn:
        # without this, pandas.DataFrame(scan) would be a column of record batches, since a scan can be iterated over
        raise TypeError(
            "a scan is no array of numpy: take to_pandas() for a DataFrame, or to_table()['column'].to_numpy()"
        )

    @short_traceback
    def to_reader(self, batch_size: int | None = None) -> pa.RecordBatchReader:
        """The rows as a stream of record batches. `batch_size`: as of `to_batches`."""
        return self._in_batches(batch_size)._execution.reader()

    @short_traceback
    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The Arrow PyCapsule protocol: any library that knows it can read a scan.

        That library limits how deep types are nested: pyarrow's import takes 64 levels. `to_reader` has no such limit.
        A type that it requests is given where it holds all values exactly, such as `string_view` for `string`.
        """
        if requested_schema is None:
            return self.to_reader().__arrow_c_stream__()
        from pageseek.scanning.queries.requested_schema import as_requested  # late: few ask

        return as_requested(self._execution, requested_schema).__arrow_c_stream__()

    @short_traceback
    def to_table(self) -> pa.Table:
        """The rows as a table."""
        return Execution(self._sources, self._request, self._progress).table()

    @short_traceback
    def head(self, n: int = 5) -> pa.Table:
        """The first `n` rows that pass, as a table."""
        if (n := whole("n", n)) < 0:
            raise ValueError(f"head({n}): give a number that is not negative")
        return self.limit(n).to_table()

    @short_traceback
    def to_pylist(self) -> list[dict[str, Any]]:
        """The rows as dicts of Python's values.

        Raises
        ------
        UnsupportedError
            Python has no such value, such as a date after the year 9999; or two columns have one name.
        """
        rows: list[dict[str, Any]] = above("Scan.to_pylist")(self)
        return rows

    @short_traceback
    def to_pandas(self, **options: Any) -> Any:
        """The rows as a `pandas.DataFrame`.

        The index is that which pandas has written to the file. Its columns are read too where `columns` or `select` leave
        them out. An index that is a range of numbers starts at 0 where rows are left out, or where there are several files.

        Parameters
        ----------
        **options
            Those of `pyarrow.Table.to_pandas`, such as `types_mapper=pandas.ArrowDtype`. With `ignore_metadata=True` rows are
            numbered from 0, and no column is added.

        Raises
        ------
        MissingPackageError
            pandas is not installed.
        UnsupportedError
            pandas does not hold a value of a column.
        """
        return above("Scan.to_pandas")(self, options)

    @short_traceback
    def to_polars(self) -> Any:
        """The rows as a `polars.DataFrame`, over the same memory as far as polars knows its form.

        Raises
        ------
        MissingPackageError
            polars is not installed.
        UnsupportedError
            polars has no such type, or two columns have one name.
        """
        return above("Scan.to_polars")(self)

    @short_traceback
    def to_duckdb(self, connection: Any = None) -> Any:
        """The rows as a `duckdb.DuckDBPyRelation` over the Arrow table, which is read now and is not copied.

        Parameters
        ----------
        connection : duckdb.DuckDBPyConnection, optional
            The connection whose queries may name the relation; DuckDB's default connection unless given.

        Raises
        ------
        MissingPackageError
            duckdb is not installed.
        UnsupportedError
            DuckDB has no such type.
        """
        return above("Scan.to_duckdb")(self, connection)

    @short_traceback
    def write_parquet(
        self,
        path: Any,
        *,
        codec: str = "zstd",
        page_rows: int | None = None,
        row_group_rows: int | None = None,
        overwrite: bool = False,
        storage_options: Mapping[str, Any] | None = None,
        **others: Unpack[NoHabits],
    ) -> int:
        """Write the rows to one Parquet file, in their order, and return their number. A row group is in memory at a time.

        The file appears whole or not at all: on this machine it gets its name once all bytes are on disk, and a store gets it by
        one request. It has a page index. `pageseek.rewrite` also sorts, adds indexes and reads the new file again to compare.

        Parameters
        ----------
        path : path, URL, or (filesystem, path)
            Where the file goes.
        codec, page_rows, row_group_rows
            As of `pageseek.rewrite`.
        overwrite : bool
            Replace a file that is there. It may be one that is read.
        storage_options : mapping, optional
            As of `pageseek.scan`, for the store of `path`.

        Raises
        ------
        FileExistsError
            There is a file.
        UnsupportedError
            The place lies in a table of Delta Lake or Iceberg; or the rows have no columns.
        """
        refuse_others(others, Scan.write_parquet, "Scan.write_parquet", writes=True)
        rows: int = above("Scan.write_parquet")(
            self, path, codec, page_rows, row_group_rows, overwrite, storage_options
        )
        return rows

    @short_traceback
    def count_rows(self) -> int:
        """The number of rows that pass; without a filter the footers answer."""
        return self._execution.count()

    @short_traceback
    def count(self) -> int:
        """`count_rows`, by its name in other libraries."""
        return self.count_rows()

    @short_traceback
    def aggregate(self, figures: Iterable[Any]) -> pa.Table:
        """One row with counts, least and greatest values of the rows that pass.

        They come from statistics if these are exact and prove them, else from as few pages as possible. NaN is left out of
        "min" and "max" unless there is no other value; with nan="spark" it is the greatest value. Nulls are always left
        out; without any value "min" and "max" are null. -0.0 comes out as 0.0.

        Parameters
        ----------
        figures : iterable of str or tuple
            "count" is the number of rows, `(column, "count")` the number of values that are not null. `(column, "min")`
            and `(column, "max")` are the least and the greatest. A column is a name, a dotted path or `pageseek.col(...)`.

        Returns
        -------
        pyarrow.Table
            Columns `count` and `column_function`, in the order asked.
        """
        from pageseek.scanning.aggregates.aggregate import aggregate

        return aggregate(self._sources, self._request, figures)

    @short_traceback
    def explain(self, analyze: bool = False, aggregate: Iterable[Any] | None = None) -> Report:
        """A report of what would be read, and why not more; with `analyze`, of what was. Print it, or `.to_dict()`.

        With a limit and a filter it is what may be read at most: reading ends when the limit is reached.

        Parameters
        ----------
        analyze : bool
            Read, and count what happens.
        aggregate : iterable of str or tuple, optional
            Figures: explain `aggregate` for them. `answered` then counts files and row groups for which the footer answers,
            `bounds` those that are not read because they hold no value less, or greater.
        """
        if aggregate is not None:
            from pageseek.scanning.aggregates.aggregate import explain

            report = explain(self._sources, self._request, aggregate, analyze)
        else:
            report = self._execution.explain(analyze)
        for note in self._origin.told():
            report.note(note)
        return report

    def __repr__(self) -> str:
        request = self._request
        parts = [
            counted(len(self._sources), "file")
            if len(self._sources) != 1
            else self._sources[0].name
        ]
        if request.columns is not None:
            parts.append("columns " + ", ".join(request.columns))
        if request.filter is not None:
            parts.append(f"where {request.filter!r}")
        if request.take is not None:
            parts.append(f"{counted(request.take.num_rows, 'row')} taken")
        if request.selected is not None:
            taken = sum(found.num_rows for found in request.selected.values())
            parts.append(
                f"{counted(taken, 'row')} taken of {counted(len(request.selected), 'file')}"
            )
        if request.limit is not None:
            parts.append(f"limit {request.limit}")
        return f"<Scan {'; '.join(parts)}>"

    def _repr_html_(self) -> str:
        shown: str = above("Scan._repr_html_")(self)
        return shown
