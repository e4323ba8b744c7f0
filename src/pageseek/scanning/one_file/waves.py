"""Scans of several small row groups that advance together: the core decodes the pages of all of them side by side.

Threads of Python would hand the interpreter's lock to each other at each small page, which takes longer than to decode it. Here
one thread runs the steps of all row groups. The threads of the core decode the pages of one wave of row groups, while this
thread runs the steps of another.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import pyarrow as pa

from pageseek._core.page_tasks import PageWork
from pageseek.base.errors import CoreError, PageseekError
from pageseek.base.memory import keep_warm
from pageseek.io.range_requests import DecodePages
from pageseek.scanning.one_file.file_scan import FileScan
from pageseek.scanning.one_file.lane import WORTH_A_CORE, Lane
from pageseek.scanning.requests.plan import GroupPlan
from pageseek.scanning.requests.steps import ScanContext, Steps

T = TypeVar("T")
UNDER_WAY = 2  # waves: one is decoded, another's steps run
OTHER_PART = 8  # of the bytes, one in so many may be decoded by the thread that runs the steps


def suits(scan: FileScan, group: GroupPlan, context: ScanContext) -> bool:
    """Whether the core decodes the pages of a row group by itself, but for a small part of them."""
    file, number = scan.file, group.row_group
    every = other = 0
    try:
        for leaf, leaf_type in scan.bound_request.leaves.read():
            chunk = file.chunk(number, leaf)
            codec = chunk.codec
            settings = context.codec_settings.get(codec) or context.settings_of(codec, file)
            size = max(chunk.total_uncompressed_size, 0)
            every += size
            if (
                not settings.own
                or (leaf.max_rep and not file.has_one_page(number, leaf))
                or pa.types.is_dictionary(leaf_type.type)
            ):
                other += size
    except (CoreError, PageseekError):  # raised again when it is read
        return True
    return other * OTHER_PART <= every


class Member(Generic[T]):
    """The steps of one row group in a wave.

    Attributes
    ----------
    pages : DecodePages or None
        The pages that it waits for; None once it has ended.
    """

    __slots__ = ("_failed", "_lane", "_result", "_steps", "pages")

    def __init__(self, lane: Lane, steps: Steps[T]) -> None:
        self._lane, self._steps = lane, steps
        self.pages: DecodePages | None = None
        self._result: Any = None
        self._failed: Exception | None = None

    def go_on(self, answer: object) -> None:
        """Run to the next pages, or to the end. `answer`: what was made of the last pages, if there were any."""
        lane, steps = self._lane, self._steps
        self.pages = None
        try:
            step = steps.send(answer)
            while type(step) is not DecodePages:
                step = lane.next(steps, step)
            self.pages = step
        except StopIteration as done:
            self._result = done.value
        except Exception as error:  # noqa: BLE001 - raised in the turn of this row group
            self._failed = error

    def take(self) -> T:
        """What the steps returned, once; or raise the error that ended them."""
        if self._failed is not None:
            raise self._failed
        result: T = self._result
        self._result = None
        return result


class Wave(Generic[T]):
    """Row groups that advance together."""

    __slots__ = ("_threads", "_waiting", "_work", "advance", "members")

    def __init__(self, members: Sequence[Member[T]], threads: int) -> None:
        """`threads`: how many may decode its pages."""
        self.members, self._threads = members, threads
        self.advance = 0  # how often its pages were decoded
        self._waiting: list[Member[T]] = []
        self._work: PageWork | None = None

    @property
    def done(self) -> bool:
        """Whether all members have ended."""
        return self._work is None

    def begin(self) -> None:
        """Run all members to the first pages that they wait for, and have these decoded."""
        for member in self.members:
            member.go_on(None)
        self._decode(self.members)

    def go_on(self) -> None:
        """Wait for the pages, and run to those that come next."""
        if self._work is None:
            return
        self.advance += 1
        made, at = self._work.results(), 0
        for member in self._waiting:
            assert member.pages is not None
            stop = at + len(member.pages.tasks)
            member.go_on(made[at:stop])
            at = stop
        self._decode(self._waiting)

    def _decode(self, members: Sequence[Member[T]]) -> None:
        self._waiting, self._work = [], None
        tasks: list[Any] = []
        nbytes = 0
        for member in members:
            if member.pages is not None:
                self._waiting.append(member)
                tasks += member.pages.tasks
                nbytes += member.pages.nbytes
        if tasks:
            self._work = PageWork(tasks)
            self._work.begin(min(self._threads, nbytes // WORTH_A_CORE))


def in_waves(waves: Iterable[Sequence[Member[T]]], threads: int) -> Iterator[Sequence[Member[T]]]:
    """Run the steps of the members of waves to their end. Waves come out in their order."""
    rest = iter(waves)
    under_way: deque[Wave[T]] = deque()
    helpers = max(threads // UNDER_WAY, 1)
    keep_warm()
    while True:
        while len(under_way) < UNDER_WAY and (members := next(rest, None)) is not None:
            wave = Wave(members, helpers)
            wave.begin()
            under_way.append(wave)
        if not under_way:
            return
        if not under_way[0].done:
            # the one that is behind, so that they never wait for each other, nor end together
            min((wave for wave in under_way if not wave.done), key=_advance).go_on()
        while under_way and under_way[0].done:
            yield under_way.popleft().members
            keep_warm()


def _advance(wave: Wave[Any]) -> int:
    return wave.advance
