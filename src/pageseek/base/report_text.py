"""A report as text for terminals, with bars and a table of columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pageseek.base.escapes import one_line
from pageseek.base.report import (
    MECHANISMS,
    Count,
    LeafReport,
    Report,
    counted,
    format_size,
)


def render(report: Report) -> str:
    """The report as text."""
    return "\n".join(_lines(report))


def _lines(report: Report) -> Iterator[str]:
    verb = "was read" if report.analyzed else "would be read"
    wanted = f" where {one_line(report.filter)}" if report.filter else ", no filter"
    columns = counted(len(report.columns), "column")
    of = f" of {one_line(report.source)}" if report.source else ""
    yield f"What {verb}{of}: {columns}{wanted}"
    total = sum(report.bytes.values())
    pages, leaves = report.tally()
    steps = [
        ("files", report.files, "file"),
        ("row groups", report.row_groups, "row group"),
        ("pages", pages, "page"),
        ("rows", report.rows, "row"),
    ]
    for name, count, unit in steps:
        if name == "pages" and not count.total:
            yield f"  {name:<10}  not counted: no page index was needed, or there is none"
            continue
        part = said(report, name, count)
        yield f"  {name:<10}  {_bar(count.read, count.total)}  {part}"
        for mechanism, n in count.pruned_by.items():
            yield f"  {'':<10}  {'':<20}  {counted(n, unit)} less: {why(mechanism)}"
    parts = ", ".join(f"{kind} {format_size(n)}" for kind, n in report.bytes.items() if n)
    yield (
        f"  {'bytes':<10}  {_bar(total, report.file_bytes)}  {format_size(total)} of "
        f"{format_size(report.file_bytes)}" + (f" ({parts})" if parts else "")
    )
    if report.analyzed:
        yield f"  {'answer':<10}  {'':<20}  {counted(report.rows_out, 'row')}"
    waves = f" in {report.waves:,} waves, one after another" if report.waves > 1 else ""
    so_far = "" if report.analyzed else " so far, for metadata and index"
    yield f"  {'requests':<10}  {'':<20}  {report.requests:,}{waves}{so_far}"
    if report.retries:
        again = counted(report.retries, "request")
        yield f"  {'retries':<10}  {'':<20}  {again} tried again, after waits of {report.retry_seconds:.2f} s together"
    if report.seconds:
        stages = ", ".join(f"{stage} {s * 1000:.1f} ms" for stage, s in report.seconds.items())
        yield f"  {'time':<10}  {'':<20}  {stages}"
    yield from _leaf_lines(leaves)
    if report.nan != "ieee":
        yield f"  NaN: compared as {report.nan} does, equal to itself and above every number"
    if report.version != "strong":
        yield f"  version: {report.version}; the store has no better proof that the file stayed the same"
    for mechanism, reason in report.not_asked.items():
        yield f"  {mechanism} was not asked: {reason}"
    for note in report.notes:
        yield f"  note: {one_line(note)}"


def said(report: Report, name: str, count: Count) -> str:
    """How many of the units of a step are read, in words."""
    part = f"{count.read:,} of {count.total:,}"
    if name == "pages" and set(report.row_groups.pruned_by) - {"column_index"}:
        part += ", in the row groups that were left"
    return part


def leaf_cells(leaves: Mapping[str, LeafReport]) -> list[tuple[str, ...]]:
    """The table of columns, with its head."""
    made: list[tuple[str, ...]] = [("column", "pages", "bytes", "rows decoded", "dictionaries")]
    for path, leaf in leaves.items():
        pages = f"{leaf.pages_read:,} of {leaf.pages_total:,}" if leaf.pages_total else "-"
        counts = f"{leaf.rows_decoded:,}", f"{leaf.dictionary_pages:,}"
        made.append((one_line(path), pages, format_size(leaf.bytes), *counts))
    return made


def _leaf_lines(leaves: dict[str, LeafReport]) -> Iterator[str]:
    if not leaves:
        return
    cells = leaf_cells(leaves)
    width = max(len(row[0]) for row in cells)
    yield ""
    for path, pages, size, rows, dictionaries in cells:
        yield f"  {path:<{width}}  {pages:>16}  {size:>9}  {rows:>13}  {dictionaries:>12}"


def why(mechanism: str) -> str:
    """Why no row matches, by the mechanism that says so."""
    return (
        MECHANISMS.get(mechanism)
        or f"{mechanism}, a registered pruner, proves that no row in them matches"
    )


def _bar(part: int, whole: int, width: int = 20) -> str:
    filled = min(width, -(-part * width // whole)) if whole > 0 else 0
    return "#" * filled + "." * (width - filled)
