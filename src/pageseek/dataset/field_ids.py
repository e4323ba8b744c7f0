"""Columns of a file under other names than in the dataset: by their field ids, or by the case of their names."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from pageseek.base.errors import UnsupportedError
from pageseek.dataset.dataset_schema import DatasetSchema
from pageseek.dataset.spelling import respelled
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.types import Options


def names_by_ids(file: FileMetadata, dataset_schema: DatasetSchema) -> dict[str, str | None]:
    """Names of the dataset -> names of this file, None where it has no such field.

    Raises
    ------
    UnsupportedError
        Inside a struct a field has another name than in the dataset, or the names of a file without ids mean nothing.
    """
    tree = file.schema_tree
    there: dict[int, str] = {}
    for i in range(tree.num_fields):
        top = tree.field(i)
        if top.element.field_id >= 0:
            there[top.element.field_id] = top.name
    if there:
        own = {name: there.get(number) for name, number, _ in dataset_schema.ids}
        for name, inside in own.items():
            if inside is not None and dataset_schema.given is not None:
                index = tree.field_index(inside)
                if tree.flat_leaf(index) is None:
                    field = file.node(index, Options()).field
                    _check_inside(file.name, dataset_schema.given.field(name), field)
        return own
    if not any(aliases for _, _, aliases in dataset_schema.ids):
        raise UnsupportedError(
            f"{file.name}: its columns have no field ids, and the table has no mapping of names"
        )
    names = {tree.field(i).name for i in range(tree.num_fields)}
    return {
        name: next((alias for alias in aliases if alias in names), None)
        for name, _, aliases in dataset_schema.ids
    }


def names_by_case(file: FileMetadata, spelling: Sequence[str]) -> dict[str, str | None] | None:
    """Names of the dataset -> names of this file, which spells some of them in another case; None: it spells none so."""
    tree = file.schema_tree
    own = [tree.field(i).name for i in range(tree.num_fields)]
    names = respelled(own, spelling)
    return None if names == own else dict(zip(names, own, strict=True))


def _check_inside(name: str, given: pa.Field, own: pa.Field) -> None:
    """Refuse fields inside a column whose names and ids do not belong together as they do in the table."""
    t = pa.types
    if t.is_struct(given.type) and t.is_struct(own.type):
        names = {_id(field): field.name for field in given.type}
        ids = {field.name: _id(field) for field in given.type}
        for field in own.type:
            number = _id(field)
            renamed = number is not None and names.get(number, field.name) != field.name
            if renamed or ids.get(field.name, number) != number:
                raise UnsupportedError(
                    f"{name}: inside {given.name!r} the field {field.name!r} has another name in the table, or "
                    "another field has that name there: renamed fields of structs are not supported"
                )
            if field.name in ids:
                _check_inside(name, given.type.field(field.name), field)
    elif t.is_map(given.type) and t.is_map(own.type):
        _check_inside(name, given.type.key_field, own.type.key_field)
        _check_inside(name, given.type.item_field, own.type.item_field)
    elif t.is_list(given.type) and t.is_list(own.type):
        _check_inside(name, given.type.value_field, own.type.value_field)


def _id(field: pa.Field) -> bytes | None:
    return (field.metadata or {}).get(b"PARQUET:field_id")


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
