"""What this room counts with, and the server whose faults it provokes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import pageseek as ps
from pageseek.storage.local import LocalStore
from support.distant import PATH, content
from support.object_server.server import ObjectServer
from support.store_log import Log


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    """Every range that is asked of a local file from here on."""
    made = Log()
    read = LocalStore.read

    def logged(self: LocalStore, ranges: Sequence[tuple[int, int]]) -> Any:
        made.ranges.extend(ranges)
        return read(self, ranges)

    monkeypatch.setattr(LocalStore, "read", logged)
    return made


@pytest.fixture
def server(object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> ObjectServer:
    """One that has a file and is tried again at once, for those who have none of their own making."""
    monkeypatch.setattr("pageseek.storage.retry.FIRST_WAIT", 0.01)
    ps.clear_cache()
    object_server.put(PATH, content())
    return object_server
