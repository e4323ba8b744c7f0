"""The object server of the tests, by clients of the standard library."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from support.http_client import Client
from support.object_server.server import ObjectServer

DATA = bytes(range(256)) * 40
PATH = "bucket/a/b.bin"


@pytest.fixture(params=["memory", "folder"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ObjectServer]:
    """One object, in memory and in a folder."""
    with ObjectServer(None if request.param == "memory" else tmp_path) as made:
        made.put(PATH, DATA)
        yield made


@pytest.fixture
def client(server: ObjectServer) -> Iterator[Client]:
    with Client(server) as made:
        yield made


# Objects


def test_get_and_head(server: ObjectServer, client: Client) -> None:
    got, body = client("GET", PATH)
    head, nothing = client("HEAD", PATH)
    assert (got.status, body, head.status, nothing) == (200, DATA, 200, b"")
    for name in ("ETag", "Last-Modified", "Content-Length", "Accept-Ranges"):
        assert got.headers[name] == head.headers[name]
    with urllib.request.urlopen(server.url(PATH)) as answer:
        assert answer.read() == DATA


def test_names_that_urls_quote(server: ObjectServer) -> None:
    path = "bucket/day=1/ä b+c%.parquet"
    server.put(path, b"x")
    with urllib.request.urlopen(server.url(path)) as answer:
        assert answer.read() == b"x"
    assert len(server.log.requests(path)) == 1


def test_put_and_delete(client: Client) -> None:
    made, _ = client("PUT", "bucket/new", b"12345")
    got, body = client("GET", "bucket/new")
    assert (made.status, body, got.headers["ETag"]) == (200, b"12345", made.headers["ETag"])
    assert client("DELETE", "bucket/new")[0].status == 204
    assert client("DELETE", "bucket/new")[0].status == 204
    missing, text = client("GET", "bucket/new")
    assert missing.status == 404 and b"<Code>NoSuchKey</Code>" in text
    assert b"NoSuchBucket" in client("GET", "other/new")[1]


@pytest.mark.parametrize(
    ("asked", "start", "stop"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=5-9", 5, 10),
        ("bytes=10000-", 10000, 10240),
        ("bytes=10000-99999", 10000, 10240),
        ("bytes=-7", 10233, 10240),
        ("bytes=-99999", 0, 10240),
        ("bytes=0-10239", 0, 10240),
    ],
)
def test_one_range(client: Client, asked: str, start: int, stop: int) -> None:
    got, body = client("GET", PATH, Range=asked)
    assert (got.status, body) == (206, DATA[start:stop])
    assert got.headers["Content-Range"] == f"bytes {start}-{stop - 1}/10240"


@pytest.mark.parametrize("asked", ["bytes=10240-", "bytes=10240-10250", "bytes=-0"])
def test_a_range_without_a_byte(client: Client, asked: str) -> None:
    got, _ = client("GET", PATH, Range=asked)
    assert (got.status, got.headers["Content-Range"]) == (416, "bytes */10240")


@pytest.mark.parametrize("asked", ["bytes=0-1,5-6", "bytes=9-5", "bytes=a-b", "rows=0-1", "bytes="])
def test_what_is_not_one_range_is_answered_by_the_whole(client: Client, asked: str) -> None:
    got, body = client("GET", PATH, Range=asked)
    assert (got.status, body) == (200, DATA)


def test_preconditions_of_reads(client: Client) -> None:
    got, _ = client("HEAD", PATH)
    etag, date = got.headers["ETag"], got.headers["Last-Modified"]
    past, future = "Mon, 01 Jan 2001 00:00:00 GMT", "Fri, 01 Jan 2100 00:00:00 GMT"

    def code(**headers: str) -> int:
        return client("GET", PATH, **headers)[0].status

    assert code(If_Match=etag) == code(If_Match="*") == code(If_Match=f'"x", {etag}') == 200
    assert code(If_Match='"x"') == code(If_Match=f"W/{etag}") == 412
    assert code(If_Match=etag, Range="bytes=0-4") == 206
    assert code(If_Match='"x"', Range="bytes=0-4") == 412
    assert code(If_None_Match=etag) == code(If_None_Match=f"W/{etag}") == 304
    assert code(If_None_Match='"x"') == 200
    assert code(If_Modified_Since=date) == code(If_Modified_Since=future) == 304
    assert code(If_Modified_Since=past) == code(If_Modified_Since="soon") == 200
    assert code(If_Unmodified_Since=past) == 412
    assert code(If_Unmodified_Since=date) == 200
    assert code(If_Match=etag, If_Unmodified_Since=past) == 200
    assert code(If_None_Match='"x"', If_Modified_Since=future) == 200
    assert code(If_Range=etag, Range="bytes=0-4") == 206
    assert code(If_Range='"x"', Range="bytes=0-4") == 200


def test_conditional_writes(client: Client) -> None:
    first = client("HEAD", PATH)[0].headers["ETag"]
    assert client("PUT", PATH, b"2", If_None_Match="*")[0].status == 412
    assert client("PUT", "bucket/new", b"1", If_None_Match="*")[0].status == 200
    assert client("PUT", "bucket/none", b"1", If_Match=first)[0].status == 412
    assert client("PUT", PATH, b"2", If_Match=first)[0].status == 200
    assert client("PUT", PATH, b"3", If_Match=first)[0].status == 412
    assert client("DELETE", PATH, If_Match=first)[0].status == 412
    assert client("GET", PATH)[1] == b"2"


def test_equal_bytes_put_again_are_a_new_version(server: ObjectServer, client: Client) -> None:
    first = client("HEAD", PATH)[0].headers["ETag"]
    server.replace(PATH, DATA)
    assert client("GET", PATH, If_Match=first)[0].status == 412


def test_an_answer_under_way_keeps_its_version(server: ObjectServer) -> None:
    big = b"a" * 4_000_000
    server.put(PATH, big)
    server.bandwidth = 20e6
    with urllib.request.urlopen(server.url(PATH)) as answer:
        server.replace(PATH, b"b" * 4_000_000)
        assert answer.read() == big


def test_a_body_in_chunks(server: ObjectServer, client: Client) -> None:
    client.connection.request("PUT", "/bucket/x", iter([b"abc", b"defg"]), encode_chunked=True)
    assert client.connection.getresponse().read() == b""
    assert client("GET", "bucket/x")[1] == b"abcdefg"


@pytest.mark.parametrize(
    "headers",
    [
        {"x_amz_content_sha256": "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"},
        {"Content_Encoding": "aws-chunked", "x_amz_trailer": "x-amz-checksum-crc32"},
    ],
)
def test_a_body_in_chunks_of_s3(client: Client, headers: dict[str, str]) -> None:
    body = b"3;chunk-signature=00\r\nabc\r\n4\r\ndefg\r\n0\r\nx-amz-checksum-crc32:AAAA\r\n\r\n"
    assert client("PUT", "bucket/x", body, **headers)[0].status == 200
    assert client("GET", "bucket/x")[1] == b"abcdefg"
    assert client("PUT", "bucket/x", b"ff\r\nabc", **headers)[0].status == 400


def test_a_folder_is_left_by_no_path(tmp_path: Path) -> None:
    (tmp_path / "served" / "bucket").mkdir(parents=True)
    (tmp_path / "secret").write_bytes(b"x")
    (tmp_path / "served" / "top.bin").write_bytes(b"top")
    with ObjectServer(tmp_path / "served") as server:
        client = Client(server)
        for path in ("bucket/../../secret", "../secret", "bucket/%2e%2e/%2e%2e/secret"):
            assert client("GET", path)[0].status == 404
            assert client("PUT", path, b"y")[0].status >= 400
        assert client("GET", "top.bin")[1] == b"top"
        client.connection.close()
    assert (tmp_path / "secret").read_bytes() == b"x"


# Buckets


def _texts(body: bytes, tag: str) -> list[str]:
    space = "{http://s3.amazonaws.com/doc/2006-03-01/}"
    return [found.text or "" for found in ElementTree.fromstring(body).iter(space + tag)]


def test_buckets(client: Client) -> None:
    assert client("HEAD", "bucket")[0].status == client("HEAD", "bucket/")[0].status == 200
    assert client("HEAD", "other")[0].status == 404
    assert client("PUT", "other")[0].status == 200
    assert _texts(client("GET", "")[1], "Name") == ["bucket", "other"]
    assert b"LocationConstraint" in client("GET", "bucket?location")[1]
    assert client("GET", "bucket")[0].status == client("POST", f"{PATH}?uploads")[0].status == 501


@pytest.mark.parametrize("space", ["", ' xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'])
def test_many_objects_are_deleted_at_once(server: ObjectServer, client: Client, space: str) -> None:
    server.put("bucket/b", b"12")
    keys = "".join(f"<Object><Key>{key}</Key></Object>" for key in ("b", "none"))
    got, body = client("POST", "bucket?delete", f"<Delete{space}>{keys}</Delete>".encode())
    assert (got.status, _texts(body, "Key")) == (200, ["b", "none"])
    assert _texts(client("GET", "bucket?list-type=2")[1], "Key") == ["a/b.bin"]
    assert client("POST", "bucket?delete", b"<Delete>")[0].status == 400


def test_listing_in_pages(server: ObjectServer, client: Client) -> None:
    names = sorted(["a/b.bin", "a/c d", "a/d/e", "a/d/f", "a.b", "ä", "z<&>"], key=str.encode)
    for name in names:
        server.put(f"bucket/{name}", b"12")
    for size in (1, 2, 3, 7, 1000):
        found, token = [], ""
        while True:
            query = f"list-type=2&max-keys={size}"
            body = client("GET", f"bucket?{query}" + f"&continuation-token={token}" * bool(token))
            found += _texts(body[1], "Key")
            if not (tokens := _texts(body[1], "NextContinuationToken")):
                break
            token = tokens[0]
        assert found == names


def test_listing_by_folders(server: ObjectServer, client: Client) -> None:
    for name in ("a/c", "a/d/e", "a/d/f", "b"):
        server.put(f"bucket/{name}", b"12")
    body = client("GET", "bucket/?list-type=2&prefix=a/&delimiter=/")[1]
    assert _texts(body, "Key") == ["a/b.bin", "a/c"]
    assert _texts(body, "Prefix") == ["a/", "a/d/"]
    body = client("GET", "bucket?list-type=2&prefix=a/&delimiter=/&max-keys=2&start-after=a/b.bin")[
        1
    ]
    assert (_texts(body, "Key"), _texts(body, "IsTruncated")) == (["a/c"], ["false"])
    assert _texts(client("GET", "bucket?list-type=2&encoding-type=url")[1], "Key")[0] == "a/b.bin"


def test_properties_for_web_clients(server: ObjectServer, client: Client) -> None:
    server.put("bucket/a/d/e", b"12")
    got, body = client("PROPFIND", "bucket/a", Depth="1")
    found = [found.text for found in ElementTree.fromstring(body).iter("{DAV:}href")]
    assert (got.status, found) == (207, ["/bucket/a/", "/bucket/a/b.bin", "/bucket/a/d/"])
    _, body = client("PROPFIND", "bucket/a", Depth="infinity")
    found = [found.text for found in ElementTree.fromstring(body).iter("{DAV:}href")]
    assert found == ["/bucket/a/", "/bucket/a/b.bin", "/bucket/a/d/e"]
    assert client("PROPFIND", "none/a", Depth="1")[0].status == 404


# Connections


def test_a_connection_is_kept(server: ObjectServer, client: Client) -> None:
    for _ in range(5):
        client("GET", PATH, Range="bytes=0-9")
    client("GET", PATH, Connection="close")
    client("GET", PATH)
    first = server.log.records()[0].connection
    assert [one.connection - first for one in server.log.records()] == [0] * 6 + [1]


def test_no_request_at_all_is_refused(server: ObjectServer, client: Client) -> None:
    client.connection.connect()
    client.connection.sock.sendall(b"hello\r\n\r\n")
    assert client.connection.sock.recv(100).startswith(b"HTTP/1.1 400 ")
