"""`pageseek inspect FILE`: draws a file, its row groups, column chunks and pages. Of several files it shows a table."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pageseek.base.errors import CorruptFileError, NoColumnError, PredicateError
from pageseek.base.report import counted
from pageseek.cli import terminal, text
from pageseek.cli.arguments import SOURCE, UsageError, add_table, command, sources
from pageseek.cli.inspect_files import MOST_FILES, PARTS, parts_said, show
from pageseek.cli.plots import add_plot, check_plot, saved

if TYPE_CHECKING:
    from pageseek.format.parquet_file import LeafColumn, ParquetFile
    from pageseek.storage import Source

Bounds = tuple[int | float | None, int | float | None]
# nearly every writer lists these for its levels; they are shown only if a chunk has no other
LEVELS_ONLY = ("RLE", "BIT_PACKED")
LEAST_STRIP, MOST_STRIP = 16, 80  # characters of a strip on a terminal
LONGEST_BOUND = 24  # characters of a text
MOST_CHUNKS = 400  # lines of the table of chunks; the rest is only counted


def add_parser(commands: Any) -> None:
    """Add the subcommand."""
    made = command(
        commands, "inspect", "draw a file: row groups, chunks, pages; list the files of a folder",
        "Draws a file, its row groups, column chunks and pages. Of several files it shows a table, a line for each.",
        """pageseek inspect orders.parquet
        pageseek inspect sales/
        pageseek inspect orders.parquet --column o_orderkey --column o_custkey
        pageseek inspect orders.parquet --column o_orderkey --plot bounds.png""",
        run,
    )  # fmt: skip
    made.add_argument("file", nargs="+", help=SOURCE)
    made.add_argument(
        "--column",
        action="append",
        metavar="NAME",
        help="only this column, with its pages; repeatable",
    )
    made.add_argument(
        "--pages",
        action="store_true",
        help="the pages of every column; several files are drawn one after the other then, as with --column",
    )
    add_plot(made, "draw the bounds of the pages of each column, in place of the table")
    made.add_argument("--json", action="store_true", help="the same as JSON; of several files an array")  # fmt: skip
    add_table(made)


def run(options: argparse.Namespace) -> int:
    """Draw a file, or list several. Several are drawn one after the other if columns or pages are asked for."""
    from pageseek.datasets.sources import files_of  # late: it imports pyarrow

    found = files_of(sources(options.file), table=options.table)
    files = found.files
    if options.plot and len(files) > 1:
        raise UsageError(f"--plot draws one file, and these are {len(files):,}")
    check_plot(options)
    if len(files) != 1 and not (options.column or options.pages):
        return show(found, options)
    shown = files if options.json else files[:MOST_FILES]
    made = [one for number, file in enumerate(shown) for one in _drawn(file, options, number)]
    if options.json:
        print(text.to_json(made if len(files) > 1 else made[0]))
    elif len(files) > len(shown):
        print(f"\n... and {len(files) - len(shown):,} more files")
    return 0


def _drawn(source: Source, options: argparse.Namespace, number: int) -> Iterator[dict[str, Any]]:
    from pageseek.format.file_metadata import FileMetadata
    from pageseek.format.parquet_file import ParquetFile

    with ParquetFile(FileMetadata(source, source.open())) as file:
        leaves = file.leaves
        if options.column:
            leaves = [_leaf(file, name) for name in options.column]
        if options.plot:
            from pageseek.pictures.bounds import draw_bounds

            saved(draw_bounds(file, [leaf.name for leaf in leaves]), options)
            if not options.json:
                return
        pages = bool(options.pages or options.column)
        found = describe(file, leaves, pages, not options.json)
        if options.json:
            yield found
        else:
            if number:
                print()
            print("\n".join(draw(file, leaves, found, pages)))


def _leaf(file: ParquetFile, name: str) -> LeafColumn:
    """The leaf of a name. A value in the name of a folder is no column of the file."""
    try:
        return file.leaf(name)
    except NoColumnError:
        from pageseek.storage.hive import partitions_of  # late: for this error only

        folders = os.path.abspath(file.name).split(os.sep)[:-1]
        if name in dict(partitions_of(folders)):
            raise PredicateError(
                f"{file.name}: {name!r} is in the names of folders, and the file does not store it"
            ) from None
        raise


# -- facts ------------------------------------------------------------------------------------


def describe(
    file: ParquetFile, leaves: Sequence[LeafColumn], pages: bool, table: bool = False
) -> dict[str, Any]:
    """The file as plain data. `table`: with bounds as a table shows them."""
    columns = [_column(file, leaf, pages, table) for leaf in leaves]
    chunks = [chunk for column in columns for chunk in column["chunks"]]
    return {
        "file": file.name,
        "bytes": file.size,
        "rows": file.num_rows,
        "row_groups": [
            {"rows": group.num_rows, "bytes": group.total_compressed_size}
            for group in file.row_groups
        ],
        "created_by": file.created_by,
        "leaves": file.num_leaves,
        "chunks_with": {part: sum(chunk[part] for chunk in chunks) for part in PARTS}
        | {"total": len(chunks)},
        "columns": columns,
    }


def _column(file: ParquetFile, leaf: LeafColumn, pages: bool, table: bool) -> dict[str, Any]:
    from pageseek.cli.values import plain  # late: it imports pyarrow

    lower, upper = (plain(bound, table) for bound in file.statistics(leaf))
    chunks = []
    for group, chunk in enumerate(file.chunks(leaf)):
        offsets = _offset_index(file, group, leaf)
        made: dict[str, Any] = {
            "row_group": group,
            "codec": chunk.codec,
            "encodings": [e for e in chunk.encodings if e not in LEVELS_ONLY]
            or list(chunk.encodings),
            "bytes": chunk.compressed_size,
            "uncompressed": chunk.uncompressed_size,
            "nulls": chunk.null_count,
            "min": lower[group],
            "max": upper[group],
            "statistics": chunk.has_statistics,
            "column_index": chunk.column_index is not None,
            "offset_index": offsets is not None,
            "bloom_filter": chunk.bloom_filter_offset is not None,
            "page_count": None if offsets is None else offsets.num_pages,
        }
        if pages:
            made["pages"] = _pages(file, group, leaf, table)
        chunks.append(made)
    return {"name": leaf.name, "type": str(leaf.type), "chunks": chunks}


def _offset_index(file: ParquetFile, group: int, leaf: LeafColumn) -> Any:
    try:
        return file.offset_index(group, leaf)
    except CorruptFileError:
        return None


def _pages(file: ParquetFile, group: int, leaf: LeafColumn, table: bool) -> list[dict[str, Any]]:
    from pageseek.cli.values import plain  # late: it imports pyarrow

    offsets = _offset_index(file, group, leaf)
    if offsets is None:
        return []
    index = file.column_index(group, leaf) if leaf.max_repetition_level == 0 else None
    bounds = [] if index is None else [plain(bound, table) for bound in (index.lower, index.upper)]
    made = []
    for page in range(offsets.num_pages):
        first = int(offsets.first_row[page])
        counts = None if index is None else index.null_counts
        made.append(
            {
                "page": page,
                "first_row": first,
                "rows": int(offsets.first_row[page + 1]) - first,
                "offset": int(offsets.offset[page]),
                "bytes": int(offsets.compressed_size[page]),
                "nulls": None if counts is None else int(counts[page]),
                "min": bounds[0][page] if bounds else None,
                "max": bounds[1][page] if bounds else None,
            }
        )
    return made


# -- drawing ----------------------------------------------------------------------------------


def draw(
    file: ParquetFile, leaves: Sequence[LeafColumn], found: dict[str, Any], pages: bool
) -> Iterator[str]:
    """The lines that the command prints."""
    look = terminal.stdout()
    yield look.bold(text.safe(found["file"]))
    groups = found["row_groups"]
    counts = (found["rows"], "row"), (len(groups), "row group"), (found["leaves"], "column")
    yield f"  {', '.join(counted(n, unit) for n, unit in counts)}, {text.size(found['bytes'])}"
    yield f"  written by {text.shown(found['created_by'] or 'an unnamed writer', 200)}"
    have = found["chunks_with"]
    yield f"  {parts_said(have)}"
    if not have["column_index"] and have["total"]:
        yield look.yellow(
            "  without a column index, whole column chunks are read; `pageseek index attach` adds one"
        )
    yield ""
    yield from _draw_chunks(groups, leaves, found["columns"])
    if pages:
        for leaf, column in zip(leaves, found["columns"], strict=True):
            yield ""
            yield from _draw_pages(file, leaf, column)


def _draw_chunks(
    groups: Sequence[Any], leaves: Sequence[LeafColumn], columns: Sequence[dict[str, Any]]
) -> Iterator[str]:
    head = [
        "group", "rows", "column", "type", "codec", "encodings", "bytes", "pages", "nulls", "min", "max",
    ]  # fmt: skip
    rows: list[list[str]] = []
    for group, facts in enumerate(groups):
        for place, (leaf, column) in enumerate(zip(leaves, columns, strict=True)):
            if len(rows) == MOST_CHUNKS:
                break
            chunk = column["chunks"][group]
            rows.append(
                [
                    f"{group}" if place == 0 else "",
                    f"{facts['rows']:,}" if place == 0 else "",
                    text.shown(column["name"], 200),
                    text.shown(column["type"], 200),
                    chunk["codec"],
                    "+".join(chunk["encodings"]),
                    text.size(chunk["bytes"]),
                    "?" if chunk["page_count"] is None else f"{chunk['page_count']:,}",
                    "?" if chunk["nulls"] is None else f"{chunk['nulls']:,}",
                    _bound(chunk["min"], leaf),
                    _bound(chunk["max"], leaf),
                ]
            )
    yield from terminal.table(
        head, rows, (0, 1, 6, 7, 8), look=terminal.stdout(), drop=(5, 4, 8, 3, 1, 7, 6, 10, 9)
    )
    left = len(groups) * len(columns) - len(rows)
    if left:
        yield f"... and {left:,} more chunks; --column NAME shows one column, --json all"


def _bound(value: Any, leaf: LeafColumn) -> str:
    """A bound on one line: a date or a time is whole, of a long text both ends are shown, since many begin alike."""
    import pyarrow as pa  # late: help needs none

    moment = pa.types.is_temporal(leaf.type)
    longest = len(value) if moment and isinstance(value, str) else LONGEST_BOUND
    return text.shown(value, longest, ends=True)


def _draw_pages(file: ParquetFile, leaf: LeafColumn, column: dict[str, Any]) -> Iterator[str]:
    look = terminal.stdout()
    yield look.bold(text.shown(f"pages of {column['name']} ({column['type']})", 400))
    if not any(chunk["pages"] for chunk in column["chunks"]):
        yield "  not known: the file has no offset index"
        return
    places = _places(file, leaf)
    known = [value for at in places.values() for value in at if value is not None]
    finite = [value for value in known if math.isfinite(value)]
    least, most = (min(finite), max(finite)) if finite else (0, 0)
    ranged = most > least
    head = ["group", "page", "first row", "rows", "bytes", "nulls", "min", "max"]
    if ranged:
        head.append("from least to greatest value of the column")
    rows: list[list[str]] = []
    bounds: list[Bounds] = []
    for chunk in column["chunks"]:
        for page in chunk["pages"]:
            row = [
                str(chunk["row_group"]) if page["page"] == 0 else "",
                str(page["page"]),
                f"{page['first_row']:,}",
                f"{page['rows']:,}",
                text.size(page["bytes"]),
                "?" if page["nulls"] is None else f"{page['nulls']:,}",
                _bound(page["min"], leaf),
                _bound(page["max"], leaf),
            ]
            if ranged:
                bounds.append(places[chunk["row_group"], page["page"]])
            rows.append(row)
    if ranged:
        width = text.STRIP
        if look.width is not None:  # the strip takes what the numbers and bounds leave
            others = sum(max(terminal.wide(row[i]) for row in [head, *rows]) + 2 for i in range(8))
            width = min(max(look.width - others - 2, LEAST_STRIP), MOST_STRIP)
            if len(head[-1]) > width + 2:
                head[-1] = terminal.cut("least to greatest", width + 2)
        for row, (low, high) in zip(rows, bounds, strict=True):
            row.append("|" + text.strip(low, high, least, most, width) + "|")
    drop = (4, 3, 5, 7, 6)
    for line in terminal.table(head, rows, (0, 1, 2, 3, 4, 5), look=look, drop=drop, fixed=(8,)):
        yield _bars(line, look) if ranged else line
    endless = sum(
        any(value is not None and math.isinf(value) for value in ends) for ends in places.values()
    )
    if endless:
        marks = " (< and > where a bar is drawn to its end)" if ranged else ""
        yield look.dim(f"infinite bounds: {endless:,} of {counted(len(places), 'page')}{marks}")


def _bars(line: str, look: terminal.Look) -> str:
    """A line whose strip is drawn in blocks and in colour."""
    if not look.colour or not line.endswith("|"):
        return line
    start = line.index("|", line.rindex(" "))
    strip = line[start + 1 : -1]
    full, empty = ("█", "·") if look.drawn else ("#", ".")
    drawn = strip.strip(".")
    if "?" in drawn:
        return line
    before = strip.index(drawn)
    after = len(strip) - before - len(drawn)
    bar = look.dim(empty * before) + look.yellow(drawn.replace("#", full))
    return f"{line[:start]}|{bar}{look.dim(empty * after)}|"


def _places(file: ParquetFile, leaf: LeafColumn) -> dict[tuple[int, int], Bounds]:
    """(row group, page) -> its bounds as exact numbers; None where they are not known, or no numbers."""
    from pageseek.pictures.exact import exact_numbers  # late: it imports pyarrow

    found: dict[tuple[int, int], Bounds] = {}
    for group in range(file.num_row_groups):
        offsets = _offset_index(file, group, leaf)
        if offsets is None:
            continue
        index = file.column_index(group, leaf) if leaf.max_repetition_level == 0 else None
        ends = [] if index is None else [exact_numbers(of) for of in (index.lower, index.upper)]
        unknown = [None] * offsets.num_pages
        lower, upper = (of or unknown for of in ends or (None, None))
        for page, bounds in enumerate(zip(lower, upper, strict=True)):
            found[group, page] = bounds
    return found
