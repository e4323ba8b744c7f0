"""The rows of a scan, written to one file: `Scan.write_parquet`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from itertools import chain
from typing import Any

import pyarrow as pa

from pageseek.base.errors import UnsupportedError
from pageseek.rewriting import request as asked
from pageseek.rewriting.encoding import group_rows_of, plain, plain_schema
from pageseek.rewriting.output import Output
from pageseek.rewriting.places import Folder, destination
from pageseek.rewriting.reading import batches_of
from pageseek.rewriting.rewrite import kept_schema
from pageseek.scanning.queries.results import without_range
from pageseek.scanning.queries.scan import Scan


def write(
    scan: Scan,
    path: Any,
    codec: str,
    page_rows: int | None,
    row_group_rows: int | None,
    overwrite: bool,
    storage_options: Mapping[str, Any] | None,
) -> int:
    """Write the rows, and return their number. The arguments are those of `Scan.write_parquet`."""
    rows_of = (("page_rows", page_rows), ("row_group_rows", row_group_rows))
    given = {name: None if n is None else asked.number(name, n) for name, n in rows_of}
    layout = asked.layout_of(given["page_rows"], given["row_group_rows"], codec, ())
    schema = kept_schema(scan.schema)
    if not _is_whole(scan):
        schema = without_range(schema)
    if not schema.names:
        raise UnsupportedError("write_parquet: rows without columns: select one")
    with closing(destination([], path, False, overwrite, "", storage_options)) as to:
        if isinstance(to, Folder):
            raise UnsupportedError(f"write_parquet: {to.name} is a folder: name a file in it")
        rows = _tables(scan, plain_schema(schema))
        first = next(rows, None)
        if not layout.group_rows:
            sample = pa.Table.from_pylist([], plain_schema(schema)) if first is None else first
            layout = replace(layout, group_rows=group_rows_of(sample))
        with closing(Output(to, schema, layout, None)) as output:
            written = 0

            def count(n: int) -> None:
                nonlocal written
                written += n

            output.write(chain(() if first is None else (first,), rows), count)
            output.appear(None, None, False)
    return written


def _tables(scan: Scan, schema: pa.Schema) -> Iterator[pa.Table]:
    for batch in batches_of(scan, scan._progress):
        yield pa.Table.from_batches([plain(batch, schema)], schema)


def _is_whole(scan: Scan) -> bool:
    """Whether the rows are all those of one file."""
    request = scan._request
    chosen = (request.filter, request.limit, request.take, request.selected)
    return len(scan.sources) == 1 and chosen == (None,) * 4 and not scan.sources[0].deletes
