"""Columns of a file under other names than in the dataset: by their field ids, by names of the table's own, or by the case of
their names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from pageseek.base.errors import UnsupportedError
from pageseek.base.records import NamedTuple
from pageseek.datasets.dataset_schema import DatasetSchema
from pageseek.datasets.spelling import respelled
from pageseek.datasets.table_fields import TableField
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.nesting import Node

_UNNAMED = "\0"  # begins the name of a field of a file that is none of the table


def has_ids(file: FileMetadata) -> bool:
    """Whether the columns of a file have field ids."""
    tree = file.schema_tree
    return any(tree.field(i).element.field_id >= 0 for i in range(tree.num_fields))


def names_by_ids(file: FileMetadata, dataset_schema: DatasetSchema) -> dict[str, str | None]:
    """Names of the dataset -> names of this file, None where it has no such field.

    Raises
    ------
    UnsupportedError
        The names of a file without ids mean nothing.
    """
    tree, fields = file.schema_tree, dataset_schema.fields
    if by_ids(file, dataset_schema):
        there: dict[int, str] = {}
        for i in range(tree.num_fields):
            top = tree.field(i)
            if top.element.field_id >= 0:
                there[top.element.field_id] = top.name
        return {field.name: there.get(field.id) for field in fields}
    if not any(field.aliases for field in fields):
        raise UnsupportedError(
            f"{file.name}: its columns have no field ids, and the table has no mapping of names"
        )
    names = {tree.field(i).name for i in range(tree.num_fields)}
    return {
        field.name: next((alias for alias in field.aliases if alias in names), None)
        for field in fields
    }


def by_ids(file: FileMetadata, dataset_schema: DatasetSchema) -> bool:
    """Whether the fields of a file are found by their ids; else by names."""
    return any(field.id >= 0 for field in dataset_schema.fields) and has_ids(file)


class Mapped(NamedTuple):
    """How a table calls the fields inside a field of a file: see FieldNames.

    `by_ids`: whether they are found by ids; else by names of the table's own.
    """

    field: TableField
    by_ids: bool

    def names(self, node: Node) -> list[str]:
        """See FieldNames."""
        found = self._found(node)
        return [
            _UNNAMED + child.name if field is None else field.name
            for child, field in zip(node.children, found, strict=True)
        ]

    def children(self, node: Node) -> Sequence[Mapped | None]:
        """See FieldNames."""
        inside: Sequence[TableField | None] = self.field.children
        if node.kind == "struct":
            inside = self._found(node)
        if len(inside) != len(node.children):
            return [None] * len(node.children)
        # the parts of a variant have no names of the table's own
        return [
            None
            if one is None or (child.kind == "struct" and not one.children)
            else Mapped(one, self.by_ids)
            for one, child in zip(inside, node.children, strict=True)
        ]

    def undecided(self, node: Node) -> dict[str, list[str]]:
        """See FieldNames: an id means one field."""
        return {}

    def missing(self, name: str) -> str:
        """See FieldNames."""
        return _UNNAMED + name  # the file may have another field of this name

    def _found(self, node: Node) -> list[TableField | None]:
        """The field of the table for each field of a struct."""
        if self.by_ids:
            ids = {field.id: field for field in self.field.children}
            return [ids.get(id_of(child.field)) for child in node.children]
        own = {child.name for child in node.children}
        names = {}
        for field in self.field.children:
            alias = next((alias for alias in field.aliases if alias in own), None)
            if alias is not None:
                names[alias] = field
        return [names.get(child.name) for child in node.children]


def nested(fields: Sequence[TableField]) -> Iterator[TableField]:
    """Those that have fields inside."""
    return (field for field in fields if field.children)


def names_by_case(file: FileMetadata, spelling: Sequence[str]) -> dict[str, str | None] | None:
    """Names of the dataset -> names of this file, which spells some of them in another case; None: it spells none so."""
    tree = file.schema_tree
    own = [tree.field(i).name for i in range(tree.num_fields)]
    names = respelled(own, spelling)
    return None if names == own else dict(zip(names, own, strict=True))


def id_of(field: pa.Field) -> int:
    """The field id of a field; -1 where it has none."""
    return int((field.metadata or {}).get(b"PARQUET:field_id", -1))


def columns_in_partitions(file: FileMetadata, dataset_schema: DatasetSchema) -> dict[str, str]:
    """Columns of the dataset -> the path of a field inside whose values only the partition of the file has."""
    if not dataset_schema.inside:
        return {}
    tree, found = file.schema_tree, {}
    numbers = {leaf.element.field_id for leaf in tree.leaves}
    for path, number in dataset_schema.inside.get(file.name, ()):
        there = number in numbers if max(numbers) >= 0 else tree.path_index(path) is not None
        if not there:
            found[path.partition(".")[0]] = path
    return found
