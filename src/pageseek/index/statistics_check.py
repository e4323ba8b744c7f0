"""What the footer says of one chunk, and headers of its pages, held against its pages: bounds, counts, and how they are encoded.

Sources: parquet.thrift (Statistics, PageEncodingStats, ColumnMetaData, DataPageHeader).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pageseek.format.schema import Leaf
from pageseek.format.types import ABSENT, BYTE_ARRAY, FIXED, L_INTEGER, logical_of
from pageseek.index.page_bounds import Order
from pageseek.index.page_reader import Chunk, Page

Real = Sequence[tuple[bytes, bytes, int] | None]  # of each page: least, greatest, NaN
DICTIONARY = 2, 8  # encodings of codes: PLAIN_DICTIONARY, RLE_DICTIONARY


def shown(value: bytes) -> str:
    """The bytes of a value, not too many of them."""
    return f"{value[:24]!r}{'...' if len(value) > 24 else ''}"


def wrong_statistics(
    said: Any, text: memoryview | bytes, leaf: Leaf, order: Order | None, nulls: int, real: Real
) -> Iterator[str]:
    """What the statistics of a chunk or a page say and its values deny.

    `said`: the record that has them, whose bounds lie in `text`. `order`: in which min_value and max_value are, None where that is
    not known. `real` is empty where values of the type are not looked at.
    """
    if said.statistics_null_count not in (ABSENT, nulls):
        yield f"{said.statistics_null_count} nulls, and it has {nulls}"
    if order is None or not real:
        return
    known = [bounds for bounds in real if bounds is not None]
    nans = sum(bounds[2] for bounds in known)
    if order.floats and said.statistics_nan_count not in (ABSENT, nans):
        yield f"{said.statistics_nan_count} NaN, and it has {nans}"
    least, most = _extremes(order, known)
    if least is None or most is None:
        return
    low, high = (
        _text(text, said.statistics_min_value_offset, said.statistics_min_value_length),
        _text(text, said.statistics_max_value_offset, said.statistics_max_value_length),
    )
    exact = said.statistics_is_min_exact == 1, said.statistics_is_max_exact == 1
    yield from _wrong_bounds(order, low, high, least, most, exact, "")
    # the older fields are in the order of signed numbers, and of texts nobody believes them
    physical, (logical, _, signed) = leaf.element.type, logical_of(leaf.element)
    if physical not in (BYTE_ARRAY, FIXED) and (logical != L_INTEGER or signed):
        low, high = (
            _text(text, said.statistics_min_offset, said.statistics_min_length),
            _text(text, said.statistics_max_offset, said.statistics_max_length),
        )
        yield from _wrong_bounds(order, low, high, least, most, (False, False), " (of the older fields)")  # fmt: skip


def _wrong_bounds(
    order: Order,
    low: bytes | None,
    high: bytes | None,
    least: bytes,
    most: bytes,
    exact: tuple[bool, bool],
    which: str,
) -> Iterator[str]:
    for bound, value, name, is_low, is_exact in (
        (low, least, "least", True, exact[0]),
        (high, most, "greatest", False, exact[1]),
    ):
        if bound is None:
            continue
        if not order.is_value(bound):
            yield f"{name}{which} {shown(bound)} is no value of the column"
            continue
        beyond = order.less(value, bound) if is_low else order.less(bound, value)
        other = order.less(bound, value) if is_low else order.less(value, bound)
        if beyond:
            yield f"{name}{which} {shown(bound)}, and it has {shown(value)}"
        elif other and is_exact:
            yield f"{name}{which} {shown(bound)}, said to be a value, and it is {shown(value)}"


def wrong_encodings(chunk: Chunk, pages: Sequence[Page]) -> Iterator[str]:
    """Where encoding_stats say that all data pages are of codes, so that the dictionary has every value, and they are not."""
    m = chunk.metadata
    if m.encoding_stats != 1 or m.other_data_pages != 0 or m.dictionary_data_pages <= 0:
        return
    others = sum(page.header.encoding not in DICTIONARY for page in pages)
    if others:
        yield f"all data pages are of codes, it says, and {others} of {len(pages)} are not"


def _extremes(
    order: Order, known: Sequence[tuple[bytes, bytes, int]]
) -> tuple[bytes | None, bytes | None]:
    least: bytes | None = None
    most: bytes | None = None
    for low, high, nans in known:
        if nans and not low:  # nothing but NaN
            continue
        least = low if least is None or order.less(low, least) else least
        most = high if most is None or order.less(most, high) else most
    return least, most


def _text(text: memoryview | bytes, at: int, size: int) -> bytes | None:
    return None if at == ABSENT else bytes(text[at : at + size])
