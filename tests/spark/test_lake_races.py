"""Commits of `write` to tables that another writer's commits overtake: between the look at the table and our commit."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pageseek.base.errors import FileChangedError
from pageseek.index.delta_statistics import stated
from pageseek.spark.writing.commit import begin
from pageseek.spark.writing.destination import target_of
from pageseek.spark.writing.targets import Target
from pageseek.spark.writing.write_task import StagedReport, folder_name
from support.lake_tables import KINDS, Made

SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.string())])


def rows(ids: Sequence[int], k: str | None = "a") -> pa.Table:
    return pa.table({"id": list(ids), "k": pa.array([k] * len(ids))}, SCHEMA)


def publish(
    target: Target, mode: str, *, dynamic: bool = False, ids: Sequence[int] = (100,)
) -> int | None:
    """As `write` does when its tasks are done: a file for the partition "a" of a table that has partitions."""
    with closing(begin(target.folder)) as staging:
        partition = ["a"] if target.partitions(()) else []
        data = rows(ids)
        if partition and not target.keeps:
            data = data.drop_columns(["k"])
        staged = f"{staging.name}/0.parquet"
        path = os.path.join(target.folder.path, staged)
        pq.write_table(data, path, store_schema=False)
        said = stated(pq.read_metadata(path)) if target.states else None
        name = "/".join([*map(folder_name, ["k"], partition), f"{staging.job}.parquet"])
        report = StagedReport(
            0, "0", staged, name, len(ids), os.path.getsize(path), said, json.dumps(partition)
        )
        return target.publish(staging, [report], mode, dynamic)


@pytest.fixture
def overtaken(monkeypatch: pytest.MonkeyPatch) -> Callable[[Made, Callable[[], None]], list[int]]:
    """Makes the next commits of `write` come after another's. Returns the numbers of those that were tried."""

    def arranged(made: Made, other: Callable[[], None], times: int = 1) -> list[int]:
        owner, name = type(made.table), "create_write_transaction"
        if made.kind == "iceberg":
            owner, name = type(made.table.transaction()), "commit_transaction"
        real = getattr(owner, name)
        tried: list[int] = []
        own = False

        def commit(self: Any, *args: Any, **more: Any) -> Any:
            nonlocal own
            if own:
                return real(self, *args, **more)
            tried.append(len(tried))
            if len(tried) <= times:
                own = True
                try:
                    other()
                finally:
                    own = False
            return real(self, *args, **more)

        monkeypatch.setattr(owner, name, commit)
        return tried

    return arranged


def ids(made: Made) -> list[int]:
    return sorted(row["id"] for row in made.rows())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("mode", "first", "removed", "after", "tries"),
    [
        ("append", [1, 2], 0, [1, 2, 50, 100], 2),
        ("overwrite", [1, 2], 2, [100], 2),
        ("overwrite", [], 1, [100], 2),
        ("error", [], FileExistsError, [50], 1),
        ("ignore", [], None, [50], 1),
    ],
)
def test_a_commit_that_another_has_overtaken_is_made_anew(
    tmp_path: Path, overtaken: Any, kind: str, mode: str, first: list[int], removed: Any, after: list[int], tries: int,
):  # fmt: skip
    made = Made(kind, tmp_path, SCHEMA, [])
    if first:
        made.append(rows(first))
    target = target_of(made.fresh(), None)
    before = made.files()
    tried = overtaken(made, lambda: made.append(rows([50])))
    if removed is FileExistsError:
        with pytest.raises(FileExistsError, match="meanwhile; nothing was written"):
            publish(target, mode)
    else:
        assert publish(target, mode) == removed
    assert ids(made) == after
    assert len(tried) == tries
    assert len(made.files() - before) == 1 + (100 in after)


@pytest.mark.parametrize("kind", KINDS)
def test_what_came_meanwhile_into_the_partition_that_was_written_goes(
    tmp_path: Path, overtaken: Any, kind: str
):
    made = Made(kind, tmp_path, SCHEMA, ["k"])
    made.append(rows([1, 2]))
    made.append(rows([3], None))
    made.append(rows([4], "b"))
    target = target_of(made.fresh(), None)

    def other() -> None:
        made.append(rows([50]))
        made.append(rows([51], "b"))

    overtaken(made, other)
    assert publish(target, "overwrite", dynamic=True) == 2
    assert ids(made) == [3, 4, 51, 100]


def test_the_table_of_the_caller_is_of_the_new_version_and_has_its_own_settings(tmp_path: Path):
    made = Made("iceberg", tmp_path, SCHEMA, [])
    table = made.fresh()
    publish(target_of(table, None), "append")
    publish(target_of(table, None), "append", ids=[101])
    assert len(table.snapshots()) == 2
    for one in (table, made.fresh()):
        assert not any(name.startswith("commit.") for name in one.properties)


@pytest.mark.parametrize("kind", KINDS)
def test_columns_that_change_meanwhile_end_the_write(tmp_path: Path, kind: str):
    made = Made(kind, tmp_path, SCHEMA, [])
    target = target_of(made.fresh(), None)
    if kind == "delta":
        from deltalake import Field
        from deltalake.schema import PrimitiveType

        made.fresh().alter.add_columns([Field("new", PrimitiveType("long"))])
    else:
        from pyiceberg.types import LongType

        with made.fresh().update_schema() as update:
            update.add_column("new", LongType())
    with pytest.raises(FileChangedError, match="changed meanwhile; write again"):
        publish(target, "append")
    assert made.files() == set()


def test_a_commit_whose_answer_was_lost_is_not_made_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    made = Made("iceberg", tmp_path, SCHEMA, [])
    from pyiceberg.exceptions import CommitFailedException

    target = target_of(made.fresh(), None)
    real = type(made.table)._do_commit

    def lost(self: Any, *args: Any, **more: Any) -> None:
        real(self, *args, **more)
        monkeypatch.setattr(type(made.table), "_do_commit", real)
        raise CommitFailedException("no answer")

    monkeypatch.setattr(type(made.table), "_do_commit", lost)
    assert publish(target, "append") == 0
    assert ids(made) == [100]
    assert len(made.fresh().snapshots()) == 1
