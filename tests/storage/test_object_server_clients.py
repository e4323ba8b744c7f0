"""The object server of the tests, with its intended clients.

The requests of obstore are compared exactly, because pageseek depends on them; the other clients must work.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from support.object_server.faults import Fault, Rule, status
from support.object_server.server import ObjectServer

DATA = bytes(range(256)) * 400
PATH = "bucket/d/k.bin"
TABLE = "bucket/t/k.parquet"


@pytest.fixture
def server(object_server: ObjectServer) -> ObjectServer:
    """Bytes, and a Parquet file of 20000 rows in four row groups."""
    object_server.put(PATH, DATA)
    object_server.put("bucket/d/e/f", b"12")
    file = io.BytesIO()
    pq.write_table(pa.table({"id": range(20000)}), file, row_group_size=5000)
    object_server.put(TABLE, file.getvalue())
    return object_server


# obstore


@pytest.fixture(params=["s3", "s3 signed", "http"])
def store(request: pytest.FixtureRequest, server: ObjectServer) -> Any:
    """The bucket, as a store of obstore."""
    stores = pytest.importorskip("obstore.store", reason="pip install 'pageseek[obstore]'")
    options = {"allow_http": True, "timeout": "1s"}
    if request.param == "http":
        return stores.HTTPStore(server.url("bucket"), client_options=options)
    keys: dict[str, Any] = {"skip_signature": True}
    if request.param == "s3 signed":
        keys = {"access_key_id": "any", "secret_access_key": "any"}
    return stores.S3Store(
        "bucket", endpoint=server.endpoint, region="us-east-1", client_options=options, **keys
    )


def test_obstore_reads_the_tail_and_learns_the_version_in_one_request(
    server: ObjectServer, store: Any
) -> None:
    import obstore

    got = obstore.get(store, "d/k.bin", options={"range": {"suffix": 10}})
    info = server.objects.info(PATH)
    assert info is not None
    assert bytes(got.bytes()) == DATA[-10:]
    assert got.range == (len(DATA) - 10, len(DATA))
    assert (got.meta["size"], got.meta["e_tag"]) == (len(DATA), info.etag)
    assert got.meta["last_modified"].timestamp() == int(info.modified)
    assert server.log.asked() == ["GET bytes=-10"]


def test_obstore_reads_ranges_of_one_version(server: ObjectServer, store: Any) -> None:
    import obstore
    from obstore.exceptions import PreconditionError

    etag = obstore.head(store, "d/k.bin")["e_tag"]
    options: Any = {"range": (5, 15), "if_match": etag}
    assert bytes(obstore.get(store, "d/k.bin", options=options).bytes()) == DATA[5:15]
    assert bytes(obstore.get_range(store, "d/k.bin", start=5, length=10)) == DATA[5:15]
    server.replace(PATH, DATA)
    with pytest.raises(PreconditionError):
        obstore.get(store, "d/k.bin", options=options)
    assert server.log.asked() == ["HEAD"] + ["GET bytes=5-14"] * 3
    assert [one.headers.get("if-match") for one in server.log.records()] == [None, etag, None, etag]


@pytest.mark.parametrize("fault", [status(503), status(500), status(429), Fault("close")])
def test_obstore_asks_again(server: ObjectServer, store: Any, fault: Fault) -> None:
    import obstore

    server.faults = Rule(fault, times=1)
    assert bytes(obstore.get_range(store, "d/k.bin", start=5, length=10)) == DATA[5:15]
    assert server.log.asked() == ["GET bytes=5-14"] * 2


@pytest.mark.parametrize("kind", ["cut", "stall"])
def test_obstore_goes_on_where_a_body_ended(server: ObjectServer, store: Any, kind: Any) -> None:
    import obstore

    server.faults = Rule(Fault(kind), times=1)
    assert bytes(obstore.get_range(store, "d/k.bin", start=0, length=1000)) == DATA[:1000]
    assert server.log.asked() == ["GET bytes=0-999", "GET bytes=500-999"]


def test_obstore_mixes_no_versions_when_it_goes_on(server: ObjectServer, store: Any) -> None:
    import obstore
    from obstore.exceptions import BaseError

    server.faults = [Rule(Fault("cut"), times=1), Rule(Fault("replaced"), times=1)]
    with pytest.raises(BaseError):
        obstore.get_range(store, "d/k.bin", start=0, length=1000)


@pytest.mark.parametrize("kind", ["short", "wrong_range", "whole"])
def test_obstore_refuses_answers_to_another_range(
    server: ObjectServer, store: Any, kind: Any
) -> None:
    import obstore
    from obstore.exceptions import BaseError

    server.faults = Fault(kind)
    with pytest.raises(BaseError):
        obstore.get_range(store, "d/k.bin", start=5, length=10)


def test_obstore_lists(server: ObjectServer, store: Any) -> None:
    import obstore

    found = [one["path"] for page in obstore.list(store) for one in page]
    # Over HTTP the paths begin at the root of the server, not of the store.
    over_http = type(store).__name__ == "HTTPStore"
    names = ["d/e/f", "d/k.bin", "t/k.parquet"]
    assert found == ([f"bucket/{name}" for name in names] if over_http else names)
    method = "PROPFIND" if over_http else "GET"
    assert [one.method for one in server.log.records()] == [method]


def test_obstore_writes(server: ObjectServer, store: Any) -> None:
    import obstore

    etag = obstore.put(store, "new", b"12345")["e_tag"]
    info = server.objects.info("bucket/new")
    assert info is not None and (info.size, info.etag) == (5, etag)
    obstore.delete(store, "new")
    assert server.objects.info("bucket/new") is None


# pyarrow


@pytest.fixture(params=["anonymous", "signed"])
def filesystem(request: pytest.FixtureRequest, server: ObjectServer) -> pafs.FileSystem:
    if not hasattr(pafs, "S3FileSystem"):
        pytest.skip("this pyarrow is built without S3")
    keys: dict[str, Any] = {"anonymous": True}
    if request.param == "signed":
        keys = {"access_key": "any", "secret_key": "any"}
    where = server.endpoint.removeprefix("http://")
    return pafs.S3FileSystem(endpoint_override=where, scheme="http", region="us-east-1", **keys)


def test_pyarrow_reads_ranges(server: ObjectServer, filesystem: pafs.FileSystem) -> None:
    with filesystem.open_input_file(PATH) as file:
        assert file.read_at(100, 5) == DATA[5:105]
    assert server.log.asked() == ["HEAD", "GET bytes=5-104"]
    assert filesystem.get_file_info(PATH).size == len(DATA)
    found = filesystem.get_file_info(pafs.FileSelector("bucket/d", recursive=True))
    assert sorted(one.path for one in found) == ["bucket/d/e", "bucket/d/e/f", PATH]


def test_pyarrow_reads_a_dataset(server: ObjectServer, filesystem: pafs.FileSystem) -> None:
    found = ds.dataset("bucket/t", filesystem=filesystem)
    assert found.to_table(filter=ds.field("id") == 4711).num_rows == 1


def test_pyarrow_asks_again(server: ObjectServer, filesystem: pafs.FileSystem) -> None:
    server.faults = Rule(Fault("cut"), method="GET", times=1)
    with filesystem.open_input_file(PATH) as file:
        assert file.read_at(100, 5) == DATA[5:105]
    assert server.log.asked() == ["HEAD", "GET bytes=5-104", "GET bytes=5-104"]


# fsspec


def test_fsspec_reads_ranges_over_http(server: ObjectServer) -> None:
    fsspec = pytest.importorskip("fsspec")
    pytest.importorskip("aiohttp")
    files, url = fsspec.filesystem("http"), server.url(PATH)
    assert files.cat_file(url, start=5, end=105) == DATA[5:105]
    assert files.cat_file(url, start=-10) == DATA[-10:]
    assert files.cat_ranges([url] * 2, [0, 20], [10, 30]) == [DATA[:10], DATA[20:30]]
    with files.open(url, cache_type="none") as file:
        file.seek(5)
        assert file.read(10) == DATA[5:15]
    asked = server.log.asked()
    assert asked[:2] + asked[-2:] == ["GET bytes=5-104", "GET bytes=-10", "HEAD", "GET bytes=5-14"]


def test_s3fs_reads_ranges(server: ObjectServer) -> None:
    s3fs = pytest.importorskip("s3fs")
    region = {"region_name": "us-east-1"}
    files = s3fs.S3FileSystem(anon=True, endpoint_url=server.endpoint, client_kwargs=region)
    assert files.cat_file(PATH, start=5, end=105) == DATA[5:105]
    assert files.ls("bucket/d") == ["bucket/d/e", PATH]


# Engines


def _s3_of_polars(server: ObjectServer) -> int:
    polars = pytest.importorskip("polars")
    options = {
        "aws_endpoint_url": server.endpoint,
        "aws_allow_http": "true",
        "aws_access_key_id": "any",
        "aws_secret_access_key": "any",
        "aws_region": "us-east-1",
        "aws_virtual_hosted_style_request": "false",
    }
    scan = polars.scan_parquet(f"s3://{TABLE}", storage_options=options)
    return int(scan.filter(polars.col("id") == 4711).collect().height)


def _http_of_polars(server: ObjectServer) -> int:
    polars = pytest.importorskip("polars")
    scan = polars.scan_parquet(server.url(TABLE))
    return int(scan.filter(polars.col("id") == 4711).collect().height)


def _s3_of_datafusion(server: ObjectServer) -> int:
    # Its HTTP store takes no plain http, and its Python interface has no switch for that.
    datafusion = pytest.importorskip("datafusion")
    stores = pytest.importorskip("datafusion.object_store")
    context = datafusion.SessionContext()
    s3 = stores.AmazonS3(
        bucket_name="bucket",
        region="us-east-1",
        access_key_id="any",
        secret_access_key="any",
        endpoint=server.endpoint,
        allow_http=True,
    )
    context.register_object_store("s3://", s3, "bucket")
    context.register_parquet("t", f"s3://{TABLE}")
    return int(context.sql("select id from t where id = 4711").count())


def _duckdb() -> Any:
    """A connection with httpfs, which no test may download.

    PyPI has it as duckdb-extension-httpfs, for one version of duckdb each.
    """
    duckdb = pytest.importorskip("duckdb")
    packed = pytest.importorskip("duckdb_extension_httpfs", reason="no httpfs for duckdb")
    files = Path(packed.__file__).parent.glob(f"extensions/v{duckdb.__version__}/*")
    if (file := next(files, None)) is None:
        pytest.skip(f"httpfs is not of duckdb {duckdb.__version__}")
    connection = duckdb.connect()
    connection.execute(f"LOAD '{file}'")
    return connection


def _s3_of_duckdb(server: ObjectServer) -> int:
    connection = _duckdb()
    where = server.endpoint.removeprefix("http://")
    connection.execute(
        "CREATE SECRET (TYPE s3, KEY_ID 'any', SECRET 'any', REGION 'us-east-1', "
        f"ENDPOINT '{where}', URL_STYLE 'path', USE_SSL false)"
    )
    return len(connection.execute(f"from 's3://{TABLE}' where id = 4711").fetchall())


def _http_of_duckdb(server: ObjectServer) -> int:
    found = _duckdb().execute(f"from '{server.url(TABLE)}' where id = 4711")
    return len(found.fetchall())


@pytest.mark.parametrize(
    "count",
    [_s3_of_polars, _http_of_polars, _s3_of_datafusion, _s3_of_duckdb, _http_of_duckdb],
)
def test_an_engine_finds_a_row(server: ObjectServer, count: Callable[[ObjectServer], int]) -> None:
    assert count(server) == 1
    assert any(one.range for one in server.log.requests(TABLE, "GET"))
