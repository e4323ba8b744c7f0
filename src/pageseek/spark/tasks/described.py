"""What `DataFrame.explain` shows of a plan: what is left of a source, of how much, and what ruled out the rest."""

from __future__ import annotations

from pageseek.base.report import Count, Report
from pageseek.scanning.plans.scan_plan import ScanPlan

_WHY = {  # mechanisms in words; others have names that say what they are
    "statistics": "statistics of row groups",
    "column_index": "the column index",
    "page_headers": "page headers",
    "bloom_filter": "Bloom filters",
    "dictionary": "dictionaries",
    "partition": "folders and names",
    "filter": "the filter alone",
    "no_rows": "having no rows",
    "limit": "the limit",
}
_LONGEST = 300  # characters of a filter


def described(plan: ScanPlan, reads: str = "pageseek reads") -> str:
    """One line. `reads`: who does what, before the numbers."""
    total = plan.report
    groups = sum(len(file.groups) for file in plan.files)
    text = (
        f"{reads} {len(plan.files):,} of {total.files.total:,} files, {groups:,} of {total.row_groups.total:,} row groups, "
        f"at most {plan.num_rows:,} of {total.rows.total:,} rows"
    )
    if plan.request.filter is not None:
        condition = repr(plan.request.filter)
        text += (
            f" where {condition if len(condition) <= _LONGEST else condition[:_LONGEST] + '...'}"
        )
    less = _less(total)
    return f"{text}; ruled out: {less}" if less else text


def _less(report: Report) -> str:
    """What was ruled out, and by what."""
    counts = (
        ("files", report.files),
        ("row groups", report.row_groups),
        ("pages", report.tally()[0]),
        ("rows", report.rows),
    )
    return "; ".join(made for name, count in counts if (made := _by(name, count)))


def _by(name: str, count: Count) -> str:
    less = {by: n for by, n in count.pruned_by.items() if n > 0 and by != "late_materialization"}
    said = ", ".join(f"{n:,} by {_WHY.get(by, by)}" for by, n in less.items())
    return f"{name} {said}" if said else ""
