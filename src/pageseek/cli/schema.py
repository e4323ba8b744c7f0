"""`pageseek schema SOURCE`: columns, their types, nesting, and whether they may be null."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pageseek.cli import terminal, text
from pageseek.cli.arguments import SOURCE, add_table, command, sources

if TYPE_CHECKING:
    import pyarrow as pa

    from pageseek.format.parquet_file import LeafColumn

LONGEST_TYPE = 28  # characters of a type that is never narrowed


def add_parser(commands: Any) -> None:
    """Add the subcommand."""
    made = command(
        commands, "schema", "columns and their types",
        "Lists the columns: Arrow types, nesting, whether values may be null, and the types of one file in Parquet.",
        """pageseek schema orders.parquet
        pageseek schema orders.parquet --json
        pageseek schema 'sales/*.parquet' --arrow""",
        _run,
    )  # fmt: skip
    made.add_argument("source", nargs="+", help=SOURCE)
    form = made.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as JSON")
    form.add_argument("--arrow", action="store_true", help="as pyarrow prints a schema, with its metadata")  # fmt: skip
    add_table(made)


def _run(options: argparse.Namespace) -> int:
    from pageseek.api import open_file, scan

    source = sources(options.source)
    made = scan(source, table=options.table)
    schema = made.schema
    leaves: list[LeafColumn] = []
    if len(made.sources) == 1:
        with open_file(source, table=options.table) as file:
            leaves = file.leaves
    if options.arrow:
        print(text.safe(schema.to_string(show_schema_metadata=True, truncate_metadata=False)))
    elif options.json:
        stored = iter(_by_place(list(_lines(list(schema))), leaves).values())
        print(text.to_json([_record(field, stored) for field in schema]))
    else:
        print("\n".join(_table(schema, leaves)))
    return 0


def _children(kind: pa.DataType) -> list[pa.Field]:
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        return _children(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return []
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    return [kind.field(i) for i in range(kind.num_fields)]


def _record(field: pa.Field, leaves: Iterator[LeafColumn]) -> dict[str, Any]:
    """A field as plain data; `leaves`: those of one file, in the order of the fields without children."""
    made: dict[str, Any] = {
        "name": field.name,
        "type": str(field.type),
        "nullable": field.nullable,
    }
    children = _children(field.type)
    if children:
        made["children"] = [_record(child, leaves) for child in children]
    elif (leaf := next(leaves, None)) is not None:
        made |= {"physical_type": leaf.physical_type, "logical_type": leaf.logical_type}
    return made


def _lines(fields: Sequence[pa.Field], deep: int = 0) -> Iterator[tuple[str, pa.Field, bool]]:
    for field in fields:
        children = _children(field.type)
        yield "  " * deep + text.shown(field.name, 200), field, bool(children)
        yield from _lines(children, deep + 1)


def _by_place(
    fields: Sequence[tuple[str, pa.Field, bool]], leaves: Sequence[LeafColumn]
) -> dict[int, LeafColumn]:
    """The leaf of each field without children, by its place; none if there are other leaves than fields."""
    ends = [place for place, (_, _, inner) in enumerate(fields) if not inner]
    return dict(zip(ends, leaves, strict=True)) if len(ends) == len(leaves) else {}


def _table(schema: pa.Schema, leaves: list[LeafColumn]) -> list[str]:
    """A line a field; the leaves of one file come in the same order, and have types of Parquet."""
    fields = list(_lines(list(schema)))
    stored = _by_place(fields, leaves)
    head = ["column", "type", "null", "stored as"][: 4 if stored else 3]
    rows = []
    for place, (name, field, inner) in enumerate(fields):
        kind = text.safe(str(field.type)).replace("\n", "\\n")
        row = [
            name,
            kind.partition("<")[0] if inner and "<" in kind else kind,
            "yes" if field.nullable else "no",
        ]
        if stored:
            leaf = stored.get(place)
            row.append("" if leaf is None else _stored(leaf))
        rows.append(row)
    # a type that is cut may look like another one
    short = max((terminal.wide(row[1]) for row in rows), default=0) <= LONGEST_TYPE
    fixed = (1, 3) if short else (3,)
    return terminal.table(head, rows, look=terminal.stdout(), drop=(3, 2), fixed=fixed)


def _stored(leaf: LeafColumn) -> str:
    logical = "" if leaf.logical_type == "NONE" else f" ({leaf.logical_type})"
    return leaf.physical_type + logical
