"""The rows of one file that are left to read: records that a plan carries to other processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from pageseek._core import rows
from pageseek.base.records import NamedTuple, dataclass
from pageseek.storage import Source, Version

_NO_ROWS = rows.RowRanges.empty()


class GroupPlan(NamedTuple):
    """Rows of one row group.

    Attributes
    ----------
    ranges : RowRanges
        The rows that may match.
    fully_matched : bool
        Whether the footer proves that each of them passes the filter.
    cost : int
        About the number of bytes to read.
    matching : RowRanges
        Rows that pass, as an index proves.
    pages_pruned : bool
        Whether all mechanisms were asked, or else the footer alone.
    ignored : frozenset of int
        Leaves whose page index was known to be invalid, so that `ranges` does not depend on it.
    divided : bool
        Whether other pieces of the row group are read by themselves.
    counted : bool
        Whether the report counts the row group by these rows: by one of its pieces.
    by : str
        The mechanism that ruled out its other rows last; empty if none did, or the footer alone was asked.
    """

    row_group: int
    ranges: rows.RowRanges
    fully_matched: bool
    cost: int
    matching: rows.RowRanges = _NO_ROWS
    pages_pruned: bool = True
    ignored: frozenset[int] = frozenset()
    divided: bool = False
    counted: bool = True
    by: str = ""


class Footer(NamedTuple):
    """What the footer of a file told that was planned. `schema`: the `schema_key` of the file, one object for all that have it."""

    schema: tuple[bytes, bytes, bytes, bytes | None]
    row_groups: int


class Joint(NamedTuple):
    """Row groups whose turn it is, with the bytes of memory that they take, as the footer lets expect. `as_one`: they are read as one;
    else there is a single one.
    """

    groups: Sequence[GroupPlan]
    likely: int
    as_one: bool


@dataclass(frozen=True, slots=True)
class FilePlan:
    """The row groups to read of one version of one file. `first_row`: the number of rows in the files before it. `footer`: None in
    parts of a plan, which are shipped.
    """

    source: Source
    version: Version
    groups: tuple[GroupPlan, ...]
    first_row: int = 0
    footer: Footer | None = field(default=None, compare=False, repr=False)

    def name_in(self, error: Exception) -> None:
        """Add the name of the file to an error that lacks it."""
        note = f"while reading {self.source.name}"
        if self.source.name not in str(error) and note not in getattr(error, "__notes__", ()):
            error.add_note(note)
