"""Prepared queries: a scan whose filter has parameters, and whose values come with each call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pageseek.base.errors import PageseekError, PredicateError
from pageseek.base.tracebacks import short_traceback
from pageseek.predicate.parameter_values import (
    check_names,
    check_value,
    parameters_of,
    with_values,
)
from pageseek.scanning.queries.execution import Execution
from pageseek.scanning.requests.request import Request

if TYPE_CHECKING:
    from pageseek.scanning.points.point_reads import PointReads
    from pageseek.scanning.points.table_points import TablePoints
    from pageseek.scanning.queries.prepared_async import AsyncQuery
    from pageseek.scanning.queries.scan import Scan

MOST_CHECKED = 64  # files whose columns are looked up when a query is prepared


class PreparedQuery:
    """A scan that is called with the values of its parameters, and returns the rows as a table.

    `query(k=5)` equals `scan.filter(ps.col("id") == 5).to_table()`; with one parameter `query(5)` will do. Files are looked
    at again with each call, so that a file that was replaced is read again. Threads may share a query, a pickled one can be
    loaded in another process, and a forked process may go on with it. It never changes.

    Attributes
    ----------
    parameters : tuple of str
        The names of the parameters, in the order of the filter.
    """

    __slots__ = ("_listed", "_points", "_scan", "parameters")

    def __init__(self, scan: Scan) -> None:
        self._scan = scan
        condition = scan._request.filter
        self._listed = {} if condition is None else parameters_of(condition)
        self.parameters = tuple(self._listed)
        # late: pageseek is imported quickly
        from pageseek.scanning.points.table_points import points_of

        self._points: PointReads | TablePoints | None = None
        if not scan._progress:
            self._points = points_of(scan._sources, scan._request)
        if len(scan._sources) <= MOST_CHECKED:
            self._check_columns()

    def __reduce__(self) -> tuple[Any, ...]:
        return PreparedQuery, (self._scan,)

    @short_traceback
    def __call__(self, *values: Any, **named: Any) -> pa.Table:
        """The rows for values of the parameters: one value, or each by its name.

        Null as a value makes a comparison NULL, which is true for no row, as in SQL.

        Raises
        ------
        TypeError
            A parameter has no value, or there is no parameter of a name.
        PredicateError
            A value cannot be compared with the column. The error names the parameter.
        FileChangedError
            A file changes while it is read.
        """
        given = self._given(values, named)
        try:
            found = None if self._points is None else self._points.table(given)
            return self._scanned(given) if found is None else found
        except PredicateError as error:
            raise self._named(
                error, lambda name: self._bound(self._without(name, given))
            ) from error

    @short_traceback
    def many(self, keys: Any, *, place: str = "key_place") -> pa.Table:
        """The rows of many keys as one table, whose first column has the place of each row's key among the keys, from 0.

        Rows come in the order of the keys, and those of one key in file order. A key that is given twice has its rows twice;
        null has none. A limit of the scan counts for each key.

        Where every parameter is compared with `=` and its column is no field of a struct, all keys are read in one pass:
        each page is read and decoded once, by as many threads as the scan may use. Other filters are called once for each key.

        Parameters
        ----------
        keys : list, array, mapping, or table
            The values of the parameter. Of several parameters a mapping of their names to values, or a table with a column of
            each name, in any order; a row is a key.
        place : str
            The name of the first column.
        """
        from pageseek.scanning.queries.key_batches import (  # late: pageseek is imported quickly
            equalities_of,
            keys_of,
            keys_of_one,
            rows_of_keys,
            with_places,
        )

        given, n = keys_of(keys, self.parameters)
        condition = self._scan._request.filter
        equal = None if condition is None else equalities_of(condition)
        try:
            if equal is not None and n:
                found = rows_of_keys(self._scan._request, self._read, equal, given, n, place)
                if found is not None:
                    return found
        except PredicateError as error:
            request = self._scan._request
            raise self._named(
                error,
                lambda name: replace(self._scan, _request=keys_of_one(request, name, given)),
            ) from error
        tables = []
        for i in range(n):
            table = self(**{name: values[i] for name, values in given.items()})
            tables.append(with_places(table, place, np.full(table.num_rows, i)))
        if tables:
            # other keys may have opened other files, with other columns or narrower types
            same = all(table.schema.equals(tables[0].schema) for table in tables)
            return pa.concat_tables(tables, promote_options="none" if same else "permissive")
        return with_places(self._bound(self._nothing()).to_table(), place, np.zeros(0, np.int64))

    @property
    def aio(self) -> AsyncQuery:
        """The query in a program of asyncio: `await query.aio(k)` and `await query.aio.many(keys)`."""
        from pageseek.scanning.queries.prepared_async import (
            AsyncQuery,  # late: asyncio takes long to import
        )

        return AsyncQuery(self, self.bind, self.many)

    @short_traceback
    def bind(self, *values: Any, **named: Any) -> Scan:
        """The scan with these values in its filter, for `explain`, `to_batches`, `count_rows` and all else that a scan can do."""
        return self._bound(self._given(values, named))

    def _bound(self, given: Mapping[str, Any]) -> Scan:
        request = self._scan._request
        if request.filter is None or not given:
            return self._scan
        made = with_values(request.filter, given)
        return replace(self._scan, _request=replace(request, filter=made))

    def _read(self, request: Request) -> pa.Table:
        """The rows of another request to the files of the scan."""
        return Execution(self._scan._sources, request, self._scan._progress).table()

    def _scanned(self, given: Mapping[str, Any]) -> pa.Table:
        """The rows, by the steps that every scan takes."""
        scan = self._bound(given)
        return Execution(scan._sources, scan._request, scan._progress).scanned()

    def _given(self, values: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        """The value of each parameter, checked."""
        if values:
            if len(self.parameters) != 1 or len(values) != 1 or named:
                names = ", ".join(f"{name}=..." for name in self.parameters) or "no value"
                raise TypeError(f"{len(values)} values without a name: call the query with {names}")
            named = {self.parameters[0]: values[0]}
        check_names(named, self._listed)
        return {
            name: check_value(name, named[name], listed) for name, listed in self._listed.items()
        }

    def _nothing(self) -> dict[str, Any]:
        """Values for all parameters with which no comparison is true."""
        return {name: [] if listed else None for name, listed in self._listed.items()}

    def _without(self, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """The value of one parameter, and nothing for the others."""
        return self._nothing() | {name: given[name]}

    def _named(self, error: PredicateError, alone: Callable[[str], Scan]) -> PredicateError:
        """The error with the name of the parameter whose value is at fault, if one is. `alone`: a scan with nothing for the others."""
        for name in self.parameters:
            try:
                alone(name).limit(0).to_table()
            except PredicateError as found:
                # it names the file, which a test of one point does not know
                made = type(found)(f"param({name!r}): {found}")
                made.at = found.at
                return made
            except PageseekError:
                continue
        return error

    def _check_columns(self) -> None:
        """Raise the error of a filter or of columns that no value can make right."""
        self._bound(self._nothing()).limit(0).to_table()

    def __repr__(self) -> str:
        return f"<PreparedQuery {', '.join(self.parameters)}; {repr(self._scan)[6:-1]}>"
