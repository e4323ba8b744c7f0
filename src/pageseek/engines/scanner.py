"""The rows that an engine asked a dataset for: read as often as it likes, each time anew."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pageseek.api import Scan
from pageseek.base.batches import batches_of
from pageseek.base.errors import FileChangedError
from pageseek.base.records import dataclass
from pageseek.base.report import Report
from pageseek.engines.projection import Projection
from pageseek.scanning.requested_schema import with_types


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

    scan: Scan
    dataset_schema: pa.Schema
    _projection: Projection = Projection()

    @property
    def projected_schema(self) -> pa.Schema:
        """The schema of the rows."""
        return self._projection.schema(self._confirmed(self.scan.schema))

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as record batches, read as the iterator advances."""
        schema, batches = self._read()
        del schema
        return batches

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream of record batches."""
        return pa.RecordBatchReader.from_batches(*self._read())

    def to_table(self) -> pa.Table:
        """The rows as a table."""
        table = self.scan.to_table()
        self._confirmed(table.schema)
        return self._projection(table)

    def head(self, num_rows: int) -> pa.Table:
        """The first rows."""
        table = self.scan.limit(num_rows).to_table()
        self._confirmed(table.schema)
        return self._projection(table)

    def count_rows(self) -> int:
        """The number of rows; without a filter the footers answer."""
        return self.scan.count_rows()

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
        if request.filter is None and not request.selects_rows:
            table = self.scan.take(different.to_numpy()).to_table()
            at = pc.index_in(wanted, value_set=different)
        else:
            table, at = self.scan.limit(last + 1).to_table(), wanted
            if table.num_rows <= last:
                raise IndexError(
                    f"take: there is no row {last}, the filter leaves {table.num_rows}"
                )
        self._confirmed(table.schema)
        return self._projection(table.take(pa.array(np.asarray(at))))

    def explain(self, analyze: bool = False) -> Report:
        """What would be read, and why not more; with `analyze`, what was."""
        return self.scan.explain(analyze)

    def __arrow_c_schema__(self) -> object:
        return self.projected_schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows by the PyCapsule protocol of Arrow."""
        if not self._projection.expressions:
            return self.scan.__arrow_c_stream__(requested_schema)
        reader = self.to_reader()
        if requested_schema is not None:
            reader = with_types(reader, pa.Schema._import_from_c_capsule(requested_schema))
        return reader.__arrow_c_stream__()

    def _read(self) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        reader = self.scan.to_reader()
        schema = self._projection.schema(self._confirmed(reader.schema))
        return schema, self._projected(reader)

    def _projected(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        if not self._projection.expressions:
            yield from reader
            return
        size = self.scan._request.batch_size
        for batch in reader:
            yield from batches_of(self._projection(pa.Table.from_batches([batch])), size)

    def _confirmed(self, read: pa.Schema) -> pa.Schema:
        """The schema of what is read, which an engine was told before.

        Raises
        ------
        FileChangedError
            A column has another type than the engine was told: it would take values for what they are not.
        """
        for field in read:
            told = [one.type for one in self.dataset_schema if one.name == field.name]
            if not any(_is_part(field.type, one) for one in told):
                was = str(told[0]) if told else "not there"
                raise FileChangedError(
                    f"column {field.name!r} is {field.type} now, and was {was} when the dataset was made: the files have "
                    "changed; make the dataset anew"
                )
        return read


def _is_part(kind: pa.DataType, whole_kind: pa.DataType) -> bool:
    """Whether a struct has some of the fields of another one, and no others."""
    if not pa.types.is_struct(kind) or not pa.types.is_struct(whole_kind):
        return bool(kind == whole_kind)
    return all(
        (at := whole_kind.get_field_index(field.name)) >= 0
        and _is_part(field.type, whole_kind.field(at).type)
        for field in kind
    )
