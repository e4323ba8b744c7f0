r"""Texts in the commits of a Delta Lake table, as `deltalake` gives them.

JSON may spell a character beyond U+FFFF as two escapes. `deltalake` 1.6 takes such a pair for a character that is 0x10000 too low, where
it stands for one of the planes 2, 4, ... 16: `\udbff\udfff` is U+10FFFF, and comes out as U+FFFFF. What came out does not tell
how it was spelt.
"""

from __future__ import annotations

import re

import pyarrow as pa

from pageseek.base.late_modules import compute as pc

_PLANE = 0x10000
_RANGES = [(n * _PLANE, (n + 1) * _PLANE - 1) for n in range(1, 16, 2)]
_pattern = "[" + "".join(rf"\x{{{a:x}}}-\x{{{b:x}}}" for a, b in _RANGES) + "]"
_doubtful = re.compile("[" + "".join(f"{chr(a)}-{chr(b)}" for a, b in _RANGES) + "]")


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
