"""The memory that the pages in work may take together, in bytes."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pageseek._core import memory

IN_FLIGHT = 256 << 20  # bytes of pages, as they are stored, decompressed and decoded
SMALL = 1 << 20  # bytes; smaller pages are not counted
LARGE = 16 << 20  # bytes that are given back at once, not kept for the next page (`memory.keep`)


class Room:
    """Memory that threads share. A page waits until there is room for it, or no other page; pages enter in the order of their calls."""

    def __init__(self, most: int = IN_FLIGHT) -> None:
        self._most = most
        self._held = self._pages = 0
        self._line: deque[object] = deque()
        self._changed = threading.Condition()

    @contextmanager
    def page(self, size: int) -> Iterator[Callable[[int], None]]:
        """Hold about `size` bytes for a page. Gives a function, to be called with the bytes that the page really takes.

        Small pages enter at once. A thread holds one page at a time.
        """
        taken = size if size >= SMALL else 0
        counted = taken > 0
        if counted:
            self._enter(size)

        def takes(real: int) -> None:
            nonlocal taken
            real = real if real >= SMALL else 0
            if real != taken:
                self.keep(real - taken)
                if taken - real >= LARGE:
                    memory.trim(0)
                taken = real

        try:
            yield takes
        finally:
            if counted or taken:
                with self._changed:
                    self._pages -= counted
                    self._held -= taken
                    self._changed.notify_all()
            if taken >= LARGE:
                memory.trim(0)

    def _enter(self, size: int) -> None:
        me = object()
        with self._changed:
            self._line.append(me)
            try:
                while self._line[0] is not me or (self._pages and self._held + size > self._most):
                    self._changed.wait()
                self._pages += 1
                self._held += size
            finally:
                self._line.remove(me)
                self._changed.notify_all()

    def keep(self, size: int) -> None:
        """Count bytes that something else takes; a negative number gives them back."""
        with self._changed:
            self._held += size
            self._changed.notify_all()
