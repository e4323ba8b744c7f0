"""The figures of an aggregation, and the leaves of a file that they are of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import pyarrow as pa

from pageseek.base.arguments import shown
from pageseek.base.errors import NoColumnError, PageseekError, PredicateError, UnsupportedError
from pageseek.base.late_modules import compute as pc
from pageseek.base.records import NamedTuple
from pageseek.datasets.dataset_schema import top_of
from pageseek.datasets.evolution import SchemaMapping
from pageseek.format.columns import Names, output
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.format.types import LeafType
from pageseek.predicate.expression import Column
from pageseek.scanning.requests.request import Request
from pageseek.storage import Source

Leaves: TypeAlias = dict[tuple[str, ...], tuple[Leaf, LeafType]]  # of columns, by their paths
FUNCTIONS = ("count", "min", "max")


class Wanted(NamedTuple):
    """A figure: the number of rows (no path), or the count, least or greatest of the values of a column."""

    function: str
    path: tuple[str, ...]
    name: str


def parse(asked: Iterable[Any], functions: Sequence[str] = FUNCTIONS) -> list[Wanted]:
    """Figures from "count" and from pairs of a column and one of the functions.

    Raises
    ------
    PredicateError
        It is neither, the function is unknown, or a name occurs twice.
    """
    if not isinstance(asked, Iterable):
        raise PredicateError(
            f"aggregate: {shown(asked)}: give a list of 'count' and of pairs of a column and a function"
        )
    made: list[Wanted] = []
    for one in [asked] if isinstance(asked, str) else asked:
        if isinstance(one, str) and one == "count":
            made.append(Wanted("count", (), "count"))
            continue
        if not isinstance(one, tuple) or len(one) != 2:
            raise PredicateError(
                f"aggregate: {one!r}: give 'count', or a pair of a column and a function"
            )
        column, function = one
        if function not in functions:
            raise PredicateError(f"aggregate: {function!r}: one of {', '.join(functions)}")
        path = column.path if isinstance(column, Column) else (column,)
        if not all(isinstance(part, str) for part in path):
            raise PredicateError(f"aggregate: {column!r} is no column")
        made.append(Wanted(function, path, f"{'.'.join(path)}_{function}"))
    names = [wanted.name for wanted in made]
    for name in names:
        if names.count(name) > 1:
            raise PredicateError(f"aggregate: {name!r} is asked for twice")
    return made


def _place(
    file: FileMetadata, source: Source, path: tuple[str, ...], request: Request
) -> tuple[str, tuple[str, ...]]:
    """The column to select for a path, and the way from its field down to the leaf."""
    find: Names | SchemaMapping = Names(file, request.options)
    if request.dataset_schema is not None:
        find = SchemaMapping(
            file, request.dataset_schema, request.options, source.partitions, [path]
        )
    leaf = _leaf(file, path, find)[0]
    names = _parts(path, leaf)
    if len(names) == 1:
        return names[0], ()
    # a dotted name selects that leaf only, unless another field has this name as well
    alone, dataset_schema = ".".join(names), request.dataset_schema
    if dataset_schema is not None and alone in dataset_schema.dotted:  # a column of another file
        return names[0], names
    try:
        if isinstance(find, Names):
            (column,), _ = output(file, (alone,), request.options)
        else:
            (column,), _ = find.output((alone,))
        if [part.leaf.index for part in column.parts] == [leaf.index]:
            return alone, names
    except PageseekError:
        pass
    return names[0], names


def _parts(path: tuple[str, ...], leaf: Leaf) -> tuple[str, ...]:
    """A path, which may be one dotted name, by the names of the fields that lead to its leaf."""
    if len(path) == len(leaf.path):
        return path
    names, rest = [], ".".join(path)
    for own in reversed(leaf.path[1:]):  # names below the top differ in case at most
        rest, name = rest[: -len(own) - 1], rest[len(rest) - len(own) :]
        names.append(name)
    return (rest, *reversed(names))


def place_of(
    sources: Sequence[Source],
    open_file: Callable[[Source], FileMetadata],
    path: tuple[str, ...],
    request: Request,
) -> tuple[str, tuple[str, ...]]:
    """The column to select for a path, and the way to the leaf, in the first file that has such a column."""
    dataset_schema = request.dataset_schema
    if dataset_schema is None:
        return _place(open_file(sources[0]), sources[0], path, request)
    if path[0] in dataset_schema.folders.names:
        return path[0], ()
    if dataset_schema.given is not None:
        found = _given_place(path, dataset_schema.given)
        if found is not None:
            return found
    if path[0] in dataset_schema.dotted and len(path) == 1:
        return path[0], ()
    missing: NoColumnError | None = None
    for source in sources:
        try:
            return _place(open_file(source), source, path, request)
        except NoColumnError as error:
            missing = missing or error
    if missing is not None:
        raise missing
    from pageseek.scanning.requests.empty_tables import (  # late: for tables without files
        NAME,
        columns_of,
    )

    file = columns_of(request)
    if file is None:
        raise NoColumnError(f"{NAME}: no column {'.'.join(path)!r} that could be aggregated")
    return _place(file, file.source, path, replace(request, dataset_schema=None))


def _given_place(path: tuple[str, ...], given: pa.Schema) -> tuple[str, tuple[str, ...]] | None:
    """As `place_of` by the columns of a table, which any file may lack; None where these have no such leaf outside of lists."""
    top = top_of(path, given.names)
    if top is None:
        return None
    names = (top, *path[1:])
    if path[0] != top:
        names = (top, *path[0][len(top) + 1 :].split("."))
    kind = given.field(top).type
    for name in names[1:]:
        if not pa.types.is_struct(kind) or kind.get_field_index(name) < 0:
            return None
        kind = kind.field(name).type
    if pa.types.is_nested(kind):
        return None
    if len(names) == 1:
        return top, ()
    alone = ".".join(names)
    plain = top_of((alone,), given.names) == top and not any("." in name for name in names[1:])
    return (alone if plain else top), names


def type_at(schema: pa.Schema, name: str, below: tuple[str, ...]) -> pa.DataType:
    """The type of a leaf in a schema, through structs."""
    found = schema.field(below[0] if below else name)
    for part in below[1:]:
        found = found.type.field(part)
    return found.type


def values_at(table: pa.Table, name: str, below: tuple[str, ...]) -> pa.ChunkedArray:
    """The values of a leaf in a table, through structs."""
    values = table[below[0] if below else name]
    for part in below[1:]:
        values = pc.struct_field(values, [values.type.get_field_index(part)])
    return values


def _leaf(
    file: FileMetadata, path: tuple[str, ...], find: Names | SchemaMapping
) -> tuple[Leaf, LeafType]:
    """The leaf of a column. UnsupportedError: it has no least and greatest value."""
    leaf, leaf_type = find(path)
    if leaf.group or leaf.max_rep:
        raise UnsupportedError(
            f"{file.name}: {'.'.join(path)!r} is nested; aggregate one of its leaves that is in no list"
        )
    if pa.types.is_interval(leaf_type.type):
        raise UnsupportedError(
            f"{file.name}: {'.'.join(path)!r} of type {leaf_type.type} has no order"
        )
    return leaf, leaf_type


def leaves_of_columns(
    file: FileMetadata, source: Source, paths: Iterable[tuple[str, ...]], request: Request
) -> Leaves:
    """The leaves of columns in a file, by their paths, without those that it lacks and that have a default inside of a struct."""
    if request.dataset_schema is None:
        names = Names(file, request.options)
        return {path: _leaf(file, path, names) for path in paths}
    find = SchemaMapping(file, request.dataset_schema, request.options, source.partitions)
    there = [path for path in paths if not find.has_default_inside(path)]
    return {path: _leaf(file, path, find) for path in there}
