"""Where rewritten files go: stores, tables, folders; and what stays behind a failure."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.rewriting import checking, sorting
from pageseek.rewriting.encoding import Encoder

TABLE = pa.table(
    {"id": [i * 7 % 1_000 for i in range(1_000)], "s": [f"n{i}" for i in range(1_000)]}
)


@pytest.fixture(autouse=True)
def no_rubbish(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Whatever happens, nothing stays in the folder for temporary files."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield
    assert not os.listdir(folder)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "in.parquet"
    pq.write_table(TABLE, made)
    return made


@pytest.mark.parametrize(
    "log", ["_delta_log/00000000000000000000.json", "metadata/v1.metadata.json"]
)
def test_files_in_tables_are_left_alone(tmp_path: Path, path: Path, log: str) -> None:
    lake = tmp_path / "lake"
    (lake / log).parent.mkdir(parents=True)
    (lake / log).write_text("{}")
    inside = lake / "a.parquet"
    pq.write_table(TABLE, inside)
    before = inside.read_bytes()
    for source, how in ((inside, {"in_place": True}), (path, {"output": lake / "b.parquet"})):
        with pytest.raises(ps.UnsupportedError, match="rewritten by a commit of the table"):
            ps.rewrite(source, sort_by="id", **how)  # type: ignore[arg-type]
    assert inside.read_bytes() == before
    assert sorted(one.name for one in lake.glob("*.parquet")) == ["a.parquet"]
    ps.rewrite(inside, tmp_path / "out.parquet", sort_by="id")  # a file of a table may be read


@pytest.mark.parametrize("output", ["lake/b.parquet", "lake/k=1/b.parquet", "lake/new/", "lake", "link/b.parquet"])  # fmt: skip
@pytest.mark.parametrize("source", ["lake", "lake/*.parquet", ["in.parquet", "lake"]])
def test_a_folder_does_not_get_its_own_rows_again(
    tmp_path: Path,
    path: Path,
    output: str,
    source: str | list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    lake = tmp_path / "lake"
    (lake / "k=1").mkdir(parents=True)
    os.symlink(lake, tmp_path / "link")
    pq.write_table(TABLE, lake / "a.parquet")
    if source == "lake/*.parquet" and output not in ("lake/b.parquet", "link/b.parquet"):
        pytest.skip("the glob does not name it")
    with pytest.raises(
        ValueError, match=r"would then have all rows twice: write to a place outside"
    ):
        ps.rewrite(source, output, sort_by="id")
    assert sorted(one.name for one in lake.rglob("*.parquet")) == ["a.parquet"]
    ps.rewrite(lake, tmp_path / "lake2.parquet", sort_by="id")
    ps.rewrite(path, lake / "b.parquet", sort_by="id")


OWN_FILES: dict[str, tuple[Any, str]] = {
    "glob of folders": ("lake/**/*.parquet", "lake/b.parquet"),
    "glob of folders, below": ("lake/**/*.parquet", "lake/k=1/b.parquet"),
    "glob of folders, several": ("lake/**/*.parquet", "lake/new/"),
    "URL read": ("file://{}/lake", "lake/b.parquet"),
    "URL of a glob": ("file://{}/lake/*.parquet", "lake/b.parquet"),
    "URL written": ("lake", "file://{}/lake/b.parquet"),
    "URLs": (["file://{}/in.parquet", "file://{}/lake"], "file://{}/lake/b.parquet"),
}


@pytest.mark.parametrize("case", OWN_FILES)
def test_new_files_are_compared_with_what_the_source_would_list(
    tmp_path: Path, path: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lake" / "k=1").mkdir(parents=True)
    pq.write_table(TABLE, "lake/a.parquet")
    source, output = OWN_FILES[case]
    source = [one.format(tmp_path) for one in source] if isinstance(source, list) else source.format(tmp_path)  # fmt: skip
    with pytest.raises(ValueError, match="would then have all rows twice"):
        ps.rewrite(source, output.format(tmp_path), sort_by="id")
    assert [one.name for one in tmp_path.rglob("lake/**/*.parquet")] == ["a.parquet"]


@pytest.mark.parametrize(
    "source", ["lake", "lake/**/*.parquet", "file://{}/lake", "lake/*/*/*/*.parquet"]
)
@pytest.mark.parametrize(
    "output", ["out/b.parquet", "out/deep/b.parquet", "out/", "far/b.parquet", "out/named.parquet"]
)
def test_links_inside_of_the_source_lead_to_the_new_file(
    tmp_path: Path, source: str, output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("lake/k=1", "out/deep", "far", "elsewhere"):
        (tmp_path / folder).mkdir(parents=True)
    pq.write_table(TABLE, "lake/a.parquet")
    link = tmp_path / "lake" / "k=1" / "link"
    if output == "out/named.parquet":  # the link of a file that is not there yet
        link.with_suffix(".parquet").symlink_to(tmp_path / output)
    else:
        link.symlink_to(tmp_path / "out")
    (tmp_path / "out" / "on").symlink_to(tmp_path / "far")
    (tmp_path / "far" / "back").symlink_to(tmp_path / "lake")  # a circle
    if "/*/*/*/" in source:
        pq.write_table(TABLE, "lake/k=1/a.parquet")
        os.makedirs("lake/k=1/l=2/m=3")
        os.rename("lake/k=1/a.parquet", "lake/k=1/l=2/m=3/a.parquet")
        os.remove("lake/a.parquet")
        if output not in ("out/deep/b.parquet", "far/b.parquet"):
            pytest.skip("the glob does not name it")
    with pytest.raises(ValueError, match="would then have all rows twice"):
        ps.rewrite(source.format(tmp_path), output, sort_by="id")
    assert [one.name for one in tmp_path.rglob("*.parquet") if one.is_file()] == ["a.parquet"]
    ps.rewrite(source.format(tmp_path), "elsewhere/b.parquet", sort_by="id")


@pytest.mark.parametrize("source", ["lake", "lake/**/*.parquet", "lake/*/*/*/*.parquet"])
@pytest.mark.parametrize("other", ["_h", ".h", "zz", "a/b/c/d"])
@pytest.mark.parametrize("output", ["far/b.parquet", "far/new/"])
def test_several_links_lead_to_the_new_file(
    tmp_path: Path, source: str, other: str, output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some of them lie where the source does not look."""
    deep = "lake/k/l/m"
    if output == "far/new/" and source == "lake/*/*/*/*.parquet":
        source, deep = "lake/*/*/*/*/*.parquet", "lake/k/l/m/n"
    monkeypatch.chdir(tmp_path)
    for folder in ("X", "far", deep, f"lake/{other}"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    pq.write_table(TABLE, f"{deep}/a.parquet")
    for folder in ("lake/k", f"lake/{other}"):
        (tmp_path / folder / "link").symlink_to(tmp_path / "X")
    (tmp_path / "X" / "on").symlink_to(tmp_path / "far")
    with pytest.raises(ValueError, match="would then have all rows twice"):
        ps.rewrite(source, output, sort_by="id")
    (tmp_path / "lake" / "k" / "link").unlink()
    if other[0] in "_." and (other == ".h" or "/*/" not in source):
        ps.rewrite(source, output, sort_by="id")
        assert ps.scan(source).count_rows() == TABLE.num_rows


def test_a_listing_does_not_follow_a_circle_to_the_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    os.makedirs("lake/k")
    pq.write_table(TABLE, "lake/k/a.parquet")
    os.symlink(tmp_path / "lake", "lake/self")
    os.symlink("nowhere", "lake/nowhere")
    os.symlink("loop", "lake/loop")
    ps.rewrite("lake/*/*.parquet", "lake/b.parquet", sort_by="id")
    assert ps.scan("lake/*/*.parquet").count_rows() == TABLE.num_rows


@pytest.mark.parametrize(
    ("source", "output"),
    [
        ("lake", "lake/_tmp.parquet"),
        ("lake", "lake/_new/b.parquet"),
        ("lake", "lake/b.data"),
        ("lake/*.parquet", "lake/k=1/b.parquet"),
        ("lake/a[1].parquet", "lake/a1.parquet"),
    ],
)
def test_a_new_file_may_lie_where_the_source_does_not_list_it(
    tmp_path: Path, source: str, output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("k=1", "_new"):
        (tmp_path / "lake" / folder).mkdir(parents=True)
    pq.write_table(TABLE, "lake/a[1].parquet")
    ps.rewrite(source, output, sort_by="id")
    assert ps.scan(source).count_rows() == 1_000


@pytest.mark.parametrize("source", ["lake", "lake/", "lake/*.parquet", "**/*.parquet", "lake/**"])
def test_a_folder_of_a_store_does_not_get_its_own_rows_again(path: Path, source: str) -> None:
    obstore = pytest.importorskip("obstore.store", reason="pip install 'pageseek[obstore]'")
    store = obstore.MemoryStore()
    store.put("lake/a.parquet", path.read_bytes())
    with pytest.raises(ValueError, match="would then have all rows twice"):
        ps.rewrite((store, source), (store, "lake/b.parquet"), sort_by="id")
    ps.rewrite((store, source), (store, "lake/_new/b.parquet"), sort_by="id")
    assert ps.scan((store, source)).count_rows() == 1_000


def test_a_delta_table_is_a_source(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake", reason="pip install 'pageseek[delta]'")
    lake = str(tmp_path / "lake")
    for i in range(2):
        deltalake.write_deltalake(lake, TABLE.slice(i * 500, 500), mode="append")
    deltalake.DeltaTable(lake).delete("id < 10")
    out = tmp_path / "out.parquet"
    assert ps.rewrite(lake, out, sort_by="id").rows == 990
    assert ps.read_table(out)["id"].to_pylist() == list(range(10, 1_000))
    with pytest.raises(TypeError, match="a table itself is the source"):
        ps.rewrite(lake, table=deltalake.DeltaTable(lake), in_place=True)


def test_stores(path: Path) -> None:
    obstore = pytest.importorskip("obstore.store", reason="pip install 'pageseek[obstore]'")
    store = obstore.MemoryStore()
    store.put("a.parquet", path.read_bytes())
    store.put("b.parquet", path.read_bytes())
    done = ps.rewrite((store, "a.parquet"), in_place=True, sort_by="id", indexes={"lookup": ["s"]})
    assert done.rows == 1_000
    found = ps.read_table((store, "a.parquet"))
    assert found["id"].to_pylist() == list(range(1_000))
    assert [one.kind for one in ps.index.list((store, "a.parquet")) if one.attached] == ["lookup"]
    ps.rewrite([(store, "a.parquet"), path], (store, "c.parquet"), sort_by=[("id", "descending")])
    assert ps.scan((store, "c.parquet")).limit(4).to_table()["id"].to_pylist() == [
        999,
        999,
        998,
        998,
    ]
    with pytest.raises(FileExistsError, match="overwrite=True"):
        ps.rewrite(path, (store, "b.parquet"))
    with pytest.raises(ps.UnsupportedError, match="folder of this machine only"):
        ps.rewrite(path, (store, "new"), file_rows=10)
    ps.rewrite((store, "b.parquet"), path.with_name("here.parquet"), sort_by="id")
    assert ps.scan(path.with_name("here.parquet")).count_rows() == 1_000


def test_a_store_that_cannot_replace_one_version_is_named(path: Path) -> None:
    mock = pafs._MockFileSystem()
    mock.create_dir("bucket")
    with mock.open_output_stream("bucket/a.parquet") as out:
        out.write(path.read_bytes())
    with pytest.raises(ps.UnsupportedError, match="cannot replace a file only where"):
        ps.rewrite((mock, "bucket/a.parquet"), in_place=True)


@pytest.mark.parametrize("indexes", [None, {"lookup": ["id"]}])
@pytest.mark.parametrize("several", [False, True])
def test_a_failure_leaves_nothing(several: bool, indexes: dict[str, list[str]] | None, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    out = path.with_name("out")
    rows = 100 if several else None

    def fails(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    for module, name in ((Encoder, "_flush"), (checking.Digest, "add"), (checking, "plain"), (sorting.Spill, "flush")):  # fmt: skip
        with monkeypatch.context() as patch:
            patch.setattr(sorting, "MOST_TOGETHER", 5_000)
            patch.setattr(module, name, fails)
            with pytest.raises(KeyboardInterrupt):
                ps.rewrite(path, out, sort_by="id", file_rows=rows, indexes=indexes)
        assert [one.name for one in path.parent.iterdir()] == ["in.parquet"]
    ps.rewrite(path, out, sort_by="id", file_rows=rows, indexes=indexes)
    assert ps.read_table(out)["id"].to_pylist() == list(range(1_000))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="it is Linux's")
def test_a_full_disk_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorting, "MOST_TOGETHER", 5_000)
    full = open("/dev/full", "r+b", buffering=0)  # noqa: SIM115 - closed as the file of waiting rows
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: full)
    with pytest.raises(ps.StoreError, match=r"No space left .*spill_folder=\.\.\."):
        ps.rewrite(path, path.with_name("out"), sort_by="id")
