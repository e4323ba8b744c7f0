"""Parts of arguments of the right shape, often absurd: forms of leaves, literals, rows, damaged bytes."""

from __future__ import annotations

import array
from typing import Any

import numpy as np

import pageseek as ps
from support.random_argument_data import (
    R,
    buffer,
    data,
    held_by,
    number,
    offsets,
    small,
)


def form() -> tuple[Any, ...]:
    physical, width, kind = R.choice([
        (0, 0, 0), (1, 0, 1), (1, 0, 3), (1, 0, 7), (1, 0, 12), (2, 0, 4), (2, 0, 13), (3, 0, 4), (4, 0, 10), (5, 0, 11),
        (6, 0, 14), (6, 0, 15), (6, 0, 12), (7, 3, 16), (7, 0, 16), (7, 1 << 27, 16), (7, 5, 12), (7, 2, 9), (7, 12, 4),
    ])  # fmt: skip
    made: list[Any] = [
        physical,
        width,
        kind,
        width,
        R.randrange(4),
        R.randrange(2),
        R.choice([0, 0, 0, 5, 38, 76]),
    ]
    if R.random() < 0.1:
        made[R.randrange(7)] = number()
    return tuple(made)


WIDTHS = [0, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 16, 32, -4, -8, 0]


def values(kind: int, width: int, n: int) -> tuple[Any, Any]:
    """Values and offsets of a kind."""
    size = WIDTHS[kind] if 0 <= kind < len(WIDTHS) else 8
    if size < 0:
        return buffer(5 * n), held_by(offsets(n, -size))
    return buffer(n * (size or (width if kind == 16 else 1))), None


def kind_width() -> tuple[int, int]:
    return R.randrange(17) if R.random() < 0.95 else number(), R.choice([0, 1, 3, 16])


def literals(kind: int, width: int, n: int | None = None) -> tuple[Any, ...]:
    n = R.choice([0, 1, 1, 1, 2, 5]) if n is None else n
    size = WIDTHS[kind] if 0 <= kind < len(WIDTHS) else 8
    if size > 0 and R.random() < 0.7:
        return n, b"".join(i.to_bytes(size, "little") for i in range(n)), None
    if size < 0 and R.random() < 0.7:
        ends = array.array("q" if size == -8 else "i", range(n + 1)).tobytes()
        return n, bytes(range(n)), ends
    found, ends = values(kind, width, n)
    return n, found, ends


def given() -> tuple[Any, ...]:
    (kind, width), n = kind_width(), small(60)
    found, ends = values(kind, width, n)
    return kind, width, (n, None if R.random() < 0.5 else buffer((n + 7) // 8), ends, found)


def selection() -> Any:
    kind = R.randrange(8)
    if kind == 0:
        return (buffer(), number(), number())
    if kind == 1:
        n = small(300)
        return (data((n + 7) // 8), small(), n)
    if kind == 2:
        return buffer()
    ranges = sorted(R.sample(range(250), 2 * R.randrange(4)))
    made = array.array("q", ranges)
    if kind == 3 and made:
        made[-1] = (1 << 63) - 1
    if kind <= 5:
        return held_by(made.tobytes())
    try:
        return ps.RowRanges(np.frombuffer(made.tobytes(), np.int64).reshape(-1, 2))
    except Exception:
        return b""


def damaged(content: bytes) -> Any:
    if R.random() < 0.4:
        return content
    made = bytearray(content)
    for _ in range(R.randrange(3)):
        if made:
            made[R.randrange(min(len(made), R.choice((20, 60, 1 << 20))))] = R.choice(
                (0, 1, 127, 128, 255, R.randrange(256))
            )
    if R.random() < 0.2:
        del made[R.randrange(len(made) + 1) :]
    return held_by(bytes(made))
