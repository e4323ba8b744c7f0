"""Dates and times as text, by ISO 8601, exactly: to the nanosecond, with or without an offset."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import pyarrow as pa

_ZONE = r"(?P<zone>Z|UTC|[+-]\d{2}(?::?\d{2})?)"
_TIME = r"(?P<hour>\d{2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:\.(?P<fraction>\d{1,9}))?)?"
_DATE = r"(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})"
_FLAGS = re.ASCII | re.IGNORECASE
# compiled when first needed
_DATE_TEXT = rf"\s*{_DATE}\s*"
_TIME_TEXT = rf"\s*{_TIME}\s*"
_STAMP_TEXT = rf"\s*{_DATE}(?:(?:T|\s+){_TIME}(?:\s*{_ZONE})?)?\s*"
_EPOCH = dt.datetime(1970, 1, 1)
DATE_FORM = "'2024-01-31'"
TIME_FORM = "'12:30:00.123456789'"
STAMP_FORM = "'2024-01-31 12:30:00.123456789', with 'Z' or '+02:00' behind it if it is zoned"


def date(text: str) -> dt.date:
    """A date; ValueError unless the text is one."""
    found = _matched(_DATE_TEXT, text, DATE_FORM)
    return dt.date(int(found["year"]), int(found["month"]), int(found["day"]))


def time(text: str) -> Any:
    """A time of day: datetime.time, or a pyarrow scalar where that is too coarse."""
    found = _matched(_TIME_TEXT, text, TIME_FORM)
    made, nanos = _clock(found)
    if nanos % 1000 == 0:
        return made.replace(microsecond=nanos // 1000)
    seconds = (made.hour * 60 + made.minute) * 60 + made.second
    return pa.scalar(seconds * 10**9 + nanos, pa.time64("ns"))


def timestamp(text: str) -> Any:
    """A timestamp: datetime.datetime, or a pyarrow scalar where that is too coarse. With an offset it has a zone."""
    found = _matched(_STAMP_TEXT, text, STAMP_FORM)
    day = dt.date(int(found["year"]), int(found["month"]), int(found["day"]))
    if found["hour"] is None:
        return dt.datetime.combine(day, dt.time())
    clock, nanos = _clock(found)
    zone = found["zone"]
    made = dt.datetime.combine(day, clock)
    if nanos % 1000 == 0:
        return made.replace(microsecond=nanos // 1000, tzinfo=None if zone is None else _zone(zone))
    if zone is not None:
        made -= _zone(zone).utcoffset(None)
    since = made - _EPOCH
    ticks = (since.days * 86400 + since.seconds) * 10**9 + nanos
    if not -(1 << 63) <= ticks < 1 << 63:
        raise ValueError(f"{text!r}: nanoseconds reach from 1677 to 2262 only")
    return pa.scalar(ticks, pa.timestamp("ns", None if zone is None else "UTC"))


def _matched(form: str, text: str, shown: str) -> re.Match[str]:
    found = re.fullmatch(form, text, _FLAGS)
    if found is None:
        raise ValueError(f"{text!r} is not of the form {shown}")
    return found


def _clock(found: re.Match[str]) -> tuple[dt.time, int]:
    clock = dt.time(int(found["hour"]), int(found["minute"]), int(found["second"] or 0))
    return clock, int((found["fraction"] or "").ljust(9, "0"))


def _zone(text: str) -> dt.timezone:
    if text.upper() in ("Z", "UTC"):
        return dt.UTC
    digits = text[1:].replace(":", "").ljust(4, "0")
    if int(digits[2:]) > 59:
        raise ValueError(f"{text!r} is no offset from UTC")
    away = dt.timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return dt.timezone(-away if text[0] == "-" else away)
