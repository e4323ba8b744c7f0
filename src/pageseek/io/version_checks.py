"""Remote files that a scan takes for what the cache has of them, until the store has confirmed their versions.

Where every read is tied to a version, the first one confirms it, or says that it is past; to ask before would be a round
trip for nothing. Files of which nothing is read are asked about beside the reading of others, and no answer is given
before all are confirmed.
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
    """The files of one scan that nobody has asked the store about yet."""

    def __init__(self) -> None:
        self.report = Report()  # that of the scan, once there is one
        self._held: dict[int, VersionCheck] = {}  # by the store, which it keeps alive
        self._retries = Retries()
        self._lock = threading.Lock()  # files are opened by several threads
        self._waves = 0  # of the report, when the first was asked about

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for version_check in self._held.values():
            if version_check.asked is not None:
                version_check.asked.give_up()
                self.report.requests += version_check.asked.begun
        self.report.retried(*self._retries.take())

    def add(self, store: RemoteStore) -> None:
        """A file that is taken for what is known of it."""
        with self._lock:
            self._held.setdefault(id(store), VersionCheck(store))

    def of(self, store: Store) -> VersionCheck | None:
        """What is to be told that a read has confirmed the version; None where it was asked for at once."""
        return self._held.get(id(store))

    @property
    def left(self) -> bool:
        """Whether some version is not confirmed."""
        return any(not version_check.confirmed for version_check in self._held.values())

    def may_explain(self, error: Exception) -> bool:
        """Whether it may have failed for no reason but that a file is another one now."""
        return self.left and not isinstance(error, (OSError, MemoryError))

    def ask(self, store: Store) -> None:
        """Ask about a file of which no more is read, and do not wait."""
        version_check = self.of(store)
        if version_check is None or version_check.confirmed or version_check.asked is not None:
            return
        if not any(other.asked for other in self._held.values()):
            self._waves = self.report.waves
        version_check.asked = version_check.store.begin_to_confirm(self._retries)

    def ask_all_but(self, stores: Collection[Store]) -> None:
        """Ask about all files but those that will be read in a moment."""
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
    """What a scan answers by what is known of its files; once more, each asked for its version before (None), where one of
    them turns out to be another.
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
    """Raise FileChangedError where a file is another version now, and count what it takes to see that."""
    store.check()
    if isinstance(store, RemoteStore) and not store.version.strong:  # it was a request
        report.requests += 1
        report.waves += 1
        report.retried(*store.retries.take())
