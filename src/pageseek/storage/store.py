"""The protocol of a store: one open file of one version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pageseek.base.records import dataclass

Buffer = bytes | bytearray | memoryview
# seconds of latency from which another wave of requests costs more than bytes that may prove useless
SLOW_STORE = 1e-3


@dataclass(frozen=True, slots=True)
class Version:
    """Which bytes a file had: `tag` differs when they differ. `strong` where the store proves it.

    `dated` is False where nothing but the size is known: other bytes of the same size are not told apart,
    and what was read once is no answer later.
    """

    size: int
    tag: str
    strong: bool
    dated: bool = True


@dataclass(frozen=True, slots=True)
class Known:
    """What was learned of a file before: its version, and its last bytes, with the footer whole."""

    version: Version
    tail: bytes | memoryview = b""


def request_bytes(store: Store) -> float:
    """The bytes that come in the time from a request to its first byte: a further request costs as much as they do."""
    return store.latency * store.bandwidth


def wait_bytes(store: Store) -> int:
    """The bytes that come in the time of a wait for the store: reading as many that may prove useless costs no more than
    waiting once more. 0: a read of this store does not wait.
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
        """The bytes at each (offset, length). Short data is an OSError, never fewer bytes."""
        ...

    def check(self) -> None:
        """Raise FileChangedError when the file is no longer the version that was opened."""
        ...

    def close(self) -> None: ...
