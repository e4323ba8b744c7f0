"""Commits to the log of a Delta Lake table that `deltalake` cannot make: it cannot say that a file goes whose rows have a deletion
vector, and knows no column mapping (Delta protocol, "Add File and Remove File").
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pageseek.base.errors import UnsupportedError
from pageseek.base.version import __version__
from pageseek.datasets.delta_bounds import PHYSICAL_NAME
from pageseek.storage import Source
from pageseek.storage.atomic_files import Draft
from pageseek.storage.table_folders import LOG
from pageseek.storage.writing import writer

LOCKS = "aws_s3_locking_provider"  # an option of deltalake, and a variable of the environment
# what helps where a table has a feature of writers that is not known here
DROP_FEATURE = "drop the feature (ALTER TABLE ... DROP FEATURE), or change the files with an engine that knows it"
_OF_REMOVED = "deletionVector", "tags", "baseRowId", "defaultRowCommitVersion"


class DeltaCommits:
    """The commits of a table.

    Parameters
    ----------
    root : Source
        The folder of the table.
    name : str
        The table, in errors.
    """

    def __init__(self, root: Source, name: str) -> None:
        self._root, self._name = root, name

    def refuse_store(self, options: Mapping[str, Any]) -> None:
        """Raise UnsupportedError where two writers could both write a version."""
        if self._root.filesystem is None:
            return
        if not writer(self.entry(0)).conditional:
            raise UnsupportedError(
                f"{self._name}: what opens it cannot create a file only where none is, so that two writers may both write a version: "
                "name the table by its URL, with obstore installed"
            )
        told = {name.lower(): value for name, value in options.items()} | {
            name.lower(): value for name, value in os.environ.items()
        }
        if told.get(LOCKS) or told.get(LOCKS.removeprefix("aws_")):
            raise UnsupportedError(
                f"{self._name}: its writers lock it by {told.get(LOCKS) or 'a service'}, which is not known here: if all of them use "
                f"conditional PUTs, which S3 has, leave {LOCKS} out of the options and the environment"
            )

    def entry(self, version: int) -> Source:
        """The file of a commit."""
        root = self._root
        start = f"{root.path.rstrip('/')}/{LOG}" if root.filesystem is None else f"{root.path.rstrip('/')}/{LOG}".lstrip("/")  # fmt: skip
        return replace(root, path=f"{start}/{version:020}.json")

    def create(self, version: int, body: bytes) -> None:
        """Write a commit, if nobody has written that version. FileExistsError: somebody has. StoreError: it may be there, or not."""
        to = self.entry(version)
        if to.filesystem is not None:
            writer(to).put(memoryview(body))
            return
        draft = Draft(to.path, exclusive=True)
        try:
            draft.write(body)
            draft.appear(False)
        finally:
            draft.close()


def stored_name(fields: Sequence[Mapping[str, Any]], column: str) -> str:
    """What files of a table with column mapping call a column, or a field inside of one (`a.b`). `fields`: of the log's schema."""
    made: list[str] = []
    parts = [column] if any(one["name"] == column for one in fields) else column.split(".")
    inside: Any = {"type": "struct", "fields": fields}
    for part in parts:
        below = inside.get("fields", ()) if isinstance(inside, Mapping) else ()
        field = next((one for one in below if one["name"] == part), None)
        made.append(part if field is None else field.get("metadata", {}).get(PHYSICAL_NAME, part))
        inside = None if field is None else field["type"]
    return ".".join(made)


def commit_body(
    read: int, now: int, order: Mapping[str, Any], removed: Iterable[Mapping[str, Any]], added: Iterable[Mapping[str, Any]]
) -> bytes:  # fmt: skip
    """The bytes of a commit that exchanges files, whose rows stay.

    Parameters
    ----------
    read : int
        The version whose files these are.
    now : int
        Milliseconds since 1970.
    order : mapping
        What the history is to tell.
    removed, added : iterable of mapping
        `add` actions: those of the files that go, and of those that come.
    """
    gone, come = list(removed), list(added)
    told = {
        "timestamp": now,
        "operation": "OPTIMIZE",
        "operationParameters": {name: json.dumps(list(one)) for name, one in order.items()},
        "readVersion": read,
        "isolationLevel": "SnapshotIsolation",
        "isBlindAppend": False,
        "operationMetrics": {"numRemovedFiles": str(len(gone)), "numAddedFiles": str(len(come))},
        "engineInfo": f"pageseek/{__version__}",
    }
    actions: list[dict[str, Any]] = [{"commitInfo": told}]
    actions += [{"remove": _removal(one, now)} for one in gone]
    actions += [{"add": dict(one)} for one in come]
    return "".join(json.dumps(action) + "\n" for action in actions).encode()


def _removal(added: Mapping[str, Any], now: int) -> dict[str, Any]:
    """The action that removes a file. Its name is the path together with the deletion vector."""
    made = {
        "path": added["path"],
        "deletionTimestamp": now,
        "dataChange": False,
        "extendedFileMetadata": True,
        "partitionValues": dict(added["partitionValues"]),
        "size": added["size"],
    }
    return made | {name: added[name] for name in _OF_REMOVED if added.get(name)}
