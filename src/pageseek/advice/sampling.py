"""A sample of the columns of a filter, bounded in bytes: a few pages that lie evenly over the rows that may pass."""

from __future__ import annotations

import io
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from pageseek._core import rows
from pageseek.advice.layout import Group, Layout, find_pages
from pageseek.advice.questions import Question
from pageseek.base.report import Report
from pageseek.predicate.expression import Expression
from pageseek.scanning.plans.scan_plan import ScanPlan
from pageseek.scanning.queries.scan import Scan
from pageseek.scanning.requests.request import Request
from pageseek.storage import Sources

I64 = npt.NDArray[np.int64]
BLOCK_ROWS = 20_000  # rows of a block where pages are larger, or not known
MOST_BLOCKS = 20_000
MOST_ROWS = 1_000_000  # of a sample: more tell little more, and take memory


@dataclass(slots=True)
class Block:
    """Rows of one group that a sample takes, or leaves out, together."""

    group: int
    wanted: rows.RowRanges

    @property
    def num_rows(self) -> int:
        return int(self.wanted.num_rows)


@dataclass(slots=True)
class Sample:
    """The sampled blocks, by their numbers in ascending order, and the values of their rows.

    Attributes
    ----------
    ends : int64 array
        Of each sampled block the row of `table` after its last.
    bytes : int
        Bytes that were read for it.
    """

    blocks: list[Block]
    taken: list[int]
    table: pa.Table | None
    ends: I64
    bytes: int = 0

    @property
    def num_rows(self) -> int:
        return 0 if self.table is None else self.table.num_rows

    @property
    def complete(self) -> bool:
        """Whether it has all rows that may pass."""
        return len(self.taken) == len(self.blocks)


def blocks_of(layout: Layout) -> list[Block]:
    """The rows that may pass, in blocks along the pages of a tested column."""
    most = max(layout.num_rows // MOST_BLOCKS, BLOCK_ROWS)
    made = []
    for number, group in enumerate(layout.groups):
        starts = _starts(group, most)
        for start, stop in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            wanted = group.ranges.slice(start, stop)
            if wanted:
                made.append(Block(number, wanted))
    return made


def _starts(group: Group, most: int) -> I64:
    """Where blocks begin: with pages of the tested leaf that has the most, several of which make a block, or a part of one."""
    tested = [leaf for some in group.conditions for leaf in some]
    chunks = [group.leaves[leaf] for leaf in tested]
    finest = max(chunks, key=lambda one: one.num_pages, default=None)
    if finest is None:
        return np.array([0, group.num_rows], np.int64)
    starts = [0]
    for at in finest.starts[1:].tolist():
        if at - starts[-1] >= most or at == group.num_rows or at - starts[-1] >= BLOCK_ROWS // 2:
            starts.append(at)
    made: list[int] = []
    for low, high in itertools.pairwise(starts):
        n = max(-(-(high - low) // most), 1)
        made += np.linspace(low, high, n + 1).astype(np.int64)[:-1].tolist()
    return np.array([*made, group.num_rows], np.int64)


def sample_of(
    sources: Sources, plan: ScanPlan, layout: Layout, question: Question, most: int
) -> Sample:
    """Values of the tested columns in some blocks, for which at most so many bytes are read."""
    report = Report(analyzed=True, chunks=None)
    blocks = blocks_of(layout)
    left = _Budget(most, layout, report)
    taken = sorted(i for i in _evenly(len(blocks)) if left.takes(blocks[i]))
    if not taken or not question.needed:
        return Sample(blocks, [], None, np.zeros(0, np.int64), _total(report))
    chosen: dict[str, rows.RowRanges] = {}
    for i in taken:
        group = layout.groups[blocks[i].group]
        file = layout.files[group.file]
        name, first = file.source.name, _first_row(layout, group)
        part = blocks[i].wanted.shift(first)
        chosen[name] = chosen[name] | part if name in chosen else part
    request = _plain(plan.request, question.needed)
    reading = Scan(sources, replace(request, selected=chosen)).plan()
    executed = Report(analyzed=True, chunks=None)
    table = pa.Table.from_batches(reading.execute(executed), reading.schema)
    lengths = np.array([blocks[i].num_rows for i in taken], np.int64)
    ends = np.cumsum(lengths)
    if ends[-1] != table.num_rows:  # rows are deleted in the table, and are missing
        ends = (ends * (table.num_rows / ends[-1])).astype(np.int64)
    planned = reading.report.bytes
    read = _total(report) + _total(executed) + planned["metadata"] + planned["index"]
    return Sample(blocks, taken, table, ends, read)


def _plain(request: Request, columns: Sequence[str]) -> Request:
    return replace(
        request, columns=tuple(columns), filter=None, limit=None, take=None, row_number=None
    )


def _first_row(layout: Layout, group: Group) -> int:
    from pageseek.datasets.file_cache import cache

    source = layout.files[group.file].source
    return cache.open(source, Report()).first_row(group.row_group)


def _total(report: Report) -> int:
    return sum(report.bytes.values())


def _evenly(n: int) -> list[int]:
    """All numbers below `n` in an order of which every beginning lies evenly."""
    if n < 2:
        return list(range(n))
    bits = (n - 1).bit_length()
    numbers = np.arange(1 << bits)
    turned = np.zeros_like(numbers)
    for bit in range(bits):
        turned |= (numbers >> bit & 1) << (bits - 1 - bit)
    # an odd step keeps the first from being the first block each time: files often begin with what is not usual
    return [int(i) for i in (turned + (n // 3)) % (1 << bits) if i < n]


class _Budget:
    """Bytes that a sample may read, counted page by page."""

    def __init__(self, most: int, layout: Layout, report: Report) -> None:
        self._left, self._layout, self._report = most, layout, report
        self._seen: set[tuple[int, int, int]] = set()
        self._failed, self._rows = 0, MOST_ROWS

    def takes(self, block: Block) -> bool:
        """Whether there is room for a block, which is then counted."""
        if (
            self._failed > 64 or block.num_rows > self._rows
        ):  # what is left is too small for any block
            return False
        group = self._layout.groups[block.group]
        tested = dict.fromkeys(leaf for some in group.conditions for leaf in some)
        size, new = 0, []
        for leaf in tested:
            chunk = group.leaves[leaf]
            before = sum(self._report.bytes.values())
            if not chunk.placed and (block.group, leaf, -2) not in self._seen:
                self._seen.add((block.group, leaf, -2))
                # headers tell where the pages are, if the chunk is too large to be read whole
                if chunk.stop - chunk.start > self._left // 4:
                    find_pages(self._layout, group, leaf, self._report)
                    self._left -= sum(self._report.bytes.values()) - before
                    chunk = group.leaves[leaf]
            for page in chunk.touched(block.wanted).tolist() if chunk.placed else [-1]:
                if (block.group, leaf, page) not in self._seen:
                    new.append((block.group, leaf, page))
                    size += int(chunk.sizes[page]) if page >= 0 else chunk.stop - chunk.start
                    if self._layout.far:
                        size += self._layout.gap // 8
            if chunk.placed and chunk.dictionary and (block.group, leaf, -1) not in self._seen:
                new.append((block.group, leaf, -1))
                size += chunk.dictionary
        if size > self._left:
            self._failed += 1
            return False
        self._left -= size
        self._rows -= block.num_rows
        self._seen.update(new)
        return True


def masks_of(
    sample: Sample, conditions: Sequence[Expression], nan: str
) -> list[npt.NDArray[np.bool_]]:
    """For each condition the rows of a sample for which it is TRUE: a scan of the sample tells."""
    if sample.table is None:
        return [np.zeros(0, np.bool_) for _ in conditions]
    from pageseek.api import scan

    file = io.BytesIO()
    table = sample.table.replace_schema_metadata(None)  # it tells of the indexes of another file
    pq.write_table(
        table, file, compression="none", use_dictionary=False, write_statistics=False, row_group_size=1 << 20,
    )  # fmt: skip
    data = file.getbuffer().tobytes()
    del file
    made = []
    options: dict[str, Any] = {"nan": nan}
    for one in conditions:
        found = scan(data, columns=[], filter=one, **options).with_row_number("row").to_table()
        mask = np.zeros(sample.table.num_rows, np.bool_)
        mask[found["row"].to_numpy()] = True
        made.append(mask)
    return made
