"""A report for notebooks: what its text says, as tables."""

from __future__ import annotations

from collections.abc import Iterator

from pageseek.base import html
from pageseek.base.report import LeafReport, Report, counted, format_size
from pageseek.base.report_text import said, why


def render(report: Report) -> str:
    """The report as HTML."""
    pages, leaves = report.tally()
    verb = "was read" if report.analyzed else "would be read"
    of = f" of {report.source}" if report.source else ""
    wanted = f"where {report.filter}" if report.filter else "no filter"
    columns = counted(len(report.columns), "column")
    remarks = [f"{name} was not asked: {why}" for name, why in report.not_asked.items()]
    if report.nan != "ieee":
        remarks.insert(0, f"NaN: compared as {report.nan} does")
    if report.version != "strong":
        remarks.insert(0, f"version: {report.version}")
    remarks += [f"note: {note}" for note in report.notes]
    steps = [
        ("files", "file", report.files),
        ("row groups", "row group", report.row_groups),
        ("pages", "page", pages),
        ("rows", "row", report.rows),
    ]
    rows: list[tuple[object, ...]] = []
    for name, unit, count in steps:
        if name == "pages" and not count.total:
            rows.append((name, "", "not counted: no page index was needed, or there is none"))
            continue
        less = [
            html.small(f"{counted(n, unit)} less: {why(mechanism)}")
            for mechanism, n in count.pruned_by.items()
        ]
        words = html.lines([said(report, name, count), *less])
        rows.append((name, html.share(count.read, count.total), words))
    rows += _costs(report)
    return html.block(
        f"What {verb}{of}: {columns}, {wanted}",
        html.table((), rows),
        _columns(leaves),
        html.lines(html.small(text) for text in remarks),
    )


def _costs(report: Report) -> Iterator[tuple[object, ...]]:
    total = sum(report.bytes.values())
    kinds = ", ".join(f"{kind} {format_size(n)}" for kind, n in report.bytes.items() if n)
    said = f"{format_size(total)} of {format_size(report.file_bytes)}"
    yield (
        "bytes",
        html.share(total, report.file_bytes),
        html.lines([said, *([html.small(kinds)] if kinds else [])]),
    )
    if report.analyzed:
        yield "answer", "", counted(report.rows_out, "row")
    waves = f" in {report.waves:,} waves, one after another" if report.waves > 1 else ""
    so_far = "" if report.analyzed else " so far, for metadata and index"
    yield "requests", "", f"{report.requests:,}{waves}{so_far}"
    if report.retries:
        again = counted(report.retries, "request")
        yield (
            "retries",
            "",
            f"{again} tried again, after waits of {report.retry_seconds:.2f} s together",
        )
    if report.seconds:
        yield "time", "", ", ".join(f"{k} {s * 1000:.1f} ms" for k, s in report.seconds.items())


def _columns(leaves: dict[str, LeafReport]) -> str:
    if not leaves:
        return ""
    most = max(leaf.bytes for leaf in leaves.values())
    return html.table(
        ("column", "pages", "", "bytes", "", "rows decoded", "dictionaries"),
        [
            (
                path,
                f"{leaf.pages_read:,} of {leaf.pages_total:,}" if leaf.pages_total else "-",
                html.share(leaf.pages_read, leaf.pages_total) if leaf.pages_total else "",
                format_size(leaf.bytes),
                html.share(leaf.bytes, most),
                f"{leaf.rows_decoded:,}",
                f"{leaf.dictionary_pages:,}",
            )
            for path, leaf in leaves.items()
        ],
        right=(1, 3, 5, 6),
    )
