"""Rows in an order, in bounded memory.

What fits is sorted in memory. Else bounds cut the rows into parts that fit: rows go to a temporary file, part by part, and the parts
are sorted one after the other. A part that is still too large is cut again, until it fits or all of its rows tie.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from pageseek.rewriting.orders import Order
from pageseek.rewriting.spill import Spill

MOST_TOGETHER = (1 << 31) - (1 << 20)  # bytes that columns with offsets of 32 bits hold together
CUT_SAMPLE = 1 << 14  # rows of a part by which it is cut again
SLACK = 1.5  # times the size aimed at, from which a part is cut again
PART, HELD = 6, 8  # a part is one of so many of the memory, rows that wait to be written


@dataclass
class Sorter:
    """Sorts rows.

    Parameters
    ----------
    order : Order
    schema : pyarrow.Schema
        Of the rows.
    memory : int
        Bytes that it may take, about.
    step : int
        Rows of the tables that come out.
    sample : function
        Gives keys of a sample of all rows, of which it is told that they do not fit.
    threads : int
        Columns that are worked on at a time.
    folder : str or None
        Where rows wait.
    spilled : int
        Bytes that have waited on disk.
    """

    order: Order
    schema: pa.Schema
    memory: int
    step: int
    sample: Callable[[], pa.RecordBatch]
    total_rows: int
    threads: int
    folder: str | None = None
    spilled: int = 0

    def sorted(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """All rows in order."""
        with ThreadPoolExecutor(self.threads, "pageseek-sort") as self._pool:
            yield from self._sorted(batches)

    def _sorted(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        most = min(self.memory // 2, MOST_TOGETHER)
        held: list[pa.RecordBatch] = []
        size = rows = 0
        rest = iter(batches)
        for batch in rest:
            held.append(batch)
            size += batch.nbytes
            rows += batch.num_rows
            if size > most:
                break
        else:
            yield from self._in_memory(held)
            return
        whole = size * max(self.total_rows, rows) // rows
        bounds, heavy = self._bounds(self.sample(), -(-whole // self._part_bytes))
        yield from self._in_parts(_chained(held, rest), bounds, heavy)

    @property
    def _part_bytes(self) -> int:
        return min(self.memory // PART, MOST_TOGETHER // 2)

    def _in_memory(self, batches: list[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Sort rows. The list is emptied, so that nothing is held twice for long."""
        if not batches:
            return
        chunks = [[batch.column(i) for batch in batches] for i in range(len(self.schema))]
        batches.clear()
        columns = list(self._pool.map(_joined, chunks))
        rows = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        indices = self.order.sort_keys.sorted(self.order.keys(rows))
        for start in range(0, rows.num_rows, self.step):
            chosen = indices[start : start + self.step]
            taken = list(self._pool.map(partial(_taken, chosen), columns))
            yield pa.Table.from_arrays(taken, schema=self.schema)

    def _bounds(
        self, keys: pa.RecordBatch, parts: int, all_heavy: bool = False
    ) -> tuple[pa.RecordBatch, list[bool]]:
        """Bounds of about so many parts of equal size, and for each whether the rows that tie with it are a part of their own."""
        compare = self.order.sort_keys
        ordered = keys.take(compare.sorted(keys))
        n = ordered.num_rows
        picks = np.unique(np.arange(1, parts) * n // max(parts, 1)) if n else np.zeros(0, int)
        found, counts = compare.distinct(ordered.take(pa.array(picks)))
        return found, [all_heavy or count > 1 for count in counts.tolist()]

    def _in_parts(
        self, batches: Iterable[pa.RecordBatch], bounds: pa.RecordBatch, heavy: list[bool]
    ) -> Iterator[pa.Table]:
        """Cut rows by bounds, and sort part after part."""
        number, ties = [0], []  # of each part that `cut` gives, the number here; which have one key
        for one in heavy:
            number += [number[-1] + one, number[-1] + 2 * one + (not one)]
            ties += [number[-2]] * one
        number_of = np.array(number)
        with closing(Spill(self.schema, number[-1] + 1, self.folder, self.memory // HELD)) as spill:
            for batch in batches:
                indices, ends = self.order.sort_keys.cut(self.order.keys(batch), bounds)
                last = np.append(np.flatnonzero(np.diff(number_of)), number_of.size - 1)
                starts = np.append(0, ends[last][:-1])
                rows = batch.take(indices)
                spill.add(
                    {
                        part: rows[int(start) : int(stop)]
                        for part, (start, stop) in enumerate(zip(starts, ends[last], strict=True))
                        if stop > start
                    }
                )
            spill.flush()
            self.spilled += spill.size
            pa.default_memory_pool().release_unused()  # what the reader has freed
            for part, size in enumerate(spill.bytes):
                if part in ties and size > self._part_bytes:
                    yield from spill.pieces(part)  # all rows tie
                elif size <= SLACK * self._part_bytes:
                    together = [b for table in spill.pieces(part) for b in table.to_batches()]
                    yield from self._in_memory(together)
                else:
                    yield from self._cut_again(spill, part)

    def _cut_again(self, spill: Spill, part: int) -> Iterator[pa.Table]:
        """Sort a part that does not fit."""
        rows = (b for table in spill.pieces(part) for b in table.to_batches())
        rng = np.random.default_rng(part)
        share = CUT_SAMPLE / max(spill.rows[part], 1)
        found: list[pa.RecordBatch] = []
        for batch in rows:
            chosen = np.flatnonzero(rng.random(batch.num_rows) < share)
            if not found and not chosen.size:
                chosen = np.zeros(1, np.int64)
            found.append(self.order.keys(batch.take(pa.array(chosen))))
        parts = -(-spill.bytes[part] // self._part_bytes)
        bounds, heavy = self._bounds(pa.concat_batches(found), parts, all_heavy=True)
        again = (b for table in spill.pieces(part) for b in table.to_batches())
        yield from self._in_parts(again, bounds, heavy)


def _joined(chunks: list[pa.Array]) -> pa.Array:
    """One array of several, which are let go."""
    made = chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)
    chunks.clear()
    return made


def _taken(chosen: pa.Array, values: pa.Array) -> pa.Array:
    return values.take(chosen)


def _chained(
    held: list[pa.RecordBatch], rest: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """What is held, which is let go, then the rest."""
    held.reverse()
    while held:
        yield held.pop()
    yield from rest
