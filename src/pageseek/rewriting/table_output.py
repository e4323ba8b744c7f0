"""The files of one partition of a table: encoded, read again, given indexes, and put where the table's files lie.

No reader sees them before the table's commit. Each is put there as soon as it was read again, so that few are open.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pageseek.base.errors import RewriteError
from pageseek.index.attaching import attach_to
from pageseek.index.index_specs import index_request
from pageseek.index.local_target import LocalTarget, Target
from pageseek.index.store_target import StoreTarget
from pageseek.rewriting.checking import Check
from pageseek.rewriting.layout import Layout
from pageseek.rewriting.output import Output
from pageseek.rewriting.places import Destination
from pageseek.rewriting.stored_columns import renamed
from pageseek.rewriting.table_rewrite import Group, NewFile, TableRewrite
from pageseek.scanning.queries.scan import Scan
from pageseek.storage import Source, Store
from pageseek.storage.local import MemoryStore
from pageseek.storage.writing import writer


class TablePlace(Destination):
    """The folder of a group of files. Each file has a name of its own.

    Attributes
    ----------
    spelt, to
        The name of the file that is written, as the table spells it, and its place.
    """

    folder_of_files = True

    def __init__(self, table: TableRewrite, group: Group) -> None:
        self.name = table.name
        self._table, self._group = table, group
        self.spelt, self.to = table.beside(group)

    def file(self, number: int) -> Target:
        """The target of one more file."""
        self.spelt, self.to = self._table.beside(self._group)
        return self.target(MemoryStore(b""))

    def target(self, source: Store) -> Target:
        """The target of the same file, once more."""
        if self.to.filesystem is not None:
            return StoreTarget(self.to, source, False, False)
        os.makedirs(os.path.dirname(self.to.path), exist_ok=True)
        return LocalTarget(self.to.path, None)

    def close(self) -> None:
        """Nothing is left to do: `removed` deletes files."""


class TableOutput(Output):
    """Files of a group.

    Attributes
    ----------
    new : list of NewFile
        Those that are there.
    """

    def __init__(
        self,
        table: TableRewrite,
        group: Group,
        schema: pa.Schema,
        layout: Layout,
        limits: tuple[int | None, int | None],
        check: Check,
        read: Callable[[Source], Scan],
        indexes: Mapping[str, Any],
        threads: int | None,
        new: list[NewFile],
    ) -> None:
        """`schema`: as the table is read. `limits`: rows and about bytes of a file. `read`: a new file as the table reads it. `new`:
        the list that files are added to.
        """
        self._beside = TablePlace(table, group)
        self._columns, stored = table.stored(schema)
        super().__init__(self._beside, stored, layout, *limits)
        self._group, self._check, self._read, self._threads = group, check, read, threads
        self._asked = index_request(**({"page_index": False} | dict(indexes))) if indexes else None
        self.new = new

    def _stored(self, rows: pa.Table) -> pa.Table:
        kept = rows.select(self._columns)
        for name, field in zip(self._columns, self._plain, strict=True):
            if not field.nullable and kept[name].null_count:
                raise RewriteError(
                    f"{self._place.name}: column {name!r} may have no nulls by the table's schema, and has some: "
                    "nothing was changed; write to a place outside of the table (output=...)"
                )
        return renamed(kept, self._plain)

    def _written(self, target: Target) -> None:
        source = Source(target.way)
        metadata = pq.read_metadata(target.way)
        self._check.add(self._read(source))
        place = self._beside
        # it is in the list before it is there: who is interrupted in between deletes it, too
        made = NewFile(self._group, place.spelt, place.to, target.size, metadata)
        self.new.append(made)
        if self._asked is None:
            target.commit(lambda: None)
        else:
            added = attach_to(source, place, self._asked, threads=self._threads)
            added.path = place.to.name
            self.attached.append(added)
            self.sizes[-1] = added.bytes_after
            self.new[-1] = made._replace(size=added.bytes_after)
        target.close()
        self.files.append(place.to)
        self.names.append(place.to.name)


def removed(new: Sequence[NewFile]) -> None:
    """Delete files that no table has, as far as that is possible."""
    for one in new:
        with suppress(Exception):
            if one.place.filesystem is None:
                os.unlink(one.place.path)
            else:
                writer(one.place).delete()
