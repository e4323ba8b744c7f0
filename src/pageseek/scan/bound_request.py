"""What is asked of one file: its columns, the filter bound to its leaves, the leaves that either needs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from dataclasses import field
from typing import Any

import pyarrow as pa

from pageseek.base.errors import PredicateError
from pageseek.base.records import dataclass
from pageseek.dataset.dataset_schema import DatasetSchema, Path, SchemaAdapter, tested_paths
from pageseek.dataset.evolution import SchemaMapping
from pageseek.format.columns import Column, Names, output, presence_leaf
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf, Schema
from pageseek.io.fetch import Kept
from pageseek.predicate.bind import bind
from pageseek.predicate.bound import Bound, has_not, leaves_of
from pageseek.scan.condition_order import Learned
from pageseek.scan.request import Request
from pageseek.storage import Source

KINDS = 64  # of files with different columns, whose bound filters are kept while others are opened


@dataclass(frozen=True, slots=True)
class BoundRequest:
    """A request bound to one file: the columns to give, the filter, the leaves that either touches."""

    request: Request
    columns: tuple[Column, ...]
    schema: pa.Schema
    bound: Bound | None
    absent: tuple[Path, ...] = ()  # what is asked for and not in this file
    learned: Learned = field(default_factory=Learned, compare=False, repr=False)  # of the filter
    kept: Kept = field(default_factory=Kept, compare=False, repr=False)
    made: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)  # of the above

    @classmethod
    def of(
        cls,
        file: FileMetadata,
        request: Request,
        source: Source | None = None,
        strict: Collection[Path] = (),
    ) -> BoundRequest:
        """`source`: as the dataset knows the file. Paths that are `strict` have to be in it."""
        if request.dataset_schema is not None:
            return cls._of_many(
                file, request, request.dataset_schema, source or file.source, strict
            )
        file.schema_tree.check(request.options)
        columns, schema = output(file, request.columns, request.options)

        find = Names(file, request.options)
        bound = bind(request.filter, find, request.nan) if request.filter is not None else None
        return cls(request, columns, request.numbered(schema, file.name), bound)

    @classmethod
    def _of_many(
        cls,
        file: FileMetadata,
        request: Request,
        dataset_schema: DatasetSchema,
        source: Source,
        strict: Collection[Path],
    ) -> BoundRequest:
        """The columns and their schema are those that this file has of all."""
        mapping = SchemaMapping(file, dataset_schema, request.options, source.partitions, strict)
        mapping.check_dictionaries()
        columns, schema = mapping.output(request.columns)
        try:
            bound = (
                bind(request.filter, mapping, request.nan) if request.filter is not None else None
            )
        except PredicateError as error:  # others may have the column in a type that fits
            if source.name in str(error):
                raise
            said = type(error)(f"{source.name}: {error}")
            said.at = error.at
            raise said from None
        return cls(request, columns, schema, bound, tuple(mapping.absent))

    def again(self) -> BoundRequest:
        """The same for another file whose columns are the same."""
        columns, schema, bound = self.columns, self.schema, self.bound
        return BoundRequest(
            self.request, columns, schema, bound, self.absent, self.learned, made=self.made
        )

    def adapter(self, schema: pa.Schema, source: Source) -> SchemaAdapter | None:
        """What makes columns of a plan's schema from those of this file; None where they are these."""
        if schema is self.schema:  # as a rule it is the file's own
            return None
        if not source.partitions and self.made.get("fits") is schema:
            return None
        first = int(self.request.row_number is not None)
        own = list(self.schema)
        if self.request.dataset_schema is None:
            own = own[first:]
        made = SchemaAdapter(list(schema)[first:], own, dict(source.partitions), source.name)
        if not made.none:
            return made
        if not source.partitions:
            self.made["fits"] = schema
        return None

    @property
    def payload(self) -> set[int]:
        """The leaves whose values are wanted."""
        found: set[int] | None = self.made.get("payload")
        if found is None:
            found = {part.leaf.index for column in self.columns for part in column.parts}
            self.made["payload"] = found
        return found

    @property
    def tests_payload(self) -> bool:
        """Whether a leaf that the filter tests is wanted as well, or may be: any leaf of a group tells of it."""
        found: bool | None = self.made.get("tests_payload")
        if found is None:
            tests = [] if self.bound is None else leaves_of(self.bound)
            payload = self.payload
            found = any(test.leaf.index in payload or test.leaf.group for test in tests)
            self.made["tests_payload"] = found
        return found

    @property
    def asks_for_matches(self) -> bool:
        """Whether it is of use to know which rows match before their values are read."""
        found: bool | None = self.made.get("asks_for_matches")
        if found is None:
            found = not self.tests_payload or (self.bound is not None and has_not(self.bound))
            self.made["asks_for_matches"] = found
        return found

    def required_leaves(self, file: FileMetadata) -> Callable[[int], list[Leaf]]:
        """Of each row group, the leaves that are read; as one of a group only where no value is wanted of it."""
        payload = {p.leaf.index: p.leaf for column in self.columns for p in column.parts}
        tests = [] if self.bound is None else [test.leaf for test in leaves_of(self.bound)]
        values = payload | {leaf.index: leaf for leaf in tests if not leaf.group}
        groups = [leaf for leaf in tests if leaf.group]

        def of(row_group: int) -> list[Leaf]:
            told = [presence_leaf(file, row_group, leaf, payload) for leaf in groups]
            return list(({leaf.index: leaf for leaf in told} | values).values())

        return of


class BoundRequests:
    """What is asked of each file of a dataset: as a rule they have the same columns, to which a filter is bound once.

    Safe for threads.
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        self._known: dict[Any, tuple[Schema, BoundRequest]] = {}  # by columns, and what folders say
        self._folders: set[str] | None = (
            set()
        )  # columns of folders that the filter tests; None: any
        if request.filter is not None:
            paths = tested_paths(request.filter)
            self._folders = None if paths is None else {path[0] for path in paths}

    def said(self, source: Source) -> Hashable:
        """What the folders of a file say, as far as its scope hangs on that: which columns they have, which are then not
        read from the file, and the values of those that the filter tests.
        """
        if self._folders is None or not source.partitions:
            return source.partitions
        tested = self._folders
        return tuple(
            [one if one[0] in tested else (one[0], one[1].type) for one in source.partitions]
        )

    def of(self, file: FileMetadata, source: Source) -> BoundRequest:
        """That of a file, which shares with others of the same columns what was made of these."""
        if self.request.dataset_schema is None:
            return BoundRequest.of(file, self.request)
        key = file.columns_key, self.said(source)
        known = self._known.get(key)
        if known is None:
            bound_request = BoundRequest.of(file, self.request, source)
            if len(self._known) >= KINDS:
                self._known.clear()
            self._known[key] = file.schema_tree, bound_request
            return bound_request
        tree, bound_request = known
        file.adopt_columns(tree)
        return bound_request.again()
