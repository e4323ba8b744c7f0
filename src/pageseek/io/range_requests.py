"""Generators that need bytes of a file: each yields ranges, is sent their bytes, and returns what it found."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
Wanted = list[tuple[int, int]]  # (offset, length) of bytes in the file


def answered(asking: Generator[Wanted, list[memoryview], T], fetch: Callable[[Wanted], Any]) -> T:
    """The result of a generator: its ranges are fetched until it returns."""
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
    """Run several generators side by side: the ranges of all are one wave, and equal ranges are read once.

    A range that comes short is sent as an empty memoryview.
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
