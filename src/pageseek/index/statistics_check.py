"""What the footer says of one chunk, and headers of its pages, held against its pages: bounds, counts, and how they are encoded.

Sources: parquet.thrift (Statistics, PageEncodingStats, ColumnMetaData, DataPageHeader).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pageseek.format.chunks import has_codes_only
from pageseek.format.schema import Leaf
from pageseek.format.types import ABSENT, BYTE_ARRAY, FIXED, L_INTEGER, logical_of
from pageseek.index.page_bounds import Bounds, Order
from pageseek.index.page_reader import CODES, Chunk, Page


def shown(value: bytes) -> str:
    """The bytes of a value, not too many of them."""
    return f"{value[:24]!r}{'...' if len(value) > 24 else ''}"


def wrong_statistics(
    said: Any,
    text: memoryview | bytes,
    leaf: Leaf,
    order: Order | None,
    nulls: int,
    real: Sequence[Bounds],
) -> Iterator[str]:
    """What the statistics of a chunk or a page say and its values deny.

    Parameters
    ----------
    said
        The record that has the statistics.
    text
        Where the bounds lie.
    order
        Of min_value and max_value; None where it is not known.
    real
        The bounds of each page; empty where values of the type are not looked at.
    """
    if said.statistics_null_count not in (ABSENT, nulls):
        yield f"{said.statistics_null_count} nulls, and it has {nulls}"
    if order is None or not real:
        return
    known = [bounds for bounds in real if bounds is not None]
    nans = sum(bounds[2] for bounds in known)
    if order.floats and said.statistics_nan_count not in (ABSENT, nans):
        yield f"{said.statistics_nan_count} NaN, and it has {nans}"
    valued = [bounds for bounds in known if bounds[0] or not bounds[2]]  # else nothing but NaN
    if not valued:
        return
    least, most = valued[0][:2]
    for low, high, _ in valued:
        least = low if order.less(low, least) else least
        most = high if order.less(most, high) else most

    def bound(name: str) -> bytes | None:
        at, size = (getattr(said, f"statistics_{name}_{part}") for part in ("offset", "length"))
        return None if at == ABSENT else bytes(text[at : at + size])

    low_exact, high_exact = said.statistics_is_min_exact == 1, said.statistics_is_max_exact == 1
    yield from _wrong_bound(order, bound("min_value"), least, "least", low_exact)
    yield from _wrong_bound(order, bound("max_value"), most, "greatest", high_exact)
    # the older fields are in the order of signed numbers; of texts no reader uses them
    physical, (logical, _, signed) = leaf.element.type, logical_of(leaf.element)
    if physical not in (BYTE_ARRAY, FIXED) and (logical != L_INTEGER or signed):
        yield from _wrong_bound(order, bound("min"), least, "least (of the older fields)", False)
        yield from _wrong_bound(order, bound("max"), most, "greatest (of the older fields)", False)


def _wrong_bound(
    order: Order, bound: bytes | None, value: bytes, name: str, is_exact: bool
) -> Iterator[str]:
    """What is wrong with a bound. `value`: the least or greatest value itself; `name`: begins with which of the two it is."""
    if bound is None:
        return
    if not order.is_value(bound):
        yield f"{name} {shown(bound)} is no value of the column"
        return
    below, above = order.less(bound, value), order.less(value, bound)
    if name.startswith("greatest"):
        below, above = above, below
    if above:
        yield f"{name} {shown(bound)}, and it has {shown(value)}"
    elif below and is_exact:
        yield f"{name} {shown(bound)}, said to be a value, and it is {shown(value)}"


def wrong_encodings(chunk: Chunk, pages: Sequence[Page]) -> Iterator[str]:
    """Where encoding_stats say that all data pages are of codes, so that the dictionary has every value, and they are not."""
    m = chunk.metadata
    if not has_codes_only(m) or m.dictionary_data_pages <= 0:
        return
    others = sum(page.header.encoding not in CODES for page in pages)
    if others:
        yield f"all data pages are of codes, it says, and {others} of {len(pages)} are not"
