"""A request in terms of one file: its columns, the filter bound to leaves, and the leaves that both need."""

from __future__ import annotations

from collections.abc import Collection
from copy import copy
from typing import TYPE_CHECKING

import pyarrow as pa

from pageseek.base.errors import PredicateError
from pageseek.format.columns import Column, Names, output
from pageseek.format.file_metadata import FileMetadata
from pageseek.io.fetch import Kept
from pageseek.predicate.bind import bind
from pageseek.predicate.bound import Bound
from pageseek.predicate.expression import Expression
from pageseek.predicate.schema_names import Find
from pageseek.scanning.requests.condition_order import Learned
from pageseek.scanning.requests.leaf_use import LeafUse
from pageseek.scanning.requests.request import Request
from pageseek.storage import Source

if TYPE_CHECKING:
    from pageseek.datasets.dataset_schema import DatasetSchema, Path, SchemaAdapter


def bound_to(name: str, condition: Expression, find: Find, nan: str) -> Bound:
    """The filter, bound to the leaves of a file. `name`: of the file, for errors, since other files may have other types."""
    try:
        return bind(condition, find, nan)
    except PredicateError as error:
        if name in str(error):
            raise
        said = type(error)(f"{name}: {error}")
        said.at = error.at
        raise said from None


class BoundRequest:
    """A request bound to one file.

    Attributes
    ----------
    columns : tuple of Column
        The columns to give.
    schema : pyarrow.Schema
        The schema of these columns.
    bound : Bound or None
        The filter.
    absent : tuple of Path
        Paths of the request that the file lacks.
    defaults : dict of str to pyarrow.Scalar
        The values of columns that the file lacks, where these are not null.
    leaves : LeafUse
        The leaves that the columns and the filter read.
    learned : Learned
        Costs and shares of the conditions, measured on earlier row groups.
    kept : Kept
        Bytes of the file that were read to prune.
    """

    __slots__ = (
        "_fitting",
        "absent",
        "bound",
        "columns",
        "defaults",
        "kept",
        "learned",
        "leaves",
        "request",
        "schema",
    )

    def __init__(
        self,
        request: Request,
        columns: tuple[Column, ...],
        schema: pa.Schema,
        bound: Bound | None,
        absent: tuple[Path, ...] = (),
    ) -> None:
        self.request, self.columns, self.schema, self.bound = request, columns, schema, bound
        self.absent, self.leaves, self.learned = absent, LeafUse(columns, bound), Learned()
        self.kept = Kept()
        self.defaults: dict[str, pa.Scalar] = {}
        self._fitting: list[pa.Schema] = []  # the last plan's schema that needs no adapter

    @classmethod
    def of(
        cls,
        file: FileMetadata,
        request: Request,
        source: Source | None = None,
        strict: Collection[Path] = (),
        filtered: bool = True,
    ) -> BoundRequest:
        """`source`: the file with the columns of its folders. Paths in `strict` must be in the file. `filtered`: else the filter is
        left out.
        """
        condition = request.filter if filtered else None
        if request.dataset_schema is not None:
            many = request.dataset_schema
            return cls._of_many(file, request, condition, many, source or file.source, strict)
        file.schema_tree.check(request.options)
        columns, schema = output(file, request.columns, request.options)

        find = Names(file, request.options)
        bound = None if condition is None else bound_to(file.name, condition, find, request.nan)
        return cls(request, columns, request.numbered(schema, file.name), bound)

    @classmethod
    def _of_many(
        cls,
        file: FileMetadata,
        request: Request,
        condition: Expression | None,
        dataset_schema: DatasetSchema,
        source: Source,
        strict: Collection[Path],
    ) -> BoundRequest:
        """The request bound to one of many files: `columns` and `schema` have what this file has of them."""
        from pageseek.datasets.evolution import SchemaMapping  # late, as below: for many files

        mapping = SchemaMapping(file, dataset_schema, request.options, source.partitions, strict)
        mapping.check_dictionaries()
        columns, schema = mapping.output(request.columns)
        bound = (
            None if condition is None else bound_to(source.name, condition, mapping, request.nan)
        )
        made = cls(request, columns, schema, bound, tuple(mapping.absent))
        made.defaults = mapping.defaults
        return made

    def again(self) -> BoundRequest:
        """The bound request for another file with the same columns."""
        made = copy(self)
        made.kept = Kept()
        return made

    def adapter(self, schema: pa.Schema, source: Source) -> SchemaAdapter | None:
        """Makes the columns of a plan's schema from those of this file; None if they are the same."""
        if not source.partitions and self._fitting and self._fitting[0] is schema:
            return None
        first = int(self.request.row_number is not None)
        own = list(self.schema)
        if self.request.dataset_schema is None:
            own = own[first:]
        if own == list(schema)[first:] and not source.partitions:
            self._fitting[:] = [schema]
            return None
        from pageseek.datasets.dataset_schema import SchemaAdapter

        values = {**self.defaults, **dict(source.partitions)}
        dataset_schema = self.request.dataset_schema
        fields = () if dataset_schema is None else dataset_schema.fields
        made = SchemaAdapter(list(schema)[first:], own, values, source.name, fields)
        if not made.none:
            return made
        if not source.partitions:
            self._fitting[:] = [schema]
        return None
