"""Which table a caller names, and how its files are exchanged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pageseek.base.errors import UnsupportedError
from pageseek.datasets.sources import files_of
from pageseek.datasets.table_versions import AsOf
from pageseek.rewriting.table_rewrite import TableRewrite
from pageseek.storage import RetryPolicy


def rewrite_of(
    source: Any,
    storage_options: Mapping[str, Any] | None,
    retry_policy: RetryPolicy,
    table: bool | None,
    as_of: AsOf,
) -> TableRewrite | None:
    """The table that a source means; None for other sources.

    Raises
    ------
    UnsupportedError
        It cannot be written to here.
    ValueError
        An older version is named.
    """
    commits = None
    if type(source).__module__.partition(".")[0] == "pyiceberg" and hasattr(source, "transaction"):
        from pageseek.rewriting.iceberg_rewrite import iceberg_commits

        commits = iceberg_commits(source)
    found = files_of(source, storage_options, retry_policy, table, as_of)
    if found.table is None:
        return None
    if not as_of.is_current:
        raise ValueError(f"{as_of.option}: in_place=True rewrites the current version")
    if commits is not None:
        from pageseek.rewriting.iceberg_rewrite import IcebergRewrite

        return IcebergRewrite(commits, found.table, storage_options)
    if found.table.version is None:
        raise UnsupportedError(
            f"{found.table.what}: in_place=True commits through the catalog of the table: give the table that it loads "
            "(catalog.load_table(...))"
        )
    from pageseek.rewriting.delta_rewrite import DeltaRewrite

    opened = source if type(source).__module__.partition(".")[0] == "deltalake" else None
    options = storage_options or getattr(opened, "_storage_options", None)
    return DeltaRewrite(found.table, options, opened)
