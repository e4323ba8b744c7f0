"""Values of any type as numbers of an axis: numbers and times as they are, other values by their rank."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pageseek.pictures.figures import cut

Numbers = npt.NDArray[np.float64]
LARGEST = 1e290  # of the numbers of an axis
LABEL = 18  # characters of a label


class Scale:
    """The axis of a column.

    `lower` and `upper` are the bounds as numbers, NaN where there are none. `ranked`: they are places in the order of all
    bounds, whose values are `values`.
    """

    def __init__(self, lower: pa.Array, upper: pa.Array) -> None:
        self.type = lower.type
        self.values: list[Any] = []
        low, high = _numbers(lower), _numbers(upper)
        if low is not None and high is not None and _can_be_drawn(low, high):
            self.ranked = False
            self.lower, self.upper = low, high
        else:
            self.ranked = True
            self.lower, self.upper = self._rank(lower, upper)
        known = np.isfinite(self.lower) & np.isfinite(self.upper)
        self.lower, self.upper = (
            np.where(known, self.lower, np.nan),
            np.where(known, self.upper, np.nan),
        )

    def _rank(self, lower: pa.Array, upper: pa.Array) -> tuple[Numbers, Numbers]:
        low, high = _values(lower), _values(upper)
        try:
            self.values = sorted(
                {value for value in [*low, *high] if value is not None and value == value}
            )
        except TypeError:  # values without an order, such as structs
            return np.full(len(low), np.nan), np.full(len(high), np.nan)
        places = {value: float(place) for place, value in enumerate(self.values)}
        return (
            np.array([places.get(value, np.nan) for value in low], np.float64),
            np.array([places.get(value, np.nan) for value in high], np.float64),
        )

    def _days(self) -> bool:
        """Whether moments are so far apart that their days say enough."""
        if not pa.types.is_timestamp(self.type) or not np.isfinite(self.lower).any():
            return False
        day = 86_400 * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[self.type.unit]
        return bool(np.nanmax(self.upper) - np.nanmin(self.lower) > 8 * day)

    def label(self, number: float) -> str:
        """A number of the axis as its value; empty between ranks."""
        if self.ranked:
            place = round(number)
            inside = 0 <= place < len(self.values) and abs(place - number) < 1e-6
            if not inside:
                return ""
            value = self.values[place]
            return _shown(_text(value) if _is_text(self.type) else value)
        if pa.types.is_temporal(self.type):
            return _moment(number, self.type, self._days())
        if pa.types.is_boolean(self.type):
            return {0.0: "false", 1.0: "true"}.get(round(number, 6), "")
        if number == int(number) and abs(number) < 1e15:
            return f"{int(number):,}"
        return f"{number:,.6g}"


def _numbers(values: pa.Array) -> Numbers | None:
    """Numbers and times as floats; None for values that are neither."""
    kind, types = values.type, pa.types
    if types.is_temporal(kind) and not types.is_interval(kind):
        values = values.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    elif types.is_decimal(kind):
        found = [np.nan if value is None else float(value) for value in values.to_pylist()]
        return np.array(found, np.float64)
    elif not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
        return None
    made = pc.cast(values, pa.float64(), safe=False)
    return np.asarray(made.to_numpy(zero_copy_only=False), np.float64)


def _can_be_drawn(lower: Numbers, upper: Numbers) -> bool:
    """Whether an axis has room for the numbers: at the ends of doubles it overflows."""
    ends = np.concatenate([lower, upper])
    ends = ends[np.isfinite(ends)]
    if not len(ends):
        return True
    least, most = float(ends.min()), float(ends.max())
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


def _shown(value: Any) -> str:
    return cut(value.hex() if isinstance(value, bytes) else str(value), LABEL)


def _moment(number: float, kind: pa.DataType, days: bool) -> str:
    try:
        wide = pa.int32() if kind.bit_width == 32 else pa.int64()
        value = pa.scalar(round(number), wide).cast(kind)
        if pa.types.is_timestamp(kind):
            made: dt.datetime = (
                value.cast(pa.timestamp("us", kind.tz), safe=False).as_py().replace(tzinfo=None)
            )
            return (
                made.date().isoformat()
                if days or made.time() == dt.time()
                else made.isoformat(" ", "seconds")
            )
        return str(value.as_py())
    except (pa.ArrowException, ValueError, OverflowError):
        return ""


def ticks(scale: Scale, least: float, most: float, wanted: int = 5) -> Sequence[float]:
    """Where an axis has labels."""
    if least == most:
        return [least]
    if scale.ranked:
        return sorted({float(round(x)) for x in np.linspace(least, most, wanted)})
    if pa.types.is_boolean(scale.type):
        return [0.0, 1.0]
    if pa.types.is_date(scale.type):
        return sorted({float(round(x)) for x in np.linspace(least, most, wanted)})
    if pa.types.is_temporal(scale.type):
        return [float(x) for x in np.linspace(least, most, wanted)]
    from matplotlib.ticker import MaxNLocator

    return [float(x) for x in MaxNLocator(wanted).tick_values(least, most) if least <= x <= most]
