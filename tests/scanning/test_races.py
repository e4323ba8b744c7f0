"""Concurrent row groups: the same rows and errors as sequential ones, from local and remote files, and never a hang."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.predicate.bound import Bound, BoundConst
from pageseek.scanning.one_file import lane
from pageseek.scanning.plans import tables
from pageseek.scanning.requests.condition_order import ENOUGH, Learned
from pageseek.storage.local import LocalStore
from pageseek.storage.store import SLOW_STORE
from support.local_reads import hook_local_reads

FILES, IN_FILE, IN_GROUP = 3, 40_000, 4_000


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads are given what is too small to be worth one, too."""
    monkeypatch.setattr(tables, "FEW_VALUES", 0)
    monkeypatch.setattr(tables, "GROUP_VALUES", 0)
    monkeypatch.setattr(tables, "WAVE_ROWS", 0)
    monkeypatch.setattr(lane, "WORTH_A_CORE", 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Three files of ten row groups, whose page index is larger than what is read at open."""
    made, dice = tmp_path_factory.mktemp("beside"), np.random.default_rng(5)
    for number in range(FILES):
        rows = np.arange(number * IN_FILE, (number + 1) * IN_FILE)
        table = pa.table(
            {
                "row": rows,
                "cycle": rows % 1_000,
                "share": dice.random(IN_FILE),
                "text": [f"text {row % 777}" for row in rows.tolist()],
                "odd": pa.array(rows, mask=rows % 2 == 0),
                "list": [[row, row % 5] if row % 3 else [] for row in rows.tolist()],
            }
        )
        pq.write_table(
            table, made / f"{number}.parquet", row_group_size=IN_GROUP, write_page_index=True,
            use_dictionary=["text"], data_page_size=1, write_batch_size=40,
        )  # fmt: skip
    return str(made)


def in_time(work: Callable[[], Any], seconds: float = 60) -> Any:
    """The result or error of the work; a failure if it takes longer."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append((work(), None))
        except BaseException as error:
            found.append((None, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert found, "it hangs"
    result, error = found[0]
    if error is not None:
        raise error
    return result


def far_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalStore, "latency", 5 * SLOW_STORE)
    monkeypatch.setattr(LocalStore, "bandwidth", 1e6)
    hook_local_reads(monkeypatch, lambda _, __: time.sleep(2 * SLOW_STORE))


FILTERS = [
    None,
    ps.col("share") < 0.01,
    (ps.col("cycle") < 20) & (ps.col("share") < 0.5) & ps.col("odd").is_null(),
    ps.col("text").starts_with("text 1") | (ps.col("list").any() == 3),
    ps.col("cycle") == 1_000_000,
]


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("condition", FILTERS, ids=str)
def test_rows_and_counts_are_those_of_one_thread(
    condition: Any, far: bool, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if far:
        far_away(monkeypatch)
    ps.clear_cache()
    alone = ps.scan(folder, filter=condition, prune=False, threads=1).with_row_number("at")
    wanted = in_time(alone.to_table)
    for threads, ahead in ((2, 1 << 28), (4, 1 << 28), (2, 0)):
        ps.clear_cache()
        scan = ps.scan(folder, filter=condition, threads=threads, max_ahead_bytes=ahead)
        assert in_time(scan.with_row_number("at").to_table) == wanted
        report = in_time(lambda scan=scan: scan.explain(analyze=True)).to_dict()
        for unit in ("files", "row_groups", "pages", "rows"):
            count = report[unit]
            assert count["total"] == count["read"] + sum(count["pruned_by"].values()), unit
        assert report["rows"]["total"] == FILES * IN_FILE


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_a_plan_that_travelled_loads_its_indexes_from_afar(
    threads: int, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    far_away(monkeypatch)
    scan = ps.scan(folder, columns=["row"], filter=ps.col("share") < 0.001, threads=threads)
    wanted = scan.to_table()
    made = pickle.loads(pickle.dumps(scan.plan()))
    ps.clear_cache()  # as in another process
    found = in_time(lambda: pa.Table.from_batches(made.execute(), made.schema))
    assert found == wanted


def test_who_stops_in_the_middle_leaves_no_thread(folder: str) -> None:
    before = threading.active_count()
    batches = ps.scan(folder, threads=4, batch_size=100).to_batches()
    assert [next(batches).num_rows for _ in range(3)] == [100] * 3
    batches.close()  # type: ignore[attr-defined]
    until = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < until:
        time.sleep(0.01)
    assert threading.active_count() <= before


def test_a_row_group_without_rows_is_none_of_a_file_that_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another row group, whose rows were read before the change, does not answer for it."""
    path = tmp_path / "changing.parquet"
    table = pa.table({"a": [1, 9, 7, 1, 9, 8]})
    pq.write_table(table, path, row_group_size=3, use_dictionary=False, compression="none")
    second = pq.read_metadata(path).row_group(1).column(0).data_page_offset
    check = LocalStore.check
    begun, checked = threading.Event(), threading.Event()
    opened: list[LocalStore] = []

    def changing(_: LocalStore, ranges: Sequence[tuple[int, int]]) -> None:
        if any(at == second for at, _ in ranges):
            begun.set()
            assert checked.wait(30)
            time.sleep(0.05)  # until that row group is done
            os.utime(path, ns=(1, 1))

    def told(self: LocalStore) -> None:
        if self not in opened:  # it is requested once with the footer
            opened.append(self)
            return
        assert begun.wait(30)
        check(self)
        checked.set()

    hook_local_reads(monkeypatch, changing)
    monkeypatch.setattr(LocalStore, "check", told)
    scan = ps.scan(str(path), filter=ps.col("a") == 7, prune=False, threads=2)
    with pytest.raises(ps.FileChangedError):
        in_time(scan.to_table)


def test_conditions_are_put_in_order_while_others_are_measured() -> None:
    learned = Learned()

    class Parts(list[Bound]):
        """Each time that somebody looks, another row group has been judged."""

        looked = 0

        def __len__(self) -> int:
            self.looked += 1
            learned.note(self.looked % 3, (ENOUGH, 1), (1, 1), 1.0)
            return super().__len__()

    parts = Parts([BoundConst(True)] * 3)
    learned.note(0, (ENOUGH, 1), (1, 1), 1.0)
    for _ in range(3):
        assert sorted(learned.order(parts, lambda _: 1.0)[0]) == [0, 1, 2]


LATE = """
import atexit, sys, threading, time
import pageseek as ps
from pageseek.scanning.one_file import lane
from pageseek.scanning.plans import tables

lane.WORTH_A_CORE = 1
tables.FEW_VALUES = tables.GROUP_VALUES = tables.WAVE_ROWS = 0

def count(**options):
    return ps.read_table(sys.argv[1], ["row", "share", "odd"], threads=2, **options).num_rows

def late():
    threading.main_thread().join()
    time.sleep(0.2)
    print("thread", count(), count(limit=5_000), flush=True)

threading.Thread(target=late).start()
atexit.register(lambda: print("exit", count(), flush=True))
"""


def test_where_no_thread_can_be_started_it_is_read_without(folder: str) -> None:
    made = subprocess.run(
        [sys.executable, "-c", LATE, folder], capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    rows = FILES * IN_FILE
    assert made.stdout.split() == ["thread", str(rows), "5000", "exit", str(rows)], made.stderr
