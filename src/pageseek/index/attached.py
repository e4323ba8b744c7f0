"""What `attach` and `detach` have done to a file."""

from __future__ import annotations

from dataclasses import dataclass, field

from pageseek.base.report import format_size


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
            f"{self.path}: {format_size(self.bytes_before)} and {format_size(abs(more))} {'more' if more >= 0 else 'less'}"
        ]
        width = max([len(column) for _, column in self.added], default=0)
        lines += [
            f"  {kind:<10}  {column:<{width}}  {abs(n):,} chunk{'s' * (abs(n) != 1)}{' taken out' * (n < 0)}"
            for (kind, column), n in self.added.items()
        ]
        lines += [f"  not: {why}" for why in self.skipped]
        return "\n".join(lines)
