"""Rows as a table."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from pageseek.cli import terminal, text
from pageseek.cli.values import plain, refuse_twice

BLOCK = 1_000  # rows that are aligned together
LONGEST = 40  # characters of a value


def show(reader: pa.RecordBatchReader, limit: int) -> None:
    """Print at most `limit` rows, and say so if there are more."""
    look = terminal.stdout()
    if not reader.schema.names:
        print(f"{sum(batch.num_rows for batch in reader):,} rows, no columns")
        return
    rows = _rows(reader)
    for block, _ in _tables(reader.schema, itertools.islice(rows, limit), look):
        print("\n".join(block))
    if next(rows, None) is not None:
        print(look.dim(f"... the first {limit} rows; --limit N shows more"))


def lines(reader: pa.RecordBatchReader, look: terminal.Look) -> Iterator[tuple[list[str], int]]:
    """All rows as lines of a table, in blocks, with the number of rows of each."""
    if not reader.schema.names:
        n = sum(batch.num_rows for batch in reader)
        yield [f"{n:,} rows, no columns"], n
        return
    yield from _tables(reader.schema, _rows(reader), look)


def _rows(reader: pa.RecordBatchReader) -> Iterator[tuple[Any, ...]]:
    refuse_twice(reader.schema, columns=False)
    for batch in reader:
        yield from zip(*(plain(column, table=True) for column in batch.columns), strict=True)


def _tables(
    schema: pa.Schema, rows: Iterable[tuple[Any, ...]], look: terminal.Look
) -> Iterator[tuple[list[str], int]]:
    head = [text.shown(name, 200) for name in schema.names]
    types = [text.shown(str(field.type), LONGEST) for field in schema]
    numbers = [i for i, field in enumerate(schema) if _is_number(field.type)]
    under = types if look.width is not None else ()  # a pipe gets the names alone
    cells = ([text.shown(value, LONGEST) for value in row] for row in rows)
    for i, block in enumerate(_blocks(cells)):
        made = terminal.table(head, block, numbers, look=look, under=under, nulls="-")
        yield (made if i == 0 else made[3 if under else 2 :]), len(block)


def _blocks(cells: Any) -> Iterator[list[list[str]]]:
    """Rows in blocks that are aligned by themselves; one empty block if there are no rows."""
    block = list(itertools.islice(cells, BLOCK))
    yield block
    while block := list(itertools.islice(cells, BLOCK)):
        yield block


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))
