"""What `rewrite` has done, for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pageseek.base import html
from pageseek.base.report import counted, format_size

if TYPE_CHECKING:
    from pageseek.rewriting.rewritten import Rewritten

SHOWN = 5  # names of files


def render(made: Rewritten) -> str:
    """The result as HTML: its text, with bars of the bytes before and after."""
    most = max(made.bytes_before, made.bytes_after)
    names: list[object] = list(made.files[:SHOWN])
    if len(made.files) > SHOWN:
        names.append(html.small(f"and {len(made.files) - SHOWN:,} more"))
    rows = [
        ("files", "", html.lines(names) if names else "none"),
        ("bytes before", html.share(made.bytes_before, most), format_size(made.bytes_before)),
        ("bytes after", html.share(made.bytes_after, most), format_size(made.bytes_after)),
    ]
    first, *rest = str(made).splitlines()
    title = f"Rewritten: {counted(made.rows, 'row')}, in {made.seconds:.1f} s" if rest else first
    said = html.lines(html.small(text.strip()) for text in rest)
    return html.block(title, html.table((), rows), said)
