"""The protocol of a store: one open file of one version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pageseek.base.records import dataclass

Buffer = bytes | bytearray | memoryview
SLOW_STORE = (
    1e-3  # seconds of latency from which a wave costs more than bytes that may prove useless
)


@dataclass(frozen=True, slots=True)
class Version:
    """The version of a file: other bytes have another `tag`. `strong`: the store proves it with every read.

    `dated` is False where only the size is known: other bytes of that size have an equal version, so that nothing is reused.
    """

    size: int
    tag: str
    strong: bool
    dated: bool = True


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a file from before: its version, and its last bytes with the whole footer."""

    version: Version
    tail: bytes | memoryview = b""


def request_bytes(store: Store) -> float:
    """The bytes that come in the time from a request to its first byte: they cost as much as a further request."""
    return store.latency * store.bandwidth


def wait_bytes(store: Store) -> int:
    """The bytes that come in the time of a wait for the store: to read them, though they may prove useless, costs no more
    than another wait. 0: reads of this store do not wait.
    """
    return int(request_bytes(store)) if store.latency >= SLOW_STORE else 0


class Store(Protocol):
    """One file, open.

    `latency` (seconds until the first byte) and `bandwidth` (bytes a second) let the planner weigh a further
    request against bytes read for nothing.
    """

    name: str
    size: int
    version: Version

    @property
    def latency(self) -> float: ...

    @property
    def bandwidth(self) -> float: ...

    def read(self, ranges: Sequence[tuple[int, int]]) -> list[Buffer]:
        """The bytes at each (offset, length). OSError where there are fewer."""
        ...

    def check(self) -> None:
        """Raise FileChangedError where the file is no longer the version that was opened."""
        ...

    def close(self) -> None: ...


class ClosedStore:
    """Takes the place of the store of a file that was closed: what has to be read is a ValueError, as of Python's own files."""

    latency = bandwidth = 1.0

    def __init__(self, before: Store) -> None:
        self.name, self.size, self.version = before.name, before.size, before.version

    def read(self, ranges: Sequence[tuple[int, int]]) -> list[Buffer]:
        raise ValueError(f"{self.name}: the file is closed")

    def check(self) -> None:
        self.read(())

    def close(self) -> None:
        """It is closed."""
