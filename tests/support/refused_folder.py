"""Local folders that cannot be listed."""

from __future__ import annotations

import os
from typing import Any

import pytest


def refuse_listing(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let folders of a name raise PermissionError when they are listed."""
    scandir = os.scandir

    def refuse(path: Any) -> Any:
        if os.path.basename(path) == name:
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
