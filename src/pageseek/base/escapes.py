"""Texts of files and of others, shown without what a terminal or a page obeys.

Spelt out as Python writes them: controls, ends of lines and paragraphs, marks of direction, other characters that are not
seen, halves of pairs, private and unassigned ones. Kept: letters, marks, spaces, and the two joiners that words of Persian
and Hindi and many emoji need.
"""

from __future__ import annotations

import unicodedata

JOINERS = "\u200c\u200d"  # zero-width non-joiner and joiner


def one_line(text: str, kept: str = JOINERS) -> str:
    """A text on one line. `kept`: characters that are not seen, and stay."""
    if text.isprintable():
        return text
    return "".join(c if _is_shown(c) or c in kept else _escape(c) for c in text)


def lines(text: str) -> str:
    """A text that keeps its line breaks."""
    return one_line(text, f"{JOINERS}\n")


def _is_shown(c: str) -> bool:
    return c.isprintable() or unicodedata.category(c) == "Zs"


def _escape(c: str) -> str:
    return c.encode("unicode_escape").decode("ascii")
