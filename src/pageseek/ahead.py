"""Leaves of which one page each is wanted, read in one go: as soon as Python comes between, caches and cores are others'."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pageseek._core import decode as core
from pageseek.decode import LeafReader
from pageseek.fetch import Fetcher

AT_ONCE = 8 << 20  # bytes of pages, as they were fetched, that are read in one go


def read_ahead(
    readers: Sequence[LeafReader], fetcher: Fetcher, threads: int, go_on: Callable[[], None]
) -> None:
    """Decode those of which `one_page` is wanted, one right after the other, by so many threads at most; `read` then gives
    the arrays. The dictionaries that pages turn out to need are fetched in one wave. `go_on`: asked now and then, raises
    where the scan has ended.

    What fails here is done again by `read`, in its turn and with its place.
    """
    at = 0
    while at < len(readers):
        stop, size = at, 0
        while stop < len(readers) and size < AT_ONCE:
            size += readers[stop].nbytes
            stop += 1
        batch, at = readers[at:stop], stop
        wanting = _decode(batch, threads)
        if wanting:
            found = fetcher.read([place for _, place in wanting], "data")
            for (reader, _), data in zip(wanting, found, strict=True):
                reader.give_dictionary(data)
            _decode([reader for reader, _ in wanting], threads)
        go_on()  # and signals have their turn


def _decode(
    readers: Sequence[LeafReader], threads: int
) -> list[tuple[LeafReader, tuple[int, int]]]:
    """Those of them that need their dictionary first, and where it lies."""
    made = core.read_pages([reader.task() for reader in readers], threads)
    places = [(reader, reader.take(found)) for reader, found in zip(readers, made, strict=True)]
    return [(reader, place) for reader, place in places if place is not None]
