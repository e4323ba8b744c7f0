"""Threads that wait for distant stores, shared by all of them: started when first needed, none in a forked process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from pageseek.storage.endpoint import Endpoint

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")
THREADS = 64  # requests in flight, to all endpoints together
TICK = 0.1  # seconds after which who waits looks whether anybody still wants the answers


class _Wave(Generic[T]):
    """Requests that were issued together: their results, or the first failure."""

    def __init__(self, n: int) -> None:
        self.results: list[T | None] = [None] * n
        self.left = n
        self.failed: BaseException | None = None
        self.stop = threading.Event()  # nobody waits for the answers any more
        self.done = threading.Event()
        self._lock = threading.Lock()

    def run(self, place: int, task: Callable[[threading.Event], T]) -> None:
        if self.stop.is_set():
            return
        try:
            self.results[place] = task(self.stop)
        except BaseException as error:  # noqa: BLE001 - raised by who waits for the wave
            with self._lock:
                self.failed = self.failed or error
            self.stop.set()
            self.done.set()
            return
        with self._lock:
            self.left -= 1
            if self.left == 0:
                self.done.set()


class _Threads:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    def submit(self, endpoint: Endpoint, works: Sequence[Callable[[], None]]) -> None:
        with self._lock:
            if self._pool is None:
                from concurrent.futures import ThreadPoolExecutor

                self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="pageseek-io")
            endpoint.waiting.extend(works)
            more = min(len(works), endpoint.in_flight - endpoint.running)
            for _ in range(more):
                endpoint.running += 1
                self._pool.submit(self._serve, endpoint)

    def _serve(self, endpoint: Endpoint) -> None:
        while True:
            with self._lock:
                if not endpoint.waiting:
                    endpoint.running -= 1
                    return
                work = endpoint.waiting.popleft()
            work()
            del work  # it would hold its answer


_threads = _Threads()


def issue(
    endpoint: Endpoint,
    tasks: Sequence[Callable[[threading.Event], T]],
    go_on: Callable[[], None] | None = None,
) -> list[T]:
    """The results of requests to one endpoint, as many at a time as it may have in flight.

    The first failure is raised at once. A task is given an event that is set when nobody wants its result any more.
    `go_on` is asked while waiting, and ends it by an exception; so does Ctrl-C.
    """
    wave: _Wave[T] = _Wave(len(tasks))
    _threads.submit(endpoint, [partial(wave.run, i, task) for i, task in enumerate(tasks)])
    try:
        while not wave.done.wait(TICK):
            if go_on is not None:
                go_on()
    finally:
        wave.stop.set()
    if wave.failed is not None:
        try:
            raise wave.failed
        finally:
            del wave  # the error's traceback would hold it, and it the error
    return wave.results  # type: ignore[return-value]


def _forget() -> None:
    global _threads
    _threads = _Threads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
