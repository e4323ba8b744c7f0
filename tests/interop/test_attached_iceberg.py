"""Indexes attached to files of Iceberg tables, through the table: its rows, partitions and statistics stay."""

from __future__ import annotations

import datetime as dt
import os
import uuid
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from support.moto_s3 import Bucket, moto
from support.remote_files import SECRET

pytest.importorskip("pyiceberg", "0.10")
pytest.importorskip("sqlalchemy")

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import (  # fmt: skip
    DataFile,
)
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable, Table, Transaction
from pyiceberg.table.update.snapshot import _OverwriteFiles
from pyiceberg.transforms import (  # fmt: skip
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
)
from pyiceberg.types import (  # fmt: skip
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)

from support.iceberg_tables import (
    ROWS,
    N,
    appended,
    by_hand,
    entries,
    files,
    here,
    made_in,
    on_disk,
    said,
    sorted_rows,
)

# -- what is done ---------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [1, 2])
def test_all_files_of_a_table(catalog: SqlCatalog, version: int, tmp_path: Path) -> None:
    table = made_in(catalog, version)
    before, wanted, names = said(table), sorted_rows(table), files(table)
    bytes_before = {name: Path(here(name)).read_bytes() for name in names}
    first = table.current_snapshot()
    assert first is not None and len(names) == 7
    for path in names:
        made = ps.index.attach(path, bloom=["text"], distinct=["text"], table=table)
        assert made.path != here(path) and os.path.dirname(made.path) == os.path.dirname(here(path))
        assert os.path.getsize(made.path) == made.bytes_after > made.bytes_before
    for now in (table, catalog.load_table("n.t")):
        assert sorted_rows(now).equals(wanted)
        assert said(now) == before
        for one in entries(now):
            assert one.data_file.file_size_in_bytes == os.path.getsize(here(one.data_file.file_path))  # fmt: skip
        assert not set(files(now)) & set(names)
        ours = ps.read_table(now).sort_by("id")
        assert all(ours[name].to_pylist() == wanted[name].to_pylist() for name in wanted.column_names)  # fmt: skip
        snapshots = now.snapshots()
        assert len(snapshots) == 2 + 7
        for one in snapshots[2:]:
            assert one.summary is not None and one.summary.operation.value == "overwrite"
            told = one.summary.additional_properties
            assert told["engine-name"] == "pageseek" and told["engine-version"] == ps.__version__
            assert told["added-data-files"] == told["deleted-data-files"] == "1"
            assert told["added-records"] == told["deleted-records"]
            assert told["total-records"] == str(N) and told["total-data-files"] == "7"
        sizes = sum(one.data_file.file_size_in_bytes for one in entries(now))
        assert told["total-files-size"] == str(sizes)
    found = ps.scan(catalog.load_table("n.t"), filter="text = 'none'", prune=["distinct"])
    report = found.explain(analyze=True).to_dict()
    assert report["row_groups"]["pruned_by"] == {"distinct": 7} and report["rows"]["read"] == 0
    # of the partitions, too
    only = sorted_rows(table, row_filter="k = 'x y/%=ü'")
    assert only.num_rows == sum(one == "x y/%=ü" for one in ROWS["k"].to_pylist())
    files_of = ps.scan(table, filter="k = 'b'").explain().to_dict()["files"]
    assert files_of["pruned_by"] == {"partition": 4}
    # older snapshots are read as before, from unchanged files
    assert sorted_rows(table, snapshot_id=first.snapshot_id).equals(wanted)
    old = table.scan(snapshot_id=first.snapshot_id)
    assert ps.read_table(old).sort_by("id")["real"].equals(wanted["real"])
    for name, data in bytes_before.items():
        assert Path(here(name)).read_bytes() == data
    # columns are found by the ids that the footer has, as in the files before
    for name in files(table):
        ids = [field.metadata[b"PARQUET:field_id"] for field in pq.read_schema(here(name))]
        assert ids == [str(field.field_id).encode() for field in table.schema().fields]
    with table.update_schema() as change:
        change.rename_column("text", "words")
    assert sorted_rows(table)["words"].equals(wanted["text"])
    assert not ps.scan(table, filter="words = 'none'").count_rows()


@pytest.mark.filterwarnings("ignore:Iceberg scan planning")
def test_another_engine_reads_the_same(table: Table) -> None:
    polars = pytest.importorskip("polars")
    pytest.importorskip("pyiceberg", "0.12")

    def rows() -> Any:
        return polars.scan_iceberg(table, reader_override="native").sort("id").collect()

    wanted = rows()
    for path in files(table):
        ps.index.attach(path, bloom=["text"], distinct=["text"], table=table)
    assert len(wanted) == N and rows().equals(wanted)


@pytest.mark.parametrize("version", [1, 2])
def test_and_taken_out_again(catalog: SqlCatalog, version: int) -> None:
    table = made_in(catalog, version)
    before, wanted = said(table), sorted_rows(table)
    for path in files(table)[::3]:
        data = Path(here(path)).read_bytes()
        made = ps.index.attach(path, distinct=["text"], table=table)
        back = ps.index.detach(made.path, table=table)
        assert Path(back.path).read_bytes() == data
    assert sorted_rows(catalog.load_table("n.t")).equals(wanted)
    assert said(table) == before


def test_ways_to_name_a_file(table: Table) -> None:
    """The table's own spelling, a path, a pair, a URL with escapes: folders here have names with % and spaces."""
    import pyarrow.fs as pafs

    names = table.inspect.data_files()["file_path"].to_pylist()
    assert sorted(names) == files(table) and any("%" in name and " " in name for name in names)
    for given in (
        lambda url: url,
        here,
        lambda url: Path(here(url)),
        lambda url: (pafs.LocalFileSystem(), here(url)),
        lambda url: Path(here(url)).as_uri(),
        lambda url: [url and here(url)],
    ):
        path = next(name for name in files(table) if "%" in name)
        ps.index.attach(given(path), page_index=["id"], table=table, replace=True)
        assert path not in files(table)


def test_files_without_field_ids(catalog: SqlCatalog, tmp_path: Path) -> None:
    """Their columns are found by the table's mapping of names."""
    table = catalog.create_table("n.t", schema=ROWS.select(["id", "text"]).schema)
    path = tmp_path / "added.parquet"
    pq.write_table(ROWS.select(["text", "id"]), path)
    table.add_files([f"file://{path}"])
    with table.update_schema() as change:
        change.rename_column("text", "words")
    wanted = sorted_rows(table)
    made = ps.index.attach(path, distinct=["text"], table=table)
    assert os.path.dirname(made.path) == str(tmp_path)
    assert sorted_rows(table).equals(wanted)
    assert ps.read_table(table).sort_by("id")["words"].equals(ROWS["text"])


# -- partitions -----------------------------------------------------------------------------------


NOON = dt.datetime(2024, 1, 1, 12)
# column, transform, and of each file the value in its rows and that of its partition
PARTITIONS = {
    "bucket": (StringType(), BucketTransform(8), [("a", 3), ("b", 4), (None, None)]),
    "truncate": (StringType(), TruncateTransform(2), [("äbc", "äb"), ("", ""), (None, None)]),
    "decimals": (DecimalType(9, 2), TruncateTransform(50), [(Decimal("1.10"), Decimal("1.00")), (None, None)]),
    "day": (TimestampType(), DayTransform(), [(NOON, 19723), (dt.datetime(1950, 1, 1), -7305), (None, None)]),
    "hour": (TimestamptzType(), HourTransform(), [(NOON.replace(tzinfo=dt.UTC), 473364), (None, None)]),
    "month": (DateType(), MonthTransform(), [(NOON.date(), 648), (None, None)]),
    "time": (TimestampType(), IdentityTransform(), [(NOON, 1704110400000000), (None, None)]),
    "uuid": (UUIDType(), IdentityTransform(), [(b"a" * 16, uuid.UUID(bytes=b"a" * 16)), (None, None)]),
    "binary": (BinaryType(), IdentityTransform(), [(b"a\xff", b"a\xff"), (None, None)]),
    "boolean": (BooleanType(), IdentityTransform(), [(True, True), (False, False), (None, None)]),
    "float": (FloatType(), IdentityTransform(), [(1.1, 1.100000023841858), (None, None)]),
    "zeros": (DoubleType(), IdentityTransform(), [(0.0, 0.0), (-0.0, -0.0)]),
}  # fmt: skip


@pytest.mark.covering(1)
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("name", PARTITIONS)
def test_partitions(catalog: SqlCatalog, tmp_path: Path, name: str, version: int) -> None:
    kind, transform, parts = PARTITIONS[name]
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "p", kind))
    table = catalog.create_table("n.t", schema, properties={"format-version": str(version)})
    with table.update_spec() as change:
        change.add_field("p", transform, "part")
    arrow = schema.as_arrow()
    made = []
    for i, (value, part) in enumerate(parts):
        rows = pa.table([[3 * i, 3 * i + 1], pa.array([value] * 2, arrow.field("p").type)], schema=arrow)  # fmt: skip
        made.append(by_hand(table, f"{tmp_path}/{i}.parquet", (part,), rows))
    appended(table, *made)
    with table.update_spec() as change:  # the files are of an older one then
        change.add_field("id", IdentityTransform(), "more")
    wanted, before = sorted_rows(table), said(table)
    for i in range(len(parts)):
        ps.index.attach(f"{tmp_path}/{i}.parquet", table=table)
    assert str(sorted_rows(table)["p"].to_pylist()) == str(wanted["p"].to_pylist())  # -0.0, too
    assert sorted_rows(table)["id"].equals(wanted["id"])
    assert said(table) == before
    assert len(on_disk(tmp_path)) == 2 * len(parts)


def test_partitions_that_cannot_be_committed(catalog: SqlCatalog, tmp_path: Path) -> None:
    """They are refused before anything is written."""
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "p", DoubleType()))
    table = catalog.create_table("n.t", schema)
    with table.update_spec() as change:
        change.add_field("p", IdentityTransform(), "part")
    nan = float("nan")
    rows = pa.table({"id": [1], "p": [nan]})
    appended(table, by_hand(table, f"{tmp_path}/0.parquet", (nan,), rows))
    with pytest.raises(ps.UnsupportedError, match=r"0\.parquet has NaN for a partition"):
        ps.index.attach(f"{tmp_path}/0.parquet", table=table)
    table = catalog.create_table("n.u", schema)
    with table.update_spec() as change:
        change.add_field("p", IdentityTransform(), "part")
    appended(table, by_hand(table, f"{tmp_path}/1.parquet", (1.0,), rows))
    with table.update_spec() as change:
        change.remove_field("part")
    with table.update_schema(allow_incompatible_changes=True) as change_too:
        change_too.delete_column("p")
    with pytest.raises(ps.UnsupportedError, match=r"partitioned by 'part', whose column was dropped"):  # fmt: skip
        ps.index.attach(f"{tmp_path}/1.parquet", table=table)
    assert len(on_disk(tmp_path)) == 2 and len(table.snapshots()) == 1


# -- what is refused ------------------------------------------------------------------------------


def test_what_is_refused(catalog: SqlCatalog, table: Table, tmp_path: Path) -> None:
    path = files(table)[0]
    alone = tmp_path / "x.parquet"
    pq.write_table(ROWS, alone)
    with pytest.raises(ValueError, match=r"no such file; give one as the table spells it"):
        ps.index.attach(alone, table=table)
    with pytest.raises(ValueError, match="2 files"):
        ps.index.attach([here(one) for one in files(table)[:2]], table=table)
    with pytest.raises(ValueError, match="beside the old one"):
        ps.index.attach(path, table=table, in_place=True)
    with pytest.raises(ps.UnsupportedError, match=r"Iceberg table.*table=catalog\.load_table"):
        ps.index.attach(here(path), in_place=True)
    for no_table in (table.scan(), catalog, "n.t"):
        with pytest.raises(TypeError, match="table of pyiceberg"):
            ps.index.attach(path, table=no_table)
    alone_too = StaticTable.from_metadata(table.metadata_location)
    with pytest.raises(ps.UnsupportedError, match="StaticTable has no catalog"):
        ps.index.attach(path, table=alone_too)
    empty = catalog.create_table("n.empty", schema=ROWS.schema)
    with pytest.raises(ValueError, match="no such file"):
        ps.index.attach(path, table=empty)
    gone = catalog.load_table("n.empty")
    catalog.drop_table("n.empty")
    with pytest.raises(ps.StoreError, match=r"it cannot be loaded: .*n\.empty"):
        ps.index.attach(path, table=gone)
    again = next(one.data_file for one in entries(table) if "k=b" in one.data_file.file_path)
    path = again.file_path
    appended(table, again)
    with pytest.raises(ps.UnsupportedError, match="is 2 times in it"):
        ps.index.attach(path, table=table)
    assert len(catalog.load_table("n.t").snapshots()) == 3


def test_tables_whose_rows_have_ids(catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """The third version of the format."""
    table = made_in(catalog)
    path = files(table)[0]
    real = Table.refresh

    def refreshed(self: Any) -> Any:
        real(self)
        self.metadata = self.metadata.model_copy(update={"format_version": 3})
        return self

    monkeypatch.setattr(Table, "refresh", refreshed)
    with pytest.raises(ps.UnsupportedError, match="version 3 of the format"):
        ps.index.attach(path, table=table)


@pytest.mark.parametrize(
    ("of", "name"),
    [(DataFile, "from_args"), (Transaction, "update_snapshot"), (_OverwriteFiles, "delete_data_file")],
)  # fmt: skip
def test_another_pyiceberg(
    table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of: Any, name: str
) -> None:
    """A missing function of pyiceberg is no AttributeError, and no file stays behind."""
    path, before = files(table)[0], on_disk(tmp_path)
    owner = next(one for one in of.__mro__ if name in one.__dict__)
    monkeypatch.delattr(owner, name)
    with pytest.raises(ps.UnsupportedError, match=r"this pyiceberg cannot .*pip install 'pyiceberg>=0\.10'"):  # fmt: skip
        ps.index.attach(path, table=table)
    assert on_disk(tmp_path) == before and len(table.snapshots()) == 2


@pytest.mark.parametrize("wrong", ["kept", "lost", "twice"])
def test_snapshots_that_are_wrong_are_not_committed(
    catalog: SqlCatalog, table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    """Whatever pyiceberg makes of it: the old file kept, another one lost, or the new one there twice."""
    path = next(name for name in files(table) if "k=b" in name)
    real = _OverwriteFiles._existing_manifests

    def existing(self: Any) -> Any:
        snapshot = self._transaction.table_metadata.current_snapshot()
        if wrong == "kept":
            return list(snapshot.manifests(self._io))
        if wrong == "lost":
            return real(self)[:-1]
        return real(self)

    monkeypatch.setattr(_OverwriteFiles, "_existing_manifests", existing)
    if wrong == "twice":
        add = _OverwriteFiles.append_data_file
        monkeypatch.setattr(
            _OverwriteFiles, "append_data_file", lambda self, one: add(add(self, one), one)
        )
    before, manifests = on_disk(tmp_path), on_disk(tmp_path, ".avro")
    with pytest.raises(ps.StoreError, match="it was not committed"):
        ps.index.attach(path, table=table)
    assert on_disk(tmp_path) == before
    assert len(catalog.load_table("n.t").snapshots()) == 2
    assert on_disk(tmp_path, ".avro") == manifests


# -- a store --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    pytest.importorskip("obstore", reason="pip install 'pageseek[obstore]'")
    with moto() as made:
        yield made


def names(bucket: Bucket, prefix: str) -> set[str]:
    listed = bucket.client.list_objects_v2(Bucket="bucket", Prefix=prefix).get("Contents", [])
    return {one["Key"] for one in listed if one["Key"].endswith(".parquet")}


def test_a_table_on_a_store(bucket: Bucket, tmp_path: Path) -> None:
    """Opened with what the table knows of the store, or with what is given; beaten, the new object goes."""
    ps.clear_cache()
    catalog = bucket.iceberg_catalog(tmp_path, tmp_path.name)
    table = made_in(catalog)
    wanted, before = sorted_rows(table), said(table)
    first, second = [name for name in files(table) if "%" in name]
    made = ps.index.attach(first, distinct=["text"], table=table)
    assert made.path.startswith("s3://bucket/") and made.path in files(table)
    key = second.removeprefix("s3://bucket/")
    import obstore

    store = obstore.store.S3Store("bucket", **bucket.options, client_options={"allow_http": True})
    made = ps.index.attach((store, key), distinct=["text"], table=table)
    assert made.path in files(table)
    plain = next(name for name in files(table) if "%" not in name)
    where = bucket.over_obstore(plain.removeprefix("s3://bucket/"))
    with pytest.raises(ps.UnsupportedError, match=r"table=catalog\.load_table"):
        ps.index.attach(**where, in_place=True)
    made = ps.index.attach(**where, distinct=["text"], table=table)
    back = ps.index.detach(made.path, table=table)
    assert back.bytes_after == made.bytes_before
    assert said(table) == before
    assert sorted_rows(catalog.load_table("n.t")).equals(wanted)
    assert ps.read_table(table).num_rows == N
    there = names(bucket, tmp_path.name)
    theirs = catalog.load_table("n.t")
    done: list[int] = []

    def gone(_: Any) -> None:
        if not done:
            done.append(1)
            theirs.delete("k is null")

    path = next(name for name in files(table) if "k=null" in name)
    with pytest.raises(ps.FileChangedError, match="taken") as caught:
        ps.index.attach(path, bloom=["id"], table=table, progress=gone)
    assert SECRET not in str(caught.value)
    left = names(bucket, tmp_path.name) - there
    assert {f"s3://bucket/{one}" for one in left} <= set(files(theirs))
    catalog.close()
