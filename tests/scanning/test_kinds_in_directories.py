"""Kinds of indexes in the directories of many files, found by arrays: as the pattern finds them, also in damaged text."""

from __future__ import annotations

import random
import re

import pytest

from pageseek.scanning.many_files.footer_table import LONGEST_KIND, _matched_kinds, kinds_in
from support.tiers import rounds

WORDS = (
    b'"kind":"', b'"kind" : "', b'"kind"', b'"kind":', b'lookup"', b'bloom"', b'file_bloom"', b'"', b":", b',{"', b'x\0"',
    b"k", b'"kin', b"a" * (LONGEST_KIND + 1) + b'"', b'["kind"]',
)  # fmt: skip


def found(kinds: object, text: bytes) -> dict[bytes, tuple[list[int], list[int]]]:
    places = kinds(text)  # type: ignore[operator]
    return {
        kind: (first.tolist(), last.tolist())
        for kind, (first, last) in places.items()
        if 0 < len(kind) <= LONGEST_KIND
    }


@pytest.mark.parametrize("seed", range(4))
def test_kinds_are_those_of_the_pattern(seed: int) -> None:
    rng, some = random.Random(seed), 0
    for _ in range(rounds(5_000)):
        text = b"".join(rng.choice(WORDS) for _ in range(rng.randrange(9)))
        right = found(_matched_kinds, text)
        assert found(kinds_in, text) == right, text
        some += bool(right)
    assert some > 50


def test_entries_of_several_directories() -> None:
    text = b'{"indexes":[{"kind":"bloom","version":1},{"kind":"lookup","version":1}]}' * 3
    expected = {}
    for kind in (b"bloom", b"lookup"):
        entries = list(re.finditer(b'"kind":"' + kind, text))
        expected[kind] = [e.start() for e in entries], [e.end() for e in entries]
    assert found(kinds_in, text) == expected
