"""The protocol by which a binder looks names up: the leaf at a path, or whole columns for conditions of pyarrow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from pageseek.base.records import NamedTuple
from pageseek.format.schema import Leaf
from pageseek.format.types import LeafType

Found: TypeAlias = tuple[Leaf, LeafType]


class Names(Protocol):
    """The names of a file's columns."""

    def __call__(self, path: tuple[str, ...], /) -> Found:
        """The leaf at a path, through structs."""

    def element(self, path: tuple[str, ...], /) -> Found:
        """The leaf at a path, through lists as well."""

    def whole(
        self, paths: list[tuple[str, ...]] | None, /
    ) -> tuple[tuple[Any, ...], list[Found], pa.Schema]:
        """Columns with all that is below (of the whole file, if None), their leaves, and their schema."""


class WholeColumn(NamedTuple):
    """A column with lists, as a file has it, and a field inside of the lists.

    `fill` makes of the values of the columns the column as the dataset has it. `inside`: the path of the field in it.
    """

    columns: tuple[Any, ...]
    leaves: list[Found]
    fill: Callable[[list[pa.ChunkedArray], int], pa.ChunkedArray]
    inside: tuple[str, ...]
    leaf_type: LeafType


class DatasetNames(Names, Protocol):
    """The names of a dataset's columns in one file, which may lack columns, have one value in them, or narrower types."""

    def complete(
        self, paths: list[tuple[str, ...]] | None, /
    ) -> tuple[
        tuple[Any, ...],
        list[Found],
        pa.Schema,
        Callable[[list[pa.ChunkedArray], int], list[pa.ChunkedArray]],
    ]:
        """As `whole`, with the schema of all files, and a function that fills its columns from the values of this file."""

    def target(self, path: tuple[str, ...], /) -> LeafType | None:
        """The leaf type of a column after its values have been cast to the type of all files."""

    def as_float(self, path: tuple[str, ...], /) -> bool:
        """Whether this file has integers in a column that has floats in other files."""

    def in_struct(self, path: tuple[str, ...], /) -> Found | None:
        """The field at a path if this file has the struct around it, and one value for the field; None if not."""

    def default_in_list(self, path: tuple[str, ...], /) -> WholeColumn | None:
        """The column around a field inside of lists that this file lacks and that has a default; None for others."""


class UnknownColumnError(LookupError):
    """Raised by names that stand for several files, which may differ in the column."""


Find: TypeAlias = Names | Callable[[tuple[str, ...]], Found]
