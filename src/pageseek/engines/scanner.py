"""The rows that an engine asked a dataset for: read again as often as it likes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pageseek.api import Scan
from pageseek.base.batches import batches_of
from pageseek.base.errors import FileChangedError, NoColumnError, PageseekError, PredicateError
from pageseek.base.late_modules import names_of_others
from pageseek.base.records import dataclass
from pageseek.base.report import Report
from pageseek.base.tracebacks import short_traceback
from pageseek.engines.projection import Projection
from pageseek.scanning.queries.requested_schema import with_types
from pageseek.storage import Version

T = TypeVar("T")
CHANGED = "the files have changed; make the dataset again"


@dataclass(frozen=True, slots=True)
class DatasetScanner:
    """Columns and rows of a dataset, with the methods of `pyarrow.dataset.Scanner`. Nothing is read before one is called.

    Attributes
    ----------
    scan : Scan
        The columns that are read, the filter and the options.
    dataset_schema : pyarrow.Schema
        The columns of the dataset.
    """

    if not TYPE_CHECKING:  # which knows by itself what a scanner has
        __getattr__ = names_of_others("DatasetScanner")

    scan: Scan
    dataset_schema: pa.Schema
    _projection: Projection = Projection()
    _version: Version | None = None  # of the only file, whose row numbers are selected

    def __repr__(self) -> str:
        return f"<pageseek scanner of {self.scan!r}>"

    @property
    @short_traceback
    def projected_schema(self) -> pa.Schema:
        """The schema of the rows."""
        read = self._checked(lambda: self.scan.schema)
        return self._projection.schema(self._confirmed(read))

    @short_traceback
    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as record batches, read as the iterator advances."""
        schema, batches = self._read()
        del schema
        return batches

    @short_traceback
    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream of record batches."""
        return pa.RecordBatchReader.from_batches(*self._read())

    @short_traceback
    def to_table(self) -> pa.Table:
        """The rows as a table."""
        return self._projection(self._table(self.scan))

    @short_traceback
    def head(self, num_rows: int) -> pa.Table:
        """The first rows."""
        return self._projection(self._table(self.scan.limit(num_rows)))

    @short_traceback
    def count_rows(self) -> int:
        """The number of rows; without a filter the footers answer."""
        return self._checked(self.scan.count_rows)

    @short_traceback
    def take(self, indices: Any) -> pa.Table:
        """The rows of these numbers, counted through those that pass the filter, in the order of the numbers.

        Without a filter, pages of other rows are not read. A number beyond the last row is an IndexError.
        """
        wanted = indices if isinstance(indices, (pa.Array, pa.ChunkedArray)) else pa.array(indices)
        if not len(wanted):
            return self.head(0)
        if not pa.types.is_integer(wanted.type) or wanted.null_count:
            raise TypeError(f"take: integers are expected, not {wanted.type} or nulls")
        different = pc.unique(wanted).sort()
        first, last = different[0].as_py(), different[-1].as_py()
        if first < 0:
            raise IndexError(f"take: there is no row {first}")
        request = self.scan._request
        deletes = any(source.deletes for source in self.scan.sources)  # their rows have numbers
        if request.filter is None and not (request.selects_rows or deletes):
            table = self._table(self.scan.take(different.to_numpy()))
            at = pc.index_in(wanted, value_set=different)
        else:
            table, at = self._table(self.scan.limit(last + 1)), wanted
            if table.num_rows <= last:
                by = "filter leaves" if request.filter is not None else "dataset has"
                raise IndexError(f"take: there is no row {last}, the {by} {table.num_rows}")
        return self._projection(table.take(pa.array(np.asarray(at))))

    @short_traceback
    def explain(self, analyze: bool = False) -> Report:
        """What would be read, and why not more; with `analyze`, what was."""
        return self.scan.explain(analyze)

    @short_traceback
    def __arrow_c_schema__(self) -> object:
        return self.projected_schema.__arrow_c_schema__()

    @short_traceback
    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows by the PyCapsule protocol of Arrow."""
        reader = self.to_reader()
        if requested_schema is not None:
            reader = with_types(reader, pa.Schema._import_from_c_capsule(requested_schema))
        return reader.__arrow_c_stream__()

    def _read(self) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        if self._version is None:
            reader = self._checked(self.scan.to_reader)
            schema, batches = reader.schema, iter(reader)
        else:
            plan = self._checked(
                self.scan.plan
            )  # it is executed on the version of its footer alone
            schema, batches = plan.schema, plan.execute()
        schema = self._projection.schema(self._confirmed(schema))
        return schema, self._projected(batches)

    def _table(self, scan: Scan) -> pa.Table:
        table = self._checked(scan.to_table)
        self._confirmed(table.schema)
        return table

    def _checked(self, read: Callable[[], T]) -> T:
        """What was read.

        Raises
        ------
        FileChangedError
            A column that the engine was told of is gone, or has a type now that the filter cannot be compared with; or the
            only file has another version than its row numbers.
        """
        try:
            found = read()
        except (PageseekError, IndexError) as error:
            self._check_version(error)
            if isinstance(error, (NoColumnError, PredicateError)):
                self._check_columns(error)
            raise
        self._check_version(None)
        return found

    def _check_version(self, error: Exception | None) -> None:
        if self._version is not None:
            source = self.scan.sources[0]
            with closing(source.open()) as store:
                check_version(source.name, store.version, self._version, error)

    def _check_columns(self, error: Exception) -> None:
        request = replace(self.scan._request, columns=None, filter=None)
        there = replace(self.scan, _request=request).schema
        try:
            self._check_types(pa.schema(f for f in there if f.name in self.dataset_schema.names))
        except FileChangedError as changed:
            raise changed from error
        gone = next((name for name in self.dataset_schema.names if name not in there.names), None)
        if gone is not None:
            raise FileChangedError(f"column {gone!r} is not there now: {CHANGED}") from error

    @short_traceback
    def _projected(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if not self._projection.expressions:
            yield from batches
            return
        size = self.scan._request.batch_size
        for batch in batches:
            yield from batches_of(self._projection(pa.Table.from_batches([batch])), size)

    def _confirmed(self, read: pa.Schema) -> pa.Schema:
        """The schema of what is read, which an engine was told before.

        Raises
        ------
        FileChangedError
            A column has another type than the engine was told: it would take values for what they are not. Or they are other
            columns, or in another order.
        """
        self._check_types(read)
        request = self.scan._request
        given = request.dataset_schema is not None and request.dataset_schema.given is not None
        if request.columns is None and not given:  # several of one name, which none can choose
            told, now = (list(zip(one.names, one.types, strict=True)) for one in (self.dataset_schema, read))  # fmt: skip
            if told != now:
                raise FileChangedError(
                    f"the columns are {read.names} now, and were {self.dataset_schema.names} when the dataset was made: {CHANGED}"
                )
        return read

    def _check_types(self, read: pa.Schema) -> None:
        for field in read:
            told = [one.type for one in self.dataset_schema if one.name == field.name]
            if not any(_is_part(field.type, one) for one in told):
                was = str(told[0]) if told else "not there"
                raise FileChangedError(
                    f"column {field.name!r} is {field.type} now, and was {was} when the dataset was made: {CHANGED}"
                )


def check_version(name: str, now: Version, was: Version, error: Exception | None = None) -> None:
    """Raise FileChangedError, for which an `error` may be the reason, if these are not the same."""
    if now != was:
        raise FileChangedError(
            f"{name}: the file changed after its row groups were chosen ({was.tag} -> {now.tag}); make the fragments again"
        ) from error


def _is_part(kind: pa.DataType, whole_kind: pa.DataType) -> bool:
    """Whether a struct has some of the fields of another one, and no others."""
    if kind == whole_kind:
        return True
    if not pa.types.is_struct(kind) or not pa.types.is_struct(whole_kind):
        return False
    return all(
        (at := whole_kind.get_field_index(field.name)) >= 0
        and _is_part(field.type, whole_kind.field(at).type)
        for field in kind
    )
