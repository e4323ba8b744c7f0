"""Which version of a table is read: as its number, as a moment, or as a snapshot."""

from __future__ import annotations

import datetime as dt
from typing import Any

from pageseek.base.errors import UnsupportedError
from pageseek.base.records import dataclass

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True, slots=True)
class AsOf:
    """A version of a table; the current one if nothing is given.

    `version`: the number of a version of Delta Lake. `timestamp`: the version that was current then. `snapshot`: the number of a
    snapshot of Iceberg, or the name of a branch or a tag.
    """

    version: int | None = None
    timestamp: dt.datetime | None = None
    snapshot: int | str | None = None

    @classmethod
    def of(
        cls, version: int | None, timestamp: dt.datetime | str | None, snapshot: int | str | None
    ) -> AsOf:
        """The options of a caller, checked."""
        given = [one for one in (version, timestamp, snapshot) if one is not None]
        if len(given) > 1:
            raise ValueError("version=, timestamp= and snapshot= each name a version: give one")
        if version is not None and (isinstance(version, bool) or not isinstance(version, int)):
            raise TypeError(f"version={version!r}: the number of a version")
        if version is not None and version < 0:
            raise ValueError(f"version={version}: not negative")
        if isinstance(timestamp, str):
            try:
                timestamp = dt.datetime.fromisoformat(timestamp)
            except ValueError:
                raise ValueError(
                    f"timestamp={timestamp!r}: such as '2024-01-31T12:00:00Z'"
                ) from None
        if timestamp is not None:
            if not isinstance(timestamp, dt.datetime):
                raise TypeError(f"timestamp={timestamp!r}: a datetime, or its text in ISO 8601")
            if timestamp.tzinfo is None:
                timestamp = timestamp.replace(tzinfo=dt.UTC)
        if isinstance(snapshot, bool) or not isinstance(snapshot, int | str | None):
            raise TypeError(f"snapshot={snapshot!r}: a number, or the name of a branch or a tag")
        return cls(version, timestamp, snapshot)

    @property
    def is_current(self) -> bool:
        """Whether nothing was given."""
        return self == CURRENT

    @property
    def option(self) -> str:
        """The option that was given."""
        named = (
            ("version", self.version),
            ("timestamp", self.timestamp),
            ("snapshot", self.snapshot),
        )
        return next((f"{name}=" for name, value in named if value is not None), "")

    def delta(self, where: str) -> int | dt.datetime | None:
        """The version of a Delta table, None for the current one."""
        if self.snapshot is not None:
            raise UnsupportedError(
                f"{where}: snapshot= is for tables of Iceberg: give version= or timestamp="
            )
        return self.timestamp if self.version is None else self.version

    def iceberg(self, table: Any, where: str) -> int | None:
        """The snapshot of a table of pyiceberg, None for the current one."""
        if self.version is not None:
            raise UnsupportedError(
                f"{where}: version= is for tables of Delta Lake: give snapshot= or timestamp="
            )
        if self.timestamp is not None:
            since = self.timestamp - _EPOCH  # whole numbers: a float may be a millisecond less
            found = table.snapshot_as_of_timestamp(since // dt.timedelta(milliseconds=1))
        elif self.snapshot is None:
            return None
        elif isinstance(self.snapshot, int):
            found = table.snapshot_by_id(self.snapshot)
        else:
            found = table.snapshot_by_name(self.snapshot)
        if found is None:
            given = self.snapshot if self.timestamp is None else self.timestamp.isoformat()
            known = [one.snapshot_id for one in table.snapshots()]
            raise UnsupportedError(
                f"{where}: {self.option}{given} names no snapshot: it has {', '.join(map(str, known[-5:])) or 'none'}"
            )
        return int(found.snapshot_id)

    def has_current_schema(self, table: Any) -> bool:
        """Whether the rows of a table of pyiceberg have its current columns, and not those of the snapshot: a branch goes on with
        the table (Iceberg specification, "Snapshot References"), while a tag, a number or a moment means what was.
        """
        if not isinstance(self.snapshot, str):
            return self.is_current
        ref = table.metadata.refs.get(self.snapshot)
        return ref is not None and str(getattr(ref.snapshot_ref_type, "value", "")) == "branch"


CURRENT = AsOf()
