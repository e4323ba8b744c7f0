"""What a binder asks of a schema: the leaf at a path, and for conditions of pyarrow whole columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from pageseek.format.schema import Leaf
from pageseek.format.types import LeafType

Found: TypeAlias = tuple[Leaf, LeafType]


class Names(Protocol):
    """What a file calls its columns."""

    def __call__(self, path: tuple[str, ...], /) -> Found:
        """The leaf at a path, through structs."""

    def element(self, path: tuple[str, ...], /) -> Found:
        """The leaf at a path, through lists as well."""

    def whole(
        self, paths: list[tuple[str, ...]] | None, /
    ) -> tuple[tuple[Any, ...], list[Found], pa.Schema]:
        """Columns with all that is below (of the whole file, if None), their leaves, and their schema."""


class DatasetNames(Names, Protocol):
    """What a file of many calls its columns: it may lack some, and have others with one value or of a narrower type."""

    def complete(
        self, paths: list[tuple[str, ...]] | None, /
    ) -> tuple[
        tuple[Any, ...],
        list[Found],
        pa.Schema,
        Callable[[list[pa.ChunkedArray], int], list[pa.ChunkedArray]],
    ]:
        """As `whole`, with the schema of all files, and what makes columns of it from the values of this one."""

    def target(self, path: tuple[str, ...], /) -> LeafType | None:
        """How values of a column are compared once they have the type of all files."""

    def as_float(self, path: tuple[str, ...], /) -> bool:
        """Whether the integers of this file are floats among the others."""


class UnknownColumnError(LookupError):
    """Raised by names that stand for more than one file: these may differ in the column."""


Find: TypeAlias = Names | Callable[[tuple[str, ...]], Found]
