"""Files that appear in one step: what remains after a killed process, and on systems that lack some of the calls."""

from __future__ import annotations

import json
import os
import stat
import struct
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek import cli
from pageseek.storage import atomic_files as drafts
from pageseek.storage.atomic_files import ACL, Draft
from support.failing_stores import TESTS

linux = pytest.mark.skipif(sys.platform != "linux", reason="files without a name are Linux's")


def killed(folder: Path, way: str, what: str) -> dict[str, Any]:
    path = folder / "x.parquet"
    data = pa.table({"id": range(3000), "text": [f"name {i % 7}" for i in range(3000)]})
    pq.write_table(data, path, row_group_size=1500)
    if what == "detach":
        ps.index.attach(path, bloom=["id"], distinct=["text"], in_place=True)
    run = subprocess.run(
        [sys.executable, "-m", "support.killed_processes", str(folder), way, what],
        env=os.environ | {"PYTHONPATH": f"{TESTS}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-2000:]
    found: dict[str, Any] = json.loads(run.stdout)
    return found


@linux
@pytest.mark.parametrize(
    ("way", "what"),
    [
        ("all", "attach"), ("all", "detach"), ("all", "output"), ("no unnamed files", "attach"), ("no links", "output"),
        ("all", "rewrite"),
    ],
)  # fmt: skip
def test_killed_at_any_moment(tmp_path: Path, way: str, what: str) -> None:
    """The old file is whole, or the new one is there; with files of no name nothing else stays, but between two calls."""
    said = killed(tmp_path, way, what)
    old, new = said["old"], said["new"]
    ends = [one for one in said["kills"] if one["killed"]]
    last = "replace" if what != "output" else "link"
    calls = {(one["call"], one["after"]) for one in ends}
    if way != "no links" or what != "output":
        assert {(last, False), (last, True), ("fsync", False), ("write", True)} <= calls, calls
    assert len([one for one in ends if not one["call"]]) >= 5  # after some time
    for one in said["kills"]:
        whole = {"x.parquet", "new.parquet"} & set(one["left"])
        assert "x.parquet" in whole
        for name in whole:
            assert one["bytes"][name] in (
                (old, new["x.parquet"]) if name[0] == "x" else (new[name],)
            )
        others = set(one["left"]) - whole
        if not others:
            continue
        # before the rename the new file has a temporary name, and all of its bytes
        (other,) = others
        assert other.startswith(".x.parquet." if what != "output" else ".new.parquet.")
        if way == "all":
            assert what != "output"
            assert (one["call"], one["after"]) in (("link", True), ("replace", False), ("", False))
            assert one["bytes"][other] == new["x.parquet"]
    if way == "all":
        assert all(set(one["left"]) <= {"x.parquet", "new.parquet"} for one in ends if one["call"] == "write")  # fmt: skip
    else:  # there such a file is left: the test above would see it
        assert any(set(one["left"]) - {"x.parquet", "new.parquet"} for one in ends)


def lacking(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    if what == "unnamed files":
        monkeypatch.setattr(os, "O_TMPFILE", 0, raising=False)
    elif what == "the flag":
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    elif what == "names of open files":
        monkeypatch.setattr(drafts, "WAYS", "/nowhere/at/all")
    elif what == "links":
        monkeypatch.setattr(os, "link", lambda *_, **__: os.stat("/nowhere/at/all"))


LACKING = ["nothing", "unnamed files", "the flag", "names of open files", "links"]


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("what", LACKING)
def test_a_draft_appears_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, replace: bool
) -> None:
    lacking(monkeypatch, what)
    path = tmp_path / ("n" * 240)  # names have 255 bytes at most
    if replace:
        path.write_bytes(b"old")
    draft = Draft(str(path), 0o600)
    assert draft.write(b"one ") == 0
    assert draft.write(b"two") == 4
    near = draft.reader("it")
    assert bytes(near.read([(2, 4)])[0]) == b"e tw"
    near.close()
    if os.name == "posix":
        os.fchmod(draft.fd, 0o640)
    looked = []
    draft.appear(replace, lambda: looked.append(path.read_bytes() if path.exists() else None))
    draft.close()
    assert looked == [b"old" if replace else None]
    assert path.read_bytes() == b"one two"
    assert os.listdir(tmp_path) == [path.name]
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        assert path.stat().st_nlink == 1


@pytest.mark.parametrize("what", LACKING)
def test_a_draft_that_does_not_appear_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    lacking(monkeypatch, what)
    path = tmp_path / "a"
    draft = Draft(str(path))
    draft.write(b"new")
    path.write_bytes(b"old")
    with pytest.raises(FileExistsError, match=r"a: it exists already; say overwrite=True"):
        draft.appear(replace=False)
    draft.close()

    def changed() -> None:
        raise ps.FileChangedError("it is another one")

    draft = Draft(str(path))
    with pytest.raises(ps.FileChangedError):
        draft.appear(replace=True, look=changed)
    draft.close()
    draft = Draft(str(path))
    draft.write(b"new")
    draft.hide()
    near = draft.reader("it") if what in ("nothing", "links") and sys.platform == "linux" else None
    if near is not None:
        assert bytes(near.read([(0, 3)])[0]) == b"new"
        near.close()
    draft.close()
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["a"]
    with pytest.raises(FileNotFoundError):
        Draft(str(tmp_path / "no" / "folder"))


@linux
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize("link", [False, True])
def test_what_is_no_file_is_never_replaced(tmp_path: Path, link: bool) -> None:
    """A device or a pipe would be gone for everybody, even where overwrite=True."""
    pipe, source = tmp_path / "pipe", tmp_path / "a.parquet"
    os.mkfifo(pipe)
    pq.write_table(pa.table({"k": [2, 1]}), source)
    output = pipe
    if link:
        output = tmp_path / "link"
        output.symlink_to(pipe)
    for write in (ps.rewrite, ps.index.attach):
        with pytest.raises(FileExistsError, match="a device, a pipe or a socket"):
            write(source, output=output, overwrite=True)
    draft = Draft(str(tmp_path / "late"))
    draft.write(b"x")
    os.mkfifo(tmp_path / "late")
    with closing(draft), pytest.raises(FileExistsError, match="a pipe"):
        draft.appear(True)
    for one in (pipe, tmp_path / "late"):
        assert stat.S_ISFIFO(one.stat().st_mode)
    assert not list(tmp_path.glob(".*"))


def test_a_file_has_no_name_while_it_is_written(tmp_path: Path, monkeypatch: Any) -> None:
    """A reader of the folder sees the complete file, or no file."""
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"id": range(1000)}), path)
    seen = []
    real = os.fsync

    def look(fd: int) -> None:
        seen.append(os.listdir(tmp_path))
        real(fd)

    monkeypatch.setattr(os, "fsync", look)
    ps.index.attach(path, in_place=True)
    assert seen == [["x.parquet"]] * 2
    seen.clear()
    ps.save_cache(tmp_path / "cache")
    assert seen[0] == ["x.parquet"] and stat.S_IMODE((tmp_path / "cache").stat().st_mode) == 0o600


def entries(*of: tuple[int, int, int]) -> bytes:
    """A list of rights: (tag, rights, who) each (linux/posix_acl_xattr.h)."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *one) for one in of)


NOBODY = 0xFFFFFFFF
# the owner, one more user and the mask read and write; the group and others do not
RIGHTS = entries((1, 6, NOBODY), (2, 6, 4321), (4, 0, NOBODY), (16, 6, NOBODY), (32, 0, NOBODY))
# what a folder gives to new files: another user reads them
USUAL = entries((1, 6, NOBODY), (2, 4, 999), (4, 4, NOBODY), (16, 4, NOBODY), (32, 0, NOBODY))


@linux
@pytest.mark.parametrize("what", ["nothing", "unnamed files", "names of open files", "links"])
@pytest.mark.parametrize("rights", [RIGHTS, None])
def test_attributes_and_rights_are_those_of_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, rights: bytes | None
) -> None:
    """With an ACL, the group bits are its mask: without the ACL the group could read the file."""
    path, other, link = tmp_path / "x.parquet", tmp_path / "other", tmp_path / "link"
    pq.write_table(pa.table({"id": range(1000)}), path)
    path.chmod(0o640)
    os.link(path, other)
    link.symlink_to("x.parquet")
    try:
        os.setxattr(path, "user.origin", b"elsewhere")
        os.setxattr(tmp_path, "system.posix_acl_default", USUAL)
        if rights is not None:
            os.setxattr(path, ACL, rights)
    except OSError:
        pytest.skip("no attributes here")
    old, before = path.read_bytes(), path.stat()
    lacking(monkeypatch, what)
    ps.index.attach(link, in_place=True)
    now = path.stat()
    assert link.is_symlink() and now.st_nlink == 1
    assert other.read_bytes() == old  # another name goes on to be the old file's
    assert (now.st_mode, now.st_uid, now.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert {name: os.getxattr(path, name) for name in os.listxattr(path) if name != "security.selinux"} == (
        {"user.origin": b"elsewhere"} | ({} if rights is None else {ACL: rights})
    )  # fmt: skip


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
@pytest.mark.parametrize("way", ["scan -o", "write_parquet", "rewrite", "attach"])
def test_a_file_that_replaces_another_is_as_private(way: str, tmp_path: Path) -> None:
    source, old = str(tmp_path / "source.parquet"), tmp_path / "old.parquet"
    pq.write_table(pa.table({"a": [1, 2]}), source)
    for mode in (0o600, 0o640):
        old.write_bytes(b"old")
        old.chmod(mode)
        if way == "scan -o":
            assert cli.main(["scan", source, "-o", str(old), "--overwrite"]) == 0
        elif way == "write_parquet":
            ps.scan(source).write_parquet(old, overwrite=True)
        elif way == "attach":
            ps.index.attach(source, lookup=["a"], output=str(old), overwrite=True)
        else:
            ps.rewrite(source, old, overwrite=True)
        assert ps.read_table(str(old)).num_rows == 2
        assert stat.S_IMODE(old.stat().st_mode) == mode
