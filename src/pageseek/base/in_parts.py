"""Work on many items, divided among threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def in_parts(work: Callable[[int, int], T], n: int, threads: int, least: int) -> list[T]:
    """The results of work on n items, part by part.

    Parameters
    ----------
    work : callable
        Takes the first item of a part, and the first behind it. Threads gain time only while it releases the interpreter's
        lock.
    threads : int
        The number of threads, the caller's among them.
    least : int
        The number of items that is worth a thread.
    """
    parts = max(min(threads, n // least), 1)
    marks = [n * i // parts for i in range(parts + 1)]
    made: list[T | None] = [None] * parts
    failed: list[BaseException] = []

    def do(i: int) -> None:
        try:
            made[i] = work(marks[i], marks[i + 1])
        except BaseException as error:  # noqa: BLE001 - raised below
            failed.append(error)

    beside = []
    for i in range(1, parts):
        beside.append(threading.Thread(target=do, args=(i,), daemon=True))
        try:
            beside[-1].start()
        except RuntimeError:  # none can be started, as when the interpreter ends
            beside.pop()
            do(i)
    do(0)
    for thread in beside:
        thread.join()
    if failed:
        raise failed[0]
    return made  # type: ignore[return-value]
