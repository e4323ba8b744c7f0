"""The footer cache: bounded in bytes, counted, saved and loaded, used only for the right version."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

import pageseek as ps
from pageseek.datasets.file_cache import cache
from pageseek.datasets.saved_cache import DIGEST, MAGIC
from support.concurrency import in_threads
from support.object_server.server import ObjectServer
from support.remote_files import GROUPS, PATH, ROWS, SECRET, content, over_http, over_s3, table

POINT = ps.col("id") == 12_345
FILES = 6


@pytest.fixture
def server(object_server: ObjectServer) -> Any:
    ps.clear_cache()
    object_server.put(PATH, content())
    for i in range(FILES):
        object_server.put(f"bucket/m/{i}.parquet", content(i))
    yield object_server
    ps.resize_cache(256 << 20)
    cache.capacity = 256
    ps.clear_cache()


def many(server: ObjectServer) -> list[str]:
    return [server.url(f"bucket/m/{i}.parquet") for i in range(FILES)]


def test_it_counts(server: ObjectServer) -> None:
    pytest.importorskip("obstore")
    ps.scan(many(server)).count_rows()
    ps.scan(many(server)).count_rows()
    found = ps.cache_info()
    assert (found.files, found.hits, found.misses, found.evictions) == (FILES, FILES, FILES, 0)
    assert 0 < found.bytes < found.max_bytes
    ps.clear_cache()
    found = ps.cache_info()
    assert (found.files, found.bytes, found.hits, found.misses) == (0, 0, 0, 0)


def test_it_grows_with_what_is_parsed(server: ObjectServer) -> None:
    given = over_http(server)
    ps.scan(**given).count_rows()
    before = ps.cache_info().bytes
    ps.read_table(**given, filter=POINT)
    assert ps.cache_info().bytes > before


def test_it_is_bounded_in_bytes(server: ObjectServer) -> None:
    pytest.importorskip("obstore")
    ps.scan(many(server)).count_rows()
    whole = ps.cache_info().bytes
    ps.resize_cache(whole // 3)
    assert ps.cache_info().bytes <= whole // 3
    for _ in range(2):
        for i, url in enumerate(many(server)):
            found = ps.read_table(url, filter=POINT)["seed"].to_pylist()
            assert found == [i]
    assert ps.cache_info().bytes <= whole // 3
    ps.resize_cache(0)
    assert ps.cache_info().files == 0
    assert ps.read_table(many(server)[3], filter=POINT)["seed"].to_pylist() == [3]
    assert ps.cache_info().files == 0
    with pytest.raises(ValueError, match="max_bytes"):
        ps.resize_cache(-1)


def test_of_a_distant_file_that_had_to_close_the_end_is_kept(server: ObjectServer) -> None:
    pytest.importorskip("obstore")
    cache.capacity = 2
    ps.scan(many(server), filter=POINT).to_table()
    assert len(cache._files) == 2
    assert ps.cache_info().files == FILES
    for i, url in enumerate(many(server)):
        server.log.reset()
        assert ps.read_table(url, filter=POINT)["seed"].to_pylist() == [i]
        assert [one.status for one in server.log.records()] == [206]
    server.replace("bucket/m/0.parquet", content(9))
    assert ps.read_table(many(server)[0], filter=POINT)["seed"].to_pylist() == [9]


def test_ends_hold_little_but_footer_and_index(server: ObjectServer) -> None:
    ps.read_table(**over_http(server), filter=POINT)
    (known,) = cache.ends().values()
    footer = int.from_bytes(known.tail[-8:-4], "little")
    assert footer < len(known.tail) < footer + 40_000


def test_it_goes_from_process_to_process(server: ObjectServer, tmp_path: Path) -> None:
    given = over_s3(server)
    ps.read_table(**given, filter=POINT)
    ps.scan(many(server)).count_rows()
    saved = tmp_path / "ends"
    assert ps.save_cache(saved) == 1 + FILES
    assert SECRET.encode() not in saved.read_bytes()
    ps.clear_cache()
    assert ps.load_cache(saved) == 1 + FILES
    server.log.reset()
    assert ps.read_table(**given, filter=POINT).num_rows == 1
    assert [one.status for one in server.log.records()] == [206]
    server.replace("bucket/m/1.parquet", content(8))
    for i, url in enumerate(many(server)):
        found = ps.read_table(url, filter=POINT)["seed"].to_pylist()
        assert found == [8 if i == 1 else i]
    assert ps.cache_info().misses == 1


def test_it_travels_by_pickle(server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """To a process that has nothing open: what it then asks is what a warm one asks."""
    pytest.importorskip("obstore")
    cache.max_bytes = 10 << 20
    wanted = [ps.read_table(url, filter=POINT) for url in many(server)]
    made = pickle.dumps(cache)
    assert SECRET.encode() not in made
    ps.clear_cache()
    again = pickle.loads(made)
    assert again is not cache and again.max_bytes == 10 << 20 and again.info().files == FILES
    for room in (
        "pageseek.datasets.file_cache",
        "pageseek.api",
        "pageseek.scanning.plans.open_ahead",
    ):
        if hasattr(sys.modules[room], "cache"):
            monkeypatch.setattr(sys.modules[room], "cache", again)
    server.log.reset()
    assert [ps.read_table(url, filter=POINT) for url in many(server)] == wanted
    assert not any("=-" in one for one in server.log.asked())  # no tail, no footer
    assert len(server.log) == FILES


def test_local_files_are_not_saved(tmp_path: Path) -> None:
    ps.clear_cache()
    (tmp_path / "a.parquet").write_bytes(content())
    ps.scan(tmp_path / "a.parquet").count_rows()
    assert ps.save_cache(tmp_path / "ends") == 0
    assert ps.load_cache(tmp_path / "ends") == 0


def test_a_damaged_file_is_refused(server: ObjectServer, tmp_path: Path) -> None:
    ps.read_table(**over_http(server), filter=POINT)
    saved = tmp_path / "ends"
    ps.save_cache(saved)
    good = saved.read_bytes()
    assert good.startswith(MAGIC)
    for bad in (b"", good[:-1], good[:200], good + b"x", b"\x80\x04K\x01.", good[:-DIGEST]):
        saved.write_bytes(bad)
        with pytest.raises(ps.CorruptFileError, match="delete it"):
            ps.load_cache(saved)
    for at in range(0, len(good), 997):
        saved.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        with pytest.raises(ps.CorruptFileError):
            ps.load_cache(saved)


def test_threads_share_it(server: ObjectServer) -> None:
    pytest.importorskip("obstore")
    cache.capacity = 3
    ps.resize_cache(300_000)
    wrong: list[Any] = []

    def work(start: int) -> None:
        for step in range(12):
            i = (start + step) % FILES
            try:
                found = ps.read_table(many(server)[i], filter=POINT)["seed"].to_pylist()
            except Exception as error:
                found = error
            if found != [i]:
                wrong.append(found)

    in_threads(4, work)
    assert not wrong
    assert ps.cache_info().bytes <= 300_000


def test_answers_with_what_is_kept_are_those_without(server: ObjectServer) -> None:
    given = over_http(server)
    for condition in (None, POINT, ps.col("v") < 1 << 38):
        for _ in range(3):
            found = ps.read_table(**given, filter=condition)
            assert found == ps.read_table(content(), filter=condition)
    assert table().num_rows == GROUPS * ROWS
