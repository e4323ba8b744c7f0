"""What `attach`, `list` and `verify` say, for notebooks."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pageseek.base import html
from pageseek.base.report import counted, format_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pageseek.index.attached import Attached, AttachedFiles
    from pageseek.index.detaching import Entry, Listed
    from pageseek.index.findings import Verified

SHOWN = 20  # findings, reasons and failures


WHAT = {
    "page_index": "least and greatest value of each page",
    "bloom": "tells that a row group lacks a value",
    "distinct": "the different values of each row group",
    "distinct_index": "the different values of a column, in DataFusion's form",
    "lookup": "the rows of each value",
    "key_lookup": "the rows of each combination of values",
    "bitmap": "the rows of each of a few values",
    "trigram": "which rows may have a part of a text, for LIKE",
    "file_bloom": "tells that the file lacks a value",
    "footer": "where each column chunk stands in the footer",
}
MOST_ENTRIES = 50


def listed(found: Listed) -> str:
    """The indexes of a file, and what each is good for."""
    if not found:
        return html.block(found.name, "no indexes")
    shown: Sequence[Entry] = found[:MOST_ENTRIES]
    most = max(one.bytes for one in shown)
    rows = [
        (
            one.kind,
            WHAT.get(one.kind, "" if one.registered else "its kind is not registered here"),
            one.column or "-",
            f"{one.chunks:,}",
            format_size(one.bytes),
            html.share(one.bytes, most),
            "attached" if one.attached else "the writer",
        )
        for one in shown
    ]
    more = len(found) - len(shown)
    total = format_size(sum(one.bytes for one in found))
    return html.block(
        found.name,
        f"{len(found):,} {'index' if len(found) == 1 else 'indexes'}, {total}",
        html.table(
            ("kind", "what it holds", "column", "chunks", "bytes", "", "by"), rows, right=(3, 4)
        ),
        html.small(f"and {more:,} more") if more else "",
    )


def attached(one: Attached) -> str:
    """What was done to one file."""
    more = one.bytes_after - one.bytes_before
    rows = [
        (kind, column, f"{abs(n):,}{' taken out' * (n < 0)}")
        for (kind, column), n in one.added.items()
    ]
    return html.block(
        one.path,
        f"{format_size(one.bytes_before)} and {format_size(abs(more))} {'more' if more >= 0 else 'less'}",
        html.table(("kind", "column", "chunks"), rows, right=(2,)) if rows else "",
        html.lines(html.small(f"not: {why}") for why in one.skipped[:SHOWN]),
    )


def attached_files(many: AttachedFiles) -> str:
    """What was done to many files."""
    counts: Counter[tuple[str, str]] = Counter()
    files: Counter[tuple[str, str]] = Counter()
    for one in many.files:
        for key, chunks in one.added.items():
            counts[key] += chunks
            files[key] += 1
    total = len(many.files) + len(many.unchanged) + len(many.failed)
    states = [
        (name, html.share(len(some), total), f"{len(some):,} of {total:,}")
        for name, some in (
            ("got indexes", many.files),
            ("stay as they are", many.unchanged),
            ("failed", many.failed),
        )
    ]
    rows = [(kind, column, f"{n:,}", f"{files[kind, column]:,}") for (kind, column), n in counts.items()]  # fmt: skip
    skipped = Counter(why for one in (*many.files, *many.unchanged) for why in one.skipped)
    remarks = [f"not: {why} ({counted(n, 'file')})" for why, n in skipped.most_common(SHOWN)]
    remarks += [f"failed: {name}: {error}" for name, error in list(many.failed.items())[:SHOWN]]
    return html.block(
        f"{counted(total, 'file')}, in {many.seconds:.1f} s",
        html.table((), states),
        html.table(("kind", "column", "chunks", "files"), rows, right=(2, 3)) if rows else "",
        html.lines(html.small(text) for text in remarks),
    )


def verified(found: Verified) -> str:
    """What was compared, and what is wrong."""
    wrong = Counter(one.kind for one in found.findings)
    kinds = list(dict.fromkeys([*found.checked, *wrong]))
    rows = [(kind, f"{found.checked.get(kind, 0):,}", f"{wrong[kind]:,}") for kind in kinds]
    more = len(found.findings) - SHOWN
    findings: list[object] = [str(one) for one in found.findings[:SHOWN]]
    if more > 0:
        findings.append(html.small(f"and {more:,} more"))
    return html.block(
        f"{found.path}: {'nothing is wrong' if found.ok else f'{len(found.findings):,} wrong'}",
        html.table(("kind", "checked", "wrong"), rows, right=(1, 2)) if rows else "",
        html.lines(findings),
    )
