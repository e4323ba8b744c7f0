"""`pageseek scan SOURCE` prints rows; `pageseek explain SOURCE` says what a scan reads, and what rules out the rest."""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from pageseek.api import scan as make_scan
from pageseek.base.progress import interactive
from pageseek.cli import text
from pageseek.predicate.expression import And, Expression
from pageseek.predicate.filters import to_expression
from pageseek.scanning.scan import Scan

SHOWN = 20  # rows that are printed without --limit


def add_parser(commands: Any) -> None:
    """Add the subcommands `explain` and `scan`."""
    made = commands.add_parser(
        "explain", help="what a scan reads and why not more", description=__doc__
    )
    _add_source(made)
    made.add_argument("--analyze", action="store_true", help="run the scan and count what happened")
    made.add_argument("--json", action="store_true", help="the report as JSON")
    made.set_defaults(run=_explain)
    made = commands.add_parser(
        "scan", help="print the rows that pass a filter", description=__doc__
    )
    _add_source(made)
    made.add_argument(
        "--limit", type=count, metavar="N", help=f"at most N rows (default: {SHOWN}; --json: all)"
    )
    made.add_argument("--json", action="store_true", help="one JSON object a row, one row a line")
    made.set_defaults(run=_run)


def _add_source(made: argparse.ArgumentParser) -> None:
    made.add_argument("source", help="file, directory, glob or URL; a table's folder")
    made.add_argument(
        "--columns", type=names, metavar="A,B", help="columns of the result (default: all)"
    )
    made.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="SQL",
        help="such as \"a > 35 and b like 'x%%'\"; several are joined by AND",
    )
    add_table(made)
    version = made.add_mutually_exclusive_group()
    version.add_argument(
        "--table-version", type=count, metavar="N", help="a version of a Delta Lake table, in place of the current one"
    )  # fmt: skip
    version.add_argument(
        "--timestamp", metavar="TIME", help="the version that was current then, such as 2024-01-31T12:00:00Z"
    )  # fmt: skip
    version.add_argument(
        "--snapshot", type=_snapshot, metavar="ID", help="a snapshot of an Iceberg table: its number, or the name of a branch or tag"
    )  # fmt: skip


def _snapshot(value: str) -> int | str:
    return int(value) if value.isdecimal() else value


def add_table(made: argparse.ArgumentParser) -> None:
    """Add the option of every command that may be given a folder."""
    made.add_argument(
        "--no-table", dest="table", action="store_const", const=False,
        help="read the bare files of a folder that is a table of Delta Lake or Iceberg, not its current version",
    )  # fmt: skip


def names(value: str) -> list[str]:
    """A list of names, written with commas."""
    return [name.strip() for name in value.split(",") if name.strip()]


def count(value: str) -> int:
    """A number that is not negative."""
    try:
        n = int(value)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{value!r} is no whole number") from error
    if n < 0:
        raise argparse.ArgumentTypeError(f"{value}: not negative")
    return n


def _lazy(options: argparse.Namespace, watched: bool) -> Scan:
    """The scan of the arguments; `watched`: with a bar, if a person looks at the terminal."""
    return make_scan(
        options.source,
        columns=options.columns,
        filter=condition(options.where),
        table=options.table,
        version=options.table_version,
        timestamp=options.timestamp,
        snapshot=options.snapshot,
        progress=watched and interactive(),
    )


def condition(texts: Sequence[str]) -> Expression | None:
    """The conditions of `--where`, joined by AND; None if there are none."""
    made = [found for found in map(to_expression, texts) if found is not None]
    return And(tuple(made)) if made else None


def _explain(options: argparse.Namespace) -> int:
    report = _lazy(options, watched=True).explain(analyze=options.analyze)
    print(text.to_json(report.to_dict()) if options.json else report)
    return 0


def _run(options: argparse.Namespace) -> int:
    scan = _lazy(options, watched=not sys.stdout.isatty())
    if options.json:
        scan = scan if options.limit is None else scan.limit(options.limit)
        for batch in scan.to_batches():
            for row in batch.to_pylist():
                print(text.to_json(row, indent=None))
        return 0
    limit = SHOWN if options.limit is None else options.limit
    reader = scan.limit(limit + 1 if options.limit is None else limit).to_reader()
    _print(reader, limit)
    return 0


def _print(reader: pa.RecordBatchReader, limit: int) -> None:
    head = reader.schema.names
    numbers = [i for i, field in enumerate(reader.schema) if _is_number(field.type)]
    if not head:
        print(f"{sum(batch.num_rows for batch in reader):,} rows, no columns")
        return
    rows = (
        row
        for batch in reader
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    )
    cells = ([text.shown(value, 40) for value in row] for row in itertools.islice(rows, limit))
    for i, block in enumerate(_blocks(cells)):
        lines = text.table(head, block, numbers)
        print("\n".join(lines if i == 0 else lines[2:]))
    if next(rows, None) is not None:
        print(f"... the first {limit} rows; --limit N shows more")


def _blocks(cells: Any) -> Any:
    """Rows in blocks that are aligned by themselves; one empty block if there are no rows."""
    block = list(itertools.islice(cells, 1_000))
    yield block
    while block := list(itertools.islice(cells, 1_000)):
        yield block


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))
