"""Files with dates and times of Spark's old calendar, by the keys of their footers.

Before version 3.0 (3.1 for INT96) Spark counted days before 1582-10-15 by the Julian calendar, and instants before 1900 by the
offsets of that calendar's time zones. Later versions set a key where they are configured to write in the old way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from pageseek.format.schema import Leaf
from pageseek.format.types import INT96, LeafType

VERSION = b"org.apache.spark.version"
TIME_ZONE = b"org.apache.spark.timeZone"
DATETIME, OF_INT96 = b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96"


def legacy_values(pairs: Mapping[bytes, bytes | None]) -> tuple[bool, bool] | None:
    """Whether dates and timestamps of a file are in the old calendar, and whether INT96 values are, by the key-value pairs of
    its footer. None: Spark did not write it.
    """
    version = pairs.get(VERSION)
    if version is None:
        return None
    # compared as texts, as Spark does
    return version < b"3.0.0" or DATETIME in pairs, version < b"3.1.0" or OF_INT96 in pairs


def zone_of(pairs: Mapping[bytes, bytes | None]) -> str | None:
    """The time zone that a file of Spark names; None: it names none, as before version 3.0."""
    zone = pairs.get(TIME_ZONE)
    return None if zone is None else zone.decode(errors="replace")


def calendar_note(
    name: str, pairs: Mapping[bytes, bytes | None], leaves: Iterable[tuple[Leaf, LeafType]]
) -> str | None:
    """The note of `explain` on a file with values of these leaves in the old calendar; None: it has none. `pairs`: the key-value pairs
    of its footer.
    """
    legacy = legacy_values(pairs)
    if legacy is None or not any(legacy):
        return None
    t, datetime, int96 = pa.types, *legacy
    for leaf, leaf_type in leaves:
        kind = leaf_type.type
        if leaf.group:
            continue
        if leaf.element.type == INT96:
            old = int96
        else:
            old = datetime and bool(
                t.is_date(kind) or (t.is_timestamp(kind) and kind.tz is not None)
            )
        if old:
            return (
                f"{name}: column {leaf.name!r} is in the old calendar of Spark: dates before 1582-10-15 and timestamps before "
                "1900 come out as they are stored, other than Spark shows them"
            )
    return None
