"""Worker pools: results in order, limits kept, no thread left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from pageseek.base.errors import UnsupportedError
from pageseek.base.workers import Job, StoppedError, WorkerPool, cores


class Watch:
    """How many are inside at a time, at most."""

    def __init__(self) -> None:
        self.now = self.most = self.begun = 0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            self.begun += 1
            self.now += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.now -= 1


def idle(pool: WorkerPool) -> bool:
    """Whether all tokens lie where they belong."""
    taken = [pool._tokens.acquire(blocking=False) for _ in range(pool.threads)]
    for _ in range(sum(taken)):
        pool._tokens.release()
    return all(taken)


def settled(check: Callable[[], bool]) -> bool:
    until = time.monotonic() + 10
    while not check() and time.monotonic() < until:
        time.sleep(0.005)
    return check()


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("ahead", [1, 3, 8])
def test_results_come_in_order_on_so_many_cores(threads: int, ahead: int) -> None:
    pool, computing, under_way = WorkerPool(threads, ahead, 1 << 40), Watch(), Watch()

    def job(i: int) -> Job[int]:
        def run() -> int:
            with under_way, computing:
                time.sleep(0.002 * (i % 3))
                return i

        return Job(run)

    assert list(pool.in_order(job(i) for i in range(40))) == list(range(40))
    assert computing.most <= threads
    assert under_way.most <= ahead
    assert idle(pool)
    pool.stop()


@pytest.mark.timed
def test_who_waits_holds_no_core() -> None:
    pool, waiting = WorkerPool(1, 8, 1 << 40), Watch()

    def run() -> int:
        with pool.waiting(), waiting:
            time.sleep(0.05)
        return 1

    start = time.monotonic()
    assert sum(pool.in_order(Job(run) for _ in range(16))) == 16
    assert waiting.most > 4
    assert time.monotonic() - start < 0.05 * 16
    assert idle(pool)


def test_no_more_is_begun_than_the_budget_allows() -> None:
    pool, begun = WorkerPool(4, 100, 10), Watch()

    def run() -> int:
        with begun:
            return 1

    results = pool.in_order(Job(run, 4) for _ in range(20))
    next(results)
    time.sleep(0.05)
    assert begun.begun == 3  # the one that was taken is still in use
    assert sum(results) == 19
    assert sum(WorkerPool(4, 100, 10).in_order(Job(run, 1_000) for _ in range(5))) == 5


@pytest.mark.timed
def test_a_failure_comes_in_its_turn() -> None:
    pool = WorkerPool(4, 8, 1 << 40)

    def run(i: int) -> int:
        if i == 3:
            raise ValueError("three")
        return i

    results = pool.in_order(Job(lambda i=i: run(i)) for i in range(100))  # type: ignore[misc]
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="three"):
        next(results)
    assert pool.stopped
    assert settled(lambda: idle(pool))


@pytest.mark.timed
def test_who_stops_early_stops_the_rest() -> None:
    pool, begun = WorkerPool(2, 4, 1 << 40), Watch()
    before = threading.active_count()

    def run() -> int:
        with begun:
            time.sleep(0.005)
            return 1

    results = pool.in_order(Job(run) for _ in range(1_000))
    assert isinstance(results, Iterator)
    next(results)
    results.close()  # type: ignore[attr-defined]
    assert settled(lambda: begun.now == 0)
    count = begun.begun
    time.sleep(0.05)
    assert begun.begun == count < 20
    assert settled(lambda: threading.active_count() <= before)
    with pytest.raises(StoppedError):
        pool.each([lambda: 1, lambda: 2])


@pytest.mark.timed
def test_pieces_of_a_job_take_idle_cores_only() -> None:
    pool, inside = WorkerPool(3, 4, 1 << 40), Watch()

    def piece(i: int) -> Callable[[], int]:
        def run() -> int:
            with inside:
                time.sleep(0.01)
                return i

        return run

    with pool.working():
        assert pool.each([piece(i) for i in range(12)]) == list(range(12))
    assert inside.most == 3
    busy = WorkerPool(1, 4, 1 << 40)
    before = threading.active_count()
    with busy.working():
        assert busy.each([piece(i) for i in range(3)]) == [0, 1, 2]
    assert threading.active_count() == before, "no core was idle"
    assert idle(pool)
    assert idle(busy)


@pytest.mark.timed
def test_the_first_piece_that_fails_is_told() -> None:
    pool = WorkerPool(4, 4, 1 << 40)

    def fail(i: int) -> int:
        if i:
            raise KeyError(i)
        return i

    with pool.working(), pytest.raises(KeyError):
        pool.each([lambda i=i: fail(i) for i in range(8)])  # type: ignore[misc]
    assert settled(lambda: idle(pool))


def test_jobs_with_pieces_do_not_wait_for_each_other() -> None:
    pool = WorkerPool(2, 3, 1 << 40)

    def job() -> int:
        return sum(pool.each([lambda: 1] * 5))

    assert sum(pool.in_order(Job(job) for _ in range(200))) == 1_000
    assert idle(pool)


def test_there_is_a_core() -> None:
    assert cores() >= 1


@pytest.mark.timed
def test_what_runs_when_the_rest_is_stopped_begins_no_further_piece() -> None:
    pool, pieces = WorkerPool(1, 2, 1 << 40), Watch()

    def piece() -> int:
        with pieces:
            time.sleep(0.01)
            return 1

    results = pool.in_order([Job(lambda: 0), Job(lambda: sum(pool.each([piece] * 500)))])
    next(results)
    assert settled(lambda: pieces.begun > 0)
    results.close()  # type: ignore[attr-defined]
    assert settled(lambda: pieces.now == 0)
    time.sleep(0.05)
    assert pieces.begun < 250
    assert settled(lambda: idle(pool))


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(("budget", "together"), [(0, 1), (9, 1), (10, 2), (20, 3), (30, 4)])
def test_what_is_asked_for_is_not_ahead(budget: int, together: int, late: bool) -> None:
    """Jobs of 10 bytes, as some learn when they run: the one that is due, and as many others as the budget allows."""
    running, most, lock = [0], [0], threading.Lock()

    def work() -> int:
        if late:
            pool.reserve(10)
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        time.sleep(0.05)
        with lock:
            running[0] -= 1
        return 1

    with WorkerPool(4, 4, budget) as pool:
        assert sum(pool.in_order(Job(work, 0 if late else 10) for _ in range(8))) == 8
    assert most[0] == together


@pytest.mark.timed
def test_jobs_that_wait_for_memory_end_with_their_scan() -> None:
    ended = []

    def work(n: int) -> int:
        try:
            pool.reserve(10)
        except StoppedError:
            ended.append(n)
            raise
        return n

    with WorkerPool(2, 3, 0) as pool:
        results = pool.in_order(Job(partial(work, n)) for n in range(9))
        assert next(results) == 0  # which the caller uses; all others wait
        time.sleep(0.05)
        results.close()  # type: ignore[attr-defined]
    assert settled(lambda: len(ended) >= 2)
    assert settled(lambda: idle(pool))


def test_jobs_that_wait_for_memory_do_not_keep_the_interpreter() -> None:
    code = """
import threading
from pageseek.base.workers import Job, WorkerPool

def take():
    pool = WorkerPool(2, 3, 0)
    results = pool.in_order(Job(lambda: pool.reserve(10)) for _ in range(9))
    next(results)
    taken.set()
    threading.Event().wait()

taken = threading.Event()
threading.Thread(target=take, daemon=True).start()
taken.wait()
"""
    subprocess.run([sys.executable, "-c", code], timeout=60, check=True)


def test_who_takes_results_does_not_wait_for_memory() -> None:
    with WorkerPool(1, 1, 0) as pool:
        results = pool.in_order(Job(partial(int, n)) for n in range(3))
        assert next(results) == 0
        pool.reserve(10)  # this thread has no job
        assert list(results) == [1, 2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_does_not_wait_for_the_threads_of_its_parent() -> None:
    with WorkerPool(2, 3, 1 << 20) as pool:
        results = pool.in_order(Job(partial(int, n)) for n in range(9))
        assert next(results) == 0
        child = os.fork()
        if child == 0:
            try:
                list(results)
            except UnsupportedError as error:
                os._exit(0 if "begin the scan again" in str(error) else 1)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert list(results) == list(range(1, 9))
