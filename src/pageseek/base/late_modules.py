"""Modules of others that few reads need. They are imported when one of their names is first used.

`pyarrow.compute` makes some hundred functions when it is imported, and `pyarrow.fs` loads the clients of all stores:
they take as long as a hundred lookups in a process that has imported them.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["compute", "fs", "hashlib", "is_instance", "json"]


class _LateModule(ModuleType):
    def __getattr__(self, name: str) -> Any:
        found = getattr(importlib.import_module(self.__name__), name)
        setattr(self, name, found)  # from now on as quick as in the module itself
        return found


if TYPE_CHECKING:
    import hashlib
    import json

    from pyarrow import compute, fs
else:
    compute = _LateModule("pyarrow.compute")
    fs = _LateModule("pyarrow.fs")
    hashlib = _LateModule("hashlib")
    json = _LateModule("json")


def is_instance(value: object, module: ModuleType, name: str) -> bool:
    """Whether a value is an instance of a class of a late module. Before others import it, no value is."""
    return module.__name__ in sys.modules and isinstance(value, getattr(module, name))
