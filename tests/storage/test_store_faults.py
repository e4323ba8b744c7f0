"""Faults of a store: retried, refused or reported; never a wrong answer, and never a secret."""

from __future__ import annotations

import logging
import os
import pickle
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

import pytest

import pageseek as ps
from pageseek.storage.endpoint import Endpoint
from pageseek.storage.redact import cleaned, secrets_of
from pageseek.storage.requests import issue
from pageseek.storage.retry import Fault as Failure
from pageseek.storage.retry import Retries, RetryPolicy, with_retries
from support.concurrency import InFlight
from support.object_server.faults import Fault, Rule, status
from support.object_server.server import ObjectServer
from support.remote_files import (
    PATH,
    SECRET,
    STRONG,
    WEAK,
    Way,
    content,
    of_fsspec,
    over_http,
    over_s3,
    s3_options,
    table,
)
from support.tiers import FULL, rounds

POINT = ps.col("id") == 12_345
BRIEF: dict[str, Any] = {"timeout": 1.0, "retries": 4}


def expected(**how: Any) -> Any:
    return ps.read_table(content(), **how)


PASSING = [
    status(503), status(500), status(502), status(429, 0.2), status(408), Fault("close"),
    Fault("reset"), Fault("hang"), Fault("cut"), Fault("cut", after=0), Fault("stall"),
    Fault("short"), Fault("wrong_range"), Fault("whole"),
]  # fmt: skip


@pytest.mark.covering(2)
@pytest.mark.parametrize("way", STRONG)
@pytest.mark.parametrize("at", [0, 1], ids=["tail", "data"])
@pytest.mark.parametrize("fault", PASSING, ids=lambda fault: fault.name)
def test_what_passes_is_tried_again(server: ObjectServer, way: Way, fault: Fault, at: int) -> None:
    server.faults = Rule(fault, method="GET", skip=at, times=1)
    assert ps.read_table(**way(server), filter=POINT, **BRIEF) == expected(filter=POINT)


@pytest.mark.parametrize("fault", [status(503), status(429), Fault("close"), Fault("cut")], ids=lambda f: f.name)  # fmt: skip
def test_fsspec_and_pyarrow_are_tried_again_too(server: ObjectServer, fault: Fault) -> None:
    for way in WEAK:
        ps.clear_cache()
        server.faults = Rule(fault, method="GET", times=1)
        assert ps.read_table(**way(server), filter=POINT, **BRIEF) == expected(filter=POINT)


@pytest.mark.parametrize("way", STRONG)
@pytest.mark.parametrize(
    ("fault", "kind", "tries", "said"),
    [
        (
            status(403),
            ps.AccessDeniedError,
            1,
            "403.*AccessDenied.*(skip_signature|header of authorization)",
        ),
        (status(404), FileNotFoundError, 1, "404.*no such file"),
        (status(503), ps.StoreError, 5, "503.*tried 5 times in .* seconds.*retries=, timeout="),
        (status(400), ps.StoreError, 1, "400"),
        (Fault("close"), ps.StoreError, 5, "the connection broke; tried 5 times"),
        (Fault("cut"), ps.StoreError, 5, "the connection broke; tried 5 times"),
    ],
    ids=str,
)
def test_what_does_not_pass_is_said(
    server: ObjectServer, way: Way, fault: Fault, kind: type[Exception], tries: int, said: str
) -> None:
    server.faults = Rule(fault, method="GET")
    with pytest.raises(kind, match=f"(?s)a.parquet: its end: .*{said}") as caught:
        ps.read_table(**way(server), filter=POINT, **BRIEF)
    assert isinstance(caught.value, OSError)
    assert len(server.log.requests(PATH, "GET")) == tries
    assert pickle.loads(pickle.dumps(caught.value)).args == caught.value.args


def test_an_error_names_the_range(server: ObjectServer) -> None:
    for way in STRONG:
        ps.clear_cache()
        server.faults = Rule(status(500), skip=1)
        with pytest.raises(ps.StoreError, match=r"a.parquet: \d+ bytes at \d+: .* 500"):
            ps.read_table(**way(server), filter=POINT, **BRIEF)


@pytest.mark.parametrize("kind", ["short", "wrong_range", "whole"])
def test_a_server_that_knows_no_ranges_is_not_asked_for_ever(
    server: ObjectServer, kind: Any
) -> None:
    server.faults = Rule(Fault(kind), method="GET")
    with pytest.raises(ps.StoreError, match="does not answer ranges as asked: download"):
        ps.read_table(**over_http(server), **BRIEF)
    assert len(server.log) < 9


@pytest.mark.parametrize("data", [b"", b"PAR1"])
@pytest.mark.parametrize("way", STRONG + WEAK)
def test_an_object_that_is_no_file(server: ObjectServer, way: Way, data: bytes) -> None:
    server.put(PATH, data)
    with pytest.raises(ps.CorruptFileError, match=r"a\.parquet.*too few"):
        ps.read_table(**way(server))


@pytest.mark.parametrize("way", STRONG + WEAK)
def test_an_object_that_is_not_there(server: ObjectServer, way: Way) -> None:
    server.delete(PATH)
    with pytest.raises(FileNotFoundError, match=r"a\.parquet"):
        ps.read_table(**way(server))


def test_a_store_is_left_alone_as_long_as_it_asks() -> None:
    waits: list[float] = []

    class Stop:
        def wait(self, seconds: float) -> bool:
            waits.append(seconds)
            return False

    left = [Failure("again", "busy", after=7.0)] * 2 + [Failure("again", "busy")] * 2

    def attempt() -> str:
        if left:
            raise OSError
        return "done"

    stop: Any = Stop()
    retries = Retries()
    done = with_retries(attempt, lambda _: left.pop(0), "f", "x", RetryPolicy(), retries, stop)
    assert done == "done"
    assert retries.take() == (4, sum(waits)) and retries.take() == (0, 0.0)
    assert waits[0] == waits[1] == 7.0
    assert 0 <= waits[2] <= 0.4 and 0 <= waits[3] <= 0.8


# ---- versions


@pytest.mark.parametrize("way", STRONG)
@pytest.mark.parametrize("kind", ["replaced", "other_version"])
@pytest.mark.parametrize("at", range(1, 6))
def test_a_replaced_object_is_never_a_mixture(
    server: ObjectServer, way: Way, kind: Any, at: int
) -> None:
    server.faults = Rule(Fault(kind), method="GET", skip=at, times=1)
    said = "a.parquet: the file changed: open it again"
    try:
        found = ps.read_table(**way(server), **BRIEF)
    except ps.FileChangedError as error:
        said = str(error)
        server.faults = None
        found = ps.read_table(**way(server))
    assert found == table()
    assert "a.parquet: the file changed" in said and "open it again" in said


@pytest.mark.parametrize("way", STRONG + WEAK)
def test_an_object_replaced_between_two_scans(server: ObjectServer, way: Way) -> None:
    for seed in range(3):
        server.replace(PATH, content(seed))
        for _ in range(2):
            if way in WEAK:  # of S3 pyarrow knows whole seconds
                ps.clear_cache()
            assert ps.read_table(**way(server), filter=POINT)["seed"].to_pylist() == [seed]
            assert ps.scan(**way(server)).aggregate([("seed", "max")])[0].to_pylist() == [seed]


@pytest.mark.parametrize("way", STRONG)
def test_an_object_replaced_while_it_is_read(server: ObjectServer, way: Way) -> None:
    """A thread replaces it all the time: each answer is of one version, or there is none."""
    versions = [content(seed) for seed in range(3)]
    ended = threading.Event()

    def replace() -> None:
        while not ended.is_set():
            for data in versions:
                server.replace(PATH, data)
                ended.wait(0.05)

    thread = threading.Thread(target=replace)
    thread.start()
    answers = changed = 0
    try:
        for _ in range(40):
            try:
                found = ps.read_table(**way(server), filter=ps.col("id").isin([3, 12_345, 19_990]))
            except ps.FileChangedError:
                changed += 1
                continue
            (seed,) = set(found["seed"].to_pylist())
            assert found == expected_of(versions[seed])
            answers += 1
    finally:
        ended.set()
        thread.join()
    assert answers + changed == 40 and answers


def expected_of(data: bytes) -> Any:
    return ps.read_table(data, filter=ps.col("id").isin([3, 12_345, 19_990]))


@pytest.mark.parametrize("way", STRONG)
def test_an_object_deleted_while_it_is_read(server: ObjectServer, way: Way) -> None:
    reading = ps.scan(**way(server)).plan()
    server.delete(PATH)
    with pytest.raises((ps.FileChangedError, FileNotFoundError), match=r"a\.parquet"):
        list(reading.execute())


def test_a_plan_is_of_its_version(server: ObjectServer) -> None:
    for way in STRONG:
        server.replace(PATH, content(1))
        plan = pickle.loads(pickle.dumps(ps.scan(**way(server), filter=POINT).plan()))
        assert [batch.num_rows for batch in plan.execute()] == [1]
        server.replace(PATH, content(2))
        with pytest.raises(ps.FileChangedError, match="plan again"):
            list(plan.execute())


# ---- stress


@pytest.mark.timed
def test_hundreds_of_queries_of_a_store_in_distress(server: ObjectServer) -> None:
    server.faults = [
        Rule(status(503), method="GET", probability=0.05),
        Rule(Fault("cut"), method="GET", probability=0.02),
    ]
    truth = {
        i: expected(filter=ps.col("id") == i) for i in range(0, 20_000, 67 if FULL else 3 * 67)
    }
    given = over_s3(server)
    failed, begun, queries = 0, time.monotonic(), rounds(300, 3)
    for i, right in list(truth.items())[:queries]:
        ps.clear_cache()
        try:
            assert ps.read_table(**given, filter=ps.col("id") == i) == right
        except ps.StoreError:
            failed += 1
    assert failed <= 1
    assert time.monotonic() - begun < 120
    hit = [one for one in server.log.records() if one.fault]
    assert len(hit) > queries // 15


# ---- what is said of it


@pytest.mark.parametrize("way", [*STRONG, of_fsspec])
@pytest.mark.parametrize("threads", [1, 2])
def test_explain_tells_of_what_was_tried_again(
    server: ObjectServer, way: Way, threads: int
) -> None:
    quiet = ps.scan(**way(server), filter=POINT, threads=threads).explain(analyze=True)
    assert quiet.to_dict()["retries"] == {"requests": 0, "seconds": 0.0}
    assert "tried again" not in str(quiet)
    ps.clear_cache()
    server.faults = [
        Rule(status(503), method="GET", skip=0, times=2),
        Rule(Fault("cut"), method="GET", skip=3, times=1),
    ]
    some = ps.col("v") >= 1 << 36  # of every row group: these are asked for one by one
    scan = ps.scan(**way(server), filter=some, threads=threads, **BRIEF)
    found = scan.explain(analyze=True)
    said = found.to_dict()
    spoilt = sum(one.fault is not None for one in server.log.records())
    assert spoilt == 3
    assert said["retries"]["requests"] == spoilt
    assert 0 < said["retries"]["seconds"] < 3
    assert said["requests"] + quiet.to_dict()["requests"] == len(server.log)
    assert f"{spoilt} requests tried again, after waits of " in str(found)
    assert SECRET not in str(found)


def test_what_was_tried_again_to_see_the_version_is_told_too(server: ObjectServer) -> None:
    server.etags = False
    given = over_http(server)
    server.faults = Rule(status(503), method="HEAD", times=2)
    found = ps.scan(**given, filter=POINT, **BRIEF).explain(analyze=True).to_dict()
    spoilt = sum(one.fault is not None for one in server.log.records())
    assert spoilt == found["retries"]["requests"] == 2
    assert found["requests"] == len(server.log)


# ---- secrets


def test_secrets_are_never_shown(server: ObjectServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    host = server.endpoint.removeprefix("http://")
    options = s3_options(server, session_token=f"token-{SECRET}")
    signed = f"http://user:{SECRET}@{host}/{PATH}?X-Amz-Signature={SECRET}"
    ways: list[dict[str, Any]] = [
        {"source": f"s3://{PATH}", "storage_options": options},
        {"source": signed},
        {"source": signed.partition("?")[0]},
        of_fsspec(server),
    ]
    for given in ways:
        ps.clear_cache()
        server.faults = None
        scan = ps.scan(**given, filter=POINT, **BRIEF)
        plan = scan.plan()
        again = pickle.loads(pickle.dumps(plan))
        shown = [scan, plan, again, plan.split(2), scan.explain(analyze=True), scan._sources]
        text = "".join(f"{one!r}{one}" for one in shown)
        for kind in (403, 404, 500, 400, 412):
            ps.clear_cache()
            server.faults = Rule(status(kind), method="GET")
            with pytest.raises((OSError, ps.PageseekError)) as caught:
                ps.read_table(**given, filter=POINT, retries=1, timeout=1)
            text += "".join(traceback.format_exception(caught.value))
        assert SECRET not in text
    assert SECRET not in caplog.text


def test_texts_of_others_are_cleaned() -> None:
    text = "GET https://me:pw@host/a?sig=abc#f failed for key-4711\nsecond line"
    secrets = secrets_of({"a": ["key-4711", {"b": "true"}], "c": 5})
    assert secrets == {"key-4711"}
    assert cleaned(text, secrets) == "GET https://host/a failed for ***"
    assert len(cleaned("x" * 5000)) < 400


# ---- threads, processes


@pytest.mark.timed
def test_requests_of_one_wave_are_in_flight_together_and_no_more_than_may_be() -> None:
    place = Endpoint("together", 5)
    calls = InFlight(0.02)
    begun = time.monotonic()
    assert issue(place, [calls.task] * 20) == [1] * 20
    assert calls.most == 5 and time.monotonic() - begun < 0.3


@pytest.mark.timed
def test_one_failure_ends_a_wave() -> None:
    place = Endpoint("failing", 2)
    stopped = threading.Event()

    def slow(stop: threading.Event) -> None:
        if stop.wait(20):
            stopped.set()

    def fail(stop: threading.Event) -> None:
        raise OSError("at once")

    begun = time.monotonic()
    with pytest.raises(OSError, match="at once"):
        issue(place, [slow, fail, slow])
    assert stopped.wait(5) and time.monotonic() - begun < 5


def test_who_has_no_use_for_it_does_not_wait() -> None:
    class EndedError(Exception):
        pass

    def go_on() -> None:
        raise EndedError

    with pytest.raises(EndedError):
        issue(Endpoint("ended"), [lambda stop: stop.wait(20)], go_on)


FORK = """
import os, sys
import pageseek as ps
url = sys.argv[1]
assert ps.scan(url).count_rows() == 20000
child = os.fork()
if child == 0:
    try:
        ps.read_table(url)
    except ps.UnsupportedError as error:
        os._exit(7 if "spawn" in str(error) else 8)
    except BaseException as error:
        print(repr(error))
    os._exit(9)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert ps.read_table(url).num_rows == 20000
import multiprocessing
with multiprocessing.get_context("spawn").Pool(1) as pool:
    assert pool.map(len, ["abc"]) == [3]
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_says_so_and_does_not_hang(server: ObjectServer, tmp_path: Path) -> None:
    script = tmp_path / "fork.py"
    script.write_text(
        "if __name__ == '__main__':\n" + "".join(f"    {x}\n" for x in FORK.splitlines())
    )
    command = [sys.executable, str(script), over_http(server)["source"]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
