"""A table of Iceberg as tests need it: rows in files of two partition specs, and what other writers put there."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pageseek.index import iceberg_target as room

pytest.importorskip("pyiceberg", "0.10")
pytest.importorskip("sqlalchemy")

from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import (  # fmt: skip
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestWriterV2,
)
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update.snapshot import _FastAppendFiles
from pyiceberg.transforms import (  # fmt: skip
    IdentityTransform,
)
from pyiceberg.typedef import Record

N = 12_000
ROWS = pa.table(
    {
        "id": pa.array(range(N)),
        "k": pa.array([("x y/%=ü", "b", None)[i % 3] for i in range(N)]),
        "d": pa.array([dt.date(2024, 1, 1 + i % 2) for i in range(N)]),
        "t": pa.array([dt.datetime(2024, 1, 1, 12, 0, 0, 1000 * (i % 900)) for i in range(N)], pa.timestamp("us", "UTC")),
        "price": pa.array([Decimal(i) / 100 for i in range(N)], pa.decimal128(12, 2)),
        "real": pa.array([i / 7 for i in range(N)]),
        "text": pa.array([f'"{i * 7919 // 6 % 50:04d}\\' for i in range(N)]),
        "s": pa.array([{"u": i if i % 5 else None} for i in range(N)]),
    }
)  # fmt: skip
FIRST = 2_000  # of them in a file of no partition


def made_in(catalog: SqlCatalog, version: int = 2) -> Table:
    """A table with one file of no partition, and six of the partitions that came later."""
    told = {"format-version": str(version), "write.summary.partition-limit": "10"}
    table = catalog.create_table("n.t", schema=ROWS.schema, properties=told)
    table.append(ROWS.slice(0, FIRST))
    with table.update_spec() as spec:
        spec.add_field("k", IdentityTransform(), "k")
        spec.add_field("d", IdentityTransform(), "day")
    table.append(ROWS.slice(FIRST))
    return table


def sorted_rows(table: Any, **of: Any) -> pa.Table:
    return table.scan(**of).to_arrow().sort_by("id").combine_chunks()


def entries(table: Table) -> list[ManifestEntry]:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return [one for manifest in snapshot.manifests(table.io) for one in manifest.fetch_manifest_entry(table.io)]  # fmt: skip


def files(table: Table) -> list[str]:
    """As the table spells them."""
    return sorted(one.data_file.file_path for one in entries(table))


def here(url: str) -> str:
    return url.removeprefix("file://")


def said(table: Table) -> list[Any]:
    """The manifests' entries of the files, without names and sizes."""
    kept = []
    for one in entries(table):
        parts = [one.data_file[i] for i in range(len(one.data_file)) if i not in (1, 5)]
        kept.append((one.data_file.spec_id, parts))
    return sorted(kept, key=repr)


def on_disk(tmp_path: Path, ending: str = ".parquet") -> set[str]:
    return {str(one) for one in tmp_path.rglob("*") if one.name.endswith(ending)}


def by_hand(table: Table, path: str, partition: tuple[Any, ...], rows: pa.Table) -> DataFile:
    """A file of a partition that pyiceberg itself does not write."""
    pq.write_table(rows.cast(table.schema().as_arrow()), path)
    made = DataFile.from_args(
        content=DataFileContent.DATA, file_path=f"file://{path}", file_format=FileFormat.PARQUET,
        partition=Record(*partition), record_count=rows.num_rows, file_size_in_bytes=os.path.getsize(path),
        column_sizes={1: 10}, value_counts={1: rows.num_rows}, null_value_counts={1: 0}, nan_value_counts={2: 0},
        lower_bounds={1: b"\0" * 8}, upper_bounds={1: b"\xff" * 7 + b"\x7f"}, key_metadata=None, split_offsets=[4],
        equality_ids=None, sort_order_id=0,
    )  # fmt: skip
    made.spec_id = table.spec().spec_id
    return made


def appended(table: Table, *made: DataFile) -> None:
    change = table.transaction()
    update = change.update_snapshot().fast_append()
    for one in made:
        update.append_data_file(one)
    update.commit()
    change.commit_transaction()


def in_between(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None], times: int = 1) -> list[int]:  # fmt: skip
    """Let others act when the commit is made and not yet sent; how often it was made."""
    real, done = room.IcebergEnd._check, [0]

    def check(self: Any, before: Any, after: Any) -> list[str]:
        written = real(self, before, after)
        done[0] += 1
        if done[0] <= times:
            act()
        return written

    monkeypatch.setattr(room.IcebergEnd, "_check", check)
    return done


class DeleteManifest(ManifestWriterV2):
    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


class VectorManifest(DeleteManifest):
    """A manifest of deletion vectors, which version 3 of the format has and pyiceberg does not write."""

    @property
    def version(self) -> Any:
        return 3

    def new_writer(self) -> Any:
        schema = self._with_partition(3)
        return AvroOutputFile[ManifestEntry](
            self._output_file, file_schema=schema, record_schema=schema,
            schema_name="manifest_entry", metadata=self._meta,
        )  # fmt: skip


class Deleting(_FastAppendFiles):
    """Puts delete files into a table, as Spark and Flink do, and pyiceberg does not."""

    made: list[DataFile]

    def _manifests(self) -> Any:
        by: dict[tuple[int, bool], list[DataFile]] = {}
        for one in self.made:
            by.setdefault((one.spec_id, one.file_format == "PUFFIN"), []).append(one)
        manifests, told = [], self._transaction.table_metadata
        for (spec, vectors), found in by.items():
            kind = VectorManifest if vectors else DeleteManifest
            to = kind(told.specs()[spec], told.schema(), self.new_manifest_output(), self.snapshot_id, "gzip")  # type: ignore[arg-type]  # fmt: skip
            with to as writer:
                for one in found:
                    writer.add(ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=self.snapshot_id, data_file=one))  # fmt: skip
            manifests.append(to.to_manifest_file())
        return [*manifests, *super()._manifests()]


def deleted(
    table: Table, of: DataFile, to: Path, content: DataFileContent = DataFileContent.POSITION_DELETES,
    bounds: tuple[bytes, bytes] | None = None, everywhere: bool = False, new: DataFile | None = None,
) -> None:  # fmt: skip
    """Delete the first row of a file. `everywhere`: by equality, in all partitions; `new`: a file that comes with the deletes."""
    if content == DataFileContent.POSITION_DELETES:
        rows = pa.table({"file_path": [of.file_path], "pos": [0]})
    else:
        rows = pq.read_table(here(of.file_path), columns=["id"]).slice(0, 1)
    pq.write_table(rows, to)
    least, most = bounds or (None, None)
    made = DataFile.from_args(
        content=content, file_path=f"file://{to}", file_format=FileFormat.PARQUET,
        partition=Record() if everywhere else of.partition, record_count=1, file_size_in_bytes=to.stat().st_size,
        lower_bounds={room.PATH: least} if least else None, upper_bounds={room.PATH: most} if most else None,
        equality_ids=[1] if content == DataFileContent.EQUALITY_DELETES else None,
    )  # fmt: skip
    made.spec_id = 0 if everywhere else of.spec_id
    change = table.transaction()
    update = Deleting(Operation.APPEND, change, table.io)
    update.made = [made]
    if new is not None:
        update.append_data_file(new)
    update.commit()
    change.commit_transaction()
