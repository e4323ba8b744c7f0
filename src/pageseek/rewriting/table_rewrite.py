"""A table whose files are rewritten, and exchanged by one commit to it. `delta_rewrite` and `iceberg_rewrite` have the rest."""

from __future__ import annotations

import posixpath
import secrets
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pageseek.base.records import NamedTuple
from pageseek.datasets.table_files import Table
from pageseek.storage import Source

BEGIN_AGAIN = "nothing was changed; begin again"
STAY = "the new files stay, in case it was made"


class Group(NamedTuple):
    """The files of one partition, which are written together. `files`: their numbers in the table."""

    files: tuple[int, ...]


class NewFile(NamedTuple):
    """A file that is there, and not yet in the table. `spelt`: its name as the table is to spell it."""

    group: Group
    spelt: str
    place: Source
    size: int
    metadata: pq.FileMetaData


class TableRewrite(ABC):
    """One version of a table, whose files are exchanged.

    Attributes
    ----------
    name : str
        The table, in errors.
    found : Table
        Its files, and how they are read.
    """

    name: str
    found: Table

    @abstractmethod
    def groups(self) -> list[Group]:
        """All its files, partition by partition."""

    @abstractmethod
    def partition(self, group: Group) -> dict[str, Any]:
        """The values of the partition columns of a group, but for those that are transforms of columns."""

    @abstractmethod
    def choose(self, groups: Sequence[Group]) -> None:
        """Exchange the files of these groups only."""

    def stored(self, schema: pa.Schema) -> tuple[list[str], pa.Schema]:
        """The columns that files have, and the schema of files, which may call them otherwise. `schema`: as the table is read."""
        return list(schema.names), schema

    def stored_name(self, column: str) -> str:
        """What files call a column, or a field inside of one (`a.b`)."""
        return column

    @abstractmethod
    def beside(self, group: Group) -> tuple[str, Source]:
        """A new name in the folder of a group, as the table spells it, and the place."""

    @abstractmethod
    def commit(self, new: Sequence[NewFile], order: Mapping[str, Sequence[str]]) -> int:
        """Exchange all chosen files for new ones. Returns the number of the version or of the snapshot. `order`: what the history is to tell.

        Raises
        ------
        FileChangedError
            Somebody else has taken files or rows out of the table, or has changed it.
        StoreError
            The commit failed.
        """

    @abstractmethod
    def may_have(self, new: Sequence[NewFile]) -> bool:
        """Whether the table may have the new files."""


def new_name() -> str:
    """A name for a file that no other has."""
    return f"part-{secrets.token_hex(12)}.parquet"


def neighbour(old: Source, name: str) -> Source:
    """A place in the folder of a file."""
    cut = max(old.path.rfind("/"), old.path.rfind("\\") if old.filesystem is None else -1) + 1
    return Source(old.path[:cut] + name, old.filesystem, retry_policy=old.retry_policy)


def leaves(spelt: str) -> bool:
    """Whether a path may lead out of the folder that it begins in."""
    return ".." in spelt.replace("\\", "/").split("/")


def folder_of(spelt: str) -> str:
    """The folder of a file as a table spells it, with a slash at its end; empty: it is that of the table."""
    folder = posixpath.dirname(spelt)
    return f"{folder}/" if folder else ""
