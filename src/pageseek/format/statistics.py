"""Statistics of column chunks and of pages, as writers left them: the bounds that may be used.

Source: parquet.thrift (Statistics, ColumnOrder).
"""

from __future__ import annotations

import numpy as np

from pageseek._core import metadata as core
from pageseek.format.bounds import has_order, signed_order, trusted_order
from pageseek.format.page_index import int64s
from pageseek.format.schema import Leaf
from pageseek.format.types import ABSENT, BYTE_ARRAY, FIXED, LeafType
from pageseek.format.writers import Writer


def declared_bounds(
    records: bytes,
    data: memoryview,
    leaf: Leaf,
    leaf_type: LeafType,
    orders: memoryview,
    writer: Writer,
) -> tuple[bytes, bytes, bytes] | None:
    """The places in `data` of the trusted bounds, counts of nulls and of NaN; None without statistics.

    `records`: CHUNK_FIELDS, of which only the statistics are used. The result is as that of core.chunk_bounds.
    """
    signed = signed_order(leaf, leaf_type)
    strings = leaf.element.type in (BYTE_ARRAY, FIXED)
    ordered = trusted_order(leaf, orders) and not (strings and writer.garbles_bytes)
    found = core.chunk_bounds(records, ordered, signed)
    if found is None or signed:
        return found
    places, nulls, nans = found
    if ordered and writer.orders_as_signed:
        places = _equal_places(places, data)
    if has_order(leaf) and not (strings and writer.garbled_bytes):
        # deprecated bounds were compared as signed: equal ones hold in any order
        old = core.chunk_bounds(records, False, True)
        places = _filled(places, _equal_places(old[0], data)) if old else places
    return places, nulls, nans


def zone_statistics(
    records: bytes,
    data: memoryview,
    leaf: Leaf,
    leaf_type: LeafType,
    orders: memoryview,
    writer: Writer,
    counts: bool,
) -> tuple[bytes, bytes | None, bytes] | None:
    """`declared_bounds` of row groups. `counts`: whether counts of nulls are trusted; those of lists count values, not rows."""
    found = declared_bounds(records, data, leaf, leaf_type, orders, writer)
    if found is None:
        return None
    places, nulls, nans = found
    return places, nulls if counts and not leaf.max_rep else None, nans


def _equal_places(places: bytes, data: memoryview) -> bytes:
    """The places of those bounds whose least and greatest value are equal."""
    table = int64s(places).reshape(4, -1).copy()
    for i in np.flatnonzero(table[0] != ABSENT).tolist():
        low, low_size, high, high_size = table[:, i].tolist()
        if data[low : low + low_size] != data[high : high + high_size]:
            table[:, i] = ABSENT
    return table.tobytes()


def _filled(places: bytes, others: bytes) -> bytes:
    """Places of bounds, with others in the place of those that are absent."""
    return np.where(int64s(places) == ABSENT, int64s(others), int64s(places)).tobytes()
