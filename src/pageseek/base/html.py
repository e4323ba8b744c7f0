"""Tables and bars for notebooks: plain HTML without scripts or style sheets, in the colours of the page around, light or dark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

CELL = "padding:.15em .7em;vertical-align:top;white-space:pre-wrap;"
FRAME = "display:inline-block;height:.8em;border:1px solid currentColor;opacity:.75;"
FILLED = "display:block;height:100%;background:currentColor;"
WIDTH = 10  # em of a bar


class Markup(str):
    """Text that is HTML already. Any other text is escaped."""

    __slots__ = ()


def shown(value: object) -> str:
    """A value as HTML. What is not printable is escaped as Python does."""
    if isinstance(value, Markup):
        return value
    text = str(value)
    if not text.isprintable():
        text = "".join(
            c if c.isprintable() or c == "\n" else ascii(c)[1:-1]  # half of a pair, marks of direction
            for c in text
        )
    return escape(text)


def bar(first: float, last: float | None = None) -> Markup:
    """A bar of which a part is filled: from 0 to a share, or from one share to another. Shares are of 0 to 1."""
    start, stop = (0.0, first) if last is None else (first, last)
    start, stop = min(max(start, 0.0), 1.0), min(max(stop, 0.0), 1.0)
    least = "min-width:1px;" if last is not None or stop > 0 else ""
    inside = f"margin-left:{start:.1%};width:{max(stop - start, 0.0):.1%};{least}"
    return Markup(
        f'<span style="{FRAME}width:{WIDTH}em"><span style="{FILLED}{inside}"></span></span>'
    )


def share(part: float, whole: float) -> Markup:
    """A bar that is filled as far as a part is of a whole."""
    return bar(part / whole if whole > 0 else 0.0)


def table(
    head: Sequence[object], rows: Iterable[Sequence[object]], right: Sequence[int] = ()
) -> Markup:
    """A table; `right`: the places of the columns that are aligned on the right. Without a head it has none."""

    def line(cells: Sequence[object], tag: str) -> str:
        made = []
        for i, cell in enumerate(cells):
            side = "right" if i in right else "left"
            made.append(f'<{tag} style="{CELL}text-align:{side}">{shown(cell)}</{tag}>')
        return f"<tr>{''.join(made)}</tr>"

    top = f"<thead>{line(head, 'th')}</thead>" if head else ""
    body = "".join(line(row, "td") for row in rows)
    return Markup(f"<table>{top}<tbody>{body}</tbody></table>")


def lines(values: Iterable[object]) -> Markup:
    """Values below one another."""
    return Markup("<br>".join(shown(value) for value in values))


def small(value: object) -> Markup:
    """A remark."""
    return Markup(f'<span style="opacity:.75;font-size:90%">{shown(value)}</span>')


def block(title: object, *parts: object) -> str:
    """What a notebook shows of an object: a title, and parts below it. Empty parts are left out."""
    below = "".join(f"<div>{shown(part)}</div>" for part in parts if part != "")
    return f"<div><div><b>{shown(title)}</b></div>{below}</div>"
