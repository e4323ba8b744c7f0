"""Decodes the pages of several leaves in one call of the core."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from pageseek.io.range_requests import DecodePages
from pageseek.scanning.leaves.leaf_reader import LeafReader
from pageseek.scanning.requests.steps import Read, Steps

BATCH_BYTES = 8 << 20  # compressed bytes of pages that one call decodes
DICTIONARY_WAVE_BYTES = 1 << 20  # dictionaries of one wave stay in the processor's caches


def decode_pages(readers: Sequence[LeafReader]) -> Steps[None]:
    """Decode the pages of readers that are `native`. Afterwards `LeafReader.arrays` has the values.

    What fails here is decoded again by `LeafReader.decode`, whose error names the place.
    """
    at = 0
    while at < len(readers):
        batch, size = [], 0
        for reader in readers[at:]:
            if size >= BATCH_BYTES:
                break
            batch.append(reader)
            size += reader.nbytes
        at += len(batch)
        wanting = yield from _decoded(batch)
        if wanting:
            yield from _with_dictionaries(wanting)


def _decoded(readers: Sequence[LeafReader]) -> Steps[list[tuple[LeafReader, tuple[int, int]]]]:
    """Decode the pages of readers in one call. Returns those that need a dictionary, and its place."""
    tasks, counts, size = [], [], 0
    for reader in readers:
        own = reader.tasks()
        tasks += own
        counts.append(len(own))
        size += reader.nbytes
    made = iter((yield DecodePages(tasks, size)))
    wanting = []
    for reader, n in zip(readers, counts, strict=True):
        place = reader.take(list(islice(made, n)))
        if place is not None:
            wanting.append((reader, place))
    return wanting


def _with_dictionaries(wanting: Sequence[tuple[LeafReader, tuple[int, int]]]) -> Steps[None]:
    """Fetch the dictionaries at these places, a few at a time, and decode the pages that need them."""
    at = 0
    while at < len(wanting):
        stop, size = at, 0
        while stop < len(wanting) and size < DICTIONARY_WAVE_BYTES:
            size += wanting[stop][1][1]
            stop += 1
        batch, at = wanting[at:stop], stop
        fetched = yield Read([place for _, place in batch], "data")
        for (reader, _), data in zip(batch, fetched, strict=True):
            reader.give_dictionary(data)
        yield from _decoded([reader for reader, _ in batch])
