"""Generators that need bytes of a file: each yields ranges, is sent their bytes, and returns what it found.

One may yield pages for the core to decode, too, and is sent what they hold.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeAlias, TypeVar

from pageseek._core.decode import LeafDecoder
from pageseek.base.records import NamedTuple

T = TypeVar("T")
Wanted = list[tuple[int, int]]  # (offset, length) of bytes in the file
# the arguments of the core's `read_pages` for one decoder
PageTask: TypeAlias = tuple[
    LeafDecoder,
    list[tuple[memoryview, int, int]],
    Any,
    int,
    memoryview | list[bytes] | None,
    bool,
]


class DecodePages(NamedTuple):
    """Pages that the core decodes in one call. `nbytes`: of them, as they were fetched. The result is what the core made of
    each.
    """

    tasks: list[PageTask]
    nbytes: int


Asking: TypeAlias = Generator[Wanted | DecodePages, list[Any], T]


def answered(asking: Generator[Wanted, list[memoryview], T], fetch: Callable[[Wanted], Any]) -> T:
    """The result of a generator: its ranges are fetched until it returns."""
    try:
        wanted = next(asking)
        while True:
            wanted = asking.send(fetch(wanted))
    except StopIteration as done:
        found: T = done.value
        return found


def together(asking: Sequence[Asking[T]]) -> Asking[list[T]]:
    """Run several generators side by side: the ranges of all are one wave, and equal ranges are read once. So are the pages of all one
    call of the core.

    A range that comes short is sent as an empty memoryview.
    """
    results: dict[int, T] = {}
    answers: dict[int, list[Any] | None] = dict.fromkeys(range(len(asking)))
    while answers:
        wanted: dict[int, Wanted] = {}
        pages: dict[int, DecodePages] = {}
        for i, given in answers.items():
            try:
                step = next(asking[i]) if given is None else asking[i].send(given)
            except StopIteration as done:
                results[i] = done.value
            else:
                if isinstance(step, DecodePages):
                    pages[i] = step
                else:
                    wanted[i] = step
        answers = {}
        if wanted:
            places = list(dict.fromkeys(at for ranges in wanted.values() for at in ranges))
            buffers = yield places
            found = {
                at: data if data.nbytes == at[1] else data[:0]
                for at, data in zip(places, buffers, strict=True)
            }
            answers |= {i: [found[at] for at in ranges] for i, ranges in wanted.items()}
        if pages:
            tasks = [task for step in pages.values() for task in step.tasks]
            made = iter((yield DecodePages(tasks, sum(step.nbytes for step in pages.values()))))
            answers |= {i: [next(made) for _ in step.tasks] for i, step in pages.items()}
    return [results[i] for i in range(len(asking))]
