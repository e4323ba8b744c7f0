"""LIKE: the parts of a pattern, and its evaluation by Arrow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from pageseek.base.errors import PredicateError
from pageseek.base.late_modules import compute as pc
from pageseek.base.records import NamedTuple

ANY, ONE = "%", "_"  # of any length; one character
MAX_PATTERN = 10_000  # bytes and wildcards of a pattern that needs a regular expression


def lower(values: pa.Array | pa.ChunkedArray) -> Any:
    """Texts in small letters, by Unicode's simple mapping."""
    if not pa.types.is_large_string(values.type):  # small letters may need more bytes
        values = values.cast(pa.large_string())
    return pc.utf8_lower(values)


class Pattern(NamedTuple):
    """A pattern as bytes, with the wildcards between them."""

    parts: tuple[bytes | str, ...]  # bytes stand for themselves, str are wildcards

    @property
    def prefix(self) -> bytes:
        """The bytes that every match begins with."""
        first = self.parts[0] if self.parts else b""
        return first if isinstance(first, bytes) else b""

    @property
    def exact(self) -> bool:
        """Whether it has no wildcard."""
        return all(isinstance(part, bytes) for part in self.parts)

    @property
    def only_prefix(self) -> bool:
        """Whether it is a prefix and `%`."""
        rest = self.parts[1:] if self.prefix else self.parts
        return rest == (ANY,)

    def lowered(self) -> Pattern:
        """The pattern of a text in small letters."""
        return Pattern(
            tuple([part if isinstance(part, str) else _lowered(part) for part in self.parts])
        )

    @property
    def caseless_prefix(self) -> bytes:
        """The bytes that every match begins with in any case: those of ASCII before the first letter.

        A sign of ASCII that is no letter is the small letter of itself alone, but `k` is also that of the sign of Kelvin.
        """
        made = self.prefix
        n = next((i for i, byte in enumerate(made) if byte > 127 or chr(byte).isalpha()), len(made))
        return made[:n]


def compile_pattern(pattern: str | bytes, escape: str) -> Pattern:
    """Split a pattern at its wildcards; runs of `%` are one."""
    text = pattern if isinstance(pattern, str) else pattern.decode("latin-1")
    encoding = "utf-8" if isinstance(pattern, str) else "latin-1"
    parts: list[bytes | str] = []
    plain: list[str] = []

    def close() -> None:
        if plain:
            parts.append("".join(plain).encode(encoding, "surrogatepass"))
            plain.clear()

    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if escape and char == escape:
            if at == len(text):
                raise PredicateError(
                    f"like {pattern!r}: nothing follows the last {escape!r}; write it twice for the "
                    "character itself, or choose another escape"
                )
            plain.append(text[at])
            at += 1
        elif char in (ANY, ONE):
            close()
            if char == ONE or not parts or parts[-1] != ANY:
                parts.append(char)
        else:
            plain.append(char)
    close()
    return Pattern(tuple(parts))


def _lowered(part: bytes) -> bytes:
    try:
        text = part.decode()
    except UnicodeDecodeError:  # half a character, which no text has
        return part
    made: str = pc.utf8_lower(pa.scalar(text)).as_py()
    return made.encode()


def matcher(pattern: Pattern, text: bool) -> Callable[[list[pa.ChunkedArray]], Any]:
    """A function from a column's values to booleans, null where the value is null. `text`: whether values are text, not bytes."""
    parts = pattern.parts
    if parts.count(ANY) == len([p for p in parts if isinstance(p, str)]):
        if len(parts) == 2 and parts[0] == ANY:
            return lambda values: pc.ends_with(_plain(values[0], text), pattern=parts[1])
        if len(parts) == 3 and parts[0] == parts[2] == ANY:
            return lambda values: pc.match_substring(_plain(values[0], text), pattern=parts[1])
    text = text and ONE in parts  # without it bytes do as well, also where they are not UTF-8
    size = sum(map(len, parts))
    if size > MAX_PATTERN:
        raise PredicateError(
            f"like: a pattern of {size:,} bytes is above the limit of {MAX_PATTERN:,}; test its parts, joined by and"
        )
    regex = "".join(_regex(part, text) for part in parts)
    regex = rf"(?s)\A{regex}\z"
    return lambda values: pc.match_substring_regex(_plain(values[0], text), pattern=regex)


def _plain(values: pa.ChunkedArray, text: bool) -> pa.ChunkedArray:
    kind = values.type
    if text or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return values
    return values.cast(pa.large_binary() if pa.types.is_large_string(kind) else pa.binary())


def _regex(part: bytes | str, text: bool) -> str:
    if isinstance(part, str):
        return ".*" if part == ANY else "."
    codes = map(ord, part.decode("utf-8", "surrogatepass")) if text else part
    return "".join(
        chr(code) if code < 128 and chr(code).isalnum() else rf"\x{{{code:x}}}" for code in codes
    )
