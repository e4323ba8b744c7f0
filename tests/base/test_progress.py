"""Progress of a scan: reported after every file and row group, and shown only if the caller asks."""

from __future__ import annotations

import builtins
import io
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.base import progress
from pageseek.scan import tables

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


@pytest.mark.parametrize("run", SCANS)
@pytest.mark.parametrize("threads", [1, 3])
def test_every_step_is_told(
    run: Callable[[ps.Scan], int], threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "FEW_VALUES", 0)
    monkeypatch.setattr(tables, "GROUP_VALUES", 0)
    told: list[ps.Progress] = []
    scan = ps.scan(SOURCES, threads=threads, filter=ps.col("id") >= ROWS, progress=told.append)
    assert run(scan) == (FILES * GROUPS - 1) * ROWS
    groups = [now for now in told if now.stage == "row groups"]
    assert [now.done for now in groups] == list(range(1, FILES * GROUPS))
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


def test_without_tqdm_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = builtins.__import__

    def missing(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("tqdm"):
            raise ImportError(name)
        return found(name, *rest, **more)

    for name in [name for name in sys.modules if name.startswith("tqdm")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", missing)
    monkeypatch.setattr(progress.importlib, "import_module", missing)
    with pytest.raises(ImportError, match=r"pip install 'pageseek\[progress\]'"):
        ps.scan(SOURCES, progress=True).to_table()


def test_a_watcher_that_fails_is_heard() -> None:
    def fail(now: ps.Progress) -> None:
        raise RuntimeError(f"at {now.stage}")

    with pytest.raises(RuntimeError, match="at files"):
        ps.scan(SOURCES, progress=fail).to_table()
