"""Generators that are run side by side: their ranges and their pages are waves of all of them."""

from __future__ import annotations

from typing import Any

import pytest

from pageseek.io.range_requests import MOST_MEMORY, Asking, DecodePages, Wanted, together


def reads(name: str, *waves: Wanted) -> Asking[list[str]]:
    """What the waves were answered with."""
    found = []
    for wave in waves:
        found += [f"{name} {bytes(data).decode()}" for data in (yield wave)]
    return found


def reads_and_decodes(name: str, place: tuple[int, int], tasks: list[Any]) -> Asking[list[str]]:
    """What the core made of the tasks that follow a read."""
    (data,) = yield [place]
    made = yield DecodePages(tasks, data.nbytes)
    return [f"{name} {one}" for one in made]


def run(asking: Asking[Any]) -> tuple[Any, list[Any]]:
    """The result, and the steps. A file has the letters; the core gives the task's name in capitals."""
    letters, steps = memoryview(b"abcdefghij"), []
    try:
        step = next(asking)
        while True:
            steps.append(step)
            if isinstance(step, DecodePages):
                step = asking.send([str(task).upper() for task in step.tasks])
            else:
                step = asking.send([letters[at : at + length] for at, length in step])
    except StopIteration as done:
        return done.value, steps


def test_pages_of_all_are_one_call() -> None:
    """Those of the generators that decode at the same time, while others still read."""
    found, steps = run(
        together(
            [
                reads_and_decodes("x", (0, 2), ["one", "two"]),
                reads("y", [(0, 2)], [(4, 1), (0, 2)]),
                reads_and_decodes("z", (2, 3), ["three"]),
                reads("nothing"),
            ]
        )
    )
    assert found == [["x ONE", "x TWO"], ["y ab", "y e", "y ab"], ["z THREE"], []]
    assert steps == [[(0, 2), (2, 3)], [(4, 1), (0, 2)], DecodePages(["one", "two", "three"], 5)]


def test_pages_that_become_large_are_several_calls() -> None:
    """What the core made of some is let go before it makes the next."""
    alive: set[str] = set()

    class Made:
        def __init__(self, name: str) -> None:
            self.name = name
            alive.add(name)

        def __del__(self) -> None:
            alive.discard(self.name)

    def decodes(name: str, memory: int) -> Asking[str]:
        (made,) = yield DecodePages([name], 1, memory)  # type: ignore[list-item]
        return str(made.name)

    half = MOST_MEMORY // 2
    asking = together([decodes(name, half) for name in "abcde"] + [decodes("f", 9 * half)])
    sizes = []

    def go() -> None:
        step: Any = next(asking)
        while True:
            assert step.nbytes == len(step.tasks)
            assert not alive
            sizes.append((len(step.tasks), step.memory // half))
            step = asking.send([Made(str(task)) for task in step.tasks])

    with pytest.raises(StopIteration) as done:
        go()
    assert done.value.value == list("abcdef")
    assert sizes == [(2, 2), (2, 2), (1, 1), (1, 9)]


def test_a_generator_that_fails_ends_all() -> None:
    """Its error is not lost."""

    def fails() -> Asking[None]:
        yield [(0, 1)]
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        run(together([fails(), reads("y", [(0, 1)])]))
