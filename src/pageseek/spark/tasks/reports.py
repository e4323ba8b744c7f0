"""`report`, `reports` and `input_files`: what DataFrames read, found by the scans and functions in Spark's plans."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pageseek.base.errors import UnsupportedError
from pageseek.base.report import Report
from pageseek.base.tracebacks import short_traceback
from pageseek.spark.columns.file_values import address
from pageseek.spark.tasks.metrics import Run, run_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OWN = "io.pageseek.spark."
_NAME = re.compile(r"pageseek (\d+): ")  # begins the names of functions


@short_traceback
def report(frame: DataFrame) -> Report:
    """What the last action on a DataFrame of `load`, `read` or `lookup` read, file by file and page by page: print it, or `.to_dict()`.

    Call it after an action. It has what the tasks have reported by then: if an action was stopped early, as by `show`, it
    says so. An action that Spark plans again, such as `count()`, is found as long as it was the last one on the
    same `load`.

    Over Connect, tasks have no way to report. For DataFrames of `read`, `lookup` and `aggregate` there is what was planned,
    since the client has planned it; those of `load` and of the format are planned by the server.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        Made from those, with any `.where`, `.select`, joins and so on. If it is made of several, they are
        reported together; `reports` has each by itself.

    Returns
    -------
    pageseek.Report

    Raises
    ------
    UnsupportedError
        There is nothing of this package in the DataFrame, or its session is one of Connect and the server has planned it.
    """
    found = list(reports(frame).values())
    return found[0] if len(found) == 1 else _together(found)


def _together(reports: list[Report]) -> Report:
    """Reports of several sources as one."""
    made = Report(
        analyzed=any(one.analyzed for one in reports),
        nan="spark",
        file_bytes=sum(one.file_bytes for one in reports),
    )
    chunks = made.chunks or {}
    made.version = "weak" if any(one.version == "weak" for one in reports) else "strong"
    made.filter = "; ".join(dict.fromkeys(one.filter for one in reports if one.filter))
    made.columns = list(dict.fromkeys(name for one in reports for name in one.columns))
    for one in reports:
        for key, chunk in (one.chunks or {}).items():
            if key in chunks:
                chunks[key].add(chunk)
            else:
                chunks[key] = replace(chunk)
        made.executed |= one.executed
    made.chunks = chunks
    made.join_all(reports)
    return made


@short_traceback
def reports(frame: DataFrame) -> dict[str, Report]:
    """What the last action on a DataFrame read, for each source that it is made of.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        As in `report`.

    Returns
    -------
    dict of str to pageseek.Report
        By the names of the sources, in the order of the plan. A source that is there several times has its scans as
        `name`, `name (2)` and so on.

    Raises
    ------
    UnsupportedError
        As in `report`.
    """
    _check(frame, "report")
    made: dict[str, Report] = {}
    for run in _runs_of(frame):
        name, number = run.source, 1
        while name in made:
            number += 1
            name = f"{run.source} ({number})"
        made[name] = run.report()
    if not made:
        raise _no_scan(frame, "report")
    return made


@short_traceback
def input_files(frame: DataFrame) -> list[str]:
    """The addresses of the files that a DataFrame of `load`, `read` or `lookup` reads, as in `_metadata.file_path`: those that its
    filters leave.

    `DataFrame.inputFiles()` knows Spark's own formats alone. Nothing is read.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        As in `report`. If it is made of several, it has the files of all, each once.

    Raises
    ------
    UnsupportedError
        As in `report`.
    """
    _check(frame, "input_files")
    if not hasattr(frame, "_jdf"):
        runs: list[Run | None] = list(_runs_of(frame))
        if not runs:
            raise _no_scan(frame, "input_files")
        return _addresses(runs)
    query = frame._jdf.queryExecution()
    plan = query.optimizedPlan()
    runs = [_run_of(scan) for _, scan in _scans_of(plan)] + list(
        map(_named_run, _functions_of(plan))
    )
    # what filters leave nothing of is gone from the optimized plan
    if not runs and not _has_table(query.analyzed()):
        raise _no_scan(frame, "input_files")
    return _addresses(runs)


def _check(frame: Any, name: str) -> None:
    if not hasattr(frame, "mapInArrow"):
        raise TypeError(
            f"{name}: a DataFrame of Spark, as load, read and lookup return it, not {type(frame).__name__}"
        )


def _addresses(runs: Iterable[Run | None]) -> list[str]:
    files = [file.source for run in runs if run is not None for file in run.files]
    return list(dict.fromkeys(map(address, files)))


def _no_scan(frame: DataFrame, name: str) -> UnsupportedError:
    why = f"{name}: this DataFrame has no scan of pageseek, or nothing was left to read"
    if not hasattr(frame, "_jdf"):
        why += (
            "; over Connect, the server plans what load and the format read, and does not tell: use pageseek.spark.read, which "
            "plans here, or pageseek.scan(source, filter=...).explain(analyze=True), which reads here and counts"
        )
    return UnsupportedError(why)


def _runs_of(frame: DataFrame) -> Iterator[Run]:
    if not hasattr(frame, "_jdf"):
        for name in dict.fromkeys(_functions_of_connect(frame._plan)):
            if (run := _named_run(name)) is not None:
                yield run
        return
    plan = frame._jdf.queryExecution().optimizedPlan()
    for table, scan in _scans_of(plan):
        run = _run_of(scan)
        if run is None or run.parts is None:
            run = run_of(table.lastNumber()) or run
        if run is not None:
            yield run
    for run in map(_named_run, dict.fromkeys(_functions_of(plan))):
        if run is not None:
            yield run


def _named_run(name: str) -> Run | None:
    """The run of a function of this package, by its name."""
    told = _NAME.match(name)
    return None if told is None else run_of(told[1])


def _functions_of(plan: Any) -> Iterator[str]:
    """The names of the functions over Arrow batches in a plan of Java."""
    if plan.getClass().getSimpleName() == "MapInArrow":
        yield plan.functionExpr().name()
    children = plan.children()
    for i in range(children.size()):
        yield from _functions_of(children.apply(i))


def _functions_of_connect(plan: Any) -> Iterator[str]:
    """The names of the functions over Arrow batches in a plan of Connect's client."""
    from pyspark.sql.connect.plan import LogicalPlan

    name = getattr(getattr(plan, "_function", None), "_function_name", None)
    if name is not None:
        yield name
    for value in vars(plan).values():
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(one, LogicalPlan):
                yield from _functions_of_connect(one)


def _run_of(scan: Any) -> Run | None:
    return run_of(scan.number()) if _is_ours(scan) else None


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
