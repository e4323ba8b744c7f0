"""Versions of remote files that stores have confirmed in the course of one planning, so that none is asked for twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from pageseek.base.report import Report
from pageseek.storage import RetryPolicy, Source, Version
from pageseek.storage.files import Files


class Confirmed:
    """The versions, by the keys of the files."""

    __slots__ = ("versions",)

    def __init__(self) -> None:
        self.versions: dict[str, Version] = {}

    def add_listed(self, known: Iterable[tuple[Source, Version]], report: Report) -> None:
        """Add those of the known versions that listings tell, where the files of a store are many."""
        from pageseek.storage.listed_versions import is_same, listed_versions  # late: for stores

        asked: dict[tuple[Files, RetryPolicy], list[tuple[Source, Version]]] = {}
        for source, version in known:
            if source.filesystem is not None and source.key not in self.versions:
                store = source.filesystem, source.retry_policy
                asked.setdefault(store, []).append((source, version))
        for store, pairs in asked.items():
            told = listed_versions(*store, [source.path for source, _ in pairs])
            report.requests += told.requests
            report.waves += told.requests
            for source, version in pairs:
                listed = told.versions.get(source.path)
                if listed is not None and is_same(listed, version):
                    self.versions[source.key] = version


_confirmed: ContextVar[Confirmed | None] = ContextVar("confirmed", default=None)
confirmed_now = _confirmed.get


@contextmanager
def asked_once(confirmed: Confirmed | None = None) -> Iterator[None]:
    """While this lasts, in this thread, a store is asked once for the version of each file that is opened, if its reads are tied
    to versions: one that has changed since is found when it is read.

    `confirmed`: what was confirmed before, and where more is added. Inside of another one without it, that one goes on.
    """
    given = confirmed or confirmed_now() or Confirmed()
    before = _confirmed.set(given)
    try:
        yield
    finally:
        _confirmed.reset(before)
