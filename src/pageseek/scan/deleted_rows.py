"""The rows of a file that its table has deleted, once a scan wants rows of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pageseek._core import rows
from pageseek.base.errors import CorruptFileError
from pageseek.dataset.deletes import DeletionVector
from pageseek.scan.deletion_vectors import vector_rows
from pageseek.storage import Source

# by the class of the record: what finds the rows of a file that it deletes
_READERS: dict[type[Any], Callable[[Source, Any], rows.RowRanges]] = {
    DeletionVector: lambda _, vector: vector_rows(vector),
}


def deleted_rows(source: Source, num_rows: int) -> rows.RowRanges:
    """The deleted rows of a file of so many rows.

    Raises
    ------
    CorruptFileError
        A row is deleted that the file does not have.
    """
    found = rows.RowRanges.empty()
    for one in source.deletes:
        found |= _READERS[type(one)](source, one)
    if found and found.bounds[1] > num_rows:
        raise CorruptFileError(
            f"{source.name}: its table deletes row {found.bounds[1] - 1}, and the file has {num_rows}: the deletes are those "
            "of another file"
        )
    return found
