"""Rows as a table."""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from pageseek.base.report import counted
from pageseek.cli import terminal, text
from pageseek.cli.values import plain, refuse_twice

BLOCK = 1_000  # rows that are aligned together
LONGEST = 40  # characters of a value


def show(reader: pa.RecordBatchReader, limit: int) -> None:
    """Print at most `limit` rows, and say so if there are more."""
    look = terminal.stdout()
    if not reader.schema.names:
        print(_without_columns(sum(batch.num_rows for batch in reader)))
        return
    rows, cells = _rows(reader), _Cells()
    for block, _ in _tables(reader.schema, itertools.islice(rows, limit), look, cells):
        print("\n".join(block))
    if next(rows, None) is not None:
        said = f"... the first {limit} rows; --limit N shows more"
        print(terminal.stderr().dim(said), file=sys.stderr)
    cells.tell()


def lines(reader: pa.RecordBatchReader, look: terminal.Look) -> Iterator[tuple[list[str], int]]:
    """All rows as lines of a table, in blocks, with the number of rows of each."""
    if not reader.schema.names:
        n = sum(batch.num_rows for batch in reader)
        yield [_without_columns(n)], n
        return
    cells = _Cells()
    yield from _tables(reader.schema, _rows(reader), look, cells)
    cells.tell()


def _without_columns(n: int) -> str:
    return f"{counted(n, 'row')}, no columns"


class _Cells:
    """Values as text, and how many of those that are shown were cut."""

    def __init__(self) -> None:
        self.cut = 0
        self._cut_in = Counter[int]()  # by column of this block

    def of(self, column: int, value: Any) -> str:
        # one more character tells a value that is cut from one that is as long as a cell
        made = text.shown(value, LONGEST)
        if len(made) == LONGEST and made.endswith("...") and text.shown(value, LONGEST + 1) != made:
            self._cut_in[column] += 1
        return made

    def end_block(self, left_out: set[int]) -> None:
        """Count those of a block but for the columns that are left out."""
        self.cut += sum(n for column, n in self._cut_in.items() if column not in left_out)
        self._cut_in.clear()

    def tell(self) -> None:
        """Say beside the table that values were cut."""
        if self.cut:
            said = f"{self.cut:,} {'value is' if self.cut == 1 else 'values are'} cut at {LONGEST} characters; --format jsonl shows them whole"
            print(terminal.stderr().dim(said), file=sys.stderr)


def _rows(reader: pa.RecordBatchReader) -> Iterator[tuple[Any, ...]]:
    refuse_twice(reader.schema, columns=False)
    for batch in reader:
        yield from zip(*(plain(column, table=True) for column in batch.columns), strict=True)


def _tables(
    schema: pa.Schema, rows: Iterable[tuple[Any, ...]], look: terminal.Look, made_cells: _Cells
) -> Iterator[tuple[list[str], int]]:
    head = [text.shown(name, 200) for name in schema.names]
    types = [text.shown(str(field.type), LONGEST) for field in schema]
    numbers = [i for i, field in enumerate(schema) if _is_number(field.type)]
    under = types if look.width is not None else ()  # a pipe gets the names alone
    cells = ([made_cells.of(i, value) for i, value in enumerate(row)] for row in rows)
    for i, block in enumerate(_blocks(cells)):
        left_out = set[int]()
        made = terminal.table(
            head, block, numbers, look=look, under=under, nulls="-", left_out=left_out
        )
        made_cells.end_block(left_out)
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
