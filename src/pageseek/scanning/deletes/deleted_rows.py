"""The rows of a file that its table has deleted, once a scan wants rows of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pageseek._core import rows
from pageseek.base.errors import CorruptFileError
from pageseek.base.report import Report
from pageseek.datasets.deletes import DeletionVector, EqualityDeletes, PositionDeletes
from pageseek.format.file_metadata import FileMetadata
from pageseek.scanning.deletes import deletion_vectors, equality_deletes, position_deletes
from pageseek.scanning.deletes.deletion_vectors import rows_of_vectors
from pageseek.scanning.deletes.equality_deletes import rows_by_values
from pageseek.scanning.deletes.position_deletes import rows_by_position
from pageseek.storage import Source, Version

# by the class of the records: what finds the rows of a file that they delete
_READERS: dict[type[Any], Callable[[Source, Version, list[Any], Report], rows.RowRanges]] = {
    DeletionVector: rows_of_vectors,
    PositionDeletes: rows_by_position,
    EqualityDeletes: rows_by_values,
}

_KEPT = (
    deletion_vectors.kept,
    position_deletes.kept,
    position_deletes.kept_files,
    equality_deletes.kept,
    equality_deletes.kept_values,
)


def forget() -> None:
    """Let go of all deletes that are kept decoded."""
    for one in _KEPT:
        one.clear()


def deleted_rows(source: Source, file: FileMetadata, report: Report) -> rows.RowRanges:
    """The deleted rows of a file, which is open. The report counts what is read for them.

    Raises
    ------
    FileChangedError
        The file is another version by now.
    CorruptFileError
        A row is deleted that the file does not have, or what lists the deletes is broken.
    """
    kinds: dict[type[Any], list[Any]] = {}
    for one in source.deletes:
        kinds.setdefault(type(one), []).append(one)
    found = rows.RowRanges.empty()
    for kind, records in kinds.items():
        found |= _READERS[kind](source, file.store.version, records, report)
    num_rows = file.num_rows
    if found and found.bounds[1] > num_rows:
        raise CorruptFileError(
            f"{source.name}: its table deletes row {found.bounds[1] - 1}, and the file has {num_rows}: the deletes are those "
            "of another file"
        )
    return found
