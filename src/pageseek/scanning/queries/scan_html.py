"""A scan for notebooks: what it asks for. Nothing is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pageseek.base import html
from pageseek.base.report import counted

if TYPE_CHECKING:
    from pageseek.scanning.queries.scan import Scan

SHOWN = 5  # names of files


def render(scan: Scan) -> str:
    """The scan as HTML."""
    request, sources = scan._request, scan.sources
    names = [sources[i].name for i in range(min(len(sources), SHOWN))]
    if len(sources) > SHOWN:
        names.append(f"and {len(sources) - SHOWN:,} more")
    rows: list[tuple[object, object]] = [
        ("file" if len(sources) == 1 else f"{len(sources):,} files", html.lines(names) or "none"),
        ("columns", "all" if request.columns is None else ", ".join(request.columns) or "none"),
        ("where", "all rows" if request.filter is None else repr(request.filter)),
    ]
    if request.row_number is not None:
        rows.append(("row number", request.row_number))
    if request.take is not None:
        rows.append(("take", f"{counted(request.take.num_rows, 'row')} by their numbers"))
    if request.selected is not None:
        n = sum(found.num_rows for found in request.selected.values())
        rows.append(
            (
                "take",
                f"{counted(n, 'row')} of {counted(len(request.selected), 'file')} by their numbers",
            )
        )
    if request.limit is not None:
        rows.append(("limit", f"{request.limit:,}"))
    remark = html.small("nothing is read yet; to_table() reads, explain() says what would be read")
    return html.block("Scan", html.table((), rows), remark)
