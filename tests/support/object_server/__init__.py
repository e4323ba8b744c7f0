"""An HTTP/1.1 object server for tests and measurements: plain HTTP and a subset of S3, late, slow and
faulty on demand, with a log of every request.

    with ObjectServer(folder, latency=0.03, bandwidth=50e6) as server:
        read(server.url("bucket/key"))
        assert server.log.waves() == 2

Rooms: `messages` (requests, answers, contents), `objects` (memory, folder), `conditions` (ranges and
preconditions), `s3` (listings), `answers` (routing), `wire` (parsing), `faults`, `log`, `connection`
(sockets, pace), `server`, `control` and `process` (the same in a process of its own).
"""

from __future__ import annotations

from support.object_server.faults import Fault, Rule, Rules, status
from support.object_server.log import Log, Record
from support.object_server.messages import Request
from support.object_server.process import ServerProcess
from support.object_server.server import ObjectServer

__all__ = [
    "Fault",
    "Log",
    "ObjectServer",
    "Record",
    "Request",
    "Rule",
    "Rules",
    "ServerProcess",
    "status",
]
