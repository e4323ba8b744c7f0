"""Hooks into the reads of local files, which happen at once, or when somebody needs the bytes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from pageseek.storage.local import LocalStore

Ranges: TypeAlias = Sequence[tuple[int, int]]
Hook: TypeAlias = Callable[[LocalStore, Ranges], None]


class LocalReads:
    """`asked` is called before each read of a local file, with the (offset, length) of all its ranges, and `given` after it. What
    a thread reads later, to decode it, is read after both.
    """

    def __init__(self, asked: Hook | None = None, given: Hook | None = None) -> None:
        self._asked, self._given = asked, given
        self._read, self._read_later = LocalStore.read, LocalStore.read_later
        self._inside = threading.local()

    def read(self, store: LocalStore, ranges: Ranges) -> Any:
        if getattr(self._inside, "later", False):  # a small range among those of `read_later`
            return self._read(store, ranges)
        return self._hooked(self._read, store, ranges)

    def read_later(self, store: LocalStore, ranges: Ranges) -> Any:
        self._inside.later = True
        try:
            return self._hooked(self._read_later, store, ranges)
        finally:
            self._inside.later = False

    def _hooked(self, read: Callable[..., Any], store: LocalStore, ranges: Ranges) -> Any:
        if self._asked is not None:
            self._asked(store, ranges)
        found = read(store, ranges)
        if self._given is not None:
            self._given(store, ranges)
        return found


def hook_local_reads(patch: Any, asked: Hook | None = None, given: Hook | None = None) -> None:
    """Have all reads of local files hooked. `patch`: pytest's monkeypatch."""
    reads = LocalReads(asked, given)
    patch.setattr(LocalStore, "read", lambda store, ranges: reads.read(store, ranges))
    patch.setattr(LocalStore, "read_later", lambda store, ranges: reads.read_later(store, ranges))
