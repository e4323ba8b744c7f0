"""The bounds of the pages of columns, over the numbers of their rows: one sees whether a column is clustered."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pageseek.base.errors import CorruptFileError
from pageseek.base.records import NamedTuple
from pageseek.base.report import counted
from pageseek.format.parquet_file import LeafColumn, ParquetFile
from pageseek.pictures import figures
from pageseek.pictures.exact import Number
from pageseek.pictures.scale import Scale

MOST_COLUMNS = 24  # of one picture
LINE = 52  # characters of a line above a panel
MOST_LINES = 60  # row groups whose limits are drawn
ROW_INCHES, COLUMN_INCHES = 2.3, 5.2


class Zones(NamedTuple):
    """Pages, or row groups where there is no page index: their rows, bounds and nulls."""

    first: npt.NDArray[np.int64]
    stop: npt.NDArray[np.int64]
    lower: pa.Array
    upper: pa.Array
    nulls: npt.NDArray[np.int64]  # -1: not known
    paged: int  # how many row groups have a page index


def draw_bounds(file: ParquetFile, columns: Sequence[str | LeafColumn] | None = None) -> Any:
    """A figure of the bounds of the pages of columns; all columns unless given."""
    if isinstance(columns, (str, LeafColumn)):
        columns = [columns]
    leaves = file.leaves if columns is None else [file.leaf(column) for column in columns]
    if not leaves:
        raise ValueError(f"{file.name}: there is no column to draw")
    left = max(len(leaves) - MOST_COLUMNS, 0)
    leaves = leaves[:MOST_COLUMNS]
    across = 1 if len(leaves) < 3 else 2 if len(leaves) < 9 else 3
    down = -(-len(leaves) // across)
    with figures.settings():
        figure = figures.new_figure(
            8.0 if across == 1 else across * COLUMN_INCHES, down * ROW_INCHES + 0.9
        )
        panels = list(figure.subplots(down, across, squeeze=False, sharex=True).flat)
        for panel, leaf in zip(panels, leaves, strict=False):
            _draw(panel, file, leaf)
        for place in range(len(leaves), len(panels)):
            panels[place].set_visible(False)
            panels[place - across].tick_params(labelbottom=True)  # it is the lowest of its column
        groups = file.num_row_groups
        more = f"; the first {len(leaves)} of {len(leaves) + left:,} columns" if left else ""
        name = figures.cut_name(file.name.rpartition("/")[2])
        figure.suptitle(
            f"{name}: {counted(file.num_rows, 'row')}, {counted(groups, 'row group')}{more}",
            fontsize=10.5, x=0.01, ha="left",
        )  # fmt: skip
        figure.supxlabel(
            "row number; a block is a page (pale: a row group), from its least to its greatest value; orange at the bottom: nulls",
            fontsize=9,
        )
    return figure


def _zones(file: ParquetFile, leaf: LeafColumn) -> Zones:
    lowest, highest = file.statistics(leaf)
    first, stop, lower, upper, nulls, paged = [], [], [], [], [], 0
    chunks = file.chunks(leaf)
    kind: pa.DataType | None = (
        None  # of the bounds of pages; those of row groups know no zone and no duration
    )
    for group in file.row_groups:
        try:
            offsets = file.offset_index(group.index, leaf)
            index = None
            if offsets is not None and leaf.max_repetition_level == 0:
                index = file.column_index(group.index, leaf)
        except CorruptFileError:
            offsets = index = None
        if offsets is None or index is None:
            first.append(np.array([group.first_row]))
            stop.append(np.array([group.first_row + group.num_rows]))
            lower.append(lowest.slice(group.index, 1))
            upper.append(highest.slice(group.index, 1))
            null_count = chunks[group.index].null_count
            nulls.append(np.array([-1 if null_count is None else null_count]))
            continue
        paged += 1
        first.append(group.first_row + offsets.first_row[:-1])
        stop.append(group.first_row + offsets.first_row[1:])
        kind = index.lower.type
        lower.append(index.lower)
        upper.append(index.upper)
        counts = index.null_counts
        nulls.append(np.full(offsets.num_pages, -1) if counts is None else counts)
    empty = np.zeros(0, np.int64)
    return Zones(
        np.concatenate([empty, *first]),
        np.concatenate([empty, *stop]),
        _joined(lower, lowest.type if kind is None else kind),
        _joined(upper, highest.type if kind is None else kind),
        np.concatenate([empty, *nulls]),
        paged,
    )


def _joined(parts: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
    kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    return pa.concat_arrays([_storage(part).cast(kind) for part in parts] or [pa.array([], kind)])


def _storage(array: pa.Array) -> pa.Array:
    return array.storage if isinstance(array, pa.ExtensionArray) else array


def _draw(panel: Any, file: ParquetFile, leaf: LeafColumn) -> None:
    zones = _zones(file, leaf)
    scale = Scale(zones.lower, zones.upper)
    known = ~np.isnan(scale.lower)
    at, rest = scale.ticks()
    panel.spines[["top", "right"]].set_visible(False)
    panel.set_xlim(0, max(file.num_rows, 1))
    panel.xaxis.set_major_formatter(lambda x, _: f"{int(x):,}")
    panel.locator_params(axis="x", nbins=5, integer=True, min_n_ticks=1)
    panel.set_title(
        f"{figures.cut(leaf.name, 32)} ({figures.cut(str(leaf.type), 20)}){_title(zones, scale, file, leaf, rest)}"
    )
    starts = [group.first_row for group in file.row_groups][1:]
    if len(starts) <= MOST_LINES:
        for start in starts:
            panel.axvline(start, color=figures.PALE, linewidth=0.8, zorder=0)
    if not known.any():
        panel.set_yticks([])
        why = (
            "only nulls"
            if _only_nulls(zones)
            else "no bounds: neither a page index nor statistics that can be used"
        )
        panel.set_ylim(0, 1)
        panel.text(0.5, 0.5, why, transform=panel.transAxes, ha="center", va="center")
        _draw_nulls(panel, zones)
        return
    panel.set_ylim(scale.bottom, scale.top)
    panel.set_yticks([tick.place for tick in at], [tick.label for tick in at])
    _blocks(panel, zones, scale, known & ~scale.infinite, None)
    _blocks(panel, zones, scale, known & scale.infinite, "////")
    _draw_nulls(panel, zones)


def _blocks(
    panel: Any, zones: Zones, scale: Scale, drawn: npt.NDArray[np.bool_], hatch: str | None
) -> None:
    from matplotlib.collections import PolyCollection

    if not drawn.any():
        return
    left, right = zones.first[drawn].astype(float), zones.stop[drawn].astype(float)
    low, high = scale.lower[drawn], scale.upper[drawn]
    thin = 0.01 * (scale.top - scale.bottom)  # a page of one value is seen, too
    middle, half = (low + high) / 2, np.maximum((high - low) / 2, thin / 2)
    corners = [
        (left, middle - half),
        (left, middle + half),
        (right, middle + half),
        (right, middle - half),
    ]
    shapes = np.stack([np.stack(corner, axis=-1) for corner in corners], axis=1)
    panel.add_collection(
        PolyCollection(
            list(shapes), facecolor=figures.BLUE, alpha=0.75 if zones.paged else 0.4, edgecolor="white",
            linewidth=0.5 if len(left) <= 300 else 0, hatch=hatch,
        )
    )  # fmt: skip


def _draw_nulls(panel: Any, zones: Zones) -> None:
    """A strip at the bottom: pages with nulls, darker the more of their rows are null."""
    some = zones.nulls > 0
    if not some.any():
        return
    rows = np.maximum(zones.stop - zones.first, 1)
    share = np.clip(zones.nulls / rows, 0, 1)
    bars = [(int(a), int(b - a)) for a, b in zip(zones.first[some], zones.stop[some], strict=True)]
    colours = [(0.84, 0.37, 0.0, 0.3 + 0.7 * float(s)) for s in share[some]]
    low, high = panel.get_ylim()
    panel.broken_barh(bars, (low, 0.06 * (high - low)), facecolors=colours, linewidth=0)


def _only_nulls(zones: Zones) -> bool:
    return bool(len(zones.nulls) and (zones.nulls >= zones.stop - zones.first).all())


def overlap(lower: Sequence[Number | None], upper: Sequence[Number | None]) -> float:
    """In the bounds of how many zones the middle of a zone lies, on average: 1 where values are sorted, all where they are
    scattered. The bounds are exact numbers; a zone without (None) is left out.
    """
    known = [(a, b) for a, b in zip(lower, upper, strict=True) if a is not None and b is not None]
    if not known:
        return 0.0
    low, high = sorted(2 * a for a, _ in known), sorted(2 * b for _, b in known)  # as the middle
    held = sum(bisect_right(low, a + b) - bisect_left(high, a + b) for a, b in known)
    return held / len(known)


def _title(zones: Zones, scale: Scale, file: ParquetFile, leaf: LeafColumn, rest: str) -> str:
    n, groups = int((~np.isnan(scale.lower)).sum()), file.num_row_groups
    unit = "pages" if zones.paged == groups else "blocks" if zones.paged else "row groups"
    said = (
        [f"a typical value lies in {overlap(scale.low, scale.high):,.1f} of {n:,} {unit}"]
        if n > 1
        else []
    )
    if leaf.max_repetition_level:
        said.append("list: by row group")
    elif zones.paged < groups:
        said.append(
            f"page index in {zones.paged:,} of {groups:,} row groups"
            if zones.paged
            else "no page index"
        )
    nulls = int(zones.nulls[zones.nulls > 0].sum())
    said += [counted(nulls, "null")] if nulls else []
    endless = int(scale.infinite.sum())
    if endless:
        only = " only" if not scale.is_bounded else ""
        said.append(f"infinite bounds{only}: {counted(endless, unit[:-1])}, hatched")
    said += [rest] if rest else []
    lines, line = [], ""
    for part in said:  # in one line or two, so that the panel beside stays free
        if line and len(line) + len(part) > LINE:
            lines.append(line)
            line = part
        else:
            line = f"{line}; {part}" if line else part
    return "".join("\n" + one for one in [*lines, line] if one)
