"""One connection: requests in, answers out, late, slow and faulty as the server is told to be."""

from __future__ import annotations

import contextlib
import select
import socket
import socketserver
import struct
import time
from typing import TYPE_CHECKING, cast

from support.object_server import control
from support.object_server.answers import answer
from support.object_server.faults import Fault
from support.object_server.log import Record
from support.object_server.messages import Answer, Inverted, Request
from support.object_server.wire import BadRequest, read_body, read_head, split_target

if TYPE_CHECKING:
    from support.object_server.server import ObjectServer

_step = 0.004  # seconds of bandwidth in one piece: few enough wake-ups for many connections
_piece = 1 << 18  # bytes at once where bandwidth is free


class Connection(socketserver.StreamRequestHandler):
    """Answers the requests of one connection in turn, in a thread of its own."""

    disable_nagle_algorithm = True
    rbufsize = 1 << 16
    connection: socket.socket

    def setup(self) -> None:
        super().setup()
        self.owner = cast("ObjectServer", self.server.owner)  # type: ignore[attr-defined]
        self.identity = self.owner.enter(self.connection)

    def finish(self) -> None:
        self.owner.leave(self.connection)
        with contextlib.suppress(OSError):
            super().finish()

    def handle(self) -> None:
        # A client may leave at any time; that is its right, and no error of ours.
        with contextlib.suppress(OSError):
            while self._serve_one():
                pass

    def _serve_one(self) -> bool:
        try:
            if (head := read_head(self.rfile)) is None:
                return False
            method, target, version, headers = head
            if headers.get("expect", "").lower() == "100-continue":
                self.connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            path, query, asked = split_target(target)
            request = Request(method, path, query, headers, read_body(self.rfile, headers))
        except BadRequest as error:
            refusal = Answer.error(400, "BadRequest", str(error))
            self.connection.sendall(refusal.head(True) + refusal.content.read(0, refusal.stop))
            return False
        spec = headers.get("connection", "").lower()
        keep = "close" not in spec and (version != "HTTP/1.0" or "keep-alive" in spec)
        if path.startswith(control.prefix):
            reply = control.answer(self.owner, request)
            self._send(reply, None, method == "HEAD", keep, None)
            return keep
        return self._answer(request, asked, keep)

    def _answer(self, request: Request, asked: str, keep: bool) -> bool:
        request.connection = self.identity
        record = Record(
            0,
            0.0,
            request.method,
            request.path,
            asked,
            request.range,
            self.identity,
            request.headers,
        )
        self.owner.log.begin(record)
        request.number = record.number
        try:
            fault = self.owner.choose(request)
            record.fault = fault.name if fault else None
            self.owner.wait(request)
            if fault and fault.kind in ("close", "reset", "hang"):
                return self._leave(fault)
            reply = self._reply(request, fault)
            if fault and fault.kind == "lost":
                reply.content.close()
                return False
            if not self.owner.etags:
                reply.headers.pop("ETag", None)
            try:
                return self._send(reply, record, request.method == "HEAD", keep, fault)
            finally:
                reply.content.close()
        finally:
            record.end = record.end or time.monotonic()

    def _leave(self, fault: Fault) -> bool:
        if fault.kind == "hang":
            self._wait_for_the_end()
        elif fault.kind == "reset":
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.connection.close()
        return False

    def _reply(self, request: Request, fault: Fault | None) -> Answer:
        objects = self.owner.objects
        if fault is None:
            return answer(objects, request)
        if fault.kind == "status":
            wait = {} if fault.retry_after is None else {"Retry_After": f"{fault.retry_after:g}"}
            return Answer.error(fault.status, fault.code, "injected", **wait)
        if fault.kind == "whole":
            request.headers = {k: v for k, v in request.headers.items() if k != "range"}
        elif fault.kind == "other_version":
            request.headers = {k: v for k, v in request.headers.items() if k[:3] != "if-"}
        elif fault.kind == "replaced":
            self.owner.touch(request.path)
        reply = answer(objects, request)
        if fault.kind == "other_version" and "ETag" in reply.headers:
            reply.headers["ETag"] = '"other-' + reply.headers["ETag"].strip('"') + '"'
            reply.content = Inverted(reply.content)
        elif reply.status == 206:
            size = reply.headers["Content-Range"].rpartition("/")[2]
            if fault.kind == "short":
                reply.stop = reply.start + max(1, fault.limit(reply.stop - reply.start))
                named = (reply.start, reply.stop - 1)
            elif fault.kind == "wrong_range":
                named = (reply.start + 1, reply.stop)
            else:
                return reply
            reply.headers["Content-Range"] = f"bytes {named[0]}-{named[1]}/{size}"
        return reply

    def _send(
        self, reply: Answer, record: Record | None, only_head: bool, keep: bool, fault: Fault | None
    ) -> bool:
        """Send an answer; whether the connection is good for another request."""
        length = 0 if only_head else reply.stop - reply.start
        broken = fault is not None and fault.kind in ("cut", "stall") and length > 0
        goal = fault.limit(length) if fault and broken else length
        waiting = reply.head(not keep)
        bandwidth = self.owner.bandwidth if record else None
        piece = max(1024, int(bandwidth * _step)) if bandwidth else _piece
        began, done = time.perf_counter(), 0
        record = record or Record(0, 0.0, "", "", "", None, 0)
        record.status = reply.status
        # The head goes with the first piece, unless that is held back.
        if bandwidth and goal:
            self.connection.sendall(waiting)
            waiting = b""
        while done < goal or waiting:
            data = reply.content.read(reply.start + done, min(piece, goal - done))
            if done < goal and not data:
                return False  # the file was cut short beneath the server
            done += len(data)
            if bandwidth:
                time.sleep(max(0.0, began + done / bandwidth - time.perf_counter()))
            record.sent = done
            if done == goal and not broken:
                record.end = time.monotonic()
            self._send_all(waiting, data)
            waiting = b""
        if broken:
            if fault and fault.kind == "stall":
                self._wait_for_the_end()
            return False
        return keep

    def _send_all(self, head: bytes, data: bytes | memoryview) -> None:
        if head and data:
            # One segment for a small answer, without a copy of a large one.
            sent = self.connection.sendmsg([head, data])
            head, data = head[sent:], memoryview(data)[max(0, sent - len(head)) :]
        if head:
            self.connection.sendall(head)
        if data:
            self.connection.sendall(data)

    def _wait_for_the_end(self) -> None:
        """Until the server stops or the client leaves; more requests from it change nothing."""
        while not self.owner.stopping.is_set():
            readable, _, _ = select.select([self.connection], [], [], 0.1)
            if readable:
                if not self.connection.recv(1, socket.MSG_PEEK):
                    return
                self.owner.stopping.wait(0.1)
