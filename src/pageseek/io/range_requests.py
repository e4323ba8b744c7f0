"""Generators that ask for bytes: each yields ranges of the file, is sent what lies there, and returns what it found."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
Wanted = list[tuple[int, int]]  # (offset, length) of bytes in the file


def answered(asking: Generator[Wanted, list[memoryview], T], fetch: Callable[[Wanted], Any]) -> T:
    """Fetch what a generator wants until it returns."""
    try:
        wanted = next(asking)
        while True:
            wanted = asking.send(fetch(wanted))
    except StopIteration as done:
        found: T = done.value
        return found


def together(
    asking: Sequence[Generator[Wanted, list[memoryview], T]],
) -> Generator[Wanted, list[memoryview], list[T]]:
    """Run generators that ask for bytes side by side, so that each wave is one; what several want is read once.

    Fewer bytes than were asked for are as none: a memoryview of no bytes.
    """
    results: dict[int, T] = {}
    answers: dict[int, list[memoryview] | None] = dict.fromkeys(range(len(asking)))
    while answers:
        wanted: dict[int, Wanted] = {}
        for i, given in answers.items():
            try:
                wanted[i] = next(asking[i]) if given is None else asking[i].send(given)
            except StopIteration as done:
                results[i] = done.value
        if not wanted:
            break
        places = list(dict.fromkeys(at for ranges in wanted.values() for at in ranges))
        buffers = yield places
        found = {
            at: data if data.nbytes == at[1] else data[:0]
            for at, data in zip(places, buffers, strict=True)
        }
        answers = {i: [found[at] for at in ranges] for i, ranges in wanted.items()}
    return [results[i] for i in range(len(asking))]
