"""The columns of partitions, whose values folders or a table have: known before a file is opened."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from pageseek.base.errors import NoColumnError, PredicateError, UnsupportedError
from pageseek.datasets.dataset_schema import DatasetSchema, Path, SchemaAdapter, parts_of, top_of
from pageseek.datasets.widening import widened
from pageseek.format.columns import Column
from pageseek.format.schema import Leaf
from pageseek.format.types import LeafType
from pageseek.predicate.bind import bind
from pageseek.predicate.bound import BoundConst
from pageseek.predicate.constant_column import NULL_LEAF_TYPE, ConstantColumn, constant_leaf_type
from pageseek.predicate.expression import Expression
from pageseek.predicate.schema_names import UnknownColumnError
from pageseek.storage.hive import Partitions

Fill = Callable[[list[pa.ChunkedArray], int], list[pa.ChunkedArray]]


class FolderNames:
    """The columns of partitions of a file, for filters that are bound before it is opened."""

    def __init__(self, dataset_schema: DatasetSchema, partitions: Partitions) -> None:
        self._dataset_schema = dataset_schema
        self.values: dict[str, pa.Scalar] = dict(partitions)

    def of(self, path: Path) -> tuple[ConstantColumn, LeafType] | None:
        """The column at a path, where that is one of a partition."""
        top = self._top(path)
        if top is None:
            return None
        kind, value = self._kind(top), self.values[top]
        inside = parts_of(path, [top])[1:]
        if inside and not pa.types.is_struct(kind):
            raise PredicateError(f"{top!r} is a column of partitions, and has nothing inside")
        for name in inside:
            at = kind.get_field_index(name) if pa.types.is_struct(kind) else -1
            if at < 0:
                raise NoColumnError(
                    f"no column {'.'.join(path)!r} in {top!r}, which is {value.type}"
                )
            kind = kind.field(at).type
            value = value[name] if value.is_valid else pa.scalar(None, kind)
        if pa.types.is_null(kind):
            return ConstantColumn(path, None), NULL_LEAF_TYPE
        leaf_type = constant_leaf_type(kind)
        if leaf_type is None:
            raise UnsupportedError(
                f"column {'.'.join(path)!r}, which is not in the file, is {kind}, which no filter takes"
            )
        values = pa.array([value], kind)
        return ConstantColumn(path, widened(values, leaf_type.storage)), leaf_type

    def has(self, path: Path) -> bool:
        """Whether a path leads into one of the columns."""
        return self._top(path) is not None

    def _top(self, path: Path) -> str | None:
        if path[0] in self.values:
            return path[0]
        given = self._dataset_schema.given
        if not self.values or given is None:
            return None
        # a struct is the default of a column of a table
        top = top_of(path, given.names)
        value = None if top is None else self.values.get(top)
        return top if value is not None and pa.types.is_struct(value.type) else None

    def _kind(self, name: str) -> pa.DataType:
        folders = self._dataset_schema.folders
        at = folders.get_field_index(name)
        return self.values[name].type if at < 0 else folders.field(at).type

    def __call__(self, path: Path) -> tuple[Leaf, LeafType]:
        """The column at a path; UnknownColumnError where that is in the files."""
        found = self.of(path)
        if found is None:
            raise UnknownColumnError(path)
        return found

    element = __call__

    def in_struct(self, _path: Path) -> None:
        """Never: partitions have no structs."""

    def default_in_list(self, _path: Path) -> None:
        """Never: partitions have no lists."""

    def target(self, path: Path) -> LeafType | None:
        """How values of a column are compared."""
        return self(path)[1]

    def as_float(self, path: Path) -> bool:
        """Never: a column of partitions has one type."""
        return False

    def complete(
        self, paths: list[Path] | None
    ) -> tuple[tuple[Column, ...], list[Any], pa.Schema, Fill]:
        """The columns of partitions, and no columns to read."""
        if paths is None or any(path[0] not in self.values for path in paths):
            raise UnknownColumnError(paths)
        fields = [self._dataset_schema.folders.field(path[0]) for path in dict.fromkeys(paths)]
        fill = SchemaAdapter(fields, [], self.values, "")
        return (), [], pa.schema(fields), fill.chunked


class Folders:
    """Whether files may have rows that pass, by their folders alone."""

    def __init__(
        self, dataset_schema: DatasetSchema, condition: Expression | None, nan: str
    ) -> None:
        self._dataset_schema, self._condition, self._nan = dataset_schema, condition, nan
        self._known: dict[Partitions, bool] = {}

    def may(self, partitions: Partitions) -> bool:
        """Whether some row of a file of these partitions may pass."""
        if not partitions or self._condition is None:
            return True
        found = self._known.get(partitions)
        if found is None:
            bound = bind(self._condition, FolderNames(self._dataset_schema, partitions), self._nan)
            found = self._known[partitions] = bound != BoundConst(False)
        return found
