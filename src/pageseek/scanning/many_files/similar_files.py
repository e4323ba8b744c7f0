"""What lookups in the files of a table share: the columns of a file in terms of the table's, found once for all files that have the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pageseek.format.columns import Column
from pageseek.format.file_metadata import FileMetadata
from pageseek.format.schema import Leaf
from pageseek.format.types import LeafType
from pageseek.scanning.requests.request import Request

if TYPE_CHECKING:
    from pageseek.datasets.dataset_schema import DatasetSchema, Path

MOST = 64  # sets of columns that are kept


class SharedColumns:
    """What files with the same columns have of the columns of their table, as it is found. Threads may share it.

    Attributes
    ----------
    columns : tuple of Column or None
        Those of a request; None where the core cannot make them by itself. False before they are found.
    tested : dict
        By the path of a condition the leaf that it tests; None where the core does not test it.
    """

    __slots__ = ("_dataset_schema", "columns", "tested")

    def __init__(self, dataset_schema: DatasetSchema) -> None:
        self._dataset_schema = dataset_schema
        self.columns: tuple[Column, ...] | Literal[False] | None = False
        self.tested: dict[Path, tuple[Leaf, LeafType] | None] = {}

    @classmethod
    def of(cls, kept: dict[Any, Any], file: FileMetadata, request: Request) -> SharedColumns | None:
        """Those of a file, from what its table keeps; None where another file may have others though its columns are the same."""
        dataset_schema = request.dataset_schema
        if dataset_schema is None or dataset_schema.inside:
            return None
        key = file.columns_key, request.columns, request.options
        found = kept.get(key)
        if not isinstance(found, cls) or found._dataset_schema is not dataset_schema:
            if len(kept) >= MOST:
                kept.clear()
            found = kept[key] = cls(dataset_schema)
        return found
