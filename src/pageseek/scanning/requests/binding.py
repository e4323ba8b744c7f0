"""Binds the request of a scan to its files."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Schema
from pageseek.scanning.requests.bound_request import BoundRequest
from pageseek.scanning.requests.request import Request
from pageseek.storage import Source

MAX_BOUND = 64  # different sets of columns whose bound requests are kept


class BoundRequests:
    """The request bound to each file. Files with the same columns share one bound request. Safe for threads."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self._known: dict[Any, tuple[Schema, BoundRequest]] = {}  # by columns, and what folders say
        self._folders: set[str] | None = (
            set()
        )  # columns of folders that the filter tests; None: any
        if request.filter is not None and request.dataset_schema is not None:
            from pageseek.datasets.dataset_schema import tested_paths  # late: for many files

            paths = tested_paths(request.filter)
            self._folders = None if paths is None else {path[0] for path in paths}

    def said(self, source: Source) -> Hashable:
        """The part of a file's folders on which its bound request depends: their columns, and the values of those that the
        filter tests.
        """
        dataset_schema = self.request.dataset_schema
        if dataset_schema is not None and dataset_schema.inside:
            return source.partitions, dataset_schema.inside.get(source.name)
        if self._folders is None or not source.partitions:
            return source.partitions
        tested = self._folders
        return tuple(
            [one if one[0] in tested else (one[0], one[1].type) for one in source.partitions]
        )

    def of(self, file: FileMetadata, source: Source) -> BoundRequest:
        """The request bound to a file."""
        if self.request.dataset_schema is None:
            return BoundRequest.of(file, self.request)
        key = file.columns_key, self.said(source)
        known = self._known.get(key)
        if known is None:
            bound_request = BoundRequest.of(file, self.request, source)
            if len(self._known) >= MAX_BOUND:
                self._known.clear()
            self._known[key] = file.schema_tree, bound_request
            return bound_request
        tree, bound_request = known
        file.adopt_columns(tree)
        return bound_request.again()
