"""The log of a Delta Lake table, as far as `deltalake` does not tell what is in it: the deletion vectors of its files, which
files were removed by another spelling of their path, and for who commits to it the actions as they are spelt.

Delta protocol, sections "Delta Log Entries", "Checkpoints" and "Deletion Vectors".
"""

from __future__ import annotations

import base64
import binascii
import io
import json
import os
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import field, replace
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from pageseek.base.errors import CorruptFileError, UnsupportedError
from pageseek.base.late_modules import compute as pc
from pageseek.base.records import dataclass
from pageseek.datasets.deletes import DeletionVector
from pageseek.datasets.delta_paths import Spelling
from pageseek.datasets.lake_places import Places
from pageseek.storage.remote import RemoteStore, whole_file
from pageseek.storage.resolve import Source
from pageseek.storage.store import Store
from pageseek.storage.table_folders import LOG

_checkpoint = re.compile(
    r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10})|\.[\w-]+)?\.(?:parquet|json)"
)
_entry = re.compile(rf"\d{{20}}\.json|{_checkpoint.pattern}")
_commit = re.compile(r"\d{20}\.json")
_sidecar = re.compile(r"_sidecars/[\w.-]+\.parquet")
# the alphabet of Z85 (rfc.zeromq.org/spec/32), and that of Python's base85
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_to_b85 = str.maketrans(_Z85, _B85)
_OF_TABLES = "protocol", "metaData"
SIDE_BY_SIDE = 16  # remote files that are read at a time
_UUID_LENGTH = 20  # characters of an encoded UUID


def is_commit(name: str) -> bool:
    """Whether a name in `_delta_log/` is that of a commit."""
    return _commit.fullmatch(name) is not None


def newest_of(names: Iterable[str]) -> int:
    """The newest version that a log with files of these names tells of; -1 for none."""
    return max((int(name[:20]) for name in names if _entry.fullmatch(name)), default=-1)


def refuse_later(version: int, names: Iterable[str], where: str) -> None:
    """UnsupportedError if a log with files of these names ends before a version. `deltalake` 1.6 seeks very late ones for long."""
    newest = newest_of(names)
    if 0 <= newest < version:
        raise UnsupportedError(
            f"{where}: version={version} is not in the log, whose newest is {newest}: give version={newest}, or an older one"
        )


def chosen_log(names: Iterable[str], version: int | None = None) -> list[str]:
    """Those of the names below `_delta_log/` that a version needs, the newest one if none is given: the newest checkpoint that
    is whole, and all that came after it.
    """
    found = [
        name for name in names
        if version is None or not _entry.fullmatch(name) or int(name[:20]) <= version
    ]  # fmt: skip
    parts: dict[tuple[int, int], list[str]] = {}
    whole: set[str] = set()
    for name in found:
        if (one := _checkpoint.fullmatch(name)) is None:
            continue
        if one[3] is None:
            whole.add(name)
            continue
        same = parts.setdefault((int(one[1]), int(one[3])), [])
        same.append(name)
        if len(same) == int(one[3]):
            whole.update(same)
    newest = max((int(name[:20]) for name in whole), default=-1)
    return [
        name
        for name in found
        if ((name in whole or _commit.fullmatch(name)) and int(name[:20]) >= newest)
        or (newest >= 0 and _sidecar.fullmatch(name))
    ]


class _Ranges(io.RawIOBase):
    """A file as an object that reads and seeks, for pyarrow."""

    def __init__(self, store: Store) -> None:
        tail = store.tail if isinstance(store, RemoteStore) else None
        self._store, self._at = store, 0
        self._tail = memoryview(b"" if tail is None else tail).cast("B")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {os.SEEK_CUR: self._at, os.SEEK_END: self._store.size}.get(whence, 0)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, room: Any) -> int:
        length = min(len(room), max(self._store.size - self._at, 0))
        at = self._at - (self._store.size - len(self._tail))
        if at >= 0 or not length:
            room[:length] = self._tail[at : at + length]
        else:
            room[:length] = memoryview(self._store.read([(self._at, length)])[0]).cast("B")
        self._at += length
        return length


def names_here(log: str) -> Iterator[str]:
    """The names below a local log."""
    yield from os.listdir(log)
    sidecars = os.path.join(log, "_sidecars")
    if os.path.isdir(sidecars):
        yield from (f"_sidecars/{name}" for name in os.listdir(sidecars))


@dataclass(slots=True)
class Replayed:
    """What a version of a table has.

    Attributes
    ----------
    vectors : dict
        The descriptors of deletion vectors, by the paths of their files.
    spelling : Spelling
        Gives paths one spelling.
    removed : set of str
        The files that commits removed, in that spelling.
    tombstones : dict of str to str
        How the checkpoint spells the paths of files that were removed, by that spelling.
    spelt : dict of str to str
        How the last commit that added a file spells its path, by that spelling.
    actions : dict, optional
        The last `protocol` and the last `metaData`; None where `replay` was not asked for actions.
    added : dict
        The actions that added files, by the paths of these; empty where `replay` was not asked for actions.
    """

    spelling: Spelling
    vectors: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    tombstones: dict[str, str] = field(default_factory=dict)
    spelt: dict[str, str] = field(default_factory=dict)
    actions: dict[str, Mapping[str, Any]] | None = None
    added: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def live(self, paths: Sequence[str], where: str) -> list[bool]:
        """Which of the files that `deltalake` knows by these paths are there: no commit has removed them, or added them again, by
        another spelling. `deltalake` has a file twice where the vector of the older action was not removed by that spelling.

        Raises
        ------
        CorruptFileError
            A checkpoint has a file twice, and does not say which action is newer.
        """
        found, kept = [], dict[str, str]()
        for path in paths:
            same = self.spelling.of(path)
            there = same not in self.removed and self.spelt.get(same, path) == path
            if there and same in self.spelt and same in kept:  # with another vector
                there = False
            found.append(there)
            if not there:
                continue
            gone = None if same in self.spelt else self.tombstones.get(same)
            if gone is not None and gone != path:
                raise CorruptFileError(
                    f"{where}: its checkpoint adds {path!r} and removes {gone!r}, which are one file"
                )
            if same in kept:
                raise CorruptFileError(
                    f"{where}: its checkpoint adds {kept[same]!r} and {path!r}, which are one file"
                )
            kept[same] = path
        return found


def _keep(
    table: pa.Table, actions: dict[str, Mapping[str, Any]], added: dict[str, Mapping[str, Any]]
) -> None:
    """Take in the actions of a checkpoint, whose maps are lists of pairs."""
    for name in _OF_TABLES:
        if name in table.column_names:
            kept = table[name].filter(table[name].is_valid())
            for one in kept.to_pylist():
                actions[name] = _plain(one, kept.type)
    if "add" in table.column_names:
        adds = table["add"].filter(table["add"].is_valid())
        for one in adds.to_pylist():
            if one["path"] is not None:
                added[unquote(one["path"])] = _plain(one, adds.type)


def _plain(found: Any, kind: pa.DataType) -> Any:
    """A struct or a map of Arrow as JSON has it: without fields that are null. An empty map is told by its type alone."""
    if pa.types.is_struct(kind):
        return {
            name: _plain(one, kind.field(name).type)
            for name, one in found.items()
            if one is not None
        }
    return dict(found) if pa.types.is_map(kind) else found


def _is_action(found: Any) -> bool:
    """Whether a line of a log is an action whose files have paths, as far as it is looked at."""
    if not isinstance(found, dict):
        return False
    for kind in ("add", "remove", "sidecar"):
        one = found.get(kind)
        if one is not None and not (isinstance(one, dict) and isinstance(one.get("path"), str)):
            return False
    added = found.get("add") or {}
    if added and not added["path"]:  # that of the table's folder
        return False
    vector = added.get("deletionVector")
    return vector is None or isinstance(vector, dict)


class DeltaLog:
    """The log of a table.

    Parameters
    ----------
    root : Source
        The folder that has the log.
    where : str
        The table, in errors.
    folder : Source, optional
        The folder of the table, if the log is a copy.
    """

    def __init__(self, root: Source, where: str, folder: Source | None = None) -> None:
        self._root, self._where = root, where
        self.spelling = Spelling(root if folder is None else folder)
        self._listed: dict[str, str] | None = None

    @property
    def paths(self) -> dict[str, str]:
        """Where the files of the log lie, by their names. They are listed when they are needed first."""
        if self._listed is None:
            root = self._root
            if root.filesystem is None:
                log = os.path.join(root.path, LOG)
                try:
                    self._listed = {name: os.path.join(log, name) for name in names_here(log)}
                except FileNotFoundError as error:
                    raise replace(root, path=log, table=self._where).missing() from error
            else:
                start = f"{root.path.rstrip('/')}/{LOG}".lstrip("/")
                found = root.filesystem.find(start, root.retry_policy)
                self._listed = {path.lstrip("/")[len(start) + 1 :]: path for path in found}
        return self._listed

    def commits(self) -> dict[int, str]:
        """The names of the commits that are there, by version."""
        return {int(name[:20]): name for name in self.paths if is_commit(name)}

    def modified(self) -> dict[str, float]:
        """When the commits that are there were written, by their names, in seconds since 1970."""
        root, paths = self._root, {name: self.paths[name] for name in self.commits().values()}
        if root.filesystem is None:
            return {name: os.stat(path).st_mtime for name, path in paths.items()}
        start = f"{root.path.rstrip('/')}/{LOG}".lstrip("/")
        told = root.filesystem.modified(start, root.retry_policy)
        times = {path.lstrip("/"): time for path, time in told.items()}
        there = {name: path.lstrip("/") for name, path in paths.items()}
        return {name: times[path] for name, path in there.items() if path in times}

    def newest(self) -> int:
        """The newest version that it tells of; -1 for none."""
        return newest_of(self.paths)

    def actions(self, name: str) -> list[dict[str, Any]]:
        """The actions of a commit."""
        return list(self._lines(name))

    def replay(self, version: int, actions: bool = False) -> Replayed:
        """What the log of a version says beyond what `deltalake` tells. `actions`: whether those are wanted as they are spelt."""
        names = self._whole(version)
        found = Replayed(self.spelling, actions={} if actions else None)
        for name in sorted(names, key=lambda name: name[:20]):
            if not _sidecar.fullmatch(name) and not _commit.fullmatch(name):
                self._checkpoint(name, found)
        first = max((int(name[:20]) for name in names if _checkpoint.fullmatch(name)), default=-1)
        for name in sorted(filter(_commit.fullmatch, names)):
            if int(name[:20]) > first:
                self._replay(self._lines(name), found)
        return found

    def _whole(self, version: int) -> list[str]:
        """The names that a version needs.

        Raises
        ------
        UnsupportedError
            One of them is not there.
        """
        names = chosen_log(self.paths, version)
        first = max((int(name[:20]) for name in names if _checkpoint.fullmatch(name)), default=-1)
        there = {int(name[:20]) for name in names if _commit.fullmatch(name)}
        for one in range(first + 1, version + 1):
            if one not in there:
                raise UnsupportedError(
                    f"{self._where}: its log does not tell version {version} any more, because {LOG}/{one:020}.json is not there: "
                    "open the table again, or read another version (version=)"
                )
        return names

    def removes(self, version: int) -> list[str]:
        """The paths that the newest checkpoint of a version, and the commits after it, remove, as they are spelt."""
        names = chosen_log(self.paths, version)
        first = max((int(name[:20]) for name in names if _checkpoint.fullmatch(name)), default=-1)
        wanted = [
            name for name in names
            if not _commit.fullmatch(name) or int(name[:20]) > first
        ]  # fmt: skip
        if self._root.filesystem is None:
            return [path for name in wanted for path in self._removes(name)]
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            return [path for paths in pool.map(self._removes, wanted) for path in paths]

    def _removes(self, name: str) -> list[str]:
        if name.endswith(".parquet"):
            return self._tombstones(name, self._columns(name, ("remove.path",)))
        removes = [action.get("remove") for action in self._lines(name, b'"remove"')]
        return [one["path"] for one in removes if one]

    def _checkpoint(self, name: str, found: Replayed) -> None:
        if name.endswith(".json"):
            actions = list(self._lines(name))
            self._replay(actions, found)
            sidecars = [action["sidecar"]["path"] for action in actions if action.get("sidecar")]
        else:
            sidecars = self._parquet(name, found)
        for path in sidecars:
            inside = f"_sidecars/{path.rpartition('/')[2]}"
            if inside not in self.paths:
                raise CorruptFileError(
                    f"{self._where}: {LOG}/{name} names {path!r}, which is not there"
                )
            self._parquet(inside, found)

    def _parquet(self, name: str, found: Replayed) -> list[str]:
        """Take in the files of a checkpoint. Returns the sidecars that it names."""
        ours = ("add", "sidecar", "remove.path")
        table = self._columns(name, (*ours, *_OF_TABLES) if found.actions is not None else ours)
        for path in self._tombstones(name, table):
            found.tombstones[self.spelling.of(path)] = path
        if "add" in table.column_names:
            kind = table.schema.field("add").type
            if kind.get_field_index("path") >= 0:
                # as a function: below an action that is null there may be anything
                at = pc.index(pc.struct_field(table["add"], "path"), "").as_py()
                if at >= 0:
                    raise CorruptFileError(
                        f"{self._where}: {LOG}/{name}, row {at + 1}: adds a file without a path"
                    )
            if kind.get_field_index("deletionVector") >= 0:
                for chunk in table["add"].chunks:
                    for path, said in zip(
                        chunk.field("path").to_pylist(), chunk.field("deletionVector").to_pylist(), strict=True
                    ):  # fmt: skip
                        if path is not None and said is not None and said.get("storageType"):
                            found.vectors[unquote(path)] = said
        if found.actions is not None:
            _keep(table, found.actions, found.added)
        if "sidecar" not in table.column_names:
            return []
        return [one["path"] for one in table["sidecar"].to_pylist() if one and one.get("path")]

    def _columns(self, name: str, columns: Sequence[str]) -> pa.Table:
        """Those of the columns that a checkpoint has. No others are read of a large one."""
        try:
            with closing(self._source(name).open()) as store:
                return pq.ParquetFile(_Ranges(store), pre_buffer=True).read(columns=columns)
        except (pa.ArrowException, OSError) as error:
            raise CorruptFileError(f"{self._where}: {LOG}/{name}: {error}") from error

    def _tombstones(self, name: str, table: pa.Table) -> list[str]:
        """The paths of the files that a checkpoint removes."""
        if "remove" not in table.column_names:
            return []
        paths = pc.struct_field(table["remove"], "path").drop_null()
        if not (pa.types.is_string(paths.type) or pa.types.is_large_string(paths.type)):
            raise CorruptFileError(f"{self._where}: {LOG}/{name}: its paths are {paths.type}")
        found: list[str] = paths.to_pylist()
        return found

    def _lines(self, name: str, word: bytes = b"") -> Iterator[dict[str, Any]]:
        """The actions of a file. `word`: only lines that may have it."""
        # of bytes: text has more ends of lines
        for number, line in enumerate(self.read(name).splitlines(), 1):
            if not line.strip() or not (word in line or rb"\u" in line):
                continue
            where = f"{self._where}: {LOG}/{name}, line {number}"
            try:
                action = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise CorruptFileError(f"{where}: is no JSON: {error}") from error
            if not _is_action(action):
                raise CorruptFileError(f"{where}: is no action of a log: {line[:100]!r}")
            yield action

    def _replay(self, actions: Iterable[dict[str, Any]], found: Replayed) -> None:
        """Take in the actions of a commit. A file whose vector changes is removed and added by the same one."""
        actions = list(actions)
        for action in actions:
            if (removed := action.get("remove")) is not None:
                found.removed.add(self.spelling.of(removed["path"]))
            if found.actions is not None:
                found.actions |= {name: action[name] for name in _OF_TABLES if action.get(name)}
        for action in actions:
            added = action.get("add")
            if added is None:
                continue
            path, said = unquote(added["path"]), added.get("deletionVector")
            if found.actions is not None:
                found.added[path] = added
            same = self.spelling.of(added["path"])
            found.removed.discard(same)
            found.spelt[same] = added["path"]
            if said is None:
                found.vectors.pop(path, None)
            else:
                found.vectors[path] = said

    def read(self, name: str) -> bytes:
        """The bytes of a file of the log."""
        return whole_file(self._source(name).open())

    def _source(self, name: str) -> Source:
        root = self._root
        path, files, table = self.paths[name], root.filesystem, self._where
        return Source(path, files, retry_policy=root.retry_policy, table=table)


def deletion_vector(
    said: Mapping[str, Any], inside: str, root: Source, places: Places, where: str
) -> DeletionVector:
    """The vector of a descriptor. `inside`: the beginning of paths in the folder of the table, `root`."""
    try:
        kind, text = said["storageType"], said["pathOrInlineDv"]
        length, num_rows = int(said["sizeInBytes"]), int(said["cardinality"])
        offset = int(said.get("offset") or 0)
        if kind == "i":
            return DeletionVector(None, 0, length, _decoded(text), num_rows)
        if kind == "u":
            folder, name = text[:-_UUID_LENGTH], uuid.UUID(bytes=_decoded(text[-_UUID_LENGTH:]))
            path = (
                f"{folder}/deletion_vector_{name}.bin" if folder else f"deletion_vector_{name}.bin"
            )
            source = replace(root, path=inside + path)
        elif kind == "p":
            source = places.source(text, ())
            if not urlsplit(text).scheme:
                source = replace(root, path=unquote(text))
        else:
            raise UnsupportedError(f"{where}: deletion vectors of kind {kind!r} are not known here")
    except (KeyError, TypeError, ValueError, binascii.Error) as error:
        raise CorruptFileError(
            f"{where}: its log describes a deletion vector by {dict(said)!r}: {error!r}"
        ) from None
    return DeletionVector(source, offset, length, None, num_rows)


def _decoded(text: str) -> bytes:
    """The bytes of a text in Z85."""
    if set(text) - set(_Z85):
        raise ValueError(f"{text!r} is no text in base 85")
    return base64.b85decode(text.translate(_to_b85))
