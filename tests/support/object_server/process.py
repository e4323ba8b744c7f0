"""The server in a process of its own, with the interface of the one in this process."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from support.object_server.faults import Faults, Rules, chooser
from support.object_server.log import Log, Record
from support.object_server.objects import Info
from support.object_server.server import Addresses

_tests = Path(__file__).resolve().parents[2]


class RemoteLog(Log):
    """The log of another process: each question fetches the records."""

    def __init__(self, server: ServerProcess) -> None:
        self._server = server

    def records(self) -> list[Record]:
        return [Record(**said) for said in self._server.ask("GET", "log")]

    def reset(self) -> None:
        self._server.ask("DELETE", "log")


class ServerProcess(Addresses):
    """An `ObjectServer` that takes no processor time from the process that measures.

    Parameters are those of `ObjectServer`; faults are rules, since a callable cannot go along. The
    process ends with this one, however that ends.
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
    ) -> None:
        self._folder = folder
        self._seed = seed
        self._settings: dict[str, Any] = {
            "latency": latency,
            "bandwidth": bandwidth,
            "jitter": jitter,
            "faults": self._rules(faults),
        }
        self._process: subprocess.Popen[str] | None = None
        self.port = 0
        self.log = RemoteLog(self)

    def _rules(self, faults: Faults) -> dict[str, Any] | None:
        chosen = chooser(faults, self._seed)
        if chosen is None:
            return None
        if not isinstance(chosen, Rules):
            raise TypeError("faults in another process are a Fault or Rules, not a callable")
        return chosen.to_json()

    def start(self) -> Self:
        """Start the process; it listens when this returns."""
        command = [sys.executable, "-m", "support.object_server", "--seed", str(self._seed)]
        if self._folder is not None:
            command.append(os.fspath(self._folder))
        paths = [str(_tests), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )
        assert self._process.stdout is not None
        said = self._process.stdout.readline()
        if not said.strip().isdigit():
            self.stop()
            raise RuntimeError("the process of the object server ended before it listened")
        self.port = int(said)
        self._set(**self._settings)
        return self

    def stop(self) -> None:
        """End the process: it leaves when its standard input closes."""
        process, self._process = self._process, None
        if process is not None:
            with process:
                assert process.stdin is not None
                process.stdin.close()
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def ask(self, method: str, what: str, body: bytes | None = None) -> Any:
        """One request to the control endpoint."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, f"/-/{what}", body)
            answer = connection.getresponse()
            said = answer.read()
            if answer.status != 200:
                raise RuntimeError(f"{method} {what}: {answer.status} {said[:200]!r}")
            return json.loads(said)
        finally:
            connection.close()

    def _set(self, **settings: Any) -> None:
        self._settings |= settings
        self.ask("PUT", "settings", json.dumps(settings).encode())

    @property
    def latency(self) -> float:
        """Seconds until the first byte of an answer."""
        return float(self._settings["latency"])

    @latency.setter
    def latency(self, seconds: float) -> None:
        self._set(latency=seconds)

    @property
    def jitter(self) -> float:
        """The most that is added to the latency, in seconds."""
        return float(self._settings["jitter"])

    @jitter.setter
    def jitter(self, seconds: float) -> None:
        self._set(jitter=seconds)

    @property
    def bandwidth(self) -> float | None:
        """Bytes per second of one connection."""
        value: float | None = self._settings["bandwidth"]
        return value

    @bandwidth.setter
    def bandwidth(self, rate: float | None) -> None:
        self._set(bandwidth=rate)

    @property
    def faults(self) -> Rules | None:
        """The rules of what goes wrong, counted from zero whenever they are set."""
        said = self._settings["faults"]
        return Rules.from_json(said) if said else None

    @faults.setter
    def faults(self, faults: Faults) -> None:
        self._set(faults=self._rules(faults))

    def put(self, path: str, data: bytes) -> Info:
        """Lay an object down, or replace it."""
        return Info(**self.ask("PUT", f"objects/{quote(path)}", bytes(data)))

    replace = put

    def delete(self, path: str) -> None:
        """Take an object away."""
        self.ask("DELETE", f"objects/{quote(path)}")
