"""Tails of many local files: read by the core in one call, or one by one if that is impossible."""

from __future__ import annotations

import os
import random
import signal
import struct
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pageseek._core import files
from pageseek.base.errors import CoreError
from pageseek.io import tails as ends
from pageseek.io.tails import FOOT, MAX_HELD_BYTES, TAIL, TailBatch, TailReader
from pageseek.storage import local

OLD = 1_500_000_000 * 10**9  # ns since 1970
LIMIT = 1 << 20


@pytest.fixture(params=[True, False], ids=["core", "python"])
def together(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the core reads them."""
    if request.param and not files.AVAILABLE:
        pytest.skip("not on this system")
    monkeypatch.setattr(local.files, "AVAILABLE", request.param)
    return bool(request.param)


def put(path: Path, data: bytes, when: int = OLD) -> str:
    path.write_bytes(data)
    os.utime(path, ns=(when, when))
    return str(path)


def foot(length: int, before: int = 100, salt: int = 0) -> bytes:
    """A file that ends like one with a footer of `length` bytes."""
    body = random.Random(length + salt).randbytes(length)
    return b"PAR1" + b"." * before + body + struct.pack("<I", length) + b"PAR1"


def odd(folder: Path) -> list[str]:
    """Files, and names that are none, of all kinds."""
    long = "n" * 200
    paths = [
        put(folder / "plain", b"0123456789" * 50),
        put(folder / "empty", b""),
        put(folder / "short", b"abc"),
        str(folder / "missing"),
        str(folder),
        str(folder / "null\0byte"),
        str(folder / long / long),
        put(folder / "before 1970", b"x" * 30, -5 * 10**9 - 1),
        put(folder / "spaced ä 名", b"y" * 300),
    ]
    (folder / "link").symlink_to("plain")
    (folder / "broken").symlink_to("nothing")
    paths += [str(folder / "link"), str(folder / "broken")]
    if os.name == "posix":
        name = os.path.join(os.fsencode(folder), b"bytes \xff")
        try:
            with open(name, "wb") as file:
                file.write(b"z" * 40)
        except OSError:  # a system whose names are text
            return paths
        os.utime(name, ns=(OLD, OLD))
        paths.append(os.fsdecode(name))
    return paths


@pytest.mark.usefixtures("together")
@pytest.mark.parametrize("null", [True, False])
def test_all_that_is_told_is_what_the_system_tells(tmp_path: Path, null: bool) -> None:
    paths = [path for path in odd(tmp_path) if null or "\0" not in path]
    names = local.Names(paths)
    for path, told in zip(paths, local.seen_now(names).tolist(), strict=True):
        if "\0" in path or not os.path.isfile(path):
            assert told[1] < 0
        else:
            assert tuple(told) == local.seen(os.stat(path))


@pytest.mark.usefixtures("together")
@pytest.mark.parametrize("length", [1, 8, 100, 5000])
@pytest.mark.parametrize("behind", [0, 3, 90])
def test_the_last_bytes_of_odd_files(tmp_path: Path, length: int, behind: int) -> None:
    paths = odd(tmp_path)
    n = len(paths)
    room = np.full(n * length + 7, 0xEE, np.uint8)
    places = np.stack([7 + np.arange(n)[::-1] * length, np.full(n, length)], axis=1)
    rest = np.full(n, behind) if behind else None
    found = local.read_ends(local.Names(paths), 0, places, room, time.time_ns(), 1, rest)
    for path, (at, _), (node, size, time_ns, read) in zip(
        paths, places.tolist(), found.tolist(), strict=True
    ):
        here = room[at : at + length].tobytes()
        if "\0" in path or not os.path.isfile(path):
            assert size < 0 and read == 0 and here == b"\xee" * length
            continue
        data = Path(path).read_bytes()
        assert (node, size, time_ns) == local.seen(os.stat(path))
        data = data[: max(len(data) - behind, 0)]
        assert read == min(length, len(data))
        assert here == data[len(data) - read :] + b"\xee" * (length - read)
    assert room[:7].tobytes() == b"\xee" * 7


@pytest.mark.usefixtures("together")
def test_a_file_that_goes_on_to_be_written_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = put(tmp_path / "old", b"o" * 20), put(tmp_path / "new", b"n" * 20)
    names, places = local.Names([old, new]), np.array([[0, 20], [20, 20]], np.int64)
    settled: dict[int, bool] = {os.stat(new).st_ino: False, os.stat(old).st_ino: True}
    monkeypatch.setattr(
        local, "_stable_status", lambda fd: (now := os.fstat(fd), settled[now.st_ino])
    )
    found = local.read_ends(names, 0, places, np.zeros(40, np.uint8), OLD - local.TICK)
    assert found[:, 3].tolist() == [20, 0] and found[1, 1] < 0
    # files last written long ago: no second check
    monkeypatch.setattr(local, "_stable_status", lambda fd: pytest.fail("asked"))
    if names.core is not None:
        later = OLD + 2 * local.TICK + 1
        assert local.read_ends(names, 0, places, np.zeros(40, np.uint8), later)[:, 3].tolist() == [20, 20]  # fmt: skip


@pytest.mark.covering(2)
@pytest.mark.usefixtures("together")
@pytest.mark.parametrize(
    "lengths",
    [
        [10],
        [TAIL - FOOT, TAIL - FOOT + 1, 0, 1],
        [200] * 30,
        [200] * 20 + [50_000] + [300] * 20,
        [9_000] * 40,
        [100, 300_000, 90],  # longer than is read together
        [250_000] * 50,  # more than is held together
        list(range(0, 40_000, 911)),
    ],
    ids=lambda lengths: f"{len(lengths)} to {max(lengths)}",
)
@pytest.mark.parametrize("expected", [0, 3_000, 60_000])
def test_footers_of_all_lengths(tmp_path: Path, lengths: list[int], expected: int) -> None:
    data = [foot(length, salt=i) for i, length in enumerate(lengths)]
    paths = tuple(put(tmp_path / f"{i:03}", one) for i, one in enumerate(data))
    reader, done = TailReader(LIMIT), 0
    if expected:
        reader.read((put(tmp_path / "before", foot(expected)),))
        reader.requests = reader.bytes = 0
    while done < len(paths):
        batch = reader.read(paths[done:])
        assert 0 < batch.looked_at <= len(paths) - done
        assert len(batch.tails) <= 2 * MAX_HELD_BYTES
        for place in range(batch.looked_at):
            check(batch, place, data[done + place], paths[done + place])
        assert batch.is_current()
        done += batch.looked_at
    assert reader.bytes >= sum(length + FOOT for length in lengths if length < 250_001)
    assert reader.requests <= 2 * len(paths)


def check(batch: TailBatch, place: int, data: bytes, path: str) -> None:
    length = int.from_bytes(data[-8:-4], "little")
    if length > 256 << 10:
        assert place not in batch.places
        return
    assert place in batch.places
    whole = batch.end(place)
    assert data.endswith(whole.tail) and len(whole.tail) >= min(length + FOOT, len(data))
    assert whole.version == local.version_at(path)
    at, held, size, start = batch.spans([place])[0].tolist()
    assert (size, start) == (len(data), len(data) - FOOT - length)
    assert bytes(batch.tails[at : at + held]) == data[len(data) - held :]
    begin, foot_length = batch.at[place].tolist()
    assert batch.footers[begin : begin + foot_length + FOOT] == data[start:]
    before = batch.part(place, start - 20, 20)
    assert before is None or bytes(before) == data[start - 20 : start]
    assert before is not None or held < foot_length + FOOT + 20


@pytest.mark.usefixtures("together")
def test_what_is_forgotten_leaves_footers(tmp_path: Path) -> None:
    paths = tuple(put(tmp_path / str(i), foot(50 + i)) for i in range(5))
    batch = TailReader(LIMIT).read(paths)
    batch.forget_tails()
    assert batch.end(3).tail == foot(53)[-53 - FOOT :]
    assert batch.part(3, 0, 4) is None and not batch.spans([1, 2])[:, :2].any()


@pytest.mark.usefixtures("together")
@pytest.mark.parametrize(
    "spoilt",
    [
        b"",
        b"PAR1",
        b"PAR1\0\0\0\0PARE",
        b"PAR1\xff\xff\xff\xffPAR1",
        b"\0\0\0\0PAR1",
        b"PAR1\1\0\0\0PAR1",
    ],
)
def test_what_has_no_end_of_a_file_has_no_place(tmp_path: Path, spoilt: bytes) -> None:
    paths = (
        put(tmp_path / "a", foot(9)),
        put(tmp_path / "b", spoilt),
        str(tmp_path / "c"),
        put(tmp_path / "d", foot(12)),
    )
    batch = TailReader(LIMIT).read(paths)
    assert batch.places.tolist() == [0, 3] and batch.looked_at == 4
    assert batch.end(3).tail == foot(12)
    assert batch.is_current()
    put(tmp_path / "c", foot(3))  # no version of it was seen
    assert batch.is_current()
    put(tmp_path / "d", foot(12), OLD + 1)
    assert not batch.is_current()


@pytest.mark.usefixtures("together")
def test_what_cannot_be_read_is_tried_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not as a footer that is longer than what was read of it."""
    paths = (put(tmp_path / "a", foot(9)), str(tmp_path / "b"), str(tmp_path), put(tmp_path / "c", b"abc"))  # fmt: skip
    asked: list[int] = []

    def counted(names: local.Names, start: int, places: Any, *rest: Any) -> Any:
        asked.append(len(places))
        return read(names, start, places, *rest)

    read = ends.read_ends
    monkeypatch.setattr(ends, "read_ends", counted)
    assert TailReader(LIMIT).read(paths).places.tolist() == [0]
    assert asked == [1, 3]


@pytest.mark.usefixtures("together")
def test_footers_that_are_too_long_do_not_make_reads_long(tmp_path: Path) -> None:
    paths = tuple(put(tmp_path / str(i), foot(300_000, salt=i)) for i in range(10))
    reader = TailReader(LIMIT)
    assert not len(reader.read(paths).places)
    assert reader.bytes == len(paths) * TAIL


@pytest.mark.usefixtures("together")
def test_no_files_at_all() -> None:
    batch = TailReader(LIMIT).read(())
    assert not len(batch.places) and batch.looked_at == 0 and batch.is_current()


@pytest.mark.skipif(not files.AVAILABLE, reason="not on this system")
@pytest.mark.parametrize(("start", "stop"), [(-1, 1), (0, 3), (2, 1), (3, 3)])
def test_files_that_are_none_of_the_names(tmp_path: Path, start: int, stop: int) -> None:
    names = files.Names([str(tmp_path / "a"), str(tmp_path / "b")])
    with pytest.raises(CoreError, match=f"files {start} to {stop} of 2"):
        files.seen(names, start, stop)
    with pytest.raises(CoreError, match=f"files {start} to {stop} of 2"):
        files.read_ends(names, start, stop, bytes(64), bytearray(10))


@pytest.mark.parametrize("threads", [1, 2, 5, 64])
def test_threads_share_the_files(
    tmp_path: Path, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "SHARED", 7)
    n = 100
    paths = tuple(put(tmp_path / f"{i:03}", foot(20 + i, salt=i)) for i in range(n))
    names = local.Names(paths)
    told = local.seen_now(names, threads)
    assert [tuple(one) for one in told.tolist()] == [local.seen(os.stat(path)) for path in paths]
    batch = TailReader(LIMIT, threads).read(paths)
    assert batch.places.tolist() == list(range(n)) and batch.is_current(threads)
    for place, path in enumerate(paths):
        check(batch, place, Path(path).read_bytes(), path)
    os.utime(paths[n - 1], ns=(1, 1))
    assert not batch.is_current(threads)


def test_what_fails_in_a_thread_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not files.AVAILABLE:
        pytest.skip("not on this system")
    monkeypatch.setattr(local, "SHARED", 1)
    names = local.Names([str(tmp_path / str(i)) for i in range(8)])
    places = np.array([[0, 4]] * 7 + [[9, 4]], np.int64)  # the last has no room
    with pytest.raises(CoreError, match="4 bytes at 9 of 10"):
        local.read_ends(names, 0, places, np.zeros(10, np.uint8), 0, threads=4)


@pytest.mark.skipif(not files.AVAILABLE, reason="not on this system")
@pytest.mark.parametrize("place", [(-1, 4), (0, -1), (0, 11), (11, 0), (7, 4), (1 << 62, 1 << 62)])
def test_places_outside_of_the_room(tmp_path: Path, place: tuple[int, int]) -> None:
    names = files.Names([put(tmp_path / "a", b"abcd")])
    with pytest.raises(CoreError, match="of 10"):
        files.read_ends(names, 0, 1, struct.pack("2q", *place), bytearray(10))
    with pytest.raises(CoreError):
        files.read_ends(names, 0, 1, b"", bytearray(10))
    with pytest.raises(CoreError, match="-1 bytes behind"):
        files.read_ends(names, 0, 1, bytes(16), bytearray(10), struct.pack("q", -1))
    with pytest.raises(CoreError, match="0 bytes for 1 integers"):
        files.read_ends(names, 0, 1, bytes(16), bytearray(10), b"")
    with pytest.raises(BufferError):
        files.read_ends(names, 0, 1, bytes(16), bytes(10))


@pytest.mark.timed
@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="not on this system")
def test_signals_are_looked_at_between_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not files.AVAILABLE:
        pytest.skip("not on this system")

    class NestingLevel(Exception):
        pass

    def ring(*_: object) -> None:
        raise NestingLevel

    names = files.Names([put(tmp_path / "a", b"abcd")] * 400_000)
    start = time.perf_counter()
    files.seen(names, 0, names.n)
    whole = time.perf_counter() - start  # about a second
    main = threading.main_thread().ident
    assert main is not None
    before = signal.signal(signal.SIGUSR1, ring)
    timer = threading.Timer(whole / 20, signal.pthread_kill, (main, signal.SIGUSR1))

    def nesting_level() -> None:
        timer.start()
        files.seen(names, 0, names.n)
        timer.join()

    try:
        start = time.perf_counter()
        with pytest.raises(NestingLevel):
            nesting_level()
        assert time.perf_counter() - start < 0.6 * whole
    finally:
        timer.cancel()
        signal.signal(signal.SIGUSR1, before)
