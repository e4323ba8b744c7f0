"""What all remote stores have in common: several ranges at once, tried again where that helps, each answer checked."""

from __future__ import annotations

import posixpath
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial

import numpy as np

from pageseek.base import log
from pageseek.base.errors import FileChangedError
from pageseek.base.records import dataclass
from pageseek.storage.files import Files, Place
from pageseek.storage.listing import is_data
from pageseek.storage.requests import Wave, begin, issue
from pageseek.storage.retry import NO_RANGES, Fault, OddAnswerError, Retries, RetryPolicy
from pageseek.storage.store import Buffer, Known, Store, Version

STREAMED = (
    1 << 20
)  # bytes of an answer after which its reader looks whether the rest is still needed


@dataclass(frozen=True, slots=True)
class Answer:
    """The bytes of a range, and what the answer says of them: where they begin, and the version that they are of.

    `first`: seconds until the answer began. None: it does not say.
    """

    data: Buffer
    start: int | None = None
    version: Version | None = None
    first: float | None = None


def room_for(size: int) -> memoryview:
    """Memory for `size` bytes, which nothing has been written to."""
    return memoryview(np.empty(size, np.uint8))


class RemoteStore(Place):
    """A file at the other end of a network. A subclass has `_get` and `_look`, and calls `_opened`.

    Attributes
    ----------
    tail : memoryview or None
        The last bytes, where opening has brought them. The reader that takes them sets None.
    renewed : bool
        The version is the one that was known before, and the tail is from then.
    requests : int
        How many it took to open the file.
    retries : Retries
        Those of opening, and of asking for the version. `read` counts its own.
    """

    size: int
    version: Version
    asynchronous = False  # whether it has the coroutines

    def __init__(self, files: Files, path: str, retry_policy: RetryPolicy) -> None:
        super().__init__(files, path, retry_policy)
        self._folder = posixpath.dirname(path)
        self.tail: memoryview | None = None
        self.renewed = False
        self.requests = 0

    # ---- of each kind of store

    def _get(self, offset: int, length: int, into: memoryview | None = None) -> Answer:
        """Send one request for one range that is not empty. The bytes may be put into the memory that is given for them."""
        raise NotImplementedError

    def _look(self) -> Version:
        """Ask for the version that lies there now: one request, without a body."""
        raise NotImplementedError

    def attributes(self) -> dict[str, str]:
        """What the store keeps of the object beside its bytes, such as Content-Type; nothing where it does not say."""
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
        """Requests that would be sent at once."""
        return self._endpoint.free

    @property
    def tail_bytes(self) -> int:
        """How many of the last bytes are worth reading at open."""
        return self._endpoint.tail(self._folder)

    def learn_tail(self, size: int) -> None:
        """Remember that footer and page index took `size` bytes at the end."""
        self._endpoint.learn_tail(self._folder, size)

    def read(
        self,
        ranges: Sequence[tuple[int, int]],
        go_on: Callable[[], None] | None = None,
        retries: Retries | None = None,
        pieces: Sequence[int] | None = None,
    ) -> list[Buffer]:
        """The bytes at each (offset, length), by requests that run side by side.

        `go_on` is called while they are waited for, and may end that by an exception. `retries` counts those that it takes.
        `pieces`: the number of requests for each range; None: 1.
        """
        told = Retries() if retries is None else retries
        out: list[Buffer] = [b""] * len(ranges)
        tasks: list[partial[Buffer]] = []
        whole: list[int | None] = []  # for each task the range that it has all bytes of
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

    async def read_async(self, ranges: Sequence[tuple[int, int]], retries: Retries) -> list[Buffer]:
        """The bytes at each (offset, length), by coroutines that run side by side. Only of stores that are `asynchronous`."""
        raise NotImplementedError

    async def confirm_async(self, retries: Retries) -> None:
        """Raise FileChangedError where the store has another version now."""
        raise NotImplementedError

    def check(self) -> None:
        """Ask for the version, unless every answer has proven it."""
        if not self.version.strong:
            began = log.begun()
            self._compare(self.ask(self._look, "its version"))
            log.requested(self.name, "version", (), 1, began)

    def begin_to_confirm(self, retries: Retries) -> Wave[None]:
        """Begin to ask for the version, which reads may overtake. The wave raises FileChangedError where it is another one.

        `retries` counts those that it takes.
        """
        task = self._task(self._confirm_logged, "its version", retries)
        return begin(self._endpoint, [task], hurry=False)

    def missing(self, error: FileNotFoundError) -> FileNotFoundError:
        """The error of a path that was taken for a file by its name, and has none."""
        if self._files.looks_like_file(self._path) or not is_data(self._path):
            return error
        return FileNotFoundError(f"{error}; if it is a folder, write it with a / at its end")

    def _confirm_logged(self) -> None:
        began = log.begun()
        try:
            self._confirm()
        except FileChangedError:  # it is an answer
            log.requested(self.name, "version", (), 1, began)
            raise
        log.requested(self.name, "version", (), 1, began)

    def _confirm(self) -> None:
        self._compare(self._look())

    def _compare(self, now: Version) -> None:
        if now != self.version:
            raise self._changed(now)

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
            return self._task(partial(self._checked, offset, length, into), what, retries)(stop)
        except FileNotFoundError as error:
            raise FileChangedError(
                f"{self.name}: the file was there when it was opened, and is not any more"
            ) from error

    def _fault(self, error: Exception) -> Fault:
        if isinstance(error, OddAnswerError):
            return Fault("odd", str(error), advice=NO_RANGES)
        fault = super()._fault(error)
        if fault.kind == "changed":
            if not hasattr(self, "version"):  # nothing was tied to one yet
                return Fault("final", fault.why)
            raise self._changed(None) from None  # the error of the library may hold secrets
        return fault

    def _checked(self, offset: int, length: int, into: memoryview | None = None) -> Buffer:
        begun = time.monotonic()
        answer = self._get(offset, length, into)
        return self._accepted(answer, time.monotonic() - begun, offset, length, into)

    def _accepted(
        self,
        answer: Answer,
        seconds: float,
        offset: int,
        length: int,
        into: memoryview | None = None,
    ) -> Buffer:
        """The bytes of an answer that is of this version, and to what was asked."""
        if answer.version is not None:
            self._compare(answer.version)
        if answer.start is not None and answer.start != offset:
            raise OddAnswerError(f"bytes from {answer.start} on came")
        size = memoryview(answer.data).nbytes
        if size != length:
            if not self.version.strong:
                self._compare(self._look())
            raise OddAnswerError(f"{size} bytes came")
        self._endpoint.measured(size, seconds, answer.first)
        if into is not None and answer.data is not into:
            into[:] = memoryview(answer.data).cast("B")
            return into
        return answer.data

    def _changed(self, now: Version | None) -> FileChangedError:
        new = "another" if now is None else now.tag
        return FileChangedError(
            f"{self.name}: the file changed while it was being read ({self.version.tag} -> {new}); open it again, or plan again"
        )

    def _open(self, known: Known | None) -> None:
        """Open the file by its version alone: one request."""
        self.requests, began = 1, log.begun()
        self._opened(self.ask(self._look, "its version"), known)
        self._log_opening(began)

    def _opened(self, version: Version, known: Known | None, tail: Buffer | None = None) -> None:
        """Take what opening has found. The tail that is known serves where the version is still that one."""
        self.version, self.size = version, version.size
        self.tail = None if tail is None else memoryview(tail).cast("B")
        if known is not None and known.version == version and version.dated:
            self.renewed = True
            if known.tail:
                self.tail = memoryview(known.tail).cast("B")

    def _log_opening(self, began: float) -> None:
        """Log the requests that opening took."""
        if began:
            size = 0 if self.tail is None or self.renewed else self.tail.nbytes
            places = [(self.size - size, size)] if size else []
            log.requested(self.name, "open", places, self.requests, began)


def whole_file(store: Store) -> bytes:
    """All bytes of a file, which is closed. Those of a small remote file came as it was opened."""
    with closing(store):
        tail = store.tail if isinstance(store, RemoteStore) else None
        came = 0 if tail is None else len(tail)
        first = store.read([(0, store.size - came)])[0] if store.size > came else b""
        return bytes(first) + bytes(tail or b"")
