"""Fetches the pages of several leaves, of one row group or of several, in one wave, and decodes them in one call of the core."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import pyarrow as pa

from pageseek.io.range_requests import DecodePages
from pageseek.scanning.leaves.leaf_reader import LeafReader
from pageseek.scanning.requests.steps import LEAST_RESERVED, Decode, Read, Reserve, Steps

BATCH_BYTES = 32 << 20  # compressed bytes of pages that one call decodes
DICTIONARY_WAVE_BYTES = 1 << 20  # dictionaries of one wave stay in the processor's caches


def reserve(readers: Sequence[LeafReader], size: int, missing: int) -> Steps[None]:
    """Wait until there is memory for the rows that are decoded of `size` bytes, and for those of the bytes that are missing."""
    if size >= LEAST_RESERVED:
        for reader in readers:
            missing += reader.memory
        yield Reserve(missing)


def fetch(readers: Sequence[LeafReader], wanted: Sequence[Sequence[tuple[int, int]]]) -> Steps[int]:
    """Give the readers the bytes that they want, which are read in one wave. Returns the bytes of all readers."""
    places: list[tuple[int, int]] = []
    for some in wanted:
        places += some
    size = 0
    for _, length in places:
        size += length
    yield from reserve(readers, size, size)
    buffers = yield Read(places, "data")
    at = 0
    for reader, some in zip(readers, wanted, strict=True):
        stop, fetched = at + len(some), 0
        for _, length in some:
            fetched += length
        reader.give(buffers[at:stop], fetched)
        at = stop
    return size


def decode(readers: Sequence[LeafReader], size: int) -> Steps[list[list[pa.Array]]]:
    """The arrays of each of the readers, which have got `size` bytes."""
    native = []
    for reader in readers:
        if reader.native:
            native.append(reader)  # noqa: PERF401 (of few, a comprehension would cost more)
    if native:
        yield from decode_pages(native)
    left = [reader for reader in readers if reader.arrays is None]
    if left:
        found = yield Decode([reader.decode() for reader in left], size)
        for reader, arrays in zip(left, found, strict=True):
            reader.arrays = arrays
    made = []
    for reader in readers:
        assert reader.arrays is not None
        made.append(reader.arrays)
    return made


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
