"""Advice for notebooks: what each query reads now, and what it would read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pageseek.base import html
from pageseek.base.report import counted, format_size

if TYPE_CHECKING:
    from pageseek.advice.results import Advice, Candidate, OpeningAdvice, QueryAdvice

Way = tuple[str, int, int, str]  # title, bytes, requests, price

SHOWN = 6  # ways of a query


def render(advice: Advice) -> str:
    """The advice as HTML."""
    wanted = [
        (
            item.title,
            item.why,
            "rewrite" if item.rewrites else f"+{format_size(item.adds_bytes)}",
            html.Markup(f"<code>{html.shown(item.python)}</code>"),
        )
        for item in advice.recommended
    ]
    head = ("recommended", "why", "price", "how")
    return html.block(
        f"Advice on {advice.source}: {counted(advice.num_rows, 'row')}, {counted(advice.num_files, 'file')}, {format_size(advice.file_bytes)}",
        *(_query(query) for query in advice.queries),
        *([] if advice.opening is None else [_opening(advice.opening)]),
        html.table(head, wanted) if wanted else "Recommended: nothing.",
        html.lines(html.small(f"note: {note}") for note in advice.notes),
    )


def _query(query: QueryAdvice) -> html.Markup:
    now = "as it is, measured" if query.measured else "as it is"
    ways = [(now, query.bytes, query.requests, ""), *map(_way, query.candidates[:SHOWN])]
    n = round(query.rows)
    title = f"{query.query}: about {n:,} {'row' if n == 1 else 'rows'}"
    note = html.small(query.note) if query.note else ""
    return html.Markup(html.block(title, _table(ways), note))


def _opening(opening: OpeningAdvice) -> html.Markup:
    ways = [("as it is", opening.bytes, opening.requests, ""), _way(opening.candidate)]
    title = "Opening a file, for a query of one column"
    return html.Markup(html.block(title, _table(ways)))


def _way(one: Candidate) -> Way:
    price = "rewrite" if one.rewrites else f"+{format_size(one.adds_bytes)}"
    return one.title, one.bytes, one.requests, price


def _table(ways: Sequence[Way]) -> html.Markup:
    most = max(size for _, size, _, _ in ways)
    rows = [
        (title, format_size(size), html.share(size, most), f"{requests:,}", price)
        for title, size, requests, price in ways
    ]
    head = ("with", "bytes read", "", "requests", "price")
    return html.table(head, rows, right=(1, 3, 4))
