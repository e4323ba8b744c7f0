"""How far a long scan is: a bar on the terminal or in the notebook, or a function of the caller's."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.util import find_spec
from typing import Any

from pageseek.base.errors import MissingPackageError
from pageseek.base.records import NamedTuple
from pageseek.base.report import Report, format_size

BAR_DELAY = 0.5  # seconds before a bar appears


class Progress(NamedTuple):
    """How far a scan is: `done` of a `total` of its stage, and the rows and bytes so far.

    `stage` is "files" while they are opened and pruned, or get their names; "row groups" while these are read; or "column
    chunks" while indexes are built or verified; or "rows" while a file is rewritten.
    """

    stage: str
    done: int
    total: int
    rows: int
    bytes: int


Watch = Callable[[Progress], None]


class _Bar:
    """One bar for each stage that takes long, by tqdm. Quick work does not wait for tqdm to be imported."""

    def __init__(self) -> None:
        if not _has_tqdm():
            raise MissingPackageError(
                "progress=True shows a bar by tqdm, which is not installed: pip install 'pageseek[progress]', or give "
                "a function, which gets a pageseek.Progress",
                name="tqdm",
            )
        self._bar: Any = None
        self._stage, self._begun = "", time.monotonic()

    def __call__(self, now: Progress) -> None:
        if now.stage != self._stage:
            self.close()
            self._stage, self._begun = now.stage, time.monotonic()
        if self._bar is None:
            if time.monotonic() - self._begun < BAR_DELAY:
                return
            made = importlib.import_module("tqdm.auto").tqdm
            self._bar = made(
                total=now.total, initial=now.done, desc=now.stage, unit="", leave=False
            )
        told = [f"{now.rows:,} rows"] if now.rows else []
        told += [format_size(now.bytes)] if now.bytes else []
        self._bar.set_postfix_str(", ".join(told), refresh=False)
        self._bar.update(now.done - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def _has_tqdm() -> bool:
    return find_spec("tqdm") is not None


def interactive() -> bool:
    """Whether somebody sees a bar: tqdm is installed, and standard error is a terminal or the output of a notebook."""
    notebook = "ipykernel" in sys.modules and type(sys.stderr).__module__.startswith("ipykernel")
    return (notebook or (sys.stderr is not None and sys.stderr.isatty())) and _has_tqdm()


_UNWATCHED = nullcontext()


def watched(progress: bool | Watch, report: Report) -> AbstractContextManager[None]:
    """While the block runs, show how far the work is that a report counts."""
    return _UNWATCHED if progress is False else _watched(progress, report)


@contextmanager
def _watcher(progress: bool | Watch) -> Iterator[Watch | None]:
    """What is called after each step: a function of the caller's, a bar while the block runs, or nothing."""
    if not isinstance(progress, bool):
        yield progress
    elif not progress:
        yield None
    else:
        bar = _Bar()
        try:
            yield bar
        finally:
            bar.close()


@contextmanager
def _watched(progress: bool | Watch, report: Report) -> Iterator[None]:
    stage, done = "", 0

    def tell(now: Report, n: int) -> None:
        nonlocal stage, done
        name, count = ("row groups", now.row_groups) if now.analyzed else ("files", now.files)
        if name != stage:
            stage, done = name, 0
        done += n
        total = count.total - (sum(count.pruned_by.values()) if now.analyzed else 0)
        if watch is not None:
            watch(Progress(stage, done, max(total, done), now.rows_out, sum(now.bytes.values())))

    with _watcher(progress) as watch:
        report.watch = tell
        try:
            yield
        finally:
            report.watch = None


@contextmanager
def watched_steps(
    stage: str, total: int, progress: bool | Watch, report: Report
) -> Iterator[Callable[..., None]]:
    """While the block runs, show how far work of one stage is. The block receives a function, to be called after each step, or with the
    number of steps that are done.
    """
    done = 0

    def step(n: int = 1) -> None:
        nonlocal done
        done += n
        if watch is not None:
            watch(Progress(stage, done, total, 0, sum(report.bytes.values())))

    with _watcher(progress) as watch:
        yield step
