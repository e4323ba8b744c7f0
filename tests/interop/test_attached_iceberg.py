"""Indexes attached to files of Iceberg tables, through the table: its rows, partitions and statistics stay."""

from __future__ import annotations

import datetime as dt
import os
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.index import iceberg as room
from pageseek.index.tables import TRIES
from support.distant import SECRET
from support.others_s3 import Bucket, moto

pytest.importorskip("pyiceberg", "0.10")
pytest.importorskip("sqlalchemy")

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.manifest import (  # fmt: skip
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestWriterV2,
)
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable, Table, Transaction
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update.snapshot import _FastAppendFiles, _OverwriteFiles
from pyiceberg.transforms import (  # fmt: skip
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
)
from pyiceberg.typedef import Record
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


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[SqlCatalog]:
    made = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/a table")
    made.create_namespace("n")
    yield made
    made.close()


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


@pytest.fixture
def table(catalog: SqlCatalog) -> Table:
    return made_in(catalog)


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
    """What the manifests say of the files, without their names and sizes."""
    kept = []
    for one in entries(table):
        parts = [one.data_file[i] for i in range(len(one.data_file)) if i not in (1, 5)]
        kept.append((one.data_file.spec_id, parts))
    return sorted(kept, key=repr)


def on_disk(tmp_path: Path, ending: str = ".parquet") -> set[str]:
    return {str(one) for one in tmp_path.rglob("*") if one.name.endswith(ending)}


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
    # older snapshots are read as before, from files that nobody has touched
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


# -- others who write -----------------------------------------------------------------------------


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


@pytest.mark.parametrize("how", ["compact", "delete", "attach"])
@pytest.mark.parametrize("late", [False, True])
def test_a_file_that_others_take_out_meanwhile(
    catalog: SqlCatalog, table: Table, tmp_path: Path, how: str, late: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Before the commit, or in the moment of it: rows are never there twice, nor do they come back."""
    path = files(table)[0]
    done: list[str] = []

    def others() -> None:
        if done:
            return
        done.append(how)
        theirs = catalog.load_table("n.t")
        if how == "compact":
            theirs.overwrite(sorted_rows(theirs))
        elif how == "delete":
            theirs.delete()
        else:
            with monkeypatch.context() as undone:
                undone.undo()
                ps.index.attach(path, page_index=["id"], table=theirs)

    if late:
        in_between(monkeypatch, others)
    before = on_disk(tmp_path)
    with pytest.raises(ps.FileChangedError, match="taken"):
        ps.index.attach(
            path, bloom=["text"], table=table, progress=lambda _: None if late else others()
        )
    assert done
    now = catalog.load_table("n.t")
    assert table.metadata == now.metadata
    assert sorted_rows(now).num_rows == (0 if how == "delete" else N)
    snapshot = now.current_snapshot()
    assert snapshot is not None and snapshot.summary is not None
    if how != "attach":
        assert "engine-name" not in snapshot.summary.additional_properties
    # of ours nothing is left, of theirs all is there; nor are manifests that nobody names
    assert on_disk(tmp_path) - before == {here(one) for one in files(now)} - before
    named = {one.manifest_list for one in now.snapshots()}
    named |= {m.manifest_path for one in now.snapshots() for m in one.manifests(now.io)}
    left = {f"file://{one}" for one in on_disk(tmp_path, ".avro")} - named
    assert not left


def test_commits_of_others_that_do_no_harm(
    catalog: SqlCatalog, table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that are added, partitions and columns that change: it is made anew."""
    path = next(name for name in files(table) if "k=b" in name)

    columns = iter(("id", "t"))

    def others() -> None:
        name = next(columns)
        theirs = catalog.load_table("n.t")
        theirs.append(ROWS.slice(0, 1))
        with theirs.update_spec() as spec:
            spec.add_field(name, IdentityTransform(), f"of_{name}")
        with theirs.update_schema() as change:
            change.add_column(f"after_{name}", LongType())

    made = in_between(monkeypatch, others, times=2)
    new = ps.index.attach(path, distinct=["text"], table=table)
    assert made[0] == 3
    assert sorted_rows(table).num_rows == N + 2
    assert f"file://{new.path}" in files(table)
    assert len(table.schema().fields) == len(ROWS.column_names) + 2


def test_commits_that_are_beaten_again_and_again(
    catalog: SqlCatalog, table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = catalog.load_table("n.t")
    made = in_between(monkeypatch, lambda: theirs.append(ROWS.slice(0, 1)), times=TRIES)
    with pytest.raises(ps.StoreError, match=rf"n/t: {TRIES} commits were overtaken"):
        ps.index.attach(files(table)[0], table=table)
    assert made[0] == TRIES
    assert on_disk(tmp_path) == {here(one) for one in files(theirs)}
    assert sorted_rows(theirs).num_rows == N + TRIES


def test_several_at_once(catalog: SqlCatalog, table: Table, tmp_path: Path) -> None:
    """Who is beaten by another of ours tries again, and all are exchanged."""
    wanted, before, names = sorted_rows(table), said(table), files(table)

    def one(path: str) -> str:
        own = SqlCatalog("c", **catalog.properties)
        try:
            return ps.index.attach(path, distinct=["text"], table=own.load_table("n.t")).path
        finally:
            own.close()

    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(one, names))
    table.refresh()
    assert sorted(f"file://{path}" for path in made) == files(table)
    assert sorted_rows(table).equals(wanted) and said(table) == before
    assert len(table.snapshots()) == 2 + len(names)


def test_a_file_of_an_older_snapshot(catalog: SqlCatalog, table: Table, tmp_path: Path) -> None:
    """The object is behind, and would still name it."""
    path = files(table)[-1]
    catalog.load_table("n.t").overwrite(ROWS)
    before = on_disk(tmp_path)
    assert path in files(table)
    with pytest.raises(ValueError, match=r"newest snapshot of .* has no such file"):
        ps.index.attach(path, table=table)
    assert on_disk(tmp_path) == before


# -- rows that delete files delete ----------------------------------------------------------------


class DeleteManifest(ManifestWriterV2):
    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


class Deleting(_FastAppendFiles):
    """Puts delete files into a table, as Spark and Flink do, and pyiceberg does not."""

    made: list[DataFile]

    def _manifests(self) -> Any:
        by: dict[int, list[DataFile]] = {}
        for one in self.made:
            by.setdefault(one.spec_id, []).append(one)
        manifests, told = [], self._transaction.table_metadata
        for spec, found in by.items():
            to = DeleteManifest(told.specs()[spec], told.schema(), self.new_manifest_output(), self.snapshot_id, "gzip")  # type: ignore[arg-type]  # fmt: skip
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


@pytest.mark.parametrize("bounded", [None, "exact", "cut"])
def test_rows_deleted_by_position(table: Table, tmp_path: Path, bounded: str | None) -> None:
    """A newer file would bring them back: it is refused, and only for the files that they are of."""
    mine, *others = [one.data_file for one in entries(table)]
    path = mine.file_path.encode()
    bounds = {None: None, "exact": (path, path), "cut": (path[:16], path[:15] + bytes([path[15] + 1]))}[bounded]  # fmt: skip
    # those of a partition may be of each of its files, if the bounds do not tell
    deleted(table, mine, tmp_path / "deletes", bounds=bounds)
    wanted = sorted_rows(table)
    assert wanted.num_rows == N - 1
    before = on_disk(tmp_path)
    for act in (ps.index.attach, ps.index.detach):
        with pytest.raises(ps.UnsupportedError, match=r"are deleted by .*/deletes, and would come back"):  # fmt: skip
            act(mine.file_path, table=table)
    assert on_disk(tmp_path) == before
    for one in others:
        ps.index.attach(one.file_path, table=table)
    assert sorted_rows(table).equals(wanted)


def test_deletes_of_another_file_of_the_partition(table: Table, tmp_path: Path) -> None:
    table.append(ROWS.slice(N - 6))  # one more file in each partition
    made = [one.data_file for one in entries(table)]
    mine = made[0]
    other = next(one for one in made[1:] if one.partition == mine.partition)
    path = other.file_path.encode()
    deleted(table, other, tmp_path / "deletes", bounds=(path, path))
    wanted = sorted_rows(table)
    ps.index.attach(mine.file_path, table=table)
    assert sorted_rows(table).equals(wanted) and wanted.num_rows == N + 5
    with pytest.raises(ps.UnsupportedError, match="are deleted by"):
        ps.index.attach(other.file_path, table=table)


@pytest.mark.parametrize("everywhere", [False, True])
def test_rows_deleted_by_equality(table: Table, tmp_path: Path, everywhere: bool) -> None:
    """pyiceberg reads no such table; its files are exchanged where they are of no concern to the deletes."""
    made = [one.data_file for one in entries(table)]
    mine = next(one for one in made if len(one.partition))
    came = f"{tmp_path}/came.parquet"  # as in an upsert: what it deletes is older
    new = by_hand(table, came, tuple(mine.partition), pq.read_table(here(mine.file_path)).slice(0, 1))  # fmt: skip
    deleted(table, mine, tmp_path / "deletes", DataFileContent.EQUALITY_DELETES, everywhere=everywhere, new=new)  # fmt: skip
    ps.index.attach(came, table=table)
    with pytest.raises(ps.UnsupportedError, match=r"are deleted by .*/deletes"):
        ps.index.attach(mine.file_path, table=table)
    other = next(one for one in made if one.partition != mine.partition)
    if everywhere:
        with pytest.raises(ps.UnsupportedError, match=r"are deleted by .*/deletes"):
            ps.index.attach(other.file_path, table=table)
    else:
        ps.index.attach(other.file_path, table=table)
    # what came after them they do not delete
    known = set(files(table))
    table.append(ROWS.filter(pa.compute.field("k") == "b").slice(0, 1))
    later = next(one for one in files(table) if one not in known)
    assert ps.index.attach(later, table=table).path in map(here, files(table))


@pytest.mark.parametrize("late", [False, True])
def test_rows_that_others_delete_meanwhile(
    catalog: SqlCatalog, table: Table, tmp_path: Path, late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = entries(table)[0].data_file
    done: list[int] = []

    def others() -> None:
        if not done:
            done.append(1)
            deleted(catalog.load_table("n.t"), mine, tmp_path / "deletes")

    if late:
        in_between(monkeypatch, others)
    before = on_disk(tmp_path)
    with pytest.raises(ps.UnsupportedError, match=r"are deleted by .*/deletes"):
        ps.index.attach(
            mine.file_path, table=table, progress=lambda _: None if late else others()
        )  # fmt: skip
    assert done and on_disk(tmp_path) == before
    assert sorted_rows(catalog.load_table("n.t")).num_rows == N - 1


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
    """What it has not got is no AttributeError, and nothing stays behind."""
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


# -- catalogs that fail ---------------------------------------------------------------------------


@pytest.mark.parametrize("made", [False, True])
@pytest.mark.parametrize("error", [OSError("the line is dead"), CommitFailedException("conflict")])
def test_answers_that_do_not_come(
    catalog: SqlCatalog, table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: bool,
    error: Exception,
) -> None:  # fmt: skip
    """Where nobody knows whether the commit was made, the new file stays; where it was, it is no error."""
    path, wanted = files(table)[0], sorted_rows(table)
    before = on_disk(tmp_path)
    real, calls = SqlCatalog.commit_table, [0]

    def commit(self: Any, *given: Any) -> Any:
        calls[0] += 1
        if calls[0] > 1:
            return real(self, *given)
        if made:
            real(self, *given)
        raise error

    monkeypatch.setattr(SqlCatalog, "commit_table", commit)
    sure = made or isinstance(error, CommitFailedException)
    if sure:
        new = ps.index.attach(path, distinct=["text"], table=table)
        assert f"file://{new.path}" in files(table)
        assert len(table.snapshots()) == 3
    else:
        with pytest.raises(ps.StoreError, match=r"nobody knows .*the line is dead.* stays"):
            ps.index.attach(path, distinct=["text"], table=table)
        assert path in files(table)
    now = catalog.load_table("n.t")
    assert now.metadata == table.metadata
    assert sorted_rows(now).equals(wanted)
    assert len(on_disk(tmp_path) - before) == 1
    ps.index.attach(files(now)[1], table=now)  # and it goes on


def test_commits_that_are_forbidden(
    table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyiceberg.exceptions import ForbiddenError

    def commit(*_: Any) -> Any:
        raise ForbiddenError("you may not")

    before = on_disk(tmp_path)
    monkeypatch.setattr(SqlCatalog, "commit_table", commit)
    with pytest.raises(ps.StoreError, match=r"n/t: the commit failed: you may not"):
        ps.index.attach(files(table)[0], table=table)
    assert on_disk(tmp_path) == before


def test_an_interrupt_in_the_commit(
    table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have been made: the new file stays."""
    real = SqlCatalog.commit_table

    def commit(self: Any, *given: Any) -> Any:
        real(self, *given)
        raise KeyboardInterrupt

    wanted = sorted_rows(table)
    monkeypatch.setattr(SqlCatalog, "commit_table", commit)
    with pytest.raises(KeyboardInterrupt):
        ps.index.attach(files(table)[0], table=table)
    assert sorted_rows(table.refresh()).equals(wanted)
    assert len(table.snapshots()) == 3


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
    catalog = SqlCatalog(
        "c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"s3://bucket/{tmp_path.name}",
        **{
            "s3.endpoint": bucket.endpoint, "s3.access-key-id": "any",
            "s3.secret-access-key": SECRET, "s3.region": "us-east-1",
        },
    )  # fmt: skip
    catalog.create_namespace("n")
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
