"""Paths in the log of a Delta Lake table: relative ones and absolute ones, percent-encoded (Delta protocol, Add File and Remove File)."""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.datasets.delta_paths import Spelling
from pageseek.storage.resolve import Source
from support.delta_by_hand import bitmap, encoded

deltalake = pytest.importorskip("deltalake", reason="pip install 'pageseek[delta]'")


def table_of(root: Path, commits: list[list[dict[str, Any]]]) -> str:
    fields = [{"name": "a", "type": "long", "nullable": True, "metadata": {}}]
    first: list[dict[str, Any]] = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": "a", "format": {"provider": "parquet", "options": {}}, "partitionColumns": [], "configuration": {},
                "schemaString": json.dumps({"type": "struct", "fields": fields}), "createdTime": 1,
            }
        },
    ]  # fmt: skip
    (root / "_delta_log").mkdir(parents=True)
    for i, actions in enumerate([first, *commits]):
        text = "\n".join(map(json.dumps, actions))
        (root / "_delta_log" / f"{i:020}.json").write_text(text)
    return str(root)


def add(path: str) -> dict[str, Any]:
    return {
        "add": {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
    }  # fmt: skip


def remove(path: str) -> dict[str, Any]:
    return {"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True}}


def written(path: Path, value: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"a": [value]}), path)
    return path


NAMES = ["plain.parquet", "a b%41#?&=ü.parquet", "x:y/z.parquet", "%/..a+b.parquet"]


@pytest.mark.parametrize(
    "form", ["{0}", "file:{0}", "file://{0}", "file://localhost{0}", "relative"]
)
def test_files_with_odd_names(tmp_path: Path, form: str) -> None:
    root, elsewhere = tmp_path / "t", tmp_path / "else where%20"
    spelt = []
    for i, name in enumerate(NAMES):
        inside = form == "relative"
        path = written((root if inside else elsewhere) / name, i)
        spelt.append(quote(name, "/=") if inside else form.format(quote(str(path), "/=")))
    table = table_of(root, [[add(path) for path in spelt]])
    for source in (table, deltalake.DeltaTable(table)):
        assert sorted(ps.read_table(source)["a"].to_pylist()) == [0, 1, 2, 3]
        assert ps.scan(source, filter="a = 2").count_rows() == 1


@pytest.mark.parametrize("added", ["{0}", "file:{0}", "file://{0}"])
@pytest.mark.parametrize("removed", ["{0}", "file:{0}", "file://{0}"])
def test_a_file_is_removed_by_any_spelling_of_its_path(
    tmp_path: Path, added: str, removed: str
) -> None:
    one, two = (written(tmp_path / "b c" / f"{i}.parquet", i) for i in range(2))
    first, second = quote(str(one)), quote(str(two))
    commits = [
        [add(added.format(first)), add(added.format(second))],
        [remove(removed.format(first))],
    ]
    assert ps.read_table(table_of(tmp_path / "t", commits))["a"].to_pylist() == [1]
    # added again later, and in the commit that removes it
    again = [*commits, [add(added.format(first))]]
    assert sorted(ps.read_table(table_of(tmp_path / "u", again))["a"].to_pylist()) == [0, 1]


@pytest.mark.parametrize("again", ["{0}", "file:{0}", "file://{0}"])
def test_a_file_that_is_added_again_by_another_spelling_is_one_file(
    tmp_path: Path, again: str
) -> None:
    """The last commit counts, as for equal spellings; so do its deletion vectors."""
    path = tmp_path / "b c" / "1.parquet"
    path.parent.mkdir()
    pq.write_table(pa.table({"a": [1, 2]}), path)
    spelt = quote(str(path))
    bits = bitmap([0])
    vector = {"storageType": "i", "pathOrInlineDv": encoded(bits), "sizeInBytes": len(bits), "cardinality": 1}  # fmt: skip
    once, twice = add(again.format(spelt)), add(again.format(spelt))
    twice["add"]["deletionVector"] = vector
    names = ["deletionVectors"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": names, "writerFeatures": names}  # fmt: skip
    commits = [[{"protocol": protocol}, add(f"file:{spelt}")], [once]]
    assert ps.read_table(table_of(tmp_path / "t", commits))["a"].to_pylist() == [1, 2]
    commits.append([remove(f"file://{spelt}"), remove(again.format(spelt)), twice])
    table = table_of(tmp_path / "u", commits)
    assert ps.read_table(table)["a"].to_pylist() == [2]
    assert ps.scan(table, filter="a = 1").count_rows() == 0


def test_all_files_are_removed_by_other_spellings(tmp_path: Path) -> None:
    path = quote(str(written(tmp_path / "a.parquet", 1)))
    table = table_of(tmp_path / "t", [[add(path)], [remove(f"file://{path}")]])
    assert ps.read_table(table).equals(pa.table({"a": pa.array([], pa.int64())}))
    figures = ["count", ("a", "count"), ("a", "max")]
    assert ps.scan(table).aggregate(figures).to_pylist() == [
        {"count": 0, "a_count": 0, "a_max": None}
    ]
    assert ps.scan(table).explain(analyze=True, aggregate=figures).files.total == 0


def test_a_path_without_a_store(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    table_of(tmp_path / "t", [[add("/somewhere/a.parquet")]])
    memory = fsspec.filesystem("memory")
    for file in (tmp_path / "t" / "_delta_log").iterdir():
        memory.pipe_file(f"/{tmp_path.name}/t/_delta_log/{file.name}", file.read_bytes())
    said = re.escape("'/somewhere/a.parquet' does not say which store it lies in")
    with pytest.raises(ps.UnsupportedError, match=said):
        ps.read_table((memory, f"/{tmp_path.name}/t"))
    memory.rm(f"/{tmp_path.name}", recursive=True)


def test_an_error_of_deltalake_has_its_version(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t", [])
    log = tmp_path / "t" / "_delta_log" / f"{0:020}.json"
    log.write_text(log.read_text().partition("\n")[0])
    with pytest.raises(ps.UnsupportedError, match=rf"deltalake {version('deltalake')} cannot tell"):
        ps.read_table(table)


# the file, how it is added, and how it is removed; {0} is the folder of the table, {1} a symbolic link to it
SPELLINGS = [
    ("a.parquet", "a.parquet", "{0}/a.parquet"),
    ("a.parquet", "a.parquet", "file://{0}/a.parquet"),
    ("a.parquet", "{0}/a.parquet", "a.parquet"),
    ("a.parquet", "file:{0}/a.parquet", "./a.parquet"),
    ("a.parquet", "a.parquet", "{1}/a.parquet"),
    ("b/a.parquet", "b/a.parquet", "b//./a.parquet"),
    ("a b.parquet", "a b.parquet", "a%20b.parquet"),
    ("a b.parquet", "a%20b.parquet", "file://{0}/a b.parquet"),
    ("aA.parquet", "a%41.parquet", "aA.parquet"),
    ("k=1/a.parquet", "k=1/a.parquet", "k%3D1/a.parquet"),
]


@pytest.mark.parametrize(("name", "added", "removed"), SPELLINGS)
def test_a_file_of_the_folder_is_removed_by_any_spelling(
    tmp_path: Path, name: str, added: str, removed: str
) -> None:
    """deltalake compares paths as they are spelt, and brings such rows back."""
    root, link = tmp_path / "t", tmp_path / "link"
    link.symlink_to(root)
    written(root / name, 0)
    written(root / "%2E b" / "other.parquet", 1)
    there, gone = (one.format(root, link) for one in (added, removed))
    commits = [[add(there), add("%252E%20b/other.parquet")], [remove(gone)]]
    table = table_of(root, commits)
    opened = deltalake.DeltaTable(table)
    for source in (table, opened, opened, str(link)):
        assert ps.read_table(source)["a"].to_pylist() == [1]
        assert ps.scan(source, filter="a = 0").count_rows() == 0
    assert sorted(ps.read_table(table, version=1)["a"].to_pylist()) == [0, 1]
    # added again by either spelling, it is one file
    for i, again in enumerate((there, gone)):
        log = tmp_path / "t" / "_delta_log" / f"{3 + i:020}.json"
        log.write_text(json.dumps(add(again)))
        opened.update_incremental()
        for source in (table, opened):
            assert sorted(ps.read_table(source)["a"].to_pylist()) == [0, 1]


def test_links_below_the_folder_are_files_of_their_own(tmp_path: Path) -> None:
    root, link = tmp_path / "t", tmp_path / "link"
    written(root / "p=1" / "a.parquet", 0)
    (root / "p=2").symlink_to("p=1")
    (root / "again").symlink_to(".")
    link.symlink_to(root)
    paths = ["p=1/a.parquet", "p=2/a.parquet", "again/p=1/a.parquet"]
    table = table_of(root, [[add(path) for path in paths]])
    for source in (table, deltalake.DeltaTable(table), str(link)):
        assert ps.read_table(source)["a"].to_pylist() == [0, 0, 0]
    for i, gone in enumerate((f"{link}/again/p=1/a.parquet", f"file://{root}/p=2//a.parquet")):
        (root / "_delta_log" / f"{2 + i:020}.json").write_text(json.dumps(remove(gone)))
        for source in (table, deltalake.DeltaTable(table), str(link)):
            assert ps.scan(source).count_rows() == 2 - i
    spelling = Spelling(Source(str(link)))
    assert spelling.of("../other/a") == spelling.of(f"{tmp_path}/other/a")
    assert spelling.of("p=2/./a") == spelling.of(f"{link}/p=2/a") == f"{root}/p=2/a"


def checkpoint(table: str, version: int, adds: list[str], removes: list[str]) -> None:
    """A checkpoint in place of the log before it."""
    log = Path(table) / "_delta_log"
    commits = [log / f"{i:020}.json" for i in range(version + 1)]
    first = [json.loads(line) for line in commits[0].read_text().splitlines()]
    told = {name: action[name] for action in first for name in action}
    rows: list[dict[str, Any]] = [{"protocol": told["protocol"]}, {"metaData": told["metaData"]}]
    rows += [add(path) for path in adds]
    rows += [remove(path) for path in removes]
    text = pa.string()
    adding = pa.struct({"path": text, "partitionValues": pa.map_(text, text), "size": pa.int64(), "modificationTime": pa.int64(), "dataChange": pa.bool_()})  # fmt: skip
    removing = pa.struct({"path": text, "deletionTimestamp": pa.int64(), "dataChange": pa.bool_()})
    versions = pa.struct({"minReaderVersion": pa.int32(), "minWriterVersion": pa.int32()})
    options = pa.struct({"provider": text, "options": pa.map_(text, text)})
    columns = pa.struct({"id": text, "format": options, "partitionColumns": pa.list_(text), "configuration": pa.map_(text, text), "schemaString": text, "createdTime": pa.int64()})  # fmt: skip
    kinds = {"protocol": versions, "metaData": columns, "add": adding, "remove": removing}
    for one in rows:
        for action in one.values():
            for name in ("partitionValues", "configuration"):
                if name in action:
                    action[name] = list(action[name].items())
            if "format" in action:
                action["format"] = {"provider": "parquet", "options": []}
    made = {name: pa.array([one.get(name) for one in rows], kind) for name, kind in kinds.items()}
    pq.write_table(pa.table(made), log / f"{version:020}.checkpoint.parquet")
    (log / "_last_checkpoint").write_text(json.dumps({"version": version, "size": len(rows)}))
    for commit in commits:
        commit.unlink()


def test_a_checkpoint_that_has_a_file_and_its_removal(tmp_path: Path) -> None:
    """Nobody knows which of the two came later; a commit after it says."""
    root = tmp_path / "t"
    written(root / "a.parquet", 0)
    written(root / "b.parquet", 1)
    table = table_of(root, [[add("a.parquet"), add("b.parquet")]])
    checkpoint(table, 1, ["a.parquet", "b.parquet"], [f"file://{root}/a.parquet", "c.parquet"])
    for source in (table, deltalake.DeltaTable(table)):
        with pytest.raises(ps.CorruptFileError, match=r"adds 'a.parquet' and removes 'file:///.*, which are one file"):  # fmt: skip
            ps.read_table(source)
    log = root / "_delta_log" / f"{2:020}.json"
    log.write_text(json.dumps(remove("a.parquet")))
    assert ps.read_table(table)["a"].to_pylist() == [1]
    log.write_text(json.dumps(add("a.parquet")))
    assert sorted(ps.read_table(table)["a"].to_pylist()) == [0, 1]


def test_a_checkpoint_that_has_a_file_twice(tmp_path: Path) -> None:
    root = tmp_path / "t"
    written(root / "a.parquet", 0)
    table = table_of(root, [[add("a.parquet")]])
    checkpoint(table, 1, ["a.parquet", f"{root}/a.parquet"], [])
    with pytest.raises(ps.CorruptFileError, match=r"adds .*a.parquet' and .*, which are one file"):
        ps.read_table(table)
