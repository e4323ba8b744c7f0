"""Generators that need bytes of a file: each yields ranges, is sent their bytes, and returns what it found.

One may yield pages for the core to decode, too, and is sent what they hold.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from pageseek._core.decode import LeafDecoder
from pageseek._core.page_tasks import read_pages
from pageseek.base.records import NamedTuple

if TYPE_CHECKING:
    from pageseek._core.points import PointTask

T = TypeVar("T")
MOST_MEMORY = 32 << 20  # bytes that decoded pages of several generators take at a time
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
    """Pages that the core decodes in one call. `nbytes`: of them, as they were fetched. `memory`: about the bytes of what
    the core makes of them, as far as `together` has to limit these. The result is what the core made of each.
    """

    tasks: Sequence[PageTask | PointTask]
    nbytes: int
    memory: int = 0


Asking: TypeAlias = Generator[Wanted | DecodePages, list[Any], T]


def answered(asking: Asking[T], fetch: Callable[[Wanted], Any]) -> T:
    """The result of a generator: its ranges are fetched, and its pages decoded, until it returns."""
    try:
        step = next(asking)
        while True:
            done = read_pages(step.tasks) if isinstance(step, DecodePages) else fetch(step)
            step = asking.send(done)
    except StopIteration as end:
        found: T = end.value
        return found


def together(asking: Sequence[Asking[T]]) -> Asking[list[T]]:
    """Run several generators side by side: the ranges of all are one wave, and equal ranges are read once. So are the pages of all one
    call of the core, or a few calls where what it makes of them takes much memory.

    A range that comes short is sent as an empty memoryview.
    """
    results: dict[int, T] = {}
    answers: dict[int, list[Any] | None] = dict.fromkeys(range(len(asking)))
    pages: dict[int, DecodePages] = {}  # of those that wait for the core
    while answers or pages:
        wanted: dict[int, Wanted] = {}
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
            answers = {i: [found[at] for at in ranges] for i, ranges in wanted.items()}
        elif pages:
            given = None  # what the core made before is let go
            some = _fitting(pages)
            tasks = [task for step in some.values() for task in step.tasks]
            nbytes = sum([step.nbytes for step in some.values()])
            made = yield DecodePages(tasks, nbytes, sum([step.memory for step in some.values()]))
            start = 0
            for i, waiting in some.items():
                answers[i] = made[start : start + len(waiting.tasks)]
                start += len(waiting.tasks)
            del made
    return [results[i] for i in range(len(asking))]


def _fitting(pages: dict[int, DecodePages]) -> dict[int, DecodePages]:
    """Take the first pages out whose results are kept together: those of one generator at least."""
    some: dict[int, DecodePages] = {}
    memory = 0
    for i, step in pages.items():
        memory += step.memory
        if some and memory > MOST_MEMORY:
            break
        some[i] = step
    for i in some:
        del pages[i]
    return some
