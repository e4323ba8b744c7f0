"""The floor: what no reader of these files can undercut on one thread without another codec.

Counted, for one filter: `pread` of exactly the pages that hold the answer, neighbouring pages with one
call, and their decompression. Those pages are: of the filter's columns, the pages whose bounds admit the
filter (of the rows that the other terms leave); of the columns of the answer, the pages of its rows;
a dictionary page only where one of these pages is dictionary-encoded. When cold, also: open and close,
one read of the tail with the footer, and the reads of the page index (column index of the filter's
columns, offset index of every column read) in the row groups that the statistics leave.

Not counted: parsing of metadata and page headers, decoding, the filter itself, making Arrow arrays. What is
to be read is worked out beforehand, with pyarrow's answer at hand.

Memory is reused: one output buffer and one decompression context of libzstd for all pages where the
system has libzstd; else pyarrow.Codec, which takes its output from Arrow's memory pool. `Floor.method`
says which.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pageseek.bench.peers import arrow_expression

from pageseek.datasets.sources import open_metadata
from pageseek.format.chunks import CODECS, chunk_range, page_header

if TYPE_CHECKING:
    from pageseek.bench.cases import Case, Filter

    from pageseek.format.schema import Leaf

Mask = npt.NDArray[np.bool_]
DATA_PAGE_V2 = 3
DICTIONARY_ENCODINGS = (2, 8)
LARGEST_READ = 16 << 20


@dataclass(slots=True)
class Reads:
    """The reads of one filter, (offset, length), and its page bodies, (read, start, stop, size)."""

    pages: int = 0
    reads: list[tuple[int, int]] = field(default_factory=list)
    bodies: list[tuple[int, int, int, int]] = field(default_factory=list)
    metadata: list[tuple[int, int]] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        """Bytes of data read."""
        return sum(length for _, length in self.reads)


class Floor:
    """The floor of one case: `run(i)` does the work of its i-th filter."""

    name = "floor"

    def __init__(self, path: Path, case: Case) -> None:
        self._path = str(path)
        self._cold = case.cold
        planner = _Planner(self._path, case)
        self.plans = [planner.plan(terms) for terms in case.filters]
        largest = max((size for plan in self.plans for *_, size in plan.bodies), default=0)
        self._decompress, self.method = decompressor(planner.codec, largest)
        self._descriptor = os.open(self._path, os.O_RDONLY)

    def run(self, turn: int) -> None:
        """Read and decompress."""
        plan = self.plans[turn % len(self.plans)]
        if not self._cold:
            self._read(self._descriptor, plan)
            return
        descriptor = os.open(self._path, os.O_RDONLY)
        try:
            for offset, length in plan.metadata:
                os.pread(descriptor, length, offset)
            self._read(descriptor, plan)
        finally:
            os.close(descriptor)

    def _read(self, descriptor: int, plan: Reads) -> None:
        decompress, pread = self._decompress, os.pread
        last, data = -1, b""
        for read, start, stop, size in plan.bodies:
            if read != last:
                offset, length = plan.reads[read]
                last, data = read, pread(descriptor, length, offset)
            decompress(data, start, stop, size)

    def close(self) -> None:
        """Close the file descriptor."""
        os.close(self._descriptor)


class _Planner:
    """Works out the pages, outside of any timing."""

    def __init__(self, path: str, case: Case) -> None:
        self._path = path
        self._case = case
        self._file = open_metadata(path)
        leaves = {leaf.name: leaf for leaf in self._file.leaves}
        self._leaves: dict[str, Leaf] = leaves
        self._payload = list(case.columns if case.columns is not None else leaves)
        self._tested = list(dict.fromkeys(name for f in case.filters for name, _, _ in f))
        self._values = pq.read_table(path, columns=self._tested) if self._tested else None
        first = self._file.leaves[0]
        self.codec = CODECS[self._file.chunk(0, first).codec]
        self._starts = np.cumsum([0, *(group.num_rows for group in self._file.row_groups)])

    def plan(self, terms: Filter) -> Reads:
        plan = Reads()
        file = self._file
        footer = int.from_bytes(os.pread(file.store._fd, 4, file.store.size - 8), "little") + 8  # type: ignore[attr-defined]
        plan.metadata.append((file.store.size - footer, footer))
        passed = self._passed(terms)
        pages: list[tuple[int, int, Any]] = []  # offset, bytes, header
        for group in range(file.num_row_groups):
            rows = None
            if passed is not None:
                rows = passed[self._starts[group] : self._starts[group + 1]]
            self._plan_group(plan, pages, group, terms, rows)
        _bodies(plan, sorted(pages, key=lambda page: page[0]))
        return plan

    def _passed(self, terms: Filter) -> Mask | None:
        if not terms or self._values is None:
            return None
        import pyarrow.dataset as ds

        table = self._values.select(list(dict.fromkeys(name for name, _, _ in terms)))
        n = table.num_rows
        table = table.append_column("", pa.array(np.arange(n)))
        kept = ds.dataset(table).to_table(filter=arrow_expression(terms), columns=[""])
        mask = np.zeros(n, np.bool_)
        mask[kept.column(0).to_numpy()] = True
        return mask

    def _plan_group(
        self,
        plan: Reads,
        pages: list[tuple[int, int, Any]],
        group: int,
        terms: Filter,
        rows: Mask | None,
    ) -> None:
        tested = list(dict.fromkeys(name for name, _, _ in terms))
        names = list(dict.fromkeys([*tested, *self._payload]))
        left = np.ones(self._file.row_groups[group].num_rows, np.bool_)
        for name in tested:
            own = [term for term in terms if term[0] == name]
            if not self._group_admits(group, name, own):
                return
            left &= self._rows_admitted(group, name, own)
        if not left.any():
            return
        for name in names:
            leaf = self._leaves[name]
            need = left if name in tested else rows
            chosen = self._pages(group, leaf, need)
            for which in ("offset", "column") if name in tested else ("offset",):
                at = self._file.index_range(which, group, leaf) if rows is not None else None
                if at is not None:
                    plan.metadata.append(at)
            pages.extend(self._headers(plan, group, leaf, chosen))

    def _group_admits(self, group: int, name: str, terms: Sequence[Any]) -> bool:
        lower, upper = self._file.statistics(name)
        return bool(_admits(lower.slice(group, 1), upper.slice(group, 1), terms)[0])

    def _rows_admitted(self, group: int, name: str, terms: Sequence[Any]) -> Mask:
        offsets = self._file.offset_index(group, name)
        index = self._file.column_index(group, name)
        n = self._file.row_groups[group].num_rows
        if offsets is None or index is None:
            return np.ones(n, np.bool_)
        admitted = _admits(index.lower, index.upper, terms)
        return np.repeat(admitted, np.diff(offsets.first_row))

    def _pages(self, group: int, leaf: Leaf, rows: Mask | None) -> Mask:
        """The pages that hold one of the rows (all rows, if None)."""
        offsets = self._file.offset_index(group, leaf)
        if offsets is None:
            message = (
                f"{self._path}: column {leaf.name!r} has no offset index, and the floor needs one"
            )
            raise ValueError(message)
        if rows is None:
            return np.ones(offsets.num_pages, np.bool_)
        return np.logical_or.reduceat(rows, offsets.first_row[:-1])

    def _headers(
        self, plan: Reads, group: int, leaf: Leaf, chosen: Mask
    ) -> list[tuple[int, int, Any]]:
        offsets = self._file.offset_index(group, leaf)
        assert offsets is not None
        found: list[tuple[int, int, Any]] = []
        dictionary = False
        for page in np.flatnonzero(chosen).tolist():
            at, size = int(offsets.offset[page]), int(offsets.compressed_size[page])
            header = self._header(at, size)
            dictionary = dictionary or header.encoding in DICTIONARY_ENCODINGS
            found.append((at, size, header))
            plan.pages += 1
        if dictionary:
            at = chunk_range(self._file.chunk(group, leaf))[0]
            size = int(offsets.offset[0]) - at
            found.append((at, size, self._header(at, size)))
            plan.pages += 1
        return found

    def _header(self, at: int, size: int) -> Any:
        (data,) = self._file.store.read([(at, size)])
        return page_header(memoryview(data), 0, lambda: self._path, at)


def _admits(lower: pa.Array, upper: pa.Array, terms: Sequence[Any]) -> Mask:
    """Zones whose bounds admit a value that passes every term."""
    admitted = np.ones(len(lower), np.bool_)
    for _, op, value in terms:
        literal = pa.scalar(value, lower.type)
        parts = []
        if op in ("=", ">", ">="):
            parts.append((pc.greater if op == ">" else pc.greater_equal)(upper, literal))
        if op in ("=", "<", "<="):
            parts.append((pc.less if op == "<" else pc.less_equal)(lower, literal))
        for part in parts:
            admitted &= part.fill_null(True).to_numpy(zero_copy_only=False)
    return admitted


def _bodies(plan: Reads, pages: Sequence[tuple[int, int, Any]]) -> None:
    """Join neighbouring pages to reads, and place the bodies in them."""
    for at, size, header in pages:
        if plan.reads and sum(plan.reads[-1]) == at and plan.reads[-1][1] + size <= LARGEST_READ:
            offset, length = plan.reads[-1]
            plan.reads[-1] = offset, length + size
        else:
            plan.reads.append((at, size))
        start = at - plan.reads[-1][0] + header.header_length
        levels = 0
        if header.type == DATA_PAGE_V2:
            levels = header.rep_length + header.def_length
        stop = start + header.compressed_size
        body = len(plan.reads) - 1, start + levels, stop, header.uncompressed_size - levels
        plan.bodies.append(body)


Decompress = Callable[[bytes, int, int, int], None]


@functools.cache
def _libzstd() -> ctypes.CDLL | None:
    name = ctypes.util.find_library("zstd")
    if name is None:
        return None
    try:
        library = ctypes.CDLL(name)
    except OSError:
        return None
    size, pointer = ctypes.c_size_t, ctypes.c_void_p
    library.ZSTD_createDCtx.restype = pointer
    library.ZSTD_decompressDCtx.restype = size
    library.ZSTD_decompressDCtx.argtypes = [pointer, pointer, size, pointer, size]
    return library


def decompressor(codec: str, largest: int) -> tuple[Decompress, str]:
    if codec == "uncompressed":
        return lambda data, start, stop, size: None, "nothing to decompress"
    library = _libzstd() if codec == "zstd" else None
    if library is None:
        return _with_arrow(codec), f"pyarrow.Codec({codec!r})"
    context = library.ZSTD_createDCtx()
    output = ctypes.create_string_buffer(max(largest, 1))
    call = library.ZSTD_decompressDCtx
    into = ctypes.addressof(output)

    def decompress(data: bytes, start: int, stop: int, size: int) -> None:
        source = ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value
        assert source is not None
        if call(context, into, size, source + start, stop - start) != size:
            raise ValueError("a page does not decompress to its size")

    decompress.keep = output  # type: ignore[attr-defined]
    return decompress, "libzstd, one context and one output buffer"


def _with_arrow(codec: str) -> Decompress:
    made = pa.Codec("lz4_raw" if codec == "lz4" else codec)

    def decompress(data: bytes, start: int, stop: int, size: int) -> None:
        made.decompress(memoryview(data)[start:stop], size)

    return decompress
