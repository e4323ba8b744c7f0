"""Folders whose log or metadata says which of their files count: tables of Delta Lake or Iceberg, and file sinks of Spark.

A table has files of older versions too. A sink, which is where a stream of Spark writes to, has files of tasks that failed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import field

from pageseek.base.errors import UnsupportedError
from pageseek.base.records import dataclass
from pageseek.storage.files import Files

DELTA, ICEBERG, SINK = "Delta Lake", "Iceberg", "file sink of Spark"
LOG, METADATA, SINK_LOG = "_delta_log", "metadata", "_spark_metadata"
ENDS = (".metadata.json", ".metadata.json.gz")
MARKS = {LOG: DELTA, METADATA: ICEBERG, SINK_LOG: SINK}  # names of folders inside
REMEDY = "table=False reads the bare files"
MAX_FOLDERS = 64  # local files whose folders are looked at for tables
_IN_LOG = rf"(?:(.*?)/)?{LOG}/"
_IN_METADATA = rf"(?:(.*)/)?{METADATA}/[^/]+\.metadata\.json(?:\.gz)?"
_IN_SINK_LOG = rf"(?:(.*?)/)?{SINK_LOG}/"


@dataclass(frozen=True, slots=True)
class TableFolder:
    """A folder that is a table or a sink.

    `filesystem`: None on this machine's disk. `name`: the path without secrets. `files`: on a store, the paths of its log or
    its metadata. `metadata`: the path of the file of metadata that was given, in place of the folder.
    """

    kind: str
    path: str
    name: str
    filesystem: Files | None = None
    files: tuple[str, ...] = ()
    metadata: str = ""

    @property
    def remedy(self) -> str:
        """What else can be given."""
        return "give the folder of the table" if self.metadata else REMEDY


def of_metadata(path: str, filesystem: Files | None) -> TableFolder | None:
    """The table of Iceberg that a file of metadata describes; None for other files."""
    if not path.endswith(ENDS):
        return None
    folder = os.path.dirname(path)
    if os.path.basename(folder) == METADATA:
        folder = os.path.dirname(folder)
    name = path if filesystem is None else filesystem.name(path)
    return TableFolder(ICEBERG, folder, name, filesystem, (), path)


# ---- this machine's disk


def kind_here(folder: str, marks: Iterable[str] = MARKS) -> str | None:
    """The kind of table or sink that a local folder is, by these MARKS; None for other folders.

    A Delta Lake table may have metadata of Iceberg too, for other readers. Its log counts.
    """
    return next((MARKS[name] for name in marks if _is_mark(folder, name)), None)


def _is_mark(folder: str, name: str) -> bool:
    path = os.path.join(folder, name)
    try:
        with os.scandir(path) as found:
            if name == SINK_LOG:  # Spark reads no other files, even if it is empty
                return True
            if name == METADATA:
                return any(one.name.endswith(ENDS) for one in found)
            first = next(found, None)  # the log of a new table may be empty
            return first is None or _is_logged(first.name) or any(_is_logged(o.name) for o in found)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # a folder that may not be read
        return name != METADATA


def _is_logged(name: str) -> bool:
    """Whether the name is that of a file in a log: a commit, a checkpoint, or the pointer to the last checkpoint."""
    return name.endswith(".json") or ".checkpoint." in name or name == "_last_checkpoint"


def above_here(path: str) -> list[str]:
    """The folders that a local path lies in, the nearest first; for a link, those of its target first."""
    folders = []
    for found in dict.fromkeys((os.path.realpath(path), os.path.abspath(path))):
        folder = os.path.dirname(found)
        folders.append(folder)
        while (above := os.path.dirname(folder)) != folder:
            folders.append(folder := above)
    return list(dict.fromkeys(folders))


# ---- listings


@dataclass(slots=True)
class ListedTables:
    """The tables that one listing has found. `filesystem`: has the listed folder; None: this machine's disk.

    `root`: the listed folder, if it is one. `around`: the listed folder, if it is one or a sink, and a glob chose files in it.
    `below`: a folder below that is one, and has some of the found files. `sinks`: those that have some of them.
    `chosen`: a glob chose the files.
    """

    filesystem: Files | None = None
    root: TableFolder | None = None
    around: TableFolder | None = None
    below: TableFolder | None = None
    sinks: list[TableFolder] = field(default_factory=list)
    chosen: bool = False
    _listed: list[TableFolder] = field(default_factory=list)  # of the listed folder
    _deeper: list[TableFolder] = field(default_factory=list)  # of folders below

    def table(self, kind: str, folder: str, files: tuple[str, ...] = ()) -> TableFolder:
        """A folder of the filesystem as a table."""
        name = folder if self.filesystem is None else self.filesystem.name(folder)
        return TableFolder(kind, folder, name, self.filesystem, files)

    def look(self, folder: str, name: str, is_root: bool) -> None:
        """Look into a folder of a name in MARKS, which lies in a local folder. `is_root`: that is the listed folder."""
        if _is_mark(folder, name):
            found = self.table(MARKS[name], folder)
            (self._listed if is_root else self._deeper).append(found)

    def of_store(self, found: Iterable[tuple[str, str]]) -> None:
        """Look for tables among the files that a store has listed: pairs of a path and its part below the listed folder."""
        pairs = list(found)
        folders: dict[tuple[str, str], str] = {}  # path below the listed folder, kind -> path
        for path, below in pairs:
            kind, inside = DELTA, None
            if LOG in below and _is_logged(below.rpartition("/")[2]):
                inside = re.match(_IN_LOG, below)
            if inside is None and below.endswith(ENDS):
                kind, inside = ICEBERG, re.fullmatch(_IN_METADATA, below)
            if inside is None and SINK_LOG in below:
                kind, inside = SINK, re.match(_IN_SINK_LOG, below)
            if inside is not None:
                folder = inside[1] or ""
                full = (path[: len(path) - len(below)] + folder).rstrip("/")
                folders.setdefault((folder, kind), full)
        names = {kind: name for name, kind in MARKS.items()}
        for (folder, kind), full in folders.items():
            start = "/".join(filter(None, (folder, names[kind]))) + "/"
            files = tuple([path for path, below in pairs if below.startswith(start)])
            (self._deeper if folder else self._listed).append(self.table(kind, full, files))

    def is_table(self) -> bool:
        """Whether the listed folder is a table; one of Delta Lake, if it may be one of Iceberg too."""
        mine = [table for table in self._listed if table.kind != SINK]
        mine.sort(key=lambda table: table.kind != DELTA)
        self.root = mine[0] if mine else None
        return bool(mine)

    def recognize(self, found: Sequence[tuple[str, object]], chosen: bool = False) -> None:
        """Set `around`, `below` and `sinks`. `found`: the paths of the files that were found, and what else is known of them.
        `chosen`: a glob chose them.
        """
        self.chosen = chosen
        if chosen:
            self.around = self._listed[0] if self._listed else None
        else:
            self.sinks += [table for table in self._listed if table.kind == SINK]
        for table in sorted(self._deeper, key=lambda table: len(table.path)):
            inside = table.path.rstrip("/" + os.sep)
            has_some = any(one.startswith((f"{inside}/", inside + os.sep)) for one, _ in found)
            if table.kind == SINK:
                # in a sink, its log says what counts, not those of sinks in it
                tops = [one.path.rstrip("/" + os.sep) for one in self.sinks]
                if has_some and not any(inside.startswith((f"{t}/", t + os.sep)) for t in tops):
                    self.sinks.append(table)
            elif self.below is None and (has_some or not found):
                self.below = table


class Tables:
    """The tables that are found while a source is resolved. `passes_over`: whether files that the log of a sink has may be gone."""

    def __init__(self, passes_over: bool = False) -> None:
        self.found: list[TableFolder] = []
        self.notes: list[str] = []
        self.near: list[str] = []  # local files, which may lie in tables
        self.passes_over = passes_over

    def take(self, seen: ListedTables) -> None:
        """Take the tables that a listing has found.

        Raises
        ------
        UnsupportedError
            A folder below the listed one is a table.
        """
        if seen.root is not None:
            self.found.append(seen.root)
        if (table := seen.below) is not None:
            raise UnsupportedError(
                f"{table.name}: this folder is a table of {table.kind}, whose files of older versions would be read too: "
                f"give it alone, which reads its current version; {REMEDY}"
            )
        if (table := seen.around) is not None:
            self.notes.append(inside_note(table.kind, table.name))


def inside_note(kind: str, folder: str) -> str:
    """The note of `explain` on files that were named and lie in a table or a sink."""
    named = "the files that were named are read"
    if kind == SINK:
        return f"{folder} is a {kind}: {named}, whether its log ({SINK_LOG}) has them or not"
    return f"{folder} is a table of {kind}: {named}, whichever of its versions have them"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the files of a scan come from. `near`: local files whose folders were not looked at for tables yet."""

    notes: tuple[str, ...] = ()
    near: tuple[str, ...] = ()

    def told(self) -> list[str]:
        """The notes of `explain` on tables that the files come from, or lie in."""
        folders = {one: None for place in self.near[:MAX_FOLDERS] for one in above_here(place)}
        kinds = ((folder, kind_here(folder)) for folder in folders)
        found = (inside_note(kind, folder) for folder, kind in kinds if kind is not None)
        return list(dict.fromkeys((*self.notes, *found)))
