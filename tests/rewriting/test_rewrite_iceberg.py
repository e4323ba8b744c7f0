"""Tables of Iceberg rewritten by a commit to their catalog: rows, partitions, deletes, history and the commits of others stay."""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.rewriting import iceberg_rewrite, table_output
from support.iceberg_by_hand import Model, as_text

pytest.importorskip("pyiceberg", "0.10")
pytest.importorskip("sqlalchemy")

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFileContent
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform, TruncateTransform
from pyiceberg.types import DoubleType, LongType, NestedField, StringType, TimestampType

from support.iceberg_tables import (
    ROWS,
    N,
    appended,
    by_hand,
    deleted,
    entries,
    files,
    here,
    made_in,
    on_disk,
    sorted_rows,
)

NOON = dt.datetime(2024, 1, 1, 12)


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[SqlCatalog]:
    made = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/a table")
    made.create_namespace("n")
    yield made
    made.close()


def last(table: Table) -> Any:
    found = table.current_snapshot()
    assert found is not None and found.summary is not None
    return found


def test_some_partitions_are_written_anew(catalog: SqlCatalog) -> None:
    """By a date and a text."""
    table = catalog.create_table("n.p", schema=ROWS.schema)
    with table.update_spec() as spec:
        spec.add_field("k", IdentityTransform(), "k")
        spec.add_field("d", IdentityTransform(), "day")
    table.append(ROWS.slice(0, 3_000))
    table.append(ROWS.slice(3_000))
    wanted, old = sorted_rows(table), set(files(table))
    done = ps.rewrite(
        table, in_place=True, sort_by="price", where="d = date '2024-01-02' and k = 'b'"
    )
    assert (done.rows, done.replaced, len(done.files)) == (N // 6, 2, 1)
    now = catalog.load_table("n.p")
    assert sorted_rows(now).equals(wanted) and len(set(files(now)) & old) == len(old) - 2
    assert ps.rewrite(now, in_place=True, where="k is null").replaced == 4
    assert sorted_rows(catalog.load_table("n.p")).equals(wanted)
    with pytest.raises(ps.PageseekError, match="may name partition columns only: d, k"):
        ps.rewrite(now, in_place=True, where="id = 1")


def test_files_of_an_older_partition_spec_cannot_be_chosen(catalog: SqlCatalog) -> None:
    with pytest.raises(ValueError, match="no partition columns that all of its files have"):
        ps.rewrite(made_in(catalog), in_place=True, where="k = 'b'")


@pytest.mark.parametrize("version", [1, 2])
def test_files_of_two_partition_specs(catalog: SqlCatalog, version: int) -> None:
    table = made_in(catalog, version)
    for i in range(3):
        table.append(ROWS.slice(i, 1))
    wanted, before, old = sorted_rows(table), last(table), files(table)
    other = catalog.load_table("n.t")
    done = ps.rewrite(
        table, in_place=True, sort_by="price", page_rows=500, indexes={"lookup": ["text"]}
    )
    assert (done.rows, done.replaced, len(done.files)) == (N + 3, 10, 7)
    for now in (table, catalog.load_table("n.t")):
        assert last(now).snapshot_id == done.version
        assert sorted_rows(now).equals(wanted)
        assert ps.read_table(now).sort_by("id").combine_chunks().equals(wanted)
        assert ps.scan(now, filter="k = 'b'").count_rows() == wanted["k"].to_pylist().count("b")
    assert sorted_rows(other, snapshot_id=before.snapshot_id).equals(wanted)
    assert ps.scan(table, snapshot=before.snapshot_id).count_rows() == N + 3
    assert last(table).summary.operation == Operation.REPLACE
    assert last(table).summary["total-records"] == str(N + 3)
    assert last(table).summary["total-data-files"] == "7"
    assert all(Path(here(one)).exists() for one in old)
    ids = {field.name: field.metadata[b"PARQUET:field_id"] for field in table.schema().as_arrow()}
    partitions = set()
    for one in entries(table):
        data = one.data_file
        partitions.add((data.spec_id, *data.partition))
        found = pq.read_schema(here(data.file_path))
        assert {field.name: field.metadata[b"PARQUET:field_id"] for field in found} == ids
        inner = found.field("s").type.field("u").metadata
        assert inner == {
            b"PARQUET:field_id": str(table.schema().find_field("s.u").field_id).encode()
        }
        prices = pq.read_table(here(data.file_path), partitioning=None)["price"].to_pylist()
        assert prices == sorted(prices) and data.record_count == len(prices)
        low = table.schema().find_field("id").field_id
        least = struct.unpack("<q", data.lower_bounds[low])[0]
        assert least == min(
            pq.read_table(here(data.file_path), partitioning=None)["id"].to_pylist()
        )
        assert (
            data.sort_order_id is None
            and data.file_size_in_bytes == Path(here(data.file_path)).stat().st_size
        )
        assert [i.kind for i in ps.index.list(here(data.file_path)) if i.attached] == ["lookup"]
    assert len(partitions) == 7
    table.append(ROWS.slice(0, 2))
    table.delete("id < 100")
    assert table.scan().to_arrow().num_rows == N - 100


@pytest.mark.parametrize("seed", range(8))
def test_deletes_are_applied(tmp_path: Path, seed: int) -> None:
    model = Model(tmp_path, seed)
    for _ in range(14):
        model.act()
    wanted, before = as_text(model.rows()), model.table.current_snapshot()
    done = ps.rewrite(model.table, in_place=True, sort_by="id", page_rows=50)
    now = model.catalog.load_table("n.t")
    assert as_text(ps.read_table(now).to_pylist()) == wanted
    assert done.rows == len(wanted) and done.replaced == len(model.files)
    assert before is not None
    assert as_text(ps.read_table(now, snapshot=before.snapshot_id).to_pylist()) == wanted
    for source in now.scan().plan_files() if not any(_by_value(now)) else ():
        assert not source.delete_files
    again = ps.rewrite(now, in_place=True, cluster_by=["id", "s"])
    assert again.replaced == len(done.files)
    assert as_text(ps.read_table(now).to_pylist()) == wanted


def _by_value(table: Table) -> Iterator[bool]:
    """Whether files delete rows by their values, which pyiceberg does not know."""
    for one in entries(table):
        yield one.data_file.content == DataFileContent.EQUALITY_DELETES


def test_later_deletes_concern_the_new_files(catalog: SqlCatalog, tmp_path: Path) -> None:
    table = made_in(catalog)
    old = next(one.data_file for one in entries(table) if not len(one.data_file.partition))
    first = pq.read_table(here(old.file_path), columns=["id"])["id"][0].as_py()
    deleted(table, old, tmp_path / "a.parquet", DataFileContent.EQUALITY_DELETES, everywhere=True)
    table.append(ROWS.slice(first, 1))  # it comes back
    assert ps.scan(table).count_rows() == N
    ps.rewrite(table, in_place=True, sort_by="id")
    assert (
        ps.scan(table).count_rows() == N
        and ps.scan(table, filter=f"id = {first}").count_rows() == 1
    )
    new = [one.data_file for one in entries(table) if one.data_file.content == DataFileContent.DATA]
    for i, content in enumerate(
        (DataFileContent.POSITION_DELETES, DataFileContent.EQUALITY_DELETES)
    ):
        deleted(table, new[i], tmp_path / f"{i}.parquet", content)
    assert ps.scan(table).count_rows() == N - 2


PARTITIONS: dict[str, tuple[Any, Any, list[tuple[Any, Any]]]] = {
    "bucket": (StringType(), BucketTransform(4), [("x", 1), ("y", 3), (None, None)]),
    "truncate": (StringType(), TruncateTransform(2), [("abc", "ab"), ("b", "b"), (None, None)]),
    "day": (TimestampType(), DayTransform(), [(NOON, 19723), (None, None)]),
    "text": (StringType(), IdentityTransform(), [("", ""), ("a/%", "a/%"), (None, None)]),
    "zeros": (DoubleType(), IdentityTransform(), [(0.0, 0.0), (-0.0, -0.0)]),
}


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("name", PARTITIONS)
def test_partitions_stay(catalog: SqlCatalog, tmp_path: Path, name: str, version: int) -> None:
    kind, transform, parts = PARTITIONS[name]
    schema = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "p", kind))
    table = catalog.create_table("n.p", schema, properties={"format-version": str(version)})
    with table.update_spec() as change:
        change.add_field("p", transform, "part")
    arrow, made = schema.as_arrow(), []
    for i, (value, part) in enumerate(parts * 3):
        rows = pa.table([[i, 100 + i], pa.array([value] * 2, arrow.field("p").type)], schema=arrow)
        made.append(by_hand(table, f"{tmp_path}/{i}.parquet", (part,), rows))
    appended(table, *made)
    with table.update_spec() as change:  # the files are of an older one then
        change.add_field("id", IdentityTransform(), "more")
    before = {repr(list(one.data_file.partition)) for one in entries(table)}
    wanted = repr(sorted_rows(table).to_pylist())
    done = ps.rewrite(table, in_place=True, sort_by="id")
    assert {repr(list(one.data_file.partition)) for one in entries(table)} == before
    assert len(done.files) == len(before) and done.replaced == len(made)
    assert repr(sorted_rows(table).to_pylist()) == wanted
    assert repr(ps.read_table(table).sort_by("id").to_pylist()) == wanted
    assert not pq.read_schema(done.files[0]).field("id").nullable
    assert all("/data/part-" in one for one in done.files)  # the old ones lie elsewhere


def test_columns_that_were_renamed_added_and_dropped(catalog: SqlCatalog) -> None:
    table = made_in(catalog)
    with table.update_schema() as change:
        change.rename_column("text", "words")
        change.rename_column("s.u", "v")
        change.add_column("new", LongType())
        change.delete_column("real")
    table = catalog.load_table("n.t")
    wanted = sorted_rows(table)
    ps.rewrite(table, in_place=True, sort_by="words", indexes={"lookup": ["words"]})
    assert sorted_rows(table).equals(wanted) and ps.read_table(table).sort_by(
        "id"
    ).combine_chunks().equals(wanted)
    assert pq.read_schema(here(files(table)[0])).names == wanted.schema.names


def in_between(
    monkeypatch: pytest.MonkeyPatch, act: Callable[[], None], name: str = "_look"
) -> None:
    """Let others act once, before the newest snapshot is looked at, or when the commit is about to be sent."""
    room: Any = (
        iceberg_rewrite.IcebergRewrite if name == "_look" else iceberg_rewrite.IcebergCommits
    )
    real, left = getattr(room, name), [act]

    def call(self: Any, *given: Any) -> Any:
        if left:
            left.pop()()
            if name == "_look":
                self._commits.refresh()
        return real(self, *given)

    monkeypatch.setattr(room, name, call)


@pytest.mark.parametrize("name", ["_look", "send"])
def test_what_others_append_meanwhile_stays(catalog: SqlCatalog, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    table = made_in(catalog)
    in_between(monkeypatch, lambda: catalog.load_table("n.t").append(ROWS.slice(0, 5)), name)
    done = ps.rewrite(table, in_place=True, sort_by="id")
    now = catalog.load_table("n.t")
    assert done.replaced == 7 and last(now).snapshot_id == done.version
    assert ps.scan(now).count_rows() == N + 5 == now.scan().to_arrow().num_rows
    used = {one.manifest_path for s in now.snapshots() for one in s.manifests(now.io)}
    used |= {s.manifest_list for s in now.snapshots()}
    left = on_disk(tmp_path, ".avro") - {here(one) for one in used}
    assert len(left) <= 3  # of the snapshot in the middle of two specs


@pytest.mark.parametrize("name", ["_look", "send"])
@pytest.mark.parametrize("change", ["rows", "file"])
def test_a_commit_that_deletes_rows_is_not_lost(catalog: SqlCatalog, tmp_path: Path, change: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    table = made_in(catalog)
    other = catalog.load_table("n.t")
    of = entries(other)[0].data_file

    def act() -> None:
        if change == "rows":
            deleted(other, of, tmp_path / "d.parquet", bounds=(of.file_path.encode(),) * 2)
        else:
            other.delete("k = 'b'")

    in_between(monkeypatch, act, name)
    with pytest.raises(ps.FileChangedError, match=r"meanwhile.*nothing was changed; begin again"):
        ps.rewrite(table, in_place=True, sort_by="id")
    monkeypatch.undo()
    now = catalog.load_table("n.t")
    rows = ps.scan(now).count_rows()
    assert rows < N
    named = {here(one.data_file.file_path) for s in now.snapshots() for m in s.manifests(now.io) for one in m.fetch_manifest_entry(now.io, discard_deleted=False)}  # fmt: skip
    assert {one for one in on_disk(tmp_path) if "/data/" in one} <= named
    assert ps.rewrite(now, in_place=True, sort_by="id").rows == rows == ps.scan(now).count_rows()


@pytest.mark.parametrize("name", ["_look", "send"])
@pytest.mark.parametrize("kind", [DataFileContent.POSITION_DELETES, DataFileContent.EQUALITY_DELETES])  # fmt: skip
@pytest.mark.parametrize("partition", ["x y/%=ü", "b"])
def test_deletes_in_other_partitions_are_no_conflict(catalog: SqlCatalog, tmp_path: Path, name: str, kind: DataFileContent, partition: str, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    table = catalog.create_table("n.p", schema=ROWS.schema)
    with table.update_spec() as spec:
        spec.add_field("k", IdentityTransform(), "k")
    table.append(ROWS)
    other = catalog.load_table("n.p")
    of = next(e.data_file for e in entries(other) if e.data_file.partition[0] == partition)
    in_between(monkeypatch, lambda: deleted(other, of, tmp_path / "d.parquet", kind), name)
    if partition == "b":
        with pytest.raises(ps.FileChangedError, match="rows were deleted meanwhile"):
            ps.rewrite(table, in_place=True, sort_by="id", where="k = 'b'")
    else:
        assert ps.rewrite(table, in_place=True, sort_by="id", where="k = 'b'").replaced == 1
    now = catalog.load_table("n.p")
    assert ps.scan(now).count_rows() == N - 1
    assert ps.scan(now, filter=f"k = '{partition}'").count_rows() == ROWS["k"].to_pylist().count(partition) - 1  # fmt: skip


def test_a_file_that_was_taken_out_and_put_in_again(catalog: SqlCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """Deletes of before do not concern it any more: its rows are back."""
    table = made_in(catalog)
    of = next(one.data_file for one in entries(table) if "k=b" in one.data_file.file_path)
    deleted(table, of, tmp_path / "d.parquet", DataFileContent.EQUALITY_DELETES)
    assert ps.scan(table).count_rows() == N - 1

    def act() -> None:
        other = catalog.load_table("n.t")
        change = other.transaction()
        update = change.update_snapshot().overwrite()
        update.delete_data_file(of)
        update.commit()
        change.commit_transaction()
        appended(catalog.load_table("n.t"), of)

    in_between(monkeypatch, act)
    with pytest.raises(ps.FileChangedError, match=r"taken .* out of it meanwhile"):
        ps.rewrite(table, in_place=True, sort_by="id")
    assert ps.scan(catalog.load_table("n.t")).count_rows() == N


def test_a_wrong_file_is_never_committed(catalog: SqlCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    table = made_in(catalog)
    before, snapshot = on_disk(tmp_path), last(table)
    real = table_output.renamed
    monkeypatch.setattr(table_output, "renamed", lambda rows, schema: real(rows, schema)[:-1])
    with pytest.raises(ps.RewriteError, match="rows in place of"):
        ps.rewrite(table, in_place=True, sort_by="id")
    monkeypatch.undo()

    def fails(*given: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(iceberg_rewrite.IcebergRewrite, "commit", fails)
    with pytest.raises(KeyboardInterrupt):
        ps.rewrite(table, in_place=True, sort_by="id")
    assert on_disk(tmp_path) == before and last(catalog.load_table("n.t")) == snapshot


def test_what_is_refused(catalog: SqlCatalog, tmp_path: Path) -> None:
    table = made_in(catalog)
    folder = here(table.metadata.location)
    with pytest.raises(ps.UnsupportedError, match=r"Iceberg table .*give the table that it loads"):
        ps.rewrite(folder, in_place=True)
    with pytest.raises(ps.UnsupportedError, match=r"give the table that it loads"):
        ps.rewrite(table.scan(), in_place=True)
    with pytest.raises(ValueError, match="in_place=True rewrites the current version"):
        ps.rewrite(table, in_place=True, snapshot=last(table).snapshot_id)
    again = next(one.data_file for one in entries(table) if "k=b" in one.data_file.file_path)
    appended(table, again)
    with pytest.raises(ps.UnsupportedError, match="has a file several times"):
        ps.rewrite(table, in_place=True)
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "p", DoubleType()))
    doubles = catalog.create_table("n.d", schema)
    with doubles.update_spec() as change:
        change.add_field("p", IdentityTransform(), "part")
    rows = pa.table({"id": [1], "p": [0.1]})
    appended(doubles, by_hand(doubles, f"{tmp_path}/0.parquet", (0.1,), rows))
    from pageseek.index.iceberg_commits import reads_doubles

    if not reads_doubles():
        with pytest.raises(ps.UnsupportedError, match="a double, and this pyiceberg reads doubles"):
            ps.rewrite(doubles, in_place=True)
    empty = catalog.create_table("n.e", schema)
    assert ps.rewrite(empty, in_place=True, sort_by="id").version is None
