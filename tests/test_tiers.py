"""The samples that `make test` tries of many combinations, and the rest, which is slow."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from support.pages import HOWS, KINDS, RLE, Kind, sampled_cases
from support.tiers import chosen_values, covering, examples, in_part, rounds


@pytest.mark.parametrize("strength", [1, 2, 3])
def test_a_sample_has_every_value_or_every_pair(strength: int) -> None:
    cases = [
        {"a": a, "b": b, "c": c}
        for a, b, c in itertools.product(range(5), range(3), range(2))
        if (a, b) != (4, 2)
    ]
    chosen = covering(cases, strength)
    for names in itertools.combinations("abc", strength):
        wanted = {tuple(case[name] for name in names) for case in cases}
        assert {tuple(cases[place][name] for name in names) for place in chosen} == wanted
    assert len(chosen) <= (5, 14, len(cases))[strength - 1]
    assert chosen == covering(cases, strength)


def test_a_sample_takes_each_value_about_equally_often() -> None:
    cases = [{"a": a, "b": b} for a, b in itertools.product(range(8), range(2))]
    assert Counter(cases[place]["b"] for place in covering(cases, 1)) == {0: 4, 1: 4}


@pytest.mark.covering(1)
@pytest.mark.parametrize(("a", "more"), [(0, ""), (1, "x"), (2, "x")])
@pytest.mark.parametrize("b", range(2))
def test_values_of_a_combination_have_names_that_others_share(
    request: pytest.FixtureRequest, a: int, more: str, b: int
) -> None:
    assert chosen_values(request.node.callspec) == {"0": str(b), "1": f"{a}-{more}"}


def test_the_parts_of_the_pages_are_all_pages() -> None:
    tried: dict[str, list[tuple[str, int, str, int]]] = {"sample": [], "rest": []}
    part = ""

    def note(kind: Kind, encoding: int, nulls: str, version: int) -> None:
        tried[part].append((kind.name, encoding, nulls, version))

    for part in tried:
        for kind in KINDS:
            sampled_cases(note)(kind, part)
    every = [
        (kind.name, encoding, nulls, version)
        for kind in KINDS
        for encoding in kind.encodings
        for nulls, version in HOWS
    ]
    assert sorted(tried["sample"] + tried["rest"]) == sorted(every)
    counts = Counter(case[:2] for case in tried["sample"])
    assert set(counts.values()) == {2} and len(counts) == len({case[:2] for case in every})
    for place in (1, 3):  # an encoding, and a version, each with every share of nulls
        found = {(case[place], case[2]) for case in tried["sample"] if case[1] != RLE}
        # only one kind has that encoding
        assert found == {(case[place], case[2]) for case in every if case[1] != RLE}


def test_a_share_of_the_numbers_and_of_the_examples() -> None:
    both = [{n for n in range(20) if in_part(part, n, 4, 3)} for part in ("sample", "rest")]
    assert both[0] == {3, 7, 11, 15, 19} and both[0] | both[1] == set(range(20))
    assert not both[0] & both[1]
    assert examples(8) == 8 and examples(400) in (100, 400)
    assert rounds(9) in (3, 9) and rounds(10, 5) in (2, 10) and rounds(1) == 1
