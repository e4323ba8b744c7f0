"""Lookups in a table of many local files: the statistics of its log leave few files, each of which few reads answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from pageseek._core.points import AVAILABLE
from pageseek.base.bounded_cache import BoundedCache
from pageseek.base.errors import PageseekError
from pageseek.predicate.parameter_values import with_values
from pageseek.prune.registry import COLUMN_INDEX, REGISTRY, STATISTICS
from pageseek.scanning.points.point_reads import PointReads
from pageseek.scanning.requests.request import Request
from pageseek.storage import Sources

FEW_FILES = 4  # of more, threads read several at a time
KEPT = 1024  # files whose plans are kept


class TablePoints:
    """The calls of a prepared query that few reads of few files of a table can answer. Threads may share it."""

    __slots__ = ("_points", "_request", "_schema", "_sources")

    def __init__(self, sources: Sources, request: Request, schema: pa.Schema) -> None:
        self._sources, self._request, self._schema = sources, request, schema
        self._points: BoundedCache[int, PointReads] = BoundedCache(KEPT)

    @classmethod
    def of(cls, sources: Sources, request: Request) -> TablePoints | None:
        """None where no call can be answered so."""
        dataset_schema = request.dataset_schema
        if (
            not AVAILABLE
            or sources.bounds is None
            or sources.far
            or sources.in_folders
            or request.filter is None
            or request.selects_rows
            or request.row_number is not None
            or dataset_schema is None
            or dataset_schema.given is None
            or not {STATISTICS, COLUMN_INDEX} <= request.prune
        ):
            return None
        given, names = dataset_schema.given, request.columns
        if names is None:
            return cls(sources, request, given.remove_metadata())
        if not set(names) <= set(given.names):  # fields of structs
            return None
        return cls(sources, request, pa.schema([given.field(name) for name in names]))

    def table(self, values: Mapping[str, Any]) -> pa.Table | None:
        """The rows for the values of a call. None: it goes the way of every scan, which also names what is wrong."""
        request = self._request
        if REGISTRY.catalogs:
            return None
        assert request.filter is not None
        from pageseek.scanning.requests.log_answers import LogAnswers  # late: for tables

        asked = replace(request, filter=with_values(request.filter, values)) if values else request
        log = LogAnswers.of(self._sources, asked, None)
        n = len(self._sources) if log is None else log.num_left
        if not 0 < n <= FEW_FILES:
            return None
        tables = []
        for at in range(n) if log is None else log.positions.tolist():
            points = self._points.get(at, partial(self._of_file, at))
            try:
                found = points.table(values)
            except PageseekError:
                return None
            if found is None:
                return None
            tables.append(found)
        made = tables[0] if len(tables) == 1 else pa.concat_tables(tables)
        return made if request.limit is None else made.slice(0, request.limit)

    def _of_file(self, at: int) -> PointReads:
        sources = self._sources
        return PointReads(sources[at], self._request, self._schema, sources.kept)


def points_of(sources: Sources, request: Request) -> PointReads | TablePoints | None:
    """What may answer a filter by few reads of local files; None where every call goes the way of every scan."""
    return PointReads.of(sources, request) or TablePoints.of(sources, request)
