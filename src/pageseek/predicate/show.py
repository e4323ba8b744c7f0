"""Literals as texts, for conditions that are shown and for errors."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def bare(value: Any) -> Any:
    """What a scalar of a dictionary or an extension type holds."""
    return value.value if isinstance(value, (pa.DictionaryScalar, pa.ExtensionScalar)) else value


def show(value: Any) -> str:
    """At most 60 characters."""
    value = bare(value)
    if hasattr(value, "as_py"):
        try:
            text = repr(value.as_py())
        except (OverflowError, ValueError):  # beyond what Python's own types hold, as str() is
            text = f"{value.type}({value.value})"
    else:
        text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
