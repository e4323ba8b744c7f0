"""Memory of freed buffers, which is kept for the next buffers: while scans follow one another, and for seconds after. What a
single thread frees is kept for its next row group until its scan ends.

A few megabytes are always kept: enough for the pages of a lookup. The system would otherwise take and zero them each time. After
that, and at once where a single thread scans, memory is kept in a form that the system takes back when it is short of it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache

from pageseek._core import memory

WARM = 5.0  # seconds that freed memory is kept after the last scan
SCAN = 3600.0  # seconds, at most, that it is kept for the next row group of a scan
PART = 8  # one byte in this many of the machine's memory may be kept
REST = 8 << 20  # bytes that may be kept at any time

memory.rest(REST)

_lock = threading.Lock()
_until = 0.0
_scans = 0  # scans of several row groups that are under way
_keeper: threading.Thread | None = None


@cache
def machine_bytes() -> int:
    """Bytes of memory of this machine or container, or that this process may have."""
    found = 4 << 30
    with suppress(AttributeError, ValueError, OSError):  # not every system has them
        found = max(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), 0) or found
    for limit in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            with open(f"/sys/fs/cgroup/{limit}") as file:
                found = min(found, int(file.read()))
        except (OSError, ValueError):  # not there, or "max"
            continue
    with suppress(ImportError, ValueError, OSError):
        import resource

        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        found = found if most == resource.RLIM_INFINITY else min(found, most)
    return found


def _limit() -> int:
    """Bytes that may be kept: a part of the memory."""
    return machine_bytes() // PART


memory.reclaimable(_limit())


def keep_warm() -> None:
    """Keep freed memory for the next seconds: several threads decode now, or have just done so."""
    global _until, _keeper
    now = time.monotonic()
    if now < _until - WARM / 2:
        return
    with _lock:
        _until = now + WARM
        memory.keep(WARM, _limit())
        if _keeper is None:
            keeper = threading.Thread(target=_give_back, name="pageseek-memory", daemon=True)
            try:
                keeper.start()
            except RuntimeError:  # the interpreter ends, or the process may have no more threads
                memory.keep(0, 0)
            else:
                _keeper = keeper


@contextmanager
def kept() -> Iterator[None]:
    """While the block reads several row groups, memory that one of them frees is kept for the next."""
    global _scans
    with _lock:
        _scans += 1
        if time.monotonic() >= _until:
            memory.keep(SCAN, _limit())
    try:
        yield
    finally:
        with _lock:
            _scans = max(_scans - 1, 0)  # a child that was forked meanwhile began at 0
            if not _scans and time.monotonic() >= _until:
                memory.keep(0, 0)
                memory.rest(REST)


def _give_back() -> None:
    global _keeper
    while True:
        time.sleep(WARM / 2)
        with _lock:
            if time.monotonic() >= _until:
                memory.keep(0, 0)
                if memory.lend(0) == 0:
                    _keeper = None
                    return
        memory.lend(WARM)


def _forked() -> None:
    """In a child process the keeper is gone, and no lock has a holder."""
    global _lock, _keeper, _until, _scans
    _lock, _keeper, _until, _scans = threading.Lock(), None, 0.0, 0
    memory.forked()
    memory.keep(0, 0)
    memory.trim(0)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
