"""Plans of many files with footers read together, compared with files opened one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import pageseek as ps
from pageseek.scanning.plans import planner as planning

HUGE = 1 << 62
N = 40  # files, unless there have to be many


def simple(folder: Path, n: int = N, rows: int = 10) -> ps.Scan:
    """Files of the same columns, of few rows each."""
    folder.mkdir(exist_ok=True)
    for i in range(n):
        table = pa.table(
            {
                "id": pa.array(range(i * rows, (i + 1) * rows), pa.int64()),
                "k": pa.array([i % 5] * rows, pa.int32()),
                "s": [f"s{i % 7}"] * rows,
            }
        )
        pq.write_table(table, folder / f"{i:05}.parquet")
    return ps.scan(str(folder))


@contextmanager
def one_by_one() -> Iterator[None]:
    """Every file is opened by itself."""
    before, planning.FEWEST_FILES = planning.FEWEST_FILES, HUGE
    try:
        ps.clear_cache()
        yield
    finally:
        planning.FEWEST_FILES = before
        ps.clear_cache()


def outcome(work: Callable[[], Any]) -> Any:
    """The result of the work, or its error."""
    try:
        return work()
    except (ps.PageseekError, OSError, IndexError) as error:
        return type(error), str(error)


def planned(scan: ps.Scan) -> Any:
    """All that a plan says but how it came about."""

    def work() -> Any:
        plan = scan.plan()
        return plan.files, plan.schema, reported(plan.report), plan.num_rows, plan.cost

    return outcome(work)


def explained(scan: ps.Scan, analyze: bool = False) -> Any:
    return outcome(lambda: reported(scan.explain(analyze=analyze)))


def reported(report: Any) -> dict[str, Any]:
    found: dict[str, Any] = report.to_dict()
    # what is at hand since it came with the end of a file is not fetched again
    for name in ("seconds", "requests", "waves", "bytes", "not_asked"):
        del found[name]
    if found["analyzed"]:
        for leaf in found["leaves"].values():
            del leaf["bytes"]
    return found


def check(scan: ps.Scan) -> None:
    """Both ways plan, explain and read the same."""
    ways: tuple[Callable[[ps.Scan], Any], ...] = (
        planned,
        explained,
        lambda scan: explained(scan, analyze=True),
        lambda scan: outcome(scan.to_table),
        lambda scan: outcome(scan.count_rows),
        lambda scan: outcome(lambda: scan.schema),
        lambda scan: outcome(lambda: scan._execution.columns().schema),
    )
    for way in ways:
        ps.clear_cache()
        found = way(scan)
        with one_by_one():
            wanted = way(scan)
        assert found == wanted


def opened() -> int:
    """Files that were opened by themselves since the cache was cleared."""
    return ps.cache_info().misses


def kept_of(plan: ps.ScanPlan) -> set[tuple[str, int]]:
    """The row groups that are read."""
    return {(file.source.path, group.row_group) for file in plan.files for group in file.groups}


def check_rows(
    scan: ps.Scan, ways: Sequence[Callable[[ps.Scan], Any]] = (ps.Scan.to_table,)
) -> ps.Scan:
    """Both ways read the same, cold and warm; together no more is left than one by one."""
    ps.clear_cache()
    for way in ways:
        found, again = (outcome(partial(way, scan)) for _ in range(2))
        with one_by_one():
            wanted = outcome(partial(way, scan))
        assert same_rows(found, again) and same_rows(found, wanted)
    ps.clear_cache()
    plan = outcome(scan.plan)
    with one_by_one():
        other = outcome(scan.plan)
    if not isinstance(plan, tuple):
        assert kept_of(plan) <= kept_of(other)
        for count in ("files", "row_groups", "rows"):
            mine, theirs = getattr(plan.report, count), getattr(other.report, count)
            assert mine.total == theirs.total == mine.read + sum(mine.pruned_by.values())
    return scan


def rows(found: object) -> object:
    return found.to_pylist() if isinstance(found, pa.Table) else found


INTEGERS = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}  # by their bits


def same_rows(found: object, wanted: object) -> bool:
    """Whether rows, or errors, are the same. NaN equals itself, and zeros have signs: `Table.equals` knows neither.

    Numbers of the same bits are the same. Only where bits differ, or in nested columns, values of Python are compared, which takes
    much longer.
    """
    if isinstance(found, pa.Table) and isinstance(wanted, pa.Table):
        mine, theirs = _bits(found), _bits(wanted)
        if mine is not None and theirs is not None and mine.equals(theirs):
            return True
    return repr(rows(found)) == repr(rows(wanted))


def _bits(table: pa.Table) -> pa.Table | None:
    """The table with integers in place of floating-point numbers; None if a column is nested."""
    for i, field in enumerate(table.schema):
        if pa.types.is_nested(field.type):
            return None
        if pa.types.is_floating(field.type):
            bits = table.column(i).combine_chunks().view(INTEGERS[field.type.bit_width])
            table = table.set_column(i, field.name, bits)
    return table
