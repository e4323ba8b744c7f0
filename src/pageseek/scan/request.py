"""What is asked of every file, what that is in one file, and which of its row groups and rows are left to read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from concurrent.futures import Future
from dataclasses import field
from typing import Any, NamedTuple

import pyarrow as pa

from pageseek._core import rows
from pageseek.base.errors import PredicateError
from pageseek.base.limits import DEFAULT, Limits
from pageseek.base.records import dataclass
from pageseek.base.report import Report
from pageseek.dataset.dataset_schema import DatasetSchema, Path, SchemaAdapter, tested_paths
from pageseek.dataset.evolution import SchemaMapping
from pageseek.format.columns import Column, Names, output, presence_leaf
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf, Schema
from pageseek.format.types import Options
from pageseek.io.fetch import Kept
from pageseek.io.version_checks import VersionCheck
from pageseek.predicate.bind import bind
from pageseek.predicate.bound import Bound, leaves_of
from pageseek.predicate.expression import Expression
from pageseek.prune import STATISTICS, GroupProof, mechanisms, prune_groups
from pageseek.storage import Source, Version

KINDS = 64  # of files with different columns, whose bound filters are kept while others are opened


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """Rows of one row group. `proven`: every one of them passes the filter, by the footer; `sure`: those that do by
    the word of an index. `cost`: about the bytes to read. What was not `judged` only the footer has looked at.
    `without`: leaves whose page index was known to be wrong, and had no word in it.
    """

    row_group: int
    ranges: rows.RowRanges
    proven: bool
    cost: int
    sure: rows.RowRanges = field(default_factory=rows.RowRanges.empty)
    judged: bool = True
    without: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class FilePlan:
    """The row groups to read of one version of one file. `first_row`: the rows of the files before it."""

    source: Source
    version: Version
    groups: tuple[GroupPlan, ...]
    first_row: int = 0


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of every file: the same for all parts of a plan."""

    columns: tuple[str, ...] | None
    filter: Expression | None
    limit: int | None
    options: Options
    nan: str
    batch_size: int
    limits: Limits = DEFAULT
    prune: frozenset[str] = field(default_factory=lambda: mechanisms(True))
    take: rows.RowRanges | None = None  # rows of the whole source, which are numbered through
    row_number: str | None = None  # the column that gives these numbers
    threads: int | None = None  # that may compute at a time; None: one for each core
    max_ahead_bytes: int = 256 << 20  # of row groups that are read before they are asked for
    distinct_index: str | None = None  # the column of lists in the published form
    dataset_schema: DatasetSchema | None = (
        None  # where files may differ, or have columns in the names of folders
    )

    def numbered(self, schema: pa.Schema, name: str) -> pa.Schema:
        """A schema with the column of row numbers, if there is to be one."""
        if self.row_number is None:
            return schema
        if self.row_number in schema.names:
            raise PredicateError(
                f"{name}: with_row_number({self.row_number!r}): there is a column of this name"
            )
        return schema.insert(0, pa.field(self.row_number, pa.int64(), nullable=False))

    def asked(self, first_row: int, num_rows: int) -> rows.RowRanges:
        """The rows wanted of a row group, before any filter; `first_row`: the number of its first."""
        if self.take is None:
            return rows.RowRanges.all(num_rows)
        return self.take.slice(first_row, first_row + num_rows).shift(-first_row)


@dataclass(frozen=True, slots=True)
class BoundRequest:
    """A request bound to one file: the columns to give, the filter, the leaves that either touches."""

    request: Request
    columns: tuple[Column, ...]
    schema: pa.Schema
    bound: Bound | None
    absent: tuple[Path, ...] = ()  # what is asked for and not in this file
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
        return BoundRequest(self.request, columns, schema, bound, self.absent, made=self.made)

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


class Early(NamedTuple):
    """The rows of a row group that pass, its columns, and what was counted for that."""

    found: rows.RowRanges
    arrays: list[list[pa.Array]]
    report: Report


class Opened(NamedTuple):
    """A file, what is asked of it, and what its footer proves of that, as far as this is at hand. `doubt`: where its
    version is still to be confirmed. `early`: row groups that are being read already.
    """

    file: FileMetadata
    bound_request: BoundRequest
    footer: GroupProof | None = None
    version_check: VersionCheck | None = None
    early: dict[int, Future[Early]] = {}  # noqa: RUF012 - empty, and replaced where there are some

    def proof(self) -> GroupProof:
        """What the footer proves of each row group."""
        if self.footer is not None:
            return self.footer
        bound, request = self.bound_request.bound, self.bound_request.request
        if bound is None:
            return GroupProof(b"", b"")
        return prune_groups(self.file, bound, request.options, STATISTICS in request.prune)
