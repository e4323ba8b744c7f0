"""What `attach` and `detach` have done to a file, or to many."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from pageseek.base.escapes import one_line
from pageseek.base.late_modules import above
from pageseek.base.report import format_size

SHOWN = 5  # reasons, and failures, of many files


@dataclass(slots=True)
class Attached:
    """What was done to a file. `added`: by kind and column, the chunks that have an index now and had none; negative for those
    that had one and have none now. `skipped`: why others have none.
    """

    path: str
    bytes_before: int
    bytes_after: int
    added: dict[tuple[str, str], int] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)

    def _count(self, kind: str, column: str, chunks: int) -> None:
        """Add chunks that have got an index, or have lost one: a negative number."""
        self.added[kind, column] = self.added.get((kind, column), 0) + chunks

    def __str__(self) -> str:
        more = self.bytes_after - self.bytes_before
        lines = [
            f"{one_line(self.path)}: {format_size(self.bytes_before)} and {format_size(abs(more))} {'more' if more >= 0 else 'less'}"
        ]
        width = max([len(one_line(column)) for _, column in self.added], default=0)
        lines += [
            f"  {kind:<10}  {one_line(column):<{width}}  {abs(n):,} chunk{'s' * (abs(n) != 1)}{' taken out' * (n < 0)}"
            for (kind, column), n in self.added.items()
        ]
        lines += [f"  not: {one_line(why)}" for why in self.skipped]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        shown: str = above("Attached._repr_html_")(self)
        return shown


@dataclass(slots=True)
class AttachedFiles:
    """What was done to many files.

    Attributes
    ----------
    files : list of Attached
        Those that have got indexes, in the order of the source.
    unchanged : list of Attached
        Those that have got nothing, since they had all of the indexes, or cannot have them (`skipped`).
    failed : dict of str to Exception
        The errors of the others, by the names of their files, which are as they were.
    seconds : float
        The time that it took.
    """

    files: list[Attached] = field(default_factory=list)
    unchanged: list[Attached] = field(default_factory=list)
    failed: dict[str, Exception] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether no file has failed."""
        return not self.failed

    def __str__(self) -> str:
        before = sum(one.bytes_before for one in self.files)
        more = sum(one.bytes_after - one.bytes_before for one in self.files)
        total = len(self.files) + len(self.unchanged) + len(self.failed)
        sizes = (
            f"{format_size(before)} and {format_size(abs(more))} {'more' if more >= 0 else 'less'}"
        )
        lines = [f"{len(self.files):,} of {total:,} files: {sizes}, in {self.seconds:.1f} s"]
        if self.unchanged:
            lines.append(
                f"  {len(self.unchanged):,} stay as they are: there was nothing to do, or it cannot be done"
            )
        counts: dict[tuple[str, str], list[int]] = {}
        for one in self.files:
            for key, chunks in one.added.items():
                found = counts.setdefault(key, [0, 0])
                found[0], found[1] = found[0] + 1, found[1] + chunks
        width = max([len(one_line(column)) for _, column in counts], default=0)
        lines += [
            f"  {kind:<10}  {one_line(column):<{width}}  {abs(chunks):,} chunk{'s' * (abs(chunks) != 1)}{' taken out' * (chunks < 0)} in {n:,} file{'s' * (n != 1)}"
            for (kind, column), (n, chunks) in counts.items()
        ]
        skipped = Counter(why for one in (*self.files, *self.unchanged) for why in one.skipped)
        lines += [
            f"  not: {one_line(why)} ({n:,} file{'s' * (n != 1)})"
            for why, n in skipped.most_common(SHOWN)
        ]
        for name, error in list(self.failed.items())[:SHOWN]:
            said = str(error)
            lines.append(f"  failed: {said if name in said else f'{name}: {said}'}")
        if len(self.failed) > SHOWN:
            lines.append(f"  and {len(self.failed) - SHOWN:,} more have failed")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        shown: str = above("AttachedFiles._repr_html_")(self)
        return shown
