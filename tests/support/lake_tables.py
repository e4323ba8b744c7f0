"""Tables of Delta Lake and Iceberg for tests of `write`, and rows of tables without their order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

KINDS = "delta", "iceberg"


def rows_of(table: pa.Table, *keys: str) -> list[dict[str, Any]]:
    """The rows in the order of some columns."""
    return sorted(table.to_pylist(), key=lambda row: repr([row[key] for key in keys]))


class Made:
    """A table of one kind, and what its own library reads of it."""

    def __init__(
        self,
        kind: str,
        folder: Path,
        schema: pa.Schema,
        partition_by: list[str],
        properties: dict[str, str] | None = None,
    ) -> None:
        self.kind, self.folder = kind, folder
        if kind == "delta":
            deltalake = pytest.importorskip("deltalake")
            self.table = deltalake.DeltaTable.create(
                str(folder / "t"), schema, partition_by=partition_by
            )
            return
        sql = pytest.importorskip("pyiceberg.catalog.sql")
        catalog = sql.SqlCatalog(
            "c", uri=f"sqlite:///{folder}/c.db", warehouse=f"file://{folder}/warehouse"
        )
        catalog.create_namespace("n")
        self.catalog = catalog
        self.table = catalog.create_table("n.t", schema, properties=properties or {})
        if partition_by:
            with self.table.update_spec() as update:
                for name in partition_by:
                    update.add_identity(name)

    def rows(self) -> list[dict[str, Any]]:
        """By its own library."""
        if self.kind == "delta":
            import deltalake

            found = deltalake.DeltaTable(str(self.folder / "t")).to_pyarrow_table()
        else:
            found = self.catalog.load_table("n.t").scan().to_arrow()
        return sorted(found.to_pylist(), key=repr)

    def fresh(self) -> Any:
        """Its newest version."""
        if self.kind == "delta":
            import deltalake

            return deltalake.DeltaTable(str(self.folder / "t"))
        return self.catalog.load_table("n.t")

    def append(self, rows: pa.Table) -> None:
        """Another writer's commit."""
        if self.kind == "delta":
            import deltalake

            deltalake.write_deltalake(str(self.folder / "t"), rows, mode="append")
        else:
            self.catalog.load_table("n.t").append(rows)

    def files(self) -> set[str]:
        """The names of all Parquet files in the folder, those of the table and others."""
        return {p.name for p in self.folder.rglob("*.parquet")}
