"""The picture of saved results: how long each engine takes in units of pageseek's median, case by case, with the spread of the rounds."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pageseek.pictures import figures

OURS = "pageseek"
LEAST, MOST = 0.1, 0.9  # the quantiles of the rounds, between which a line is drawn
# engines are told apart by form as well as by colour
FORMS = {
    OURS: ("o", figures.VERMILION),
    "pyarrow": ("s", figures.BLUE),
    "datafusion": ("^", figures.GREEN),
    "duckdb": ("D", figures.ORANGE),
    "polars": ("v", figures.PURPLE),
    "floor": ("|", figures.BLACK),
}
OTHERS = (("P", figures.SKY), ("X", figures.YELLOW), ("*", figures.INK))
FEW = 10  # rounds, below which there are no tenths of them
SIZES = ("rows", "group_rows", "wide_columns", "wide_groups", "scale")
ROW = 0.42  # inches of a case


def load(path: Path) -> dict[str, Any]:
    """Results that `--json` has written."""
    try:
        found = json.loads(path.read_bytes())
    except OSError as error:
        raise ValueError(
            f"{path}: {(error.strerror or str(error)).lower()}; pageseek-bench --json writes results"
        ) from error
    except ValueError as error:
        raise ValueError(f"{path}: no results of pageseek-bench: no JSON: {error}") from error
    if why := _wrong(found):
        raise ValueError(f"{path}: no results of pageseek-bench: {why}")
    return dict(found)


def _wrong(record: Any) -> str | None:
    """What results lack that a picture needs."""
    if not isinstance(record, dict) or not isinstance(record.get("results"), list):
        return "it has no list 'results'"
    for name in ("machine", "sizes", "versions"):
        if not isinstance(record.get(name, {}), dict):
            return f"{name!r} has no names"
    if "versions" not in record:
        return "it has no 'versions'"
    sizes = record.get("sizes", {})
    for name in SIZES if sizes else ():
        if not _positive(sizes.get(name)):
            return f"'sizes' has no {name!r}"
    if not record["results"]:
        return "no case was measured"
    for case in record["results"]:
        if not isinstance(case, dict) or not isinstance(case.get("case"), str):
            return "a case has no name"
        peers = case.get("peers")
        if not isinstance(peers, dict) or OURS not in peers:
            return f"case {case['case']!r} has no {OURS}"
        for name, peer in peers.items():
            if why := _wrong_peer(peer):
                return f"case {case['case']!r}: {name} {why}"
    return None


def _wrong_peer(peer: Any) -> str | None:
    if not isinstance(peer, dict):
        return "has no times"
    rounds = peer.get("seconds")
    if rounds is not None and not (isinstance(rounds, list) and all(map(_positive, rounds))):
        return "has 'seconds' that are no positive numbers"
    for name in ("median", *(() if rounds else ("least", "rounds"))):
        if not _positive(peer.get(name)):
            return f"has no positive {name!r}"
    return None


def _positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf


def draw(record: Mapping[str, Any]) -> Any:
    """A figure of matplotlib."""
    cases = record["results"]
    names = list(dict.fromkeys(name for case in cases for name in case["peers"]))
    with figures.settings():
        figure = figures.new_figure(8.6, 2.3 + ROW * len(cases))
        axes = figure.add_subplot()
        spare = iter(OTHERS)
        step = 0.72 / max(len(names), 1)
        for i, name in enumerate(names):
            form, colour = FORMS.get(name) or next(spare, OTHERS[-1])
            label = name
            for row, case in enumerate(cases):
                if name not in case["peers"]:
                    continue
                found, base = case["peers"][name], case["peers"][OURS]["median"]
                at = row + (i - (len(names) - 1) / 2) * step
                low, high = (q / base for q in spread(found))
                axes.plot([low, high], [at, at], color=colour, linewidth=1.6, solid_capstyle="butt")
                axes.plot(
                    [found["median"] / base], [at], marker=form, color=colour, label=label,
                    markersize=8 if form == "|" else 5, markeredgewidth=2 if form == "|" else 0.4,
                    markeredgecolor=colour if form == "|" else "white", linestyle="none", zorder=3,
                )  # fmt: skip
                label = "_" + name  # named once in the legend
        axes.axvline(1, color="#999999", linewidth=0.8, zorder=0)
        for row in range(0, len(cases), 2):
            axes.axhspan(row - 0.5, row + 0.5, color="#F4F4F4", zorder=-1)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}x")
        axes.set_ylim(len(cases) - 0.5, -0.5)
        axes.set_yticks(range(len(cases)), [label_of(case) for case in cases])
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("time in units of pageseek's median: left is quicker, right is slower")
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        axes.set_title(
            "The same query in pageseek and other engines", fontweight="bold", loc="left", pad=30
        )
        axes.legend(
            ncols=len(names), frameon=False, loc="lower left", bbox_to_anchor=(-0.01, 1.0),
            handletextpad=0.2, columnspacing=1.2, borderaxespad=0.2,
        )  # fmt: skip
        figure.supxlabel(caption(record), fontsize=7, color="#666666", x=0.01, ha="left")
    return figure


def spread(peer: Mapping[str, Any]) -> tuple[float, float]:
    """The quantiles LEAST and MOST of the rounds; the least and the greatest of few; the least and the median where the rounds were
    not saved.
    """
    rounds = sorted(peer.get("seconds") or [peer["least"], peer["median"]])
    if not peer.get("seconds"):
        return rounds[0], rounds[-1]
    last = len(rounds) - 1
    if len(rounds) < FEW:
        return rounds[0], rounds[last]
    return rounds[round(LEAST * last)], rounds[round(MOST * last)]


def label_of(case: Mapping[str, Any]) -> str:
    """A case and pageseek's median in it."""
    ms = case["peers"][OURS]["median"] * 1e3
    digits = 0 if ms >= 100 else 1 if ms >= 10 else 2
    return f"{case['case']}\n{ms:,.{digits}f} ms"


def caption(record: Mapping[str, Any]) -> str:
    """What was measured, on what, and when."""
    machine, sizes = record.get("machine", {}), record.get("sizes", {})
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    peers = [peer for case in record["results"] for peer in case["peers"].values()]
    rounds = [len(peer.get("seconds") or ()) or peer["rounds"] for peer in peers]
    many = str(min(rounds)) if min(rounds) == max(rounds) else f"{min(rounds)} to {max(rounds)}"
    lines = [
        f"One thread each. Points are medians of {many} interleaved rounds, lines reach from {_reach(peers)}.",
        f"{machine.get('system', '')}, {machine.get('cpu', '')}, {machine.get('cores', '?')} cores, Python {machine.get('python', '?')}; {versions}; {record.get('date', '')}.",
        "Below a case: pageseek's median. The floor is no engine: it reads and decompresses the pages of the answer, and does nothing else.",
        _files(sizes, record),
    ]
    return "\n".join(lines)


def _reach(peers: Sequence[Mapping[str, Any]]) -> str:
    """From where to where the lines of these peers reach (`spread`)."""
    ways = [
        ("the first to the last decile", lambda n: n >= FEW),
        (f"the least to the greatest (below {FEW} rounds)", lambda n: 0 < n < FEW),
        ("the least to the median (where rounds were not saved)", lambda n: n == 0),
    ]
    saved = [len(peer.get("seconds") or ()) for peer in peers]
    found = [way for way, holds in ways if any(map(holds, saved))]
    return " or ".join(found)


def _files(sizes: Mapping[str, Any], record: Mapping[str, Any]) -> str:
    if not sizes:
        return f"Files of size {record.get('size', '?')}."
    return (
        f"The files have {sizes['rows']:,} rows in row groups of {sizes['group_rows']:,}; that of wide-footer has {sizes['wide_columns']:,} columns "
        f"in {sizes['wide_groups']:,} row groups; that of lineitem-* is lineitem of TPC-H at scale {sizes['scale']:g}."
    )
