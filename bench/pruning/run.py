"""`python -m pageseek.bench.pruning.run`: the table of what every engine reads, by question and layout."""

from __future__ import annotations

import argparse
import datetime as dt
import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from pageseek.bench import generate
from pageseek.bench.pruning.count import Reads, watch
from pageseek.bench.pruning.engines import ENGINES
from pageseek.bench.pruning.layouts import LAYOUTS, make
from pageseek.bench.pruning.pages import PageMap
from pageseek.bench.pruning.queries import QUERIES
from pageseek.bench.run import machine

from pageseek.base.report import format_size

OURS, MOST = "pageseek", 1.2  # times the fewest bytes

Counts = dict[str, tuple[int, int, int, int]]  # engine -> row groups, pages, rows, bytes


def main(arguments: Sequence[str] | None = None) -> int:
    """Count, print, write: 0, or 1 if engines disagree or pageseek reads more than it should."""
    parser = argparse.ArgumentParser(prog="pageseek.bench.pruning.run", description=__doc__)
    parser.add_argument(
        "--folder", type=Path, default=generate.default_folder(), help="where the files are kept"
    )
    parser.add_argument(
        "--engines", default=",".join(ENGINES), metavar="A,B", help="of: %(default)s"
    )
    parser.add_argument("--table", type=Path, metavar="FILE", help="write the table (Markdown)")
    options = parser.parse_args(arguments)
    files = make(options.folder)
    reads: dict[str, dict[tuple[str, str], Reads]] = {}
    versions = {}
    for engine in options.engines.split(","):
        try:
            versions[engine] = importlib.import_module(engine).__version__
        except ImportError as error:
            print(f"left out: {engine}: {error}")
            continue
        print(f"{engine} {versions[engine]}: {len(files) * len(QUERIES)} questions", flush=True)
        reads[engine] = watch(engine, files)
    wrong = list(_disagreements(reads))
    rows = _rows(reads, files)
    text = "\n".join(_lines(rows, list(reads), versions, wrong))
    print("\n".join(_summary(rows, list(reads))))
    for line in wrong:
        print(f"answers differ: {line}")
    if options.table is not None:
        options.table.write_text(text + "\n")
    return 1 if wrong or any(_lost(counts) for counts in rows.values()) else 0


def _disagreements(reads: dict[str, dict[tuple[str, str], Reads]]) -> Iterator[str]:
    for key, ours in reads[OURS].items():
        if ours.error:
            yield f"{'/'.join(key)}: pageseek: {ours.error}"
        for engine, found in reads.items():
            other = found[key]
            if not other.error and (other.rows, other.check) != (ours.rows, ours.check):
                yield f"{'/'.join(key)}: pageseek {ours.rows} rows, {engine} {other.rows}"


def _rows(
    reads: dict[str, dict[tuple[str, str], Reads]], files: dict[str, Path]
) -> dict[tuple[str, str], Counts]:
    rows: dict[tuple[str, str], Counts] = {}
    for layout, path in files.items():
        pages = PageMap.of(path)
        for query in QUERIES:
            key = layout, query.name
            rows[key] = {
                engine: (*found[key].pages(pages), found[key].bytes)
                for engine, found in reads.items()
                if not found[key].error
            }
    return rows


def _lost(counts: Counts) -> str:
    """The engines that read less: fewer pages, or fewer bytes beyond the margin."""
    others = [count for engine, count in counts.items() if engine != OURS]
    if not others or OURS not in counts:
        return ""
    _, pages, _, size = counts[OURS]
    lost = []
    if pages > min(other[1] for other in others):
        lost.append("pages")
    if size > MOST * min(other[3] for other in others):
        lost.append("bytes")
    return ", ".join(lost)


def _summary(rows: dict[tuple[str, str], Counts], engines: list[str]) -> Iterator[str]:
    yield f"| layout | {' | '.join(engines)} | pageseek loses |"
    yield "|---|" + "---:|" * (len(engines) + 1)
    for layout in LAYOUTS:
        mine = {query: counts for (name, query), counts in rows.items() if name == layout.name}
        if not mine:
            continue
        cells = []
        for engine in engines:
            counted = [counts[engine] for counts in mine.values() if engine in counts]
            pages, size = sum(c[1] for c in counted), sum(c[3] for c in counted)
            missing = (
                f" ({len(mine) - len(counted)} not counted)" if len(counted) < len(mine) else ""
            )
            cells.append(f"{pages:,} pages, {format_size(size)}{missing}")
        lost = [query for query, counts in mine.items() if _lost(counts)]
        yield f"| {layout.name} | {' | '.join(cells)} | {len(lost)} of {len(mine)} |"


def _lines(
    rows: dict[tuple[str, str], Counts],
    engines: list[str],
    versions: dict[str, str],
    wrong: list[str],
) -> Iterator[str]:
    yield "# What is read"
    yield ""
    yield (
        "Thirty questions about one table of a million rows in eight layouts. Each engine answers them in a process of its own "
        "under `strace`, which shows the bytes of the file that it reads, and so the pages. A page counts "
        "if more than half of it was read. Every question opens the file again. Made by"
    )
    yield "`python -m pageseek.bench.pruning.run --table docs/pruning.md`; layouts and questions are in `bench/pruning`."
    yield ""
    named = ", ".join(f"{name} {version}" for name, version in versions.items())
    where = ", ".join(str(value) for value in machine().values())
    yield f"{dt.date.today().isoformat()}, {where}; {named}."
    yield ""
    yield "| layout | |"
    yield "|---|---|"
    for layout in LAYOUTS:
        yield f"| {layout.name} | {layout.what} |"
    yield ""
    yield "## All questions of a layout together"
    yield ""
    yield from _summary(rows, engines)
    yield ""
    yield "## Every question"
    yield ""
    yield (
        "Cells: row groups / pages / rows / bytes. The last column names the engines that read fewer pages than pageseek, "
        f"or less than 1/{MOST:g} of its bytes."
    )
    for layout in LAYOUTS:
        yield ""
        yield f"### {layout.name}"
        yield ""
        yield f"| question | {' | '.join(engines)} | less elsewhere |"
        yield "|---|" + "---:|" * len(engines) + "---|"
        for query in QUERIES:
            counts = rows.get((layout.name, query.name))
            if counts is None:
                continue
            cells = [
                "{} / {:,} / {:,} / {}".format(*counts[e][:3], format_size(counts[e][3]))
                if e in counts
                else "-"
                for e in engines
            ]
            yield f"| {query.name} | {' | '.join(cells)} | {_lost(counts)} |"
    if wrong:
        yield ""
        yield "## Answers that differ"
        yield ""
        yield from (f"- {line}" for line in wrong)


if __name__ == "__main__":
    raise SystemExit(main())
