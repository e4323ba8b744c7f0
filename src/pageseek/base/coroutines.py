"""Coroutines: several that run side by side and end together, and calls in threads that end when nobody waits any more."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from pageseek.base.cancellation import asked

T = TypeVar("T")


async def together(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of coroutines, in their order. Where one fails, or nobody waits any more, the others are cancelled."""
    if len(work) == 1:
        return [await work[0]]
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


class NotAwaitedError(BaseException):
    """Nobody waits for the work of this thread any more. No handler of errors is to go on with it."""


class Work:
    """Calls in threads of the loop's default executor. They end at their next request once `stop` is set."""

    def __init__(self) -> None:
        self.stop = threading.Event()

    async def wait(self, call: Callable[[], T]) -> T:
        """The result of a call. A task that is cancelled sets `stop`."""
        try:
            return await asyncio.to_thread(self._run, call)
        except asyncio.CancelledError:
            self.stop.set()
            raise

    def _run(self, call: Callable[[], T]) -> T:
        self._go_on()
        with asked(self._go_on):
            return call()

    def _go_on(self) -> None:
        if self.stop.is_set():
            raise NotAwaitedError


async def in_thread(call: Callable[[], T]) -> T:
    """The result of a call in a thread, which ends at its next request where the task is cancelled."""
    return await Work().wait(call)
