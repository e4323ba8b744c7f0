"""Objects of `deltalake` and `pyiceberg` as files and columns. Neither package is imported here."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from pageseek.datasets.delta_log import refuse_later
from pageseek.datasets.delta_tables import delta_table, log_of, version_then
from pageseek.datasets.iceberg_tables import iceberg_table
from pageseek.datasets.lake_places import iceberg_places
from pageseek.datasets.table_files import Table, foreign
from pageseek.datasets.table_versions import CURRENT, AsOf
from pageseek.storage.redact import secrets_of
from pageseek.storage.resolve import DEFAULT_RETRY
from pageseek.storage.retry import RetryPolicy


def table_of_lake(
    source: Any,
    options: Mapping[str, Any] | None = None,
    retry_policy: RetryPolicy = DEFAULT_RETRY,
    as_of: AsOf = CURRENT,
) -> Table | None:
    """What a `deltalake.DeltaTable`, or a table or scan of `pyiceberg`, says; None for other objects.

    `options`: of the store that has its files; None: those of the object.

    Raises
    ------
    UnsupportedError
        The table has a feature that is not known here, or its package cannot read it, or it has no such version.
    """
    room = type(source).__module__.partition(".")[0]
    if room == "deltalake" and hasattr(source, "get_add_actions"):
        made = _delta_as_of(source, as_of, options, retry_policy)
        return delta_table(made, options, retry_policy)
    if room == "pyiceberg":
        with foreign("Iceberg table", room, ()):
            scan, current = source, False
            if hasattr(source, "scan"):
                current = as_of.has_current_schema(source)
                scan = source.scan(snapshot_id=as_of.iceberg(source, "Iceberg table"))
        if hasattr(scan, "plan_files"):
            if scan is source and not as_of.is_current:
                raise ValueError(f"{as_of.option}: a scan of pyiceberg has a snapshot of its own")
            metadata, io = getattr(scan, "table_metadata", None), getattr(scan, "io", None)
            where = "Iceberg table" if metadata is None else f"Iceberg table {metadata.location}"
            places = iceberg_places(where, io, options, retry_policy)
            return iceberg_table(scan, places, where, current=current)
    return None


def _delta_as_of(
    table: Any, as_of: AsOf, options: Mapping[str, Any] | None, retry_policy: RetryPolicy
) -> Any:
    """A DeltaTable of a version; the object itself stays as it is."""
    where = f"Delta table {table.table_uri}"
    version = as_of.delta(where)
    if version is None:
        return table
    if isinstance(version, dt.datetime):
        version = version_then(table, version, options, retry_policy)
    elif version > table.version():
        refuse_later(version, log_of(table, options, retry_policy).paths, where)
    own = getattr(table, "_storage_options", None)
    with foreign(where, "deltalake", secrets_of(dict(own or {}))):
        return type(table)(table.table_uri, version=version, storage_options=own)
