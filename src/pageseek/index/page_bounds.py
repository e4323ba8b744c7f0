"""Bounds of pages as a ColumnIndex has them: in the order of the logical type, zeros widened, long texts cut.

Sources: parquet.thrift (ColumnIndex, ColumnOrder), PageIndex.md.
"""

from __future__ import annotations

from array import array
from typing import TypeAlias

from pageseek._core import build
from pageseek.format.bounds import IEEE754_ORDER, TYPE_ORDER, has_order
from pageseek.format.schema import Leaf
from pageseek.format.types import (
    BYTE_ARRAY,
    DOUBLE,
    FIXED,
    FLOAT,
    INT32,
    K_F16,
    K_U32,
    K_U64,
    L_DECIMAL,
    L_ENUM,
    L_FLOAT16,
    L_INTEGER,
    L_JSON,
    L_STRING,
    logical_of,
)
from pageseek.index.page_reader import Page, Values, physical_of

MAX_BOUND_BYTES = 64  # bytes of a bound; a longer text is cut
# of a page as PLAIN bytes: least, greatest, how many NaN; the bounds are empty where all values are NaN, None where there is none
Bounds: TypeAlias = tuple[bytes, bytes, int] | None


class Order:
    """The order of the values of a leaf, and their bounds as bytes."""

    def __init__(self, leaf: Leaf, kind: int, width: int) -> None:
        """`kind`, `width`: of the bytes in the file (ps_kind)."""
        logical, _, signed = logical_of(leaf.element)
        physical = leaf.element.type
        self.known = has_order(leaf)
        self.kind, self.width = kind, width
        self.decimal = logical == L_DECIMAL and physical in (BYTE_ARRAY, FIXED)
        self.floats = physical in (FLOAT, DOUBLE)
        if physical == FIXED and logical == L_FLOAT16:
            self.kind, self.width, self.floats = K_F16, 0, True
        elif logical == L_INTEGER and not signed:
            self.kind = K_U32 if physical == INT32 else K_U64
        found = physical_of(leaf)
        self._size = 2 if self.kind == K_F16 else 0 if found is None else found.width
        self._physical = physical
        self._cut = physical == BYTE_ARRAY and not self.decimal
        self._text = logical in (L_STRING, L_ENUM, L_JSON)

    def fits(self, declared: int | None) -> bool:
        """Whether values are compared in the order that the footer declares for the column (ColumnOrder); None: it has none."""
        return self.known and (
            declared == TYPE_ORDER or (declared == IEEE754_ORDER and self.floats)
        )

    def bounds(self, page: Page) -> Bounds:
        """The bounds of a page as a ColumnIndex has them."""
        found = self.bounds_whole(page)
        if found is None or not self.known:
            return found
        low, high, nans = found
        if self.floats and low:  # a zero of either sign stands for both
            low, high = _signed_zero(low, True), _signed_zero(high, False)
        elif self._cut:
            low, high = cut_below(low, self._text), cut_above(high, self._text)
        return low, high, nans

    def bounds_whole(self, page: Page) -> Bounds:
        """The least and greatest value of a page themselves."""
        values = page.values
        assert values is not None
        _, nans, least, most = build.extremes(self.kind, self.width, values, self.decimal)
        if least < 0:
            return (b"", b"", nans) if nans else None
        return self._plain(values, least), self._plain(values, most), nans

    def is_value(self, bound: bytes) -> bool:
        """Whether bytes can be a bound."""
        if self._physical == BYTE_ARRAY:
            return True
        if len(bound) != (self._size or 1):
            return False
        if not self.floats:
            return True
        return not build.extremes(self.kind, self.width, Values(1, None, None, bound))[1]  # NaN

    def less(self, one: bytes, other: bytes) -> bool:
        """Whether a bound lies below another."""
        ends = None
        data = one + other
        if self._physical == BYTE_ARRAY:
            ends = array("i", [0, len(one), len(data)])
        elif not self._size:
            data = bytes([one[0] & 1 | (other[0] & 1) << 1])
        *_, most = build.extremes(self.kind, self.width, Values(2, None, ends, data), self.decimal)
        return bool(most == 1)

    def _plain(self, values: Values, at: int) -> bytes:
        """The bytes of a value in the file."""
        if self._physical == BYTE_ARRAY:
            ends = memoryview(values.offsets).cast("B").cast("i")
            return bytes(memoryview(values.data)[ends[at] : ends[at + 1]])
        data = memoryview(values.data).cast("B")
        if not self._size:  # a boolean
            return bytes([data[at // 8] >> at % 8 & 1])
        return bytes(data[at * self._size : (at + 1) * self._size])


def _signed_zero(value: bytes, negative: bool) -> bytes:
    if any(value[:-1]) or value[-1] & 0x7F:
        return value
    return value[:-1] + (b"\x80" if negative else b"\0")


def cut_below(value: bytes, text: bool) -> bytes:
    """A byte string that is not greater, and not long. A `text` is cut between characters."""
    if len(value) <= MAX_BOUND_BYTES:
        return value
    return value[: _whole(value, MAX_BOUND_BYTES) if text else MAX_BOUND_BYTES]


def cut_above(value: bytes, text: bool) -> bytes:
    """A byte string that is not less, and not long if there is such a one."""
    if len(value) <= MAX_BOUND_BYTES:
        return value
    made = (
        _next_text(value[: _whole(value, MAX_BOUND_BYTES)])
        if text
        else _next(value[:MAX_BOUND_BYTES])
    )
    return value if made is None else made


def _whole(value: bytes, at: int) -> int:
    """The end of the last whole character that ends at or before a byte."""
    while at > 0 and value[at] & 0xC0 == 0x80:
        at -= 1
    return at


def _next(value: bytes) -> bytes | None:
    """The least byte string above all that begin with this one; None where every byte is the greatest."""
    kept = value.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


def _next_text(value: bytes) -> bytes | None:
    """As `_next`, but a text: UTF-8 sorts as its characters do."""
    try:
        text = value.decode()
    except UnicodeDecodeError:  # bytes under a type of text
        return _next(value)
    for i in range(len(text) - 1, -1, -1):
        point = ord(text[i]) + 1
        point = 0xE000 if point == 0xD800 else point  # surrogates are no characters
        if point <= 0x10FFFF:
            return (text[:i] + chr(point)).encode()
    return None
