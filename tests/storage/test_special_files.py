"""Pipes, sockets, devices and folders instead of a file: an error at once, without waiting."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek._core import files
from pageseek.storage import local
from pageseek.storage.local import LocalStore, Names, read_ends, read_part, seen_now
from support.opened import open_metadata

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="has no such files")
SECONDS = 20.0
N = 30  # files: more than are opened one by one


def file(path: Path) -> str:
    pq.write_table(pa.table({"a": [1, 2, 3]}), path)
    return str(path)


def pipe(path: Path) -> None:
    os.mkfifo(path)


def bound(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # the name of a socket must not be long
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


KINDS: dict[str, Callable[[Path], None]] = {"a pipe": pipe, "a socket": bound, "a device": device}
kinds = pytest.mark.parametrize("kind", KINDS)


def at_once(work: Callable[[], Any], path: Path) -> Any:
    """The result or error of the work; a failure if it waits for the other end of a pipe."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(work())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(SECONDS)
    if thread.is_alive():
        os.close(os.open(path, os.O_RDWR))  # that ends the waiting
        thread.join(SECONDS)
        pytest.fail(f"{path.name} was waited for")
    return found[0]


def refused(work: Callable[[], Any], path: Path, kind: str) -> None:
    error = at_once(work, path)
    assert isinstance(error, OSError), error
    remedy = (
        "; to read it whole, give its bytes: open(..., 'rb').read()" if kind == "a pipe" else ""
    )
    assert str(error) == f"{path}: not a regular file but {kind}{remedy}"


@kinds
def test_they_are_refused_by_every_name(kind: str, tmp_path: Path) -> None:
    path, good = tmp_path / "x.parquet", file(tmp_path / "good")
    KINDS[kind](path)
    disk = pafs.LocalFileSystem()
    ways: list[Callable[[], Any]] = [
        lambda: open_metadata(path),
        lambda: open_metadata((disk, str(path))),
        lambda: ps.read_table(path),
        lambda: ps.read_table(f"file://{path}"),
        lambda: ps.read_table((disk, str(path))),
        lambda: ps.read_table([good, path]),
        lambda: ps.read_table([good] * N + [path], filter=ps.col("a") == 2),
        lambda: ps.read_table([path] + [good] * N),
        lambda: ps.index.attach(path, in_place=True),
        lambda: ps.index.list(path),
        lambda: ps.index.verify(path),
        lambda: LocalStore(str(path)),
    ]
    for way in ways:
        ps.clear_cache()
        refused(way, path, kind)


@kinds
@pytest.mark.parametrize("linked", [False, True])
def test_so_they_are_where_a_folder_has_them(kind: str, linked: bool, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    path = made = folder / "x.parquet"
    if linked:
        made = tmp_path / "made"
        path.symlink_to(made)
    file(folder / "a.parquet")
    KINDS[kind](made)
    for source in (folder, folder / "*.parquet", tmp_path / "**" / "*.parquet"):
        refused(lambda source=source: ps.scan(str(source)), path, kind)  # type: ignore[misc]
    path.rename(folder / "x.txt")
    assert ps.read_table(folder).num_rows == 3  # what is no data by its name is not looked at


def test_what_is_no_file_at_all_is_still_left_out_of_a_folder(tmp_path: Path) -> None:
    file(tmp_path / "a.parquet")
    (tmp_path / "nowhere.parquet").symlink_to(tmp_path / "none")
    (tmp_path / "circle.parquet").symlink_to("circle.parquet")
    (tmp_path / "inner.parquet").mkdir()
    file(tmp_path / "inner.parquet" / "b.parquet")
    assert ps.read_table(tmp_path).num_rows == 6


@kinds
@pytest.mark.parametrize("n", [1, N])
@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("through", [None, pafs.LocalFileSystem()])
def test_a_file_that_becomes_one_after_it_was_found(
    kind: str, n: int, warm: bool, through: Any, tmp_path: Path
) -> None:
    paths = [Path(file(tmp_path / f"{i:02}.parquet")) for i in range(n)]
    for which in {0, n // 2, n - 1}:
        file(paths[which])
        ps.clear_cache()
        given = [str(path) if through is None else (through, str(path)) for path in paths]
        scan = ps.scan(given).filter(ps.col("a") > 1)
        if warm:
            assert scan.count_rows() == 2 * n
        paths[which].unlink()
        KINDS[kind](paths[which])
        refused(scan.to_table, paths[which], kind)
        refused(scan.plan, paths[which], kind)
        paths[which].unlink()
        file(paths[which])


@kinds
@pytest.mark.parametrize("core", [True, False])
def test_the_ends_of_many_files_skip_them(
    kind: str, core: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not core:
        monkeypatch.setattr(files, "AVAILABLE", False)
    paths = [file(tmp_path / "a"), str(tmp_path / "x"), file(tmp_path / "b")]
    KINDS[kind](tmp_path / "x")
    names = Names(paths)
    assert (names.core is None) == (not core)
    room = np.zeros(24, np.uint8)
    places = np.array([(0, 8), (8, 8), (16, 8)], np.int64)
    found = at_once(
        lambda: (read_ends(names, 0, places, room, time.time_ns()), seen_now(names)), tmp_path / "x"
    )
    read, seen = found
    assert read[:, 3].tolist() == [8, 0, 8] or not core
    assert (read[:, 1] >= 0).tolist()[1] is False
    assert (seen[:, 1] >= 0).tolist() == [True, False, True]
    gone = at_once(lambda: read_part(str(tmp_path / "x"), (1, 2, 3), 0, 4), tmp_path / "x")
    assert isinstance(gone, OSError)


def test_a_folder_is_refused_where_a_file_was(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    scan = ps.scan(file(path))
    path.unlink()
    path.mkdir()
    with pytest.raises(OSError, match="not a regular file but a folder"):
        scan.to_table()


LEASER = """
import fcntl, os, signal, sys, time
fd = os.open(sys.argv[1], os.O_RDWR)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGIO])
fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("ready", flush=True)
signal.sigwait([signal.SIGIO])
time.sleep(0.3)
fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
print("gone", flush=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="leases are Linux's")
@pytest.mark.parametrize("n", [1, N])
def test_a_file_that_somebody_has_a_lease_of_is_waited_for(n: int, tmp_path: Path) -> None:
    paths = [file(tmp_path / f"{i:02}.parquet") for i in range(n)]
    time.sleep(2 * local.TICK / 1e9)
    asked = [sys.executable, "-c", LEASER, paths[n // 2]]
    with subprocess.Popen(asked, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        try:
            if holder.stdout.readline() != "ready\n":
                pytest.skip("this file system has no leases")
            with pytest.raises(BlockingIOError):
                os.close(os.open(paths[n // 2], os.O_RDONLY | os.O_NONBLOCK))
            assert ps.read_table(paths, filter=ps.col("a") == 2).num_rows == n
            assert holder.stdout.readline() == "gone\n"
        finally:
            holder.kill()


def test_nobody_waits_for_ever_for_a_lease(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, real, asked = file(tmp_path / "a"), os.open, 0

    def busy(name: Any, flags: int, *more: Any, **knobs: Any) -> int:
        nonlocal asked
        if name != path:
            return real(name, flags, *more, **knobs)
        asked += 1
        raise BlockingIOError(11, "busy", name)

    monkeypatch.setattr(local, "LEASE", 0.1)
    monkeypatch.setattr(os, "open", busy)
    with pytest.raises(BlockingIOError, match="busy"):
        open_metadata(path)
    assert asked > 2
