"""Remote files that a scan reads in the version that the cache has, until the store has confirmed these versions.

Where every read is tied to a version, the first one confirms it, or tells that it is past. Asking before would be a
useless round trip. Where nothing is read of a file, the store is asked about it while others are read. No answer is given
before all versions are confirmed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from typing import Self, TypeVar

from pageseek.base.report import Report
from pageseek.storage import RemoteStore, Sources, Store
from pageseek.storage.requests import Wave
from pageseek.storage.retry import Retries

T = TypeVar("T")


class VersionCheck:
    """One file of a scan; `confirmed` once a request of this scan has proven its version."""

    __slots__ = ("asked", "confirmed", "store")

    def __init__(self, store: RemoteStore) -> None:
        self.store = store
        self.confirmed = False
        self.asked: Wave[None] | None = None


class UnconfirmedVersions:
    """The remote files of one scan whose versions the store has not confirmed yet."""

    def __init__(self) -> None:
        self.report = Report()  # that of the scan, once there is one
        self._held: dict[
            int, VersionCheck
        ] = {}  # by the id of the store, which the value keeps alive
        self._retries = Retries()
        self._lock = threading.Lock()  # several threads open files
        self._waves = 0  # those of the report, when the first question was sent

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for version_check in self._held.values():
            if version_check.asked is not None:
                version_check.asked.give_up()
                self.report.requests += version_check.asked.begun
        self.report.retried(*self._retries.take())

    def add(self, store: RemoteStore) -> None:
        """Add a file that is read in the version that is known."""
        with self._lock:
            self._held.setdefault(id(store), VersionCheck(store))

    def of(self, store: Store) -> VersionCheck | None:
        """The check of a store, which a read of it confirms; None where opening has asked for the version."""
        return self._held.get(id(store))

    @property
    def left(self) -> bool:
        """Whether some version is not confirmed."""
        return any(not version_check.confirmed for version_check in self._held.values())

    def may_explain(self, error: Exception) -> bool:
        """Whether an error may have no other reason than a file that is another version now."""
        return self.left and not isinstance(error, (OSError, MemoryError))

    def ask(self, store: Store) -> None:
        """Begin to ask for the version of a file of which no more is read."""
        version_check = self.of(store)
        if version_check is None or version_check.confirmed or version_check.asked is not None:
            return
        if not any(other.asked for other in self._held.values()):
            self._waves = self.report.waves
        version_check.asked = version_check.store.begin_to_confirm(self._retries)

    def ask_all_but(self, stores: Collection[Store]) -> None:
        """Begin to ask for the versions of all files but those that will be read in a moment."""
        spared = set(map(id, stores))
        for key, version_check in list(self._held.items()):
            if key not in spared:
                self.ask(version_check.store)

    def confirm_all(self) -> None:
        """Wait until every version is confirmed.

        Raises
        ------
        FileChangedError
            One of them is past.
        """
        unconfirmed = [
            version_check for version_check in self._held.values() if not version_check.confirmed
        ]
        asked = any(version_check.asked for version_check in unconfirmed)
        late = [version_check for version_check in unconfirmed if version_check.asked is None]
        for version_check in late:
            self.ask(version_check.store)
        for version_check in unconfirmed:
            assert version_check.asked is not None
            version_check.asked.wait()
            version_check.confirmed = True
        # what went on beside reads took no wait of its own
        self.report.waves += bool(late) or (asked and self.report.waves == self._waves)


def optimistically(sources: Sources, answer: Callable[[UnconfirmedVersions | None], T]) -> T:
    """The answer of a scan by the known versions of its files.

    Where one of them turns out to be past, `answer` is called again with None: each file is asked for its version first.
    """
    if not sources.far:
        return answer(None)
    with UnconfirmedVersions() as unconfirmed:
        try:
            found = answer(unconfirmed)
            unconfirmed.confirm_all()
        except Exception as error:
            if not unconfirmed.may_explain(error):
                raise
        else:
            return found
    found = answer(None)
    if isinstance(found, Report):
        found.add_spent(unconfirmed.report)
    return found


def confirm(store: Store, report: Report) -> None:
    """Raise FileChangedError where a file is another version now, and count the requests for that."""
    store.check()
    if isinstance(store, RemoteStore) and not store.version.strong:  # it was a request
        report.requests += 1
        report.waves += 1
        report.retried(*store.retries.take())
