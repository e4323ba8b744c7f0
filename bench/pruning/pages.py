"""The places of the pages of a file, found by walking its page headers, with or without a page index."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pageseek.datasets.sources import open_metadata
from pageseek.format.chunks import chunk_range, page_header

__all__ = ["PageMap"]

Numbers = npt.NDArray[np.int64]

DATA, DICTIONARY, DATA_V2 = 0, 2, 3


@dataclass(frozen=True, slots=True)
class PageMap:
    """Every page of a file, in the order of the file. Arrays of shape (pages,); `first_row` is -1 for a dictionary."""

    start: Numbers
    stop: Numbers
    row_group: Numbers
    leaf: Numbers
    first_row: Numbers  # in the row group
    rows: Numbers
    group_rows: Numbers

    @classmethod
    def of(cls, path: Path) -> PageMap:
        """Walk a file."""
        data = np.memmap(path, np.uint8, "r")
        found: list[tuple[int, int, int, int, int, int]] = []
        with open_metadata(path) as file:
            for leaf in file.leaves:
                for group, chunk in enumerate(file.chunks(leaf)):
                    at, stop = chunk_range(chunk)
                    row = 0
                    while at < stop and row < file.group_rows[group]:
                        window = memoryview(bytes(data[at : min(at + (1 << 16), stop)]))
                        header = page_header(window, 0, lambda: str(path), at)
                        end = at + header.header_length + header.compressed_size
                        is_data = header.type in (DATA, DATA_V2)
                        count = header.num_values if is_data else 0
                        found.append((at, end, group, leaf.index, row if is_data else -1, count))
                        row, at = row + count, end
            groups = np.array(file.group_rows, np.int64)
        places = np.array(sorted(found), np.int64).reshape(-1, 6).T
        start, stop, row_group, number, first, count = (places[i] for i in range(6))
        return cls(start, stop, row_group, number, first, count, groups)

    def required_leaves(self, ranges: list[tuple[int, int]]) -> npt.NDArray[np.bool_]:
        """Which pages had more than half of their bytes read; `ranges` are (offset, length)."""
        spans = merged(ranges)
        covered = np.zeros(len(self.start), np.int64)
        for at, stop in spans:
            first = int(np.searchsorted(self.stop, at, "right"))
            last = int(np.searchsorted(self.start, stop, "left"))
            part = slice(first, last)
            covered[part] += np.minimum(self.stop[part], stop) - np.maximum(self.start[part], at)
        more: npt.NDArray[np.bool_] = covered * 2 > self.stop - self.start
        return more


def merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The bytes of (offset, length) ranges, each once, as ascending (start, stop)."""
    spans: list[tuple[int, int]] = []
    for at, length in sorted(ranges):
        if spans and at <= spans[-1][1]:
            spans[-1] = spans[-1][0], max(spans[-1][1], at + length)
        elif length > 0:
            spans.append((at, at + length))
    return spans
