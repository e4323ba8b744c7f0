"""Many names in one folder are looked up together: the results equal separate look-ups."""

from __future__ import annotations

import os
import random
import stat
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pageseek._core import files
from pageseek.storage import local
from pageseek.storage.local import TICK, Names, read_ends, seen, seen_now

pytestmark = pytest.mark.skipif(not files.AVAILABLE, reason="has no such calls")
N, LENGTH = 40, 8


@pytest.fixture(autouse=True)
def _nothing_stays_open() -> Iterator[None]:
    def held() -> list[str]:
        """Files and folders that are open. Sockets are of other tests, whose clients close them when they like."""
        found = []
        for one in os.listdir("/proc/self/fd") if sys.platform == "linux" else ():
            with suppress(FileNotFoundError):  # that of the list itself
                found.append(os.readlink(f"/proc/self/fd/{one}"))
        return sorted(path for path in found if path.startswith("/") and "/proc/" not in path)

    before = held()
    yield
    assert held() == before


def fill(folder: Path, n: int = N, mark: str = "") -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(n):
        (folder / f"{i:03}").write_text(f"{i}".rjust(20 + i) + mark)
        os.utime(folder / f"{i:03}", ns=(0, 1_000_000_000 * (i + 1)))
    return [f"{folder}/{i:03}" for i in range(n)]


def check(paths: list[str]) -> None:
    """The result for all names equals the results for each."""
    wanted, ends = np.tile(np.array([0, -1, 0], np.int64), (len(paths), 1)), []
    for i, path in enumerate(paths):
        end = b""
        with suppress(OSError):
            now = os.stat(path)
            if stat.S_ISREG(now.st_mode):
                wanted[i] = seen(now)
                end = Path(path).read_bytes()[-LENGTH:]
        ends.append(end)
    names = Names(paths)
    assert names.core is not None
    for threads in (1, 3):
        assert np.array_equal(seen_now(names, threads), wanted)
        room = np.zeros(LENGTH * len(paths), np.uint8)
        places = np.array([(LENGTH * i, LENGTH) for i in range(len(paths))], np.int64)
        read = read_ends(names, 0, places, room, time.time_ns() - 10 * TICK, threads)
        assert np.array_equal(read[:, :3], wanted)
        mine = [bytes(room[at : at + n]) for (at, _), n in zip(places, read[:, 3], strict=True)]
        assert mine == ends
        some = read_ends(names, 3, places[:-5], room, time.time_ns() - 10 * TICK, threads)
        assert np.array_equal(some[:, :3], wanted[3:-2])


@pytest.mark.parametrize("n", [5, 15, 16, 17, N, 300])
def test_of_any_number(tmp_path: Path, n: int) -> None:
    check(fill(tmp_path / "a", max(n, 6))[: max(n, 6)])


def test_names_of_every_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "a" / "b"
    paths = fill(folder)
    names = [Path(path).name for path in paths]
    (tmp_path / "link").symlink_to(folder)
    (folder / "inner").mkdir()
    (folder / "one").symlink_to(names[3])
    (folder / "nowhere").symlink_to("nothing")
    (folder / "circle").symlink_to("circle")
    odd = ["inner", "one", "nowhere", "circle", "none", ".", "..", "x" * 300]
    monkeypatch.chdir(folder)
    for top in (
        str(folder), f"{folder}/", f"{tmp_path}/a//b", f"{tmp_path}//a/./b//", f"{tmp_path}/a/../a/b",
        f"{tmp_path}/link", f"{tmp_path}/link/inner/..", ".", "./", "../b", "..//b", f"{tmp_path}/none", f"{paths[0]}",
    ):  # fmt: skip
        check([f"{top}/{name}" for name in names])
        check([f"{top}/{name}" for name in names + odd])
        check([f"{top}/{name}" for name in odd + names])
        check([f"{top}/{name}" for name in names] + [f"{top}/{names[0]}/"])
        check([f"{top}/"] + [f"{top}/{name}" for name in names])
    check(names)
    check(names + odd)
    check([f"/{name}" for name in os.listdir("/")] * 4)
    check(["/"] * N)
    check([""] * N)


def test_files_of_several_folders(tmp_path: Path) -> None:
    mine, others = fill(tmp_path / "a"), fill(tmp_path / "b", mark="other")
    check(mine + others)
    check([*mine, others[0]])
    check([others[0], *mine])
    check([*mine, f"{tmp_path}/a/../b/000"])
    check([*mine, f"{tmp_path}/a//000"])
    check([*mine, "000"])
    check(["000", *mine])


def test_a_folder_that_is_another_one_by_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, other = tmp_path / "a", tmp_path / "b"
    paths = fill(folder)
    fill(other, mark="other")
    names = Names(paths)
    first = seen_now(names)
    folder.rename(tmp_path / "c")
    assert (seen_now(names)[:, 1] == -1).all()
    other.rename(folder)
    assert (seen_now(names)[:, 1] == first[:, 1] + 5).all()
    folder.rename(tmp_path / "d")
    folder.symlink_to(tmp_path / "c")
    assert np.array_equal(seen_now(names), first)
    folder.unlink()
    folder.write_text("a file")
    assert (seen_now(names)[:, 1] == -1).all()
    # names that hang on where the process is
    monkeypatch.chdir(tmp_path)
    fill(tmp_path / "c" / "sub", mark="c")
    fill(tmp_path / "d" / "sub", mark="dd")
    names = Names([f"sub/{i:03}" for i in range(N)])
    assert (seen_now(names)[:, 1] == -1).all()
    for place, more in (("c", 1), ("d", 2)):
        monkeypatch.chdir(tmp_path / place)
        assert (seen_now(names)[:, 1] == first[:, 1] + more).all()


@pytest.mark.skipif(sys.platform == "win32", reason="has no such limit")
def test_without_a_descriptor_to_spare(tmp_path: Path) -> None:
    import resource

    names = Names(fill(tmp_path / "a"))
    wanted = seen_now(names)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
    try:
        found = seen_now(names)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert (wanted[:, 1] > 0).all()
    assert np.array_equal(found, wanted)


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() == 0, reason="root may do all")
def test_a_folder_that_may_be_passed_but_not_listed(tmp_path: Path) -> None:
    paths = fill(tmp_path / "a")
    os.chmod(tmp_path / "a", 0o100)
    try:
        check(paths)
    finally:
        os.chmod(tmp_path / "a", 0o700)


def _written_while_read(path: Path, trials: int) -> tuple[int, int]:
    """Read a file of which the last bytes are written in place meanwhile. How often bytes came with the version from before, and
    how often new bytes were among them.
    """
    n, accepted, mixed = 8 << 20, 0, 0
    path.write_bytes(b"a" * n)
    room, names = np.zeros(n, np.uint8), Names([str(path)])
    rng = random.Random(3)

    def write(fd: int) -> None:
        time.sleep(rng.random() * 0.002)
        os.pwrite(fd, b"b" * 4096, n - 4096)

    for _ in range(trials):
        fd = os.open(path, os.O_WRONLY)
        os.pwrite(fd, b"a" * 4096, n - 4096)
        os.utime(path, (5, 5))
        writer = threading.Thread(target=write, args=(fd,))
        writer.start()
        while writer.is_alive():
            found = read_ends(names, 0, np.array([[0, n]]), room, time.time_ns())
            if found[0, 2] == 5 * 10**9 and found[0, 3] == n:
                accepted += 1
                mixed += bool((room[-4096:] != ord("a")).any())
        writer.join()
        os.close(fd)
    return accepted, mixed


def test_a_file_that_is_written_while_it_is_read_gives_no_bytes(tmp_path: Path) -> None:
    accepted, mixed = _written_while_read(tmp_path / "f", 300)
    assert accepted
    assert not mixed


def test_a_file_that_is_written_while_python_reads_it_gives_no_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, plain = tmp_path / "f", local._preadv
    path.write_bytes(b"a" * 100)
    os.utime(path, (5, 5))

    def written(fd: int, rooms: Any, offset: int) -> int:
        path.write_bytes(b"b" * 100)
        return plain(fd, rooms, offset)

    monkeypatch.setattr(local, "_preadv", written)
    names = Names([str(path)])
    names.core = None
    room = np.zeros(100, np.uint8)
    assert read_ends(names, 0, np.array([[0, 100]]), room, time.time_ns())[0, 3] == 0
