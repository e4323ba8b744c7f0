"""Literals as texts, for conditions that are shown and for errors; a place in the text of a filter."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pageseek.base.errors import PredicateError


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


def point(words: str, text: str, at: int) -> PredicateError:
    """An error that points at a character: the line of the text that has it, and a caret below."""
    start = text.rfind("\n", 0, at) + 1
    stop = text.find("\n", at)
    line = text[start : len(text) if stop < 0 else stop]
    left = max(at - start - 50, 0)
    shown = line[left : left + 100].replace("\t", " ")
    head = "..." if left else ""
    tail = "..." if len(line) > left + 100 else ""
    caret = " " * (len(head) + at - start - left) + "^"
    error = PredicateError(f"{words}\n  {head}{shown}{tail}\n  {caret}")
    error.at = at
    return error
