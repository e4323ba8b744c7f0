"""Packages that only some functions need: imported when they are called."""

from __future__ import annotations

import importlib
from typing import Any

from pageseek.base.errors import MissingPackageError


def needed(package: str, what: str) -> Any:
    """A package, imported now. `what` needs it, as the error says where it is not installed."""
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:  # it is there, and lacks another one
            raise
        raise MissingPackageError(
            f"{what} needs {package}, which is not installed: pip install {package}", name=package
        ) from None
