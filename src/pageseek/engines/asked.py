"""The arguments of a scanner of pyarrow, as a scan of this package and the columns computed from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from pageseek.api import Scan
from pageseek.base.errors import UnsupportedError
from pageseek.datasets.dataset_schema import DatasetSchema, tested_paths
from pageseek.engines.projection import projection_of
from pageseek.engines.scanner import DatasetScanner

# arguments of pyarrow's scanner that tune its own reader; scans of this package have options of their own
IGNORED = (
    "batch_readahead",
    "fragment_readahead",
    "fragment_scan_options",
    "cache_metadata",
    "memory_pool",
)


def scanner(
    scan: Scan,
    schema: pa.Schema,
    columns: Any = None,
    filter: Any = None,
    batch_size: int | None = None,
    use_threads: bool = True,
    **ignored: Any,
) -> DatasetScanner:
    """The rows of a scan that an engine asks for. `schema`: that of the scan, as the engine knows it."""
    unknown = next((name for name in ignored if name not in IGNORED), None)
    if unknown is not None:
        raise TypeError(f"scanner() has no argument {unknown!r}")
    made = projection_of(columns, schema)
    scan = narrowed(scan, schema, made.read)
    scan = scan.filter(condition_of(filter))
    scan = scan._in_batches(batch_size)
    if not use_threads:
        scan = replace(scan, _request=replace(scan._request, threads=1))
    return DatasetScanner(scan, schema, made)


def narrowed(scan: Scan, schema: pa.Schema, names: Sequence[str] | None) -> Scan:
    """The scan with the columns of these names; None: all. `schema`: that of the scan, as the engine knows it."""
    request, there = scan._request, schema.names
    own, files = request.columns, request.dataset_schema
    if own is None:
        # those that the engine knows, in its order, whatever the file has when it is read
        if (
            names is None
            and (files is None or files.given is None)
            and len(set(there)) == len(there)
        ):
            names = there
        return scan if names is None else scan.select(*names)
    if names is None:
        return scan
    chosen: list[str] = []
    for name in names:  # of a struct only what the scan has chosen of it
        inside = [one for one in own if one.startswith(f"{name}.") and one not in there]
        chosen += [name] if name in own or not inside else inside
    return scan.select(*chosen)


def with_given(options: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Options with those of some others that are not None."""
    return {**{name: value for name, value in more.items() if value is not None}, **options}


def scan_of(call: str, source: Any, options: Mapping[str, Any]) -> Scan | None:
    """The scan that a source is, or that a dataset of this package has; None: it is another source. `call`: for errors."""
    made = source if isinstance(source, Scan) else getattr(source, "_scan", None)
    if not isinstance(made, Scan):
        return None
    if options:
        raise TypeError(
            f"{call}: {', '.join(options)}: give options to the scan, or a source with them"
        )
    return made


def with_columns(scan: Scan, schema: pa.Schema) -> Scan:
    """The scan with these columns in place of those of its files."""
    if not isinstance(schema, pa.Schema):
        raise TypeError(f"schema={schema!r}: a pyarrow.Schema; pa.schema(...) makes one")
    files = scan._request.dataset_schema or DatasetSchema()
    for field in files.folders:
        if field.name in schema.names and schema.field(field.name).type != field.type:
            raise UnsupportedError(
                f"column {field.name!r} of the folders is {field.type}, and the schema has {schema.field(field.name).type}: "
                "give its type to dataset(), as partitioning="
            )
    return replace(
        scan, _request=replace(scan._request, dataset_schema=replace(files, given=schema))
    )


def pinned(scan: Scan) -> Scan:
    """The scan with the columns of all its files: a file that is read by itself has them as well, with their types, and none need
    be opened again to know them.
    """
    files = scan._request.dataset_schema
    if files is None or files.given is not None:
        return scan
    every = _all_columns(scan, files)
    # a schema that is given has each name once
    return with_columns(scan, every) if len(set(every.names)) == len(every) else scan


def _all_columns(made: Scan, files: DatasetSchema) -> pa.Schema:
    """All columns of the files, or those that the scan needs where others have no type in common."""
    request = replace(made._request, row_number=None, limit=None)
    names = request.columns or ()
    try:
        found = replace(made, _request=replace(request, columns=None)).schema
        given = replace(files, given=found)
        if all(given.gives((name,)) for name in names):
            return found
        # files that the filter rules out by their folders have the others
        return replace(made, _request=replace(request, columns=None, filter=None)).schema
    except UnsupportedError:
        paths = [] if request.filter is None else tested_paths(request.filter)
        if not names or paths is None:
            raise
        needed = tuple(dict.fromkeys((*names, *map(".".join, paths))))
        return replace(made, _request=replace(request, columns=needed)).schema


def condition_of(filter: Any) -> Any:
    """A filter as a scan takes it. That of Substrait has one expression of pyarrow."""
    if type(filter).__module__ != "pyarrow._substrait":
        return filter
    expressions = list(getattr(filter, "expressions", {}).values())
    if len(expressions) != 1:
        raise UnsupportedError(
            f"a filter of Substrait with {len(expressions)} expressions: give one of them"
        )
    return expressions[0]
