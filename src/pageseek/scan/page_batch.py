"""Leaves of which one page each is wanted, read in one go: as soon as Python comes between, caches and cores are others'."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pageseek._core import decode as core
from pageseek.io.fetch import Fetcher
from pageseek.scan.leaf_reader import LeafReader

AT_ONCE = 8 << 20  # bytes of pages, as they were fetched, that are read in one go
DICTIONARIES_AT_ONCE = 1 << 20  # bytes of those that are fetched in one wave


def read_ahead(
    readers: Sequence[LeafReader], fetcher: Fetcher, threads: int, go_on: Callable[[], None]
) -> None:
    """Decode those of which `one_page` is wanted, one right after the other, by so many threads at most; `read` then gives
    the arrays. `go_on`: asked now and then, raises
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
        _with_dictionaries(_decode(batch, threads), fetcher, threads, go_on)
        go_on()  # and signals have their turn


def _with_dictionaries(
    wanting: Sequence[tuple[LeafReader, tuple[int, int]]],
    fetcher: Fetcher,
    threads: int,
    go_on: Callable[[], None],
) -> None:
    """The same of those whose dictionaries, at these places, are still to be fetched: so many in one wave that their memory
    stays small, and in the processor's caches.
    """
    at = 0
    while at < len(wanting):
        stop, size = at, 0
        while stop < len(wanting) and size < DICTIONARIES_AT_ONCE:
            size += wanting[stop][1][1]
            stop += 1
        batch, at = wanting[at:stop], stop
        fetched = fetcher.read([place for _, place in batch], "data")
        for (reader, _), data in zip(batch, fetched, strict=True):
            reader.give_dictionary(data)
        _decode([reader for reader, _ in batch], threads)
        go_on()


def _decode(
    readers: Sequence[LeafReader], threads: int
) -> list[tuple[LeafReader, tuple[int, int]]]:
    """Those of them that need their dictionary first, and where it lies."""
    made = core.read_pages([reader.task() for reader in readers], threads)
    places = [(reader, reader.take(found)) for reader, found in zip(readers, made, strict=True)]
    return [(reader, place) for reader, place in places if place is not None]
