"""Files that are written once and copied for each test."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, Protocol


class MadeOnce(Protocol):
    """The fixture `made_once`: what `make` writes for the key, copied into the folder, and what `make` returned.

    The key names the writer and all of its arguments. The result is shared, so no test may change it.
    """

    def __call__(self, key: Hashable, make: Callable[[Path], Any], folder: Path) -> Any: ...
