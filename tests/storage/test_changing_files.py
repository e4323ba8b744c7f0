"""A file that changes while it is read: the whole answer of one version, or FileChangedError; changed once before every read, and at
random. `proofs/stores.py` does the latter a thousand times.
"""

from __future__ import annotations

import itertools
import os
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import pageseek as ps
from pageseek.storage import local as local_files
from pageseek.storage.local import LocalStore
from support.changing_files import (
    CHANGES,
    FIGURES,
    QUERIES,
    Change,
    Truth,
    local,
    overwrite,
    remote,
    truncate,
)
from support.local_reads import hook_local_reads
from support.object_server.messages import Request
from support.object_server.objects import MemoryObjects
from support.object_server.server import ObjectServer
from support.remote_files import GROUPS, PATH, ROWS, STRONG, WEAK, Way, content
from support.tiers import rounds

DICE = random.Random(1)


@pytest.fixture(scope="module")
def truth() -> Truth:
    return Truth()


def answers(given: dict[str, Any], query: int, truth: Truth) -> bool:
    """Whether there is an answer, of one version; False where the file is said to have changed."""
    how = {**QUERIES[query], "threads": 1}
    try:
        if "limit" not in how:
            found = ps.scan(**given, **how).aggregate(FIGURES)
            assert truth.is_figure_of_one(query, found)
        found = ps.read_table(**given, **how)
    except ps.FileChangedError:
        return False
    assert truth.is_one(query, found)
    return True


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("query", range(len(QUERIES)))
@pytest.mark.parametrize("when", ["asked", "given"])
def test_a_file_that_changes_before_any_of_its_reads(
    truth: Truth,
    change: Change,
    query: int,
    when: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also between a read and the time when a thread needs the bytes, which reads them then."""
    path = tmp_path / "a.parquet"
    monkeypatch.setattr(local_files, "LATER", 1)
    changed = 0
    for at in range(60):
        path.write_bytes(truth.data[0])
        ps.clear_cache()
        count = 0

        def changing(_: object, __: object, at: int = at) -> None:
            nonlocal count
            if count == at:
                change(path, truth.data[1], DICE)
            count += 1

        with monkeypatch.context() as patch:
            hook_local_reads(patch, **{when: changing})
            changed += not answers({"source": str(path)}, query, truth)
        if count <= at:
            break
    else:
        pytest.fail("reads without end")
    assert at > 2
    assert changed == 0 if change.__name__ == "replace" else changed > 0


@pytest.mark.parametrize("same", [True, False], ids=["as long", "longer"])
def test_a_file_that_changes_between_the_reads_of_its_footer(
    truth: Truth, same: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No figure of a footer that may be of two versions; nor is the file called damaged, which it is not."""
    path = tmp_path / "a.parquet"
    path.write_bytes(truth.data[0])
    other = truth.data[1] if same else content(1, row_group_size=500)
    reads = []

    def changing(_: object, ranges: Sequence[tuple[int, int]]) -> None:
        reads.append(ranges)
        if len(reads) == 2:
            path.write_bytes(other)

    hook_local_reads(monkeypatch, changing)
    with pytest.raises(ps.FileChangedError):
        ps.scan(path).count_rows()
    assert len(reads) == 2
    assert ps.scan(path).count_rows() == GROUPS * ROWS


@pytest.mark.parametrize("way", STRONG + WEAK)
@pytest.mark.parametrize("query", [0, 2, 3])
@pytest.mark.parametrize("etags", [True, False], ids=["etag", "modified"])
def test_an_object_that_is_replaced_before_any_of_its_requests(
    object_server: ObjectServer, truth: Truth, way: Way, query: int, etags: bool
) -> None:
    dated(object_server, etags)
    given, changed = way(object_server), 0
    for at in range(60):
        object_server.faults = None
        object_server.put(PATH, truth.data[0])
        ps.clear_cache()
        count = itertools.count()

        def choose(request: Request, at: int = at, count: Any = count) -> None:
            if next(count) == at:
                object_server.put(PATH, truth.data[1])

        object_server.faults = choose
        changed += not answers(given, query, truth)
        if next(count) <= at:
            break
    else:
        pytest.fail("requests without end")
    assert changed > 0


def dated(server: ObjectServer, etags: bool) -> None:
    """Versions are told apart by their ETags, or by times, of which HTTP has whole seconds."""
    server.etags = etags
    assert isinstance(server.objects, MemoryObjects)
    server.objects.clock = itertools.count(1_700_000_000).__next__


# a write in place that a busy machine draws out may be seen by nobody (docs/stores.md)
@pytest.mark.timed
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_hundred_changes_at_any_moment(truth: Truth, change: Change, tmp_path: Path) -> None:
    found = local(truth, tmp_path / "a.parquet", change, 100, 11)
    assert found.total() == 100
    assert found["right"] > 20
    assert (found["changed"] > 5) == (change.__name__ != "replace")


@pytest.mark.parametrize("way", STRONG + WEAK)
@pytest.mark.parametrize("etags", [True, False], ids=["etag", "modified"])
def test_many_queries_of_an_object_that_is_replaced_all_the_time(
    object_server: ObjectServer, truth: Truth, way: Way, etags: bool
) -> None:
    dated(object_server, etags)
    queries = rounds(100, 2)
    found = remote(truth, object_server, way, queries, 12)
    assert found.total() == queries
    assert found["right"] > queries // 10 and found["changed"] > queries // 20


# ---- times of local files


@pytest.mark.timed
def test_a_file_of_this_moment_is_read_in_the_next(
    tmp_path: Path, truth: Truth, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writes within one tick of the file system's clock have the same time, also with a read between them."""
    monkeypatch.setattr(local_files, "TICK", 50_000_000)
    path = tmp_path / "a.parquet"
    path.write_bytes(truth.data[0])
    store = LocalStore(str(path))
    assert time.time_ns() - path.stat().st_mtime_ns > 50_000_000
    assert store.version.dated
    store.close()
    for age in (60_000_000, -60_000_000_000):  # long ago; of a clock that is ahead
        written = time.time_ns() - age
        os.utime(path, ns=(written, written))
        begun = time.monotonic()
        LocalStore(str(path)).close()
        assert time.monotonic() - begun < 0.04


def test_a_file_that_is_written_all_the_time_is_not_waited_for_forever(
    tmp_path: Path, truth: Truth, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_files, "TICK", 20_000_000)
    path = tmp_path / "a.parquet"
    path.write_bytes(truth.data[0])
    sleep = time.sleep

    def write_meanwhile(seconds: float) -> None:
        sleep(seconds)
        overwrite(path, truth.data[1], DICE)

    monkeypatch.setattr(local_files.time, "sleep", write_meanwhile)
    before = ps.cache_info()
    store = LocalStore(str(path))
    assert not store.version.dated
    store.close()
    assert truth.is_one(0, ps.read_table(path))
    after = ps.cache_info()
    assert after.files == before.files  # its time says too little to be found again by it


def test_a_file_that_is_cut_short_when_it_is_opened_is_no_other_version(
    tmp_path: Path, truth: Truth
) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(truth.data[0][:-100])
    with pytest.raises(ps.CorruptFileError, match="cut short"):
        ps.read_table(path)
    truncate(path, truth.data[0], DICE)
    assert truth.is_one(0, ps.read_table(path))
