"""`head` and `scan` print or write rows; `explain` says what a scan reads, and what rules out the rest."""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pageseek.base.progress import interactive
from pageseek.base.report_text import leaf_cells
from pageseek.cli import terminal, text
from pageseek.cli.arguments import STDIN, add_columns, add_source, command, count, sources
from pageseek.cli.plots import add_plot, check_plot, saved

if TYPE_CHECKING:
    from pageseek.base.report import Report
    from pageseek.predicate.expression import Expression
    from pageseek.scanning.queries.scan import Scan

HEAD, SHOWN = 10, 20  # rows that are printed without --limit: by head, by scan
NARROW = 72  # columns of a terminal, below which a report has shorter bars
INSET = " " * 6
# a step of a report: its name or none, its bar or none, words
STEP = re.compile(r"(  \S.{9}  |(?= {36}))(?:(?<= {2})| {14})([#.]{20}| {20})  (.*)$")
FORMATS = ("table", "jsonl", "csv", "arrow", "parquet")


def add_parser(commands: Any) -> None:
    """Add the subcommands `head`, `scan` and `explain`."""
    made = command(
        commands, "head", "print the first rows", "Prints the first rows, as a table or in another form.",
        """pageseek head orders.parquet
        pageseek head orders.parquet -n 3 --columns o_orderkey,o_comment
        pageseek head 'sales/*.parquet' --where "price < 10" --format jsonl
        curl -s https://example.org/sales.parquet | pageseek head -""",
        _head,
    )  # fmt: skip
    add_source(made)
    add_columns(made)
    made.add_argument("-n", "--limit", type=count, default=HEAD, metavar="N", help=f"at most N rows (default: {HEAD})")  # fmt: skip
    _add_formats(made)
    made = command(
        commands, "scan", "print or write the rows that pass a filter",
        "Prints the rows that pass a filter, or writes them to a file.",
        """pageseek scan orders.parquet --where "o_orderkey = 4711 or o_comment like '%express%'"
        pageseek scan 'sales/*.parquet' --where "price < 10" --output cheap.parquet
        pageseek scan orders.parquet --columns o_custkey --format csv > keys.csv
        pageseek scan s3://bucket/sales/ --where "id = 42" --json""",
        _run,
    )  # fmt: skip
    add_source(made)
    add_columns(made)
    made.add_argument(
        "-n", "--limit", type=count, metavar="N",
        help=f"at most N rows (default: {SHOWN} of a table; other forms: all)",
    )  # fmt: skip
    _add_formats(made)
    made = command(
        commands, "explain", "what a scan reads and why not more",
        "Says what a scan reads, and what rules out the rest.",
        """pageseek explain orders.parquet --where "o_orderkey = 4711"
        pageseek explain orders.parquet --where "o_orderkey = 4711" --analyze
        pageseek explain orders.parquet --where "o_orderkey = 4711" --analyze --plot read.svg""",
        _explain,
    )  # fmt: skip
    add_source(made)
    add_columns(made)
    made.add_argument("--analyze", action="store_true", help="run the scan and count what happened")
    add_plot(made, "draw what is read of each column chunk, and what rules out the rest")
    made.add_argument("--json", action="store_true", help="the report as JSON")


def _add_formats(made: argparse.ArgumentParser) -> None:
    form = made.add_mutually_exclusive_group()
    form.add_argument(
        "--format", choices=FORMATS, metavar="FORM",
        help="table, jsonl (JSON lines), csv, arrow (the IPC stream; the IPC file if --output ends in .arrow) or parquet; by default what the ending of --output says, else a table",
    )  # fmt: skip
    form.add_argument("--json", action="store_true", help="as --format jsonl")
    made.add_argument("-o", "--output", metavar="FILE", help="write the rows to a local file, which appears when it is complete; - for standard output")  # fmt: skip
    made.add_argument("--overwrite", action="store_true", help="let --output replace a file that is there")  # fmt: skip


def lazy(options: argparse.Namespace, watched: bool, columns: Sequence[str] | None = None) -> Scan:
    """The scan of the arguments; `watched`: with a bar, if a person looks at the terminal."""
    from pageseek.api import scan

    return scan(
        sources(options.source),
        columns=columns,
        filter=condition(options.where),
        table=options.table,
        version=options.table_version,
        timestamp=options.timestamp,
        snapshot=options.snapshot,
        progress=watched and interactive(),
    )


def condition(texts: Sequence[str]) -> Expression | None:
    """The conditions of `--where`, joined by AND; None if there are none."""
    from pageseek.predicate.expression import And
    from pageseek.predicate.filters import to_expression

    made = [found for found in map(to_expression, texts) if found is not None]
    return And(tuple(made)) if made else None


# -- rows -------------------------------------------------------------------------------------


def _head(options: argparse.Namespace) -> int:
    return _rows(options, options.limit, HEAD)


def _run(options: argparse.Namespace) -> int:
    return _rows(options, options.limit, SHOWN)


def _rows(options: argparse.Namespace, limit: int | None, shown: int) -> int:
    from pageseek.cli import formats, rows

    if options.output == STDIN:  # as of other commands: the stream, not a file of that name
        options.output = None
    form = formats.chosen(options)
    between = options.output is None and sys.stdout.isatty()  # a bar would stand among the rows
    scan = lazy(options, not between, options.columns)
    if form == "table" and options.output is None:
        told = options.command == "scan" and limit is None
        limit = shown if limit is None else limit
        rows.show(scan.limit(limit + 1 if told else limit).to_reader(), limit)
        return 0
    scan = scan if limit is None else scan.limit(limit)
    formats.write(scan, form, options.output, options.overwrite)
    return 0


# -- explain ----------------------------------------------------------------------------------


def _explain(options: argparse.Namespace) -> int:
    check_plot(options)
    report = lazy(options, True, options.columns).explain(analyze=options.analyze)
    if options.plot is not None:
        from pageseek.pictures.reading import draw_report  # late: few commands need it

        saved(draw_report(report), options)
    if options.json:
        print(text.to_json(report.to_dict()))
    else:
        print(_coloured(report, terminal.stdout()))
    return 0


def _wrapped(line: str, width: int | None) -> Iterator[str]:
    """A line in the width of the terminal; its rest stands below where it began."""
    narrow = width is not None and width < NARROW
    step = STEP.match(line)
    inner = 4
    if step is not None and not narrow:
        inner = 36
    elif step is not None:  # half of the bar, and what belongs to the step stands below it
        bar = step[2][::2]
        line = f"{step[1]}{bar}  {step[3]}" if bar.strip() else f"{step[1] or INSET}{step[3]}"
        inner = len(INSET)
    if width is None or len(line) <= width:
        yield line
    else:
        yield from textwrap.wrap(line, width, subsequent_indent=" " * inner, break_on_hyphens=False)


def _coloured(report: Report, look: terminal.Look) -> str:
    """The report in colours: what is read, what ruled out the rest, remarks."""
    printed = text.safe(str(report)).splitlines()
    cells = leaf_cells(report.tally()[1])
    made: list[str] = []
    while printed:
        line = printed.pop(0)
        if line.startswith("  column ") and len(cells) > 1:
            made += _leaves([line, *printed[: len(cells) - 1]], cells, look)
            del printed[: len(cells) - 1]
        else:
            first = not made
            parts = _wrapped(line, look.width)
            made += (look.bold(part) if first else _painted(line, part, look) for part in parts)
    return "\n".join(made)


def _leaves(printed: list[str], cells: Sequence[tuple[str, ...]], look: terminal.Look) -> list[str]:
    """The table of columns as it is printed, or narrowed to the width of the terminal."""
    if look.width is None or max(map(terminal.wide, printed)) <= look.width:
        return [look.bold(printed[0]), *printed[1:]]
    inner = look._replace(width=look.width - 2)
    head, *rows = cells
    table = terminal.table(head, rows, (1, 2, 3, 4), look=inner, drop=(4, 2, 3))
    return ["  " + line for line in table]


def _painted(line: str, part: str, look: terminal.Look) -> str:
    """A part of a line in the colour of the line."""
    bar = re.match(r"(  \S.{9}  )(#*)(\.*)(  .*)$", part)
    if bar is not None and (bar[2] or bar[3]):
        full, empty = ("█", "░") if look.drawn else ("#", ".")
        drawn = look.yellow(full * len(bar[2])) + look.dim(empty * len(bar[3]))
        return bar[1] + drawn + bar[4]
    if " less: " in line:
        return look.green(part)
    if line.startswith("  note:") or " was not asked: " in line:
        return look.cyan(part)
    return part
