"""Objects of `deltalake` and `pyiceberg` as files and columns. Neither package is imported here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pageseek.dataset.delta_tables import delta_table
from pageseek.dataset.iceberg_tables import iceberg_table
from pageseek.dataset.lake_places import iceberg_places
from pageseek.dataset.table_files import Table, foreign
from pageseek.storage.resolve import DEFAULT_RETRY
from pageseek.storage.retry import RetryPolicy


def table_of_lake(
    source: Any, options: Mapping[str, Any] | None = None, retry_policy: RetryPolicy = DEFAULT_RETRY
) -> Table | None:
    """What a `deltalake.DeltaTable`, or a table or scan of `pyiceberg`, says; None for other objects.

    `options`: of the store that has its files; None: those of the object.

    Raises
    ------
    UnsupportedError
        Rows are deleted by vectors or delete files, or the table has a feature that is not known here, or its package
        cannot read it.
    """
    room = type(source).__module__.partition(".")[0]
    if room == "deltalake" and hasattr(source, "get_add_actions"):
        return delta_table(source, options, retry_policy)
    if room == "pyiceberg":
        with foreign("Iceberg table", room, ()):
            scan = source.scan() if hasattr(source, "scan") else source
        if hasattr(scan, "plan_files"):
            metadata, io = getattr(scan, "table_metadata", None), getattr(scan, "io", None)
            where = "Iceberg table" if metadata is None else f"Iceberg table {metadata.location}"
            return iceberg_table(scan, iceberg_places(where, io, options, retry_policy), where)
    return None
