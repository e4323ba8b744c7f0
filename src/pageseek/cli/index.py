"""`pageseek index attach|list|verify|detach FILE`: indexes inside a Parquet file, which is a path or a URL."""

from __future__ import annotations

import argparse
import json
import os
import re
from dataclasses import asdict
from typing import Any

from pageseek.base.progress import interactive
from pageseek.cli import text
from pageseek.cli.scan import add_table, names
from pageseek.index import Attached, AttachedFiles, attach, attach_all, detach, verify
from pageseek.index import list as list_indexes

# arguments of the functions as errors name them, and the same options of the command
WORDS = (
    ("overwrite=True", "--overwrite"),
    ("in_place=True", "--in-place"),
    ("replace=True", "--replace"),
    ("output=PATH", "--output FILE"),
    ("output=...", "--output FILE"),
    ("output=", "--output "),
    ("distinct=[...]", "--distinct"),
    ("lookup=[...]", "--lookup"),
    ("bitmap=[...]", "--bitmap"),
    ("trigram=[...]", "--trigram"),
    ("file_bloom=[...]", "--file-bloom"),
    ("bloom=[...]", "--bloom"),
    (
        "commit it through the table (Delta Lake: table=DeltaTable(...); Iceberg: table=catalog.load_table(...))",
        "commit it through the table (in Python: table= of pageseek.index.attach)",
    ),
)


def in_options(message: str) -> str:
    """The message of an error with the options of the command in place of arguments."""
    for word, option in WORDS:
        message = message.replace(word, option)
    return message


def add_parser(commands: Any) -> None:
    """Add the subcommand and its actions."""
    made = commands.add_parser("index", help="add indexes to a file, list, verify or remove them", description=__doc__)  # fmt: skip
    actions = made.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)
    one = actions.add_parser(
        "attach", help="add page index, Bloom filters, lists of values, and others"
    )
    one.add_argument("file", nargs="+", help="a file; several, a folder or a glob with --in-place")
    one.add_argument(
        "--page-index", type=_columns, default=True, metavar="A,B|all|none",
        help="columns that get a page index where they have none (default: all)",
    )  # fmt: skip
    one.add_argument("--bloom", type=rates, default={}, metavar="A,B=0.001", help="columns that get Bloom filters, with their rate of false positives (default: 0.01)")  # fmt: skip
    one.add_argument("--distinct", type=names, default=[], metavar="A,B", help="columns whose different values are listed")  # fmt: skip
    one.add_argument("--lookup", type=keys, default=[], metavar="A,(B,C)", help="columns whose rows are found by value, in any order; several in parentheses are one key")  # fmt: skip
    one.add_argument("--bitmap", type=names, default=[], metavar="A,B", help="columns of few values, whose rows are listed for each value")  # fmt: skip
    one.add_argument("--trigram", type=names, default=[], metavar="A,B", help="columns of texts that LIKE searches for parts")  # fmt: skip
    one.add_argument("--file-bloom", type=rates, default={}, metavar="A,B=0.001", help="columns that get one Bloom filter of the whole file")  # fmt: skip
    one.add_argument(
        "--footer", action="store_true", help="say where each column chunk stands in a large footer"
    )
    one.add_argument("--distinct-index", metavar="A", help="a column of strings whose values are listed in the form that DataFusion published")  # fmt: skip
    one.add_argument("--replace", action="store_true", help="build anew what is there")
    one.set_defaults(run=_attach)
    two = actions.add_parser("detach", help="remove what was attached")
    two.add_argument("file")
    two.add_argument("--kinds", type=names, metavar="A,B", help="of these kinds only: page_index, bloom, distinct, lookup, bitmap, trigram, file_bloom, footer")  # fmt: skip
    two.set_defaults(run=_detach)
    for adding in (one, two):
        where = adding.add_mutually_exclusive_group(required=True)
        where.add_argument("--output", metavar="FILE", help="where the new file goes")
        where.add_argument("--in-place", action="store_true", help="replace the file")
        adding.add_argument(
            "--overwrite", action="store_true", help="let --output replace what is there"
        )
    for name, run, what in (
        ("list", _list, "the indexes that a file has"),
        ("verify", _verify, "hold every index against the data; exit code 1 where one is wrong"),
    ):
        made = actions.add_parser(name, help=what)
        made.add_argument("file")
        made.set_defaults(run=run)
        if run is _verify:
            made.add_argument("--distinct-index", metavar="A", help="the column that a list in the published form is of")  # fmt: skip
    for action in actions.choices.values():
        action.add_argument("--json", action="store_true", help="as JSON")
        add_table(action)


def _columns(value: str) -> bool | list[str]:
    return {"all": True, "none": False}.get(value, names(value))


def keys(value: str) -> list[str | tuple[str, ...]]:
    """Names of columns with commas, and tuples of names in parentheses."""
    made: list[str | tuple[str, ...]] = []
    for part in re.findall(r"\([^()]*\)|[^,]+", value):
        made += [tuple(names(part[1:-1]))] if part.strip().startswith("(") else names(part)
    return made


def rates(value: str) -> dict[str, float]:
    """Columns with commas, each with a rate of false positives if it has one."""
    found = {}
    for name in names(value):
        column, _, rate = name.partition("=")
        try:
            found[column] = float(rate) if rate else 0.01
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{rate!r} is no rate, such as 0.01") from error
    return found


def _attach(options: argparse.Namespace) -> int:
    files = options.file
    indexes = {
        "page_index": options.page_index,
        "bloom": options.bloom,
        "distinct": options.distinct,
        "lookup": options.lookup,
        "bitmap": options.bitmap,
        "trigram": options.trigram,
        "file_bloom": options.file_bloom,
        "footer": options.footer,
        "distinct_index": options.distinct_index,
        "table": options.table,
        "replace": options.replace,
        "progress": interactive(),
    }
    if len(files) > 1 and not options.in_place:
        raise ValueError("several files go with --in-place: --output is of one")
    if options.in_place and _are_several(files):
        return _said_of_all(
            attach_all(files if len(files) > 1 else files[0], **indexes), options.json
        )
    made = attach(
        files[0],
        output=options.output,
        in_place=options.in_place,
        overwrite=options.overwrite,
        **indexes,
    )
    return _said(made, options.json)


def _detach(options: argparse.Namespace) -> int:
    made = detach(
        options.file,
        options.kinds,
        output=options.output,
        in_place=options.in_place,
        overwrite=options.overwrite,
        table=options.table,
    )
    return _said(made, options.json)


def _said(made: Attached, as_json: bool) -> int:
    if not as_json:
        print(made)
        return 0
    print(json.dumps(_record(made)))
    return 0


def _said_of_all(made: AttachedFiles, as_json: bool) -> int:
    if as_json:
        print(json.dumps({
            "files": [_record(one) for one in made.files],
            "unchanged": [_record(one) for one in made.unchanged],
            "failed": {name: in_options(str(error)) for name, error in made.failed.items()},
        }))  # fmt: skip
    else:
        print(in_options(str(made)))
    return 0 if made.ok else 1


def _are_several(files: list[str]) -> bool:
    """Whether names of files may mean several: a list, a folder, or a glob that is no file itself."""
    (first, *others) = files
    if others or os.path.isdir(first):
        return True
    marks = "*" if "://" in first else "*?["  # the URL of a file may have a query
    return not os.path.lexists(first) and any(mark in first for mark in marks)


def _record(made: Attached) -> dict[str, Any]:
    chunks = [
        {"kind": kind, "column": column, "chunks": n} for (kind, column), n in made.added.items()
    ]
    return asdict(made) | {"added": chunks}


def _list(options: argparse.Namespace) -> int:
    found = list_indexes(options.file, table=options.table)
    if options.json:
        print(json.dumps([asdict(one) for one in found]))
        return 0
    if not found:
        print(f"{options.file}: no indexes")
        return 0
    rows = [
        (one.kind, one.column or "-", f"{one.chunks:,}", text.size(one.bytes), "attached" if one.attached else "writer")
        for one in found
    ]  # fmt: skip
    print("\n".join(text.table(("kind", "column", "chunks", "bytes", "by"), rows, (2, 3))))
    return 0


def _verify(options: argparse.Namespace) -> int:
    found = verify(
        options.file,
        distinct_index=options.distinct_index,
        progress=interactive(),
        table=options.table,
    )
    if options.json:
        print(json.dumps({"path": found.path, "checked": found.checked, "findings": [one._asdict() for one in found.findings]}))  # fmt: skip
    else:
        print(found)
    return 0 if found.ok else 1
