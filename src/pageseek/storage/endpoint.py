"""What is known of the far end of many files: its latency and bandwidth, and how long the tails of its files are."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any

# seconds, and bytes a second of a connection, until they are measured
LATENCY, BANDWIDTH = 0.02, 1e8
LEAST_LATENCY, MOST_LATENCY = 2e-3, 5.0
LEAST_BANDWIDTH, MOST_BANDWIDTH = 1e6, 2e9
SMALL, LARGE = 64 << 10, 128 << 10  # bytes of answers that tell of latency, and of bandwidth
FACTOR = 4.0  # at most, by which one sample counts as different from what is known
IN_FLIGHT = 16  # requests to one endpoint
WHOLE_SAMPLE = (
    1 << 20
)  # bytes of an answer that tell of bandwidth as they are; smaller ones come in bursts
OVERTAKEN = 4  # one request in this many is taken from those that others may overtake

SHORT_TAIL, LONG_TAIL = 64 << 10, 512 << 10  # bytes read at open, in a folder that is not known
LONGEST_TAIL = 4 << 20
FOLDERS = 1024


def _towards(known: float, sample: float, samples: int, weight: float = 1.0) -> float:
    sample = min(max(sample, known / FACTOR), known * FACTOR)
    return known + (sample - known) * max(0.1, 1 / (samples + 2)) * weight


class Endpoint:
    """One server, or one bucket of a provider. All its files share it, in all threads."""

    def __init__(self, key: str, in_flight: int = IN_FLIGHT) -> None:
        self.key = key
        self.in_flight = in_flight
        self._latency, self._pace = LATENCY, 1 / BANDWIDTH  # seconds, and seconds a byte
        self._waits = self._bodies = 0  # samples
        self._tails: OrderedDict[str, int] = OrderedDict()
        self.unlock()

    def unlock(self) -> None:
        """Start again in a forked process: nothing is under way there, and nobody holds a lock."""
        self._lock = threading.Lock()
        self.alone = threading.Lock()  # held by the only call, where there may be but one at a time
        self.waiting: deque[Callable[[Any], None]] = deque()
        self.idle: deque[Callable[[Any], None]] = deque()  # what others may overtake
        self._turn = 0
        self.running = 0

    def next_queue(self) -> deque[Callable[[Any], None]]:
        """The queue with the next request; empty where none waits. Requests that may be overtaken come at last."""
        self._turn += 1
        overtaken = self.idle and (not self.waiting or self._turn % OVERTAKEN == 0)
        return self.idle if overtaken else self.waiting

    @property
    def free(self) -> int:
        """Requests that would be sent at once."""
        return max(self.in_flight - self.running - len(self.waiting), 0)

    @property
    def latency(self) -> float:
        """Seconds until the first byte of an answer."""
        return min(max(self._latency, LEAST_LATENCY), MOST_LATENCY)

    @property
    def bandwidth(self) -> float:
        """Bytes a second of one connection, once the first has come."""
        return min(max(1 / self._pace, LEAST_BANDWIDTH), MOST_BANDWIDTH)

    def measured(self, size: int, seconds: float, first: float | None = None) -> None:
        """Learn from an answer of `size` bytes that took `seconds`. `first`: seconds until it began, where that is known."""
        with self._lock:
            if first is None and size <= SMALL:
                first = seconds
            if first is not None:
                self._latency = _towards(self._latency, first, self._waits)
                self._waits += 1
            if size >= LARGE:
                body = max(seconds - (self._latency if first is None else first), 1e-5)
                weight = min(size / WHOLE_SAMPLE, 1.0)
                self._pace = _towards(self._pace, body / size, self._bodies, weight)
                self._bodies += 1

    def tail(self, folder: str) -> int:
        """How many of the last bytes of a file in a folder are expected to hold its footer and page index."""
        gap = int(self.latency * self.bandwidth)  # bytes that take no longer than another request
        with self._lock:
            known = self._tails.get(folder)
        if known is None:
            return min(max(gap // 8, SHORT_TAIL), LONG_TAIL)
        wanted = known + (known >> 3) + 4096  # the next one may be longer
        return min((wanted + 4095) & ~4095, LONGEST_TAIL, max(gap, SHORT_TAIL))

    def learn_tail(self, folder: str, size: int) -> None:
        """Learn that footer and page index of a file in a folder took `size` bytes at its end."""
        with self._lock:
            self._tails[folder] = max(size, int(0.9 * self._tails.pop(folder, 0)))
            if len(self._tails) > FOLDERS:
                self._tails.popitem(last=False)


_known: dict[str, Endpoint] = {}
_lock = threading.Lock()


def endpoint(key: str, in_flight: int = IN_FLIGHT) -> Endpoint:
    """The endpoint of this name: one object each time."""
    with _lock:
        found = _known.get(key)
        if found is None:
            found = _known[key] = Endpoint(key, in_flight)
        return found


def _unlock() -> None:
    global _lock
    _lock = threading.Lock()
    for one in _known.values():
        one.unlock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock)
