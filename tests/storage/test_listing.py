"""Directories, globs and names: the same files on disk, and on filesystems of pyarrow, obstore and fsspec."""

from __future__ import annotations

import glob
import http.server
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pyarrow.dataset as ds
import pyarrow.fs as pafs
import pytest

import pageseek as ps
from pageseek.storage import urls
from pageseek.storage.resolve import resolve
from support.object_server.server import ObjectServer
from support.refused_folder import refuse_listing
from support.remote_files import SECRET, s3_options
from support.writer import INT32, Column, write

DATA = write([Column("a", INT32, [1])])
BUCKET = "bucket"


def fill(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(DATA)


# ---- ways to the same files: each has a function for the source of a path below the root, and one for the found names


class Way:
    """A place that has the files of a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def source(self, path: str) -> Any:
        raise NotImplementedError

    def options(self) -> dict[str, Any]:
        return {}

    def names(self, path: str) -> list[str]:
        tops = (f"{self.root}/", f"/{BUCKET}/", f"{BUCKET}/")
        found = []
        for file in resolve(self.source(path), self.options()):
            top = next((top for top in tops if file.path.startswith(top)), "")
            found.append(file.path.removeprefix(top))
        return found


class OnDisk(Way):
    def source(self, path: str) -> Any:
        return f"{self.root}/{path}"


class OfArrow(Way):
    def source(self, path: str) -> Any:
        return pafs.LocalFileSystem(), f"{self.root}/{path}"


class BelowSubtrees(Way):
    def source(self, path: str) -> Any:
        outer = pafs.SubTreeFileSystem(str(self.root.parent), pafs.LocalFileSystem())
        return pafs.SubTreeFileSystem(self.root.name, outer), path


class OfALocalStore(Way):
    """A LocalStore of obstore, which is this machine's disk."""

    def source(self, path: str) -> Any:
        stores = pytest.importorskip("obstore.store")
        return stores.LocalStore(self.root), path


class BelowAFolder(Way):
    """A folder in fsspec, which ignores links."""

    def source(self, path: str) -> Any:
        fsspec = pytest.importorskip("fsspec")
        outer = fsspec.filesystem("dir", path=str(self.root.parent), target_protocol="file")
        return fsspec.filesystem("dir", path=self.root.name, fs=outer), path


class OfFsspec(Way):
    def source(self, path: str) -> Any:
        fsspec = pytest.importorskip("fsspec")
        memory = fsspec.filesystem("memory", skip_instance_cache=True)
        memory.store, memory.pseudo_dirs = {}, [""]  # else all share what they have
        for name in below(self.root):
            memory.pipe_file(f"/{BUCKET}/{name}", (self.root / name).read_bytes())
        return memory, f"/{BUCKET}/{path}"


class OfObstore(Way):
    def source(self, path: str) -> Any:
        stores = pytest.importorskip("obstore.store")
        store = stores.MemoryStore()
        for name in below(self.root):
            store.put(f"{BUCKET}/{name}", (self.root / name).read_bytes())
        return store, f"{BUCKET}/{path}"


LOCAL: list[type[Way]] = [OnDisk, OfArrow, BelowSubtrees, OfALocalStore, BelowAFolder]
WAYS = [*LOCAL, OfFsspec, OfObstore]


class OfS3(Way):
    """The object server by a URL, through obstore, or pyarrow without it."""

    def __init__(self, root: Path, server: ObjectServer) -> None:
        super().__init__(root)
        self.server = server
        for name in below(root):
            server.put(f"{BUCKET}/{name}", (root / name).read_bytes())

    def source(self, path: str) -> Any:
        return f"s3://{BUCKET}/{path}"

    def options(self) -> dict[str, Any]:
        if urls.installed("obstore"):
            made: dict[str, Any] = s3_options(self.server)
            return made
        return {
            "endpoint_override": self.server.endpoint.removeprefix("http://"), "scheme": "http",
            "region": "us-east-1", "access_key": "any", "secret_key": SECRET,
        }  # fmt: skip


def below(root: Path) -> list[str]:
    found = []
    for folder, _, names in os.walk(root):
        found += [os.path.relpath(os.path.join(folder, name), root) for name in names]
    return sorted(found)


# ---- links


@pytest.mark.parametrize("way", LOCAL)
def test_links_to_folders_are_followed(way: type[Way], tmp_path: Path) -> None:
    root = tmp_path / "ds"
    fill(tmp_path, "ds/k=1/a.parquet", "real/k=2/a.parquet", "real/k=2/x/b.parquet")
    (root / "k=2").symlink_to("../real/k=2")
    (root / "k=3").symlink_to(tmp_path / "real" / "k=2" / "x")  # reached twice, by two names
    (root / "k=4").symlink_to("nowhere")
    (root / "_k").symlink_to("../real")
    here = way(root)
    expected = ["k=1/a.parquet", "k=2/a.parquet", "k=2/x/b.parquet", "k=3/b.parquet"]
    assert here.names("") == expected
    files = sorted(ds.dataset(str(root), format="parquet").files)
    assert [os.path.relpath(file, root) for file in files] == expected
    assert here.names("**/*.parquet") == expected
    assert here.names("k=*/*.parquet") == [name for name in expected if "/x/" not in name]
    found = ps.read_table(here.source(""))
    assert found["k"].to_pylist() == [1, 2, 2, 3]


CIRCLES: dict[str, tuple[dict[str, str], list[str]]] = {
    "itself": ({"loop": "."}, ["a/f.parquet", "b/f.parquet"]),
    "above": ({"a/up": ".."}, ["a/f.parquet", "b/f.parquet"]),
    "each other": (
        {"a/to": "../b", "b/to": "../a"},
        ["a/f.parquet", "a/to/f.parquet", "b/f.parquet", "b/to/f.parquet"],
    ),
    "above the root": (
        {"a/out": "../.."},
        ["a/f.parquet", "a/out/beside/f.parquet", "b/f.parquet"],
    ),
    "a name": ({"self": "self", "x.parquet": "x.parquet"}, ["a/f.parquet", "b/f.parquet"]),
}


@pytest.mark.parametrize("way", LOCAL)
@pytest.mark.parametrize("kind", CIRCLES)
def test_circles_of_links_end(way: type[Way], kind: str, tmp_path: Path) -> None:
    links, expected = CIRCLES[kind]
    root = tmp_path / "ds"
    fill(tmp_path, "ds/a/f.parquet", "ds/b/f.parquet", "beside/f.parquet")
    for name, to in links.items():
        (root / name).symlink_to(to)
    here = way(root)
    assert here.names("") == expected
    assert here.names("**/*.parquet") == expected
    assert ps.scan(here.source("")).count_rows() == len(expected)


def test_a_linked_folder_that_cannot_be_listed_is_not_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, "ds/a/f.parquet", "real/f.parquet")
    (tmp_path / "ds" / "b").symlink_to("../real")
    refuse_listing(monkeypatch, "b")
    for source in ("ds", "ds/*/*.parquet", "ds/**/f*"):
        with pytest.raises(PermissionError, match="b"):
            resolve(f"{tmp_path}/{source}")
    assert len(resolve(f"{tmp_path}/ds/a*/*.parquet")) == 1


# ---- names


@pytest.mark.parametrize("way", WAYS)
def test_data_by_its_name(way: type[Way], tmp_path: Path) -> None:
    fill(tmp_path, "a.PARQUET", "b/c.Parq", "b/d.PQ", "e.parquet", "f", "g.parquet.tmp", "h.txt")
    here = way(tmp_path)
    assert here.names("") == ["a.PARQUET", "b/c.Parq", "b/d.PQ", "e.parquet"]
    assert here.names("f") == ["f"]
    assert here.names("[fgh]*") == ["f", "g.parquet.tmp", "h.txt"]
    fill(tmp_path, "n/f", "n/_x.parquet")
    with pytest.raises(FileNotFoundError, match=r"\.parquet or \.parq or \.pq") as caught:
        here.names("n/")
    assert "glob" in str(caught.value)


NAMES = (
    "a.parquet", ".a.parquet", "_a.parquet", "a/x.parquet", "a/b/x.parquet", "a/b/a/y.parquet", "b/x.pq",
    "a/.h/x.parquet", "a/_h/x.parquet", "_h/x.parquet", ".h/x.parquet", ".h/b/x.parquet", "ab/x.parquet",
    "a-b/x.parquet", "k=1/j=2/x.parquet", "k=2/x.parquet", "a/b/c/d.parquet", "c.d/x+.parquet", "c.d/(x).parquet",
)  # fmt: skip
PATTERNS = (
    "*", "*.parquet", "*/*.parquet", "a*/*.parquet", "**/*.parquet", "**", "a/**", "a/**/*.parquet", "?/x.p*", "a?b/*",
    "[ab]/*", "[!a]/*", "[!b]b/*", ".*", ".h/*", ".h/**/x.parquet", "_*", "_h/*", "*/**/*.parquet", "a/**/b/*",
    "**/a/**/*.parquet", "**/b/x.parquet", "a/*/x.parquet", "a/[_]h/*", "k=*/**/*.parquet", "c.*/x[+].parquet",
    "c.d/(?).parquet", "*/*/*/*", "**/**/d.parquet", "a/b/**/c/*", "[.]*", "a/[.]h/*", "c[.]d/*", "**/*",
)  # fmt: skip


def of_python(root: Path, pattern: str) -> list[str]:
    """What Python's own glob finds, without what lies hidden below the first `**`."""
    parts = pattern.split("/")
    first = parts.index("**") if "**" in parts else len(parts)
    found = set()
    for name in glob.glob(pattern, root_dir=root, recursive=True):
        hidden = any(one.startswith(("_", ".")) for one in name.split("/")[first:])
        if (root / name).is_file() and not hidden:
            found.add(name)
    return sorted(found)


def compare(way: Way, root: Path) -> None:
    for pattern in PATTERNS:
        expected = of_python(root, pattern)
        if expected:
            assert way.names(pattern) == expected, pattern
        else:
            with pytest.raises(FileNotFoundError, match="no file matches"):
                way.names(pattern)
    assert sum(bool(of_python(root, pattern)) for pattern in PATTERNS) > 25


@pytest.mark.parametrize("way", WAYS)
def test_globs_are_those_of_python(way: type[Way], tmp_path: Path) -> None:
    fill(tmp_path, *NAMES)
    compare(way(tmp_path), tmp_path)


@pytest.mark.parametrize("obstore", [True, False], ids=["obstore", "pyarrow"])
def test_globs_of_a_bucket(
    obstore: bool, tmp_path: Path, object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    if obstore:
        pytest.importorskip("obstore")
    elif not hasattr(pafs, "S3FileSystem"):
        pytest.skip("this pyarrow is built without S3")
    monkeypatch.setattr(urls, "installed", lambda name: name == "obstore" and obstore)
    fill(tmp_path, *NAMES)
    here = OfS3(tmp_path, object_server)
    compare(here, tmp_path)
    for pattern in ("*/*.parquet", "k=*/**/x*", "a"):
        found = resolve(here.source(pattern), here.options())
        assert [one.partitions for one in found] == [
            one.partitions for one in resolve(f"{tmp_path}/{pattern}")
        ]
    rows = ps.scan(here.source("k=*/*.parquet"), storage_options=here.options())
    assert rows.to_table().to_pydict() == {"a": [1], "k": [2]}


@pytest.mark.parametrize("way", WAYS)
def test_what_is_called_as_the_glob_is_written(way: type[Way], tmp_path: Path) -> None:
    fill(
        tmp_path, "a[1].parquet", "a1.parquet", "d[1]/x.parquet", "d[1]/_y.parquet", "d1/x.parquet"
    )
    here = way(tmp_path)
    assert here.names("a[1].parquet") == ["a[1].parquet"]
    assert ps.read_table(here.source("a[1].parquet")).num_rows == 1
    assert here.names("d[1]") == here.names("d[1]/") == ["d[1]/x.parquet"]
    assert here.names("a[[]1].parquet") == ["a[1].parquet"]
    assert here.names("a[12].parquet") == here.names("a?.parquet") == ["a1.parquet"]
    assert here.names("d[1]/*.parquet") == ["d1/x.parquet"]


@pytest.mark.parametrize("way", WAYS)
def test_what_a_glob_cannot_be(way: type[Way], tmp_path: Path) -> None:
    fill(tmp_path, "a/x.parquet")
    here = way(tmp_path)
    with pytest.raises(ValueError, match=r"'\.\.' behind a wildcard"):
        here.names("*/../a/x.parquet")
    for nothing in ("*/x.parquet/", "*/", "b/*.parquet", "a/x.parquet/*"):
        with pytest.raises(FileNotFoundError, match="no file matches"):
            here.names(nothing)


def test_local_globs_with_a_colon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    fill(tmp_path, "run:1/a.parquet", "run:1/b.parquet")
    assert ps.scan("run:1/*.parquet").count_rows() == 2
    assert ps.scan(["run:1/a.parquet", "run:1"]).count_rows() == 3
    with pytest.raises(FileNotFoundError, match="run:2/"):
        ps.scan("run:2/*.parquet")
    with pytest.raises(FileNotFoundError, match="//") as caught:
        ps.scan("HTTPS:/user:secret@example.org/a?sig=secret")
    assert "secret" not in str(caught.value)


# ---- folders whose name is that of a file


def test_a_folder_that_is_called_like_a_file(tmp_path: Path, object_server: ObjectServer) -> None:
    """A folder as Spark writes it. No request checks for it if the object exists."""
    pytest.importorskip("obstore")
    fill(tmp_path, "out.parquet/part-0.parquet", "out.parquet/part-1.parquet", "one.parquet")
    here = OfS3(tmp_path, object_server)
    with pytest.raises(FileNotFoundError, match=r"out\.parquet: .*with a / at its end") as caught:
        ps.read_table(here.source("out.parquet"), storage_options=here.options())
    assert SECRET not in str(caught.value)
    parts = [f"out.parquet/part-{i}.parquet" for i in (0, 1)]
    assert here.names("out.parquet/") == here.names("out*/*") == parts
    object_server.log.reset()
    assert ps.read_table(here.source("one.parquet"), storage_options=here.options()).num_rows == 1
    assert len(object_server.log) == 1
    for way in LOCAL:
        assert way(tmp_path).names("out.parquet") == parts
    memory = OfFsspec(tmp_path)
    with pytest.raises(FileNotFoundError, match="with a / at its end"):
        ps.read_table(memory.source("out.parquet"))
    assert memory.names("out.parquet/") == parts


# ---- paths of URLs


class _Asked(http.server.BaseHTTPRequestHandler):
    targets: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.targets.append(self.requestline.split()[1])  # as it came
        first, last = 0, len(DATA)
        asked = self.headers.get("Range", "").removeprefix("bytes=")
        if asked.startswith("-"):
            first = max(last - int(asked[1:]), 0)
        elif asked:
            first, end = map(int, asked.split("-"))
            last = min(end + 1, last)
        self.send_response(206 if asked else 200)
        self.send_header("ETag", '"1"')
        self.send_header("Content-Length", str(last - first))
        if asked:
            self.send_header("Content-Range", f"bytes {first}-{last - 1}/{len(DATA)}")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(DATA[first:last])

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, *_: object) -> None:
        """To nobody."""


@contextmanager
def serving(handler: type[_Asked]) -> Iterator[str]:
    """The URL of a server."""
    handler.targets.clear()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def told() -> Iterator[tuple[str, list[str]]]:
    """A server with one file under every name, and the requested paths as they were sent."""
    with serving(_Asked) as url:
        yield url, _Asked.targets


class _GetAlone(_Asked):
    """HEAD is refused, and no range is one of last bytes."""

    refusal = 403

    def do_GET(self) -> None:
        if self.command == "HEAD" or self.headers.get("Range", "").startswith("bytes=-"):
            self.send_error(self.refusal if self.command == "HEAD" else 416)
        else:
            super().do_GET()

    do_HEAD = do_GET  # noqa: N815


@pytest.mark.parametrize("refusal", [403, 405])
def test_a_url_that_is_signed_for_get_alone(refusal: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("obstore")
    monkeypatch.setattr(_GetAlone, "refusal", refusal)
    with serving(_GetAlone) as url:
        for _ in range(2):
            assert ps.read_table(f"{url}/a.parquet?sig=1", retries=0).num_rows == 1


class _Mute(_Asked):
    """Answers end with the connection, and do not tell how long they are."""

    def send_header(self, keyword: str, value: str) -> None:
        if not keyword.startswith("Content-"):
            super().send_header(keyword, value)


def test_a_server_that_does_not_tell_how_long_its_answers_are() -> None:
    pytest.importorskip("obstore")
    said = r"does not tell how long .* are.*: download the file"
    with serving(_Mute) as url, pytest.raises(ps.StoreError, match=said):
        ps.read_table(f"{url}/a.parquet")
    assert len(_Asked.targets) <= 6


def test_rows_of_files_that_are_called_alike_are_not_taken_by_their_name(
    told: tuple[str, list[str]],
) -> None:
    url = f"{told[0]}/a.parquet"
    scan = ps.scan([f"{url}?id=1", f"{url}?id=2"])
    with pytest.raises(ValueError, match=r"several files .* called '.*/a.parquet'.* scan each"):
        scan.take({url: [0]})
    assert ps.scan([f"{url}?id=1"] * 2).take({url: [0]}).count_rows() == 2


PATHS = (
    "/a%2Fb.parquet", "/a%2fb.parquet", "//a.parquet", "/a//b.parquet", "/a%2F%2Fb", "/a/", "/%FF.parquet", "/a.parquet",
    "/a%20b.parquet", "/a%5B1%5D.parquet", "/a%2Fb.parquet?id=1",
)  # fmt: skip


@pytest.mark.parametrize("library", ["obstore", "fsspec"])
@pytest.mark.parametrize("path", PATHS)
def test_the_path_of_a_url_is_asked_for_as_it_is(
    library: str,
    path: str,
    told: tuple[str, list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip(library)
    pytest.importorskip("aiohttp")
    server, targets = told
    monkeypatch.setattr(urls, "installed", lambda name: name == library)
    assert ps.read_table(f"{server}{path}").num_rows == 1
    spelled = path.replace("%5B", "[").replace("%5D", "]").lower()  # which mean the same
    assert {one.replace("%5B", "[").replace("%5D", "]").lower() for one in targets} == {spelled}
