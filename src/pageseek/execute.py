"""A row group, from selection to Arrow: filter columns first, each on the survivors of the one before, then
the payload for the rows that passed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pageseek._core import rows
from pageseek._core.gather import gather
from pageseek.decode import LeafReader
from pageseek.errors import placed
from pageseek.fetch import Fetcher
from pageseek.metadata import Column, ParquetFile
from pageseek.predicate.bind import Bound, BoundAnd, BoundConst, BoundLeaf, conjuncts, leaves_of
from pageseek.report import Report
from pageseek.schema import Form, Leaf, to_arrow

Bitmap = npt.NDArray[np.uint8]  # least significant bit first, tail bits zero


class GroupScan:
    """Reads one row group of one file for one scan."""

    def __init__(
        self, file: ParquetFile, row_group: int, columns: Sequence[Column], fetcher: Fetcher
    ) -> None:
        self._file = file
        self._row_group = row_group
        self._columns = columns
        self._fetcher = fetcher
        self._report: Report = fetcher.report
        self._held: dict[int, list[pa.Array]] = {}  # leaf -> its rows at the current selection
        self._forms: dict[int, Form] = {}

    def run(
        self, ranges: rows.RowRanges, bound: Bound | None, limit: int | None
    ) -> tuple[int, list[list[pa.Array]]]:
        """(rows, for each column its arrays) of the selected rows that pass."""
        if bound is not None:
            where = f"{self._file.name}: row group {self._row_group}"
            with self._report.timed("filter"), placed(where):
                ranges = self._filter(ranges, bound)
        if limit is not None and ranges.num_rows > limit:
            self._count_limited(ranges, limit)
            ranges = ranges.head(limit)
            for leaf, arrays in self._held.items():
                self._held[leaf] = _head(self._forms[leaf], arrays, limit)
        n = ranges.num_rows
        if n == 0:
            return 0, [[] for _ in self._columns]
        with self._report.timed("payload"):
            payload = {column.leaf.index: column for column in self._columns}
            self._read(
                [(c.leaf, c.form) for i, c in payload.items() if i not in self._held], ranges
            )
            return n, [
                [column.form.finish(a) for a in self._held[column.leaf.index]]
                for column in self._columns
            ]

    def _count_limited(self, ranges: rows.RowRanges, limit: int) -> None:
        """Count the pages of the payload that the rows beyond the limit would need."""
        if self._report.chunks is None:
            return
        for leaf in {c.leaf.index: c.leaf for c in self._columns}.values():
            offsets = self._file.cached_offset_index(self._row_group, leaf)[1]
            chunk = self._report.chunks.get((self._file.name, self._row_group, leaf.name))
            if offsets is not None and chunk is not None and leaf.index not in self._held:
                all_pages, wanted = offsets.pages_of(ranges), offsets.pages_of(ranges.head(limit))
                chunk.limited = len(all_pages) - len(wanted)

    def _read(self, leaves: Sequence[tuple[Leaf, Form]], ranges: rows.RowRanges) -> None:
        """Fetch the pages of several leaves in one wave, then decode leaf by leaf."""
        readers = [self._reader(leaf, form) for leaf, form in leaves]
        wanted = [reader.want(ranges) for reader in readers]
        buffers = iter(self._fetcher.read([at for part in wanted for at in part], "data"))
        for reader, part in zip(readers, wanted, strict=True):
            reader.give([next(buffers) for _ in part])
        for reader in readers:
            self._forms[reader.leaf.index] = reader.form
            self._held[reader.leaf.index] = reader.read()

    def _reader(self, leaf: Leaf, form: Form) -> LeafReader:
        offsets = self._file.cached_offset_index(self._row_group, leaf)[1]
        return LeafReader(self._file, self._row_group, leaf, form, self._fetcher, offsets)

    # -- filter -------------------------------------------------------------------------------

    def _cost(self, bound: Bound) -> float:
        chunks = {t.leaf.index: self._file.chunk(self._row_group, t.leaf) for t in leaves_of(bound)}
        return float(sum(c.total_uncompressed_size for c in chunks.values()))

    def _filter(self, ranges: rows.RowRanges, bound: Bound) -> rows.RowRanges:
        """The rows for which the filter is TRUE: conjunct by conjunct, the cheapest first."""
        parts = conjuncts(bound)
        if len(parts) > 1:
            parts.sort(key=self._cost)
        needed_later = [
            {t.leaf.index for later in parts[i + 1 :] for t in leaves_of(later)}
            | {column.leaf.index for column in self._columns}
            for i in range(len(parts))
        ]
        for part, later in zip(parts, needed_later, strict=True):
            if not ranges:
                break
            tests = {t.leaf.index: t for t in leaves_of(part)}
            self._read([(t.leaf, t.form) for i, t in tests.items() if i not in self._held], ranges)
            n = ranges.num_rows
            mask, count = self._evaluate(part, n)
            self._held = {leaf: arrays for leaf, arrays in self._held.items() if leaf in later}
            if count < n:
                ranges = ranges.refine(mask)
                if count:
                    self._held = {
                        leaf: _take(self._forms[leaf], arrays, mask, n, count)
                        for leaf, arrays in self._held.items()
                    }
                else:
                    self._held.clear()
        return ranges

    def _evaluate(self, bound: Bound, n: int) -> tuple[Bitmap, int]:
        """Where a condition is TRUE, for the n rows selected now."""
        if isinstance(bound, BoundConst):
            return _constant(bound.value, n)
        if isinstance(bound, BoundLeaf):
            return self._test(bound, n)
        is_and = isinstance(bound, BoundAnd)
        mask, count = self._evaluate(bound.args[0], n)
        for arg in bound.args[1:]:
            if count == (0 if is_and else n):
                break
            other, _ = self._evaluate(arg, n)
            mask = mask & other if is_and else mask | other
            count = int(np.bitwise_count(mask).sum())
        return mask, count

    def _test(self, test: BoundLeaf, n: int) -> tuple[Bitmap, int]:
        arrays = self._held[test.leaf.index]
        if test.form.is_null:  # IS NULL is TRUE for every row, all else NULL
            return _constant(test.op == rows.OP_IS_NULL and not test.negate, n)
        masks: list[tuple[Bitmap, int, int]] = []
        for array in arrays:
            buffers = array.buffers()
            offsets = buffers[1] if len(buffers) == 3 else None
            mask, count = rows.compare(
                test.form.kind,
                test.form.width,
                len(array),
                buffers[0] if array.null_count else None,
                buffers[-1],
                offsets,
                test.op,
                test.negate,
                test.literals,
                test.nan,
            )
            masks.append((np.frombuffer(mask, np.uint8), count, len(array)))
        if len(masks) == 1:
            return masks[0][0], masks[0][1]
        bits = np.concatenate(
            [np.unpackbits(m, count=size, bitorder="little") for m, _, size in masks]
        )
        return np.packbits(bits, bitorder="little"), sum(count for _, count, _ in masks)


def _constant(value: bool, n: int) -> tuple[Bitmap, int]:
    return np.packbits(np.full(n, value), bitorder="little"), n if value else 0


def _take(form: Form, arrays: list[pa.Array], mask: Bitmap, n: int, count: int) -> list[pa.Array]:
    """The `count` rows of a bitmap; the results begin at offset 0, as the kernels need it."""
    if form.is_null:
        return [pa.nulls(count)]
    out, at = [], 0
    for array in arrays:
        rows_in = len(array)
        if rows_in < n:
            places = np.unpackbits(mask, count=at + rows_in, bitorder="little")
            count = int(np.count_nonzero(places[at:]))
        buffers = array.buffers()
        made = gather(
            form.kind,
            form.width,
            rows_in,
            buffers[0] if array.null_count else None,
            buffers[-1],
            buffers[1] if len(buffers) == 3 else None,
            mask,
            count,
            start=at,
        )
        out.append(to_arrow(form, *made))
        at += rows_in
    return out


def _head(form: Form, arrays: list[pa.Array], n: int) -> list[pa.Array]:
    """The first n rows, in memory of their own size: a few rows do not keep many alive."""
    rows_in = sum(map(len, arrays))
    if n >= rows_in:
        return arrays
    mask = np.zeros((rows_in + 7) // 8, np.uint8)
    mask[: n // 8] = 0xFF
    if n % 8:
        mask[n // 8] = (1 << n % 8) - 1
    return [array for array in _take(form, arrays, mask, rows_in, n) if len(array)]


def table_of(schema: pa.Schema, n: int, columns: list[list[pa.Array]]) -> pa.Table:
    """A table of n rows; its columns may be cut into arrays at different rows."""
    if not columns:
        empty = pa.StructArray.from_buffers(pa.struct([]), n, [None])
        return pa.Table.from_batches([pa.RecordBatch.from_struct_array(empty)])
    if all(len(arrays) == 1 for arrays in columns):
        return pa.Table.from_arrays([arrays[0] for arrays in columns], schema=schema)
    return pa.Table.from_arrays(
        [pa.chunked_array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema
    )


def batches_of(table: pa.Table, size: int) -> Iterator[pa.RecordBatch]:
    """Record batches of at most `size` rows, those without columns too."""
    if table.num_columns:
        yield from table.to_batches(max_chunksize=size)
        return
    for start in range(0, table.num_rows, size):
        empty = pa.StructArray.from_buffers(
            pa.struct([]), min(size, table.num_rows - start), [None]
        )
        yield pa.RecordBatch.from_struct_array(empty)
