"""The driver's long work shows how far it is: to a function, or by a bar where somebody sees it."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pageseek as ps
from pageseek.base import progress
from pageseek.spark import attach_index, load, lookup, optimize, read, write
from pageseek.spark.session.progress import progress_of
from pageseek.spark.session.settings import ToldSession

pytestmark = pytest.mark.spark
FILES = 5


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "files"
    made.mkdir()
    for i in range(FILES):
        pq.write_table(pa.table({"id": range(100 * i, 100 * i + 100)}), made / f"{i}.parquet")
    return made


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


ALL: list[Callable[..., Any]] = [
    lambda spark, folder, **how: load(spark, folder, **how).where("id = 207").collect(),
    lambda spark, folder, **how: read(spark, folder, filter="id = 207", **how).collect(),
    lambda spark, folder, **how: lookup(spark, folder, [207], "id", **how).collect(),
    lambda spark, folder, **how: write(
        spark.range(0, 50, 1, FILES), folder.parent / "made", mode="append", **how
    ),
    lambda spark, folder, **how: attach_index(spark, folder, **how),
    lambda spark, folder, **how: optimize(spark, folder, **how),
]


@pytest.mark.parametrize("work", ALL)
def test_each_file_is_told(spark: Any, folder: Path, work: Callable[..., Any]) -> None:
    told: list[ps.Progress] = []
    work(spark, folder, progress=told.append)
    assert [(now.stage, now.done, now.total) for now in told[:FILES]] == [
        ("files", i + 1, FILES) for i in range(FILES)
    ]


@pytest.mark.parametrize("work", ALL)
def test_a_bar_is_drawn_unless_the_session_shows_none(
    spark: Any, folder: Path, work: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "BAR_DELAY", 0)
    assert spark.conf.get("spark.ui.showConsoleProgress") == "false"
    for how, seen in (({"progress": True}, True), ({}, False)):
        monkeypatch.setattr(sys, "stderr", Terminal())
        work(spark, folder, **how)
        assert ("files: " in sys.stderr.getvalue()) is seen


def test_by_default_there_is_a_bar_where_somebody_sees_it(monkeypatch: pytest.MonkeyPatch) -> None:
    key = "spark.ui.showConsoleProgress"
    for stream, settings, shown in (
        (Terminal(), {}, True), (Terminal(), {key: "true"}, True), (Terminal(), {key: "false"}, False), (io.StringIO(), {}, False),
    ):  # fmt: skip
        monkeypatch.setattr(sys, "stderr", stream)
        spark: Any = ToldSession("4.3.0", settings)
        assert progress_of(spark, None) is shown
        assert progress_of(spark, not shown) is not shown
