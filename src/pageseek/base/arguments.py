"""Arguments that callers give, checked."""

from __future__ import annotations

import operator
from typing import Any


def whole(name: str, value: Any) -> int:
    """An integer that a caller gave under a name; TypeError where it is none."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name}={value!r}: an integer") from None
