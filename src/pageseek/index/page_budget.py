"""The memory that pages under way may take together, counted in bytes."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pageseek._core import memory

IN_FLIGHT = 256 << 20  # bytes of pages, as they are stored, decompressed and decoded
SMALL = 1 << 20  # bytes of a page from which it is counted
LARGE = 16 << 20  # bytes that are given back at once, not kept for the next page (`memory.keep`)


class Room:
    """Shared by threads. A page waits until there is room for it, or no other page; they come in in the order in which they asked."""

    def __init__(self, most: int = IN_FLIGHT) -> None:
        self._most = most
        self._held = self._pages = 0
        self._line: deque[object] = deque()
        self._changed = threading.Condition()

    @contextmanager
    def page(self, size: int) -> Iterator[Callable[[int], None]]:
        """A page of about so many bytes is worked on. Gives a function that is told what it does take.

        Small ones come in at once. Who is inside asks for no other page.
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
        """So many bytes are taken by something else; where it is negative, they are free again."""
        with self._changed:
            self._held += size
            self._changed.notify_all()
