"""A client of the standard library, without retries."""

from __future__ import annotations

import http.client
from typing import Self

from support.object_server.process import ServerProcess
from support.object_server.server import ObjectServer


class Client:
    """One kept connection to an object server, closed at the end of ``with``."""

    def __init__(self, server: ObjectServer | ServerProcess, timeout: float = 10) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=timeout)

    def __call__(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[http.client.HTTPResponse, bytes]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request(method, f"/{path}", body, named)
        answer = self.connection.getresponse()
        return answer, answer.read()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()
