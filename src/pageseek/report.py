"""What a scan reads and why not more: one record of counts, filled as the work goes, and shown as text or dict."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Count", "LeafReport", "Report", "format_size"]

BYTE_KINDS = ("metadata", "index", "data")


@dataclass(slots=True)
class Count:
    """How many there are, how many are read, and which mechanism proved the others away.

    Each unit is counted once: by the first mechanism that proves it away.
    """

    total: int = 0
    read: int = 0
    pruned_by: dict[str, int] = field(default_factory=dict)

    def prune(self, mechanism: str, n: int) -> None:
        """Count `n` units that a mechanism proved away."""
        if n:
            self.pruned_by[mechanism] = self.pruned_by.get(mechanism, 0) + n

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {"total": self.total, "read": self.read, "pruned_by": dict(self.pruned_by)}


@dataclass(slots=True)
class LeafReport:
    """One column: its pages, the bytes fetched for it, the rows decoded of it.

    `pages_walked`: those of its pages that no index told of.
    """

    pages_total: int = 0
    pages_walked: int = 0
    pages_read: int = 0
    bytes: int = 0
    rows_decoded: int = 0
    dictionary_pages: int = 0

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "pages": {"total": self.pages_total, "read": self.pages_read},
            "bytes": self.bytes,
            "rows_decoded": self.rows_decoded,
            "dictionary_pages": self.dictionary_pages,
        }


@dataclass(slots=True)
class Report:
    """Counts of one scan. `analyzed` says whether they happened or are planned."""

    analyzed: bool = False
    filter: str = ""
    columns: list[str] = field(default_factory=list)
    nan: str = "ieee"
    version: str = "strong"
    files: Count = field(default_factory=Count)
    row_groups: Count = field(default_factory=Count)
    pages: Count = field(default_factory=Count)
    rows: Count = field(default_factory=Count)
    rows_out: int = 0
    bytes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(BYTE_KINDS, 0))
    file_bytes: int = 0
    requests: int = 0
    waves: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    leaves: dict[str, LeafReport] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def leaf(self, path: str) -> LeafReport:
        """Find the counts of a column, new ones where there are none."""
        found = self.leaves.get(path)
        if found is None:
            found = self.leaves[path] = LeafReport()
        return found

    def note(self, text: str) -> None:
        """Keep a remark, once."""
        if text not in self.notes:
            self.notes.append(text)

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Add the time of the block to a stage."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - start

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "analyzed": self.analyzed,
            "filter": self.filter,
            "columns": list(self.columns),
            "nan": self.nan,
            "version": self.version,
            "files": self.files.to_dict(),
            "row_groups": self.row_groups.to_dict(),
            "pages": self.pages.to_dict(),
            "rows": {**self.rows.to_dict(), "out": self.rows_out},
            "bytes": {**self.bytes, "total": sum(self.bytes.values()), "file": self.file_bytes},
            "requests": self.requests,
            "waves": self.waves,
            "seconds": dict(self.seconds),
            "leaves": {path: leaf.to_dict() for path, leaf in self.leaves.items()},
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        verb = "was read" if self.analyzed else "would be read"
        wanted = f" where {self.filter}" if self.filter else ", no filter"
        columns = f"{len(self.columns)} {_plural('column', len(self.columns))}"
        yield f"What {verb}: {columns}{wanted}"
        total = sum(self.bytes.values())
        steps = [
            ("files", self.files, "file"),
            ("row groups", self.row_groups, "row group"),
            ("pages", self.pages, "page"),
            ("rows", self.rows, "row"),
        ]
        for name, count, unit in steps:
            if name == "pages" and not count.total:
                yield f"  {name:<10}  not counted: no page index was needed, or there is none"
                continue
            yield f"  {name:<10}  {_bar(count.read, count.total)}  {_part(count.read, count.total)}"
            for mechanism, n in count.pruned_by.items():
                yield f"  {'':<10}  {'':<20}  {n:,} {_plural(unit, n)} less: {_MECHANISMS.get(mechanism, mechanism)}"
        parts = ", ".join(f"{kind} {format_size(n)}" for kind, n in self.bytes.items() if n)
        yield (
            f"  {'bytes':<10}  {_bar(total, self.file_bytes)}  {format_size(total)} of "
            f"{format_size(self.file_bytes)}" + (f" ({parts})" if parts else "")
        )
        if self.analyzed:
            yield f"  {'answer':<10}  {'':<20}  {self.rows_out:,} {_plural('row', self.rows_out)}"
        waves = (
            f" in {self.waves} {_plural('wave', self.waves)}, one after another"
            if self.waves
            else ""
        )
        so_far = "" if self.analyzed else " so far, for metadata and index"
        yield f"  {'requests':<10}  {'':<20}  {self.requests:,}{waves}{so_far}"
        if self.seconds:
            stages = ", ".join(f"{stage} {s * 1000:.1f} ms" for stage, s in self.seconds.items())
            yield f"  {'time':<10}  {'':<20}  {stages}"
        yield from self._leaf_lines()
        if self.nan != "ieee":
            yield f"  NaN: compared as {self.nan} does, equal to itself and above every number"
        if self.version != "strong":
            yield f"  version: {self.version}; the store has no better proof that the file stayed the same"
        for note in self.notes:
            yield f"  note: {note}"

    def _leaf_lines(self) -> Iterator[str]:
        if not self.leaves:
            return
        width = max(len("column"), *(len(path) for path in self.leaves))
        yield ""
        yield f"  {'column':<{width}}  {'pages':>16}  {'bytes':>9}  {'rows decoded':>13}  dictionaries"
        for path, leaf in self.leaves.items():
            pages = f"{leaf.pages_read:,} of {leaf.pages_total:,}" if leaf.pages_total else "-"
            yield (
                f"  {path:<{width}}  {pages:>16}  {format_size(leaf.bytes):>9}  {leaf.rows_decoded:>13,}"
                f"  {leaf.dictionary_pages:>12,}"
            )


_MECHANISMS = {
    "statistics": "the statistics in the footer prove that no row in them matches",
    "column_index": "the bounds in the column index prove that no row in them matches",
    "limit": "the limit is reached before them",
    "late_materialization": "no row in them passed the filter, once its columns were decoded",
}


def _bar(part: int, whole: int, width: int = 20) -> str:
    filled = min(width, -(-part * width // whole)) if whole > 0 else 0
    return "#" * filled + "." * (width - filled)


def _part(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,}"


def _plural(noun: str, n: int) -> str:
    return noun if n == 1 else noun + "s"


def format_size(n: int) -> str:
    """A number of bytes in at most four digits and a unit."""
    value = float(n)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{value:,.0f} {unit}" if unit == "B" else f"{value:,.1f} {unit}"
        value /= 1000
    raise AssertionError
