"""Progress of a scan: reported after every file and row group, and shown only if the caller asks."""

from __future__ import annotations

import io
import subprocess
import sys
import types
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.base import progress
from pageseek.scanning.one_file import group_joints
from pageseek.scanning.plans import tables

FILES, GROUPS, ROWS = 3, 4, 500


def data(first: int) -> bytes:
    sink = io.BytesIO()
    table = pa.table({"id": np.arange(first, first + GROUPS * ROWS)})
    pq.write_table(table, sink, row_group_size=ROWS)
    return sink.getvalue()


SOURCES = [data(i * GROUPS * ROWS) for i in range(FILES)]
SCANS: list[Callable[[ps.Scan], int]] = [
    lambda scan: int(scan.to_table().num_rows),
    lambda scan: sum(batch.num_rows for batch in scan.to_batches()),
    lambda scan: int(scan.to_reader().read_all().num_rows),
    lambda scan: scan.explain(analyze=True).rows_out,
]


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("run", SCANS)
@pytest.mark.parametrize("threads", [1, 3])
def test_every_step_is_told(
    run: Callable[[ps.Scan], int], threads: int, joined: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not joined:
        monkeypatch.setattr(group_joints, "SMALL_ROWS", -1)
    monkeypatch.setattr(tables, "FEW_VALUES", 0)
    monkeypatch.setattr(tables, "GROUP_VALUES", 0)
    told: list[ps.Progress] = []
    scan = ps.scan(SOURCES, threads=threads, filter=ps.col("id") >= ROWS, progress=told.append)
    assert run(scan) == (FILES * GROUPS - 1) * ROWS
    groups = [now for now in told if now.stage == "row groups"]
    done = [now.done for now in groups]
    if joined:  # row groups that are read as one end together
        assert done == sorted(set(done))
        assert done[-1] == FILES * GROUPS - 1
        assert len(done) < FILES * GROUPS - 1
    else:
        assert done == list(range(1, FILES * GROUPS))
    assert {now.total for now in groups} == {FILES * GROUPS - 1}
    assert groups[-1].rows == (FILES * GROUPS - 1) * ROWS
    assert groups[-1].bytes > 0
    files = [now for now in told if now.stage == "files"]
    if files:  # explain plans before anyone watches
        assert [(now.done, now.total) for now in files] == [(i + 1, FILES) for i in range(FILES)]


def test_rows_are_counted_under_watch() -> None:
    told: list[ps.Progress] = []
    scan = ps.scan(SOURCES, filter=ps.col("id") != 7, progress=told.append)
    assert scan.count_rows() == FILES * GROUPS * ROWS - 1
    assert told


def test_a_bar_is_drawn_and_removed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "BAR_DELAY", 0)
    assert ps.scan(SOURCES, progress=True).to_table().num_rows == FILES * GROUPS * ROWS
    shown = capsys.readouterr()
    assert "files" in shown.err
    assert "row groups" in shown.err
    assert not shown.out


def test_quick_work_does_not_import_tqdm() -> None:
    code = (
        "import io, sys, pyarrow as pa, pyarrow.parquet as pq, pageseek as ps\n"
        "sink = io.BytesIO()\n"
        "pq.write_table(pa.table({'a': [1]}), sink)\n"
        "assert ps.scan([sink.getvalue()], progress=True).to_table().num_rows == 1\n"
        "sys.exit('tqdm' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_plan_is_told_file_by_file() -> None:
    told: list[ps.Progress] = []
    scan = ps.scan(SOURCES, filter=ps.col("id") >= ROWS, progress=told.append)
    for plan in (scan.plan, scan.explain, lambda: scan.schema):
        told.clear()
        plan()
        assert [(now.stage, now.done, now.total) for now in told] == [
            ("files", i + 1, FILES) for i in range(FILES)
        ]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_is_seen_on_a_terminal_and_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    class OutStream(io.StringIO):
        pass

    OutStream.__module__ = "ipykernel.iostream"
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    for stream, seen in ((Terminal(), True), (io.StringIO(), False), (OutStream(), True)):
        monkeypatch.setattr(sys, "stderr", stream)
        assert progress.interactive() is seen
        with monkeypatch.context() as patch:
            patch.setattr(progress, "find_spec", lambda name: None)
            assert not progress.interactive()


def test_without_tqdm_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install 'pageseek\[progress\]'"):
        ps.scan(SOURCES, progress=True).to_table()


def test_a_watcher_that_fails_is_heard() -> None:
    def fail(now: ps.Progress) -> None:
        raise RuntimeError(f"at {now.stage}")

    with pytest.raises(RuntimeError, match="at files"):
        ps.scan(SOURCES, progress=fail).to_table()
