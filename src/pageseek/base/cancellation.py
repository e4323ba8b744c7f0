"""Cancellation: a thread that waits for an answer learns here that it is not needed any more."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_here = threading.local()  # the function that this thread calls while it waits


@contextmanager
def asked(go_on: Callable[[], None]) -> Iterator[None]:
    """While the block runs, code that waits in this thread calls `go_on` now and then, which may end the wait by an exception."""
    before = getattr(_here, "go_on", None)
    _here.go_on = go_on
    try:
        yield
    finally:
        _here.go_on = before


def go_on() -> None:
    """Call the function of the block around, if there is one."""
    ask = getattr(_here, "go_on", None)
    if ask is not None:
        ask()


def is_asked() -> bool:
    """Whether there is such a block around."""
    return getattr(_here, "go_on", None) is not None
