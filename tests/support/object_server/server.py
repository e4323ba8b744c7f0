"""An HTTP/1.1 object server for tests and measurements: plain HTTP and a subset of S3, late, slow and
faulty on demand, with a log of every request.

    with ObjectServer(folder, latency=0.03, bandwidth=50e6) as server:
        read(server.url("bucket/key"))
        assert server.log.waves() == 2

The rooms beside: `messages` (requests, answers, contents), `objects` (memory, folder), `conditions`
(ranges and preconditions), `s3` (listings), `answers` (routing), `wire` (parsing), `faults`, `log`,
`connection` (sockets, pace), `control` and `process` (the same in a process of its own).
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import socket
import sys
import threading
from http.server import ThreadingHTTPServer
from types import TracebackType
from typing import Self
from urllib.parse import quote

from support.object_server.connection import Connection
from support.object_server.faults import Chooser, Fault, Faults, chooser
from support.object_server.log import LiveLog
from support.object_server.messages import Request
from support.object_server.objects import FolderObjects, Info, MemoryObjects, Objects


class _Listener(ThreadingHTTPServer):
    """A thread per connection, and room for hundreds that connect at once."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 1024
    owner: ObjectServer

    def server_bind(self) -> None:
        # HTTPServer would look its own name up, which may take seconds.
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()

    def handle_error(self, request: object, client_address: object) -> None:
        # Python's own report would go to the terminal, and be nobody's: what fails here is a
        # mistake in the server, which a test must see.
        error = sys.exception()
        if error is not None:
            self.owner.errors.append(error)


class Addresses:
    """How clients name the objects of a server."""

    port: int

    @property
    def endpoint(self) -> str:
        """The address for S3 clients, without a slash at its end."""
        return f"http://127.0.0.1:{self.port}"

    def url(self, path: str = "") -> str:
        """The plain HTTP address of ``bucket/key``."""
        return f"{self.endpoint}/{quote(path)}"


class ObjectServer(Addresses):
    """An object server on a port of its own, from ``with`` to its end.

    Parameters
    ----------
    folder
        Where the objects lie: ``folder/bucket/key``; what is put goes there. None: in memory.
    latency, jitter
        Seconds from a request to the first byte of its answer; jitter adds up to that much, evenly.
    bandwidth
        Bytes per second of one connection; None: as they come.
    faults
        What goes wrong: a `Fault` for every request, `Rule`s, or a callable from a `Request` to a
        `Fault` or None. In rules with a probability the seed decides.

    All but the folder and the seed may be set while it runs. In one process the server shares the
    interpreter lock with its client: for measurements take `ServerProcess`.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | None = None,
        *,
        latency: float = 0.0,
        bandwidth: float | None = None,
        jitter: float = 0.0,
        faults: Faults = None,
        seed: int = 0,
        port: int = 0,
    ) -> None:
        self.objects: Objects = MemoryObjects() if folder is None else FolderObjects(folder)
        self.latency, self.bandwidth, self.jitter = latency, bandwidth, jitter
        self.etags = True  # whether answers have one; without, Last-Modified tells versions apart
        self.log = LiveLog()
        self.stopping = threading.Event()
        self.errors: list[BaseException] = []
        self._seed = seed
        self._chooser: Chooser | None = chooser(faults, seed)
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._identities = itertools.count(1)
        self._listener = _Listener(("127.0.0.1", port), Connection)
        self._listener.owner = self
        self.port: int = self._listener.server_address[1]
        self._thread = threading.Thread(
            target=self._listener.serve_forever, args=(0.05,), name="object-server", daemon=True
        )

    @property
    def faults(self) -> Chooser | None:
        """The faults; setting them restarts the chance with the same seed."""
        return self._chooser

    @faults.setter
    def faults(self, faults: Faults) -> None:
        self._chooser = chooser(faults, self._seed)

    def start(self) -> Self:
        """Begin to answer."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """End every connection, stalled ones too, and give the port back."""
        self.stopping.set()
        if self._thread.is_alive():
            self._listener.shutdown()
            self._thread.join()
        self._listener.server_close()
        with self._lock:
            for connection in self._connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        if self.errors and error is None:
            # Answers that never came may have looked like faults to the test.
            raise RuntimeError("the object server made a mistake of its own") from self.errors[0]

    def put(self, path: str, data: bytes) -> Info:
        """Lay an object down, or replace it: either way its ETag is new."""
        return self.objects.put(path, bytes(data))

    replace = put

    def delete(self, path: str) -> None:
        """Take an object away."""
        self.objects.delete(path)

    def touch(self, path: str) -> None:
        """Replace an object by its own bytes: a new version, if one is there."""
        if (found := self.objects.open(path)) is not None:
            info, content = found
            data = bytes(content.read(0, info.size))
            content.close()
            self.objects.put(path, data)

    # What connections call.

    def enter(self, connection: socket.socket) -> int:
        with self._lock:
            self._connections.add(connection)
            return next(self._identities)

    def leave(self, connection: socket.socket) -> None:
        with self._lock:
            self._connections.discard(connection)

    def choose(self, request: Request) -> Fault | None:
        chosen = self._chooser
        return chosen(request) if chosen else None

    def wait(self, request: Request) -> None:
        """Spend the latency of a request."""
        seconds = self.latency
        if self.jitter:
            seconds += self.jitter * random.Random(f"{self._seed} {request.number}").random()
        if seconds > 0:
            self.stopping.wait(seconds)
