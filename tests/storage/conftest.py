"""The wrapper around the store that this room counts with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pageseek.storage.local import LocalStore
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
