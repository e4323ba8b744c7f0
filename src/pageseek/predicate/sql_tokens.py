"""The tokens of filters in SQL, and what their texts mean as numbers."""

from __future__ import annotations

import re
from typing import Any

from pageseek.base.records import NamedTuple
from pageseek.predicate.literal import MAX_EXPONENT
from pageseek.predicate.operators import SYMBOLS


def token_pattern(text: str, quoted: str, param: str = r"(?!)") -> re.Pattern[str]:
    """The pattern of a token, with those of a text, a quoted name and a parameter; its groups are the kinds of tokens."""
    return re.compile(
        rf"""(?P<space>(?:\s+|--[^\n]*)+)
        | (?P<blob>[xX]'(?:[^']|'')*')
        | (?P<text>{text})
        | (?P<quoted>{quoted})
        | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
        | (?P<word>[^\W\d]\w*)
        | (?P<param>{param})
        | (?P<symbol>{SYMBOLS} | [(),.+-])""",
        re.VERBOSE | re.DOTALL,
    )


BACKTICKS = r"`(?:[^`]|``)*`"
DOUBLE_QUOTES = r'"(?:[^"]|"")*"'
# of the SQL that is read here; Spark's has other quotes
TOKEN = token_pattern(r"'(?:[^']|'')*'", f"{DOUBLE_QUOTES} | {BACKTICKS}", r"\?|(?<!:):[^\W\d]\w*")


class Token(NamedTuple):
    kind: str  # a group of token_pattern, or "end"
    text: str
    at: int
    key: str  # a symbol, or a word that may be a keyword, in small letters

    @property
    def word(self) -> str:
        """The text of a word in small letters, which may be a keyword; else empty."""
        return self.key if self.kind == "word" else ""


class Literal(NamedTuple):
    value: Any
    at: int


def checked_decimal(text: str) -> str:
    """The text of a decimal, unless its exponent would take all memory."""
    exponent = text.lower().partition("e")[2]
    if exponent and abs(int(exponent)) > MAX_EXPONENT:
        raise ValueError(text)
    return text


def integer(text: str) -> int:
    """An integer of any size. Python refuses to convert more than some thousand digits."""
    try:
        return int(text)
    except ValueError:
        beyond = 10**4300  # the values of every column
        return -beyond if text.startswith("-") else beyond
