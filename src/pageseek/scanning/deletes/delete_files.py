"""Reads files of deletes, and the columns of data files that these are compared with, by scans of their own."""

from __future__ import annotations

import os

import pyarrow as pa

from pageseek.base.late_modules import above
from pageseek.base.report import Report
from pageseek.datasets.file_cache import cache
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.types import Options
from pageseek.predicate.expression import Expression
from pageseek.scanning.requests.request import BATCH_SIZE, Request
from pageseek.storage import Source, Sources

_OF_VIEWS = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
OPTIONS = Options(int96_unit="us", int96_utc=True)  # as tables are read
NANOSECONDS = Options(int96_utc=True)  # likewise, where a table has them


def opened(source: Source, report: Report) -> FileMetadata:
    """The footer of a file."""
    return cache.open(source, report)


def stamp(source: Source | None) -> tuple[int, int] | None:
    """Time and size of a local file of deletes, by which another file in its place is told from it; None for one in a store, whose
    name is its own by the specifications: to ask for its version would be a request for each scan.
    """
    if source is None or source.filesystem is not None:
        return None
    try:
        found = os.stat(source.path)
    except OSError:  # told by whoever reads it
        return None
    return found.st_mtime_ns, found.st_size


def as_plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column whose type others can be compared with: extension types, dictionaries and views as what they stand for."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        plain = [chunk.storage for chunk in column.chunks]
        return as_plain(pa.chunked_array(plain, kind.storage_type))
    if pa.types.is_dictionary(kind):
        made = [
            as_plain(pa.chunked_array([chunk.dictionary])).combine_chunks().take(chunk.indices)
            for chunk in column.chunks
        ]
        return pa.chunked_array(
            made, made[0].type if made else as_plain(pa.chunked_array([], kind.value_type)).type
        )
    return column.cast(_OF_VIEWS[kind]) if kind in _OF_VIEWS else column


def read(
    source: Source,
    report: Report,
    columns: tuple[str, ...] | None,
    condition: Expression | None = None,
    row_number: str | None = None,
    options: Options = OPTIONS,
) -> pa.Table:
    """Columns of a file, of the rows that pass a condition; first their numbers, if these have a name. The report counts what
    is read.
    """
    request = Request(columns, condition, None, options, "ieee", BATCH_SIZE, row_number=row_number)
    rows: pa.Table = above("delete_files.read")(Sources.of([source]), request, False).scanned(
        report
    )
    return rows
