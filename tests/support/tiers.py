"""How much the tests try: a sample in `make test`, everything in `make test-all`.

A property that many combinations must have is tried on a covering sample of them by each run. All other combinations are
tests marked `slow`, so that none is lost.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import combinations
from typing import Any

import pytest

FULL = os.environ.get("PAGESEEK_TESTS") == "full"  # `make test-all` sets it
SHARE = 4  # of the random examples, one in so many is tried by `make test`
FEWEST = 20

# parametrizes a test by the part of its combinations (`in_part`)
each_part = pytest.mark.parametrize(
    "part", ["sample", pytest.param("rest", marks=pytest.mark.slow)]
)


def examples(n: int) -> int:
    """The number of random examples of a property that deserves n of them."""
    return n if FULL else min(n, max(n // SHARE, FEWEST))


def rounds(n: int, share: int = SHARE) -> int:
    """The number of rounds of a test each of which tries much: one in `share`, at least one."""
    return n if FULL else -(-n // share)


def in_part(part: str, number: int, of: int, offset: int = 0) -> bool:
    """Whether the combination of this number belongs to the part: to the sample belongs one of so many, from the offset on."""
    return ((number - offset) % of == 0) == (part == "sample")


def covering(cases: Sequence[Mapping[str, object]], strength: int) -> set[int]:
    """The places of cases that together have every value of each parameter (strength 1), or every pair of values of two (2).

    Each step takes the first case that adds the most, of values that were taken the least: every process finds the same ones.
    """
    taken: Counter[tuple[str, object]] = Counter()
    parts = [set(combinations(sorted(case.items()), min(strength, len(case)))) for case in cases]
    missing = set().union(*parts)
    chosen: set[int] = set()
    while missing:
        gains = [len(part & missing) for part in parts]
        most = max(gains)
        places = [place for place, gain in enumerate(gains) if gain == most]
        best = min(places, key=lambda place: sum(taken[one] for one in cases[place].items()))
        chosen.add(best)
        taken.update(cases[best].items())
        missing -= parts[best]
    return chosen


def chosen_values(callspec: Any) -> dict[str, str]:
    """What pytest has chosen for one test: of each `parametrize`, and each fixture with parameters, the name of its value.

    The numbers in `callspec.indices` will not do: pytest gives each combination of a test a number of its own there.
    """
    return {str(place): name for place, name in enumerate(callspec._idlist)}


@contextmanager
def named(*case: object) -> Iterator[None]:
    """Errors inside say which combination they are about."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"of the combination: {', '.join(map(str, case))}")
        raise
