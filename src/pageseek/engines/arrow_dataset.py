"""`dataset`: files as a dataset of pyarrow, whose filters and columns this package reads by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from pageseek.api import Scan, scan
from pageseek.base.errors import UnsupportedError
from pageseek.base.tracebacks import short_traceback
from pageseek.engines.asked import condition_of, pinned, scan_of, scanner, with_columns, with_given
from pageseek.engines.fragments import DatasetFragment
from pageseek.engines.scanner import DatasetScanner
from pageseek.storage import Sources

if TYPE_CHECKING:
    from typing import Unpack

    from pageseek.base.scan_options import ScanOptions

# pyarrow's C++ sees this schema in place of ours, so that whoever goes past the methods below gets an error, not rows
_FENCE = pa.schema([pa.field("a dataset of pageseek is read by its own scanner()", pa.null())])


@short_traceback
def dataset(
    source: Any,
    *,
    columns: Sequence[str] | None = None,
    filter: Any = None,
    **options: Unpack[ScanOptions],
) -> ArrowDataset:
    """Files as a dataset of pyarrow, for engines that push their filters into one: duckdb, polars, datafusion.

    `duckdb.sql("select * from d where id = 42")` with `d = pageseek.dataset("sales/")` reads the pages that can have the key,
    and no others. docs/engines.md says what each engine pushes.

    Parameters
    ----------
    source : any source of `scan`, a Scan, or a dataset of this function
        A scan may have a filter and columns, but no limit.
    columns, filter, **options
        Those of `scan`; there is no `limit`.

    Raises
    ------
    UnsupportedError
        A limit or a column of row numbers, which would change with the filters of the engine.
    """
    given: dict[str, Any] = with_given(options, columns=columns, filter=filter)
    made = scan_of("dataset", source, given)
    if made is None:
        made = scan(source, **given)
    request = made._request
    if request.limit is not None:
        raise UnsupportedError(
            "dataset: a limit would be taken after the filters of the engine; give it to the engine, or to head()"
        )
    if request.row_number is not None:
        raise UnsupportedError(
            "dataset: with_row_number is no column that an engine could filter by; read it with the scan itself"
        )
    return ArrowDataset(made)


class ArrowDataset(pads.InMemoryDataset):  # type: ignore[misc]
    """A `pyarrow.dataset.Dataset` over a scan. Every method reads only the columns and rows that it is asked for.

    Arguments that tune pyarrow's own reader (`batch_readahead`, `fragment_readahead`, `fragment_scan_options`,
    `cache_metadata`, `memory_pool`) are accepted and change nothing. `use_threads=False` decodes in one thread.
    """

    def __init__(self, made: Scan, schema: pa.Schema | None = None) -> None:
        super().__init__([], schema=_FENCE)
        self._scan, self._schema = made, schema

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._scan, self._schema)

    @property
    @short_traceback
    def schema(self) -> pa.Schema:
        """The columns of all files; read from their footers once."""
        if self._schema is None:
            self._scan = pinned(self._scan)
            self._schema = self._scan.schema
        return self._schema

    @property
    def files(self) -> list[str]:
        """The names of the files."""
        return [source.name for source in self._scan.sources]

    @property
    def partition_expression(self) -> Any:
        """TRUE: nothing is known of all rows. Fragments have the values of their folders."""
        return pc.scalar(True)

    @short_traceback
    def scanner(self, columns: Any = None, filter: Any = None, **options: Any) -> DatasetScanner:
        """The columns and rows wanted; nothing is read yet.

        Parameters
        ----------
        columns : list of str or dict, optional
            Names; or new names with expressions of pyarrow, which pyarrow computes of the rows that pass.
        filter : pyarrow.compute.Expression, optional
            Any other filter of `scan` is accepted, too.
        **options
            `batch_size`, `use_threads`, and what pyarrow's scanner takes besides.
        """
        schema = self.schema
        return scanner(self._scan, schema, columns, filter, **options)

    @short_traceback
    def to_table(self, columns: Any = None, filter: Any = None, **options: Any) -> pa.Table:
        """The rows as a table; arguments of `scanner`."""
        return self.scanner(columns, filter, **options).to_table()

    @short_traceback
    def to_batches(
        self, columns: Any = None, filter: Any = None, **options: Any
    ) -> Iterator[pa.RecordBatch]:
        """The rows as record batches; arguments of `scanner`."""
        return self.scanner(columns, filter, **options).to_batches()

    @short_traceback
    def head(
        self, num_rows: int, columns: Any = None, filter: Any = None, **options: Any
    ) -> pa.Table:
        """The first rows; arguments of `scanner`."""
        return self.scanner(columns, filter, **options).head(num_rows)

    @short_traceback
    def take(
        self, indices: Any, columns: Any = None, filter: Any = None, **options: Any
    ) -> pa.Table:
        """The rows of these numbers; arguments of `scanner`."""
        return self.scanner(columns, filter, **options).take(indices)

    @short_traceback
    def count_rows(self, filter: Any = None, **options: Any) -> int:
        """The number of rows; arguments of `scanner`."""
        options.pop("columns", None)
        return self.scanner([], filter, **options).count_rows()

    @short_traceback
    def filter(self, expression: Any) -> ArrowDataset:
        """The dataset with only the rows for which this filter, and each one given before, is TRUE."""
        schema = self.schema
        return ArrowDataset(self._scan.filter(condition_of(expression)), schema)

    @short_traceback
    def replace_schema(self, schema: pa.Schema) -> ArrowDataset:
        """The dataset with these columns. One that the files lack is null; a type that does not hold all values is refused
        when they are read.
        """
        if self._scan._request.columns is not None:
            raise UnsupportedError(
                "replace_schema: this dataset has chosen columns; give schema= to dataset()"
            )
        files = self._scan._request.dataset_schema
        if files is not None and files.fields:
            raise UnsupportedError("replace_schema: a table has its own schema")
        return ArrowDataset(with_columns(self._scan, schema))

    @short_traceback
    def get_fragments(self, filter: Any = None) -> Iterator[DatasetFragment]:
        """The files, each as a fragment with all of its rows. `filter`: only files that may have rows for which it is TRUE;
        where there is none, one fragment without rows.

        A fragment can be pickled and read elsewhere. Row groups of equal cost are the parts of `Scan.plan().split(n)`.
        """
        schema, request = self.schema, self._scan._request
        if request.take is not None:
            raise UnsupportedError(
                "get_fragments: rows are taken by numbers that count through all files; Scan.plan().split(n) divides them"
            )
        sources: Any = self._scan.sources
        if filter is not None:
            plan = self._scan.filter(condition_of(filter)).plan()
            sources = [file.source for file in plan.files]
            if not sources and self._scan.sources:  # datafusion takes no dataset without fragments
                source = self._scan.sources[0]
                alone = replace(self._scan, _sources=Sources.of([source]))
                yield DatasetFragment(alone.take({source.name: []}), schema)
        for source in sources:
            made = replace(self._scan, _sources=Sources.of([source]))
            yield DatasetFragment(made, schema)

    @short_traceback
    def sort_by(self, sorting: Any, **options: Any) -> pads.InMemoryDataset:
        """The dataset in memory, sorted by pyarrow."""
        return pads.InMemoryDataset(self.to_table()).sort_by(sorting, **options)

    @short_traceback
    def join(self, right_dataset: Any, *args: Any, **options: Any) -> pads.InMemoryDataset:
        """Both datasets read into memory, and joined by pyarrow."""
        right = _in_memory(right_dataset)
        return pads.InMemoryDataset(self.to_table()).join(right, *args, **options)

    @short_traceback
    def join_asof(self, right_dataset: Any, *args: Any, **options: Any) -> pads.InMemoryDataset:
        """Both datasets read into memory, and joined by pyarrow."""
        right = _in_memory(right_dataset)
        return pads.InMemoryDataset(self.to_table()).join_asof(right, *args, **options)

    @short_traceback
    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    @short_traceback
    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows by the PyCapsule protocol of Arrow."""
        return self.scanner().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<pageseek.dataset of {self._scan!r}>"

    def _get_fragments(self, filter: Any) -> Iterator[DatasetFragment]:
        return self.get_fragments(filter)

    @short_traceback
    def _scanner_options(self, options: Any) -> Any:
        """Refuse: pyarrow calls this before its C++ scans a dataset past the methods above."""
        raise UnsupportedError(
            "a dataset of pageseek is read by its own methods: dataset.scanner(...), or dataset.to_table(...) for a join of pyarrow"
        )


def _in_memory(right: Any) -> Any:
    return pads.InMemoryDataset(right.to_table()) if isinstance(right, ArrowDataset) else right
