"""Positioned reads of a local file, with and without the system call for them."""

from __future__ import annotations

import os
import sys
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import pageseek as ps
from pageseek.storage import local
from pageseek.storage.local import LocalStore
from support.writer import INT32, Column, write

SIZE = 1 << 20


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "bytes"
    file.write_bytes(b"".join(i.to_bytes(4, "little") for i in range(SIZE // 4)))
    return str(file)


@pytest.fixture(params=["pread", "seek"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "seek":
        monkeypatch.setattr(local, "_pread", local._seek_and_read)
        monkeypatch.setattr(local, "_preadv", local._read_into)
    return str(request.param)


def test_many_threads_read_one_file(way: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "LARGE", 1 << 16)
    data = Path(path).read_bytes()
    store = LocalStore(path)

    def work(seed: int) -> bool:
        ranges = [
            ((seed * 7919 + i * 104729) % (SIZE - 70_000), (i * 7) % 300 if i % 50 else 70_000)
            for i in range(2000)
        ]
        return all(
            bytes(part) == data[at : at + size]
            for (at, size), part in zip(ranges, store.read(ranges), strict=True)
        )

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(work, range(8)))
    finally:
        sys.setswitchinterval(before)
        store.close()


def test_reads_that_come_in_parts(way: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one, many = local._pread, local._preadv
    monkeypatch.setattr(local, "_pread", lambda fd, n, at: one(fd, min(n, 1000), at))
    if way == "pread":
        monkeypatch.setattr(local, "_preadv", lambda fd, into, at: many(fd, [into[0][:1000]], at))
    store = LocalStore(path)
    assert store.read([(10, 12_345)]) == [Path(path).read_bytes()[10:12_355]]
    with pytest.raises(OSError, match="the file ends after 100"):
        store.read([(SIZE - 100, 200)])
    store.close()


def test_a_scan(way: str, tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    file.write_bytes(write([Column("a", INT32, list(range(100)), [10] * 10)]))
    assert ps.read_table(file, filter=ps.col("a") == 42).to_pylist() == [{"a": 42}]


def test_on_windows_others_may_rename_and_delete_the_file(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def create(path: str, access: int, share: int, *_: int) -> int:
        asked.append((access, share))
        return os.open(path, os.O_RDONLY)

    def adopt(handle: int, flags: int) -> int:
        asked.append(flags)
        return handle

    names: dict[str, Any] = {"GENERIC_READ": 1 << 31, "OPEN_EXISTING": 3, "CreateFile": create}
    monkeypatch.setitem(sys.modules, "_winapi", types.SimpleNamespace(**names))
    monkeypatch.setitem(sys.modules, "msvcrt", types.SimpleNamespace(open_osfhandle=adopt))
    monkeypatch.setattr(os, "O_BINARY", 1 << 15, raising=False)
    monkeypatch.setattr(local.sys, "platform", "win32")
    store = LocalStore(path)
    assert asked == [(1 << 31, 7), os.O_RDONLY | 1 << 15]
    assert store.read([(4, 4)]) == [(1).to_bytes(4, "little")]
    store.close()
    with pytest.raises(FileNotFoundError, match="nowhere"):
        LocalStore("/nowhere")
