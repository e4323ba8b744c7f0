"""One spelling for columns, and fields of structs, that files spell in several ways, where case does not matter to a session."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa

from pageseek.base.errors import PageseekError
from pageseek.base.report import Report
from pageseek.datasets.dataset_schema import DatasetSchema
from pageseek.datasets.file_cache import cache
from pageseek.datasets.spelling import has_structs, respelled, unified
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.types import Options
from pageseek.scanning.plans.scan_plan import AllColumns, ScanPlan
from pageseek.scanning.queries.scan import Scan
from pageseek.spark.session.settings import Settings


def spelled(scan: Scan, settings: Settings, wanted: pa.Schema | None = None) -> Scan:
    """The scan with the columns of files, and fields of structs, under the names of its schema, where case does not matter.

    Without a schema those are the names of `wanted`, then those of the first file.
    """
    request, sources = scan._request, scan.sources
    schema = request.dataset_schema
    if not sources or (schema is not None and schema.fields):
        return scan
    given = None if schema is None else schema.given
    if given is None and wanted is None and (schema is None or len(sources) < 2):
        return scan
    if settings.case_sensitive:
        return scan
    fields = list(given or wanted or ())
    if given is None:
        file = cache.open(sources[0], Report(), request.limits.max_metadata_bytes)
        tops = _tops(file, request.options)
        if schema is None and pa.struct(tops) == unified([pa.struct(fields), pa.struct(tops)]):
            return scan
        fields = list(unified([pa.struct(fields), pa.struct(tops)])) if fields else tops
    names = [field.name for field in fields]
    if len({name.lower() for name in names}) < len(names):
        return scan
    return _as_spelled(scan, fields)


def unified_scan(scan: Scan, schema: pa.Schema) -> Scan:
    """The scan with one column for those of later files that differ in case alone, and so with fields of structs.

    It is spelled as in the first file that has it. `schema`: that of the scan over all files. The scan itself, where it has
    no such columns.
    """
    known = scan._request.dataset_schema
    if known is None or known.given is not None or not known.spelling:
        return scan
    fields = [field for field in schema if field.name not in known.folders.names]
    if len({field.name.lower() for field in fields}) == len(fields):
        fields = [field for field in fields if has_structs(field.type)]
    if not fields:
        return scan
    types = dict(known.spelled_types)
    both = (
        pa.struct([(name, types.get(name, pa.null())) for name in known.spelling]),
        pa.struct(fields),
    )
    made = unified(both)
    return scan if made == unified(both, fold=False) else _as_spelled(scan, list(made))


def planned(scan: Scan) -> tuple[Scan, ScanPlan]:
    """The scan, as `unified_scan` makes it by the columns that it has, and its plan."""
    plan = scan.plan()
    made = unified_scan(scan, plan.schema)
    return (scan, plan) if made is scan else (made, made.plan())


def all_columns(scan: Scan) -> tuple[Scan, AllColumns]:
    """The scan, as `unified_scan` makes it by the columns of all its files, and these."""
    columns = scan._execution.columns()
    made = unified_scan(scan, columns.schema)
    return (scan, columns) if made is scan else (made, made._execution.columns())


def _as_spelled(scan: Scan, fields: Sequence[pa.Field]) -> Scan:
    """The scan with names spelled as those of fields, and of those in their types."""
    request = scan._request
    schema = replace(
        request.dataset_schema or DatasetSchema(),
        spelling=tuple([field.name for field in fields]),
        spelled_types=tuple([(f.name, f.type) for f in fields if has_structs(f.type)]),
    )
    return replace(scan, _request=replace(request, dataset_schema=schema))


def _tops(file: FileMetadata, options: Options) -> list[pa.Field]:
    """The columns of a file, with the types of those that are nested."""
    tree, made = file.schema_tree, []
    for i in range(tree.num_fields):
        kind = pa.null()
        if tree.flat_leaf(i) is None:
            with suppress(PageseekError):  # whoever reads the column raises it
                kind = file.node(i, options).field.type
        made.append(pa.field(tree.field(i).name, kind))
    return made


def names_of_first(scan: Scan) -> list[str]:
    """The names of the columns of the first file, as they are spelled."""
    request = scan._request
    tree = cache.open(scan.sources[0], Report(), request.limits.max_metadata_bytes).schema_tree
    own = [tree.field(i).name for i in range(tree.num_fields)]
    return (
        own if request.dataset_schema is None else respelled(own, request.dataset_schema.spelling)
    )
