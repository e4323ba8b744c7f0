"""`python -m support.killed_processes FOLDER WAY WORK`: a folder's file is worked on by processes that are killed, each at another moment,
and what is left is printed.

Each is a fork of this one, which has imported all that is needed. It is killed by SIGKILL: by itself before, or after, the
n-th call of the system by which files come to be; or by this one, after some time.
"""

from __future__ import annotations

import errno
import json
import math
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pageseek as ps
from support.quick_fsync import checked_only
from support.tiers import FULL, examples

CALLS = "open", "write", "fsync", "fchmod", "fchown", "link", "replace", "rename", "unlink", "close"
TIMES = examples(30)  # kills after some time


def with_traps(at: int, after: bool, tell: int) -> None:
    """End this process at its `at`-th call, and tell which one it was."""
    done = 0

    def trap(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **more: Any) -> Any:
            nonlocal done
            mine, done = done, done + 1
            if mine == at:
                os_write(tell, name.encode())
            if mine == at and not after:
                os.kill(os.getpid(), signal.SIGKILL)
            try:
                return real(*given, **more)
            finally:
                if mine == at:
                    os.kill(os.getpid(), signal.SIGKILL)

        return call

    os_write = os.write
    for name in CALLS:
        setattr(os, name, trap(name, getattr(os, name)))


def told_calls(tell: int) -> None:
    """Tell each call, on a line of its own."""
    os_write = os.write

    def told(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **more: Any) -> Any:
            os_write(tell, f"{name}\n".encode())
            return real(*given, **more)

        return call

    for name in CALLS:
        setattr(os, name, told(name, getattr(os, name)))


def calls_of(path: Path, way: str, what: str) -> list[str]:
    """The calls of a process that is not killed, in order."""
    get, tell = os.pipe()
    if os.fork() == 0:
        os.close(get)
        without(way)
        told_calls(tell)
        work(path, what)
        os._exit(0)
    os.close(tell)
    with os.fdopen(get) as lines:
        found = lines.read().split()
    os.wait()
    return found


def moments(calls: list[str]) -> list[int]:
    """The calls at which a process is killed: all, or of equal ones in a row the first and the last. The number behind the last kills
    none.
    """
    padded = [None, *calls, None]
    return [n for n in range(len(calls) + 1) if FULL or len({*padded[n : n + 3]}) > 1]


def without(way: str) -> None:
    """Let this process have less of the system."""
    if way == "no unnamed files":
        open_ = os.open

        def refuse(path: Any, flags: int, *rest: Any, **more: Any) -> int:
            if flags & os.O_TMPFILE == os.O_TMPFILE:
                raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
            return open_(path, flags, *rest, **more)

        os.open = refuse
    elif way == "no links":

        def none(*_: Any, **__: Any) -> None:
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))

        os.link = none


def work(path: Path, what: str) -> None:
    new = str(path.with_name("new.parquet"))
    if what == "detach":
        ps.index.detach(path, in_place=True)
        return
    if what == "rewrite":
        ps.rewrite(path, in_place=True, sort_by="text", indexes={"lookup": ["id"]}, threads=1)
        return
    where: dict[str, Any] = {"output": new} if what == "output" else {"in_place": True}
    ps.index.attach(path, bloom=["id"], distinct=["text"], threads=1, **where)


def killed(path: Path, way: str, what: str, trap: tuple[int, bool] | float) -> dict[str, Any]:
    """How one process ended, and what it left."""
    get, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        without(way)
        if isinstance(trap, tuple):
            with_traps(*trap, tell)
        work(path, what)
        os._exit(0)
    os.close(tell)
    if isinstance(trap, float):
        time.sleep(trap)
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    call = os.read(get, 100).decode()
    os.close(get)
    left = sorted(os.listdir(path.parent))
    after = isinstance(trap, tuple) and trap[1]
    made = {"killed": os.WIFSIGNALED(status), "call": call, "after": after, "left": left}
    return made | {"bytes": {name: (path.parent / name).read_bytes().hex() for name in left}}


def main() -> None:
    path, way, what = Path(sys.argv[1]) / "x.parquet", sys.argv[2], sys.argv[3]
    os.fsync = checked_only  # a killed process loses nothing that was written
    old, folder = path.read_bytes(), path.parent
    before = {one: one.read_bytes() for one in folder.iterdir()}
    work(path, what)
    said = {"old": old.hex(), "new": {one.name: one.read_bytes().hex() for one in folder.iterdir()}}
    found: list[dict[str, Any]] = []

    def prepare() -> None:
        for one in folder.iterdir():
            one.unlink()
        for one, data in before.items():
            one.write_bytes(data)
        time.sleep(0.005)  # a file that was written just now is waited for

    def again(trap: tuple[int, bool] | float) -> None:
        prepare()
        found.append(killed(path, way, what, trap))

    prepare()
    places, took = moments(calls_of(path, way, what)), math.inf
    for after in (False, True):
        for n in places:
            begun = time.monotonic()
            again((n, after))
        took = min(took, time.monotonic() - begun)  # of one that was not killed
        assert not found[-1]["killed"]
    for i in range(TIMES):
        again(took * i / TIMES)
    sys.stdout.write(json.dumps(said | {"kills": found}) + "\n")


if __name__ == "__main__":
    main()
