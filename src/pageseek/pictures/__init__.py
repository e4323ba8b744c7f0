"""Pictures of files and scans, by matplotlib. Everything here is imported when a picture is wanted.

| file | job |
|---|---|
| `figures` | figures without a window, colours that all readers tell apart |
| `bounds` | the bounds of the pages of columns, over the numbers of their rows |
| `scale` | values of any type as places of an axis |
| `exact` | values as numbers whose differences are exact |
| `tick_labels` | where the labels of an axis stand, and what they say |
| `reading` | what a scan read of each column chunk, and what ruled out the rest |
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pageseek.base.report import Report
    from pageseek.format.parquet_file import LeafColumn, ParquetFile

Path = str | os.PathLike[str]


def of_file(
    file: ParquetFile, columns: Sequence[str | LeafColumn] | None = None, path: Path | None = None
) -> Any:
    """The figure of the bounds of pages; written to a file if there is a path."""
    from pageseek.pictures.bounds import draw_bounds

    return _saved(draw_bounds(file, columns), path)


def of_report(report: Report, path: Path | None = None) -> Any:
    """The figure of what was read; written to a file if there is a path."""
    from pageseek.pictures.reading import draw_report

    return _saved(draw_report(report), path)


def _saved(figure: Any, path: Path | None) -> Any:
    if path is not None:
        from pageseek.pictures.figures import save

        save(figure, path)
    return figure
