"""Row selections of callers: row numbers in the whole source, or in each file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pageseek._core import rows
from pageseek.base.arrays import distinct_numbers
from pageseek.base.suggest import offered
from pageseek.storage import Sources

MOST_ROWS = (1 << 63) - 1  # the largest number of rows that the core counts


def row_ranges(given: Any) -> rows.RowRanges:
    """Row numbers as ranges. TypeError, IndexError: they are no row numbers."""
    if isinstance(given, rows.RowRanges):
        return given
    numbers = np.asarray(given)
    if not numbers.size:
        return rows.RowRanges.empty()
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise TypeError(
            "take: row numbers are a list of integers, RowRanges, or either by the path of each file"
        )
    if numbers.min() < 0:
        raise IndexError(f"take: row {numbers.min()}: rows are counted from 0")
    if numbers.max() > MOST_ROWS:
        raise IndexError(f"take: row {numbers.max()}: no source has so many rows")
    return rows.RowRanges.from_rows(distinct_numbers(numbers).astype(np.int64))


def selected_rows(given: Mapping[Any, Any], sources: Sources) -> dict[str, rows.RowRanges]:
    """Row numbers by the names of files. ValueError: a file is not one of the scan, or two have its name."""
    names = {source.name: source.name for source in sources}
    names |= {source.path: source.name for source in sources if source.path not in names}
    found: dict[str, rows.RowRanges] = {}
    for key, numbers in given.items():
        name = names.get(str(key))
        if name is None:
            there = offered(str(key), list(dict.fromkeys(names.values())))
            raise ValueError(f"take: {str(key)!r} is no file of this scan: {there}")
        if name in sources.shared_names:
            raise ValueError(
                f"take: several files of this scan are called {name!r}, since the queries of URLs are not shown: scan each alone"
            )
        found[name] = row_ranges(numbers)
    return {name: ranges for name, ranges in found.items() if ranges}
