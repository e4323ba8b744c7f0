"""What queries read: the reports of their tasks, brought back to the driver by an accumulator."""

from __future__ import annotations

import hashlib
import itertools
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pageseek.base.errors import UnsupportedError
from pageseek.base.report import Report
from pageseek.spark.columns.file_values import address

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pageseek.scan.plan import FilePlan

_NUMBERS = itertools.count(1)
_RUNS: weakref.WeakValueDictionary[str, Run] = weakref.WeakValueDictionary()
_OWN = "io.pageseek.spark."


def gathering() -> Any:
    """Joins the reports of parts, as an AccumulatorParam. A part that was read again counts once.

    The class is shipped by value: executors unpickle it before they know where pageseek is.
    """

    class Gathering:
        def zero(self, value: Any) -> Any:
            return {}

        def addInPlace(self, one: Any, other: Any) -> Any:  # noqa: N802 (the name that pyspark calls)
            return {**one, **other}

    return Gathering()


def key_of(part: bytes) -> bytes:
    """What names a part in reports."""
    return hashlib.blake2b(part, digest_size=8).digest()


@dataclass(eq=False)
class Run:
    """One scan of a query, as far as it was read.

    Attributes
    ----------
    planned : Report
        What its plan says.
    way : str
        By whom it is read: local, tasks or native.
    files : sequence of FilePlan
        The files that its plan leaves.
    parts : frozenset of bytes, optional
        The parts that its last action read or reads; None before the first.
    """

    planned: Report
    way: str = "tasks"
    files: Sequence[FilePlan] = ()
    parts: frozenset[bytes] | None = None
    number: str = field(default_factory=lambda: str(next(_NUMBERS)))
    _local: Report | None = None
    _accumulator: Any = None

    def __post_init__(self) -> None:
        _RUNS[self.number] = self

    def accumulator(self, spark: SparkSession) -> Any:
        """For the tasks of all its actions."""
        if self._accumulator is None:
            from pyspark.accumulators import _accumulatorRegistry

            self._accumulator = spark.sparkContext.accumulator({}, gathering())
            weakref.finalize(self, _accumulatorRegistry.pop, self._accumulator.aid, None)
        return self._accumulator

    def begin(self, parts: list[bytes]) -> None:
        """An action begins to read these parts."""
        self.parts = frozenset(map(key_of, parts))

    def by_driver(self, report: Report) -> None:
        """The driver has read all."""
        self.parts, self._local = frozenset(), report

    def report(self) -> Report:
        """What the plan says, and what tasks have read so far."""
        if self.way == "native":
            self.planned.note(
                "Spark's own reader reads what is left; what it read is not counted here"
            )
            return self.planned
        if self._local is not None:
            return self._local
        if self.parts is None:
            self.planned.note("no action has read this yet")
            return self.planned
        found = {} if self._accumulator is None else self._accumulator.value
        reports = [found[key] for key in sorted(self.parts) if key in found]
        made = joined(self.planned, reports)
        if len(reports) < len(self.parts):
            made.note(
                f"incomplete: {len(reports)} of {len(self.parts)} tasks have reported; others were stopped early, "
                "failed, or go on"
            )
        return made


def joined(planned: Report, reports: list[Report]) -> Report:
    """The report of a plan with what its parts have read."""
    made = planned.to_execute()
    chunks = made.chunks = made.chunks or {}
    for lane, part in enumerate(reports):
        for key, chunk in (part.chunks or {}).items():
            found = chunks.get(key)
            if found is None:
                chunks[key] = chunk
            else:  # of the plan, or of another piece of the row group
                total = max(found.pages_total, chunk.pages_total)
                found.add(chunk)
                found.pages_total = total
                found.limited += chunk.limited
                found.beyond += chunk.beyond
        made.executed |= part.executed
        made.join(part, lane)
    made.files.read = min(made.files.read, len({file for file, _ in made.executed}))
    return made.finish()


def report(frame: DataFrame) -> Report:
    """What the last action on a DataFrame of `load` read, file by file and page by page: print it, or `.to_dict()`.

    Call it after an action. It has what the tasks have reported by then: if an action was stopped early, as by `show`, it
    says so. An action that Spark plans anew, such as `count()`, is found as long as it was the last one on the
    same `load`.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        Made from `load`, with any `.where`, `.select`, joins and so on. If it is made of several, they are
        reported together.

    Returns
    -------
    pageseek.Report

    Raises
    ------
    UnsupportedError
        There is no scan of `load` in the DataFrame, or the session is one of Connect.
    """
    runs = list(_runs_of(frame))
    if not runs:
        raise _no_scan("report")
    reports = [run.report() for run in runs]
    return reports[0] if len(reports) == 1 else joined(reports[0], reports[1:])


def input_files(frame: DataFrame) -> list[str]:
    """The addresses of the files that a DataFrame of `load` reads, as in `_metadata.file_path`: those that its filters leave.

    `DataFrame.inputFiles()` knows Spark's own formats alone. Nothing is read.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        As in `report`. If it is made of several, it has the files of all, each once.

    Raises
    ------
    UnsupportedError
        There is no scan of `load` in the DataFrame, or the session is one of Connect.
    """
    if not hasattr(frame, "_jdf"):
        raise _no_scan("input_files")
    query = frame._jdf.queryExecution()
    runs = [_run_of(scan) for _, scan in _scans_of(query.optimizedPlan())]
    # what filters leave nothing of is gone from the optimized plan
    if not runs and not _has_table(query.analyzed()):
        raise _no_scan("input_files")
    files = [file.source for run in runs if run is not None for file in run.files]
    return list(dict.fromkeys(map(address, files)))


def _no_scan(name: str) -> UnsupportedError:
    return UnsupportedError(
        f"{name}: this DataFrame has no scan of pageseek.spark.load in a Classic session"
    )


def _runs_of(frame: DataFrame) -> Iterator[Run]:
    if not hasattr(frame, "_jdf"):
        return
    for table, scan in _scans_of(frame._jdf.queryExecution().optimizedPlan()):
        run = _run_of(scan)
        if run is None or run.parts is None:
            run = _RUNS.get(table.lastNumber()) or run
        if run is not None:
            yield run


def _run_of(scan: Any) -> Run | None:
    return _RUNS.get(scan.number()) if _is_ours(scan) else None


def _scans_of(plan: Any) -> Iterator[tuple[Any, Any]]:
    """The scans of tables of this package in an optimized plan of Java, each with its table."""
    leaves = plan.collectLeaves()
    for i in range(leaves.size()):
        leaf = leaves.apply(i)
        if leaf.getClass().getSimpleName().startswith("DataSourceV2ScanRelation"):
            table = leaf.relation().table()
            if _is_ours(table):
                yield table, leaf.scan()


def _has_table(plan: Any) -> bool:
    """Whether a table of this package is in an analyzed plan of Java."""
    leaves = plan.collectLeaves()
    found = (leaves.apply(i) for i in range(leaves.size()))
    return any(
        leaf.getClass().getSimpleName() == "DataSourceV2Relation" and _is_ours(leaf.table())
        for leaf in found
    )


def _is_ours(found: Any) -> bool:
    return bool(found.getClass().getName().startswith(_OWN))
