"""Libraries that open files which are not on this machine's disk, and requests about one path of a store.

The module is light, since `import pageseek` imports it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Protocol, TypeVar

from pageseek.storage.endpoint import Endpoint
from pageseek.storage.requests import issue
from pageseek.storage.retry import Fault, Retries, RetryPolicy, with_retries
from pageseek.storage.store import Buffer, Known, Store, Version

T = TypeVar("T")
# from some last bytes of a file and its size: how many of the last bytes are needed
Needed = Callable[[Buffer, int], int]


class Begun(Protocol):
    """A file whose opening has begun."""

    def __call__(self) -> Store:
        """Wait for the file."""
        ...

    def give_up(self) -> None:
        """Say that nobody waits for the file any more."""
        ...


class Files:
    """Files behind a library that opens them by path. Picklable, and compared by what they stand for."""

    __slots__ = ()

    @property
    def key(self) -> str:
        """A text that tells these files from others, in caches too, without secrets."""
        raise NotImplementedError

    @property
    def lasting(self) -> bool:
        """Whether the key means the same files in every process."""
        return False

    @property
    def bound(self) -> bool:
        """Whether the files are gone with the object that stands for them, so that nothing of them may outlive it."""
        return False

    def endpoint(self, path: str) -> Endpoint:
        """The server or bucket that has a path."""
        raise NotImplementedError

    def name(self, path: str) -> str:
        """The name of a file, as it may be shown."""
        raise NotImplementedError

    def fault(self, error: Exception) -> Fault:
        """What an error of the library means."""
        raise NotImplementedError

    def open(self, path: str, retry_policy: RetryPolicy, known: Known | None = None) -> Store:
        """Open a file."""
        raise NotImplementedError

    def begin(
        self, path: str, retry_policy: RetryPolicy, known: Known | None, needed: Needed
    ) -> Begun | None:
        """Begin to open a file with as many bytes of its end as are `needed`; None where the library cannot."""
        return None

    def assumed(self, path: str, retry_policy: RetryPolicy, known: Known) -> Store | None:
        """A file in the version that is known, without a request: its first read says whether it still has that one.
        None where reads are not tied to a version.
        """
        return None

    def is_file(self, path: str, named_so: bool, retry_policy: RetryPolicy) -> bool | None:
        """Whether a file lies at a path, which may have the name of one. None: only a listing tells.

        Raises FileNotFoundError where nothing lies there.
        """
        return True if named_so or self.looks_like_file(path) else None

    def folder(self, path: str) -> str:
        """The path of a folder, or a glob, as listings spell it."""
        return path

    def looks_like_file(self, path: str) -> bool:
        """Whether a path can be nothing but a file. No request is sent."""
        return False

    def place_of(self, scheme: str, bucket: str, path: str) -> str | None:
        """The path here of a path in a bucket, as URLs of a scheme name it; None if it is not known to lie here."""
        return None

    def make_folder(self, path: str) -> None:
        """Make a folder and those above it, where the store has folders and does not make them by itself."""

    def find(self, folder: str, retry_policy: RetryPolicy) -> Iterable[str]:
        """The paths of all files below a folder."""
        place = Place(self, folder, retry_policy)
        return place.ask(partial(self.list_below, folder, retry_policy), "what is in it")

    def list_below(self, folder: str, retry_policy: RetryPolicy) -> list[str]:
        """The paths of all files below a folder, in one attempt."""
        raise NotImplementedError

    @property
    def lists_versions(self) -> bool:
        """Whether listings tell versions that reads can be tied to."""
        return False

    def find_versions(
        self, folder: str, paths: Sequence[str], most: int, retry_policy: RetryPolicy
    ) -> tuple[dict[str, Version], int]:
        """The versions of files below a folder, as a listing of it tells them, and the number of requests; in one attempt.

        `paths`: of the files, sorted. The listing ends when all are found, and after about `most` names.
        """
        raise NotImplementedError

    def modified(self, folder: str, retry_policy: RetryPolicy) -> dict[str, float]:
        """When files below a folder were last written, by their paths, in seconds since 1970."""
        place = Place(self, folder, retry_policy)
        return place.ask(partial(self.times_below, folder, retry_policy), "when files were written")

    def times_below(self, folder: str, retry_policy: RetryPolicy) -> dict[str, float]:
        """What `modified` tells, in one attempt. A file whose time is not known is left out."""
        raise NotImplementedError

    def list_in(self, folder: str, retry_policy: RetryPolicy) -> Iterable[str]:
        """The paths of the files that lie in a folder, in one attempt. There may be others below it."""
        raise NotImplementedError


class Place:
    """A path on a store. Requests about it are repeated where that may help."""

    def __init__(self, files: Files, path: str, retry_policy: RetryPolicy) -> None:
        self.name = files.name(path)
        self.retries = Retries()
        self._files, self._path = files, path
        self._endpoint = files.endpoint(path)
        self._retry_policy = retry_policy

    def ask(self, attempt: Callable[[], T], what: str) -> T:
        """The result of an attempt. `what`: its purpose, for errors."""
        (found,) = issue(self._endpoint, [self._task(attempt, what)])
        return found

    def have(self, files_of: Iterable[tuple[str, str | tuple[str, ...]]]) -> list[bool]:
        """For each (folder, endings): whether the folder has a file whose name ends so."""

        def has(folder: str, endings: str | tuple[str, ...]) -> bool:
            names = self._files.list_in(folder, self._retry_policy)
            return any(name.endswith(endings) for name in names)

        tasks = [self._task(partial(has, *pair), f"what is in {pair[0]}") for pair in files_of]
        return issue(self._endpoint, tasks) if tasks else []

    def _task(
        self, attempt: Callable[[], T], what: str, retries: Retries | None = None
    ) -> Callable[[threading.Event], T]:
        told = self.retries if retries is None else retries
        return partial(
            with_retries, attempt, self._fault, self.name, what, self._retry_policy, told
        )

    def _fault(self, error: Exception) -> Fault:
        """What a failed attempt means."""
        return self._files.fault(error)
