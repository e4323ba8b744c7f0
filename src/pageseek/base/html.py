"""Tables and bars for notebooks: plain HTML without scripts or style sheets, in the colours of the page around, light or dark."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

from pageseek.base.escapes import lines as lines_of

TABLE = "color:inherit;font-size:inherit;border-collapse:collapse;margin:.3em 0"
CELL = "padding:.15em .7em;vertical-align:top;"
FRAME = "display:inline-block;height:.8em;border:1px solid currentColor;opacity:.75;"
FILLED = "display:block;height:100%;min-width:1px;background:currentColor;"
WIDTH = 10  # em of a bar
BREAKS = "overflow-wrap:anywhere"
LONG = 40  # characters of a word, such as a path, that may be broken where the page is narrow
TAG = re.compile("<[^>]*>")


class Markup(str):
    """Text that is HTML already. Any other text is escaped."""

    __slots__ = ()


def shown(value: object) -> str:
    """A value as HTML. What is not printable is escaped as Python does."""
    if isinstance(value, Markup):
        return value
    return escape(lines_of(str(value)))


def share(part: float, whole: float) -> Markup:
    """A bar that is filled as far as a part is of a whole."""
    filled = min(max(part / whole, 0.0), 1.0) if whole > 0 else 0.0
    inside = f'<span style="{FILLED}width:{filled:.1%}"></span>' if filled else ""
    return Markup(f'<span style="{FRAME}width:{WIDTH}em">{inside}</span>')


def table(
    head: Sequence[object], rows: Iterable[Sequence[object]], right: Sequence[int] = ()
) -> Markup:
    """A table; `right`: the places of the columns that are aligned on the right. Without a head it has none."""

    def line(cells: Sequence[object], tag: str) -> str:
        made = []
        for i, cell in enumerate(cells):
            how = "text-align:left;white-space:pre-wrap"
            if i in right or tag == "th":
                how = f"text-align:{'right' if i in right else 'left'};white-space:nowrap"
            elif _is_long(cell):
                how += f";min-width:20em;{BREAKS}"
            made.append(f'<{tag} style="{CELL}{how}">{shown(cell)}</{tag}>')
        return f"<tr>{''.join(made)}</tr>"

    top = f"<thead>{line(head, 'th')}</thead>" if head else ""
    body = "".join(line(row, "td") for row in rows)
    return Markup(f'<table style="{TABLE}">{top}<tbody>{body}</tbody></table>')


def _is_long(cell: object) -> bool:
    text = TAG.sub(" ", cell) if isinstance(cell, Markup) else str(cell)
    return max(map(len, text.split()), default=0) > LONG


def lines(values: Iterable[object]) -> Markup:
    """Values below one another."""
    return Markup("<br>".join(shown(value) for value in values))


def small(value: object) -> Markup:
    """A remark."""
    return Markup(f'<span style="opacity:.75;font-size:90%">{shown(value)}</span>')


def block(title: object, *parts: object) -> str:
    """What a notebook shows of an object: a title, and parts below it. Empty parts are left out."""
    below = "".join(f"<div>{shown(part)}</div>" for part in parts if part != "")
    return f'<div><div style="{BREAKS}"><b>{shown(title)}</b></div>{below}</div>'
