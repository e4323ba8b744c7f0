"""Dates and times of Spark's old calendar as those of today's.

Until version 3.0 Spark used Java's calendar, which is Julian before 1582-10-15, and Java's older record of time zones. A day
or time is converted as Spark does it: it keeps its name. What has to be added to it changes only at a few points.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pageseek.base.records import NamedTuple
from pageseek.spark.columns.types import on_leaves

Numbers = npt.NDArray[np.int64]
MICROS = 86_400_000_000  # of a day
YEAR_1 = -719_164  # 0001-01-01 in the Julian calendar, in days since 1970-01-01
_FIRST_OF_TODAY = -141_427  # 1582-10-15
_LEAP_CENTURIES = [
    100 * n for n in range(1, 16) if n % 4
]  # leap years in the Julian calendar alone


class Shift(NamedTuple):
    """What is added to values of the old calendar: `added[i]` from `starts[i]` on, in days or microseconds.

    The first start is midnight of 0001-01-01. Earlier values are computed by the calendar; `away` is how far their local
    time is from UTC, to the east, by today's record of the zone.
    """

    day: int  # 1, or the microseconds of a day
    starts: Numbers
    added: Numbers
    away: int

    def rebased(self, values: Numbers) -> Numbers:
        """Values of the old calendar in today's."""
        at = np.searchsorted(self.starts, values, "right") - 1
        made = values + self.added[np.maximum(at, 0)]
        early = at < 0
        if early.any():
            local = values[early] + (YEAR_1 * self.day - self.starts[0])
            days, rest = np.divmod(local, self.day)
            made[early] = by_name(days) * self.day + rest - self.away
        return made

    @property
    def least(self) -> int:
        """The least value of today's calendar for which `ranges` is right."""
        return int(self.starts[0] + self.added[0]) + 3 * self.day

    def ranges(self, low: int | None, high: int | None) -> Iterator[tuple[int | None, int | None]]:
        """The ranges of old values that become at least `low` and less than `high`. None: no end.

        Most often there is one. Around a point where less is added there may be two, and there is none for days that the old
        calendar lacks.
        """
        ends: list[int | None] = [None, *map(int, self.starts[1:]), None]
        open_range: tuple[int | None, int | None] | None = None
        for added, start, stop in zip(map(int, self.added), ends, ends[1:], strict=False):
            first = _most(start, None if low is None else low - added)
            last = _least(stop, None if high is None else high - added)
            if first is not None and last is not None and first >= last:
                continue
            if open_range is not None and open_range[1] == first and first is not None:
                open_range = open_range[0], last
                continue
            if open_range is not None:
                yield open_range
            open_range = first, last
        if open_range is not None:
            yield open_range


def _most(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else max(one, other)


def _least(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else min(one, other)


def bounds(op: str, value: int | Fraction) -> tuple[int | None, int | None]:
    """The range of the whole numbers for which a comparison holds: the first one, and the first one behind it."""
    from_it, behind_it = math.ceil(value), math.floor(value) + 1
    low = {"=": from_it, ">=": from_it, ">": behind_it}.get(op)
    high = {"=": behind_it, "<=": behind_it, "<": from_it}.get(op)
    return low, high


def by_name(days: Numbers) -> Numbers:
    """Days of the Julian calendar as those of today's with the same name. 29 February may become 1 March."""
    since = days + 2_440_588 + 32_082  # since March of 4801 BC
    year = (4 * since + 3) // 1461
    of_year = since - 1461 * year // 4
    month = (5 * of_year + 2) // 153  # from March on
    day = of_year - (153 * month + 2) // 5
    year -= 4800
    leap_days = year // 4 - year // 100 + year // 400
    made: Numbers = 365 * year + leap_days + (153 * month + 2) // 5 + day - 719_468
    return made


def _days() -> Shift:
    switches = np.array([_march(year) for year in _LEAP_CENTURIES], np.int64)
    starts = np.concatenate([[YEAR_1], switches, [_FIRST_OF_TODAY]]).astype(np.int64)
    added = by_name(starts) - starts
    added[-1] = 0
    return Shift(1, starts, added, 0)


def _march(year: int) -> int:
    """1 March of a year in the Julian calendar."""
    since = 365 * (year + 4800) + (year + 4800) // 4
    return since - 2_440_588 - 32_082


DAYS = _days()


def at_offset(micros: int) -> Shift:
    """The shift of timestamps in a zone that is always as far from UTC, to the east."""
    return Shift(MICROS, DAYS.starts * MICROS - micros, DAYS.added * MICROS, micros)


UTC = at_offset(0)


def rebased(array: pa.Array, dates: Shift | None, times: Shift | None) -> pa.Array:
    """An array in wire types whose dates and instants, at any depth, are converted; None: they are today's."""

    def convert(leaf: pa.Array) -> pa.Array:
        is_date = pa.types.is_date32(leaf.type)
        shift = dates if is_date else times
        if shift is None or not (is_date or (pa.types.is_timestamp(leaf.type) and leaf.type.tz)):
            return leaf
        stored = leaf.view(pa.int32() if is_date else pa.int64()).fill_null(0)
        made = shift.rebased(np.asarray(stored).astype(np.int64, copy=False))
        missing = np.asarray(leaf.is_null()) if leaf.null_count else None
        if is_date:
            return pa.array(made.astype(np.int32), pa.int32(), mask=missing).view(leaf.type)
        return pa.array(made, pa.int64(), mask=missing).view(leaf.type)

    return on_leaves(array, convert)
