"""`pageseek.polars`: a LazyFrame that reads the columns and pages which a query of polars needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pageseek.api import Scan
from pageseek.api import scan as _scan
from pageseek.base.errors import MissingPackageError
from pageseek.base.packages import needed
from pageseek.base.tracebacks import short_traceback
from pageseek.engines.asked import narrowed, pinned, scan_of, with_given
from pageseek.engines.polars_predicate import Predicate
from pageseek.engines.scanner import DatasetScanner
from pageseek.scanning.queries.results import polars_frame

__all__ = ["scan"]

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Unpack

    import polars as pl

    from pageseek.base.scan_options import ScanOptions


@short_traceback
def scan(
    source: Any,
    *,
    columns: Sequence[str] | None = None,
    filter: Any = None,
    limit: int | None = None,
    **options: Unpack[ScanOptions],
) -> pl.LazyFrame:
    """A LazyFrame of polars over files, a table, or a scan.

    The columns that a query needs are read, and of them the pages that its predicate cannot rule out. The parts of a predicate
    whose meaning is known here prune, and polars evaluates what they do not settle, so that the answer is polars' own.

    Parameters
    ----------
    source : any source of `pageseek.scan`, a Scan, or a dataset of `pageseek.dataset`
        Of a scan, its filter, columns and limit hold before the query.
    columns, filter, limit, **options
        Those of `pageseek.scan`. Strings come out as views, as polars has them, unless `string_type` says otherwise.
    """
    pl = _polars()
    given: dict[str, Any] = with_given(options, columns=columns, filter=filter, limit=limit)
    made = scan_of("polars.scan", source, given)
    if made is None:
        made = _scan(source, **{"string_type": "view", **given})
    rows = Rows(made)
    frame: Any = pl.io.plugins.register_io_source(rows.frames, schema=rows.schema, is_pure=True)
    return frame


class Rows:
    """The rows of a scan for polars: the function that it calls for them, and their schema."""

    def __init__(self, made: Scan) -> None:
        self._scan = made
        self._arrow_schema: pa.Schema | None = None

    def schema(self) -> Any:
        """The schema of polars; footers are read for it once, and no data."""
        empty = self._arrow().empty_table()
        columns = [column.combine_chunks() for column in empty.columns]
        # of a table polars makes a frame column by column, which takes ten times as long
        batch = pa.RecordBatch.from_arrays(columns, schema=empty.schema) if columns else empty
        return _frame(_polars(), batch).schema

    def frames(
        self, columns: list[str] | None, predicate: Any, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        """The frames of one query, as polars asks for them. Where it gives both, the predicate is for the first `n_rows` rows."""
        pl, schema = _polars(), self._arrow()
        wanted = schema.names if columns is None else columns
        made, read = self._scan, list(wanted)
        if n_rows is not None:
            made = made.limit(n_rows)
        if predicate is not None:
            asked = Predicate.of(predicate)
            predicate = asked.expression
            # a limit, and the numbers of rows, would be those of other rows
            if made._request.limit is None and made._request.row_number is None:
                part = asked.part(schema)
                if part is not None:
                    made = made.filter(part.filter)
                    predicate = None if part.exact else predicate
            if predicate is not None:
                read += [n for n in asked.columns if n in schema.names and n not in read]
        made = made._in_batches(batch_size)
        for batch in _batches(made, read, schema):
            frame = _frame(pl, batch)
            if predicate is not None:
                frame = frame.filter(predicate)
            if len(read) > len(wanted):
                frame = frame.select(wanted)
            yield frame

    def _arrow(self) -> pa.Schema:
        if self._arrow_schema is None:
            self._scan = pinned(self._scan)
            self._arrow_schema = self._scan.schema
        return self._arrow_schema


def _frame(pl: Any, rows: pa.Table | pa.RecordBatch) -> Any:
    """Rows as a frame; polars would give names to columns whose name is empty."""
    frame = polars_frame(pl, rows, pl.DataFrame)
    if frame.columns != rows.schema.names:
        frame.columns = rows.schema.names
    return frame


def _batches(made: Scan, names: list[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    number = made._request.row_number
    if number is None:
        yield from DatasetScanner(narrowed(made, schema, names), schema).to_batches()
        return
    if number not in names:
        made = replace(made, _request=replace(made._request, row_number=None))
    rows = DatasetScanner(narrowed(made, schema, [n for n in names if n != number]), schema)
    for batch in rows.to_batches():
        yield batch.select(names)


def _polars() -> Any:
    """The package polars."""
    pl = needed("polars", "pageseek.polars")
    try:
        import polars.io.plugins  # noqa: F401 - late: it is slow to import, and needed here alone
    except ImportError as error:
        raise MissingPackageError(
            "pageseek.polars needs polars 1.20 or later: pip install -U polars", name="polars"
        ) from error
    return pl
