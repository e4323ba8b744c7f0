"""What a table's log or manifests say of each file, compared with the rows of the file: bounds, null counts, deleted rows.

Sources: Delta protocol (Per-file Statistics), Iceberg specification (Manifests: bounds and counts of a data file).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from pageseek.base.errors import PageseekError
from pageseek.base.report import Report
from pageseek.datasets.dataset_schema import DatasetSchema
from pageseek.datasets.file_bounds import ColumnBounds, FileBounds, Path
from pageseek.index.findings import Finding
from pageseek.prune.registry import LOG
from pageseek.scanning.deletes.delete_files import OPTIONS, opened
from pageseek.scanning.deletes.deleted_rows import deleted_rows
from pageseek.scanning.queries.execution import Execution
from pageseek.scanning.requests.request import BATCH_SIZE, Request
from pageseek.storage import Source, Sources

DELETES = "deleted rows"


class TableCheck:
    """Compares what a table says with its files, one after the other.

    Attributes
    ----------
    columns : dict
        The columns of which the table has bounds, by their paths.
    """

    def __init__(
        self, bounds: FileBounds | None, schema: pa.Schema, dataset_schema: DatasetSchema | None
    ) -> None:
        self._bounds, self._dataset_schema = bounds, dataset_schema
        self.columns: dict[Path, ColumnBounds] = {}
        folders = () if dataset_schema is None else dataset_schema.folders.names
        for path in _leaf_paths(schema):
            told = None if bounds is None or path[0] in folders else bounds.told(path)
            if told is not None:
                self.columns[path] = told

    def deletes(self, source: Source) -> Iterator[Finding]:
        """What is wrong with the deleted rows of a file."""
        report = Report()
        try:
            deleted_rows(source, opened(replace(source, deletes=()), report), report)
        except PageseekError as error:
            yield Finding(DELETES, "", None, None, str(error), source.name)

    def log(self, at: int, source: Source, threads: int | None) -> Iterator[Finding]:
        """What is wrong with the statistics of the file at a position; it is read whole, with the rows that are deleted."""
        bounds = self._bounds
        if bounds is None:
            return
        plain = replace(source, deletes=())

        def wrong(path: Path, what: str) -> Finding:
            return Finding(LOG, ".".join(path), None, None, what, source.name)

        told = bounds.num_rows(at)
        n = opened(plain, Report()).num_rows
        if told not in (None, n):
            yield wrong((), f"it says {told} rows, and the file has {n}")
        sound = {}
        for path, column in self.columns.items():
            if at in column.malformed:
                yield wrong(
                    path,
                    "its bounds are no values of the column, inverted, or it counts more nulls than rows",
                )
            elif (
                column.null_counts[at].is_valid
                or column.lower[at].is_valid
                or column.upper[at].is_valid
            ):
                sound[path] = _Seen(column, at)
        tops = tuple(dict.fromkeys(path[0] for path in sound))
        request = Request(
            tops, None, None, OPTIONS, "ieee", BATCH_SIZE, prune=frozenset(), threads=threads,
            dataset_schema=self._dataset_schema,
        )  # fmt: skip
        for batch in Execution(Sources.of([plain]), request, False).batches() if tops else ():
            for path, seen in sound.items():
                seen.add(_at(batch, path))
        for path, seen in sound.items():
            yield from (wrong(path, what) for what in seen.lies(n))


class _Seen:
    """The values of a column of a file, against its bounds."""

    def __init__(self, told: ColumnBounds, at: int) -> None:
        self._lower, self._upper, self._nulls = told.lower[at], told.upper[at], told.null_counts[at]
        self._outside: dict[str, pa.Scalar] = {}
        self._null_count = self._n = 0

    def add(self, values: pa.Array) -> None:
        self._n += len(values)
        self._null_count += values.null_count
        if isinstance(values, pa.ExtensionArray):
            values = values.storage
        for bound, outside, name in (
            (self._lower, pc.less, "below"),
            (self._upper, pc.greater, "above"),
        ):
            if not bound.is_valid or name in self._outside:
                continue
            hits = values.filter(outside(values, bound.cast(values.type)))
            if len(hits):
                self._outside[name] = hits[0]

    def lies(self, num_rows: int) -> Iterator[str]:
        for name, value in self._outside.items():
            bound = self._lower if name == "below" else self._upper
            yield f"no value is {name} {_shown(bound)} by it, and {_shown(value)} is there"
        told = self._nulls.as_py()
        if told == 0 and self._null_count:
            yield f"there is no null by it, and there are {self._null_count}"
        if told == num_rows and self._null_count < self._n:
            yield f"all of {num_rows} values are null by it, and {self._n - self._null_count} are not"


def _shown(value: pa.Scalar) -> str:
    return repr(value.as_py())[:80]


def _leaf_paths(schema: pa.Schema) -> Iterator[Path]:
    """The paths of the columns outside of lists and maps, through structs."""

    def inside(path: Path, kind: pa.DataType) -> Iterator[Path]:
        if pa.types.is_struct(kind):
            for field in kind:
                yield from inside((*path, field.name), field.type)
        elif not pa.types.is_nested(kind):
            yield path

    for field in schema:
        yield from inside((field.name,), field.type)


def _at(batch: pa.RecordBatch, path: Path) -> pa.Array:
    column = batch.column(path[0])
    return pc.struct_field(column, list(path[1:])) if path[1:] else column
