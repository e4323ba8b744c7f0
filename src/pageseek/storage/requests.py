"""Threads that wait for remote stores, shared by all of them: started when first needed, none in a forked process; and
time limits for calls of libraries that take none.

A request that blocks in the library of a store cannot be ended from outside. When it is given up, the next request takes its
place in the endpoint at once. Its thread ends by itself, and the process does not wait for it.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, wait
from functools import partial
from typing import Generic, TypeVar

from pageseek.base import cancellation
from pageseek.base.errors import StoreError
from pageseek.base.workers import complete
from pageseek.storage.endpoint import Endpoint

T = TypeVar("T")
THREADS = 64  # requests in flight, to all endpoints together
GIVEN_UP = (
    192  # requests beside these that are given up and not over; more than that keep their places
)
LINGER = 30.0  # seconds after which a thread without work ends
TICK = 0.1  # seconds between two looks of a waiting thread whether its answers are still needed

_here = threading.local()  # `stop` of the wave that this thread sends a request of


def given_up() -> bool:
    """Whether nobody waits any more for the request that this thread has sent."""
    stop = getattr(_here, "stop", None)
    return stop is not None and stop.is_set()


class _Turn:
    """A request under way. It has a place in its endpoint until it is done or given up."""

    __slots__ = ("done", "endpoint", "given_up")

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.done = self.given_up = False


class Wave(Generic[T]):
    """Requests that were issued together: their results, or the first failure."""

    def __init__(self, n: int) -> None:
        self.results: list[T | None] = [None] * n
        self.left = n
        self.begun = 0  # tasks that began before the wave was given up
        self.failed: BaseException | None = None
        self.stop = threading.Event()  # nobody waits for the answers any more
        self.done = threading.Event()
        self._lock = (
            threading.RLock()
        )  # its holder may collect garbage, which may give up this wave
        self._turns: set[_Turn] = set()
        self._threads = _threads

    def run(self, place: int, task: Callable[[threading.Event], T], turn: _Turn) -> None:
        with self._lock:
            if self.stop.is_set():
                return
            self.begun += 1
            self._turns.add(turn)
        before, _here.stop = getattr(_here, "stop", None), self.stop
        try:
            result = task(self.stop)
        except BaseException as error:  # noqa: BLE001 - raised by `wait`
            with self._lock:
                self._turns.discard(turn)
                self.failed = self.failed or error
            self.give_up()
            return
        finally:
            _here.stop = before
        with self._lock:
            self._turns.discard(turn)
            if self.stop.is_set():
                return
            self.results[place] = result
            self.left -= 1
            if self.left == 0:
                self.done.set()

    def wait(self, go_on: Callable[[], None] = cancellation.go_on) -> list[T]:
        """The results. The first failure is raised at once.

        `go_on` is called while the thread waits, and may end that by an exception, as Ctrl-C does. What is not done by then
        is given up.
        """
        try:
            while not self.done.wait(TICK):
                go_on()
        finally:
            self.give_up()
        if self.failed is not None:
            try:
                raise self.failed
            finally:
                del self  # else the error's traceback refers to it, and it to the error
        return self.results  # type: ignore[return-value]

    def give_up(self) -> None:
        """Stop waiting for the answers: no further request is sent, and those under way release their places."""
        if self._threads is not _threads:  # these threads are of the parent process
            return
        with self._lock:
            self.stop.set()
            turns, self._turns = self._turns, set()
            if not self.done.is_set():
                self.failed = self.failed or StoreError("given up, nobody waits for it any more")
                self.done.set()
        if turns:
            self._threads.give_up(turns)


class _Threads:
    """Threads that end with the process, even while they wait."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # as above
        self._come = threading.Condition(self._lock)
        self._ready: deque[Endpoint] = (
            deque()
        )  # one entry for each free place that waits for a thread
        self._all = self._idle = 0  # threads
        self._given_up = 0  # threads whose requests are given up

    def submit(
        self,
        endpoint: Endpoint,
        works: Sequence[Callable[[_Turn], None]],
        hurry: bool = True,
    ) -> None:
        with self._lock:
            (endpoint.waiting if hurry else endpoint.idle).extend(works)
            alone = not self._staff(endpoint, len(works))
        while alone:
            with self._lock:
                if not self._ready:
                    return
                endpoint = self._ready.popleft()
            self._serve(endpoint)

    def give_up(self, turns: Iterable[_Turn]) -> None:
        """Give the places of requests that nobody waits for to others."""
        with self._lock:
            for turn in turns:
                if turn.done or turn.given_up or self._given_up >= GIVEN_UP:
                    continue
                turn.given_up = True
                self._given_up += 1
                endpoint = turn.endpoint
                endpoint.running -= 1
                self._staff(endpoint, len(endpoint.waiting) + len(endpoint.idle))

    def _staff(self, endpoint: Endpoint, works: int) -> bool:
        """Find threads for a number of works, as far as there are places. False where no thread exists nor can be started,
        as when the interpreter ends. The lock is held.
        """
        while works > 0 and endpoint.running < endpoint.in_flight:
            works -= 1
            endpoint.running += 1
            self._ready.append(endpoint)
            if len(self._ready) <= self._idle:
                self._come.notify()
            elif self._all - self._given_up < THREADS:
                self._all += 1
                thread = threading.Thread(target=self._run, name="pageseek-io", daemon=True)
                try:
                    thread.start()
                except RuntimeError:
                    self._all -= 1
        return self._all > self._given_up

    def _run(self) -> None:
        while True:
            with self._lock:
                while not self._ready:
                    self._idle += 1
                    try:
                        came = self._come.wait(LINGER)
                    finally:
                        self._idle -= 1
                    if not came and not self._ready:
                        self._all -= 1
                        return
                endpoint = self._ready.popleft()
            if not self._serve(endpoint):
                return

    def _serve(self, endpoint: Endpoint) -> bool:
        """Send one request after another, as long as some wait. False where the thread is to end."""
        while True:
            with self._lock:
                queue = endpoint.next_queue()
                if not queue:
                    endpoint.running -= 1
                    return True
                work = queue.popleft()
            turn = _Turn(endpoint)
            work(turn)
            del work  # it would keep its answer
            with self._lock:
                turn.done = True
                if turn.given_up:
                    self._given_up -= 1
                    surplus = self._all - self._given_up > THREADS
                    self._all -= surplus
                    return not surplus


_threads = _Threads()


def begin(
    endpoint: Endpoint, tasks: Sequence[Callable[[threading.Event], T]], hurry: bool = True
) -> Wave[T]:
    """Begin requests to one endpoint, as many at a time as it may have in flight.

    A task receives an event that is set when its result is not needed any more. Without `hurry` other requests overtake
    these.
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
    """The results of requests (`begin`), which are waited for."""
    wave = begin(endpoint, tasks)
    return wave.wait() if go_on is None else wave.wait(go_on)


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
    except BaseException:  # no thread can be started
        release()
        raise
    until = time.monotonic() + seconds
    while not wait((made,), min(TICK, max(until - time.monotonic(), 0.0))).done:
        if given_up() or time.monotonic() >= until:
            raise TimeoutError(f"no answer in {seconds:.3g} seconds")
    try:
        return made.result()
    finally:
        del made  # else the error's traceback refers to it, and it to the error


def _forget() -> None:
    global _threads
    _threads = _Threads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
