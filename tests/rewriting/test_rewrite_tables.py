"""Tables of Delta Lake rewritten by a commit of their own: rows, partitions, history and the commits of others stay."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from interop.test_delta_by_hand import as_text
from pageseek.cli.main import main
from pageseek.rewriting import delta_rewrite, table_output
from support.delta_by_hand import KINDS
from support.delta_by_hand import DeltaTable as ByHand

deltalake = pytest.importorskip("deltalake", "1.6")
N = 1_200
ROWS = pa.table(
    {
        "id": pa.array([i * 7 % N for i in range(N)]),
        "k": pa.array([("x y/%=ü", "b", None)[i % 3] for i in range(N)]),
        "text": pa.array([f"n{i}" if i % 5 else None for i in range(N)]),
        "s": pa.array([{"u": i if i % 5 else None} for i in range(N)]),
    }
)


@pytest.fixture
def root(tmp_path: Path) -> str:
    """Small files of three partitions, without a few rows."""
    made = str(tmp_path / "a table")
    for i in range(4):
        deltalake.write_deltalake(made, ROWS.slice(i * 300, 300), mode="append", partition_by=["k"])
    deltalake.DeltaTable(made).delete("id < 10")
    return made


def rows(source: Any, **of: Any) -> pa.Table:
    return ps.read_table(source, **of).sort_by("id").combine_chunks()


def actions(root: str, version: int) -> list[dict[str, Any]]:
    path = os.path.join(root, "_delta_log", f"{version:020}.json")
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def count(root: str) -> int:
    """Files of the newest version."""
    return len(deltalake.DeltaTable(root).file_uris())


def data_files(root: str) -> set[str]:
    return {str(one) for one in Path(root).rglob("*.parquet") if "_delta_log" not in str(one)}


def test_small_files_become_one_of_each_partition(root: str) -> None:
    table = deltalake.DeltaTable(root)
    before, old, files, n = rows(root), table.version(), data_files(root), count(root)
    done = ps.rewrite(
        root, in_place=True, sort_by="id", page_rows=100, indexes={"lookup": ["text"]}
    )
    assert (done.rows, done.replaced, len(done.files), done.version) == (1_190, n, 3, old + 1)
    assert f"{n} files -> 3 files, in version 5 of the table" in str(done)
    assert rows(root).equals(before) and rows(root, version=old).equals(before)
    now = deltalake.DeltaTable(root)
    assert now.to_pyarrow_table().sort_by("id").select(before.column_names).equals(before)
    assert deltalake.DeltaTable(root, version=old).to_pyarrow_table().num_rows == 1_190
    assert files < data_files(root) and len(data_files(root)) == len(files) + 3
    for one in done.files:
        assert os.path.basename(os.path.dirname(one)).startswith("k=")
        found = pq.read_table(one, partitioning=None)
        assert found.column_names == ["id", "text", "s"]
        assert found["id"].to_pylist() == sorted(found["id"].to_pylist())
        assert [i.kind for i in ps.index.list(one) if i.attached] == ["lookup"]
    assert {one.path for one in done.indexes} == set(done.files)
    told = pa.table(now.get_add_actions(flatten=True)).to_pydict()
    assert sum(told["num_records"]) == 1_190 and min(told["min.id"]) == 10
    assert sum(told["null_count.text"]) == before["text"].null_count
    assert set(told["partition.k"]) == {"x y/%=ü", "b", None}
    logged = actions(root, old + 1)
    assert [one["commitInfo"]["operation"] for one in logged if "commitInfo" in one] == ["OPTIMIZE"]
    moved = [one for action in logged for kind, one in action.items() if kind != "commitInfo"]
    assert len(moved) == n + 3 and not any(one["dataChange"] for one in moved)


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("k = 'b'", {"b"}),
        (ps.col("k").is_null(), {None}),
        ("k <> 'b'", {"x y/%=ü"}),
        ([("k", "in", ["b", "x y/%=ü"])], {"b", "x y/%=ü"}),
        ("k = 'nobody'", set()),
    ],
)
def test_some_partitions_are_written_anew(root: str, where: Any, kept: set[str | None]) -> None:
    before, old = rows(root), deltalake.DeltaTable(root).version()
    told = pa.table(deltalake.DeltaTable(root).get_add_actions(flatten=True)).to_pylist()
    ours = {one["path"] for one in told if one["partition.k"] in kept}
    done = ps.rewrite(root, in_place=True, sort_by="id", where=where)
    assert rows(root).equals(before)
    assert (len(done.files), done.replaced) == (len(kept), len(ours))
    if not kept:
        assert deltalake.DeltaTable(root).version() == old and done.version is None
        assert str(done) == "no file: no partition passes where=\"k = 'nobody'\""
        return
    logged = actions(root, old + 1)
    assert {one["remove"]["path"] for one in logged if "remove" in one} == ours
    assert {one["add"]["partitionValues"]["k"] for one in logged if "add" in one} == kept
    (info,) = (one["commitInfo"] for one in logged if "commitInfo" in one)
    assert json.loads(info["operationParameters"]["predicate"]) == [str(where)]
    assert info["operationMetrics"]["numRemovedFiles"] == str(len(ours))


def test_a_commit_to_another_partition_stays(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A delete in a partition that is not rewritten is no conflict; one in a partition that is rewritten is."""
    run = delta_rewrite.DeltaRewrite.commit
    for where, ends in (("k = 'b'", None), ("k is null", ps.FileChangedError)):

        def after_a_delete(self: Any, *given: Any) -> int:
            deltalake.DeltaTable(root).delete("k is null and id < 300")
            return run(self, *given)

        deltalake.write_deltalake(root, ROWS.slice(0, 300), mode="append")
        monkeypatch.setattr(delta_rewrite.DeltaRewrite, "commit", after_a_delete)
        if ends is None:
            wanted = rows(root).filter(~((pc.field("k").is_null()) & (pc.field("id") < 300)))
            ps.rewrite(root, in_place=True, sort_by="id", where=where)
            assert rows(root).equals(wanted.combine_chunks())
        else:
            with pytest.raises(ends, match="begin again"):
                ps.rewrite(root, in_place=True, sort_by="id", where=where)


def test_partitions_are_chosen_by_partition_columns(root: str, tmp_path: Path) -> None:
    with pytest.raises(ps.PageseekError, match=r"may name partition columns only: k \(no column"):
        ps.rewrite(root, in_place=True, where="id = 1")
    value = "it has a parameter: write its value into the filter$"
    for where, told in (
        ("k = ?", f"where='k = \\?': {value}"),
        (ps.col("k") == ps.param("a"), f"where=k = :a: {value}"),
        ("k = ", "where='k = ': filter: write a column or a value"),
        ("k = 5", "where='k = 5': column 'k' of type string cannot be compared with 5"),
        (7, "where=7: a filter of type int is not supported"),
    ):
        with pytest.raises(ps.PredicateError, match=f"^Delta table {re.escape(root)}: {told}"):
            ps.rewrite(root, in_place=True, where=where)
    plain = str(tmp_path / "plain")
    deltalake.write_deltalake(plain, ROWS)
    with pytest.raises(ValueError, match="has no partition columns that all"):
        ps.rewrite(plain, in_place=True, where="k = 'b'")
    with pytest.raises(ValueError, match=r"where= chooses partitions of a table"):
        ps.rewrite(root, tmp_path / "out.parquet", where="k = 'b'")
    version = deltalake.DeltaTable(root).version()
    assert main(["rewrite", root, "--in-place", "--where", "k = 'b'"]) == 0
    assert deltalake.DeltaTable(root).version() == version + 1


def test_other_engines_read_the_same(root: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    before = rows(root)
    ps.rewrite(root, in_place=True, cluster_by=["id", "text"])
    now = deltalake.DeltaTable(root).to_pyarrow_dataset()  # noqa: F841 - duckdb finds it by name
    found = duckdb.sql("select id, text from now order by id").fetchall()
    assert found == [(a["id"], a["text"]) for a in before.to_pylist()]


@pytest.mark.parametrize("seed", range(9))
def test_mapped_columns_and_deletion_vectors(tmp_path: Path, seed: int) -> None:
    rng, mode = random.Random(seed), ("none", "name", "id")[seed % 3]
    kinds = {f"c{i}": kind for i, kind in enumerate(rng.sample(list(KINDS), 5))}
    partitions = rng.sample(list(kinds), rng.randrange(3))
    root = tmp_path / "t"
    table = ByHand(root, mode, kinds, partitions, rng)
    for _ in range(4):
        table.add(rng.randrange(1, 80))
    for _ in range(6):
        rng.choice([table.delete, table.rename, table.delete, lambda: table.add(30)])()
    table.delete()
    old = table._version - 1
    wanted, schema = as_text(table.rows()), ps.scan(root).schema
    name = next(one for one in kinds if one not in partitions)
    done = ps.rewrite(root, in_place=True, sort_by=name)
    assert as_text(ps.read_table(root).to_pylist()) == wanted and ps.scan(root).schema == schema
    assert as_text(ps.read_table(root, version=old).to_pylist()) == wanted
    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(str(root)))
    theirs = pa.table(query.execute("select count(*) as n from t").read_all())
    assert theirs["n"].to_pylist() == [len(wanted)]
    logged = actions(str(root), old + 1)
    gone = [one["remove"] for one in logged if "remove" in one]
    last: dict[str, Any] = {}
    for version in range(old + 1):
        for added in (one["add"] for one in actions(str(root), version) if "add" in one):
            last[added["path"]] = added.get("deletionVector")
    assert {one["path"]: one.get("deletionVector") for one in gone} == last and any(last.values())
    columns = {p: i for name, (p, i) in table._columns.items() if name not in partitions}
    for path in done.files:
        found = pq.read_schema(path)
        assert set(found.names) == set(columns)
        ids = {f.name: int((f.metadata or {}).get(b"PARQUET:field_id", 0)) for f in found}
        assert mode == "none" or ids == columns
        with pq.ParquetFile(path) as file:
            first = file.metadata.row_group(0).sorting_columns[0].column_index
            assert file.schema.column(first).path == table._columns[name][0]


def test_indexes_of_mapped_columns_are_named_as_the_table_names_them(tmp_path: Path) -> None:
    root = tmp_path / "t"
    table = ByHand(root, "name", {"a": "long", "b": "string"}, [], random.Random(1))
    table.add(50)
    done = ps.rewrite(root, in_place=True, indexes={"lookup": ["a"], "bloom": {"b": 0.01}})
    assert {key for one in done.indexes for key in one.added} >= {
        ("lookup", "col-1"),
        ("bloom", "col-2"),
    }
    with pytest.raises(ps.PageseekError, match="'c'"):
        ps.rewrite(root, in_place=True, indexes={"lookup": ["c"]})


def test_new_files_stay_in_the_folder_of_the_table(tmp_path: Path) -> None:
    """A path in the log may lead out of it, to where another table may lie."""
    root = tmp_path / "t"
    table = ByHand(root, "none", {"a": "long"}, [], random.Random(1))
    table.add(20)
    (path,) = data_files(str(root))
    os.rename(path, tmp_path / "other.parquet")
    log = root / "_delta_log" / f"{1:020}.json"
    added = json.loads(log.read_text())
    added["add"]["path"] = "../other.parquet"
    log.write_text(json.dumps(added) + "\n")
    before = ps.read_table(root)
    done = ps.rewrite(root, in_place=True)
    assert os.path.dirname(done.files[0]) == str(root) and ps.read_table(root).equals(before)


def test_files_have_about_the_size_that_is_wanted(tmp_path: Path) -> None:
    root = str(tmp_path / "t")
    table = pa.table({"id": range(40_000), "x": [os.urandom(20) for _ in range(40_000)]})
    for i in range(8):
        deltalake.write_deltalake(root, table.slice(i * 5_000, 5_000), mode="append")
    done = ps.rewrite(root, in_place=True, sort_by="id", file_bytes=300_000)
    sizes = [os.path.getsize(one) for one in done.files]
    assert 3 <= len(sizes) <= 5 and all(200_000 < one < 450_000 for one in sizes[:-1])
    done = ps.rewrite(root, in_place=True, file_rows=10_000)
    assert [pq.read_metadata(one).num_rows for one in done.files] == [10_000] * 4
    assert rows(root)["id"].to_pylist() == list(range(40_000))
    out = ps.rewrite(root, tmp_path / "folder", file_bytes=300_000, sort_by="id")
    assert 3 <= len(out.files) <= 5
    with pytest.raises(ValueError, match="give one of them"):
        ps.rewrite(root, in_place=True, file_rows=1, file_bytes=1)


def in_between(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None], times: int = 1) -> None:
    """Let others act after the new files are there, each time before the log is looked at."""
    real, done = delta_rewrite.DeltaRewrite._look, [0]

    def look(self: Any, seen: int) -> int:
        done[0] += 1
        if done[0] <= times:
            act()
        return real(self, seen)

    monkeypatch.setattr(delta_rewrite.DeltaRewrite, "_look", look)


def test_what_others_append_meanwhile_stays(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before, n = rows(root), count(root)
    more = ROWS.slice(0, 20)
    in_between(monkeypatch, lambda: deltalake.write_deltalake(root, more, mode="append"))
    done = ps.rewrite(root, in_place=True, sort_by="id")
    assert done.version == 6 and done.replaced == n
    wanted = [*before.to_pylist(), *more.to_pylist()]
    assert sorted(map(repr, rows(root).to_pylist())) == sorted(map(repr, wanted))


def test_two_writers_never_get_one_version(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = rows(root)
    real, left = delta_rewrite.DeltaRewrite._create, [2]

    def create(self: Any, *given: Any) -> None:
        if left[0]:  # between the look and the commit
            left[0] -= 1
            deltalake.write_deltalake(root, ROWS.slice(0, 1), mode="append")
        real(self, *given)

    monkeypatch.setattr(delta_rewrite.DeltaRewrite, "_create", create)
    done = ps.rewrite(root, in_place=True)
    assert done.version == 7 and rows(root).num_rows == before.num_rows + 2
    left[0] = 100
    files = data_files(root)
    with pytest.raises(ps.StoreError, match="10 commits were overtaken"):
        ps.rewrite(root, in_place=True)
    monkeypatch.undo()
    assert rows(root).num_rows == before.num_rows + 12
    assert len(data_files(root) - files) == 10


def test_a_filesystem_without_hard_links(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rename would replace the commit of another writer."""

    def fails(*given: object, **more: object) -> None:
        raise PermissionError(1, "no links here")

    before, files = rows(root), set(Path(root).rglob("*"))
    monkeypatch.setattr(os, "link", fails)
    with pytest.raises(
        ps.UnsupportedError, match=r"00005\.json: this filesystem has no hard links"
    ):
        ps.rewrite(root, in_place=True, sort_by="id")
    monkeypatch.undo()
    assert set(Path(root).rglob("*")) == files and rows(root).equals(before)


@pytest.mark.parametrize("change", ["delete", "overwrite", "columns", "vector"])
def test_a_commit_that_changes_our_files_is_not_lost(root: str, change: str, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    table = deltalake.DeltaTable(root)

    def act() -> None:
        if change == "delete":
            table.delete("id < 100")
        elif change == "overwrite":
            deltalake.write_deltalake(root, ROWS.slice(0, 5), mode="overwrite")
        elif change == "columns":
            table.alter.add_columns(
                [deltalake.Field("new", deltalake.schema.PrimitiveType("long"))]
            )
        else:
            found = [one["add"] for i in range(5) for one in actions(root, i) if "add" in one]
            added = found[-1]
            path = os.path.join(root, "_delta_log", f"{5:020}.json")
            Path(path).write_text(json.dumps({"remove": {**added, "dataChange": True}}) + "\n")

    kept: list[set[str]] = []

    def and_count() -> None:
        before = data_files(root)
        act()
        kept.append(data_files(root) - before)

    files = data_files(root)
    in_between(monkeypatch, and_count)
    with pytest.raises(ps.FileChangedError, match="meanwhile; nothing was changed; begin again"):
        ps.rewrite(root, in_place=True, sort_by="id")
    assert data_files(root) == files | kept[0]
    monkeypatch.undo()
    found = rows(root)
    assert ps.rewrite(root, in_place=True, sort_by="id").rows == found.num_rows
    assert rows(root).equals(found)


def test_a_log_that_was_cleaned_meanwhile(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def act() -> None:
        for i in range(2):
            deltalake.write_deltalake(root, ROWS.slice(i, 1), mode="append")
        deltalake.DeltaTable(root).create_checkpoint()
        os.unlink(os.path.join(root, "_delta_log", f"{5:020}.json"))

    in_between(monkeypatch, act)
    with pytest.raises(ps.FileChangedError, match="cleaned of version 5"):
        ps.rewrite(root, in_place=True)


def test_a_table_that_begins_with_a_checkpoint(root: str) -> None:
    deltalake.DeltaTable(root).create_checkpoint()
    for one in Path(root, "_delta_log").glob("*.json"):
        if one.name != f"{4:020}.json":
            one.unlink()
    before, n = rows(root), count(root)
    done = ps.rewrite(root, in_place=True, sort_by="id")
    assert done.replaced == n and rows(root).equals(before)
    told = [one["remove"]["partitionValues"] for one in actions(root, 5) if "remove" in one]
    assert {one["k"] for one in told} == {"x y/%=ü", "b", None}


@pytest.mark.parametrize(
    "feature", ["rowTracking", "clustering", "inCommitTimestamp", "somethingNew"]
)
def test_features_that_are_not_known_are_refused(tmp_path: Path, feature: str) -> None:
    root = tmp_path / "t"
    table = ByHand(root, "none", {"a": "long"}, [], random.Random(1))
    table.add(10)
    path = root / "_delta_log" / f"{0:020}.json"
    path.write_text(
        path.read_text().replace('"writerFeatures": [', f'"writerFeatures": ["{feature}", ')
    )
    files = data_files(str(root))
    with pytest.raises(
        ps.UnsupportedError, match=f"writers have to know {feature}: drop the feature"
    ):
        ps.rewrite(root, in_place=True)
    assert data_files(str(root)) == files


def test_a_wrong_file_is_never_committed(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    files = data_files(root)
    real = table_output.renamed
    monkeypatch.setattr(table_output, "renamed", lambda table, schema: real(table, schema)[:-1])
    with pytest.raises(ps.RewriteError, match="rows in place of"):
        ps.rewrite(root, in_place=True, sort_by="id")
    assert data_files(root) == files and deltalake.DeltaTable(root).version() == 4


@pytest.mark.parametrize("at", ["commit", "_create"])
def test_a_killed_process_leaves_files_that_nobody_reads(root: str, at: str) -> None:
    before, n = rows(root), count(root)
    code = (
        "import os, sys, pageseek as ps\n"
        "from pageseek.rewriting.delta_rewrite import DeltaRewrite\n"
        f"DeltaRewrite.{at} = lambda *given: os._exit(9)\n"
        "ps.rewrite(sys.argv[1], in_place=True, sort_by='id')\n"
    )
    files = data_files(root)
    assert (
        subprocess.run([sys.executable, "-c", code, root], timeout=120, check=False).returncode == 9
    )
    assert len(data_files(root) - files) == 3 and rows(root).equals(before)
    assert ps.rewrite(root, in_place=True, sort_by="id").replaced == n
    assert rows(root).equals(before)


def test_objects_and_other_arguments(root: str, tmp_path: Path) -> None:
    table = deltalake.DeltaTable(root)
    assert ps.rewrite(table, in_place=True, sort_by="id").version == table.version() == 5
    with pytest.raises(ValueError, match="'k' is a partition"):
        ps.rewrite(root, in_place=True, sort_by=["k", "id"])
    with pytest.raises(ValueError, match=r"version=.*in_place=True rewrites the current version"):
        ps.rewrite(root, in_place=True, version=2)
    with pytest.raises(ValueError, match="output=PATH and in_place=True"):
        ps.rewrite(root, tmp_path / "x", in_place=True)
    with pytest.raises(ValueError, match="overwrite=True goes with output=PATH"):
        ps.rewrite(root, in_place=True, overwrite=True)
    with pytest.raises(ps.PredicateError, match="no column 'idd'"):
        ps.rewrite(root, in_place=True, sort_by="idd")
    old = deltalake.DeltaTable(root, version=3)
    with pytest.raises(ps.FileChangedError):
        ps.rewrite(old, in_place=True)
    assert deltalake.DeltaTable(root).version() == 5


def test_tables_without_rows(tmp_path: Path) -> None:
    empty = str(tmp_path / "empty")
    deltalake.DeltaTable.create(empty, ROWS.schema)
    done = ps.rewrite(empty, in_place=True, sort_by="id")
    assert (done.files, done.version) == ([], None) and "no file: 0 rows" in str(done)
    table = ByHand(tmp_path / "t", "none", {"a": "long"}, [], random.Random(1))
    table.add(1)
    table.delete()
    assert not table.rows()
    done = ps.rewrite(tmp_path / "t", in_place=True)
    assert (done.files, done.replaced, ps.scan(tmp_path / "t").count_rows()) == ([], 1, 0)
    assert ps.scan(tmp_path / "t").schema.names == ["a"]


def test_a_store(root: str) -> None:
    obstore = pytest.importorskip("obstore.store", reason="pip install 'pageseek[obstore]'")
    before, store = rows(root), obstore.MemoryStore()
    for one in Path(root).rglob("*"):
        if one.is_file():
            store.put(f"t/{one.relative_to(root)}", one.read_bytes())
    done = ps.rewrite((store, "t"), in_place=True, sort_by="id", indexes={"lookup": ["id"]})
    assert done.version == 5 and len(done.files) == 3
    assert rows((store, "t")).equals(before) and rows((store, "t"), version=4).equals(before)
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    memory.put(root, "/other", recursive=True)
    with pytest.raises(ps.UnsupportedError, match="two writers may both write a version"):
        ps.rewrite((memory, "/other"), in_place=True)


def test_a_table_that_is_locked_by_a_service(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    obstore = pytest.importorskip("obstore.store", reason="pip install 'pageseek[obstore]'")
    store = obstore.MemoryStore()
    for one in Path(root).rglob("*"):
        if one.is_file():
            store.put(f"t/{one.relative_to(root)}", one.read_bytes())
    monkeypatch.setenv("AWS_S3_LOCKING_PROVIDER", "dynamodb")
    with pytest.raises(ps.UnsupportedError, match="lock it by dynamodb"):
        ps.rewrite((store, "t"), in_place=True)


def test_the_command(root: str, capsys: pytest.CaptureFixture[str]) -> None:
    before, n = rows(root), count(root)
    assert (
        main(
            ["rewrite", root, "--in-place", "--sort-by", "id:desc", "--file-bytes", "1M", "--json"]
        )
        == 0
    )
    told = json.loads(capsys.readouterr().out)
    assert (told["version"], told["replaced"], told["rows"]) == (5, n, 1_190)
    assert rows(root).equals(before)
    assert main(["rewrite", root, "--in-place", "--sort-by", "k"]) != 0
    assert "--sort-by: 'k' is a partition" in capsys.readouterr().err


def test_columns_without_nulls_stay_so(tmp_path: Path) -> None:
    inner = pa.struct([pa.field("u", pa.int64(), nullable=False), pa.field("v", pa.string())])
    schema = pa.schema(
        [pa.field("id", pa.int64(), nullable=False), pa.field("s", inner),
         pa.field("l", pa.list_(pa.field("element", pa.int32(), nullable=False))),
         pa.field("m", pa.map_(pa.string(), pa.field("value", inner, nullable=False)))]
    )  # fmt: skip
    some = [
        {"id": i, "s": {"u": i, "v": None} if i % 3 else None, "l": [i] * (i % 4) if i % 5 else None, "m": [("a", {"u": i, "v": "x"})]}
        for i in range(50)
    ]  # fmt: skip
    root = str(tmp_path / "t")
    table = pa.Table.from_pylist(some, schema)
    deltalake.write_deltalake(root, table)
    before = rows(root)
    done = ps.rewrite(root, in_place=True, sort_by=[("id", "descending")])
    found = pq.read_schema(done.files[0])
    assert not found.field("id").nullable and not found.field("s").type.field("u").nullable
    assert not found.field("l").type.value_field.nullable
    assert not found.field("m").type.item_type.field("u").nullable
    assert rows(root).equals(before) and before.to_pylist() == some
    now = deltalake.DeltaTable(root).to_pyarrow_table().sort_by("id")
    assert now.to_pylist() == some


def test_nulls_in_a_column_that_may_have_none(tmp_path: Path) -> None:
    root = str(tmp_path / "t")
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("x", pa.int64())])
    deltalake.write_deltalake(root, pa.table([[1, 2], [3, 4]], schema=schema))
    (path,) = data_files(root)
    pq.write_table(pa.table({"id": [1, None], "x": [3, 4]}), path)
    with pytest.raises(ps.RewriteError, match="column 'id' may have no nulls"):
        ps.rewrite(root, in_place=True, sort_by="x")
    assert data_files(root) == {path} and deltalake.DeltaTable(root).version() == 0
