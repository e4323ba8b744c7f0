"""What a table says of the deleted rows of a file: where they are listed. Nothing is read before a scan wants rows of the file."""

from __future__ import annotations

from typing import TypeAlias

import pyarrow as pa

from pageseek.base.records import NamedTuple, dataclass
from pageseek.storage import Source


@dataclass(frozen=True, slots=True)
class DeletionVector:
    """A bitmap of the numbers of deleted rows (Delta protocol, Deletion Vector Format; Puffin specification, deletion-vector-v1).

    Attributes
    ----------
    source : Source, optional
        The file that has it; None if the table has it itself, in `data`.
    offset : int
        Where it begins in the file: with its length, which is followed by the bitmap and a checksum.
    length : int
        Bytes of the bitmap, its magic number included.
    num_rows : int
        How many rows it deletes, as the table says.
    """

    source: Source | None
    offset: int
    length: int
    data: bytes | None
    num_rows: int


@dataclass(frozen=True, slots=True)
class PositionDeletes:
    """A Parquet file of deleted rows: the columns `file_path` and `pos` (Iceberg specification, Position Delete Files).

    Attributes
    ----------
    source : Source
        The file.
    path : str
        The data file, as the table spells it.
    """

    source: Source
    path: str


class KeyField(NamedTuple):
    """A column that rows are compared by.

    Attributes
    ----------
    id : int
        Its field id.
    name : str
        Its name, in errors.
    aliases : tuple of tuple of str
        Its names in files without ids, and before it those of the structs that it is in.
    default : pyarrow.Scalar, optional
        Its value in files that were written before it was added.
    column : str, optional
        The column of the table that it is now; None if it is inside of a struct, or was dropped.
    around : tuple of (int, bool)
        The field ids of the structs that it is in, and whether files that lack such a struct have a default for it.
    """

    id: int
    name: str
    aliases: tuple[tuple[str, ...], ...] = ()
    default: pa.Scalar | None = None
    column: str | None = None
    around: tuple[tuple[int, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class EqualityDeletes:
    """A Parquet file of values: rows that have them are deleted (Iceberg specification, Equality Delete Files).

    Attributes
    ----------
    source : Source
        The file.
    fields : tuple of KeyField
        The columns that are compared.
    said : tuple of (int, pyarrow.Scalar)
        The values that the partition of the data file says of fields that are no columns of the scan, by field id.
    """

    source: Source
    fields: tuple[KeyField, ...]
    said: tuple[tuple[int, pa.Scalar], ...] = ()


Deletes: TypeAlias = DeletionVector | PositionDeletes | EqualityDeletes
