"""Aligned tables for terminals."""

from __future__ import annotations

from collections.abc import Sequence


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()
) -> list[str]:
    """Lines of an aligned table; `right`: the places of the columns that are aligned on the right."""
    cells = [list(head), *(list(row) for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    lines = []
    for row in cells:
        made = (
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  ".join(made).rstrip())
    lines.insert(1, "  ".join("-" * width for width in widths))
    return lines
