"""Executors in separate processes, each with its own Python workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.mark.cluster
def test_two_executors_share_the_row_groups(checked_job: Callable[[str, str], dict[str, Any]]):
    found = checked_job("master", "local-cluster[2,1,1024]")
    assert "connect" not in found["session"]
    assert len(found["executors"]) == 2
    assert all(rows > 0 for _, rows in found["executors"])
