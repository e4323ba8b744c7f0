"""Calls of libraries that nothing can interrupt, waited for no longer than a limit."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

from pageseek.base.workers import complete
from pageseek.storage.requests import TICK, given_up

T = TypeVar("T")


def within(call: Callable[[], T], seconds: float, alone: threading.Lock | None = None) -> T:
    """The result of a call that takes no time limit; TimeoutError where it has none after `seconds`.

    The call goes on then, in a thread that does not hold up the end of the process. `alone`: no other call with this
    lock may be under way, one that was given up included.
    """
    if alone is not None and not alone.acquire(timeout=seconds):
        raise TimeoutError(f"no answer in {seconds:.3g} seconds to what was asked before")

    def release() -> None:
        if alone is not None:
            alone.release()

    def run() -> T:
        try:
            return call()
        finally:
            release()

    made: Future[T] = Future()
    try:
        threading.Thread(
            target=complete, args=(made, run), name="pageseek-call", daemon=True
        ).start()
    except BaseException:  # no thread is to be had
        release()
        raise
    until = time.monotonic() + seconds
    while not wait((made,), min(TICK, max(until - time.monotonic(), 0.0))).done:
        if given_up() or time.monotonic() >= until:
            raise TimeoutError(f"no answer in {seconds:.3g} seconds")
    try:
        return made.result()
    finally:
        del made  # the error's traceback would hold it, and it the error
