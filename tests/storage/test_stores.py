"""The exact requests to a remote store, and right answers."""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.cli import main
from pageseek.storage import endpoint as endpoints
from pageseek.storage import obstore_files
from support.object_server.server import ObjectServer
from support.opened import open_metadata
from support.remote_files import (
    GROUPS,
    PATH,
    ROWS,
    SECRET,
    STRONG,
    WEAK,
    Way,
    content,
    of_fsspec,
    of_obstore,
    table,
)

POINT = ps.col("id") == 12_345
RANGE = ps.col("id").between(7_000, 7_900)


@pytest.fixture
def server(object_server: ObjectServer) -> ObjectServer:
    ps.clear_cache()
    object_server.put(PATH, content())
    return object_server


def shape(server: ObjectServer) -> list[str]:
    """The requests; of ranges only whether they count from the start or the end."""
    asked = []
    for one in server.log.asked(PATH):
        asked.append(re.sub(r"=-\d+", "=tail", re.sub(r"=\d+-\d+", "=range", one)))
    return asked


def read(given: dict[str, Any], **how: Any) -> pa.Table:
    return ps.read_table(**given, **how)


def expected(**how: Any) -> pa.Table:
    return ps.read_table(content(), **how)


@pytest.mark.covering(2)
@pytest.mark.parametrize("way", STRONG + WEAK)
@pytest.mark.parametrize("columns", [None, ["v"], []], ids=str)
@pytest.mark.parametrize(
    "condition", [None, POINT, RANGE, ps.col("v") < 1 << 36, ps.col("text") > "9"], ids=str
)
def test_answers_are_those_of_a_file_at_hand(
    server: ObjectServer, way: Way, condition: Any, columns: Any
) -> None:
    for _ in range(2):
        found = read(way(server), filter=condition, columns=columns)
        assert found == expected(filter=condition, columns=columns)


@pytest.mark.timed
@pytest.mark.parametrize("way", STRONG)
@pytest.mark.parametrize("condition", [POINT, RANGE], ids=["point", "range"])
def test_a_cold_lookup_is_two_requests_and_a_warm_one_is_one(
    server: ObjectServer, way: Way, condition: Any
) -> None:
    """The first read confirms the version of which footer and page index are known."""
    for asked in (["GET bytes=tail", "GET bytes=range"], ["GET bytes=range"]):
        server.log.reset()
        assert read(way(server), filter=condition) == expected(filter=condition)
        assert shape(server) == asked
        assert server.log.waves() == len(asked)
    (only,) = server.log.records()
    info = server.objects.info(PATH)
    assert info is not None
    conditions = {name: one for name, one in only.headers.items() if name.startswith("if-")}
    assert conditions == {"if-match": info.etag}
    assert only.status == 206


@pytest.mark.timed
@pytest.mark.parametrize("way", STRONG)
def test_a_plan_counts_what_the_server_counts(server: ObjectServer, way: Way) -> None:
    for _ in range(2):
        server.log.reset()
        found = ps.scan(**way(server), filter=POINT).explain(analyze=True).to_dict()
        assert found["requests"] == len(server.log)
        assert found["waves"] == server.log.waves()
        assert found["bytes"]["total"] == server.log.bytes()
        assert "version" not in found or found["version"] != "weak"


@pytest.mark.timed
def test_what_a_weak_version_costs_is_counted_too(server: ObjectServer) -> None:
    found = ps.scan(**of_fsspec(server), filter=POINT).explain(analyze=True).to_dict()
    assert found["version"] == "weak"
    assert (found["requests"], found["waves"]) == (len(server.log), server.log.waves())
    assert found["bytes"]["total"] == server.log.bytes()


@pytest.mark.parametrize("way", STRONG)
def test_a_scan_without_a_filter_asks_no_more_often_than_pyarrow(
    server: ObjectServer, way: Way
) -> None:
    given = way(server)
    found = read(given)
    assert found == table()
    asked = shape(server)
    assert asked[0] == "GET bytes=tail"
    assert set(asked[1:]) == {"GET bytes=range"} and len(asked) <= 1 + GROUPS
    server.log.reset()
    fs = WEAK[1](server)["source"][0]
    assert pq.read_table(PATH, filesystem=fs) == table()
    assert len(asked) <= len(server.log)


def test_over_fsspec_and_pyarrow(server: ObjectServer) -> None:
    for way, opening in zip(WEAK, (1, 2), strict=True):
        for _ in range(2):
            server.log.reset()
            assert read(way(server), filter=POINT) == expected(filter=POINT)
            asked = shape(server)
            assert asked[0] == "HEAD" and asked[-1] == "HEAD"
            assert asked.count("GET bytes=range") <= 2
            assert asked.count("HEAD") <= opening + 2


@pytest.mark.parametrize("way", STRONG)
def test_what_the_footer_answers_is_one_request(server: ObjectServer, way: Way) -> None:
    for asked in (["GET bytes=tail"], ["GET bytes=range"]):
        server.log.reset()
        assert ps.scan(**way(server)).count_rows() == GROUPS * ROWS
        assert shape(server) == asked
    (only,) = server.log.records()
    assert (only.status, only.sent) == (304, 0)


@pytest.mark.parametrize("way", STRONG)
def test_a_small_file_is_one_request(server: ObjectServer, way: Way) -> None:
    small = content()[:0] + _small()
    server.put(PATH, small)
    assert read(way(server), filter=ps.col("a") > 1)["a"].to_pylist() == [2, 3]
    assert shape(server) == ["GET bytes=tail"]


def _small() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"a": [1, 2, 3]}), sink)
    return sink.getvalue().to_pybytes()


def test_no_first_read_is_tiny(server: ObjectServer) -> None:
    for way in STRONG + WEAK:
        server.log.reset()
        read(way(server), filter=POINT)
        for one in server.log.requests(PATH, "GET"):
            first, _, last = (one.range or "").removeprefix("bytes=").partition("-")
            length = int(last) - int(first) + 1 if first else int(last)
            assert length > 4096


# ---- the tail


def test_the_tail_of_the_next_file_is_as_long_as_that_of_the_last() -> None:
    place = endpoints.Endpoint("x")
    unknown = place.tail("d")
    assert endpoints.SHORT_TAIL <= unknown <= endpoints.LONG_TAIL
    place.learn_tail("d", 700_000)
    assert 700_000 < place.tail("d") < 900_000
    assert place.tail("e") == unknown
    for _ in range(60):
        place.learn_tail("d", 3_000)
    assert 3_000 < place.tail("d") < 10_000
    place.learn_tail("d", 1 << 30)
    assert place.tail("d") <= endpoints.LONGEST_TAIL
    for i in range(endpoints.FOLDERS + 5):
        place.learn_tail(f"{i}", 1)
    assert len(place._tails) == endpoints.FOLDERS


@pytest.mark.parametrize("way", STRONG)
def test_a_long_index_is_one_read_more_once(server: ObjectServer, way: Way) -> None:
    long = content(max_rows_per_page=10, write_batch_size=10, column_encoding="PLAIN")
    for name in ("a", "b", "c"):
        server.put(f"bucket/t/{name}.parquet", long)
    place = endpoints.Endpoint("y")
    assert len(long) > place.tail("t")
    counts = []
    for name in ("a", "b", "c"):
        given = way(server)
        if isinstance(given["source"], str):
            given["source"] = given["source"].replace("a.parquet", f"{name}.parquet")
        else:
            given["source"] = (given["source"][0], f"{name}.parquet")
        server.log.reset()
        assert read(given, filter=POINT) == expected(filter=POINT)
        counts.append(len(server.log))
    assert counts[1] == counts[2] == 2 and counts[0] <= 3


# ---- folders, names


def test_folders_and_globs_of_a_bucket(server: ObjectServer) -> None:
    given = STRONG[0](server)
    for name in ("t/b/c.parquet", "t/_x/d.parquet", "t/note.txt", "u/e.parquet", "t2/f.parquet"):
        server.put(f"bucket/{name}", content())
    for pattern, paths in {
        "s3://bucket/t": ["t/a.parquet", "t/b/c.parquet"],
        "s3://bucket/t/": ["t/a.parquet", "t/b/c.parquet"],
        "s3://bucket/t/*.parquet": ["t/a.parquet"],
        "s3://bucket/*/[a-c].parquet": ["t/a.parquet"],
        "s3://bucket/t/**/*.parquet": ["t/a.parquet", "t/b/c.parquet"],
        "s3://bucket/u/e.parquet": ["u/e.parquet"],
    }.items():
        scan = ps.scan(pattern, storage_options=given["storage_options"])
        assert [source.path for source in scan._sources] == paths, pattern
    for nothing in ("s3://bucket/none/", "s3://bucket/*.pq"):
        with pytest.raises(FileNotFoundError, match="bucket"):
            ps.scan(nothing, storage_options=given["storage_options"])
    store = of_obstore(server)["source"][0]
    assert ps.scan((store, "")).count_rows() == 2 * GROUPS * ROWS


def test_names_with_odd_characters(server: ObjectServer) -> None:
    options = STRONG[0](server)["storage_options"]
    for name in ("a b.parquet", "ü+1%20.parquet", "a#b.parquet"):
        server.put(f"bucket/odd/{name}", content())
        path = f"s3://bucket/odd/{name}"
        assert ps.scan(path, storage_options=options).count_rows() == GROUPS * ROWS
        assert ps.scan(server.url(f"bucket/odd/{name}")).count_rows() == GROUPS * ROWS


def test_a_signed_url(server: ObjectServer) -> None:
    pytest.importorskip("obstore")
    url = server.url(PATH) + "?X-Amz-Signature=abcdef&x=1"
    scan = ps.scan(url, filter=POINT)
    assert scan.to_table() == expected(filter=POINT)
    assert {one.query for one in server.log.records()} == {"X-Amz-Signature=abcdef&x=1"}
    assert "abcdef" not in repr(scan) + repr(scan.plan()) + str(scan.explain())


def test_a_bucket_is_asked_no_more_for_a_file_that_is_named(server: ObjectServer) -> None:
    ps.scan(**STRONG[0](server))
    ps.scan(**STRONG[1](server))
    assert server.log.asked() == []


def test_options_that_are_none(server: ObjectServer) -> None:
    given = STRONG[0](server)
    given["storage_options"]["nonsense"] = "hidden-value"
    with pytest.raises(ValueError, match="nonsense") as caught:
        read(given)
    assert "hidden-value" not in str(caught.value)
    with pytest.raises(ValueError, match="retries"):
        read(STRONG[0](server), retries=-1)
    with pytest.raises(ValueError, match="timeout"):
        read(STRONG[0](server), timeout=0)


def test_names_of_options_that_other_libraries_use(server: ObjectServer) -> None:
    options = {"anon": True, "endpoint_url": server.endpoint, "aws_region": "us-east-1"}
    pytest.importorskip("obstore")
    assert ps.read_table(f"s3://{PATH}", storage_options=options) == table()
    in_capitals = {
        "AWS_ENDPOINT_URL": server.endpoint, "AWS_REGION": "us-east-1", "AWS_SKIP_SIGNATURE": "true",
    }  # fmt: skip
    assert ps.read_table(f"s3://{PATH}", storage_options=in_capitals) == table()
    assert not any("authorization" in one.headers for one in server.log.records())


@pytest.mark.timed
def test_a_credential_provider_is_asked_again_when_what_it_gave_expires(
    server: ObjectServer,
) -> None:
    pytest.importorskip("obstore")
    given: list[str] = []
    lasting = [timedelta(seconds=1), timedelta(hours=1)]  # the first is as good as over

    def provide() -> dict[str, Any]:
        expires = datetime.now(UTC) + lasting[min(len(given), 1)]
        given.append(f"key-{len(given)}")
        return {"access_key_id": given[-1], "secret_access_key": SECRET, "expires_at": expires}

    options = {
        "endpoint": server.endpoint, "region": "us-east-1", "credential_provider": provide,
    }  # fmt: skip
    scan = ps.scan(f"s3://{PATH}", storage_options=options)

    def keys() -> set[str]:
        server.log.reset()
        assert scan.to_table() == table()
        signed = [one.headers["authorization"] for one in server.log.records()]
        return {key for one in signed for key in re.findall(r"Credential=(key-\d+)/", one)}

    assert "key-0" in keys()
    until = time.monotonic() + 10
    while len(given) == 1:  # a while passes between two questions
        assert time.monotonic() < until
        keys()
    assert keys() == keys() == {"key-1"} and given == ["key-0", "key-1"]
    assert SECRET not in repr(scan) + repr(scan.plan()) + str(scan.explain())


def test_a_credential_provider_that_fails(server: ObjectServer) -> None:
    pytest.importorskip("obstore")

    def provide() -> dict[str, Any]:
        raise RuntimeError("no keys today")

    options = {
        "endpoint": server.endpoint, "region": "us-east-1", "credential_provider": provide,
    }  # fmt: skip
    with pytest.raises(PermissionError, match=r"a\.parquet: its end: not let in; give"):
        ps.read_table(f"s3://{PATH}", storage_options=options, retries=0)
    assert not len(server.log)


@pytest.mark.parametrize("name", ["request_payer", "requester_pays", "aws_request_payer"])
def test_a_bucket_where_the_reader_pays(server: ObjectServer, name: str) -> None:
    for pays in (True, False):
        ps.clear_cache()
        server.log.reset()
        given = STRONG[0](server)
        given["storage_options"][name] = pays
        assert read(given) == table()
        said = {one.headers.get("x-amz-request-payer") for one in server.log.records()}
        assert said == ({"requester"} if pays else {None})


# ---- what the environment says


@pytest.fixture
def around(server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> ObjectServer:
    """A server that environment variables name, over plain HTTP, as other tools expect them."""
    pytest.importorskip("obstore")
    monkeypatch.setattr(obstore_files, "_stores", OrderedDict())  # of another environment
    said = {
        "AWS_ENDPOINT_URL": server.endpoint, "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": SECRET,
    }  # fmt: skip
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    return server


def test_a_store_of_the_environment(around: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ps.read_table(f"s3://{PATH}") == table()
    monkeypatch.setattr(obstore_files, "_stores", OrderedDict())
    ps.clear_cache()
    monkeypatch.setenv("AWS_ALLOW_HTTP", "false")
    with pytest.raises(OSError, match="allow_http"):
        ps.read_table(f"s3://{PATH}")
    monkeypatch.setenv("AWS_USER_AGENT", "of the environment")
    allowed = {"allow_http": True}  # what is given counts more
    assert ps.read_table(f"s3://{PATH}", storage_options=allowed) == table()
    assert around.log.records()[-1].headers["user-agent"] == "of the environment"


def test_the_command_line_on_a_store(
    around: ObjectServer, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"s3://{PATH}"
    assert main(["index", "attach", url, "--distinct", "seed", "--in-place"]) == 0
    assert main(["index", "list", url]) == 0
    assert "attached" in capsys.readouterr().out
    assert main(["index", "verify", url]) == 0
    assert "0 wrong" in capsys.readouterr().out
    assert main(["scan", url, "--where", "id = 12345", "--columns", "id"]) == 0
    assert "12345" in capsys.readouterr().out
    for command, told in (
        (["explain", url, "--where", "id = 9"], "less:"),
        (["inspect", url], "20,000 rows"),
    ):
        assert main(command) == 0
        assert told in capsys.readouterr().out
    assert main(["index", "detach", url, "--in-place"]) == 0
    found = around.objects.open(PATH)
    assert found is not None and found[0].size == len(content())
    assert ps.read_table(url) == table()
    said = capsys.readouterr()
    assert SECRET not in said.out + said.err


# ---- what is measured


def test_small_answers_that_come_in_one_burst_say_little_of_bandwidth() -> None:
    place = endpoints.Endpoint("z")
    for _ in range(40):
        place.measured(150_000, 0.03 + 1e-5, 0.03)
        place.measured(4 << 20, 0.03 + 0.04, 0.03)
    assert 9e7 < place.bandwidth < 1.6e8


@pytest.mark.timed
def test_an_endpoint_learns_how_far_and_how_fast() -> None:
    place = endpoints.Endpoint("z")
    for _ in range(60):
        place.measured(1_000, 0.2)
        place.measured(1 << 20, 0.2 + 0.1, 0.2)
    assert 0.18 < place.latency < 0.22
    assert 9e6 < place.bandwidth < 12e6
    before = place.latency, place.bandwidth
    place.measured(1_000, 1e4)  # an outlier
    place.measured(1 << 30, 1e-9, 1e-9)
    assert place.latency < 1.5 * before[0] and place.bandwidth < 1.5 * before[1]
    for _ in range(300):
        place.measured(10, 0.0)
    assert place.latency == endpoints.LEAST_LATENCY


@pytest.mark.timed
def test_files_of_one_server_share_what_is_measured(measured_server: ObjectServer) -> None:
    server = measured_server
    server.put(PATH, content())
    ps.clear_cache()
    server.latency = 0.06
    given = STRONG[1](server)
    for _ in range(6):
        read(given, filter=POINT)
    server.put("bucket/other/b.parquet", content())
    file = open_metadata(server.url("bucket/other/b.parquet"))
    assert 0.04 < file.store.latency < 0.2
