"""`pageseek rewrite SOURCE`: rewrites a Parquet file, all rows of several, or a table: sorted or clustered, in small pages, with indexes."""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import asdict
from typing import Any

from pageseek.base.progress import interactive
from pageseek.cli.arguments import (
    SOURCE,
    Added,
    UsageError,
    add_table,
    command,
    keys,
    names,
    positive,
    rates,
    sources,
)
from pageseek.cli.whole_files import SAID, STDOUT, add_output, destination, tell
from pageseek.rewriting.layout import CODECS, PAGE_ROWS

SIZE = re.compile(r"(\d+)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
KINDS = "lookup", "bitmap", "distinct", "trigram", "bloom", "file_bloom"
UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}  # powers of two
# arguments of the function as errors name them, and the same options of the command
WORDS = (
    ("sort_by and cluster_by", "--sort-by and --cluster-by"),
    ("sort_by", "--sort-by"),
    ("cluster_by", "--cluster-by"),
    ("page_rows=", "--page-rows "),
    ("row_group_rows=", "--row-group-rows "),
    ("file_rows and file_bytes", "--file-rows and --file-bytes"),
    ("file_rows=", "--file-rows "),
    ("file_bytes=", "--file-bytes "),
    ("memory_limit=", "--memory-limit "),
    ("spill_folder=", "--spill-folder "),
    ("codec=", "--codec "),
    ("where= chooses", "--where chooses"),
    ("without where=", "without --where"),
    ("where=", "--where "),
)


def add_parser(commands: Any) -> None:
    """Add the subcommand."""
    made = command(
        commands, "rewrite", "rewrite a file or a table: sorted or clustered, in small pages, with indexes",
        "Rewrites a file, all rows of several, or a table: sorted or clustered, in small pages, with indexes.",
        """pageseek rewrite orders.parquet --sort-by o_custkey --output sorted.parquet
        pageseek rewrite 'sales/*.parquet' --cluster-by id,day --file-bytes 256M --output clustered/
        pageseek rewrite tables/sales --in-place --sort-by day:desc""",
        _run,
    )  # fmt: skip
    made.add_argument("source", nargs="+", help=SOURCE)
    where = made.add_mutually_exclusive_group(required=True)
    add_output(where, ", with --file-rows a folder")
    where.add_argument("--in-place", action="store_true", help="replace the file; exchange the files of a Delta Lake table by a commit")  # fmt: skip
    made.add_argument("--where", metavar="FILTER", help="with --in-place: only the partitions of a table that pass, such as \"day = '2026-01-01'\"")  # fmt: skip
    made.add_argument(
        "--overwrite", action="store_true", help="let --output replace a file that is there"
    )
    order = made.add_mutually_exclusive_group()
    order.add_argument(
        "--sort-by",
        type=_sorting,
        action=Added,
        default=[],
        metavar="A,B:desc",
        help="sort all rows by these columns",
    )
    order.add_argument("--cluster-by", type=names, action=Added, default=[], metavar="A,B", help="put rows together that are close in all of these columns")  # fmt: skip
    made.add_argument("--page-rows", type=positive, default=PAGE_ROWS, metavar="N", help=f"rows of a page (default: {PAGE_ROWS:,})")  # fmt: skip
    made.add_argument("--row-group-rows", type=positive, metavar="N", help="rows of a row group (default: a million, or 128 MiB in memory)")  # fmt: skip
    made.add_argument(
        "--file-rows",
        type=positive,
        metavar="N",
        help="rows of a file: --output is a folder of several",
    )
    made.add_argument("--file-bytes", type=_size, metavar="SIZE", help="about the bytes of a file, such as 256M, instead of --file-rows (default for tables: 128M)")  # fmt: skip
    made.add_argument(
        "--codec", choices=CODECS, default="zstd", help="how pages are compressed (default: zstd)"
    )
    made.add_argument("--lookup", type=keys, action=Added, default=[], metavar="A,(B,C)", help="columns, and keys of several, whose rows are found by value (pageseek index attach)")  # fmt: skip
    for kind in ("bitmap", "distinct", "trigram"):
        made.add_argument(f"--{kind}", type=names, action=Added, default=[], metavar="A,B", help="columns that get an index of this kind (pageseek index attach)")  # fmt: skip
    made.add_argument("--bloom", type=rates, action=Added, default={}, metavar="A,B=0.001", help="columns that get Bloom filters, with their rate of false positives")  # fmt: skip
    made.add_argument("--file-bloom", type=rates, action=Added, default={}, metavar="A,B=0.001", help="columns that get one Bloom filter of a whole file")  # fmt: skip
    made.add_argument("--memory-limit", type=_size, metavar="SIZE", help="memory to take, such as 2G (default: a quarter of the machine's)")  # fmt: skip
    made.add_argument("--spill-folder", metavar="FOLDER", help="where rows wait that do not fit")
    made.add_argument("--json", action="store_true", help="as JSON")
    add_table(made)


def _sorting(value: str) -> list[tuple[str, str]]:
    made = []
    for name in names(value):
        column, colon, way = name.rpartition(":")
        down = colon and way.lower() in ("desc", "descending")
        up = colon and way.lower() in ("asc", "ascending")
        made.append((column if down or up else name, "descending" if down else "ascending"))
    return made


def _size(value: str) -> int:
    found = SIZE.fullmatch(value.strip())
    if found is None:
        raise argparse.ArgumentTypeError(f"{value!r} is no size, such as 512M or 2G")
    return int(found[1]) << UNITS[found[2].lower()]


def _run(options: argparse.Namespace) -> int:
    from pageseek.rewriting.rewrite import rewrite  # late: few commands need it

    several = options.file_rows is not None or options.file_bytes is not None
    if options.output == STDOUT and several:
        raise UsageError("--output - is one file: leave out --file-rows and --file-bytes")
    wanted = {name: getattr(options, name) for name in KINDS}
    with destination(options) as output:
        made = rewrite(
            sources(options.source),
            output,
            sort_by=options.sort_by,
            cluster_by=options.cluster_by,
            page_rows=options.page_rows,
            row_group_rows=options.row_group_rows,
            file_rows=options.file_rows,
            file_bytes=options.file_bytes,
            codec=options.codec,
            indexes={name: columns for name, columns in wanted.items() if columns},
            in_place=options.in_place,
            where=options.where,
            overwrite=options.overwrite,
            memory_limit=options.memory_limit,
            spill_folder=options.spill_folder,
            table=options.table,
            progress=interactive(),
        )
    if not options.json:
        from pageseek.cli.text import safe  # late: help needs none

        if options.output == STDOUT:
            made.files = [SAID]
        tell(options, safe(str(made)))
        return 0
    indexes = [
        {"path": one.path, "kind": kind, "column": column, "chunks": n}
        for one in made.indexes
        for (kind, column), n in one.added.items()
    ]
    print(json.dumps(asdict(made) | {"indexes": indexes}))
    return 0
