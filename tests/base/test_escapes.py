"""Texts without what a terminal or a page obeys."""

from __future__ import annotations

import sys
import unicodedata
from html import unescape

import pytest

from pageseek.base.escapes import lines, one_line
from pageseek.base.html import shown
from pageseek.cli import terminal, text

KEPT = [
    "می\u200cخواهم",
    "क\u200dष",
    "👩\u200d👩\u200d👧",
    "界面\u3000界",
    "c'est\u00a0vrai\u202f!",
    "e\u0301",
]


@pytest.mark.parametrize("kept", KEPT)
def test_letters_beside_an_escape_stay(kept: str) -> None:
    assert one_line(kept) == lines(kept) == kept
    assert one_line(f"a\n{kept}\x1b[2J\u202e") == f"a\\n{kept}\\x1b[2J\\u202e"
    assert lines(f"a\n{kept}\r") == f"a\n{kept}\\r"
    assert text.shown(f"{kept}\x07") == unescape(shown(f"{kept}\x07")) == f"{kept}\\x07"


def test_no_character_breaks_a_line_or_is_not_seen() -> None:
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    made = one_line(every)
    kinds = {unicodedata.category(c) for c in set(made)}
    assert not kinds & {"Cc", "Cs", "Co", "Cn", "Zl", "Zp"}
    assert {c for c in made if unicodedata.category(c) == "Cf"} == {"\u200c", "\u200d"}
    assert made.splitlines() == [made]
    assert {c for c in lines(every) if c not in made} == {"\n"}


def test_joiners_and_marks_have_no_width() -> None:
    assert terminal.wide("می\u200cخواهم") == 7
    assert terminal.wide("क\u200d") == terminal.wide("\u0915\u0941") == 1
    assert terminal.wide("☀\ufe0f") == 1
    assert terminal.wide("界\u3000") == 4
