"""Local times of a Spark session as instants, by the rules of Java.

Of a local time that occurs twice, the earlier instant is meant. A local time that a clock skips when it is put forward
is moved later by as much as the clock.
"""

from __future__ import annotations

import datetime as dt
import re
import zoneinfo

from pageseek.base.records import NamedTuple
from pageseek.spark.session.settings import Settings

_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?")
_UTC = frozenset(("Z", "UTC", "GMT", "UT", "UCT", "Etc/UTC", "Etc/GMT", "Zulu", "Universal"))
_DAY = dt.timedelta(days=1)
# Copies of the zone database differ before this time: some keep the history of zones that others have merged.
_AGREED = dt.datetime(1970, 1, 3)


class SessionTime(NamedTuple):
    """A time without a zone that stands for an instant, in the session's zone."""

    local: dt.datetime

    def __repr__(self) -> str:
        return f"timestamp '{self.local}'"


class SessionZone:
    """The time zone of a session."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._rules: dt.tzinfo | None = _rules(settings.time_zone)

    def instant(self, local: dt.datetime) -> dt.datetime:
        """A local time as an instant, with its offset from UTC."""
        rules = self._rules
        if isinstance(rules, dt.timezone):
            return local.replace(tzinfo=rules)
        if rules is not None and local >= _AGREED:
            away = local.replace(tzinfo=rules, fold=0).utcoffset()
            assert away is not None
            return local.replace(tzinfo=dt.timezone(away), fold=0)
        return self._settings.instant(str(local))

    def plain_local(self, instant: dt.datetime) -> dt.datetime | None:
        """The local time of an instant; None if a clock may be changed within a day of it."""
        if self._rules is None:
            return None
        try:
            local = instant.astimezone(self._rules).replace(tzinfo=None)
        except (OverflowError, ValueError):  # beyond the years of Python
            return None
        return local if self.is_plain(local) else None

    def is_plain(self, local: dt.datetime) -> bool:
        """Whether local times near this one come in the order of their instants: no clock is changed within a day."""
        rules = self._rules
        if isinstance(rules, dt.timezone):
            return True
        if rules is None or local < _AGREED or local.year >= dt.MAXYEAR:
            return False
        offsets = {
            (local + away).replace(tzinfo=rules, fold=fold).utcoffset()
            for away in (-_DAY, dt.timedelta(0), _DAY)
            for fold in (0, 1)
        }
        return len(offsets) == 1


def _rules(name: str) -> dt.tzinfo | None:
    """The rules of a zone; None where only Java knows them."""
    if name in _UTC:
        return dt.UTC
    found = _OFFSET.fullmatch(name)
    if found is not None:
        away = dt.timedelta(hours=int(found[2]), minutes=int(found[3] or 0))
        return dt.timezone(-away if found[1] == "-" else away)
    if "/" not in name:  # short names mean other zones to Java
        return None
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):
        return None
