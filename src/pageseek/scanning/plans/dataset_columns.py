"""The columns of many files as one schema, and which files their folders leave."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from pageseek.base.errors import NoColumnError, PageseekError
from pageseek.base.suggest import offered
from pageseek.format.file_metadata import FileMetadata
from pageseek.predicate.expression import ArrowFilter, Column, Expression, Place, walk
from pageseek.predicate.text import point
from pageseek.scanning.requests.binding import BoundRequests
from pageseek.scanning.requests.bound_request import BoundRequest
from pageseek.scanning.requests.request import Request
from pageseek.storage import Source, Sources

if TYPE_CHECKING:
    from pageseek.datasets.dataset_schema import DatasetSchema, Union
    from pageseek.datasets.folder_columns import Folders

OpenFile = Callable[[Source], FileMetadata]
Path = tuple[str, ...]
MOST_OFFERED = 64  # files whose names are offered for one that does not exist


class DatasetColumns:
    """The columns of a scan over all files that were opened.

    Attributes
    ----------
    request : Request
        The request, with the types of its tested columns over all files.
    requests : BoundRequests
        The request bound to the columns of each file.
    opened : int
        How many files were opened, whether or not their columns were added.
    """

    def __init__(self, sources: Sources, request: Request, open_file: OpenFile) -> None:
        self._sources, self._open_file = sources, open_file
        self._single: pa.Schema | None = None
        self._union: Union | None = None
        self._folders: Folders | None = None
        self.opened = 0
        if request.dataset_schema is not None:
            from pageseek.datasets.dataset_schema import Union  # late, as below: for many files

            if sources.in_folders:
                from pageseek.datasets.folder_columns import Folders

                self._folders = Folders(request.dataset_schema, request.filter, request.nan)
            self._union = Union(request.dataset_schema, request.columns)
        self.request = request
        self.requests = BoundRequests(request)

    def resolve_types(self) -> None:
        """Find the types and names of tested columns over all files, if the meaning of the filter depends on them."""
        request, dataset_schema = self.request, self.request.dataset_schema
        if dataset_schema is None:
            return
        from pageseek.datasets.dataset_schema import Union, depends_on_types

        if request.filter is not None:
            paths = [one.path for one in _columns(request.filter)]
            request = with_dotted_names(
                request, paths, filter(self.may_match, self._sources), self._open_file
            )
            if request is not self.request:
                self.request, self.requests = request, BoundRequests(request)
                dataset_schema = request.dataset_schema
                assert dataset_schema is not None
        tested = dataset_schema.given
        if tested is None and request.filter is not None and depends_on_types(request.filter):
            tested = self._tested(request.filter, dataset_schema)
        if tested is not None:
            dataset_schema = replace(dataset_schema, tested=tested)
            self.request = replace(request, dataset_schema=dataset_schema)
            self.requests = BoundRequests(self.request)
            self._union = Union(dataset_schema, request.columns)

    def _tested(self, condition: Expression, dataset_schema: DatasetSchema) -> pa.Schema:
        """The types of the tested columns over all files."""
        from pageseek.datasets.dataset_schema import Union, tested_paths
        from pageseek.datasets.evolution import SchemaMapping

        paths, options = tested_paths(condition), self.request.options
        union = Union(dataset_schema, None)
        for source in self._sources:
            if self.may_match(source):
                file = self._open_file(source)
                mapping = SchemaMapping(file, dataset_schema, options, source.partitions)
                union.add(mapping.whole(paths)[2], (), file.name)
        return union.schema()

    @property
    def known(self) -> bool:
        """Whether the schema of the answer is known."""
        return self.opened > 0 and not (self._union is not None and self._union.unknown)

    @property
    def one_schema(self) -> bool:
        """Whether files are not compared: there is one file, or each must have the schema of the first."""
        return self._union is None

    @property
    def may_match_all(self) -> bool:
        """Whether folders rule out no file, since none has any."""
        return self._folders is None

    def may_match(self, source: Source) -> bool:
        """Whether rows of a file may match, by its folders."""
        return self._folders is None or self._folders.may(source.partitions)

    def add(self, bound_request: BoundRequest, name: str) -> None:
        """Add the columns of a file."""
        if self._union is None:
            self._single = bound_request.schema
        else:
            self._union.add(bound_request.schema, bound_request.absent, name)

    @property
    def is_given(self) -> bool:
        """Whether the columns that were asked for are among those of a table, so that no file need be opened to know them."""
        request, dataset_schema = self.request, self.request.dataset_schema
        if dataset_schema is None or dataset_schema.given is None:
            return False
        from pageseek.datasets.dataset_schema import tested_paths

        paths = [] if request.filter is None else tested_paths(request.filter)
        return paths is not None and all(
            dataset_schema.gives(path)
            for path in (*paths, *((name,) for name in request.columns or ()))
        )

    def schema(self) -> pa.Schema:
        """The schema of the answer, from the files that were opened, one at least. Further files are opened while a column of
        the request was found in none.
        """
        if self._union is None:
            if self._single is None:  # no row of the only file is selected
                source = self._sources[0]
                file = self._open_file(source)
                self.opened += 1
                self.add(self.requests.of(file, source), file.name)
            assert self._single is not None
            return self._single
        if not self._sources:
            from pageseek.scanning.requests.empty_tables import (
                check,  # late: for tables without files
            )

            check(self.request)
        for source in self._sources:
            if self.known or (not self.opened and self.is_given):
                break
            file = self._open_file(source)
            self.opened += 1
            self.add(self.requests.of(file, source), file.name)
        if self._union.unknown:
            self._refuse(self._union.unknown)
        name = self._sources[0].name if self._sources else "the table"
        return self.request.numbered(self._union.schema(), name)

    def _refuse(self, unknown: set[Path]) -> None:
        """Raise the error of paths that no file has, with names of all files and folders."""
        source = self._sources[0]
        try:
            BoundRequest.of(self._open_file(source), self.request, source, unknown)
        except NoColumnError:
            asked = self.request.columns or ()
            path = min(unknown, key=lambda path: (path not in [(name,) for name in asked], path))
            name = ".".join(path)
            rest = len(self._sources) - 1
            others = f", and none in the other {rest:,} file{'s' * (rest > 1)}" if rest else ""
            words = f"{source.name}: no column {name!r}{others}; {offered(name, self._names(name))}"
            place = _place(self.request.filter, path)
            if place is None:
                raise NoColumnError(words) from None
            raise point(words, place.text, place.at, NoColumnError) from None

    def _names(self, name: str) -> list[str]:
        """The names to offer for one that no file has: of folders, and of the first files."""
        found = dict.fromkeys(name for name, _ in self._sources[0].partitions)
        for source in self._sources[:MOST_OFFERED]:
            with suppress(PageseekError, OSError):
                found.update(dict.fromkeys(self._open_file(source).schema_tree.names(name)))
        return list(found)


def with_dotted_names(
    request: Request, paths: Iterable[Path], sources: Iterable[Source], open_file: OpenFile
) -> Request:
    """The request with those columns of any file whose names have dots, and to which paths may lead. In a file that lacks such a
    column it is null, though a field of a struct may have the same path.
    """
    dataset_schema = request.dataset_schema
    if dataset_schema is None or dataset_schema.given is not None or dataset_schema.fields:
        return request
    from pageseek.datasets.dataset_schema import names_with_dots

    left = set().union(*map(names_with_dots, paths)) - dataset_schema.dotted
    found = set[str]()
    for source in sources if left else ():
        tree = open_file(source).schema_tree
        there = {name for name in left if tree.has_field(name)}
        found |= there
        left -= there
        if not left:
            break
    if not found:
        return request
    dotted = dataset_schema.dotted | found
    return replace(request, dataset_schema=replace(dataset_schema, dotted=dotted))


def _columns(condition: Expression) -> Iterator[Column]:
    """The columns that a filter names."""
    for part in walk(condition):
        if isinstance(part, ArrowFilter):
            from pageseek.predicate import pyarrow_filter as arrow  # late: for pyarrow's

            for path in arrow.fields(arrow.read(part.expression)) or ():
                yield Column(path)
        for column in (getattr(part, name, None) for name in ("column", "other", "element")):
            if isinstance(column, Column):
                yield column


def _place(condition: Expression | None, path: Path) -> Place | None:
    """Where the text of a filter names a path."""
    for column in () if condition is None else _columns(condition):
        if column.path == path:
            return column.place
    return None
