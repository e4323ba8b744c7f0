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
import numpy.typing as npt
import pyarrow as pa

from pageseek._core import rows
from pageseek.base.bounded_cache import BoundedCache
from pageseek.base.errors import CorruptFileError, PredicateError
from pageseek.base.late_modules import compute as pc
from pageseek.base.report import Report
from pageseek.datasets.deletes import EqualityDeletes, KeyField
from pageseek.datasets.widening import joined_type, widened
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.predicate.expression import Expression, col
from pageseek.scanning.delete_files import opened, read
from pageseek.storage import Source

KEPT = 256  # pairs of a data file and its deletes whose rows are kept
KEPT_VALUES = 32  # files of deletes whose values are kept
MOST_VALUES = 100_000  # of a condition that leaves out rows before they are compared
_ROW = "row\0"  # no column has this name


def rows_by_values(
    source: Source, deletes: list[EqualityDeletes], report: Report
) -> rows.RowRanges:
    """The rows of a data file that are deleted by any of the files."""
    by_fields: dict[tuple[KeyField, ...], list[Source]] = {}
    for one in deletes:
        by_fields.setdefault(one.fields, []).append(one.source)
    found = rows.RowRanges.empty()
    plain = replace(source, deletes=())
    for fields, files in by_fields.items():
        asked = plain, source.partitions, fields, tuple(files)
        found |= kept.get(asked, partial(rows_of_values, *asked, report))
    return found


kept: BoundedCache[object, rows.RowRanges] = BoundedCache(KEPT)
kept_values: BoundedCache[object, list[pa.ChunkedArray]] = BoundedCache(KEPT_VALUES)


def rows_of_values(
    source: Source,
    partitions: tuple[tuple[str, pa.Scalar], ...],
    fields: tuple[KeyField, ...],
    files: tuple[Source, ...],
    report: Report,
) -> rows.RowRanges:
    """The rows of a data file that have values of a file of deletes in all of some fields."""
    of_files = [
        kept_values.get((file, fields), partial(values_of, file, fields, report)) for file in files
    ]
    deleted = [_together(columns, files) for columns in zip(*of_files, strict=True)]
    if not len(deleted[0]):
        return rows.RowRanges.empty()
    file, said = opened(source, report), dict(partitions)
    leaves = [_leaf(file, field) for field in fields]
    names = tuple([".".join(leaf.path) for leaf in leaves if leaf is not None])
    try:
        table = read(source, report, names, _condition(leaves, deleted), _ROW)
    except PredicateError:  # values of a type that no condition takes
        table = read(source, report, names, None, _ROW)
    columns = []
    for field, leaf in zip(fields, leaves, strict=True):
        if leaf is not None:
            columns.append(_flat(table, leaf))
            continue
        value = said.get(field.column or "", field.default)
        columns.append(pa.chunked_array([_constant(value, table.num_rows)]))
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
    table = read(source, report, tuple([".".join(leaf.path) for leaf in leaves]))
    return [_flat(table, leaf) for leaf in leaves]


def _together(columns: Sequence[pa.ChunkedArray], files: Sequence[Source]) -> pa.ChunkedArray:
    """One column of several files of deletes, of which some may be older than a wider type."""
    kind = columns[0].type
    for column, file in zip(columns, files, strict=True):
        joined = joined_type(kind, column.type)
        if joined is None:
            raise CorruptFileError(
                f"{file.name}: it deletes by values of {column.type}, others by {kind}"
            )
        kind = joined
    return pa.chunked_array([widened(c, kind) for column in columns for c in column.chunks], kind)


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


def _flat(table: pa.Table, leaf: Leaf) -> pa.ChunkedArray:
    """The values of a leaf of a table, null where a struct around it is."""
    column = table[leaf.path[0]]
    for name in leaf.path[1:]:
        column = pc.struct_field(column, name)
    if isinstance(column.type, pa.BaseExtensionType):
        plain = [chunk.storage for chunk in column.chunks]
        column = pa.chunked_array(plain, column.type.storage_type)
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
        return condition | column.is_null() if some.null_count else condition
    return None


def _codes(
    ours: Sequence[pa.ChunkedArray], theirs: Sequence[pa.ChunkedArray], source: Source
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """A number for each row, equal for those that have the same values in all columns."""
    n = len(ours[0])
    codes = np.zeros(n + len(theirs[0]), np.int64)
    for mine, other in zip(ours, theirs, strict=True):
        kind = joined_type(mine.type, other.type)
        if kind is None:
            raise CorruptFileError(
                f"{source.name}: rows of it are deleted by values of {other.type}, and the column is {mine.type}"
            )
        both = pa.chunked_array([widened(one, kind) for one in (*mine.chunks, *other.chunks)], kind)
        if both.null_count == len(both):
            continue
        coded = both.combine_chunks().dictionary_encode(null_encoding="encode")
        inside = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        codes = np.unique(codes * (len(coded.dictionary) + 1) + inside, return_inverse=True)[1]
    return codes[:n], codes[n:]
