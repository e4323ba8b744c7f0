"""A file of an Iceberg table, replaced by a commit: the new file lies beside the old one. The manifest keeps what it said of
the rows.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from pageseek.base.errors import FileChangedError, StoreError, UnsupportedError
from pageseek.datasets.iceberg_files import is_unpartitioned
from pageseek.datasets.lake_places import iceberg_places
from pageseek.index.iceberg_commits import (
    OTHER,
    IcebergCommits,
    iceberg_name,
    told_secrets,
    tried_once,
)
from pageseek.index.table_target import TableEnd, same_file
from pageseek.storage import Source
from pageseek.storage.resolve import DEFAULT_RETRY

EQUALITY_DELETES = 2  # content of a delete file
PATH = 2147483546  # the field of a position delete file that names data files


def as_recorded(
    source: Any, table: Any, storage_options: Mapping[str, Any] | None
) -> Source | None:
    """The file of a URL as the table spells it, without escapes, with the table's own options of its store; None for other names."""
    scheme = urlsplit(source).scheme if isinstance(source, str) and "://" in source else ""
    if len(scheme) < 2 or os.path.exists(source):
        return None
    place = iceberg_places(iceberg_name(table), table.io, storage_options, DEFAULT_RETRY).source
    found = place(source, (), encoded=False)
    if found.filesystem is None and not os.path.exists(found.path):
        return None
    return found


class IcebergEnd(TableEnd):
    """The exchange in the manifests of an Iceberg table."""

    def __init__(
        self, source: Source, table: Any, storage_options: Mapping[str, Any] | None
    ) -> None:
        """UnsupportedError: the table cannot be written to, or has rows of the file deleted. ValueError: it has no such file."""
        super().__init__(iceberg_name(table), told_secrets(table))
        self.errors = (Exception,)
        try:
            from pyiceberg.manifest import DATA_FILE_TYPE, DEFAULT_READ_VERSION, DataFile

            self._make = DataFile.from_args
            self._fields = [field.name for field in DATA_FILE_TYPE[DEFAULT_READ_VERSION].fields]
        except (ImportError, AttributeError):
            raise UnsupportedError(f"{self.table}: {OTHER}") from None
        self._commits = IcebergCommits(table, self.table)
        places = iceberg_places(self.table, table.io, storage_options, DEFAULT_RETRY)
        entries = self._commits.entries(deletes=False)
        of = {
            path: place
            for path in {entry.data_file.file_path for entry in entries}
            if same_file(place := places.source(path, (), encoded=False), source)
        }
        if not of:
            raise ValueError(
                f"{source.name}: the newest snapshot of {self.table} has no such file; give one as the table spells it, "
                "in table.inspect.data_files()['file_path']"
            )
        if len(of) > 1:
            raise UnsupportedError(f"{self.table}: it spells {source.name} in {len(of)} ways")
        self._old, place = next(iter(of.items()))
        self._take(entries)
        self._new = self.beside(self._old, place)

    def _take(self, entries: list[Any]) -> None:
        """Keep the entry of the old file in the newest snapshot. UnsupportedError: it cannot be exchanged."""
        found = [one for one in entries if one.data_file.file_path == self._old]
        if not found:
            raise FileChangedError(
                f"{self.table}: somebody else has taken {self._old} out of it meanwhile; begin again"
            )
        if len(found) > 1:
            raise UnsupportedError(
                f"{self.table}: {self._old} is {len(found)} times in it, and so are its rows: rewrite its data files"
            )
        self._entry = found[0]
        self._commits.refuse_partition(self._entry.data_file)
        for one in self._commits.entries(deletes=True):
            if self._deletes(one):
                raise UnsupportedError(
                    f"{self.table}: rows of {self._old} are deleted by {one.data_file.file_path}, and would come back with a "
                    "newer file: rewrite its data files (rewrite_data_files)"
                )
        self._snapshot = self._commits.snapshot

    def _deletes(self, entry: Any) -> bool:
        """Whether a delete file may concern the old file; True where it does not say."""
        data, deletes = self._entry.data_file, entry.data_file
        equality = deletes.content == EQUALITY_DELETES
        later = (entry.sequence_number or 0) - (self._entry.sequence_number or 0)
        if later < (1 if equality else 0):
            return False
        specs = self._commits.table.metadata.specs()
        if equality and is_unpartitioned(specs.get(deletes.spec_id)):  # of all partitions
            return True
        if not equality:
            path = data.file_path.encode()
            least, most = ((of or {}).get(PATH) for of in (deletes.lower_bounds, deletes.upper_bounds))  # fmt: skip
            if least == path == most:
                return True
            if least is not None and most is not None and not least <= path <= most:
                return False
        same: bool = deletes.spec_id == data.spec_id and deletes.partition == data.partition
        return same

    # -- the commit --------------------------------------------------------------------------------

    def look(self) -> None:
        """Bring the table to its newest version."""
        self._commits.refresh()
        if self._commits.snapshot != self._snapshot:
            self._take(self._commits.entries(deletes=False))

    def exchange(self, size: int) -> None:
        """Take the old file out and put the new one in."""
        numbers: list[int] = []  # of the snapshot
        mine = tried_once(self._commits.table, numbers)
        old = self._entry.data_file
        said = dict(zip(self._fields, old, strict=True))
        try:
            new = self._make(**{**said, "file_path": self._new, "file_size_in_bytes": size})
            new.spec_id = old.spec_id
        except (AttributeError, TypeError, LookupError) as error:
            raise UnsupportedError(f"{self.table}: {OTHER} ({self.said(error)})") from None
        made, (after,) = self._commits.exchanged(mine, [(old.spec_id, [old], [new])])
        numbers.append(after.snapshot_id)
        written = self._check(self._snapshot, after)
        self._commits.send(made, mine, after.snapshot_id, written, f"{self.to.name} stays")

    def _check(self, before: Any, after: Any) -> list[str]:
        """Compare the snapshot that will be committed with the one before: only the two files may differ. Returns the paths of its
        new manifests and its manifest list.
        """
        lost, found, written = self._commits.compared(before, after)
        data = self._entry.data_file
        wanted = (self._old, int(data.content or 0), data.spec_id, self._entry.sequence_number)
        if lost == [wanted] and [one[:3] for one in found] == [(self._new, *wanted[1:3])]:
            return written
        self._commits.discard(written)
        raise StoreError(
            f"{self.table}: pyiceberg made a snapshot that takes {len(lost)} files out and puts {len(found)} in, "
            f"where one is exchanged: it was not committed"
        )

    def has_it(self) -> bool:
        """Whether the table may have the new file."""
        return self._commits.may_have()
