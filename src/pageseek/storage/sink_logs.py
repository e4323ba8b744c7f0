"""The logs of Spark's file sinks: which files the stream that writes to a folder has committed.

A batch of the stream is a file `_spark_metadata/N`: a line with the version, and a line of JSON for each file. `N.compact` has the
files of all batches up to it. Files of tasks that failed or were repeated lie in the folder too, and no batch has them.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from urllib.parse import unquote, urlsplit

from pageseek.base.errors import CorruptFileError, UnsupportedError
from pageseek.storage.listing import Found, NoDataError
from pageseek.storage.local import LocalStore
from pageseek.storage.remote import whole_file
from pageseek.storage.retry import RetryPolicy
from pageseek.storage.store import Store
from pageseek.storage.table_folders import REMEDY, SINK_LOG, ListedTables, TableFolder, Tables

VERSION = 1
TRIES = 3  # readings of a log: old batches are deleted when a stream has compacted them
_BATCH = re.compile(r"(\d+)(\.compact)?")


def logged_files(
    seen: ListedTables,
    tables: Tables,
    listed: Callable[[], Sequence[Found] | None],
    retry_policy: RetryPolicy,
) -> list[Found]:
    """The files that a listing finds, without those in its sinks that their logs do not have. A note goes to `tables`.

    `listed`: makes the listing; it comes after the logs were read, so that it has all files that they have.

    Raises
    ------
    CorruptFileError
        A log is damaged, or a batch or a file that it has is missing.
    NoDataError
        No file is left.
    UnsupportedError
        A log is of a later version.
    """
    logs = [(sink, _read(sink, retry_policy)) for sink in seen.sinks]
    found = list(listed() or ())
    for sink, paths in logs:
        kept, missing = _kept(sink, paths, found)
        if missing and not (tables.passes_over or seen.chosen):
            others = f", and {len(missing) - 1:,} more" if len(missing) > 1 else ""
            raise CorruptFileError(
                f"{missing[0]}{others}: no such file in {sink.name}, though the log of the stream of Spark that writes there has it "
                f"({SINK_LOG}): put it back; {REMEDY}"
            )
        tables.notes.append(
            f"{sink.name} is a {sink.kind}: its log ({SINK_LOG}) has {len(paths):,} files; {len(found) - len(kept):,} others are not "
            f"read; {REMEDY}"
        )
        found = kept
    if not found:
        raise NoDataError(
            f"{seen.sinks[0].name}: no file: the stream of Spark that writes here has committed none ({SINK_LOG}); {REMEDY}"
        )
    return found


def _kept(
    sink: TableFolder, paths: set[str], listed: Sequence[Found]
) -> tuple[list[Found], list[str]]:
    """The files outside of a sink, and those inside that its log has; and the paths in the log that are not there.

    The log has whole paths. They are compared from the sink on, which may lie elsewhere now, or be mounted there.
    """
    by_name: dict[str, list[str]] = {}
    for path in paths:
        by_name.setdefault(posixpath.basename(path), []).append(path)
    top = _spelled(sink.path)
    kept, found = [], set()
    for one in listed:
        path = _spelled(one[0])
        if not path.startswith(f"{top}/"):
            kept.append(one)
            continue
        below = path[len(top) :]
        mine = [
            logged for logged in by_name.get(posixpath.basename(path), ()) if logged.endswith(below)
        ]
        if mine:
            kept.append(one)
            found.update(mine)
    return kept, sorted(paths - found)


def _spelled(path: str) -> str:
    """A path with one spelling: stores add and drop slashes at its ends."""
    return "/" + path.replace(os.sep, "/").strip("/")


def _read(sink: TableFolder, retry_policy: RetryPolicy) -> set[str]:
    """The paths of the files that a log has."""
    for left in reversed(range(TRIES)):
        files = _log_files(sink, retry_policy)
        try:
            return _paths(sink, files, retry_policy)
        except FileNotFoundError:
            if not left:
                raise
    raise AssertionError


def _log_files(sink: TableFolder, retry_policy: RetryPolicy) -> dict[str, str]:
    """The paths of the files of a log, by their names."""
    files = sink.filesystem
    if files is None:
        folder = os.path.join(sink.path, SINK_LOG)
        return {name: os.path.join(folder, name) for name in os.listdir(folder)}
    folder = f"{sink.path.rstrip('/')}/{SINK_LOG}"
    return {posixpath.basename(path): path for path in files.find(folder, retry_policy)}


def _paths(sink: TableFolder, files: Mapping[str, str], retry_policy: RetryPolicy) -> set[str]:
    batches = {}  # number -> name; that of a compacted one comes later, and counts
    compacted = -1
    for name in sorted(files):
        if inside := _BATCH.fullmatch(name):
            number = int(inside[1])
            if inside[2]:
                compacted = max(compacted, number)
            batches[number] = name
    numbers = range(max(compacted, 0), max(batches, default=-1) + 1)
    paths: set[str] = set()
    for number in numbers:
        if number not in batches:
            raise CorruptFileError(
                f"{sink.name}: batch {number} is missing in {SINK_LOG}, which has others up to {numbers[-1]}: the files of that batch are "
                f"not known; {REMEDY}"
            )
        at, filesystem = files[batches[number]], sink.filesystem
        store: Store = LocalStore(at) if filesystem is None else filesystem.open(at, retry_policy)
        name = at if filesystem is None else filesystem.name(at)
        for path, is_there in _entries(name, whole_file(store)):
            (paths.add if is_there else paths.discard)(path)
    return paths


def _entries(name: str, data: bytes) -> Iterator[tuple[str, bool]]:
    """The paths of the files of one batch, and whether they were added."""
    version, *lines = data.decode(errors="replace").split("\n")
    if not re.fullmatch(r"v\d+", version):
        raise CorruptFileError(
            f"{name}: the first line of a batch is its version, not {version[:40]!r}; {REMEDY}"
        )
    if int(version[1:]) > VERSION:
        raise UnsupportedError(
            f"{name}: version {version[1:]} of Spark's log is not known, {VERSION} is; {REMEDY}"
        )
    for number, line in enumerate(lines, 2):
        if not line:
            continue
        try:
            entry = json.loads(line)
            is_folder, action = entry.get("isDir", False), entry.get("action", "add")
            path = unquote(urlsplit(entry["path"]).path)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CorruptFileError(
                f"{name}: line {number} is no entry of a file ({type(error).__name__}); {REMEDY}"
            ) from None
        if not is_folder:
            yield path, action != "delete"
