"""Rows that are deleted by their numbers, in Parquet files (Iceberg specification, Position Delete Files)."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa

from pageseek._core import rows
from pageseek.base.arrays import distinct_numbers
from pageseek.base.bounded_cache import BoundedCache
from pageseek.base.errors import CorruptFileError, PredicateError
from pageseek.base.late_modules import npt
from pageseek.base.report import Report
from pageseek.datasets.deletes import PositionDeletes
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.types import TEXT_TYPES
from pageseek.predicate.expression import col
from pageseek.scanning.deletes.delete_files import as_plain, opened, read, stamp
from pageseek.storage import Source, Version

KEPT = 1024  # data files whose deletes are kept
KEPT_FILES = 64  # files of deletes that are kept whole
FEW = (
    4  # data files for which single pages of a file of deletes are read; for more it is read whole
)
MOST_ROWS = 1 << 22  # of a file of deletes that is read whole
PATH, POSITION = "file_path", "pos"
_IDS = {PATH: 2147483546, POSITION: 2147483545}  # of the fields, whatever they are called
Numbers = npt.NDArray[np.int64]


kept: BoundedCache[object, rows.RowRanges] = BoundedCache(KEPT)
kept_files: BoundedCache[object, dict[str, Numbers] | None] = BoundedCache(KEPT_FILES)
_asked: BoundedCache[object, list[None]] = BoundedCache(KEPT)  # an entry for each data file


def position_rows(deletes: PositionDeletes, report: Report) -> rows.RowRanges:
    """The rows of a data file that are deleted by a file. Of that file, the pages with the path of the data file are read, or, where
    many data files ask, all.

    Raises
    ------
    CorruptFileError
        The file lacks a column, or a row has no number.
    """
    source = deletes.source
    key = source, stamp(source)
    asked = _asked.get(key, list)
    asked.append(None)
    whole = None
    if len(asked) > FEW:
        whole = kept_files.get(key, partial(_by_path, source, report))
    if whole is None:
        table = _read(source, report, (POSITION,), deletes.path)
        numbers = distinct_numbers(_numbers(source, table))
    else:
        numbers = distinct_numbers(whole.get(deletes.path, np.zeros(0, np.int64)))
    if numbers.size and numbers[0] < 0:
        raise CorruptFileError(f"{source.name}: it deletes row {numbers[0]} of {deletes.path}")
    return rows.RowRanges.from_rows(numbers)


def _by_path(source: Source, report: Report) -> dict[str, Numbers] | None:
    """What a file deletes of each data file; None where it is too large to be read whole."""
    if opened(source, report).num_rows > MOST_ROWS:
        return None
    table = _read(source, report, (PATH, POSITION))
    numbers = _numbers(source, table)
    column = as_plain(table[PATH])
    if column.type not in TEXT_TYPES:
        raise CorruptFileError(f"{source.name}: column {PATH!r} is {column.type}, no text")
    paths = column.combine_chunks().dictionary_encode()
    codes = paths.indices.fill_null(-1).to_numpy()  # a row without a path deletes nothing
    order = np.argsort(codes, kind="stable")
    names = paths.dictionary.to_pylist()
    ends = np.searchsorted(codes[order], np.arange(len(names) + 1)).tolist()
    several = zip(names, pairwise(ends), strict=True)
    return {name: numbers[order[first:last]] for name, (first, last) in several}


def _read(
    source: Source, report: Report, columns: tuple[str, ...], path: str | None = None
) -> pa.Table:
    """Columns of a file, by the names of the specification. `path`: of the data file whose rows are read; None: all."""
    names = _names(opened(source, report))
    condition = None if path is None else col(names[PATH]) == path
    try:
        own = tuple([names[name] for name in columns])
        return read(source, report, own, condition).rename_columns(list(columns))
    except PredicateError as error:  # a column is missing, or of another type
        raise CorruptFileError(
            f"{source.name}: it deletes rows by their numbers: {error}"
        ) from error


def _names(file: FileMetadata) -> dict[str, str]:
    """The names of both columns in a file: those of their field ids, else those of the specification."""
    tree = file.schema_tree
    fields = [tree.field(i) for i in range(tree.num_fields)]
    own = {field.element.field_id: field.name for field in fields}
    return {name: own.get(number, name) for name, number in _IDS.items()}


def _numbers(source: Source, table: pa.Table) -> Numbers:
    found = as_plain(table[POSITION]).combine_chunks()
    if not pa.types.is_integer(found.type):
        raise CorruptFileError(
            f"{source.name}: column {POSITION!r} is {found.type}, no whole numbers"
        )
    if found.null_count:
        raise CorruptFileError(f"{source.name}: column {POSITION!r} has no number in some rows")
    made: Numbers = found.to_numpy(zero_copy_only=False).astype(np.int64)  # too large: below 0
    return made


def rows_by_position(
    _: Source, __: Version, deletes: list[PositionDeletes], report: Report
) -> rows.RowRanges:
    """The rows of a data file that are deleted by any of the files."""
    found = rows.RowRanges.empty()
    for one in deletes:
        found |= kept.get((one, stamp(one.source)), partial(position_rows, one, report))
    return found
