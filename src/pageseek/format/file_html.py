"""An open file for notebooks and consoles: its columns and how large they are, by its footer alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pageseek.base import html
from pageseek.base.errors import PageseekError
from pageseek.base.report import counted, format_size

if TYPE_CHECKING:
    from pageseek.format.parquet_file import LeafColumn, ParquetFile

MOST_COLUMNS = 50
MOST_CHUNKS = 5_000  # whose statistics are looked at
LONGEST = 32  # characters of a value: a moment with microseconds and its offset
NAMED = 8  # columns on one line


def line(file: ParquetFile) -> str:
    """The file on one line."""
    groups = counted(file.num_row_groups, "row group")
    said = f"{file.name}: {counted(file.num_rows, 'row')}, {groups}, {format_size(file.size)}"
    try:
        fields = list(file.schema)
    except (PageseekError, OSError):  # a column that cannot be read, or a closed file
        return f"{said}, {file.num_leaves} leaves"
    named = [f"{field.name}: {field.type}" for field in fields[:NAMED]]
    if len(fields) > NAMED:
        named.append(f"and {len(fields) - NAMED:,} more columns")
    return f"{said}; {', '.join(named) or 'no columns'}"


def render(file: ParquetFile) -> str:
    """The file as HTML."""
    try:
        return _render(file)
    except (PageseekError, OSError):  # a damaged file, or a closed one
        return html.block("ParquetFile", line(file))


def _render(file: ParquetFile) -> str:
    most = max(min(MOST_COLUMNS, MOST_CHUNKS // max(file.num_row_groups, 1)), 1)
    leaves = file.leaves[:most]
    chunks = [file.chunks(leaf) for leaf in leaves]
    sizes = [sum(chunk.compressed_size for chunk in some) for some in chunks]
    rows = []
    for leaf, some, size in zip(leaves, chunks, sizes, strict=True):
        nulls = [chunk.null_count for chunk in some]
        least, greatest = _bounds(file, leaf)
        rows.append(
            (
                leaf.name,
                str(leaf.type),
                ", ".join(dict.fromkeys(chunk.codec for chunk in some)),
                format_size(size),
                html.share(size, max(sizes, default=0)),
                "?" if None in nulls else f"{sum(n or 0 for n in nulls):,}",
                least,
                greatest,
                "all" if some and all(chunk.column_index for chunk in some) else "-",
                "all" if some and all(chunk.bloom_filter_offset for chunk in some) else "-",
            )
        )
    head = ("column", "type", "codec", "bytes", "", "nulls", "min", "max", "page index", "Bloom filter")  # fmt: skip
    left = file.num_leaves - len(leaves)
    counts = (file.num_rows, "row"), (file.num_row_groups, "row group"), (file.num_leaves, "column")
    return html.block(
        f"ParquetFile {file.name}",
        f"{', '.join(counted(n, unit) for n, unit in counts)}, {format_size(file.size)}",
        html.small(f"written by {file.created_by or 'an unnamed writer'}"),
        html.table(head, rows, right=(3, 5)) if rows else "",
        html.small(f"and {left:,} more columns") if left else "",
    )


def _bounds(file: ParquetFile, leaf: LeafColumn) -> tuple[str, str]:
    """The least and greatest value of a column in all row groups, as far as statistics have them."""
    lower, upper = file.statistics(leaf)
    return _shown(lower, min), _shown(upper, max)


def _shown(values: Any, chosen: Any) -> str:
    try:
        known = [value for value in values.to_pylist() if value is not None]
        found = chosen(known, default="-")
        text = f"{found:.6g}" if isinstance(found, float) else str(found)
    except (ValueError, OverflowError, TypeError, ArithmeticError):  # Python has no such value
        return "?"
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
