"""Files that many tasks write, made visible once: staged in a hidden folder, then renamed after a manifest.

A staging folder has, in the order in which they come:

- `owner`: locked by the driver as long as it lives, where the system has such locks;
- a folder for each attempt of a task, with the files that it has written; those of `optimize` say when they are complete;
- `manifest.json`: which files get which names, and which old files go;
- `published`: all files have their names. Before this one the write is taken back if the driver has died, after it the
  write is finished. The next write into the folder does either.
"""

from __future__ import annotations

import importlib
import json
import os
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from pageseek.base.errors import PageseekError
from pageseek.storage.output_folders import AT_ONCE, OutputFolder

if TYPE_CHECKING:
    from collections.abc import Iterator

# file locks, which Windows has not
fcntl: Any = importlib.import_module("fcntl") if os.name == "posix" else None

STAGING = "_pageseek-staging-"
OWNER, MANIFEST, PUBLISHED, SUCCESS = "owner", "manifest.json", "published", "_SUCCESS"
STALE_AFTER = 7 * 86400.0  # seconds
ABANDONED = 3600.0  # seconds after which a folder without an owner is nobody's
FileVersion = tuple[int, str]  # bytes, and the tag of the store
_TIME = "%Y%m%dT%H%M%S"


@dataclass(slots=True)
class Staging:
    """The staging folder of one write. `job` is unique, and a part of the names of its files. `moved` is called after each file
    that has got its name.
    """

    folder: OutputFolder
    job: str
    _lock: int | None = field(default=None, repr=False)
    moved: Callable[[], None] = lambda: None

    @property
    def name(self) -> str:
        """Its name in the folder."""
        return STAGING + self.job

    def publish(
        self,
        files: Mapping[str, str],
        old: Sequence[str],
        replaces: bool,
        *,
        mark: bool = True,
        versions: Mapping[str, FileVersion] | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> list[str]:
        """Give staged files their names, then delete old files. Only all of it is a success.

        Parameters
        ----------
        files
            Staged names, and their last ones.
        replaces
            The mark of success is of the files that go, until the new ones are there.
        mark
            Whether the folder gets a mark of success.
        versions
            Those of old files that are deleted in these versions only.
        check
            Called when other writes can see what this one is about to do. What it raises ends the write.

        Returns
        -------
        list of str
            The old files that were not deleted, since they have other versions.
        """
        folder = self.folder
        marked = replaces and SUCCESS in old
        manifest = {"files": dict(files), "old": [*old], "marked": marked, "mark": mark}
        manifest["versions"] = dict(versions or {})
        folder.put(f"{self.name}/{MANIFEST}", json.dumps(manifest).encode())
        check()
        if marked:
            folder.delete([SUCCESS])
        folder.move(files, self.moved)
        folder.put(f"{self.name}/{PUBLISHED}", b"")
        return _finish(folder, self.name, manifest)

    def bring(self, files: Mapping[str, str]) -> None:
        """Give staged files their names, which nobody reads before a commit of a table. All of them, or none."""
        try:
            self.folder.move(files, self.moved)
        except BaseException:
            with suppress(Exception):
                self.folder.delete(files.values())
            raise

    def close(self) -> None:
        """Settle what is left of the write, and give up the lock."""
        try:
            settle_write(self.folder, self.name)
        finally:
            _unlock(self._lock)


def begin(folder: OutputFolder) -> Staging:
    """A new staging folder."""
    job = f"{datetime.now(UTC).strftime(_TIME)}-{secrets.token_hex(8)}"
    staging = Staging(folder, job)
    if folder.far:
        folder.put(f"{staging.name}/{OWNER}", b"")
        return staging
    # it has its name when it is locked: another write would take it for one of a dead driver
    hidden = os.path.join(folder.path, f".{staging.name}")
    os.makedirs(hidden)
    staging._lock = _locked(os.path.join(hidden, OWNER), os.O_CREAT)
    os.rename(hidden, os.path.join(folder.path, staging.name))
    return staging


def recover(
    folder: OutputFolder,
    stale_after: float,
    mine: str = "",
    dead: Callable[[str], None] = lambda name: None,
) -> None:
    """Of the writes whose drivers have died, finish those that were published, and take back the others.

    A driver has died if its lock is free. Where there are no locks, it is taken to have died after `stale_after` seconds.
    `mine`: the staging folder of the caller, which lives. `dead` is called with that of each write before it is
    finished or taken back.
    """
    for name in stagings(folder):
        if name == mine:
            continue
        with _taken(folder, name, stale_after) as free:
            if free:
                dead(name)
                settle_write(folder, name)


def in_motion(folder: OutputFolder, mine: str) -> dict[str, set[str]]:
    """By staging folder the files that other writes are giving their names, or are about to delete."""
    found = {}
    for name in stagings(folder):
        if name != mine:
            with suppress(FileNotFoundError):
                manifest = json.loads(folder.get(f"{name}/{MANIFEST}"))
                found[name] = {*manifest["files"].values(), *manifest["old"]}
    return found


def version_of(folder: OutputFolder, name: str) -> FileVersion | None:
    """The version of a file that is there now; None: it is not there."""
    try:
        store = folder.source(name).open()
    except FileNotFoundError:
        return None
    with closing(store):
        return store.version.size, store.version.tag


def versions_of(folder: OutputFolder, names: Iterable[str]) -> Iterator[FileVersion | None]:
    """`version_of` each file, several at a time."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from pool.map(partial(version_of, folder), names)


def stagings(folder: OutputFolder) -> list[str]:
    """The staging folders in a folder."""
    if folder.far:
        found = {name.partition("/")[0] for name in folder.names() if "/" in name}
    else:
        found = set()
        with suppress(FileNotFoundError):
            found = set(os.listdir(folder.path))
        for name in found:  # of a driver that died before it had the lock
            if name.startswith(f".{STAGING}") and _age(name[1:]) > ABANDONED:
                folder.drop(name)
    return sorted(name for name in found if name.startswith(STAGING))


def visible(folder: OutputFolder) -> list[str]:
    """The files in a folder that are not in staging folders."""
    return [
        name
        for name in folder.names()
        if not name.partition("/")[0].lstrip(".").startswith(STAGING)
    ]


def settle_write(folder: OutputFolder, staging: str) -> None:
    """Finish a write that was published, take another back, and delete its staging folder."""
    names = set(folder.names(staging))
    manifest: dict[str, Any] = {}
    if f"{staging}/{MANIFEST}" in names:
        manifest = json.loads(folder.get(f"{staging}/{MANIFEST}"))
        if f"{staging}/{PUBLISHED}" in names:
            _finish(folder, staging, manifest)
            return
        files = manifest["files"]
        # by a rename on a disk, a file is in one place only: whatever is wrong with the name it did not get, it is taken back
        unmoved = [] if folder.far else [to for one, to in files.items() if one in names]
        with suppress(Exception):
            folder.delete(unmoved)  # for the folders that were made for them
        folder.delete(set(files.values()).difference(unmoved))
        if manifest["marked"]:
            folder.put(SUCCESS, b"")
    folder.drop(staging)


def _finish(folder: OutputFolder, staging: str, manifest: Mapping[str, Any]) -> list[str]:
    versions = manifest.get("versions", {})
    there = zip(versions, versions_of(folder, versions), strict=True)
    kept = {name for name, now in there if now is not None and list(now) != list(versions[name])}
    folder.delete([name for name in manifest["old"] if name not in kept])
    if manifest.get("mark", True):
        folder.put(SUCCESS, b"")
    folder.delete(
        [f"{staging}/{MANIFEST}"]
    )  # with it, and without the mark, files would be taken back
    folder.drop(staging)
    return sorted(kept)


@contextmanager
def _taken(folder: OutputFolder, staging: str, stale_after: float) -> Iterator[bool]:
    """Whether a write is nobody's any more; it is the caller's inside."""
    path = None if folder.far else os.path.join(folder.path, staging, OWNER)
    if path is not None and fcntl is not None:
        try:
            lock = _locked(path, 0)
        except BlockingIOError:
            yield False
            return
        except FileNotFoundError:  # it had one from the first moment: its deletion has begun
            yield True
            return
        if lock is not None:
            try:
                yield True
            finally:
                _unlock(lock)
            return
    yield _age(staging) >= stale_after


def _locked(path: str, flags: int) -> int | None:
    """A descriptor with the lock of a file; None where the system has no locks.

    Raises BlockingIOError where another process has the lock.
    """
    lock = os.open(path, os.O_RDWR | flags, 0o666)
    if fcntl is None:
        os.close(lock)
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise
    except OSError:  # not on this filesystem
        os.close(lock)
        return None
    return lock


def _unlock(lock: int | None) -> None:
    if lock is not None:
        os.close(lock)


def _age(staging: str) -> float:
    """Seconds since a write began, by its name."""
    try:
        begun = datetime.strptime(staging[len(STAGING) :].partition("-")[0], _TIME)
    except ValueError:
        return 0.0
    return time.time() - begun.replace(tzinfo=UTC).timestamp()


def one_attempt_each(reports: Sequence[tuple[int, str]]) -> None:
    """Check that each partition was reported by one attempt only. `reports`: partitions and attempts."""
    found: dict[int, str] = {}
    for partition, attempt in reports:
        if found.setdefault(partition, attempt) != attempt:
            raise PageseekError(
                f"partition {partition} was reported by two attempts, {found[partition]} and {attempt}: nothing was "
                "written; write again"
            )
