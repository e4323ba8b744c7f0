r"""Texts in the commits of a Delta Lake table, as `deltalake` gives them.

JSON may spell a character beyond U+FFFF as two escapes. `deltalake` 1.6 takes such a pair for a character that is 0x10000 too low, where
it stands for one of the planes 2, 4, ... 16: `\udbff\udfff` is U+10FFFF, and comes out as U+FFFFF. What came out does not tell
how it was spelt. In the names of columns, and in paths, a log that has such pairs is read by a copy that has none.
"""

from __future__ import annotations

import re

import pyarrow as pa

from pageseek.base.late_modules import compute as pc

_PLANE = 0x10000
_RANGES = [(n * _PLANE, (n + 1) * _PLANE - 1) for n in range(1, 16, 2)]
_pattern = "[" + "".join(rf"\x{{{a:x}}}-\x{{{b:x}}}" for a, b in _RANGES) + "]"
_doubtful = re.compile("[" + "".join(f"{chr(a)}-{chr(b)}" for a, b in _RANGES) + "]")
# every escape, so that none is taken to begin at the second of two backslashes; its groups: a character as two of them
_escapes = re.compile(rb"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|.)")


def in_full(data: bytes) -> bytes:
    """A file of the log in which no character is spelt as two escapes."""
    return _escapes.sub(_character, data) if rb"\u" in data else data


def _character(found: re.Match[bytes]) -> bytes:
    if found[1] is None:
        return found[0]
    high, low = int(found[1], 16), int(found[2], 16)
    return chr(_PLANE + ((high & 0x3FF) << 10) + (low & 0x3FF)).encode()


def any_doubtful(texts: pa.Array | pa.ChunkedArray) -> bool:
    """Whether one of the texts has a character that may stand for another."""
    return bool(pc.any(pc.match_substring_regex(texts, _pattern)).as_py())


def highest(texts: pa.Array) -> pa.Array:
    """The greatest texts that they may stand for. The least ones are the texts themselves."""
    if not any_doubtful(texts):
        return texts
    return pa.array(
        [text and _doubtful.sub(_raised, text) for text in texts.to_pylist()], texts.type
    )


def _raised(found: re.Match[str]) -> str:
    return chr(ord(found[0]) + _PLANE)
