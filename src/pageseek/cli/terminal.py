"""Colour, widths and tables of a terminal. In a pipe or a file, text is plain and as wide as it is."""

from __future__ import annotations

import errno
import io
import os
import re
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import Any

from pageseek.base.records import NamedTuple
from pageseek.base.text_table import table as plain_table

LEAST = 12  # characters that a column is narrowed to, at least
FEW = 6  # the same, where but one column would be left
# a number, a date, a time: half of one says something else
WHOLE = re.compile(r"(-?\d+ days?, )?[-+\d][-+\d.,:/ TZeE]{0,31}")
UNSEEN = ("Mn", "Me", "Cf")  # categories of characters without a width
MOST_HIDDEN = 3  # lines that name the columns which do not fit
PLAIN = re.compile(r"\x1b\[[0-9;]*m")
_chosen = "auto"


def choose(colour: str) -> None:
    """Set when there is colour: `auto`, `always` or `never`."""
    global _chosen
    _chosen = colour


class Look(NamedTuple):
    """How a stream shows text. `width`: of its terminal; None where it is none. `drawn`: whether it has box drawing."""

    colour: bool = False
    width: int | None = None
    drawn: bool = False

    def bold(self, text: str) -> str:
        return self._in("1", text)

    def dim(self, text: str) -> str:
        return self._in("2", text)

    def red(self, text: str) -> str:
        return self._in("1;31", text)

    def green(self, text: str) -> str:
        return self._in("32", text)

    def yellow(self, text: str) -> str:
        return self._in("33", text)

    def cyan(self, text: str) -> str:
        return self._in("36", text)

    def _in(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and text else text


def stdout() -> Look:
    """How standard output shows text."""
    return _look(sys.stdout)


def stderr() -> Look:
    """How standard error shows text."""
    return _look(sys.stderr)


def _look(stream: Any) -> Look:
    terminal = stream is not None and stream.isatty()
    able = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    colour = _chosen == "always" or (_chosen == "auto" and able)
    width = shutil.get_terminal_size().columns if terminal else None
    return Look(colour, width, terminal and is_utf8(stream))


class _Closed(io.StringIO):
    """In place of standard output that is closed (`>&-`): what is written to it would be lost without a word."""

    def write(self, text: Any) -> int:
        raise OSError(
            errno.EBADF, "standard output is closed: name a file with --output, or open it"
        )

    @property
    def buffer(self) -> Any:
        return self


@contextmanager
def streams() -> Iterator[None]:
    """While the block runs, both streams exist, and write what their encoding lacks as escapes."""
    with ExitStack() as kept:
        if sys.stdout is None:
            kept.enter_context(redirect_stdout(_Closed()))
        if sys.stderr is None:  # `print` would take the other one
            kept.enter_context(redirect_stderr(io.StringIO()))
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
                stream.reconfigure(errors="backslashreplace")
                kept.callback(_strict, stream)
        yield


def _strict(stream: io.TextIOWrapper) -> None:
    with suppress(OSError, ValueError):  # it was closed meanwhile, or its reader has ended
        stream.reconfigure(errors="strict")


def is_utf8(stream: Any) -> bool:
    """Whether a stream takes every character."""
    return (getattr(stream, "encoding", None) or "").lower().replace("-", "") == "utf8"


def wide(text: str) -> int:
    """The columns of a terminal that a text takes: two for a wide character, none for a mark that combines or joins."""
    if text.isascii():
        return len(text)
    return sum(
        0
        if unicodedata.category(c) in UNSEEN
        else 2
        if unicodedata.east_asian_width(c) in "WF"
        else 1
        for c in text
    )


def cut(text: str, width: int, end: str = "...") -> str:
    """A text in at most `width` columns."""
    if wide(text) <= width:
        return text
    room, kept = width - len(end), 0
    for place, c in enumerate(text):
        kept += wide(c)
        if kept > room:
            return text[:place] + end
    return text


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Sequence[int] = (),
    *,
    look: Look,
    under: Sequence[str] = (),
    drop: Sequence[int] = (),
    fixed: Sequence[int] = (),
    nulls: str | None = None,
    left_out: set[int] | None = None,
) -> list[str]:
    """Lines of an aligned table, in the width of the terminal if there is one.

    What does not fit is narrowed, the widest column first, but no number (`right`), no column of `fixed`, and none below its
    widest number, date or time. If that is not enough, columns are left out: those of `drop` in this order, then from the middle;
    those that fit in the end come back, the last first. Before one column stands alone, even those of `fixed` are narrowed. `under`: a second line of the head,
    which is cut rather than make a column wide. `nulls`: the text that is shown dim. `left_out`: receives the columns that are left out.
    """
    if look.width is None and not look.colour and not under:
        return plain_table(head, rows, right)
    lines = [list(head), *([list(under)] if under else []), *(list(row) for row in rows)]
    widths = [max(wide(line[i]) for line in (head, *rows)) for i in range(len(head))]
    widths = [
        max(w, min(wide(t), LEAST)) for w, t in zip(widths, under or [""] * len(head), strict=True)
    ]
    least = [w if i in right or i in fixed else min(w, LEAST) for i, w in enumerate(widths)]
    less = [w if i in right else min(w, FEW) for i, w in enumerate(widths)]
    if look.width is not None and sum(widths) + 2 * (len(widths) - 1) > look.width:
        wholes = (
            [wide(row[i]) for row in rows if WHOLE.fullmatch(row[i])] for i in range(len(head))
        )
        most = [max([0, *whole]) for whole in wholes]
        least, less = [list(map(max, narrowed, most)) for narrowed in (least, less)]
    kept, widths, hidden = _fitted(widths, least, less, look.width, drop)
    if left_out is not None:
        left_out.update(hidden)
    end = "…" if look.drawn else "..."
    made = []
    for number, line in enumerate(lines):
        cells = []
        for i, width in zip(kept, widths, strict=True):
            if i < 0:  # in place of columns that are left out
                cells.append(look.dim(end))
                continue
            text = cut(line[i], width, end)
            pad = " " * (width - wide(text))
            if number == 0:
                shown = look.bold(text)
            elif (under and number == 1) or text == nulls:
                shown = look.dim(text)
            else:
                shown = text
            cells.append(pad + shown if i in right else shown + pad)
        made.append("  ".join(cells).rstrip())
    rule = "─" if look.drawn else "-"
    ruled = ((len(end) if i < 0 else width) for i, width in zip(kept, widths, strict=True))
    made.insert(2 if under else 1, look.dim("  ".join(rule * width for width in ruled)))
    if hidden:
        made += map(look.dim, _hidden([head[i] for i in hidden], look.width or 80, end))
    return made


def _hidden(names: Sequence[str], width: int, end: str) -> list[str]:
    """Which columns do not fit, in a few lines."""
    said = f"({len(names):,} {'column does' if len(names) == 1 else 'columns do'} not fit: {', '.join(names)})"
    lines = textwrap.wrap(said, width, break_on_hyphens=False)
    if len(lines) > MOST_HIDDEN:
        lines = [*lines[: MOST_HIDDEN - 1], cut(" ".join(lines[MOST_HIDDEN - 1 :]), width, end)]
    return lines


def _fitted(
    widths: list[int],
    least: list[int],
    less: list[int],
    width: int | None,
    drop: Sequence[int],
) -> tuple[list[int], list[int], list[int]]:
    """The columns that are shown (-1: a gap), their widths, and the columns that are left out."""
    kept = list(range(len(widths)))
    if width is None:
        return kept, widths, []
    order = [i for i in drop if i < len(widths)]
    middle = sorted((i for i in kept if i not in order), key=lambda i: abs(2 * i - len(widths)))
    order += middle[:-1]
    kept, hidden = _dropped(least, width, order)
    if len(kept) == 1:
        narrow, more_hidden = _dropped(less, width, order)
        if len(narrow) > 1:
            kept, hidden, least = narrow, more_hidden, less
    gap = 5 if hidden else 0
    for i in hidden[-2::-1]:  # narrow ones may fit beside what was left out last
        if sum(least[j] for j in (*kept, i)) + 2 * len(kept) + gap <= width:
            kept.append(i)
            hidden.remove(i)
    kept.sort()
    room = width - 2 * (len(kept) - 1) - gap
    if len(kept) == 1:
        least = [min(w, max(room, 1)) for w in least]
    fit = [least[i] for i in kept]
    more = room - sum(fit)
    while more > 0:  # what is left goes to the narrowest of those that are cut
        short = [place for place, i in enumerate(kept) if fit[place] < widths[i]]
        if not short:
            break
        fit[min(short, key=lambda place: fit[place])] += 1
        more -= 1
    if hidden:
        place = next((p for p, i in enumerate(kept) if i > min(hidden)), len(kept))
        kept.insert(place, -1)
        fit.insert(place, 3)
    return kept, fit, sorted(hidden)


def _dropped(least: list[int], width: int, order: list[int]) -> tuple[list[int], list[int]]:
    """The columns that fit once others are left out in an order, and those in this order."""
    kept, hidden = list(range(len(least))), list[int]()
    while len(kept) > 1:
        gap = 5 if hidden else 0
        if sum(least[i] for i in kept) + 2 * (len(kept) - 1) + gap <= width:
            break
        hidden.append(order[len(hidden)])
        kept.remove(hidden[-1])
    return kept, hidden
