"""The result of `advise`, as records, as text, and as plain data."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pageseek.advice.reading import Cost
from pageseek.base.late_modules import above
from pageseek.base.report import counted, format_size
from pageseek.base.text_table import table

SHOWN = 6  # ways of a query that are shown as text
WIDTH = 110


@dataclass(frozen=True, slots=True)
class Candidate:
    """A change of the files, and what a query would read then.

    Attributes
    ----------
    title : str
        The change in words.
    kind : str
        "page_index", "bloom", "file_bloom", "lookup", "key_lookup", "bitmap", "distinct", "trigram", "sort_by", "cluster_by",
        "page_rows", "row_group_rows", or "footer" (of an opening).
    columns : tuple of str
    bytes, requests : int
        About what the query would read, without the footers; of an opening what is read of the footer.
    adds_bytes : int
        About the bytes that all files grow by; 0 if the rows are rewritten.
    rewrites : bool
        The rows have to be rewritten.
    command, python : str
        How to do it.
    """

    title: str
    kind: str
    columns: tuple[str, ...]
    bytes: int
    requests: int
    adds_bytes: int
    rewrites: bool
    command: str
    python: str


@dataclass(frozen=True, slots=True)
class QueryAdvice:
    """What one query reads, and what it would read of changed files.

    Attributes
    ----------
    query : str
        The filter.
    columns : tuple of str or None
        The columns of the result; None is all.
    rows : float
        About the rows of the answer.
    bytes, requests, pages : int
        What it reads now, without the footers: an estimate, or with `measured` what was counted.
    candidates : list of Candidate
        The changes that were tried, the best first.
    note : str
        Why nothing is to be gained, or what the estimate lacks.
    """

    query: str
    columns: tuple[str, ...] | None
    rows: float
    bytes: int
    requests: int
    pages: int
    measured: bool
    candidates: list[Candidate]
    note: str = ""


@dataclass(frozen=True, slots=True)
class OpeningAdvice:
    """What is read to open one file for a query of one column.

    Attributes
    ----------
    bytes, requests : int
        Of a footer as it is.
    candidate : Candidate
        The change, with the bytes of a footer that are read then.
    """

    bytes: int
    requests: int
    candidate: Candidate


@dataclass(frozen=True, slots=True)
class Recommendation:
    """A change that is worth it.

    `why`: what it changes for which query, or what is wrong without it. `adds_bytes`: about the bytes that the files grow by.
    `rewrites`: the rows have to be rewritten.
    """

    title: str
    why: str
    command: str
    python: str
    adds_bytes: int = 0
    rewrites: bool = False


@dataclass(slots=True)
class Advice:
    """What would make queries cheaper. Print it, or take `to_dict()`.

    Attributes
    ----------
    source : str
    num_files, num_rows, file_bytes : int
        Of the source.
    queries : list of QueryAdvice
        Empty if no queries were given.
    recommended : list of Recommendation
        The fewest changes that gain most; the first gains most.
    sampled_bytes : int
        Bytes of data that were read to estimate.
    notes : list of str
    opening : OpeningAdvice or None
        What opening a file with a large footer reads, where less would do.
    """

    source: str
    num_files: int
    num_rows: int
    file_bytes: int
    queries: list[QueryAdvice] = field(default_factory=list)
    recommended: list[Recommendation] = field(default_factory=list)
    sampled_bytes: int = 0
    notes: list[str] = field(default_factory=list)
    opening: OpeningAdvice | None = None

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            "source": self.source,
            "files": self.num_files,
            "rows": self.num_rows,
            "bytes": self.file_bytes,
            "sampled_bytes": self.sampled_bytes,
            "queries": [_query(one) for one in self.queries],
            "opening": None if self.opening is None else {
                "before": {"bytes": self.opening.bytes, "requests": self.opening.requests},
                "candidates": [_candidate(self.opening.candidate)],
            },
            "recommended": [
                {name: getattr(one, name) for name in ("title", "why", "command", "python", "adds_bytes", "rewrites")}
                for one in self.recommended
            ],
            "notes": list(self.notes),
        }  # fmt: skip

    def __str__(self) -> str:
        return "\n".join(self._lines())

    __repr__ = __str__  # notebooks and consoles show it as it is meant to be read

    def _repr_html_(self) -> str:
        shown: str = above("Advice._repr_html_")(self)
        return shown

    def _lines(self) -> Iterator[str]:
        size = format_size(self.file_bytes)
        yield f"Advice on {self.source}: {counted(self.num_rows, 'row')}, {counted(self.num_files, 'file')}, {size}"
        if self.sampled_bytes:
            yield f"  estimated by a sample of {format_size(self.sampled_bytes)}; bytes and requests are without the footers"
        for number, query in enumerate(self.queries, 1):
            yield ""
            yield from _query_lines(number, query)
        if self.opening is not None:
            yield ""
            yield "Opening a file, for a query of one column"
            now = ("as it is", format_size(self.opening.bytes), f"{self.opening.requests:,}", "")
            yield from _table([now, _line(self.opening.candidate)])
        yield ""
        if self.recommended:
            yield "Recommended:"
            for number, item in enumerate(self.recommended, 1):
                yield from _item_lines(number, item)
        else:
            yield "Recommended: nothing. " + (
                "The queries read little more than they need, or no change would halve that."
                if self.queries else "The files are laid out well."
            )  # fmt: skip
        for note in self.notes:
            yield f"note: {note}"


def _candidate(one: Candidate) -> dict[str, Any]:
    names = ("title", "kind", "columns", "bytes", "requests", "adds_bytes", "rewrites", "command", "python")  # fmt: skip
    return {name: list(one.columns) if name == "columns" else getattr(one, name) for name in names}


def _query(query: QueryAdvice) -> dict[str, Any]:
    return {
        "query": query.query,
        "columns": None if query.columns is None else list(query.columns),
        "rows": round(query.rows, 1),
        "before": {"bytes": query.bytes, "requests": query.requests, "pages": query.pages, "measured": query.measured},
        "candidates": [_candidate(one) for one in query.candidates],
        "note": query.note,
    }  # fmt: skip


def _query_lines(number: int, query: QueryAdvice) -> Iterator[str]:
    columns = "all columns" if query.columns is None else f"columns {', '.join(query.columns)}"
    if query.columns == ():
        columns = "rows are counted"
    n = round(query.rows)
    yield f"{number}. {query.query} ({columns}): about {n:,} {'row' if n == 1 else 'rows'}"
    now = "as it is" if not query.measured else "as it is, measured"
    lines = [(now, format_size(query.bytes), f"{query.requests:,}", "")]
    yield from _table([*lines, *map(_line, query.candidates[:SHOWN])])
    if query.note:
        yield "   " + query.note


def _line(one: Candidate) -> tuple[str, str, str, str]:
    price = "rewrite" if one.rewrites else f"+{format_size(one.adds_bytes)}"
    return one.title, format_size(one.bytes), f"{one.requests:,}", price


def _table(lines: list[tuple[str, str, str, str]]) -> Iterator[str]:
    for line in table(("with", "bytes read", "requests", "price"), lines, (1, 2, 3)):
        yield "   " + line


def _item_lines(number: int, item: Recommendation) -> Iterator[str]:
    price = (
        "the rows are rewritten" if item.rewrites else f"adds about {format_size(item.adds_bytes)}"
    )
    yield f"{number}. {item.title} ({price})"
    yield from textwrap.wrap(item.why, WIDTH, initial_indent="   ", subsequent_indent="   ")
    yield f"   $ {item.command}"


def rounded(cost: Cost) -> tuple[int, int, int]:
    """The bytes, requests and pages of a cost."""
    return round(cost.bytes), round(cost.requests), round(cost.pages)
