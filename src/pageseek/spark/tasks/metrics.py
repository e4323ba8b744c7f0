"""What queries read: the reports of their tasks, brought back to the driver by an accumulator."""

from __future__ import annotations

import collections
import hashlib
import itertools
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pageseek.base.report import MECHANISMS, Report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pageseek.scanning.plans.scan_plan import ScanPlan
    from pageseek.scanning.requests.plan import FilePlan
    from pageseek.spark.tasks.shipping import Task

_NUMBERS = itertools.count(1)
_RUNS: weakref.WeakValueDictionary[str, Run] = weakref.WeakValueDictionary()
# runs of functions, which nothing of Spark's holds: the last ones
_FUNCTIONS: collections.deque[Run] = collections.deque()
_MOST_FUNCTIONS = 100
MECHANISMS["keys"] = "no key is in their range, or tasks ruled them out by the keys"


def gathering() -> Any:
    """Joins the reports of parts, as an AccumulatorParam. A part that was read again counts once.

    The class is shipped by value: executors unpickle it before they know where pageseek is.
    """

    class Gathering:
        def zero(self, value: Any) -> Any:
            return {}

        kept = True

        def addInPlace(self, one: Any, other: Any) -> Any:  # noqa: N802 (the name that pyspark calls)
            if self.kept:
                one.update(other)
            return one

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
    source : str
        What it reads, as `reports` calls it.
    parts : frozenset of bytes, optional
        The parts that its last action read or reads; None before the first.
    missing : str
        Why parts may not have reported.
    keys : bool
        Whether tasks rule out rows by keys that the plan does not know.
    unheard : bool
        Whether its tasks have no way to report.
    in_vain : Report, optional
        What the driver had read before it left the rows to tasks, since more passed than was expected.
    """

    planned: Report
    way: str = "tasks"
    files: Sequence[FilePlan] = ()
    source: str = ""
    parts: frozenset[bytes] | None = None
    missing: str = "others were stopped early, failed, or go on"
    keys: bool = False
    unheard: bool = False
    in_vain: Report | None = None
    number: str = field(default_factory=lambda: str(next(_NUMBERS)))
    _local: Report | None = None
    _accumulator: Any = None

    def __post_init__(self) -> None:
        _RUNS[self.number] = self

    def accumulator(self, spark: SparkSession) -> Any:
        """For the tasks of all its actions; None over Connect, which has none."""
        if "connect" in type(spark).__module__:
            self.unheard = True
            return None
        if self._accumulator is None:
            from pyspark.accumulators import _accumulatorRegistry

            self._accumulator = spark.sparkContext.accumulator({}, gathering())
            if self.way != "function":  # Spark's plan holds the run
                weakref.finalize(self, _accumulatorRegistry.pop, self._accumulator.aid, None)
        return self._accumulator

    @classmethod
    def of_function(cls, plan: ScanPlan, parts: Sequence[bytes], **told: Any) -> Run:
        """The run of a function over Arrow batches, which reads the same parts in each action.

        The last hundred of them are kept, with what their tasks have reported.
        """
        made = cls(plan.report, "function", plan.files, **told)
        made.begin(list(parts))
        _FUNCTIONS.append(made)
        while len(_FUNCTIONS) > _MOST_FUNCTIONS:
            _FUNCTIONS.popleft()._forget()
        return made

    def named(self, task: Task, text: str) -> Task:
        """A function under a name that plans show, and by which `report` finds the run."""
        task.__name__ = f"pageseek {self.number}: {text}"
        return task

    def _forget(self) -> None:
        """Keep no reports of its tasks. They may still send some, so that Spark goes on to know the accumulator."""
        if self._accumulator is not None:
            self._accumulator.accum_param.kept = False
            self._accumulator._value = {}

    def begin(self, parts: list[bytes]) -> None:
        """An action begins to read these parts."""
        self.parts = frozenset(map(key_of, parts))

    def by_driver(self, report: Report) -> None:
        """The driver has read all."""
        self.parts, self._local = frozenset(), report

    def report(self) -> Report:
        """What the plan says, and what tasks have read so far."""
        if self.way == "native":
            return _noted(
                replace(self.planned, version="weak"),
                "Spark's own reader reads what is left; what it read is not counted here",
            )
        if self._local is not None:
            return self._local
        if self.unheard:
            return _noted(
                self.planned,
                "this is the plan: over Connect, tasks do not report what they have read",
            )
        if self.parts is None:
            return _noted(self.planned, "no action has read this yet")
        found = {} if self._accumulator is None else self._accumulator.value
        reports = [found[key] for key in sorted(self.parts) if key in found]
        if self.way == "function" and not reports:
            return _noted(
                self.planned,
                "no task has reported: no action has read this yet, or it was stopped before a task was done",
            )
        made = joined(self.planned, reports)
        if self.in_vain is not None:
            made.requests += self.in_vain.requests
            made.waves += self.in_vain.waves
            for kind, size in self.in_vain.bytes.items():
                made.bytes[kind] = made.bytes.get(kind, 0) + size
            made.note("more rows passed than was expected: the driver had begun to read them")
        if self.keys:
            for count in (made.files, made.row_groups, made.rows):
                count.prune("keys", count.pruned_by.pop("limit", 0))
        if len(reports) < len(self.parts):
            made.note(
                f"incomplete: {len(reports)} of {len(self.parts)} tasks have reported; {self.missing}"
            )
        return made


def _noted(report: Report, text: str) -> Report:
    """The report with a further remark."""
    return replace(report, notes=[*report.notes, text])


def run_of(number: str) -> Run | None:
    """The run of this number, if it is still known."""
    return _RUNS.get(number)


def joined(planned: Report, reports: list[Report]) -> Report:
    """The report of a plan with what its parts have read."""
    made = planned.to_execute()
    chunks = made.chunks = made.chunks or {}
    for part in reports:
        for key, chunk in (part.chunks or {}).items():
            found = chunks.get(key)
            if found is None:
                chunks[key] = replace(chunk)
            else:  # of the plan, or of another piece of the row group
                total = max(found.pages_total, chunk.pages_total)
                found.add(chunk)
                found.pages_total = total
                found.limited += chunk.limited
                if chunk.late:
                    found.kept = (found.kept or 0) + (chunk.kept or 0)
                found.beyond += chunk.beyond
        made.executed |= part.executed
    made.join_all(reports)
    # several tasks may read one file, and a row group for several keys
    made.files.read = len({file for file, _ in made.executed})
    made.row_groups.read = len(made.executed)
    made.rows.read = min(made.rows.read, made.rows.total)
    return made.finish()
