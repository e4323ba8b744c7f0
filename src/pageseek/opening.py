"""Many files opened in order: those of distant stores several at a time, before they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import compress

from pageseek.cache import cache
from pageseek.doubts import Doubts
from pageseek.metadata import ParquetFile
from pageseek.report import Report
from pageseek.storage import Source
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

    def open_one(source: Source) -> tuple[ParquetFile, Report]:
        part = report.part()
        return cache.open(source, part, max_metadata_bytes), part

    with Crew(ahead, ahead, TAILS) as crew:  # they wait far more than they compute
        jobs = (Job(partial(open_one, source), TAIL) for source in compress(sources, waited))
        opened = enumerate(crew.in_order(jobs))
        for source, wait in zip(sources, waited, strict=True):
            if not wait:
                yield cache.open(source, report, max_metadata_bytes, doubts=doubts)
                continue
            i, (file, part) = next(opened)
            report.join(part, i % ahead)
            yield file
