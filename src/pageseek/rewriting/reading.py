"""Rows read in little memory: row groups come in pieces where their pages are known."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from pageseek.base.progress import Watch, watched
from pageseek.base.report import Report
from pageseek.scanning.queries.scan import Scan


def batches_of(scan: Scan, progress: bool | Watch = False) -> Iterator[pa.RecordBatch]:
    """All rows of a scan, in file order, of the versions of files that are there now."""
    plan = scan.plan()
    report = Report(chunks=None)  # `execute` begins it
    with watched(progress, report):
        yield from plan.execute(report)
