"""`attach` refused, failed, or run against concurrent writers: nothing is left behind, and nothing is lost."""

from __future__ import annotations

import base64
import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.index.local_target import LocalTarget
from support.attaching import same, written


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("attach") / "plain.parquet")


def test_nothing_is_left_behind_by_a_failure(plain: Path, tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(plain.read_bytes())

    def broken(*_: Any) -> None:
        raise OSError("the disk is full")

    for name in ("write", "fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, broken)
            with pytest.raises(OSError, match="disk is full"):
                ps.index.attach(path, in_place=True)
        assert path.read_bytes() == plain.read_bytes()
        assert os.listdir(tmp_path) == ["x.parquet"]


@pytest.mark.skipif(os.name != "posix", reason="a limit of POSIX")
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_full_disk_is_named_and_leaves_nothing(plain: Path, tmp_path: Path, share: float) -> None:
    path, size = tmp_path / "x.parquet", plain.stat().st_size
    path.write_bytes(plain.read_bytes())
    made = ps.index.attach(path, bloom=["id"], output=tmp_path / "y.parquet")
    room = int(share * (made.bytes_after - 1))
    code = (
        f"import resource, pageseek as ps; resource.setrlimit(resource.RLIMIT_FSIZE, ({room}, {room}))\n"
        f"ps.index.attach({str(path)!r}, bloom=['id'], in_place=True)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode == 1
    assert f"OSError: [Errno {errno.EFBIG}]" in ended.stderr
    assert str(path) in ended.stderr.splitlines()[-1]
    assert path.read_bytes() == plain.read_bytes() and path.stat().st_size == size
    assert sorted(os.listdir(tmp_path)) == ["x.parquet", "y.parquet"]


@pytest.mark.parametrize("name", ["n" * 247 + ".parquet", "名" * 82 + ".parquet"])
def test_a_name_of_any_length(plain: Path, tmp_path: Path, name: str) -> None:
    """That under which a file is put together is longer than its own, and no system takes more than 255 bytes."""
    path = tmp_path / name
    path.write_bytes(plain.read_bytes())
    ps.index.attach(path, bloom=["id"], in_place=True)
    assert ps.index.verify(path).ok and os.listdir(tmp_path) == [name]


def test_a_file_that_changes_meanwhile_is_left_alone(
    plain: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(plain.read_bytes())
    real = os.fsync

    def required_leaves(fd: int) -> None:
        real(fd)
        with open(path, "ab") as file:
            file.write(b"x")

    monkeypatch.setattr(os, "fsync", required_leaves)
    with pytest.raises(ps.FileChangedError):
        ps.index.attach(path, in_place=True)
    assert path.read_bytes() == plain.read_bytes() + b"x"


def test_where_to_has_to_be_said(plain: Path) -> None:
    with pytest.raises(ValueError, match="required"):
        ps.index.attach(plain)
    with pytest.raises(ValueError, match="required"):
        ps.index.attach(plain, output="x", in_place=True)
    with pytest.raises(ValueError, match="in_place"):
        ps.index.attach(plain, output=plain)


def test_what_is_there_is_replaced_only_if_told(
    plain: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    out = tmp_path / "out.parquet"
    out.write_bytes(b"others")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        ps.index.attach(plain, output=out)
    with pytest.raises(ValueError, match="overwrite=True goes with output"):
        ps.index.attach(plain, in_place=True, overwrite=True)
    assert out.read_bytes() == b"others"
    ps.index.attach(plain, output=out, overwrite=True)
    assert same(ps.read_table(out), ps.read_table(plain))

    def late(_: Any) -> None:  # it comes while the new file is written
        new.write_bytes(b"others")

    for links in (True, False):  # not every disk has them
        new = tmp_path / f"new-{links}.parquet"
        if not links:
            monkeypatch.setattr(os, "link", lambda *_, **__: os.stat("/nowhere/at/all"))
        with pytest.raises(FileExistsError, match="overwrite=True"):
            ps.index.attach(plain, page_index=["id"], output=new, progress=late)
        assert new.read_bytes() == b"others"
        new.unlink()
        ps.index.attach(plain, page_index=["id"], output=new)
        assert same(ps.read_table(new), ps.read_table(plain))
    assert sorted(os.listdir(tmp_path)) == ["new-False.parquet", "new-True.parquet", "out.parquet"]


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"bloom": ["flag"]}, "no Bloom filter of BOOLEAN"),
        ({"distinct": ["list.list.element"]}, "lies in a list"),
        ({"bloom": ["nothing"]}, "nothing"),
    ],
)
def test_what_cannot_be_is_refused(plain: Path, tmp_path: Path, knobs: Any, message: str) -> None:
    with pytest.raises(ps.PageseekError, match=message):
        ps.index.attach(plain, output=tmp_path / "out", **knobs)
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("log", ["_delta_log", "metadata/v1.metadata.json"])
def test_files_of_tables_are_left_alone(plain: Path, tmp_path: Path, log: str) -> None:
    """Tables record the sizes of their files: a larger one could not be read through them."""
    (tmp_path / log).mkdir(parents=True)
    path = tmp_path / "data" / "part=1" / "x.parquet"
    path.parent.mkdir(parents=True)
    path.write_bytes(plain.read_bytes())
    for knobs in ({"in_place": True}, {"output": path.with_name("y.parquet")}):
        with pytest.raises(ps.UnsupportedError, match="table"):
            ps.index.attach(path, **knobs)
        with pytest.raises(ps.UnsupportedError, match="table"):
            ps.index.detach(path, **knobs)
    assert path.read_bytes() == plain.read_bytes()


# ---- somebody else writes meanwhile


@pytest.mark.parametrize("how", ["replaced", "deleted"])
@pytest.mark.parametrize("what", ["attach", "detach"])
def test_a_file_that_others_replace_meanwhile_is_left_alone(
    tmp_path: Path, how: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that has the file open does not see that another file has taken its name."""
    path, other = tmp_path / "a.parquet", tmp_path / "b.parquet"
    pq.write_table(pa.table({"a": range(1000)}), path)
    pq.write_table(pa.table({"a": range(5)}), other)
    if what == "detach":
        ps.index.attach(path, in_place=True)
    theirs = other.read_bytes()
    copy = LocalTarget.copy

    def meanwhile(self: LocalTarget, *rest: Any) -> Any:
        found = copy(self, *rest)
        if how == "replaced":
            os.replace(other, path)
        else:
            path.unlink()
        return found

    monkeypatch.setattr(LocalTarget, "copy", meanwhile)
    with pytest.raises(ps.FileChangedError, match=f"was {how}"):
        getattr(ps.index, what)(path, in_place=True)
    if how == "replaced":
        assert path.read_bytes() == theirs and list(tmp_path.iterdir()) == [path]
    else:
        assert list(tmp_path.iterdir()) == [other]


def test_a_directory_that_nobody_would_read_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({f"column{i}": [1] for i in range(20)}), path)
    before = path.read_bytes()
    monkeypatch.setattr(sys.modules["pageseek.index.appended"], "MAX_DIRECTORY_BYTES", 2_000)
    with pytest.raises(ps.UnsupportedError, match="fewer columns"):
        ps.index.attach(path, distinct=[f"column{i}" for i in range(20)], in_place=True)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]
    ps.index.attach(path, distinct=["column3"], in_place=True)
    assert [one.column for one in ps.index.list(path) if one.attached][-1:] == ["column3"]


def test_encrypted_files_are_refused(tmp_path: Path) -> None:
    """Attach would tell what is hidden, detach would break the signature of a footer in the clear."""
    pe = pytest.importorskip("pyarrow.parquet.encryption")

    class Kms(pe.KmsClient):  # type: ignore[misc, name-defined]
        def __init__(self, _: Any) -> None:
            super().__init__()

        def wrap_key(self, key: bytes, _: str) -> str:
            return base64.b64encode(key).decode()

        def unwrap_key(self, wrapped: str, _: str) -> bytes:
            return base64.b64decode(wrapped)

    factory = pe.CryptoFactory(lambda config: Kms(config))
    for plain_footer in (True, False):
        config = pe.EncryptionConfiguration(
            footer_key="f", column_keys={"k": ["b"]}, plaintext_footer=plain_footer
        )
        properties = factory.file_encryption_properties(pe.KmsConnectionConfig(), config)
        path = tmp_path / f"{plain_footer}.parquet"
        data = pa.table({"a": [1, 2], "b": [3, 4]})
        with pq.ParquetWriter(path, data.schema, encryption_properties=properties) as writer:
            writer.write_table(data)
        before = path.read_bytes()
        for work in (
            lambda path=path: ps.index.attach(path, in_place=True),
            lambda path=path: ps.index.detach(path, in_place=True),
            lambda path=path: ps.index.detach(path, output=tmp_path / "out.parquet"),
        ):
            with pytest.raises(ps.UnsupportedError, match="encrypted"):
                work()
        assert path.read_bytes() == before
    assert not (tmp_path / "out.parquet").exists()
