"""Rows that wait on disk, part by part, while there are too many for the memory."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping

import pyarrow as pa

from pageseek.base.errors import StoreError

CODEC = "lz4"
MOST_HELD = 1 << 30  # bytes; columns with offsets of 32 bits hold no more than twice that


class Spill:
    """One temporary file with the rows of many parts. It has no name where the system allows, and is gone with the process.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of the rows.
    folder : str or None
        Where the file lies; None is the folder for temporary files.
    held_bytes : int
        Bytes of rows that wait in memory until they are written together.
    """

    def __init__(self, schema: pa.Schema, parts: int, folder: str | None, held_bytes: int) -> None:
        self._schema = schema
        self._held_bytes, self._held = min(held_bytes, MOST_HELD), 0
        self._waiting: list[list[pa.RecordBatch]] = [[] for _ in range(parts)]
        self._pieces: list[list[tuple[int, int]]] = [[] for _ in range(parts)]
        self.bytes = [0] * parts  # in memory, of each part
        self.rows = [0] * parts
        self.size = 0  # on disk
        self._folder = folder
        codec = CODEC if pa.Codec.is_available(CODEC) else None
        self._options = pa.ipc.IpcWriteOptions(compression=codec)
        self._file = tempfile.TemporaryFile(prefix="pageseek-", dir=folder, buffering=0)  # noqa: SIM115 - `close` closes it

    def add(self, rows: Mapping[int, pa.RecordBatch]) -> None:
        """Put rows behind those of their parts."""
        for part, batch in rows.items():
            if batch.num_rows == 0:
                continue
            self._waiting[part].append(batch)
            self.bytes[part] += batch.nbytes
            self.rows[part] += batch.num_rows
            self._held += batch.nbytes
        if self._held >= self._held_bytes:
            self.flush()

    def flush(self) -> None:
        """Write what waits in memory."""
        for part, batches in enumerate(self._waiting):
            if not batches:
                continue
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, self._schema, options=self._options) as stream:
                stream.write_batch(pa.concat_batches(batches))
            body = sink.getvalue()
            self._write(body)
            self._pieces[part].append((self.size, body.size))
            self.size += body.size
            self._waiting[part] = []
        self._held = 0

    def _write(self, body: pa.Buffer) -> None:
        view = memoryview(body)
        try:
            while view.nbytes:
                view = view[self._file.write(view) or 0 :]
        except OSError as error:
            where = self._folder or tempfile.gettempdir()
            raise StoreError(
                f"{where}: {error.strerror or error} after {self.size:,} bytes of rows that wait to be sorted; name a folder with "
                "more room (spill_folder=...), or allow more memory (memory_limit=...)"
            ) from error

    def pieces(self, part: int) -> Iterator[pa.Table]:
        """The rows of a part in the order in which they came, a piece at a time. Call `flush` before."""
        for at, size in self._pieces[part]:
            self._file.seek(at)
            body = bytearray(size)
            view, done = memoryview(body), 0
            while done < size:
                n = self._file.readinto(view[done:])
                if not n:
                    raise StoreError(
                        "the temporary file of rows that wait to be sorted has lost its end"
                    )
                done += n
            yield pa.ipc.open_stream(pa.py_buffer(body)).read_all()

    def close(self) -> None:
        """Delete the file."""
        self._file.close()


def check_folder(folder: str | None) -> None:
    """Raise NotADirectoryError where the folder for waiting rows is none."""
    if folder is not None and not os.path.isdir(folder):
        raise NotADirectoryError(f"spill_folder={folder!r}: there is no such folder")
