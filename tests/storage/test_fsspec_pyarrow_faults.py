"""Faults of a store that fsspec or pyarrow opens: reported by cause, retried, and abandoned in time."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pytest

import pageseek as ps
from pageseek.storage import RetryPolicy, retry, urls
from pageseek.storage import pyarrow_files as arrow
from pageseek.storage.files import Place
from pageseek.storage.requests import within
from pageseek.storage.resolve import resolve
from pageseek.storage.retry import Fault as Failure
from pageseek.storage.retry import Retries, with_retries
from support.object_server.faults import Fault, Rule, status
from support.object_server.server import ObjectServer
from support.remote_files import (
    PATH,
    SECRET,
    WEAK,
    Way,
    content,
    of_fsspec,
    of_pyarrow,
    table,
)

fsspec = pytest.importorskip("fsspec")
POINT = ps.col("id") == 12_345
BRIEF: dict[str, Any] = {"timeout": 1.0, "retries": 4}
AT_ONCE: dict[str, Any] = {"timeout": 0.5, "retries": 0}


@pytest.fixture
def no_obstore(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = urls.installed
    monkeypatch.setattr(urls, "installed", lambda name: name != "obstore" and installed(name))


def http_url(server: ObjectServer) -> dict[str, Any]:
    pytest.importorskip("aiohttp")
    return {"source": server.url(PATH)}


def s3_url(server: ObjectServer) -> dict[str, Any]:
    if not hasattr(pafs, "S3FileSystem"):
        pytest.skip("this pyarrow is built without S3")
    options = {
        "endpoint_override": server.endpoint, "region": "us-east-1", "access_key": "any",
        "secret_key": SECRET,
    }  # fmt: skip
    return {"source": f"s3://{PATH}", "storage_options": options}


def gs_url(server: ObjectServer) -> dict[str, Any]:
    if not hasattr(pafs, "GcsFileSystem"):
        pytest.skip("this pyarrow is built without GCS")
    where = server.endpoint.removeprefix("http://")
    options = {"endpoint_override": where, "scheme": "http", "anonymous": True}
    return {"source": f"gs://{PATH}", "storage_options": options}


# ---- causes


@pytest.mark.parametrize(
    ("fault", "kind", "said"),
    [
        (
            status(403),
            ps.AccessDeniedError,
            "the store answered 403; give what the server asks for",
        ),
        (
            status(401),
            ps.AccessDeniedError,
            "the store answered 401; give what the server asks for",
        ),
        (status(404), FileNotFoundError, "no such file"),
        (status(400), ps.StoreError, "the store answered 400"),
        (status(500), ps.StoreError, "the store answered 500; tried 3 times"),
        (status(503), ps.StoreError, "the store answered 503; tried 3 times.*is busy"),
        (status(429), ps.StoreError, "the store answered 429; tried 3 times.*is busy"),
        (Fault("close"), ps.StoreError, "tried 3 times"),
        (Fault("hang"), ps.StoreError, "tried 3 times"),
    ],
    ids=lambda one: one.name if isinstance(one, Fault) else "",
)
def test_fsspec_says_why_a_file_could_not_be_asked_for(
    server: ObjectServer, fault: Fault, kind: type[Exception], said: str
) -> None:
    server.faults = Rule(fault)
    with pytest.raises(kind, match=f"a.parquet: its version: .*{said}") as caught:
        ps.read_table(**of_fsspec(server), retries=2, timeout=0.3)
    assert "skip_signature" not in str(caught.value)
    assert isinstance(caught.value, FileNotFoundError) == (fault.status == 404)


def test_no_connection_is_not_a_missing_file(server: ObjectServer) -> None:
    filesystem = of_fsspec(server)["source"][0]
    with ObjectServer() as gone:
        url = gone.url(PATH)
    with pytest.raises(ps.StoreError, match=r"its version: no connection.*tried 2 times"):
        ps.read_table((filesystem, url), retries=1)
    with pytest.raises(OSError, match=r"no connection|tried 2 times") as caught:
        ps.read_table((of_pyarrow(gone)["source"][0], PATH), retries=1)
    assert not isinstance(caught.value, FileNotFoundError)


@pytest.mark.parametrize(
    "fault", [status(503), status(429), status(500), Fault("close"), Fault("hang")], ids=lambda f: f.name
)  # fmt: skip
@pytest.mark.parametrize("way", WEAK)
def test_what_passes_while_the_version_is_asked(
    server: ObjectServer, way: Way, fault: Fault
) -> None:
    server.faults = Rule(fault, times=4)
    found = ps.scan(**way(server), filter=POINT, timeout=0.5, retries=5)
    assert found.to_table() == ps.read_table(content(), filter=POINT)
    assert sum(one.fault is not None for one in server.log.records()) == 4


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (FileNotFoundError("a"), "missing"),
        (TimeoutError(), "again"),
        (ConnectionRefusedError(111, "refused"), "again"),
        (ConnectionResetError(104, "reset"), "again"),
        (OSError("SlowDown: Please reduce your request rate"), "busy"),
        (ValueError("no URL"), "final"),
    ],
    ids=repr,
)
def test_what_errors_of_fsspec_mean(error: Exception, kind: str) -> None:
    from pageseek.storage.fsspec_files import fault_of

    assert fault_of(error, set()).kind == kind
    wrapped = FileNotFoundError("x")
    wrapped.__cause__ = error
    # that a name is not in a table is no reason to doubt that there is no such file
    assert fault_of(wrapped, set()).kind == (kind if kind == "again" else "missing")
    for reply, said in (("530 Login", "denied"), ("550 No", "missing"), ("421 Full", "again")):
        import ftplib

        assert fault_of(ftplib.error_perm(reply), set()).kind == said


def test_a_look_up_that_failed_does_not_hide_the_missing_file() -> None:
    from pageseek.storage.fsspec_files import fault_of

    def look() -> None:
        try:
            {}["a"]
        except KeyError:
            raise FileNotFoundError("a")  # noqa: B904

    with pytest.raises(FileNotFoundError) as caught:
        look()
    assert isinstance(caught.value.__context__, KeyError)
    assert fault_of(caught.value, set()).kind == "missing"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("AWS Error SLOW_DOWN during GetObject operation: Please reduce", "busy"),
        ("AWS Error UNKNOWN (HTTP status 503) during HeadObject operation", "busy"),
        ("AWS Error NETWORK_CONNECTION during HeadObject operation: curlCode: 6, Could not resolve hostname", "again"),
        ("AWS Error NETWORK_CONNECTION during GetObject: curlCode: 28, Timeout was reached", "again"),
        ("AWS Error ACCESS_DENIED during HeadObject operation: No response body.", "denied"),
        ("google::cloud::Status(PERMISSION_DENIED: caller does not have access)", "denied"),
        ("AuthenticationExceptionE: Failed to get token from DefaultAzureCredential.", "denied"),
        ("AWS Error NO_SUCH_BUCKET during GetObject operation: not there", "missing"),
        ("host not found", "again"),
        ("something else", "odd"),
    ],
)  # fmt: skip
def test_what_errors_of_pyarrow_mean(text: str, kind: str) -> None:
    for error in (OSError(text), pa.ArrowException(text)):
        found = arrow.fault_of(error)
        assert found.kind == kind
        assert "ranges" not in str(retry.failed(found, "f", "x", 1, 0.0))


# ---- time


WHERE = [
    Rule(Fault("hang")),
    Rule(Fault("hang"), method="GET", ranged=True),
    Rule(Fault("stall"), method="GET", ranged=True),
]


@pytest.mark.timed
@pytest.mark.parametrize(
    ("way", "rule"),
    [*((way, rule) for way in (of_fsspec, http_url, of_pyarrow, s3_url) for rule in WHERE), (gs_url, WHERE[0])],
    ids=lambda one: one.__name__ if callable(one) else f"{one.fault.name}-{one.method}",
)  # fmt: skip
def test_a_silent_store_is_given_up(
    server: ObjectServer, no_obstore: None, monkeypatch: pytest.MonkeyPatch, way: Way, rule: Rule
) -> None:
    monkeypatch.setattr(retry, "SLOWEST", 1 << 30)  # a line so fast that bytes take no time
    given = way(server)
    server.faults = rule
    begun = time.monotonic()
    with pytest.raises(ps.StoreError, match="try later, or raise retries="):
        ps.read_table(**given, **AT_ONCE)
    assert time.monotonic() - begun < 15
    server.stop()  # S3FileSystem waits, as it is made, for what is under way
    until = time.monotonic() + 5
    while rule.fault.name not in {one.fault for one in server.log.records()}:
        assert time.monotonic() < until
        time.sleep(0.02)


SILENT = """
import sys, time
import pageseek as ps
from pageseek.storage import urls
installed = urls.installed
urls.installed = lambda name: name != "obstore" and installed(name)
source, options = eval(sys.argv[1])
begun = time.monotonic()
try:
    ps.read_table(source, storage_options=options, timeout=0.5, retries=1)
except ps.StoreError:
    print("given up after", time.monotonic() - begun, flush=True)
"""


@pytest.mark.timed
@pytest.mark.parametrize("way", [http_url, s3_url, gs_url])
def test_a_process_ends_though_a_store_is_silent(server: ObjectServer, way: Way) -> None:
    server.faults = Fault("hang")
    given = way(server)
    told = repr((given["source"], given.get("storage_options")))
    command = [sys.executable, "-c", SILENT, told]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        begun = time.monotonic()
        assert said.startswith("given up after ") and float(said.split()[-1]) < 15
        assert process.wait(20) == 0
        assert time.monotonic() - begun < 15


class Slow(fsspec.AbstractFileSystem):  # type: ignore[misc, name-defined]
    """A filesystem of one connection: two calls at once would garble it."""

    protocol = "slow"
    cachable = False

    def __init__(self) -> None:
        super().__init__()
        self.data = content()
        self.go_on = threading.Event()
        self.under_way = self.most = self.calls = 0

    def _hold(self) -> None:
        self.calls += 1
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        self.go_on.wait(30)
        self.under_way -= 1

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        self._hold()
        return {"name": path, "size": len(self.data), "type": "file", "mtime": 1}

    def cat_file(self, path: str, start: Any = None, end: Any = None, **_: Any) -> bytes:
        self._hold()
        return self.data[start:end]


@pytest.mark.timed
def test_what_was_given_up_is_not_joined_by_another_call() -> None:
    filesystem = Slow()
    try:
        begun = time.monotonic()
        with pytest.raises(ps.StoreError, match=r"no answer in .* seconds.*tried 3 times"):
            ps.read_table((filesystem, "a.parquet"), timeout=0.2, retries=2)
        assert time.monotonic() - begun < 15
        assert filesystem.calls == 1
    finally:
        filesystem.go_on.set()
    assert ps.read_table((filesystem, "a.parquet")) == table()
    assert filesystem.most == 1


def test_a_call_is_waited_for_no_longer_than_is_right() -> None:
    go_on, alone = threading.Event(), threading.Lock()

    def held() -> int:
        go_on.wait(20)
        return 7

    assert within(lambda: 5, 1.0) == 5
    with pytest.raises(KeyError):
        within(lambda: {}["a"], 1.0)
    with pytest.raises(TimeoutError, match=r"0.05"):
        within(held, 0.05, alone)
    assert alone.locked()
    with pytest.raises(TimeoutError, match="asked before"):
        within(held, 0.05, alone)
    go_on.set()
    assert within(held, 5.0, alone) == 7
    assert not alone.locked()


# ---- what is there


@pytest.mark.timed
def test_what_a_path_is_is_asked_with_patience(server: ObjectServer) -> None:
    filesystem = of_pyarrow(server)["source"][0]
    for wanted in (PATH, "bucket/t"):
        server.log.reset()
        server.faults = Rule(status(503), times=2)
        (found,) = resolve((filesystem, wanted), None, RetryPolicy(5, 1.0))
        assert found.path == PATH
        assert sum(one.fault is not None for one in server.log.records()) == 2
        server.faults = Rule(status(403))
        with pytest.raises(PermissionError, match=r"what it is: .*give credentials") as caught:
            ps.scan((filesystem, wanted), **BRIEF)
        assert "skip_signature" not in str(caught.value)
        server.faults = Rule(status(503))
        with pytest.raises(ps.StoreError, match=r"tried 5 times.*is busy"):
            ps.scan((filesystem, wanted), **BRIEF)
        server.faults = Rule(Fault("hang"))
        begun = time.monotonic()
        with pytest.raises(ps.StoreError, match=r"no answer in 0.5 seconds"):
            ps.scan((filesystem, wanted), **AT_ONCE)
        assert time.monotonic() - begun < 15
    server.faults = None
    with pytest.raises(FileNotFoundError):
        ps.scan((filesystem, "bucket/none"), **BRIEF)


def test_what_could_not_be_asked_is_not_taken_for_nothing(server: ObjectServer) -> None:
    """Else a file would be replaced that was not to be."""
    source = resolve(of_fsspec(server)["source"])[0]
    here: Any = source.filesystem
    assert here.size(source.path, source.retry_policy) == len(content())
    server.faults = Rule(status(503))
    with pytest.raises(FileNotFoundError, match=r"a\.parquet"):
        here.size(source.path, source.retry_policy)
    server.faults = Rule(status(404))
    assert here.size(source.path, source.retry_policy) is None
    server.faults = Rule(status(503))
    (place,) = resolve(of_fsspec(server)["source"], None, RetryPolicy(0, 1.0))
    assert place.filesystem is not None
    at = Place(place.filesystem, place.path, place.retry_policy)
    with pytest.raises(ps.StoreError):
        at.have([(server.url("bucket/t"), ".parquet")])


# ---- busy stores


def waits_of(kind: Any, retry_policy: RetryPolicy, after: float = 0.0) -> list[float]:
    """The waits until a store that fails all the time is given up."""
    waits: list[float] = []

    class Stop:
        def wait(self, seconds: float) -> bool:
            waits.append(seconds)
            return False

    def attempt() -> None:
        raise OSError

    stop: Any = Stop()
    with pytest.raises(ps.StoreError, match=f"tried {retry_policy.retries + 1} times"):
        with_retries(
            attempt, lambda _: Failure(kind, "so", after), "f", "x", retry_policy, Retries(), stop
        )
    return waits


def test_a_busy_store_is_given_half_a_minute() -> None:
    for _ in range(20):
        waits = waits_of("busy", RetryPolicy())
        assert len(waits) == 5 and 17 < sum(waits) < 34.2
        assert waits[0] <= 0.1 and waits[1] <= 0.4
        assert sum(waits_of("again", RetryPolicy())) < 3.2
    assert max(waits_of("busy", RetryPolicy(6, 60.0))) <= retry.LONGEST_BUSY
    assert waits_of("busy", RetryPolicy(2), after=5.0) == [5.0, 5.0]
    assert retry.of_status(503, "so").kind == retry.of_status(429, "so").kind == "busy"
    assert retry.of_status(500, "so").kind == "again"


# ---- filesystems that cannot be made


@pytest.mark.parametrize(
    "said", ["Unable to load libjvm\ndlopen(/usr/x) failed", "Prior attempt to load libhdfs failed"]
)
def test_hdfs_without_its_libraries(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Pafs:
        class FileSystem:
            @staticmethod
            def from_uri(url: str) -> Any:
                raise OSError(said)

    monkeypatch.setattr(arrow, "pafs", Pafs)
    for scheme in ("hdfs", "viewfs"):
        with pytest.raises(ps.UnsupportedError, match=rf"{scheme}://nn:9/x.parquet: .*CLASSPATH"):
            ps.scan(f"{scheme}://{SECRET}@nn:9/x.parquet")


@pytest.mark.timed
def test_an_ftp_server_that_is_not_there(server: ObjectServer) -> None:
    with ObjectServer() as gone:
        port = gone.port
    with pytest.raises(ps.StoreError, match=f"ftp://127.0.0.1:{port}/a.parquet: to connect: no connection") as caught:  # fmt: skip
        ps.scan(f"ftp://me:{SECRET}@127.0.0.1:{port}/a.parquet", **AT_ONCE)
    assert SECRET not in str(caught.value)
    # a server that takes the connection and says nothing
    server.faults = Fault("hang")
    begun = time.monotonic()
    with pytest.raises(ps.StoreError, match=r"to connect: .*or raise retries="):
        ps.scan(f"ftp://me:{SECRET}@127.0.0.1:{server.port}/a.parquet", **AT_ONCE)
    assert time.monotonic() - begun < 15


def test_limits_that_were_given_count_more(server: ObjectServer, no_obstore: None) -> None:
    aiohttp = pytest.importorskip("aiohttp")
    mine = aiohttp.ClientTimeout(total=77)
    source = resolve(server.url(PATH), {"client_kwargs": {"timeout": mine}})[0]
    files: Any = source.filesystem
    assert files.filesystem.client_kwargs == {"timeout": mine}
    source = resolve(server.url(PATH), {"client_kwargs": {"trust_env": True}})[0]
    files = source.filesystem
    assert files.filesystem.client_kwargs["trust_env"] is True
    assert files.filesystem.client_kwargs["timeout"].sock_read == RetryPolicy().timeout
    given = s3_url(server)
    given["storage_options"]["request_timeout"] = 3.5
    filesystem: Any = resolve(given["source"], given["storage_options"])[0].filesystem
    assert filesystem.filesystem.__reduce__()[1][0]["request_timeout"] == 3.5
    assert ps.read_table(**given) == table()
