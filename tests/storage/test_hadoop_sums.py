"""Hadoop's checksum file beside a local file: right for its bytes, or absent, after any `attach`."""

from __future__ import annotations

import json
import os
import stat
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.index.local_target import LocalTarget
from pageseek.storage import hadoop_sums
from pageseek.storage.hadoop_sums import sums_of
from support.failing_stores import TESTS

linux = pytest.mark.skipif(sys.platform != "linux", reason="files without a name are Linux's")


def sums(data: bytes, chunk: int = 512) -> bytes:
    """As ChecksumFileSystem writes them."""
    found = b"crc\0" + struct.pack(">I", chunk)
    while data:
        found += struct.pack(">I", zlib.crc32(data[:chunk]))
        data = data[chunk:]
    return found


def agrees(data: bytes, known: bytes | None) -> bool:
    """Whether Hadoop would read these bytes with these checksums; without checksums it reads them."""
    if known is None or known[:4] != b"crc\0" or len(known) < 8:
        return True
    return sums(data, int.from_bytes(known[4:8], "big")) == known


def beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.crc")


def checksums(path: Path) -> bytes | None:
    return beside(path).read_bytes() if beside(path).exists() else None


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with checksums, as Spark writes it."""
    made = tmp_path / "folder" / "x.parquet"
    made.parent.mkdir()
    data = pa.table({"id": range(3000), "text": [f"name {i % 7}" for i in range(3000)]})
    pq.write_table(data, made, row_group_size=1500)
    beside(made).write_bytes(sums(made.read_bytes()))
    return made


def attach(path: Path, **where: Any) -> None:
    ps.index.attach(path, bloom=["id"], distinct=["text"], **where)


@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 70_000])
def test_checksums_of_chunks(tmp_path: Path, size: int) -> None:
    file = tmp_path / "x"
    file.write_bytes(os.urandom(size))
    with file.open("rb") as opened:
        assert sums_of(opened.fileno(), size) == sums(file.read_bytes())


@pytest.mark.parametrize("what", ["unnamed files", "names"])
def test_attached_and_detached_in_place(
    path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if what == "names":
        monkeypatch.setattr(os, "O_TMPFILE", 0, raising=False)
    old = path.read_bytes()
    beside(path).chmod(0o640)
    attach(path, in_place=True)
    assert path.read_bytes() != old
    assert checksums(path) == sums(path.read_bytes())
    assert stat.S_IMODE(beside(path).stat().st_mode) == 0o640
    ps.index.detach(path, in_place=True)
    assert path.read_bytes() == old
    assert checksums(path) == sums(old)
    assert sorted(os.listdir(path.parent)) == [".x.parquet.crc", "x.parquet"]


@pytest.mark.parametrize("there", [False, True])
def test_an_output_beside_checksums_of_another_file(path: Path, there: bool) -> None:
    out = path.with_name("out.parquet")
    beside(out).write_bytes(sums(b"another"))
    if there:
        out.write_bytes(b"another")
    attach(path, output=out, overwrite=there)
    assert checksums(out) == sums(out.read_bytes())
    assert checksums(path) == sums(path.read_bytes())


def test_an_output_that_is_refused_keeps_its_checksums(path: Path) -> None:
    out = path.with_name("out.parquet")
    out.write_bytes(b"mine")
    beside(out).write_bytes(sums(b"mine"))
    with pytest.raises(FileExistsError):
        attach(path, output=out)
    assert (out.read_bytes(), checksums(out)) == (b"mine", sums(b"mine"))


def test_a_file_without_checksums_gets_none(path: Path) -> None:
    beside(path).unlink()
    attach(path, in_place=True)
    assert os.listdir(path.parent) == ["x.parquet"]


@pytest.mark.parametrize("what", [b"not of Hadoop", b"crc"])
def test_files_of_others_stay(path: Path, what: bytes) -> None:
    beside(path).write_bytes(what)
    attach(path, in_place=True)
    assert checksums(path) == what


def test_a_link_to_a_file(path: Path) -> None:
    """Hadoop looks for checksums next to the given name."""
    link = path.parent.parent / "link.parquet"
    link.symlink_to(path)
    beside(link).write_bytes(sums(path.read_bytes()))
    attach(link, in_place=True)
    assert link.is_symlink()
    assert checksums(link) == checksums(path) == sums(path.read_bytes())


def raising(*_: Any) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("call", ["replace", "link"])
def test_what_fails_leaves_the_old_file_its_checksums(
    path: Path, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = path.read_bytes()
    if call == "link":  # as a file that is written under a temporary name
        monkeypatch.setattr(os, "O_TMPFILE", 0, raising=False)
        monkeypatch.setattr(LocalTarget, "_look", raising)
    else:
        monkeypatch.setattr(os, "replace", raising)
    with pytest.raises(OSError, match="No space left"):
        attach(path, in_place=True)
    assert (path.read_bytes(), checksums(path)) == (old, sums(old))


def meanwhile(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None], name: str) -> None:
    """Let others act once, right after the old checksums are deleted, or right before the new ones appear."""
    real, done = getattr(hadoop_sums, name), []

    def called(*given: Any, **more: Any) -> Any:
        found = real(*given, **more)
        if not done:
            done.append(1)
            act()
        return found

    monkeypatch.setattr(hadoop_sums, name, called)


@pytest.mark.parametrize("name", ["fsync_folder", "Draft"])
def test_others_replace_the_file_meanwhile(
    path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their file stays, with no checksums but its own."""
    theirs = path.with_name("theirs")
    pq.write_table(pa.table({"a": range(9)}), theirs)
    data = theirs.read_bytes()
    meanwhile(monkeypatch, lambda: os.replace(theirs, path), name)
    if name == "fsync_folder":
        with pytest.raises(ps.FileChangedError):
            attach(path, in_place=True)
    else:
        attach(path, in_place=True)
    assert path.read_bytes() == data
    assert agrees(data, checksums(path))


def test_checksums_that_cannot_be_written_are_left_out(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hadoop_sums, "Draft", raising)
    attach(path, in_place=True)
    assert checksums(path) is None
    assert ps.index.verify(path).ok


@linux
@pytest.mark.parametrize("way", ["all", "no unnamed files"])
@pytest.mark.parametrize("what", ["attach", "detach", "output"])
def test_killed_at_any_moment(path: Path, what: str, way: str) -> None:
    """The old file or the new one exists, and Hadoop reads it."""
    out = path.with_name("new.parquet")
    if what == "detach":
        attach(path, in_place=True)
    if what == "output":
        beside(out).write_bytes(sums(b"an older file"))
    run = subprocess.run(
        [sys.executable, "-m", "support.killed_processes", str(path.parent), way, what],
        env=os.environ | {"PYTHONPATH": f"{TESTS}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-2000:]
    said = json.loads(run.stdout)
    states, calls = set(), set()
    for one in said["kills"]:
        found = {name: bytes.fromhex(data) for name, data in one["bytes"].items()}
        target = "new.parquet" if what == "output" else "x.parquet"
        assert found["x.parquet"] in map(bytes.fromhex, (said["old"], said["new"]["x.parquet"]))
        for name in ("x.parquet", target):
            if name in found:
                assert agrees(found[name], found.get(f".{name}.crc")), (one["call"], one["after"])
        state = "new" if found.get(target) == bytes.fromhex(said["new"][target]) else "old"
        states.add((state, f".{target}.crc" in found))
        calls.add((one["call"], one["after"]))
    assert {("old", True), ("old", False), ("new", False), ("new", True)} <= states
    assert {("unlink", True), ("fsync", False)} <= calls


def test_the_folder_is_brought_to_disk_before_the_file_has_its_name(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a power failure could restore the old checksums next to the new file."""
    done: list[str] = []
    for module, name in (
        (os, "unlink"),
        (os, "replace"),
        (os, "link"),
        (hadoop_sums, "fsync_folder"),
    ):
        real = getattr(module, name)

        def called(*given: Any, _name: str = name, _real: Any = real, **more: Any) -> Any:
            done.append(_name)
            return _real(*given, **more)

        monkeypatch.setattr(module, name, called)
    attach(path, in_place=True)
    unlinked, flushed, replaced = map(done.index, ("unlink", "fsync_folder", "replace"))
    assert unlinked < flushed < replaced
