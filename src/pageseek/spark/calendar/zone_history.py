"""What Spark adds to old timestamps of a zone. It is asked for that, because the two records of zones are Java's.

Spark's own function is called through SQL, which every session has, at some thousands of instants. Only two things change its
result: a leap day that one of the calendars lacks, and a change of the clocks before 1900, of which there was none before 1800.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from pageseek.base.errors import UnsupportedError
from pageseek.spark.calendar import rebase
from pageseek.spark.calendar.rebase import DAYS, MICROS, YEAR_1, Numbers, Shift
from pageseek.spark.session.settings import Settings

_SECOND = 1_000_000
_COARSE = ((-682_947, -62_091, 365), (-62_091, -25_565, 5))  # days: from, to and step; 1800, 1900
_EARLY = -1_000_000  # days: 769 BC
_PARTS = 400  # of a step, in a finer search
_UTC = ("UTC", "Etc/UTC", "GMT", "Z")
_NAME = re.compile(r"[A-Za-z0-9_/+:-]+")
_FUNCTION = "'org.apache.spark.sql.catalyst.util.RebaseDateTime', 'rebaseJulianToGregorianMicros'"
# A search costs about half a second, and its result depends on Java alone: one entry for each version of Spark and zone.
_KNOWN: dict[tuple[str, str], Shift] = {}


def default_zone(settings: Settings) -> str:
    """The zone of files that do not name one: that of Spark's Java, not that of the session."""
    said = _asked("select reflect('java.util.TimeZone', 'getDefault')", settings)[0][0]
    found = re.search(r'\bid="([^"]+)"', said)
    if found is None:
        raise UnsupportedError(
            f"timestamps of Spark before 3.0: the time zone of Spark's Java is not understood ({said}); "
            "read these files with spark.read.parquet"
        )
    return found[1]


def shift_of(zone: str, settings: Settings) -> Shift:
    """What is added to timestamps of a zone."""
    if zone in _UTC:
        return rebase.UTC
    key = settings.version, zone
    if key not in _KNOWN:
        _KNOWN[key] = _searched(zone, settings)
    return _KNOWN[key]


def _searched(zone: str, settings: Settings) -> Shift:
    if not _NAME.fullmatch(zone):
        raise UnsupportedError(
            f"{zone!r} is no time zone: read these files with spark.read.parquet"
        )
    coarse = [(a * MICROS, step * MICROS, -(-(b - a) // step)) for a, b, step in _COARSE]
    at, added = _probed(zone, coarse, settings)
    while True:
        changes = np.flatnonzero(np.diff(added))
        wide = [(int(at[i]), int(at[i + 1])) for i in changes if at[i + 1] - at[i] > _SECOND]
        if not wide:
            break
        finer = []
        for low, high in wide:
            step = -(-(high - low) // (_PARTS * _SECOND)) * _SECOND
            finer.append((low, step, (high - low) // step))
        more = _probed(zone, finer, settings)
        at, first = np.unique(np.concatenate([at, more[0]]), return_index=True)
        added = np.concatenate([added, more[1]])[first]
    starts = at[changes + 1]
    away = DAYS.starts[1] * MICROS - starts[0]  # of local time, to the east
    starts = np.concatenate([[YEAR_1 * MICROS - away], starts])
    added = np.concatenate([added[:1], added[changes + 1]])
    # Spark has no table for earlier instants, and asks Java
    early = _probed(zone, [(_EARLY * MICROS - int(away), 0, 0)], settings)
    today = rebase.by_name(np.array([_EARLY])) * MICROS - sum(early)
    return Shift(MICROS, starts, added, int(today[0]))


def _probed(
    zone: str, ranges: Sequence[tuple[int, int, int]], settings: Settings
) -> tuple[Numbers, Numbers]:
    """Instants and what Spark adds to them. `ranges`: the first, the distance to the next, and the number of further ones."""
    values = ", ".join(f"({low}L, {step}L, {n}L)" for low, step, n in ranges)
    rows = _asked(
        f"select at, cast(reflect({_FUNCTION}, '{zone}', at) as bigint) - at from ("
        f"select low + step * i as at from values {values} as t(low, step, n) "
        "lateral view explode(sequence(0L, n)) as i)",
        settings,
    )
    made = np.array([tuple(row) for row in rows], np.int64)
    made = made[np.argsort(made[:, 0], kind="stable")]
    return made[:, 0], made[:, 1]


def _asked(query: str, settings: Settings) -> list[Any]:
    from pyspark.errors import PySparkException

    try:
        return settings.rows(query)
    except PySparkException as error:
        raise UnsupportedError(
            "timestamps of Spark before 3.0 are converted by the history of time zones that Spark has, and this session does "
            f"not tell it ({type(error).__name__}); read these files with spark.read.parquet"
        ) from error
