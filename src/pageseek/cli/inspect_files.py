"""`pageseek inspect FOLDER`: a table of files, a line each, by their footers alone."""

from __future__ import annotations

import argparse
import os
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pageseek.base.errors import PageseekError
from pageseek.base.report import counted
from pageseek.cli import terminal, text

if TYPE_CHECKING:
    from pageseek.datasets.sources import Found
    from pageseek.format.file_metadata import FileMetadata
    from pageseek.storage import Source

MOST_FILES = 40  # lines of the table; the rest is only counted
MOST_FAILED = 10  # errors that are printed
MOST_NAMED = 3  # writers and codecs that are named
PARTS = ("statistics", "column_index", "offset_index", "bloom_filter")  # that a chunk may have
BUILD = " (build "  # what parquet-mr says of itself behind its version


def show(found: Found, options: argparse.Namespace) -> int:
    """Print the table, or an array of JSON; 1 if a file cannot be opened."""
    records: list[dict[str, Any]] = []
    total = Total()
    for record in _records(found.files):
        total.add(record)
        if options.json or len(records) < MOST_FILES:
            records.append(record)
    if options.json:
        print(text.to_json(records))
    else:
        print("\n".join(_drawn(found, records, total)))
    return 1 if total.failed else 0


def _records(sources: Sequence[Source]) -> Iterator[dict[str, Any]]:
    from pageseek.scanning.plans.open_ahead import open_each  # late: it imports pyarrow

    for source, file in open_each(sources):
        if isinstance(file, Exception):
            yield {"file": source.name, "error": str(file)}
            continue
        try:
            yield describe(file)
        except PageseekError as error:
            yield {"file": source.name, "error": str(error)}


def describe(file: FileMetadata) -> dict[str, Any]:
    """A file as plain data, as far as its footer tells."""
    import numpy as np  # late, as the others: help needs none

    from pageseek.base.report import Report
    from pageseek.format.chunks import CODECS, Chunk
    from pageseek.format.types import ABSENT
    from pageseek.index.attachable import attached_directory

    fields: Sequence[str] = Chunk._fields
    place = {name: i for i, name in enumerate(fields)}
    n = file.num_row_groups
    chunks = np.empty((len(place), 0, n), np.int64)  # by field, leaf and row group
    if n and file.leaves:
        chunks = np.moveaxis(np.stack([file.figures(leaf) for leaf in file.leaves]), 2, 0)

    def there(part: str) -> Any:
        return (chunks[place[f"{part}_offset"]] > 0) & (chunks[place[f"{part}_length"]] > 0)

    have = {
        "statistics": chunks[place["statistics_present"]] == 1,
        "column_index": there("column_index"),
        "offset_index": there("offset_index"),
        "bloom_filter": chunks[place["bloom_filter_offset"]] != ABSENT,
    }
    codecs = Counter(chunks[place["codec"]].ravel().tolist())
    groups = chunks[place["total_compressed_size"]].sum(0).tolist()
    attached = attached_directory(file, Report())
    pointers = () if attached is None else attached.pointers
    return {
        "file": file.name,
        "bytes": file.store.size,
        "rows": file.num_rows,
        "row_groups": [
            {"rows": rows, "bytes": size}
            for rows, size in zip(file.group_rows, groups, strict=True)
        ],
        "created_by": file.created_by,
        "leaves": len(file.leaves),
        "codecs": [
            CODECS[codec] if 0 <= codec < len(CODECS) else str(codec)
            for codec, _ in codecs.most_common()
        ],
        "chunks_with": {part: int(np.count_nonzero(have[part])) for part in PARTS}
        | {"total": len(file.leaves) * n},
        "attached": sorted({one.kind for one in pointers if one.kind not in ("free", "page_index", "bloom")}),
    }  # fmt: skip


class Total:
    """What is counted of all files."""

    def __init__(self) -> None:
        self.files = self.rows = self.groups = self.bytes = 0
        self.have, self.attached = Counter[str](), Counter[str]()
        self.writers, self.codecs = Counter[str](), Counter[str]()
        self.failed: list[str] = []
        self.failures = 0

    def add(self, record: dict[str, Any]) -> None:
        """Count a file."""
        self.files += 1
        if "error" in record:
            self.failures += 1
            if self.failures <= MOST_FAILED:
                self.failed.append(record["error"])
            return
        self.rows += record["rows"]
        self.groups += len(record["row_groups"])
        self.bytes += record["bytes"]
        self.have.update(record["chunks_with"])
        self.attached.update(record["attached"])
        self.writers[_writer(record["created_by"])] += 1
        self.codecs.update(record["codecs"])


def _drawn(found: Found, records: Sequence[dict[str, Any]], total: Total) -> Iterator[str]:
    look = terminal.stdout()
    folder = _folder([record["file"] for record in records])
    title = found.table.what if found.table is not None else folder or "files"
    yield look.bold(text.safe(title))
    yield (
        f"  {counted(total.files, 'file')}, {counted(total.rows, 'row')}, {counted(total.groups, 'row group')}, "
        f"{text.size(total.bytes)}"
        + (f"; {counted(total.failures, 'file')} cannot be opened" if total.failures else "")
    )
    if any(source.deletes for source in found.files):
        yield "  deleted rows are counted here; `pageseek count` leaves them out"
    yield f"  written by {_named(total.writers)}; codec {_named(total.codecs)}"
    yield f"  {parts_said(total.have)}"
    if total.attached:
        kinds = (f"{kind} in {counted(n, 'file')}" for kind, n in sorted(total.attached.items()))
        yield f"  attached: {', '.join(kinds)}"
    if not total.have["column_index"] and total.have["total"]:
        yield look.yellow(
            "  without a column index, whole column chunks are read; `pageseek index attach` adds one"
        )
    yield ""
    yield from _table(records, folder, total, look)
    left = total.files - len(records)
    if left:
        yield f"... and {left:,} more; --json lists all"
    if total.failed:
        yield ""
        for error in total.failed:
            yield look.red(text.safe(" ".join(error.split())))
        if total.failures > len(total.failed):
            yield f"... and {total.failures - len(total.failed):,} more that cannot be opened"
    one = next((record["file"] for record in records if "error" not in record), None)
    if one is not None:
        yield ""
        yield text.safe(f"one file in detail: pageseek inspect {shlex.quote(one)}")


def _table(
    records: Sequence[dict[str, Any]], folder: str, total: Total, look: terminal.Look
) -> Iterator[str]:
    head = ["file", "rows", "groups", "columns", "bytes", "page index", "Bloom filter", "attached", "codec", "written by"]  # fmt: skip
    rows = []
    for record in records:
        name = text.shown(record["file"][len(folder) :], 200)
        if "error" in record:
            rows.append([name, *["?"] * (len(head) - 1)])
            continue
        have = record["chunks_with"]
        pages = min(have["column_index"], have["offset_index"])
        rows.append(
            [
                name,
                f"{record['rows']:,}",
                f"{len(record['row_groups']):,}",
                f"{record['leaves']:,}",
                text.size(record["bytes"]),
                _part(pages, have["total"]),
                _part(have["bloom_filter"], have["total"]),
                ", ".join(record["attached"]) or "-",
                ", ".join(record["codecs"]) or "-",
                text.shown(_writer(record["created_by"]), 40),
            ]
        )
    # what is true of all files stands above the table
    needed = {7: total.attached, 8: len(total.codecs) > 1, 9: len(total.writers) > 1}
    shown = [i for i in range(len(head)) if needed.get(i, True)]
    yield from terminal.table(
        [head[i] for i in shown],
        [[row[i] for i in shown] for row in rows],
        (1, 2, 3, 4),
        look=look,
        drop=[shown.index(i) for i in (3, 9, 8, 2, 7, 6, 5) if i in shown],
    )


def parts_said(have: Mapping[str, int]) -> str:
    """Which parts all chunks have, or how many."""

    def share(part: int, whole: int) -> str:
        if part == 0:
            return "none"
        return "all" if part == whole else f"{part:,} of {whole:,} chunks"

    return ", ".join(
        f"{name.replace('_', ' ')} {share(have[name], have['total'])}" for name in PARTS
    )


def _part(part: int, whole: int) -> str:
    return "-" if part == 0 else "all" if part == whole else f"{part:,} of {whole:,}"


def _folder(names: Sequence[str]) -> str:
    """The folder that all files lie in, with its last slash; empty if there is none."""
    slash = "/" if os.sep == "/" or any("://" in name for name in names) else os.sep
    parts = [name.split(slash)[:-1] for name in names]
    common = []
    for level in zip(*parts, strict=False):
        if len(set(level)) > 1:
            break
        common.append(level[0] + slash)
    return "".join(common)


def _writer(created_by: str | None) -> str:
    """The name and version of a writer, without the commit that it was built from."""
    said = (created_by or "an unnamed writer").partition(BUILD)[0]
    return text.shown(said.replace(" version ", " "), 200)


def _named(names: Counter[str]) -> str:
    """The most frequent names."""
    said = [name for name, _ in names.most_common(MOST_NAMED)]
    if len(names) > MOST_NAMED:
        said.append(f"{len(names) - MOST_NAMED:,} more")
    return ", ".join(said) or "none"
