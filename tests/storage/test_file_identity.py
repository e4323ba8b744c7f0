"""What identifies a file in the cache and in messages: no file is served as another, and no secret is shown."""

from __future__ import annotations

import gc
import http.server
import io
import pickle
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.datasets.file_cache import cache
from pageseek.storage import Source
from pageseek.storage.redact import shown
from pageseek.storage.resolve import resolve
from support.object_server.server import ObjectServer
from support.opened import open_metadata
from support.remote_files import PATH, content, over_http

ROWS = 40_000
SECRET = "not-to-be-seen"
TAG = '"9c40-6740"'  # size and time, as some servers have it: files of one size and second share it


def made(seed: int, rows: int = ROWS) -> bytes:
    file = io.BytesIO()
    values = pa.array([seed] * rows, pa.int64())
    pq.write_table(pa.table({"a": values}), file, compression="none", use_dictionary=False)
    return file.getvalue()


FILES = {str(i): made(i) for i in (1, 2)}


class _Download(http.server.BaseHTTPRequestHandler):
    """`/download?id=...`: what comes hangs on the query."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        data = FILES[parse_qs(urlsplit(self.path).query)["id"][0]]
        if self.headers.get("If-None-Match") == TAG:
            return self._answer(304, b"", [])
        found = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range") or "bytes=0-")
        assert found is not None
        first, last = found.groups()
        start = int(first) if first else max(len(data) - int(last), 0)
        stop = min(int(last) + 1, len(data)) if first and last else len(data)
        place = f"bytes {start}-{stop - 1}/{len(data)}"
        return self._answer(206, data[start:stop], [("Content-Range", place)])

    def _answer(self, status: int, body: bytes, more: list[tuple[str, str]]) -> None:
        self.send_response(status)
        for name, value in [("ETag", TAG), ("Content-Length", str(len(body))), *more]:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def download() -> Iterator[str]:
    pytest.importorskip("obstore")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Download) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/download"
        server.shutdown()


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    ps.clear_cache()
    yield
    cache.capacity = 256
    ps.clear_cache()


def how_many(source: Any, value: int) -> int:
    return ps.read_table(source, filter=ps.col("a") == value).num_rows


@pytest.mark.parametrize("how", ["saved", "evicted", "open"])
def test_files_that_only_a_query_tells_apart(download: str, how: str, tmp_path: Path) -> None:
    for one, other in (("1", "2"), ("2", "1")):
        ps.clear_cache()
        cache.capacity = 1 if how == "evicted" else 256
        assert how_many(f"{download}?id={one}", int(one)) == ROWS
        if how == "saved":
            ps.save_cache(tmp_path / "saved")
            ps.clear_cache()
            assert ps.load_cache(tmp_path / "saved") == 1
        if how == "evicted":
            ps.scan(content()).count_rows()
            assert how_many(f"{download}?id={one}&x=", int(one)) == ROWS
        assert how_many(f"{download}?id={other}", int(other)) == ROWS
        found = ps.scan(f"{download}?id={other}").aggregate([("a", "max")])
        assert found.to_pylist() == [{"a_max": int(other)}]
        assert how_many(f"{download}?id={one}", int(one)) == ROWS


def test_a_store_in_memory_is_not_taken_for_one_that_was_there(tmp_path: Path) -> None:
    """Objects that are gone leave their addresses to others."""
    obstore = pytest.importorskip("obstore")
    cache.capacity = 1
    addresses = set()
    for i in range(30):
        store = obstore.store.MemoryStore()
        addresses.add(id(store))
        obstore.put(store, "x.parquet", made(i, 20_000))
        assert how_many((store, "x.parquet"), i) == 20_000
        assert ps.save_cache(tmp_path / "saved") == 0
        other = obstore.store.MemoryStore()
        obstore.put(other, "x.parquet", made(-1, 10))
        assert how_many((other, "x.parquet"), -1) == 10  # pushes the first one out
        del store, other
        gc.collect()
    assert len(addresses) < 30


class _Own(pafs.FileSystemHandler):
    """A filesystem of pyarrow with one file, that tells neither content nor time."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def get_type_name(self) -> str:
        return "own"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> list[pafs.FileInfo]:
        return [
            pafs.FileInfo(path, pafs.FileType.File, size=len(self.data), mtime=1.0)
            for path in paths
        ]

    def open_input_file(self, path: str) -> Any:
        return pa.BufferReader(self.data)

    open_input_stream = open_input_file

    def _no(self, *_: Any) -> Any:
        raise NotImplementedError

    get_file_info_selector = create_dir = delete_dir = delete_dir_contents = _no
    delete_root_dir_contents = delete_file = move = copy_file = _no
    open_output_stream = open_append_stream = _no


def test_filesystems_of_one_kind_with_files_of_one_name() -> None:
    cache.capacity = 1
    first, second = (pafs.PyFileSystem(_Own(FILES[i])) for i in "12")
    for _ in range(3):
        assert how_many((first, "x.parquet"), 1) == ROWS
        assert how_many((second, "x.parquet"), 2) == ROWS


def key(url: str, **options: Any) -> str:
    return resolve(url, options)[0].key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "abfss://c1@acct.dfs.core.windows.net/x.parquet",
            "abfss://c2@acct.dfs.core.windows.net/x.parquet",
        ),
        ("http://h/x.parquet?id=1", "http://h/x.parquet?id=2"),
        ("http://h/x.parquet?id=1", "http://h/x.parquet"),
        (
            "http://h/x.parquet?versionId=1&X-Amz-Signature=5",
            "http://h/x.parquet?versionId=2&X-Amz-Signature=5",
        ),
        ("http://ann@h/x.parquet", "http://bob@h/x.parquet"),
        ("s3://b/x.parquet", "s3://c/x.parquet"),
    ],
)
def test_keys_tell_urls_apart(one: str, other: str) -> None:
    pytest.importorskip("obstore")
    assert key(one) != key(other)
    assert key(one) == key(one)


def test_accounts_of_options_tell_containers_apart() -> None:
    pytest.importorskip("obstore")
    keys = {key("az://c/x.parquet", account_name=name) for name in ("a", "b")}
    assert len(keys) == 2


@pytest.mark.parametrize(
    "signed",
    [
        "https://h/x.parquet?X-Amz-Date={}&X-Amz-Signature={}&x-amz-security-token={}",
        "https://h/x.parquet?sv=1&sig={}&se={}",
        "https://h/x.parquet?X-Goog-Signature={}",
    ],
)
def test_a_signature_that_is_made_anew_is_of_the_same_file(signed: str) -> None:
    pytest.importorskip("obstore")
    keys = {key(signed.replace("{}", one)) for one in ("1", "2")}
    assert len(keys) == 1


def test_what_is_shown_of_a_url() -> None:
    assert shown(f"http://user:{SECRET}@h:1/a?sig={SECRET}#x") == "http://h:1/a"
    assert shown("abfss://c@a.dfs.core.windows.net/x") == "abfss://c@a.dfs.core.windows.net/x"
    assert SECRET not in shown(f"abfss://c:{SECRET}@a/x?{SECRET}")


# ---- secrets in paths that are URLs


def places(server: ObjectServer) -> dict[str, Any]:
    fsspec = pytest.importorskip("fsspec")
    pytest.importorskip("aiohttp")
    url = server.url(PATH).replace("://", f"://user:{SECRET}@") + f"?sig={SECRET}"
    http = fsspec.filesystem("http")
    return {
        "fsspec": (http, url),
        "pyarrow": (pafs.PyFileSystem(pafs.FSSpecHandler(http)), url),
        "url": url,
    }


SAID: dict[str, Callable[[Any, Path], Any]] = {
    "scan": lambda given, _: ps.scan(given),
    "sources": lambda given, _: ps.scan(given).sources,
    "plan": lambda given, _: ps.scan(given, filter="id = 3").plan(),
    "explain": lambda given, _: str(ps.scan(given, filter="id = 3").explain(analyze=True)),
    "open": lambda given, _: open_metadata(given),
    "no column": lambda given, _: ps.scan(given, columns=["none"]).to_table(),
    "a number twice": lambda given, _: ps.scan([given, given]).with_row_number("id").to_table(),
    "folders": lambda given, folder: ps.scan([given, str(folder)]).to_table(),
    "partitioning": lambda given, _: ps.scan(given, partitioning={"k": pa.int32()}),
    "beyond": lambda given, _: ps.scan(given).take([10**9]).to_table(),
    "other type": lambda given, _: ps.scan([given, made(1)], filter="id = a").to_table(),
}


@pytest.mark.parametrize("way", ["fsspec", "pyarrow", "url"])
@pytest.mark.parametrize("what", SAID)
def test_no_secret_of_a_path_is_said(
    object_server: ObjectServer, way: str, what: str, tmp_path: Path
) -> None:
    object_server.put(PATH, content())
    folder = tmp_path / "k=1"
    folder.mkdir()
    (folder / "a.parquet").write_bytes(content())
    try:
        said = repr(SAID[what](places(object_server)[way], tmp_path))
    except (ps.PageseekError, OSError, ValueError, IndexError) as error:
        said = "".join(map(str, (repr(error), error.__cause__, error.__context__)))
    assert SECRET not in said


def test_no_secret_of_a_path_is_saved(object_server: ObjectServer, tmp_path: Path) -> None:
    object_server.put(PATH, content())
    given = places(object_server)
    for one in given.values():
        ps.read_table(one, filter="id = 3")
    ps.read_table(**over_http(object_server), filter="id = 3")
    assert ps.save_cache(tmp_path / "saved") == 2  # with the query, and without; of others nothing
    assert SECRET.encode() not in (tmp_path / "saved").read_bytes()


def test_a_slash_too_few() -> None:
    with pytest.raises(FileNotFoundError, match="https:") as caught:
        ps.scan(f"https:/user:{SECRET}@h/a?sig={SECRET}")
    assert SECRET not in str(caught.value)


def test_a_source_is_the_same_after_a_journey() -> None:
    for one in (Source("/a"), Source("/a", partitions=(("k", "1"),)), *resolve("https://h/x?id=1")):
        again = pickle.loads(pickle.dumps(one))
        assert again == one and again.key == one.key and repr(again) == repr(one)


def test_a_password_with_a_slash_is_not_shown() -> None:
    assert shown("s3://AKIA:sec/ret@bucket/x") == "s3://bucket/x"
    assert shown("https://host:80/a@b") == "https://host:80/a@b"
