"""Jobs on several cores, with results in the order of the jobs.

One pool serves one scan. Its tokens stand for cores: a thread that computes holds one, and releases it while it waits for a
store. So more jobs than cores can be under way, and no core is idle.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import (  # no import works as the interpreter ends
    Future,
    ThreadPoolExecutor,
    wait,
)
from contextlib import contextmanager
from functools import partial
from typing import Generic, TypeVar

from pageseek.base.cancellation import asked, go_on, is_asked
from pageseek.base.errors import UnsupportedError
from pageseek.base.memory import keep_warm
from pageseek.base.records import dataclass

T = TypeVar("T")
TICK = 0.05  # seconds between two looks of a waiting thread whether its results are still wanted


def cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return max(len(os.sched_getaffinity(0)), 1)
    return os.cpu_count() or 1


class StoppedError(Exception):
    """The scan of this work has ended. No caller sees this error."""


@dataclass(frozen=True, slots=True)
class Job(Generic[T]):
    """A piece of work. `cost`: about the bytes of memory that it takes until its result is taken, as far as that is known before
    it runs. It calls `WorkerPool.reserve` for what it learns later.
    """

    run: Callable[[], T]
    cost: int = 0


class _Ledger:
    """The bytes of memory of jobs whose results come in order. Those of one job are free: its result is the next, or the caller
    uses it.
    """

    __slots__ = ("_budget", "_changed", "_costs", "_free")

    def __init__(self, budget: int, changed: threading.Condition) -> None:
        self._budget, self._changed = budget, changed
        self._costs: dict[int, int] = {}  # by the number of the job
        self._free = 0  # the number of a job

    def take(self, number: int, cost: int) -> bool:
        """Give a job so many bytes, if there is room."""
        with self._changed:
            if number != self._free:
                held = sum(self._costs.values()) - self._costs.get(self._free, 0)
                if held + cost > self._budget:
                    return False
            self._costs[number] = self._costs.get(number, 0) + cost
            return True

    def end(self) -> None:
        """The caller has used a result: the bytes of the next one are free."""
        with self._changed:
            self._costs.pop(self._free, None)
            self._free += 1
            self._changed.notify_all()


class WorkerPool:
    """Threads for one scan. None is started before there is work for it.

    Parameters
    ----------
    threads : int
        How many may compute at a time.
    ahead : int
        Jobs that may be under way, or done with a result that is not taken yet.
    budget : int
        Bytes that these may take together, beside the job whose result is next.
    """

    def __init__(self, threads: int, ahead: int, budget: int) -> None:
        self.threads = threads
        self.stopped = False
        self._ends = False  # the interpreter
        self._orphaned = False  # in a fork of the process that has the threads
        self._ahead, self._budget = max(ahead, 1), budget
        self._tokens = threading.Semaphore(threads)
        # whether a thread holds a token; the ledger and the number of its job
        self._holds = threading.local()
        self._changed = threading.Condition()  # of a ledger, or `stopped`
        self._executor: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()
        self.asker = threading.current_thread()  # the last thread that took results
        _pools.add(self)

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def in_order(self, jobs: Iterable[Job[T]], stops: bool = True, shares: int = 1) -> Iterator[T]:
        """The results of jobs, in their order; later ones are worked on meanwhile.

        A job that fails raises when its turn comes. After a fork, the child gets an UnsupportedError. A caller that stops early stops the pool; without `stops` only these jobs are
        of no use any more. `shares`: how many sequences of jobs share the budget.
        """
        rest = iter(jobs)
        job = next(rest, None)
        under_way: deque[Future[T]] = deque()
        ledger, number = _Ledger(self._budget // shares, self._changed), 0
        ready: list[T] = []
        try:
            while True:
                self.asker = threading.current_thread()
                while job is not None and len(under_way) < self._ahead:
                    if not ledger.take(number, job.cost):
                        break
                    under_way.append(self._submit(partial(self._run, job.run, ledger, number)))
                    number += 1
                    job = next(rest, None)
                if ready:  # while the caller uses it, the jobs that were just begun go on
                    yield ready.pop()
                    if self._orphaned:
                        raise UnsupportedError(
                            "the threads that read these rows are in the process that began to, of which this one is a "
                            "fork; begin the scan again here"
                        )
                    ledger.end()
                    continue
                if not under_way:
                    return
                future = under_way.popleft()
                ready.append(_result_of(future))
                del future  # it would keep the result while the caller uses it
        finally:
            if stops and (under_way or job is not None):
                self.stop()

    def begin(self, work: Callable[[], T]) -> Future[T]:
        """Begin a piece of work; the caller waits for its result when it needs it."""
        return self._submit(partial(self._run, work))

    def each(self, work: Sequence[Callable[[], T]]) -> list[T]:
        """The results of pieces of one job, computed on cores that are idle now. The first failure in their order is raised."""
        results: list[T | None] = [None] * len(work)
        failed: dict[int, Exception] = {}
        places, lock = iter(range(len(work))), threading.Lock()

        def go_on() -> None:
            while not failed:
                with lock:
                    i = next(places, None)
                if i is None:
                    return
                try:
                    self.go_on()
                    results[i] = work[i]()
                except Exception as error:  # noqa: BLE001 - raised by `each`, in its turn
                    failed[i] = error

        def help_out() -> None:
            before = getattr(self._holds, "token", False)  # true where no thread could be started
            self._holds.token = True
            try:
                go_on()
            finally:
                self._holds.token = before
                self._tokens.release()

        helpers: list[Future[None]] = []
        while len(helpers) < len(work) - 1 and self._tokens.acquire(blocking=False):
            try:
                helpers.append(self._submit(help_out))
            except StoppedError:
                self._tokens.release()
                raise
        go_on()
        if helpers:
            with self.waiting():
                for helper in helpers:
                    helper.result()
        if failed:
            raise failed[min(failed)]
        return results  # type: ignore[return-value]

    @contextmanager
    def idle(self, most: int) -> Iterator[int]:
        """The number of cores that are idle now, at most `most`. They are taken while the block runs."""
        taken = 0
        while taken < most and self._tokens.acquire(blocking=False):
            taken += 1
        try:
            yield taken
        finally:
            if taken:
                self._tokens.release(taken)

    @contextmanager
    def working(self) -> Iterator[None]:
        """Hold a token while the block runs."""
        self._tokens.acquire()
        self._holds.token = True
        try:
            yield
        finally:
            self._holds.token = False
            self._tokens.release()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Release the token while the block waits, if this thread has one."""
        if not getattr(self._holds, "token", False):
            yield
            return
        self._holds.token = False
        self._tokens.release()
        try:
            yield
        finally:
            self._tokens.acquire()
            self._holds.token = True

    def reserve(self, nbytes: int) -> None:
        """Count so many bytes more for the job that calls. It waits, without a core, until the budget has room for them or its
        result is the next.
        """
        ledger, number = getattr(self._holds, "job", None) or (None, 0)
        if ledger is None or ledger.take(number, nbytes):
            return
        if threading.current_thread() is self.asker:  # it cannot wait for itself
            return
        with self.waiting(), self._changed:
            self._changed.wait_for(
                lambda: self.stopped or self._ends or ledger.take(number, nbytes)
            )
        self.go_on()

    def go_on(self) -> None:
        """Raise StoppedError where the scan has ended."""
        if self.stopped:
            raise StoppedError

    def stop(self) -> None:
        """Begin nothing more. Jobs that run end at their next request or page, and are not waited for."""
        with self._changed:
            self.stopped = True
            self._changed.notify_all()
        with self._lock:
            executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(wait=False, cancel_futures=True)

    def wait_no_more(self) -> None:
        """Have no job wait for memory: the interpreter ends, and waits for the jobs."""
        with self._changed:
            self._ends = True
            self._changed.notify_all()

    def forked(self) -> None:
        """Have locks that nobody holds, and no threads."""
        self._orphaned = True
        self._changed, self._lock, self._executor = threading.Condition(), threading.Lock(), None

    def _run(self, job: Callable[[], T], ledger: _Ledger | None = None, number: int = 0) -> T:
        with self.working(), asked(self.go_on):
            self.go_on()
            self._holds.job = ledger, number
            try:
                return job()
            finally:
                self._holds.job = None
                keep_warm()

    def _submit(self, work: Callable[[], T]) -> Future[T]:
        """Do the work in a thread; here and now where none can be started, as when the interpreter ends."""
        done: Future[T] = Future()
        begun = threading.Lock()

        def run() -> None:
            if begun.acquire(blocking=False):
                complete(done, work)

        with self._lock:
            if self.stopped:
                raise StoppedError
            if self._executor is None:
                keep_warm()
                self._executor = ThreadPoolExecutor(
                    self._ahead + self.threads, thread_name_prefix="pageseek"
                )
            try:
                queued = self._executor.submit(run)
            except RuntimeError:  # it may be queued all the same, for a thread that exists
                queued = None
        if queued is None:
            run()
        else:
            queued.add_done_callback(lambda ended: ended.cancelled() and done.cancel())
        return done


_pools: weakref.WeakSet[WorkerPool] = weakref.WeakSet()


def _end() -> None:
    """Stop the pools of the main thread, which has ended: nobody takes results that it left in a generator. Other threads may
    take results still, or never.
    """
    for pool in list(_pools):
        if pool.asker is threading.main_thread():
            pool.stop()
        else:
            pool.wait_no_more()


def _forked() -> None:
    """Forget the pools in a child process: it has none of their threads, and nobody there releases their locks."""
    global _pools
    for pool in list(_pools):  # a generator that is closed in the child stops its pool
        pool.forked()
    _pools = weakref.WeakSet()


# this runs before the threads of executors are waited for; `atexit` would run after that
if hasattr(threading, "_register_atexit"):
    threading._register_atexit(_end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def _result_of(future: Future[T]) -> T:
    """The result of a job. A thread that may be told to stop asks now and then while it waits."""
    if is_asked():
        while not wait((future,), TICK).done:
            go_on()
    try:
        return future.result()
    finally:
        del future  # else a failure would keep itself alive


def complete(done: Future[T], work: Callable[[], T]) -> None:
    """Do a piece of work, and give a future its result or its failure."""
    try:
        done.set_result(work())
    except BaseException as error:  # noqa: BLE001 - raised by `result`
        done.set_exception(error)
    finally:
        del done  # else a failure would keep itself alive
