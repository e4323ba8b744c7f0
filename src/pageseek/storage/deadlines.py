"""Calls that nothing can interrupt, waited for no longer than is right."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from pageseek.storage.requests import TICK, given_up

T = TypeVar("T")


class _Call(Generic[T]):
    """A call in a thread of its own. `alone`: a lock that the caller holds, given back as the call ends."""

    def __init__(self, call: Callable[[], T], alone: threading.Lock | None) -> None:
        self._call, self._alone = call, alone
        self.done = threading.Event()
        self.result: list[T] = []
        self.error: BaseException | None = None

    def __call__(self) -> None:
        try:
            self.result.append(self._call())
        except BaseException as error:  # noqa: BLE001 - raised by who waits
            self.error = error
        finally:
            if self._alone is not None:
                self._alone.release()
            self.done.set()


def within(call: Callable[[], T], seconds: float, alone: threading.Lock | None = None) -> T:
    """The result of a call of a library that takes no time limit; TimeoutError where there is none after so many seconds.

    The call goes on then, in a thread that does not hold up the end of the process. `alone`: no other call with this
    lock may be under way, one that was given up included.
    """
    if alone is not None and not alone.acquire(timeout=seconds):
        raise TimeoutError(f"no answer in {seconds:.3g} seconds to what was asked before")
    made = _Call(call, alone)
    try:
        threading.Thread(target=made, name="pageseek-call", daemon=True).start()
    except BaseException:  # no thread is to be had
        if alone is not None:
            alone.release()
        raise
    until = time.monotonic() + seconds
    while not made.done.wait(min(TICK, max(until - time.monotonic(), 0.0))):
        if given_up() or time.monotonic() >= until:
            raise TimeoutError(f"no answer in {seconds:.3g} seconds")
    if made.error is not None:
        try:
            raise made.error
        finally:
            del made  # the error's traceback would hold it, and it the error
    return made.result[0]
