"""Footers in a folder: later processes find them, and whatever is wrong with an entry counts for nothing."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import pageseek as ps
from pageseek.datasets import kept_ends
from pageseek.datasets.kept_ends import KeptEnds
from pageseek.storage import Known, Version
from support.concurrency import in_threads
from support.object_server.server import ObjectServer
from support.remote_files import PATH, SECRET, content, over_s3

POINT = ps.col("id") == 12_345
FILES = 4


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(kept_ends.FOLDER, str(tmp_path / "footers"))
    return tmp_path / "footers"


@pytest.fixture
def server(object_server: ObjectServer, folder: Path) -> Any:
    pytest.importorskip("obstore")
    ps.clear_cache()
    for i in range(FILES):
        object_server.put(f"bucket/m/{i}.parquet", content(i))
    yield object_server
    ps.clear_cache()


def urls(server: ObjectServer) -> list[str]:
    return [server.url(f"bucket/m/{i}.parquet") for i in range(FILES)]


def entries(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def asked(server: ObjectServer) -> list[str]:
    """The requests of one query over all files, by a process that has nothing in memory."""
    ps.clear_cache()
    server.log.reset()
    found = ps.read_table(urls(server), filter=POINT)["seed"].to_pylist()
    assert found == list(range(FILES))
    return list(server.log.asked())


def test_the_next_process_asks_for_no_footer(server: ObjectServer, folder: Path) -> None:
    first = asked(server)
    assert any("=-" in one for one in first)  # the last bytes of a file
    assert len(entries(folder)) == FILES
    again = asked(server)
    assert len(again) == FILES < len(first)
    assert not any("=-" in one for one in again)
    code = (
        f"import pageseek as ps; print(ps.read_table({urls(server)}, filter='id = 12345').num_rows)"
    )
    server.log.reset()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (int(done.stdout), len(server.log)) == (FILES, FILES)


def test_a_plan_that_another_process_executes_asks_for_pages_alone(server: ObjectServer) -> None:
    shipped = pickle.dumps(ps.scan(urls(server), filter=POINT).plan())
    ps.clear_cache()
    server.log.reset()
    found = [
        seed for batch in pickle.loads(shipped).execute() for seed in batch["seed"].to_pylist()
    ]
    assert found == list(range(FILES))
    assert [(record.method, record.status) for record in server.log.records()] == [
        ("GET", 206)
    ] * len(server.log)
    assert not any("=-" in one for one in server.log.asked())


def test_without_the_setting_nothing_is_kept(
    server: ObjectServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(kept_ends.FOLDER)
    assert len(asked(server)) == len(asked(server))
    assert not folder.exists()


def test_a_changed_file_is_read_anew_and_its_entry_replaced(
    server: ObjectServer, folder: Path
) -> None:
    asked(server)
    server.replace("bucket/m/1.parquet", content(8))
    for _ in range(2):
        ps.clear_cache()
        server.log.reset()
        assert ps.read_table(urls(server)[1], filter=POINT)["seed"].to_pylist() == [8]
    assert len(server.log) == 1
    assert len(entries(folder)) == FILES


@pytest.mark.parametrize("damage", ["a bit", "cut", "empty", "another key", "not a file"])
def test_a_damaged_entry_is_replaced(server: ObjectServer, folder: Path, damage: str) -> None:
    asked(server)
    victim, other, *_ = entries(folder)
    whole = victim.read_bytes()
    if damage == "a bit":
        victim.write_bytes(whole[:200] + bytes([whole[200] ^ 1]) + whole[201:])
    elif damage == "another key":
        victim.write_bytes(other.read_bytes())
    elif damage == "not a file":
        victim.unlink()
        victim.mkdir()
        with pytest.warns(UserWarning, match="footers are not kept there"):
            asked(server)
        victim.rmdir()
    else:
        victim.write_bytes(whole[: len(whole) // 2 if damage == "cut" else 0])
    asked(server)
    assert victim.read_bytes() == whole
    assert len(asked(server)) == FILES


def test_entries_have_no_secrets_and_are_for_one_user(server: ObjectServer, folder: Path) -> None:
    server.put(PATH, content())
    ps.read_table(**over_s3(server), filter=POINT)
    found = entries(folder)
    assert found
    assert not any(SECRET.encode() in path.read_bytes() for path in found)
    assert {path.stat().st_mode & 0o077 for path in [folder, *folder.iterdir(), *found]} == {0}


def test_the_oldest_entries_are_deleted_when_all_are_too_large(tmp_path: Path) -> None:
    kept = KeptEnds(tmp_path, 50_000)
    long_ago = time.time() - 1e6
    (tmp_path / "00").mkdir()
    killed = tmp_path / "00" / ".left by a process that was killed"
    killed.write_bytes(bytes(9_000))
    os.utime(killed, (long_ago, long_ago))
    known = Known(Version(10_000, "tag", True), b"x" * 900)
    for i in range(200):
        kept.put(f"s3://bucket/{i}", known)
        if i == 10:
            path = kept._path("s3://bucket/3")
            os.utime(path, (long_ago + 1, long_ago + 1))
            assert kept.get("s3://bucket/3") == known  # which makes it young
        if i > 10:
            os.utime(kept._path(f"s3://bucket/{i}"), (long_ago + i, long_ago + i))
    assert sum(path.stat().st_size for path in entries(tmp_path)) <= 50_000
    assert not killed.exists()
    assert kept.get("s3://bucket/3") == known
    assert kept.get("s3://bucket/199") == known
    assert kept.get("s3://bucket/20") is None
    assert KeptEnds(tmp_path, 50_000).get("s3://bucket/199") == known


def test_threads_and_processes_share_it(tmp_path: Path) -> None:
    kept = [KeptEnds(tmp_path, 20_000) for _ in range(4)]

    def work(number: int) -> None:
        for i in range(100):
            known = Known(Version(10_000, f"{number}", True), bytes([number]) * 900)
            kept[number].put(f"s3://bucket/{i % 10}", known)
            found = kept[number].get(f"s3://bucket/{i % 10}")
            assert found is None or found.tail == bytes([int(found.version.tag)]) * 900

    in_threads(4, work)
    assert len(entries(tmp_path)) <= 20


def test_a_wrong_size_is_refused(server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kept_ends.BYTES, "much")
    with pytest.raises(ValueError, match="PAGESEEK_FOOTER_CACHE_BYTES=much"):
        ps.scan(urls(server)).count_rows()
