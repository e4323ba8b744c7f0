"""Conditions on one leaf, evaluated on the entries of dictionaries: rows then pass by their codes, and no value is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pageseek._core import decode as core
from pageseek._core.codecs import CodecSettings
from pageseek._core.pages import DICTIONARY_PAGE
from pageseek.base.errors import CoreError, PageseekError
from pageseek.base.records import NamedTuple
from pageseek.format.columns import Part
from pageseek.format.types import to_arrow
from pageseek.predicate.bound import Bound
from pageseek.predicate.masks import Bitmap, count_bits, first_bits
from pageseek.scanning.leaves.decoded_columns import DecodedColumns

MOST_ENTRIES = 2  # rows for each entry, at least: with fewer the values themselves are tested


class EntryTests(NamedTuple):
    """What passes: for each dictionary a byte for each of its entries, 1 or 0; and whether nulls do."""

    passes: list[bytes]
    nulls: bool

    def mask(self, made: tuple[Any, ...]) -> tuple[Bitmap, int, int]:
        """The rows that pass, of what the core made of codes: their bitmap, their number, and all rows."""
        n, null_count, validity, _, values = made
        mask: Bitmap = np.frombuffer(values, np.uint8, (n + 7) // 8)
        if null_count:
            valid = np.frombuffer(validity, np.uint8, (n + 7) // 8)
            mask = mask & valid
            if self.nulls:
                mask |= ~valid & first_bits(n, n)
        return mask, count_bits(mask, n), n


def entry_tests(
    part: Part,
    chunks: Sequence[memoryview],
    num_rows: int,
    condition: Bound,
    settings: CodecSettings,
    alone: bool = False,
) -> EntryTests | None:
    """Evaluate a condition on the entries of the dictionaries of chunks, which lie in front. None: the values have to be tested,
    since entries are many, or one is damaged, which is a fault only where a row has it.

    `alone`: the bytes are those before the first page of an index, or were read as a dictionary page. They have nothing else.
    """
    arrays, sizes, left = [], [], num_rows // MOST_ENTRIES
    decoded = DecodedColumns("", 0)
    try:
        for data in chunks:
            decoder = core.LeafDecoder(part.leaf_type.core, 0, 0, codec_settings=settings)
            # without a dictionary, or with an empty one, all rows are null, or reading codes fails
            n = decoder.num_values if decoder.head(data) == DICTIONARY_PAGE else 0
            if alone and (not n or decoder.stop != data.nbytes):
                return None
            sizes.append(n)
            if not n:
                continue
            left -= n
            if left < 0:
                return None
            arrays.append(to_arrow(part.leaf_type, *decoder.entries()))
        n = sum(sizes)
        decoded.put_nulls(part, 1)
        null = decoded.arrays[part.leaf.key]
        decoded.put(part.leaf, part.leaf_type, arrays + null, None, None, n + 1)
        mask, _ = decoded.evaluate(condition, n + 1)
    except (CoreError, PageseekError):  # raised again when the values are read, if a row has them
        return None
    bits = np.unpackbits(mask, count=n + 1, bitorder="little")
    stops = np.cumsum(sizes)
    passes = [bits[stop - size : stop].tobytes() for stop, size in zip(stops, sizes, strict=True)]
    return EntryTests(passes, bool(bits[n]))
