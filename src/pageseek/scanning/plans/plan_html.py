"""A plan for notebooks and consoles: what is left to read, by file. Nothing is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pageseek.base import html
from pageseek.base.escapes import one_line
from pageseek.base.report import counted, format_size

if TYPE_CHECKING:
    from pageseek.scanning.plans.scan_plan import ScanPlan
    from pageseek.scanning.requests.plan import FilePlan

SHOWN = 20  # files
NAMED = 8  # columns on one line


def line(plan: ScanPlan) -> str:
    """The plan on one line."""
    request = plan.request
    files, groups = counted(len(plan.files), "file"), counted(_groups(plan.files), "row group")
    parts = [
        f"{files}, {groups}, {_rows(plan)}, about {format_size(plan.cost)}",
        f"columns {_columns(plan)}",
    ]
    if request.filter is not None:
        parts.append(f"where {request.filter!r}")
    if request.limit is not None:
        parts.append(f"limit {request.limit:,}")
    return one_line("; ".join(parts))


def render(plan: ScanPlan) -> str:
    """The plan as HTML."""
    request, told = plan.request, plan.report
    cost, groups, num_rows = plan.cost, _groups(plan.files), plan.num_rows

    def of(n: int, total: int) -> str:  # parts of a plan have an empty report
        return f"{n:,} of {total:,}" if total else f"{n:,}"

    wanted = "no filter" if request.filter is None else f"where {request.filter!r}"
    if request.limit is not None:
        wanted += f", limit {request.limit:,}"
    size = f"about {format_size(cost)}"
    if told.file_bytes:
        size += f" of {format_size(told.file_bytes)}"
    facts: list[tuple[object, ...]] = []
    for name, n, total in (
        ("files", len(plan.files), told.files.total),
        ("row groups", groups, told.row_groups.total),
        ("rows, at most", num_rows, told.rows.total),
    ):
        facts.append((name, html.share(n, total) if total else "", of(n, total)))
    facts.append(("bytes", html.share(cost, told.file_bytes) if told.file_bytes else "", size))
    shown = plan.files[:SHOWN]
    costs = [sum(group.cost for group in file.groups) for file in shown]
    rows = [
        (
            file.source.name,
            f"{_groups((file,)):,}",
            f"{sum(group.ranges.num_rows for group in file.groups):,}",
            format_size(size_of),
            html.share(size_of, max(costs)),
        )
        for file, size_of in zip(shown, costs, strict=True)
    ]
    left = len(plan.files) - len(shown)
    return html.block(
        f"What is left to read: {counted(len(plan.schema.names), 'column')}, {wanted}",
        f"columns {_columns(plan)}",
        html.table((), facts),
        html.table(("file", "row groups", "rows", "bytes", ""), rows, right=(1, 2, 3))
        if rows
        else "",
        html.small(f"and {left:,} more files") if left else "",
        html.small(
            "a plan, of which nothing is read yet; execute() reads it, split(n) divides it for n workers"
        ),
    )


def _rows(plan: ScanPlan) -> str:
    said = counted(plan.num_rows, "row")
    return said if plan.request.filter is None else f"at most {said}"


def _groups(files: tuple[FilePlan, ...]) -> int:
    """Row groups; those that are divided count once."""
    return sum(group.counted for file in files for group in file.groups)


def _columns(plan: ScanPlan) -> str:
    names = plan.schema.names
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more or "none"
