"""Buckets of S3 are reached by the session's Hadoop settings, which nobody gets to see."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pytest

import pageseek as ps
from pageseek.spark import attach_index, load, lookup, optimize, read, register, report, write
from pageseek.spark.datasource.source import SESSION, session_option, source_class, told
from pageseek.spark.session.settings import ToldSession
from pageseek.spark.sources import buckets
from pageseek.spark.sources.buckets import reached
from support.moto_s3 import moto
from support.object_server.server import ObjectServer
from support.remote_files import SECRET, content

pytest.importorskip("obstore", reason="pip install 'pageseek[obstore]'")
URL, KEY, TOKEN = "s3a://bucket/t/", "the-access-key", "the-session-token"
TEMPORARY = "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider"
SIMPLE = "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
NOBODY = "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
ROLE = "org.apache.hadoop.fs.s3a.auth.AssumedRoleCredentialProvider"


class Session:
    """A session over Connect, with settings of its own and of its application."""

    def __init__(self, **settings: str) -> None:
        self.conf = ToldSession(
            "4.3.0", {"fs.s3a." + k.replace("_", "."): v for k, v in settings.items()}
        )


def options(url: str = URL, **settings: str) -> Mapping[str, Any] | None:
    return reached(Session(**settings), url, None)[1]  # type: ignore[arg-type]


# ---- what the settings mean


def test_nothing_said_leaves_all_to_the_library() -> None:
    assert options() is None
    assert reached(Session(access_key="a", secret_key="b"), "/here", None) == ("/here", None)  # type: ignore[arg-type]


def test_credentials_are_those_of_the_first_provider_that_has_some() -> None:
    keys = {"access_key": "a", "secret_key": "b"}
    plain = {"access_key_id": "a", "secret_access_key": "b"}
    assert options(**keys) == plain
    assert options(**keys, session_token="c") == {**plain, "session_token": "c"}
    with_token = {**keys, "session_token": "c"}
    for providers, due in (
        (SIMPLE, plain),
        (f"{TEMPORARY},\n {SIMPLE}", {**plain, "session_token": "c"}),
        (NOBODY, {"skip_signature": True}),
        (f"{SIMPLE}, {NOBODY}", plain),
        (ROLE, None),
        (f"{ROLE}, {SIMPLE}", None),
    ):
        assert options(**with_token, aws_credentials_provider=providers) == due
    assert options(aws_credentials_provider=f"{TEMPORARY},{SIMPLE},{NOBODY}") == {
        "skip_signature": True
    }


@pytest.mark.parametrize(
    ("settings", "endpoint", "virtual"),
    [
        ({"endpoint": "minio:9000"}, "https://bucket.minio:9000", True),
        ({"endpoint": "minio:9000", "connection_ssl_enabled": "false"}, "http://bucket.minio:9000", True),
        ({"endpoint": "http://minio:9000/", "path_style_access": "true"}, "http://minio:9000", False),
        ({"endpoint": "http://10.0.0.7:9000"}, "http://10.0.0.7:9000", False),
        ({"endpoint": "s3.amazonaws.com"}, None, None),
        ({"endpoint": ""}, None, None),
    ],
)  # fmt: skip
def test_endpoints(settings: dict[str, str], endpoint: str | None, virtual: bool | None) -> None:
    found = options(**settings) or {}
    assert (found.get("endpoint"), found.get("virtual_hosted_style_request")) == (endpoint, virtual)


def test_a_bucket_that_is_no_host_name_stands_in_the_path() -> None:
    found = options("s3a://Big.Bucket/t", endpoint="minio") or {}
    assert found["endpoint"] == "https://minio"


def test_the_region_is_said_or_stands_in_the_endpoint() -> None:
    found = options(endpoint="s3.eu-west-3.amazonaws.com") or {}
    assert found["region"] == "eu-west-3"
    assert options(endpoint_region="eu-central-1") == {"region": "eu-central-1"}


def test_settings_of_one_bucket_come_first() -> None:
    own = {"bucket_bucket_access_key": "own", "bucket_bucket_endpoint_region": "there"}
    said = {"access_key": "a", "secret_key": "b", "endpoint_region": "here", **own}
    due = {"access_key_id": "own", "secret_access_key": "b", "region": "there"}
    assert options(**said) == due
    assert options("s3://other/t", **said) == {**due, "access_key_id": "a", "region": "here"}
    source, both = reached(Session(**said), [URL, "s3://other/t", "/here"], None)  # type: ignore[arg-type]
    assert both is None and source[2] == "/here"
    assert [one[0].options["access_key_id"] for one in source[:2]] == ["own", "a"]
    assert [one[1] for one in source[:2]] == ["t/", "t"]


def test_the_names_of_pyarrow_where_obstore_is_not_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(buckets, "installed", lambda name: False)
    found = options(access_key="a", secret_key="b", endpoint="http://minio:9000", path_style_access="true")  # fmt: skip
    assert found == {
        "access_key": "a", "secret_key": "b", "endpoint_override": "minio:9000", "scheme": "http",
        "force_virtual_addressing": False,
    }  # fmt: skip
    fs = pytest.importorskip("pyarrow.fs")
    assert fs.S3FileSystem(**found).region
    assert options(aws_credentials_provider=NOBODY) == {"anonymous": True}


def test_what_the_caller_gives_stands_alone() -> None:
    given = {"region": "mine"}
    session: Any = Session(access_key="a", secret_key="b")
    assert reached(session, URL, given) == (URL, given)


# ---- in a session


@pytest.fixture
def server() -> Iterator[ObjectServer]:
    with ObjectServer() as made:
        for i in range(2):
            made.objects.put(f"bucket/t/{i}.parquet", content(i))
        ps.clear_cache()
        yield made


@pytest.fixture
def session(spark: Any, server: ObjectServer) -> Iterator[Any]:
    settings = {
        "fs.s3a.endpoint": server.endpoint, "fs.s3a.path.style.access": "true", "fs.s3a.secret.key": SECRET,
        "fs.s3a.access.key": "of-others", "fs.s3a.bucket.bucket.access.key": KEY, "fs.s3a.session.token": TOKEN,
    }  # fmt: skip
    java = spark.sparkContext._jsc.hadoopConfiguration()
    for name, value in settings.items():
        java.set(name, value)
    yield spark
    for name in settings:
        java.unset(name)


def signed(server: ObjectServer) -> set[tuple[str | None, str | None]]:
    """The keys and tokens of the requests."""
    found = [record.headers for record in server.log.records()]
    keys = [re.search(r"Credential=([^/]+)/", of.get("authorization", "")) for of in found]
    tokens = [of.get("x-amz-security-token") for of in found]
    return {(key and key[1], token) for key, token in zip(keys, tokens, strict=True)}


def explained(frame: Any, mode: str) -> str:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        frame.explain(mode=mode)
    return said.getvalue()


def ids(frame: Any) -> list[int]:
    return sorted(row["id"] for row in frame.collect())


@pytest.mark.spark
def test_every_entry_reaches_a_bucket_as_the_session_says(session: Any, server: ObjectServer):
    register(session)
    session.sql(f"create temporary view v using pageseek options (path '{URL}')").collect()
    entries = {
        "load": load(session, URL),
        "in tasks": load(session, URL, local=False),
        "read": read(session, URL),
        "format": session.read.format("pageseek").load(URL),
        "view": session.table("v"),
        "lookup": lookup(session, URL, pa.table({"id": [4711]}), on="id", columns=["seed"]),
        "list": load(session, [URL + "0.parquet", "s3://bucket/t/1.parquet"]),
    }
    for name, frame in entries.items():
        server.log.reset()
        ps.clear_cache()
        assert ids(frame.where("id = 4711")) == [4711, 4711], name
        assert signed(server) == {(KEY, TOKEN)}, name


@pytest.mark.spark
def test_indexes_are_attached_with_them(session: Any, server: ObjectServer) -> None:
    assert attach_index(session, URL, bloom=["id"])["status"].to_pylist() == ["attached"] * 2
    assert signed(server) == {(KEY, TOKEN)}


@pytest.mark.spark
def test_files_are_written_with_them(session: Any) -> None:
    java = session.sparkContext._jsc.hadoopConfiguration()
    with moto() as bucket:
        java.set("fs.s3a.endpoint", bucket.endpoint)
        write(session.range(9), "s3://bucket/new")
        assert ids(load(session, "s3://bucket/new")) == list(range(9))
        done = optimize(session, "s3://bucket/new", sort_by="id", indexes={"lookup": ["id"]})
        assert (done.rows, len(done.files)) == (9, 1)
        assert ids(load(session, "s3://bucket/new")) == list(range(9))


@pytest.mark.spark
def test_no_secret_is_shown(session: Any, server: ObjectServer) -> None:
    frame = load(session, URL, local=False).where("id = 4711")
    frame.collect()
    shown = [str(report(frame)), repr(report(frame)), explained(frame, "extended")]
    register(session)
    view = session.read.format("pageseek").load(URL)
    shown += [explained(view, mode) for mode in ("simple", "formatted", "extended")]
    assert all("id" in text for text in shown)
    server.objects.put("bucket/t/0.parquet", b"no such thing")
    for again in (frame, load(session, URL + "1.parquet").where("id > 0")):
        server.objects.delete("bucket/t/1.parquet")
        with pytest.raises(Exception, match="parquet") as failed:
            again.toDF(*again.columns).collect()
        shown.append(str(failed.value))
        server.objects.put("bucket/t/1.parquet", content())
    for text in shown:
        assert not any(secret in text for secret in (SECRET, TOKEN, KEY))


@pytest.mark.spark
def test_options_of_the_caller_win(session: Any, server: ObjectServer) -> None:
    given = {"endpoint": server.endpoint, "skip_signature": True}
    assert len(ids(load(session, URL, storage_options=given).where("id < 9"))) == 18
    assert signed(server) == {(None, None)}


@pytest.mark.spark
def test_the_python_data_source_has_them_where_no_option_shows_them(
    session: Any, server: ObjectServer
) -> None:
    known = told(session)
    option = {SESSION: session_option(known), "path": URL}
    made: Any = source_class(known)(option)
    assert len(made.schema().names) == 4
    assert signed(server) == {(KEY, TOKEN)}
    assert SECRET not in str(option)
