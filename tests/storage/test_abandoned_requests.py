"""Abandoned requests: they delay neither the end of the process nor later requests."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.storage import requests
from pageseek.storage.endpoint import IN_FLIGHT, Endpoint
from pageseek.storage.remote import RemoteStore
from pageseek.storage.requests import begin, issue
from pageseek.storage.resolve import resolve
from support.concurrency import InFlight
from support.object_server.faults import Chooser, Fault, Rule
from support.object_server.log import Record
from support.object_server.messages import Request
from support.object_server.server import ObjectServer
from support.opened import open_metadata
from support.remote_files import GROUPS, PATH, ROWS, content, over_http

LARGE, OTHER = "bucket/large.parquet", "bucket/other.parquet"
LARGE_GROUPS, LARGE_ROWS = 32, 30_000
SOON = 5.0  # seconds in which a process ends that has been interrupted

INTERRUPTED = """
import sys, time
import pageseek as ps
url, how = sys.argv[1:]
print("ready", flush=True)
try:
    if how == "open":
        ps.open(url)
    elif how == "table":
        ps.read_table(url)
    else:
        for batch in ps.scan(url).to_batches():
            print("batch", flush=True)
            time.sleep(60)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    if how == "left":  # the traceback holds the generator until the interpreter ends
        raise
"""


def large() -> bytes:
    dice = np.random.default_rng(0)
    made = pa.table(
        {f"c{i}": dice.integers(0, 1 << 60, LARGE_GROUPS * LARGE_ROWS) for i in range(2)}
    )
    file = io.BytesIO()
    pq.write_table(made, file, row_group_size=LARGE_ROWS, compression="none", use_dictionary=False)
    return file.getvalue()


LARGE_FILE = large()


@pytest.fixture
def server(object_server: ObjectServer) -> Iterator[ObjectServer]:
    pytest.importorskip("obstore", reason="pip install 'pageseek[obstore]'")
    ps.clear_cache()
    object_server.put(PATH, content())
    object_server.put(LARGE, LARGE_FILE)
    object_server.put(OTHER, LARGE_FILE)
    yield object_server
    object_server.faults = None


# ---- processes


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C means what it means at a terminal, here and in processes started from here: a shell that starts its jobs in
    the background lets them ignore it.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.timed
@pytest.mark.usefixtures("interruptible")
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize(
    ("how", "what"),
    [
        ("open", "hang"),
        ("table", "hang"),
        ("table", "stall"),
        ("table", "flows"),
        ("left", "hang"),
        ("left", "stall"),
        ("left", "flows"),
    ],
)
def test_ctrl_c_ends_the_wait_and_the_process(server: ObjectServer, how: str, what: str) -> None:
    if what == "flows":
        server.bandwidth = 100_000  # the requests under way take several seconds
    fault = Fault("hang" if what == "hang" else "stall")
    if what != "flows":  # a left scan has its first batch; of requests at once any may come first
        server.faults = (
            _further_on(fault) if how == "left" else Rule(fault, "GET", skip=int(how == "table"))
        )
    command = [sys.executable, "-c", INTERRUPTED, server.url(LARGE), how]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == b"ready\n"
        if how == "left":
            assert process.stdout.readline() == b"batch\n"
        deadline = time.monotonic() + 20
        while not _under_way(server) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert _under_way(server)
        time.sleep(0.2)
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == b"interrupted\n"
        assert time.monotonic() - begun < SOON
        ended = process.wait(30)
        assert time.monotonic() - begun < SOON
        said = process.stderr.read().decode()
    assert ended == (-signal.SIGINT if how == "left" else 0), said
    assert "Fatal" not in said and "panicked" not in said


@pytest.mark.timed
def test_many_processes_end_cleanly_while_bodies_flow(server: ObjectServer) -> None:
    code = (
        "import sys, itertools, pageseek as ps\n"
        "batches = ps.scan(sys.argv[1]).to_batches()\n"
        "next(batches)\n"
    )
    server.bandwidth = 3e6
    for _ in range(5):
        begun = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-c", code, server.url(LARGE)],
            capture_output=True, timeout=60, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        assert time.monotonic() - begun < 10


# ---- places


@pytest.mark.timed
@pytest.mark.usefixtures("interruptible")
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_an_interrupted_scan_holds_up_no_other(server: ObjectServer) -> None:
    server.faults = Rule(Fault("stall"), skip=2, method="GET")
    open_metadata(server.url(LARGE))
    for _ in range(3):
        timer = threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            ps.read_table(server.url(LARGE))
        timer.join()
    assert len(_under_way(server)) > IN_FLIGHT  # more than there are places
    server.faults = None
    begun = time.monotonic()
    assert ps.scan(server.url(OTHER)).count_rows() == LARGE_GROUPS * LARGE_ROWS
    assert time.monotonic() - begun < 5


@pytest.mark.timed
def test_a_closed_generator_ends_its_requests(server: ObjectServer) -> None:
    server.faults = _further_on(Fault("stall"))
    batches = ps.scan(server.url(LARGE), filter=ps.col("c0") >= 0, prune=()).to_batches()
    next(batches)
    deadline = time.monotonic() + 10
    while len(_under_way(server)) < 4 and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.3)
    asked = len(server.log)
    assert len(_under_way(server)) >= 4 and asked < LARGE_GROUPS
    batches.close()  # type: ignore[attr-defined]
    time.sleep(0.5)
    assert len(server.log) == asked  # nothing follows those
    server.faults = None
    begun = time.monotonic()
    assert ps.scan(**over_http(server)).count_rows() == GROUPS * ROWS
    assert time.monotonic() - begun < 5


@pytest.mark.timed
def test_a_body_that_nobody_wants_is_not_read_to_its_end(server: ObjectServer) -> None:
    size = 32 << 20
    server.put(LARGE, bytes(size))
    store = resolve(server.url(LARGE))[0].open()
    assert isinstance(store, RemoteStore)
    server.bandwidth = 8e6  # all of it would take four seconds
    server.log.reset()

    def go_on() -> None:
        if len(server.log):
            raise InterruptedError

    with pytest.raises(InterruptedError):
        store.read([(0, size)], go_on)
    assert _busy() == 1
    begun = time.monotonic()
    while _busy() and time.monotonic() - begun < 20:
        time.sleep(0.02)
    assert time.monotonic() - begun < 5


def _further_on(fault: Fault) -> Chooser:
    """A fault for every range behind the first row groups; the tail is requested by a suffix range."""

    def choose(request: Request) -> Fault | None:
        first = (request.headers.get("range") or "").removeprefix("bytes=").partition("-")[0]
        return fault if first and int(first) > 1 << 20 else None

    return choose


def _under_way(server: ObjectServer) -> list[Record]:
    return [one for one in server.log.records() if one.end is None]


def _busy() -> int:
    return requests._threads._given_up


@pytest.mark.timed
def test_places_of_requests_that_are_given_up_are_free_at_once() -> None:
    place, leave = Endpoint("given up", 2), threading.Event()

    def stuck(stop: threading.Event) -> bool:  # as in the library of a store
        return leave.wait(20)

    try:
        for _ in range(3):
            wave = begin(place, [stuck] * 9)
            while wave.begun < 2:
                time.sleep(0.01)
            assert place.free == 0
            wave.give_up()
            while place.waiting or place.running:
                time.sleep(0.01)
            assert wave.begun == 2
            assert place.free == 2
            begun = time.monotonic()
            assert issue(place, [lambda stop: 1] * 4) == [1] * 4
            assert time.monotonic() - begun < 5
            with pytest.raises(ps.StoreError, match="given up"):
                wave.wait()
    finally:
        leave.set()
    deadline = time.monotonic() + 5
    while _busy() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _busy()
    assert place.running == 0 and place.free == 2


@pytest.mark.timed
def test_those_that_are_given_up_are_not_many_times_as_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(requests, "GIVEN_UP", 3)
    place, leave = Endpoint("stuck", 2), threading.Event()
    waves = []
    try:
        for _ in range(2):
            waves.append(begin(place, [lambda stop: leave.wait(20)] * 2))
            while waves[-1].begun < 2:
                time.sleep(0.01)
            waves[-1].give_up()
        assert place.running == 1  # the fourth keeps its place
        assert issue(place, [lambda stop: 1] * 3) == [1] * 3
    finally:
        leave.set()
    deadline = time.monotonic() + 5
    while (_busy() or place.running) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _busy() and place.running == 0


def test_what_failed_gives_the_places_of_the_others_back() -> None:
    place, leave = Endpoint("failing", 3), threading.Event()

    def fail(stop: threading.Event) -> bool:
        raise OSError("at once")

    try:
        with pytest.raises(OSError, match="at once"):
            issue(place, [lambda stop: leave.wait(20), lambda stop: leave.wait(20), fail])
        assert issue(place, [lambda stop: 1] * 3) == [1] * 3
    finally:
        leave.set()


def test_there_are_no_more_threads_than_requests_to_all(monkeypatch: pytest.MonkeyPatch) -> None:
    made = requests._Threads()
    monkeypatch.setattr(requests, "_threads", made)
    monkeypatch.setattr(requests, "THREADS", 6)
    calls = InFlight(0.01)
    waves = [begin(Endpoint(f"server {i}", 4), [calls.task] * 10) for i in range(5)]
    assert [wave.wait() for wave in waves] == [[1] * 10] * 5
    assert 3 < calls.most <= 6
    assert made._all <= 6


@pytest.mark.timed
def test_threads_without_work_end(monkeypatch: pytest.MonkeyPatch) -> None:
    made = requests._Threads()
    monkeypatch.setattr(requests, "_threads", made)
    monkeypatch.setattr(requests, "LINGER", 0.05)
    place = Endpoint("seldom", 4)
    assert issue(place, [lambda stop: 1] * 8) == [1] * 8
    deadline = time.monotonic() + 5
    while made._all and time.monotonic() < deadline:
        time.sleep(0.01)
    assert made._all == 0
    assert issue(place, [lambda stop: 2] * 8) == [2] * 8


def test_where_no_thread_can_be_started_who_asks_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(requests, "_threads", requests._Threads())
    monkeypatch.setattr(threading.Thread, "start", refused)
    place = Endpoint("alone", 3)
    assert issue(place, [lambda stop: threading.get_ident()] * 7) == [threading.get_ident()] * 7
    assert place.running == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_gives_up_nothing_of_its_parent() -> None:
    place, leave = Endpoint("forked", 2), threading.Event()
    wave = begin(place, [lambda stop: leave.wait(20)] * 2)
    while wave.begun < 2:
        time.sleep(0.01)
    with requests._threads._lock:  # as another thread may hold it
        child = os.fork()
        if child == 0:
            status = 1
            try:
                wave.give_up()
                status = 0 if issue(Endpoint("child", 2), [lambda stop: 1] * 3) == [1] * 3 else 2
            finally:
                os._exit(status)
    leave.set()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert wave.wait() == [True, True]
