"""The request of a scan: one for all files, and for all parts of a plan."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pageseek._core import rows
from pageseek.base.arguments import number_of_threads, whole
from pageseek.base.errors import PredicateError
from pageseek.base.limits import DEFAULT, Limits
from pageseek.base.records import dataclass
from pageseek.base.workers import cores
from pageseek.format.types import Options
from pageseek.predicate.expression import Expression
from pageseek.predicate.filters import to_expression
from pageseek.prune.registry import mechanisms
from pageseek.scanning.requests.row_selection import MOST_ROWS

if TYPE_CHECKING:
    from pageseek.datasets.dataset_schema import DatasetSchema

_NO_ROWS = rows.RowRanges.empty()
BATCH_SIZE = 1 << 17
AHEAD = 256 << 20  # the default of max_ahead_bytes
_LIMITS = DEFAULT.max_page_bytes, DEFAULT.max_output_bytes, DEFAULT.max_metadata_bytes


def names_of(option: str, given: Any) -> tuple[str, ...]:
    """The names of columns that a caller gave under an option."""
    if isinstance(given, (list, tuple)) and all(isinstance(one, str) for one in given):
        return tuple(given)
    if isinstance(given, Mapping):
        raise TypeError(
            f"{option}: names of columns; new ones are computed of the table that was read, with its append_column"
        )
    if isinstance(given, (set, frozenset)):
        raise TypeError(
            f"{option}: a set has no order, and columns come in the order given: give a list"
        )
    if not isinstance(given, (str, bytes)) and isinstance(given, Iterable):
        made = tuple(given)
        if all(isinstance(one, str) for one in made):
            return made
    raise TypeError(f"{option}={given!r}: a list of names as text, such as ['id', 'price']")


def rows_of_batches(given: int) -> int:
    """The greatest number of rows of a batch, checked."""
    if type(given) is not int or given > MOST_ROWS:
        given = min(whole("batch_size", given), MOST_ROWS)
    if given < 1:
        raise ValueError(f"batch_size={given}: at least 1")
    return given


@dataclass(frozen=True, slots=True)
class Request:
    """The columns, filter, limit and options of a scan.

    Attributes
    ----------
    prune : frozenset of str
        The mechanisms that may be used.
    take : RowRanges, optional
        Row numbers in the whole source that are selected.
    selected : mapping, optional
        Row numbers in each file that are selected, by its name.
    row_number : str, optional
        The name of a column with the number of each row in the source.
    threads : int, optional
        Threads that may compute at a time; None: one for each core.
    max_ahead_bytes : int
        Bytes of row groups that are read before they are wanted.
    distinct_index : str, optional
        The column whose values lists in DataFusion's form have.
    dataset_schema : DatasetSchema, optional
        Set if files may differ, or have columns in the names of folders.
    counts_only : bool
        Only the number of rows is wanted, and no file has deleted rows: planned rows may stand for as many others.
    """

    columns: tuple[str, ...] | None
    filter: Expression | None
    limit: int | None
    options: Options
    nan: str
    batch_size: int
    limits: Limits = DEFAULT
    prune: frozenset[str] = field(default_factory=lambda: mechanisms(True))
    take: rows.RowRanges | None = None
    selected: Mapping[str, rows.RowRanges] | None = None
    row_number: str | None = None
    threads: int | None = None
    max_ahead_bytes: int = AHEAD
    distinct_index: str | None = None
    dataset_schema: DatasetSchema | None = None
    counts_only: bool = False

    @classmethod
    def of(
        cls,
        columns: Sequence[str] | None,
        condition: Any,
        limit: int | None,
        output: tuple[str, str, Sequence[str], str],
        nan: str,
        prune: bool | Collection[str],
        batch_size: int,
        threads: int | None,
        max_ahead_bytes: int,
        limits: tuple[int, int, int],
        distinct_index: str | None,
    ) -> Request:
        """The request of a caller of `scan`, checked. `output`: the fields of Options. `limits`: those of Limits."""
        batch_size = rows_of_batches(batch_size)
        if limit is not None:
            if type(limit) is not int or limit > MOST_ROWS:
                limit = min(whole("limit", limit), MOST_ROWS)
            if limit < 0:
                raise ValueError(f"limit={limit}: give a number that is not negative")
        threads = number_of_threads(threads)
        if type(max_ahead_bytes) is not int or max_ahead_bytes > MOST_ROWS:
            max_ahead_bytes = min(whole("max_ahead_bytes", max_ahead_bytes), MOST_ROWS)
        if max_ahead_bytes < 0:
            raise ValueError(f"max_ahead_bytes={max_ahead_bytes}: not negative")
        int96_unit, string_type, dictionary_columns, out_of_range = output
        columns = None if columns is None else names_of("columns", columns)
        dictionary_columns = names_of("dictionary_columns", dictionary_columns)
        if nan not in ("ieee", "spark"):
            raise PredicateError(f"nan={nan!r}: 'ieee' or 'spark'")
        return cls(
            columns=columns,
            filter=to_expression(condition),
            limit=limit,
            options=Options(int96_unit, string_type, dictionary_columns, out_of_range),
            nan=nan,
            batch_size=batch_size,
            # as a rule they are the default: comparing them is cheaper than making them
            limits=DEFAULT if limits == _LIMITS else Limits(*limits),
            prune=mechanisms(prune),
            threads=threads,
            max_ahead_bytes=max_ahead_bytes,
            distinct_index=distinct_index,
        )

    def numbered(self, schema: pa.Schema, name: str) -> pa.Schema:
        """A schema with the column of row numbers, if the request has one."""
        if self.row_number is None:
            return schema
        if self.row_number in schema.names:
            raise PredicateError(
                f"{name}: with_row_number({self.row_number!r}): there is a column of this name"
            )
        return schema.insert(0, pa.field(self.row_number, pa.int64(), nullable=False))

    @property
    def num_threads(self) -> int:
        """Threads that may compute at a time."""
        return self.threads or cores()

    @property
    def selects_rows(self) -> bool:
        """Whether rows are selected by their numbers."""
        return self.take is not None or self.selected is not None

    def asked(self, file: str, file_row: int, at: int, num_rows: int) -> rows.RowRanges:
        """The selected rows among `num_rows` rows of a file, before any filter.

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
