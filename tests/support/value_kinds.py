"""Values of every kind as the core takes them, with a plain Python order beside it."""

from __future__ import annotations

import math
import struct
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from pageseek._core import rows

Value = Any  # bool, int, float or bytes; None is null
Buffers = tuple[int, bytes, bytes | None]


class Kind(NamedTuple):
    name: str
    code: int
    values: st.SearchStrategy[Value]
    format: str = ""  # of struct
    width: int = 0

    @property
    def is_float(self) -> bool:
        return self.code in (rows.KIND_F16, rows.KIND_F32, rows.KIND_F64)

    @property
    def numbers(self) -> st.SearchStrategy[Value]:
        """Values that are not NaN."""
        return numbers_of(WIDTHS[self.code]) if self.is_float else self.values

    @property
    def is_bytes(self) -> bool:
        return self.code in (rows.KIND_BYTES, rows.KIND_LARGE_BYTES, rows.KIND_FIXED)


def integers(bits: int, signed: bool) -> st.SearchStrategy[int]:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    edges = (low, low + 1, -1, 0, 1, 1 << bits // 2, 1 << bits - 2, high - 1, high)
    return st.integers(max(low, -3), 4) | st.sampled_from([v for v in edges if low <= v <= high])


WIDTHS = {rows.KIND_F16: 16, rows.KIND_F32: 32, rows.KIND_F64: 64}  # bits


def numbers_of(width: Any) -> st.SearchStrategy[float]:
    few = st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.5, math.inf, -math.inf])
    return few | st.floats(width=width, allow_nan=False)


def floats(width: int) -> st.SearchStrategy[float]:
    return numbers_of(width) | st.sampled_from([math.nan, -math.nan]) | st.floats(width=width)


few_bytes = st.lists(st.sampled_from([0, 97, 98, 255]), max_size=3).map(bytes)
KINDS = [
    Kind("bool", rows.KIND_BOOL, st.booleans()),
    *(
        Kind(f"{'iu'[not signed]}{bits}", getattr(rows, f"KIND_{'IU'[not signed]}{bits}"),
             integers(bits, signed), code if signed else code.upper())
        for bits, code in ((8, "b"), (16, "h"), (32, "i"), (64, "q"))
        for signed in (True, False)
    ),
    Kind("f16", rows.KIND_F16, floats(16), "e"),
    Kind("f32", rows.KIND_F32, floats(32), "f"),
    Kind("f64", rows.KIND_F64, floats(64), "d"),
    Kind("d128", rows.KIND_D128, integers(128, True), width=16),
    Kind("d256", rows.KIND_D256, integers(256, True), width=32),
    Kind("bytes", rows.KIND_BYTES, few_bytes),
    Kind("large_bytes", rows.KIND_LARGE_BYTES, few_bytes),
    Kind("fixed3", rows.KIND_FIXED, few_bytes.map(lambda b: b.ljust(3, b"a")), width=3),
]  # fmt: skip


def bits(flags: list[bool]) -> bytes:
    return np.packbits(np.array(flags, bool), bitorder="little").tobytes()


def encode(kind: Kind, values: list[Value]) -> Buffers:
    """Buffers of values without None."""
    n = len(values)
    if kind.code == rows.KIND_BOOL:
        return n, bits(values), None
    if kind.code in (rows.KIND_D128, rows.KIND_D256):
        return n, b"".join(v.to_bytes(kind.width, "little", signed=True) for v in values), None
    if kind.format:
        return n, struct.pack(f"<{n}{kind.format}", *values), None
    if kind.code == rows.KIND_FIXED:
        return n, b"".join(values), None
    wide = kind.code == rows.KIND_LARGE_BYTES
    offsets = np.cumsum([1, *map(len, values)]).astype(np.int64 if wide else np.int32)
    return n, b"?" + b"".join(values), offsets.tobytes()  # offsets need not begin at 0


def key(value: Value) -> tuple[bool, Value]:
    """Total order: NaN last, one zero."""
    nan = value != value
    return nan, 0 if nan else value


def holds(op: int, value: Value, literals: list[Value], nan: int) -> bool | None:
    """SQL's answer: None for NULL."""
    if op == rows.OP_IS_NULL:
        return value is None
    if value is None:
        return None
    if op in (rows.OP_ALWAYS, rows.OP_NEVER):
        return op == rows.OP_ALWAYS
    if op == rows.OP_IS_NAN:
        return bool(value != value)
    if op == rows.OP_PREFIX:
        return value.startswith(literals[0])
    if op == rows.OP_IN:
        return any(holds(rows.OP_EQ, value, [v], nan) for v in literals)
    x, y = (key(value), key(literals[0])) if nan == rows.NAN_SPARK else (value, literals[0])
    return {
        rows.OP_EQ: x == y, rows.OP_NE: x != y, rows.OP_LT: x < y,
        rows.OP_LE: x <= y, rows.OP_GT: x > y, rows.OP_GE: x >= y,
    }[op]  # fmt: skip


SIMPLE = [rows.OP_EQ, rows.OP_NE, rows.OP_LT, rows.OP_LE, rows.OP_GT, rows.OP_GE]
UNARY = [rows.OP_IS_NULL, rows.OP_IS_NAN, rows.OP_ALWAYS, rows.OP_NEVER]
NANS = [rows.NAN_IEEE, rows.NAN_SPARK]


def distinct(values: list[Value]) -> list[Value]:
    """Sorted and without duplicates, as OP_IN wants its literals."""
    return list({key(v): v for v in sorted(values, key=key)}.values())


@st.composite
def predicates(draw: st.DrawFn, kind: Kind) -> tuple[int, list[Value], Buffers | None]:
    """An op, its literals, and these as buffers."""
    op = draw(st.sampled_from([*SIMPLE, *UNARY, rows.OP_IN, *[rows.OP_PREFIX] * kind.is_bytes]))
    if op in UNARY:
        return op, [], None
    if op == rows.OP_IN:
        literals = distinct(draw(st.lists(kind.values, max_size=12)))
        return op, literals, encode(kind, literals)
    if op == rows.OP_PREFIX:
        prefix = draw(few_bytes)
        any_length = kind._replace(code=rows.KIND_BYTES) if kind.code == rows.KIND_FIXED else kind
        return op, [prefix], encode(any_length, [prefix])
    literal = draw(kind.values)
    return op, [literal], encode(kind, [literal])
