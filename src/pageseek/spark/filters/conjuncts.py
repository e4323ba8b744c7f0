"""The conditions that AND joins in any SQL of Spark, told apart without a grammar of it."""

from __future__ import annotations

import re

_TOKEN = re.compile(r"""'[^']*'|"[^"]*"|`[^`]*`|--[^\n]*|\w+|.""", re.DOTALL)
_NOT_TOLD = re.compile(
    r"""\\|/\*|\br['"]""", re.IGNORECASE
)  # escapes, comments, and texts without escapes
_DEEPER = {"(": 1, "[": 1, "case": 1, ")": -1, "]": -1, "end": -1}


def conjuncts(text: str) -> list[str]:
    """The conditions that AND joins in a text of any SQL; the text itself where they are not told apart.

    Keywords may be names of columns: then conditions may stay together, but none is cut in two.
    """
    if _NOT_TOLD.search(text):
        return [text]
    ands: list[int] = []
    depth = between = 0
    for token in _TOKEN.finditer(text):
        key = token[0].lower()
        depth += _DEEPER.get(key, 0)
        if depth < 0 or key in ("'", '"', "`") or (key == "or" and not depth):
            return [text]
        if depth:
            continue
        if key == "between":
            between += 1
        elif key == "and" and between:
            between -= 1
        elif key == "and":
            ands.append(token.start())
    starts = [0, *(at + 3 for at in ands)]
    return [text[start:end] for start, end in zip(starts, [*ands, len(text)], strict=True)]
