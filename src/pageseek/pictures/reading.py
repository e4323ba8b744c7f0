"""What a scan reads of each column chunk, and what rules out the rest: sums above, a map of row groups and columns below."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from pageseek.base.report import ChunkKey, Count, Report, counted, format_size
from pageseek.pictures import figures

MOST_BANDS, MOST_COLUMNS = (
    32,
    16,
)  # of the map; row groups beyond are drawn together, columns are left out
READ = "read"
COLOURS = {
    READ: figures.VERMILION,
    "statistics": figures.BLUE,
    "column_index": figures.SKY,
    "page_headers": figures.SKY,
    "bloom_filter": figures.GREEN,
    "dictionary": figures.PURPLE,
    "late_materialization": figures.YELLOW,
    "limit": figures.PALE,
}
# others: each colour again, hatched
OTHERS = (figures.ORANGE, figures.GREEN, figures.PURPLE, figures.BLUE, figures.SKY, figures.PALE)
UNKNOWN = "not read, by several"
Place = tuple[str, int]  # file, row group


def draw_report(report: Report) -> Any:
    """A figure of the counts of a scan, planned or executed."""
    pages, leaves = report.tally()
    steps = [
        ("files", report.files), ("row groups", report.row_groups), ("pages", pages), ("rows", report.rows),
    ]  # fmt: skip
    steps = [(name, count) for name, count in steps if count.total]
    columns = list(leaves)[:MOST_COLUMNS] if report.chunks else []
    bands = _bands(report)
    style = _Styles()
    sums = 0.34 * (len(steps) + 1)
    below = 0.3 * len(bands) if columns else 0.0
    with figures.settings():
        figure = figures.new_figure(max(8.0, 2.4 + 1.15 * len(columns)), sums + below + 2.0)
        heights = [sums, below] if columns else [1]
        panels = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights).flat
        _draw_sums(panels[0], steps, report, style)
        if columns:
            _draw_map(panels[1], report, bands, columns, style)
            left = len(leaves) - len(columns)
            if left:
                panels[1].set_xlabel(f"and {counted(left, 'more column')}")
        figure.suptitle(_title(report), fontsize=10.5, x=0.01, ha="left")
        figure.legend(
            handles=style.handles(), loc="outside lower left", ncols=3, frameon=False, fontsize=8.5
        )
    return figure


class _Styles:
    """Colours and hatches, in the order in which they are first used."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, Any]] = {}

    def of(self, name: str) -> dict[str, Any]:
        """How the part of a mechanism is drawn."""
        if name not in self._known:
            if name in COLOURS:
                made = {"facecolor": COLOURS[name]}
            else:
                others = sum(other not in COLOURS for other in self._known)
                made = {"facecolor": OTHERS[others % len(OTHERS)], "hatch": "////"}
            if name == "page_headers":  # where there is no column index
                made["hatch"] = "...."
            self._known[name] = made | {"edgecolor": "white", "linewidth": 0.0}
        return self._known[name]

    def handles(self) -> list[Any]:
        """The legend."""
        from matplotlib.patches import Patch

        made = [Patch(**style, label=_label(name)) for name, style in self._known.items()]
        return sorted(made, key=lambda patch: patch.get_label() != READ)


def _label(name: str) -> str:
    return name if name == READ else name.replace("_", " ")


def _title(report: Report) -> str:
    verb = "was read" if report.analyzed else "would be read"
    of = (
        f" of {figures.cut_name(report.source.rpartition('/')[2] or report.source)}"
        if report.source
        else ""
    )
    total = sum(report.bytes.values())
    answer = f", {counted(report.rows_out, 'row')} found" if report.analyzed else ""
    head = f"What {verb}{of}: {format_size(total)} of {format_size(report.file_bytes)} in {counted(report.requests, 'request')}{answer}"
    where = f"where {figures.cut(report.filter, 180)}" if report.filter else "no filter"
    return "\n".join([*textwrap.wrap(head, 100), *textwrap.wrap(where, 100)])


def _parts(count: Count) -> dict[str, int]:
    """What is read, and what each mechanism rules out."""
    return {READ: count.read} | {name: n for name, n in count.pruned_by.items() if n > 0}


def _draw_sums(
    panel: Any, steps: Sequence[tuple[str, Count]], report: Report, style: _Styles
) -> None:
    labels = []
    for y, (name, count) in enumerate(steps):
        _bar(panel, y, 0.0, 1.0, _parts(count), count.total, style, 0.7)
        labels.append(f"{name}  {count.read:,} of {count.total:,}")
    if report.file_bytes:
        total = sum(report.bytes.values())
        parts = {READ: min(total, report.file_bytes)}
        _bar(panel, len(steps), 0.0, 1.0, parts, report.file_bytes, style, 0.7)
        labels.append(f"bytes  {format_size(total)} of {format_size(report.file_bytes)}")
    panel.set_yticks(range(len(labels)), labels)
    panel.set_ylim(len(labels) - 0.5, -0.5)
    panel.set_xlim(0, 1.002)
    panel.set_xticks([])
    panel.spines[:].set_visible(False)
    panel.tick_params(length=0)


def _bar(
    panel: Any, y: float, left: float, width: float, parts: Mapping[str, float], total: float, style: _Styles, height: float
) -> None:  # fmt: skip
    """A bar whose parts have the lengths of their shares; a frame shows what is in none."""
    from matplotlib.patches import Rectangle

    at = left
    for name, n in parts.items():
        if n <= 0 or total <= 0:
            style.of(name)
            continue
        long = min(n / total, 1.0) * width
        if name == READ:
            long = min(max(long, 0.012 * width), width)  # a page of thousands is seen, too
        long = min(long, left + width - at)
        panel.add_patch(Rectangle((at, y - height / 2), long, height, **style.of(name)))
        at += long
    frame = Rectangle(
        (left, y - height / 2), width, height, facecolor="none", edgecolor="#999999", linewidth=0.5
    )
    panel.add_patch(frame)


def _bands(report: Report) -> list[tuple[str, list[Place]]]:
    """The bands of the map from above: a label and row groups. Of one file all have a place, even those that no chunk is read of."""
    places = sorted(
        {key[:2] for key in report.chunks or {}} | set(report.executed), key=_in_order(report)
    )
    if report.files.total == 1 and report.row_groups.total:
        file = places[0][0] if places else ""
        places = [(file, group) for group in range(report.row_groups.total)]
    if len(places) <= MOST_BANDS:
        several = report.files.total > 1
        return [(f"{figures.cut_name(file.rpartition('/')[2], 24)} {group}" if several else f"{group}", [(file, group)]) for file, group in places]  # fmt: skip
    made = []
    for number in range(MOST_BANDS):
        part = places[number * len(places) // MOST_BANDS : (number + 1) * len(places) // MOST_BANDS]
        if report.files.total == 1:
            label = f"{part[0][1]:,}" if len(part) == 1 else f"{part[0][1]:,} to {part[-1][1]:,}"
        else:
            files = len(list(groupby(part, lambda place: place[0])))
            label = f"{len(part):,} of {counted(files, 'file')}"
        made.append((label, part))
    return made


def _in_order(report: Report) -> Any:
    """Files as they were first met, row groups by number."""
    files: dict[str, int] = {}
    for file, *_ in report.chunks or {}:
        files.setdefault(file, len(files))
    return lambda place: (files.get(place[0], len(files)), place[0], place[1])


def _draw_map(
    panel: Any, report: Report, bands: Sequence[tuple[str, list[Place]]], columns: Sequence[str], style: _Styles
) -> None:  # fmt: skip
    chunks = report.chunks or {}
    touched = {key[:2] for key in chunks} | set(report.executed)
    read = {file for file, *_ in chunks}  # planned: their columns are known
    stored = {(file, column) for file, _, column in chunks}
    ruled = [name for name, n in report.row_groups.pruned_by.items() if n > 0]
    away = ruled[0] if len(ruled) == 1 else UNKNOWN  # of row groups of which nothing is read
    for y, (_, places) in enumerate(bands):
        for x, column in enumerate(columns):
            parts: dict[str, float] = {READ: 0.0}
            having = [p for p in places if p[0] not in read or (p[0], column) in stored]
            for file, group in having:
                for name, share in _shares(report, (file, group, column), touched, away).items():
                    parts[name] = parts.get(name, 0.0) + share
            if sum(parts.values()):
                _bar(panel, y, x + 0.04, 0.92, parts, len(having), style, 0.76)
            elif not having:
                panel.text(
                    x + 0.5, y, "not in this file" if len(places) == 1 else "not in these files",
                    fontsize=6.5, ha="center", va="center", clip_on=True,
                )  # fmt: skip
    panel.set_xlim(0, len(columns) * 1.002)
    panel.set_ylim(len(bands) - 0.5, -0.5)
    panel.set_xticks(
        [x + 0.5 for x in range(len(columns))], [figures.cut_name(name, 15) for name in columns]
    )
    panel.xaxis.tick_top()
    one = report.files.total == 1
    few = len(bands) < 4  # too low for a label beside them
    before = "row group " if few and one else ""
    panel.set_yticks(range(len(bands)), [before + label for label, _ in bands])
    panel.tick_params(length=0)
    panel.spines[:].set_visible(False)
    if not few:
        panel.set_ylabel("row group" if one else "file, row group")
    shown = sum(len(places) for _, places in bands)
    hidden = report.row_groups.total - shown
    said = (
        f"not drawn: {counted(hidden, 'row group')} of which nothing is read" if hidden > 0 else ""
    )
    known = any(report.pages_of(key, chunk).total for key, chunk in chunks.items())
    said = (
        said
        if known
        else "pages are not counted: no page index was needed, or there is none"
        + (f"; {said}" if said else "")
    )
    panel.set_title(f"pages of each column chunk{'; ' + said if said else ''}", pad=18)


def _shares(report: Report, key: ChunkKey, touched: set[Place], away: str) -> dict[str, float]:
    """The shares of the pages of a chunk: what is read, and what each mechanism rules out. Together they are 1."""
    chunk = (report.chunks or {}).get(key)
    if chunk is None:
        if key[:2] not in touched:
            return {away: 1.0}
        return {"late_materialization": 1.0} if report.analyzed else {}
    pages = report.pages_of(key, chunk)
    if not pages.total:  # not known: read as a whole, or not at all
        return (
            {READ: 1.0}
            if chunk.rows_decoded or not report.analyzed
            else {"late_materialization": 1.0}
        )
    return {name: n / pages.total for name, n in _parts(pages).items()}
