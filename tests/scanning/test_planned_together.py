"""Files that their footers plan together: plans and reports are those of the same footers one after the other."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.base.report import Report
from pageseek.datasets.deletes import PositionDeletes
from pageseek.scanning.many_files.batched_file import DecidedFiles
from pageseek.scanning.many_files.footer_batches import FooterBatches
from pageseek.scanning.one_file import group_joints
from pageseek.scanning.plans import planner as planning
from pageseek.scanning.plans.scheduler import Scheduler
from pageseek.storage import Source
from support.batch_comparison import outcome, same_rows
from support.tiers import rounds
from support.writer import I64, INT64, Column, Struct, write

ROWS = 50
CONDITIONS = [
    None,
    "k < 20",
    "k = 33",
    "k > 40 and k < 60 and s = 'c3'",
    "id between 120 and 900",
    "s = 'c1' or k is null",
    "k is not null",
    "f > 0.5",
    "not (k < 50)",
    "id in (3, 70, 300, 1500)",
    "1 = 0",
    "1 = 1",
    "s >= 'c0'",
]


class Together:
    """Counts the files that are planned together, and the runs that they came in."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.files = self.runs = 0
        plain = planning.Planner._plan_decided

        def counted(planner: Any, at: int, files: DecidedFiles) -> Any:
            self.files += len(files.numbers)
            self.runs += 1
            return plain(planner, at, files)

        monkeypatch.setattr(planning.Planner, "_plan_decided", counted)


@pytest.fixture
def together(monkeypatch: pytest.MonkeyPatch) -> Together:
    return Together(monkeypatch)


@contextmanager
def one_after_the_other() -> Iterator[None]:
    """Footers are read together, and then plan one file each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning.Planner, "_decided", lambda self, at: None)
        yield


def told(report: Any) -> dict[str, Any]:
    """All that a report says but how long it took."""
    found: dict[str, Any] = report.to_dict()
    del found["seconds"]
    return found


def plan(scan: ps.Scan) -> Any:
    found = scan.plan()
    report = found.report
    footers = [file.footer for file in found.files]
    return found.files, footers, found.schema, told(report), found.num_rows, found.cost


def check(scan: ps.Scan) -> None:
    """Hold plans and reports made together against those made one after the other."""
    for way in (
        plan,
        lambda scan: told(scan.explain()),
        lambda scan: told(scan.explain(analyze=True)),
    ):
        ps.clear_cache()
        found = outcome(lambda way=way: way(scan))
        ps.clear_cache()
        with one_after_the_other():
            wanted = outcome(lambda way=way: way(scan))
        assert found == wanted


def write_random(folder: Path, rng: random.Random) -> None:
    """Files of two schemas, some without rows, nulls or statistics, of one row group or several, of one page or several."""
    first = 0
    mixed, two = rng.random() < 0.5, rng.random() < 0.4
    for i in range(rng.choice([9, 20, 40])):
        rows = rng.choice([0, 1, 5, ROWS, 300]) if mixed and rng.random() < 0.4 else ROWS
        values = np.random.default_rng(rng.randrange(1 << 30))
        table = pa.table(
            {
                "id": np.arange(first, first + rows),
                "k": pa.array(
                    values.integers(0, 30, rows) + i % 10 * 10,
                    pa.int32(),
                    mask=values.random(rows) < rng.choice([0, 0.2, 1]),
                ),
                "s": [f"c{k}" for k in values.integers(0, 9, rows)],
                "f": values.random(rows),
            }
        )
        first += rows
        if two and i % 7 > 4:
            table = table.append_column("x", pa.array(range(rows), pa.int64()))
        options: dict[str, Any] = {}
        if rng.random() < 0.2:
            options = {"data_page_size": 64, "write_batch_size": 8}
        if rng.random() < 0.1:
            options["write_statistics"] = False
        if rng.random() < 0.05:  # row groups of no rows
            with pq.ParquetWriter(folder / f"{i:03}.parquet", table.schema) as writer:
                writer.write_table(table)
                writer.write_table(table.slice(0, 0), row_group_size=5)
            continue
        pq.write_table(
            table, folder / f"{i:03}.parquet", row_group_size=rng.choice([7, 50, 1000]),
            use_dictionary=rng.random() < 0.6, write_page_index=rng.random() < 0.4, **options,
        )  # fmt: skip


def test_random_files(tmp_path: Path, together: Together, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(rounds(160, 12)):
        rng = random.Random(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        write_random(folder, rng)
        for condition in rng.sample(CONDITIONS, 3):
            options: dict[str, Any] = {}
            if rng.random() < 0.3:
                options["prune"] = rng.choice([[], ["statistics"], ["statistics", "dictionary"]])
            scan = ps.scan(str(folder), **options)
            scan = scan if condition is None else scan.filter(condition)
            others = [scan.select("id"), scan.limit(30), scan.with_row_number(), scan.take([3, 99])]
            scan = rng.choice([scan, scan, *others])
            # of a plan the first few of such files are opened, so that what is left to open changes among these files
            monkeypatch.setattr(planning, "MOST_ASKED", rng.choice([64, 0, 1, 5]))
            monkeypatch.setattr(planning, "MOST_EXAMINED", rng.choice([4096, 4096, 0, 3]))
            check(scan)
    assert together.files > 2 * together.runs > 0


def test_indexes_that_name_rows(tmp_path: Path, together: Together) -> None:
    for i in range(20):
        path = tmp_path / f"{i:03}.parquet"
        pq.write_table(pa.table({"id": range(i, 2000 + i), "k": [i] * 2000}), path)
        ps.index.attach(path, page_index=False, lookup=["id"], in_place=True)
    scan = ps.scan(str(tmp_path))
    check(scan.filter("id = 7"))
    check(scan.filter("id = 7 and k > 3"))
    check(scan.filter("id in (3, 2010)"))
    check(scan.filter("k = 7"))
    assert together.files


def test_files_with_deletes_among_others(tmp_path: Path, together: Together) -> None:
    places: tuple[list[str], list[int]] = [], []
    data, deletes = [], tmp_path / "_deletes"
    for i in range(40):
        path = str(tmp_path / f"{i:03}.parquet")
        pq.write_table(pa.table({"id": range(i * ROWS, (i + 1) * ROWS), "k": [i % 5] * ROWS}), path)
        data.append(path)
    with_deletes = {0, 7, 8, 21, 39}
    for i in with_deletes:
        gone = range(ROWS) if i == 21 else range(3, 9)
        places[0].extend([data[i]] * len(gone))
        places[1].extend(gone)
    pq.write_table(
        pa.table({"file_path": places[0], "pos": pa.array(places[1], pa.int64())}), deletes
    )
    sources = [
        Source(path, deletes=(PositionDeletes(Source(str(deletes)), path),))
        if i in with_deletes
        else Source(path)
        for i, path in enumerate(data)
    ]
    kept = [i * ROWS + k for i in range(40) for k in range(ROWS)]
    removed = {int(path[-11:-8]) * ROWS + k for path, k in zip(*places, strict=True)}
    kept = [row for row in kept if row not in removed]
    scan = ps.scan(sources)
    scan.plan()  # the deletes are kept from here on
    for condition, rows in (
        (None, kept),
        ("id between 333 and 1501", [row for row in kept if 333 <= row <= 1501]),
        ("k = 1", [row for row in kept if row // ROWS % 5 == 1]),
    ):
        one = scan if condition is None else scan.filter(condition)
        check(one)
        ps.clear_cache()
        assert one.to_table()["id"].to_pylist() == rows
    assert together.runs > 3


def test_a_chunk_that_cannot_be_read_is_named(tmp_path: Path, together: Together) -> None:
    """Its file has to be opened where the report tells of each chunk."""

    def outside(chunk: Struct) -> None:
        chunk[7] = I64(1 << 40)  # ColumnMetaData.total_compressed_size

    for i in range(20):
        edit = outside if i == 13 else None
        column = Column("a", INT64, [i, i + 1], edit_chunk=edit)
        (tmp_path / f"{i:03}.parquet").write_bytes(write([column]))
    scan = ps.scan(str(tmp_path))
    check(scan)
    with pytest.raises(ps.CorruptFileError, match=r"013.parquet: column 'a'"):
        scan.explain()
    assert together.files


def test_a_watcher_sees_each_file(tmp_path: Path, together: Together) -> None:
    """Plans are counted as they are handed out, not by the batch."""
    for i in range(30):
        pq.write_table(pa.table({"id": [i]}), tmp_path / f"{i:03}.parquet")
    steps: list[int] = []
    scan = ps.scan(str(tmp_path))
    request, report = scan._request, Report(chunks=None)
    report.watch = lambda _, n: steps.append(n)
    scheduler = Scheduler(request, report)
    planner = planning.Planner(scan._sources, request, scheduler, lazy=True)
    for i, _ in enumerate(planner.files(), start=1):
        assert sum(steps) >= i - 1
        assert sum(steps) <= i
    assert sum(steps) == 30
    assert together.files == 29


@pytest.mark.parametrize("threads", [1, 2])
def test_little_ahead_is_little_together(
    tmp_path: Path, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    for i in range(60):
        made = {f"c{k}": rng.integers(0, 1 << 60, 3000) for k in range(8)}
        pq.write_table(pa.table(made), tmp_path / f"{i:03}.parquet")
    sizes = {}
    for ahead in (0, 1 << 20, 256 << 20):
        ps.clear_cache()
        scan = ps.scan(str(tmp_path), threads=threads, max_ahead_bytes=ahead)
        tables = [batch.nbytes for batch in scan.to_batches()]
        sizes[ahead] = max(tables)
        assert sum(tables) == 60 * 3000 * 8 * 8
    assert sizes[0] == sizes[1 << 20] <= group_joints.LEAST_BYTES
    monkeypatch.setattr(group_joints, "MOST_BYTES", group_joints.LEAST_BYTES)
    ps.clear_cache()
    scan = ps.scan(str(tmp_path), threads=threads)
    assert max(batch.nbytes for batch in scan.to_batches()) == sizes[0]
    assert sizes[256 << 20] > sizes[0]
    assert same_rows(scan.to_table(), pq.read_table(tmp_path))


def test_tails_are_let_go_without_the_collector_of_garbage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i in range(40):
        pq.write_table(pa.table({"k": [i]}), tmp_path / f"{i:02}.parquet")
    made: list[weakref.ref[FooterBatches]] = []
    begin = FooterBatches.__init__

    def kept(self: FooterBatches, *args: Any, **options: Any) -> None:
        begin(self, *args, **options)
        made.append(weakref.ref(self))

    monkeypatch.setattr(FooterBatches, "__init__", kept)
    gc.collect()
    gc.disable()
    try:
        assert ps.read_table(tmp_path, filter="k = 7").num_rows == 1
        assert made
        assert all(one() is None for one in made)
    finally:
        gc.enable()
