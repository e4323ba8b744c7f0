"""What is asked of every file: the same for all parts of a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import pyarrow as pa

from pageseek._core import rows
from pageseek.base.errors import PredicateError
from pageseek.base.limits import DEFAULT, Limits
from pageseek.base.records import dataclass
from pageseek.dataset.dataset_schema import DatasetSchema
from pageseek.format.types import Options
from pageseek.predicate.expression import Expression
from pageseek.prune import mechanisms

_NO_ROWS = rows.RowRanges.empty()


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of every file: the same for all parts of a plan."""

    columns: tuple[str, ...] | None
    filter: Expression | None
    limit: int | None
    options: Options
    nan: str
    batch_size: int
    limits: Limits = DEFAULT
    prune: frozenset[str] = field(default_factory=lambda: mechanisms(True))
    take: rows.RowRanges | None = None  # rows of the whole source, which are numbered through
    selected: Mapping[str, rows.RowRanges] | None = None  # rows of each file, by its name
    row_number: str | None = None  # the column that gives these numbers
    threads: int | None = None  # that may compute at a time; None: one for each core
    max_ahead_bytes: int = 256 << 20  # of row groups that are read before they are asked for
    distinct_index: str | None = None  # the column of lists in the published form
    dataset_schema: DatasetSchema | None = (
        None  # where files may differ, or have columns in the names of folders
    )

    def numbered(self, schema: pa.Schema, name: str) -> pa.Schema:
        """A schema with the column of row numbers, if there is to be one."""
        if self.row_number is None:
            return schema
        if self.row_number in schema.names:
            raise PredicateError(
                f"{name}: with_row_number({self.row_number!r}): there is a column of this name"
            )
        return schema.insert(0, pa.field(self.row_number, pa.int64(), nullable=False))

    @property
    def selects_rows(self) -> bool:
        """Whether rows are selected by their numbers."""
        return self.take is not None or self.selected is not None

    def asked(self, file: str, file_row: int, at: int, num_rows: int) -> rows.RowRanges:
        """The rows that are selected of `num_rows` rows of a file, before any filter.

        Parameters
        ----------
        file : str
            Its name.
        file_row : int
            The number of rows in the files before it.
        at : int
            The first of the rows, counted in the file.
        """
        found = rows.RowRanges.all(num_rows)
        if self.take is not None:
            first = file_row + at
            found = self.take.slice(first, first + num_rows).shift(-first)
        if self.selected is not None:
            found &= self.selected.get(file, _NO_ROWS).slice(at, at + num_rows).shift(-at)
        return found
