"""The control endpoint of a server in another process: `/-/log`, `/-/settings`, `/-/objects/PATH`.

No bucket is called ``-``. These requests are neither logged nor delayed, and never fail on purpose.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from support.object_server.faults import Rules
from support.object_server.messages import Answer, Request

if TYPE_CHECKING:
    from support.object_server.server import ObjectServer

prefix = "-/"


def answer(server: ObjectServer, request: Request) -> Answer:
    """Carry out what a `ServerProcess` asks."""
    what, _, path = request.path.removeprefix(prefix).partition("/")
    said: object = {}
    match request.method, what:
        case "GET", "log":
            said = [asdict(record) for record in server.log.records()]
        case "DELETE", "log":
            server.log.reset()
        case "PUT", "settings":
            _set(server, json.loads(request.body))
        case "PUT", "objects":
            said = asdict(server.objects.put(path, request.body))
        case "DELETE", "objects":
            server.objects.delete(path)
        case _:
            return Answer.error(404, "NoSuchControl", request.path)
    return Answer.of_bytes(200, json.dumps(said).encode(), "application/json")


def _set(server: ObjectServer, settings: dict[str, object]) -> None:
    for name, value in settings.items():
        if name == "faults":
            server.faults = Rules.from_json(value) if isinstance(value, dict) else None
        elif name in ("latency", "bandwidth", "jitter"):
            setattr(server, name, value)
