"""Rows that are deleted by their values (Iceberg specification, Equality Delete Files), as row numbers.

The rows of a data file that may have the values are read by a scan of its own, with all that prunes, and then compared. Null equals
null.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from operator import contains

import numpy as np
import pyarrow as pa

from pageseek._core import rows
from pageseek.base.bounded_cache import BoundedCache
from pageseek.base.errors import CorruptFileError, FileChangedError, PredicateError
from pageseek.base.late_modules import compute as pc
from pageseek.base.late_modules import npt
from pageseek.base.records import NamedTuple
from pageseek.base.report import Report
from pageseek.datasets.deletes import EqualityDeletes, KeyField
from pageseek.datasets.field_ids import has_ids, id_of
from pageseek.datasets.widening import joined_type, widened
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.nesting import Node
from pageseek.format.schema import Leaf
from pageseek.format.types import BYTES_TYPES, TEXT_TYPES
from pageseek.predicate.expression import Expression, col
from pageseek.scanning.deletes.delete_files import (
    NANOSECONDS,
    OPTIONS,
    as_plain,
    opened,
    read,
    stamp,
)
from pageseek.storage import Source, Version

KEPT = 256  # pairs of a data file and its deletes whose rows are kept
KEPT_VALUES = 32  # files of deletes whose values are kept
MOST_VALUES = 100_000  # of a condition that leaves out rows before they are compared
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_LAST = (1 << 63) - 1  # of a timestamp
_ROW = "row\0"  # no column has this name


def rows_by_values(
    source: Source, version: Version, deletes: list[EqualityDeletes], report: Report
) -> rows.RowRanges:
    """The rows of a version of a data file that are deleted by any of the files."""
    by_fields: dict[tuple[KeyField, ...], list[Source]] = {}
    said = deletes[0].said if deletes else ()  # all are of one data file
    for one in deletes:
        by_fields.setdefault(one.fields, []).append(one.source)
    found = rows.RowRanges.empty()
    plain = replace(source, deletes=())
    for fields, files in by_fields.items():
        asked = plain, version, source.partitions, said, fields, tuple(files)
        make = partial(rows_of_values, *asked, report)
        stamps = tuple([stamp(file) for file in files])
        found |= kept.get((asked, stamps), make) if version.dated else make()
    return found


kept: BoundedCache[object, rows.RowRanges] = BoundedCache(KEPT)
kept_values: BoundedCache[object, list[pa.ChunkedArray]] = BoundedCache(KEPT_VALUES)


def rows_of_values(
    source: Source,
    version: Version,
    partitions: tuple[tuple[str, pa.Scalar], ...],
    unread: tuple[tuple[int, pa.Scalar], ...],
    fields: tuple[KeyField, ...],
    files: tuple[Source, ...],
    report: Report,
) -> rows.RowRanges:
    """The rows of a data file that have values of a file of deletes in all of some fields. `partitions`, `unread`: what the partition of
    the data file says of columns, and of fields that are no columns of the scan.
    """
    of_files = [
        kept_values.get((file, stamp(file), fields), partial(values_of, file, fields, report))
        for file in files
    ]
    deleted = _together(of_files, files)
    if not len(deleted[0]):
        return rows.RowRanges.empty()
    file, said, known = opened(source, report), dict(partitions), dict(unread)
    leaves = [_leaf(file, field) for field in fields]
    structs = [
        _struct(file, field) if leaf is None and len(field.aliases) > 1 else None
        for field, leaf in zip(fields, leaves, strict=True)
    ]
    paths = [leaf.path for leaf in leaves if leaf is not None]
    names = _selected(file, [*paths, *[one.inside for one in structs if one is not None]])
    fine = any(pa.types.is_timestamp(one.type) and one.type.unit == "ns" for one in deleted)
    options = NANOSECONDS if fine else OPTIONS
    try:
        table = read(source, report, names, _condition(leaves, deleted), _ROW, options)
    except PredicateError:  # values of a type that no condition takes
        table = read(source, report, names, None, _ROW, options)
    if (
        opened(source, report).store.version.tag != version.tag
    ):  # the numbers are those of other rows
        raise FileChangedError(
            f"{source.name}: the file was replaced while its deleted rows were looked up; read it again"
        )
    columns = []
    for field, leaf, struct in zip(fields, leaves, structs, strict=True):
        if leaf is not None:
            columns.append(_flat(table, leaf.path))
            continue
        if field.id in known:
            columns.append(pa.chunked_array([_constant(known[field.id], table.num_rows)]))
            continue
        value = said.get(field.column or "", field.default)
        if struct is None:
            if not _have_defaults(field, 0):
                value = None
            made = _constant(value, table.num_rows)
        elif not struct.has_default:
            made = pa.nulls(table.num_rows)
        else:  # in a struct that is null everything is null
            there = pc.is_valid(_flat(table, struct.path)).combine_chunks()
            made = _constant(value, 1).take(pc.if_else(there, 0, None))
        columns.append(pa.chunked_array([made]))
    hit = np.isin(*_codes(columns, deleted, source))
    return rows.RowRanges.from_rows(table[_ROW].to_numpy()[hit])


def values_of(
    source: Source, fields: tuple[KeyField, ...], report: Report
) -> list[pa.ChunkedArray]:
    """The columns of a file of deletes, which may serve many data files."""
    file = opened(source, report)
    leaves = []
    for field in fields:
        leaf = _leaf(file, field)
        if leaf is None:
            raise CorruptFileError(
                f"{source.name}: it deletes by column {field.name!r} (field {field.id}), and does not have it"
            )
        leaves.append(leaf)
    table = read(source, report, _selected(file, [leaf.path for leaf in leaves]))
    return [_flat(table, leaf.path) for leaf in leaves]


def _together(
    of_files: Sequence[list[pa.ChunkedArray]], files: Sequence[Source]
) -> list[pa.ChunkedArray]:
    """The columns of several files of deletes, of which some may be older than a wider type."""
    made: list[pa.ChunkedArray] = []
    lost = np.zeros(sum([len(columns[0]) for columns in of_files]), np.bool_)
    for several in zip(*of_files, strict=True):
        kind = several[0].type
        for column, file in zip(several, files, strict=True):
            joined = _joined(kind, column.type)
            if joined is None:
                raise CorruptFileError(
                    f"{file.name}: it deletes by values of {column.type}, others by {kind}"
                )
            kind = joined
        chunks = [chunk for column in several for chunk in column.chunks]
        column, beyond = _widened(chunks, kind, files[0])
        made.append(column)
        lost |= beyond
    return [column.filter(pa.array(~lost)) for column in made] if lost.any() else made


def _widened(
    chunks: Sequence[pa.Array], kind: pa.DataType, source: Source
) -> tuple[pa.ChunkedArray, npt.NDArray[np.bool_]]:
    """Arrays as one column of a wider type, and which values this does not hold: times that a finer unit does not reach, which are
    null in the column, and equal no value of it. `source`: the file that errors name.
    """
    made, lost = [], []
    for chunk in chunks:
        beyond = np.zeros(len(chunk), np.bool_)
        try:
            one = widened(chunk, kind)
        except pa.ArrowException as error:
            fine, coarse = _per_day(kind), _per_day(chunk.type)
            if not 0 < coarse < fine:
                raise CorruptFileError(
                    f"{source.name}: rows are deleted by values of {chunk.type}, of which one is no {kind}: {error}"
                ) from error
            most = _LAST // (fine // coarse)
            count = chunk.cast(pa.int32()) if chunk.type.bit_width == 32 else chunk.cast(pa.int64())
            outside = pc.or_(pc.greater(count, most), pc.less(count, -most))
            beyond = outside.fill_null(False).to_numpy(zero_copy_only=False)
            one = widened(pc.if_else(pa.array(beyond), None, chunk), kind)
        made.append(one)
        lost.append(beyond)
    return pa.chunked_array(made, kind), np.concatenate([np.zeros(0, np.bool_), *lost])


def _per_day(kind: pa.DataType) -> int:
    """How many units of a type of times make a day; 0 of another type."""
    if pa.types.is_date32(kind):
        return 1
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        return 86_400 * _PER_SECOND[kind.unit]
    return 86_400_000 if pa.types.is_date64(kind) else 0


def _joined(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """The type of which values of two types are compared: bytes, where one writer did not say that they are text."""
    a, b = (kind.value_type if pa.types.is_dictionary(kind) else kind for kind in (a, b))
    if (a in TEXT_TYPES and b in BYTES_TYPES) or (a in BYTES_TYPES and b in TEXT_TYPES):
        return pa.large_binary()
    if pa.types.is_timestamp(a) and pa.types.is_timestamp(b):  # which have their zone by the table
        b = pa.timestamp(b.unit, a.tz)
    return joined_type(a, b)


def _leaf(file: FileMetadata, field: KeyField) -> Leaf | None:
    """The leaf of a field in a file, by its id, or by its name where the file has no ids."""
    leaves = file.schema_tree.leaves
    found = [leaf for leaf in leaves if leaf.element.field_id == field.id]
    if not found and all(leaf.element.field_id < 0 for leaf in leaves):
        found = [leaf for leaf in leaves if not leaf.max_rep and _is_called(leaf.path, field)]
    return found[0] if found else None


def _is_called(path: tuple[str, ...], field: KeyField) -> bool:
    """Whether a path consists of names of a field and of the structs around it."""
    aliases = field.aliases or ((field.name,),)
    return len(path) == len(aliases) and all(map(contains, aliases, path))


class _Struct(NamedTuple):
    """The innermost struct of a file around a field that it lacks: its path, and that of a field inside, which tells its nulls.

    `has_default`: whether the structs between it and the field, which the file lacks as well, have defaults.
    """

    path: tuple[str, ...]
    inside: tuple[str, ...]
    has_default: bool


def _struct(file: FileMetadata, field: KeyField) -> _Struct | None:
    """The innermost struct around a field, by the ids of structs, or by names; None where the file has none of them."""
    tree, path, inside = file.schema_tree, list[str](), ""
    by_ids = bool(field.around) and has_ids(file)
    nodes: Sequence[Node] = [file.node(i, OPTIONS) for i in range(tree.num_fields)]
    for at, names in enumerate(field.aliases[:-1]):
        if by_ids:
            found = [node for node in nodes if id_of(node.field) == field.around[at][0]]
        else:
            found = [node for node in nodes if node.name in names]
        if not found or found[0].kind != "struct" or not found[0].children:
            break
        path.append(found[0].name)
        nodes = found[0].children
        inside = nodes[0].name
    if not path:
        return None
    return _Struct(tuple(path), (*path, inside), _have_defaults(field, len(path)))


def _have_defaults(field: KeyField, at: int) -> bool:
    """Whether the structs around a field have defaults, from one on; a struct that is missing is null otherwise."""
    structs = field.around or ((0, False),) * (len(field.aliases) - 1)
    return all(default for _, default in structs[at:])


def _selected(file: FileMetadata, paths: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """What to read for some paths: each by its dotted name, or its column where another one may be called so."""
    tree, names = file.schema_tree, dict[str, None]()
    for path in paths:
        alone = ".".join(path)
        index = tree.path_index(alone) if len(path) > 1 else None
        names[path[0] if index is None or tree.field(index).name != path[0] else alone] = None
    whole = {path[0] for path in paths if path[0] in names}
    return tuple(
        [
            name
            for name in names
            if name in whole or not any(name.startswith(f"{top}.") for top in whole)
        ]
    )


def _flat(table: pa.Table, path: Sequence[str]) -> pa.ChunkedArray:
    """The values at a path in a table, null where a struct around them is."""
    column = table[path[0]]
    for name in path[1:]:
        column = pc.struct_field(column, [column.type.get_field_index(name)])
    column = as_plain(column)
    if pa.types.is_decimal(column.type) and column.type.bit_width < 128:  # nothing compares these
        column = column.cast(pa.decimal128(column.type.precision, column.type.scale))
    return column


def _constant(value: pa.Scalar | None, n: int) -> pa.Array:
    if value is None or not value.is_valid:
        return pa.nulls(n)
    made = pa.repeat(value, n)
    return made.storage if isinstance(made, pa.ExtensionArray) else made


def _condition(
    leaves: Sequence[Leaf | None], deleted: Sequence[pa.ChunkedArray]
) -> Expression | None:
    """A condition that all rows pass that may be deleted: by the first column that allows one."""
    for leaf, values in zip(leaves, deleted, strict=True):
        if leaf is None or leaf.max_rep or pa.types.is_floating(values.type):
            continue
        some = values.unique()
        if len(some) > MOST_VALUES:
            continue
        column = col(*leaf.path)
        condition = column.isin(some.drop_null().to_pylist())
        return condition | column.is_null() if values.null_count else condition
    return None


def _codes(
    ours: Sequence[pa.ChunkedArray], theirs: Sequence[pa.ChunkedArray], source: Source
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """A number for each row, equal for those that have the same values in all columns."""
    n = len(ours[0])
    codes = np.zeros(n + len(theirs[0]), np.int64)
    lost = np.zeros(len(codes), np.bool_)
    for mine, other in zip(ours, theirs, strict=True):
        kind = _joined(mine.type, other.type)
        if kind is None:
            raise CorruptFileError(
                f"{source.name}: rows of it are deleted by values of {other.type}, and the column is {mine.type}"
            )
        both, beyond = _widened([*mine.chunks, *other.chunks], kind, source)
        lost |= beyond
        if both.null_count == len(both):
            continue
        if pa.types.is_floating(kind):  # of NaN there are many bits
            both = pc.if_else(pc.is_nan(both), pa.scalar(float("nan"), kind), both)
        coded = both.combine_chunks().dictionary_encode(null_encoding="encode")
        inside = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        codes = np.unique(codes * (len(coded.dictionary) + 1) + inside, return_inverse=True)[1]
    codes[:n][lost[:n]], codes[n:][lost[n:]] = -1, -2  # they equal nothing
    return codes[:n], codes[n:]
