"""The files that are written: encoded, checked, given indexes, and named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

import pyarrow as pa

from pageseek.index.attached import Attached
from pageseek.index.attaching import attach, attach_to
from pageseek.index.index_specs import index_request
from pageseek.index.local_target import Target
from pageseek.rewriting.encoding import Encoder, plain_schema
from pageseek.rewriting.layout import Layout
from pageseek.rewriting.places import Destination, Folder, OneFile
from pageseek.rewriting.sink import Sink
from pageseek.storage import Source


class Output:
    """Files of rows, in order.

    Attributes
    ----------
    files : list of Source
        Those that were written, to be read before they have their names.
    names : list of str
        What they are called in the end.
    sizes : list of int
        Bytes of each.
    attached : list of Attached
        What was added to each.
    """

    def __init__(
        self,
        place: Destination,
        schema: pa.Schema,
        layout: Layout,
        file_rows: int | None,
        file_bytes: int | None = None,
    ) -> None:
        """`file_rows`: rows of a file, at most; `file_bytes`: about its bytes. None: there is one."""
        self._place, self._schema, self._layout = place, schema, layout
        self._plain = plain_schema(schema)
        self._file_rows, self._file_bytes = file_rows, file_bytes
        self._target: Target | None = None  # of the file that is being written
        self._kept: Target | None = None  # of the only one, which is named last
        self._encoder: Encoder | None = None
        self.files: list[Source] = []
        self.names: list[str] = []
        self.sizes: list[int] = []
        self.attached: list[Attached] = []

    def write(self, tables: Iterable[pa.Table], step: Callable[[int], None]) -> None:
        """Write all rows. `step` is called with the number of rows of each table that was taken."""
        self._begin()
        for table in tables:
            rows = self._stored(table)
            while rows.num_rows:
                room = self._room(rows.num_rows)
                if not room:
                    self._end()
                    self._begin()
                    continue
                assert self._encoder is not None
                self._encoder.add(rows[:room])
                rows = rows[room:]
            step(table.num_rows)
        self._end()

    def _stored(self, rows: pa.Table) -> pa.Table:
        """Rows as the files have them."""
        return rows

    def _room(self, rows: int) -> int:
        """How many of some rows the file takes; 0: it is full."""
        assert self._encoder is not None
        if self._file_rows is not None:
            return self._file_rows - self._encoder.rows
        if self._file_bytes is None:
            return rows
        return 0 if self._encoder.reaches(self._file_bytes) else self._encoder.room

    def _begin(self) -> None:
        self._target = self._place.file(len(self.files))
        self._encoder = Encoder(Sink(self._target), self._schema, self._layout)

    def _end(self) -> None:
        assert self._encoder is not None and self._target is not None
        self._encoder.close()
        self._encoder = None
        self.sizes.append(self._target.size)
        self._written(self._target)
        self._target = None

    def _written(self, target: Target) -> None:
        """All bytes of a file are there."""
        if isinstance(self._place, OneFile):  # it is named once it is checked
            self.files.append(Source(target.way))
            self.names.append(target.path)
            self._kept = target
            return
        target.commit(lambda: None)
        target.close()
        self.files.append(Source(target.path))

    def appear(self, indexes: Mapping[str, Any] | None, threads: int | None, progress: Any) -> None:
        """Add indexes, and let the files appear: they are right."""
        if isinstance(self._place, OneFile):
            self._appear_alone(indexes, threads, progress)
            return
        assert isinstance(self._place, Folder)
        for i, file in enumerate(self.files):
            if indexes:
                made = attach(
                    file, in_place=True, table=False, threads=threads, progress=progress, **indexes
                )
                self.sizes[i] = made.bytes_after
                self.attached.append(made)
            self.names.append(f"{self._place.name}/{Folder.file_name(i)}")
        self._place.commit()
        for made, name in zip(self.attached, self.names, strict=False):
            made.path = name

    def _appear_alone(
        self, indexes: Mapping[str, Any] | None, threads: int | None, progress: Any
    ) -> None:
        place, target = self._place, self._kept
        assert isinstance(place, OneFile) and target is not None
        place.check()
        if not indexes:
            target.commit(place.check)
            return
        asked = index_request(**({"page_index": False} | dict(indexes)))
        made = attach_to(self.files[0], place, asked, threads=threads, progress=progress)
        self.sizes[0] = made.bytes_after
        self.attached.append(made)

    def close(self) -> None:
        """Leave nothing behind, unless it has appeared."""
        if self._encoder is not None:
            self._encoder.abandon()
            self._encoder = None
        for target in (self._target, self._kept):
            if target is not None:
                with suppress(OSError):
                    target.close()
