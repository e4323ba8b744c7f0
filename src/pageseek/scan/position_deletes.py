"""Rows that are deleted by their numbers, in Parquet files (Iceberg specification, Position Delete Files)."""

from __future__ import annotations

from functools import partial

import numpy as np

from pageseek._core import rows
from pageseek.base.bounded_cache import BoundedCache
from pageseek.base.errors import CorruptFileError, PredicateError
from pageseek.base.report import Report
from pageseek.dataset.deletes import PositionDeletes
from pageseek.predicate.expression import col
from pageseek.scan.delete_files import read
from pageseek.storage import Source

KEPT = 1024  # data files whose deletes are kept
PATH, POSITION = "file_path", "pos"


kept: BoundedCache[PositionDeletes, rows.RowRanges] = BoundedCache(KEPT)


def position_rows(deletes: PositionDeletes, report: Report) -> rows.RowRanges:
    """The rows of a data file that are deleted by a file. Of that file, the pages with the path of the data file are read.

    Raises
    ------
    CorruptFileError
        The file lacks a column, or a row has no number.
    """
    source = deletes.source
    try:
        table = read(source, report, (POSITION,), col(PATH) == deletes.path)
    except PredicateError as error:  # a column is missing, or of another type
        raise CorruptFileError(
            f"{source.name}: it deletes rows by their numbers: {error}"
        ) from error
    found = table[POSITION].combine_chunks()
    if found.null_count or not str(found.type).startswith("int"):
        raise CorruptFileError(f"{source.name}: column {POSITION!r} is no number in some rows")
    numbers = np.unique(found.to_numpy(zero_copy_only=False).astype(np.int64))
    if numbers.size and numbers[0] < 0:
        raise CorruptFileError(f"{source.name}: it deletes row {numbers[0]} of {deletes.path}")
    return rows.RowRanges.from_rows(numbers)


def rows_by_position(_: Source, deletes: list[PositionDeletes], report: Report) -> rows.RowRanges:
    """The rows of a data file that are deleted by any of the files."""
    found = rows.RowRanges.empty()
    for one in deletes:
        found |= kept.get(one, partial(position_rows, one, report))
    return found
