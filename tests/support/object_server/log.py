"""What was asked of the server, request by request, and the figures that follow from it."""

from __future__ import annotations

import itertools
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Record:
    """One request. Times are of the monotonic clock, in seconds.

    ``end`` is taken just before the last bytes go out, so that whoever acts upon the answer comes
    later; it is None while the request is in flight, a stalled one's too. ``sent`` counts bytes
    of the body.
    """

    number: int
    start: float
    method: str
    path: str
    query: str
    range: str | None
    connection: int
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    end: float | None = None
    status: int = 0
    sent: int = 0
    fault: str | None = None


class Log(ABC):
    """Figures over records; where those are kept is another's business."""

    @abstractmethod
    def records(self) -> list[Record]:
        """Every record since the last reset, by number."""

    @abstractmethod
    def reset(self) -> None:
        """Forget all records and count from 1 again."""

    def __len__(self) -> int:
        return len(self.records())

    def requests(self, path: str | None = None, method: str | None = None) -> list[Record]:
        """The records of a path, of a method, or all."""
        return [
            record
            for record in self.records()
            if path in (None, record.path) and method in (None, record.method)
        ]

    def asked(self, path: str | None = None) -> list[str]:
        """The requests as short lines, ``GET bytes=0-9``, for exact comparison in tests."""
        return [f"{one.method} {one.range or ''}".strip() for one in self.requests(path)]

    def bytes(self, path: str | None = None) -> int:
        """Bytes of bodies sent."""
        return sum(record.sent for record in self.requests(path))

    def in_flight(self, path: str | None = None) -> int:
        """The greatest number of requests under way at one time."""
        return _most_at_once(self.requests(path))

    def waves(self, path: str | None = None) -> int:
        """The longest chain of requests of which each began after the one before had ended.

        These are the sequential round trips: what latency is paid for.
        """
        return _longest_chain(self.requests(path))


def _end(record: Record) -> float:
    return float("inf") if record.end is None else record.end


def _most_at_once(records: Iterable[Record]) -> int:
    events = [(record.start, 1) for record in records] + [(_end(record), -1) for record in records]
    # At one time ends go first: -1 sorts before 1.
    return max(itertools.accumulate(step for _, step in sorted(events)), default=0)


def _longest_chain(records: Iterable[Record]) -> int:
    """Disjoint intervals are a chain; taking them by their ends finds the most of them."""
    count, last = 0, float("-inf")
    for record in sorted(records, key=_end):
        if record.start >= last:
            count += 1
            last = _end(record)
    return count


class LiveLog(Log):
    """The log of a server in this process."""

    def __init__(self) -> None:
        self._records: list[Record] = []
        self._lock = threading.Lock()

    def begin(self, record: Record) -> None:
        """Number a record that begins now, and keep it."""
        with self._lock:
            record.number = len(self._records) + 1
            record.start = time.monotonic()
            self._records.append(record)

    def records(self) -> list[Record]:
        with self._lock:
            return list(self._records)

    def reset(self) -> None:
        with self._lock:
            self._records.clear()
