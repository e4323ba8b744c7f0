"""What a user names as the place to write to, as a target."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pageseek.base.errors import UnsupportedError
from pageseek.index.table_target import InSinkError, refuse_inside
from pageseek.spark.writing.targets import Target
from pageseek.storage.output_folders import output_folder
from pageseek.storage.table_folders import DELTA, kind_here


def target_of(path: Any, storage_options: Mapping[str, Any] | None) -> Target:
    """The target of a path, or of a table that is an object of its library."""
    package = type(path).__module__.partition(".")[0]
    if package == "deltalake":
        from pageseek.spark.writing.delta_write import DeltaTarget

        return DeltaTarget(path, storage_options)
    if package == "pyiceberg":
        from pageseek.spark.writing.iceberg_write import IcebergTarget

        return IcebergTarget(path, storage_options)
    folder = output_folder(path, storage_options)
    if not folder.far and kind_here(folder.path) == DELTA:
        try:
            from deltalake import DeltaTable
            from deltalake.exceptions import DeltaError
        except ImportError:
            raise UnsupportedError(
                f"{folder.name}: it is a Delta Lake table, whose log deltalake writes: pip install deltalake"
            ) from None
        with suppress(DeltaError):  # a log that cannot be read is refused below
            return target_of(DeltaTable(folder.path), storage_options)
    try:
        refuse_inside(folder.source("part.parquet"))
    except InSinkError:
        raise
    except UnsupportedError:
        raise UnsupportedError(
            f"{folder.name}: it is, or lies in, a table of Delta Lake or Iceberg, which knows its files by its own "
            "commits: give the table instead, deltalake.DeltaTable(...) or that of a catalog of pyiceberg"
        ) from None
    return Target(folder, folder.name)
