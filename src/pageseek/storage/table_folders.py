"""Folders that are tables of Delta Lake or Iceberg, recognized by what lies beside their files.

Such a folder has files of older versions too: its rows are those that the table's log, or its metadata, says.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field

from pageseek.base.errors import UnsupportedError
from pageseek.base.records import dataclass
from pageseek.storage.files import Files

DELTA, ICEBERG = "Delta Lake", "Iceberg"
LOG, METADATA = "_delta_log", "metadata"
ENDS = (".metadata.json", ".metadata.json.gz")
NAMES = (LOG, METADATA)
REMEDY = "table=False reads the bare files"
MOST = 64  # folders that are looked above
_in_log = re.compile(rf"(?:(.*?)/)?{LOG}/")
_in_metadata = re.compile(rf"(?:(.*)/)?{METADATA}/[^/]+\.metadata\.json(?:\.gz)?")


@dataclass(frozen=True, slots=True)
class Mark:
    """A table that a listing came upon. `files`: on a store, the paths of its log or of its metadata."""

    kind: str
    folder: str
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TableFolder:
    """A folder that is a table. `filesystem`: None on this machine's disk. `name`: as it may be shown."""

    kind: str
    path: str
    name: str
    filesystem: Files | None = None
    files: tuple[str, ...] = ()


# ---- this machine's disk


def kind_here(folder: str) -> str | None:
    """The kind of table that a local folder is; None of other folders.

    A Delta Lake table may have metadata of Iceberg too, for others: it is what its log says.
    """
    for name, kind in ((LOG, DELTA), (METADATA, ICEBERG)):
        if _is_mark(folder, name):
            return kind
    return None


def _is_mark(folder: str, name: str) -> bool:
    path = os.path.join(folder, name)
    try:
        with os.scandir(path) as found:
            if name == METADATA:
                return any(one.name.endswith(ENDS) for one in found)
            first = next(found, None)  # of a table that was just made the log may be empty
            return first is None or _is_logged(first.name) or any(_is_logged(o.name) for o in found)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # what cannot be looked into
        return name == LOG


def _is_logged(name: str) -> bool:
    """Whether a file of this name is one of a log: a commit, a checkpoint, or what names the last one."""
    return name.endswith(".json") or ".checkpoint." in name or name == "_last_checkpoint"


def above_here(path: str) -> list[str]:
    """The folders that a local path lies in, the nearest first; of a link, those of the file as well."""
    folders = []
    for found in dict.fromkeys((os.path.realpath(path), os.path.abspath(path))):
        folder = os.path.dirname(found)
        folders.append(folder)
        while (above := os.path.dirname(folder)) != folder:
            folders.append(folder := above)
    return list(dict.fromkeys(folders))


# ---- listings


@dataclass(slots=True)
class Seen:
    """The tables that one listing came upon.

    `root`: the folder that was listed is one. `around`: it is, and a glob chose among what lies in it. `below`: a folder
    below it is one, and has some of the files that were found.
    """

    root: Mark | None = None
    around: Mark | None = None
    below: Mark | None = None
    _listed: list[Mark] = field(default_factory=list)  # the folder that was listed
    _deeper: list[Mark] = field(default_factory=list)

    def look(self, folder: str, name: str, is_root: bool) -> None:
        """A local folder has one of this name, which is one of NAMES. `is_root`: it is the one that is listed."""
        if _is_mark(folder, name):
            mark = Mark(DELTA if name == LOG else ICEBERG, folder)
            (self._listed if is_root else self._deeper).append(mark)

    def of_store(self, found: Iterable[tuple[str, str]]) -> None:
        """A store listed these files: their paths, and the same as seen from the folder that was listed."""
        pairs = list(found)
        marks: dict[tuple[str, str], Mark] = {}
        for path, below in pairs:
            kind, inside = DELTA, None
            if LOG in below and _is_logged(below.rpartition("/")[2]):
                inside = _in_log.match(below)
            if inside is None and below.endswith(ENDS):
                kind, inside = ICEBERG, _in_metadata.fullmatch(below)
            if inside is not None:
                folder = inside[1] or ""
                full = (path[: len(path) - len(below)] + folder).rstrip("/")
                marks.setdefault((folder, kind), Mark(kind, full))
        for (folder, kind), mark in marks.items():
            start = "/".join(filter(None, (folder, LOG if kind == DELTA else METADATA))) + "/"
            files = tuple([path for path, below in pairs if below.startswith(start)])
            made = Mark(kind, mark.folder, files)
            (self._deeper if folder else self._listed).append(made)

    def is_table(self) -> bool:
        """Whether the folder that was listed is a table: of Delta Lake, where it may be one of Iceberg too."""
        mine = sorted(self._listed, key=lambda mark: mark.kind != DELTA)
        self.root = mine[0] if mine else None
        return bool(mine)

    def judge(self, found: Sequence[tuple[str, object]]) -> None:
        """These files were found in the folder that was listed: their paths, and what else is known of them."""
        self.around = self._listed[0] if self._listed else None
        for mark in self._deeper:
            inside = mark.folder.rstrip("/" + os.sep)
            if not found or any(
                one.startswith((f"{inside}/", inside + os.sep)) for one, _ in found
            ):
                self.below = mark
                return


class Tables:
    """The tables that are come upon while a source is resolved."""

    def __init__(self) -> None:
        self.found: list[TableFolder] = []
        self.notes: list[str] = []
        self.near: list[str] = []  # local places, which may lie in tables

    def take(
        self,
        seen: Seen,
        shown: Callable[[str], str] = str,
        filesystem: Files | None = None,
    ) -> None:
        """What a listing came upon. `shown`: a path, without secrets.

        Raises
        ------
        UnsupportedError
            A folder below the one that was listed is a table.
        """
        if (mark := seen.root) is not None:
            name = shown(mark.folder)
            self.found.append(TableFolder(mark.kind, mark.folder, name, filesystem, mark.files))
        if (mark := seen.below) is not None:
            raise UnsupportedError(
                f"{shown(mark.folder)}: this folder is a table of {mark.kind}, whose files of older versions would be read too: "
                f"give it alone, which reads its current version; {REMEDY}"
            )
        if (mark := seen.around) is not None:
            self.notes.append(inside_note(mark.kind, shown(mark.folder)))


def inside_note(kind: str, folder: str) -> str:
    """What `explain` says of files that were named, and lie in a table."""
    return f"{folder} is a table of {kind}: the files that were named are read, whichever of its versions have them"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the files of a scan come from. `near`: local files, above which nobody has looked for tables yet."""

    notes: tuple[str, ...] = ()
    near: tuple[str, ...] = ()

    def told(self) -> list[str]:
        """What `explain` says of it."""
        folders = {one: None for place in self.near[:MOST] for one in above_here(place)}
        kinds = ((folder, kind_here(folder)) for folder in folders)
        found = (inside_note(kind, folder) for folder, kind in kinds if kind is not None)
        return list(dict.fromkeys((*self.notes, *found)))
