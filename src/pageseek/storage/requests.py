"""Threads that wait for distant stores, shared by all of them: started when first needed, none in a forked process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import (
    ThreadPoolExecutor,  # not later: as the interpreter ends, it cannot be
)
from functools import partial
from typing import Generic, TypeVar

from pageseek.storage.endpoint import Endpoint

T = TypeVar("T")
THREADS = 64  # requests in flight, to all endpoints together
TICK = 0.1  # seconds after which who waits looks whether anybody still wants the answers


class Wave(Generic[T]):
    """Requests that were issued together: their results, or the first failure."""

    def __init__(self, n: int) -> None:
        self.results: list[T | None] = [None] * n
        self.left = n
        self.begun = 0  # tasks that were not given up before
        self.failed: BaseException | None = None
        self.stop = threading.Event()  # nobody waits for the answers any more
        self.done = threading.Event()
        self._lock = threading.Lock()

    def run(self, place: int, task: Callable[[threading.Event], T]) -> None:
        with self._lock:
            if self.stop.is_set():
                return
            self.begun += 1
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

    def wait(self, go_on: Callable[[], None] | None = None) -> list[T]:
        """The results; the first failure is raised at once. `go_on` is asked while waiting, and ends it by an
        exception; so does Ctrl-C.
        """
        try:
            while not self.done.wait(TICK):
                if go_on is not None:
                    go_on()
        finally:
            self.stop.set()
        if self.failed is not None:
            try:
                raise self.failed
            finally:
                del self  # the error's traceback would hold it, and it the error
        return self.results  # type: ignore[return-value]


class _Threads:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    def submit(
        self, endpoint: Endpoint, works: Sequence[Callable[[], None]], hurry: bool = True
    ) -> None:
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="pageseek-io")
            (endpoint.waiting if hurry else endpoint.idle).extend(works)
            more = min(len(works), endpoint.in_flight - endpoint.running)
            for _ in range(more):
                endpoint.running += 1
                self._pool.submit(self._serve, endpoint)

    def _serve(self, endpoint: Endpoint) -> None:
        while True:
            with self._lock:
                queue = endpoint.next_queue()
                if not queue:
                    endpoint.running -= 1
                    return
                work = queue.popleft()
            work()
            del work  # it would hold its answer


_threads = _Threads()


def begin(
    endpoint: Endpoint, tasks: Sequence[Callable[[threading.Event], T]], hurry: bool = True
) -> Wave[T]:
    """Have requests to one endpoint made, as many at a time as it may have in flight. A task is given an event that is
    set when nobody wants its result any more. Without `hurry` others overtake them.
    """
    wave: Wave[T] = Wave(len(tasks))
    works = [partial(wave.run, i, task) for i, task in enumerate(tasks)]
    _threads.submit(endpoint, works, hurry)
    return wave


def issue(
    endpoint: Endpoint,
    tasks: Sequence[Callable[[threading.Event], T]],
    go_on: Callable[[], None] | None = None,
) -> list[T]:
    """The same, and their results (`Wave.wait`)."""
    return begin(endpoint, tasks).wait(go_on)


def _forget() -> None:
    global _threads
    _threads = _Threads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
