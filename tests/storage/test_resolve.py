"""Which files of a folder are data, on local disk and on a pyarrow filesystem."""

from __future__ import annotations

import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pytest

import pageseek as ps
from pageseek.storage import RetryPolicy, obstore_files, urls
from pageseek.storage import pyarrow_files as arrow
from pageseek.storage.resolve import resolve
from support.refused_folder import refuse_listing
from support.writer import INT32, Column, write

HIDDEN = (
    "_delta_log/a.parquet",
    "_delta_log/deep/a.parquet",
    "_temporary/0/_temporary/a.parquet",
    ".hive-staging_1/-ext-1/k=1/a.parquet",
    "b/.tmp/a.parquet",
    "b/_x.parquet",
    ".a.parquet",
    "_metadata",
    "b/notes.txt",
)
SHOWN = ("_n=1.parquet", "a.parquet", "b/c/d_.parq", "b/c.d/e.pq", "b/x_y.parquet")


def on_disk(root: Path) -> Any:
    return root


def of_arrow(root: Path) -> Any:
    return pafs.LocalFileSystem(), str(root)


def of_arrow_with_a_slash(root: Path) -> Any:
    return pafs.LocalFileSystem(), f"{root}/"


def below_a_subtree(root: Path) -> Any:
    return pafs.SubTreeFileSystem(str(root.parent), pafs.LocalFileSystem()), root.name


def at_the_root_of_a_subtree(root: Path) -> Any:
    return pafs.SubTreeFileSystem(str(root), pafs.LocalFileSystem()), ""


def by_a_glob(root: Path) -> Any:
    return f"{root}/**/*.p*q*"


LeafType = Callable[[Path], Any]
FOLDERS = [on_disk, of_arrow, of_arrow_with_a_slash, below_a_subtree, at_the_root_of_a_subtree]


def fill(root: Path, names: tuple[str, ...]) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(write([Column("a", INT32, [1])]))


def names_of(source: Any, root: Path) -> list[str]:
    tops = (str(root) + "/", root.name + "/")
    found = []
    for file in resolve(source):
        top = next((top for top in tops if file.path.startswith(top)), "")
        found.append(file.path.removeprefix(top))
    return found


@pytest.mark.parametrize("form", [*FOLDERS, by_a_glob])
def test_what_is_below_a_hidden_name_is_no_data(form: LeafType, tmp_path: Path) -> None:
    root = tmp_path / "_root" / ".given"  # a hidden name above does not matter: the user gave it
    fill(root, HIDDEN + SHOWN)
    assert names_of(form(root), root) == sorted(SHOWN)
    assert ps.read_table(form(root)).num_rows == len(SHOWN)


@pytest.mark.parametrize("form", [*FOLDERS, by_a_glob])
def test_folders_of_partitions_are_said_of_each_file(form: LeafType, tmp_path: Path) -> None:
    root = tmp_path / "t=0"  # the user named this one
    fill(root, ("k=2/x/a.parquet", "k=1/a.parquet", "a.parquet", "b/_k=1/j=%202/a.parquet"))
    found = {file.path.rpartition("t=0/")[2]: file.partitions for file in resolve(form(root))}
    assert found == {
        "a.parquet": (),
        "k=1/a.parquet": (("k", "1"),),
        "k=2/x/a.parquet": (("k", "2"),),
        "b/_k=1/j=%202/a.parquet": (("_k", "1"), ("j", " 2")),
    }
    assert all(not file.partitions for file in resolve([str(root / name) for name in found]))


def test_a_glob_that_names_its_folders_is_asked_for_hidden_ones(tmp_path: Path) -> None:
    fill(tmp_path, ("k=1/a.parquet", "k=2/a.parquet", "_x/a.parquet"))
    assert names_of(f"{tmp_path}/k=*/*.parquet", tmp_path) == ["k=1/a.parquet", "k=2/a.parquet"]
    assert names_of(f"{tmp_path}/_x/*.parquet", tmp_path) == ["_x/a.parquet"]


@pytest.mark.parametrize("form", FOLDERS)
def test_a_folder_with_nothing_but_hidden_files(form: LeafType, tmp_path: Path) -> None:
    fill(tmp_path, HIDDEN)
    (tmp_path / "k=1").mkdir()  # no data in it: no column is lost
    with pytest.raises(FileNotFoundError, match=r"no \.parquet file"):
        ps.scan(form(tmp_path))


def test_relative_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, HIDDEN + SHOWN)
    monkeypatch.chdir(tmp_path)
    for folder in (".", "./", "b/..", "**/*.p*q*", "./**/*.p*q*"):
        assert names_of(folder, tmp_path) == sorted(SHOWN), folder
    monkeypatch.chdir(tmp_path / "b")
    assert names_of("..", tmp_path) == sorted(SHOWN)


def test_a_folder_that_cannot_be_listed_is_not_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, ("a.parquet", "b/a.parquet"))
    refuse_listing(monkeypatch, "b")
    with pytest.raises(PermissionError, match="b"):
        ps.scan(tmp_path)


def test_the_rules_hold_where_a_filesystem_drops_the_leading_slash() -> None:
    class Handler(pafs.FileSystemHandler):  # type: ignore[misc]
        def get_file_info(self, paths: list[str]) -> list[Any]:
            return [pafs.FileInfo(path, pafs.FileType.Directory) for path in paths]

        def get_file_info_selector(self, selector: Any) -> list[Any]:
            names = ("_r/t/a.parquet", "_r/t/_x/a.parquet")
            return [pafs.FileInfo(name, pafs.FileType.File, size=9) for name in names]

        def normalize_path(self, path: str) -> str:
            return path

        def get_type_name(self) -> str:
            return "fake"

    Handler.__abstractmethods__ = frozenset()
    found = resolve((pafs.PyFileSystem(Handler()), "/_r/t/"))
    assert [source.path for source in found] == ["_r/t/a.parquet"]


# ---- URLs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["https", "http", "HTTPS", "ftp", "hf+x", "wasbs", "s3"])
def test_urls_of_schemes_that_nothing_installed_opens(
    scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(urls, "installed", lambda name: False)
    monkeypatch.setattr(urls, "SCHEMES", ())
    with pytest.raises(ps.UnsupportedError, match="filesystem, path") as caught:
        ps.scan(f"{scheme}://user:secret@example.org/a.parquet")
    assert str(caught.value).startswith(f"{scheme.lower()}://: ")
    assert "secret" not in str(caught.value)
    known = scheme.lower() in obstore_files.SCHEMES
    assert ("pageseek[obstore]" in str(caught.value)) == known


def test_a_scheme_that_not_even_fsspec_knows() -> None:
    pytest.importorskip("fsspec")
    with pytest.raises(
        ps.UnsupportedError, match="fsspec cannot open the scheme 'hf\\+x'"
    ) as caught:
        ps.scan("hf+x://user:secret@example.org/a.parquet", storage_options={"key": "hidden"})
    assert "secret" not in str(caught.value) and "hidden" not in str(caught.value)


def test_urls_of_filesystems_that_this_pyarrow_was_built_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(url: str) -> Any:
        assert url == "gs://bucket/a.parquet"
        raise pa.ArrowNotImplementedError("Got GCS URI but Arrow compiled without GCS support")

    known = types.SimpleNamespace(FileSystem=types.SimpleNamespace(from_uri=refuse))
    monkeypatch.setattr(arrow, "pafs", known)
    monkeypatch.setattr(urls, "installed", lambda name: False)
    with pytest.raises(ps.UnsupportedError, match="'gs'"):
        urls.from_url("gs://bucket/a.parquet", "gs", {}, RetryPolicy())


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("s3://b/k", "ObstoreFiles s3://b"),
        ("s3a://b/k", "ObstoreFiles s3://b"),
        ("gcs://b/k", "ObstoreFiles gs://b"),
        ("abfss://c@a.dfs.core.windows.net/k", "ObstoreFiles abfss://"),
        ("https://u:pw@example.org/k", "ObstoreFiles https://example.org"),
        ("memory://b/k", "FsspecFiles memory"),
    ],
)
def test_who_opens_a_url(url: str, kind: str) -> None:
    pytest.importorskip("obstore")
    pytest.importorskip("fsspec")
    files, _ = urls.from_url(url, url.partition(":")[0], {}, RetryPolicy())
    assert kind in repr(files)


def test_names_with_a_colon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("12:30.parquet", "at:noon.parquet"):
        with pytest.raises(FileNotFoundError, match=name):
            ps.scan(name)
        fill(tmp_path, (name,))
        assert ps.read_table(name).num_rows == 1


def of_fsspec_below(root: Path) -> Any:
    from fsspec.implementations.dirfs import DirFileSystem
    from fsspec.implementations.local import LocalFileSystem

    return DirFileSystem(str(root), LocalFileSystem())


def of_arrow_below(root: Path) -> Any:
    return pafs.SubTreeFileSystem(str(root), pafs.LocalFileSystem())


@pytest.mark.parametrize("below", [of_arrow_below, of_fsspec_below])
@pytest.mark.parametrize("name", ["a[1]", "b*", "c?"])
def test_the_folder_of_a_filesystem_is_no_pattern(
    below: LeafType, name: str, tmp_path: Path
) -> None:
    fill(
        tmp_path, (f"{name}/k=1/x.parquet", "a1/k=1/y.parquet", "bb/k=1/y.parquet", "cc/y.parquet")
    )
    for pattern in ("*/*.parquet", "**/*.parquet", "k=1/*.parquet"):
        (found,) = resolve((below(tmp_path / name), pattern))
        assert found.path == str(tmp_path / name / "k=1" / "x.parquet")
