"""Folders in stores that are tables of Delta Lake and Iceberg: the current version is read through any library that opens the store, and
no extra request finds out what a folder is.
"""

from __future__ import annotations

import datetime as dt
import io
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from support.moto_s3 import Bucket, moto
from support.object_server.server import ObjectServer
from support.remote_files import SECRET, s3_options

deltalake = pytest.importorskip("deltalake", reason="pip install 'pageseek[delta]'")
pytest.importorskip("obstore", reason="pip install 'pageseek[obstore]'")
N = 100
OLD = pa.table({"id": pa.array(range(N), pa.int64()), "k": ["x y%=", "b"] * (N // 2)})
NEW = pa.table({"id": pa.array(range(N, 2 * N), pa.int64()), "k": ["x y%=", "b"] * (N // 2)})
CURRENT = list(range(N, 2 * N))


def ids(table: pa.Table) -> list[int]:
    return sorted(table["id"].to_pylist())


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    with moto() as made:
        yield made


@pytest.fixture(scope="module")
def delta(bucket: Bucket) -> str:
    """With a checkpoint, behind which the log begins, and one commit more."""
    options = {
        "AWS_ENDPOINT_URL": bucket.endpoint, "AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true", "aws_conditional_put": "etag",
    }  # fmt: skip
    url = "s3://bucket/lake/a table"
    deltalake.write_deltalake(url, OLD, partition_by=["k"], storage_options=options)
    deltalake.write_deltalake(url, OLD, mode="overwrite", storage_options=options)
    deltalake.DeltaTable(url, storage_options=options).create_checkpoint()
    bucket.client.delete_object(Bucket="bucket", Key=f"lake/a table/_delta_log/{0:020}.json")
    deltalake.write_deltalake(url, NEW, mode="overwrite", storage_options=options)
    return url


@pytest.fixture(scope="module")
def iceberg(bucket: Bucket, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("pyiceberg")
    from pyiceberg.transforms import IdentityTransform

    catalog = bucket.iceberg_catalog(tmp_path_factory.mktemp("c"), "house")
    table = catalog.create_table("n.t", schema=OLD.schema)
    with table.update_spec() as spec:
        spec.add_field("k", IdentityTransform(), "k")
    table.append(OLD)
    table.overwrite(NEW)
    yield str(table.metadata.location)
    catalog.engine.dispose()


def by_url(bucket: Bucket, url: str) -> dict[str, Any]:
    return {"source": url, "storage_options": bucket.options}


def with_a_slash(bucket: Bucket, url: str) -> dict[str, Any]:
    return {"source": f"{url}/", "storage_options": bucket.options}


def in_a_list(bucket: Bucket, url: str) -> dict[str, Any]:
    return {"source": [url], "storage_options": bucket.options}


def of_arrow(bucket: Bucket, url: str) -> dict[str, Any]:
    return bucket.over_pyarrow(url.removeprefix("s3://bucket/"))


def below_a_subtree(bucket: Bucket, url: str) -> dict[str, Any]:
    filesystem = of_arrow(bucket, url)["source"][0]
    folder, name = os.path.split(url.removeprefix("s3://"))
    return {"source": (pafs.SubTreeFileSystem(folder, filesystem), name)}


def of_obstore(bucket: Bucket, url: str, prefix: str | None = None) -> dict[str, Any]:
    from obstore.store import S3Store

    options = {"allow_http": True}
    store = S3Store("bucket", config=bucket.options, client_options=options, prefix=prefix)
    return {"source": (store, url.removeprefix("s3://bucket/").removeprefix(f"{prefix}/"))}


def below_a_prefix(bucket: Bucket, url: str) -> dict[str, Any]:
    return of_obstore(bucket, url, urlsplit(url).path.strip("/").partition("/")[0])


WAYS = [by_url, with_a_slash, in_a_list, of_arrow, below_a_subtree, of_obstore, below_a_prefix]


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
@pytest.mark.parametrize("way", WAYS)
def test_a_folder_is_its_current_version(
    kind: str, way: Any, bucket: Bucket, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue(kind)
    given = way(bucket, url)
    ps.clear_cache()
    assert ids(ps.read_table(**given)) == CURRENT
    assert len(ids(ps.read_table(**given, table=False, columns=["id"]))) > N
    found = ps.scan(**given, filter="k = 'b' and id = 101").explain().to_dict()
    assert found["files"]["pruned_by"] == {"partition": 1}
    (note,) = found["notes"]
    said = (
        "Delta Lake table {}: version 2" if kind == "delta" else "Iceberg table {}: metadata/00003-"
    )
    assert any(note.startswith(said.format(name)) for name in (url, url[5:], url.rpartition("/")[2], url[12:])), note  # fmt: skip
    assert SECRET not in note + repr(ps.scan(**given))


# a subtree that has only the metadata does not reach the table's files
@pytest.mark.parametrize("way", [by_url, in_a_list, of_arrow, of_obstore, below_a_prefix])
def test_a_metadata_file_is_its_version(way: Any, bucket: Bucket, iceberg: str) -> None:
    keys = bucket.client.list_objects_v2(Bucket="bucket", Prefix=urlsplit(iceberg).path[1:])
    names = sorted(one["Key"] for one in keys["Contents"] if one["Key"].endswith(".metadata.json"))
    for name, rows in ((names[-1], CURRENT), (names[-2], list(range(N)))):
        ps.clear_cache()
        assert ids(ps.read_table(**way(bucket, f"s3://bucket/{name}"))) == rows


@pytest.fixture(scope="module")
def versions(bucket: Bucket, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[float]]:
    """A table of three versions, whose commits the bucket got more than a second apart: the URL, and when."""
    root = tmp_path_factory.mktemp("versions") / "t"
    for i in range(3):
        deltalake.write_deltalake(str(root), pa.table({"id": [i]}), mode="append")
    times = []
    for path in sorted(root.rglob("*"), key=lambda path: (path.suffix == ".json", path.name)):
        if path.is_file():
            key = f"older/versions/{path.relative_to(root)}"
            bucket.client.put_object(Bucket="bucket", Key=key, Body=path.read_bytes())
            if path.suffix == ".json":
                found = bucket.client.head_object(Bucket="bucket", Key=key)
                times.append(found["LastModified"].timestamp())
                time.sleep(1.1)
    return "s3://bucket/older/versions", times


def by_an_object(bucket: Bucket, url: str) -> dict[str, Any]:
    options = {
        "AWS_ENDPOINT_URL": bucket.endpoint, "AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true",
    }  # fmt: skip
    return {"source": deltalake.DeltaTable(url, storage_options=options)}


@pytest.mark.parametrize("way", [by_url, of_arrow, of_obstore, below_a_prefix, by_an_object])
def test_a_version_by_its_time(way: Any, bucket: Bucket, versions: tuple[str, list[float]]) -> None:
    url, times = versions
    assert len(times) == 3
    for i, moment in enumerate(times):
        for later in (0.0, 0.5):
            at = dt.datetime.fromtimestamp(moment + later, dt.UTC)
            assert ids(ps.read_table(**way(bucket, url), timestamp=at)) == [*range(i + 1)]
    with pytest.raises(ps.UnsupportedError, match="before the first commit") as caught:
        ps.scan(**way(bucket, url), timestamp="2001-01-01")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_in_another_process(kind: str, bucket: Bucket, request: pytest.FixtureRequest) -> None:
    import pickle

    plan = ps.scan(**by_url(bucket, request.getfixturevalue(kind)), filter="id = 150").plan()
    assert SECRET not in repr(plan)
    found = pickle.loads(pickle.dumps(plan)).execute()
    assert [row for batch in found for row in batch["id"].to_pylist()] == [150]


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
@pytest.mark.parametrize("way", [by_url, of_arrow, of_obstore])
def test_folders_of_tables_and_what_lies_inside(
    kind: str, way: Any, bucket: Bucket, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue(kind)
    above = url.rpartition("/")[0]
    for source in (above, f"{above}/**/*.parquet"):
        with pytest.raises(ps.UnsupportedError, match="table=False") as caught:
            ps.read_table(**way(bucket, source))
        assert url.removeprefix("s3://bucket/") in str(caught.value)
        assert SECRET not in str(caught.value)
    top = url if kind == "delta" else f"{url}/data"
    found = ps.scan(**way(bucket, f"{top}/k=b/*.parquet"), columns=["id"])
    assert found.count_rows() >= N // 2
    assert found.explain().notes == []  # what is above was not listed
    found = ps.scan(**way(bucket, f"{url}/**/*.parquet"), columns=["id"])
    assert found.count_rows() >= 2 * N
    (note,) = found.explain().notes
    assert "the files that were named are read" in note


def test_without_deltalake(delta: str, bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(ps.UnsupportedError, match=r'pip install "pageseek\[delta\]".*table=False'):
        ps.read_table(**by_url(bucket, delta))


def test_indexes_are_not_put_behind_a_table(delta: str, bucket: Bucket, tmp_path: Path) -> None:
    given = by_url(bucket, delta)
    for where in ({"in_place": True}, {"output": tmp_path / "out.parquet"}):
        with pytest.raises(ps.UnsupportedError, match="commit it through the table"):
            ps.index.attach(**given, **where)
    with pytest.raises(ValueError, match="2 files in the current version"):
        ps.index.list(**given)
    found = ps.index.verify(**given)
    assert found.ok and found.checked["log"] == 2  # of `id`, in two files


def test_metadata_that_is_compressed(bucket: Bucket, iceberg: str) -> None:
    """Given at the lower end of a bucket, where the URL of the table ends like its path."""
    import gzip

    client = bucket.client
    found = client.list_objects_v2(Bucket="bucket", Prefix="house/n/t/metadata/")["Contents"]
    newest = max(one["Key"] for one in found if one["Key"].endswith(".metadata.json"))
    body = client.get_object(Bucket="bucket", Key=newest)["Body"].read()
    key = "house/n/t/metadata/00099-z.gz.metadata.json"
    client.put_object(Bucket="bucket", Key=key, Body=gzip.compress(body))
    hint = "house/n/t/metadata/version-hint.text"
    try:
        assert ids(ps.read_table(**by_url(bucket, iceberg))) == CURRENT
        (note,) = ps.scan(**by_url(bucket, iceberg)).explain().notes
        assert "00099-z.gz.metadata.json" in note
        bucket.put(b"00002", hint)
        (note,) = ps.scan(**by_url(bucket, iceberg)).explain().notes
        assert "metadata/00002-" in note
    finally:
        for one in (key, hint):
            client.delete_object(Bucket="bucket", Key=one)


# -- what it costs --------------------------------------------------------------------------------


@pytest.fixture
def server(object_server: ObjectServer, tmp_path: Path) -> ObjectServer:
    ps.clear_cache()
    root = tmp_path / "t"
    deltalake.write_deltalake(str(root), OLD)
    for _ in range(5):
        deltalake.write_deltalake(str(root), NEW, mode="overwrite")
    for one in root.rglob("*"):
        if one.is_file():
            object_server.put(f"bucket/t/{one.relative_to(root)}", one.read_bytes())
    file = io.BytesIO()
    pq.write_table(OLD, file)
    for name in ("plain/a", "t/b"):
        object_server.put(f"bucket/{name}.parquet", file.getvalue())
    object_server.latency = 0.1
    return object_server


def test_a_file_is_not_asked_what_it_lies_in(server: ObjectServer) -> None:
    for source in ("s3://bucket/t/b.parquet", "s3://bucket/plain/a.parquet"):
        server.log.reset()
        scan = ps.scan(source, storage_options=s3_options(server))
        assert not len(server.log)
        assert scan.to_table().num_rows == N
        assert all(unquote(record.path).endswith(".parquet") for record in server.log.records())
        assert scan.explain().notes == []
        assert all(unquote(record.path).endswith(".parquet") for record in server.log.records())


@pytest.mark.timed
def test_a_folder_is_listed_once(server: ObjectServer) -> None:
    scan = ps.scan("s3://bucket/plain/", storage_options=s3_options(server))
    assert len(server.log) == 1
    assert scan.to_table().num_rows == N
    server.log.reset()
    scan = ps.scan("s3://bucket/t", storage_options=s3_options(server))
    lists = [one for one in server.log.records() if "list-type" in one.query]
    assert len(lists) == 1
    read = {unquote(one.path) for one in server.log.records() if one not in lists}
    assert read == {f"bucket/t/_delta_log/{n:020}.json" for n in range(6)}
    assert server.log.waves() == 2  # the list, and the log side by side
    assert ids(scan.to_table()) == CURRENT


# -- other filesystems ----------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["pair", "url", "obstore"])
def test_in_memory(tmp_path: Path, form: str) -> None:
    deltalake.write_deltalake(str(tmp_path / "t"), OLD)
    deltalake.write_deltalake(str(tmp_path / "t"), NEW, mode="overwrite")
    names = [str(one.relative_to(tmp_path)) for one in tmp_path.rglob("*") if one.is_file()]
    source: Any
    if form == "obstore":
        from obstore.store import MemoryStore

        store = MemoryStore()
        for name in names:
            store.put(f"x/{name}", (tmp_path / name).read_bytes())
        source = store, "x/t"
    else:
        memory = pytest.importorskip("fsspec").filesystem("memory")
        for name in names:
            memory.pipe_file(f"/{tmp_path.name}/{name}", (tmp_path / name).read_bytes())
        source = f"memory://{tmp_path.name}/t" if form == "url" else (memory, f"/{tmp_path.name}/t")
    assert ids(ps.read_table(source)) == CURRENT
    assert len(ids(ps.read_table(source, table=False))) == 2 * N
    assert ids(ps.read_table(source, timestamp="2100-01-01")) == CURRENT
    with pytest.raises(ps.UnsupportedError, match="before the first commit"):
        ps.scan(source, timestamp="2001-01-01")
