"""What all remote stores have in common: several ranges at once, tried again where that helps, each answer checked."""

from __future__ import annotations

import posixpath
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import numpy as np

from pageseek.base.errors import FileChangedError
from pageseek.base.records import dataclass
from pageseek.storage.endpoint import Endpoint
from pageseek.storage.requests import Wave, begin, issue
from pageseek.storage.retry import (
    NO_RANGES,
    Fault,
    OddAnswerError,
    Retries,
    RetryPolicy,
    with_retries,
)
from pageseek.storage.store import Buffer, Known, Version

T = TypeVar("T")
STREAMED = (
    1 << 20
)  # bytes of an answer after which somebody looks whether the others are still wanted


@dataclass(frozen=True, slots=True)
class Answer:
    """The bytes of a range, with what the answer says of them: where they begin, and of which version they are.

    `first`: seconds until the answer began. None: it does not say.
    """

    data: Buffer
    start: int | None = None
    version: Version | None = None
    first: float | None = None


def room_for(size: int) -> memoryview:
    """Memory for so many bytes, which nobody has written to."""
    return memoryview(np.empty(size, np.uint8))


class RemoteStore:
    """A file at the other end of a network. Who inherits has `_get`, `_look` and `_fault`, and calls `_opened`.

    Attributes
    ----------
    tail : memoryview or None
        The last bytes, where opening has brought them; who takes them sets None.
    renewed : bool
        The version is the one that was known before, and the tail is from then.
    requests : int
        How many it took to open.
    retries : Retries
        Of what was asked beside ranges: to open, and whether the file is still that one.
    """

    size: int
    version: Version

    def __init__(self, name: str, path: str, endpoint: Endpoint, retry_policy: RetryPolicy) -> None:
        self.name = name
        self._endpoint = endpoint
        self._patience = retry_policy
        self._folder = posixpath.dirname(path)
        self.tail: memoryview | None = None
        self.renewed = False
        self.requests = 0
        self.retries = Retries()

    # ---- of each kind of store

    def _get(self, offset: int, length: int, into: memoryview | None = None) -> Answer:
        """One request for one range that is not empty. Where there is a place for its bytes they may be put there."""
        raise NotImplementedError

    def _look(self) -> Version:
        """The version that lies there now: one request, without a body."""
        raise NotImplementedError

    def _fault(self, error: Exception) -> Fault:
        """What a failure of these two means."""
        raise NotImplementedError

    def attributes(self) -> dict[str, str]:
        """What the store keeps of the object beside its bytes, such as Content-Type; nothing where that is not told."""
        return {}

    def close(self) -> None:
        """Nothing is held."""

    # ---- of all

    @property
    def latency(self) -> float:
        """Seconds until the first byte of an answer, as measured so far."""
        return self._endpoint.latency

    @property
    def bandwidth(self) -> float:
        """Bytes a second of one connection, as measured so far."""
        return self._endpoint.bandwidth

    @property
    def free(self) -> int:
        """Requests that it would begin with at once."""
        return self._endpoint.free

    @property
    def tail_bytes(self) -> int:
        """How many of the last bytes are worth reading at open."""
        return self._endpoint.tail(self._folder)

    def learn_tail(self, size: int) -> None:
        """Footer and page index took so many bytes at the end."""
        self._endpoint.learn_tail(self._folder, size)

    def read(
        self,
        ranges: Sequence[tuple[int, int]],
        go_on: Callable[[], None] | None = None,
        retries: Retries | None = None,
        pieces: Sequence[int] | None = None,
    ) -> list[Buffer]:
        """The bytes at each (offset, length), asked at the same time. `go_on` may end the wait by an exception;
        `retries` is told of those that there are; `pieces`: as how many requests each range is asked, 1 as a rule.
        """
        told = Retries() if retries is None else retries
        out: list[Buffer] = [b""] * len(ranges)
        tasks: list[partial[Buffer]] = []
        whole: list[int | None] = []  # of each task: the range that its bytes are all of
        for i, (offset, length) in enumerate(ranges):
            n = 1 if pieces is None else min(pieces[i], length)
            if n > 1:
                out[i] = room = room_for(length)
                step = -(-length // n)
                for at in range(0, length, step):
                    part = room[at : at + step]
                    tasks.append(partial(self._read, offset + at, part.nbytes, told, part))
                    whole.append(None)
            elif length:
                tasks.append(partial(self._read, offset, length, told, None))
                whole.append(i)
        found = issue(self._endpoint, tasks, go_on) if tasks else []
        for place, data in zip(whole, found, strict=True):
            if place is not None:
                out[place] = data
        return out

    def check(self) -> None:
        """Ask for the version, unless every answer has proven it."""
        if self.version.strong:
            return
        (now,) = issue(self._endpoint, [self._asked(self._look, "its version")])
        if now != self.version:
            raise self._changed(now)

    def begin_to_confirm(self, retries: Retries) -> Wave[None]:
        """Ask for the version, which reads may overtake; FileChangedError where it is another one. `retries` is told of those
        that there are.
        """
        task = self._asked(self._confirm, "its version", retries)
        return begin(self._endpoint, [task], hurry=False)

    def _confirm(self) -> None:
        now = self._look()
        if now != self.version:
            raise self._changed(now)

    def _asked(
        self, attempt: Callable[[], T], what: str, retries: Retries | None = None
    ) -> Callable[[threading.Event], T]:
        told = self.retries if retries is None else retries
        return partial(
            with_retries, attempt, self._fault_here, self.name, what, self._patience, told
        )

    def _read(
        self,
        offset: int,
        length: int,
        retries: Retries,
        into: memoryview | None,
        stop: threading.Event,
    ) -> Buffer:
        what = f"{length} bytes at {offset}"
        try:
            return self._asked(partial(self._checked, offset, length, into), what, retries)(stop)
        except FileNotFoundError as error:
            raise FileChangedError(
                f"{self.name}: the file was there when it was opened, and is not any more"
            ) from error

    def _fault_here(self, error: Exception) -> Fault:
        if isinstance(error, OddAnswerError):
            return Fault("odd", str(error), advice=NO_RANGES)
        fault = self._fault(error)
        if fault.kind == "changed":
            if not hasattr(self, "version"):  # nothing was tied to one yet
                return Fault("final", fault.why)
            raise self._changed(None) from None  # the error of the library may hold secrets
        return fault

    def _checked(self, offset: int, length: int, into: memoryview | None = None) -> Buffer:
        begun = time.monotonic()
        answer = self._get(offset, length, into)
        seconds = time.monotonic() - begun
        if answer.version is not None and answer.version != self.version:
            raise self._changed(answer.version)
        if answer.start is not None and answer.start != offset:
            raise OddAnswerError(f"bytes from {answer.start} on came")
        size = memoryview(answer.data).nbytes
        if size != length:
            if not self.version.strong and (now := self._look()) != self.version:
                raise self._changed(now)
            raise OddAnswerError(f"{size} bytes came")
        self._endpoint.measured(size, seconds, answer.first)
        if into is not None and answer.data is not into:
            into[:] = memoryview(answer.data).cast("B")
            return into
        return answer.data

    def _changed(self, now: Version | None) -> FileChangedError:
        new = "another" if now is None else now.tag
        return FileChangedError(
            f"{self.name}: the file changed while it was being read ({self.version.tag} -> {new}); open it again"
        )

    def _opened(self, version: Version, known: Known | None, tail: Buffer | None = None) -> None:
        """What opening has found. The tail that is known serves where the version is still that one."""
        self.version, self.size = version, version.size
        self.tail = None if tail is None else memoryview(tail).cast("B")
        if known is not None and known.version == version and version.dated:
            self.renewed = True
            if known.tail:
                self.tail = memoryview(known.tail).cast("B")
