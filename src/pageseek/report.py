"""What a scan reads and why not more: one record of counts, filled as the work goes, and shown as text or dict."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Count", "LeafReport", "Report"]

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
        if n:
            self.pruned_by[mechanism] = self.pruned_by.get(mechanism, 0) + n

    def to_dict(self) -> dict[str, Any]:
        return {"total": self.total, "read": self.read, "pruned_by": dict(self.pruned_by)}


@dataclass(slots=True)
class LeafReport:
    """One column: its pages, the bytes fetched for it, the rows decoded of it."""

    pages_total: int = 0
    pages_read: int = 0
    bytes: int = 0
    rows_decoded: int = 0
    dictionary_pages: int = 0

    def to_dict(self) -> dict[str, Any]:
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
        found = self.leaves.get(path)
        if found is None:
            found = self.leaves[path] = LeafReport()
        return found

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
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
        yield f"What {verb}" + (f" for {self.filter}" if self.filter else " (no filter)")
        for name, count in (
            ("files", self.files),
            ("row groups", self.row_groups),
            ("pages", self.pages),
            ("rows", self.rows),
        ):
            yield f"  {name:<11}{_bar(count.read, count.total)} {count.read:>13,} of {count.total:,}{_why(count)}"
        if self.analyzed:
            yield f"  {'rows out':<11}{' ' * 22} {self.rows_out:>13,}"
        total = sum(self.bytes.values())
        parts = ", ".join(f"{kind} {_size(n)}" for kind, n in self.bytes.items() if n)
        yield (
            f"  {'bytes':<11}{_bar(total, self.file_bytes)} {_size(total):>13} of {_size(self.file_bytes)}"
            + (f"  ({parts})" if parts else "")
        )
        yield f"  {'requests':<11}{' ' * 22} {self.requests:>13,} in {self.waves} waves, one after another"
        if self.leaves:
            width = max(len(path) for path in self.leaves)
            yield f"  {'column':<{width}}  {'pages':>15}  {'bytes':>10}  {'rows decoded':>13}  dictionaries"
            for path, leaf in self.leaves.items():
                pages = f"{leaf.pages_read:,} of {leaf.pages_total:,}"
                yield (
                    f"  {path:<{width}}  {pages:>15}  {_size(leaf.bytes):>10}  {leaf.rows_decoded:>13,}"
                    f"  {leaf.dictionary_pages:>12,}"
                )
        if self.seconds:
            yield "  time       " + ", ".join(
                f"{stage} {s * 1000:.1f} ms" for stage, s in self.seconds.items()
            )
        if self.nan != "ieee":
            yield f"  NaN        compared as {self.nan} does: equal to itself, above every number"
        if self.version != "strong":
            yield f"  version    {self.version}: the store has no better proof that the file stayed the same"
        for note in self.notes:
            yield f"  note       {note}"


def _bar(part: int, whole: int, width: int = 20) -> str:
    if whole <= 0:
        return "[" + " " * width + "]"
    filled = min(width, -(-part * width // whole))
    return "[" + "#" * filled + "." * (width - filled) + "]"


def _why(count: Count) -> str:
    if not count.pruned_by:
        return ""
    return (
        "  ("
        + ", ".join(f"{mechanism} ruled out {n:,}" for mechanism, n in count.pruned_by.items())
        + ")"
    )


def _size(n: int) -> str:
    value = float(n)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{value:,.0f} {unit}" if unit == "B" else f"{value:,.1f} {unit}"
        value /= 1000
    raise AssertionError
