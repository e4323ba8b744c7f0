"""Coroutines that run side by side end together; calls in threads end when nobody waits for them any more."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from pageseek.base import cancellation
from pageseek.base.coroutines import NotAwaitedError, in_thread, together


async def waits(ended: list[int], number: int, seconds: float, fails: bool = False) -> int:
    try:
        await asyncio.sleep(seconds)
    finally:
        ended.append(number)
    if fails:
        raise LookupError(number)
    return number


def test_results_come_in_the_order_of_the_coroutines() -> None:
    assert asyncio.run(together([waits([], i, 0.01 * (3 - i)) for i in range(3)])) == [0, 1, 2]
    assert asyncio.run(together([waits([], 7, 0.0)])) == [7]
    assert asyncio.run(together([])) == []


@pytest.mark.timed
def test_a_failure_cancels_the_others() -> None:
    ended: list[int] = []

    async def run() -> None:
        with pytest.raises(LookupError):
            await together([waits(ended, 0, 60), waits(ended, 1, 0.01, True), waits(ended, 2, 60)])
        assert sorted(ended) == [0, 1, 2]

    began = time.monotonic()
    asyncio.run(run())
    assert time.monotonic() - began < 30


def test_who_is_cancelled_cancels_all() -> None:
    ended: list[int] = []

    async def run() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await together([waits(ended, i, 60) for i in range(3)])
        assert sorted(ended) == [0, 1, 2]

    asyncio.run(run())


def test_a_call_in_a_thread_learns_that_nobody_waits() -> None:
    learned = threading.Event()

    def call() -> None:
        try:
            while True:
                cancellation.go_on()
                time.sleep(0.01)
        except NotAwaitedError:
            learned.set()
            raise

    async def run() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await in_thread(call)

    asyncio.run(run())
    assert learned.is_set()


def test_a_call_in_a_thread_gives_its_result_and_its_error() -> None:
    assert asyncio.run(in_thread(lambda: 5)) == 5
    assert not asyncio.run(in_thread(lambda: False))
    with pytest.raises(ZeroDivisionError):
        asyncio.run(in_thread(lambda: 1 // 0))
