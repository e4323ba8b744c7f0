"""What a scan reads, and why it reads no more: one record of counts, filled as the work goes, shown as text or dict."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from typing import Any

from pageseek.base.late_modules import above
from pageseek.base.records import dataclass
from pageseek.base.tracebacks import short_traceback

ChunkKey = tuple[str, int, str]  # file, row group, column
NO_BYTES = {"metadata": 0, "index": 0, "data": 0}


@dataclass(slots=True)
class Count:
    """How many units there are, how many are read, and which mechanism ruled out the others.

    Each unit is counted once: by the first mechanism that rules it out.
    """

    total: int = 0
    read: int = 0
    pruned_by: dict[str, int] = field(default_factory=dict)

    def prune(self, mechanism: str, n: int) -> None:
        """Count `n` units that a mechanism ruled out; a negative `n` takes a proof back."""
        if n:
            self.pruned_by[mechanism] = self.pruned_by.get(mechanism, 0) + n
            if not self.pruned_by[mechanism]:
                del self.pruned_by[mechanism]

    def balance(self) -> None:
        """Make no count negative. Where more proofs were taken back than a mechanism had, take the rest from the others."""
        for mechanism, n in [item for item in self.pruned_by.items() if item[1] < 0]:
            self.prune(mechanism, -n)
            for other, had in list(self.pruned_by.items()):
                back = max(min(had, -n), 0)
                self.prune(other, -back)
                n += back
            self.total -= n  # a plan that was made elsewhere counts only the units that it left

    def add(self, other: Count) -> None:
        """Count the units of `other` too."""
        self.total += other.total
        self.read += other.read
        for mechanism, n in other.pruned_by.items():
            self.prune(mechanism, n)

    def begun(self) -> Count:
        """A copy of the totals and proofs, with nothing read yet."""
        return Count(self.total, 0, dict(self.pruned_by))

    def to_dict(self) -> dict[str, Any]:
        """The counts as plain data."""
        return {"total": self.total, "read": self.read, "pruned_by": dict(self.pruned_by)}


@dataclass(slots=True)
class LeafReport:
    """One column: its pages, the bytes that were fetched for it, and its rows that were decoded."""

    pages_total: int = 0
    pages_read: int = 0
    bytes: int = 0
    rows_decoded: int = 0
    dictionary_pages: int = 0

    def add(self, other: LeafReport) -> None:
        """Count what was read of `other` too."""
        self.pages_total += other.pages_total
        self.pages_read += other.pages_read
        self.bytes += other.bytes
        self.rows_decoded += other.rows_decoded
        self.dictionary_pages += other.dictionary_pages

    def to_dict(self) -> dict[str, Any]:
        """The counts as plain data."""
        return {
            "pages": {"total": self.pages_total, "read": self.pages_read},
            "bytes": self.bytes,
            "rows_decoded": self.rows_decoded,
            "dictionary_pages": self.dictionary_pages,
        }


@dataclass(slots=True)
class ChunkReport(LeafReport):
    """One leaf of one row group.

    `known`: the number of its pages by the metadata; None where they do not say. `kept`: those that the plan leaves (None:
    all), and `by` the mechanism that ruled out the others. `late`: whether those are counted when they are read, which is done
    piece by piece, since they were planned elsewhere. `limited`: those that the limit saved. `beyond`: those that an
    aggregate left out for their bounds.
    """

    path: str = ""
    known: int | None = None
    kept: int | None = None
    by: str = ""
    late: bool = False
    limited: int = 0
    beyond: int = 0

    def narrowed(self, before: ChunkReport) -> None:
        """Count the pages that are kept no more, for their bounds."""
        whole = before.kept if before.kept is not None else before.known
        if whole is not None and self.kept is not None:
            self.beyond = before.beyond + whole - self.kept

    def restart(self) -> None:
        """Forget what was decoded: decoding begins again. The fetched bytes stay counted."""
        self.pages_total = self.pages_read = self.rows_decoded = self.dictionary_pages = 0
        self.limited = self.beyond = 0


@dataclass(slots=True)
class NotAsked:
    """Row groups that a mechanism was not asked about.

    `dear`: those for which it would have read `cost` bytes, each after `wait` seconds, to save the bytes `at_stake` at
    most. `left_out`: those that came after others in which it ruled out nothing.
    """

    dear: int = 0
    cost: int = 0
    at_stake: int = 0
    wait: float = 0.0
    left_out: int = 0

    def add(self, other: NotAsked) -> None:
        """Count the row groups of `other` too."""
        self.dear += other.dear
        self.cost += other.cost
        self.at_stake += other.at_stake
        self.wait = max(self.wait, other.wait)
        self.left_out += other.left_out

    def __str__(self) -> str:
        reasons = []
        if self.dear:
            wait = f", after a wait of {self.wait * 1000:,.1f} ms," if self.wait >= 5e-5 else ""
            reasons.append(
                f"of {counted(self.dear, 'row group')} it would read {format_size(self.cost)}{wait} "
                f"to spare {format_size(self.at_stake)} at most, and it may prove nothing"
            )
        if self.left_out:
            reasons.append(
                f"{counted(self.left_out, 'row group')} were left out, since it ruled out nothing of "
                "others"
            )
        return "; ".join(reasons)


@dataclass(slots=True)
class Report:
    """Counts of one scan. `analyzed` says whether they happened or are planned.

    With `chunks`, every column chunk is counted by itself, and `tally` says what ruled out each page. Without (None) only
    sums are kept, which cost next to nothing.
    """

    analyzed: bool = False
    source: str = ""
    filter: str = ""
    columns: list[str] = field(default_factory=list)
    nan: str = "ieee"
    version: str = "strong"
    files: Count = field(default_factory=Count)
    row_groups: Count = field(default_factory=Count)
    rows: Count = field(default_factory=Count)
    rows_out: int = 0
    bytes: dict[str, int] = field(default_factory=NO_BYTES.copy)
    file_bytes: int = 0
    requests: int = 0
    waves: int = 0
    retries: int = 0  # requests that were tried again
    retry_seconds: float = 0.0  # the waits before these, all together
    seconds: dict[str, float] = field(default_factory=dict)
    leaves: dict[str, LeafReport] = field(default_factory=dict)
    chunks: dict[ChunkKey, ChunkReport] | None = field(default_factory=dict)
    executed: dict[tuple[str, int], int] = field(default_factory=dict)  # row group -> its rows
    notes: list[str] = field(default_factory=list)
    # the time zones that files with old dates and times of Spark name; None: one names none
    old_zones: set[str | None] = field(default_factory=set)
    not_asked: dict[str, NotAsked] = field(default_factory=dict)  # by mechanism
    lanes: dict[int, int] = field(default_factory=dict)  # waves of what went on side by side
    longest: int = 0  # of the lanes
    # is called after each step
    watch: Callable[[Report, int], None] | None = field(default=None, compare=False)

    def step(self, n: int = 1) -> None:
        """Count `n` more files that were planned, or row groups that were read."""
        if self.watch is not None:
            self.watch(self, n)

    def chunk(self, file: str, row_group: int, path: str, num_pages: int | None) -> LeafReport:
        """The counts of a column chunk that is going to be read; `num_pages` where an offset index has them."""
        if self.chunks is None:
            leaf = self.leaves.get(path)
            if leaf is None:
                leaf = self.leaves[path] = LeafReport()
            leaf.pages_total += num_pages or 0
            return leaf
        key = file, row_group, path
        found = self.chunks.get(key)
        if found is None:
            found = self.chunks[key] = ChunkReport(path=path)
        if num_pages is not None:
            found.pages_total = found.known = num_pages
        return found

    def done(
        self, file: str, row_group: int, num_rows: int, total: int, counted: bool = True
    ) -> None:
        """A row group was executed, or a piece of it: `num_rows` of its `total` rows were looked at. `counted`: it is counted
        by this piece.
        """
        self.row_groups.read += counted
        self.rows.read += num_rows
        if self.chunks is not None:
            self.executed[file, row_group] = total

    def restart(
        self, file: str, row_group: int, path: str | None, pages: int | None, more_rows: int
    ) -> None:
        """A row group is begun again without the index of a column. By the footer the column has `pages`; the index had ruled
        out `more_rows`.
        """
        self.rows.prune("column_index", -more_rows)
        # as a list: meanwhile other threads may count chunks of other row groups
        for (name, number, _), chunk in list((self.chunks or {}).items()):
            if (name, number) == (file, row_group):
                chunk.restart()
                if chunk.path == path:
                    chunk.known = pages
                if more_rows or chunk.path == path:
                    chunk.kept = None

    def forget(self, file: str, row_group: int, paths: Iterable[str]) -> None:
        """Take the pages of a row group out of the counts: nothing of it is read."""
        if self.chunks is not None:
            for path in paths:
                self.chunks.pop((file, row_group, path), None)

    def part(self) -> Report:
        """A report of work that goes on beside other work; `join` takes it in at the end.

        Both write the same dict of chunks, each its own entries.
        """
        return Report(analyzed=True, chunks=self.chunks, executed=self.executed)

    def trial(self) -> Report:
        """A report of pages that are counted only if the caller hands it to `take`. Its notes are kept in any case."""
        chunks: dict[ChunkKey, ChunkReport] | None = None if self.chunks is None else {}
        return Report(analyzed=True, chunks=chunks, notes=self.notes)

    def take(self, trial: Report) -> None:
        """Add the pages that a trial counted."""
        for path, leaf in trial.leaves.items():
            self.leaves.setdefault(path, LeafReport()).add(leaf)
        for (file, row_group, path), chunk in (trial.chunks or {}).items():
            counts = self.chunk(file, row_group, path, chunk.known)
            if chunk.known is not None:  # these are its pages, which `add` would count twice
                counts.pages_total = 0
            counts.add(chunk)

    def join(self, part: Report, lane: int) -> None:
        """Add the counts of work that went on beside this. Requests of one `lane` come one after another; the waves of the
        longest lane count.
        """
        self._add(part, lane)
        for note in part.notes:
            self.note(note)

    def join_all(self, parts: Sequence[Report]) -> None:
        """As `join`, for each of many parts, which all went on beside each other."""
        for lane, part in enumerate(parts):
            self._add(part, lane)
        notes = dict.fromkeys(self.notes)
        for part in parts:
            notes |= dict.fromkeys(part.notes)
        self.notes = list(notes)

    def _add(self, part: Report, lane: int) -> None:
        """Add the counts of a part, but for its notes."""
        self.files.add(part.files)
        self.row_groups.add(part.row_groups)
        self.rows.add(part.rows)
        self.rows_out += part.rows_out
        self._add_requests(part)
        now = self.lanes[lane] = self.lanes.get(lane, 0) + part.waves
        self.waves += max(now - self.longest, 0)
        self.longest = max(self.longest, now)
        for stage, seconds in part.seconds.items():
            self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds
        for path, leaf in part.leaves.items():
            self.leaves.setdefault(path, LeafReport()).add(leaf)
        for mechanism, reason in part.not_asked.items():
            self.not_asked.setdefault(mechanism, NotAsked()).add(reason)

    def add_spent(self, before: Report) -> None:
        """Count the requests of an attempt that was given up, because a file had changed by then."""
        self._add_requests(before)
        self.waves += before.waves

    def _add_requests(self, before: Report) -> None:
        self.requests += before.requests
        self.retries += before.retries
        self.retry_seconds += before.retry_seconds
        for kind, size in before.bytes.items():
            self.bytes[kind] += size

    def tally(self) -> tuple[Count, dict[str, LeafReport]]:
        """The pages of all columns, each counted under what ruled it out, and the sums of each column."""
        pages, leaves = Count(), {path: replace(leaf) for path, leaf in self.leaves.items()}
        for leaf in leaves.values():
            pages.total += leaf.pages_total
            pages.read += leaf.pages_read
        for key, chunk in (self.chunks or {}).items():
            found = self.pages_of(key, chunk)
            pages.add(found)
            counts = LeafReport(
                found.total, found.read, chunk.bytes, chunk.rows_decoded, chunk.dictionary_pages
            )
            leaves.setdefault(key[2], LeafReport()).add(counts)
        return pages, leaves

    def pages_of(self, key: ChunkKey, chunk: ChunkReport) -> Count:
        """The pages of one column chunk, each counted under what ruled it out."""
        total = max(chunk.known or 0, chunk.pages_total, chunk.pages_read)
        kept = total if chunk.kept is None else min(chunk.kept, total)
        read = min(chunk.pages_read, total) if self.analyzed else kept
        kept = max(kept, read)
        pages = Count(total, read)
        beyond = min(chunk.beyond, total - kept)
        pages.prune(chunk.by, total - kept - beyond)
        pages.prune("bounds", beyond)
        limited = min(chunk.limited, kept - read) if key[:2] in self.executed else kept - read
        pages.prune("limit", limited)
        pages.prune("late_materialization", kept - read - limited)
        return pages

    @short_traceback
    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """A picture of what is read of each column chunk and what rules out the rest, by matplotlib: a figure, written to
        `path` (png, svg, pdf) if there is one.
        """
        return above("Report.plot")(self, path)

    def fold(self) -> None:
        """Keep only the sums of each column: a plan that travels carries no record of every chunk."""
        self.leaves, self.chunks = self.tally()[1], None

    def to_execute(self) -> Report:
        """A report that begins where planning ended, for what happens from there on."""
        chunks = {
            key: ChunkReport(path=chunk.path, known=chunk.known, kept=chunk.kept, by=chunk.by)
            for key, chunk in (self.chunks or {}).items()
        }
        return replace(
            self,
            analyzed=True,
            bytes={**self.bytes, "data": 0},
            seconds=dict(self.seconds),
            leaves={},
            chunks=chunks,
            executed={},
            lanes=dict(self.lanes),
            notes=list(self.notes),
            not_asked={name: replace(reason) for name, reason in self.not_asked.items()},
            files=self.files.begun(),
            row_groups=self.row_groups.begun(),
            rows=self.rows.begun(),
        )

    def finish(self) -> Report:
        """Count units that were planned and not executed as saved by the limit, and note what is not known."""
        for count in (self.files, self.row_groups, self.rows):
            count.balance()
            saved = count.total - count.read - sum(count.pruned_by.values())
            count.prune("limit", max(saved, 0))
        self.note_unknown()
        return self

    def note_unknown(self) -> None:
        """Note how many chunks have an unknown number of pages."""
        unknown = sum(
            chunk.known is None and chunk.rows_decoded != self.executed.get(key[:2])
            for key, chunk in (self.chunks or {}).items()
        )
        if unknown:
            self.note(
                f"{counted(unknown, 'column chunk')} without an offset index or a number of "
                "pages in the footer: only pages that were seen are counted"
            )

    def retried(self, count: int, seconds: float) -> None:
        """Count requests that were sent again after others failed, and the `seconds` of their waits together."""
        self.retries += count
        self.requests += count
        self.retry_seconds += seconds

    def add_reads(self, other: Report) -> None:
        """Count the requests and bytes of a scan that found out what this one reads; its data are an index here."""
        self.requests += other.requests
        self.waves += other.waves
        self.retries += other.retries
        self.retry_seconds += other.retry_seconds
        self.bytes["metadata"] += other.bytes["metadata"]
        self.bytes["index"] += other.bytes["index"] + other.bytes["data"]

    def note(self, text: str) -> None:
        """Keep a remark, once."""
        if text not in self.notes:
            self.notes.append(text)

    def too_dear(
        self, mechanism: str, cost: int, at_stake: int, wait: float = 0.0, row_groups: int = 1
    ) -> None:
        """A mechanism was not asked about row groups: it would read `cost` bytes to save those `at_stake` at most."""
        reason = NotAsked(row_groups, cost, at_stake, wait)
        self.not_asked.setdefault(mechanism, NotAsked()).add(reason)

    def left_out(self, mechanism: str, row_groups: int) -> None:
        """A mechanism was not asked about row groups, since it ruled out nothing of those before."""
        if row_groups:
            reason = NotAsked(left_out=row_groups)
            self.not_asked.setdefault(mechanism, NotAsked()).add(reason)

    def spent(self, stage: str, began: float) -> None:
        """Add the time since `began` (time.perf_counter) to a stage."""
        self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - began

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        pages, leaves = self.tally()
        return {
            "analyzed": self.analyzed,
            "filter": self.filter,
            "columns": list(self.columns),
            "nan": self.nan,
            "version": self.version,
            "files": self.files.to_dict(),
            "row_groups": self.row_groups.to_dict(),
            "pages": pages.to_dict(),
            "rows": {**self.rows.to_dict(), "out": self.rows_out},
            "bytes": {**self.bytes, "total": sum(self.bytes.values()), "file": self.file_bytes},
            "requests": self.requests,
            "waves": self.waves,
            "retries": {"requests": self.retries, "seconds": self.retry_seconds},
            "seconds": dict(self.seconds),
            "leaves": {path: leaf.to_dict() for path, leaf in leaves.items()},
            "not_asked": {name: str(reason) for name, reason in self.not_asked.items()},
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        shown: str = above("Report.__str__")(self)
        return shown

    __repr__ = __str__  # notebooks and consoles show it as it is meant to be read

    def _repr_html_(self) -> str:
        shown: str = above("Report._repr_html_")(self)
        return shown


# why no row matches, by mechanism; kinds of index add theirs when they are registered
MECHANISMS = {
    "log": "the statistics in the log of the table prove that no row in them matches",
    "statistics": "the statistics in the footer prove that no row in them matches",
    "column_index": "the bounds in the column index prove that no row in them matches",
    "page_headers": "the statistics in the headers of pages prove that no row in them matches",
    "bloom_filter": "a Bloom filter proves that no value in them matches",
    "dictionary": "their dictionaries prove that no value in them matches",
    "filter": "no row can pass this filter, whatever the file holds",
    "partition": "the values in the names of their folders prove that no row in them matches",
    "take": "none of their rows was asked for",
    "deleted": "their rows are deleted in the table",
    "no_rows": "there are no rows in them",
    "answered": "the statistics in the footer have the figures of them",
    "bounds": "by their bounds they hold nothing less, or greater, than what is known",
    "limit": "the limit is reached before them",
    "late_materialization": "no row in them passed the conditions that were decoded before",
}


def counted(n: int, unit: str) -> str:
    """A number of things, whose name is given for one."""
    return f"{n:,} {unit}{'s' * (n != 1)}"


def format_size(n: int) -> str:
    """A number of bytes in at most four digits and a unit."""
    if n < 1000:
        return f"{n:,.0f} B"
    unit, value = "kB", n / 1000
    for larger in ("MB", "GB"):
        if value >= 1000:
            unit, value = larger, value / 1000
    return f"{value:,.1f} {unit}"
