"""Indexes attached to objects of stores: in one step, and never over a concurrent write."""

from __future__ import annotations

import io
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.storage import RetryPolicy, Source, obstore_files, writing
from support.moto_s3 import Bucket, moto
from support.object_server.faults import Fault, Rule, status
from support.object_server.messages import Request
from support.object_server.server import ObjectServer
from support.remote_files import SECRET, content, s3_options

obstore = pytest.importorskip("obstore", reason="pip install 'pageseek[obstore]'")
KEY, NEW = "t/a.parquet", "t/new.parquet"
PLAIN = content(write_page_index=False, compression="zstd")
WISHES: dict[str, Any] = {"bloom": ["text"], "distinct": ["seed"]}
KEPT = {"ContentType": "application/vnd.apache.parquet", "CacheControl": "max-age=5", "Metadata": {"owner": "me", "origin": "job 7"}}  # fmt: skip


@pytest.fixture(scope="module")
def s3() -> Iterator[Bucket]:
    with moto() as made:
        yield made


@pytest.fixture(autouse=True)
def no_rubbish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever happens, nothing stays in the folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield
    assert not os.listdir(folder)


@pytest.fixture
def bucket(s3: Bucket) -> Iterator[Bucket]:
    ps.clear_cache()
    s3.client.put_object(Bucket="bucket", Key=KEY, Body=PLAIN, **KEPT)
    yield s3
    assert not s3.client.list_multipart_uploads(Bucket="bucket").get("Uploads")
    for one in s3.client.list_objects_v2(Bucket="bucket").get("Contents", ()):
        assert not one["Key"].endswith(".tmp")
        s3.client.delete_object(Bucket="bucket", Key=one["Key"])


def bytes_of(bucket: Bucket, key: str = KEY) -> bytes:
    return bytes(bucket.client.get_object(Bucket="bucket", Key=key)["Body"].read())


def names(bucket: Bucket) -> list[str]:
    found = bucket.client.list_objects_v2(Bucket="bucket").get("Contents", ())
    return [one["Key"] for one in found]


def end_of_data(data: bytes) -> int:
    return len(data) - 8 - int.from_bytes(data[-8:-4], "little")


def is_indexed(data: bytes) -> None:
    """The bytes before the old footer, the rows for every reader, and the indexes."""
    end = end_of_data(PLAIN)
    assert data[:end] == PLAIN[:end] and len(data) > len(PLAIN)
    wanted = pq.read_table(io.BytesIO(PLAIN))
    assert pq.read_table(io.BytesIO(data)).equals(wanted)
    assert ps.read_table(data).equals(wanted)
    found = ps.index.verify(data)
    assert found.ok and {"page_index", "bloom", "distinct"} <= found.checked.keys()


def kept(bucket: Bucket, key: str) -> dict[str, Any]:
    head = bucket.client.head_object(Bucket="bucket", Key=key)
    return {name: head.get(name) for name in KEPT}


def of_store(bucket: Bucket, key: str) -> dict[str, Any]:
    """A store that the user has made, with a prefix."""
    store = obstore.store.S3Store(
        "bucket", config=bucket.options, client_options={"allow_http": True}, prefix="t"
    )
    return {"source": (store, key.removeprefix("t/"))}


Way = Callable[[Bucket, str], dict[str, Any]]
OBSTORE: list[Way] = [Bucket.over_obstore, of_store]


@pytest.mark.parametrize("way", OBSTORE)
def test_in_place_and_back(bucket: Bucket, way: Way) -> None:
    where = way(bucket, KEY)
    made = ps.index.attach(**where, in_place=True, **WISHES)
    assert made.bytes_before == len(PLAIN) and made.bytes_after == len(bytes_of(bucket))
    assert made.path == "s3://bucket/t/a.parquet"
    is_indexed(bytes_of(bucket))
    assert kept(bucket, KEY) == KEPT and names(bucket) == [KEY]
    # through the store, too
    assert {one.kind for one in ps.index.list(**where) if one.attached} == {"page_index", "bloom", "distinct"}  # fmt: skip
    assert ps.index.verify(**where).ok
    wanted = ps.read_table(PLAIN, filter="id = 7777")
    assert ps.read_table(**where, filter="id = 7777").equals(wanted)
    ps.index.detach(**where, in_place=True)
    assert bytes_of(bucket) == PLAIN and kept(bucket, KEY) == KEPT


@pytest.mark.parametrize("way", [*OBSTORE, Bucket.over_pyarrow])
@pytest.mark.parametrize("overwrite", [False, True])
def test_written_elsewhere_and_back(bucket: Bucket, way: Way, overwrite: bool) -> None:
    where, to = way(bucket, KEY), way(bucket, NEW)["source"]
    if overwrite:
        bucket.put(b"what was there", NEW)
    ps.index.attach(**where, output=to, overwrite=overwrite, **WISHES)
    is_indexed(bytes_of(bucket, NEW))
    assert bytes_of(bucket) == PLAIN and names(bucket) == [KEY, NEW]
    expected = dict(KEPT)
    if way == Bucket.over_pyarrow:  # which does not tell what users have said of an object
        expected["Metadata"] = {}
    assert kept(bucket, NEW) == expected
    options = {"storage_options": where["storage_options"]} if "storage_options" in where else {}
    with pytest.raises(FileExistsError, match=r"a\.parquet.*overwrite=True"):
        ps.index.detach(to, output=way(bucket, KEY)["source"], **options)
    assert bytes_of(bucket) == PLAIN
    ps.index.detach(to, output=way(bucket, "t/old.parquet")["source"], **options)
    assert bytes_of(bucket, "t/old.parquet") == PLAIN


def test_from_here_to_there_and_from_there_to_here(bucket: Bucket, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    ps.index.attach(**bucket.over_obstore(KEY), output=path, **WISHES)
    is_indexed(path.read_bytes())
    assert sorted(os.listdir(tmp_path)) == ["a.parquet", "temporary"]
    there = bucket.over_obstore(NEW)
    ps.index.detach(path, output=there["source"], storage_options=there["storage_options"])
    assert bytes_of(bucket, NEW) == PLAIN
    ps.index.attach(PLAIN, output=there["source"], storage_options=there["storage_options"], overwrite=True, **WISHES)  # fmt: skip
    is_indexed(bytes_of(bucket, NEW))


def test_an_existing_object_is_not_written_over(bucket: Bucket) -> None:
    bucket.put(b"others", NEW)
    for way in (Bucket.over_obstore, Bucket.over_pyarrow):
        where, to = way(bucket, KEY), way(bucket, NEW)["source"]
        with pytest.raises(FileExistsError, match="overwrite=True"):
            ps.index.attach(**where, output=to)
        with pytest.raises(ValueError, match="in_place=True"):
            ps.index.attach(**where, output=where["source"])
    assert bytes_of(bucket, NEW) == b"others" and bytes_of(bucket) == PLAIN


def before_put(monkeypatch: pytest.MonkeyPatch, act: Callable[[], Any]) -> None:
    """Do something at the very last moment before the new object is sent."""
    real = obstore.put

    def put(*given: Any, **how: Any) -> Any:
        monkeypatch.setattr(obstore, "put", real)
        act()
        return real(*given, **how)

    monkeypatch.setattr(obstore, "put", put)


def test_an_object_replaced_while_it_is_read_stays(bucket: Bucket) -> None:
    others = content(1)
    seen: list[ps.Progress] = []

    def watch(step: ps.Progress) -> None:
        if not seen:
            bucket.put(others, KEY)
        seen.append(step)

    with pytest.raises(ps.FileChangedError, match=r"a\.parquet"):
        ps.index.attach(**bucket.over_obstore(KEY), in_place=True, progress=watch)
    assert len(seen) > 1
    assert bytes_of(bucket) == others and names(bucket) == [KEY]


@pytest.mark.parametrize("act", [ps.index.attach, ps.index.detach])
def test_an_object_replaced_at_the_last_moment_stays(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, act: Any
) -> None:
    """Between the last look and the write: the store itself refuses it."""
    others = content(1)
    if act is ps.index.detach:  # there is something to take out
        ps.index.attach(**bucket.over_obstore(KEY), in_place=True)
    before_put(monkeypatch, lambda: bucket.put(others, KEY))
    with pytest.raises(ps.FileChangedError, match=r"a\.parquet.*begin again"):
        act(**bucket.over_obstore(KEY), in_place=True)
    assert bytes_of(bucket) == others and names(bucket) == [KEY]


def test_an_object_deleted_meanwhile_stays_so(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    before_put(monkeypatch, lambda: bucket.client.delete_object(Bucket="bucket", Key=KEY))
    with pytest.raises(ps.FileChangedError, match="deleted"):
        ps.index.attach(**bucket.over_obstore(KEY), in_place=True)
    assert names(bucket) == []


def test_an_object_that_appears_meanwhile_stays(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    before_put(monkeypatch, lambda: bucket.put(b"others", NEW))
    where = bucket.over_obstore(KEY)
    with pytest.raises(FileExistsError, match="overwrite=True"):
        ps.index.attach(**where, output=bucket.over_obstore(NEW)["source"])
    assert bytes_of(bucket, NEW) == b"others"


def test_in_place_is_refused_without_a_condition(bucket: Bucket) -> None:
    before = bytes_of(bucket)
    with pytest.raises(ps.UnsupportedError, match=r"in_place=True.*output="):
        ps.index.attach(**bucket.over_pyarrow(KEY), in_place=True)
    assert bytes_of(bucket) == before
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    memory.pipe_file("/attached/a.parquet", PLAIN)
    with pytest.raises(ps.UnsupportedError, match=r"in_place=True.*output="):
        ps.index.attach((memory, "/attached/a.parquet"), in_place=True)
    with pytest.raises(ps.UnsupportedError, match="output=PATH"):
        ps.index.attach(PLAIN, in_place=True)
    assert memory.cat_file("/attached/a.parquet") == PLAIN


def test_one_request_has_an_end(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """An object too large for one PUT is refused if the write is conditional, and is sent in parts otherwise."""
    from pageseek.index import store_target

    where, to = bucket.over_obstore(KEY), bucket.over_obstore(NEW)["source"]
    for room in (writing, store_target):
        monkeypatch.setattr(room, "ONE_PUT", len(PLAIN) // 2)
    with pytest.raises(ps.UnsupportedError, match=r"one request.*output=\.\.\., overwrite=True"):
        ps.index.attach(**where, in_place=True)
    with pytest.raises(ps.UnsupportedError, match=r"one request.*overwrite=True"):
        ps.index.attach(**where, output=to)
    monkeypatch.setattr(store_target, "ONE_PUT", len(PLAIN))  # it is the indexes that are too much
    with pytest.raises(ps.UnsupportedError, match="one request"):
        ps.index.attach(**where, in_place=True)
    assert bytes_of(bucket) == PLAIN and names(bucket) == [KEY]
    ps.index.attach(**where, output=to, overwrite=True, **WISHES)
    is_indexed(bytes_of(bucket, NEW))


def test_what_is_too_large_for_one_request_goes_in_parts(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upload that breaks off makes no object."""
    table = pa.table({"v": [os.urandom(4096) for _ in range(4096)]})
    file = io.BytesIO()
    pq.write_table(table, file, compression="none", use_dictionary=False, row_group_size=1024)
    bucket.put(file.getvalue(), KEY)
    monkeypatch.setattr(writing, "ONE_PUT", 5 << 20)
    monkeypatch.setattr(writing, "PART", 5 << 20)
    where, to = bucket.over_obstore(KEY), bucket.over_obstore(NEW)["source"]
    ps.index.attach(**where, output=to, overwrite=True)
    indexed = bytes_of(bucket, NEW)
    assert pq.read_table(io.BytesIO(indexed)).equals(table)
    etag = bucket.client.head_object(Bucket="bucket", Key=NEW)["ETag"]
    assert etag.strip('"').endswith("-4")  # as S3 marks what came in four parts

    models = pytest.importorskip("moto.s3.models")
    real = models.FakeMultipart.set_part

    def broken(self: Any, part_id: int, *rest: Any, **more: Any) -> Any:
        if part_id == 3:
            raise OSError("the disk of the server is full")
        return real(self, part_id, *rest, **more)

    monkeypatch.setattr(models.FakeMultipart, "set_part", broken)
    with pytest.raises(ps.StoreError, match=r"new\.parquet.*500.*AbortIncompleteMultipartUpload"):
        ps.index.attach(**where, output=to, overwrite=True, page_index=False)
    assert bytes_of(bucket, NEW) == indexed
    uploads = bucket.client.list_multipart_uploads(Bucket="bucket").get("Uploads", ())
    for left in uploads:  # obstore takes back some, and not others
        bucket.client.abort_multipart_upload(Bucket="bucket", Key=NEW, UploadId=left["UploadId"])


# ---- the project's own server, where requests can go wrong

PATH = "bucket/t/a.parquet"


@pytest.fixture
def server() -> Iterator[ObjectServer]:
    ps.clear_cache()
    with ObjectServer() as made:
        made.put(PATH, PLAIN)
        yield made
        assert [key for key, _ in made.objects.keys("bucket") if key.endswith(".tmp")] == []


def at(server: ObjectServer, path: str = PATH) -> bytes:
    found = server.objects.open(path)
    assert found is not None
    return bytes(found[1].read(0, found[0].size))


def test_an_object_is_read_once(server: ObjectServer) -> None:
    """It is copied, and pages are taken from the copy; only its end was read before."""
    file = io.BytesIO()
    pq.write_table(pa.table({"v": np.random.default_rng(3).random(1 << 19)}), file)
    data = file.getvalue()
    server.put(PATH, data)
    made = ps.index.attach(f"s3://{PATH}", storage_options=s3_options(server), in_place=True)
    assert made.added == {("page_index", "v"): 1}
    read = sum(one.sent for one in server.log.requests(method="GET"))
    assert read < len(data) + (600 << 10) < 1.3 * len(data)
    (put,) = server.log.requests(method="PUT")
    assert put.headers["if-match"]


@pytest.mark.parametrize("fault", [status(503), status(500), Fault("close"), Fault("reset")], ids=lambda f: f.name)  # fmt: skip
@pytest.mark.parametrize("in_place", [True, False])
def test_a_put_that_fails_is_tried_again(
    server: ObjectServer, fault: Fault, in_place: bool
) -> None:
    server.faults = [Rule(fault, method="PUT", times=2)]
    to: Any = {"in_place": True} if in_place else {"output": "s3://bucket/t/new.parquet"}
    ps.index.attach(f"s3://{PATH}", storage_options=s3_options(server), **to, **WISHES)
    is_indexed(at(server, PATH if in_place else "bucket/t/new.parquet"))


@pytest.mark.parametrize("fault", [status(503), status(403), Fault("close")], ids=lambda f: f.name)
def test_a_put_that_fails_for_good_leaves_what_was(
    server: ObjectServer, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pageseek.storage.retry.FIRST_WAIT", 0.001)
    server.faults = [Rule(fault, method="PUT")]
    few = s3_options(server, retry_config={"max_retries": 3})
    with pytest.raises(OSError, match=r"t/a\.parquet: to put") as caught:
        ps.index.attach(f"s3://{PATH}", storage_options=few, in_place=True)
    assert SECRET not in str(caught.value) and caught.value.__cause__ is None
    assert at(server) == PLAIN
    assert [key for key, _ in server.objects.keys("bucket")] == ["t/a.parquet"]


@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize("others", [False, True])
def test_an_answer_that_never_comes(server: ObjectServer, in_place: bool, others: bool) -> None:
    """The object was written, but the response was lost: the retry is refused, and the object's content shows that it is ours."""
    path = PATH if in_place else "bucket/t/new.parquet"
    puts: list[Request] = []

    def lost(request: Request) -> Fault | None:
        if request.method != "PUT":
            return None
        puts.append(request)
        if len(puts) == 1:
            return Fault("lost")
        if others:
            server.put(path, content(1))
        return None

    server.faults = lost
    to: Any = {"in_place": True} if in_place else {"output": f"s3://{path}"}
    if others:
        with pytest.raises(ps.FileChangedError if in_place else FileExistsError):
            ps.index.attach(f"s3://{PATH}", storage_options=s3_options(server), **to)
        assert at(server, path) == content(1)
    else:
        ps.index.attach(f"s3://{PATH}", storage_options=s3_options(server), **to, **WISHES)
        is_indexed(at(server, path))
    assert len(puts) == 2


@pytest.mark.timed
def test_a_slow_upload_is_no_silence(server: ObjectServer) -> None:
    """The response to a PUT comes after the whole body, which may take longer than `timeout`."""
    server.faults = lambda request: time.sleep(1.2) if request.method == "PUT" else None
    files = obstore_files.of_url(f"s3://{PATH}", s3_options(server))[0]
    to = writing.writer(
        Source("t/new.parquet", files, retry_policy=RetryPolicy(retries=0, timeout=0.5))
    )
    to.put(memoryview(PLAIN))
    assert at(server, "bucket/t/new.parquet") == PLAIN


def test_files_of_tables_are_left_alone(server: ObjectServer) -> None:
    options = s3_options(server)
    for log in ("bucket/t/_delta_log/00000000000000000000.json", "bucket/metadata/v1.metadata.json"):  # fmt: skip
        server.put(log, b"{}")
        path = "bucket/t/day=1/a.parquet"
        server.put(path, PLAIN)
        for act in (ps.index.attach, ps.index.detach):
            for to in ({"in_place": True}, {"output": "s3://bucket/t/b.parquet"}):
                with pytest.raises(ps.UnsupportedError, match="table"):
                    act(f"s3://{path}", storage_options=options, **to)
        assert at(server, path) == PLAIN
        server.delete(log)
    ps.index.attach(f"s3://{path}", storage_options=options, in_place=True)


def test_filesystems_of_fsspec(server: ObjectServer) -> None:
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    folder = "/attached-there"
    memory.pipe_file(f"{folder}/a.parquet", PLAIN)
    ps.index.attach((memory, f"{folder}/a.parquet"), output=(memory, f"{folder}/b.parquet"), **WISHES)  # fmt: skip
    is_indexed(memory.cat_file(f"{folder}/b.parquet"))
    with pytest.raises(FileExistsError, match=r"a\.parquet.*overwrite=True"):
        ps.index.detach((memory, f"{folder}/b.parquet"), output=(memory, f"{folder}/a.parquet"))
    to = (memory, f"{folder}/b.parquet")
    ps.index.detach(to, output=(memory, f"{folder}/c.parquet"))
    assert memory.cat_file(f"{folder}/c.parquet") == PLAIN
    memory.pipe_file(f"{folder}/t/_delta_log/0.json", b"{}")
    with pytest.raises(ps.UnsupportedError, match="Delta Lake table"):
        ps.index.attach(PLAIN, output=(memory, f"{folder}/t/x.parquet"))
    real = memory.mv

    def broken(*_: Any, **__: Any) -> None:
        raise OSError("no room")

    memory.mv = broken
    try:
        with pytest.raises(ps.StoreError, match=r"d\.parquet.*no room"):
            ps.index.attach(to, output=(memory, f"{folder}/d.parquet"))
    finally:
        memory.mv = real
    assert sorted(map(os.path.basename, memory.ls(folder, detail=False))) == ["a.parquet", "b.parquet", "c.parquet", "t"]  # fmt: skip
    memory.rm(folder, recursive=True)


def test_filesystems_of_pyarrow_on_this_machine(tmp_path: Path) -> None:
    """They are the disk: what a path can do, they can."""
    path = tmp_path / "a.parquet"
    path.write_bytes(PLAIN)
    local = pafs.LocalFileSystem()
    ps.index.attach((local, str(path)), in_place=True, **WISHES)
    is_indexed(path.read_bytes())
    below = pafs.SubTreeFileSystem(str(tmp_path), local)
    ps.index.detach((below, "a.parquet"), output=(below, "b.parquet"))
    assert (tmp_path / "b.parquet").read_bytes() == PLAIN


def test_a_table_on_a_store(bucket: Bucket) -> None:
    """Committed through the table; where the commit fails the new object goes."""
    deltalake = pytest.importorskip("deltalake", "1.6")
    options = {
        "AWS_ENDPOINT_URL": bucket.endpoint, "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "any",
        "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_ALLOW_HTTP": "true",
    }  # fmt: skip
    rows = pa.table({"id": range(1000), "k": ["a b", "c"] * 500})
    url = "s3://bucket/table"
    deltalake.write_deltalake(url, rows, partition_by=["k"], storage_options=options)
    table = deltalake.DeltaTable(url, storage_options=options)
    path = next(name for name in names(bucket) if name.startswith("table/k=a"))
    where = bucket.over_obstore(path)
    with pytest.raises(ps.UnsupportedError, match="table=DeltaTable"):
        ps.index.attach(**where, in_place=True)
    made = ps.index.attach(**where, distinct=["id"], table=table)
    assert made.path.startswith("s3://bucket/table/k=a") and made.path != f"s3://bucket/{path}"
    assert table.version() == 1
    assert table.to_pyarrow_table().sort_by("id").equals(rows)
    assert {one.kind for one in ps.index.list(made.path, storage_options=bucket.options)} >= {"distinct"}  # fmt: skip
    # by the names that the table gives, with its own options
    url = "s3://bucket/a table"
    deltalake.write_deltalake(url, rows, partition_by=["k"], storage_options=options)
    spaced = deltalake.DeltaTable(url, storage_options=options)
    for path in spaced.file_uris():
        ps.index.attach(path, distinct=["id"], table=spaced)
    assert spaced.version() == 2 and spaced.to_pyarrow_table().sort_by("id").equals(rows)
    url = "s3://bucket/table"
    before = names(bucket)
    where = bucket.over_obstore(made.path.removeprefix("s3://bucket/"))
    stale = deltalake.DeltaTable(url, storage_options=options)

    def gone(_: Any) -> None:
        if stale.version() == 1 and len(names(bucket)) == len(before):
            deltalake.DeltaTable(url, storage_options=options).delete("k = 'a b'")

    with pytest.raises(ps.FileChangedError, match="taken"):
        ps.index.attach(**where, bloom=["id"], table=stale, progress=gone)
    log = [name for name in names(bucket) if name not in before]
    assert log == ["table/_delta_log/00000000000000000002.json"]
