"""Indexes attached to files of Iceberg tables with concurrent writers: their changes stay, and deleted rows do not return."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.index.table_target import TRIES

pytest.importorskip("pyiceberg", "0.10")
pytest.importorskip("sqlalchemy")

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.manifest import (  # fmt: skip
    DataFileContent,
)
from pyiceberg.table import Table
from pyiceberg.transforms import (  # fmt: skip
    IdentityTransform,
)
from pyiceberg.types import (  # fmt: skip
    LongType,
)

from support.iceberg_tables import (
    ROWS,
    N,
    by_hand,
    deleted,
    entries,
    files,
    here,
    in_between,
    on_disk,
    said,
    sorted_rows,
)

# -- concurrent writers ---------------------------------------------------------------------------


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
    # none of our files is left, all of theirs are; no unreferenced manifest is left
    assert on_disk(tmp_path) - before == {here(one) for one in files(now)} - before
    named = {one.manifest_list for one in now.snapshots()}
    named |= {m.manifest_path for one in now.snapshots() for m in one.manifests(now.io)}
    left = {f"file://{one}" for one in on_disk(tmp_path, ".avro")} - named
    assert not left


def test_commits_of_others_that_do_no_harm(
    catalog: SqlCatalog, table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that are added, partitions and columns that change: the commit is retried."""
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
    """Concurrent commits of our own are retried, and all files are replaced."""
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


# -- catalogs that fail ---------------------------------------------------------------------------


@pytest.mark.parametrize("made", [False, True])
@pytest.mark.parametrize("error", [OSError("the line is dead"), CommitFailedException("conflict")])
def test_answers_that_do_not_come(
    catalog: SqlCatalog, table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: bool,
    error: Exception,
) -> None:  # fmt: skip
    """If the outcome of the commit is unknown, the new file stays; if the commit succeeded, there is no error."""
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
