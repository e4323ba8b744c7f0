"""Rows as Arrow, Parquet, CSV, JSON lines or a table, to a file or to standard output."""

from __future__ import annotations

import argparse
import codecs
import os
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from pageseek.base.errors import UnsupportedError
from pageseek.cli import terminal, text
from pageseek.cli.arguments import UsageError
from pageseek.cli.values import plain, refuse_beyond, refuse_twice
from pageseek.scanning.queries.scan import Scan
from pageseek.storage.atomic_files import Draft, refuse_place

ENDINGS = {
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".arrows": "arrow",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".txt": "table",
}
BINARY = ("arrow", "parquet")
SEEKABLE = (
    ".arrow",
    ".feather",
)  # the form of Arrow for files, by convention; else it is the stream
GROUP_ROWS = 1 << 20  # rows of a row group, at most
GROUP_BYTES = 128 << 20  # bytes of a row group in memory, at which it ends before


def chosen(options: argparse.Namespace) -> str:
    """The form that is asked for, by name or by the ending of the output; checked before anything is read."""
    form = "jsonl" if options.json else options.format
    output = options.output
    if output is None:
        if form in BINARY and sys.stdout.isatty():
            raise UsageError(
                f"--format {form} is binary: write it to a file (--output FILE) or a pipe, not to the terminal"
            )
        return form or "table"
    if "://" in output:
        raise UsageError(f"--output {output}: a local file; copy it to a store afterwards")
    refuse_place(output, options.overwrite)
    if os.path.isdir(output):
        raise UsageError(f"--output {output}: a folder; name a file")
    if form is not None:
        return str(form)
    ending = os.path.splitext(output)[1].lower()
    if ending not in ENDINGS:
        raise UsageError(
            f"--output {output}: say --format, since the name ends in none of {', '.join(ENDINGS)}"
        )
    return ENDINGS[ending]


def write(scan: Scan, form: str, output: str | None, overwrite: bool = False) -> int:
    """Write the rows as they are read; returns their number. A file appears when it is complete."""
    if output is None:
        # JSON has its own escapes, and binary forms do not go to a terminal
        shown = form == "csv" and sys.stdout.isatty()
        stream = _Terminal(sys.stdout) if shown else _Stream(sys.stdout)
        return _WRITERS[form](scan.to_reader(), stream)
    draft = Draft(output)
    try:
        if overwrite:
            draft.take_rights_of_old()
        seekable = form == "arrow" and output.lower().endswith(SEEKABLE)
        rows = (_arrow_file if seekable else _WRITERS[form])(scan.to_reader(), draft)
        draft.appear(overwrite)
    finally:
        draft.close()
    rows_said = f"{rows:,} {'row' if rows == 1 else 'rows'}"
    print(terminal.stderr().dim(f"{output}: {rows_said}, {text.size(draft.size)}"), file=sys.stderr)
    return rows


class _Stream:
    """Standard output, as a place to write bytes to. A stream of text without bytes below it takes text alone."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, data: bytes | memoryview) -> int:
        buffer = getattr(self._stream, "buffer", None)
        if buffer is None:
            self._stream.write(bytes(data).decode())
        else:
            buffer.write(data)
        return len(data)


class _Terminal(_Stream):
    """A terminal. What it would obey, such as escape sequences in values, is spelt out."""

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def write(self, data: bytes | memoryview) -> int:
        self._stream.write(text.safe(self._decoder.decode(data)))
        return len(data)


class _Sink:
    """A file as pyarrow's writers take it. They ask for the position, which a pipe does not tell."""

    def __init__(self, to: Any) -> None:
        self._to, self._at, self.closed = to, 0, False

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        self._to.write(view)
        self._at += view.nbytes
        return view.nbytes

    def tell(self) -> int:
        return self._at

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False


def _arrow(reader: pa.RecordBatchReader, to: Any) -> int:
    return _ipc(reader, pa.ipc.new_stream, to)


def _arrow_file(reader: pa.RecordBatchReader, to: Any) -> int:
    return _ipc(reader, pa.ipc.new_file, to)


def _ipc(reader: pa.RecordBatchReader, new: Any, to: Any) -> int:
    rows = 0
    with new(pa.PythonFile(_Sink(to), "w"), reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows


def _parquet(reader: pa.RecordBatchReader, to: Any) -> int:
    import pyarrow.parquet as pq

    if not reader.schema.names:
        raise UnsupportedError(
            "rows without columns make no Parquet file: name some with --columns"
        )
    rows = 0
    with pq.ParquetWriter(
        pa.PythonFile(_Sink(to), "w"), reader.schema, compression="zstd", write_page_index=True
    ) as writer:
        for table in _groups(reader):
            writer.write_table(table, row_group_size=GROUP_ROWS)
            rows += table.num_rows
    return rows


def _groups(reader: pa.RecordBatchReader) -> Iterator[pa.Table]:
    """The rows in parts that become row groups: small batches are joined."""
    kept: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in reader:
        if kept and rows + batch.num_rows > GROUP_ROWS:
            yield pa.Table.from_batches(kept)
            kept, rows, size = [], 0, 0
        kept.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if size >= GROUP_BYTES:
            yield pa.Table.from_batches(kept)
            kept, rows, size = [], 0, 0
    if kept:
        yield pa.Table.from_batches(kept)


def _csv(reader: pa.RecordBatchReader, to: Any) -> int:
    """Nulls are empty, empty texts are quoted, lists and structs are JSON, binary is hexadecimal."""
    from pyarrow import csv

    if not reader.schema.names:
        raise UnsupportedError("rows without columns make no CSV: name some with --columns")
    refuse_twice(reader.schema, columns=False)
    fields = [pa.field(field.name, _csv_type(field.type)) for field in reader.schema]
    schema, rows = pa.schema(fields), 0
    options = csv.WriteOptions(quoting_style="needed")
    with csv.CSVWriter(pa.PythonFile(_Sink(to), "w"), schema, write_options=options) as writer:
        for batch in reader:
            columns = [
                _csv_column(column, field)
                for column, field in zip(batch.columns, schema, strict=True)
            ]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
            rows += batch.num_rows
    return rows


def _csv_type(kind: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_dictionary(kind):
        return _csv_type(kind.value_type)
    as_it_is = (
        types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind)
        or types.is_string(kind) or types.is_large_string(kind)
        or types.is_date32(kind) or types.is_timestamp(kind) or types.is_time(kind)
    )  # fmt: skip
    return kind if as_it_is and kind != pa.float16() else pa.string()


def _csv_column(column: pa.Array, field: pa.Field) -> pa.Array:
    if column.type == field.type:
        refuse_beyond(field.name, column, "CSV")
        return column
    if pa.types.is_dictionary(column.type):
        return _csv_column(column.dictionary_decode(), field)
    return pa.array([_csv_text(value) for value in plain(column)], pa.string())


def _csv_text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, (list, dict, tuple)):
        return text.to_json(value, indent=None)
    return str(text.encode(value))


def _jsonl(reader: pa.RecordBatchReader, to: Any) -> int:
    refuse_twice(reader.schema, columns=True)
    rows, names = 0, reader.schema.names
    for batch in reader:
        values = zip(*map(plain, batch.columns), strict=True) if names else [()] * batch.num_rows
        made = (dict(zip(names, row, strict=True)) for row in values)
        lines = [text.to_json(row, indent=None) + "\n" for row in made]
        to.write("".join(lines).encode())
        rows += batch.num_rows
    return rows


def _table(reader: pa.RecordBatchReader, to: Any) -> int:
    from pageseek.cli.rows import lines

    rows = 0
    for block, n in lines(reader, terminal.Look()):
        to.write(("\n".join(block) + "\n").encode())
        rows += n
    return rows


_WRITERS = {"arrow": _arrow, "parquet": _parquet, "csv": _csv, "jsonl": _jsonl, "table": _table}
