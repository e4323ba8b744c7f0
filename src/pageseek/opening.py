"""Many files opened in order: those of distant stores several at a time, before they are asked for."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import compress, islice

from pageseek.cache import cache
from pageseek.doubts import Doubts
from pageseek.metadata import ParquetFile
from pageseek.report import Report
from pageseek.storage import Begun, Source
from pageseek.workers import Crew, Job

FAR_AHEAD = 64  # files whose tails may be under way, or wait to be looked at
LIMITED_AHEAD = 8  # the same where a limit may make those behind needless
TAILS = 256 << 20  # bytes that these may take together
TAIL = 256 << 10  # about those of one


def opened_in_order(
    sources: Sequence[Source],
    report: Report,
    max_metadata_bytes: int,
    limited: bool = False,
    doubts: Doubts | None = None,
) -> Iterator[ParquetFile]:
    """The files, each opened or found in the cache; closing the iterator leaves the rest. `limited`: the caller may
    end early. `doubts`: as `cache.open` has them.
    """
    waited = [
        source.far and (doubts is None or not cache.believes(source, max_metadata_bytes))
        for source in sources
    ]
    if len(sources) < 2 or not any(waited):
        for source in sources:
            yield cache.open(source, report, max_metadata_bytes, doubts=doubts)
        return
    ahead = LIMITED_AHEAD if limited else FAR_AHEAD
    opened = _waited_for(list(compress(sources, waited)), report, max_metadata_bytes, ahead)
    with closing(opened):
        for source, wait in zip(sources, waited, strict=True):
            if wait:
                yield next(opened)
            else:
                yield cache.open(source, report, max_metadata_bytes, doubts=doubts)


def _waited_for(
    sources: Sequence[Source], report: Report, max_metadata_bytes: int, ahead: int
) -> Generator[ParquetFile, None, None]:
    """The same of distant files, `ahead` at a time."""

    def open_one(source: Source, asked: Begun | None = None) -> tuple[ParquetFile, Report]:
        part = report.part()
        return cache.open(source, part, max_metadata_bytes, begun=asked), part

    begun: deque[Begun] = deque()
    left = iter(sources)
    try:
        for i, source in enumerate(sources):
            for other in islice(left, ahead - len(begun)):
                asked = cache.begin(other, max_metadata_bytes)
                if asked is None:
                    left = iter(())
                    break
                begun.append(asked)
            if not begun:
                break
            file, part = open_one(source, begun.popleft())
            report.join(part, i % ahead)
            yield file
        else:
            return
    finally:
        for asked in begun:
            asked.give_up()
    with Crew(ahead, ahead, TAILS) as crew:  # they wait far more than they compute
        jobs = (Job(partial(open_one, source), TAIL) for source in sources[i:])
        for lane, (file, part) in enumerate(crew.in_order(jobs)):
            report.join(part, lane % ahead)
            yield file
