"""Which files a directory or a glob means, by one rule on this machine's disk and on every store."""

from __future__ import annotations

import errno
import fnmatch
import glob
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence

from pageseek.base.suggest import nearest_path
from pageseek.storage.hive import Partitions, partitions_of
from pageseek.storage.local import check_place, check_regular
from pageseek.storage.table_folders import LOG, MARKS, METADATA, ListedTables, kind_here

SUFFIXES = (".parquet", ".parq", ".pq")  # in capitals too
OTHER_NAMES = (
    "; names of data end in "
    + " or ".join(SUFFIXES)
    + "; give files of other names by a glob or as a list"
)
Found = tuple[str, Partitions]  # a path, and the values in the names of its folders
Identity = tuple[int, int]  # of a folder: device and inode
State = frozenset[int]
# errors of a link that leads nowhere, which is no file
_NOWHERE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EINVAL}


class NoDataError(FileNotFoundError):
    """A directory has no data."""

    @classmethod
    def of(cls, name: str, there: str) -> NoDataError:
        """The error of a directory. `there`: what it has."""
        return cls(f"{name}: no .parquet file in this directory: {there}{OTHER_NAMES}")


def no_match(name: str, there: str = "") -> str:
    """That no file matches a glob. `there`: what is near."""
    deeper = "" if "**" in name else "; a glob of folders ends in /**/*.parquet"
    return f"{name}: no file matches{there}{deeper}{_braces(name)}"


def _braces(name: str) -> str:
    return "; {a,b} is no wildcard: give a list of paths" if re.search(r"\{.*,.*\}", name) else ""


def is_data(name: str) -> bool:
    """Whether the name of a file below a directory is that of a Parquet file."""
    return name.endswith(SUFFIXES) or name.lower().endswith(SUFFIXES)


def is_hidden(name: str) -> bool:
    """Whether files in or under this name are no data."""
    return name.startswith(("_", ".")) and "=" not in name


def first_magic(names: Sequence[str]) -> int | None:
    """The number of the first part of a path that has wildcards; None where none has."""
    return next((i for i, name in enumerate(names) if glob.has_magic(name)), None)


# ---- what is wanted


class Directory:
    """All data below a folder that is not hidden.

    Attributes
    ----------
    first : frozenset
        The state of the folder itself. A state stands for the folders on the way down.
    """

    first: State = frozenset({0})

    def takes(self, state: State, name: str) -> bool:
        """Whether a file of this name is wanted in a folder of that state."""
        if not name.endswith(SUFFIXES) and not is_data(name):  # spares a call for most of thousands
            return False
        return name[0] not in "_." or "=" in name

    def enters(self, state: State, name: str) -> State:
        """The state of a folder of this name inside; empty where no file in it can be wanted."""
        return frozenset() if is_hidden(name) else state


class Glob:
    """The files that a glob matches, by its parts, the first of which has wildcards.

    `**` is any number of folders, and hides what a directory hides. A wildcard at the beginning of a part matches no `.`.
    A state is the set of parts that may match the next name.
    """

    def __init__(self, parts: Sequence[str]) -> None:
        if ".." in parts:
            raise ValueError(f"{'/'.join(parts)}: '..' behind a wildcard: give the folder itself")
        self._parts = [None if part == "**" else _matcher(part) for part in parts]
        self._end = len(parts)
        self._hides = parts.index("**") if "**" in parts else self._end
        self._ends = [
            self._end in self._closed((i + (part != "**"),)) for i, part in enumerate(parts)
        ]
        self.first = self._closed((0,)) - {self._end}

    def takes(self, state: State, name: str) -> bool:
        return any(self._ends[i] and self._fits(i, name) for i in state)

    def enters(self, state: State, name: str) -> State:
        after = [i + (self._parts[i] is not None) for i in state if self._fits(i, name)]
        return self._closed(after) - {self._end}

    def _fits(self, i: int, name: str) -> bool:
        if i >= self._hides and is_hidden(name):
            return False
        part = self._parts[i]
        return part is None or part(name)

    def _closed(self, states: Iterable[int]) -> State:
        """The states, and those that follow where a `**` is no folder at all."""
        found = set(states)
        for i in range(min(found, default=self._end), self._end):
            if i in found and self._parts[i] is None:
                found.add(i + 1)
        return frozenset(found)


def _matcher(part: str) -> Callable[[str], bool]:
    if not glob.has_magic(part):
        return part.__eq__
    match = re.compile(fnmatch.translate(part)).match
    dotted = part.startswith(".")
    return lambda name: (dotted or not name.startswith(".")) and match(name) is not None


def _fits(wanted: Directory | Glob, below: str) -> bool:
    *folders, name = below.split("/")
    state = wanted.first
    for folder in folders:
        state = wanted.enters(state, folder)
        if not state:
            return False
    return wanted.takes(state, name)


def _with_folders(found: Iterable[tuple[str, str]]) -> list[Found]:
    """Paths, sorted, with the values in the names of their folders. `found`: pairs of a path and its part below the root."""
    kept: list[Found] = []
    said: dict[str, Partitions] = {}
    for path, below in sorted(found):
        folder = below.rpartition("/")[0]
        if folder not in said:
            said[folder] = partitions_of(folder.split("/")) if "=" in folder else ()
        kept.append((path, said[folder]))
    return kept


# ---- this machine's disk


def on_disk(path: str, seen: ListedTables | None = None) -> list[Found]:
    """The files that a local path means: itself, those of a directory, or of a glob. Their paths are absolute.

    `seen` receives the tables on the way. Where the path itself is one, no files are looked for.
    """
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        mode = 0
    if stat.S_ISDIR(mode):
        root = os.path.abspath(path)
        if seen is not None and (kind := kind_here(root, (LOG, METADATA))) is not None:
            seen.root = seen.table(kind, root)
            return []
        found = _with_folders(_walk(root, Directory(), seen))
        if seen is not None:
            seen.recognize(found)
        if not found and (seen is None or seen.below is None):
            from pageseek.storage.nothing_found import in_directory  # late: for this error only

            there = in_directory(root, SUFFIXES)
            raise NoDataError.of(path if path == root else f"{path} ({root})", there)
        return found
    if mode:
        if not stat.S_ISREG(mode):
            check_regular(mode, path)
        return [(os.path.abspath(path), ())]
    names = path.replace(os.sep, "/").split("/")
    at = first_magic(names)
    if at is None:
        if not path:
            raise FileNotFoundError("'': an empty name, which no file has")
        if os.path.islink(path):
            raise FileNotFoundError(
                f"{path}: no such file; it is a symbolic link to {os.readlink(path)}, which is not there"
            )
        close = nearest_path(path)
        folder = os.path.dirname(os.path.abspath(path))
        meant = "" if os.path.isdir(folder) else f"; there is no folder {folder}"
        meant = _braces(path) or (f"; did you mean {close}?" if close else meant)
        where = "" if meant or os.path.isabs(path) else f" in {folder}"
        raise FileNotFoundError(f"{path}: no such file{where}{meant}")
    wanted = Glob([name for name in names[at:-1] if name not in ("", ".")] + names[-1:])
    top = os.path.abspath("/".join(names[:at]) + "/" if at else ".")
    found = _with_folders(_walk(top, wanted, seen)) if os.path.isdir(top) else []
    if not found:
        from pageseek.storage.nothing_found import by_glob

        raise FileNotFoundError(no_match(path, by_glob(path, top)))
    if seen is not None:
        seen.recognize(found, chosen=True)
    return found


def _walk(
    root: str, wanted: Directory | Glob, seen: ListedTables | None
) -> Iterator[tuple[str, str]]:
    """The wanted files below a folder, and their paths below it.

    Links are followed, but not into a folder on the way from the root. `seen` learns of folders that make others tables.
    """
    folders: list[tuple[str, str, State, frozenset[Identity] | None]] = []
    folders.append((root, "", wanted.first, None))
    while folders:
        folder, below, state, passed = folders.pop()
        above = passed
        # errors go to the caller: without a folder rows would be missing
        with os.scandir(folder) as found:
            for entry in found:
                name = entry.name
                taken = wanted.takes(state, name)
                if taken and _is(entry.is_file):
                    yield entry.path, below + name
                    continue
                # a link that cannot matter is not followed
                linked = entry.is_symlink()
                if taken and (linked or not entry.is_dir()):
                    check_place(entry.path)  # an error for a pipe, say, which is not read
                if not linked and not entry.is_dir():
                    continue
                if seen is not None and name in MARKS:
                    seen.look(folder, name, not below)
                inner = wanted.enters(state, name)
                if not inner or not _is(entry.is_dir):
                    continue
                through = passed
                if linked or passed is not None:  # else there is no circle
                    above = above or _passed(root, below)
                    here = identity(entry.path)
                    if here in above:
                        continue
                    through = above | {here}
                folders.append((entry.path, f"{below}{name}/", inner, through))


def _is(kind: Callable[[], bool]) -> bool:
    try:
        return kind()
    except OSError as error:
        if error.errno in _NOWHERE:  # a link in a circle, say
            return False
        raise


def identity(folder: str) -> Identity:
    """What two paths of one folder have in common."""
    found = os.stat(folder)
    return found.st_dev, found.st_ino


def _passed(root: str, below: str) -> frozenset[Identity]:
    """The folders from the root down to one below it."""
    found, folder = [identity(root)], root
    for name in below.split("/")[:-1]:
        folder = os.path.join(folder, name)
        found.append(identity(folder))
    return frozenset(found)


# ---- stores


def on_store(
    path: str, find: Callable[[str], Iterable[str]], seen: ListedTables | None = None
) -> list[Found] | None:
    """The files that a folder or a glob on a store means; None where there are none. A file whose name is the glob itself
    comes first.

    `find`: lists the paths of all files below a folder. `seen` receives the tables among them; the files of a folder that is
    one are not returned.
    """
    names = path.rstrip("/").split("/")
    at = first_magic(names)
    if at is None:
        return _of_folder(_below(path, find(path.rstrip("/"))), seen)
    root, rest = "/".join(names[:at]), "/".join(names[at:])
    found = list(_below(root, find(root)))
    for one, below in found:
        if below == rest and not path.endswith("/"):
            return [(one, ())]
    inner = f"{rest}/"
    inside = [(one, below[len(inner) :]) for one, below in found if below.startswith(inner)]
    if inside:
        return _of_folder(inside, seen)
    wanted = Glob(path.split("/")[at:])
    made = _with_folders((one, below) for one, below in found if _fits(wanted, below))
    if seen is not None and made:
        seen.of_store(found)
        seen.recognize(made, chosen=True)
    return made or None


def _of_folder(found: Iterable[tuple[str, str]], seen: ListedTables | None) -> list[Found] | None:
    if seen is not None:
        found = list(found)
        seen.of_store(found)
        if seen.is_table():
            return None
    data = [pair for pair in found if is_data(pair[1])]
    wanted = Directory()
    made = _with_folders(pair for pair in data if _fits(wanted, pair[1])) if data else None
    if seen is not None:
        seen.recognize(made or ())
    return made


def _below(root: str, found: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The files below a folder, and their paths below it. Stores add and drop leading slashes."""
    top = f"{root.strip('/')}/".lstrip("/")
    for one in found:
        bare = one.lstrip("/")
        if bare.startswith(top) and len(bare) > len(top):
            yield one, bare[len(top) :]
