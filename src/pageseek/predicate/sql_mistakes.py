"""What to write in place of SQL that filters do not have. The file is imported when somebody has written it."""

from __future__ import annotations

import re

from pageseek.predicate.expression import NO_ARITHMETIC

NOT_CONVERTED = "values are compared in the type of their column, without a cast: write the value in that type, or typed, DATE '2024-01-31'"
_NO_PATTERNS = (
    "there are no regular expressions: write LIKE '%text%', or ILIKE without regard to case"
)
_SIGNS = (
    ("||", "columns are compared as they are, without joining texts"),
    ("::", NOT_CONVERTED),
    ("!~", _NO_PATTERNS),
)
_COLUMN_BEFORE = re.compile(r'("|\b(?!(?:and|or|not)\b)\w+)\s*$', re.IGNORECASE)
_WORDS = {"&": "AND", "|": "OR", "~": "NOT"}


def of_sign(text: str, at: int) -> str:
    """What is wrong with a sign at a place of a filter that begins no token."""
    char = text[at]
    for sign, words in _SIGNS:
        if text.startswith(sign, at):
            return f"{sign!r}: {words}"
    if char == "~" and _COLUMN_BEFORE.search(text[:at]):
        return f"'~': {_NO_PATTERNS}"
    if char in "&|~":
        return f"{char!r}: write {_WORDS[char]} here; {char} joins conditions in Python"
    if char == "%" and text[at : at + 2].lower() == "%s":
        return "'%s': a parameter is written ? or :name, and its value given in params="
    if char == "[" and at and text[:at].rstrip().lower().endswith("in"):
        return "'[': the values of IN stand in parentheses, (1, 2)"
    if char == "$":
        return "'$': a parameter is written ? or :name"
    if char in "'\"`":
        return f"this {char} is never closed; inside, it is written twice"
    if char == "*" and text[:at].strip().lower() == "select":
        return "write the condition alone, without select"
    if char in "*/%^":
        return f"{char!r}: {NO_ARITHMETIC}"
    return f"{char!r} has no meaning here"
