"""`pageseek index attach|list|verify|detach FILE`: indexes inside a Parquet file, which is a path or a URL."""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pageseek.base.errors import PageseekError
from pageseek.base.progress import interactive
from pageseek.cli import terminal, text
from pageseek.cli.arguments import (
    STDIN,
    Added,
    UsageError,
    add_table,
    command,
    expanded,
    keys,
    names,
    rates,
    sources,
)
from pageseek.cli.whole_files import SAID, STDOUT, add_output, destination, tell
from pageseek.cli.wording import in_options

if TYPE_CHECKING:
    from pageseek.index import Attached, AttachedFiles


def add_parser(commands: Any) -> None:
    """Add the subcommand and its actions."""
    made = command(
        commands, "index", "add indexes to a file, list, verify or remove them",
        "Adds indexes to a file, lists, verifies or removes them. The data pages stay as they are.",
        """pageseek index attach orders.parquet --output indexed.parquet --bloom o_custkey
        pageseek index attach 'sales/*.parquet' --in-place --lookup id
        pageseek index list indexed.parquet
        pageseek index verify indexed.parquet
        pageseek index detach indexed.parquet --in-place""",
    )  # fmt: skip
    actions = made.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)
    one = command(
        actions, "attach", "add page index, Bloom filters, lists of values, and others",
        "Adds a page index, Bloom filters, lists of values and other indexes to files.",
        """pageseek index attach orders.parquet --output indexed.parquet
        pageseek index attach orders.parquet --in-place --lookup o_orderkey --bitmap o_orderstatus
        pageseek index attach 'sales/*.parquet' --in-place --bloom id=0.001""",
        _attach,
    )  # fmt: skip
    one.add_argument("file", nargs="+", help="a file, - for one on standard input; several, a folder or a glob with --in-place")  # fmt: skip
    one.add_argument(
        "--page-index", type=_columns, action=Added, default=True, metavar="A,B|all|none",
        help="columns that get a page index where they have none (default: all)",
    )  # fmt: skip
    one.add_argument("--bloom", type=rates, action=Added, default={}, metavar="A,B=0.001", help="columns that get Bloom filters, with their rate of false positives (default: 0.01)")  # fmt: skip
    one.add_argument("--distinct", type=names, action=Added, default=[], metavar="A,B", help="columns whose different values are listed")  # fmt: skip
    one.add_argument("--lookup", type=keys, action=Added, default=[], metavar="A,(B,C)", help="columns whose rows are found by value, in any order; several in parentheses are one key")  # fmt: skip
    one.add_argument("--bitmap", type=names, action=Added, default=[], metavar="A,B", help="columns of few values, whose rows are listed for each value")  # fmt: skip
    one.add_argument("--trigram", type=names, action=Added, default=[], metavar="A,B", help="columns of texts that LIKE searches for parts")  # fmt: skip
    one.add_argument("--file-bloom", type=rates, action=Added, default={}, metavar="A,B=0.001", help="columns that get one Bloom filter of the whole file")  # fmt: skip
    one.add_argument(
        "--footer", action="store_true", help="say where each column chunk stands in a large footer"
    )
    one.add_argument("--distinct-index", metavar="A", help="a column of strings whose values are listed in the form that DataFusion published")  # fmt: skip
    one.add_argument("--replace", action="store_true", help="rebuild what is there")
    two = command(
        actions, "detach", "remove what was attached", "Removes what was attached to a file.",
        """pageseek index detach indexed.parquet --in-place
        pageseek index detach indexed.parquet --kinds bloom --output smaller.parquet
        pageseek index detach 'sales/*.parquet' --in-place""",
        _detach,
    )  # fmt: skip
    two.add_argument("file", nargs="+", help="a file, - for one on standard input; several, a folder or a glob with --in-place")  # fmt: skip
    two.add_argument("--kinds", type=names, action=Added, metavar="A,B", help="of these kinds only: page_index, bloom, distinct, lookup, bitmap, trigram, file_bloom, footer")  # fmt: skip
    for adding in (one, two):
        where = adding.add_mutually_exclusive_group(required=True)
        add_output(where)
        where.add_argument("--in-place", action="store_true", help="replace the file")
        adding.add_argument(
            "--overwrite", action="store_true", help="let --output replace what is there"
        )
    for name, run, what in (
        ("list", _list, "the indexes that a file has"),
        ("verify", _verify, "hold every index against the data; exit code 1 where one is wrong"),
    ):
        made = command(
            actions, name, what, f"{what[0].upper()}{what[1:]}.",
            f"pageseek index {name} indexed.parquet\npageseek index {name} 'sales/*.parquet' --json", run,
        )  # fmt: skip
        made.add_argument("file", nargs="+", help="files, folders or globs; the folder of a table")
        if run is _verify:
            made.add_argument("--distinct-index", metavar="A", help="the column that a list in the published form is of")  # fmt: skip
    for action in actions.choices.values():
        action.add_argument("--json", action="store_true", help="as JSON")
        add_table(action)


def _columns(value: str) -> bool | list[str]:
    return {"all": True, "none": False}.get(value, names(value))


def _attach(options: argparse.Namespace) -> int:
    from pageseek.index import attach, attach_all

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
    if _several(options):
        return _said_of_all(
            attach_all(files if len(files) > 1 else files[0], **indexes), options.json
        )
    source = _source(files, options)
    with destination(options) as output:
        made = attach(
            source,
            output=output,
            in_place=options.in_place,
            overwrite=options.overwrite,
            **indexes,
        )
    return _said(made, options)


def _several(options: argparse.Namespace) -> bool:
    """Whether many files are changed in place; wrong combinations are refused."""
    files = options.file
    if STDIN in files and len(files) > 1:
        sources(files)  # refuses it
    if len(files) > 1 and not options.in_place:
        raise UsageError("several files go with --in-place: --output is of one")
    return bool(options.in_place) and _are_several(files)


def _source(files: list[str], options: argparse.Namespace) -> Any:
    if options.in_place and files == [STDIN]:
        raise UsageError(
            "-: standard input is not changed in place: write the file elsewhere, by --output FILE"
        )
    return sources(files)


def _detach(options: argparse.Namespace) -> int:
    from pageseek.index import detach

    if _several(options):
        return _detach_all(options)
    source = _source(options.file, options)
    with destination(options) as output:
        made = detach(
            source,
            options.kinds,
            output=output,
            in_place=options.in_place,
            overwrite=options.overwrite,
            table=options.table,
        )
    return _said(made, options)


def _detach_all(options: argparse.Namespace) -> int:
    """Each file by itself. One that fails stays as it is, and the others go on."""
    from pageseek.base.progress import watched_steps
    from pageseek.base.report import Report
    from pageseek.datasets.sources import files_of
    from pageseek.index import AttachedFiles, detach
    from pageseek.index import list as list_indexes
    from pageseek.index.targets import refuse_tables

    began = time.monotonic()
    found = files_of(options.file, table=options.table)
    refuse_tables(found)
    made, every = AttachedFiles(), set[str]()
    with watched_steps("files", len(found.files), interactive(), Report()) as step:
        for file in found.files:
            try:
                there = {one.kind for one in list_indexes(file, table=False) if one.attached}
                every |= there
                kinds = None if options.kinds is None else sorted(there.intersection(options.kinds))
                one = detach(file, kinds, in_place=True, table=options.table)
            except (OSError, PageseekError) as error:
                made.failed[file.name] = error
            else:
                (made.files if one.added else made.unchanged).append(one)
            step()
    made.seconds = time.monotonic() - began
    code = _said_of_all(made, options.json)
    if missing := sorted(set(options.kinds or ()) - every):  # misspelt, perhaps
        raise ValueError(f"no index of kind {missing[0]!r} was attached to any of these files")
    return code


def _said(made: Attached, options: argparse.Namespace) -> int:
    if not options.json:
        if options.output == STDOUT:
            made.path = SAID
        tell(options, text.safe(str(made)))
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
        print(text.safe(in_options(str(made))))
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


def _each_file(options: argparse.Namespace) -> list[Any]:
    """The files that were named, one by one, those of folders too; a table is one."""
    from pageseek.datasets.sources import files_of

    made: list[Any] = []
    for one in expanded(options.file):
        found = files_of(one, table=options.table)
        several = found.table is None and len(found.files) > 1
        made += found.files if several else [one]
    return made


def _list(options: argparse.Namespace) -> int:
    from pageseek.index import list as list_indexes

    files = _each_file(options)
    made = [
        (str(getattr(file, "name", file)), list_indexes(file, table=options.table))
        for file in files
    ]
    if options.json:
        records = {name: [asdict(one) for one in found] for name, found in made}
        print(json.dumps(records if len(files) > 1 else records[made[0][0]]))
        return 0
    for number, (file, found) in enumerate(made):
        if len(files) > 1:
            print(("\n" if number else "") + terminal.stdout().bold(text.safe(file)))
        if not found:
            print(text.safe(f"{file}: no indexes"))
            continue
        rows = [
            (one.kind, text.shown(one.column, 200), f"{one.chunks:,}", text.size(one.bytes), "attached" if one.attached else "writer")
            for one in found
        ]  # fmt: skip
        head = ("kind", "column", "chunks", "bytes", "by")
        print("\n".join(terminal.table(head, rows, (2, 3), look=terminal.stdout())))
    return 0


def _verify(options: argparse.Namespace) -> int:
    from pageseek.index import verify

    files = _each_file(options)
    records, wrong = [], False
    for file in files:
        found = verify(
            file,
            distinct_index=options.distinct_index,
            progress=interactive(),
            table=options.table,
        )
        wrong |= not found.ok
        records.append({"path": found.path, "checked": found.checked, "findings": [one._asdict() for one in found.findings]})  # fmt: skip
        if not options.json:
            print(text.safe(str(found)))
    if options.json:
        print(json.dumps(records[0] if len(files) == 1 else records))
    return 1 if wrong else 0
