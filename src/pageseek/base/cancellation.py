"""Who waits for an answer in the name of others learns here that nobody wants it any more."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_here = threading.local()  # what this thread is to ask


@contextmanager
def asked(go_on: Callable[[], None]) -> Iterator[None]:
    """While the block runs, whatever waits in this thread asks `go_on` now and then, which ends it by an exception."""
    before = getattr(_here, "go_on", None)
    _here.go_on = go_on
    try:
        yield
    finally:
        _here.go_on = before


def go_on() -> None:
    """Ask that; nothing where nobody has said what."""
    ask = getattr(_here, "go_on", None)
    if ask is not None:
        ask()
