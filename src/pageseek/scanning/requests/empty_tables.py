"""Tables without files: what a request names is looked up in a file without rows, which has the columns of the table."""

from __future__ import annotations

import io
from dataclasses import replace

import pyarrow as pa

from pageseek.base.report import Report
from pageseek.format.file_metadata import FileMetadata
from pageseek.scanning.requests.bound_request import BoundRequest
from pageseek.scanning.requests.request import Request
from pageseek.storage import Source

NAME = "the table"  # in errors


def columns_of(request: Request) -> FileMetadata | None:
    """A file in memory with the columns that were given; None where there are none, where Parquet does not have their types, or
    where names may be spelled in several ways.
    """
    dataset_schema = request.dataset_schema
    if dataset_schema is None or dataset_schema.given is None or dataset_schema.spelling:
        return None
    import pyarrow.parquet as pq  # late: only for such tables

    written = io.BytesIO()
    try:
        pq.write_table(dataset_schema.given.empty_table(), written)
    except pa.ArrowException:
        return None
    source = Source(NAME, data=written.getvalue())
    return FileMetadata(source, source.open(), Report())


def check(request: Request) -> None:
    """Raise the errors of names and values that do not suit the columns of a table."""
    file = columns_of(request)
    if file is not None:
        BoundRequest.of(file, replace(request, dataset_schema=None))
