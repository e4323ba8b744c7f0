"""Threads that all run the same work, tasks that count how many run at a time, and a local store that waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from pageseek.storage.local import LocalStore
from support.local_reads import hook_local_reads


def in_threads(count: int, work: Callable[[int], object]) -> None:
    """Run `work(0)` to `work(count - 1)` at the same time, each in a thread of its own, and wait for all."""
    threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class InFlight:
    """How many calls run now, how many ran at the same time at most, and how many there were."""

    def __init__(self, seconds: float) -> None:
        """`seconds`: how long each call takes."""
        self.seconds = seconds
        self.now = self.most = self.calls = 0
        self._lock = threading.Lock()

    def wait(self) -> None:
        """One call."""
        with self._lock:
            self.calls += 1
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(self.seconds)
        with self._lock:
            self.now -= 1

    def task(self, stop: threading.Event) -> int:
        """One call, as a task of a wave of requests."""
        self.wait()
        return 1


def slow_local_reads(monkeypatch: pytest.MonkeyPatch, seconds: float) -> InFlight:
    """Let every read of a local file take some time, which its store says is its latency; counts the reads."""
    counts = InFlight(seconds)
    hook_local_reads(monkeypatch, lambda _, __: counts.wait())
    monkeypatch.setattr(LocalStore, "latency", seconds)
    return counts
