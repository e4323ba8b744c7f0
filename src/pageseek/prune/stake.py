"""What pruners of column chunks have in common: what is at stake, and how several of them ask at once."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, TypeVar

from pageseek._core import rows
from pageseek.errors import PageseekError
from pageseek.metadata import ParquetFile
from pageseek.prune.protocol import Proof, Site, Wanted
from pageseek.schema import Leaf

T = TypeVar("T")

NONE_PASSES = Proof(rows.RowRanges.empty(), rows.RowRanges.empty())


class DoubtError(Exception):
    """What was read contradicts the format, or itself: it proves nothing."""


def chunk_of(site: Site, leaf: Leaf) -> Any:
    """The column chunk; None where it cannot be read, which the read itself will tell."""
    try:
        return site.file.chunk(site.row_group, leaf)
    except PageseekError:
        return None


def at_stake(site: Site, leaf: Leaf) -> int:
    """Bytes of the pages of a leaf that hold the rows in question, as far as the page index is at hand."""
    _, start, stop = site.file.placed_chunk(site.row_group, leaf)
    offsets = site.file.cached_offset_index(site.row_group, leaf)[1]
    if offsets is None:
        return stop - start if site.ranges else 0
    return sum([length for _, _, length, _, _ in offsets.pages_of(site.ranges)])


def ignored(file: ParquetFile, row_group: int, leaf: Leaf, what: str, why: object) -> str:
    """The note of a structure that is not trusted."""
    return f"{file.name}: {leaf.name!r}, row group {row_group}: {what} ignored: {why}"


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
