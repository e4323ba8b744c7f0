"""Values of any type as places of an axis: numbers and times as they are, other values by their rank."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pageseek.base.records import NamedTuple
from pageseek.pictures.exact import Number, exact_numbers, one_of
from pageseek.pictures.tick_labels import moments, round_numbers, shortened

Places = npt.NDArray[np.float64]
LARGEST = 1e290  # of the numbers of an axis
PRECISE = 2**20  # a value that is larger than the span by this is drawn as a difference
BELOW, ABOVE = 0.16, 0.06  # of its span, what an axis is longer; nulls are below
LABEL = 18  # characters of a label


class Tick(NamedTuple):
    """A place of the axis and what is written there."""

    place: float
    label: str


class Scale:
    """The axis of a column, a little longer than its finite bounds: from `bottom` to `top`.

    `low` and `high` are the bounds as exact numbers, None where they are not known; infinite ones lie at the ends of the axis.
    `infinite`: which zones have one. `ranked`: they are ranks in the order of all bounds, whose values are `values`. `lower` and
    `upper` are their places on the axis, as differences from `origin` in doubles, NaN where they are not known.
    """

    def __init__(self, lower: pa.Array, upper: pa.Array) -> None:
        self.type = lower.type
        self.values: list[Any] = []
        low, high = exact_numbers(lower), exact_numbers(upper)
        self.infinite = _are_infinite(low, len(lower)) | _are_infinite(high, len(upper))
        self.ranked = low is None or high is None or not _can_be_drawn([*low, *high])
        if low is None or high is None or self.ranked:
            low, high = self._rank(low or _values(lower), high or _values(upper))
        known = [a is not None and b is not None for a, b in zip(low, high, strict=True)]
        finite = [
            x
            for pair, is_known in zip(zip(low, high, strict=True), known, strict=True)
            for x in pair
            if is_known and x is not None and math.isfinite(x)
        ]
        self.is_bounded = bool(finite)
        self.least, self.most = (min(finite), max(finite)) if finite else (0, 0)
        self.one = 1 if self.ranked else one_of(self.type)
        span = self.most - self.least
        is_precise = span * PRECISE >= max(abs(self.least), abs(self.most))
        self.origin = 0 if is_precise else self.least
        long = span / self.one or 1.0
        self.bottom = self.place(self.least) - BELOW * long
        self.top = self.place(self.most) + ABOVE * long
        self.low, self.high = (
            [self._at_end(x) if is_known else None for x, is_known in zip(of, known, strict=True)]
            for of in (low, high)
        )
        self.lower, self.upper = (np.array([self.place(x) for x in of], np.float64) for of in (self.low, self.high))  # fmt: skip

    def _at_end(self, number: Number | None) -> Number | None:
        """A number; one that is infinite is a double, and becomes an end of the axis."""
        if number is None or math.isfinite(number):
            return number
        return self.origin + (self.top if number > 0 else self.bottom)

    def place(self, number: Number | None) -> float:
        """The place of a number on the axis."""
        return math.nan if number is None else (number - self.origin) / self.one

    def _rank(
        self, low: Sequence[Any], high: Sequence[Any]
    ) -> tuple[list[Number | None], list[Number | None]]:
        try:
            self.values = sorted({value for value in [*low, *high] if value is not None})
        except TypeError:  # values without an order, such as structs
            return [None] * len(low), [None] * len(high)
        ranks: dict[Any, Number] = {value: rank for rank, value in enumerate(self.values)}
        return [ranks.get(value) for value in low], [ranks.get(value) for value in high]

    def ticks(self, wanted: int = 5) -> tuple[list[Tick], str]:
        """Where the axis has labels, which differ from one another, and what all of them leave out: empty if nothing."""
        if not self.is_bounded:
            ends = [Tick(self.bottom, "-inf"), Tick(self.top, "inf")]
            return ends if self.infinite.any() else [], ""
        if self.ranked:
            ranks = sorted({round(x) for x in np.linspace(self.least, self.most, wanted)})
            return [Tick(self.place(rank), self._rank_label(rank)) for rank in ranks], ""
        if pa.types.is_boolean(self.type):
            said = [(value, ("false", "true")[int(value)]) for value in sorted({self.least, self.most})]  # fmt: skip
            return [Tick(self.place(value), label) for value, label in said], ""
        if pa.types.is_temporal(self.type):
            found, rest = moments(int(self.least), int(self.most), self.type, wanted)
            return [Tick(self.place(value), label) for value, label in found], rest
        numbers, rest = round_numbers(self.least, self.most, self.one, wanted)
        return [
            Tick(float(value - self.origin) / self.one, label) for value, label in numbers
        ], rest

    def _rank_label(self, rank: int) -> str:
        value = self.values[rank]
        if isinstance(value, bytes):
            value = _text(value) if _is_text(self.type) else value.hex()
        return shortened(str(value), LABEL)


def _are_infinite(numbers: Sequence[Number | None] | None, n: int) -> npt.NDArray[np.bool_]:
    if numbers is None:
        return np.zeros(n, np.bool_)
    return np.array([x is not None and math.isinf(x) for x in numbers], np.bool_)


def _can_be_drawn(ends: Sequence[Number | None]) -> bool:
    """Whether an axis has room for the numbers: at the ends of doubles it overflows."""
    finite = [x for x in ends if x is not None and math.isfinite(x)]
    if not finite:
        return True
    least, most = min(finite), max(finite)
    return max(abs(least), abs(most)) < LARGEST and (least == most or most - least > 1 / LARGEST)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _values(values: pa.Array) -> list[Any]:
    """The values; texts as their bytes, since a bound that is cut may be no UTF-8. The order is the same."""
    if _is_text(values.type):
        values = values.cast(pa.large_binary())
    return list(values.to_pylist())


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.hex()
